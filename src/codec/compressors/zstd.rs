//! Filter 32015: Zstandard frames.

use crate::codec::Error;
use std::cell::RefCell;

use zstd_safe::{DCtx, get_error_name};

thread_local! {
    // A context takes 150 KiB; each thread keeps one.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Decompresses `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    CONTEXT.with_borrow_mut(|context| {
        if context.is_none() {
            *context = DCtx::try_create();
        }
        let context = context.as_mut().ok_or("no memory for a decompression context")?;
        context.decompress(out, data).map_err(|code| get_error_name(code).into())
    })
}

/// Decompresses one block of a container format over Zstandard, which must fill `out`.
pub(in crate::codec) fn decode_block(data: &[u8], out: &mut [u8]) -> Result<(), Error> {
    super::super::filled(decode(data, out)?, out.len())
}
