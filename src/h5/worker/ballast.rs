//! Address space that the worker reserves for a while, so that libhdf5 cannot allocate much.
//!
//! libhdf5 reads a whole attribute, however long its variable-length parts are, and a hundred thousand of them may
//! point to one object. It has no setting for a limit, but it survives a failing `malloc`.

use std::ptr;

/// Longest stretch tried: far more than `RLIMIT_AS`.
const LONGEST: usize = 1 << 36;

/// Shortest stretch: less does not matter.
const SHORTEST: usize = 1 << 20;

/// Reserves all but some of the process's address space, until dropped. It takes no memory.
#[derive(Debug)]
pub struct Ballast {
    _stretches: Vec<Stretch>,
}

#[derive(Debug)]
struct Stretch(*mut libc::c_void, usize);

impl Stretch {
    fn new(length: usize) -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice, without access.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        (start != libc::MAP_FAILED).then_some(Self(start, length))
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own, and nobody else has its address.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

impl Ballast {
    /// Leaves about `bytes` bytes for new mappings.
    pub fn leaving(bytes: usize) -> Self {
        let left = Stretch::new(bytes);
        // Each success leaves less than its own length.
        let lengths = std::iter::successors(Some(LONGEST), |length| Some(length / 2).filter(|next| *next >= SHORTEST));
        let ballast = Self { _stretches: lengths.filter_map(Stretch::new).collect() };
        drop(left);
        ballast
    }
}
