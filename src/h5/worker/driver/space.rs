//! Keeps libhdf5 from reusing freed space of a file before the file is closed.
//!
//! A rewritten chunk frees its old space, and libhdf5 would put the next chunk there: over bytes that readers still
//! need if the change does not finish. The linker (`build.rs`) redirects every call of libhdf5's `H5MF_xfree` to the
//! function here, so all new bytes are beyond the end of the file. The freed space is lost.

use std::ffi::{c_int, c_void};

/// Keeps freed space from reuse, and reports success.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_H5MF_xfree(_file: *mut c_void, _kind: c_int, _address: u64, _size: u64) -> c_int {
    0
}
