//! Errors of requests to the worker.

use std::sync::Arc;

use super::protocol::WorkerRefusal;
use crate::source;

/// An error of a request to the worker.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libhdf5 refused, with its own words (innermost message of its error stack first).
    #[error("{0}")]
    Hdf5(String),
    /// A mapping of a virtual dataset points beyond its source: libhdf5 would return arbitrary bytes.
    #[error("{0}")]
    Beyond(String),
    /// The file is not an HDF5 file, or one of an unsupported kind.
    #[error("{0}")]
    NotHdf5(String),
    /// The worker died during this request.
    #[error("the HDF5 library crashed while {0}")]
    Died(String),
    /// The worker did not answer in time.
    #[error("the HDF5 library did not finish {what} within {limit}")]
    Deadline {
        /// The request, in words.
        what: String,
        /// The limit, in seconds of wall time or of processor time, or in bytes of an object.
        limit: String,
    },
    /// The request killed or hung a worker twice before, so the client refuses it.
    #[error("refused: {0} crashed or hung the HDF5 library before")]
    Poisoned(String),
    /// The answer would exceed the limit of a request.
    #[error("{what} needs {bytes} bytes, more than the {limit} a request may take")]
    TooLarge {
        /// The request, in words.
        what: String,
        /// Bytes that the answer needs.
        bytes: u64,
        /// Bytes that an answer may take.
        limit: u64,
    },
    /// The worker did not start, or does not respond.
    #[error("cannot run the HDF5 worker: {0}")]
    Worker(String),
    /// The bytes that the worker asked for cannot be read.
    #[error(transparent)]
    Source(Arc<source::Error>),
    /// The caller has stopped waiting.
    #[error("interrupted")]
    Interrupted,
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        match error {
            source::Error::Interrupted(_) => Error::Interrupted,
            error => Error::Source(Arc::new(error)),
        }
    }
}

impl From<WorkerRefusal> for Error {
    fn from(refusal: WorkerRefusal) -> Self {
        match refusal {
            WorkerRefusal::Hdf5(reason) => Error::Hdf5(reason),
            WorkerRefusal::Beyond(reason) => Error::Beyond(reason),
            WorkerRefusal::NotHdf5(reason) => Error::NotHdf5(reason),
            WorkerRefusal::TooLarge { what, bytes, limit } => Error::TooLarge { what, bytes, limit },
        }
    }
}
