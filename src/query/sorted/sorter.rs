//! Sorts the keys of rows on all cores.

use arrow_row::RowConverter;
use parking_lot::Mutex;

use super::steps::{STEPS_OF_MOVE, Steps};
use super::{AT_ONCE, PART};
use crate::source::{Interrupt, Interrupted};
use crate::store::for_each_part;

/// Bytes of a row beside its key: its place and its position. Merging takes the position once more.
pub(super) const PLACE: u64 = 8 + POSITION;
pub(super) const POSITION: u64 = size_of::<Position>() as u64;

/// The position of a key.
#[derive(Clone, Copy)]
struct Position {
    /// The first bytes of the key: most comparisons need no more, and no other memory.
    first: u64,
    at: usize,
}

/// Sort keys of rows, and their places.
pub(super) struct Sorter {
    pub(super) converter: RowConverter,
    pub(super) kept: arrow_row::Rows,
    pub(super) places: Vec<u64>,
    most: Option<u64>,
}

impl Sorter {
    /// Makes a sorter of no keys yet. `most`: no more rows are wanted.
    pub(super) fn new(converter: RowConverter, most: Option<u64>) -> Self {
        Self { kept: converter.empty_rows(0, 0), converter, places: Vec::new(), most }
    }

    /// Adds the keys of successive rows, the first at position `start`.
    pub(super) fn add(&mut self, keys: &arrow_row::Rows, start: u64) {
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
    pub(super) fn finish(mut self, (steps, interrupt): (&Steps, &Interrupt)) -> Result<Vec<u64>, Interrupted> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_row::SortField;
    use arrow_schema::DataType;

    use super::*;

    #[test]
    fn keys_of_many_parts_are_in_order_and_equal_ones_keep_theirs() {
        let part = PART as i64;
        for rows in [0, 1, part, part + 1, 2 * part, 5 * part + 7] {
            // Few values, so that most keys have equals in all parts.
            let values: Vec<i64> = (0..rows).map(|row| row * 7919 % 1009).collect();
            let converter = RowConverter::new(vec![SortField::new(DataType::Int64)]).unwrap();
            let mut sorter = Sorter::new(converter, None);
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
            let mut sorter = Sorter::new(converter, Some(most));
            for (part, start) in values.chunks(50_000).zip((0..).step_by(50_000)) {
                let part: ArrayRef = Arc::new(Int64Array::from(part.to_vec()));
                let keys = sorter.converter.convert_columns(&[part]).unwrap();
                sorter.add(&keys, start);
            }
            let places = sorter.finish((&Steps::default(), &Interrupt::new())).unwrap();
            assert!(places.iter().eq(expected.iter().take(most as usize)), "{most}");
        }
    }
}
