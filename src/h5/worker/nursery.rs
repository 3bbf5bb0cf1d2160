//! The nursery: the process from which workers fork. It sees no file; it receives only sockets.

use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::sandbox;
use super::start::prepare_library;
use crate::h5::protocol::descriptors;

/// Forks a worker for each received socket, until the daemon closes its end. Returns `true` in a worker, whose standard
/// input is then its socket.
///
/// # Errors
/// If the daemon is gone, or libhdf5 does not start.
pub(super) fn run() -> io::Result<bool> {
    let parent = std::env::args().nth(2).and_then(|parent| parent.parse().ok());
    sandbox::die_with(parent.ok_or_else(|| io::Error::other("no process id of the daemon"))?)?;
    prepare_library().map_err(|reason| io::Error::other(reason.0))?;
    // SAFETY: standard input is a socket; `dup2` closes it in a worker.
    let daemon = ManuallyDrop::new(UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) }));
    while let Some(socket) = descriptors::receive(&daemon)?.pop() {
        match copy() {
            Ok(0) => {
                // SAFETY: both are open; this closes the daemon's socket in the worker.
                return match unsafe { libc::dup2(socket.as_raw_fd(), 0) } {
                    0 => Ok(true),
                    _ => Err(io::Error::last_os_error()),
                };
            }
            copied => {
                let answer = copied.unwrap_or_else(|error| -error.raw_os_error().unwrap_or(libc::EAGAIN));
                (&*daemon).write_all(&answer.to_le_bytes())?;
            }
        }
    }
    Ok(false)
}

/// Forks. The new process is a child of the daemon, as this process is.
fn copy() -> io::Result<libc::pid_t> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: as `fork`, with another parent; the process has one thread, so nobody holds a lock.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) } {
        ..0 => Err(io::Error::last_os_error()),
        id => libc::pid_t::try_from(id).map_err(io::Error::other),
    }
}
