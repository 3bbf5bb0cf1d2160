//! The text of values of every type.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float16Array, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, NullArray,
    StringArray, StructArray, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use half::f16;
use proptest::prelude::*;

use super::super::{CsvOptions, TextFormat, TextLayout};
use super::{text, usual, view, whole};
use crate::source::Interrupt;
use crate::views::text::width;
use crate::views::{Effort, Size, View};

fn a<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

fn one(format: TextFormat, array: &ArrayRef) -> String {
    text(format, std::slice::from_ref(array))
}

fn complex() -> ArrayRef {
    let re = a(Float64Array::from(vec![Some(1.5), Some(f64::NAN), None, Some(0.0)]));
    let im = a(Float64Array::from(vec![0.0, f64::NEG_INFINITY, -0.0, 1e300]));
    let fields = vec![Field::new("re", DataType::Float64, true), Field::new("im", DataType::Float64, false)];
    let nulls = NullBuffer::from(vec![true, true, true, false]);
    a(StructArray::new(fields.into(), vec![re, im], Some(nulls)))
}

fn labels() -> ArrayRef {
    let keys = Int32Array::from(vec![Some(1), None, Some(0), Some(1)]);
    a(DictionaryArray::new(keys, a(StringArray::from(vec!["say \"hi\", all", "plain"]))))
}

/// Expected by RFC 4180 and the rules for types, written by hand; read back with Python's `csv`, pandas and pyarrow.
#[test]
fn csv_of_many_types() {
    let arrays = [
        a(Int8Array::from(vec![Some(-128), Some(0), None, Some(127)])),
        a(Float32Array::from(vec![0.1, f32::INFINITY, 16_777_216.0, 1e-45])),
        a(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)])),
        a(StringArray::from(vec![Some(" two "), Some(""), None, Some("a\"b,c\r\nd")])),
        labels(),
        complex(),
    ];
    let expected = "a,b,c,d,e,f\n\
        -128,0.1,true, two ,plain,\"{\"\"re\"\":1.5,\"\"im\"\":0.0}\"\n\
        0,inf,false,\"\",,\"{\"\"re\"\":\"\"NaN\"\",\"\"im\"\":\"\"-Infinity\"\"}\"\n\
        ,16777216.0,,,\"say \"\"hi\"\", all\",\"{\"\"re\"\":null,\"\"im\"\":-0.0}\"\n\
        127,1e-45,true,\"a\"\"b,c\r\nd\",plain,\n";
    assert_eq!(text(TextFormat::Csv, &arrays), expected);
}

