//! Errors of a change of a file.

use crate::h5::WriteError;
use crate::store;

/// Why a table or a search index was not written or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table or column cannot be written, or cannot have such an index.
    #[error("{path}: {reason}")]
    Refused {
        /// HDF5 path of the column, table or index.
        path: String,
        /// The rule that is broken, and how.
        reason: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] store::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Error {
    /// The error for a table, column or index that is refused for this reason.
    pub(super) fn refused(path: &str, reason: impl Into<String>) -> Self {
        Error::Refused { path: path.to_owned(), reason: reason.into() }
    }
}
