//! Address space that is taken away for a while, so that libhdf5 cannot allocate much.
//!
//! libhdf5 reads an attribute as a whole, however much its variable-length parts lead to, and a hundred thousand of
//! them may lead to one object. It can be told no bound, but it copes with `malloc` that fails.

use std::ptr;

/// The longest stretch that is tried: far more than `RLIMIT_AS`.
const LONGEST: usize = 1 << 36;

/// The shortest one: less does not matter.
const SHORTEST: usize = 1 << 20;

/// All of the process's address space but some, until dropped. Nothing is behind it.
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
        // SAFETY: the mapping is our own, and its address was given to no one.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

impl Ballast {
    /// Leaves about `bytes` bytes that can still be mapped.
    pub fn leaving(bytes: usize) -> Self {
        let left = Stretch::new(bytes);
        // Each success leaves less than its own length.
        let lengths = std::iter::successors(Some(LONGEST), |length| Some(length / 2).filter(|next| *next >= SHORTEST));
        let ballast = Self { _stretches: lengths.filter_map(Stretch::new).collect() };
        drop(left);
        ballast
    }
}
