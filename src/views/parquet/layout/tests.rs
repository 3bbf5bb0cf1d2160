//! Layouts checked by hand, and properties of arbitrary ones.

use super::*;
use proptest::prelude::*;

use crate::store::Cuts;

/// Bodies by a formula.
struct By<F> {
    most: F,
    exact: bool,
    cells: bool,
}

impl<F: Fn(u64) -> Option<u64>> Bodies for By<F> {
    fn most(&self, rows: u64) -> Option<u64> {
        (self.most)(rows)
    }

    fn header(&self) -> PageHeaderForm {
        if self.exact { PageHeaderForm::Exact } else { PageHeaderForm::Padded }
    }

    fn entries(&self) -> u64 {
        1
    }

    fn lead(&self, _: u64) -> Option<u64> {
        self.cells.then_some(0)
    }
}

fn choose(rows: u64, leaves: usize, stride: u64, labels: u64, cuts: Option<&Cuts>) -> Groups {
    Groups::choose(rows, &RowSizes { leaves, width: 4096, stride, labels }, cuts)
}

fn cells(groups: &Groups, width: u64) -> LeafSize {
    let bodies = By { most: move |rows: u64| rows.checked_mul(width), exact: true, cells: true };
    LeafSize { dictionary: 0, pages: DataPages::Slots(Slots::new(groups, &bodies).unwrap()) }
}

fn padded(groups: &Groups, most: impl Fn(u64) -> Option<u64>) -> Option<Slots> {
    Slots::new(groups, &By { most, exact: false, cells: false })
}

fn exact(groups: &Groups, most: impl Fn(u64) -> Option<u64>) -> Option<Slots> {
    Slots::new(groups, &By { most, exact: true, cells: false })
}

#[test]
fn row_groups_grow_with_the_number_of_chunks() {
    assert_eq!(choose(0, 3, 0, 0, None), Groups::new(0, 131_072, None));
    assert_eq!(choose(100_000_000, 5, 0, 0, None).per_group(), 131_072);
    // 763 groups × 100 columns are 76,300 chunks.
    assert_eq!(choose(100_000_000, 100, 0, 0, None).per_group(), 262_144);
    // 1,000 columns of 10^9 rows: 60 groups at the most rows there may be.
    let wide = choose(1_000_000_000, 1000, 0, 0, None);
    assert_eq!((wide.per_group(), wide.count()), (16 << 20, 60));
    assert_eq!(wide.rows_of(59), 59 * (16 << 20)..1_000_000_000);
}

#[test]
fn row_groups_grow_with_the_labels_of_their_dictionaries() {
    let rows = |labels: u64| choose(100_000_000, 5, 0, labels, None).per_group();
    assert_eq!([10, 16_384, 16_385, 30_000].map(rows), [131_072, 131_072, 262_144, 262_144]);
    assert_eq!([65_536, 65_537, u64::MAX].map(rows), [524_288, 131_072, 131_072]);
    // Fields are decoded together all the same.
    assert_eq!(choose(10_000_000, 25, 40_000, 30_000, None).per_group(), 1024);
}

#[test]
fn row_groups_keep_to_cuts() {
    let rows = |groups: Groups| (0..groups.count()).map(|group| groups.rows_of(group)).collect::<Vec<_>>();
    let cuts = Cuts::new([10, 200_010, 200_011]).unwrap();
    let cut = choose(200_011, 3, 0, 0, Some(&cuts));
    assert_eq!(cut.typical(), 50_002);
    assert_eq!(rows(cut), [0..10, 10..131_082, 131_082..200_010, 200_010..200_011]);
    // 256 rows take a MiB: 25 runs of 10 rows share a row group where there are many, one of 300 rows is by itself.
    let cuts = |runs: u64| Cuts::new((1..=runs).map(|run| run * 10).chain([runs * 10 + 300]));
    assert_eq!(choose(2850, 3, 0, 0, cuts(255).as_ref()).count(), 256);
    let joined = choose(20_300, 3, 0, 0, cuts(2000).as_ref());
    assert_eq!((joined.count(), joined.rows_of(0), joined.rows_of(80)), (81, 0..250, 20_000..20_300));
    // In 10,000 columns even these are too many.
    assert_eq!(choose(20_300, 10_000, 0, 0, cuts(2000).as_ref()).count(), 10);
    let joined = choose(20_300, 3, 0, 0, cuts(2000).as_ref());
    assert!(rows(joined).iter().all(|rows| rows.start % 10 == 0 && rows.end % 10 == 0));
}

