//! libhdf5 for our code: its functions, identifiers, errors and strings.

mod error;
pub(super) mod ffi;
mod text;

pub(super) use error::{FailureReason, Id, check, note_failure};
pub(super) use text::{c_string, text};
