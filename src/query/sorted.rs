//! `order by` and `limit`: a table of selected rows in another order, or of the first rows.
//!
//! It holds and sorts the keys of all rows (with a limit: of about twice as many rows as that, at least 65,536), then
//! reads the values of the wanted rows once, in the order of the file, and holds them. Keys and values must each fit
//! into half of the memory budget, or the request is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, SortOptions};

use super::bind::find;
use super::categories;
use super::predicate::{Error as QueryError, SortKey};
use super::selection::joined;
use crate::source::Interrupt;
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, SharedRows, Store, StoredFacts};
use crate::table::{Column, HeldRows, Table, nan_in};

/// Number of rows to make keys for at once.
const AT_ONCE: u64 = 1 << 16;

/// About how many bytes of values to read at once.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// Longest gap of unwanted rows that is read along with its neighbours.
const GAP: u64 = 64;

/// Most rows to read together.
const RUN: u64 = 1 << 13;

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

/// Restricts a table to its first `limit` rows.
pub fn first(table: &mut Table, limit: u64) {
    table.rows = table.rows.min(limit);
    let rows = table.rows;
    for column in &mut table.columns {
        if let Ok(all) = &mut column.rows {
            *all = Arc::new(FirstRows::new(all.clone(), rows));
        }
        column.stored_strings = None;
        column.learner = None;
    }
}

/// Returns the positions of a table's rows in sorted order, at most the first `limit`: values, then NaN, then nulls, in
/// either direction. Ordered categories sort by their order. Equal rows keep the order of the file. `done` counts rows.
///
/// # Errors
/// [`SortError`].
pub fn places(
    table: &Table,
    order: &[SortKey],
    limit: Option<u64>,
    store: &Store,
    (done, interrupt): (&AtomicU64, &Interrupt),
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
    let mut sorter = Sorter { kept: converter.empty_rows(0, 0), converter, places: Vec::new(), most: limit };
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
        sorter.add(&arrays, start).map_err(|error| Error::unsupported(&table.path, error))?;
        let bytes = sorter.kept.size() as u64 + 16 * sorter.places.len() as u64;
        check_room(store, &table.path, "the keys of rows in order", bytes)?;
        done.fetch_add(range.end - start, Ordering::Relaxed);
        start = range.end;
    }
    Ok(sorter.finish())
}

