//! Files read back by the `parquet` crate, which shares only the schema conversion with the code under test.

mod index;
mod lengths;

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Weak};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, Float16Array, Float64Array, Int8Array, Int16Array,
    Int64Array, LargeListArray, LargeStringArray, StringArray, UInt8Array, UInt32Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use half::f16;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::columns::ParquetColumn;
use super::view::ParquetView;
use crate::catalogue::{ColumnId, ObjectId};
use crate::learnt::Learner;
use crate::source::{Interrupt, Interrupted};
use crate::store::rows::in_memory::{Endless, MemoryRows};
use crate::store::{Answer, Error, Hints, Nan, TextLength, ValueSet};
use crate::views::rendered::BlockCache;
use crate::views::{Effort, Size, View, gathered};

pub(super) fn column(name: &str, array: impl Array + 'static, hints: Hints) -> ParquetColumn {
    let nullable = array.nulls().is_some();
    rows(name, MemoryRows::new(Arc::new(array)).nullable(nullable), hints)
}

fn rows(name: &str, memory: MemoryRows, hints: Hints) -> ParquetColumn {
    ParquetColumn::of(name, Arc::new(memory), hints)
}

/// The hints of categories with these labels.
pub(super) fn labelled(labels: ArrayRef) -> Hints {
    let values = ValueSet::Categories { labels: Arc::new(MemoryRows::new(labels)), ordered: false };
    Hints { values: Some(values), ..Hints::default() }
}

/// A learner that has seen an array of a column.
pub(super) fn learnt(array: impl Array + 'static) -> Arc<Learner> {
    let id = ObjectId { file: 0, address: 96 };
    let array: ArrayRef = Arc::new(array);
    let learner = Learner::new(&Weak::new(), "/t/x", ColumnId::whole(id), &MemoryRows::new(array.clone())).unwrap();
    learner.observe(0, &array);
    Arc::new(learner)
}

pub(super) fn view(columns: Vec<ParquetColumn>) -> ParquetView {
    ParquetView::new(columns, Arc::new(BlockCache::new(16 << 20)))
}

/// The whole file, read in blocks of 1 MiB.
pub(super) fn bytes(view: &ParquetView) -> Vec<u8> {
    let Size::Exact(size) = view.size(Effort::Exact, &Interrupt::new()).unwrap() else { panic!("no exact size") };
    let mut all = Vec::new();
    while (all.len() as u64) < size {
        let more = gathered(view, all.len() as u64, 1 << 20).unwrap();
        assert!(!more.is_empty());
        all.extend(more);
    }
    assert_eq!(all.len() as u64, size);
    assert!(gathered(view, size, 10).unwrap().is_empty());
    all
}

fn opened(bytes: &[u8]) -> ParquetRecordBatchReaderBuilder<std::fs::File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap()
}

