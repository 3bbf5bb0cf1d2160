//! Columns without nesting: bytes worked out by hand, and values read back.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float16Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeStringArray, UInt8Array, UInt16Array, UInt64Array,
};
use arrow_schema::DataType;
use half::f16;

use super::tree::{Tree, rows};
use super::{dictionary, read_back};
use crate::catalogue::{ByteOrder, Charset, Class, Datatype, EnumerationMember, Padding};
use crate::store::rows::in_memory::MemoryRows;
use crate::store::{Hints, TextLength, ValueSet};
use crate::views::parquet::body::leaf::{Body, FixedWidthBody, ParquetLeaf};
use crate::views::parquet::columns::shape::{Given, LeafMapping};
use crate::views::parquet::thrift::page::PageEncoding;

fn shape(array: &ArrayRef, nullable: bool, hints: &Hints) -> LeafMapping {
    LeafMapping::new("x", array.data_type(), nullable, hints, Given::default()).unwrap()
}

/// Of a column of categories with these labels.
fn shape_with(array: &ArrayRef, labels: &ArrayRef, row_group: Option<u64>) -> LeafMapping {
    let given = Given { labels: Some(labels.clone()), row_group, codes: 0 };
    LeafMapping::new("x", array.data_type(), true, &Hints::default(), given).unwrap()
}

fn only(shape: &LeafMapping) -> &ParquetLeaf {
    let [leaf] = shape.leaves() else { panic!("{} leaves", shape.leaves().len()) };
    leaf
}

fn body(array: ArrayRef, nullable: bool, hints: &Hints) -> (Vec<u8>, Body) {
    let mut out = Vec::new();
    let body = only(&shape(&array, nullable, hints)).append(&array, &mut out).unwrap();
    (out, body)
}

fn plain(array: ArrayRef, nullable: bool) -> Vec<u8> {
    body(array, nullable, &Hints::default()).0
}

#[test]
fn required_numbers_are_nothing_but_cells() {
    assert_eq!(plain(Arc::new(Int32Array::from(vec![1, -2])), false), [1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
    assert_eq!(plain(Arc::new(Int16Array::from(vec![-2])), false), [0xfe, 0xff, 0xff, 0xff]);
    assert_eq!(plain(Arc::new(UInt16Array::from(vec![0xfffe])), false), [0xfe, 0xff, 0, 0]);
    // 1.5 = 0x3fc00000.
    assert_eq!(plain(Arc::new(Float16Array::from(vec![f16::from_f32(1.5)])), false), [0, 0, 0xc0, 0x3f]);
    assert_eq!(plain(Arc::new(Float32Array::from(vec![1.5])), false), [0, 0, 0xc0, 0x3f]);
}

#[test]
fn levels_of_a_page_with_nulls_are_one_bit_packed_run() {
    let (bytes, body) = body(Arc::new(Int32Array::from(vec![Some(7), None, Some(8)])), true, &Hints::default());
    // Length 2; header (1 group << 1) | 1; bits 0 and 2. Then the two values there are.
    assert_eq!(bytes, [2, 0, 0, 0, 3, 0b101, 7, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(body, Body { bytes: 14, entries: 3, nulls: 1 });
}

#[test]
fn equal_levels_are_one_rle_run() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), Some(8), Some(9)]));
    assert_eq!(plain(array, true), [2, 0, 0, 0, 6, 1, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0]);
    let array: ArrayRef = Arc::new(Int32Array::from(vec![None; 3]));
    assert_eq!(plain(array, true), [2, 0, 0, 0, 6, 0]);
    let array: ArrayRef = Arc::new(Int32Array::new_null(0));
    assert_eq!(plain(array, true), [0, 0, 0, 0]);
}

#[test]
fn booleans_are_bits_and_texts_stand_behind_their_lengths() {
    let array = BooleanArray::from(vec![true, false, true, true, false, false, false, false, true]);
    assert_eq!(plain(Arc::new(array), false), [0b0000_1101, 1]);
    let array = BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]);
    assert_eq!(plain(Arc::new(array), true), [2, 0, 0, 0, 3, 0b1101, 0b101]);
    let array = LargeStringArray::from(vec!["hi", "", "é"]);
    assert_eq!(plain(Arc::new(array), false), b"\x02\0\0\0hi\0\0\0\0\x02\0\0\0\xc3\xa9");
    let array = FixedSizeBinaryArray::try_from_iter([b"abc", b"def"].into_iter()).unwrap();
    assert_eq!(plain(Arc::new(array), false), b"abcdef");
}

