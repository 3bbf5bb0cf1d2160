//! The Arrow type of each stored type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float16Array,
    Float64Array, Int16Array, Int32Array, Int64Array, LargeListArray, LargeStringArray, StructArray, UInt8Array,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use half::f16;

use super::*;
use crate::store::ValueSet;
use crate::table::ListRows;

fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    let plain = match array.as_any_dictionary_opt() {
        Some(dictionary) => arrow_select::take::take(dictionary.values(), dictionary.keys(), None).unwrap(),
        None => array.clone(),
    };
    match plain.as_string_view_opt() {
        Some(views) => views.iter().map(|text| text.map(str::to_owned)).collect(),
        None => plain.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect(),
    }
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn numbers_are_the_stored_bytes() {
    // The values under a null are those stored: they are copied unseen.
    let values = Int16Array::new(vec![1, -2, 300].into(), Some(NullBuffer::from(vec![true, false, true])));
    let rows = MemoryRows::new(Arc::new(values)).stored_as_values();
    let array = only(column("x", Arc::new(rows), Some(integer(2, true))));
    assert_eq!(array.as_primitive::<Int16Type>().iter().collect::<Vec<_>>(), [Some(1), None, Some(300)]);
    assert_eq!(array.as_primitive::<Int16Type>().values(), &[1, -2, 300]);
}

#[test]
fn integers_in_another_order_are_decoded() {
    // Stored big-endian: the bytes must not be copied.
    let rows = MemoryRows::new(Arc::new(Int16Array::from(vec![1, 2]))).stored(vec![0, 1, 0, 2], 2);
    let array = only(column("x", Arc::new(rows), Some(Datatype::integer(2, true, ByteOrder::Big))));
    assert_eq!(array.as_primitive::<Int16Type>().values(), &[1, 2]);
}

#[test]
fn halves_are_widened_and_booleans_are_bits() {
    let halves = Float16Array::from(vec![Some(f16::from_f32(1.5)), None]);
    let array = only(memory("x", Arc::new(halves), None));
    assert_eq!(array.as_primitive::<Float32Type>().iter().collect::<Vec<_>>(), [Some(1.5), None]);
    let bits = BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]);
    let array = only(memory("x", Arc::new(bits.clone()), None));
    assert_eq!(array.as_boolean(), &bits);
}

#[test]
fn opaque_bytes_have_their_width() {
    let values = FixedSizeBinaryArray::try_from_iter([[1, 2, 3], [4, 5, 6]].into_iter()).unwrap();
    let datatype = Datatype { size: 3, class: Class::Opaque { tag: "t".into() } };
    let rows = MemoryRows::new(Arc::new(values)).stored(vec![1, 2, 3, 4, 5, 6], 3);
    let array = only(column("x", Arc::new(rows), Some(datatype)));
    assert_eq!(array.as_fixed_size_binary().value(1), [4, 5, 6]);
}

fn categories(keys: Vec<Option<i64>>, labels: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int64Type>::try_new(Int64Array::from(keys), labels).unwrap())
}

#[test]
fn categories_are_a_dictionary_with_keys_of_one_byte() {
    let labels = Arc::new(LargeStringArray::from(vec!["a", "b"]));
    // Stored as codes, of which −1 is missing: they must not be copied.
    let rows = MemoryRows::new(categories(vec![Some(1), None, Some(0)], labels.clone())).stored(vec![1, 0xff, 0], 1);
    let values = ValueSet::Categories { labels: Arc::new(MemoryRows::new(labels)), ordered: true };
    let hints = Hints { values: Some(values), ..Hints::default() };
    let view = view(vec![IpcColumn { hints, ..column("x", Arc::new(rows), None) }]);
    let (schema, batches) = read(whole(&view));
    assert_eq!(schema.field(0).dict_is_ordered(), Some(true));
    let array = batches[0].column(0).as_dictionary::<Int8Type>();
    assert_eq!(array.keys().iter().collect::<Vec<_>>(), [Some(1), None, Some(0)]);
    // Some readers look up what is under a null as well.
    assert_eq!(array.keys().values(), &[1, 0, 0]);
    assert_eq!(array.values().as_string::<i64>().iter().flatten().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn equal_labels_are_one_and_missing_ones_none() {
    let labels = Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
    let array = only(memory("x", categories(vec![Some(0), Some(1), Some(2), Some(3), None], labels), None));
    let array = array.as_dictionary::<Int8Type>();
    assert_eq!(array.keys().iter().collect::<Vec<_>>(), [Some(0), None, Some(1), Some(0), None]);
    assert_eq!(array.values().len(), 2);
}

#[test]
fn labels_of_numbers_and_none_at_all() {
    let numbers = Arc::new(Int32Array::from(vec![7, 9]));
    let array = only(memory("x", categories(vec![Some(1), Some(0)], numbers), None));
    assert_eq!(array.as_dictionary::<Int8Type>().values().as_primitive::<Int32Type>().values(), &[7, 9]);
    // A set with a NaN is refused by pandas: each value for itself.
    let numbers = Arc::new(Float64Array::from(vec![0.5, f64::NAN]));
    let array = only(memory("x", categories(vec![Some(0), None], numbers), None));
    let array = array.as_primitive::<arrow_array::types::Float64Type>();
    assert_eq!(array.iter().collect::<Vec<_>>(), [Some(0.5), None]);
    let nothing = Arc::new(LargeStringArray::from(Vec::<&str>::new()));
    assert_eq!(texts(&only(memory("x", categories(vec![None, None], nothing), None))), [None, None]);
}

fn labels(keys: Vec<i32>, labels: Vec<&str>) -> ArrayRef {
    let labels = Arc::new(LargeStringArray::from(labels));
    Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), labels).unwrap())
}

