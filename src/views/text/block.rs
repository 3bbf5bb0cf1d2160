//! A block of rows as text: pure functions from Arrow arrays to bytes, and to the number of bytes.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use bstr::{BString, ByteSlice};

use super::cell::{Column, Frame, NoText};
use super::style::{Csv, Json, Plain, Style, Txt};
use crate::views::json;

/// A format of text files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a header line; lines end with LF. A missing value is an empty field and the empty string `""`; in
    /// a file of one column a missing value is `""` too, since readers skip blank lines.
    Csv,
    /// One value a line, no header. A missing value is an empty line; `\`, LF and CR are written `\\`, `\n`, `\r`. (Of
    /// several columns the values of a row follow each other.)
    Txt,
    /// One JSON object a line. A missing value is `null`.
    Ndjson,
    /// Each value as it is, then a NUL (what `xargs -0` and `sort -z` read): `.raw` of variable-length strings.
    NulTerminated,
}

/// Everything around the values of a file: known from the names of its columns, the same for every block.
#[derive(Clone, Debug)]
pub struct Layout {
    format: Format,
    /// Before each column's value.
    before: Vec<Vec<u8>>,
}

impl Layout {
    /// The layout of a file with columns of these names. Bytes that are no UTF-8 become U+FFFD.
    pub fn new<'a>(format: Format, names: impl IntoIterator<Item = &'a BString>) -> Self {
        let names = names.into_iter().enumerate();
        let before = match format {
            Format::Csv => names.map(|(position, _)| if position == 0 { vec![] } else { vec![b','] }).collect(),
            Format::Txt => names.map(|(position, _)| if position == 0 { vec![] } else { vec![b'\n'] }).collect(),
            Format::NulTerminated => {
                names.map(|(position, _)| if position == 0 { vec![] } else { vec![b'\0'] }).collect()
            }
            Format::Ndjson => names
                .map(|(position, name)| {
                    let mut key = vec![if position == 0 { b'{' } else { b',' }];
                    json::write_string(name.to_str_lossy().as_bytes(), &mut key);
                    key.push(b':');
                    key
                })
                .collect(),
        };
        Self { format, before }
    }

    /// The line of names that begins a file of this format; empty where there is none.
    pub fn header<'a>(format: Format, names: impl IntoIterator<Item = &'a BString>) -> Vec<u8> {
        let mut header = Vec::new();
        if format == Format::Csv {
            for (position, name) in names.into_iter().enumerate() {
                if position > 0 {
                    header.push(b',');
                }
                Csv::string(name.to_str_lossy().as_bytes(), &mut header);
            }
            header.push(b'\n');
        }
        header
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.before.len()
    }

    /// Bytes of a row beside its values.
    pub fn overhead(&self) -> u64 {
        let before: usize = self.before.iter().map(Vec::len).sum();
        (before + self.end().len()) as u64
    }

    /// After the last value of a row.
    fn end(&self) -> &'static [u8] {
        match self.format {
            Format::Csv | Format::Txt => b"\n",
            Format::Ndjson => b"}\n",
            Format::NulTerminated => b"\0",
        }
    }

    /// What stands for a missing value.
    pub(super) fn missing(&self) -> &'static [u8] {
        match self.format {
            Format::Csv if self.columns() == 1 => b"\"\"",
            Format::Csv | Format::Txt | Format::NulTerminated => b"",
            Format::Ndjson => b"null",
        }
    }

    /// Appends rows: one array for each column, all of one length (the shortest counts).
    ///
    /// # Errors
    /// [`NoText`] where a column's type has none; nothing is appended then.
    pub fn render(&self, arrays: &[ArrayRef], out: &mut Vec<u8>) -> Result<(), NoText> {
        match self.format {
            Format::Csv => self.render_as::<Csv>(arrays, out),
            Format::Txt => self.render_as::<Txt>(arrays, out),
            Format::Ndjson => self.render_as::<Json>(arrays, out),
            Format::NulTerminated => self.render_as::<Plain>(arrays, out),
        }
    }

    fn render_as<S: Style>(&self, arrays: &[ArrayRef], out: &mut Vec<u8>) -> Result<(), NoText> {
        let rows = arrays.iter().map(|array| array.len()).min().unwrap_or(0);
        let columns =
            arrays.iter().map(|array| Column::<S>::new(array.as_ref())).collect::<Result<Vec<_>, NoText>>()?;
        let (missing, end) = (self.missing(), self.end());
        if let ([column], [before]) = (columns.as_slice(), self.before.as_slice()) {
            column.cell.column(0..rows, column.nulls.as_ref(), Frame { before, after: end, missing }, out);
            return Ok(());
        }
        for row in 0..rows {
            for (column, before) in columns.iter().zip(&self.before) {
                out.extend_from_slice(before);
                column.write(row, missing, out);
            }
            out.extend_from_slice(end);
        }
        Ok(())
    }

    /// Bytes that the values of one column's array take in each of `pieces` (rows of the array), without what stands
    /// between values: [`Layout::overhead`] adds that once a row.
    ///
    /// # Errors
    /// [`NoText`] where the type has none.
    pub fn measure(&self, array: &dyn Array, pieces: &[Range<usize>]) -> Result<Vec<u64>, NoText> {
        match self.format {
            Format::Csv => self.measure_as::<Csv>(array, pieces),
            Format::Txt => self.measure_as::<Txt>(array, pieces),
            Format::Ndjson => self.measure_as::<Json>(array, pieces),
            Format::NulTerminated => self.measure_as::<Plain>(array, pieces),
        }
    }

    fn measure_as<S: Style>(&self, array: &dyn Array, pieces: &[Range<usize>]) -> Result<Vec<u64>, NoText> {
        let column = Column::<S>::new(array)?;
        let missing = self.missing().len() as u64;
        Ok(pieces.iter().map(|piece| column.total(piece.clone(), missing)).collect())
    }
}
