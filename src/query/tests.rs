//! Selections over arrays in memory, held against a look at every row with three-valued logic written out.

use std::sync::{Arc, Weak};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int64Array, LargeListArray,
    LargeStringArray, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use proptest::prelude::*;

use super::pattern::Pattern;
use super::{BoundPredicate, Condition, Operator, Predicate, SelectedRows, Selection, expression, path};
use crate::catalogue::{ColumnId, ObjectId};
use crate::learnt::Learner;
use crate::source::Interrupt;
use crate::store::rows::in_memory::{FACTS, MemoryRows, changed, with_facts};
use crate::store::{Error, Options, Rows, Store, StoredBytes};
use crate::table::{Column, Table};

fn column(name: &str, array: ArrayRef, chunk: Option<u64>, known: bool) -> (Column, Arc<MemoryRows>) {
    let (all, missing) = (array.clone(), array.null_count() > 0);
    let rows = MemoryRows::new(array).nullable(missing);
    let rows = match all.as_primitive_opt::<Int64Type>() {
        Some(values) => rows.stored(values.values().iter().flat_map(|value| value.to_le_bytes()).collect(), 8),
        None => rows,
    };
    let rows = match all.data_type() {
        // Bytes do not tell which are missing.
        DataType::Int64 if !missing => rows.lent(|bytes| Arc::new(Int64Array::new(bytes.into(), None))),
        _ => rows,
    };
    let rows = Arc::new(match chunk {
        Some(rows_of_chunk) => rows.natural(rows_of_chunk),
        None => rows,
    });
    let learner = Learner::new(&Weak::new(), name, ColumnId::whole(ObjectId { file: 0, address: 0 }), rows.as_ref())
        .filter(|_| known);
    if let Some(learner) = &learner {
        learner.observe(0, all.as_ref());
    }
    let column = Column {
        learner: learner.map(Arc::new),
        attributes: [].into(),
        ..Column::new(
            name.into(),
            format!("/t/{name}"),
            ColumnId::whole(ObjectId { file: 0, address: 0 }),
            Ok(rows.clone()),
            Arc::default(),
        )
    };
    (column, rows)
}

fn table(columns: Vec<Column>) -> Table {
    let rows = columns.first().and_then(|column| column.rows.as_ref().ok()).map_or(0, |rows| rows.len());
    Table { rows, columns, ..Table::empty("/t", "test") }
}

fn store(cache_size: u64) -> Arc<Store> {
    Store::new(Options { cache_size, ..Options::default() })
}

fn select(table: &Table, predicate: &Predicate, store: &Arc<Store>) -> Selection {
    Selection::new("/t", table.rows, BoundPredicate::new(table, predicate).unwrap(), store, None).unwrap()
}

