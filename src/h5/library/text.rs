//! Strings to and from the library.

use std::ffi::{CString, c_char};

use bstr::BString;

use super::error::FailureReason;

/// Makes a C string of bytes; libhdf5 takes no name with a NUL inside.
pub(in crate::h5) fn c_string(bytes: &[u8]) -> Result<CString, FailureReason> {
    CString::new(bytes).map_err(|_| FailureReason::new("a name with a NUL byte"))
}

/// Reads a string through a call that returns its length if it gets no buffer.
pub(in crate::h5) fn text(call: impl Fn(*mut c_char, usize) -> isize) -> Result<BString, FailureReason> {
    let length = usize::try_from(call(std::ptr::null_mut(), 0)).map_err(|_| FailureReason::of_library())?;
    if length > 1 << 20 {
        return Err(FailureReason::new(format!("a name of {length} bytes")));
    }
    let mut buffer = vec![0u8; length + 1];
    if call(buffer.as_mut_ptr().cast(), buffer.len()) < 0 {
        return Err(FailureReason::of_library());
    }
    buffer.truncate(length);
    Ok(BString::from(buffer))
}