#[test]
fn row_groups_of_fields_follow_the_bytes_of_whole_rows() {
    let rows = |stride: u64| choose(10_000_000, 25, stride, 0, None).per_group();
    assert_eq!([0, 1, 201, 256].map(rows), [131_072; 4]);
    assert_eq!(
        [257, 512, 40_000, 32 << 20].map(|stride| choose(1000, 25, stride, 0, None).per_group()),
        [65_536, 65_536, 512, 1]
    );
    // Rows of 40 kB, and rows that only claim to be so long.
    assert_eq!(choose(1000, 25, u64::MAX, 0, None).per_group(), 1);
    // A million rows of 8 kB, and ten million of 40 kB, whose footer would be too long.
    assert_eq!(choose(1_000_000, 1000, 8000, 0, None).per_group(), 4096);
    assert_eq!(rows(40_000), 1024);
}

#[test]
fn cells_are_aligned_and_groups_repeat() {
    let groups = Groups::new(300_000, 131_072, None);
    let layout = ParquetLayout::new(groups.clone(), vec![cells(&groups, 8), cells(&groups, 4)]).unwrap();
    // 8-byte values: header up to byte 4096, then 1 MiB; 4-byte values the same behind.
    let first = layout.chunk(0, 0).unwrap();
    assert_eq!(first, ColumnChunk { start: 4051, data: 4051, bytes: 45 + 8 * 131_072, entries: 131_072 });
    let second = layout.chunk(0, 1).unwrap();
    assert_eq!(second.start + 45, 4096 + (1 << 20) + 4096);
    let next = layout.chunk(1, 0).unwrap();
    assert_eq!((next.start + 45) % 4096, 0);
    assert!(next.start >= second.start + second.bytes);
    // 37,856 rows are left.
    let last = layout.chunk(2, 1).unwrap();
    assert_eq!((last.bytes, last.entries), (45 + 4 * 37_856, 37_856));
    assert_eq!(layout.end(), last.start + last.bytes);
    assert_eq!(layout.locate(3), ParquetRegion::Magic);
    assert_eq!(layout.locate(4), ParquetRegion::Gap(4051));
    assert_eq!(layout.locate(layout.end()), ParquetRegion::Footer);
    let page = PagePlace { leaf: 1, rows: 262_144..300_000, until: 300_000, start: last.start, bytes: last.bytes };
    assert_eq!(layout.locate(last.start + 100), ParquetRegion::Page(page));
}

#[test]
fn small_files_have_no_gap() {
    let groups = Groups::new(10, 131_072, None);
    let layout = ParquetLayout::new(groups.clone(), vec![cells(&groups, 8), cells(&groups, 4)]).unwrap();
    assert_eq!(layout.chunk(0, 0).unwrap().start, 4);
    assert_eq!(layout.chunk(0, 1).unwrap().start, 4 + 45 + 80);
    assert_eq!(layout.end(), 4 + 45 + 80 + 45 + 40);
    let empty = ParquetLayout::new(Groups::new(0, 131_072, None), vec![cells(&groups, 8)]).unwrap();
    assert_eq!((empty.end(), empty.locate(4)), (4, ParquetRegion::Footer));
}

#[test]
fn slots_hold_at_most_a_mebibyte() {
    let groups = Groups::new(1_000_000, 131_072, None);
    // Nullable 8-byte values: validity bits and values.
    let most = |rows: u64| Some(4 + 5 + rows.div_ceil(8) + rows * 8);
    let slots = padded(&groups, most).unwrap();
    assert_eq!((slots.rows, slots.bytes), (65_536, 51 + 9 + 8192 + 524_288));
    assert_eq!(slots.page(1_000_000 % 65_536), Some(51 + most(1_000_000 % 65_536).unwrap()));
    // A value of 2 MiB at most is measured, one of exactly 2 MiB has a page of its own.
    assert!(padded(&groups, |rows| Some(rows << 21)).is_none());
    assert_eq!(exact(&groups, |rows| Some(rows << 21)).unwrap().rows, 1);
    assert!(exact(&groups, |_| None).is_none());
    // Wide cells are cut into pages that a header can describe.
    let DataPages::Slots(slots) = cells(&groups, 1 << 20).pages else { panic!() };
    assert_eq!(slots.rows, 128);
}

#[test]
fn measured_pages_must_cover_the_rows() {
    let groups = Groups::new(131_080, 131_072, None);
    let page = |rows| (Page { rows, bytes: 10, entries: rows }, 1);
    assert!(MeasuredPages::new(&groups, false, [page(65_536), page(65_536), page(8)]).is_some());
    assert!(MeasuredPages::new(&groups, false, [page(65_536), page(65_540), page(4)]).is_none());
    assert!(MeasuredPages::new(&groups, false, [page(131_072)]).is_none());
    assert!(MeasuredPages::new(&groups, false, [page(131_072), page(8), page(1)]).is_none());
}