/// Row numbers selected, in the table's first column, which holds them.
fn numbers(table: &Table, selection: &Selection) -> Vec<i64> {
    let interrupt = Interrupt::new();
    let rows = SelectedRows::new(table.columns[0].rows.clone().unwrap(), selection.selected(&interrupt).unwrap());
    rows.array(0..rows.facts().len, &interrupt).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// Which rows are selected changes no value, nor how it is stored, but where it lies.
#[test]
fn selected_rows_keep_the_facts_that_they_do_not_give_up() {
    let given_up = ["len", "natural rows", "stride", "cuts", "decoded", "codes", "outline", "apart", "alike"];
    let table = table(vec![column("n", Arc::new(Int64Array::from(vec![1, 2, 3])), None, false).0]);
    let store = store(1 << 20);
    let predicate = super::predicate::expression::parse("n > 1").unwrap();
    let selected = select(&table, &predicate, &store).selected(&Interrupt::new()).unwrap();
    for which in 0..=FACTS {
        let all = with_facts(MemoryRows::new(Arc::new(Int64Array::from(vec![1, 2, 3]))), which);
        let facts = all.facts().clone();
        let rows = SelectedRows::new(Arc::new(all), selected.clone());
        let lost = changed(&facts, rows.facts());
        assert!(lost.iter().all(|fact| given_up.contains(fact)), "{lost:?}");
        assert!(which < FACTS || lost == given_up, "{lost:?}");
    }
}

/// Whether a row satisfies a predicate; `None` where that is unknown.
fn holds(table: &Table, arrays: &[ArrayRef], predicate: &Predicate, row: usize) -> Option<bool> {
    match predicate {
        Predicate::All(parts) => joined(parts.iter().map(|part| holds(table, arrays, part, row)), false),
        Predicate::Any(parts) => joined(parts.iter().map(|part| holds(table, arrays, part, row)), true),
        Predicate::Not(inner) => holds(table, arrays, inner, row).map(|holds| !holds),
        Predicate::Test(condition) => {
            let at = table.columns.iter().position(|column| column.name == condition.column).unwrap();
            test(arrays[at].as_ref(), condition, row)
        }
    }
}

/// `or` where `strong` is true, `and` where it is false: one strong part decides, and else one that is unknown.
fn joined(parts: impl Iterator<Item = Option<bool>>, strong: bool) -> Option<bool> {
    let parts: Vec<_> = parts.collect();
    if parts.contains(&Some(strong)) {
        Some(strong)
    } else if parts.contains(&None) {
        None
    } else {
        Some(!strong)
    }
}

fn is_nan(array: &dyn Array, row: usize) -> bool {
    array.as_primitive_opt::<Float64Type>().is_some_and(|array| array.value(row).is_nan())
        || array.as_primitive_opt::<Float32Type>().is_some_and(|array| array.value(row).is_nan())
}

fn test(array: &dyn Array, condition: &Condition, row: usize) -> Option<bool> {
    match condition.operator {
        Operator::Null => return Some(array.is_null(row)),
        Operator::Valid => return Some(array.is_valid(row)),
        // NaN is NaN, missing or not; of anything else that is missing it is unknown.
        Operator::Nan if is_nan(array, row) => return Some(true),
        Operator::Nan => return array.is_valid(row).then_some(false),
        _ if array.is_null(row) => return None,
        _ => {}
    }
    Some(match array.data_type() {
        // All literals of the tests are short enough for an i128 with three decimals.
        DataType::Int64 => {
            compare(1000 * i128::from(array.as_primitive::<Int64Type>().value(row)), condition, thousandths)
        }
        DataType::UInt64 => {
            compare(1000 * i128::from(array.as_primitive::<UInt64Type>().value(row)), condition, thousandths)
        }
        DataType::Float64 => {
            compare(array.as_primitive::<Float64Type>().value(row), condition, |text| text.parse().unwrap())
        }
        // The nearest of its width, where there is one.
        DataType::Float32 => compare(f64::from(array.as_primitive::<Float32Type>().value(row)), condition, |text| {
            let (single, double): (f32, f64) = (text.parse().unwrap(), text.parse().unwrap());
            if single.is_infinite() { double } else { f64::from(single) }
        }),
        DataType::Boolean => compare(array.as_boolean().value(row), condition, |text| text == "true"),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int64Type>();
            let label = dictionary.values().as_string::<i64>().value(dictionary.keys().value(row) as usize).to_owned();
            of_text(label, condition)
        }
        _ => {
            let value = array.as_string::<i64>().value(row).to_owned();
            of_text(value, condition)
        }
    })
}

fn of_text(value: String, condition: &Condition) -> bool {
    let wanted = condition.values[0].text.to_string();
    match condition.operator {
        Operator::Prefix => value.starts_with(&wanted),
        Operator::Like => Pattern::parse(&wanted).matches(&value),
        _ => compare(value, condition, str::to_owned),
    }
}

fn thousandths(text: &str) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let magnitude = whole.trim_start_matches('-').parse::<i128>().unwrap() * 1000
        + format!("{fraction:0<3}").parse::<i128>().unwrap();
    if text.starts_with('-') { -magnitude } else { magnitude }
}

fn compare<T: PartialOrd>(value: T, condition: &Condition, parse: impl Fn(&str) -> T) -> bool {
    let at = |at: usize| parse(&condition.values[at].text.to_string());
    match condition.operator {
        Operator::Eq => value == at(0),
        Operator::Ne => value != at(0),
        Operator::Lt => value < at(0),
        Operator::Le => value <= at(0),
        Operator::Gt => value > at(0),
        Operator::Ge => value >= at(0),
        Operator::Between => value >= at(0) && value <= at(1),
        Operator::In => (0..condition.values.len()).any(|n| value == at(n)),
        _ => panic!("{condition:?}"),
    }
}

