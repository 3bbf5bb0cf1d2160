//! Own statistics of columns: least and greatest value, missing rows and NaN of every block of 65,536 rows, exact.
//!
//! They are learnt from decoded values by a [learner](super::Learner), and kept in the cache folder once every block
//! is known.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Labels`] | labels, for summaries of the codes that lead to them |
//! | `Cells` | strings of one length, for summaries of them as they are stored |
//! | [`Statistics`] | what is known of a column, all of it |
//! | [`Summary`] | what is known of some rows |

mod blocks;
mod cells;
pub(super) mod format;
mod labels;
mod scalar;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use blocks::Blocks;
pub use blocks::GRAIN;
pub(super) use cells::Cells;
pub use labels::Labels;
pub(super) use labels::named;
pub use scalar::{Kind, LONGEST_TEXT, Scalar, Summary};
pub use scan::summary;

/// The statistics of a column: exact, of every block.
#[derive(Debug)]
pub struct Statistics {
    pub(super) blocks: Blocks,
}

impl Statistics {
    /// From blocks that are all known.
    pub(super) fn new(blocks: Blocks) -> Self {
        Self { blocks }
    }

    /// Rows of the column.
    pub fn rows(&self) -> u64 {
        self.blocks.blocked().rows()
    }

    /// The kind of the column's values.
    pub fn kind(&self) -> Kind {
        self.blocks.kind()
    }

    /// Blocks of [`GRAIN`] rows; the last may be short, and each before a [cut](crate::store::Cuts).
    pub fn blocks(&self) -> u64 {
        self.blocks.blocked().count()
    }

    /// Exact counts and bounds of a range of rows. `None` unless the range begins with a block, and ends with one or
    /// with the column.
    pub fn over(&self, rows: Range<u64>) -> Option<Summary> {
        if rows.is_empty() {
            let is_nothing = rows.start == rows.end && rows.end <= self.rows();
            return is_nothing.then(Summary::default);
        }
        self.around(&rows).filter(|(around, _)| *around == rows).map(|(_, summary)| summary)
    }

    /// All rows of the blocks around a range of rows, and their summary. `None` of an empty range, or outside the
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
