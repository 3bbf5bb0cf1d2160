//! Looks at tables in memory; expected values by hand or by NumPy.

use std::sync::Arc;

use arrow_array::builder::{LargeListBuilder, UInt8Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int8Array, Int64Array, LargeStringArray, NullArray, StructArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field};

use super::*;
use crate::catalogue::{ColumnId, ObjectId};
use crate::store::rows::in_memory::MemoryRows;

fn looked(array: ArrayRef) -> ColumnLook {
    look(vec![array]).columns.remove(0)
}

fn look(arrays: Vec<ArrayRef>) -> Look {
    Look::of(&table(arrays), true, &Interrupt::new()).unwrap()
}

fn table(arrays: Vec<ArrayRef>) -> Table {
    let rows = arrays.first().map_or(0, |array| array.len() as u64);
    let column = |(at, array): (usize, ArrayRef)| {
        let id = ColumnId::whole(ObjectId { file: 0, address: at as u64 });
        let name = format!("c{at}");
        Column::new(
            name.as_str().into(),
            format!("/t/{name}"),
            id,
            Ok(Arc::new(MemoryRows::new(array))),
            Arc::default(),
        )
    };
    Table { rows, columns: arrays.into_iter().enumerate().map(column).collect(), ..Table::empty("/t", "test") }
}

fn bars(look: &ColumnLook) -> &Bars {
    match look.picture.as_ref().unwrap() {
        ColumnPicture { values: Values::Bars(bars), .. } => bars,
        other => panic!("{other:?}"),
    }
}

fn labels(look: &ColumnLook) -> &Labels {
    match look.picture.as_ref().unwrap() {
        ColumnPicture { values: Values::Labels(labels), .. } => labels,
        other => panic!("{other:?}"),
    }
}

fn said<T: Clone>(figure: &Option<Counted<T>>) -> Option<T> {
    figure.as_ref().map(|figure| figure.of.clone())
}

fn text(figure: &Option<Counted<Number>>) -> &str {
    figure.as_ref().map_or("", |figure| &figure.of.0)
}

#[test]
fn few_whole_numbers_have_a_bar_each() {
    let look = looked(Arc::new(Int8Array::from(vec![Some(3), Some(-1), None, Some(3), Some(0), Some(1)])));
    let bars = bars(&look);
    assert_eq!((bars.counts.as_slice(), bars.width, bars.outside), ([1, 1, 1, 0, 2].as_slice(), Width::One, 0));
    assert_eq!(bars.exact, ["-1", "3"]);
    // numpy.median([3, -1, 3, 0, 1]) is 1.
    assert_eq!([&look.numbers.least, &look.numbers.median, &look.numbers.greatest].map(text), ["-1", "1", "3"]);
    assert_eq!(said(&look.numbers.missing), Some([1, 6]));
    assert!(look.is_whole && look.numbers.missing.unwrap().is_exact);
}

#[test]
fn medians_of_whole_numbers_have_halves() {
    let median = |values: Vec<i64>| text(&looked(Arc::new(Int64Array::from(values))).numbers.median).to_owned();
    let texts = [vec![1, 2], vec![-3, -2], vec![-1, 0], vec![0, 1], vec![-4, -2]].map(median);
    assert_eq!(texts, ["1.5", "-2.5", "-0.5", "0.5", "-3"]);
}

#[test]
fn extremes_of_64_bits_are_kept() {
    let look = looked(Arc::new(UInt64Array::from(vec![u64::MAX, 0, 7])));
    assert_eq!(bars(&look).counts.iter().sum::<u64>(), 3);
    assert_eq!(text(&look.numbers.greatest), "18446744073709551615");
    let look = looked(Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX])));
    assert_eq!(bars(&look).exact, ["-9223372036854775808", "9223372036854775807"]);
    // Neighbours there, as numbers of events have them, are told apart.
    let look = looked(Arc::new(UInt64Array::from_iter_values((0..100).map(|row| u64::MAX - 200 + row * 2 % 101))));
    let picture = look.picture.as_ref().unwrap();
    assert_eq!((bars(&look).counts.len(), bars(&look).width), (101, Width::One));
    assert_eq!(picture.trace.ends, Some([0.0, 100.0]));
}

