//! Why a file-system call failed, and the one place where that becomes an errno.

use crate::source::Interrupted;
use crate::{session, store};

/// Why a file-system call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A session cannot do it.
    #[error(transparent)]
    Session(#[from] session::Error),
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
            Error::Session(session::Error::NotFound) => libc::ENOENT,
            Error::Session(session::Error::NotADirectory) => libc::ENOTDIR,
            Error::Session(session::Error::NotAFile) => libc::EINVAL,
            Error::Session(session::Error::Stale) => libc::ESTALE,
            Error::ReadOnly => libc::EROFS,
            Error::NotPermitted => libc::EACCES,
            Error::NoAttribute => libc::ENODATA,
            Error::NoControl => libc::ENOTTY,
            Error::LeftToKernel => libc::ENOSYS,
            Error::Session(session::Error::TooLarge) => libc::ERANGE,
            Error::Session(session::Error::Interrupted) => libc::EINTR,
            Error::Session(session::Error::Store(store::Error::NoMemory { .. })) => libc::ENOMEM,
            Error::Session(session::Error::Store(_) | session::Error::Io(_)) => libc::EIO,
        }
    }

    /// Writes the error to the log: as a warning where a file or hepfs is at fault, otherwise as a trace.
    pub fn log(&self) {
        match self {
            Error::Session(error) => error.log(),
            _ => tracing::trace!("{self}"),
        }
    }
}
