//! The rows of a text file: reads columns, and renders or measures ranges of rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bstr::BString;

use super::block::{TextFormat, TextLayout};
use super::cell::NoText;
use super::csv::CsvOptions;
use super::grid::RowBlocks;
use super::spread;
use super::width::{self, WidthRange};
use crate::source::Interrupt;
use crate::store::{ARRAY_BYTES, Error, Fitting, Flight, RowRange, Rows, SharedRows, ValueSet};

/// A column of a text file.
#[derive(Clone, Debug)]
pub struct TextColumn {
    /// Name of the column: in the header of CSV, or as the key in NDJSON.
    pub name: BString,
    /// Rows of the column.
    pub rows: Arc<dyn Rows>,
    /// Bytes (of UTF-8) of the longest possible string, if known without reading values: from the longest label of a
    /// dictionary, or from the width of a fixed-size string. It bounds the size while that is unknown; `None` is always
    /// correct.
    pub longest: Option<u64>,
    /// Names of the parts of the column's values, if the parts are shown as columns: elements of arrays, fields of
    /// compounds.
    pub parts: Vec<BString>,
    /// Whether the parts are shown.
    is_spread: bool,
}

impl TextColumn {
    /// Returns a column over any rows, with their hint of the longest string.
    pub fn new(name: BString, rows: Arc<dyn Rows>) -> Self {
        let longest = rows.hints().texts.bound();
        Self { name, rows, longest, parts: Vec::new(), is_spread: false }
    }

    /// Returns a column of arrays or compounds, shown part by part; `parts` has a name for each.
    pub fn spread(rows: Arc<dyn Rows>, parts: Vec<BString>) -> Self {
        Self { name: BString::default(), rows, longest: None, parts, is_spread: true }
    }

    /// Returns the names under which the column is shown.
    pub fn names(&self) -> &[BString] {
        if self.is_spread { &self.parts } else { std::slice::from_ref(&self.name) }
    }

    /// Returns for each shown part its type, whether it is nullable, and the bytes of its longest text.
    fn shown(&self) -> Vec<(&DataType, bool, Option<u64>)> {
        if !self.is_spread {
            return vec![(self.rows.data_type(), self.rows.nullable(), self.longest)];
        }
        let hints = self.rows.hints();
        let parts = spread::types(self.rows.data_type()).into_iter().enumerate().map(|(at, data_type)| {
            let hints = hints.fields.get(at).or(hints.items.as_deref());
            let can_be_missing = self.rows.nullable() || hints.is_none_or(|hints| hints.nullable);
            (data_type, can_be_missing, hints.and_then(|hints| hints.texts.bound()))
        });
        parts.collect()
    }
}

/// Most rows of one column's array while lengths are measured, unless a chunk has more.
const BATCH_ROWS: u64 = 1 << 18;

/// Most rows of one column's array if the column has large chunks, so that each chunk is decoded once.
const LARGEST_BATCH_ROWS: u64 = 1 << 20;

/// About the most bytes per column in one batch of rows: of the column's text, or of the whole rows that are decoded
/// for a column that is a field.
const BATCH_BYTES: u64 = 16 << 20;

/// The work that a caller may spend on a size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Number of cells to measure; a number counts as one cell.
    pub cells: u64,
    /// Number of bytes to decode, or of text of unknown length.
    pub bytes: u64,
    /// Number of chunks to read.
    pub chunks: u64,
}

impl Allowance {
    fn covers(&self, cells: u64, (bytes, chunks): (u64, u64)) -> bool {
        cells <= self.cells && bytes <= self.bytes && chunks <= self.chunks
    }
}

/// Columns of a text file, the number of rows, and the layout around values.
#[derive(Debug)]
pub(super) struct TextContent {
    columns: Vec<TextColumn>,
    layout: TextLayout,
    /// Number of rows shown.
    pub rows: u64,
    /// Number of rows of the largest chunk among the columns.
    pub natural: Option<u64>,
    /// Fewest and most bytes of a row.
    pub width: WidthRange,
    /// Estimated bytes of a row.
    pub estimate: u64,
    /// Number of rows of a batch.
    batch: u64,
}

