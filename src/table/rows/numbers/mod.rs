//! Columns of numbers and instants made from other numbers: casts, linear and time conversions, codes of R, bits, bins,
//! even steps, waveforms.

mod bits;
mod cast;
mod edges;
mod encoded;
mod even;
mod packed;
mod packing;
mod recoded;
mod time;
mod typed;

pub use bits::BitRows;
pub use cast::{CastRows, common_type, per_second};
pub use edges::{EdgeRows, Edges};
pub use encoded::{EncodedRows, Samples};
pub use even::EvenRows;
pub use packed::PackedRows;
pub use packing::{Linear, Packing, UnitCount};
pub use recoded::RecodedRows;
pub use time::TimeRows;
pub use typed::TypedRows;
