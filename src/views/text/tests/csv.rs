//! CSV options. Python's `csv.reader` (with this `delimiter`) read each of these texts back to the values of the
//! arrays, where a null is the null text without quotes.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int32Array,
    ListArray, StringArray,
};
use proptest::prelude::*;

use super::super::{CsvOptions, CsvOptionsError, TextFormat, TextView};
use super::{view_with, whole};
use crate::source::Interrupt;
use crate::views::{Effort, View};

fn a<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

fn options(separator: char, null: &str, header: bool) -> Arc<CsvOptions> {
    Arc::new(CsvOptions::new(separator, null, header).unwrap())
}

/// All bytes, which are as many as the size says.
fn text(csv: &Arc<CsvOptions>, arrays: &[ArrayRef]) -> String {
    let view: TextView = view_with(TextFormat::Csv, csv, arrays);
    let text = whole(&view);
    assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes(), text.len() as u64);
    String::from_utf8(text).unwrap()
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    a(StringArray::from(values.to_vec()))
}

#[test]
fn quotes_follow_the_separator() {
    let values = strings(&[Some("a,b"), Some("c;d"), Some("e\tf"), Some("g\"h"), Some("i\nj"), Some("k\rl"), Some("")]);
    let numbers = a(Int8Array::from(vec![Some(1), None, Some(3), Some(4), Some(5), Some(6), Some(7)]));
    let arrays = [values, numbers];
    let expected = "a;b\na,b;1\n\"c;d\";\ne\tf;3\n\"g\"\"h\";4\n\"i\nj\";5\n\"k\rl\";6\n\"\";7\n";
    assert_eq!(text(&options(';', "", true), &arrays), expected);
    let expected = "a\tb\na,b\t1\nc;d\t\n\"e\tf\"\t3\n\"g\"\"h\"\t4\n\"i\nj\"\t5\n\"k\rl\"\t6\n\"\"\t7\n";
    assert_eq!(text(&options('\t', "", true), &arrays), expected);
}

#[test]
fn what_reads_like_a_missing_value_is_quoted() {
    let arrays = [
        strings(&[None, Some("NA"), Some(""), Some("NAN"), Some("N,A")]),
        a(Int32Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)])),
    ];
    let expected = "a,b\nNA,1\n\"NA\",NA\n\"\",3\nNAN,4\n\"N,A\",5\n";
    assert_eq!(text(&options(',', "NA", true), &arrays), expected);
}

#[test]
fn so_are_numbers_and_all_other_types() {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(-1)]), None, Some(vec![])]);
    let labels =
        DictionaryArray::new(Int32Array::from(vec![Some(0), None, Some(1)]), strings(&[Some("-1"), Some("b")]));
    let arrays = [
        a(Int8Array::from(vec![Some(-1), None, Some(-10)])),
        a(Float64Array::from(vec![Some(-1.0), None, Some(f64::NAN)])),
        a(BooleanArray::from(vec![Some(true), None, Some(false)])),
        a(FixedSizeBinaryArray::try_from_iter([[0xab_u8], [0xff], [0x0c]].into_iter()).unwrap()),
        a(labels),
        a(list),
    ];
    let with = |null: &str| text(&options(',', null, false), &arrays);
    assert_eq!(with("-1"), "\"-1\",-1.0,true,ab,\"-1\",[-1]\n-1,-1,-1,ff,-1,-1\n-10,NaN,false,0c,b,[]\n");
    assert_eq!(with("-1.0"), "-1,\"-1.0\",true,ab,-1,[-1]\n-1.0,-1.0,-1.0,ff,-1.0,-1.0\n-10,NaN,false,0c,b,[]\n");
    assert_eq!(with("NaN"), "-1,-1.0,true,ab,-1,[-1]\nNaN,NaN,NaN,ff,NaN,NaN\n-10,\"NaN\",false,0c,b,[]\n");
    assert_eq!(with("true"), "-1,-1.0,\"true\",ab,-1,[-1]\ntrue,true,true,ff,true,true\n-10,NaN,false,0c,b,[]\n");
    assert_eq!(with("ff"), "-1,-1.0,true,ab,-1,[-1]\nff,ff,ff,\"ff\",ff,ff\n-10,NaN,false,0c,b,[]\n");
    assert_eq!(with("[]"), "-1,-1.0,true,ab,-1,[-1]\n[],[],[],ff,[],[]\n-10,NaN,false,0c,b,\"[]\"\n");
}

#[test]
fn one_column() {
    let values = [strings(&[Some("x"), None, Some(""), Some("\\N")])];
    // As without options: readers skip blank lines.
    assert_eq!(text(&options('|', "", true), &values), "a\nx\n\"\"\n\"\"\n\\N\n");
    assert_eq!(text(&options(',', "\\N", true), &values), "a\nx\n\\N\n\"\"\n\"\\N\"\n");
}

#[test]
fn without_a_header() {
    let arrays = [a(Int8Array::from(vec![1, 2])), strings(&[Some("x"), None])];
    assert_eq!(text(&options(',', "", false), &arrays), "1,x\n2,\n");
    assert_eq!(text(&options(',', "", false), &[a(Int8Array::from(Vec::<i8>::new()))]), "");
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    for separator in ['"', '\n', '\r', '\0', '1', 'e', '.', '-', '+', 'é', '→'] {
        let refused = CsvOptions::new(separator, "", true).unwrap_err();
        assert_eq!(refused, CsvOptionsError::Separator(separator));
    }
    for null in ["a;b", "\"", "two\nlines", "\r"] {
        let refused = CsvOptions::new(';', null, true).unwrap_err();
        assert_eq!(refused, CsvOptionsError::Null { null: null.to_owned(), separator: ';' });
    }
    assert!(CsvOptions::new('\t', "a;b", true).is_ok());
}

proptest! {
    /// Another CSV reader finds the same fields; nulls are the unquoted fields with the null text.
    #[test]
    fn another_reader_finds_the_same_fields(
        rows in prop::collection::vec((prop::option::of("[ ,;\t\"\n\rN]{0,4}"), any::<i8>()), 1..20),
        separator in prop::sample::select(vec![',', ';', '\t', ' ', '|']),
        null in prop::sample::select(vec!["", "N", "NN", "1"]),
    ) {
        let (first, second): (Vec<Option<&str>>, Vec<i8>) = rows.iter().map(|(a, b)| (a.as_deref(), *b)).unzip();
        let arrays = [strings(&first), a(Int8Array::from(second))];
        let text = text(&options(separator, null, true), &arrays);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator as u8)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(text.as_bytes());
        let records: Vec<(String, String)> = reader.deserialize().collect::<Result<_, _>>().unwrap();
        let expected: Vec<_> =
            rows.iter().map(|(a, b)| (a.clone().unwrap_or(null.to_owned()), b.to_string())).collect();
        prop_assert_eq!(records, expected);
    }
}
