//! Why a source, or an object in it, cannot be read.

use crate::source::Interrupted;
use crate::{h5, source, store};

/// Why a source, or an object in it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing has this name.
    #[error("no such file or directory")]
    NotFound,
    /// A file or link was used as a directory.
    #[error("not a directory")]
    NotADirectory,
    /// A directory was used as a file.
    #[error("not a file of that kind")]
    NotAFile,
    /// The source changed since it was opened.
    #[error("the HDF5 file changed")]
    Stale,
    /// A size exceeds a limit.
    #[error("result too large")]
    TooLarge,
    /// The requester is no longer waiting.
    #[error("interrupted")]
    Interrupted,
    /// Rows could not be read.
    #[error(transparent)]
    Store(store::Error),
    /// Any other failure: a damaged file, or a failing worker.
    #[error("{0}")]
    Io(String),
}

impl From<Interrupted> for Error {
    fn from(_: Interrupted) -> Self {
        Error::Interrupted
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Interrupted(_) => Error::Interrupted,
            store::Error::Source(source::Error::Changed(_)) => Error::Stale,
            store::Error::Hdf5 { error: h5::Error::Interrupted, .. } => Error::Interrupted,
            store::Error::Hdf5 { error: h5::Error::Source(error), .. } if error.is_change() => Error::Stale,
            other => Error::Store(other),
        }
    }
}

impl Error {
    /// Logs the error: as a warning if a file or hepfs is at fault, otherwise as a trace.
    pub(crate) fn log(&self) {
        match self {
            Error::Store(_) | Error::Io(_) => tracing::warn!("{self}"),
            _ => tracing::trace!("{self}"),
        }
    }
}
