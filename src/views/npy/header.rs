//! The header of a `.npy` file (NumPy's "NPY format", NEP 1): byte for byte what `numpy.save` writes.
//!
//! ```text
//! 93 'NUMPY' major minor | length (u16, from version 2 on u32)
//! {'descr': …, 'fortran_order': False, 'shape': …, }  … LF
//! ```
//! The dictionary is a Python literal, padded with spaces so that the data begins at a multiple of 64 bytes. Version 1
//! and 2 are Latin-1 (2 where the length does not fit in 16 bits), version 3 is UTF-8 for field names beyond that.

use std::fmt::Write;

use super::dtype::{NpyByteOrder, NpyField, NpyKind, NpyType};

/// Number of bytes of which the data's offset is a multiple.
const ALIGNMENT: usize = 64;

/// NumPy leaves room for the first extent to grow to this many digits, so that a file can be appended to in place.
const GROWTH_DIGITS: usize = 21;

/// Returns the header for elements of `dtype` in an array of `shape` (slowest dimension first, C order). A sub-array's
/// extents at the top of `dtype` follow those of `shape`.
pub fn header(dtype: &NpyType, shape: &[u64]) -> Vec<u8> {
    let (inner, base) = dtype.split_array();
    let shape: Vec<u64> = shape.iter().chain(inner).copied().collect();
    let mut text = String::from("{'descr': ");
    descr(base, &mut text);
    text.push_str(", 'fortran_order': False, 'shape': ");
    tuple(&shape, &mut text);
    text.push_str(", }");
    if let Some(first) = shape.first() {
        let digits = first.to_string().len();
        text.extend(std::iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(digits)));
    }
    let latin1: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect();
    match latin1 {
        Some(text) => wrap(1, &text).unwrap_or_else(|| wrap_long(2, &text)),
        None => wrap_long(3, text.as_bytes()),
    }
}

/// Returns the length of a header with its padding, where `before` bytes precede the text.
fn padded(before: usize, text: &[u8]) -> usize {
    // One byte for the LF; an aligned end gets 64 more, as NumPy does it.
    let end = before + text.len() + 1;
    end + ALIGNMENT - end % ALIGNMENT
}

fn assemble(version: u8, length: &[u8], text: &[u8], total: usize) -> Vec<u8> {
    let mut header = b"\x93NUMPY".to_vec();
    header.extend_from_slice(&[version, 0]);
    header.extend_from_slice(length);
    header.extend_from_slice(text);
    header.resize(total - 1, b' ');
    header.push(b'\n');
    header
}

fn wrap(version: u8, text: &[u8]) -> Option<Vec<u8>> {
    let total = padded(10, text);
    let length = u16::try_from(total - 10).ok()?;
    Some(assemble(version, &length.to_le_bytes(), text, total))
}

fn wrap_long(version: u8, text: &[u8]) -> Vec<u8> {
    let total = padded(12, text);
    // Names of 4 GiB do not fit in an HDF5 datatype message.
    let length = u32::try_from(total - 12).unwrap_or(u32::MAX);
    assemble(version, &length.to_le_bytes(), text, total)
}

/// Writes a dtype as `numpy.dtype.descr` and `.str` have it.
fn descr(dtype: &NpyType, out: &mut String) {
    match dtype {
        NpyType::Struct { fields, size } => structure(fields, *size, out),
        NpyType::Scalar { order, kind, size } => {
            let order = match order {
                _ if *size == 1 => '|',
                NpyByteOrder::Little => '<',
                NpyByteOrder::Big => '>',
            };
            let kind = match kind {
                NpyKind::Signed => 'i',
                NpyKind::Unsigned => 'u',
                NpyKind::Float => 'f',
                NpyKind::Complex => 'c',
            };
            push(out, format_args!("'{order}{kind}{size}'"));
        }
        NpyType::Bool => out.push_str("'|b1'"),
        NpyType::Bytes(size) => push(out, format_args!("'|S{size}'")),
        NpyType::Void(size) => push(out, format_args!("'|V{size}'")),
        // Only a field holds a sub-array, and that writes the extents itself.
        NpyType::Array { base, .. } => descr(base, out),
    }
}

/// Writes `[('a', '<i4'), ('', '|V4'), ('b', '<f8', (2, 3))]`: padding is a field without a name.
fn structure(fields: &[NpyField], size: u64, out: &mut String) {
    let mut position = 0;
    let mut separator = "";
    out.push('[');
    for field in fields {
        padding(&mut separator, field.offset.saturating_sub(position), out);
        let (dims, base) = field.dtype.split_array();
        out.push_str(separator);
        out.push('(');
        literal(&field.name, out);
        out.push_str(", ");
        descr(base, out);
        if !dims.is_empty() {
            out.push_str(", ");
            tuple(dims, out);
        }
        out.push(')');
        separator = ", ";
        position = field.offset.saturating_add(field.dtype.size().unwrap_or(0));
    }
    padding(&mut separator, size.saturating_sub(position), out);
    out.push(']');
}

fn padding(separator: &mut &'static str, bytes: u64, out: &mut String) {
    if bytes > 0 {
        push(out, format_args!("{separator}('', '|V{bytes}')"));
        *separator = ", ";
    }
}

/// Writes extents as a Python tuple: `()`, `(3,)`, `(3, 4)`.
fn tuple(extents: &[u64], out: &mut String) {
    out.push('(');
    for (position, extent) in extents.iter().enumerate() {
        push(out, format_args!("{}{extent}", if position == 0 { "" } else { ", " }));
    }
    out.push_str(if extents.len() == 1 { ",)" } else { ")" });
}

/// Writes a Python string literal as `repr` does (but for rare code points that `repr` escapes and Python reads either
/// way).
fn literal(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if char == quote => {
                out.push('\\');
                out.push(char);
            }
            _ if char.is_control() => push(out, format_args!("\\x{:02x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out.push(quote);
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(text);
}
