//! Why rows cannot be read.

use crate::source::Interrupted;
use crate::{h5, source};

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source cannot be read, is truncated, or changed.
    #[error(transparent)]
    Source(source::Error),
    /// The HDF5 worker failed.
    #[error("{path}: {error}")]
    Hdf5 {
        /// HDF5 path of the dataset.
        path: String,
        /// The worker's reason.
        error: h5::Error,
    },
    /// A stored chunk does not decode.
    #[error("{path}: chunk {chunk} (byte {address}): {reason}")]
    Chunk {
        /// HDF5 path of the dataset.
        path: String,
        /// Position in the grid of chunks.
        chunk: u64,
        /// The chunk's address in the file.
        address: u64,
        /// The fault, such as a filter and its error.
        reason: String,
    },
    /// A variable-length element dangles.
    #[error("{path}: row {row}: {reason}")]
    Heap {
        /// HDF5 path of the dataset.
        path: String,
        /// The row of the element.
        row: u64,
        /// The fault.
        reason: String,
    },
    /// The dataset cannot be read at all (an unknown filter, external storage, an overflowing size).
    #[error("{path}: {reason}")]
    Unsupported {
        /// HDF5 path of the dataset.
        path: String,
        /// Why the dataset cannot be read.
        reason: String,
    },
    /// Stored bytes were requested from rows without [`Rows::bytes`](crate::store::Rows::bytes): a bug in the caller.
    #[error("rows have no bytes as stored")]
    NotStored,
    /// A chunk or request exceeds its memory limit.
    #[error("{path}: {what} takes {bytes} bytes, more than the {limit} allowed ({option})")]
    TooLarge {
        /// HDF5 path of the dataset.
        path: String,
        /// The part that is too large.
        what: String,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
        /// The option that sets the limit.
        option: &'static str,
    },
    /// The system is out of memory.
    #[error("no memory: {bytes} bytes could not be had from the system")]
    NoMemory {
        /// Bytes needed.
        bytes: u64,
    },
    /// The requester no longer wants the rows.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        match error {
            source::Error::Interrupted(interrupted) => Self::Interrupted(interrupted),
            error => Self::Source(error),
        }
    }
}

impl Error {
    /// [`Error::Unsupported`] for a dataset, with a reason.
    pub fn unsupported(path: impl Into<String>, reason: impl ToString) -> Self {
        Self::Unsupported { path: path.into(), reason: reason.to_string() }
    }
}
