//! Filter 32001: Blosc 1.
//!
//! ```text
//! 0         1      2       3          4        8            12       16                16 + 4 n
//! +---------+------+-------+----------+--------+------------+--------+-----------------+---------+-----
//! | version | …    | flags | typesize | nbytes | block size | cbytes | n block starts  | block 0 | …
//! | 2       |      |       |          | u32    | u32        | u32    | u32 each        |         |
//! +---------+------+-------+----------+--------+------------+--------+-----------------+---------+-----
//! ```
//!
//! Numbers are little-endian. A block is one stream, or one for each byte of an element ("split"); each stream follows
//! its length (u32). A stream as long as its decompressed bytes is stored uncompressed. A filter shuffles the bytes or
//! bits of a block's elements before compression.

mod blosclz;
mod streams;

pub(super) use streams::{BlockStreams, Compressor, decompress, decompress_planes};

use super::Error;
use super::space::{Space, lend};
use super::{bits, shuffle, target};

/// The bytes of elements are shuffled.
pub(super) const SHUFFLED: u8 = 0x01;
/// Blocks are stored uncompressed, without starts.
pub(super) const COPIED: u8 = 0x02;
/// The bits of elements are shuffled.
pub(super) const BIT_SHUFFLED: u8 = 0x04;
/// Reserved for later versions.
const RESERVED: u8 = 0x08;
/// Every block is one stream.
pub(super) const UNSPLIT: u8 = 0x10;

/// Bytes of the largest elements whose blocks are split.
pub(super) const MOST_STREAMS: usize = 16;
/// Fewest elements of a block that is split.
const FEWEST_ELEMENTS: usize = 128;

thread_local! {
    static BLOCK: Space = const { Space::new(Vec::new()) };
}

/// The first 16 bytes of a chunk, of Blosc 2 as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct BloscHeader {
    pub version: u8,
    pub flags: u8,
    /// Bytes of an element.
    pub element: usize,
    /// Bytes of all elements.
    pub size: usize,
    /// Bytes of a block; the last may be shorter.
    pub block: usize,
    /// Bytes of the chunk as stored.
    pub stored: usize,
}

impl BloscHeader {
    pub(super) const SIZE: usize = 16;

    pub(super) fn read(data: &[u8]) -> Result<Self, Error> {
        let header = data.first_chunk::<{ Self::SIZE }>().ok_or("the header is cut short")?;
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
        let [version, _, flags, element, ..] = *header;
        let header = Self {
            version,
            flags,
            element: usize::from(element),
            size: number(4),
            block: number(8),
            stored: number(12),
        };
        if header.element == 0 || header.block == 0 {
            return Err(format!("elements of {} bytes in blocks of {}", header.element, header.block).into());
        }
        Ok(header)
    }
}

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let header = BloscHeader::read(data)?;
    if header.version != 2 || header.flags & RESERVED != 0 {
        return Err(format!("version {} with flags {:#04x} of the format", header.version, header.flags).into());
    }
    let stored = header.stored;
    let data =
        data.get(..stored).ok_or_else(|| format!("the header says {stored} bytes, {} are stored", data.len()))?;
    let out = target(out, header.size as u64)?;
    if header.flags & COPIED != 0 {
        let bytes = data.get(BloscHeader::SIZE..).filter(|bytes| bytes.len() == out.len());
        out.copy_from_slice(bytes.ok_or("a copied chunk has another size than its elements")?);
        return Ok(header.size);
    }
    let compressor = Compressor::new(header.flags >> 5)?;
    lend(&BLOCK, header.block.min(header.size), |space| {
        for (i, target) in out.chunks_mut(header.block).enumerate() {
            let input = from_start(data, BloscHeader::SIZE + 4 * i)?;
            block(header, compressor, input, target, space)?;
        }
        Ok(header.size)
    })
}

/// The bytes of `data` from the block's start that is stored at byte `at`.
pub(super) fn from_start(data: &[u8], at: usize) -> Result<&[u8], Error> {
    let start = data.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or("the starts of blocks are cut short")?;
    let start = u32::from_le_bytes(*start) as usize;
    data.get(start..).ok_or_else(|| format!("a block starts at byte {start} of {}", data.len()).into())
}

/// Decodes one block, whose streams begin with `input`.
fn block(
    header: BloscHeader,
    compressor: Compressor,
    input: &[u8],
    out: &mut [u8],
    space: &mut [u8],
) -> Result<(), Error> {
    let (element, length) = (header.element, out.len());
    let is_split = header.flags & UNSPLIT == 0
        && element <= MOST_STREAMS
        && header.block / element >= FEWEST_ELEMENTS
        && length == header.block;
    let streams = if is_split { element } else { 1 };
    if header.flags & SHUFFLED != 0 && element > 1 {
        let space = &mut space[..length];
        if is_split {
            return decompress_planes(compressor, input, streams, BlockStreams::Only, (space, out));
        }
        decompress(compressor, input, streams, BlockStreams::Only, space)?;
        shuffle::decode(space, out, element).map(|_| ())
    } else if header.flags & BIT_SHUFFLED != 0 && (length / element).is_multiple_of(8) {
        let space = &mut space[..length];
        decompress(compressor, input, streams, BlockStreams::Only, space)?;
        unshuffle_bits(space, out, element)
    } else {
        decompress(compressor, input, streams, BlockStreams::Only, out)
    }
}

/// Unshuffles the bits of as many elements as are a multiple of eight; the remaining elements were not shuffled.
pub(super) fn unshuffle_bits(data: &[u8], out: &mut [u8], element: usize) -> Result<(), Error> {
    let whole = data.len() / element / 8 * 8 * element;
    let ((data, tail), (out, rest)) = (data.split_at(whole), out.split_at_mut(whole));
    rest.copy_from_slice(tail);
    bits::decode(data, out, element)
}

#[cfg(test)]
pub(super) mod tests;