/// Expected from Python: `json.dumps(row, separators=(",", ":"), ensure_ascii=False)`, with NaN and infinities as
/// strings.
#[test]
fn ndjson_of_many_types() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None, Some(-3)]),
        Some(vec![]),
        None,
        Some(vec![Some(7)]),
    ]);
    let arrays = [
        a(UInt64Array::from(vec![0, u64::MAX, 9_007_199_254_740_993, 10])),
        a(StringArray::from(vec![Some("é\t\"\\"), Some(""), None, Some("\u{1}\u{7f}")])),
        a(list),
        complex(),
        a(FixedSizeBinaryArray::try_from_iter([[0_u8, 255], [16, 1], [2, 3], [0xab, 0xcd]].iter()).unwrap()),
        a(NullArray::new(4)),
    ];
    let expected = concat!(
        r#"{"a":0,"b":"é\t\"\\","c":[1,null,-3],"d":{"re":1.5,"im":0.0},"e":"00ff","f":null}"#,
        "\n",
        r#"{"a":18446744073709551615,"b":"","c":[],"d":{"re":"NaN","im":"-Infinity"},"e":"1001","f":null}"#,
        "\n",
        r#"{"a":9007199254740993,"b":null,"c":null,"d":{"re":null,"im":-0.0},"e":"0203","f":null}"#,
        "\n",
        "{\"a\":10,\"b\":\"\\u0001\u{7f}\",\"c\":[7],\"d\":null,\"e\":\"abcd\",\"f\":null}\n",
    );
    let text = text(TextFormat::Ndjson, &arrays);
    assert_eq!(text, expected);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn one_column() {
    let strings = a(StringArray::from(vec![Some("x"), None, Some(""), Some("a\\b\nc\rd,\"")]));
    assert_eq!(one(TextFormat::Csv, &strings), "a\nx\n\"\"\n\"\"\n\"a\\b\nc\rd,\"\"\"\n");
    assert_eq!(one(TextFormat::Txt, &strings), "x\n\n\na\\\\b\\nc\\rd,\"\n");
    assert_eq!(
        one(TextFormat::Ndjson, &strings),
        "{\"a\":\"x\"}\n{\"a\":null}\n{\"a\":\"\"}\n{\"a\":\"a\\\\b\\nc\\rd,\\\"\"}\n"
    );
    let numbers = a(Int64Array::from(vec![Some(i64::MIN), None, Some(7)]));
    assert_eq!(one(TextFormat::Csv, &numbers), "a\n-9223372036854775808\n\"\"\n7\n");
    assert_eq!(one(TextFormat::Txt, &numbers), "-9223372036854775808\n\n7\n");
    assert_eq!(one(TextFormat::Ndjson, &numbers), "{\"a\":-9223372036854775808}\n{\"a\":null}\n{\"a\":7}\n");
    // JSON inside a line is escaped like any value, so that undoing the escapes gives JSON.
    let keys = Int32Array::from(vec![0]);
    let list = a(DictionaryArray::new(keys, a(StringArray::from(vec!["a\\b"]))));
    let field = Arc::new(Field::new("item", list.data_type().clone(), true));
    let windows = a(FixedSizeListArray::new(field, 1, list, None));
    assert_eq!(one(TextFormat::Txt, &windows), "[\"a\\\\\\\\b\"]\n");
    assert_eq!(one(TextFormat::Csv, &windows), "a\n\"[\"\"a\\\\b\"\"]\"\n");
}

#[test]
fn floats_are_the_shortest_that_read_back() {
    // Python `repr` has the same digits; the notation is that of zmij.
    let doubles = [0.1, 0.1 + 0.2, 5e-324, f64::MAX, 1e16, 1e22, 123_456_789.0, -0.0, f64::NAN, f64::NEG_INFINITY];
    let expected =
        "0.1\n0.30000000000000004\n5e-324\n1.7976931348623157e+308\n1e+16\n1e+22\n123456789.0\n-0.0\nNaN\n-inf\n";
    assert_eq!(text(TextFormat::Txt, &[a(Float64Array::from(doubles.to_vec()))]), expected);
    let halves = [0.1, 0.333_333, 65504.0, f64::INFINITY].map(f16::from_f64);
    assert_eq!(text(TextFormat::Txt, &[a(Float16Array::from(halves.to_vec()))]), "0.1\n0.3333\n65500.0\ninf\n");
    assert_eq!(text(TextFormat::Ndjson, &[a(Float16Array::from(halves[3..].to_vec()))]), "{\"a\":\"Infinity\"}\n");
}

#[test]
fn labels_may_be_numbers_and_many() {
    let numbers = DictionaryArray::new(
        Int32Array::from(vec![Some(2), None, Some(0)]),
        a(Float64Array::from(vec![0.5, 1.0, 1e20])),
    );
    assert_eq!(text(TextFormat::Csv, &[a(numbers)]), "a\n1e+20\n\"\"\n0.5\n");
    // More labels than rows: they are written in the order of the rows.
    let few = DictionaryArray::new(
        Int32Array::from(vec![Some(4), None]),
        a(StringArray::from(vec!["a", "b", "c", "d", "e,f"])),
    );
    assert_eq!(text(TextFormat::Csv, &[a(few)]), "a\n\"e,f\"\n\"\"\n");
    // A label that is missing makes its rows missing; a dictionary may be empty where every row is.
    let missing = DictionaryArray::new(Int32Array::from(vec![0, 1]), a(StringArray::from(vec![None, Some("x")])));
    assert_eq!(text(TextFormat::Ndjson, &[a(missing)]), "{\"a\":null}\n{\"a\":\"x\"}\n");
    let empty = DictionaryArray::new(Int32Array::from(vec![None, None]), a(StringArray::from(Vec::<&str>::new())));
    assert_eq!(text(TextFormat::Txt, &[a(empty)]), "\n\n");
}

