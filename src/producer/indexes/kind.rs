//! Kinds of search indexes.

use clap::ValueEnum;

/// A kind of search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum IndexKind {
    /// CHUNK_MINMAX: minimum and maximum of each chunk
    #[value(name = "minmax")]
    MinMax,
    /// SORTED_ROWS: rows in the order of their values
    Sorted,
    /// BITMAP: the rows of each distinct value
    Bitmap,
    /// CHUNK_BLOOM: a Bloom filter of each chunk
    Bloom,
}

impl IndexKind {
    /// Number of passes over a column that an index takes.
    pub fn passes(self) -> u64 {
        if self == Self::Bitmap { 2 } else { 1 }
    }

    /// The value of the attribute `KIND` of an index.
    pub(super) fn stored_name(self) -> &'static str {
        match self {
            Self::MinMax => "CHUNK_MINMAX",
            Self::Sorted => "SORTED_ROWS",
            Self::Bitmap => "BITMAP",
            Self::Bloom => "CHUNK_BLOOM",
        }
    }
}