#[test]
fn enumerations_of_one_byte_have_a_key_for_every_code() {
    let datatype = enumeration(1, &[("on", 1), ("7", 3)]);
    let array = only(memory("x", labels(vec![0, 2, 1, 3], vec!["on", "7", "-128", "7"]), Some(datatype)));
    assert_eq!(texts(&array), some(&["on", "-128", "7", "7"]));
    let array = array.as_dictionary::<Int16Type>();
    // 254 numbers without a name, one of which reads as a name does.
    assert_eq!(array.values().len(), 255);
    assert_eq!(array.keys().values(), &[0, 2, 1, 1]);
}

#[test]
fn other_enumerations_share_their_names() {
    let long = "a name of more than twelve bytes";
    let members = [(long, 1), ("short", 2)];
    let found = vec![long, "short", "-9223372036854775808", "5"];
    let array = only(memory("x", labels(vec![0, 1, 2, 3, 0], found), Some(enumeration(8, &members))));
    assert_eq!(array.data_type(), &DataType::Utf8View);
    assert_eq!(texts(&array), some(&[long, "short", "-9223372036854775808", "5", long]));
    // Numbers of two bytes stand in their views: the names are the only data.
    let array = only(memory("x", labels(vec![0, 2, 0], vec![long, "short", "-32768"]), Some(enumeration(2, &members))));
    assert_eq!(texts(&array), some(&[long, "-32768", long]));
    assert_eq!(array.as_string_view().data_buffers().len(), 1);
    assert_eq!(array.as_string_view().data_buffers()[0].as_slice(), format!("{long}short").as_bytes());
}

#[test]
fn strings_of_any_width_are_views() {
    for width in [1, 4, 5, 12, 13, 40] {
        let full = "x".repeat(width as usize);
        // Every byte invalid: three times as long as stored.
        let odd = "\u{fffd}".repeat(width as usize);
        let shown = vec![Some(""), Some(full.as_str()), None, Some(odd.as_str()), Some("é"), Some(full.as_str())];
        let array = only(memory("x", Arc::new(LargeStringArray::from(shown.clone())), Some(fixed_string(width))));
        assert_eq!(array.data_type(), &DataType::Utf8View);
        let shown: Vec<_> = shown.into_iter().map(|text| text.map(str::to_owned)).collect();
        assert_eq!(texts(&array), shown, "{width} bytes");
    }
}

#[test]
fn texts_and_lists_have_offsets() {
    let strings = LargeStringArray::from(vec![Some("a"), None, Some(""), Some("longer than a view")]);
    let array = only(memory("x", Arc::new(strings.clone()), None));
    assert_eq!(array.as_string::<i64>(), &strings);

    let words = LargeStringArray::from(vec![Some("p"), None, Some("qr"), Some("never seen"), Some("s")]);
    let field = Arc::new(Field::new_list_field(DataType::LargeUtf8, true));
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let lists = LargeListArray::new(field, OffsetBuffer::new(vec![0, 2, 2, 3, 5].into()), Arc::new(words), Some(nulls));
    // A slice, so that offsets do not begin at 0.
    let lists: ArrayRef = Arc::new(lists.slice(1, 3));
    let array = only(memory("x", lists.clone(), None));
    assert_eq!(&array, &lists);
}