/// Returns a table of the rows at `places`, in that order, with its columns in memory. `done` counts values.
///
/// # Errors
/// The rows cannot be read, or take more than half of the memory budget.
pub fn held(
    mut table: Table,
    places: &[u64],
    store: &Store,
    (done, interrupt): (&AtomicU64, &Interrupt),
) -> Result<Table, Error> {
    let mut sorted: Vec<(u64, u64)> = places.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    // Maps a position in the result to the position among the rows as read.
    let mut ranks = vec![0_u64; places.len()];
    for (at, (_, rank)) in (0_u64..).zip(&sorted) {
        if let Some(place) = usize::try_from(*rank).ok().and_then(|rank| ranks.get_mut(rank)) {
            *place = at;
        }
    }
    let (ranks, path) = (UInt64Array::from(ranks), table.path.clone());
    let mut bytes = 0;
    for column in &mut table.columns {
        if let Ok(rows) = &column.rows {
            column.rows = Ok(gathered(column, rows, &sorted, &ranks, (done, interrupt), &mut |more| {
                bytes = more.saturating_add(bytes);
                check_room(store, &path, "rows in order", bytes)
            })?);
        }
        column.stored_strings = None;
        column.learner = None;
    }
    table.rows = places.len() as u64;
    Ok(table)
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

/// Returns the values of a column at sorted positions, put into the order of `ranks`.
fn gathered(
    column: &Column,
    rows: &Arc<dyn Rows>,
    sorted: &[(u64, u64)],
    ranks: &UInt64Array,
    (done, interrupt): (&AtomicU64, &Interrupt),
    count: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<Arc<dyn Rows>, Error> {
    let failed = |error: ArrowError| Error::unsupported(&column.path, error);
    // Values are held twice: as read, and in order.
    count(rows.stored_width().unwrap_or(0).saturating_mul(2).saturating_mul(sorted.len() as u64))?;
    let is_counted = rows.stored_width().is_some();
    let mut parts: Vec<ArrayRef> = Vec::new();
    let mut next = 0;
    while let Some((first, _)) = sorted.get(next) {
        interrupt.check()?;
        let pairs = sorted[next..].windows(2);
        let length = 1 + pairs.take_while(|pair| pair[1].0 - pair[0].0 <= GAP && pair[1].0 - first < RUN).count();
        let last = sorted.get(next + length - 1).map_or(*first, |(last, _)| *last);
        let fitting = rows.fitting(*first..last + 1, BYTES_AT_ONCE, interrupt)?;
        let end = fitting.end.clamp(first + 1, last + 1);
        let run = &sorted[next..next + sorted[next..next + length].partition_point(|(place, _)| *place < end)];
        if !is_counted {
            count(fitting.bytes.saturating_mul(2))?;
        }
        let array = rows.array(*first..end, interrupt)?;
        let wanted: UInt64Array = run.iter().map(|(place, _)| place - first).collect();
        let part = if wanted.len() == array.len() {
            array
        } else {
            arrow_select::take::take(array.as_ref(), &wanted, None).map_err(failed)?
        };
        parts.push(part);
        next += run.len();
        done.fetch_add(run.len() as u64, Ordering::Relaxed);
    }
    let all = match parts.as_slice() {
        [] => rows.array(0..0, interrupt)?,
        parts => {
            let all = joined(parts, interrupt).map_err(failed)?;
            arrow_select::take::take(all.as_ref(), ranks, None).map_err(failed)?
        }
    };
    let hints = Hints { stored: false, ..rows.hints().clone() };
    Ok(Arc::new(HeldRows::new(all, rows.nullable(), hints)))
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

/// Sort keys of rows, and their positions.
struct Sorter {
    converter: RowConverter,
    kept: arrow_row::Rows,
    places: Vec<u64>,
    most: Option<u64>,
}

impl Sorter {
    /// Adds the keys of successive rows, the first at position `start`.
    fn add(&mut self, keys: &[ArrayRef], start: u64) -> Result<(), ArrowError> {
        for (row, place) in self.converter.convert_columns(keys)?.iter().zip(start..) {
            self.kept.push(row);
            self.places.push(place);
        }
        let most = self.most.and_then(|most| usize::try_from(most).ok());
        if let Some(most) = most.filter(|most| self.places.len() >= most.saturating_mul(2).max(AT_ONCE as usize)) {
            let mut first = self.sorted();
            first.truncate(most);
            let mut kept = self.converter.empty_rows(first.len(), 0);
            first.iter().for_each(|at| kept.push(self.kept.row(*at)));
            self.places = first.iter().filter_map(|at| self.places.get(*at).copied()).collect();
            self.kept = kept;
        }
        Ok(())
    }

    /// Returns the positions of the keys in sorted order.
    fn sorted(&self) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.places.len()).collect();
        positions.sort_by(|a, b| self.kept.row(*a).cmp(&self.kept.row(*b)));
        positions
    }

    fn finish(self) -> Vec<u64> {
        let most = self.most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        self.sorted().into_iter().take(most).filter_map(|at| self.places.get(at).copied()).collect()
    }
}

/// The first rows of a column.
#[derive(Debug)]
struct FirstRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
}

impl FirstRows {
    fn new(rows: Arc<dyn Rows>, len: u64) -> Self {
        let inner = rows.facts();
        let hints = Hints { stored: false, ..inner.hints.clone() };
        let stored = StoredFacts::default();
        let facts = Facts { len, hints, cuts: None, stored, codes: 0, ..inner.clone() };
        Self { rows, facts }
    }
}

impl Rows for FirstRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.rows.array(range, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.rows.fitting(range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        self.rows.shared(range, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.rows.outline(range, interrupt)
    }

    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.rows.array_for_field(fields, range, interrupt)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::store::rows::in_memory::{FACTS, MemoryRows, changed, with_facts};

    #[test]
    fn first_rows_lie_where_all_rows_do() {
        let all = MemoryRows::new(Arc::new(Int64Array::from(vec![0; 6]))).natural(2).strided(24).alike();
        let first = FirstRows::new(Arc::new(all), 4);
        assert_eq!((first.facts().len, first.facts().natural_rows, first.facts().stride), (4, Some(2), Some(24)));
        assert_eq!((&first as &dyn Rows).alike_until(1, &Interrupt::new()).unwrap(), 4);
    }

    #[test]
    fn first_rows_keep_the_facts_that_they_do_not_give_up() {
        let given_up = ["len", "hints", "cuts", "stored type", "stored width", "decoded", "codes"];
        for which in 0..=FACTS {
            let all = with_facts(MemoryRows::new(Arc::new(Int64Array::from(vec![0; 6]))), which);
            let facts = all.facts().clone();
            let first = FirstRows::new(Arc::new(all), 4);
            let lost: Vec<_> = changed(&facts, first.facts());
            assert!(lost.iter().all(|fact| given_up.contains(fact)), "{lost:?}");
            assert!(which < FACTS || lost == given_up, "{lost:?}");
        }
    }
}
