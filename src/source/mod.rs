//! An opened source: the lowest layer.
//!
//! Everything above reads bytes through [`Source::read_at`] and asks [`Source::check`] whether those bytes still belong
//! to what was opened. A source is a local file (`local`), or an object in a store on a network (`remote`); nothing
//! above asks which. While the kernel passes bytes of a file on by itself, a [`ReadLease`] keeps them from changing.
//!
//! Reads of files use `pread`, never `mmap`: a file that is truncated under a mapping kills the process with `SIGBUS`,
//! while a short `pread` is an error like any other.

mod descriptors;
pub mod holders;
mod identity;
mod interrupt;
mod lease;
mod local;
pub mod mounts;
mod remote;
mod stat;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use local::LocalFile;
use remote::RemoteSource;

pub use descriptors::{are_too_many_open, most_open};
pub use identity::{Identity, ObjectVersion, SourceState};
pub use interrupt::{Interrupt, Interrupted};
pub use lease::ReadLease;
pub use remote::{FETCHED_WHOLE, Listed, ObjectStore, Opener, RemoteObject, absolute, folder_of, is_address, matches};
pub use stat::{SourceKind, SourceStat, Stamp, StatMemo, changes, stat, stat_calls};

/// Bytes to hash at once.
const PIECE: usize = 1 << 20;

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
    /// The source was rewritten in place since it was opened.
    #[error("{path}: changed since it was opened", path = .0.display())]
    Changed(PathBuf),
    /// The address is one of a store on a network, and there is no such store here.
    #[error("{path}: this program opens local files only", path = .0.display())]
    NoStore(PathBuf),
    /// The requester no longer waits.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Error {
    /// Whether the source has changed since it was opened.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Changed(_))
    }
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

/// Bytes opened once for reading.
#[derive(Debug)]
pub struct Source(Origin);

/// Where the bytes of a source lie.
#[derive(Debug)]
enum Origin {
    Local(LocalFile),
    Remote(RemoteSource),
}

