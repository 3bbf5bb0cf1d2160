//! CSV options: separator, text of nulls, header.

use std::cell::RefCell;
use std::ops::Range;

use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::cell::style::{Csv, Plain};
use super::cell::{CellWriter, Frame, column_of};

/// A user's choices for CSV (`--csv-separator`, `--csv-null`, `--no-header`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    separator: u8,
    null: String,
    header: bool,
}

/// Why a CSV file would be ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvOptionsError {
    /// The separator could be part of a value.
    #[error("{0:?} cannot separate CSV fields: it is not ASCII, ends lines, quotes, or may stand in a number")]
    Separator(char),
    /// The text of a null is never quoted, so it must read as one field.
    #[error(
        "{null:?} cannot stand for missing values: it has a quote, an end of line or the separator {separator:?} in it"
    )]
    Null {
        /// The text for nulls.
        null: String,
        /// The separator between fields.
        separator: char,
    },
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { separator: b',', null: String::new(), header: true }
    }
}

impl CsvOptions {
    /// Returns options for CSV whose fields are separated by `separator`, with `null` (unquoted) for nulls, and with
    /// names in the first line if `header`.
    ///
    /// # Errors
    /// [`CsvOptionsError`] if such a file would be ambiguous.
    pub fn new(separator: char, null: &str, header: bool) -> Result<Self, CsvOptionsError> {
        let byte = u8::try_from(separator).ok().filter(u8::is_ascii);
        let byte = byte.filter(|byte| !byte.is_ascii_alphanumeric() && !b"\0\r\n\"+-.".contains(byte));
        let byte = byte.ok_or(CsvOptionsError::Separator(separator))?;
        let options = Self { separator: byte, null: null.to_owned(), header };
        if null.bytes().any(|byte| options.special(byte)) {
            return Err(CsvOptionsError::Null { null: null.to_owned(), separator });
        }
        Ok(options)
    }

    /// Returns the byte between two fields.
    pub fn separator(&self) -> u8 {
        self.separator
    }

    /// Returns the text of a null.
    pub fn null(&self) -> &str {
        &self.null
    }

    /// Whether the first line has the names.
    pub fn header(&self) -> bool {
        self.header
    }

    /// Whether values are written as with default options.
    pub(super) fn is_usual(&self) -> bool {
        self.separator == b',' && self.null.is_empty()
    }

    /// Whether a field with this byte is quoted.
    #[inline]
    fn special(&self, byte: u8) -> bool {
        byte == self.separator || matches!(byte, b'"' | b'\n' | b'\r')
    }

    /// Whether a field must be quoted because it could be read as several fields or lines, or as a null.
    #[inline]
    fn quotes(&self, text: &[u8]) -> bool {
        text.is_empty() || text == self.null.as_bytes() || text.iter().any(|&byte| self.special(byte))
    }

    /// Appends a field.
    pub(super) fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        if !self.quotes(text) {
            return out.extend_from_slice(text);
        }
        out.push(b'"');
        for piece in text.split_inclusive(|&byte| byte == b'"') {
            out.extend_from_slice(piece);
            if piece.ends_with(b"\"") {
                out.push(b'"');
            }
        }
        out.push(b'"');
    }

    /// Returns the number of bytes that [`CsvOptions::write`] appends.
    fn length(&self, text: &[u8]) -> usize {
        if self.quotes(text) { text.len() + 2 + text.iter().filter(|&&byte| byte == b'"').count() } else { text.len() }
    }

    /// Whether a value of this type may need quotes. Numbers contain no separator and are never empty, so they need
    /// quotes only if one could read like the text of a null.
    pub(super) fn may_quote(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Null => false,
            DataType::Boolean => matches!(self.null.as_str(), "true" | "false"),
            // These parsers accept every text that hepfs writes for the type.
            data_type if data_type.is_integer() => self.null.parse::<i128>().is_ok(),
            DataType::Timestamp(..) => self.separator == b':' || self.null.contains(':'),
            data_type if data_type.is_floating() => self.null.parse::<f64>().is_ok(),
            _ => true,
        }
    }
}

/// Cells of any type, quoted where the options require it.
pub(super) struct Quoted<'a> {
    /// The values without quotes.
    values: Box<dyn CellWriter<Plain> + 'a>,
    options: &'a CsvOptions,
    scratch: RefCell<Vec<u8>>,
}

impl<'a> Quoted<'a> {
    pub fn new(values: Box<dyn CellWriter<Plain> + 'a>, options: &'a CsvOptions) -> Self {
        Self { values, options, scratch: RefCell::default() }
    }

    fn with_text<R>(&self, row: usize, with: impl FnOnce(&[u8]) -> R) -> R {
        let mut text = self.scratch.take();
        text.clear();
        self.values.write(row, &mut text);
        let done = with(&text);
        self.scratch.replace(text);
        done
    }
}

impl CellWriter<Csv> for Quoted<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        self.with_text(row, |text| self.options.write(text, out));
    }

    fn length(&self, row: usize, _: &mut Vec<u8>) -> usize {
        self.with_text(row, |text| self.options.length(text))
    }

    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        column_of(self, rows, nulls, frame, out);
    }
}
