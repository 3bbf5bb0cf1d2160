//! Statistics of columns: exact least and greatest value, nulls and NaN of every block of 65,536 rows.
//!
//! A learner gathers them from decoded values; once every block is known, they are stored in the
//! cache folder.
//!
//! | part | contents |
//! | --- | --- |
//! | [`CodeLabels`] | labels, for summaries of their codes |
//! | `FixedStrings` | fixed-length strings, for summaries of them in stored form |
//! | [`Statistics`] | the summaries of all blocks of a column |
//! | [`Summary`] | the counts and bounds of some rows |

mod blocks;
mod cells;
pub(crate) mod format;
mod labels;
mod scalar;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use blocks::BlockSummaries;
pub use blocks::GRAIN;
pub(super) use cells::FixedStrings;
pub use labels::CodeLabels;
pub(super) use labels::named;
pub use scalar::{LONGEST_TEXT, Scalar, ScalarKind, Summary};
pub use scan::summary;

/// Decodes an entry of the cache folder and encodes it again; `None`: not the statistics of `rows` rows of this kind.
#[cfg(feature = "fuzzing")]
pub fn encoded_again(entry: &[u8], kind: ScalarKind, rows: u64) -> Option<Vec<u8>> {
    let blocked = crate::store::Blocked::new(rows, GRAIN, None);
    format::decode(entry, kind, &blocked).map(|blocks| format::encode(&blocks))
}

/// The statistics of a column: exact summaries of every block.
#[derive(Debug)]
pub struct Statistics {
    pub(crate) blocks: BlockSummaries,
}

impl Statistics {
    /// From complete blocks.
    pub(crate) fn new(blocks: BlockSummaries) -> Self {
        Self { blocks }
    }

    /// Rows of the column.
    pub fn rows(&self) -> u64 {
        self.blocks.blocked().rows()
    }

    /// The kind of the column's values.
    pub fn kind(&self) -> ScalarKind {
        self.blocks.kind()
    }

    /// Number of blocks of [`GRAIN`] rows; the last may be short, and so may each before a [cut](crate::store::Cuts).
    pub fn blocks(&self) -> u64 {
        self.blocks.blocked().count()
    }

    /// Exact counts and bounds of a range of rows. `None`: the range does not begin at a block's start, or ends neither
    /// at a block's end nor the column's.
    pub fn over(&self, rows: Range<u64>) -> Option<Summary> {
        if rows.is_empty() {
            let is_nothing = rows.start == rows.end && rows.end <= self.rows();
            return is_nothing.then(Summary::default);
        }
        self.around(&rows).filter(|(around, _)| *around == rows).map(|(_, summary)| summary)
    }

    /// All rows of the blocks around a range of rows, and their summary. `None`: the range is empty, or exceeds the
    /// column.
    pub fn around(&self, rows: &Range<u64>) -> Option<(Range<u64>, Summary)> {
        let blocked = self.blocks.blocked();
        if rows.is_empty() || rows.end > self.rows() {
            return None;
        }
        let blocks = blocked.blocks_of(rows);
        let around = blocked.rows_of(blocks.start).start..blocked.rows_of(blocks.end - 1).end;
        let mut all = blocks.map(|block| self.blocks.get(block));
        Some((around, all.try_fold(Summary::default(), |sum, block| Some(sum.merge(block?)))?))
    }
}