#[test]
fn floats_have_48_bars_between_quantiles() {
    // The least of 1,001 numbers is one of the 0.5 % that may lie outside.
    let values = (0..=1000).map(|row| if row == 500 { 1e9 } else { f64::from(row % 100) });
    let look = looked(Arc::new(Float64Array::from_iter_values(values)));
    let bars = bars(&look);
    assert_eq!((bars.counts.len(), bars.counts.iter().sum::<u64>(), bars.outside), (48, 1000, 1));
    assert_eq!(bars.exact[0], "0");
    let trace = &look.picture.as_ref().unwrap().trace;
    assert!(trace.is_cut && trace.ends.unwrap()[1] < 120.0, "{:?}", trace.ends);
    assert_eq!(text(&look.numbers.greatest), "1e9");
}

#[test]
fn what_is_no_number_is_counted_by_itself() {
    let values = [f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY, 3.0];
    let look = looked(Arc::new(Float64Array::from(values.to_vec())));
    assert_eq!((bars(&look).counts.iter().sum::<u64>(), bars(&look).outside), (3, 2));
    assert_eq!((said(&look.numbers.nans), said(&look.numbers.missing)), (Some([1, 6]), Some([0, 6])));
    assert_eq!([&look.numbers.least, &look.numbers.median, &look.numbers.greatest].map(text), ["-∞", "2", "∞"]);
    // Missing values beside NaN, in stretches of two rows.
    let look = looked(Arc::new(Float64Array::from([None, Some(f64::NAN), Some(1.0), Some(2.0)].repeat(32))));
    assert_eq!((said(&look.numbers.nans), said(&look.numbers.missing)), (Some([32, 128]), Some([32, 128])));
    // Three rows in each of 64 stretches: the axis over the rows spans all that is finite.
    let look = looked(Arc::new(Float64Array::from([f64::INFINITY, 0.0, 10.0].repeat(64))));
    assert_eq!(look.picture.unwrap().trace.ends, Some([0.0, 10.0]));
    let look = looked(Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY])));
    assert_eq!(look.picture, Err(NoPicture::Missing));
    let look = looked(Arc::new(Float64Array::from(vec![f64::MAX, f64::MIN, 0.0, 5e-324])));
    assert_eq!(bars(&look).counts.iter().sum::<u64>(), 4);
    let look = looked(Arc::new(Float32Array::from(vec![0.1; 9])));
    assert_eq!((bars(&look).counts.as_slice(), text(&look.numbers.least)), ([9].as_slice(), "0.1"));
    assert_eq!(said(&look.numbers.order), Some(Order::Constant));
}

#[test]
fn skewed_positive_numbers_have_a_logarithmic_axis() {
    let values = (0..3000).map(|row| 10_f64.powf(f64::from(row * 7 % 3000) / 600.0));
    let look = looked(Arc::new(Float64Array::from_iter_values(values.clone())));
    assert_eq!(bars(&look).scale, Scale::Log);
    // Spread evenly over five decades, all bars are alike.
    assert!(bars(&look).counts.iter().all(|count| (50..=70).contains(count)), "{:?}", bars(&look).counts);
    let whole = looked(Arc::new(Int64Array::from_iter_values(values.clone().map(|value| value as i64))));
    assert_eq!(bars(&whole).scale, Scale::Log);
    assert_eq!(bars(&whole).counts.iter().sum::<u64>() + bars(&whole).outside, 3000);
    let zero = looked(Arc::new(Float64Array::from_iter_values(values.chain([0.0]))));
    assert_eq!(bars(&zero).scale, Scale::Linear);
}

