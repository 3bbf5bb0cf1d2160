//! Compounds, arrays and lists: levels worked out by hand, and the documents of the Dremel paper.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array,
    LargeListArray, LargeStringArray, StructArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::tree::rows;
use super::{dictionary, read_back};
use crate::catalogue::{ByteOrder, Charset, Class, CompoundField, Datatype, EnumerationMember, FloatFormat, Padding};
use crate::source::Interrupt;
use crate::store::rows::in_memory::MemoryRows;
use crate::store::{Hints, Rows};
use crate::table::ListRows;
use crate::views::parquet::body::leaf::{Body, FixedWidthBody, ParquetLeaf};
use crate::views::parquet::columns::shape::{Given, LeafMapping};

fn shape(array: &ArrayRef, nullable: bool) -> LeafMapping {
    LeafMapping::new("x", array.data_type(), nullable, &Hints::default(), Given::default()).unwrap()
}

fn body(leaf: &ParquetLeaf, array: &ArrayRef) -> Vec<u8> {
    let mut out = Vec::new();
    leaf.append(array, &mut out).unwrap();
    out
}

fn item(data_type: &DataType, nullable: bool) -> FieldRef {
    Arc::new(Field::new_list_field(data_type.clone(), nullable))
}

fn list(values: ArrayRef, nullable: bool, lengths: &[usize], valid: Option<Vec<bool>>) -> ArrayRef {
    let field = item(values.data_type(), nullable);
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(LargeListArray::new(field, offsets, values, valid.map(NullBuffer::from)))
}

fn arrays(values: ArrayRef, length: i32, valid: Option<Vec<bool>>) -> ArrayRef {
    let field = item(values.data_type(), true);
    Arc::new(FixedSizeListArray::new(field, length, values, valid.map(NullBuffer::from)))
}

fn compound(columns: Vec<(&str, ArrayRef, bool)>, valid: Option<Vec<bool>>) -> ArrayRef {
    let field =
        |(name, column, nullable): &(&str, ArrayRef, bool)| Field::new(*name, column.data_type().clone(), *nullable);
    let fields: Fields = columns.iter().map(field).collect();
    let columns = columns.into_iter().map(|(_, column, _)| column).collect();
    Arc::new(StructArray::new(fields, columns, valid.map(NullBuffer::from)))
}

