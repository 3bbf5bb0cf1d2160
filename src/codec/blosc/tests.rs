use proptest::prelude::*;

use super::super::bits;
use super::*;

/// Bytes of elements sorted by position, what is left over behind them.
pub(crate) fn shuffled(data: &[u8], element: usize) -> Vec<u8> {
    let elements = data.len() / element;
    let whole = (0..elements * element).map(|at| data[at % elements * element + at / elements]);
    whole.chain(data[elements * element..].iter().copied()).collect()
}

/// Bits of eights of elements sorted by position, what is left over behind them.
pub(crate) fn bit_shuffled(data: &[u8], element: usize) -> Vec<u8> {
    let whole = data.len() / element / 8 * 8 * element;
    [bits::tests::encode(&data[..whole], element), data[whole..].to_vec()].concat()
}

/// A block in streams of LZ4, each behind its length.
pub(crate) fn streams(block: &[u8], streams: usize) -> Vec<u8> {
    let mut stored = Vec::new();
    for piece in block.chunks(block.len() / streams) {
        let packed = lz4_flex::block::compress(piece);
        let stream = if packed.len() < piece.len() { &packed[..] } else { piece };
        stored.extend((stream.len() as u32).to_le_bytes());
        stored.extend(stream);
    }
    stored
}

/// The 16 bytes of the header.
pub(crate) fn header(version: u8, flags: u8, element: usize, size: usize, block: usize, stored: usize) -> Vec<u8> {
    let mut header = vec![version, 1, flags, element as u8];
    for number in [size, block, stored] {
        header.extend((number as u32).to_le_bytes());
    }
    header
}

/// A chunk as the format's description has it.
fn encode(data: &[u8], element: usize, block: usize, flags: u8) -> Vec<u8> {
    let mut starts = Vec::new();
    let mut blocks = Vec::new();
    for piece in data.chunks(block) {
        starts.extend(((16 + 4 * data.len().div_ceil(block) + blocks.len()) as u32).to_le_bytes());
        let sorted = match flags & 5 {
            1 => shuffled(piece, element),
            4 if (piece.len() / element).is_multiple_of(8) => bit_shuffled(piece, element),
            _ => piece.to_vec(),
        };
        let split = flags & 0x10 == 0 && element <= 16 && block / element >= 128 && piece.len() == block;
        blocks.extend(streams(&sorted, if split { element } else { 1 }));
    }
    let header = header(2, flags | 1 << 5, element, data.len(), block, 16 + starts.len() + blocks.len());
    [header, starts, blocks].concat()
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        data in prop::collection::vec(0u8..4, 1..6000),
        element in 1usize..20,
        elements in 1usize..300,
        flags in prop::sample::select(vec![0u8, 1, 4, 0x10, 0x11, 0x14]),
    ) {
        let stored = encode(&data, element, element * elements, flags);
        let mut out = vec![0; data.len()];
        prop_assert_eq!(decode(&stored, &mut out), Ok(data.len()));
        prop_assert_eq!(&out, &data);
        prop_assert!(decode(&stored, &mut out[1..]).is_err());
        prop_assert!(decode(&stored[..stored.len() - 1], &mut out).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(
        data in prop::collection::vec(any::<u8>(), 0..300),
        flags in any::<u8>(),
        element in 0usize..256,
        size in 0usize..300,
        block in 0usize..300,
    ) {
        let _ = decode(&data, &mut [0; 256]);
        let header = header(2, flags & !RESERVED, element, size, block, 16 + data.len());
        let _ = decode(&[header, data].concat(), &mut [0; 256]);
    }

    #[test]
    fn a_damaged_chunk_does_not_make_it_panic(at in 0usize..400, byte in any::<u8>(), flags in 0u8..6) {
        let mut stored = encode(&[1, 2, 3, 4, 9, 9].repeat(100), 4, 560, flags);
        let at = at % stored.len();
        stored[at] = byte;
        let _ = decode(&stored, &mut [0; 600]);
    }
}

#[test]
fn what_is_not_of_this_version_is_an_error() {
    let chunk = |version, flags| [header(version, flags, 4, 4, 4, 20), vec![1, 2, 3, 4]].concat();
    let mut out = [0; 4];
    assert_eq!(decode(&chunk(2, COPIED), &mut out), Ok(4));
    assert_eq!(out, [1, 2, 3, 4]);
    assert!(decode(&chunk(3, COPIED), &mut out).is_err());
    assert!(decode(&chunk(2, COPIED | RESERVED), &mut out).is_err());
    assert_eq!(decode(&chunk(2, 7 << 5), &mut out), Err("compressor 7 is not known".into()));
}
