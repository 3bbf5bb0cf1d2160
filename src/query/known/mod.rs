//! Answers about a range of rows without decoding it.
//!
//! They come from hepfs's own statistics, and from search indexes that may be used ([`answer`]).

pub(super) mod answer;
mod sorted;

use std::ops::Range;

use arrow_buffer::BooleanBuffer;

use super::ranges::{Lie, ValueTest};
use crate::source::Interrupt;
use crate::store::statistics::{Statistics, Summary};

/// The opinion of statistics or an index about a range of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsVerdict {
    /// No row matches.
    Nothing,
    /// Every row matches.
    Everything,
    /// The values decide.
    Unknown,
}

/// A question about a range of rows.
pub(super) struct Ask<'a> {
    /// The condition that rows must satisfy.
    pub test: &'a ValueTest,
    pub rows: &'a Range<u64>,
    pub interrupt: &'a Interrupt,
}

/// A trusted source of answers about a column's rows that decodes no rows. A source that fails gives no answer.
pub(super) trait Known: Send + Sync {
    /// Returns whether none, all, or an unknown part of the rows satisfy the condition.
    fn verdict(&self, ask: &Ask<'_>) -> RowsVerdict;

    /// Finds the rows that satisfy the condition: one bit per row. `None`: the source does not know them.
    fn bits(&self, ask: &Ask<'_>) -> Option<BooleanBuffer> {
        let _ = ask;
        None
    }

    /// Counts the rows that satisfy the condition in each of the first blocks, as far as the source has the counts
    /// together. The last block may end early at the last row. Empty: the source cannot count without finding the rows.
    fn counts(&self, ask: &Ask<'_>) -> Vec<u32> {
        let _ = ask;
        Vec::new()
    }
}

impl Known for Statistics {
    fn verdict(&self, ask: &Ask<'_>) -> RowsVerdict {
        // A verdict on more rows also holds for these.
        self.around(ask.rows).map_or(RowsVerdict::Unknown, |(_, summary)| of_summary(ask.test, &summary))
    }
}

/// Returns the verdict by a summary. The least and the greatest value bound all values; NaN lies in no range, and a
/// null satisfies no comparison.
pub(super) fn of_summary(test: &ValueTest, summary: &Summary) -> RowsVerdict {
    let all_missing = summary.nulls == summary.rows;
    let none_missing = summary.nulls == 0;
    let (nothing, everything) = match test {
        ValueTest::Null => (none_missing, all_missing),
        ValueTest::Valid => (all_missing, none_missing),
        // Nulls may be stored as NaN.
        ValueTest::Nan => (none_missing && summary.nans == 0, summary.nans == summary.rows),
        ValueTest::NotNan => (summary.values() == 0, none_missing && summary.nans == 0),
        ValueTest::Compare { ranges, negated } => {
            let lie = match (&summary.min, &summary.max) {
                _ if summary.values() == 0 => None,
                (Some(least), Some(greatest)) => Some(ranges.lie(least, greatest)),
                _ => Some(Lie::Unknown),
            };
            let within = lie.is_none_or(|lie| lie == Lie::Inside) && summary.nans == 0;
            let outside = lie.is_none_or(|lie| lie == Lie::Outside);
            let (never, always) = if *negated { (within, outside) } else { (outside, within) };
            (never || all_missing, always && none_missing)
        }
    };
    match (nothing, everything) {
        (true, _) => RowsVerdict::Nothing,
        (false, true) => RowsVerdict::Everything,
        (false, false) => RowsVerdict::Unknown,
    }
}