#[test]
fn rising_numbers_count_rows_between_stretches_in_proportion() {
    let rows = 1_000_000_u64;
    let look = looked(Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 * 2.0))));
    let bars = bars(&look);
    assert!(bars.rises && !look.is_whole);
    assert_eq!(bars.counts.iter().sum::<u64>(), rows);
    assert!(bars.counts.iter().all(|count| count.abs_diff(rows / 48) <= 1), "{:?}", bars.counts);
    assert_eq!(said(&look.numbers.order), Some(Order::Rising));
    assert!(!look.numbers.order.unwrap().is_exact && !look.numbers.least.unwrap().is_exact);
    let falling = looked(Arc::new(Int64Array::from_iter_values((0..5000).rev())));
    assert_eq!(said(&falling.numbers.order), Some(Order::Falling));
    // Rows of one value: all of a small column are known.
    let steps = looked(Arc::new(Int64Array::from_iter_values((0..5000).map(|row| row / 1000))));
    assert!(steps.is_whole);
    assert_eq!(super::tests::bars(&steps).counts, [1000; 5]);
}

#[test]
fn times_show_gaps() {
    let second = 1_000_000_000;
    let start = 1_769_839_200 * second;
    let times = (0..100_000).map(|row| start + row * second / 100 + if row < 50_000 { 0 } else { 1000 * second });
    let look = looked(Arc::new(TimestampNanosecondArray::from_iter_values(times)));
    let bars = bars(&look);
    assert_eq!((bars.of, bars.counts.len(), bars.counts.iter().sum::<u64>()), (BarsOf::Times, 160, 100_000));
    // 500 s of rows, 1,000 s without, 500 s.
    assert!(bars.counts[..39].iter().all(|count| (1240..=1260).contains(count)), "{:?}", bars.counts);
    assert!(bars.counts[45..115].iter().all(|count| *count < 20), "{:?}", bars.counts);
    assert_eq!(bars.shown.each_ref().map(|one| one.0.as_str()), ["06:00:00", "06:33:19"]);
    assert_eq!(text(&look.numbers.least), "2026-01-31 06:00:00");
}

#[test]
fn labels_are_counted() {
    let texts = ["b", "a", "c", "b", "e", "d", "f", "b", "a"];
    let texts = texts.map(Some).into_iter().chain([None]);
    let plain = looked(Arc::new(LargeStringArray::from_iter(texts.clone())));
    let dictionary: DictionaryArray<Int32Type> = texts.collect();
    let coded = looked(Arc::new(dictionary));
    for look in [&plain, &coded] {
        let labels = labels(look);
        let named: Vec<(&str, u64)> = labels.commonest.iter().map(|label| (label.text.as_str(), label.count)).collect();
        assert_eq!(named, [("b", 3), ("a", 2), ("c", 1), ("d", 1), ("e", 1)]);
        assert_eq!((labels.others, labels.rows), ([1, 1], 10));
        assert_eq!((said(&look.numbers.distinct), said(&look.numbers.missing)), (Some(6), Some([1, 10])));
        assert_eq!(labels.commonest[0].over, [1, 0, 0, 1, 0, 0, 0, 1, 0, 0]);
    }
    let booleans = looked(Arc::new(BooleanArray::from(vec![Some(false), Some(true), Some(false), None])));
    let counts: Vec<u64> = labels(&booleans).commonest.iter().map(|label| label.count).collect();
    assert_eq!((counts, labels(&booleans).are_booleans), (vec![1, 2], true));
    // Texts that all differ have lengths.
    let texts = looked(Arc::new(LargeStringArray::from_iter_values((0..100).map(|row| format!("event {row}")))));
    assert_eq!((bars(&texts).of, bars(&texts).counts.as_slice()), (BarsOf::Bytes, [10, 90].as_slice()));
}

#[test]
fn lists_have_lengths_and_arrays_all_their_values() {
    let mut lists = LargeListBuilder::new(UInt8Builder::new());
    for length in [2_usize, 0, 3, 2] {
        lists.append_value((0..length).map(|item| Some(item as u8)));
    }
    lists.append_null();
    let look = looked(Arc::new(lists.finish()));
    assert_eq!((bars(&look).of, bars(&look).counts.as_slice()), (BarsOf::Lengths, [1, 0, 2, 1].as_slice()));
    assert_eq!(said(&look.numbers.missing), Some([1, 5]));
    let field = Arc::new(Field::new_list_field(DataType::Float64, false));
    let values = Arc::new(Float64Array::from_iter_values((0..12).map(f64::from)));
    let arrays = looked(Arc::new(FixedSizeListArray::new(field, 3, values, None)));
    assert_eq!(bars(&arrays).counts.iter().sum::<u64>(), 12);
    assert!(!bars(&arrays).rises);
    assert_eq!(arrays.picture.unwrap().trace.stretches[1].values, Some([3.0, 4.0, 5.0]));
}

