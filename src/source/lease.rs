//! Read leases: bytes that cannot change for a moment, so that the kernel may pass them on by itself.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use libc::c_int;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::local::LocalFile;

/// `F_SETSIG` of `fcntl.h`: sets the signal that announces a writer (the same number on every architecture we build
/// for).
const F_SETSIG: c_int = 10;

/// A read lease (`fcntl(2)`). While it lives, no process has the file open for writing; one that opens it for writing,
/// or truncates it, waits until the lease is dropped. Hold it only while bytes are passed on.
#[derive(Debug)]
pub struct ReadLease {
    /// The lease's own descriptor: closing it ends the lease.
    file: OwnedFd,
}

impl LocalFile {
    /// As [`Source::lease`](super::Source::lease).
    pub fn lease(&self) -> Option<ReadLease> {
        if self.has_no_leases.load(Ordering::Relaxed) {
            return None;
        }
        match ReadLease::new(self.as_fd()) {
            // From here on the bytes cannot change.
            Ok(lease) => self.check().ok().map(|()| lease),
            // A writer may have it open, or too many files are open.
            Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => None,
            Err(error) => {
                tracing::debug!("{}: no leases: {error}", self.path.display());
                self.has_no_leases.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

impl ReadLease {
    fn new(file: BorrowedFd<'_>) -> Result<Self, Errno> {
        // Opens the same inode, whatever is at its path by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        // The signal needs no handler: the lease is given back soon anyway. The usual signal would end the process.
        set(file.as_fd(), F_SETSIG, libc::SIGURG)?;
        set(file.as_fd(), libc::F_SETLEASE, libc::F_RDLCK)?;
        Ok(Self { file })
    }
}

impl AsFd for ReadLease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn set(file: BorrowedFd<'_>, command: c_int, value: c_int) -> Result<(), Errno> {
    // SAFETY: these commands take an integer and touch no memory of ours.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::source::Source;

    fn opened() -> (tempfile::TempDir, PathBuf, Source) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"before").unwrap();
        let source = Source::open(&path).unwrap();
        (folder, path, source)
    }

    #[test]
    fn who_wants_to_write_waits_for_the_lease() {
        let (_folder, path, source) = opened();
        let lease = source.lease().expect("a lease on a file of our own");
        // A second one at the same time has a descriptor of its own.
        drop(source.lease().expect("another lease"));
        let is_open = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
                is_open.store(true, Ordering::SeqCst);
                writer.write_all(b" and after").unwrap();
            });
            thread::sleep(Duration::from_millis(200));
            assert!(!is_open.load(Ordering::SeqCst));
            assert!(source.lease().is_none(), "somebody waits already");
            drop(lease);
        });
        assert!(is_open.into_inner());
        assert!(source.lease().is_none(), "the file has changed");
    }

    #[test]
    fn there_is_no_lease_while_somebody_may_write() {
        let (folder, path, source) = opened();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(source.lease().is_none());
        drop(writer);
        assert!(source.lease().is_some());
        // Replaced by another file, the old one stays what it was.
        fs::write(folder.path().join("b"), b"another").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        assert!(source.lease().is_some());
    }
}
