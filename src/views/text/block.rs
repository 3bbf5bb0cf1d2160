//! Renders a block of rows as text, or computes its length: pure functions from Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use bstr::{BString, ByteSlice};

use super::cell::style::{Csv, JsonStyle, Plain, Style, Txt};
use super::cell::{BlockColumn, Frame, NoText};
use super::csv::{CsvOptions, Quoted};
use crate::views::json;

/// A format of text files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// RFC 4180 with a header line; lines end with LF. A null is an empty field and the empty string `""`; in a file of
    /// one column a null is `""` too, since readers skip blank lines. [`CsvOptions`] change some of this.
    Csv,
    /// One value per line, no header. A null is an empty line; `\`, LF and CR are written `\\`, `\n`, `\r`. (With
    /// several columns, the values of a row follow each other.)
    Txt,
    /// One JSON object per line. A null is `null`.
    Ndjson,
    /// One JSON value per line, without an object around it: the rows of an array of rank 2 as JSON arrays. A null is
    /// `null`. (With several columns, each value has a line.)
    JsonValues,
    /// Each value as it is, then a NUL (the input of `xargs -0` and `sort -z`): `.raw` of variable-length strings.
    NulTerminated,
    /// The bytes of each value and nothing else: a string by itself. A null has no bytes.
    Verbatim,
}

/// The bytes around the values of a file, determined by the names of its columns. They are the same for every block.
#[derive(Clone, Debug)]
pub struct TextLayout {
    format: TextFormat,
    csv: Arc<CsvOptions>,
    /// Number of columns. A wide array has very many, so nothing is stored per column.
    columns: usize,
    /// Separator before each value but the first of a row, in formats without keys.
    between: Vec<u8>,
    /// Key before each value, in formats with keys.
    keys: Vec<Vec<u8>>,
}

