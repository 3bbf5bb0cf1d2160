//! Boundaries between rows of different origin, and blocks that respect them.

use std::sync::Arc;

use super::RowRange;

/// The ends of runs of rows that belong together: of the parts of a table that was put together from several. Blocks of
/// [statistics](crate::store::statistics) and row groups do not cross them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cuts(Arc<[u64]>);

impl Cuts {
    /// Cuts at these ends, given in any order. `None`: all rows are one run.
    pub fn new(ends: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut ends: Vec<u64> = ends.into_iter().filter(|end| *end > 0).collect();
        ends.sort_unstable();
        ends.dedup();
        (ends.len() > 1).then(|| Self(ends.into()))
    }

    /// Number of runs.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Joins adjacent runs to at most `rows` rows; a longer run stays by itself.
    pub fn joined(&self, rows: u64) -> Option<Self> {
        let (mut ends, mut start, mut before) = (Vec::new(), 0, 0);
        for end in self.0.iter().copied() {
            if end - start > rows && before > start {
                ends.push(before);
                start = before;
            }
            before = end;
        }
        ends.push(before);
        Self::new(ends)
    }

    /// A hash of the ends, for the keys of cached statistics.
    pub fn digest(&self) -> u64 {
        let bytes: Vec<u8> = self.0.iter().flat_map(|end| end.to_le_bytes()).collect();
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}

/// Blocks of equal length that restart at each cut; the last one before a cut may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    rows: u64,
    per_block: u64,
    /// The first row of each run and the number of its first block; last, the numbers of all rows and blocks.
    runs: Option<Arc<[(u64, u64)]>>,
}

impl Blocked {
    /// Blocks of `per_block` rows each.
    pub fn new(rows: u64, per_block: u64, cuts: Option<&Cuts>) -> Self {
        let per_block = per_block.max(1);
        let runs = cuts.map(|Cuts(ends)| {
            let (mut runs, mut start, mut block) = (vec![(0, 0)], 0, 0);
            for end in ends.iter().copied().filter(|end| *end < rows).chain([rows]) {
                block += (end - start).div_ceil(per_block);
                start = end;
                runs.push((start, block));
            }
            runs.into()
        });
        Self { rows, per_block, runs }
    }

    /// Rows in all blocks.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows of a full block.
    pub fn per_block(&self) -> u64 {
        self.per_block
    }

    /// Whether there are cuts.
    pub fn is_cut(&self) -> bool {
        self.runs.is_some()
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        match self.runs.as_deref().and_then(<[_]>::last) {
            Some((_, blocks)) => *blocks,
            None => self.rows.div_ceil(self.per_block),
        }
    }

    /// The last run for which `is_before` is true: its first row, its first block, and its end.
    fn run(&self, is_before: impl Fn(&(u64, u64)) -> bool) -> (u64, u64, u64) {
        let Some(runs) = self.runs.as_deref() else { return (0, 0, self.rows) };
        let at = runs.partition_point(is_before);
        let (start, block) = at.checked_sub(1).and_then(|at| runs.get(at)).copied().unwrap_or((0, 0));
        (start, block, runs.get(at).map_or(self.rows, |(end, _)| *end))
    }

    /// Rows of a block; empty after the last.
    pub fn rows_of(&self, block: u64) -> RowRange {
        let (start, first, end) = self.run(|(_, first)| *first <= block);
        let start = start.saturating_add((block - first).saturating_mul(self.per_block)).min(end);
        start..start.saturating_add(self.per_block).min(end)
    }

    /// The block that contains a row.
    pub fn block_of(&self, row: u64) -> u64 {
        let (start, first, _) = self.run(|(start, _)| *start <= row);
        first + (row - start) / self.per_block
    }

    /// The blocks that contain some rows.
    pub fn blocks_of(&self, rows: &RowRange) -> RowRange {
        match rows.end.checked_sub(1).filter(|last| *last >= rows.start) {
            Some(last) => self.block_of(rows.start)..self.block_of(last).saturating_add(1),
            None => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_are_joined_whole() {
        let cuts = |ends: &[u64]| Cuts::new(ends.iter().copied());
        let all = cuts(&[3, 3, 5, 20, 21, 24, 0]).unwrap();
        assert_eq!(all.count(), 5);
        assert_eq!(all.joined(5), cuts(&[5, 20, 24]));
        assert_eq!(all.joined(4), cuts(&[3, 5, 20, 24]));
        assert_eq!(all.joined(1000), None);
        assert_eq!(cuts(&[0, 7]), None);
    }

    proptest! {
        #[test]
        fn blocks_keep_to_cuts(lengths in proptest::collection::vec(0..40u64, 1..20), per_block in 1..16u64) {
            let mut rows = 0;
            let ends: Vec<u64> = lengths.iter().map(|length| { rows += length; rows }).collect();
            let blocked = Blocked::new(rows, per_block, Cuts::new(ends.iter().copied()).as_ref());
            let mut next = 0;
            for block in 0..blocked.count() {
                let of_block = blocked.rows_of(block);
                prop_assert_eq!(of_block.start, next);
                next = of_block.end;
                let run = ends.partition_point(|end| *end <= of_block.start);
                // It ends with its run, or is full.
                prop_assert!(next == ends[run] || next < ends[run] && next - of_block.start == per_block);
                prop_assert!(of_block.clone().all(|row| blocked.block_of(row) == block));
            }
            prop_assert_eq!(next, rows);
            prop_assert!(blocked.rows_of(blocked.count()).is_empty());
        }
    }
}