#[test]
fn lists_null_empty_and_with_nulls() {
    // [1, null], [], null, [3].
    let values = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let array = list(values, true, &[2, 0, 0, 1], Some(vec![true, true, false, true]));
    let shape = shape(&array, true);
    let leaf = &shape.leaves()[0];
    assert_eq!(leaf.path, ["x", "list", "element"]);
    assert_eq!((leaf.max_definition, leaf.max_repetition), (3, 1));
    assert_eq!((leaf.most_body(4), leaf.is_exact(), leaf.cell_width()), (None, false, None));
    // Repetition 0 1 0 0 0, one bit each; definition 3 2 1 0 3, two bits each; the values 1 and 3.
    let expected = [2, 0, 0, 0, 3, 0b10, 3, 0, 0, 0, 3, 0b00_01_10_11, 0b11, 1, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(body(leaf, &array), expected);
    assert_eq!(leaf.measure(&array), Ok(Body { bytes: 21, entries: 5, nulls: 3 }));
    assert_eq!(rows(&read_back(&shape, std::slice::from_ref(&array))), rows(&array));
}

#[test]
fn a_list_that_leaves_values_out_leaves_them_out_of_the_page() {
    let values: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b", "c", "d", "e"]));
    // The second list is null and has two elements all the same; the first element belongs to none.
    let offsets = OffsetBuffer::new(vec![1, 2, 4, 5].into());
    let valid = NullBuffer::from(vec![true, false, true]);
    let array = LargeListArray::new(item(&DataType::LargeUtf8, false), offsets, values, Some(valid));
    let array: ArrayRef = Arc::new(array);
    let shape = shape(&array, true);
    let bytes = body(&shape.leaves()[0], &array);
    assert!(bytes.ends_with(b"\x01\0\0\0b\x01\0\0\0e"));
    assert_eq!(rows(&read_back(&shape, &[array.clone(), array.slice(1, 2)])), {
        let mut all = rows(&array);
        all.extend(rows(&array.slice(1, 2)));
        all
    });
}

#[test]
fn the_documents_of_the_dremel_paper() {
    // Figure 2: Name is [{Language: [{en-us, us}, {en}]}, {}, {Language: [{en-gb, gb}]}] in the first document and [{}]
    // in the second. Figure 3 has the levels.
    let code: ArrayRef = Arc::new(LargeStringArray::from(vec!["en-us", "en", "en-gb"]));
    let country: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("us"), None, Some("gb")]));
    let language = compound(vec![("Code", code, false), ("Country", country, true)], None);
    let language = list(language, false, &[2, 0, 1, 0], None);
    let url = Arc::new(LargeStringArray::from(vec![Some("http://A"), Some("http://B"), None, Some("http://C")]));
    let name = compound(vec![("Language", language, false), ("Url", url, true)], None);
    let name = list(name, false, &[3, 1], None);
    let shape = shape(&name, false);
    let paths: Vec<String> = shape.leaves().iter().map(|leaf| leaf.path.join(".")).collect();
    let language = "x.list.element.Language.list.element";
    assert_eq!(paths, [format!("{language}.Code"), format!("{language}.Country"), "x.list.element.Url".into()]);
    let levels: Vec<_> = shape.leaves().iter().map(|leaf| (leaf.max_repetition, leaf.max_definition)).collect();
    assert_eq!(levels, [(2, 2), (2, 3), (1, 2)]);
    // Repetition 0 2 1 1 0, definition 2 2 1 2 1.
    let expected = b"\x03\0\0\0\x03\x58\x00\x03\0\0\0\x03\x9a\x01\x05\0\0\0en-us\x02\0\0\0en\x05\0\0\0en-gb";
    assert_eq!(body(&shape.leaves()[0], &name), expected);
    // Definition 3 2 1 3 1.
    let expected = b"\x03\0\0\0\x03\x58\x00\x03\0\0\0\x03\xdb\x01\x02\0\0\0us\x02\0\0\0gb";
    assert_eq!(body(&shape.leaves()[1], &name), expected);
    // Repetition 0 1 1 0, definition 2 2 1 2.
    let expected = b"\x02\0\0\0\x03\x06\x03\0\0\0\x03\x9a\x00\x08\0\0\0http://A";
    assert!(body(&shape.leaves()[2], &name).starts_with(expected));
    assert_eq!(rows(&read_back(&shape, std::slice::from_ref(&name))), rows(&name));
}

#[test]
fn lists_of_an_enumeration_have_its_dictionary() {
    // [RED, 5], [], null, [GREEN, null].
    let keys = Int32Array::from(vec![Some(0), Some(2), Some(1), None]);
    let names = LargeStringArray::from(vec!["RED", "GREEN", "5"]);
    let values: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(names)).unwrap());
    let member = |name: &str, value| EnumerationMember { name: name.into(), value };
    let members = vec![member("RED", 0), member("GREEN", -1)];
    let class = Class::Enum { base: Box::new(Datatype::integer(1, true, ByteOrder::Little)), members };
    let values = Arc::new(MemoryRows::new(values).hinted(Hints::of(&Datatype { size: 1, class })));
    let offsets = Arc::new(MemoryRows::new(Arc::new(UInt64Array::from(vec![0, 2, 2, 2, 4]))));
    let mask: Arc<dyn Rows> = Arc::new(MemoryRows::new(Arc::new(BooleanArray::from(vec![true, true, false, true]))));
    let lists = ListRows::new("/t/x".into(), offsets, values, Some(mask), 4, Arc::default());

    let shape = LeafMapping::new("x", &lists.facts().data_type, true, &lists.facts().hints, Given::default()).unwrap();
    let array = lists.array(0..4, &Interrupt::new()).unwrap();
    let leaf = &shape.leaves()[0];
    assert_eq!(dictionary(leaf).map(|(_, entries)| entries), Some(256));
    // Repetition 0 1 0 0 0 1, definition 3 3 1 0 3 2. Indices of 8 bits in one group of 8: the codes 0, 5, -1, as if no
    // value were missing.
    let mut expected = b"\x02\0\0\0\x03\x22\x03\0\0\0\x03\x1f\x0b".to_vec();
    expected.extend([8, 3, 0, 5, 255, 0, 0, 0, 0, 0]);
    assert_eq!(body(leaf, &array), expected);
    assert_eq!(rows(&read_back(&shape, std::slice::from_ref(&array))), rows(&array));
    let DataType::List(element) = shape.field().data_type() else { panic!("no list") };
    assert!(matches!(element.data_type(), DataType::Dictionary(..)));
}

