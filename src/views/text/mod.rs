//! Text views: CSV, one value per line, NDJSON.
//!
//! [`TextLayout`] is the core: pure functions from Arrow arrays to bytes and to their number. [`TextView`] serves a
//! file in blocks of rows, of about 1 MiB each. One pass over the values (lengths only, on all cores) learns the offset
//! of each block; then a read anywhere renders the blocks that it covers and nothing else.
//!
//! | part | task |
//! | --- | --- |
//! | `cell` | the values of one column, in the styles of CSV, `.txt` and JSON |
//! | `csv` | options of CSV |
//! | `block` | rows of all columns, headers |
//! | `width` | bounds from types alone |
//! | `grid`, `content`, `spread` | blocks of rows; reads columns; parts of values as columns |
//! | `index` | offsets of blocks, by a [pass](crate::learnt::pass) |
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
pub use block::{TextFormat, TextLayout};
pub use cell::NoText;
pub use content::TextColumn;
pub use csv::{CsvOptions, CsvOptionsError};
pub use view::TextView;