/// Columns of every kind, sorted somewhat, so that some blocks are all alike.
fn arrays(rows: usize, seed: u64) -> Vec<(&'static str, ArrayRef)> {
    let mut state = seed | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let block = |row: usize| (row / 65_536) as i64;
    let mut missing = |row: usize, every: u64| random(every) == 0 && block(row) != 1;
    let is_missing: Vec<[bool; 2]> = (0..rows).map(|row| [missing(row, 3), missing(row, 1000)]).collect();
    let ints: Int64Array =
        (0..rows).map(|row| (!is_missing[row][1]).then(|| block(row) * 10 + random(12) as i64 - 5)).collect();
    let uints: UInt64Array =
        (0..rows).map(|_| Some([0, 5, 1 << 53, (1 << 53) + 1, u64::MAX - 1, u64::MAX][random(6) as usize])).collect();
    let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 0.1, 5.0, -5.5, f64::MAX, 5e-324];
    let doubles: Float64Array = (0..rows)
        .map(|row| (!is_missing[row][0]).then(|| if block(row) == 2 { 5.0 } else { floats[random(10) as usize] }))
        .collect();
    let singles: Float32Array =
        (0..rows).map(|_| Some([f32::NAN, 0.1, 0.2, 5.0, f32::MAX, f32::INFINITY][random(6) as usize])).collect();
    // As of software that takes NaN for a missing value: it lies under the null.
    let masked: Vec<f64> = (0..rows).map(|_| [f64::NAN, 0.1, 5.0, -5.5][random(4) as usize]).collect();
    let is_there = NullBuffer::from_iter(masked.iter().map(|value| !value.is_nan()));
    let masked = Float64Array::new(masked.into(), Some(is_there));
    let words = ["", "a", "ab", "abc", "b", "\u{ff}", "abd"];
    let texts: LargeStringArray =
        (0..rows).map(|row| (!is_missing[row][0]).then(|| words[random(7) as usize])).collect();
    let keys: Int64Array = (0..rows).map(|row| (!is_missing[row][1]).then(|| random(7) as i64)).collect();
    let labels = DictionaryArray::new(keys, Arc::new(LargeStringArray::from(words.to_vec())));
    let flags: BooleanArray = (0..rows).map(|row| (!is_missing[row][0]).then(|| random(2) == 0)).collect();
    vec![
        ("row", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
        ("int", Arc::new(ints)),
        ("uint", Arc::new(uints)),
        ("double", Arc::new(doubles)),
        ("single", Arc::new(singles)),
        ("masked", Arc::new(masked)),
        ("text", Arc::new(texts)),
        ("label", Arc::new(labels)),
        ("flag", Arc::new(flags)),
    ]
}

/// A random condition as a segment of a path.
fn condition() -> impl Strategy<Value = String> {
    let numbers = [
        "0",
        "5",
        "-0",
        "-5.5",
        "0.1",
        "7",
        "15.5",
        "-1",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551614.5",
        "20000000000000000000",
    ];
    let number = prop::sample::select(numbers.to_vec());
    let float = prop::sample::select([&numbers[..], &["inf", "-inf", "1e39", "3.4028235e38"]].concat());
    let word = prop::sample::select(vec!["", "a", "ab", "abc", "b", "ÿ", "zz", "abz"]);
    let patterns = vec!["%25b", "a%25", "a_%25", "_", "%25", "%25b_", "a%25c", "\\%25", "ab_", "ab"];
    let with = |columns: &'static [&'static str],
                operators: &'static [&'static str],
                values: BoxedStrategy<&'static str>| {
        let list = prop::collection::vec(values, 1..12);
        (prop::sample::select(columns), prop::sample::select(operators), list).prop_map(|(column, operator, values)| {
            let taken = match operator {
                "null" | "valid" | "nan" => 0,
                "between" => 2,
                "in" => values.len(),
                _ => 1,
            };
            let values: Vec<_> = values.iter().cycle().take(taken).copied().collect();
            let colon = if taken > 0 { ":" } else { "" };
            format!("{column}:{operator}{colon}{}", values.join(","))
        })
    };
    const ORDERED: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge", "between", "in", "null", "valid"];
    const FLOATS: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge", "between", "in", "null", "valid", "nan"];
    const TEXTS: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge", "between", "in", "null", "valid", "prefix"];
    prop_oneof![
        with(&["int", "uint"], ORDERED, number.boxed()),
        with(&["double", "single", "masked"], FLOATS, float.boxed()),
        with(&["text", "label"], TEXTS, word.boxed()),
        with(&["text", "label"], &["like"], prop::sample::select(patterns).boxed()),
        with(&["flag"], ORDERED, prop::sample::select(vec!["true", "false"]).boxed()),
    ]
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let leaf = condition().prop_map(|segment| path::parse(segment.as_bytes()).unwrap());
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Predicate::All),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Predicate::Any),
            inner.prop_map(|inner| Predicate::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_selection_holds_the_rows_that_a_look_at_each_finds(
        rows in prop_oneof![Just(0), 1..200_usize, 190_000..200_000_usize],
        seed: u64,
        chunk in prop_oneof![Just(None), (100..100_000_u64).prop_map(Some)],
        known: bool,
        cache_size in prop_oneof![Just(0_u64), Just(20_000), Just(1 << 24)],
        predicate in predicate(),
        from in 0.0..1.0_f64,
        to in 0.0..1.0_f64,
    ) {
        let named = arrays(rows, seed);
        let columns = named.iter().map(|(name, array)| column(name, array.clone(), chunk, known).0).collect();
        let arrays: Vec<ArrayRef> = named.into_iter().map(|(_, array)| array).collect();
        let table = table(columns);
        let is_true = |row: &usize| holds(&table, &arrays, &predicate, *row) == Some(true);
        let expected: Vec<i64> = (0..rows).filter(is_true).map(|row| row as i64).collect();
        let selection = select(&table, &predicate, &store(cache_size));
        prop_assert_eq!(&numbers(&table, &selection), &expected);

        // Any part of any column, and bytes as stored.
        let interrupt = Interrupt::new();
        let selected = selection.selected(&interrupt).unwrap();
        let place = |part: f64| (part * (expected.len() + 1) as f64) as usize;
        let (from, to) = (place(from.min(to)), place(from.max(to)));
        let wanted = Int64Array::from_iter_values(expected[from..to].iter().copied());
        for (column, array) in table.columns.iter().zip(&arrays) {
            let rows = SelectedRows::new(column.rows.clone().unwrap(), selected.clone());
            let found = rows.array(from as u64..to as u64, &interrupt).unwrap();
            let taken = arrow_select::take::take(array.as_ref(), &wanted, None).unwrap();
            prop_assert_eq!(found.as_ref(), taken.as_ref(), "{}", column.name);
        }
        let rows = SelectedRows::new(table.columns[0].rows.clone().unwrap(), selected);
        let bytes: Vec<u8> = expected.iter().flat_map(|row| row.to_le_bytes()).collect();
        let (start, end) = (from * 8 + 3.min(to - from), to * 8);
        let mut stored = vec![7];
        rows.append(start as u64, end - start, &mut stored, &interrupt).unwrap();
        prop_assert_eq!(&stored[1..], &bytes[start..end]);
    }
}