#[test]
fn arrays_have_constant_levels_and_each_row_its_place() {
    let array = arrays(Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), 3, None);
    let items = Some(Box::new(Hints { stored: true, ..Hints::default() }));
    let hints = Hints { stored: true, items, ..Hints::default() };
    let shape = LeafMapping::new("x", array.data_type(), false, &hints, Given::default()).unwrap();
    let leaf = &shape.leaves()[0];
    assert_eq!((leaf.max_definition, leaf.max_repetition), (1, 1));
    // Repetition 0 1 1 0 1 1; definition six times 1.
    let before = [2, 0, 0, 0, 3, 0b11_0110, 2, 0, 0, 0, 12, 1];
    let bytes = body(leaf, &array);
    assert_eq!(bytes[..12], before);
    assert_eq!(bytes.len(), 12 + 24);
    assert!(leaf.is_exact() && leaf.stored);
    assert_eq!(leaf.most_body(2), Some(36));
    let cells = leaf.cells(2).unwrap();
    let mut lead = Vec::new();
    leaf.lead(2, &mut lead).unwrap();
    assert_eq!((cells, lead.as_slice()), (FixedWidthBody { before: 12, width: 12, after: 0 }, before.as_slice()));
    assert_eq!(leaf.cell_width(), None);
    assert_eq!(rows(&read_back(&shape, &[array.clone(), array.slice(1, 1)])).len(), 3);
}

#[test]
fn arrays_of_two_dimensions() {
    let array = arrays(arrays(Arc::new(Int32Array::from_iter_values(0..8)), 2, None), 2, None);
    let shape = shape(&array, false);
    let leaf = &shape.leaves()[0];
    // Repetition 0 2 1 2 0 2 1 2, two bits each; definition eight times 2.
    let expected = [3, 0, 0, 0, 3, 0b10_01_10_00, 0b10_01_10_00, 2, 0, 0, 0, 16, 2, 0, 0, 0, 0, 1, 0, 0, 0];
    assert!(body(leaf, &array).starts_with(&expected));
    assert_eq!(leaf.most_body(2), Some(7 + 6 + 32));
    assert_eq!(rows(&read_back(&shape, std::slice::from_ref(&array))), rows(&array));
}

#[test]
fn arrays_of_one_element_and_arrays_that_can_be_null() {
    let array = arrays(Arc::new(Int32Array::from(vec![4, 5])), 1, None);
    let shape_of_one = shape(&array, false);
    let expected = [2, 0, 0, 0, 4, 0, 2, 0, 0, 0, 4, 1, 4, 0, 0, 0, 5, 0, 0, 0];
    assert_eq!(body(&shape_of_one.leaves()[0], &array), expected);
    assert_eq!(shape_of_one.leaves()[0].most_body(2), Some(20));
    assert_eq!(rows(&read_back(&shape_of_one, std::slice::from_ref(&array))), rows(&array));

    let values = Arc::new(Int32Array::from(vec![1, 2, 0, 0, 5, 6]));
    let array = arrays(values, 2, Some(vec![true, false, true]));
    let shape_of_two = shape(&array, true);
    // Repetition 0 1 0 0 1; definition 2 2 0 2 2.
    let expected = [2, 0, 0, 0, 3, 0b1_0010, 3, 0, 0, 0, 3, 0b10_00_10_10, 0b10, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0];
    assert!(body(&shape_of_two.leaves()[0], &array).starts_with(&expected));
    assert_eq!(rows(&read_back(&shape_of_two, std::slice::from_ref(&array))), rows(&array));
}

