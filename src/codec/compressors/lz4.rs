//! Filter 32004: LZ4 blocks in the framing of the HDF5 plugin ([`Framed`]).
//!
//! A block whose stored length is its own length is stored uncompressed.

use crate::codec::Error;
use lz4::block::decompress_to_buffer;

use super::super::{Prefix, filled, target};
use super::framing::Framed;
use super::matches::damaged;

/// Bytes of the largest block to decode if only a part of it is needed.
const MAX_BLOCK: usize = 8 << 20;

/// Decompresses `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let mut framed = Framed::read(data)?;
    let out = target(out, framed.size)?;
    if framed.block == 0 && !out.is_empty() {
        return Err("blocks of 0 bytes".into());
    }
    for piece in out.chunks_mut(framed.block.max(1)) {
        decode_stored(framed.take()?, piece)?;
    }
    Ok(out.len())
}

/// Fills `out` with the first bytes of a chunk, from the first bytes of its stream.
pub(in crate::codec) fn prefix(data: &[u8], out: &mut [u8]) -> Prefix {
    let Ok(mut framed) = Framed::read(data) else { return Prefix::MoreInput };
    let Framed { size, block, .. } = framed;
    if block == 0 || block > MAX_BLOCK || size < out.len() as u64 {
        return Prefix::Unavailable;
    }
    let mut left = size;
    for piece in out.chunks_mut(block) {
        let Ok(input) = framed.take() else { return Prefix::MoreInput };
        let whole = left.min(block as u64) as usize;
        left -= whole as u64;
        let decoded = if piece.len() == whole {
            decode_stored(input, piece)
        } else {
            let mut last = vec![0; whole];
            decode_stored(input, &mut last).map(|()| piece.copy_from_slice(&last[..piece.len()]))
        };
        if decoded.is_err() {
            return Prefix::Unavailable;
        }
    }
    Prefix::Done
}

/// Decodes a stored block: uncompressed if its length is that of `out`.
fn decode_stored(stored: &[u8], out: &mut [u8]) -> Result<(), Error> {
    if stored.len() == out.len() {
        out.copy_from_slice(stored);
        return Ok(());
    }
    decode_block(stored, out)
}

/// Decompresses one block in the LZ4 block format, which must fill `out`.
pub(in crate::codec) fn decode_block(data: &[u8], out: &mut [u8]) -> Result<(), Error> {
    // The reference implementation counts in 32 bits, and the crate does not check lengths.
    let room = i32::try_from(out.len()).ok().filter(|_| i32::try_from(data.len()).is_ok());
    let room = room.ok_or_else(|| format!("a block of {} bytes, stored in {}", out.len(), data.len()))?;
    let n = decompress_to_buffer(data, Some(room), out).map_err(|_| damaged(out.len()))?;
    filled(n, out.len())
}

#[cfg(test)]
pub(in crate::codec) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The framing around blocks by `lz4_flex`, written from the format's description.
    pub(in crate::codec) fn encode(data: &[u8], block: usize) -> Vec<u8> {
        let mut stream = (data.len() as u64).to_be_bytes().to_vec();
        stream.extend((block as u32).to_be_bytes());
        for piece in data.chunks(block) {
            let packed = lz4_flex::block::compress(piece);
            let stored = if packed.len() < piece.len() { &packed[..] } else { piece };
            stream.extend((stored.len() as u32).to_be_bytes());
            stream.extend(stored);
        }
        stream
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            data in prop::collection::vec(0u8..4, 0..2000),
            noise in prop::collection::vec(any::<u8>(), 0..200),
            block in 1usize..500,
        ) {
            let data = [data, noise].concat();
            let stream = encode(&data, block);
            let mut out = vec![0; data.len()];
            prop_assert_eq!(decode(&stream, &mut out), Ok(data.len()));
            prop_assert_eq!(&out, &data);
            if !data.is_empty() {
                prop_assert!(decode(&stream, &mut out[1..]).is_err());
                prop_assert!(decode(&stream[..stream.len() - 1], &mut out).is_err());
            }
        }

        #[test]
        fn any_block_gives_what_lz4_flex_gives(
            data in prop::collection::vec(0u8..40, 0..200),
            noise in prop::collection::vec(any::<u8>(), 0..100),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            let data = [data, noise].concat();
            let mut block = lz4_flex::block::compress(&data);
            for (place, byte) in damage {
                let at = place.index(block.len());
                block[at] = byte;
            }
            let (mut out, mut expected) = (vec![0; data.len()], vec![0; data.len()]);
            let given = lz4_flex::block::decompress_into(&block, &mut expected);
            // It takes copies near the end, which the format does not allow, and not those from no distance.
            if decode_block(&block, &mut out).is_ok() && given.is_ok_and(|n| n == data.len()) {
                prop_assert_eq!(out, expected);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(
            tail in prop::collection::vec(any::<u8>(), 0..200),
            size in 0u64..300,
            block in 0u32..300,
        ) {
            let mut data = size.to_be_bytes().to_vec();
            data.extend(block.to_be_bytes());
            data.extend(tail);
            let _ = decode(&data, &mut [0; 256]);
        }
    }

    /// The reference implementation takes a copy from a distance of 0 for zeros: what was in the buffer must not come
    /// out.
    #[test]
    fn a_copy_from_no_distance_gives_zeros() {
        for length in [4u8, 7, 8, 9, 15, 18] {
            for end in [8, 11, 20, 100] {
                // Two literals, the copy, literals to the end.
                let last = if end < 15 { vec![end << 4] } else { vec![0xf0, end - 15] };
                let copy = [0x20 | (length - 4), b'a', b'b', 0, 0];
                let block = [&copy[..], &last, &vec![b'z'; end.into()]].concat();
                let expected = [&b"ab"[..], &vec![0; length.into()], &vec![b'z'; end.into()]].concat();
                for old in [0, 0xa5] {
                    let mut out = vec![old; expected.len()];
                    assert_eq!(decode_block(&block, &mut out), Ok(()));
                    assert_eq!(out, expected);
                }
            }
        }
    }

    #[test]
    fn what_has_no_length_in_32_bits_is_an_error() {
        assert!(decode_block(&vec![0; 1 << 31], &mut [0; 8]).is_err());
        assert!(decode_block(&[0; 8], &mut vec![0; 1 << 31]).is_err());
    }
}
