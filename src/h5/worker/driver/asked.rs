//! The bytes of a source without a descriptor: the daemon gives them.

use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::h5::protocol::{self, GIVEN, MAX_WANTED, REFUSED, WorkerMessage};
use crate::h5::worker::shared::WantedMemory;

/// A source whose bytes the worker asks for, over its socket.
#[derive(Clone, Copy, Debug)]
pub(in crate::h5::worker) struct AskedSource {
    /// Length in bytes.
    pub size: u64,
    /// Where the daemon puts the bytes.
    pub wanted: WantedMemory,
}

impl AskedSource {
    /// Fills `out` from byte `at` on, with zeros behind the end, as libhdf5's own drivers do.
    pub fn read_at(self, out: &mut [u8], at: u64) -> io::Result<()> {
        let inside = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX).min(out.len());
        let (inside, behind) = out.split_at_mut(inside);
        behind.fill(0);
        self.read_exact_at(inside, at)
    }

    /// Fills `out` from byte `at` on.
    pub fn read_exact_at(self, out: &mut [u8], mut at: u64) -> io::Result<()> {
        for piece in out.chunks_mut(MAX_WANTED as usize) {
            want(at, piece.len() as u64)?;
            self.wanted.copy_to(piece);
            at = at.saturating_add(piece.len() as u64);
        }
        Ok(())
    }
}

/// Waits until the daemon has put bytes of the source into the shared memory.
pub(in crate::h5::worker) fn want(at: u64, length: u64) -> io::Result<()> {
    // SAFETY: standard input is the socket, which stays open as long as the process lives. This one never closes it.
    let mut socket = ManuallyDrop::new(UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) }));
    protocol::send(&mut *socket, &WorkerMessage::Want { at, length })?;
    let mut answer = REFUSED;
    socket.read_exact(&mut answer)?;
    if answer == GIVEN { Ok(()) } else { Err(io::Error::other("the source could not be read")) }
}
