//! The cells of one column: an Arrow array, prepared once per block, then written row by row.
//!
//! Only [`BlockColumn::new`] looks at types. Loops over a whole column are provided methods of [`CellWriter`], compiled
//! for each type without dynamic dispatch inside; tables call [`CellWriter::write`] once per cell.

mod nested;
mod number;
mod room;
mod string;
pub(super) mod style;
mod time;

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use nested::{DictionaryCells, ListCells, StructCells};
use number::{Decimals, Float, Integer};
use room::Room;
use string::{Hex, StringCells};
use style::Style;
pub(super) use time::lengths as time_lengths;
use time::{Days, TimeCells, TimesOfDay};

/// A type that cannot be written as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("values of type {0} have no text")]
pub struct NoText(pub DataType);

/// Deepest nesting of lists and structs; HDF5 types in real files stay below ten.
const MAX_DEPTH: usize = 64;

/// The bytes around each value in a file of one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Bytes before each value.
    pub before: &'a [u8],
    /// Bytes after each value.
    pub after: &'a [u8],
    /// The text of a null.
    pub missing: &'a [u8],
}

/// Writes the values of a column. Callers pass in no null rows.
pub(super) trait CellWriter<S: Style> {
    /// Appends the text of the value in `row`.
    fn write(&self, row: usize, out: &mut Vec<u8>);

    /// Returns the number of bytes that [`CellWriter::write`] appends; `scratch` is for cells that have to write the
    /// text to measure it.
    fn length(&self, row: usize, scratch: &mut Vec<u8>) -> usize {
        scratch.clear();
        self.write(row, scratch);
        scratch.len()
    }

    /// Appends the text of the value in `row` as [`CellWriter::write`] does, but calls `flush` whenever the text gets
    /// long, as lists in JSON may.
    fn stream(&self, row: usize, out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        self.write(row, out);
        flush(out);
    }

    /// Returns the bytes of all valid values of `rows`, and the number of these values.
    fn total(&self, rows: Range<usize>, nulls: Option<&NullBuffer>) -> (u64, u64) {
        let mut scratch = Vec::new();
        total_by(rows, nulls, |row| self.length(row, &mut scratch) as u64)
    }

    /// Appends the values of `rows`, each in its frame.
    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        column_of(self, rows, nulls, frame, out);
    }
}

/// As [`CellWriter::column`], for values of any length.
#[inline]
pub(super) fn column_of<S: Style>(
    cell: &(impl CellWriter<S> + ?Sized),
    rows: Range<usize>,
    nulls: Option<&NullBuffer>,
    frame: Frame<'_>,
    out: &mut Vec<u8>,
) {
    for row in rows {
        out.extend_from_slice(frame.before);
        if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
            cell.write(row, out);
        } else {
            out.extend_from_slice(frame.missing);
        }
        out.extend_from_slice(frame.after);
    }
}

/// Number of bytes of the longest integer.
const LONGEST_INTEGER: usize = 20;

/// As [`CellWriter::column`], for short values: `write` appends the value of a row, at most `longest` bytes.
#[inline]
pub(super) fn column_by(
    rows: Range<usize>,
    nulls: Option<&NullBuffer>,
    frame: Frame<'_>,
    out: &mut Vec<u8>,
    longest: usize,
    mut write: impl FnMut(usize, &mut Room<'_>),
) {
    let most = frame.before.len() + longest.max(frame.missing.len()) + frame.after.len();
    // Most files consist of lines of one value without anything around it.
    if let (b"", None, b"\n") = (frame.before, nulls, frame.after) {
        return room::append(out, rows, most, |rows, room| {
            for row in rows {
                write(row, room);
                room.push(b'\n');
            }
        });
    }
    room::append(out, rows, most, |rows, room| {
        for row in rows {
            room.extend(frame.before);
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                write(row, room);
            } else {
                room.extend(frame.missing);
            }
            room.extend(frame.after);
        }
    });
}

/// Sums `length` over the valid rows; returns the number of these as well.
#[inline]
fn total_by(rows: Range<usize>, nulls: Option<&NullBuffer>, mut length: impl FnMut(usize) -> u64) -> (u64, u64) {
    match nulls {
        None => {
            let count = rows.len() as u64;
            (rows.map(length).sum(), count)
        }
        Some(nulls) => {
            rows.filter(|&row| nulls.is_valid(row)).fold((0, 0), |(bytes, count), row| (bytes + length(row), count + 1))
        }
    }
}

