//! The rules that verification may find broken, in the words of the dialect that the index is of.
//!
//! How an index is held against its column does not depend on the dialect; what its specification calls the rule does.

use super::Rule;

/// Rules of an index of least and greatest values.
#[derive(Debug)]
pub struct MinMaxRules {
    /// An entry counts the rows of its chunk.
    pub rows: &'static Rule,
    /// An entry counts the missing values of its chunk.
    pub missing: &'static Rule,
    /// An entry counts the NaN of its chunk.
    pub nans: &'static Rule,
    /// An entry has the least value of its chunk.
    pub least: &'static Rule,
    /// An entry has the greatest value of its chunk.
    pub greatest: &'static Rule,
}

/// Rules of an index of rows in the order of their values.
#[derive(Debug)]
pub struct SortedRules {
    /// Elements are rows of the column.
    pub elements: &'static Rule,
    /// Rows stand in the order of their values.
    pub order: &'static Rule,
    /// The tails are as long as the index says.
    pub tails: &'static Rule,
}

/// Rules of an index of values in order, and their rows.
#[derive(Debug)]
pub struct ValueRules {
    /// Row numbers are rows of the column.
    pub elements: &'static Rule,
    /// No row stands there twice.
    pub distinct: &'static Rule,
    /// Each value is that of its row.
    pub values: &'static Rule,
    /// Values ascend.
    pub order: &'static Rule,
}

/// Rules of an index of bounds of runs of rows.
#[derive(Debug)]
pub struct BoundsRules {
    /// They are the least and the greatest value of the run.
    pub bounds: &'static Rule,
}

/// Rules of an index of bitmaps.
#[derive(Debug)]
pub struct BitmapRules {
    /// No value has two bitmaps.
    pub distinct: &'static Rule,
    /// An index that says so has a bitmap for every value.
    pub exhaustive: &'static Rule,
    /// Bits are those of the rows with the value.
    pub bits: &'static Rule,
}

/// Rules of an index of Bloom filters.
#[derive(Debug)]
pub struct BloomRules {
    /// A filter holds every value of its chunk.
    pub values: &'static Rule,
}
