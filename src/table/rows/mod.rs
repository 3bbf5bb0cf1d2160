//! Columns made of other rows: categories, values with a mask, floats whose NaN is missing, fields of compounds, texts in other encodings, rows that
//! end early, arrays in memory; [numbers], and what lies behind [offsets].

mod category;
mod chain;
mod charset;
mod compound;
mod held;
mod masked;
mod nan;
mod numbers;
mod offsets;
mod padded;
mod part;
mod runs;
mod spread;

pub use category::{CategoryRows, LabelRows};
pub use chain::ChainRows;
pub use charset::{DecodedRows, TextEncoding, Variant};
pub use compound::CompoundRows;
pub use held::HeldRows;
pub use masked::MaskedRows;
pub use nan::{NanRows, nan_in};
pub use numbers::{
    BitRows, CastRows, EdgeRows, Edges, EncodedRows, EvenRows, Linear, PackedRows, Packing, Samples, TimeRows,
    TypedRows, UnitCount, common_type,
};
pub use offsets::{EndRows, Json, JsonRows, ListRows, PresentRows, StringRows};
pub use padded::PaddedRows;
pub use part::PartRows;
pub use runs::RunRows;
pub use spread::SpreadRows;
