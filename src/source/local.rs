//! Local files: one descriptor, read by `pread`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::descriptors::OpenDescriptor;
use super::stat::{self, SourceStat};
use super::{Error, Identity};

/// A file opened once for reading.
#[derive(Debug)]
pub(super) struct LocalFile {
    pub(super) path: PathBuf,
    file: File,
    pub(super) opened: Identity,
    pub(super) settled: bool,
    last_seen: Mutex<Identity>,
    /// Whether the file system gives this user no leases.
    pub(super) has_no_leases: AtomicBool,
    _counted: OpenDescriptor,
}

impl LocalFile {
    /// As [`Source::open`](super::Source::open).
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
        let now = SourceStat::of(&metadata);
        let opened = now.identity;
        // Opening the path has looked it up as well. The request that opens a source must go on seeing that state.
        stat::note(path, era, Ok(now));
        let settled = opened.is_settled_at(SystemTime::now());
        Ok(Self {
            path: path.to_owned(),
            file,
            opened,
            settled,
            last_seen: Mutex::new(opened),
            has_no_leases: AtomicBool::new(false),
            _counted: OpenDescriptor::new(),
        })
    }

    /// As [`Source::read_at`](super::Source::read_at).
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        match self.file.read_exact_at(out, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.truncated(offset, out.len())),
            Err(error) => Err(Error::Io { path: self.path.clone(), error }),
        }
    }

    /// As [`Source::append_at`](super::Source::append_at), into memory that is not cleared first: clearing would cost a
    /// tenth of a large read.
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
            size: self.stat().map(|now| now.identity.size).unwrap_or(0),
        }
    }

    /// As [`Source::check`](super::Source::check). A replacement by `rename` leaves the bytes as they are (the old
    /// inode lives on); a rewrite in place does not.
    pub fn check(&self) -> Result<(), Error> {
        let now = self.stat()?.identity;
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
        stat::stat_now(&self.path).is_ok_and(|now| now.identity.is_same_file_as(&self.opened))
    }

    /// Looks at the file by `fstat`.
    pub fn stat(&self) -> Result<SourceStat, Error> {
        let metadata = self.file.metadata().map_err(|error| Error::Io { path: self.path.clone(), error })?;
        Ok(SourceStat::of(&metadata))
    }
}

impl AsFd for LocalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
