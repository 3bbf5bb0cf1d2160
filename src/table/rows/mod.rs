//! Columns made of other rows: categories, lists, strings behind offsets, casts.

mod cast;
mod category;
mod list;
mod offsets;
mod string;

pub use cast::{CastRows, common_type};
pub use category::CategoryRows;
pub use list::ListRows;
pub use string::StringRows;
