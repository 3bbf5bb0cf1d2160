//! The compressors of Blosc's streams.

use crate::codec::Error;
use std::cell::RefCell;

use super::super::{deflate, filled, lz4, shuffle, zstd};
use super::{MOST_STREAMS, blosclz};

thread_local! {
    static SNAPPY: RefCell<snap::raw::Decoder> = RefCell::new(snap::raw::Decoder::new());
}

/// A compressor, by its number in the flags of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    BloscLz,
    /// LZ4. LZ4HC gives the same format.
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    pub fn new(number: u8) -> Result<Self, Error> {
        Ok(match number {
            0 => Compressor::BloscLz,
            1 => Compressor::Lz4,
            2 => Compressor::Snappy,
            3 => Compressor::Zlib,
            4 => Compressor::Zstd,
            _ => return Err(format!("compressor {number} is not known").into()),
        })
    }

    /// Decompresses a stream, which must fill `out`. One that is as long as `out` is stored uncompressed.
    pub fn decode(self, data: &[u8], out: &mut [u8]) -> Result<(), Error> {
        if data.len() == out.len() {
            out.copy_from_slice(data);
            return Ok(());
        }
        let n = match self {
            Compressor::BloscLz => blosclz::decode(data, out)?,
            Compressor::Lz4 => return lz4::decode_block(data, out),
            Compressor::Snappy => SNAPPY
                .with_borrow_mut(|decoder| decoder.decompress(data, out))
                .map_err(|error| format!("snappy: {error}"))?,
            Compressor::Zlib => deflate::decode(data, out)?,
            Compressor::Zstd => zstd::decode(data, out)?,
        };
        filled(n, out.len())
    }
}

/// The kinds of streams in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStreams {
    /// Blosc 1: compressed streams.
    Only,
    /// Blosc 2: also runs of one byte. Instead of a length they have 0 for zeros, else the negated byte and a token.
    OrRuns,
}

/// A stream of a block.
enum Stream<'a> {
    Bytes(&'a [u8]),
    Run(u8),
}

impl<'a> Stream<'a> {
    /// Takes the next stream, which follows its length.
    fn take(input: &mut &'a [u8], kind: BlockStreams) -> Result<Self, Error> {
        const SHORT: &str = "a block is cut short";
        let (length, rest) = input.split_first_chunk().ok_or(SHORT)?;
        let length = i32::from_le_bytes(*length);
        *input = rest;
        if length > 0 {
            let (stream, rest) = rest.split_at_checked(length as usize).ok_or("a stream ends after the chunk does")?;
            *input = rest;
            return Ok(Stream::Bytes(stream));
        }
        if kind == BlockStreams::Only {
            return Err(format!("a stream of {length} bytes").into());
        }
        if length == 0 {
            return Ok(Stream::Run(0));
        }
        let (token, rest) = rest.split_first().ok_or(SHORT)?;
        if token & 1 == 0 || length < -255 {
            return Err(format!("a stream of length {length} with token {token}").into());
        }
        *input = rest;
        Ok(Stream::Run(length.unsigned_abs() as u8))
    }

    fn decode(self, compressor: Compressor, out: &mut [u8]) -> Result<(), Error> {
        match self {
            Stream::Bytes(bytes) => compressor.decode(bytes, out),
            Stream::Run(byte) => {
                out.fill(byte);
                Ok(())
            }
        }
    }
}

/// Decompresses a block of this number of streams.
pub fn decompress(
    compressor: Compressor,
    mut input: &[u8],
    streams: usize,
    kind: BlockStreams,
    out: &mut [u8],
) -> Result<(), Error> {
    for piece in out.chunks_mut(stream_bytes(out.len(), streams)?) {
        Stream::take(&mut input, kind)?.decode(compressor, piece)?;
    }
    Ok(())
}

/// Decompresses a block whose streams are byte planes of its elements, and joins the planes. Streams stored
/// uncompressed, such as noise, need no room in `space`, which is as long as the block.
pub fn decompress_planes(
    compressor: Compressor,
    mut input: &[u8],
    streams: usize,
    kind: BlockStreams,
    (space, out): (&mut [u8], &mut [u8]),
) -> Result<(), Error> {
    let mut planes = [&[][..]; MOST_STREAMS];
    let planes = planes.get_mut(..streams).ok_or("more streams than planes")?;
    for (plane, piece) in planes.iter_mut().zip(space.chunks_mut(stream_bytes(out.len(), streams)?)) {
        *plane = match Stream::take(&mut input, kind)? {
            Stream::Bytes(bytes) if bytes.len() == piece.len() => bytes,
            stream => {
                stream.decode(compressor, piece)?;
                piece
            }
        };
    }
    shuffle::decode_planes(planes, out)
}

/// Bytes of each stream of a block.
fn stream_bytes(length: usize, streams: usize) -> Result<usize, Error> {
    if !length.is_multiple_of(streams) {
        return Err(format!("a block of {length} bytes in {streams} streams").into());
    }
    Ok((length / streams).max(1))
}