#[test]
fn complex_numbers_are_two_columns_of_cells() {
    let re: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let im: ArrayRef = Arc::new(Float64Array::from(vec![-1.0, -2.0]));
    let array = compound(vec![("re", re.clone(), true), ("im", im, true)], None);
    let shape_of_all = shape(&array, false);
    assert_eq!(shape_of_all.leaves().iter().map(ParquetLeaf::cell_width).collect::<Vec<_>>(), [Some(8); 2]);
    assert_eq!(body(&shape_of_all.leaves()[0], &array), [1.0f64.to_le_bytes(), 2.0f64.to_le_bytes()].concat());
    // With a fill they are null together; what lies under the null does not matter, be it null itself.
    let im: ArrayRef = Arc::new(Float64Array::from(vec![Some(-1.0), None]));
    let array = compound(vec![("re", re, true), ("im", im, true)], Some(vec![true, false]));
    let shape_of_some = shape(&array, true);
    for leaf in shape_of_some.leaves() {
        assert_eq!((leaf.max_definition, leaf.measure(&array)), (1, Ok(Body { bytes: 14, entries: 2, nulls: 1 })));
    }
    assert_eq!(rows(&read_back(&shape_of_some, std::slice::from_ref(&array))), rows(&array));
    // But a part cannot be missing alone.
    let none = array.slice(1, 1);
    let part =
        compound(vec![("re", none.as_any().downcast_ref::<StructArray>().unwrap().column(1).clone(), true)], None);
    assert!(shape(&part, false).leaves()[0].append(&part, &mut Vec::new()).is_err());
}

#[test]
fn booleans_and_texts_in_a_compound_can_be_missing_alone() {
    let flag: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let number: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let columns = vec![("flag", flag, true), ("number", number, true)];
    let array = compound(columns, Some(vec![true, true, false]));
    let shape = shape(&array, true);
    assert_eq!(shape.leaves().iter().map(|leaf| leaf.max_definition).collect::<Vec<_>>(), [2, 1]);
    // Definition 2 1 0; one bit.
    assert_eq!(body(&shape.leaves()[0], &array), [3, 0, 0, 0, 3, 0b00_01_10, 0, 1]);
    assert_eq!(rows(&read_back(&shape, std::slice::from_ref(&array))), rows(&array));
}

#[test]
fn an_array_that_may_not_be_there_is_seen_as_a_list() {
    let element = |data_type: DataType| Arc::new(Field::new("element", data_type, false));
    let array = DataType::FixedSizeList(item(&DataType::Int32, true), 2);
    let of = |data_type: &DataType, nullable| {
        let shape = LeafMapping::new("x", data_type, nullable, &Hints::default(), Given::default()).unwrap();
        shape.field().data_type().clone()
    };
    let (fixed, list) =
        (DataType::FixedSizeList(element(DataType::Int32), 2), DataType::List(element(DataType::Int32)));
    assert_eq!(of(&array, false), fixed);
    assert_eq!(of(&array, true), list);
    let in_struct =
        |data_type: &DataType, nullable| DataType::Struct(vec![Field::new("a", data_type.clone(), nullable)].into());
    assert_eq!(of(&in_struct(&array, true), false), in_struct(&fixed, false));
    assert_eq!(of(&in_struct(&array, true), true), in_struct(&list, false));
    // An array of arrays that is null has none of them.
    let outer = DataType::FixedSizeList(item(&array, true), 2);
    assert_eq!(of(&outer, true), DataType::List(element(fixed)));
}

