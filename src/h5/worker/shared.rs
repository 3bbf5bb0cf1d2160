//! The memory that the daemon and a worker share.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::h5::protocol::SHARED;

/// The memory shared with the daemon: elements, then heap.
#[derive(Debug)]
pub(super) struct SharedMemory {
    start: NonNull<u8>,
}

impl SharedMemory {
    pub fn map(memory: OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping of a descriptor of at least SHARED bytes whose size is sealed.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED as usize,
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
        // SAFETY: the mapping has SHARED bytes and lives as long as the process; the daemon reads or writes it only
        // between requests.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), SHARED as usize) }
    }
}
