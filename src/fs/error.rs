//! Errors of file-system calls, and the one place that turns them into an errno.

use crate::source::Interrupted;
use crate::{session, store};

/// An error of a file-system call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the session.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// The file system is read-only: the answer to every write.
    #[error("read-only file system")]
    ReadOnly,
    /// The node's mode does not permit the call.
    #[error("permission denied")]
    NotPermitted,
    /// The node has no extended attribute of that name.
    #[error("no such attribute")]
    NoAttribute,
    /// The control operation does not exist. Python asks each file it opens whether it is a terminal.
    #[error("no such control operation")]
    NoControl,
    /// The kernel has its own implementation, and uses it after this answer.
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
    /// The errno that a caller sees.
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

    /// Logs the error: as a warning if a file or hepfs is at fault, otherwise as a trace.
    pub fn log(&self) {
        match self {
            Error::Session(error) => error.log(),
            _ => tracing::trace!("{self}"),
        }
    }
}