pub(super) fn read(bytes: &[u8]) -> RecordBatch {
    let builder = opened(bytes).with_batch_size(1 << 20);
    let schema = builder.schema().clone();
    let batches = builder.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

pub(super) fn assert_ranges(view: &ParquetView, all: &[u8], ranges: impl Iterator<Item = (usize, usize)>) {
    for (offset, length) in ranges {
        let mut answer = Answer::in_memory(vec![7]);
        view.gather(offset as u64, length, &mut answer, &Interrupt::new()).unwrap();
        let out = answer.into_made();
        let due = &all[offset.min(all.len())..(offset + length).min(all.len())];
        assert!(out[0] == 7 && &out[1..] == due, "{length} bytes from {offset}");
        let mut answer = Answer::referring(Vec::new(), due.len());
        view.gather(offset as u64, length, &mut answer, &Interrupt::new()).unwrap();
        answer.read_stored(&Interrupt::new()).unwrap();
        let out: Vec<u8> = answer.parts().flat_map(|part| part.in_memory().to_vec()).collect();
        assert!(out == due, "{length} bytes from {offset}, referred to");
    }
}

#[test]
fn values_of_many_types() {
    let list = LargeListArray::new(
        Arc::new(Field::new_list_field(DataType::Int16, true)),
        OffsetBuffer::new(vec![0, 2, 2, 3].into()),
        Arc::new(Int16Array::from(vec![Some(1), None, Some(3)])),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let array = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Float64, true)),
        2,
        Arc::new(Float64Array::from(vec![1.5, 2.5, 3.5, 4.5, 5.5, 6.5])),
        None,
    );
    let labels: ArrayRef = Arc::new(LargeStringArray::from(vec!["electron", "muon"]));
    let categories = DictionaryArray::new(Int64Array::from(vec![Some(1), None, Some(0)]), labels.clone());
    let view = view(vec![
        column("i8", Int8Array::from(vec![-128, 0, 127]), Hints::default()),
        column("u8", UInt8Array::from(vec![0, 255, 128]), Hints::default()),
        column("i16", Int16Array::from(vec![-1, 2, 3]), Hints::default()),
        column("u32", UInt32Array::from(vec![u32::MAX, 0, 1]), Hints::default()),
        column("f16", Float16Array::from(vec![f16::ONE, f16::INFINITY, f16::from_f32(0.5)]), Hints::default()),
        column("n", Float64Array::from(vec![Some(0.5), None, Some(-0.0)]), Hints::default()),
        column(
            "text",
            LargeStringArray::from(vec![Some("a"), None, Some("")]),
            Hints { texts: TextLength::Shown(9), ..Hints::default() },
        ),
        column("free", LargeStringArray::from(vec!["Grüße", "", "x"]), Hints::default()),
        column("list", list, Hints::default()),
        column("array", array, Hints::default()),
        column("kind", categories, labelled(labels)),
    ]);
    let all = bytes(&view);
    let batch = read(&all);
    let ints = |name: &str| batch[name].clone();
    assert_eq!(ints("i8").as_primitive::<Int8Type>().values(), &[-128, 0, 127]);
    assert_eq!(ints("u8").as_primitive::<arrow_array::types::UInt8Type>().values(), &[0, 255, 128]);
    assert_eq!(ints("i16").as_primitive::<Int16Type>().values(), &[-1, 2, 3]);
    assert_eq!(ints("u32").as_primitive::<arrow_array::types::UInt32Type>().values(), &[u32::MAX, 0, 1]);
    assert_eq!(ints("f16").as_primitive::<Float32Type>().values(), &[1.0, f32::INFINITY, 0.5]);
    let n = ints("n");
    assert_eq!(n.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [Some(0.5), None, Some(-0.0)]);
    assert_eq!(*ints("text"), StringArray::from(vec![Some("a"), None, Some("")]));
    assert_eq!(*ints("free"), StringArray::from(vec!["Grüße", "", "x"]));
    let list = ints("list");
    let list = list.as_list::<i32>();
    assert_eq!(list.value(0).as_primitive::<Int16Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    assert!(list.is_null(1));
    let array = ints("array");
    assert_eq!(array.as_fixed_size_list().value(2).as_primitive::<Float64Type>().values(), &[5.5, 6.5]);
    let kind = ints("kind");
    let kind = kind.as_dictionary::<Int32Type>();
    let kind = kind.downcast_dict::<StringArray>().unwrap();
    assert_eq!(kind.into_iter().collect::<Vec<_>>(), [Some("muon"), None, Some("electron")]);
    // Small enough to try every range.
    assert_ranges(&view, &all, (0..=all.len()).flat_map(|start| (1..40).map(move |length| (start, length))));
    assert_ranges(&view, &all, (0..all.len()).map(|start| (start, all.len())));
}