#[test]
fn what_follows_the_last_bit_of_a_slice_does_not_show() {
    let array = BooleanArray::from(vec![true; 20]);
    assert_eq!(plain(Arc::new(array.slice(3, 3)), false), [0b111]);
    let array = Int8Array::from(vec![Some(1), None, Some(3), Some(4), None, None, Some(7)]);
    // Rows 1..5: bits 0110; then bit width 8, one group, the indices of 3 and 4, and six unused.
    let expected = [2, 0, 0, 0, 3, 0b0110, 8, 3, 3, 4, 0, 0, 0, 0, 0, 0];
    assert_eq!(plain(Arc::new(array.slice(1, 4)), true), expected);
}

#[test]
fn bytes_are_indices_into_all_bytes() {
    let array: ArrayRef = Arc::new(Int8Array::from(vec![-1, 0, 127]));
    let hints = Hints { stored: true, ..Hints::default() };
    let shape = shape(&array, false, &hints);
    let leaf = only(&shape);
    assert_eq!(leaf.encoding, PageEncoding::Dictionary);
    assert!(leaf.stored);
    let (numbers, entries) = dictionary(leaf).unwrap();
    assert_eq!(entries, 256);
    assert_eq!(numbers.len(), 1024);
    assert_eq!(numbers[255 * 4..], [0xff; 4]);
    assert_eq!(numbers[127 * 4..129 * 4], [127, 0, 0, 0, 0x80, 0xff, 0xff, 0xff]);
    let mut out = Vec::new();
    leaf.append(&array, &mut out).unwrap();
    assert_eq!(out, [8, 3, 0xff, 0, 127, 0, 0, 0, 0, 0]);
    let cells = leaf.cells(3).unwrap();
    let mut lead = Vec::new();
    leaf.lead(3, &mut lead).unwrap();
    assert_eq!((cells, lead.as_slice()), (FixedWidthBody { before: 2, width: 1, after: 5 }, [8, 3].as_slice()));
    assert_eq!(rows(&read_back(&shape, &[array])), [-1, 0, 127].map(Tree::Integer));
}

fn categories(keys: Vec<Option<i64>>, labels: &ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int64Type>::try_new(Int64Array::from(keys), labels.clone()).unwrap())
}

#[test]
fn categories_have_one_run_whatever_is_null() {
    let labels: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "bc"]));
    let array = categories(vec![Some(1), None, Some(0)], &labels);
    let values = ValueSet::Categories { labels: Arc::new(MemoryRows::new(labels.clone())), ordered: true };
    let hints = Hints { values: Some(values), ..Hints::default() };
    let given = Given { labels: Some(labels), ..Given::default() };
    let shape = LeafMapping::new("x", array.data_type(), true, &hints, given).unwrap();
    let leaf = only(&shape);
    assert_eq!(dictionary(leaf), Some((b"\x01\0\0\0a\x02\0\0\0bc".as_slice(), 2)));
    let mut out = Vec::new();
    leaf.append(&array, &mut out).unwrap();
    assert_eq!(out, [2, 0, 0, 0, 3, 0b101, 8, 3, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(shape.field().dict_is_ordered(), Some(true));
    assert_eq!(rows(&read_back(&shape, &[array])), [Tree::text("bc"), Tree::Null, Tree::text("a")]);
}

#[test]
fn many_categories_take_wider_indices() {
    for count in [256usize, 257, 65_536, 65_537] {
        let labels: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..count).map(|i| i.to_string())));
        let keys = [0, count as i64 - 1, 255];
        let array = categories(keys.map(Some).to_vec(), &labels);
        let shape = shape_with(&array, &labels, None);
        let width = if count <= 256 {
            1
        } else if count <= 65_536 {
            2
        } else {
            3
        };
        assert_eq!(only(&shape).most_body(8), Some(4 + 2 + 1 + 1 + 8 * width), "{count}");
        let expected = keys.map(|key| Tree::text(&key.to_string()));
        assert_eq!(rows(&read_back(&shape, &[array])), expected, "{count}");
    }
}