/// 2^40 rows that are alike take as much memory as a few.
#[test]
fn pages_that_are_alike_are_a_run() {
    let groups = choose((1 << 40) + 5, 1, 0, 0, None);
    let page = Page { rows: 65_536, bytes: 100, entries: 65_536 };
    let rest = Page { rows: 5, bytes: 1, entries: 5 };
    let measured = MeasuredPages::new(&groups, true, [(page, 1 << 24), (rest, 1)]).unwrap();
    assert_eq!((measured.kinds.len(), measured.runs.len()), (2, 2));
    let layout = ParquetLayout::new(
        groups.clone(),
        vec![LeafSize { dictionary: 0, pages: DataPages::Measured(Arc::new(measured)) }],
    );
    let layout = layout.unwrap().with_gap(1000).unwrap();
    let bytes = 51 + 100;
    let end = 4 + (bytes << 24) + 52;
    assert_eq!(
        (layout.end(), layout.locate(end), layout.locate(end + 1000)),
        (end + 1000, ParquetRegion::Gap(end + 1000), ParquetRegion::Footer)
    );
    let first = (1 << 40) - 65_536;
    let page = PagePlace { leaf: 0, rows: first..1 << 40, until: 1 << 40, start: end - 52 - bytes, bytes };
    assert_eq!(layout.locate(end - 53), ParquetRegion::Page(page));
    assert_eq!(layout.chunk(7, 0).unwrap().entries, 1 << 24);
}

#[test]
fn a_file_that_is_too_large_has_no_layout() {
    let groups = choose(u64::MAX / 8, 1, 0, 0, None);
    assert!(ParquetLayout::new(groups.clone(), vec![cells(&groups, 8)]).is_none());
}

proptest! {
    #[test]
    fn places_follow_each_other(
        rows in 1..600_000u64,
        columns in proptest::collection::vec((0..4usize, 0..3000u64), 1..6),
        measured_rows in 1..50_000u32,
        cuts in proptest::collection::vec(1..600_000u64, 0..6),
    ) {
        let groups = Groups::new(rows, 131_072, Cuts::new(cuts.into_iter().filter(|end| *end < rows).chain([rows])));
        let leaves: Vec<LeafSize> = columns
            .iter()
            .map(|&(kind, dictionary)| match kind {
                0 => cells(&groups, 8),
                1 => LeafSize { dictionary, ..cells(&groups, 1) },
                2 => {
                    let slots = padded(&groups, |rows| Some(rows * 30 + 9)).unwrap();
                    LeafSize { dictionary: 0, pages: DataPages::Slots(slots) }
                }
                _ => {
                    let pages = (0..groups.count()).flat_map(|group| {
                        let range = groups.rows_of(group);
                        let mut left = (range.end - range.start) as u32;
                        std::iter::from_fn(move || {
                            let rows = left.min(measured_rows);
                            left -= rows;
                            (rows > 0).then_some((Page { rows, bytes: rows * 3, entries: rows }, 1))
                        })
                    });
                    let measured = MeasuredPages::new(&groups, measured_rows % 2 == 0, pages).unwrap();
                    LeafSize { dictionary, pages: DataPages::Measured(Arc::new(measured)) }
                }
            })
            .collect();
        let layout = ParquetLayout::new(groups.clone(), leaves.clone()).unwrap();
        let mut at = 0;
        let mut seen = vec![0; leaves.len()];
        let mut numbers = vec![0; leaves.len()];
        loop {
            let next = match layout.locate(at) {
                ParquetRegion::Magic => 4,
                ParquetRegion::Gap(end) => end,
                ParquetRegion::Dictionary { leaf, start, end } => {
                    prop_assert_eq!((start, end), (at, at + leaves[leaf].dictionary));
                    end
                }
                ParquetRegion::Page(page) => {
                    prop_assert_eq!((page.start, page.rows.start), (at, seen[page.leaf]));
                    seen[page.leaf] = page.rows.end;
                    prop_assert_eq!(layout.locate(at + page.bytes - 1), ParquetRegion::Page(page.clone()));
                    prop_assert!(page.bytes <= leaves[page.leaf].pages.longest());
                    let group = (0..groups.count()).find(|group| groups.rows_of(*group).contains(&page.rows.start)).unwrap();
                    let number = &mut numbers[page.leaf];
                    prop_assert_eq!(layout.page(group, page.leaf, *number), Some(page.clone()));
                    *number += 1;
                    if page.rows.end == groups.rows_of(group).end {
                        prop_assert_eq!(layout.pages(group, page.leaf), *number);
                        prop_assert_eq!(layout.page(group, page.leaf, *number), None);
                        *number = 0;
                    }
                    at + page.bytes
                }
                ParquetRegion::Footer => break,
            };
            prop_assert!(next > at);
            at = next;
        }
        prop_assert_eq!(at, layout.end());
        prop_assert!(seen.iter().all(|&end| end == rows));
    }
}
