//! The column index of a column chunk: bounds of the values of each page, from the statistics of blocks of rows.
//!
//! A page lies in one block, or is made of whole ones. In the first case its bounds are those of the block: an index
//! need not be tight.

use std::cmp::Ordering;
use std::sync::Arc;

use super::summary::plain;
use crate::store::RowRange;
use crate::store::statistics::{Scalar, Statistics, Summary};
use crate::table::Times;
use crate::views::parquet::body::leaf::Physical;
use crate::views::parquet::thrift::{self, Element, PADDING_OVERHEAD, Struct, WIDTH_64, list_header_length, wide_i64};

/// The field that holds padding: none that Parquet knows (its last is 8), and near enough to field 4 for Thrift's short
/// form.
const PADDING: u8 = 15;

/// `parquet.thrift` BoundaryOrder.
const UNORDERED: i32 = 0;
const ASCENDING: i32 = 1;
const DESCENDING: i32 = 2;

/// What is known of the values of a leaf column.
#[derive(Debug)]
pub(in crate::views::parquet) struct KnownLeaf {
    pub physical: Physical,
    /// Bytes of a bound at most; 0 for leaves that have none.
    pub bound: usize,
    pub statistics: Option<Arc<Statistics>>,
    /// How values are made of those that statistics speak of, where they are instants.
    pub times: Option<Times>,
}

impl KnownLeaf {
    /// What is known of the values in some rows.
    pub fn over(&self, rows: RowRange) -> Option<Summary> {
        self.shown(self.statistics.as_ref()?.over(rows)?)
    }

    /// The same of all rows of the blocks that some rows lie in.
    fn around(&self, rows: &RowRange) -> Option<Summary> {
        self.shown(self.statistics.as_ref()?.around(rows)?.1)
    }

    fn shown(&self, known: Summary) -> Option<Summary> {
        self.times.map_or(Some(known.clone()), |times| times.summary(known))
    }
}

/// The values of a page.
#[derive(Debug, PartialEq)]
struct PageValues {
    /// Missing ones, where their number is known.
    nulls: Option<u64>,
    /// Not below the first and not above the second; none where all are missing.
    bounds: Option<[Scalar; 2]>,
}

/// The values of the pages of a column chunk.
#[derive(Debug)]
pub(in crate::views::parquet) struct ColumnIndex {
    physical: Physical,
    pages: Vec<PageValues>,
}

impl ColumnIndex {
    /// Bytes at most.
    pub fn most(pages: u64, bound: usize) -> u64 {
        // A byte says whether the page has values; each bound stands behind a byte of length.
        let page = 1 + 2 * (1 + bound as u64) + WIDTH_64 as u64;
        // Four lists, the order, padding, the end.
        pages * page + 4 * (1 + list_header_length(pages)) + 6 + PADDING_OVERHEAD + 1
    }

    /// The column index of a column chunk whose pages have these rows. `None` where anything that it must say is not
    /// known.
    pub fn new(leaf: &KnownLeaf, pages: impl Iterator<Item = RowRange>) -> Option<Self> {
        let pages = pages.map(|rows| PageValues::new(leaf, &rows)).collect::<Option<_>>()?;
        Some(Self { physical: leaf.physical, pages })
    }

    /// Whether there is one.
    pub fn is_known(leaf: &KnownLeaf, mut pages: impl Iterator<Item = RowRange>) -> bool {
        pages.all(|rows| PageValues::new(leaf, &rows).is_some())
    }

    /// Appends `room` bytes, at least [`ColumnIndex::most`]; what is left over is padding in a field that readers skip.
    pub fn write(&self, room: usize, out: &mut Vec<u8>) {
        let (start, count) = (out.len(), self.pages.len());
        let mut fields = Struct::resume(out, 0);
        fields.list(1, Element::Bool, count, |out| {
            self.pages.iter().for_each(|page| thrift::bool(page.bounds.is_none(), out));
        });
        for (field, which) in [(2, 0), (3, 1)] {
            fields.list(field, Element::Binary, count, |out| {
                for page in &self.pages {
                    let bound = page.bounds.as_ref().and_then(|bounds| plain(&bounds[which], self.physical));
                    thrift::binary(&bound.unwrap_or_default(), out);
                }
            });
        }
        fields.i32(4, self.order());
        // All of them, or none.
        if let Some(nulls) = self.pages.iter().map(|page| page.nulls).collect::<Option<Vec<_>>>() {
            fields.list(5, Element::I64, count, |out| nulls.into_iter().for_each(|nulls| wide_i64(nulls, out)));
        }
        let used = fields.len() - start;
        // The padding's own bytes and the end.
        fields.padding(PADDING, room.saturating_sub(used + PADDING_OVERHEAD as usize + 1));
        fields.end();
    }

    /// Whether both bounds rise or fall from page to page, but for pages without values.
    fn order(&self) -> i32 {
        let bounds = || self.pages.iter().filter_map(|page| page.bounds.as_ref());
        let all = |wrong: Ordering| {
            let in_order = |a: &Scalar, b: &Scalar| a.order(b) != wrong;
            bounds().zip(bounds().skip(1)).all(|(a, b)| in_order(&a[0], &b[0]) && in_order(&a[1], &b[1]))
        };
        if all(Ordering::Greater) {
            ASCENDING
        } else if all(Ordering::Less) {
            DESCENDING
        } else {
            UNORDERED
        }
    }
}

