//! Any part of a file is what the whole has there, and the whole is what the rows say, however it is cut.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, LargeListArray,
    LargeStringArray, NullArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields};
use proptest::prelude::*;

use super::*;
use crate::table::CompoundRows;

/// A column with what it is to be read as.
type Case = (IpcColumn, ArrayRef);

fn words(seed: &[u8]) -> Vec<Option<String>> {
    let word = |byte: &u8| {
        (!byte.is_multiple_of(7)).then(|| "ÿwörd ".repeat(usize::from(*byte % 5))[..].to_owned() + &byte.to_string())
    };
    seed.iter().map(word).collect()
}

fn lists(seed: &[u8], values: &dyn Fn(usize) -> ArrayRef) -> ArrayRef {
    let lengths: Vec<usize> = seed.iter().map(|byte| usize::from(*byte % 4)).collect();
    let values = values(lengths.iter().sum());
    let nulls = NullBuffer::from_iter(seed.iter().map(|byte| *byte % 5 != 0));
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(LargeListArray::new(field, OffsetBuffer::from_lengths(lengths), values, Some(nulls)))
}

/// A column of one of the kinds, with values from `seed`.
fn case(kind: u8, seed: &[u8]) -> Case {
    let name = format!("column {kind}");
    let numbers = || Int64Array::from_iter(seed.iter().map(|byte| (*byte % 3 != 0).then_some(i64::from(*byte) << 40)));
    match kind % 12 {
        0 => {
            let array: ArrayRef = Arc::new(Int64Array::from_iter_values(seed.iter().map(|byte| i64::from(*byte))));
            (column(&name, Arc::new(MemoryRows::new(array.clone()).stored_as_values()), Some(integer(8, true))), array)
        }
        1 => {
            let array: ArrayRef = Arc::new(numbers());
            let rows = MemoryRows::new(array.clone()).stored_as_values().nullable(true);
            (column(&name, Arc::new(rows), Some(integer(8, true))), array)
        }
        2 => {
            let bits = seed.iter().map(|byte| (*byte % 3 != 0).then_some(*byte % 2 == 0));
            let array: ArrayRef = Arc::new(BooleanArray::from_iter(bits));
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), None), array)
        }
        3 => {
            let array: ArrayRef = Arc::new(LargeStringArray::from(words(seed)));
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), Some(fixed_string(20))), array)
        }
        4 => {
            let array: ArrayRef = Arc::new(LargeStringArray::from(words(seed)));
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), None), array)
        }
        5 => {
            let keys = Int64Array::from_iter(seed.iter().map(|byte| (*byte % 3 != 0).then_some(i64::from(*byte % 4))));
            let labels = Arc::new(LargeStringArray::from(vec!["a", "a longer label", "", "d"]));
            let array: ArrayRef = Arc::new(DictionaryArray::<Int64Type>::try_new(keys, labels).unwrap());
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), Some(integer(1, true))), array)
        }
        6 => {
            let inner = |count: usize| {
                let seed: Vec<u8> = (0..count).map(|at| (at * 37 % 251) as u8).collect();
                lists(&seed, &|count| {
                    let bytes: Vec<u8> = (0..count).map(|at| (at * 101 % 241) as u8).collect();
                    Arc::new(LargeStringArray::from(words(&bytes)))
                })
            };
            let array = lists(seed, &inner);
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), None), array)
        }
        7 => {
            let keys = Int32Array::from_iter_values(seed.iter().map(|byte| i32::from(*byte % 3)));
            let labels =
                Arc::new(LargeStringArray::from(vec!["a name that is rather long", "b", "-1234567890123456789"]));
            let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, labels).unwrap());
            let datatype = enumeration(8, &[("a name that is rather long", 0), ("b", 1)]);
            (memory(&name, array.clone(), Some(datatype)), array)
        }
        8 => {
            let fields = [1, 4, 10, 6, 2].map(|kind| (kind.to_string(), case(kind, seed)));
            let types = fields.each_ref().map(|(name, (_, array))| Field::new(name, array.data_type().clone(), true));
            let arrays = fields.each_ref().map(|(_, (_, array))| array.clone());
            let array: ArrayRef = Arc::new(
                StructArray::try_new_with_length(types.to_vec().into(), arrays.into(), None, seed.len()).unwrap(),
            );
            let fields = fields.into_iter().map(|(name, (column, _))| (name, column.rows)).collect();
            (column(&name, Arc::new(CompoundRows::new("/t/x".into(), fields).unwrap()), None), array)
        }
        10 => {
            let array: ArrayRef = Arc::new(NullArray::new(seed.len()));
            (column(&name, Arc::new(MemoryRows::new(array.clone()).nullable(true)), None), array)
        }
        11 => {
            let array = lists(seed, &|count| Arc::new(NullArray::new(count)));
            (column(&name, Arc::new(MemoryRows::new(array.clone()).nullable(true)), None), array)
        }
        _ => {
            let triples = FixedSizeListArray::new(
                Arc::new(Field::new_list_field(DataType::Boolean, true)),
                3,
                Arc::new(BooleanArray::from_iter(
                    seed.iter().flat_map(|byte| [Some(byte & 1 != 0), None, Some(byte & 2 != 0)]),
                )),
                None,
            );
            let fields = Fields::from(vec![
                Field::new("n", DataType::Int64, true),
                Field::new("triples", triples.data_type().clone(), true),
            ]);
            let plain = Int64Array::from_iter_values(seed.iter().map(|byte| i64::from(*byte) * 3));
            let nulls = NullBuffer::from_iter(seed.iter().map(|byte| *byte % 6 != 0));
            let array: ArrayRef =
                Arc::new(StructArray::new(fields, vec![Arc::new(plain), Arc::new(triples)], Some(nulls)));
            let rows = MemoryRows::new(array.clone()).nullable(true);
            (column(&name, Arc::new(rows), None), array)
        }
    }
}

