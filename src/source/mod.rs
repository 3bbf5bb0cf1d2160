//! An opened source: the lowest layer.
//!
//! Everything above reads bytes through [`Source::read_at`] and asks [`Source::check`] whether those bytes still belong
//! to the file that was opened. While the kernel passes bytes on by itself, a [`ReadLease`] keeps them from changing. A
//! source is a local file today; an object store could serve the same calls, but would give no leases.
//!
//! Reads use `pread`, never `mmap`: a file that is truncated under a mapping kills the process with `SIGBUS`, while a
//! short `pread` is an error like any other.

pub mod holders;
mod identity;
mod interrupt;
mod lease;
pub mod mounts;
mod stat;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use parking_lot::Mutex;

pub use identity::Identity;
pub use interrupt::{Interrupt, Interrupted};
pub use lease::ReadLease;
pub use stat::{StatMemo, changes, stat, stat_calls};

/// Why a source could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused the call.
    #[error("{path}: {error}{}", limit_met(.error), path = .path.display())]
    Io {
        /// The requested file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The path is not a regular file (but a folder, a device, a pipe).
    #[error("{path}: not a regular file", path = .0.display())]
    NotAFile(PathBuf),
    /// The file ends before the last byte asked for.
    #[error("{path}: ends at byte {size}, but bytes {offset}..{end} were asked for", path = .path.display())]
    Truncated {
        /// The file read.
        path: PathBuf,
        /// First byte asked for.
        offset: u64,
        /// One past the last byte asked for.
        end: u64,
        /// Where the file ends now.
        size: u64,
    },
    /// The file was rewritten in place since it was opened.
    #[error("{path}: changed since it was opened", path = .0.display())]
    Changed(PathBuf),
}

/// The limit of the process behind an error, for the end of a message; empty: none.
pub fn limit_met(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => ": `ulimit -n` is too small",
        Some(libc::EAGAIN) => ": `ulimit -u` or `-v` is too small",
        Some(libc::ENOMEM) => ": `ulimit -v` is too small, or the memory",
        _ => "",
    }
}

/// A file opened once for reading. The HDF5 worker shares its descriptor, so both processes read the same inode.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    file: File,
    opened: Identity,
    settled: bool,
    last_seen: Mutex<Identity>,
    /// Whether the file system gives this user no leases.
    has_no_leases: AtomicBool,
}

impl Source {
    /// Opens `path` for reading and records its identity.
    ///
    /// # Errors
    /// [`Error::Io`] where the system refuses, [`Error::NotAFile`] for anything but a regular file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = |error| Error::Io { path: path.to_owned(), error };
        // A FIFO would block for ever in open(2); look before opening.
        if !stat::stat_now(path).map_err(io)?.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let era = stat::Era::now();
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let opened = Identity::of(&metadata);
        // Opening the path has looked it up as well. The request that opens a source must go on seeing that state.
        stat::note(path, era, Ok(metadata));
        let settled = opened.is_settled_at(SystemTime::now());
        Ok(Self {
            path: path.to_owned(),
            file,
            opened,
            settled,
            last_seen: Mutex::new(opened),
            has_no_leases: AtomicBool::new(false),
        })
    }

    /// The path given to [`Source::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The identity when the file was opened.
    pub fn identity(&self) -> Identity {
        self.opened
    }

    /// Whether the file had not changed for a while when it was opened, so that any change since has moved its times.
    /// Only then does the identity stand for the content, today and later.
    pub fn was_settled(&self) -> bool {
        self.settled
    }

    /// Fills `out` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Truncated`] where the file ends first, [`Error::Io`] where the system refuses.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        match self.file.read_exact_at(out, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.truncated(offset, out.len())),
            Err(error) => Err(Error::Io { path: self.path.clone(), error }),
        }
    }

    /// Appends `length` bytes from byte `offset` on to `out`, into memory that is not cleared first: clearing would
    /// cost a tenth of a large read.
    ///
    /// # Errors
    /// As [`Source::read_at`]; `out` is as it was then.
    pub fn append_at(&self, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        out.reserve(length);
        let mut done = 0;
        while done < length {
            let room = out.spare_capacity_mut().get_mut(..length - done).unwrap_or_default();
            let read = match rustix::io::pread(&self.file, room, offset.saturating_add(done as u64)) {
                Ok((read, _)) => read.len(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    out.truncate(before);
                    return Err(Error::Io { path: self.path.clone(), error: error.into() });
                }
            };
            if read == 0 {
                out.truncate(before);
                return Err(self.truncated(offset, length));
            }
            done += read;
            // SAFETY: `pread` has filled `read` bytes after the old length, which lie within the capacity.
            unsafe { out.set_len(before + done) };
        }
        Ok(())
    }

    fn truncated(&self, offset: u64, length: usize) -> Error {
        Error::Truncated {
            path: self.path.clone(),
            offset,
            end: offset.saturating_add(length as u64),
            size: self.file.metadata().map(|m| m.size()).unwrap_or(0),
        }
    }

    /// Checks that the bytes behind the open descriptor are still those that were opened.
    ///
    /// A replacement by `rename` leaves them as they are (the old inode lives on); a rewrite in place does not.
    ///
    /// # Errors
    /// [`Error::Changed`] after a rewrite in place, [`Error::Io`] where `fstat` fails.
    pub fn check(&self) -> Result<(), Error> {
        let metadata = self.file.metadata().map_err(|error| Error::Io { path: self.path.clone(), error })?;
        let now = Identity::of(&metadata);
        let mut last = self.last_seen.lock();
        if now == *last {
            return Ok(());
        }
        // Renaming the file, or another one to its name, changes only its ctime, and leaves the path to another file or
        // to none.
        if last.same_content_as(&now) && !self.has_its_path() {
            *last = now;
            return Ok(());
        }
        Err(Error::Changed(self.path.clone()))
    }

    /// Whether the source's path still leads to the file that was opened. Asks anew, since what the request saw before
    /// the descriptor's metadata changed says nothing about why they did.
    fn has_its_path(&self) -> bool {
        let inode = |identity: Identity| (identity.device, identity.inode);
        stat::stat_now(&self.path).is_ok_and(|now| inode(Identity::of(&now)) == inode(self.opened))
    }

    /// The identity of the file that is at the source's path now. Each request looks it up once; see [`stat`].
    ///
    /// # Errors
    /// [`Error::Io`] where the path leads to no file.
    pub fn identity_at_path(&self) -> Result<Identity, Error> {
        let metadata = stat::stat(&self.path).map_err(|error| Error::Io { path: self.path.clone(), error })?;
        Ok(Identity::of(&metadata))
    }

    /// The file's metadata as it is now.
    ///
    /// # Errors
    /// [`Error::Io`] where `fstat` fails.
    pub fn metadata(&self) -> Result<std::fs::Metadata, Error> {
        self.file.metadata().map_err(|error| Error::Io { path: self.path.clone(), error })
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
