//! Filter 32000: LZF, as h5py writes it.
//!
//! A control byte below 32 announces that many plus one literal bytes. Otherwise its top three bits are a length minus
//! two (7: the next byte adds to it), and its low five bits with one more byte are a distance minus one.

use super::matches::{byte, damaged, literal, repeat};
use crate::codec::Error;

/// Decompresses `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    decompress(data, out).ok_or_else(|| damaged(out.len()))
}

fn decompress(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut input = data;
    let mut at = 0;
    while !input.is_empty() {
        let control = byte(&mut input)?;
        if control < 32 {
            literal(&mut input, control + 1, out, at)?;
            at += control + 1;
        } else {
            let length = if control >> 5 == 7 { 9 + byte(&mut input)? } else { (control >> 5) + 2 };
            let distance = 1 + ((control & 31) << 8 | byte(&mut input)?);
            repeat(out, at, distance, length)?;
            at += length;
        }
    }
    Some(at)
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