impl PageValues {
    /// What an index must say of a page with these rows; `None` where it is not known.
    fn new(leaf: &KnownLeaf, rows: &RowRange) -> Option<Self> {
        let known = leaf.around(rows)?;
        let count = rows.end - rows.start;
        let nulls = match known.nulls {
            nulls if known.rows == count => Some(nulls),
            0 => Some(0),
            nulls if nulls == known.rows => Some(count),
            _ => None,
        };
        if nulls == Some(count) {
            return Some(Self { nulls, bounds: None });
        }
        // Fewer are missing around than the page has rows: one of its own is there. And engines differ in where NaN
        // stands among numbers.
        if known.nulls >= count || known.nans > 0 {
            return None;
        }
        let bounds = [known.min?, known.max?];
        let fits = |bound| plain(bound, leaf.physical).is_some_and(|bytes| bytes.len() <= leaf.bound);
        bounds.iter().all(fits).then_some(Self { nulls, bounds: Some(bounds) })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float32Array, Int32Array};

    use super::*;
    use crate::views::parquet::tests::learnt;

    const BLOCK: u64 = 65_536;

    fn leaf(array: ArrayRef, physical: Physical, bound: usize) -> KnownLeaf {
        KnownLeaf { physical, bound, statistics: learnt(array).shown(), times: None }
    }

    fn pages(lengths: &[u64]) -> Vec<RowRange> {
        let mut end = 0;
        let page = |length: &u64| {
            end += length;
            end - length..end
        };
        lengths.iter().map(page).collect()
    }

    fn index(leaf: &KnownLeaf, lengths: &[u64]) -> Option<ColumnIndex> {
        let index = ColumnIndex::new(leaf, pages(lengths).into_iter());
        assert_eq!(ColumnIndex::is_known(leaf, pages(lengths).into_iter()), index.is_some());
        index
    }

    #[test]
    fn bytes_worked_out_by_hand() {
        // 65,536 rows are missing, of 3 rows one.
        let values = std::iter::repeat_n(None, BLOCK as usize).chain([Some(-2), None, Some(7)]);
        let leaf = leaf(Arc::new(values.collect::<Int32Array>()), Physical::Int32, 4);
        let index = index(&leaf, &[BLOCK, 3]).unwrap();
        let room = ColumnIndex::most(2, 4) as usize;
        let mut out = vec![9];
        index.write(room, &mut out);
        let (zero, one) = (0x80, 0x82);
        let expected = [
            &[9][..],
            // Two flags: true, false.
            &[0x19, 0x21, 1, 2],
            // Nothing, −2; nothing, 7.
            &[0x19, 0x28, 0, 4, 0xfe, 0xff, 0xff, 0xff],
            &[0x19, 0x28, 0, 4, 7, 0, 0, 0],
            // ASCENDING.
            &[0x15, one, zero, zero, zero, 0],
            // 65,536 missing and 1: zigzag makes it 2^17 and 2.
            &[0x19, 0x26, zero, zero, 0x88, zero, zero, zero, zero, zero, 0],
            &[one, zero, zero, zero, zero, zero, zero, zero, 0],
            // Field 15, what two values take.
            &[0xa8, 0x88, zero, zero, zero, 0],
            &[0; 8],
            &[0],
        ]
        .concat();
        assert_eq!((out.len() - 1, &out), (room, &expected));
    }

    #[test]
    fn orders() {
        let order = |values: &[f32]| {
            let rows = values.iter().flat_map(|value| std::iter::repeat_n(*value, BLOCK as usize));
            let leaf = leaf(Arc::new(Float32Array::from_iter_values(rows)), Physical::Float, 4);
            index(&leaf, &vec![BLOCK; values.len()]).unwrap().order()
        };
        assert_eq!(order(&[1.0, 1.0, 2.0]), ASCENDING);
        assert_eq!(order(&[2.0, -1.0, -1.0]), DESCENDING);
        assert_eq!(order(&[1.0, 2.0, 1.0]), UNORDERED);
        // Zeros are one value.
        assert_eq!(order(&[-0.0, 0.0, -0.0]), ASCENDING);
    }

    #[test]
    fn pages_of_several_blocks_are_exact() {
        let rows = (0..4 * BLOCK as i32).map(|row| (row % 3 > 0).then_some(row));
        let leaf = leaf(Arc::new(rows.collect::<Int32Array>()), Physical::Int32, 4);
        let index = index(&leaf, &[2 * BLOCK, 2 * BLOCK]).unwrap();
        let bounds = [[1, 131_071], [131_072, 262_142]];
        for (page, [least, largest]) in index.pages.iter().zip(bounds) {
            assert_eq!(page.bounds, Some([Scalar::Int(least), Scalar::Int(largest)]));
        }
        // 0, 3, …, 131,070; 131,073, …, 262,143.
        assert_eq!(index.pages.iter().map(|page| page.nulls).collect::<Vec<_>>(), [Some(43_691), Some(43_691)]);
    }

    #[test]
    fn the_room_holds_any_index() {
        for (pages, bound) in [(2, 1), (14, 8), (15, 8), (300, 64)] {
            let full = Scalar::Text(vec![b'x'; bound]);
            let page = || PageValues { nulls: Some(1), bounds: Some([full.clone(), full.clone()]) };
            let index = ColumnIndex { physical: Physical::ByteArray, pages: (0..pages).map(|_| page()).collect() };
            let room = ColumnIndex::most(pages, bound) as usize;
            let mut out = Vec::new();
            index.write(room, &mut out);
            assert_eq!(out.len(), room);
            // No byte of padding is left.
            assert_eq!(out[out.len() - 7..], [0xa8, 0x80, 0x80, 0x80, 0x80, 0, 0]);
        }
    }
}
