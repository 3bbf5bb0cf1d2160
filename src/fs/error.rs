//! Why a file-system call failed, and the one place where that becomes an errno.

use crate::source::Interrupted;
use crate::{session, store};

/// Why a file-system call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such name.
    #[error("no such file or directory")]
    NotFound,
    /// A directory was needed.
    #[error("not a directory")]
    NotADirectory,
    /// A file was needed.
    #[error("not a file of that kind")]
    NotAFile,
    /// The source changed under the node; the kernel should look it up again.
    #[error("the HDF5 file changed")]
    Stale,
    /// The caller may not do this (any write).
    #[error("read-only file system")]
    ReadOnly,
    /// The node's mode does not permit it.
    #[error("permission denied")]
    NotPermitted,
    /// No extended attribute of that name.
    #[error("no such attribute")]
    NoAttribute,
    /// There is no such control operation: files are no terminals, though Python asks of each whether it is one.
    #[error("no such control operation")]
    NoControl,
    /// The kernel has a way of its own, and takes it once it is told so.
    #[error("left to the kernel")]
    LeftToKernel,
    /// A value does not fit the buffer or the limit.
    #[error("result too large")]
    TooLarge,
    /// The requester has a signal pending.
    #[error("interrupted")]
    Interrupted,
    /// Rows could not be read.
    #[error(transparent)]
    Store(store::Error),
    /// Anything else that stands for a damaged file or a failing worker.
    #[error("{0}")]
    Io(String),
}

impl From<session::Error> for Error {
    fn from(error: session::Error) -> Self {
        match error {
            session::Error::NotFound => Error::NotFound,
            session::Error::NotADirectory => Error::NotADirectory,
            session::Error::NotAFile => Error::NotAFile,
            session::Error::Stale => Error::Stale,
            session::Error::TooLarge => Error::TooLarge,
            session::Error::Interrupted => Error::Interrupted,
            session::Error::Store(error) => Error::Store(error),
            session::Error::Io(reason) => Error::Io(reason),
        }
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Self {
        session::Error::from(interrupted).into()
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        session::Error::from(error).into()
    }
}

impl Error {
    /// The errno a caller sees.
    pub fn errno(&self) -> i32 {
        match self {
            Error::NotFound => libc::ENOENT,
            Error::NotADirectory => libc::ENOTDIR,
            Error::NotAFile => libc::EINVAL,
            Error::Stale => libc::ESTALE,
            Error::ReadOnly => libc::EROFS,
            Error::NotPermitted => libc::EACCES,
            Error::NoAttribute => libc::ENODATA,
            Error::NoControl => libc::ENOTTY,
            Error::LeftToKernel => libc::ENOSYS,
            Error::TooLarge => libc::ERANGE,
            Error::Interrupted => libc::EINTR,
            Error::Store(store::Error::NoMemory { .. }) => libc::ENOMEM,
            Error::Store(_) | Error::Io(_) => libc::EIO,
        }
    }

    /// Writes the error to the log: as a warning where a file or hepfs is at fault, otherwise as a trace.
    pub fn log(&self) {
        match self {
            Error::Store(_) | Error::Io(_) => tracing::warn!("{self}"),
            _ => tracing::trace!("{self}"),
        }
    }
}
