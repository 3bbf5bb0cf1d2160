//! Text views: CSV, one value a line, NDJSON.
//!
//! [`Layout`] is the core: pure functions from Arrow arrays to bytes and to their number. [`TextView`] puts blocks of
//! rows around it. A block of about 1 MiB is the unit of rendering; where each begins is learnt by one pass over the
//! values (lengths only, on all cores), after which a read anywhere renders the blocks under it and nothing else.
//!
//! | part | what it does |
//! | --- | --- |
//! | `cell` | the values of one column, in the styles of CSV, `.txt` and JSON |
//! | `csv` | CSV other than the usual |
//! | `block` | rows of all columns, headers |
//! | `width` | bounds from types alone |
//! | `grid`, `content`, `spread` | blocks of rows; reads columns; parts of values as columns |
//! | `index` | where blocks begin, by a [pass](crate::store::pass) |
//! | `streams` | rendering ahead |
//! | `view` | the file |

mod block;
mod cell;
mod content;
mod csv;
mod grid;
mod index;
mod spread;
pub(super) mod streams;
#[cfg(test)]
mod tests;
mod view;
mod width;

pub use super::rendered::BlockCache;
pub use block::{Format, Layout};
pub use cell::NoText;
pub use content::TextColumn;
pub use csv::{CsvOptions, CsvOptionsError};
pub use view::TextView;
