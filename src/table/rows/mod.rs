//! Columns made of other rows: categories, lists, strings behind offsets, references.

mod category;
mod list;
mod offsets;
mod reference;
mod string;

pub use category::CategoryRows;
pub use list::ListRows;
pub use reference::ReferenceRows;
pub use string::StringRows;