#[test]
fn pages_of_floats_whose_nan_is_missing_are_handed_out_once() {
    let count = 200_000;
    let values: Vec<f64> = (0..count).map(|row| if row == 70_000 { f64::NAN } else { f64::from(row) }).collect();
    let nulls = NullBuffer::from_iter(values.iter().map(|value| !value.is_nan()));
    let array: ArrayRef = Arc::new(Float64Array::new(values.into(), Some(nulls)));
    let hints = Hints { nan: Nan::Missing { alone: true }, stored: true, ..Hints::default() };
    let memory = MemoryRows::new(array.clone()).nullable(true).hinted(hints.clone()).stored_as_values();
    let cache = Arc::new(BlockCache::new(16 << 20));
    let view = ParquetView::new(vec![rows("x", memory, hints)], cache.clone());
    let all = bytes(&view);
    assert!(cache.bytes() < 1 << 20, "{}", cache.bytes());
    assert_eq!(&read(&all)["x"], &array);
    assert_ranges(&view, &all, (0..all.len()).step_by(100_001).map(|start| (start, 150_000)));
}

#[test]
fn no_row_is_a_file_without_row_groups() {
    for free in [false, true] {
        let text = Hints { texts: if free { TextLength::Unknown } else { TextLength::Shown(4) }, ..Hints::default() };
        let view = view(vec![
            column("x", Int64Array::from(Vec::<i64>::new()), Hints::default()),
            column("s", LargeStringArray::from(Vec::<&str>::new()), text),
        ]);
        let all = bytes(&view);
        let builder = opened(&all);
        assert_eq!(builder.metadata().num_row_groups(), 0);
        assert_eq!(builder.schema().fields().len(), 2);
        assert_eq!(builder.build().unwrap().count(), 0);
    }
}

#[test]
fn rows_around_pages_and_groups() {
    for count in [1usize, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 262_145] {
        let numbers: Vec<i64> = (0..count as i64).map(|row| row * row).collect();
        let words: Vec<Option<String>> = (0..count).map(|row| (row % 3 > 0).then(|| "w".repeat(row % 40))).collect();
        let memory = MemoryRows::new(Arc::new(Int64Array::from(numbers.clone()))).stored_as_values();
        let halves: Vec<Option<f64>> = (0..count).map(|row| (row % 7 > 0).then_some(row as f64 / 2.0)).collect();
        let view = view(vec![
            rows("n", memory, Hints { stored: true, ..Hints::default() }),
            column("h", Float64Array::from(halves.clone()), Hints::default()),
            column("w", LargeStringArray::from(words.clone()), Hints::default()),
            column("b", Int8Array::from_iter_values((0..count).map(|row| row as i8)), Hints::default()),
        ]);
        let all = bytes(&view);
        let batch = read(&all);
        assert_eq!(batch["n"].as_primitive::<Int64Type>().values(), &numbers, "{count}");
        assert!(batch["h"].as_primitive::<Float64Type>().iter().eq(halves), "{count}");
        assert!(batch["w"].as_string::<i32>().iter().eq(words.iter().map(Option::as_deref)), "{count}");
        assert!((0..count).all(|row| batch["b"].as_primitive::<Int8Type>().value(row) == row as i8), "{count}");
        let mut seed = 1_usize;
        let ranges = (0..300).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 20) % all.len(), 1 + (seed >> 10) % 200_000)
        });
        assert_ranges(&view, &all, ranges);
    }
}

#[test]
fn cells_lie_on_boundaries_and_come_as_stored() {
    let numbers: Vec<i64> = (0..20_000).collect();
    let rows = Arc::new(MemoryRows::new(Arc::new(Int64Array::from(numbers))).stored_as_values());
    let hints = Hints { stored: true, ..Hints::default() };
    let view = view(vec![
        column("a", Int8Array::from(vec![1; 20_000]), Hints::default()),
        ParquetColumn::of("n", rows.clone(), hints),
    ]);
    let all = bytes(&view);
    let metadata = opened(&all).metadata().clone();
    // The header of a page takes 45 bytes.
    let start = metadata.row_group(0).column(1).data_page_offset() as usize + 45;
    assert_eq!(start % 4096, 0);
    assert_eq!(all[start + 8 * 19_999..][..8], 19_999_i64.to_le_bytes());
    // Nothing was decoded into an array for it.
    assert_eq!(rows.calls(), 0);
}

