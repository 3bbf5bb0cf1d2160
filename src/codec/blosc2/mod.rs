//! Filter 32026: Blosc 2, a frame with one chunk.
//!
//! ```text
//! 0          11              16            25                                   header length
//! +----------+---------------+-------------+---------------------+-------------+-------+-------+---------+
//! | "b2frame"| header length | frame length| flags, sizes, …     | metalayers  | chunk | index | trailer |
//! +----------+---------------+-------------+---------------------+-------------+-------+-------+---------+
//! ```
//!
//! The header is MessagePack at fixed offsets, its numbers big-endian. Chunk and index are [`Blosc2Chunk`]s, and the
//! index holds the chunk's offset from the end of the header. A negative offset means a chunk of one repeated value.
//! With the metalayer `b2nd`, the blocks of the chunk tile an array of several dimensions ([`Blosc2Array`]).

mod array;
mod chunk;

use super::Error;
use array::Blosc2Array;
use chunk::Blosc2Chunk;

/// Offset of the metalayers.
const METALAYERS: usize = 87;

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let frame = Frame::read(data)?;
    match frame.array {
        Some(metalayer) => Blosc2Array::read(metalayer, frame.element)?.decode(&frame.chunk, out),
        None => frame.chunk.decode(out),
    }
}

/// The parts of a frame.
struct Frame<'a> {
    chunk: Blosc2Chunk<'a>,
    /// Bytes of an element.
    element: usize,
    /// The metalayer with the shape of an array.
    array: Option<&'a [u8]>,
}

impl<'a> Frame<'a> {
    fn read(data: &'a [u8]) -> Result<Self, Error> {
        if data.get(2..10) != Some(b"b2frame\0") {
            return Err("this is no frame of Blosc2".into());
        }
        let header_length = size(number::<4>(data, 11)?)?;
        let length = size(number::<8>(data, 16)?)?;
        let data = data.get(..length).ok_or_else(|| format!("a frame of {length} bytes is cut short"))?;
        let header = data.get(..header_length).ok_or("the frame's header is cut short")?;
        if header.get(26) != Some(&0) {
            return Err("the frame is not contiguous".into());
        }
        let bytes = size(number::<8>(header, 30)?)?;
        let stored = size(number::<8>(header, 39)?)?;
        let element = size(number::<4>(header, 48)?)?;
        let rest = &data[header_length..];
        let offset = Self::offset(rest.get(stored..).ok_or("the frame's index is cut off")?)?;
        let chunk = if offset < 0 {
            Blosc2Chunk::special((offset >> 56 & 7) as u8, element, bytes)?
        } else {
            Blosc2Chunk::read(rest.get(size(offset)?..).ok_or("the frame's chunk is cut off")?)?
        };
        let array = match metalayer(header, b"b2nd")? {
            Some(array) => Some(array),
            // The name of the metalayer before Blosc 2 adopted it.
            None => metalayer(header, b"caterva")?,
        };
        Ok(Self { chunk, element, array })
    }

    /// The only offset in the index of a frame with one chunk.
    fn offset(index: &[u8]) -> Result<i64, Error> {
        let index = Blosc2Chunk::read(index)?;
        let mut offset = [0; 8];
        if index.size() != offset.len() {
            return Err(format!("a frame with an index of {} bytes, which has not one chunk", index.size()).into());
        }
        index.decode(&mut offset)?;
        Ok(i64::from_le_bytes(offset))
    }
}

/// A big-endian number of `N` bytes.
fn number<const N: usize>(data: &[u8], at: usize) -> Result<i64, Error> {
    let bytes = data.get(at..).and_then(|bytes| bytes.first_chunk::<N>()).ok_or("the frame's header is cut short")?;
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte)))
}

fn size(number: i64) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_| format!("a size of {number}").into())
}

/// The content of a metalayer, if present.
fn metalayer<'a>(header: &'a [u8], wanted: &[u8]) -> Result<Option<&'a [u8]>, Error> {
    const SHORT: &str = "the frame's metalayers are cut short";
    // Skips the heads of an array (one byte), of the size of the index (three) and of a map (one).
    let layers = number::<2>(header, METALAYERS + 5)?;
    let mut rest = header.get(METALAYERS + 7..).ok_or(SHORT)?;
    for _ in 0..layers {
        let (mark, after) = rest.split_first().ok_or(SHORT)?;
        let (name, after) = after.split_at_checked(usize::from(mark & 0x1f)).ok_or(SHORT)?;
        let offset = size(number::<4>(after, 1)?)?;
        if name == wanted {
            let content = header.get(offset..).ok_or(SHORT)?;
            let length = size(number::<4>(content, 1)?)?;
            return Ok(Some(content.get(5..).and_then(|content| content.get(..length)).ok_or(SHORT)?));
        }
        rest = after.get(5..).ok_or(SHORT)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
