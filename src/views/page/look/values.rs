//! The values of a sample, as a picture needs them: numbers, labels, lengths.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::filter::filter;

use super::{edges, words};
use crate::source::Interrupt;
use crate::store::{Error, Rows};
use crate::table::per_second;

/// Most bytes of values that are read for one stretch: one value may take as many.
const MOST_BYTES: u64 = 4 << 20;

/// The kind of picture that values have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers and counts: of days, of parts of a second.
    Whole(Form),
    /// Floats and decimals.
    Real,
    /// Booleans.
    Booleans,
    /// Texts and categories.
    Labels,
    /// The lengths of lists.
    Lengths,
    /// Nothing.
    Plain,
}

/// The meaning of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Numbers.
    Integer,
    /// Instants, in parts of a second.
    Instant(i64),
    /// Days.
    Day,
    /// Times of a day, in parts of a second.
    TimeOfDay(i64),
}

impl Form {
    /// The text of a number. `span` tells how far apart numbers of the column lie; `short`: for an axis.
    pub fn text(self, number: i128, span: i128, short: bool) -> String {
        match self {
            Self::Integer
                if short && number.unsigned_abs() >= 1_000_000_000 && span > number.unsigned_abs() as i128 / 1000 =>
            {
                words::real(number as f64)
            }
            Self::Integer => words::whole(number),
            Self::Instant(per_second) => words::instant(number, per_second, span, short),
            Self::Day => words::day(number),
            Self::TimeOfDay(per_second) => words::time_of_day(number, per_second),
        }
    }
}

impl Kind {
    /// The kind of a type.
    pub fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Booleans,
            DataType::Duration(_) => Self::Whole(Form::Integer),
            integer if integer.is_integer() => Self::Whole(Form::Integer),
            DataType::Timestamp(unit, _) => Self::Whole(Form::Instant(per_second(*unit))),
            DataType::Date32 => Self::Whole(Form::Day),
            DataType::Time32(unit) | DataType::Time64(unit) => Self::Whole(Form::TimeOfDay(per_second(*unit))),
            DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => Self::Real,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Null => Self::Labels,
            DataType::Dictionary(_, labels) => match Self::of(labels) {
                Self::Plain | Self::Lengths => Self::Plain,
                _ => Self::Labels,
            },
            DataType::List(_) | DataType::LargeList(_) => Self::Lengths,
            // The values of arrays are shown all together.
            DataType::FixedSizeList(item, 1..) => match Self::of(item.data_type()) {
                numbers @ (Self::Whole(Form::Integer) | Self::Real) => numbers,
                _ => Self::Plain,
            },
            _ => Self::Plain,
        }
    }
}

/// The values of a stretch of rows.
#[derive(Clone, Debug)]
pub struct Piece {
    pub rows: Range<u64>,
    pub missing: u64,
    /// Floats that are NaN; of arrays, as many rows as they would fill.
    pub nans: u64,
    pub content: Content,
}

/// Values that are not missing, and not NaN.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbers, in the order of the rows.
    Whole(Vec<i128>),
    /// Numbers, in the order of the rows.
    Real(Vec<f64>),
    /// Texts, each with its rows.
    Labels(HashMap<String, u64>),
}

impl Piece {
    /// Rows of the stretch.
    pub fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    pub fn wholes(&self) -> &[i128] {
        if let Content::Whole(all) = &self.content { all } else { &[] }
    }

    pub fn reals(&self) -> &[f64] {
        if let Content::Real(all) = &self.content { all } else { &[] }
    }

    pub fn labels(&self) -> Option<&HashMap<String, u64>> {
        if let Content::Labels(all) = &self.content { Some(all) } else { None }
    }
}

/// Reads a stretch of a column, or its beginning, if more would take over `most` bytes in memory. `None`: its first
/// value alone takes far too much.
///
/// # Errors
/// As [`Rows::array`].
pub fn read(
    rows: &dyn Rows,
    kind: Kind,
    stretch: Range<u64>,
    most: u64,
    interrupt: &Interrupt,
) -> Result<Option<Piece>, Error> {
    if kind == Kind::Lengths
        && (!rows.nullable() || rows.outline_tells_nulls())
        && let Some(outline) = rows.outline(stretch.clone(), interrupt)?
    {
        return Ok(Some(piece(stretch, kind, outline)));
    }
    let fits = rows.fitting(stretch.clone(), most.min(MOST_BYTES), interrupt)?;
    if fits.bytes > MOST_BYTES {
        return Ok(None);
    }
    let stretch = stretch.start..fits.end.min(stretch.end);
    Ok(Some(piece(stretch.clone(), kind, rows.array(stretch, interrupt)?)))
}

