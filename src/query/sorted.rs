//! `order by` and `limit`: a table of selected rows in another order, or of the first rows.
//!
//! It holds and sorts the keys of all rows (with a limit: of about twice as many rows as that, at least 65,536), then
//! reads the values of the wanted rows once, in the order of the file, and holds them. Keys and values must each fit
//! into half of the memory budget, or the request is refused.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, SortOptions};
use parking_lot::Mutex;

use super::bind::find;
use super::categories;
use super::predicate::{Error as QueryError, SortKey};
use super::selection::joined;
use crate::source::{Interrupt, Interrupted};
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, SharedRows, Store, StoredFacts, for_each_part};
use crate::table::{Column, HeldRows, Table, nan_in};

/// Number of rows to make keys for at once.
const AT_ONCE: u64 = 1 << 16;

/// Number of keys to sort or merge at once.
const PART: usize = 1 << 16;

/// Bytes of a row beside its key: its place and its position. Merging takes the position once more.
const PLACE: u64 = 8 + POSITION;
const POSITION: u64 = size_of::<Position>() as u64;

/// Steps of making a key, of making and selecting it with a limit, of moving it once, of reading a value, of putting it
/// into order, and of writing it.
const STEPS_OF_KEY: u64 = 10;
const STEPS_OF_SELECTED_KEY: u64 = 21;
const STEPS_OF_MOVE: u64 = 2;
const STEPS_OF_READING: u64 = 3;
const STEPS_OF_HOLDING: u64 = 2;
const STEPS_OF_WRITING: u64 = 9;

/// Steps of reading and of holding a text, where a number has 1 of each.
const READING_TEXT: u64 = 3;
const HOLDING_TEXT: u64 = 15;

/// Number of values to put into order at once.
const TAKEN_AT_ONCE: usize = 1 << 20;

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

/// Counts the work of an order in steps of about 7 ns, for the time left. Searching a value takes one step.
#[derive(Debug, Default)]
pub struct Steps {
    done: AtomicU64,
    /// Rows of the table that is searched.
    rows: u64,
    keys: u64,
    columns: u64,
    weight: Weight,
    limit: Option<u64>,
}

impl Steps {
    /// Weighs an order by `keys` keys. The table searched has `rows` rows; `columns` are written.
    pub fn new(rows: u64, keys: usize, limit: Option<u64>, columns: &[&Column]) -> Self {
        let weight = columns.iter().map(|column| Weight::of(column)).sum();
        Self { done: AtomicU64::new(0), rows, keys: keys as u64, columns: columns.len() as u64, weight, limit }
    }

    /// Returns the steps done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn add(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns the steps of sorting, holding and writing `rows` rows.
    pub fn of(&self, rows: u64) -> u64 {
        let held = self.limit.map_or(rows, |limit| limit.min(rows));
        let merges = u64::from(held.div_ceil(PART as u64).next_power_of_two().ilog2());
        let making = rows.saturating_mul(self.of_keys());
        let moving = held.saturating_mul(1 + merges).saturating_mul(STEPS_OF_MOVE);
        let holding = self.of_holding(held, self.weight);
        making.saturating_add(moving).saturating_add(holding).saturating_add(self.of_writing(held))
    }

    /// Returns the steps of making the keys of a row.
    fn of_keys(&self) -> u64 {
        self.keys.saturating_mul(if self.limit.is_some() { STEPS_OF_SELECTED_KEY } else { STEPS_OF_KEY })
    }

    /// Returns the steps of writing `rows` rows.
    pub fn of_writing(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.columns).saturating_mul(STEPS_OF_WRITING)
    }

    /// Returns the steps of reading columns of this weight whole, and of holding `values` values of each in order.
    fn of_holding(&self, values: u64, weight: Weight) -> u64 {
        let reading = self.rows.saturating_mul(STEPS_OF_READING).saturating_mul(weight.reading);
        reading.saturating_add(values.saturating_mul(STEPS_OF_HOLDING).saturating_mul(weight.holding))
    }
}

/// Time of reading and of holding a value of each of some columns, where a number takes 1.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    reading: u64,
    holding: u64,
}

impl Weight {
    fn of(column: &Column) -> Self {
        let is_narrow = column.rows.as_ref().is_ok_and(|rows| rows.data_type().primitive_width().is_some());
        if is_narrow { Self { reading: 1, holding: 1 } } else { Self { reading: READING_TEXT, holding: HOLDING_TEXT } }
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::default(), |sum, one| Self {
            reading: sum.reading + one.reading,
            holding: sum.holding + one.holding,
        })
    }
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

