//! Counts rows whose stored value breaks a rule; each row counts once, however often it is read.

use std::collections::BTreeMap;
use std::ops::Range;

use parking_lot::Mutex;

use super::{Oddities, Oddity};

/// Most disjoint stretches of rows to record: random reads of a damaged column must not fill memory.
const MOST_STRETCHES: usize = 4096;

/// Oddities found so far in one column, for `.hepfs/findings`.
#[derive(Debug, Default)]
pub struct Tally {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    counts: BTreeMap<Oddity, TallyCount>,
    /// Ranges of rows whose oddities are counted: start → end, disjoint. Ranges without oddities are left out.
    counted: BTreeMap<u64, u64>,
}

/// The number of rows with an oddity, and the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyCount {
    /// Number of rows that have it, as far as counted.
    pub rows: u64,
    /// The first of these rows.
    pub first: u64,
}

impl Tally {
    /// Adds the oddities of `rows`, with positions counted from its start. Past `MOST_STRETCHES`, rows that touch no
    /// known stretch are ignored: the count becomes a lower bound.
    pub fn add(&self, rows: Range<u64>, oddities: &Oddities) {
        if oddities.is_empty() {
            return;
        }
        let mut seen = self.seen.lock();
        if seen.counted.len() >= MOST_STRETCHES && !seen.touches(&rows) {
            return;
        }
        for (oddity, at) in oddities.iter() {
            let row = rows.start.saturating_add(at);
            if seen.is_counted(row) {
                continue;
            }
            let count = seen.counts.entry(oddity).or_insert(TallyCount { rows: 0, first: row });
            count.rows += 1;
            count.first = count.first.min(row);
        }
        seen.mark(rows);
    }

    /// The oddities found so far.
    pub fn counts(&self) -> Vec<(Oddity, TallyCount)> {
        self.seen.lock().counts.iter().map(|(oddity, count)| (*oddity, *count)).collect()
    }
}

impl Seen {
    fn is_counted(&self, row: u64) -> bool {
        self.counted.range(..=row).next_back().is_some_and(|(_, end)| row < *end)
    }

    /// Whether rows overlap or touch a counted stretch.
    fn touches(&self, rows: &Range<u64>) -> bool {
        self.counted.range(..=rows.end).next_back().is_some_and(|(_, end)| *end >= rows.start)
    }

    fn mark(&mut self, rows: Range<u64>) {
        let Range { mut start, mut end } = rows;
        while let Some((&from, &to)) = self.counted.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            self.counted.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.counted.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_read_twice_counts_once() {
        let tally = Tally::default();
        let odd = |rows: &[u64]| rows.iter().map(|row| (Oddity::InvalidBoolean, *row)).collect::<Oddities>();
        tally.add(100..200, &odd(&[5, 50]));
        tally.add(100..200, &odd(&[5, 50]));
        tally.add(150..300, &odd(&[0, 100]));
        tally.add(0..100, &odd(&[99]));
        assert_eq!(tally.counts(), [(Oddity::InvalidBoolean, TallyCount { rows: 4, first: 99 })]);
        assert_eq!(tally.seen.lock().counted, BTreeMap::from([(0, 300)]));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let tally = Tally::default();
        let odd = Oddities::from_iter([(Oddity::InvalidBoolean, 0)]);
        for at in 0..10_000 {
            tally.add(at * 2..at * 2 + 1, &odd);
        }
        assert_eq!(tally.counts(), [(Oddity::InvalidBoolean, TallyCount { rows: 4096, first: 0 })]);
        tally.add(1..2, &odd);
        assert_eq!(tally.counts()[0].1.rows, 4097);
    }
}