impl TextLayout {
    /// Returns the layout of a file with columns of these names. Invalid UTF-8 becomes U+FFFD.
    pub fn new<'a>(format: TextFormat, names: impl IntoIterator<Item = &'a BString>) -> Self {
        Self::with_csv(format, &Arc::default(), names)
    }

    /// Returns the layout of a file with columns of these names and these CSV options.
    pub fn with_csv<'a>(
        format: TextFormat,
        csv: &Arc<CsvOptions>,
        names: impl IntoIterator<Item = &'a BString>,
    ) -> Self {
        let names = names.into_iter();
        let between = match format {
            TextFormat::Csv => vec![csv.separator()],
            TextFormat::Txt | TextFormat::JsonValues => vec![b'\n'],
            TextFormat::NulTerminated => vec![b'\0'],
            TextFormat::Ndjson | TextFormat::Verbatim => Vec::new(),
        };
        let (columns, keys) = match format {
            TextFormat::Ndjson => {
                let keys = names.enumerate().map(|(position, name)| {
                    let mut key = vec![if position == 0 { b'{' } else { b',' }];
                    json::write_string(name.to_str_lossy().as_bytes(), &mut key);
                    key.push(b':');
                    key
                });
                let keys: Vec<Vec<u8>> = keys.collect();
                (keys.len(), keys)
            }
            _ => (names.count(), Vec::new()),
        };
        Self { format, csv: csv.clone(), columns, between, keys }
    }

    /// Returns the header line of a file of this format; empty if the format has none.
    pub fn header<'a>(format: TextFormat, csv: &CsvOptions, names: impl IntoIterator<Item = &'a BString>) -> Vec<u8> {
        let mut header = Vec::new();
        if format == TextFormat::Csv && csv.header() {
            for (position, name) in names.into_iter().enumerate() {
                if position > 0 {
                    header.push(csv.separator());
                }
                csv.write(name.to_str_lossy().as_bytes(), &mut header);
            }
            header.push(b'\n');
        }
        header
    }

    /// Returns the format of the file.
    pub fn format(&self) -> TextFormat {
        self.format
    }

    /// Returns the CSV options of the file.
    pub(super) fn csv_options(&self) -> &CsvOptions {
        &self.csv
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the bytes of a row besides its values.
    pub fn overhead(&self) -> u64 {
        let between = self.between.len() * self.columns.saturating_sub(1);
        let keys: usize = self.keys.iter().map(Vec::len).sum();
        (between + keys + self.end().len()) as u64
    }

    /// Returns the bytes before the value of a column.
    #[inline]
    fn before(&self, position: usize) -> &[u8] {
        match self.keys.get(position) {
            Some(key) => key,
            None if position > 0 => &self.between,
            None => b"",
        }
    }

    /// Returns the bytes after the last value of a row.
    fn end(&self) -> &'static [u8] {
        match self.format {
            TextFormat::Csv | TextFormat::Txt | TextFormat::JsonValues => b"\n",
            TextFormat::Ndjson => b"}\n",
            TextFormat::NulTerminated => b"\0",
            TextFormat::Verbatim => b"",
        }
    }

    /// Returns the text of a null.
    pub(super) fn missing(&self) -> &[u8] {
        match self.format {
            TextFormat::Csv if self.columns() == 1 && self.csv.null().is_empty() => b"\"\"",
            TextFormat::Csv => self.csv.null().as_bytes(),
            TextFormat::Txt | TextFormat::NulTerminated | TextFormat::Verbatim => b"",
            TextFormat::Ndjson | TextFormat::JsonValues => b"null",
        }
    }

    /// Appends the text of rows, given as one array per column, all of one length (the shortest counts).
    ///
    /// # Errors
    /// [`NoText`] if a column's type has no text; nothing is appended then.
    pub fn render(&self, arrays: &[ArrayRef], out: &mut Vec<u8>) -> Result<(), NoText> {
        let arrays = arrays.iter().map(AsRef::as_ref);
        match self.format {
            TextFormat::Csv => self.render_as(arrays.map(|array| self.csv(array)), out),
            TextFormat::Txt => self.render_as(arrays.map(BlockColumn::<Txt>::new), out),
            TextFormat::Ndjson | TextFormat::JsonValues => {
                self.render_as(arrays.map(BlockColumn::<JsonStyle>::new), out)
            }
            TextFormat::NulTerminated | TextFormat::Verbatim => {
                self.render_as(arrays.map(BlockColumn::<Plain>::new), out)
            }
        }
    }

    /// Returns the cells of a column of CSV.
    fn csv<'a>(&'a self, array: &'a dyn Array) -> Result<BlockColumn<'a, Csv>, NoText> {
        if self.csv.is_usual() || !self.csv.may_quote(array.data_type()) {
            return BlockColumn::new(array);
        }
        let BlockColumn { cell, nulls, rows } = BlockColumn::new(array)?;
        Ok(BlockColumn { cell: Box::new(Quoted::new(cell, &self.csv)), nulls, rows })
    }

    fn render_as<'a, S: Style>(
        &self,
        columns: impl Iterator<Item = Result<BlockColumn<'a, S>, NoText>>,
        out: &mut Vec<u8>,
    ) -> Result<(), NoText> {
        let columns = columns.collect::<Result<Vec<_>, NoText>>()?;
        let rows = columns.iter().map(|column| column.rows).min().unwrap_or(0);
        let (missing, end) = (self.missing(), self.end());
        if let ([column], 1) = (columns.as_slice(), self.columns) {
            let before = self.before(0);
            column.cell.column(0..rows, column.nulls.as_ref(), Frame { before, after: end, missing }, out);
            return Ok(());
        }
        for row in 0..rows {
            for (position, column) in columns.iter().take(self.columns).enumerate() {
                out.extend_from_slice(self.before(position));
                column.write(row, missing, out);
            }
            out.extend_from_slice(end);
        }
        Ok(())
    }

    /// Returns the bytes of one column's values in each of `pieces` (rows of the array), without keys and separators:
    /// [`TextLayout::overhead`] counts those per row.
    ///
    /// # Errors
    /// [`NoText`] if the type has no text.
    pub fn measure(&self, array: &dyn Array, pieces: &[Range<usize>]) -> Result<Vec<u64>, NoText> {
        match self.format {
            TextFormat::Csv => Ok(self.measure_as(&self.csv(array)?, pieces)),
            TextFormat::Txt => Ok(self.measure_as(&BlockColumn::<Txt>::new(array)?, pieces)),
            TextFormat::Ndjson | TextFormat::JsonValues => {
                Ok(self.measure_as(&BlockColumn::<JsonStyle>::new(array)?, pieces))
            }
            TextFormat::NulTerminated | TextFormat::Verbatim => {
                Ok(self.measure_as(&BlockColumn::<Plain>::new(array)?, pieces))
            }
        }
    }

    fn measure_as<S: Style>(&self, column: &BlockColumn<'_, S>, pieces: &[Range<usize>]) -> Vec<u64> {
        let missing = self.missing().len() as u64;
        pieces.iter().map(|piece| column.total(piece.clone(), missing)).collect()
    }
}