#[test]
fn a_text_of_fixed_width_has_room_as_it_is_stored_and_comes_back_where_it_grows() {
    let hints = || Hints { texts: TextLength::Stored(16), ..Hints::default() };
    let count = 70_000;
    // One page in three holds bytes that are no UTF-8, up to all of them.
    let cell = |row: usize| -> Vec<u8> {
        let bad = if row / 32_768 == 1 { row % 17 } else { 0 };
        (0..16).map(|at| if at < bad { 0x80 | at as u8 } else { b'a' + (row % 26) as u8 }).collect()
    };
    let texts: Vec<String> = (0..count).map(|row| String::from_utf8_lossy(&cell(row)).into_owned()).collect();
    let holes: Vec<Option<&str>> =
        texts.iter().enumerate().map(|(row, text)| (row % 5 > 0).then_some(text.as_str())).collect();
    let pairs = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::LargeUtf8, true)),
        2,
        Arc::new(LargeStringArray::from_iter_values(texts.iter().flat_map(|text| [text, text]))),
        None,
    );
    let of_pairs = Hints { items: Some(Box::new(hints())), ..Hints::default() };
    let view = view(vec![
        column("t", LargeStringArray::from(texts.clone()), hints()),
        column("h", LargeStringArray::from(holes.clone()), hints()),
        column("p", pairs, of_pairs),
    ]);
    let Size::Exact(size) = view.size(Effort::Quick, &Interrupt::new()).unwrap() else { panic!() };
    assert!(size < 4 * count as u64 * 22, "{size}");
    let all = bytes(&view);
    assert_eq!(all.len() as u64, size);
    let batch = read(&all);
    assert!(batch["t"].as_string::<i32>().iter().eq(texts.iter().map(|text| Some(text.as_str()))));
    assert!(batch["h"].as_string::<i32>().iter().eq(holes));
    let pairs = batch["p"].as_fixed_size_list().values().clone();
    assert!(pairs.as_string::<i32>().iter().eq(texts.iter().flat_map(|text| [Some(text.as_str()); 2])));
    assert_ranges(&view, &all, (0..200).map(|at| (at * 30_011, 70_000)));
}

#[test]
fn a_long_value_has_a_page_of_its_own() {
    let long = "x".repeat(3 << 20);
    let words = vec!["a", &long, "b", "c"];
    let view = view(vec![column("w", LargeStringArray::from(words.clone()), Hints::default())]);
    let all = bytes(&view);
    assert!(read(&all)["w"].as_string::<i32>().iter().eq(words.into_iter().map(Some)));
    assert_ranges(&view, &all, (0..50).map(|at| (at * 62_000, 130_000)));
}

#[test]
fn a_damaged_chunk_costs_its_rows_alone() {
    let words: Vec<String> = (0..10_000).map(|row| row.to_string()).collect();
    let memory = || MemoryRows::new(Arc::new(LargeStringArray::from(words.clone())));
    let view = view(vec![rows("w", memory().broken(5000..5001), Hints::default())]);
    let Size::Exact(size) = view.size(Effort::Exact, &Interrupt::new()).unwrap() else { panic!() };
    let sound = self::view(vec![rows("w", memory(), Hints::default())]);
    let (mut good, mut bad) = (0, 0);
    for at in (0..size).step_by(512) {
        match gathered(&view, at, 512) {
            Ok(_) => good += 1,
            Err(Error::Chunk { .. }) => bad += 1,
            Err(other) => panic!("{other}"),
        }
    }
    // 1,024 rows at most are lost, and they have no bytes but a header.
    assert!((1..=2).contains(&bad) && good > 60, "{good} {bad}");
    assert!(bytes(&sound).len() as u64 > size);
    assert_eq!(&gathered(&view, size - 8, 8).unwrap()[4..], b"PAR1");
}

