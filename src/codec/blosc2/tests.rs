use proptest::prelude::*;

use super::super::blosc::tests::{bit_shuffled, header, shuffled, streams};
use super::*;

/// A chunk as the format's description has it, without its first 16 bytes; `filters` are 1 bytes and 2 bits.
fn chunk(data: &[u8], element: usize, block: usize, filters: &[u8], split: bool) -> Vec<u8> {
    let (mut starts, mut blocks) = (Vec::new(), Vec::new());
    let split = split && data.len() >= block;
    for piece in data.chunks(block) {
        starts.extend(((32 + 4 * data.len().div_ceil(block) + blocks.len()) as u32).to_le_bytes());
        let sorted = filters.iter().fold(piece.to_vec(), |piece, filter| match filter {
            1 => shuffled(&piece, element),
            _ => bit_shuffled(&piece, element),
        });
        match sorted[..] {
            [0, ref rest @ ..] if !split && rest.iter().all(|byte| *byte == 0) => blocks.extend([0; 4]),
            [5, ref rest @ ..] if !split && rest.iter().all(|byte| *byte == 5) => {
                blocks.extend((-5i32).to_le_bytes());
                blocks.push(1);
            }
            _ => blocks.extend(streams(&sorted, if split && piece.len() == block { element } else { 1 })),
        }
    }
    let mut extension = [0; 16];
    extension[6 - filters.len()..6].copy_from_slice(filters);
    let flags = 0x05 | if split { 0 } else { 0x10 } | 1 << 5;
    let header = header(5, flags, element, data.len(), block, 32 + starts.len() + blocks.len());
    [header, extension.to_vec(), starts, blocks].concat()
}

/// A frame around a chunk, with the shape of an array.
fn frame(chunk: &[u8], element: usize, size: usize, array: Option<&[u8]>) -> Vec<u8> {
    let mut layers = vec![0x93, 0xcd, 0, 0, 0xde, 0, u8::from(array.is_some())];
    if let Some(array) = array {
        let offset = METALAYERS + layers.len() + 10;
        layers.extend(b"\xa4b2nd\xd2");
        layers.extend((offset as u32).to_be_bytes());
        layers.push(0xc6);
        layers.extend((array.len() as u32).to_be_bytes());
        layers.extend(array);
    }
    // An index of one offset, 0: eight zeros.
    let index = [header(5, 0x15, 8, 8, 8, 32), vec![0; 15], vec![1 << 4]].concat();
    let length = METALAYERS + layers.len();
    let mut head = vec![0; METALAYERS];
    head[2..10].copy_from_slice(b"b2frame\0");
    head[11..15].copy_from_slice(&(length as u32).to_be_bytes());
    head[16..24].copy_from_slice(&((length + chunk.len() + index.len()) as u64).to_be_bytes());
    head[30..38].copy_from_slice(&(size as u64).to_be_bytes());
    head[39..47].copy_from_slice(&(chunk.len() as u64).to_be_bytes());
    head[48..52].copy_from_slice(&(element as u32).to_be_bytes());
    [head, layers, chunk.to_vec(), index].concat()
}

/// The metalayer of an array that is one chunk.
fn metalayer(shape: &[usize], blocks: &[usize]) -> Vec<u8> {
    let mut layer = vec![0x97, 0, shape.len() as u8, 0x90];
    shape.iter().for_each(|length| layer.extend([&[0xd3][..], &(*length as u64).to_be_bytes()].concat()));
    for lengths in [shape, blocks] {
        layer.push(0x90);
        lengths.iter().for_each(|length| layer.extend([&[0xd2][..], &(*length as u32).to_be_bytes()].concat()));
    }
    layer
}