#[test]
fn lists_of_lists_and_slices() {
    let inner = ListArray::from_iter_primitive::<Int64Type, _, _>((0..6).map(|row| Some(vec![Some(row), None])));
    let field = Arc::new(Field::new("item", inner.data_type().clone(), true));
    let pairs = FixedSizeListArray::new(field, 2, a(inner), Some(NullBuffer::from(vec![true, false, true])));
    let expected = ["{\"a\":[[0,null],[1,null]]}\n", "{\"a\":null}\n", "{\"a\":[[4,null],[5,null]]}\n"];
    assert_eq!(text(TextFormat::Ndjson, &[a(pairs.clone())]), expected.concat());
    assert_eq!(text(TextFormat::Ndjson, &[a(pairs.slice(1, 2))]), expected[1..].concat());
    let strings = LargeStringArray::from(vec!["quoted\"", "plain", "x,y"]);
    assert_eq!(text(TextFormat::Csv, &[a(strings.slice(1, 2))]), "a\nplain\n\"x,y\"\n");
    assert_eq!(text(TextFormat::Csv, &[complex().slice(3, 1)]), "a\n\"\"\n");
}

#[test]
fn names_are_quoted_and_repaired() {
    let names: [bstr::BString; 5] =
        ["plain".into(), "a,b".into(), "say \"x\"".into(), "".into(), b"\xff\n".as_slice().into()];
    let header = TextLayout::header(TextFormat::Csv, &usual(), &names);
    assert_eq!(String::from_utf8(header).unwrap(), "plain,\"a,b\",\"say \"\"x\"\"\",\"\",\"\u{fffd}\n\"\n");
    assert!(TextLayout::header(TextFormat::Txt, &usual(), &names).is_empty());
    let rows: Vec<ArrayRef> = (0..5).map(|_| a(Int8Array::from(vec![1]))).collect();
    let mut out = Vec::new();
    TextLayout::new(TextFormat::Ndjson, &names).render(&rows, &mut out).unwrap();
    let expected = "{\"plain\":1,\"a,b\":1,\"say \\\"x\\\"\":1,\"\":1,\"\u{fffd}\\n\":1}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn types_without_text_are_errors() {
    let dates = a(arrow_array::Date64Array::from(vec![1]));
    let view = view(TextFormat::Csv, &[dates]);
    let error = view.size(Effort::Exact, &Interrupt::new()).unwrap_err();
    assert_eq!(error.to_string(), "a: values of type Date64 have no text");
}

#[test]
fn no_rows() {
    let nothing = [a(Int64Array::from(Vec::<i64>::new()))];
    assert_eq!(text(TextFormat::Csv, &nothing), "a\n");
    assert_eq!(text(TextFormat::Ndjson, &nothing), "");
    assert_eq!(view(TextFormat::Csv, &nothing).size(Effort::Free, &Interrupt::new()).unwrap(), Size::Exact(2));
    assert_eq!(text(TextFormat::Csv, &[]), "\n");
}