#[test]
fn labels_that_repeat_or_are_missing_are_kept_out_of_the_dictionary() {
    let labels: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
    let array = categories(vec![Some(0), Some(1), Some(2), Some(3), None], &labels);
    let shape = shape_with(&array, &labels, None);
    assert_eq!(dictionary(only(&shape)).unwrap().1, 2);
    let expected = [Tree::text("a"), Tree::Null, Tree::text("b"), Tree::text("a"), Tree::Null];
    assert_eq!(rows(&read_back(&shape, &[array])), expected);
}

#[test]
fn categories_without_a_dictionary_are_plain() {
    // Two labels of 40,000 bytes, 4 more each in a page: one row's text takes as much as one, so that two are more than
    // one row group needs.
    let long = ["a", "b"].map(|letter| letter.repeat(40_000));
    let labels: ArrayRef = Arc::new(LargeStringArray::from(long.to_vec()));
    let array = categories(vec![Some(1), None], &labels);
    let of = |row_group| shape_with(&array, &labels, Some(row_group));
    assert_eq!(only(&of(2)).encoding, PageEncoding::Dictionary);
    let shape_of_one = of(1);
    assert_eq!(only(&shape_of_one).encoding, PageEncoding::Plain);
    assert_eq!(only(&shape_of_one).most_body(2), Some(4 + 2 + 80_008));
    assert_eq!(rows(&read_back(&shape_of_one, std::slice::from_ref(&array))), [Tree::text(&long[1]), Tree::Null]);
    // Whose order means something.
    let values = ValueSet::Categories { labels: Arc::new(MemoryRows::new(labels.clone())), ordered: true };
    let hints = Hints { values: Some(values), ..Hints::default() };
    let given = Given { labels: Some(labels), row_group: Some(1), ..Given::default() };
    let ordered = LeafMapping::new("x", array.data_type(), true, &hints, given).unwrap();
    assert_eq!(only(&ordered).encoding, PageEncoding::Dictionary);
    // Few.
    let labels: ArrayRef = Arc::new(LargeStringArray::from(vec!["abc", "def", "ghi"]));
    let array = categories(vec![Some(1), None], &labels);
    assert_eq!(only(&shape_with(&array, &labels, Some(1))).encoding, PageEncoding::Dictionary);
    // Labels that could not be read.
    let shape_of_none = shape(&array, true, &Hints::default());
    assert_eq!(only(&shape_of_none).most_body(2), None);
    assert_eq!(rows(&read_back(&shape_of_none, &[array])), [Tree::text("def"), Tree::Null]);
    // No labels at all.
    let labels: ArrayRef = Arc::new(LargeStringArray::from(Vec::<&str>::new()));
    let array = categories(vec![None, None], &labels);
    assert_eq!(rows(&read_back(&shape_with(&array, &labels, None), &[array])), [Tree::Null, Tree::Null]);
}

#[test]
fn labels_that_are_numbers_stand_as_numbers() {
    let labels: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.5), None, Some(-1.0)]));
    let array = categories(vec![Some(2), Some(1), None, Some(0)], &labels);
    let shape_of_doubles = shape_with(&array, &labels, None);
    assert_eq!(*shape_of_doubles.field().data_type(), DataType::Float64);
    let expected = [Tree::float(-1.0), Tree::Null, Tree::Null, Tree::float(2.5)];
    assert_eq!(rows(&read_back(&shape_of_doubles, &[array])), expected);
    let labels: ArrayRef = Arc::new(UInt8Array::from(vec![200, 3]));
    let array = categories(vec![Some(1), None, Some(0)], &labels);
    let shape_of_bytes = shape(&array, true, &Hints::default());
    let expected = [Tree::Integer(3), Tree::Null, Tree::Integer(200)];
    assert_eq!(rows(&read_back(&shape_of_bytes, &[array])), expected);
}

fn enumeration(size: u64, signed: bool, members: &[(&str, i128)]) -> Datatype {
    let base = Box::new(Datatype::integer(size, signed, ByteOrder::Little));
    let members =
        members.iter().map(|(name, value)| EnumerationMember { name: (*name).into(), value: *value }).collect();
    Datatype { size, class: Class::Enum { base, members } }
}

fn names(keys: Vec<Option<i32>>, labels: &[&str]) -> ArrayRef {
    let labels = Arc::new(LargeStringArray::from(labels.to_vec()));
    Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), labels).unwrap())
}

