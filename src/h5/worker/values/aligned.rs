//! Pointer-aligned buffers for elements in libhdf5's form in memory.

use std::ffi::c_void;

use crate::h5::library::{FailureReason, Id, check, ffi};

/// Zeroed memory aligned for pointers and references.
#[derive(Debug)]
pub(in crate::h5::worker) struct Aligned {
    words: Vec<u64>,
    length: usize,
}

impl Aligned {
    pub fn zeroed(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(8).max(1)], length }
    }

    /// Copies bytes into aligned memory.
    pub fn of(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.bytes_mut().copy_from_slice(bytes);
        aligned
    }

    pub fn pointer(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least `length` initialised bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.length) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.length) }
    }
}

/// Frees libhdf5's allocations for elements that it read *successfully*.
pub(in crate::h5::worker) fn reclaim(datatype: &Id, count: usize, buffer: &mut Aligned) -> Result<(), FailureReason> {
    let count = count as u64;
    // SAFETY: `buffer` holds `count` elements that libhdf5 wrote.
    unsafe {
        let space = Id::own(ffi::H5Screate_simple(1, &count, std::ptr::null()))?;
        check(ffi::H5Treclaim(datatype.raw(), space.raw(), ffi::DEFAULT, buffer.pointer()))?;
    }
    Ok(())
}
