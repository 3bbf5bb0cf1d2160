//! Filter 1: a zlib stream; and what is in one.

use crate::codec::Error;
use std::cell::RefCell;

use libdeflater::{DecompressionError, Decompressor};

thread_local! {
    // A decompressor holds 30 KiB of tables; making one for each chunk shows on small chunks.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Inflates `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| said(decompressor.zlib_decompress(data, out), out.len()))
}

/// The same of a stream without the header and the checksum of zlib.
pub(in crate::codec) fn decode_raw(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| said(decompressor.deflate_decompress(data, out), out.len()))
}

fn said(outcome: Result<usize, DecompressionError>, size: usize) -> Result<usize, Error> {
    outcome.map_err(|error| match error {
        DecompressionError::BadData => "the stream is damaged".into(),
        DecompressionError::InsufficientSpace => format!("the stream gives more than {size} bytes").into(),
    })
}