#[test]
fn values_past_the_greatest_lie_before_infinity() {
    let doubles: ArrayRef =
        Arc::new(Float64Array::from(vec![f64::MAX, f64::INFINITY, f64::NAN, f64::MIN, f64::NEG_INFINITY]));
    let row: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let table = table(vec![column("row", row, None, false).0, column("x", doubles, None, false).0]);
    let found =
        |segment: &str| numbers(&table, &select(&table, &path::parse(segment.as_bytes()).unwrap(), &store(1 << 20)));
    assert_eq!(found("x:lt:1e400"), [0, 3, 4]);
    assert_eq!(found("x:ge:1e400"), [1]);
    assert_eq!(found("x:eq:1e400"), [0; 0]);
    assert_eq!(found("x:ne:1e400"), [0, 1, 2, 3, 4]);
    assert_eq!(found("x:gt:-1e400"), [0, 1, 3]);
    assert_eq!(found("x:nan"), [2]);
    let bound = |segment: &str| BoundPredicate::new(&table, &path::parse(segment.as_bytes()).unwrap());
    for segment in ["x:ne:nan", "x:in:1,NaN", "x:gt:-nan", "row:eq:nan"] {
        assert!(bound(segment).unwrap_err().to_string().contains("ask `:nan`"), "{segment}");
    }
    assert!(bound("row:nan").unwrap_err().to_string().contains("only floating-point numbers can be NaN"));
}

#[test]
fn statistics_spare_what_cannot_match_and_what_must() {
    let rows = 10 * 65_536;
    let (numbers_of, decoded) = column("x", Arc::new(Int64Array::from_iter_values(0..rows)), Some(10_000), true);
    let table = table(vec![numbers_of]);
    let predicate = expression::parse("x between 100000 and 300000").unwrap();
    let selection = select(&table, &predicate, &store(1 << 24));
    assert_eq!(selection.explained(), None);
    assert_eq!(selection.selected(&Interrupt::new()).unwrap().len(), 200_001);
    let explained = selection.explained().unwrap();
    assert_eq!(
        (explained.blocks, explained.blocks_without, explained.blocks_within, explained.blocks_decoded),
        (10, 6, 2, 2)
    );
    assert_eq!((explained.matched, explained.bytes_decoded), (Some(200_001), 2 * 65_536 * 8));
    assert_eq!(decoded.handed_out(), 2 * 65_536);
}