/// Elements of an array in the order of its blocks, with zeros as padding.
fn tiled(data: &[u8], element: usize, shape: &[usize], blocks: &[usize]) -> Vec<u8> {
    let counts: Vec<usize> = shape.iter().zip(blocks).map(|(length, block)| length.div_ceil(*block)).collect();
    let split = |mut at: usize, lengths: &[usize]| {
        let mut places: Vec<usize> = lengths.iter().rev().map(|length| (at % length, at /= length).0).collect();
        places.reverse();
        places
    };
    let mut out = Vec::new();
    for block in 0..counts.iter().product() {
        for place in 0..blocks.iter().product() {
            let (block, place) = (split(block, &counts), split(place, blocks));
            let at = (0..shape.len()).map(|i| block[i] * blocks[i] + place[i]).collect::<Vec<_>>();
            if at.iter().zip(shape).all(|(at, length)| at < length) {
                let at = at.iter().zip(shape).fold(0, |sum, (at, length)| sum * length + at);
                out.extend(&data[at * element..][..element]);
            } else {
                out.extend(vec![0; element]);
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        data in prop::collection::vec(0u8..4, 0..3000),
        runs in prop::collection::vec(prop::sample::select(vec![0u8, 5]), 0..4),
        element in 1usize..12,
        elements in 1usize..60,
        filters in prop::collection::vec(1u8..3, 0..4),
        split in any::<bool>(),
    ) {
        let block = element * elements;
        let data = runs.iter().flat_map(|byte| vec![*byte; block]).chain(data).collect::<Vec<_>>();
        prop_assume!(!data.is_empty());
        let stored = frame(&chunk(&data, element, block, &filters, split), element, data.len(), None);
        let mut out = vec![0xaa; data.len()];
        prop_assert_eq!(decode(&stored, &mut out), Ok(data.len()));
        prop_assert_eq!(&out, &data);
        prop_assert!(decode(&stored, &mut out[1..]).is_err());
        prop_assert!(decode(&stored[..stored.len() - 1], &mut out).is_err());
    }

    #[test]
    fn arrays_of_any_shape_are_put_in_order(
        dimensions in prop::collection::vec((1usize..9, 1usize..9), 0..5),
        element in 1usize..5,
        filters in prop::collection::vec(1u8..3, 0..2),
    ) {
        let shape: Vec<usize> = dimensions.iter().map(|(a, b)| *a.max(b)).collect();
        let blocks: Vec<usize> = dimensions.iter().map(|(a, b)| *a.min(b)).collect();
        let size = shape.iter().product::<usize>() * element;
        let data: Vec<u8> = (0..size).map(|at| (at % 251) as u8 + 1).collect();
        let tiles = tiled(&data, element, &shape, &blocks);
        let chunk = chunk(&tiles, element, blocks.iter().product::<usize>() * element, &filters, false);
        let stored = frame(&chunk, element, tiles.len(), Some(&metalayer(&shape, &blocks)));
        let mut out = vec![0xaa; size];
        prop_assert_eq!(decode(&stored, &mut out), Ok(size));
        prop_assert_eq!(&out, &data);
        prop_assert!(decode(&stored, &mut out[1..]).is_err());
    }

    #[test]
    fn a_damaged_frame_does_not_make_it_panic(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..9),
        delta in any::<bool>(),
    ) {
        let data: Vec<u8> = (0..=255).collect();
        let tiles = tiled(&data, 4, &[8, 8], &[3, 5]);
        let mut chunk = chunk(&tiles, 4, 60, &[1, 2], false);
        if delta {
            chunk[19] = 3;
        }
        let mut stored = frame(&chunk, 4, tiles.len(), Some(&metalayer(&[8, 8], &[3, 5])));
        let at = at.index(stored.len());
        stored.iter_mut().skip(at).zip(&bytes).for_each(|(target, byte)| *target = *byte);
        let _ = decode(&stored, &mut [0; 256]);
    }

    #[test]
    fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&data, &mut [0; 256]);
        let _ = decode(&frame(&data, 4, 256, None), &mut [0; 256]);
        let _ = decode(&frame(&[], 4, 256, Some(&data)), &mut [0; 256]);
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let error = |at: usize, byte: u8| {
        let mut chunk = chunk(&[7, 8].repeat(50), 4, 40, &[1], false);
        chunk[at] = byte;
        decode(&frame(&chunk, 4, 100, None), &mut [0; 100]).unwrap_err().to_string()
    };
    assert_eq!(error(2, 0x15 | 6 << 5), "compressor 0 of Blosc2 is not known");
    assert_eq!(error(2, 0x15 | 7 << 5), "compressor 7 is not known");
    assert_eq!(error(2, 0x11), "a chunk of Blosc 1 in a frame");
    assert_eq!(error(21, 35), "filter 35 of Blosc2 is not known");
    assert_eq!(error(31, 1), "a chunk that is compressed with a dictionary");
    assert_eq!(error(31, 8), "a chunk that is lazy or instrumented");
    assert!(error(30, 1).starts_with("a chunk with blocks of variable length"));
}