#[test]
fn compounds_and_arrays_of_all_sorts() {
    let flag = BooleanArray::from(vec![Some(true), None, Some(false)]);
    let name = LargeStringArray::from(vec!["short", "longer than twelve", ""]);
    let grid = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::UInt8, true)),
        2,
        Arc::new(UInt8Array::from(vec![1, 2, 3, 4, 5, 6])),
        None,
    );
    let codes = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(labels(vec![], vec![]).data_type().clone(), true)),
        1,
        labels(vec![1, 0, 1], vec!["one", "two"]),
        None,
    );
    let fields = Fields::from(vec![
        Field::new("flag", DataType::Boolean, true),
        Field::new("name", DataType::LargeUtf8, true),
        Field::new("grid", grid.data_type().clone(), true),
        Field::new("codes", codes.data_type().clone(), true),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(flag.clone()), Arc::new(name), Arc::new(grid), Arc::new(codes)];
    let rows = StructArray::new(fields, columns, Some(NullBuffer::from(vec![true, true, false])));
    let array_of = |size, base| Datatype { size, class: Class::Array { dims: vec![size], base: Box::new(base) } };
    let boolean = enumeration(1, &[("FALSE", 0), ("TRUE", 1)]);
    let datatype = Datatype::compound(
        30,
        &[
            ("flag", 0, boolean),
            ("name", 1, fixed_string(20)),
            ("grid", 21, array_of(2, integer(1, false))),
            ("codes", 23, array_of(1, enumeration(1, &[("one", 1), ("two", 2)]))),
        ],
    );
    let array = only(memory("x", Arc::new(rows), Some(datatype)));
    let array = array.as_struct();
    assert_eq!((0..3).map(|row| array.is_null(row)).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(array.column(0).as_boolean(), &flag);
    assert_eq!(texts(array.column(1)), some(&["short", "longer than twelve", ""]));
    let grid = array.column(2).as_fixed_size_list();
    assert_eq!(grid.values().as_primitive::<UInt8Type>().values(), &[1, 2, 3, 4, 5, 6]);
    assert_eq!(texts(array.column(3).as_fixed_size_list().values()), some(&["two", "one", "two"]));
}

/// A list column over values with these hints.
fn lists(offsets: Vec<u64>, mask: Vec<bool>, values: ArrayRef, hints: Hints) -> Arc<dyn Rows> {
    let rows = mask.len() as u64;
    let offsets = Arc::new(MemoryRows::new(Arc::new(UInt64Array::from(offsets))));
    let mask: Arc<dyn Rows> = Arc::new(MemoryRows::new(Arc::new(BooleanArray::from(mask))));
    let values = Arc::new(MemoryRows::new(values).hinted(hints));
    Arc::new(ListRows::new("/t/x".into(), offsets, values, Some(mask), rows, Arc::default()))
}

/// The items of all lists.
fn items(array: &ArrayRef) -> ArrayRef {
    array.as_list::<i64>().values().clone()
}

#[test]
fn lists_of_enumerations_of_one_byte_have_keys() {
    // [on, 5], [], null, [off, null].
    let keys = Int32Array::from(vec![Some(0), Some(2), Some(1), None]);
    let names = Arc::new(LargeStringArray::from(vec!["on", "off", "5"]));
    let values: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names).unwrap());
    let hints = Hints::of(&enumeration(1, &[("on", 1), ("off", 0)]));
    let rows = lists(vec![0, 2, 2, 2, 4], vec![true, true, false, true], values, hints);
    let array = only(IpcColumn { hints: rows.hints().clone(), ..column("x", rows.clone(), None) });
    assert_eq!(array.as_list::<i64>().value_offsets(), [0, 2, 2, 2, 4]);
    assert!(array.is_null(2));
    let items = items(&array);
    // Names come first, then -128 to -1, then the numbers from 2 on.
    assert_eq!(
        items.as_dictionary::<Int16Type>().keys().iter().collect::<Vec<_>>(),
        [Some(0), Some(133), Some(1), None]
    );
    assert_eq!(texts(&items), [Some("on".into()), Some("5".into()), Some("off".into()), None]);
    assert_eq!(items.as_dictionary::<Int16Type>().values().len(), 256);
}

#[test]
fn lists_of_wider_enumerations_and_of_arrays_of_codes_are_texts() {
    let hints = Hints::of(&enumeration(2, &[("on", 1)]));
    let rows = lists(vec![0, 2], vec![true], labels(vec![0, 1], vec!["on", "7"]), hints);
    let array = only(IpcColumn { hints: rows.hints().clone(), ..column("x", rows.clone(), None) });
    assert_eq!(*items(&array).data_type(), DataType::LargeUtf8);
    assert_eq!(texts(&items(&array)), some(&["on", "7"]));

    let codes = labels(vec![0, 1], vec!["on", "7"]);
    let pairs =
        FixedSizeListArray::new(Arc::new(Field::new_list_field(codes.data_type().clone(), true)), 2, codes, None);
    let class = Class::Array { dims: vec![2], base: Box::new(enumeration(1, &[("on", 1)])) };
    let rows = lists(vec![0, 1], vec![true], Arc::new(pairs), Hints::of(&Datatype { size: 2, class }));
    let array = only(IpcColumn { hints: rows.hints().clone(), ..column("x", rows.clone(), None) });
    let pairs = items(&array);
    assert_eq!(texts(pairs.as_fixed_size_list().values()), some(&["on", "7"]));
    assert_eq!(*pairs.as_fixed_size_list().values().data_type(), DataType::LargeUtf8);
}

