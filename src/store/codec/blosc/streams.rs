//! The compressors of Blosc's streams.

use std::cell::RefCell;

use super::super::{deflate, filled, lz4, zstd};
use super::blosclz;

thread_local! {
    static SNAPPY: RefCell<snap::raw::Decoder> = RefCell::new(snap::raw::Decoder::new());
}

/// A compressor, by its number in the flags of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    BloscLz,
    /// LZ4HC gives the same format.
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    pub fn new(number: u8) -> Result<Self, String> {
        Ok(match number {
            0 => Compressor::BloscLz,
            1 => Compressor::Lz4,
            2 => Compressor::Snappy,
            3 => Compressor::Zlib,
            4 => Compressor::Zstd,
            _ => return Err(format!("compressor {number} is not known")),
        })
    }

    /// Decompresses a stream, which must fill `out`; one of its length is stored as it is.
    pub fn decode(self, data: &[u8], out: &mut [u8]) -> Result<(), String> {
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

/// What a block may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Blosc 1: compressed streams.
    Only,
    /// Blosc 2: runs of one byte too. Their length is 0 for zeros, else the byte, negative, with a token behind it.
    OrRuns,
}

/// Decompresses a block from as many streams as `streams` says; before each stands its length.
pub fn decompress(
    compressor: Compressor,
    mut input: &[u8],
    streams: usize,
    kind: Streams,
    out: &mut [u8],
) -> Result<(), String> {
    const SHORT: &str = "a block is cut short";
    if !out.len().is_multiple_of(streams) {
        return Err(format!("a block of {} bytes in {streams} streams", out.len()));
    }
    for piece in out.chunks_mut((out.len() / streams).max(1)) {
        let (length, rest) = input.split_first_chunk().ok_or(SHORT)?;
        let length = i32::from_le_bytes(*length);
        input = if length > 0 {
            let (stream, rest) = rest.split_at_checked(length as usize).ok_or("a stream ends after the chunk does")?;
            compressor.decode(stream, piece)?;
            rest
        } else if kind == Streams::Only {
            return Err(format!("a stream of {length} bytes"));
        } else if length == 0 {
            piece.fill(0);
            rest
        } else {
            let (token, rest) = rest.split_first().ok_or(SHORT)?;
            if token & 1 == 0 || length < -255 {
                return Err(format!("a stream of length {length} with token {token}"));
            }
            piece.fill(length.unsigned_abs() as u8);
            rest
        };
    }
    Ok(())
}
