//! Columns made from other rows: categories, masked values, floats with NaN as missing, fields of compounds, texts in
//! other encodings, padded rows, arrays in memory; [numbers], and values behind [offsets].

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
    TimeRows, TypedRows, UnitCount, common_type, per_second,
};
pub use offsets::{EndRows, JsonRows, ListRows, NestedJson, PresentRows, StringRows};
pub use padded::PaddedRows;
pub use part::PartRows;
pub use runs::{RunRows, labelled_runs};
pub use spread::SpreadRows;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, FixedSizeBinaryArray, Float32Array, Int8Array, Int64Array, LargeStringArray, StructArray, UInt8Array,
    };
    use arrow_schema::{DataType, Field, TimeUnit};
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::{Instant, SECOND};
    use crate::source::Interrupt;
    use crate::store::rows::in_memory::{FACTS, MemoryRows, changed, with_facts};
    use crate::store::{Nan, Rows};
    use crate::table::Times;

    const ROWS: usize = 6;

    fn memory(array: ArrayRef) -> MemoryRows {
        MemoryRows::new(array).natural(2).strided(24).cut([4, 6]).alike()
    }

    /// Facts that a wrapper changes or gives up. It keeps all others as they are in the rows that it wraps.
    const CHANGED: [(&str, &[&str]); 20] = [
        // An outline ignores the mask, and no code stands for a masked value.
        ("masked", &["nullable", "codes", "outline", "apart", "alike"]),
        ("NaN", &["nullable", "hints", "codes", "outline"]),
        ("typed", &["type", "codes", "outline", "apart"]),
        ("decoded", &["type", "hints", "stored type", "codes", "outline", "apart"]),
        ("packed", &["type", "hints", "codes", "outline", "apart"]),
        ("logicals", &["type", "nullable", "hints", "codes", "outline"]),
        ("from one", &["type", "hints", "codes", "outline"]),
        ("cast", &["type", "nullable", "hints", "stored", "codes", "outline", "apart"]),
        ("cast to itself", &["nullable", "stored type", "decoded", "codes", "apart"]),
        ("padded", &["len", "nullable", "hints", "stored width", "codes", "apart", "alike"]),
        ("part", &["type", "nullable", "hints", "stored", "codes", "outline", "apart"]),
        ("time", &["type", "nullable", "hints", "codes", "outline", "apart"]),
        ("categories", &["type", "nullable", "hints", "codes", "outline", "apart"]),
        ("labels", &["type", "nullable", "hints", "decoded", "codes", "outline", "apart"]),
        // Repeated, chained and picked rows have other numbers than the wrapped ones, and so not their grain, cuts and
        // stored bytes. A chain has the longest stride of its parts.
        ("spread", &["hints", "natural rows", "stride", "cuts", "stored", "codes", "outline", "apart", "alike"]),
        ("chain", &["natural rows", "cuts", "stored", "codes", "alike"]),
        (
            "present",
            &["nullable", "hints", "natural rows", "stride", "cuts", "stored", "codes", "outline", "apart", "alike"],
        ),
        // These make rows of another kind from the wrapped ones. Of the facts about how those are stored, they take
        // over only containers and grain; `bits` makes eight rows from each byte, and so has eight times the grain.
        ("ends", &["len", "type", "hints", "stride", "cuts", "stored", "codes", "outline", "apart", "alike"]),
        (
            "bits",
            &[
                "len",
                "type",
                "nullable",
                "hints",
                "natural rows",
                "stride",
                "cuts",
                "stored",
                "codes",
                "outline",
                "apart",
                "alike",
            ],
        ),
        ("compound", &["type", "nullable", "hints", "stride", "cuts", "stored", "codes", "outline", "apart", "alike"]),
    ];

    /// The name of a wrapper, the wrapper, and the rows that it wraps.
    type Wrapper = (&'static str, Arc<dyn Rows>, Arc<dyn Rows>);

    /// All wrappers; `made` makes the rows that they wrap, with facts to keep or to lose.
    fn wrappers(made: &dyn Fn(ArrayRef) -> MemoryRows) -> Vec<Wrapper> {
        let of = |array: ArrayRef| Arc::new(made(array)) as Arc<dyn Rows>;
        let path = || "/t/c".to_owned();
        let numbers = || of(Arc::new(Int64Array::from(vec![0; ROWS])));
        let mask = || Arc::new(memory(Arc::new(Int8Array::from(vec![0; ROWS]))));
        let codes = || of(Arc::new(Int8Array::from(vec![0; ROWS])));
        let labels = || Arc::new(MemoryRows::new(Arc::new(LargeStringArray::from(vec!["a"; ROWS])))) as Arc<dyn Rows>;
        let categories = |codes| CategoryRows::new(path(), codes, labels(), Arc::default());
        let cells = || of(Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n([b'a'], ROWS)).unwrap()));
        let floats = || of(Arc::new(Float32Array::from(vec![0.5; ROWS])));
        let bytes = || of(Arc::new(UInt8Array::from(vec![0; ROWS])));
        let encoding = TextEncoding::new("latin1", Variant::Standard).unwrap();
        let compounds = || {
            let field = Arc::new(Field::new("x", DataType::Int8, true));
            of(Arc::new(StructArray::from(vec![(field, Arc::new(Int8Array::from(vec![0; ROWS])) as ArrayRef)])))
        };
        let times = Times::new(SECOND, Instant { attoseconds: 0, is_exact: true }, &DataType::Int64).unwrap();
        let indices = || Arc::new(MemoryRows::new(Arc::new(Int64Array::from(vec![-1; ROWS]))));
        let duration = DataType::Duration(TimeUnit::Second);
        let undecoded = DecodedRows::undecoded(1);
        macro_rules! wrapped {
            ($($name:literal, $inner:expr, |$rows:ident| $wrapper:expr;)*) => {
                vec![$({
                    let $rows = $inner;
                    ($name, Arc::new({ let $rows = $rows.clone(); $wrapper }) as Arc<dyn Rows>, $rows)
                }),*]
            };
        }
        wrapped! {
            "masked", numbers(), |rows| MaskedRows::new(path(), rows, mask()).unwrap();
            "NaN", floats(), |rows| NanRows::new(&rows, Nan::Missing { alone: !rows.nullable() }, true);
            "typed", numbers(), |rows| TypedRows::new(path(), rows, duration).unwrap();
            "decoded", cells(), |rows| DecodedRows::new(path(), rows, undecoded, encoding, None, Arc::default());
            "packed", numbers(), |rows| PackedRows::scaled(path(), rows, vec![2.0], 0.0).unwrap();
            "logicals", numbers(), |rows| RecodedRows::logicals(path(), rows, Arc::default()).unwrap();
            "from one", codes(), |rows| RecodedRows::from_one(path(), rows).unwrap();
            "cast", codes(), |rows| CastRows::new(rows, Some(DataType::Int64), true);
            "cast to itself", codes(), |rows| CastRows::new(rows, None, true);
            "padded", numbers(), |rows| PaddedRows::new(path(), rows, 9, Vec::new());
            "part", compounds(), |rows| PartRows::of(&rows, b"x").unwrap();
            "time", numbers(), |rows| TimeRows::new(path(), rows, times, Arc::default());
            "categories", codes(), |rows| categories(rows);
            "labels", codes(), |rows| LabelRows::new(categories(rows));
            "spread", numbers(), |rows| SpreadRows::new(path(), rows, ROWS as u64, 1, ROWS as u64);
            "chain", numbers(), |rows| ChainRows::new(vec![rows]).unwrap();
            "present", numbers(), |rows| PresentRows::new(path(), indices(), rows).unwrap();
            "ends", numbers(), |rows| EndRows::new(path(), rows).unwrap();
            "bits", bytes(), |rows| BitRows::new(path(), rows, 8, false).unwrap();
            "compound", numbers(), |rows| CompoundRows::new(path(), vec![("x".into(), rows)]).unwrap();
        }
    }

    #[test]
    fn wrappers_look_where_their_rows_lie() {
        let none = Interrupt::new();
        // Each of these gives rows other numbers. A chain does not do so to the rows of its first part, and here it has
        // no other part.
        let moved = ["spread", "present", "ends", "bits", "compound"];
        let here = |made: &dyn Fn(ArrayRef) -> MemoryRows| {
            wrappers(made).into_iter().filter(move |(name, ..)| !moved.contains(name))
        };
        for (name, rows, _) in here(&memory) {
            assert_eq!(rows.alike_until(1, &none).unwrap(), ROWS as u64, "{name}");
            rows.facts().containers.examine(&none).unwrap();
        }
        for (name, rows, _) in here(&|array| memory(array).lost()) {
            assert!(rows.facts().containers.examine(&none).is_err(), "{name} looks where its rows lie");
        }
        for (name, rows, _) in here(&|array| memory(array).nullable(true)) {
            assert!(rows.nullable(), "{name}");
        }
    }

    /// Whether a line of [`CHANGED`] names a fact; `stored` stands for all facts about stored bytes.
    fn has(line: &[&str], fact: &str) -> bool {
        line.contains(&fact) || line.contains(&"stored") && ["stored type", "stored width", "decoded"].contains(&fact)
    }

    proptest! {
        #[test]
        fn wrappers_keep_the_facts_that_they_do_not_give_up(which in 0..=FACTS) {
            for (name, rows, inner) in wrappers(&|array| with_facts(MemoryRows::new(array), which)) {
                let (_, line) = CHANGED.iter().find(|(wrapper, _)| *wrapper == name).unwrap();
                for fact in changed(inner.facts(), rows.facts()) {
                    prop_assert!(has(line, fact), "{} lost or changed {}", name, fact);
                }
            }
        }
    }

    /// No line of [`CHANGED`] may name a fact that its wrapper keeps.
    #[test]
    fn facts_that_are_said_to_change_do() {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for which in [0, FACTS] {
            for (name, rows, inner) in wrappers(&|array| with_facts(MemoryRows::new(array), which)) {
                seen.extend(changed(inner.facts(), rows.facts()).into_iter().map(|fact| (name, fact)));
            }
        }
        for (name, line) in CHANGED {
            for fact in line.iter().filter(|fact| **fact != "stored") {
                assert!(seen.contains(&(name, *fact)), "{name} keeps {fact}");
            }
        }
    }
}