#[test]
fn a_free_size_reads_nothing_and_a_quick_one_is_exact() {
    let text = Arc::new(MemoryRows::new(Arc::new(LargeStringArray::from(vec!["a", "bc"]))));
    let view = self::view(vec![ParquetColumn::of("t", text.clone(), Hints::default())]);
    let interrupt = Interrupt::new();
    assert!(matches!(view.size(Effort::Free, &interrupt).unwrap(), Size::AtMost(_)));
    assert_eq!(text.calls(), 0);
    let size = view.size(Effort::Quick, &interrupt).unwrap();
    assert!(matches!(size, Size::Exact(_)));
    assert_eq!(view.size(Effort::Free, &interrupt).unwrap(), size);
    let numbers = self::view(vec![column("n", Int64Array::from(vec![1, 2]), Hints::default())]);
    assert!(matches!(numbers.size(Effort::Free, &interrupt).unwrap(), Size::Exact(_)));
}

#[test]
fn a_pass_without_waiters_ends() {
    let view = view(vec![column("t", LargeStringArray::from(vec!["a"]), Hints::default())]);
    let interrupt = Interrupt::new();
    interrupt.raise();
    let outcome = view.size(Effort::Exact, &interrupt);
    assert!(matches!(outcome, Err(Error::Interrupted(Interrupted))));
    assert!(matches!(view.size(Effort::Exact, &Interrupt::new()), Ok(Size::Exact(_))));
}

#[test]
fn the_same_bytes_whatever_was_asked_before() {
    let make = || {
        let words: Vec<String> = (0..70_000).map(|row| format!("{}", row * 7)).collect();
        view(vec![
            column("w", LargeStringArray::from(words), Hints::default()),
            column("n", Float64Array::from_iter((0..70_000).map(|row| (row % 5 > 0).then_some(0.5))), Hints::default()),
        ])
    };
    let (first, second) = (make(), make());
    let all = bytes(&first);
    // From the back, in odd pieces.
    let mut at = all.len();
    while at > 0 {
        let length = at.min(77_777);
        at -= length;
        assert_ranges(&second, &all, std::iter::once((at, length)));
    }
}

#[test]
fn names_and_notes_reach_readers() {
    let mut energy = column("E", Float64Array::from(vec![1.0]), Hints::default());
    energy.notes = vec![("units", "keV".into()), ("description", "deposited".into())];
    let mut label = column("id", Int64Array::from(vec![5]), Hints::default());
    label.is_label = true;
    let twin = column("E", Int64Array::from(vec![None::<i64>]), Hints::default());
    let all = bytes(&view(vec![label, energy, twin]));
    let builder = opened(&all);
    assert!(builder.schema().metadata().contains_key("pandas"));
    let names: Vec<_> = builder.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "E", "E~2"]);
    assert_eq!(builder.schema().field(1).metadata().get("h5col.units").map(String::as_str), Some("keV"));
    let file = builder.metadata().file_metadata();
    assert!(file.created_by().unwrap().starts_with("hepfs version 0."));
    let keys: HashMap<_, _> =
        file.key_value_metadata().unwrap().iter().map(|pair| (pair.key.clone(), pair.value.clone().unwrap())).collect();
    assert_eq!((keys["E.units"].as_str(), keys["E.description"].as_str()), ("keV", "deposited"));
    let pandas: serde_json::Value = serde_json::from_str(&keys["pandas"]).unwrap();
    assert_eq!(pandas["index_columns"], serde_json::json!(["id"]));
    let types = [0, 1, 2].map(|at| &pandas["columns"][at]["numpy_type"]);
    assert_eq!(types, ["int64", "float64", "int64"]);
    let plain = bytes(&view(vec![column("x", Int64Array::from(vec![5]), Hints::default())]));
    let keys = opened(&plain).metadata().file_metadata().key_value_metadata().unwrap().clone();
    assert!(keys.iter().all(|pair| pair.key == "ARROW:schema"));
}

