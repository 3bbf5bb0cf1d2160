//! `uleb128_zigzag_diff`: differences as zigzag LEB128 numbers.

/// Flag of a byte that is not the last of its number.
const MORE: u8 = 128;

/// See [`Coding::samples`](super::Coding::samples).
pub(super) fn samples(bytes: &[u8]) -> Option<usize> {
    if bytes.last().is_some_and(|last| last & MORE != 0) {
        return None;
    }
    // A number has five bytes at most.
    let from = |at: usize| bytes.get(at..).unwrap_or_default();
    let runs = bytes.iter().zip(from(1)).zip(from(2)).zip(from(3)).zip(from(4));
    let longest = runs.fold(0, |longest, ((((a, b), c), d), e)| longest | (a & b & c & d & e));
    // Counters of one byte, which 255 bytes cannot overflow, make the widest vectors.
    let ends =
        bytes.chunks(255).map(|bytes| usize::from(bytes.iter().map(|byte| u8::from(byte & MORE == 0)).sum::<u8>()));
    (longest & MORE == 0).then(|| ends.sum())
}

/// See [`Coding::decode`](super::Coding::decode).
pub(super) fn decode(bytes: &[u8], out: &mut [i32]) -> Option<()> {
    let mut last = 0_i32;
    let mut add = |number: u32| {
        last = last.wrapping_add((number >> 1) as i32 ^ -((number & 1) as i32));
        last
    };
    let (mut bytes, mut out) = (bytes, out);
    while let Some((first, _)) = bytes.split_first() {
        // Nearly all differences are small: take eight of one byte each.
        if let (Some((eight, rest)), true) = (bytes.split_first_chunk::<8>(), out.len() >= 8)
            && u64::from_le_bytes(*eight) & u64::from_le_bytes([MORE; 8]) == 0
        {
            let (samples, behind) = out.split_at_mut(8);
            samples.iter_mut().zip(eight).for_each(|(sample, byte)| *sample = add((*byte).into()));
            (bytes, out) = (rest, behind);
            continue;
        }
        let (mut number, mut length) = (u32::from(first & !MORE), 1);
        while bytes.get(length - 1)? & MORE != 0 {
            // A fifth byte has only the last four bits.
            if length > 4 {
                return None;
            }
            number |= u32::from(bytes.get(length)? & !MORE) << (7 * length);
            length += 1;
        }
        let (sample, behind) = out.split_first_mut()?;
        *sample = add(number);
        (bytes, out) = (bytes.get(length..)?, behind);
    }
    out.is_empty().then_some(())
}
