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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_copies_and_overlaps_by_hand() {
        // "abc" literally; 3 bytes from 3 back; 9 + 2 bytes from 1 back (length 7 + 2 in a byte of its own).
        let stream = [2, b'a', b'b', b'c', 1 << 5, 2, 7 << 5, 2, 0];
        let mut out = [0; 17];
        assert_eq!(decode(&stream, &mut out), Ok(17));
        assert_eq!(&out, b"abcabcccccccccccc"[..].first_chunk::<17>().unwrap());
        assert!(decode(&stream, &mut [0; 16]).is_err());
        assert!(decode(&stream[..8], &mut out).is_err());
        assert!(decode(&[0, b'a', 1 << 5, 1], &mut out).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..200), room in 0usize..300) {
            let _ = decode(&data, &mut vec![0; room]);
        }
    }
}