/// Rows as text, so that types that mean the same compare.
fn shown(array: &ArrayRef) -> Vec<String> {
    let cell = |row| {
        if array.is_null(row) {
            return "null".to_owned();
        }
        match array.data_type() {
            DataType::Null => "null".to_owned(),
            DataType::Boolean => array.as_boolean().value(row).to_string(),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
            DataType::LargeUtf8 => format!("{:?}", array.as_string::<i64>().value(row)),
            DataType::Utf8View => format!("{:?}", array.as_string_view().value(row)),
            DataType::LargeList(_) => format!("{:?}", shown(&array.as_list::<i64>().value(row))),
            DataType::FixedSizeList(..) => format!("{:?}", shown(&array.as_fixed_size_list().value(row))),
            DataType::Struct(_) => {
                let fields = array.as_struct().columns().iter();
                fields.map(|field| shown(&field.slice(row, 1)).concat()).collect::<Vec<_>>().join(", ")
            }
            other => panic!("no text for {other}"),
        }
    };
    match array.as_any_dictionary_opt() {
        Some(dictionary) => shown(&arrow_select::take::take(dictionary.values(), dictionary.keys(), None).unwrap()),
        None => (0..array.len()).map(cell).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 256 }))]

    #[test]
    fn a_file_is_its_rows_and_a_read_is_a_part_of_it(
        kinds in proptest::collection::vec(any::<u8>(), 1..4),
        seed in proptest::collection::vec(any::<u8>(), 0..90),
        batch in 3..7_u32,
        piece in 0..10_u32,
        variable in 0..4_u32,
        reads in proptest::collection::vec((any::<prop::sample::Index>(), 0..700_usize), 30),
    ) {
        let grain = Grain { batch: 1 << batch, piece: 1 << piece, variable: 1 << variable };
        let cases: Vec<Case> = kinds.iter().map(|kind| case(*kind, &seed)).collect();
        let columns = || cases.iter().map(|(column, _)| column.clone()).collect();
        let bytes = whole(&view(columns()).cut(grain));
        let (schema, batches) = read(bytes.clone());
        prop_assert_eq!(batches.len(), seed.len().div_ceil(1 << batch));
        let all = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
        for ((_, expected), column) in cases.iter().zip(all.columns()) {
            prop_assert_eq!(shown(column), shown(expected));
        }
        // Without what was rendered before.
        let fresh = view(columns()).cut(grain);
        for (index, length) in reads {
            let offset = index.index(bytes.len());
            let mut answer = Answer::in_memory(vec![1, 2, 3]);
            fresh.gather(offset as u64, length, &mut answer, &Interrupt::new()).unwrap();
            prop_assert_eq!(&answer.into_made()[3..], &bytes[offset..(offset + length).min(bytes.len())]);
        }
    }
}

#[test]
fn pieces_without_items_lie_between_others() {
    // Lists of lists of texts, one row a piece: many pieces share the bytes of the inner bitmaps, some with no bit in
    // them.
    let (column, expected) = case(6, &[83, 30, 31, 54, 83, 110, 246, 218, 94, 220, 52, 112]);
    let grain = Grain { batch: 8, piece: 1, variable: 1 };
    let (schema, batches) = read(whole(&view(vec![column]).cut(grain)));
    let all = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
    assert_eq!(shown(all.column(0)), shown(&expected));
}

#[test]
fn a_field_that_cannot_be_read_is_none_of_the_others() {
    let numbers = |broken| Arc::new(MemoryRows::new(Arc::new(Int64Array::from_iter_values(0..64))).broken(broken));
    let fields: Vec<(String, Arc<dyn Rows>)> =
        vec![("a".into(), numbers(0..0)), ("b".into(), numbers(0..64)), ("c".into(), numbers(0..0))];
    let rows = CompoundRows::new("/t/x".into(), fields).unwrap();
    let hints = rows.facts().hints.clone();
    let view = view(vec![IpcColumn { hints, ..column("x", Arc::new(rows), None) }]);
    let failed = (0..size(&view) as u64).filter(|at| gathered(&view, *at, 1).is_err());
    assert_eq!(failed.count(), 64 * 8);
}

#[test]
fn nothing_lies_past_the_end() {
    let (column, _) = case(0, &[1, 2, 3]);
    let view = view(vec![column]);
    let size = size(&view) as u64;
    for offset in [size, size + 1, u64::MAX] {
        assert!(gathered(&view, offset, 100).unwrap().is_empty());
    }
}
