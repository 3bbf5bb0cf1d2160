//! Filter 32000: LZF, as h5py writes it.
//!
//! A control byte below 32 announces that many plus one literal bytes. Otherwise its top three bits are a length minus
//! two (7: the next byte adds to it), and its low five bits with one more byte are a distance minus one.

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, String> {
    const SHORT: &str = "the stream is cut short";
    let full = |room: usize| format!("the stream gives more than {room} bytes");
    let room = out.len();
    let mut input = data;
    let mut at = 0usize;
    while let Some((&control, rest)) = input.split_first() {
        input = rest;
        let control = usize::from(control);
        if control < 32 {
            let n = control + 1;
            let (literal, rest) = input.split_at_checked(n).ok_or(SHORT)?;
            out.get_mut(at..at + n).ok_or_else(|| full(room))?.copy_from_slice(literal);
            input = rest;
            at += n;
            continue;
        }
        let mut n = control >> 5;
        if n == 7 {
            let (&more, rest) = input.split_first().ok_or(SHORT)?;
            n += usize::from(more);
            input = rest;
        }
        n += 2;
        let (&low, rest) = input.split_first().ok_or(SHORT)?;
        input = rest;
        let distance = ((control & 31) << 8 | usize::from(low)) + 1;
        let from = at.checked_sub(distance).ok_or_else(|| format!("a copy from {distance} bytes back at byte {at}"))?;
        if at + n > room {
            return Err(full(room));
        }
        if distance >= n {
            out.copy_within(from..from + n, at);
        } else {
            // Source and target overlap: the bytes just written are read again.
            for i in 0..n {
                out[at + i] = out[from + i];
            }
        }
        at += n;
    }
    Ok(at)
}
