//! Text views: CSV, one value a line, NDJSON.
//!
//! [`Layout`] is the core: pure functions from Arrow arrays to bytes and to their number. [`TextView`] puts blocks of rows
//! around it. A block of about 1 MiB is the unit of rendering; where each begins is learnt by one pass over the values
//! (lengths only, on all cores), after which a read anywhere renders the blocks under it and nothing else.
//!
//! | part | what it does |
//! | --- | --- |
//! | `style` | what differs between CSV, `.txt` and JSON in the text of a value |
//! | `number`, `string`, `nested`, `cell`, `room` | the values of one column |
//! | `block` | rows of all columns, headers |
//! | `width` | bounds from types alone |
//! | `grid`, `content` | blocks of rows; reads columns |
//! | `index` | where blocks begin; the pass |
//! | `cache`, `streams` | rendered blocks; rendering ahead |
//! | `view` | the file |

mod block;
mod cache;
mod cell;
mod content;
mod grid;
mod index;
mod nested;
mod number;
mod room;
mod streams;
mod string;
mod style;
#[cfg(test)]
mod tests;
mod view;
mod width;

pub use block::{Format, Layout};
pub use cache::BlockCache;
pub use cell::NoText;
pub use content::TextColumn;
pub use view::TextView;