/// Returns the width of a column's shown values in a row, by their types.
fn width_of(column: &TextColumn, layout: &TextLayout) -> WidthRange {
    let missing = layout.missing().len() as u64;
    column.shown().into_iter().fold(WidthRange::exactly(0), |sum, (data_type, nullable, longest)| {
        let missing = nullable.then_some(missing);
        sum.plus(width::value(data_type, layout.format(), layout.csv_options(), longest, missing))
    })
}

/// Returns about how many bytes to decode, and how many chunks to read, for the first `count` rows.
fn cost(rows: &dyn Rows, count: u64) -> (u64, u64) {
    // Contiguous rows take one read.
    let (decoded, touched) = match rows.natural_rows() {
        Some(natural) if natural > 0 => {
            let touched = count.div_ceil(natural);
            (touched.saturating_mul(natural), touched)
        }
        _ => (count, 1),
    };
    (decoded.saturating_mul(rows.stored_width().unwrap_or(64)), touched)
}

/// Sums of text bytes per block.
struct Sums<'a> {
    grid: &'a RowBlocks,
    /// Number of the first block.
    first: usize,
    bytes: Vec<u64>,
}

impl TextContent {
    pub fn new(mut columns: Vec<TextColumn>, format: TextFormat, csv: &Arc<CsvOptions>, limit: Option<u64>) -> Self {
        let layout = TextLayout::with_csv(format, csv, columns.iter().flat_map(TextColumn::names));
        // A wide array has very many names, which only the header shows.
        columns.iter_mut().for_each(|column| column.parts = Vec::new());
        let rows = columns.iter().map(|column| column.rows.len()).min().unwrap_or(0).min(limit.unwrap_or(u64::MAX));
        let natural = columns.iter().filter_map(|column| column.rows.natural_rows()).filter(|&rows| rows > 0).max();
        let overhead = WidthRange::exactly(layout.overhead());
        let width = columns.iter().fold(overhead, |sum, column| sum.plus(width_of(column, &layout)));
        let estimates = columns.iter().map(|column| {
            let parts = column.shown().into_iter().map(|(data_type, _, longest)| width::estimate(data_type, longest));
            parts.fold(0, u64::saturating_add)
        });
        let estimates: Vec<u64> = estimates.collect();
        let estimate = estimates.iter().copied().fold(layout.overhead(), u64::saturating_add).max(1);
        // Columns that are fields of one dataset need its whole rows.
        let strides = columns.iter().filter_map(|column| column.rows.stride());
        let widest = estimates.into_iter().chain(strides).max().unwrap_or(1).max(1);
        let batch = natural.unwrap_or(0).clamp(BATCH_ROWS, LARGEST_BATCH_ROWS).min(BATCH_BYTES / widest).max(1);
        Self { columns, layout, rows, natural, width, estimate, batch }
    }

    /// Whether the allowance covers all values.
    pub fn is_quick(&self, allowance: &Allowance) -> bool {
        let costs = self.columns.iter().map(|column| cost(column.rows.as_ref(), self.rows));
        let costs = costs.fold((0, 0), |(bytes, chunks): (u64, u64), of_column| {
            (bytes.saturating_add(of_column.0), chunks.saturating_add(of_column.1))
        });
        allowance.covers(self.work(), costs)
    }

    /// Returns the most bytes of a row; reads the labels of categories if the allowance covers that. By their type
    /// alone, labels could be as long as their file.
    pub fn most_of_row(&self, allowance: &Allowance, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        let mut all = WidthRange::exactly(self.layout.overhead());
        for column in &self.columns {
            let of_labels = self.longest_label(column, allowance, interrupt)?;
            all = all.plus(of_labels.map_or_else(|| width_of(column, &self.layout), WidthRange::exactly));
        }
        Ok(all.most)
    }

