//! Holds the values of rows in order.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::ArrowError;
use parking_lot::Mutex;

use super::super::selection::joined;
use super::steps::{Steps, Weight};
use super::{BYTES_AT_ONCE, check_room};
use crate::source::Interrupt;
use crate::store::{Error, Hints, Rows, Store, for_each_part};
use crate::table::{Column, HeldRows, Table};

/// Number of values to put into order at once.
const TAKEN_AT_ONCE: usize = 1 << 20;

/// Longest gap of unwanted rows that is read along with its neighbours.
const GAP: u64 = 64;

/// Most rows to read together.
const RUN: u64 = 1 << 13;

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

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

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
}
