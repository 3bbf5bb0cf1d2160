//! Row groups: how many rows they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::store::{Blocked, Cuts, RowRange};

/// Rows of a row group at least: readers fetch whole column chunks, so this is the grain of most reads.
const LEAST_ROWS: u64 = 131_072;

/// Bytes of whole rows of a row group at most, where columns are fields of one dataset: an engine asks for one column
/// chunk after the other, and what was decoded for the first must still be there for the last.
const STRIDDEN_BYTES: u64 = 32 << 20;

/// Rows of a row group for each label or number of a dictionary, at least: each row group has its own.
pub(in crate::views::parquet) const ROWS_PER_LABEL: u64 = 8;

/// Rows of a row group at most, for the sake of its dictionaries.
const MOST_LABELLED: u64 = 1 << 19;

/// Rows of a row group at most: a page of 8-byte values has 128 MiB then, far below what a page header can say.
pub(super) const MOST_ROWS: u64 = 16 << 20;

/// Column chunks of all row groups at most, unless row groups have [`MOST_ROWS`]: each costs some 200 bytes of footer.
const MOST_CHUNKS: u64 = 50_000;

/// The same of fields of one dataset: a longer footer is read once, a row group that is not kept once for each field.
const MOST_STRIDDEN_CHUNKS: u64 = 8 * MOST_CHUNKS;

/// Row groups of rows that are [cut](Cuts), whatever bytes they have, at most. DuckDB reads 1 MB for each list column
/// of each row group, however short this is.
const MOST_SHORT: u64 = 256;

/// Bytes of whole rows, about, up to which runs of rows share a row group where there would be more.
const SHARED_BYTES: u64 = 1 << 20;

/// Column chunks of all row groups at most where rows are cut: beyond, runs of rows share longer ones.
const MOST_CUT_CHUNKS: u64 = 2 * MOST_CHUNKS;

/// What the rows of a file take.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::views::parquet) struct RowSizes {
    /// Leaf columns.
    pub leaves: usize,
    /// Bytes of a row, about.
    pub width: u64,
    /// The longest [stride](crate::store::Facts::stride).
    pub stride: u64,
    /// Labels of the longest dictionary.
    pub labels: u64,
}

/// Row groups: of equal length but for the last, and for those before a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct Groups {
    blocked: Blocked,
    /// Where row groups end, however many rows they have.
    pub cuts: Option<Cuts>,
    /// Numbers of rows of groups that are shorter than others, each once.
    pub(super) short: Arc<[u64]>,
}

impl Groups {
    /// Groups of `per_group` rows, a power of two.
    pub fn new(rows: u64, per_group: u64, cuts: Option<Cuts>) -> Self {
        let blocked = Blocked::new(rows, per_group, cuts.as_ref());
        let first = if blocked.is_cut() { 0 } else { blocked.count().saturating_sub(1) };
        let lengths = (first..blocked.count()).map(|group| blocked.rows_of(group)).map(|rows| rows.end - rows.start);
        let short: BTreeSet<u64> = lengths.filter(|rows| *rows < per_group).collect();
        Self { blocked, cuts, short: short.into_iter().collect() }
    }

    /// Groups for a file of these leaf columns. Runs of rows between `cuts` have groups of their own, or, where these
    /// would be too many, share them as a whole.
    pub fn choose(rows: u64, sizes: &RowSizes, cuts: Option<&Cuts>) -> Self {
        let RowSizes { leaves, width, stride, labels } = *sizes;
        let fitting = (STRIDDEN_BYTES / stride.max(1)).max(1);
        // More labels are texts, as a rule: a dictionary would be longer than they are.
        let for_labels = if labels > MOST_LABELLED / ROWS_PER_LABEL { 0 } else { labels * ROWS_PER_LABEL };
        let mut per_group = for_labels.next_power_of_two().max(LEAST_ROWS).min(1 << fitting.ilog2());
        let most = if stride > 0 { MOST_STRIDDEN_CHUNKS } else { MOST_CHUNKS };
        while per_group < MOST_ROWS && rows.div_ceil(per_group).saturating_mul(leaves as u64) > most {
            per_group *= 2;
        }
        let mut groups = Self::new(rows, per_group, cuts.cloned());
        let are_many = |groups: &Self| groups.count().saturating_mul(leaves as u64) > MOST_CUT_CHUNKS;
        if let Some(cuts) = cuts.filter(|_| groups.count() > MOST_SHORT || are_many(&groups)) {
            let mut shared = (SHARED_BYTES / width.max(1)).clamp(1, per_group);
            groups = Self::new(rows, per_group, cuts.joined(shared));
            while shared < per_group && are_many(&groups) {
                shared = (2 * shared).min(per_group);
                groups = Self::new(rows, per_group, cuts.joined(shared));
            }
        }
        groups
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.blocked.rows()
    }

    /// Rows of a group at most.
    pub fn per_group(&self) -> u64 {
        self.blocked.per_block()
    }

    /// Rows of a group as a rule.
    pub fn typical(&self) -> u64 {
        match self.blocked.is_cut() {
            true => self.rows() / self.count().max(1),
            false => self.per_group(),
        }
    }

    /// Number of groups.
    pub fn count(&self) -> u64 {
        self.blocked.count()
    }

    /// Rows of one group.
    pub fn rows_of(&self, group: u64) -> RowRange {
        self.blocked.rows_of(group)
    }
}
