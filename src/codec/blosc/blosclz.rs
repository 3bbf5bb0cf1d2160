//! BloscLZ, Blosc's own compressor, a descendant of FastLZ.
//!
//! A control byte below 32 announces that many plus one literal bytes; the first byte of a stream always does, whatever
//! its top bits. Otherwise its top three bits are a length minus two (7: bytes follow that add to it, the last of them
//! below 255), and its low five bits with one more byte are a distance minus one. The largest such distance announces
//! two more bytes (big-endian) that add to it.

use super::super::compressors::matches::{byte, damaged, lengthened, literal, repeat};
use crate::codec::Error;

/// Largest distance in 13 bits; longer distances take 16 bits more.
const NEAR: usize = 8191;

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    decompress(data, out).ok_or_else(|| damaged(out.len()))
}

fn decompress(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let Some((first, mut input)) = data.split_first() else { return Some(0) };
    let mut control = usize::from(first & 31);
    let mut at = 0;
    loop {
        if control < 32 {
            literal(&mut input, control + 1, out, at)?;
            at += control + 1;
        } else {
            let length = if control >> 5 == 7 { lengthened(&mut input, 9)? } else { (control >> 5) + 2 };
            let near = (control & 31) << 8 | byte(&mut input)?;
            let far = if near == NEAR { byte(&mut input)? << 8 | byte(&mut input)? } else { 0 };
            repeat(out, at, 1 + near + far, length)?;
            at += length;
        }
        let Some((next, rest)) = input.split_first() else { return Some(at) };
        (control, input) = (usize::from(*next), rest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_copies_and_overlaps_by_hand() {
        // "abc" (top bits of the first byte set); 3 bytes from 3 back; 9 + 2 bytes from 1 back; "z".
        let stream = [2 | 0x40, b'a', b'b', b'c', 1 << 5, 2, 7 << 5, 2, 0, 0, b'z'];
        let mut out = [0; 18];
        assert_eq!(decode(&stream, &mut out), Ok(18));
        assert_eq!(&out, b"abcabccccccccccccz");
        assert!(decode(&stream, &mut [0; 17]).is_err());
        assert!(decode(&stream[..10], &mut out).is_err());
        assert!(decode(&[0, b'a', 1 << 5, 1, 0, b'z'], &mut out).is_err());
    }

    #[test]
    fn a_long_copy_and_a_far_one() {
        // 32 literals; 9 + 255 + 255 + 1 bytes from 2 back; far: 3 bytes from 8191 + 1 + 0x0001 back.
        let mut stream = vec![31];
        stream.extend(0..32u8);
        stream.extend([7 << 5, 255, 255, 1, 1, 0, b'!']);
        let mut out = vec![0; 32 + 520 + 1];
        assert_eq!(decode(&stream, &mut out), Ok(553));
        assert!(out[32..552].chunks(2).all(|pair| pair == [30, 31]));
        assert_eq!(out[552], b'!');
        // A run of 9000 bytes behind "xy", then 3 bytes from 8193 back, which are in the run.
        let mut stream = vec![1, b'x', b'y', 7 << 5];
        let (n, more) = ((9000 - 9) / 255, (9000 - 9) % 255);
        stream.extend(vec![255; n]);
        stream.extend([more as u8, 0, 1 << 5 | 31, 255, 0, 1, 0, b'!']);
        let mut out = vec![0; 2 + 9000 + 3 + 1];
        assert_eq!(decode(&stream, &mut out), Ok(9006));
        assert_eq!(&out[9000..], b"yyyyy!");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..200), room in 0usize..300) {
            let _ = decode(&data, &mut vec![0; room]);
        }
    }
}
