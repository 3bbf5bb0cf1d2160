//! The page index compared with one that the `parquet` crate writes for the same pages.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, LargeStringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::BoundaryOrder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::WriterProperties;

use super::{assert_ranges, bytes, column, learnt, read, view};
use crate::store::{Hints, TextLength};

/// Rows of a page of the columns here, two to a row group.
const PAGE: usize = 65_536;

fn metadata(all: &[u8]) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(all).unwrap();
    reader.parse_and_finish(&file).unwrap()
}

fn column_index(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Option<&ColumnIndexMetaData> {
    metadata.page_index().unwrap().column_index(group, leaf)
}

fn offset_index(metadata: &ParquetMetaData, group: usize, leaf: usize) -> &OffsetIndexMetaData {
    metadata.page_index().unwrap().offset_index(group, leaf).unwrap()
}

/// The file that the `parquet` crate writes for the same columns and pages.
fn native(columns: &[(&str, ArrayRef)]) -> ParquetMetaData {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| (*name, array.clone(), array.is_nullable())),
    );
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(2 * PAGE))
        .set_data_page_row_count_limit(PAGE)
        .set_write_batch_size(PAGE)
        .set_data_page_size_limit(1 << 30);
    let batch = batch.unwrap();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    metadata(&out)
}

/// Rows from a formula.
fn floats(rows: usize, value: impl Fn(usize) -> Option<f64>) -> Float64Array {
    (0..rows).map(value).collect()
}

fn of(all: &[(&str, ArrayRef, Hints)], known: bool) -> Vec<u8> {
    let columns = all.iter().map(|(name, array, hints)| {
        let column = column(name, array.clone(), hints.clone());
        column.told_by(known.then(|| learnt(array.clone())))
    });
    let view = view(columns.collect());
    let all = bytes(&view);
    let tail = all.len().saturating_sub(20_000);
    assert_ranges(&view, &all, (tail..all.len()).step_by(97).flat_map(|at| [(at, 1), (at, 300), (at, 20_000)]));
    all
}

#[test]
fn it_says_what_a_native_index_says() {
    let rows = 5 * PAGE + 1000;
    let words = |row: usize| (!row.is_multiple_of(11)).then(|| format!("{:06}", rows - row));
    let bounded = Hints { texts: TextLength::Shown(6), ..Hints::default() };
    let columns: Vec<(&str, ArrayRef, Hints)> = vec![
        (
            "rising",
            Arc::new((0..rows as i64).map(|row| (row % 7 > 0).then_some(row)).collect::<Int64Array>()),
            <_>::default(),
        ),
        // Its third page has no value, its fourth zeros of one sign.
        (
            "floats",
            Arc::new(floats(rows, |row| match row / PAGE {
                2 => None,
                3 => (row % 2 == 0).then_some(0.0),
                page => Some((page as f64 - 2.0) * (row % 1000) as f64),
            })),
            <_>::default(),
        ),
        ("falling", Arc::new((0..rows).map(words).collect::<LargeStringArray>()), bounded),
        ("measured", Arc::new((0..rows).map(words).collect::<LargeStringArray>()), <_>::default()),
        ("nothing", Arc::new(floats(rows, |_| None)), <_>::default()),
    ];
    let all = of(&columns, true);
    let ours = metadata(&all);
    let arrays: Vec<(&str, ArrayRef)> = columns.iter().map(|(name, array, _)| (*name, array.clone())).collect();
    let theirs = native(&arrays);
    for group in 0..3 {
        for (leaf, (name, ..)) in columns.iter().enumerate() {
            // The last row group has a page of 65,536 rows and one of 1,000.
            let rows = |index: &OffsetIndexMetaData| -> Vec<_> {
                index.page_locations().iter().map(|page| page.first_row_index).collect()
            };
            let (our_offsets, their_offsets) = (offset_index(&ours, group, leaf), offset_index(&theirs, group, leaf));
            assert_eq!(rows(our_offsets), rows(their_offsets), "{name} {group}");
            let chunk = ours.row_group(group).column(leaf);
            let mut next = chunk.data_page_offset();
            for page in our_offsets.page_locations() {
                assert_eq!(page.offset, next, "{name} {group}");
                next += i64::from(page.compressed_page_size);
            }
            let (start, length) = chunk.byte_range();
            assert_eq!(next as u64, start + length, "{name} {group}");
            let (our_index, their_index) = (column_index(&ours, group, leaf), column_index(&theirs, group, leaf));
            let (our_index, their_index) = (our_index.unwrap(), their_index.unwrap());
            assert_eq!(our_index.get_boundary_order(), their_index.get_boundary_order(), "{name} {group}");
            assert_eq!(our_index.null_counts(), their_index.null_counts(), "{name} {group}");
            match (our_index, their_index) {
                (ColumnIndexMetaData::INT64(ours), ColumnIndexMetaData::INT64(theirs)) => {
                    assert!(ours.min_values_iter().eq(theirs.min_values_iter()), "{name} {group}");
                    assert!(ours.max_values_iter().eq(theirs.max_values_iter()), "{name} {group}");
                }
                (ColumnIndexMetaData::DOUBLE(ours), ColumnIndexMetaData::DOUBLE(theirs)) => {
                    // The crate orders floats by IEEE 754 today; in the order of the type a least zero is negative.
                    let zero = |value: &f64, zero: f64| if *value == 0.0 { zero } else { *value }.to_bits();
                    let least = theirs.min_values_iter().map(|value| value.map(|value| zero(value, -0.0)));
                    let largest = theirs.max_values_iter().map(|value| value.map(|value| zero(value, 0.0)));
                    let bits = |value: Option<&f64>| value.map(|value| value.to_bits());
                    assert!(ours.min_values_iter().map(bits).eq(least), "{name} {group}");
                    assert!(ours.max_values_iter().map(bits).eq(largest), "{name} {group}");
                }
                (ColumnIndexMetaData::BYTE_ARRAY(ours), ColumnIndexMetaData::BYTE_ARRAY(theirs)) => {
                    assert!(ours.min_values_iter().eq(theirs.min_values_iter()), "{name} {group}");
                    assert!(ours.max_values_iter().eq(theirs.max_values_iter()), "{name} {group}");
                }
                _ => panic!("{name} has another type"),
            }
        }
    }
    let batch = read(&all);
    assert_eq!(batch["floats"].as_ref(), columns[1].1.as_ref());
}

