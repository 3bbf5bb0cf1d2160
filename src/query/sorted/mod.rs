//! `order by` and `limit`: a table of selected rows in another order, or of the first rows.
//!
//! It holds and sorts the keys of all rows (with a limit: of about twice as many rows as that, at least 65,536), then
//! reads the values of the wanted rows once, in the order of the file, and holds them. Keys and values must each fit
//! into half of the memory budget, or the request is refused.
//!
//! | room | task |
//! | --- | --- |
//! | `sorter` | sorts the keys |
//! | `held` | holds the values of rows in order |
//! | `first` | the first rows of a table |
//! | `steps` | counts the work, for the time left |

mod first;
mod held;
mod sorter;
mod steps;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SortOptions};

pub use first::first;
pub use held::held;
pub use steps::Steps;

use self::sorter::{PLACE, POSITION, Sorter};
use super::bind::find;
use super::categories;
use super::predicate::{Error as QueryError, SortKey};
use crate::source::Interrupt;
use crate::store::{Error, Store};
use crate::table::{Table, nan_in};

/// Number of rows to make keys for at once.
const AT_ONCE: u64 = 1 << 16;

/// Number of keys to sort or merge at once.
const PART: usize = 1 << 16;

/// About how many bytes of values to read at once.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// Why rows cannot be sorted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortError {
    /// The column does not exist, or its values have no order.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The rows cannot be read, or take too much memory.
    #[error(transparent)]
    Rows(#[from] Error),
}

/// Returns the positions of a table's rows in sorted order, at most the first `limit`: values, then NaN, then nulls, in
/// either direction. Ordered categories sort by their order. Equal rows keep the order of the file.
/// Progress is added to `steps`.
///
/// # Errors
/// [`SortError`].
pub fn places(
    table: &Table,
    order: &[SortKey],
    limit: Option<u64>,
    store: &Store,
    (steps, interrupt): (&Steps, &Interrupt),
) -> Result<Vec<u64>, SortError> {
    let mut keys = Vec::with_capacity(order.len());
    let mut fields = Vec::with_capacity(order.len());
    for by in order {
        let rows = find(table, &by.column, by.at)?.ordered(by.at)?;
        let is_by_place = categories::labels(rows.as_ref()).is_some();
        let data_type = if is_by_place { &DataType::Int64 } else { rows.data_type() };
        fields.extend(sort_fields(data_type, by.descending));
        keys.push((rows, is_by_place));
    }
    let converter = RowConverter::new(fields).map_err(|error| Error::unsupported(&table.path, error))?;
    let mut sorter = Sorter::new(converter, limit);
    let mut start = 0;
    while start < table.rows {
        interrupt.check().map_err(Error::from)?;
        let mut range = start..table.rows.min(start + AT_ONCE);
        for (rows, _) in &keys {
            range.end = rows.fitting(range.clone(), BYTES_AT_ONCE, interrupt)?.end.clamp(start + 1, range.end);
        }
        let mut arrays = Vec::with_capacity(keys.len());
        for (rows, is_by_place) in &keys {
            let array = rows.array(range.clone(), interrupt)?;
            let places = if *is_by_place { categories::places(&array) } else { None };
            arrays.extend(sort_keys(places.unwrap_or(array)));
        }
        let keys = sorter.converter.convert_columns(&arrays);
        let keys = keys.map_err(|error| Error::unsupported(&table.path, error))?;
        sorter.add(&keys, start);
        let bytes = sorter.kept.size() as u64 + PLACE * sorter.places.len() as u64;
        let merged = if sorter.places.len() > PART { sorter.places.len() as u64 } else { 0 };
        let merged = limit.map_or(merged, |most| merged.min(most));
        check_room(store, &table.path, "the keys of rows in order", bytes + POSITION * merged)?;
        steps.add((range.end - start) * steps.of_keys());
        start = range.end;
    }
    Ok(sorter.finish((steps, interrupt)).map_err(Error::from)?)
}

/// Fails if more bytes would be held than half of the memory budget.
fn check_room(store: &Store, path: &str, what: &str, bytes: u64) -> Result<(), Error> {
    let limit = store.budget().limit() / 2;
    if bytes <= limit {
        return Ok(());
    }
    let what = format!("{what} (`limit` makes them fewer)");
    Err(Error::TooLarge { path: path.to_owned(), what, bytes, limit, option: "half of --cache-size" })
}

/// Makes both zeros equal, and all NaN.
pub fn one_zero(array: ArrayRef) -> ArrayRef {
    macro_rules! of {
        ($type:ty, $nan:expr, $zero:expr) => {{
            Arc::new(array.as_primitive::<$type>().unary::<_, $type>(|value| match value {
                value if value.is_nan() => $nan,
                value if value == $zero => $zero,
                value => value,
            }))
        }};
    }
    match array.data_type() {
        DataType::Float16 => of!(Float16Type, half::f16::NAN, half::f16::ZERO),
        DataType::Float32 => of!(Float32Type, f32::NAN, 0.0),
        DataType::Float64 => of!(Float64Type, f64::NAN, 0.0),
        _ => array,
    }
}

/// Returns the sort fields of a column: values in a direction, then NaN, then nulls.
pub fn sort_fields(data_type: &DataType, descending: bool) -> impl Iterator<Item = SortField> {
    let field =
        |data_type, descending| SortField::new_with_options(data_type, SortOptions { descending, nulls_first: false });
    // A flag for NaN is compared first, because Arrow's order has NaN as the greatest number.
    let of_nan = data_type.is_floating().then(|| field(DataType::Boolean, false));
    of_nan.into_iter().chain([field(data_type.clone(), descending)])
}

/// Returns the keys of a column for its [`sort_fields`].
pub fn sort_keys(array: ArrayRef) -> impl Iterator<Item = ArrayRef> {
    let is_nan = array.data_type().is_floating().then(|| {
        let is_nan = nan_in(array.as_ref()).unwrap_or_else(|| BooleanBuffer::new_unset(array.len()));
        Arc::new(BooleanArray::new(is_nan, array.nulls().cloned())) as ArrayRef
    });
    is_nan.into_iter().chain([one_zero(array)])
}