/// Returns a table of the rows at `places`, in that order, with its columns in memory. Progress is added to `steps`.
///
/// # Errors
/// The rows cannot be read, or take more than half of the memory budget.
pub fn held(
    mut table: Table,
    places: &[u64],
    store: &Store,
    (steps, interrupt): (&Steps, &Interrupt),
) -> Result<Table, Error> {
    // Positions in the result become positions among the rows as read.
    let (sorted, ranks) = if places.len() as u64 == table.rows {
        ((0..table.rows).collect(), places.to_vec())
    } else {
        let mut wanted: Vec<(u64, usize)> = places.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let mut ranks = vec![0; wanted.len()];
        for ((_, at), rank) in wanted.iter().zip(0..) {
            ranks[*at] = rank;
        }
        (wanted.into_iter().map(|(place, _)| place).collect::<Vec<u64>>(), ranks)
    };
    let ranks = UInt64Array::from(ranks);
    let path = table.path.clone();
    let mut bytes = 0;
    for column in &mut table.columns {
        if let Ok(rows) = &column.rows {
            column.rows = Ok(gathered(column, rows, &sorted, &ranks, (steps, interrupt), &mut |more| {
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
    sorted: &[u64],
    ranks: &UInt64Array,
    (steps, interrupt): (&Steps, &Interrupt),
    count: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<Arc<dyn Rows>, Error> {
    let failed = |error: ArrowError| Error::unsupported(&column.path, error);
    // Values are held twice: as read, and in order.
    count(rows.stored_width().unwrap_or(0).saturating_mul(2).saturating_mul(sorted.len() as u64))?;
    let is_counted = rows.stored_width().is_some();
    // Half of the steps of holding are taken while the values are read.
    let weight = Weight::of(column);
    let all = steps.of_holding(sorted.len() as u64, weight);
    let reading = u64::midpoint(steps.of_holding(0, weight), all);
    let mut read = 0;
    let mut parts: Vec<ArrayRef> = Vec::new();
    let mut next = 0;
    while let Some(first) = sorted.get(next) {
        interrupt.check()?;
        let pairs = sorted[next..].windows(2);
        let length = 1 + pairs.take_while(|pair| pair[1] - pair[0] <= GAP && pair[1] - first < RUN).count();
        let last = sorted.get(next + length - 1).map_or(*first, |last| *last);
        let fitting = rows.fitting(*first..last + 1, BYTES_AT_ONCE, interrupt)?;
        let end = fitting.end.clamp(first + 1, last + 1);
        let run = &sorted[next..next + sorted[next..next + length].partition_point(|place| *place < end)];
        if !is_counted {
            count(fitting.bytes.saturating_mul(2))?;
        }
        let array = rows.array(*first..end, interrupt)?;
        let wanted: UInt64Array = run.iter().map(|place| place - first).collect();
        let part = if wanted.len() == array.len() {
            array
        } else {
            arrow_select::take::take(array.as_ref(), &wanted, None).map_err(failed)?
        };
        parts.push(part);
        next += run.len();
        let before = std::mem::replace(&mut read, (reading as f64 * (end as f64 / rows.len().max(1) as f64)) as u64);
        steps.add(read - before);
    }
    let held = if parts.is_empty() {
        steps.add(all);
        rows.array(0..0, interrupt)?
    } else {
        let as_read = joined(&parts, interrupt).map_err(failed)?;
        drop(parts);
        let left = all.saturating_sub(read);
        taken(&column.path, as_read, ranks, interrupt, |rows| {
            steps.add(share(left, rows.end, ranks.len()) - share(left, rows.start, ranks.len()));
        })?
    };
    let hints = Hints { stored: false, ..rows.hints().clone() };
    Ok(Arc::new(HeldRows::new(held, rows.nullable(), hints)))
}

/// Returns the share of `steps` that the first `done` of `all` rows have.
fn share(steps: u64, done: usize, all: usize) -> u64 {
    (u128::from(steps) * done as u128 / all.max(1) as u128) as u64
}

/// Takes the values at `ranks` from an array, piece by piece on all cores. `done` learns which ranks were taken.
fn taken(
    path: &str,
    array: ArrayRef,
    ranks: &UInt64Array,
    interrupt: &Interrupt,
    done: impl Fn(Range<usize>) + Sync,
) -> Result<ArrayRef, Error> {
    let pieces = ranks.len().div_ceil(TAKEN_AT_ONCE);
    let taken = Mutex::new(vec![None; pieces]);
    for_each_part(pieces as u64, interrupt, |piece| {
        let start = piece as usize * TAKEN_AT_ONCE;
        let rows = start..ranks.len().min(start + TAKEN_AT_ONCE);
        let part = arrow_select::take::take(array.as_ref(), &ranks.slice(start, rows.len()), None);
        let part = part.map_err(|error| Error::unsupported(path, error))?;
        if let Some(place) = taken.lock().get_mut(piece as usize) {
            *place = Some(part);
        }
        done(rows);
        Ok::<_, Error>(())
    })?;
    drop(array);
    let taken: Vec<ArrayRef> = taken.into_inner().into_iter().flatten().collect();
    joined(&taken, interrupt).map_err(|error| Error::unsupported(path, error))
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

/// The position of a key.
#[derive(Clone, Copy)]
struct Position {
    /// The first bytes of the key: most comparisons need no more, and no other memory.
    first: u64,
    at: usize,
}

/// Sort keys of rows, and their places.
struct Sorter {
    converter: RowConverter,
    kept: arrow_row::Rows,
    places: Vec<u64>,
    most: Option<u64>,
}

impl Sorter {
    /// Adds the keys of successive rows, the first at position `start`.
    fn add(&mut self, keys: &arrow_row::Rows, start: u64) {
        for (row, place) in keys.iter().zip(start..) {
            self.kept.push(row);
            self.places.push(place);
        }
        let most = self.most.and_then(|most| usize::try_from(most).ok());
        if let Some(most) = most.filter(|most| self.places.len() >= most.saturating_mul(2).max(AT_ONCE as usize)) {
            self.cut(most);
        }
    }

    /// Compares two keys; equal ones are in the order of the file.
    fn order(&self, a: &Position, b: &Position) -> std::cmp::Ordering {
        let by_first = a.first.cmp(&b.first);
        by_first.then_with(|| self.kept.row(a.at).cmp(&self.kept.row(b.at))).then(a.at.cmp(&b.at))
    }

    fn positions(&self) -> Vec<Position> {
        let rows = self.kept.iter().enumerate();
        rows.map(|(at, row)| {
            let mut first = [0; 8];
            first.iter_mut().zip(row.data()).for_each(|(to, from)| *to = *from);
            Position { first: u64::from_be_bytes(first), at }
        })
        .collect()
    }

    /// Keeps the first `most` keys.
    fn cut(&mut self, most: usize) {
        let mut positions = self.positions();
        if most < positions.len() {
            positions.select_nth_unstable_by(most, |a, b| self.order(a, b));
            positions.truncate(most);
        }
        positions.sort_unstable_by_key(|position| position.at);
        let mut kept = self.converter.empty_rows(positions.len(), 0);
        positions.iter().for_each(|position| kept.push(self.kept.row(position.at)));
        self.places = positions.iter().filter_map(|position| self.places.get(position.at).copied()).collect();
        self.kept = kept;
    }

    /// Returns the places of the keys in sorted order.
    fn finish(mut self, (steps, interrupt): (&Steps, &Interrupt)) -> Result<Vec<u64>, Interrupted> {
        if let Some(most) = self.most.and_then(|most| usize::try_from(most).ok()) {
            self.cut(most);
        }
        let moved = |keys: &[Position]| steps.add(keys.len() as u64 * STEPS_OF_MOVE);
        let mut positions = self.positions();
        let parts = positions.len().div_ceil(PART) as u64;
        let unsorted = Mutex::new(positions.chunks_mut(PART));
        for_each_part(parts, interrupt, |_| {
            if let Some(part) = { unsorted.lock().next() } {
                part.sort_unstable_by(|a, b| self.order(a, b));
                moved(part);
            }
            Ok::<_, Interrupted>(())
        })?;
        let mut length = PART;
        let mut merged = if length < positions.len() { positions.clone() } else { Vec::new() };
        while length < positions.len() {
            let pairs = positions.chunks(2 * length).zip(merged.chunks_mut(2 * length));
            let pieces = pairs.flat_map(|(pair, out)| {
                let (first, second) = pair.split_at(length.min(pair.len()));
                out.chunks_mut(PART).enumerate().map(move |(piece, out)| (first, second, piece * PART, out))
            });
            let pieces = Mutex::new(pieces);
            for_each_part(parts, interrupt, |_| {
                if let Some((first, second, start, out)) = { pieces.lock().next() } {
                    self.merge(first, second, start, out);
                    moved(out);
                }
                Ok::<_, Interrupted>(())
            })?;
            std::mem::swap(&mut positions, &mut merged);
            length = length.saturating_mul(2);
        }
        // Without a limit no key was cut, so the position of a key is its place; `places` would miss the caches.
        if self.most.is_none() {
            return Ok(positions.iter().map(|position| position.at as u64).collect());
        }
        Ok(positions.iter().filter_map(|position| self.places.get(position.at).copied()).collect())
    }

    /// Writes to `out` what follows the first `start` positions of two sorted lists merged.
    fn merge(&self, first: &[Position], second: &[Position], start: usize, out: &mut [Position]) {
        // Of the positions before `start`, those of `first` are counted by halving.
        let (mut least, mut most) = (start.saturating_sub(second.len()), start.min(first.len()));
        while least < most {
            let middle = usize::midpoint(least, most);
            if self.order(&first[middle], &second[start - middle - 1]).is_le() {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        let (mut first, mut second) = (first[least..].iter().peekable(), second[start - least..].iter().peekable());
        for position in out {
            let next = match (first.peek(), second.peek()) {
                (Some(a), Some(b)) if self.order(a, b).is_le() => first.next(),
                (Some(_), None) => first.next(),
                _ => second.next(),
            };
            *position = next.copied().unwrap_or(*position);
        }
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
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::store::rows::in_memory::{FACTS, MemoryRows, changed, with_facts};

    #[test]
    fn keys_of_many_parts_are_in_order_and_equal_ones_keep_theirs() {
        let part = PART as i64;
        for rows in [0, 1, part, part + 1, 2 * part, 5 * part + 7] {
            // Few values, so that most keys have equals in all parts.
            let values: Vec<i64> = (0..rows).map(|row| row * 7919 % 1009).collect();
            let converter = RowConverter::new(vec![SortField::new(DataType::Int64)]).unwrap();
            let mut sorter = Sorter { kept: converter.empty_rows(0, 0), converter, places: Vec::new(), most: None };
            let keys = sorter.converter.convert_columns(&[Arc::new(Int64Array::from(values.clone()))]).unwrap();
            sorter.add(&keys, 0);
            let mut expected: Vec<u64> = (0..rows as u64).collect();
            expected.sort_by_key(|place| values[*place as usize]);
            let steps = Steps::default();
            assert_eq!(sorter.finish((&steps, &Interrupt::new())).unwrap(), expected, "{rows} rows");
            // All that was announced is counted, besides the keys, which are made before.
            assert_eq!(steps.done(), steps.of(rows as u64), "{rows} rows");
        }
    }

    #[test]
    fn the_first_keys_stay_and_equal_ones_in_the_order_of_the_file() {
        let values: Vec<i64> = (0..300_000).map(|row| row * 7919 % 1009).collect();
        let mut expected: Vec<u64> = (0..values.len() as u64).collect();
        expected.sort_by_key(|place| values[*place as usize]);
        for most in [0, 1, 1_000, 70_000, 299_999, 300_000, 400_000] {
            let converter = RowConverter::new(vec![SortField::new(DataType::Int64)]).unwrap();
            let mut sorter =
                Sorter { kept: converter.empty_rows(0, 0), converter, places: Vec::new(), most: Some(most) };
            for (part, start) in values.chunks(50_000).zip((0..).step_by(50_000)) {
                let part: ArrayRef = Arc::new(Int64Array::from(part.to_vec()));
                let keys = sorter.converter.convert_columns(&[part]).unwrap();
                sorter.add(&keys, start);
            }
            let places = sorter.finish((&Steps::default(), &Interrupt::new())).unwrap();
            assert!(places.iter().eq(expected.iter().take(most as usize)), "{most}");
        }
    }

    #[test]
    fn values_are_put_into_order_piece_by_piece() {
        for rows in [1, TAKEN_AT_ONCE, 2 * TAKEN_AT_ONCE + 3] {
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
            let ranks: UInt64Array = (0..rows as u64).rev().collect();
            let pieces = Mutex::new(Vec::new());
            let taken = taken("/t/x", values, &ranks, &Interrupt::new(), |rows| {
                pieces.lock().push((rows.start, rows.end));
            });
            let taken = taken.unwrap();
            assert!(taken.as_primitive::<Int64Type>().values().iter().copied().eq((0..rows as i64).rev()));
            let mut pieces = pieces.into_inner();
            pieces.sort_unstable();
            let ends = (1..).map(|piece| rows.min(piece * TAKEN_AT_ONCE));
            let expected: Vec<_> = (0..rows).step_by(TAKEN_AT_ONCE).zip(ends).collect();
            assert_eq!(pieces, expected);
        }
    }

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
