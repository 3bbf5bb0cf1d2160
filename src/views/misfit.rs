//! Errors for columns and arrays that a file format cannot represent.

use crate::table::Unreadable;

/// Why a file format cannot represent a column, or an array of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The column's rows cannot be read.
    #[error(transparent)]
    Rows(#[from] Unreadable),
    /// The format has no type for the values.
    #[error("{0}")]
    Type(String),
    /// The format cannot count as many rows, elements or bytes.
    #[error("{0}")]
    Size(String),
    /// An array contradicts its column: another type, a null where none is allowed, an element out of range.
    #[error("{0}")]
    Array(String),
}