impl Source {
    /// Opens the file at `path` for reading and records its identity.
    ///
    /// # Errors
    /// [`Error::Io`] where the system refuses, [`Error::NotAFile`] for anything but a regular file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self(Origin::Local(LocalFile::open(path)?)))
    }

    fn remote(object: RemoteSource) -> Self {
        Self(Origin::Remote(object))
    }

    /// The path, or the address, by which it was opened.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Origin::Local(file) => &file.path,
            Origin::Remote(object) => &object.address,
        }
    }

    /// The folder of the file, in which others may belong to it. `None`: an object, which leads to no file.
    pub fn folder(&self) -> Option<&Path> {
        match &self.0 {
            Origin::Local(file) => {
                let folder = file.path.parent().filter(|folder| !folder.as_os_str().is_empty());
                Some(folder.unwrap_or(Path::new(".")))
            }
            Origin::Remote(_) => None,
        }
    }

    /// The descriptor of the file, which the HDF5 worker shares, so that both processes read the same inode. `None`: an
    /// object has none.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Origin::Local(file) => Some(file.as_fd()),
            Origin::Remote(_) => None,
        }
    }

    /// The identity when the source was opened.
    pub fn identity(&self) -> Identity {
        match &self.0 {
            Origin::Local(file) => file.opened,
            Origin::Remote(object) => object.opened.identity,
        }
    }

    /// Whether any change since the source was opened has changed its identity. A file must not have changed for a
    /// while, so that its times have moved; an object's version always differs. Only then does the identity stand for
    /// the content, today and later.
    pub fn was_settled(&self) -> bool {
        match &self.0 {
            Origin::Local(file) => file.settled,
            Origin::Remote(_) => true,
        }
    }

    /// Fills `out` from byte `offset` on. A read of a file ignores the interrupt, since it cannot be stopped.
    ///
    /// # Errors
    /// [`Error::Truncated`] where the source ends first, [`Error::Io`] where the system or the store refuses,
    /// [`Error::Changed`] where a store has another version by now, [`Error::Interrupted`].
    pub fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        match &self.0 {
            Origin::Local(file) => file.read_at(offset, out),
            Origin::Remote(object) => object.read_at(offset, out, interrupt),
        }
    }

    /// Appends `length` bytes from byte `offset` on to `out`.
    ///
    /// # Errors
    /// As [`Source::read_at`]; `out` is as it was then.
    pub fn append_at(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        match &self.0 {
            Origin::Local(file) => file.append_at(offset, length, out),
            Origin::Remote(object) => {
                let before = out.len();
                out.resize(before + length, 0);
                object.read_at(offset, &mut out[before..], interrupt).inspect_err(|_| out.truncate(before))
            }
        }
    }

    /// The SHA-256 of all bytes, which are those of the source as it was opened.
    ///
    /// # Errors
    /// As [`Source::read_at`]; [`Error::Changed`] where the source changed meanwhile.
    pub fn digest(&self, interrupt: &Interrupt) -> Result<[u8; 32], Error> {
        let (mut hash, mut piece, mut at) = (Sha256::new(), vec![0; PIECE], 0);
        let size = self.identity().size;
        while at < size {
            interrupt.check()?;
            let left = usize::try_from(size - at).unwrap_or(usize::MAX);
            let piece = piece.get_mut(..left.min(PIECE)).unwrap_or_default();
            self.read_at(at, piece, interrupt)?;
            hash.update(&*piece);
            at += piece.len() as u64;
        }
        self.check()?;
        Ok(hash.finalize().into())
    }

    /// Whether reads wait for a network, so that it is worth while to [plan](Source::plan) them.
    pub fn is_remote(&self) -> bool {
        matches!(self.0, Origin::Remote(_))
    }

    /// Whether all its bytes are at hand after the first read: those of a file, and of a small object.
    pub fn comes_whole(&self) -> bool {
        match &self.0 {
            Origin::Local(_) => true,
            Origin::Remote(object) => object.comes_whole(),
        }
    }

    /// Announces ranges that will be read soon, in this order. An object's store is then asked for them side by side,
    /// within its limits; ranges that are empty, or pass the end, are left out. A file's are left to the kernel.
    pub fn plan(&self, ranges: impl Iterator<Item = Range<u64>>) {
        if let Origin::Remote(object) = &self.0 {
            object.plan(ranges);
        }
    }

    /// Checks that the bytes read so far are those of the source as it was opened.
    ///
    /// # Errors
    /// [`Error::Changed`] after a rewrite in place, [`Error::Io`] where `fstat` fails.
    pub fn check(&self) -> Result<(), Error> {
        match &self.0 {
            Origin::Local(file) => file.check(),
            // Each answer of a store was held against the version.
            Origin::Remote(_) => Ok(()),
        }
    }

    /// The identity of the file or object that has the source's path or address now. Each request looks a path up once;
    /// see [`stat`].
    ///
    /// # Errors
    /// [`Error::Io`] where nothing is there.
    pub fn identity_now(&self) -> Result<Identity, Error> {
        let found = match &self.0 {
            Origin::Local(file) => stat(&file.path),
            Origin::Remote(object) => object.store.stat(&object.address),
        };
        Ok(found.map_err(|error| Error::Io { path: self.path().to_owned(), error })?.identity)
    }

    /// Its identity, times and mode as they are now; of an object, as it was opened.
    ///
    /// # Errors
    /// [`Error::Io`] where `fstat` fails.
    pub fn stat(&self) -> Result<SourceStat, Error> {
        match &self.0 {
            Origin::Local(file) => file.stat(),
            Origin::Remote(object) => Ok(object.opened),
        }
    }

    /// Takes a read lease on the file. `None`: a writer may have it open, it has changed since it was opened, or there
    /// are no leases. Only a file's owner gets them, and few network file systems have them. Objects have none.
    pub fn lease(&self) -> Option<ReadLease> {
        match &self.0 {
            Origin::Local(file) => file.lease(),
            Origin::Remote(_) => None,
        }
    }
}