fn piece(rows: Range<u64>, kind: Kind, array: ArrayRef) -> Piece {
    let missing = array.logical_nulls().map_or(0, |nulls| nulls.null_count()) as u64;
    let mut nans = 0;
    let content = match kind {
        Kind::Whole(_) => Content::Whole(wholes(&flat(array))),
        Kind::Real => {
            let mut all = reals(&flat(array.clone()));
            let count = all.len();
            all.retain(|value| !value.is_nan());
            nans = (count - all.len()) as u64;
            // Of arrays, as a part of the rows that are not missing; of other columns these are as many as values.
            nans = (nans * (array.len() as u64).saturating_sub(missing)).div_ceil((count as u64).max(1));
            Content::Real(all)
        }
        Kind::Lengths => Content::Whole(lengths(array.as_ref())),
        Kind::Booleans | Kind::Labels | Kind::Plain => Content::Labels(labels(array.as_ref())),
    };
    Piece { rows, missing, nans, content }
}

/// The values of arrays within arrays, without those of missing ones.
fn flat(mut array: ArrayRef) -> ArrayRef {
    while let Some(lists) = array.as_fixed_size_list_opt() {
        let there = lists.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.inner().clone().into());
        let only = there.and_then(|there| filter(lists, &there).ok());
        array = only.as_ref().map_or(lists, |only| only.as_fixed_size_list()).values().clone();
    }
    array
}

/// The numbers of an array that are not missing.
fn wholes(array: &dyn Array) -> Vec<i128> {
    if let Some(array) = array.as_primitive_opt::<UInt64Type>() {
        return array.iter().flatten().map(i128::from).collect();
    }
    let array = cast(array, &DataType::Int64).ok();
    let array = array.as_ref().and_then(|array| array.as_primitive_opt::<Int64Type>());
    array.into_iter().flatten().flatten().map(i128::from).collect()
}

/// The floats of an array that are not missing.
pub fn reals(array: &dyn Array) -> Vec<f64> {
    let array = cast(array, &DataType::Float64).ok();
    array.as_ref().and_then(|array| array.as_primitive_opt::<Float64Type>()).into_iter().flatten().flatten().collect()
}

fn lengths(array: &dyn Array) -> Vec<i128> {
    let rows = (0..array.len()).filter(|at| array.is_valid(*at));
    match (array.as_list_opt::<i64>(), array.as_list_opt::<i32>()) {
        (Some(lists), _) => rows.map(|at| lists.value_length(at).into()).collect(),
        (_, Some(lists)) => rows.map(|at| lists.value_length(at).into()).collect(),
        _ => Vec::new(),
    }
}

fn labels(array: &dyn Array) -> HashMap<String, u64> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    if let Some(booleans) = array.as_boolean_opt() {
        let (trues, falses) = (booleans.true_count(), booleans.false_count());
        return [("true", trues), ("false", falses)].map(|(text, count)| (text.into(), count as u64)).into();
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let codes = cast(dictionary.keys(), &DataType::Int64).ok();
        let codes = codes.as_ref().and_then(|codes| codes.as_primitive_opt::<Int64Type>());
        let mut rows: HashMap<i64, u64> = HashMap::new();
        codes.into_iter().flatten().flatten().for_each(|code| *rows.entry(code).or_default() += 1);
        let labels = dictionary.values();
        for (code, count) in rows {
            let there = usize::try_from(code).ok().filter(|at| *at < labels.len() && labels.is_valid(*at));
            if let Some(text) = there.and_then(|at| edges::text(labels.slice(at, 1))) {
                *counts.entry(text).or_default() += count;
            }
        }
        return counts;
    }
    match (array.as_string_opt::<i64>(), array.as_string_opt::<i32>()) {
        (Some(texts), _) => texts.iter().flatten().for_each(|text| add(text, &mut counts)),
        (_, Some(texts)) => texts.iter().flatten().for_each(|text| add(text, &mut counts)),
        _ => {}
    }
    counts
}

/// Counts a text once more.
fn add(text: &str, counts: &mut HashMap<String, u64>) {
    match counts.get_mut(text) {
        Some(count) => *count += 1,
        None => drop(counts.insert(text.to_owned(), 1)),
    }
}