#[test]
fn sizes_of_huge_tables_are_arithmetic() {
    let wide = |columns: usize, rows: u64, nullable: bool| -> Vec<_> {
        let rows = Arc::new(Endless::new(rows, DataType::Int64, nullable));
        (0..columns).map(|at| ParquetColumn::of(&format!("c{at}"), rows.clone(), Hints::default())).collect()
    };
    let opened = |columns: Vec<ParquetColumn>| {
        assert_eq!(ParquetView::check(&columns), Ok(()));
        let view = view(columns);
        let Size::Exact(size) = view.size(Effort::Free, &Interrupt::new()).unwrap() else { panic!() };
        let tail = gathered(&view, size - 8, 8).unwrap();
        let footer = u32::from_le_bytes(tail[..4].try_into().unwrap()) as u64;
        let whole = gathered(&view, size - 8 - footer, footer as usize).unwrap();
        (size, parquet::file::metadata::ParquetMetaDataReader::decode_metadata(&whole).unwrap())
    };
    let (size, metadata) = opened(wide(1000, 1_000_000_000, false));
    assert!(size > 8_000_000_000_000 && size < 8_001_000_000_000, "{size}");
    assert_eq!((metadata.num_row_groups(), metadata.file_metadata().num_rows()), (60, 1_000_000_000));
    // A page index of 6 MB is there, one of 840 MB is not.
    for (columns, has_index) in [(5, true), (1000, false)] {
        let (_, metadata) = opened(wide(columns, 1_000_000_000, true));
        assert_eq!(metadata.row_group(0).column(0).offset_index_range().is_some(), has_index, "{columns}");
    }
    // A footer of more than 256 MiB, and a file of more than 2^62 bytes.
    assert!(ParquetView::check(&wide(30_000, 1_000_000_000, false)).unwrap_err().to_string().contains("256 MiB"));
    assert!(ParquetView::check(&wide(1, 1 << 61, false)).unwrap_err().to_string().contains("2^62"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_texts_and_numbers_come_back(
        values in proptest::collection::vec(
            (proptest::option::of("[a-zäß]{0,12}"), proptest::option::of(any::<i64>()), any::<bool>()),
            0..300,
        ),
        ranges in proptest::collection::vec((0..20_000usize, 1..5000usize), 20),
    ) {
        let texts: Vec<Option<String>> = values.iter().map(|(text, _, _)| text.clone()).collect();
        let numbers: Vec<Option<i64>> = values.iter().map(|(_, number, _)| *number).collect();
        let flags: Vec<bool> = values.iter().map(|(_, _, flag)| *flag).collect();
        let nullable = |array: ArrayRef| MemoryRows::new(array).nullable(true);
        let bounded = Hints { texts: TextLength::Shown(36), ..Hints::default() };
        let view = view(vec![
            rows("t", nullable(Arc::new(LargeStringArray::from(texts.clone()))), bounded),
            rows("u", nullable(Arc::new(LargeStringArray::from(texts.clone()))), Hints::default()),
            rows("n", nullable(Arc::new(Int64Array::from(numbers.clone()))), Hints::default()),
            column("f", arrow_array::BooleanArray::from(flags.clone()), Hints::default()),
        ]);
        let all = bytes(&view);
        let batch = read(&all);
        for name in ["t", "u"] {
            prop_assert!(batch[name].as_string::<i32>().iter().eq(texts.iter().map(Option::as_deref)));
        }
        prop_assert!(batch["n"].as_primitive::<Int64Type>().iter().eq(numbers));
        prop_assert!(batch["f"].as_boolean().iter().eq(flags.into_iter().map(Some)));
        assert_ranges(&view, &all, ranges.into_iter());
    }
}
