//! `uleb128_zigzag_diff`.

/// See [`Coding::decode`](super::Coding::decode).
pub(super) fn decode(bytes: &[u8], most: usize, out: &mut Vec<i32>) -> Option<()> {
    let end = out.len().checked_add(most)?;
    let mut last = 0_i32;
    let mut bytes = bytes.iter();
    while let Some(&first) = bytes.next() {
        let mut number = u32::from(first & 127);
        let mut byte = first;
        let mut bits = 7;
        while byte & 128 != 0 {
            // A fifth byte has the last four bits.
            if bits > 28 {
                return None;
            }
            byte = *bytes.next()?;
            number |= u32::from(byte & 127) << bits;
            bits += 7;
        }
        if out.len() == end {
            return None;
        }
        last = last.wrapping_add((number >> 1) as i32 ^ -((number & 1) as i32));
        out.push(last);
    }
    Some(())
}
