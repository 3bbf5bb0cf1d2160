//! Search indexes: what each kind says of a column. Untrusted until it is held against that column.
//!
//! The values that indexes speak of are those of [`crate::table::Column`] as Arrow arrays, null where they are missing;
//! enumerations and categories by their codes. The parts are pure, and shared by verifying an index and building one.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`verify()`] | holds an index against its column, in full |
//! | [`Verdict`] | what came of it, kept for the source's identity |
//! | [`Occurring`] | where the values of a verified `BITMAP` occur |
//! | [`Trust`] | which indexes are used |
//! | [`canonical`] | the bytes that stand for a value |
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

pub use description::{Description, State, describe};
pub use occurring::Occurring;
pub use verdict::{Facts, Trust, Verdict, facts, known};
pub use verify::{verify, verify_within};
