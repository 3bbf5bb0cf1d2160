//! libhdf5 as code of ours calls it: its functions, its identifiers, its errors, its strings.

mod error;
pub(super) mod ffi;
mod text;

pub(super) use error::{Id, Reason, check, note_failure};
pub(super) use text::{c_string, text};
