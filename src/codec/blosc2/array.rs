//! The metalayer `b2nd`: the blocks of a chunk tile an array.
//!
//! Blocks have the same shape, with padding at the far edges, and follow each other in row-major order, as do the
//! elements in each. Decoding gives an array in row-major order.

use super::super::space::{Space, lend};
use super::super::target;
use super::chunk::Blosc2Chunk;
use super::{number, size};
use crate::codec::Error;

/// Most dimensions that Blosc 2 supports.
const MOST_DIMENSIONS: usize = 16;

thread_local! {
    static BLOCK: Space = const { Space::new(Vec::new()) };
}

/// An array and its blocks. Trailing dimensions that a block spans count as part of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blosc2Array {
    dimensions: Vec<Dimension>,
    /// Bytes of an element.
    element: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension {
    length: usize,
    /// Length of a block along the dimension.
    block: usize,
}

impl Blosc2Array {
    /// Reads the metalayer: MessagePack at fixed offsets, three lists of numbers after the number of dimensions.
    pub(super) fn read(metalayer: &[u8], element: usize) -> Result<Self, Error> {
        if element == 0 {
            return Err("elements of 0 bytes".into());
        }
        let count = usize::from(*metalayer.get(2).ok_or("the shape is cut short")?);
        if count > MOST_DIMENSIONS {
            return Err(format!("an array of {count} dimensions").into());
        }
        let (chunks, blocks) = (4 + 9 * count, 5 + 14 * count);
        let mut dimensions = Vec::with_capacity(count);
        for i in 0..count {
            let length = size(number::<8>(metalayer, 4 + 9 * i + 1)?)?;
            let chunk = size(number::<4>(metalayer, chunks + 1 + 5 * i + 1)?)?;
            let block = size(number::<4>(metalayer, blocks + 1 + 5 * i + 1)?)?;
            if length != chunk || block == 0 || block > length {
                return Err(format!("an array of {length} elements in chunks of {chunk}, blocks of {block}").into());
            }
            dimensions.push(Dimension { length, block });
        }
        let mut array = Self { dimensions, element };
        while let Some(Dimension { length, block }) = array.dimensions.last().copied() {
            if length != block {
                break;
            }
            array.element = array.element.checked_mul(length).ok_or("an array larger than memory")?;
            array.dimensions.pop();
        }
        Ok(array)
    }

    /// Decompresses the chunk of the array into `out`; returns the bytes written.
    pub(super) fn decode(&self, chunk: &Blosc2Chunk, out: &mut [u8]) -> Result<usize, Error> {
        let bytes = |length: fn(&Dimension) -> usize| {
            let product = self.dimensions.iter().map(length).try_fold(self.element, usize::checked_mul);
            product.ok_or("an array larger than memory")
        };
        let total = bytes(|dimension| dimension.length)?;
        let out = target(out, total as u64)?;
        if chunk.fill(out)? {
            return Ok(total);
        }
        let block = bytes(|dimension| dimension.block)?;
        let padded = bytes(|dimension| dimension.length.next_multiple_of(dimension.block))?;
        if chunk.block_size() != block || chunk.size() != padded {
            let (size, blocks) = (chunk.size(), chunk.block_size());
            return Err(format!("{size} bytes in blocks of {blocks}, {padded} in blocks of {block} expected").into());
        }
        let mut blocks = chunk.blocks();
        // In one dimension, blocks are consecutive pieces of the array; only the last may have padding.
        if self.dimensions.len() < 2 {
            for target in out.chunks_mut(block) {
                if target.len() == block {
                    blocks.next(target)?;
                } else {
                    lend(&BLOCK, block, |space| {
                        blocks.next(space)?;
                        target.copy_from_slice(&space[..target.len()]);
                        Ok::<_, Error>(())
                    })?;
                }
            }
            return Ok(total);
        }
        let mut origin = vec![0; self.dimensions.len()];
        lend(&BLOCK, block, |space| {
            loop {
                blocks.next(space)?;
                place(&self.dimensions, &origin, self.element, space, out);
                if !self.advance(&mut origin) {
                    return Ok(total);
                }
            }
        })
    }

    /// Moves to the origin of the next block; `false` after the last one.
    fn advance(&self, origin: &mut [usize]) -> bool {
        for (start, dimension) in origin.iter_mut().zip(&self.dimensions).rev() {
            *start += dimension.block;
            if *start < dimension.length {
                return true;
            }
            *start = 0;
        }
        false
    }
}

/// Copies a block to its origin in the array, without its padding beyond the array's end.
fn place(dimensions: &[Dimension], origin: &[usize], element: usize, block: &[u8], out: &mut [u8]) {
    let ([dimension, inner @ ..], [start, origin @ ..]) = (dimensions, origin) else { return };
    if inner.is_empty() {
        let target = &mut out[start * element..];
        let n = block.len().min(target.len());
        target[..n].copy_from_slice(&block[..n]);
        return;
    }
    let (from, to) = (block.len() / dimension.block, out.len() / dimension.length);
    for (block, out) in block.chunks(from).zip(out.chunks_mut(to).skip(*start)) {
        place(inner, origin, element, block, out);
    }
}
