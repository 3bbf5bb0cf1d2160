//! Sizes and reads of whole files.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array, StringArray};

use super::super::{BlockCache, TextFormat, TextView};
use super::{cache, column, usual, whole};
use crate::catalogue::{Class, Datatype, ReferenceKind};
use crate::source::Interrupt;
use crate::store::rows::in_memory::MemoryRows;
use crate::store::{Answer, Hints, ValueSet};
use crate::views::{Effort, Size, View};

/// Pseudo-random numbers (xorshift), so that tests need no seed.
fn random(count: usize) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9e37_79b9_7f4a_7c15_u64), |x| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    })
    .take(count)
}

fn numbers(count: usize) -> Vec<i64> {
    random(count).map(|x| (x as i64) >> (x % 63)).collect()
}

/// Independent of the renderer: `format!`.
fn expected(numbers: &[i64], header: &str) -> Vec<u8> {
    let mut text = header.to_owned();
    for number in numbers {
        text += &format!("{number}\n");
    }
    text.into_bytes()
}

fn size(view: &TextView, effort: Effort) -> Size {
    view.size(effort, &Interrupt::new()).unwrap()
}

fn read(view: &TextView, offset: usize, length: usize) -> Vec<u8> {
    let mut answer = Answer::in_memory(vec![b'!']);
    view.gather(offset as u64, length, &mut answer, &Interrupt::new()).unwrap();
    let mut out = answer.into_made();
    assert_eq!(out.remove(0), b'!', "what was there stays");
    out
}

fn check_reads(view: &TextView, expected: &[u8]) {
    for (x, length) in random(60).zip([0, 1, 7, 1000, 131_072, 3_000_000].into_iter().cycle()) {
        let offset = (x % (expected.len() as u64 + 10)) as usize;
        let found = read(view, offset, length);
        let wanted = expected.get(offset..).unwrap_or_default();
        assert_eq!(found, &wanted[..wanted.len().min(length)], "offset {offset}");
    }
    assert!(read(view, expected.len(), 10).is_empty());
    assert!(read(view, usize::MAX, 10).is_empty());
}

fn view_of(rows: MemoryRows, format: TextFormat) -> (TextView, Arc<MemoryRows>) {
    let rows = Arc::new(rows);
    (TextView::new(vec![column("a", rows.clone())], format, &usual(), None, cache(), None), rows)
}

#[test]
fn reads_anywhere_are_right_with_and_without_an_index() {
    let values = numbers(400_000);
    let expected = expected(&values, "a\n");
    let array: ArrayRef = Arc::new(Int64Array::from(values));
    for natural in [1000, 100_000, 65_537] {
        // Random reads first: the index is made as far as needed.
        let (view, _) = view_of(MemoryRows::new(array.clone()).natural(natural), TextFormat::Csv);
        check_reads(&view, &expected);
        assert_eq!(
            size(&view, Effort::Free),
            Size::Exact(expected.len() as u64),
            "the reads past the end told the size"
        );
        // From the start to the end: the index grows.
        let (view, _) = view_of(MemoryRows::new(array.clone()).natural(natural), TextFormat::Csv);
        assert!(whole(&view) == expected);
        // Size first, as `open` does.
        let (view, _) = view_of(MemoryRows::new(array.clone()).natural(natural), TextFormat::Csv);
        assert_eq!(size(&view, Effort::Exact), Size::Exact(expected.len() as u64));
        check_reads(&view, &expected);
        assert!(whole(&view) == expected);
    }
}

#[test]
fn a_reader_from_start_to_end_renders_each_row_once() {
    let values = numbers(400_000);
    let (view, rows) = view_of(MemoryRows::new(Arc::new(Int64Array::from(values))), TextFormat::Txt);
    whole(&view);
    // 1 MiB / 12 bytes: 65,536 rows a block, so 7 blocks.
    assert_eq!(rows.calls(), 7);
    whole(&view);
    assert_eq!(rows.calls(), 7, "all blocks are in the cache");
}

