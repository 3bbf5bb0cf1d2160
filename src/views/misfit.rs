//! Columns and arrays that a file format cannot hold.

use crate::table::Unreadable;

/// A column, or an array of it, that a file of some format has no place for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The column has no rows that can be read.
    #[error(transparent)]
    Rows(#[from] Unreadable),
    /// The format has no such type.
    #[error("{0}")]
    Type(String),
    /// The format cannot count as many rows, elements or bytes.
    #[error("{0}")]
    Size(String),
    /// An array is not what its column said: another type, a null where none can be, an element outside.
    #[error("{0}")]
    Array(String),
}
