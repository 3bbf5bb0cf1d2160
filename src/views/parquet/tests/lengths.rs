//! Texts and lists whose outlines state their lengths.

use super::*;
use crate::views::Standing;

/// Enough rows that a sample says how long the file is.
const ROWS: usize = 300_000;

fn outlined(array: ArrayRef) -> ParquetColumn {
    rows("x", MemoryRows::new(array).nullable(true).natural(10_000).outlined(), Hints::default())
}

/// The size that `stat` reports, and the whole file.
fn whole(view: &ParquetView) -> (u64, Vec<u8>) {
    let size = |effort| view.size(effort, &Interrupt::new()).unwrap();
    let Size::AtMost(promised) = size(Effort::Quick) else { panic!("no sample") };
    assert_eq!(size(Effort::Exact), Size::Exact(promised), "the room is enough");
    (promised, bytes(view))
}

fn words(special: impl Fn(usize) -> Option<String>) -> Vec<Option<String>> {
    (0..ROWS).map(|row| special(row).or_else(|| (row % 7 > 0).then(|| "ß".repeat(row % 23)))).collect()
}

#[test]
fn room_is_left_by_a_sample() {
    let words = words(|_| None);
    let view = view(vec![outlined(Arc::new(LargeStringArray::from(words.clone())))]);
    let (promised, all) = whole(&view);
    assert!(read(&all)["x"].as_string::<i32>().iter().eq(words.iter().map(Option::as_deref)));
    let needed: usize = words.iter().flatten().map(|word| word.len() + 4).sum();
    assert!((needed as f64 * 1.2..needed as f64 * 1.5).contains(&(promised as f64)), "{promised} for {needed}");
    assert_ranges(&view, &all, (0..all.len() / 777_777).map(|at| (at * 777_777, 100_000)));
    assert_ranges(&view, &all, [(all.len() - 100_000, 200_000)].into_iter());
}

#[test]
fn lists_are_as_long_as_their_offsets_say() {
    let lengths: Vec<usize> = (0..ROWS).map(|row| if row % 5 == 0 { 0 } else { row % 9 }).collect();
    let count: usize = lengths.iter().sum();
    let texts = LargeStringArray::from_iter((0..count).map(|at| (at % 3 > 0).then(|| "x".repeat(at % 11))));
    let list = |items: ArrayRef| {
        let nulls = NullBuffer::from_iter((0..ROWS).map(|row| row % 10 != 5));
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        LargeListArray::new(field, OffsetBuffer::from_lengths(lengths.iter().copied()), items, Some(nulls))
    };
    for items in [Arc::new(texts) as ArrayRef, Arc::new(Int16Array::from_iter_values((0..count).map(|at| at as i16)))] {
        let list = list(items);
        let view = view(vec![outlined(Arc::new(list.clone()))]);
        let batch = read(&whole(&view).1);
        let found = batch["x"].as_list::<i32>();
        // A list that is missing has no items here.
        let lengths: Vec<usize> = found.offsets().lengths().collect();
        assert_eq!((lengths, found.nulls()), (list.offsets().lengths().collect(), list.nulls()));
        assert_eq!(texts_of(found.values()), texts_of(list.values()));
    }
}

/// Items as they are written.
fn texts_of(array: &ArrayRef) -> Vec<Option<String>> {
    match array.data_type() {
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect(),
        DataType::Utf8 => array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect(),
        _ => array.as_primitive::<Int16Type>().iter().map(|number| number.map(|number| number.to_string())).collect(),
    }
}

#[test]
fn texts_that_grow_often_are_measured_by_their_values() {
    let words = words(|row| (row % 50 == 0).then(|| "\u{fffd}".repeat(60)));
    let view = view(vec![outlined(Arc::new(LargeStringArray::from(words.clone())))]);
    let (_, all) = whole(&view);
    assert!(read(&all)["x"].as_string::<i32>().iter().eq(words.iter().map(Option::as_deref)));
    assert_eq!(view.standing(), Standing::Provisional);
}

#[test]
fn a_few_texts_that_grow_find_room() {
    let words = words(|row| (row == 150_050).then(|| "\u{fffd}".repeat(60)));
    let view = view(vec![outlined(Arc::new(LargeStringArray::from(words.clone())))]);
    let (_, all) = whole(&view);
    assert!(read(&all)["x"].as_string::<i32>().iter().eq(words.iter().map(Option::as_deref)));
}

#[test]
fn what_no_sample_met_costs_a_page_and_the_layout_is_given_up() {
    let words = words(|row| (150_000..150_200).contains(&row).then(|| "\u{fffd}".repeat(100)));
    let view = view(vec![outlined(Arc::new(LargeStringArray::from(words)))]);
    let Size::Exact(size) = view.size(Effort::Exact, &Interrupt::new()).unwrap() else { panic!() };
    let mut bad = 0;
    for at in (0..size).step_by(100_000) {
        if let Err(error) = gathered(&view, at, 100_000) {
            assert!(error.to_string().contains("no UTF-8"), "{error}");
            bad += 1;
        }
    }
    assert!((1..30).contains(&bad), "{bad}");
    assert_eq!(view.standing(), Standing::Outdated);
}
