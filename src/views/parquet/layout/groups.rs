//! Chooses row groups: how many rows each has.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::store::{Blocked, Cuts, RowRange};

/// Fewest rows of a row group: readers fetch whole column chunks, so this is the grain of most reads.
const LEAST_ROWS: u64 = 131_072;

/// Most bytes of whole rows in a row group, if columns are fields of one dataset: an engine reads one column chunk
/// after the other, and the chunks decoded for the first must still be in memory for the last.
const STRIDDEN_BYTES: u64 = 32 << 20;

/// Fewest rows of a row group per label or number of a dictionary, since each row group has its own.
pub(in crate::views::parquet) const ROWS_PER_LABEL: u64 = 8;

/// Most rows of a row group that is enlarged for the sake of its dictionaries.
const MOST_LABELLED: u64 = 1 << 19;

/// Most rows of a row group: a page of 8-byte values then has 128 MiB, far below the limit of a page header.
pub(super) const MOST_ROWS: u64 = 16 << 20;

/// Most column chunks of all row groups, unless row groups have [`MOST_ROWS`]: each costs some 200 bytes of footer.
const MOST_CHUNKS: u64 = 50_000;

/// Most column chunks of all row groups for fields of one dataset: reading a longer footer once costs less than
/// decoding an evicted row group once per field.
const MOST_STRIDDEN_CHUNKS: u64 = 8 * MOST_CHUNKS;

/// Most row groups of rows that are [cut](Cuts), whatever their size. DuckDB reads 1 MB for each list column of each
/// row group, however short this is.
const MOST_SHORT: u64 = 256;

/// About the most bytes of whole rows in a row group that runs of rows share, once they would make more than
/// [`MOST_SHORT`].
const SHARED_BYTES: u64 = 1 << 20;

/// Most column chunks of all row groups if rows are cut. With more, several runs of rows share a row group.
const MOST_CUT_CHUNKS: u64 = 2 * MOST_CHUNKS;

/// Sizes of the rows of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::views::parquet) struct RowSizes {
    /// Number of leaf columns.
    pub leaves: usize,
    /// About how many bytes a row takes.
    pub width: u64,
    /// The longest [stride](crate::store::Facts::stride).
    pub stride: u64,
    /// Number of labels of the longest dictionary.
    pub labels: u64,
}

/// Row groups: equally long, except the last, and those before a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct Groups {
    blocked: Blocked,
    /// Rows at which row groups end in any case.
    pub cuts: Option<Cuts>,
    /// Distinct numbers of rows of the shorter row groups.
    pub(super) short: Arc<[u64]>,
}

impl Groups {
    /// Makes row groups of `per_group` rows, a power of two.
    pub fn new(rows: u64, per_group: u64, cuts: Option<Cuts>) -> Self {
        let blocked = Blocked::new(rows, per_group, cuts.as_ref());
        let first = if blocked.is_cut() { 0 } else { blocked.count().saturating_sub(1) };
        let lengths = (first..blocked.count()).map(|group| blocked.rows_of(group)).map(|rows| rows.end - rows.start);
        let short: BTreeSet<u64> = lengths.filter(|rows| *rows < per_group).collect();
        Self { blocked, cuts, short: short.into_iter().collect() }
    }

    /// Chooses row groups for a file of these leaf columns. Runs of rows between `cuts` get row groups of their own; if
    /// these would be too many, whole runs share row groups.
    pub fn choose(rows: u64, sizes: &RowSizes, cuts: Option<&Cuts>) -> Self {
        let RowSizes { leaves, width, stride, labels } = *sizes;
        let fitting = (STRIDDEN_BYTES / stride.max(1)).max(1);
        // That many labels are usually texts that take less than a dictionary would.
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

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.blocked.rows()
    }

    /// Returns the most rows of a row group.
    pub fn per_group(&self) -> u64 {
        self.blocked.per_block()
    }

    /// Returns the typical number of rows of a row group.
    pub fn typical(&self) -> u64 {
        match self.blocked.is_cut() {
            true => self.rows() / self.count().max(1),
            false => self.per_group(),
        }
    }

    /// Returns the number of row groups.
    pub fn count(&self) -> u64 {
        self.blocked.count()
    }

    /// Returns the rows of one row group.
    pub fn rows_of(&self, group: u64) -> RowRange {
        self.blocked.rows_of(group)
    }
}