#[test]
fn sizes_by_effort() {
    let (small, rows) = view_of(MemoryRows::new(Arc::new(Int64Array::from(numbers(1000)))), TextFormat::Csv);
    assert_eq!(size(&small, Effort::Free), Size::AtMost(2 + 1000 * 21));
    assert_eq!(rows.calls(), 0);
    assert_eq!(size(&small, Effort::Quick), Size::Exact(expected(&numbers(1000), "a\n").len() as u64));
    assert_eq!(size(&small, Effort::Free), size(&small, Effort::Exact), "known from now on");

    let (large, rows) = view_of(MemoryRows::new(Arc::new(Int64Array::from(numbers(300_000)))), TextFormat::Csv);
    assert_eq!(size(&large, Effort::Quick), Size::AtMost(2 + 300_000 * 21));
    assert_eq!(rows.calls(), 0);

    // Many chunks take too long to read.
    let (chunked, rows) =
        view_of(MemoryRows::new(Arc::new(Int64Array::from(numbers(1000)))).natural(10), TextFormat::Csv);
    assert_eq!(size(&chunked, Effort::Quick), Size::AtMost(2 + 1000 * 21));
    assert_eq!(rows.calls(), 0);

    // Hexadecimal digits are arithmetic, and so is the index.
    let bytes = FixedSizeBinaryArray::try_from_iter(random(100_000).map(u64::to_le_bytes)).unwrap();
    let (fixed, rows) = view_of(MemoryRows::new(Arc::new(bytes)), TextFormat::Txt);
    assert_eq!(size(&fixed, Effort::Free), Size::Exact(1_700_000));
    assert_eq!(size(&fixed, Effort::Exact), Size::Exact(1_700_000));
    assert_eq!(rows.calls(), 0);
    assert_eq!(read(&fixed, 17 * 99_999, 100).len(), 17);
    assert_eq!(rows.calls(), 1);
}

#[test]
fn bounds_without_a_width_are_finite() {
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["x"; 300_000]));
    let (view, _) = view_of(MemoryRows::new(strings.clone()), TextFormat::Csv);
    assert_eq!(size(&view, Effort::Free), Size::AtMost(1 << 45));
    let class = Class::Reference(ReferenceKind::Object);
    let references = MemoryRows::new(strings.clone()).hinted(Hints::of(&Datatype { size: 8, class }));
    let (view, _) = view_of(references, TextFormat::Txt);
    // Paths of 64 KiB and 96 KiB behind them, of which each byte may be shown as three, and each character as two.
    assert_eq!(size(&view, Effort::Free), Size::AtMost(300_000 * ((160 << 10) * 3 * 2 + 1)));
    let mut column = column("a", Arc::new(MemoryRows::new(strings)));
    column.longest = Some(5);
    let view = TextView::new(vec![column], TextFormat::Csv, &usual(), None, cache(), None);
    assert_eq!(size(&view, Effort::Free), Size::AtMost(2 + 300_000 * 13));
}

#[test]
fn categories_are_bounded_by_their_longest_label() {
    let labelled = |labels: Vec<&str>, format| {
        let labels = Arc::new(MemoryRows::new(Arc::new(StringArray::from(labels))));
        let shown: DictionaryArray<Int64Type> =
            (0..300_000).map(|row| [None, Some("B"), Some("T\"x")][row % 3]).collect();
        let values = Some(ValueSet::Categories { labels: labels.clone(), ordered: false });
        let rows = MemoryRows::new(Arc::new(shown)).hinted(Hints { values, nullable: true, ..Hints::default() });
        let (view, rows) = view_of(rows, format);
        (view, rows, labels)
    };
    // A quote is doubled and quoted in CSV; JSON escapes it in quotes.
    for (format, row, header) in [(TextFormat::Csv, 7, 2), (TextFormat::Txt, 4, 0), (TextFormat::Ndjson, 13, 0)] {
        let (view, rows, labels) = labelled(vec!["B", "T\"x"], format);
        assert_eq!(size(&view, Effort::Free), Size::AtMost(1 << 45), "{format:?}");
        assert_eq!(size(&view, Effort::Quick), Size::AtMost(header + 300_000 * row), "{format:?}");
        assert_eq!(size(&view, Effort::Free), size(&view, Effort::Quick), "{format:?}");
        assert_eq!((rows.calls(), labels.calls()), (0, 1), "{format:?}");
        let Size::Exact(exact) = size(&view, Effort::Exact) else { panic!("no size") };
        assert!(exact <= header + 300_000 * row, "{format:?}");
    }
    let (view, _, labels) = labelled(vec!["long"; 300_000], TextFormat::Txt);
    assert_eq!(size(&view, Effort::Quick), Size::AtMost(1 << 45));
    assert_eq!(labels.calls(), 0, "too many to look at");
}

