//! Bytes that nobody can change for a moment, so that the kernel may pass them on by itself.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use super::Source;

/// Descriptors kept for the next lease; as many readers at once are rare.
const KEPT: usize = 16;

/// Says which signal tells of somebody who wants to write (`fcntl.h`; the same number on every architecture we build for).
const F_SETSIG: c_int = 10;

/// Leases on a source: each has a descriptor of its own, since a lease belongs to one.
#[derive(Debug, Default)]
pub(super) struct Leases {
    idle: Mutex<Vec<OwnedFd>>,
    /// This file system, or this user, gets none.
    refused: AtomicBool,
}

/// A read lease (`fcntl(2)`): while it lives, nobody has the file open for writing, and whoever opens it so, or truncates it,
/// waits until the lease is given back. To be held for as long as bytes take to be passed on, and no longer.
#[derive(Debug)]
pub struct Lease<'a> {
    leases: &'a Leases,
    /// `None` only while it is dropped.
    file: Option<OwnedFd>,
}

impl Source {
    /// Holds the file as it was opened; `None` where somebody may be writing to it, where it has changed, and where there are
    /// no leases: those are for owners of files, and for few file systems that other machines write to.
    pub fn lease(&self) -> Option<Lease<'_>> {
        let leases = &self.leases;
        if leases.refused.load(Ordering::Relaxed) {
            return None;
        }
        let known = leases.idle.lock().pop();
        let file = known.or_else(|| reopen(self.file.as_fd()))?;
        // Nobody need act on the signal: the lease is given back soon anyway. The usual one, which comes back with each lease that
        // ends, would end the process.
        let signal = set(file.as_fd(), F_SETSIG, libc::SIGURG);
        match signal.and_then(|()| set(file.as_fd(), libc::F_SETLEASE, libc::F_RDLCK as c_int)) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN) => {
                leases.give_back(file);
                return None;
            }
            Err(error) => {
                tracing::debug!("{}: no leases: {error}", self.path.display());
                leases.refused.store(true, Ordering::Relaxed);
                return None;
            }
        }
        let lease = Lease { leases, file: Some(file) };
        // From here on nothing changes.
        self.check().ok()?;
        Some(lease)
    }
}

impl AsFd for Lease<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("it is there until the drop").as_fd()
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        // Closing the descriptor ends the lease too.
        if set(file.as_fd(), libc::F_SETLEASE, libc::F_UNLCK as c_int).is_ok() {
            self.leases.give_back(file);
        }
    }
}

impl Leases {
    fn give_back(&self, file: OwnedFd) {
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(file);
        }
    }
}

/// The same inode under a descriptor of its own.
fn reopen(file: BorrowedFd<'_>) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).ok()
}

fn set(file: BorrowedFd<'_>, command: c_int, value: c_int) -> Result<(), rustix::io::Errno> {
    // SAFETY: these commands take an integer and touch no memory of ours.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
        -1 => {
            Err(rustix::io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(rustix::io::Errno::INVAL))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_wants_to_write_waits_for_the_lease() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"before").unwrap();
        let source = Source::open(&path).unwrap();
        drop(source.lease().expect("a lease on a file of our own"));
        // Of a descriptor that had one before, whose signal is the usual again.
        let lease = source.lease().unwrap();
        // A second one at the same time has a descriptor of its own.
        drop(source.lease().expect("another lease"));
        let opened = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
                opened.store(true, Ordering::SeqCst);
                writer.write_all(b" and after").unwrap();
            });
            thread::sleep(Duration::from_millis(200));
            assert!(!opened.load(Ordering::SeqCst));
            assert!(source.lease().is_none(), "somebody waits already");
            drop(lease);
        });
        assert!(opened.into_inner());
        assert!(source.lease().is_none(), "the file has changed");
    }

    #[test]
    fn there_is_no_lease_while_somebody_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"before").unwrap();
        let source = Source::open(&path).unwrap();
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