    /// Returns the bytes of the longest label of a column of categories, or of the text of a null if that is longer.
    /// `None`: the column has no categories, or the allowance does not cover its labels.
    fn longest_label(
        &self,
        column: &TextColumn,
        allowance: &Allowance,
        interrupt: &Interrupt,
    ) -> Result<Option<u64>, Error> {
        let values = if column.is_spread { &None } else { &column.rows.hints().values };
        let Some(ValueSet::Categories { labels, .. }) = values else { return Ok(None) };
        let (count, missing) = (labels.len(), self.layout.missing().len() as u64);
        if !allowance.covers(count, cost(labels.as_ref(), count))
            || labels.fitting(0..count, allowance.bytes, interrupt)?.end < count
        {
            return Ok(None);
        }
        let array = labels.array(0..count, interrupt)?;
        let each: Vec<Range<usize>> = (0..array.len()).map(|label| label..label + 1).collect();
        let lengths = self.layout.measure(array.as_ref(), &each).map_err(|error| self.no_text(error))?;
        Ok(lengths.into_iter().chain([missing]).max())
    }

    /// Whether the arrays of all rows take at most about `bytes` bytes together.
    pub fn fits(&self, bytes: u64, interrupt: &Interrupt) -> Result<bool, Error> {
        let mut left = bytes;
        for column in &self.columns {
            let fitting = column.rows.fitting(0..self.rows, left, interrupt)?;
            let Some(rest) = left.checked_sub(fitting.bytes).filter(|_| fitting.end >= self.rows) else {
                return Ok(false);
            };
            left = rest;
        }
        Ok(true)
    }

    /// Returns the number of cells in all rows, where a number counts as one and other values as more.
    fn work(&self) -> u64 {
        let cells = self.columns.iter().flat_map(TextColumn::shown);
        let cells = cells.map(|(data_type, ..)| if data_type.is_numeric() { 1 } else { 4_u64 });
        cells.sum::<u64>().saturating_mul(self.rows)
    }

