//! Columns made of other rows: categories, lists, strings behind offsets.

mod category;
mod list;
mod offsets;
mod string;

pub use category::CategoryRows;
pub use list::ListRows;
pub use string::StringRows;
