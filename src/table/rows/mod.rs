//! Columns made of other rows: categories, lists, values with a mask, strings behind offsets, instants, fields of
//! compounds, casts, edges of bins, JSON, texts in other encodings, numbers stored as others, rows that end early,
//! values without those that are missing, arrays in memory.

mod bits;
mod cast;
mod category;
mod chain;
mod charset;
mod compound;
mod edges;
mod encoded;
mod ends;
mod even;
mod held;
mod json;
mod list;
mod masked;
mod offsets;
mod packed;
mod padded;
mod part;
mod present;
mod runs;
mod string;
mod time;
mod typed;

pub use bits::BitRows;
pub use cast::{CastRows, common_type};
pub use category::CategoryRows;
pub use chain::ChainRows;
pub use charset::{DecodedRows, TextEncoding, Variant};
pub use compound::CompoundRows;
pub use edges::{EdgeRows, Edges};
pub use encoded::{EncodedRows, Samples};
pub use ends::EndRows;
pub use even::EvenRows;
pub use held::HeldRows;
pub use json::{Json, JsonRows};
pub use list::ListRows;
pub use masked::MaskedRows;
pub use packed::{Linear, PackedRows, Packing, UnitCount};
pub use padded::PaddedRows;
pub use part::PartRows;
pub use present::PresentRows;
pub use runs::RunRows;
pub use string::StringRows;
pub use time::TimeRows;
pub use typed::TypedRows;