/// A column of a block, ready to be written.
pub(super) struct BlockColumn<'a, S: Style> {
    pub cell: Box<dyn CellWriter<S> + 'a>,
    pub nulls: Option<NullBuffer>,
    /// Number of rows, nulls included.
    pub rows: usize,
}

impl<'a, S: Style> BlockColumn<'a, S> {
    /// Prepares the column of `array`.
    ///
    /// # Errors
    /// [`NoText`] for a type that no HDF5 type maps to.
    pub fn new(array: &'a dyn Array) -> Result<Self, NoText> {
        Self::nested(array, 0)
    }

    /// As [`BlockColumn::new`], for the child at `depth` of a list or struct.
    pub(super) fn nested(array: &'a dyn Array, depth: usize) -> Result<Self, NoText> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(Self { cell: cell(array, depth)?, nulls, rows: array.len() })
    }

    /// Whether `row` has a value.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    /// Appends the value of `row`, or `missing`.
    #[inline]
    pub fn write(&self, row: usize, missing: &[u8], out: &mut Vec<u8>) {
        if self.is_valid(row) {
            self.cell.write(row, out);
        } else {
            out.extend_from_slice(missing);
        }
    }

    /// As [`CellWriter::stream`], or appends `missing`.
    fn stream(&self, row: usize, missing: &[u8], out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        if self.is_valid(row) {
            self.cell.stream(row, out, flush);
        } else {
            out.extend_from_slice(missing);
        }
    }

    /// Returns the bytes of the values of `rows`, with `missing` bytes for a null.
    pub fn total(&self, rows: Range<usize>, missing: u64) -> u64 {
        let count = rows.len() as u64;
        let (bytes, valid) = self.cell.total(rows, self.nulls.as_ref());
        bytes + (count - valid) * missing
    }
}

fn cell<'a, S: Style>(array: &'a dyn Array, depth: usize) -> Result<Box<dyn CellWriter<S> + 'a>, NoText> {
    let no_text = || NoText(array.data_type().clone());
    if depth > MAX_DEPTH {
        return Err(no_text());
    }
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nothing),
        DataType::Boolean => Box::new(Booleans(array.as_boolean().values())),
        DataType::Int8 => integers::<S, types::Int8Type>(array),
        DataType::Int16 => integers::<S, types::Int16Type>(array),
        DataType::Int32 => integers::<S, types::Int32Type>(array),
        DataType::Int64 => integers::<S, types::Int64Type>(array),
        DataType::UInt8 => integers::<S, types::UInt8Type>(array),
        DataType::UInt16 => integers::<S, types::UInt16Type>(array),
        DataType::UInt32 => integers::<S, types::UInt32Type>(array),
        DataType::UInt64 => integers::<S, types::UInt64Type>(array),
        DataType::Float16 => floats::<S, types::Float16Type>(array),
        DataType::Float32 => floats::<S, types::Float32Type>(array),
        DataType::Float64 => floats::<S, types::Float64Type>(array),
        DataType::Timestamp(unit, zone) => Box::new(TimeCells::new(*unit, zone.is_some(), array).ok_or_else(no_text)?),
        DataType::Date32 => Box::new(Days(array.as_primitive::<types::Date32Type>().values())),
        DataType::Time32(TimeUnit::Millisecond) => {
            let times = array.as_primitive::<types::Time32MillisecondType>().values().iter();
            Box::new(TimesOfDay { values: times.map(|time| i64::from(*time)).collect(), digits: 3 })
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let times = array.as_primitive::<types::Time64MicrosecondType>().values();
            Box::new(TimesOfDay { values: times.to_vec(), digits: 6 })
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            let times = array.as_primitive::<types::Time64NanosecondType>().values();
            Box::new(TimesOfDay { values: times.to_vec(), digits: 9 })
        }
        DataType::Decimal128(_, scale) => Box::new(Decimals {
            values: array.as_primitive::<types::Decimal128Type>().values(),
            scale: usize::try_from(*scale).map_err(|_| no_text())?,
        }),
        DataType::Utf8 => Box::new(StringCells::new::<S, _>(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(StringCells::new::<S, _>(array.as_string::<i64>())),
        // These are strings as stored, whatever their encoding.
        DataType::LargeBinary => Box::new(StringCells::new::<S, _>(array.as_binary::<i64>())),
        DataType::FixedSizeBinary(_) => Box::new(Hex(array.as_fixed_size_binary())),
        DataType::Binary => Box::new(Hex(array.as_binary::<i32>())),
        DataType::Duration(TimeUnit::Second) => integers::<S, types::DurationSecondType>(array),
        DataType::Duration(TimeUnit::Millisecond) => integers::<S, types::DurationMillisecondType>(array),
        DataType::Duration(TimeUnit::Microsecond) => integers::<S, types::DurationMicrosecondType>(array),
        DataType::Duration(TimeUnit::Nanosecond) => integers::<S, types::DurationNanosecondType>(array),
        DataType::Dictionary(..) => {
            Box::new(DictionaryCells::new(array.as_any_dictionary_opt().ok_or_else(no_text)?, depth)?)
        }
        DataType::Struct(_) => Box::new(StructCells::new(array.as_struct(), depth)?),
        DataType::List(_) => Box::new(ListCells::new(array.as_list::<i32>(), depth)?),
        DataType::LargeList(_) => Box::new(ListCells::new(array.as_list::<i64>(), depth)?),
        DataType::FixedSizeList(..) => Box::new(ListCells::windows(array.as_fixed_size_list(), depth)?),
        _ => return Err(no_text()),
    })
}

