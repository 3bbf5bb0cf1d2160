//! The memory that the daemon and a worker share.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::h5::protocol::{MAX_WANTED, SHARED};

/// The memory shared with the daemon: elements, heap, and bytes of the source that were asked for.
#[derive(Debug)]
pub(super) struct SharedMemory {
    start: NonNull<u8>,
}

impl SharedMemory {
    pub fn map(memory: OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping of a descriptor of that many bytes whose size is sealed.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (SHARED + MAX_WANTED) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|start| Self { start }).ok_or_else(|| io::Error::other("mapped at zero"))
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has more bytes and lives as long as the process; the daemon reads or writes these only
        // between requests.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), SHARED as usize) }
    }

    /// The part for bytes of the source.
    pub fn wanted(&self) -> WantedMemory {
        // SAFETY: within the mapping.
        WantedMemory(unsafe { self.start.add(SHARED as usize) })
    }
}

/// Shared memory into which the daemon puts bytes of the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedMemory(NonNull<u8>);

impl WantedMemory {
    /// Copies the first bytes, at most [`MAX_WANTED`].
    pub fn copy_to(self, out: &mut [u8]) {
        let length = out.len().min(MAX_WANTED as usize);
        // SAFETY: the mapping has as many bytes here, lives as long as the process, and is no memory of Rust's; the
        // daemon writes there only before it says so.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), out.as_mut_ptr(), length) };
    }
}
