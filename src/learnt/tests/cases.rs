//! Cases worked by hand.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, StructArray, UInt64Array,
};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::super::{Learner, Observed};
use super::{ID, blocks, learn, learner, memory};
use crate::source::Interrupt;
use crate::store::statistics::format::{decode, encode};
use crate::store::statistics::{GRAIN, Scalar, ScalarKind, Summary};
use crate::store::{Error, Rows};

fn whole(array: ArrayRef) -> Summary {
    let rows = array.len() as u64;
    learn(array).over(0..rows).unwrap()
}

fn floats(summary: &Summary) -> [u64; 2] {
    [&summary.min, &summary.max].map(|bound| match bound {
        Some(Scalar::Float(float)) => float.to_bits(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn nan_counts_and_bounds_nothing() {
    let array = Float64Array::from(vec![Some(f64::NAN), Some(2.5), None, Some(-1.0), Some(-f64::NAN)]);
    let found = whole(Arc::new(array));
    let [min, max] = [-1.0, 2.5].map(|bound| Some(Scalar::Float(bound)));
    assert_eq!(found, Summary { rows: 5, nulls: 1, nans: 2, min, max });
    let found = whole(Arc::new(Float32Array::from(vec![Some(f32::NAN), None])));
    assert_eq!(found, Summary { rows: 2, nulls: 1, nans: 1, min: None, max: None });
    // Infinity is a value like any other.
    let found = whole(Arc::new(Float32Array::from(vec![f32::INFINITY, f32::NAN])));
    assert_eq!(floats(&found), [f64::INFINITY.to_bits(); 2]);
}

#[test]
fn zeros_bound_zeros_of_both_signs() {
    let zeros = [(-0.0f64).to_bits(), 0.0f64.to_bits()];
    for array in [vec![0.0], vec![-0.0], vec![0.0, -0.0], vec![-0.0, 0.0]] {
        assert_eq!(floats(&whole(Arc::new(Float64Array::from(array)))), zeros);
    }
    assert_eq!(floats(&whole(Arc::new(Float32Array::from(vec![-0.0, 1.5])))), [zeros[0], 1.5f64.to_bits()]);
    assert_eq!(floats(&whole(Arc::new(Float32Array::from(vec![0.0, -1.5])))), [(-1.5f64).to_bits(), zeros[1]]);
}

#[test]
fn unsigned_numbers_past_the_signed_ones() {
    let found = whole(Arc::new(UInt64Array::from(vec![u64::MAX, 1 << 63, (1 << 63) - 1])));
    assert_eq!((found.min, found.max), (Some(Scalar::UInt((1 << 63) - 1)), Some(Scalar::UInt(u64::MAX))));
    let found = whole(Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX])));
    assert_eq!((found.min, found.max), (Some(Scalar::Int(i64::MIN)), Some(Scalar::Int(i64::MAX))));
}

fn texts(texts: &[&str]) -> [Option<String>; 2] {
    let found = whole(Arc::new(LargeStringArray::from(texts.to_vec())));
    [found.min, found.max].map(|bound| match bound {
        Some(Scalar::Text(text)) => Some(String::from_utf8(text).unwrap()),
        None => None,
        other => panic!("{other:?}"),
    })
}

#[test]
fn strings_up_to_64_bytes_are_bounds() {
    let (fits, long) = ("b".repeat(64), "b".repeat(65));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(texts(&["c", &fits]), [some(&fits), some("c")]);
    assert_eq!(texts(&["c", &long]), [None, some("c")]);
    assert_eq!(texts(&["a", &long]), [some("a"), None]);
    assert_eq!(texts(&["a", &long, "c"]), [some("a"), some("c")]);
    // The long one comes after its own beginning.
    assert_eq!(texts(&[&long, &fits]), [some(&fits), None]);
    assert_eq!(texts(&["", "\0", "é"]), [some(""), some("é")]);
    // Bytewise: capitals first, and UTF-8 in the order of code points.
    assert_eq!(texts(&["a", "Z", "\u{ffff}", "\u{10000}"]), [some("Z"), some("\u{10000}")]);
}

#[test]
fn a_block_whose_bound_is_too_long_takes_it_from_its_range() {
    let mut all = vec!["m".to_owned(); GRAIN as usize * 2];
    all[7] = "z".repeat(100);
    let statistics = learn(Arc::new(LargeStringArray::from(all)));
    let m = || Some(Scalar::Text(b"m".to_vec()));
    let rows = GRAIN;
    assert_eq!(statistics.over(0..GRAIN), Some(Summary { rows, nulls: 0, nans: 0, min: m(), max: None }));
    assert_eq!(statistics.over(GRAIN..2 * GRAIN), Some(Summary { rows, nulls: 0, nans: 0, min: m(), max: m() }));
    let both = Summary { rows: 2 * rows, nulls: 0, nans: 0, min: m(), max: None };
    assert_eq!(statistics.over(0..2 * GRAIN), Some(both));
}

#[test]
fn ranges_that_are_no_blocks_have_no_statistics() {
    // A short last block, and one of nothing but nulls before it.
    let rows = GRAIN * 2 + 10;
    let value = |row: u64| (row / GRAIN != 1).then_some(row as i32);
    let statistics = learn(Arc::new((0..rows).map(value).collect::<Int32Array>()));
    assert_eq!(statistics.blocks(), 3);
    let empty = Summary { rows: GRAIN, nulls: GRAIN, nans: 0, min: None, max: None };
    assert_eq!(statistics.over(GRAIN..2 * GRAIN), Some(empty));
    let bounds = [2 * GRAIN, rows - 1].map(|bound| Some(Scalar::Int(bound as i64)));
    let [min, max] = bounds.clone();
    assert_eq!(statistics.over(2 * GRAIN..rows), Some(Summary { rows: 10, nulls: 0, nans: 0, min, max }));
    let [min, max] = bounds;
    assert_eq!(statistics.over(GRAIN..rows), Some(Summary { rows: GRAIN + 10, nulls: GRAIN, nans: 0, min, max }));
    assert_eq!(statistics.over(5..5), Some(Summary::default()));
    let (backwards, past) = (std::ops::Range { start: GRAIN, end: 0 }, rows..rows + 1);
    for none in [1..GRAIN, 0..GRAIN - 1, 0..rows - 1, 0..GRAIN * 3, 2 * GRAIN..rows + 1, past, backwards] {
        assert_eq!(statistics.over(none.clone()), None, "{none:?}");
    }
}

#[test]
fn a_column_without_rows_is_known() {
    let learner = learner(&(Arc::new(Int32Array::from(Vec::<i32>::new())) as ArrayRef));
    assert_eq!(learner.progress(), (0, 0));
    assert_eq!(learner.known().unwrap().over(0..0), Some(Summary::default()));
}

#[test]
fn booleans_and_labels() {
    let bools = |values: Vec<Option<bool>>| {
        let found = whole(Arc::new(BooleanArray::from(values)));
        [found.min, found.max].map(|bound| bound.map(|bound| bound == Scalar::Bool(true)))
    };
    assert_eq!(bools(vec![Some(true), None]), [Some(true); 2]);
    assert_eq!(bools(vec![Some(true), Some(false)]), [Some(false), Some(true)]);
    assert_eq!(bools(vec![None]), [None, None]);
    // Labels that no row has do not count, nor does the order of codes.
    let labels = LargeStringArray::from(vec!["~", "muon", "electron", "photon", ""]);
    let keys = Int32Array::from(vec![Some(3), Some(2), None, Some(1)]);
    let found = whole(Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(labels))));
    let [min, max] = ["electron", "photon"].map(|label| Some(Scalar::Text(label.into())));
    assert_eq!(found, Summary { rows: 4, nulls: 1, nans: 0, min, max });
}