#[test]
fn the_first_rows_alone() {
    let values = numbers(200_000);
    let rows = Arc::new(MemoryRows::new(Arc::new(Int64Array::from(values.clone()))));
    let head = TextView::new(vec![column("a", rows)], TextFormat::Csv, &usual(), Some(1000), cache(), None);
    assert_eq!(head.rows(), 1000);
    assert!(whole(&head) == expected(&values[..1000], "a\n"));
}

#[test]
fn the_first_rows_have_an_exact_size_where_they_are_not_too_long() {
    let first = |array: ArrayRef, natural| {
        let rows = Arc::new(MemoryRows::new(array).natural(natural));
        (TextView::new(vec![column("a", rows.clone())], TextFormat::Csv, &usual(), Some(1000), cache(), None), rows)
    };
    // A chunk that no other file would decode for its size at `stat`.
    let (head, _) = first(Arc::new(Int64Array::from(numbers(200_000))), 200_000);
    assert_eq!(size(&head, Effort::Quick), size(&head, Effort::Exact));
    let (texts, _) = first(Arc::new(StringArray::from(vec!["x".repeat(10_000); 1000])), 1000);
    assert_eq!(size(&texts, Effort::Quick), Size::Exact(2 + 1000 * 10_001));
    let (long, rows) = first(Arc::new(StringArray::from(vec!["x".repeat(100_000); 1000])), 1000);
    assert_eq!(size(&long, Effort::Quick), Size::AtMost(1 << 45));
    assert_eq!(rows.calls(), 0, "no value is read");
    assert_eq!(size(&long, Effort::Exact), Size::Exact(2 + 1000 * 100_001));
}

#[test]
fn tables_are_read_row_after_row() {
    let (x, y) = (numbers(150_000), numbers(150_000));
    let y: Vec<f64> = y.iter().map(|&y| y as f64 / 8.0).collect();
    let mut expected = String::from("x,y\n");
    for (x, y) in x.iter().zip(&y) {
        expected += &format!("{x},{}\n", zmij::Buffer::new().format(*y));
    }
    let columns = vec![
        column("x", Arc::new(MemoryRows::new(Arc::new(Int64Array::from(x))).natural(4096))),
        column("y", Arc::new(MemoryRows::new(Arc::new(Float64Array::from(y))).natural(1000))),
    ];
    let view = TextView::new(columns, TextFormat::Csv, &usual(), None, cache(), None);
    assert_eq!(size(&view, Effort::Exact).bytes(), expected.len() as u64);
    check_reads(&view, expected.as_bytes());
}

#[test]
fn rows_much_wider_than_expected_are_divided() {
    // 3,000 strings of 1 byte, but for a run of 100 with 20,000 bytes each and one of 4.5 MB: one block by the
    // estimate.
    let strings: Vec<String> = (0..3000)
        .map(|row| match row {
            1500 => "y".repeat(4_500_000),
            500..600 => char::from(b'a' + (row % 26) as u8).to_string().repeat(20_000),
            _ => "x".into(),
        })
        .collect();
    let expected = strings.iter().fold(String::from("a\n"), |text, string| text + string + "\n");
    let (view, _) = view_of(MemoryRows::new(Arc::new(StringArray::from(strings))), TextFormat::Csv);
    check_reads(&view, expected.as_bytes());
    assert!(whole(&view) == expected.as_bytes());
}

#[test]
fn what_the_store_finds_too_large_is_asked_for_in_halves() {
    let values = numbers(100_000);
    let expected = expected(&values, "");
    let rows = MemoryRows::new(Arc::new(Int64Array::from(values))).most(5000);
    let (view, _) = view_of(rows, TextFormat::Txt);
    assert_eq!(size(&view, Effort::Exact).bytes(), expected.len() as u64);
    assert!(whole(&view) == expected);
}

#[test]
fn the_cache_is_bounded_and_forgets() {
    let cache = Arc::new(BlockCache::new(3 << 20));
    let rows = Arc::new(MemoryRows::new(Arc::new(Int64Array::from(numbers(1_000_000)))));
    let view = TextView::new(vec![column("a", rows)], TextFormat::Txt, &usual(), None, cache.clone(), None);
    size(&view, Effort::Exact);
    whole(&view);
    assert!(cache.bytes() > 1 << 20);
    assert!(cache.bytes() <= 3 << 20, "{}", cache.bytes());
    drop(view);
    // A thread that renders ahead may hold the view a little longer.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while cache.bytes() > 0 && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(cache.bytes(), 0);
}