/// Generates columns of many types, with nulls.
fn arrays() -> impl Strategy<Value = ArrayRef> {
    fn rows<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<Option<T>>> {
        prop::collection::vec(prop::option::weighted(0.8, value), 1..40)
    }
    let string = || prop_oneof!["[ -~\n\r\t\\\\\",é]{0,12}", "[a-z]{0,8}"];
    prop_oneof![
        rows(any::<i64>()).prop_map(|rows| a(Int64Array::from(rows))),
        rows(any::<i8>()).prop_map(|rows| a(Int8Array::from(rows))),
        rows(any::<u64>().prop_map(|bits| bits >> (bits % 64))).prop_map(|rows| a(UInt64Array::from(rows))),
        rows(any::<u64>().prop_map(f64::from_bits)).prop_map(|rows| a(Float64Array::from(rows))),
        rows(any::<u32>().prop_map(f32::from_bits)).prop_map(|rows| a(Float32Array::from(rows))),
        rows(any::<u16>().prop_map(f16::from_bits)).prop_map(|rows| a(Float16Array::from(rows))),
        rows(any::<bool>()).prop_map(|rows| a(BooleanArray::from(rows))),
        rows(string()).prop_map(|rows| a(StringArray::from(rows))),
        (rows(0..5_i32), prop::collection::vec(string(), 5..90)).prop_map(|(keys, labels)| a(DictionaryArray::<
            Int32Type,
        >::new(
            keys.into(),
            a(StringArray::from(labels))
        ))),
        rows(prop::collection::vec(prop::option::of(any::<f64>()), 0..4))
            .prop_map(|rows| a(ListArray::from_iter_primitive::<Float64Type, _, _>(rows))),
        rows(any::<f64>()).prop_map(|rows| {
            let im = a(Float64Array::from(rows.iter().map(|row| row.unwrap_or(2.0)).collect::<Vec<_>>()));
            let nulls = NullBuffer::from(rows.iter().map(Option::is_some).collect::<Vec<_>>());
            let fields = vec![Field::new("re\"", DataType::Float64, true), Field::new("im", DataType::Float64, false)];
            a(StructArray::new(fields.into(), vec![a(Float64Array::from(rows)), im], Some(nulls)))
        }),
    ]
}

fn options() -> impl Strategy<Value = Arc<CsvOptions>> {
    let separator = prop::sample::select(vec![',', ';', '\t', '|', ' ', '{']);
    let null = prop_oneof![
        Just(String::new()),
        prop::sample::select(vec!["NA", "NaN", "true", "-1", "0.0", "inf", "[]", "a", "\\N"]).prop_map(str::to_owned),
    ];
    (separator, null).prop_map(|(separator, null)| Arc::new(CsvOptions::new(separator, &null, true).unwrap()))
}

fn formats() -> impl Strategy<Value = TextFormat> {
    let all = [
        TextFormat::Csv,
        TextFormat::Txt,
        TextFormat::Ndjson,
        TextFormat::JsonValues,
        TextFormat::NulTerminated,
        TextFormat::Verbatim,
    ];
    prop::sample::select(all.to_vec())
}

/// A row of numbers of an array of rank 2.
fn pairs(numbers: Vec<f64>) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(DataType::Float64, true));
    a(FixedSizeListArray::new(field, 2, a(Float64Array::from(numbers)), None))
}

#[test]
fn json_values_have_a_line_each_and_no_object() {
    let rows = pairs(vec![0.5, -0.0, f64::NAN, f64::NEG_INFINITY, 1e20, 3.0]);
    assert_eq!(text(TextFormat::JsonValues, &[rows]), "[0.5,-0.0]\n[\"NaN\",\"-Infinity\"]\n[1e+20,3.0]\n");
    let strings = a(StringArray::from(vec![Some("a\"b\nc"), None, Some("")]));
    assert_eq!(text(TextFormat::JsonValues, std::slice::from_ref(&strings)), "\"a\\\"b\\nc\"\nnull\n\"\"\n");
    let numbers = a(Int64Array::from(vec![1, 2, 3]));
    assert_eq!(text(TextFormat::JsonValues, &[strings, numbers]), "\"a\\\"b\\nc\"\n1\nnull\n2\n\"\"\n3\n");
}