#[test]
fn types_without_order_have_no_statistics() {
    let array = StructArray::new_empty_fields(3, None);
    let none = std::sync::Weak::new();
    assert!(Learner::new(&none, "/t/x", ID, &memory(Arc::new(array))).is_none());
}

/// Pins the bytes: a change needs a new version, or a learner of another version would misread them.
#[test]
fn the_bytes_are_these() {
    let mut expected = b"hepfs statistics\x01\x01\x01\0\0\0\0\0".to_vec();
    expected.extend(3u64.to_le_bytes());
    expected.extend(1u32.to_le_bytes());
    expected.extend((-2i64).to_le_bytes());
    expected.extend(7i64.to_le_bytes());
    expected.extend(xxh3_64(&expected).to_le_bytes());
    let statistics = learn(Arc::new(Int32Array::from(vec![Some(7), None, Some(-2)])));
    assert_eq!(encode(&statistics.blocks), expected);

    let mut expected = b"hepfs statistics\x01\x04\0\0\0\0\0\0".to_vec();
    expected.extend(2u64.to_le_bytes());
    expected.extend(b"\x03abc\xff");
    expected.extend(xxh3_64(&expected).to_le_bytes());
    let statistics = learn(Arc::new(LargeStringArray::from(vec!["abc".to_owned(), "x".repeat(65)])));
    assert_eq!(encode(&statistics.blocks), expected);
    assert!(decode(&expected, ScalarKind::Text, &blocks(2)).is_some());

    // Sound sums over contents that cannot be.
    let with_sum = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 8);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    };
    let bytes = encode(&learn(Arc::new(Int32Array::from(vec![Some(7), None, Some(-2)]))).blocks);
    for (at, byte) in [(0, b'H'), (16, 2), (18, 2), (18, 7), (32, 4), (43, 0x7f), (51, 0x80)] {
        let mut wrong = bytes.clone();
        wrong[at] = byte;
        assert!(decode(&with_sum(wrong), ScalarKind::Int, &blocks(3)).is_none(), "byte {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(decode(&with_sum(longer), ScalarKind::Int, &blocks(3)).is_none());
    assert!(decode(&with_sum(bytes), ScalarKind::Int, &blocks(3)).is_some());
}

#[test]
fn what_passes_by_is_learnt_once() {
    let rows = GRAIN * 3 + 5;
    let array: ArrayRef = Arc::new((0..rows as i64).collect::<Int64Array>());
    let learner = Arc::new(learner(&array));
    let observed = Observed::new(Arc::new(memory(array)), learner.clone());
    let read = |start, end| observed.array(start..end, &Interrupt::new()).unwrap();
    read(0, 10);
    read(GRAIN - 5, GRAIN + 5);
    assert_eq!(learner.progress(), (0, 4));
    read(5, GRAIN);
    assert_eq!(learner.progress(), (1, 4));
    assert_eq!(read(GRAIN, rows).len() as u64, rows - GRAIN);
    assert_eq!(learner.progress(), (4, 4));
    let found = learner.known().unwrap().over(0..rows).unwrap();
    assert_eq!((found.rows, found.max), (rows, Some(Scalar::Int(rows as i64 - 1))));
}

#[test]
fn what_is_shown_is_decided_once() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let learner = learner(&array);
    assert!(learner.shown().is_none());
    learner.observe(0, array.as_ref());
    assert!(learner.known().is_some());
    assert!(learner.shown().is_none());
}