#[test]
fn hints_reach_the_fields_of_compounds_and_the_elements_of_arrays() {
    let string =
        Datatype { size: 3, class: Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 } };
    let float = |order| Datatype { size: 4, class: Class::Float { order, format: FloatFormat::Single } };
    let array = |base| Datatype { size: 8, class: Class::Array { dims: vec![2], base: Box::new(base) } };
    let field = |name: &str, offset, datatype| CompoundField { name: name.into(), offset, datatype };
    let fields = vec![field("s", 0, array(string)), field("f", 8, float(ByteOrder::Little))];
    let hints = Hints::of(&Datatype { size: 12, class: Class::Compound { fields } });
    let texts = DataType::FixedSizeList(item(&DataType::LargeUtf8, true), 2);
    let data_type =
        DataType::Struct(vec![Field::new("s", texts, true), Field::new("f", DataType::Float32, true)].into());
    let shape = LeafMapping::new("x", &data_type, false, &hints, Given::default()).unwrap();
    // 10 rows: 20 texts of 3 bytes as stored, of 45 bits as they are compressed, and 93 bytes around them; repetition
    // of 1 bit; definition (list, null) of 2 bits.
    assert_eq!(shape.leaves()[0].most_body(10), Some(206 + (4 + 1 + 3) + (4 + 1 + 6)));
    // One row never needs more than if each of its bytes were shown as three.
    assert_eq!(shape.leaves()[0].most_body(1), Some(2 * 13 + (4 + 1 + 1) + (4 + 1 + 2)));
    // A field's bytes do not lie together.
    assert!(!shape.leaves()[1].stored);
    let hints = Hints::of(&array(float(ByteOrder::Little)));
    let floats = DataType::FixedSizeList(item(&DataType::Float32, true), 2);
    assert!(LeafMapping::new("x", &floats, false, &hints, Given::default()).unwrap().leaves()[0].stored);
}

#[test]
fn what_has_no_parquet_says_why() {
    let no =
        |data_type: &DataType| LeafMapping::new("x", data_type, true, &Hints::default(), Given::default()).unwrap_err();
    let of =
        |names: &[&str]| DataType::Struct(names.iter().map(|name| Field::new(*name, DataType::Int8, true)).collect());
    assert!(no(&of(&["a", "a"])).to_string().contains("\"a\""));
    assert!(no(&of(&["", ""])).to_string().contains("field name"));
    assert!(
        no(&DataType::LargeList(item(&DataType::Struct(Fields::empty()), true))).to_string().contains("without fields")
    );
    assert!(no(&DataType::FixedSizeList(item(&DataType::Int8, true), 0)).to_string().contains("without elements"));
    let wide = DataType::FixedSizeList(item(&DataType::Int64, true), i32::MAX);
    assert!(no(&wide).to_string().contains("bytes, more than"));
    assert!(no(&DataType::FixedSizeList(item(&wide, true), i32::MAX)).to_string().contains("elements, more than"));
    let deep = (0..100).fold(DataType::Int8, |inner, _| DataType::LargeList(item(&inner, true)));
    assert!(no(&deep).to_string().contains("deep"));
}

#[test]
fn a_field_without_a_name_has_one() {
    let fields: Fields = ["_0", ""].map(|name| Field::new(name, DataType::Int8, true)).into_iter().collect();
    let shape = LeafMapping::new("x", &DataType::Struct(fields), true, &Hints::default(), Given::default()).unwrap();
    let paths: Vec<_> = shape.leaves().iter().map(|leaf| leaf.path.join(".")).collect();
    assert_eq!(paths, ["x._0", "x._1"]);
}

#[test]
fn an_array_of_another_shape_is_an_error() {
    let two = arrays(Arc::new(Int32Array::from(vec![1, 2])), 2, None);
    let one = arrays(Arc::new(Int32Array::from(vec![1, 2])), 1, None);
    let lists = list(Arc::new(Int32Array::from(vec![1, 2])), true, &[2], None);
    let flat: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let all = [&two, &one, &lists, &flat];
    for due in all {
        for given in all.into_iter().filter(|given| !Arc::ptr_eq(given, due)) {
            assert!(shape(due, true).leaves()[0].append(given, &mut Vec::new()).is_err(), "{due:?} {given:?}");
        }
    }
}