#[test]
fn only_chunks_with_selected_rows_are_decoded() {
    let rows = 3 * 65_536;
    let (x, _) = column("x", Arc::new(Int64Array::from_iter_values(0..rows)), Some(1000), true);
    let (y, decoded) = column("y", Arc::new(Int64Array::from_iter_values(0..rows)), Some(1000), false);
    let table = table(vec![x, y]);
    let selection = select(&table, &path::parse(b"x:in:5,70001,70999,72000").unwrap(), &store(1 << 24));
    let interrupt = Interrupt::new();
    let rows = SelectedRows::new(table.columns[1].rows.clone().unwrap(), selection.selected(&interrupt).unwrap());
    assert_eq!(
        rows.array(0..4, &interrupt).unwrap().as_primitive::<Int64Type>().values(),
        &[5, 70_001, 70_999, 72_000]
    );
    // Row 5; rows 70,001 to 70,999 of one chunk; row 72,000.
    assert_eq!(decoded.handed_out(), 1 + 999 + 1);
    assert!(rows.array(3..5, &interrupt).is_err());
}

#[test]
fn values_of_a_few_rows_are_decoded_once() {
    let count = 3 * 65_536_u64;
    let numbers =
        |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((0..count as i64).map(value))) as ArrayRef;
    let (x, of_x) = column("x", numbers(|row| row % 1000), None, false);
    let (y, of_y) = column("y", numbers(|row| row), None, false);
    let table = table(vec![x, y]);
    let (store, interrupt) = (store(1 << 24), Interrupt::new());
    let read = |what: &str| {
        let before = [&of_x, &of_y].map(|rows| rows.handed_out());
        let selection = select(&table, &expression::parse(what).unwrap(), &store);
        let selected = selection.selected(&interrupt).unwrap();
        let length = selected.len();
        let rows = SelectedRows::new(table.columns[0].rows.clone().unwrap(), selected);
        let array = rows.array(0..length, &interrupt).unwrap();
        let mut stored = Vec::new();
        rows.append(8, 16, &mut stored, &interrupt).unwrap();
        let values: &[i64] = array.as_primitive::<Int64Type>().values();
        assert_eq!(stored, values[1..3].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(), "{what}");
        let passed = [of_x.handed_out() - before[0], of_y.handed_out() - before[1]];
        (values.to_vec(), passed)
    };
    assert_eq!(read("x between 6 and 7"), ([6, 7].repeat(197), [count, 0]));
    // Those that y leaves of them, too.
    assert_eq!(read("x between 6 and 7 and y < 70000"), ([6, 7].repeat(70), [count, count]));
    // Many are decoded once more.
    let (values, [of_x, _]) = read("x < 500");
    assert!(values.len() == 98_500 && of_x > count, "{} {of_x}", values.len());
}

#[test]
fn what_makes_no_sense_for_a_table_is_explained() {
    let (x, _) = column("x", Arc::new(Int64Array::from(vec![1])), None, false);
    let (label, _) = column("label", Arc::new(LargeStringArray::from(vec!["a"])), None, false);
    let items = LargeListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
    let (items, _) = column("items", Arc::new(items), None, false);
    let table = table(vec![x, label, items]);
    let error = |text: &str| {
        let error = BoundPredicate::new(&table, &expression::parse(text).unwrap()).unwrap_err();
        format!("{}: {error}", error.position())
    };
    assert_eq!(error("x > 1 and energy = 5"), "10: there is no column \"energy\"; columns: x, label, items");
    assert_eq!(error("x = 'a'"), "4: x: \"a\" is no value of a column of integers");
    assert_eq!(error("label = 5"), "8: label: \"5\" is no value of a column of text");
    assert_eq!(error("x like 'a%'"), "0: x: integers have no prefix");
    assert_eq!(error("x like '%5'"), "7: x: integers match no pattern");
    let of_items = "0: items: values of type list<int64> support only null and valid";
    assert_eq!(error("items = 1"), of_items);
    let order = super::bind::find(&table, &"items".into(), 0).unwrap().ordered(0).unwrap_err();
    assert_eq!(order.to_string(), "items: values of type list<int64> have no order");
}

#[test]
fn a_selection_ends_when_it_is_interrupted() {
    let (x, _) = column("x", Arc::new(Int64Array::from_iter_values(0..100_000)), None, false);
    let table = table(vec![x]);
    let selection = select(&table, &path::parse(b"x:gt:5").unwrap(), &store(1 << 24));
    let interrupt = Interrupt::new();
    interrupt.raise();
    assert!(matches!(selection.selected(&interrupt), Err(Error::Interrupted(_))));
    assert_eq!(selection.selected(&Interrupt::new()).unwrap().len(), 99_994);
}