#[test]
fn what_has_no_picture_says_why() {
    let structs = StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int8, false)),
        Arc::new(Int8Array::from(vec![1, 2])) as ArrayRef,
    )]);
    let structs = looked(Arc::new(structs));
    assert_eq!((structs.picture, structs.numbers.missing), (Err(NoPicture::Type), None));
    assert_eq!(looked(Arc::new(NullArray::new(3))).picture, Err(NoPicture::Missing));
    assert_eq!(looked(Arc::new(Int8Array::from(vec![None, None]))).picture, Err(NoPicture::Missing));
    assert_eq!(looked(Arc::new(Int8Array::from(Vec::<i8>::new()))).picture, Err(NoPicture::Empty));
    let many = look((0..=MOST_PICTURES).map(|_| Arc::new(Int8Array::from(vec![1])) as ArrayRef).collect());
    assert!(many.columns[MOST_PICTURES - 1].picture.is_ok());
    assert_eq!(many.columns[MOST_PICTURES].picture, Err(NoPicture::Beyond));
    let decimals = Decimal128Array::from(vec![150, 250]).with_precision_and_scale(5, 2).unwrap();
    let decimals = looked(Arc::new(decimals));
    assert_eq!([&decimals.numbers.least, &decimals.numbers.median].map(text), ["1.5", "2"]);
}

#[test]
fn the_first_and_the_last_rows_are_shown() {
    let look = look(vec![
        Arc::new(Int64Array::from_iter((0..100).map(|row| (row != 1).then_some(row)))),
        Arc::new(LargeStringArray::from_iter_values((0..100).map(|row| format!("<{row}>\n")))),
    ]);
    assert_eq!(look.edges.rows, [0, 1, 2, 3, 4, 5, 98, 99]);
    assert_eq!(look.edges.cells[0][..2], [Cell::Text("0".into()), Cell::Missing]);
    assert_eq!(look.edges.cells[1][7], Cell::Text("<99>\n".into()));
}

#[test]
fn a_column_that_cannot_be_read_leaves_the_others() {
    let mut table = table(vec![Arc::new(Int8Array::from(vec![1, 2])), Arc::new(Int8Array::from(vec![1, 2]))]);
    let broken = MemoryRows::new(Arc::new(Int8Array::from(vec![1, 2]))).broken(1..2);
    table.columns[0].rows = Ok(Arc::new(broken));
    let look = Look::of(&table, true, &Interrupt::new()).unwrap();
    assert!(matches!(look.columns[0].picture, Err(NoPicture::Unreadable(_))));
    assert!(look.columns[1].picture.is_ok());
    let interrupt = Interrupt::new();
    interrupt.raise();
    assert!(matches!(Look::of(&table, true, &interrupt), Err(Error::Interrupted(_))));
}

#[test]
fn a_column_always_shows_the_same_reason() {
    let mut table = table(vec![Arc::new(Int64Array::from_iter_values(0..200_000))]);
    // The part that comes first fails last.
    let broken = MemoryRows::new(Arc::new(Int64Array::from_iter_values(0..200_000))).hook(|rows, _| {
        if rows.start == 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Err(Error::unsupported("/t/c0", format!("row {}", rows.start)))
    });
    table.columns[0].rows = Ok(Arc::new(broken));
    let look = Look::of(&table, true, &Interrupt::new()).unwrap();
    let reason = Error::unsupported("/t/c0", "row 0").to_string();
    assert_eq!(look.columns[0].picture, Err(NoPicture::Unreadable(reason)));
}
