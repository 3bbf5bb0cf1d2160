//! Fixed-length and variable-length strings.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, LargeStringArray};
use arrow_buffer::OffsetBuffer;

use super::{DecodeError, Oddities, Oddity, VariableParts};
use crate::catalogue::Padding;

/// Strings of `width` bytes each; invalid UTF-8 becomes U+FFFD.
pub(super) fn fixed(bytes: &[u8], width: usize, padding: Padding, oddities: &mut Oddities) -> ArrayRef {
    let cells = bytes.chunks_exact(width.max(1)).map(|cell| padding.strip(cell));
    let mut all = Vec::with_capacity(bytes.len());
    let mut lengths = Vec::with_capacity(cells.len());
    for cell in cells.clone() {
        all.extend_from_slice(cell);
        lengths.push(cell.len());
    }
    // Validates all texts at once; this succeeds if all are UTF-8.
    if let Ok(texts) = LargeStringArray::try_new(OffsetBuffer::from_lengths(lengths), all.into(), None) {
        return Arc::new(texts);
    }
    let mut builder = LargeStringBuilder::with_capacity(cells.len(), bytes.len());
    for (row, cell) in cells.enumerate() {
        builder.append_value(shown(cell, row, oddities));
    }
    Arc::new(builder.finish())
}

/// The bytes of each cell in hexadecimal, in stored order.
pub(super) fn hexadecimal(bytes: &[u8], width: usize) -> LargeStringArray {
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

/// Variable-length strings; invalid UTF-8 becomes U+FFFD.
pub(super) fn variable(
    bytes: &[u8],
    width: usize,
    padding: Padding,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let mut builder = LargeStringBuilder::with_capacity(bytes.len() / width.max(1), bytes.len());
    let mut cursor = parts.cursor();
    for (row, descriptor) in bytes.chunks_exact(width.max(1)).enumerate() {
        let text = cursor.resolve(descriptor, 1).map_err(|cause| DecodeError { row: row as u64, cause })?;
        builder.append_value(shown(variable_padding(padding).strip(text), row, oddities));
    }
    Ok(Arc::new(builder.finish()))
}

/// Bytes as text; if they are not UTF-8, `row` is recorded as odd.
fn shown<'a>(bytes: &'a [u8], row: usize, oddities: &mut Oddities) -> Cow<'a, str> {
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, Cow::Owned(_)) {
        oddities.add(Oddity::InvalidText, row as u64);
    }
    text
}

/// A variable-length string has no padding: libhdf5 ends it at the first NUL.
pub(super) fn variable_padding(padding: Padding) -> Padding {
    match padding {
        Padding::NullPadded => Padding::NullTerminated,
        other => other,
    }
}