#[test]
fn an_enumeration_of_one_byte_has_a_dictionary_of_all_codes() {
    let hints = Hints::of(&enumeration(1, true, &[("RED", 0), ("GREEN", -1)]));
    let pages = [
        names(vec![Some(0), Some(1), None], &["RED", "GREEN"]),
        // Another page met the unnamed code 5.
        names(vec![Some(2), Some(1), Some(0)], &["RED", "GREEN", "5"]),
    ];
    let nullable = shape(&pages[0], true, &hints);
    let (body, entries) = dictionary(only(&nullable)).unwrap();
    assert_eq!(entries, 256);
    assert!(body.starts_with(b"\x03\0\0\0RED\x01\0\0\x001\x01\0\0\x002"));
    assert!(body.ends_with(b"\x02\0\0\0-2\x05\0\0\0GREEN"));
    let text = Tree::text;
    let expected = [text("RED"), text("GREEN"), Tree::Null, text("5"), text("GREEN"), text("RED")];
    assert_eq!(rows(&read_back(&nullable, &pages)), expected);
    // Without nulls the indices are the stored codes.
    let required = shape(&pages[1], false, &hints);
    assert!(only(&required).is_exact());
    let mut out = Vec::new();
    only(&required).append(&pages[1], &mut out).unwrap();
    assert_eq!(out, [8, 3, 5, 0xff, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_name_that_is_another_codes_number_stands_once_in_the_dictionary() {
    let hints = Hints::of(&enumeration(1, false, &[("5", 1)]));
    let array = names(vec![Some(0), Some(1)], &["5", "7"]);
    let shape = shape(&array, false, &hints);
    assert_eq!(dictionary(only(&shape)).unwrap().1, 255);
    assert_eq!(rows(&read_back(&shape, &[array])), [Tree::text("5"), Tree::text("7")]);
}

/// HDF5 lets a code have two names: the first is shown, and the second leads nowhere.
#[test]
fn the_second_name_of_a_code_is_no_error() {
    let hints = Hints::of(&enumeration(1, false, &[("A", 0), ("B", 0), ("C", 1)]));
    let array = names(vec![Some(0), Some(2)], &["A", "B", "C"]);
    let shape = shape(&array, false, &hints);
    assert_eq!(rows(&read_back(&shape, &[array])), [Tree::text("A"), Tree::text("C")]);
    let other = names(vec![Some(0), Some(1)], &["A", "no name of it"]);
    assert!(
        only(&shape).append(&other, &mut Vec::new()).unwrap_err().to_string().contains("\"no name of it\" is none")
    );
}

#[test]
fn a_wider_enumeration_is_text_of_bounded_length() {
    // −2147483648 has 11 digits.
    let hints = Hints::of(&enumeration(4, true, &[("RED", 0)]));
    let array = names(vec![Some(0), Some(1)], &["RED", "-2147483648"]);
    let shape_of_short = shape(&array, false, &hints);
    assert_eq!(only(&shape_of_short).most_body(2), Some(30));
    assert_eq!(rows(&read_back(&shape_of_short, &[array])), [Tree::text("RED"), Tree::text("-2147483648")]);
    let hints = Hints::of(&enumeration(2, false, &[("a longer name", 0)]));
    assert_eq!(hints.texts, TextLength::Shown(13));
    let hints = Hints::of(&enumeration(2, false, &[("short", 0)]));
    assert_eq!(hints.texts, TextLength::Shown(5));
}

#[test]
fn texts_of_fixed_length_have_a_bound_and_keep_it() {
    let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Ascii };
    let hints = Hints::of(&Datatype { size: 2, class });
    // Two invalid bytes become two replacement characters.
    let array: ArrayRef = Arc::new(LargeStringArray::from(vec!["\u{fffd}\u{fffd}", ""]));
    let shape_of_two = shape(&array, false, &hints);
    let leaf = only(&shape_of_two);
    assert_eq!(leaf.most_body(10), Some(100));
    assert!(!leaf.is_exact());
    assert_eq!(leaf.measure(&array).unwrap().bytes, 14);
    let array: ArrayRef = Arc::new(LargeStringArray::from(vec!["1234567"]));
    let mut out = vec![1];
    assert!(leaf.append(&array, &mut out).is_err());
    assert!(leaf.measure(&array).is_err());
    assert_eq!(out, [1]);
}

#[test]
fn every_pattern_of_nulls_reads_back() {
    // Whole words of 64 valid or null rows, and such as are mixed.
    let valid = |row: usize| row % 400 < 128 || (row % 400 >= 256 && (row * row) % 7 < 3);
    let labels: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..300).map(|i| i.to_string())));
    for len in [1usize, 63, 64, 65, 200, 1000] {
        let of = |row: usize| valid(row).then_some(row);
        let columns: [ArrayRef; 6] = [
            Arc::new(Float64Array::from_iter((0..len).map(|row| of(row).map(|row| row as f64)))),
            Arc::new(Int16Array::from_iter((0..len).map(|row| of(row).map(|row| row as i16 - 500)))),
            Arc::new(UInt8Array::from_iter((0..len).map(|row| of(row).map(|row| row as u8)))),
            Arc::new(BooleanArray::from_iter((0..len).map(|row| of(row).map(|row| row % 3 == 0)))),
            Arc::new(LargeStringArray::from_iter((0..len).map(|row| of(row).map(|row| "x".repeat(row % 5))))),
            categories((0..len).map(|row| of(row).map(|row| row as i64 % 300)).collect(), &labels),
        ];
        for array in columns {
            let shape = shape_with(&array, &labels, None);
            for offset in [0, 1, 7] {
                let array = array.slice(offset.min(len), len.saturating_sub(offset));
                let kind = array.data_type();
                assert_eq!(
                    rows(&read_back(&shape, std::slice::from_ref(&array))),
                    rows(&array),
                    "{len} {kind} from {offset}"
                );
            }
        }
    }
}