#[test]
fn what_is_known_takes_no_room_of_its_own() {
    let rows = 3 * PAGE;
    let numbers = floats(rows, |row| (row % 5 > 0).then_some(row as f64));
    let nan = floats(rows, |row| (row % 5 > 0).then_some(if row == 11 { f64::NAN } else { 1.0 }));
    let long: LargeStringArray =
        (0..rows).map(|row| Some(if row < PAGE { "z".repeat(65) } else { "a".into() })).collect();
    let columns: [(&str, ArrayRef, Hints); 3] = [
        ("n", Arc::new(numbers), <_>::default()),
        ("nan", Arc::new(nan), <_>::default()),
        ("t", Arc::new(long), <_>::default()),
    ];
    let (known, unknown) = (of(&columns, true), of(&columns, false));
    assert_eq!(known.len(), unknown.len());
    let (known, unknown) = (metadata(&known), metadata(&unknown));
    for group in 0..2 {
        for leaf in 0..3 {
            assert_eq!(offset_index(&known, group, leaf), offset_index(&unknown, group, leaf));
            let (known, unknown) = (known.row_group(group).column(leaf), unknown.row_group(group).column(leaf));
            assert_eq!(known.byte_range(), unknown.byte_range());
            assert_eq!(unknown.column_index_range(), None);
        }
    }
    // No bounds with NaN or a long text in the chunk; of the second row group there is a single page.
    let there = |group, leaf| column_index(&known, group, leaf).is_some();
    assert_eq!([there(0, 0), there(0, 1), there(0, 2)], [true, false, false]);
    assert_eq!([there(1, 0), there(1, 1), there(1, 2)], [false, false, false]);
}

#[test]
fn pages_within_a_block_have_its_bounds() {
    // Texts of up to 24 bytes: 32,768 rows take a page.
    let rows = 2 * PAGE + PAGE / 2;
    let text = |row: usize, missing: usize| (row % PAGE >= missing).then(|| format!("{:024}", row % PAGE));
    let texts = |missing| (0..rows).map(|row| text(row, missing)).collect::<LargeStringArray>();
    let hints = Hints { texts: TextLength::Shown(24), ..Hints::default() };
    let columns: [(&str, ArrayRef, Hints); 3] = [
        ("some", Arc::new(texts(PAGE / 2 - 1)), hints.clone()),
        // Whether the first page has a value is not known.
        ("many", Arc::new(texts(PAGE / 2)), hints.clone()),
        (
            "all",
            Arc::new((0..rows).map(|row| (row >= PAGE).then(|| "x".to_owned())).collect::<LargeStringArray>()),
            hints,
        ),
    ];
    let metadata = metadata(&of(&columns, true));
    let pages = offset_index(&metadata, 0, 0).page_locations();
    assert_eq!(pages.iter().map(|page| page.first_row_index).collect::<Vec<_>>(), [0, 32_768, 65_536, 98_304]);
    let index = column_index(&metadata, 0, 0).unwrap();
    assert_eq!(index.get_boundary_order(), Some(BoundaryOrder::ASCENDING));
    let ColumnIndexMetaData::BYTE_ARRAY(some) = index else { panic!() };
    assert!(some.min_values_iter().all(|bound| bound == Some(format!("{:024}", PAGE / 2 - 1).as_bytes())));
    assert!(some.max_values_iter().all(|bound| bound == Some(format!("{:024}", PAGE - 1).as_bytes())));
    assert_eq!(some.null_count(0), None);
    assert_eq!(column_index(&metadata, 0, 1), None);
    let Some(ColumnIndexMetaData::BYTE_ARRAY(all)) = column_index(&metadata, 0, 2) else { panic!() };
    assert_eq!([0, 1, 2, 3].map(|page| all.is_null_page(page)), [true, true, false, false]);
    assert_eq!([0, 1, 2, 3].map(|page| all.null_count(page)), [Some(32_768), Some(32_768), Some(0), Some(0)]);
}

#[test]
fn files_of_single_pages_have_none() {
    for (rows, has_index) in [(PAGE, false), (PAGE + 1, true)] {
        let columns: [(&str, ArrayRef, Hints); 2] = [
            ("n", Arc::new(floats(rows, |row| (row > 0).then_some(0.5))), <_>::default()),
            ("plain", Arc::new(floats(rows, |_| Some(0.5))), <_>::default()),
        ];
        let metadata = metadata(&of(&columns, true));
        assert_eq!(metadata.page_index().is_some(), has_index);
        let chunk = metadata.row_group(0).column(1);
        assert_eq!((chunk.offset_index_range().is_some(), chunk.column_index_range()), (has_index, None));
    }
}
