//! Filter 1: a zlib stream.

use std::cell::RefCell;

use libdeflater::{DecompressionError, Decompressor};

thread_local! {
    // A decompressor holds 30 KiB of tables; making one for each chunk shows on small chunks.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Inflates `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, String> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| match decompressor.zlib_decompress(data, out) {
        Ok(n) => Ok(n),
        Err(DecompressionError::BadData) => Err("the stream is damaged".into()),
        Err(DecompressionError::InsufficientSpace) => Err(format!("the stream gives more than {} bytes", out.len())),
    })
}