    /// Returns how many blocks to measure per step: about one batch.
    pub fn blocks_per_step(&self, grid: &RowBlocks) -> usize {
        usize::try_from(self.batch / grid.per_block().max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// Reads the arrays of a column: one, or one per part.
    fn arrays(&self, column: &TextColumn, rows: RowRange, interrupt: &Interrupt) -> Result<Vec<ArrayRef>, Error> {
        interrupt.check()?;
        let array = column.rows.array(rows.clone(), interrupt)?;
        if array.len() as u64 != rows.end - rows.start {
            return Err(Error::unsupported(
                column.name.to_string(),
                format!("rows {}..{} came as {} values", rows.start, rows.end, array.len()),
            ));
        }
        Self::parts(column, array)
    }

    /// Returns the array of a column, or one per part.
    fn parts(column: &TextColumn, array: ArrayRef) -> Result<Vec<ArrayRef>, Error> {
        if !column.is_spread {
            return Ok(vec![array]);
        }
        spread::parts(&array).map_err(|error| Error::unsupported(column.name.to_string(), error.to_string()))
    }

    /// Returns the longest run from the start of `rows` whose arrays, over all columns, fit in memory at once.
    fn fitting(&self, rows: RowRange, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut all = Fitting { end: rows.end, bytes: 0 };
        for column in &self.columns {
            let left = ARRAY_BYTES.saturating_sub(all.bytes);
            let fitting = column.rows.fitting(rows.start..all.end, left, interrupt)?;
            all = Fitting { end: fitting.end.min(all.end), bytes: all.bytes.saturating_add(fitting.bytes) };
        }
        Ok(Fitting { end: all.end.clamp((rows.start + 1).min(rows.end), rows.end), ..all })
    }

    fn no_text(&self, error: NoText) -> Error {
        let names = self.columns.iter().map(|column| column.name.to_string());
        Error::unsupported(names.collect::<Vec<_>>().join(", "), error)
    }

    /// Appends the text of rows. Returns `false`, with any part of the text appended, once `out` would grow past about
    /// `limit` bytes.
    pub fn render(
        &self,
        rows: RowRange,
        limit: usize,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<bool, Error> {
        let append = &mut |piece: &[u8]| {
            out.extend_from_slice(piece);
            out.len() <= limit
        };
        if self.terminated(rows.clone(), interrupt, append)? {
            return Ok(out.len() <= limit);
        }
        let mut start = rows.start;
        while start < rows.end {
            let fitting = self.fitting(start..rows.end, interrupt)?;
            // Numbers as text take up to three times their width, strings seldom more than their own.
            if limit < usize::MAX && fitting.bytes.saturating_add(out.len() as u64) / 4 > limit as u64 {
                return Ok(false);
            }
            self.render_piece(start..fitting.end, fitting.bytes, out, interrupt)?;
            if out.len() > limit {
                return Ok(false);
            }
            start = fitting.end;
        }
        Ok(true)
    }

    /// Appends the text of rows whose arrays take `bytes` bytes.
    fn render_piece(&self, rows: RowRange, bytes: u64, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        // The text may take as much again.
        let flight = Flight::begin(bytes.saturating_mul(2), interrupt)?;
        let arrays: Result<Vec<_>, Error> =
            self.columns.iter().map(|column| self.arrays(column, rows.clone(), interrupt)).collect();
        match arrays {
            Ok(arrays) => self.layout.render(&arrays.concat(), out).map_err(|error| self.no_text(error)),
            // The rows are more than the store returns at once, so try halves.
            Err(Error::TooLarge { .. }) if rows.end - rows.start > 1 => {
                drop(flight);
                let middle = rows.start + (rows.end - rows.start) / 2;
                self.render_piece(rows.start..middle, bytes / 2, out, interrupt)?;
                self.render_piece(middle..rows.end, bytes / 2, out, interrupt)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the column of a file that has a single column and whose bytes are that column's texts, each followed by
    /// a NUL.
    fn terminated_column(&self) -> Option<&TextColumn> {
        let [column] = self.columns.as_slice() else { return None };
        (self.layout.format() == TextFormat::NulTerminated).then_some(column)
    }

    /// Hands out rows in the form that the file has, by
    /// [`Coded::for_each_terminated`](crate::store::Coded::for_each_terminated). Returns whether the rows support that.
    fn terminated(
        &self,
        rows: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Error> {
        let Some(column) = self.terminated_column() else { return Ok(false) };
        column.rows.coded().map_or(Ok(false), |coded| coded.for_each_terminated(rows, interrupt, take))
    }

    /// Returns the bytes of rows that are measured by rendering them, passing each piece to `see`. `None`: other rows.
    pub fn terminated_length(
        &self,
        rows: RowRange,
        interrupt: &Interrupt,
        mut see: impl FnMut(&[u8]),
    ) -> Result<Option<u64>, Error> {
        // Rows too large for memory may be one value over and over, which `add_shared` measures once.
        if self.terminated_column().is_none() || self.fitting(rows.clone(), interrupt)?.end < rows.end {
            return Ok(None);
        }
        let mut length = 0u64;
        let add = &mut |piece: &[u8]| {
            length = length.saturating_add(piece.len() as u64);
            see(piece);
            true
        };
        Ok(self.terminated(rows, interrupt, add)?.then_some(length))
    }

    /// Returns the bytes of each of `blocks`. Goes column by column over a batch of rows, so that each chunk is decoded
    /// once, however many columns there are.
    pub fn lengths(&self, grid: &RowBlocks, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let terminated = blocks.clone().map(|block| self.terminated_length(grid.rows_of(block), interrupt, |_| ()));
        if let Some(lengths) = terminated.collect::<Result<Option<Vec<_>>, Error>>()? {
            return Ok(lengths);
        }
        let overhead = self.layout.overhead();
        let bytes = blocks.clone().map(|block| {
            let rows = grid.rows_of(block);
            (rows.end - rows.start).saturating_mul(overhead)
        });
        let mut sums = Sums { grid, first: blocks.start, bytes: bytes.collect() };
        let rows = grid.rows_of(blocks.start).start..grid.rows_of(blocks.end.saturating_sub(1)).end;
        // A batch ends at a block boundary, so that chunks are read whole.
        let batch = (self.batch / grid.per_block()).max(1).saturating_mul(grid.per_block()).min(self.batch).max(1);
        let mut start = rows.start;
        while start < rows.end {
            let end = start.saturating_add(batch).min(rows.end);
            for column in &self.columns {
                self.add_lengths(column, start..end, &mut sums, interrupt)?;
            }
            start = end;
        }
        Ok(sums.bytes)
    }

    fn add_lengths(
        &self,
        column: &TextColumn,
        rows: RowRange,
        sums: &mut Sums<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let mut start = rows.start;
        while start < rows.end {
            let fitting = column.rows.fitting(start..rows.end, ARRAY_BYTES, interrupt)?;
            let is_first = start == rows.start;
            if is_first && fitting.end < rows.end && self.add_shared(column, &rows, sums, interrupt)? {
                break;
            }
            let end = fitting.end.max(start + 1);
            let flight = Flight::begin(fitting.bytes, interrupt)?;
            self.add_piece(column, start..end, sums, interrupt)?;
            drop(flight);
            start = end;
        }
        Ok(())
    }

    /// Adds the lengths of rows that fit in memory.
    fn add_piece(
        &self,
        column: &TextColumn,
        rows: RowRange,
        sums: &mut Sums<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let arrays = match self.arrays(column, rows.clone(), interrupt) {
            Ok(arrays) => arrays,
            Err(Error::TooLarge { .. }) if rows.end - rows.start > 1 => {
                let middle = rows.start + (rows.end - rows.start) / 2;
                self.add_piece(column, rows.start..middle, sums, interrupt)?;
                return self.add_piece(column, middle..rows.end, sums, interrupt);
            }
            Err(error) => return Err(error),
        };
        let first = sums.grid.block_of(rows.start);
        // These are positions within the array, hence within usize.
        let pieces: Vec<Range<usize>> = (first..=sums.grid.block_of(rows.end - 1))
            .map(|block| {
                let block = sums.grid.rows_of(block);
                let (start, end) = (block.start.max(rows.start), block.end.min(rows.end));
                (start - rows.start) as usize..(end - rows.start) as usize
            })
            .collect();
        for array in arrays {
            let measured = self.layout.measure(array.as_ref(), &pieces).map_err(|error| self.no_text(error))?;
            for (sum, bytes) in sums.bytes.iter_mut().skip(first - sums.first).zip(measured) {
                *sum = sum.saturating_add(bytes);
            }
        }
        Ok(())
    }

    /// As [`TextContent::add_lengths`], for rows with many repeated values, measuring each value once; returns whether
    /// that worked.
    fn add_shared(
        &self,
        column: &TextColumn,
        rows: &RowRange,
        sums: &mut Sums<'_>,
        interrupt: &Interrupt,
    ) -> Result<bool, Error> {
        let _flight = Flight::begin(ARRAY_BYTES, interrupt)?;
        let Some(SharedRows { values, keys }) = column.rows.shared(rows.clone(), interrupt)? else { return Ok(false) };
        let pieces: Vec<Range<usize>> = (0..values.len()).map(|value| value..value + 1).collect();
        for array in Self::parts(column, values)? {
            interrupt.check()?;
            let measured = self.layout.measure(array.as_ref(), &pieces).map_err(|error| self.no_text(error))?;
            for (row, key) in (rows.start..rows.end).zip(&keys) {
                let bytes = measured.get(*key as usize).copied().unwrap_or(0);
                if let Some(sum) = sums.bytes.get_mut(sums.grid.block_of(row) - sums.first) {
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
        Ok(true)
    }
}