#[test]
fn rows_outside_the_column_teach_nothing() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let learner = learner(&array);
    learner.observe(1, array.as_ref());
    learner.observe(u64::MAX, array.as_ref());
    assert_eq!(learner.progress(), (0, 1));
    assert!(!learner.has_seen(&(1..3)));
}

#[test]
fn reading_single_rows_all_over_takes_bounded_memory() {
    let rows = 20_000u64;
    let array: ArrayRef = Arc::new((0..rows as i64).collect::<Int64Array>());
    let learner = learner(&array);
    for row in (0..rows).step_by(2) {
        learner.observe(row, array.slice(row as usize, 1).as_ref());
    }
    // The learner took 4,096 of them: the first even rows.
    assert!(learner.has_seen(&(8190..8191)) && !learner.has_seen(&(8192..8193)));
    // It still learns from a full pass.
    let seen = learner.learn(&memory(array), &Interrupt::new(), &|_| {}).unwrap();
    assert_eq!(seen.over(0..rows).unwrap().max, Some(Scalar::Int(rows as i64 - 1)));
}

#[test]
fn a_pass_learns_what_is_left() {
    let rows = GRAIN * 40 + 7;
    let array: ArrayRef = Arc::new((0..rows as i64).map(|row| (row * 7919) % 1_000_003).collect::<Int64Array>());
    let expected = learn(array.clone());
    let learner = learner(&array);
    // Of the first step, whole.
    learner.observe(0, array.slice(0, 260_000).as_ref());
    let memory = memory(array).most(50_000);
    let done = Mutex::new(Vec::new());
    let progress = |rows| done.lock().push(rows);
    let found = learner.learn(&memory, &Interrupt::new(), &progress).unwrap();
    assert_eq!(done.lock().iter().sum::<u64>(), rows);
    assert_eq!(memory.handed_out(), rows - 260_000);
    for block in 0..41 {
        let range = block * GRAIN..((block + 1) * GRAIN).min(rows);
        assert_eq!(found.over(range.clone()), expected.over(range));
    }
    // Nothing is left for another.
    learner.learn(&memory, &Interrupt::new(), &|rows_done| assert_eq!(rows_done, rows)).unwrap();
    assert_eq!(memory.handed_out(), rows - 260_000);
}

#[test]
fn a_pass_can_be_interrupted_and_goes_on_later() {
    let rows = GRAIN * 40;
    let array: ArrayRef = Arc::new((0..rows as i64).collect::<Int64Array>());
    let learner = learner(&array);
    let memory = memory(array);
    let interrupt = Interrupt::new();
    let raise = |_| interrupt.raise();
    let found = learner.learn(&memory, &interrupt, &raise);
    assert!(matches!(found, Err(Error::Interrupted(_))), "{found:?}");
    assert!(memory.handed_out() < rows);
    learner.learn(&memory, &Interrupt::new(), &|_| {}).unwrap();
    assert_eq!(memory.handed_out(), rows);
}