#[test]
fn stored_bytes_are_told_where_they_are_the_cells() {
    let integer = |size: u64, order, precision| {
        Hints::of(&Datatype { size, class: Class::Integer { signed: true, order, precision, offset: 0 } })
    };
    let stored = |data_type, nullable, hints: &Hints| {
        let shape = LeafMapping::new("x", &data_type, nullable, hints, Given::default()).unwrap();
        only(&shape).stored
    };
    assert!(stored(DataType::Int32, false, &integer(4, ByteOrder::Little, 32)));
    // Wherever there is a value.
    assert!(stored(DataType::Int32, true, &integer(4, ByteOrder::Little, 32)));
    assert!(!stored(DataType::Int32, false, &integer(4, ByteOrder::Big, 32)));
    assert!(!stored(DataType::Int32, false, &integer(4, ByteOrder::Little, 24)));
    // Three bytes are widened to four, two to four.
    assert!(!stored(DataType::Int16, false, &integer(2, ByteOrder::Little, 16)));
    assert!(stored(DataType::Int8, false, &integer(1, ByteOrder::Big, 8)));
    assert!(stored(DataType::FixedSizeBinary(3), false, &Hints { stored: true, ..Hints::default() }));
}

#[test]
fn what_does_not_fit_is_an_error_and_no_panic() {
    let leaf = |data_type| {
        LeafMapping::new("x", &data_type, false, &Hints::default(), Given::default()).unwrap().leaves()[0].clone()
    };
    let fails = |leaf: &ParquetLeaf, array: ArrayRef| {
        assert!(leaf.append(&array, &mut Vec::new()).is_err(), "{array:?}");
    };
    fails(&leaf(DataType::Int64), Arc::new(Int32Array::from(vec![1])));
    fails(&leaf(DataType::Int64), Arc::new(LargeStringArray::from(vec!["x"])));
    fails(&leaf(DataType::LargeUtf8), Arc::new(UInt64Array::from(vec![1])));
    fails(&leaf(DataType::Int8), Arc::new(UInt64Array::from(vec![1])));
    // A null where the column can have none.
    fails(&leaf(DataType::Int64), Arc::new(Int64Array::from(vec![None, Some(1)])));
    fails(&leaf(DataType::Boolean), Arc::new(BooleanArray::from(vec![None, Some(true)])));
    for (data_type, word) in [
        (DataType::FixedSizeBinary(0), "without bytes"),
        (DataType::FixedSizeBinary(i32::MAX), "bytes, more than"),
        (DataType::Struct(arrow_schema::Fields::empty()), "a compound without fields"),
        (DataType::Date64, "no place"),
    ] {
        let why = LeafMapping::new("x", &data_type, false, &Hints::default(), Given::default()).unwrap_err();
        assert!(why.to_string().contains(word), "{why}");
    }
}
