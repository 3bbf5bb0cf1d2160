//! Strings of fixed and variable length.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, LargeStringArray};

use super::{DecodeError, Parts};
use crate::catalogue::Padding;

/// The text in a string's place: padding is no part of it.
pub fn strip(bytes: &[u8], padding: Padding) -> &[u8] {
    match padding {
        Padding::NullTerminated => &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())],
        Padding::NullPadded => trim_end(bytes, 0),
        // Producers in C terminate even these; Fortran fills them with spaces.
        Padding::SpacePadded => trim_end(trim_end(bytes, 0), b' '),
    }
}

fn trim_end(bytes: &[u8], byte: u8) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != byte).map_or(0, |last| last + 1)]
}

/// Strings of `width` bytes each; invalid UTF-8 becomes U+FFFD.
pub(super) fn fixed(bytes: &[u8], width: usize, padding: Padding) -> ArrayRef {
    let width = width.max(1);
    let mut builder = LargeStringBuilder::with_capacity(bytes.len() / width, bytes.len());
    for cell in bytes.chunks_exact(width) {
        builder.append_value(String::from_utf8_lossy(strip(cell, padding)));
    }
    Arc::new(builder.finish())
}

/// The bytes of each cell in hexadecimal, in the order stored.
pub(in crate::store) fn hexadecimal(bytes: &[u8], width: usize) -> LargeStringArray {
    let width = width.max(1);
    let mut builder = LargeStringBuilder::with_capacity(bytes.len() / width, bytes.len().saturating_mul(2));
    for cell in bytes.chunks_exact(width) {
        for byte in cell {
            // Writing to memory cannot fail.
            let _ = write!(builder, "{byte:02x}");
        }
        builder.append_value("");
    }
    builder.finish()
}

/// Strings behind descriptors; invalid UTF-8 becomes U+FFFD.
pub(super) fn variable(
    bytes: &[u8],
    width: usize,
    padding: Padding,
    parts: &dyn Parts,
) -> Result<ArrayRef, DecodeError> {
    let mut builder = LargeStringBuilder::with_capacity(bytes.len() / width.max(1), bytes.len());
    let mut cursor = parts.cursor();
    for (row, descriptor) in bytes.chunks_exact(width.max(1)).enumerate() {
        let text = cursor.resolve(descriptor, 1).map_err(|cause| DecodeError { row: row as u64, cause })?;
        builder.append_value(String::from_utf8_lossy(strip(text, variable_padding(padding))));
    }
    Ok(Arc::new(builder.finish()))
}

/// A string of variable length has no place to pad: what libhdf5 hands out ends at the first NUL.
pub(super) fn variable_padding(padding: Padding) -> Padding {
    match padding {
        Padding::NullPadded => Padding::NullTerminated,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_stripped_as_h5t_str_t_says() {
        assert_eq!(strip(b"ab\0cd\0", Padding::NullTerminated), b"ab");
        assert_eq!(strip(b"ab\0cd\0\0", Padding::NullPadded), b"ab\0cd");
        assert_eq!(strip(b" ab  ", Padding::SpacePadded), b" ab");
        assert_eq!(strip(b"\0\0", Padding::NullPadded), b"");
        assert_eq!(strip(b"full", Padding::NullTerminated), b"full");
    }
}
