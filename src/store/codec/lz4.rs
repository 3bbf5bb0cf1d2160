//! Filter 32004: LZ4 blocks in the framing of the HDF5 plugin.
//!
//! ```text
//! 0        8           12
//! +--------+-----------+------------------+---------+------------------+--
//! | size   | block     | stored length 0  | block 0 | stored length 1  | …
//! | u64 BE | u32 BE    | u32 BE           |         | u32 BE           |
//! +--------+-----------+------------------+---------+------------------+--
//! ```
//!
//! A block whose stored length is its own length is stored uncompressed.

use super::Prefix;
use super::matches::{byte, damaged, lengthened, literal, repeat};

/// Bytes of a block that is decoded for a part of it.
const MAX_BLOCK: usize = 8 << 20;

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let mut rest = data;
    let (size, block) = header(&mut rest)?;
    let room = out.len();
    let out = usize::try_from(size)
        .ok()
        .and_then(|size| out.get_mut(..size))
        .ok_or_else(|| format!("the header says {size} bytes, more than the {room} expected"))?;
    if block == 0 && !out.is_empty() {
        return Err("blocks of 0 bytes".into());
    }
    for piece in out.chunks_mut(block.max(1)) {
        let stored = u32::from_be_bytes(take(&mut rest)?) as usize;
        let (input, tail) = rest.split_at_checked(stored).ok_or("a block ends after the chunk does")?;
        rest = tail;
        decode_stored(input, piece)?;
    }
    Ok(out.len())
}

/// Fills `out` with the first bytes, given the first bytes of the stream.
pub(super) fn prefix(data: &[u8], out: &mut [u8]) -> Prefix {
    let mut rest = data;
    let Ok((size, block)) = header(&mut rest) else { return Prefix::MoreInput };
    if block == 0 || block > MAX_BLOCK || size < out.len() as u64 {
        return Prefix::Unavailable;
    }
    let mut left = size;
    for piece in out.chunks_mut(block) {
        let Ok(stored) = take(&mut rest).map(|stored| u32::from_be_bytes(stored) as usize) else {
            return Prefix::MoreInput;
        };
        let Some((input, tail)) = rest.split_at_checked(stored) else { return Prefix::MoreInput };
        rest = tail;
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

/// Bytes of the chunk and of a block.
fn header(rest: &mut &[u8]) -> Result<(u64, usize), String> {
    Ok((u64::from_be_bytes(take(rest)?), u32::from_be_bytes(take(rest)?) as usize))
}

/// A block as it is stored: as it is where that takes as many bytes.
fn decode_stored(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    if stored.len() == out.len() {
        out.copy_from_slice(stored);
        return Ok(());
    }
    decode_block(stored, out)
}

/// Decompresses one block of the format itself, which must fill `out`.
///
/// A token's high half is how many literal bytes follow, its low half the length of a copy minus four; 15 announces
/// bytes that add to it, the last of them below 255. The distance of the copy is the two bytes (little-endian) behind
/// the literals. The last token has literals only.
// The crate lz4_flex copies what overlaps byte by byte: 1.5 GB/s on the blocks of Bitshuffle, where this gives 12.
pub(super) fn decode_block(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    let n = decompress(data, out).ok_or_else(|| damaged(out.len()))?;
    super::filled(n, out.len())
}

fn decompress(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut input = data;
    let mut at = 0;
    loop {
        let token = byte(&mut input)?;
        let length = if token >> 4 == 15 { lengthened(&mut input, 15)? } else { token >> 4 };
        literal(&mut input, length, out, at)?;
        at += length;
        if input.is_empty() {
            return Some(at);
        }
        let (distance, rest) = input.split_first_chunk()?;
        input = rest;
        let length = if token & 15 == 15 { lengthened(&mut input, 19)? } else { (token & 15) + 4 };
        repeat(out, at, usize::from(u16::from_le_bytes(*distance)), length)?;
        at += length;
    }
}

/// Takes the next bytes of a header.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (head, tail) = rest.split_first_chunk().ok_or("a header is cut short")?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The framing around blocks by `lz4_flex`, written from the format's description.
    pub(in super::super) fn encode(data: &[u8], block: usize) -> Vec<u8> {
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
        fn any_block_gives_what_lz4_flex_gives(data in prop::collection::vec(0u8..40, 0..200), room in 0usize..300) {
            let (mut out, mut expected) = (vec![0; room], vec![0; room]);
            if let Ok(n) = lz4_flex::block::decompress_into(&data, &mut expected) {
                prop_assert_eq!(decompress(&data, &mut out), Some(n));
                prop_assert_eq!(&out[..n], &expected[..n]);
            } else {
                prop_assert_eq!(decompress(&data, &mut out), None);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(tail in prop::collection::vec(any::<u8>(), 0..200), size in 0u64..300, block in 0u32..300) {
            let mut data = size.to_be_bytes().to_vec();
            data.extend(block.to_be_bytes());
            data.extend(tail);
            let _ = decode(&data, &mut [0; 256]);
        }
    }
}
