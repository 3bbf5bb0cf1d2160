//! libhdf5's error stack as text, and the worker's own errors.

use std::cell::Cell;
use std::ffi::{CStr, c_uint, c_void};
use std::fmt::Display;

use super::ffi::{self, Herr, Hid};
use crate::h5::protocol::{WorkerRefusal, printable};

/// Most entries read of an error stack.
const MAX_ENTRIES: usize = 64;

thread_local! {
    /// The system's error for the last failed open, read or write; the worker has one thread.
    static FAILURE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Keeps the system's reason for the error that libhdf5 is about to report.
pub(in crate::h5) fn note_failure(reason: String) {
    FAILURE.set(Some(reason));
}

/// The reason for a failure, in libhdf5's words or ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::h5) struct FailureReason(pub String);

impl FailureReason {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// libhdf5's reason: the innermost message of its stack, then the outermost. Clears the stack.
    pub fn of_library() -> Self {
        let mut messages: Vec<String> = Vec::new();
        // SAFETY: the callback gets `messages` back as its data and is not called after H5Ewalk2 returns.
        unsafe {
            ffi::H5Ewalk2(ffi::DEFAULT, 0, collect, (&raw mut messages).cast());
            ffi::H5Eclear2(ffi::DEFAULT);
        }
        let io = FAILURE.take();
        let mut text = match (messages.first(), messages.last()) {
            (Some(inner), Some(outer)) if inner != outer => format!("{inner} ({outer})"),
            (Some(inner), _) => inner.clone(),
            _ => "libhdf5 gave no reason".into(),
        };
        if let Some(io) = io {
            text = format!("{text}: {io}");
        }
        Self(text)
    }

    /// Puts the failed action in front of the reason.
    pub fn context(self, what: impl Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl From<FailureReason> for WorkerRefusal {
    fn from(reason: FailureReason) -> Self {
        WorkerRefusal::Hdf5(reason.0)
    }
}

unsafe extern "C" fn collect(_: c_uint, entry: *const ffi::ErrorEntry, data: *mut c_void) -> Herr {
    // SAFETY: `data` is the vector given to H5Ewalk2, `entry` is valid during the call.
    let (messages, entry) = unsafe { (&mut *data.cast::<Vec<String>>(), &*entry) };
    if messages.len() >= MAX_ENTRIES || entry.description.is_null() {
        return 0;
    }
    // SAFETY: a description is a C string.
    let text = unsafe { CStr::from_ptr(entry.description) };
    if !text.is_empty() {
        messages.push(printable(text.to_bytes()));
    }
    0
}

/// An identifier of libhdf5, released when it is dropped.
#[derive(Debug)]
pub(in crate::h5) struct Id(Hid);

impl Id {
    /// Takes over the result of a call; a negative number is the library's error.
    pub fn own(id: Hid) -> Result<Self, FailureReason> {
        if id < 0 { Err(FailureReason::of_library()) } else { Ok(Self(id)) }
    }

    pub fn raw(&self) -> Hid {
        self.0
    }

    /// Gives the identifier up without releasing it.
    pub fn release(self) -> Hid {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the identifier is ours. A failing close changes nothing, but must leave no message.
        unsafe {
            if ffi::H5Idec_ref(self.0) < 0 {
                ffi::H5Eclear2(ffi::DEFAULT);
            }
        }
    }
}

/// Turns the status of a call into a result.
pub(in crate::h5) fn check(status: Herr) -> Result<Herr, FailureReason> {
    if status < 0 { Err(FailureReason::of_library()) } else { Ok(status) }
}
