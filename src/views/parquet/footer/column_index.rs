//! The column index of a column chunk: bounds of the values of each page, from the statistics of blocks of rows.
//!
//! A page lies within one block, or consists of whole ones. In the first case it gets the bounds of the block, since
//! bounds need not be tight.

use std::cmp::Ordering;
use std::sync::Arc;

use super::summary::plain;
use crate::store::RowRange;
use crate::store::statistics::{Scalar, Statistics, Summary};
use crate::table::Times;
use crate::views::parquet::body::leaf::Physical;
use crate::views::parquet::thrift::{
    self, PADDING_OVERHEAD, ThriftStruct, ThriftType, WIDTH_64, list_header_length, wide_i64,
};

/// The field that holds padding: unknown to Parquet (whose last is 8), and within reach of Thrift's short form from
/// field 4.
const PADDING: u8 = 15;

/// `parquet.thrift` BoundaryOrder.
const UNORDERED: i32 = 0;
const ASCENDING: i32 = 1;
const DESCENDING: i32 = 2;

/// Facts about the values of a leaf column.
#[derive(Debug)]
pub(in crate::views::parquet) struct KnownLeaf {
    pub physical: Physical,
    /// Most bytes of a bound; 0: the leaf has no bounds.
    pub bound: usize,
    pub statistics: Option<Arc<Statistics>>,
    /// For instants: the conversion from the integers that the statistics describe.
    pub times: Option<Times>,
}

impl KnownLeaf {
    /// Returns a summary of the values in some rows.
    pub fn over(&self, rows: RowRange) -> Option<Summary> {
        self.shown(self.statistics.as_ref()?.over(rows)?)
    }

    /// Returns a summary of all rows of the blocks that contain some rows.
    fn around(&self, rows: &RowRange) -> Option<Summary> {
        self.shown(self.statistics.as_ref()?.around(rows)?.1)
    }

    fn shown(&self, known: Summary) -> Option<Summary> {
        self.times.map_or(Some(known.clone()), |times| times.summary(known))
    }
}

/// The entry of a page in the column index.
#[derive(Debug, PartialEq)]
struct PageValues {
    /// Number of nulls, if known.
    nulls: Option<u64>,
    /// A lower and an upper bound of the values. `None`: all are null.
    bounds: Option<[Scalar; 2]>,
}

/// The column index of a column chunk.
#[derive(Debug)]
pub(in crate::views::parquet) struct ColumnIndex {
    physical: Physical,
    pages: Vec<PageValues>,
}

impl ColumnIndex {
    /// Returns the most bytes that the index takes for `pages` pages.
    pub fn most(pages: u64, bound: usize) -> u64 {
        // A page takes a byte for whether it has values, a null count, and two bounds, each after a byte with its
        // length.
        let page = 1 + 2 * (1 + bound as u64) + WIDTH_64 as u64;
        // The rest: four lists, the order, padding, the end.
        pages * page + 4 * (1 + list_header_length(pages)) + 6 + PADDING_OVERHEAD + 1
    }

    /// Returns the column index of a column chunk whose pages have these rows. `None`: some required fact is unknown.
    pub fn new(leaf: &KnownLeaf, pages: impl Iterator<Item = RowRange>) -> Option<Self> {
        let pages = pages.map(|rows| PageValues::new(leaf, &rows)).collect::<Option<_>>()?;
        Some(Self { physical: leaf.physical, pages })
    }

    /// Whether everything that the index requires is known.
    pub fn is_known(leaf: &KnownLeaf, mut pages: impl Iterator<Item = RowRange>) -> bool {
        pages.all(|rows| PageValues::new(leaf, &rows).is_some())
    }

    /// Appends exactly `room` bytes, at least [`ColumnIndex::most`]; the rest is padding in a field that readers skip.
    pub fn write(&self, room: usize, out: &mut Vec<u8>) {
        let (start, count) = (out.len(), self.pages.len());
        let mut fields = ThriftStruct::resume(out, 0);
        fields.list(1, ThriftType::Bool, count, |out| {
            self.pages.iter().for_each(|page| thrift::bool(page.bounds.is_none(), out));
        });
        for (field, which) in [(2, 0), (3, 1)] {
            fields.list(field, ThriftType::Binary, count, |out| {
                for page in &self.pages {
                    let bound = page.bounds.as_ref().and_then(|bounds| plain(&bounds[which], self.physical));
                    thrift::binary(&bound.unwrap_or_default(), out);
                }
            });
        }
        fields.i32(4, self.order());
        // Null counts are listed for all pages, or not at all.
        if let Some(nulls) = self.pages.iter().map(|page| page.nulls).collect::<Option<Vec<_>>>() {
            fields.list(5, ThriftType::I64, count, |out| nulls.into_iter().for_each(|nulls| wide_i64(nulls, out)));
        }
        let used = fields.len() - start;
        // The room holds the padding's own bytes and the end of the struct as well.
        fields.padding(PADDING, room.saturating_sub(used + PADDING_OVERHEAD as usize + 1));
        fields.end();
    }

    /// Returns the order of both bounds from page to page, ignoring pages without values.
    fn order(&self) -> i32 {
        let bounds = self.pages.iter().filter_map(|page| page.bounds.as_ref());
        let all = |wrong: Ordering| {
            bounds.clone().zip(bounds.clone().skip(1)).all(|(a, b)| a.iter().zip(b).all(|(a, b)| a.order(b) != wrong))
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
    /// Returns the entry for a page with these rows. `None`: some required fact is unknown.
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
        // If the surroundings have fewer nulls than the page has rows, the page has a value of its own. Bounds of
        // values with NaN are left out, since engines order NaN differently.
        if known.nulls >= count || known.nans > 0 {
            return None;
        }
        let bounds = [known.min?, known.max?];
        let fit = bounds.iter().all(|bound| plain(bound, leaf.physical).is_some_and(|bytes| bytes.len() <= leaf.bound));
        fit.then_some(Self { nulls, bounds: Some(bounds) })
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
        // A block of 65,536 nulls, then three rows with one null.
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
            // 65,536 nulls and 1: zigzag makes 2^17 and 2.
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
