//! Columns made of other rows: categories, values with a mask, floats whose NaN is missing, fields of compounds, texts
//! in other encodings, rows that end early, arrays in memory; [numbers], and what lies behind [offsets].

mod absent;
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

pub use absent::AbsentRows;
pub use category::{CategoryRows, LabelRows};
pub use chain::ChainRows;
pub use charset::{DecodedRows, TextEncoding, Variant};
pub use compound::CompoundRows;
pub use held::HeldRows;
pub use masked::MaskedRows;
pub use nan::{NanRows, nan_in};
pub use numbers::{
    BitRows, CastRows, EdgeRows, Edges, EncodedRows, EvenRows, Linear, PackedRows, Packing, RecodedRows, Samples,
    TimeRows, TypedRows, UnitCount, common_type,
};
pub use offsets::{EndRows, Json, JsonRows, ListRows, PresentRows, StringRows};
pub use padded::PaddedRows;
pub use part::PartRows;
pub use runs::{RunRows, labelled_runs};
pub use spread::SpreadRows;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, FixedSizeBinaryArray, Float32Array, Int8Array, Int64Array, LargeStringArray, StructArray,
    };
    use arrow_schema::{DataType, Field, TimeUnit};

    use super::*;
    use crate::calendar::{Instant, SECOND};
    use crate::source::Interrupt;
    use crate::store::Rows;
    use crate::store::rows::in_memory::Memory;
    use crate::table::Times;

    const ROWS: usize = 6;

    fn memory(array: ArrayRef) -> Memory {
        Memory::new(array).natural(2).strided(24).cut([4, 6]).alike()
    }

    /// Wrappers of the same rows, by their names; `made` gives rows the facts that are not to be lost.
    fn wrappers(made: &dyn Fn(ArrayRef) -> Memory) -> Vec<(&'static str, Arc<dyn Rows>)> {
        let of = |array: ArrayRef| Arc::new(made(array)) as Arc<dyn Rows>;
        let path = || "/t/c".to_owned();
        let numbers = || of(Arc::new(Int64Array::from(vec![0; ROWS])));
        let mask = Arc::new(memory(Arc::new(Int8Array::from(vec![0; ROWS]))));
        let codes = || of(Arc::new(Int8Array::from(vec![0; ROWS])));
        let texts = |text: &str| Arc::new(LargeStringArray::from(vec![text; ROWS])) as ArrayRef;
        let labels = || Arc::new(Memory::new(texts("a"))) as Arc<dyn Rows>;
        let categories = || CategoryRows::new(path(), codes(), labels(), Arc::default());
        let cells = FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n([b'a'], ROWS)).unwrap();
        let encoding = TextEncoding::new("latin1", Variant::Standard).unwrap();
        let field = (Arc::new(Field::new("x", DataType::Int8, true)), Arc::new(Int8Array::from(vec![0; ROWS])) as _);
        let compounds = of(Arc::new(StructArray::from(vec![field])));
        let times = Times::new(SECOND, Instant { attoseconds: 0, is_exact: true }, &DataType::Int64).unwrap();
        vec![
            ("masked", Arc::new(MaskedRows::new(path(), numbers(), mask).unwrap())),
            ("NaN", Arc::new(NanRows::missing(&of(Arc::new(Float32Array::from(vec![0.5; ROWS])))).unwrap())),
            ("typed", Arc::new(TypedRows::new(path(), numbers(), DataType::Duration(TimeUnit::Second)).unwrap())),
            (
                "decoded",
                Arc::new(DecodedRows::new(
                    path(),
                    of(Arc::new(cells)),
                    DecodedRows::undecoded(1),
                    encoding,
                    None,
                    Arc::default(),
                )),
            ),
            ("packed", Arc::new(PackedRows::scaled(path(), numbers(), vec![2.0], 0.0).unwrap())),
            ("logicals", Arc::new(RecodedRows::logicals(path(), numbers(), Arc::default()).unwrap())),
            ("from one", Arc::new(RecodedRows::from_one(path(), numbers()).unwrap())),
            ("cast", Arc::new(CastRows::new(codes(), Some(DataType::Int64), true))),
            ("cast to itself", Arc::new(CastRows::new(codes(), None, true))),
            ("padded", Arc::new(PaddedRows::new(path(), numbers(), 0, Vec::new()))),
            ("part", Arc::new(PartRows::of(&compounds, b"x").unwrap())),
            ("time", Arc::new(TimeRows::new(path(), numbers(), times, Arc::default()))),
            ("categories", Arc::new(categories())),
            ("labels", Arc::new(LabelRows::new(categories()))),
        ]
    }

    #[test]
    fn wrappers_lose_nothing_of_where_rows_lie() {
        let none = Interrupt::new();
        let bare = memory(Arc::new(Int8Array::from(vec![0; ROWS])));
        for (name, rows) in wrappers(&memory) {
            assert_eq!(rows.len(), bare.len(), "{name}");
            assert_eq!(rows.natural_rows(), bare.natural_rows(), "{name}");
            assert_eq!(rows.stride(), bare.stride(), "{name}");
            assert_eq!(rows.cuts(), bare.cuts(), "{name}");
            assert_eq!(rows.alike_until(1, &none).unwrap(), ROWS as u64, "{name}");
            rows.examine(&none).unwrap();
        }
        for (name, rows) in wrappers(&|array| memory(array).lost()) {
            assert!(rows.examine(&none).is_err(), "{name} looks where its rows lie");
        }
        for (name, rows) in wrappers(&|array| memory(array).nullable(true)) {
            assert!(rows.nullable(), "{name}");
        }
    }
}