fn integers<'a, S: Style, T: ArrowPrimitiveType<Native: Integer>>(array: &'a dyn Array) -> Box<dyn CellWriter<S> + 'a> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    Box::new(Integers(array.values()))
}

fn floats<'a, S: Style, T: ArrowPrimitiveType<Native: Float>>(array: &'a dyn Array) -> Box<dyn CellWriter<S> + 'a> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    Box::new(Floats(array.values()))
}

/// A column of nulls alone.
struct Nothing;

impl<S: Style> CellWriter<S> for Nothing {
    fn write(&self, _: usize, _: &mut Vec<u8>) {}
}

struct Integers<'a, T>(&'a [T]);

impl<S: Style, T: Integer> CellWriter<S> for Integers<'_, T> {
    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        number::write_integer(self.0[row], out);
    }

    fn total(&self, rows: Range<usize>, nulls: Option<&NullBuffer>) -> (u64, u64) {
        total_by(rows, nulls, |row| number::integer_length(self.0[row]) as u64)
    }

    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        column_by(rows, nulls, frame, out, LONGEST_INTEGER, |row, room| {
            let (negative, magnitude) = self.0[row].split();
            room.push_decimal(negative, magnitude);
        });
    }
}

struct Floats<'a, T>(&'a [T]);

impl<S: Style, T: Float> CellWriter<S> for Floats<'_, T> {
    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let value = self.0[row];
        match value.non_finite() {
            None => out.extend_from_slice(zmij::Buffer::new().format_finite(value.formatted()).as_bytes()),
            Some(kind) => out.extend_from_slice(S::NON_FINITE[kind].as_bytes()),
        }
    }

    #[inline]
    fn length(&self, row: usize, _: &mut Vec<u8>) -> usize {
        let value = self.0[row];
        match value.non_finite() {
            None => zmij::Buffer::new().format_finite(value.formatted()).len(),
            Some(kind) => S::NON_FINITE[kind].len(),
        }
    }
}

struct Booleans<'a>(&'a arrow_buffer::BooleanBuffer);

impl<S: Style> CellWriter<S> for Booleans<'_> {
    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.value(row) { b"true" } else { b"false" });
    }

    fn total(&self, rows: Range<usize>, nulls: Option<&NullBuffer>) -> (u64, u64) {
        let values = self.0.slice(rows.start, rows.len());
        let (count, trues) = match nulls {
            None => (values.len(), values.count_set_bits()),
            Some(nulls) => {
                let valid = nulls.inner().slice(rows.start, rows.len());
                (valid.count_set_bits(), (&values & &valid).count_set_bits())
            }
        };
        ((count * 5 - trues) as u64, count as u64)
    }
}
