//! Rows of a column, from disk to Arrow: chunk maps, codecs, the chunk cache under one memory budget.

pub mod arrow;
mod error;
mod rows;

pub use error::Error;
pub use rows::{RowRange, Rows};
