//! Columns with values behind offsets or indices: lists, texts and bytes, JSON, columns that store only present values.

mod ends;
mod json;
mod level;
mod list;
mod present;
mod string;

pub use ends::EndRows;
pub use json::{JsonRows, NestedJson};
pub(super) use level::alike_entries;
pub use list::ListRows;
pub use present::PresentRows;
pub use string::StringRows;
