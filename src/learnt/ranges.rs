//! Sets of rows as disjoint ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges that do not touch: start → end.
#[derive(Debug, Default)]
pub(super) struct DisjointRanges(BTreeMap<u64, u64>);

impl DisjointRanges {
    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The ranges that overlap or touch `range`, last first.
    fn near(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let start = range.start;
        self.0.range(..=range.end).rev().map(|(from, to)| (*from, *to)).take_while(move |(_, to)| *to >= start)
    }

    /// Whether the range would merge with an existing one.
    pub fn joins(&self, range: &Range<u64>) -> bool {
        self.near(range).next().is_some()
    }

    /// The parts of `range` not in the set, in order.
    pub fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut end = range.end;
        for (from, to) in self.near(range) {
            if to < end {
                missing.push(to.max(range.start)..end);
            }
            end = end.min(from);
        }
        if range.start < end {
            missing.push(range.start..end);
        }
        missing.retain(|range| !range.is_empty());
        missing.reverse();
        missing
    }

    /// Whether no row of `range` is in the set.
    pub fn is_free(&self, range: &Range<u64>) -> bool {
        range.is_empty() || !self.near(range).any(|(from, to)| from < range.end && to > range.start)
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let near: Vec<_> = self.near(&range).collect();
        let (mut start, mut end) = (range.start, range.end);
        for (from, to) in near {
            self.0.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a plain table of flags.
        #[test]
        fn ranges_are_a_set_of_rows(
            inserted in prop::collection::vec((0u64..60, 0u64..12), 0..12),
            asked in (0u64..60, 0u64..20),
        ) {
            let mut ranges = DisjointRanges::default();
            let mut flags = [false; 96];
            for (start, length) in inserted {
                ranges.insert(start..start + length);
                (start..start + length).for_each(|row| flags[row as usize] = true);
            }
            let asked = asked.0..asked.0 + asked.1;
            let missing: Vec<u64> = ranges.missing(&asked).into_iter().flatten().collect();
            let expected: Vec<u64> = asked.clone().filter(|row| !flags[*row as usize]).collect();
            prop_assert_eq!(&missing, &expected);
            prop_assert_eq!(ranges.is_free(&asked), expected.len() as u64 == asked.end - asked.start);
            let runs = (0..95).filter(|row| flags[*row] && !flags[row + 1]).count();
            prop_assert_eq!(ranges.count(), runs);
        }
    }
}