#[test]
fn a_value_by_itself_is_its_bytes() {
    let json = "{\"a\": \"b\\n\"}\r\n\0";
    let long = "x".repeat(100) + "\\\n";
    for value in [json, "", "x", &long] {
        assert_eq!(text(TextFormat::Verbatim, &[a(StringArray::from(vec![value]))]), value);
        let stored = LargeBinaryArray::from(vec![value.as_bytes()]);
        assert_eq!(text(TextFormat::Verbatim, &[a(stored)]), value);
    }
    assert_eq!(text(TextFormat::Verbatim, &[a(StringArray::from(vec![None::<&str>]))]), "");
    assert_eq!(text(TextFormat::Verbatim, &[a(StringArray::from(Vec::<&str>::new()))]), "");
    // Bytes that are no UTF-8 stay what they are.
    let view = view(TextFormat::Verbatim, &[a(LargeBinaryArray::from(vec![b"\xff\0\n".as_slice()]))]);
    assert_eq!(whole(&view), b"\xff\0\n");
    assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap(), Size::Exact(3));
}

#[test]
fn one_value_as_txt_is_a_line() {
    assert_eq!(text(TextFormat::Txt, &[a(Int64Array::from(vec![-7]))]), "-7\n");
    assert_eq!(text(TextFormat::Txt, &[a(Float64Array::from(vec![0.1]))]), "0.1\n");
    assert_eq!(text(TextFormat::Txt, &[a(BooleanArray::from(vec![true]))]), "true\n");
    assert_eq!(text(TextFormat::Txt, &[a(StringArray::from(vec![None::<&str>]))]), "\n");
    assert_eq!(text(TextFormat::Txt, &[pairs(vec![1.0, 2.5])]), "[1.0,2.5]\n");
}

proptest! {
    /// Lengths measured without writing equal those of the text, and lie within the bounds of the type.
    #[test]
    fn measured_and_bounded(
        array in arrays(),
        format in formats(),
        csv in options(),
        wide in any::<bool>(),
        cut in 0..40_usize,
    ) {
        let name = bstr::BString::from("n\"");
        let layout = TextLayout::with_csv(format, &csv, std::iter::repeat_n(&name, if wide { 2 } else { 1 }));
        let columns = vec![array.clone(); layout.columns()];
        let mut out = Vec::new();
        layout.render(&columns, &mut out).unwrap();
        let cut = cut.min(array.len());
        let lengths = layout.measure(array.as_ref(), &[0..cut, cut..array.len()]).unwrap();
        let sum = lengths.iter().sum::<u64>() * columns.len() as u64 + array.len() as u64 * layout.overhead();
        prop_assert_eq!(sum, out.len() as u64);

        let missing = layout.missing().len() as u64;
        for row in 0..array.len() {
            let length = layout.measure(array.as_ref(), std::slice::from_ref(&(row..row + 1))).unwrap()[0];
            let bounds = width::value(array.data_type(), format, &csv, Some(64), Some(missing));
            prop_assert!(bounds.least <= length && bounds.most.is_none_or(|most| length <= most), "{:?} {}", bounds, length);
        }
    }

    /// Another reader of CSV finds the same fields.
    #[test]
    fn csv_reads_back(strings in prop::collection::vec((".{0,6}", "[ ,\"\n\r;a]{0,6}"), 1..20)) {
        let (first, second): (Vec<&str>, Vec<&str>) = strings.iter().map(|(a, b)| (a.as_str(), b.as_str())).unzip();
        let text = text(TextFormat::Csv, &[a(StringArray::from(first)), a(StringArray::from(second))]);
        let mut reader = csv::ReaderBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_reader(text.as_bytes());
        let records: Vec<(String, String)> = reader.deserialize().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(records, strings);
    }

    #[test]
    fn ndjson_reads_back(strings in prop::collection::vec((any::<String>(), any::<i64>()), 1..20)) {
        let (first, second): (Vec<&str>, Vec<i64>) = strings.iter().map(|(a, b)| (a.as_str(), *b)).unzip();
        let text = text(TextFormat::Ndjson, &[a(StringArray::from(first)), a(Int64Array::from(second))]);
        prop_assert_eq!(text.matches('\n').count(), strings.len());
        for (line, (string, number)) in text.split('\n').zip(&strings) {
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), serde_json::json!({"a": string, "b": number}));
        }
    }
}
