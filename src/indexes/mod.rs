//! Search indexes of every kind. None is trusted until it was compared with its column.
//!
//! Indexes cover the values of [`crate::table::Column`] as Arrow arrays, null where missing; enumerations and
//! categories by their codes. The parts are pure functions, used both to verify and to build an index.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`verify()`] | compares an index with its whole column |
//! | [`Verdict`] | the result, kept for the source's identity |
//! | [`Occurring`] | the places where values of a verified `BITMAP` occur |
//! | [`Trust`] | the choice of indexes to use |
//! | [`canonical`] | canonical bytes of values |
//! | [`minmax`] | entries of `CHUNK_MINMAX` |
//! | [`order`] | the order of `SORTED_ROWS` |
//! | [`bitmap`] | bits of `BITMAP` |
//! | [`bloom`] | positions in the filters of `CHUNK_BLOOM` |

pub mod bitmap;
pub mod bloom;
pub mod canonical;
mod description;
pub mod minmax;
mod occurring;
pub mod order;
mod verdict;
mod verify;

pub use description::{IndexDescription, State, describe};
pub use occurring::Occurring;
pub use verdict::{IndexFacts, Trust, Verdict, facts, known};
pub use verify::{verify, verify_within};
