//! Filter 1: a zlib stream; also a raw deflate stream.

use crate::codec::Error;
use std::cell::RefCell;

use libdeflater::{DecompressionError, Decompressor};

thread_local! {
    // A decompressor holds 30 KiB of tables; making one for each chunk would be noticeable with small chunks.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Inflates `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| said(decompressor.zlib_decompress(data, out), out.len()))
}

/// Inflates a stream without zlib's header and checksum.
pub(in crate::codec) fn decode_raw(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| said(decompressor.deflate_decompress(data, out), out.len()))
}

fn said(outcome: Result<usize, DecompressionError>, size: usize) -> Result<usize, Error> {
    outcome.map_err(|error| match error {
        DecompressionError::BadData => "the stream is damaged".into(),
        DecompressionError::InsufficientSpace => format!("the stream gives more than {size} bytes").into(),
    })
}