#[test]
fn lists_of_categories_have_keys_and_keep_their_order() {
    let names: ArrayRef = Arc::new(LargeStringArray::from(vec!["low", "high"]));
    let values = ValueSet::Categories { labels: Arc::new(MemoryRows::new(names.clone())), ordered: true };
    let hints = Hints { values: Some(values), ..Hints::default() };
    let rows = lists(vec![0, 2, 3], vec![true, true], categories(vec![Some(1), None, Some(0)], names), hints);
    let array = only(IpcColumn { hints: rows.hints().clone(), ..column("x", rows.clone(), None) });
    let DataType::LargeList(item) = array.data_type() else { panic!("no list") };
    assert_eq!(item.dict_is_ordered(), Some(true));
    assert_eq!(items(&array).as_dictionary::<Int8Type>().keys().iter().collect::<Vec<_>>(), [Some(1), None, Some(0)]);
}

#[test]
fn columns_are_described_and_labels_are_the_index() {
    let numbers = || Arc::new(Int64Array::from(vec![1, 2]));
    let mut columns = vec![memory("id", numbers(), None), memory("x", numbers(), None)];
    columns[0].is_label = true;
    let notes = [("units", "MeV"), ("units_vocabulary", "UDUNITS-2"), ("description", "Energy.")];
    columns[1].notes = notes.map(|(key, text)| (key, text.to_owned())).to_vec();
    // Two names that read the same, since neither is UTF-8.
    columns.push(IpcColumn { name: b"\xff".into(), ..memory("", numbers(), None) });
    columns.push(IpcColumn { name: b"\xfe".into(), ..memory("", numbers(), None) });
    let (schema, batches) = read(whole(&view(columns)));
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "x", "\u{fffd}", "\u{fffd}"]);
    let x = schema.field(1).metadata();
    let found = notes.map(|(key, _)| (key, x.get(&format!("h5col.{key}")).map_or("", String::as_str)));
    assert_eq!((found, x.len()), (notes, 3));
    let pandas: serde_json::Value = serde_json::from_str(&schema.metadata()["pandas"]).unwrap();
    assert_eq!(pandas["index_columns"], serde_json::json!(["id"]));
    assert_eq!(batches[0].num_columns(), 4);
}

#[test]
fn anything_may_lie_under_a_null() {
    let grid = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::UInt8, false)),
        2,
        Arc::new(UInt8Array::from(vec![1, 2, 3, 4])),
        None,
    );
    let fields = Fields::from(vec![
        Field::new("name", DataType::LargeUtf8, false),
        Field::new("grid", grid.data_type().clone(), false),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(LargeStringArray::from(vec!["a", "b"])), Arc::new(grid)];
    let taken = |indices: Vec<Option<u64>>| {
        let rows = StructArray::new(fields.clone(), columns.clone(), None);
        arrow_select::take::take(&rows, &UInt64Array::from(indices), None).unwrap()
    };
    let datatype = Datatype::compound(
        6,
        &[
            ("name", 0, fixed_string(4)),
            ("grid", 4, Datatype { size: 2, class: Class::Array { dims: vec![2], base: Box::new(integer(1, false)) } }),
        ],
    );
    let array = taken(vec![Some(0), None, Some(1)]);
    // As arrow's `take` has it, a field is missing where the whole is.
    assert_eq!(array.as_struct().column(0).null_count(), 1);
    let array = only(memory("x", array, Some(datatype)));
    let DataType::Struct(shown) = array.data_type() else { panic!("{}", array.data_type()) };
    assert!(shown.iter().all(|field| !field.is_nullable()));
    let array = array.as_struct();
    assert_eq!(array.nulls().unwrap().iter().collect::<Vec<_>>(), [true, false, true]);
    let (names, grid) = (texts(array.column(0)), array.column(1).as_fixed_size_list());
    assert_eq!([names[0].as_deref(), names[2].as_deref()], [Some("a"), Some("b")]);
    assert_eq!(grid.value(2).as_primitive::<UInt8Type>().values(), &[3, 4]);
}
