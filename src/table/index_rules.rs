//! The rules that the verification of a search index may find broken, in the words of its dialect.
//!
//! Verification is the same for all dialects; each dialect only names the rules by its own specification.

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
    /// The tails have the lengths that the index states.
    pub tails: &'static Rule,
}

/// Rules of an index of sorted values with their rows.
#[derive(Debug)]
pub struct ValueRules {
    /// Row numbers are rows of the column.
    pub elements: &'static Rule,
    /// No row occurs twice.
    pub distinct: &'static Rule,
    /// Each value is that of its row.
    pub values: &'static Rule,
    /// Values ascend.
    pub order: &'static Rule,
}

/// Rules of an index with bounds for runs of rows.
#[derive(Debug)]
pub struct BoundsRules {
    /// Bounds are the least and the greatest value of the run.
    pub bounds: &'static Rule,
}

/// Rules of an index of bitmaps.
#[derive(Debug)]
pub struct BitmapRules {
    /// No value has two bitmaps.
    pub distinct: &'static Rule,
    /// An index that declares itself exhaustive has a bitmap for every value.
    pub exhaustive: &'static Rule,
    /// Bits are set exactly for the rows with the value.
    pub bits: &'static Rule,
}

/// Rules of an index of Bloom filters.
#[derive(Debug)]
pub struct BloomRules {
    /// A filter holds every value of its chunk.
    pub values: &'static Rule,
}
