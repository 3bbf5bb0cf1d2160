//! Columns made of other rows: categories, lists, strings behind offsets, instants, fields of compounds, casts.

mod cast;
mod category;
mod chain;
mod list;
mod offsets;
mod part;
mod string;
mod time;

pub use cast::{CastRows, common_type};
pub use category::CategoryRows;
pub use chain::ChainRows;
pub use list::ListRows;
pub use part::PartRows;
pub use string::StringRows;
pub use time::TimeRows;
