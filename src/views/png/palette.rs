//! The palette of an image.

use super::samples::Numbers;
use crate::source::Interrupt;
use crate::store::{Error, Rows};

/// Bytes of a palette of 256 colours.
pub const PALETTE: usize = 768;

/// The 256 colours of a palette. Those behind its last one are black.
///
/// # Errors
/// If `rows` are no colours, or cannot be read.
pub fn colours_of(rows: Option<&dyn Rows>, interrupt: &Interrupt) -> Result<[u8; PALETTE], Error> {
    let rows = rows.ok_or_else(|| no_palette("PALETTE leads to no dataset of colours"))?;
    let bytes = rows.stored_width().and_then(|width| rows.len().checked_mul(width));
    let is_colours = rows.stored_width() == Some(3)
        && rows.stored_type().and_then(|stored| Numbers::of(stored, None)).is_some_and(|bytes| bytes.size == 1);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= PALETTE);
    let bytes = bytes.filter(|_| is_colours).ok_or_else(|| no_palette("not up to 256 rows of three bytes"))?;
    let mut stored = Vec::with_capacity(bytes);
    rows.stored_bytes()?.append(0, bytes, &mut stored, interrupt)?;
    let mut colours = [0; PALETTE];
    colours[..stored.len()].copy_from_slice(&stored);
    Ok(colours)
}

fn no_palette(reason: &str) -> Error {
    Error::unsupported("the palette", reason.to_owned())
}
