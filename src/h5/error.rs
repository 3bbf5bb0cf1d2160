//! Why a request to the worker failed.

use super::protocol::Refusal;

/// Why a request to the worker failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libhdf5 refused, with its own words (innermost message of its error stack first).
    #[error("{0}")]
    Hdf5(String),
    /// A mapping of a virtual dataset leads to where its source has nothing: libhdf5 would give bytes of anything.
    #[error("{0}")]
    Beyond(String),
    /// The file is no HDF5 file, or a kind that is not supported.
    #[error("{0}")]
    NotHdf5(String),
    /// The worker died while executing this request.
    #[error("the HDF5 library crashed while {0}")]
    Died(String),
    /// The worker did not answer in time.
    #[error("the HDF5 library did not finish {what} within {limit}")]
    Deadline {
        /// What was asked.
        what: String,
        /// The limit, in seconds of wall time or of processor time.
        limit: String,
    },
    /// The request killed or hung a worker twice before and is not tried again.
    #[error("refused: {0} crashed or hung the HDF5 library before")]
    Poisoned(String),
    /// The answer would be larger than a request may be.
    #[error("{what} needs {bytes} bytes, more than the {limit} a request may take")]
    TooLarge {
        /// What was asked.
        what: String,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The worker could not be started or spoken to.
    #[error("cannot run the HDF5 worker: {0}")]
    Worker(String),
    /// The caller has stopped waiting.
    #[error("interrupted")]
    Interrupted,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Hdf5(reason) => Error::Hdf5(reason),
            Refusal::Beyond(reason) => Error::Beyond(reason),
            Refusal::NotHdf5(reason) => Error::NotHdf5(reason),
            Refusal::TooLarge { what, bytes, limit } => Error::TooLarge { what, bytes, limit },
        }
    }
}
