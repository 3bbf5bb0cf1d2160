//! Why rows could not be had.

use crate::source::Interrupted;
use crate::{h5, source};

/// Why rows could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be read, is shorter than it says, or changed.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The HDF5 worker could not do its part.
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
        /// Where it lies in the file.
        address: u64,
        /// The filter and what it met.
        reason: String,
    },
    /// A variable-length element leads nowhere.
    #[error("{path}: row {row}: {reason}")]
    Heap {
        /// HDF5 path of the dataset.
        path: String,
        /// The element.
        row: u64,
        /// The fault.
        reason: String,
    },
    /// The dataset cannot be read at all (an unknown filter, external storage, a size that overflows).
    #[error("{path}: {reason}")]
    Unsupported {
        /// HDF5 path of the dataset.
        path: String,
        /// Rule and value.
        reason: String,
    },
    /// Bytes as stored were asked of rows without [`Rows::bytes`](crate::store::Rows::bytes): the caller's bug.
    #[error("rows have no bytes as stored")]
    NotStored,
    /// A chunk or request larger than the memory allowed for it.
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
    /// The system has no memory for it.
    #[error("no memory: {bytes} bytes could not be had from the system")]
    NoMemory {
        /// Bytes needed.
        bytes: u64,
    },
    /// The rows are no longer wanted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Error {
    /// [`Error::Unsupported`], of a dataset and a reason in words.
    pub fn unsupported(path: impl Into<String>, reason: impl ToString) -> Self {
        Self::Unsupported { path: path.into(), reason: reason.to_string() }
    }
}
