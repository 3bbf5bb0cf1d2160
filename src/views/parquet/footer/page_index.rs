//! The page index: places of the pages of each column chunk, and bounds of their values.
//!
//! ```text
//! column indexes   of row group 0: a room for each column chunk; of row group 1; …
//! offset indexes   of row group 0: one for each column chunk; of row group 1; …
//! ```
//!
//! Lengths follow from the number of pages alone. If the statistics that a column index requires are unknown, zeros
//! fill its place, and the footer does not refer to it. Nothing is stored per page: a read renders the indexes that it
//! covers.

use std::sync::{Arc, OnceLock};

use super::column_index::{ColumnIndex, KnownLeaf};
use crate::store::RowRange;
use crate::views::parquet::layout::{PagePlace, ParquetLayout};
use crate::views::parquet::thrift::{ThriftType, list_header, list_header_length, structure};
use crate::views::wanted::WantedBytes;

/// Longest page index to show, in bytes: room for the pages of 150 GB of numbers. Engines that use one read all of it
/// when they open a file, whatever the query; this much takes them some tenths of a second.
const LONGEST: u64 = 16 << 20;

/// Number of bytes of a page in an offset index: a struct of place, length and first row.
const LOCATION: u64 = 27;

/// Where the offset index and the column index of a column chunk lie: first byte and length of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::views::parquet) struct ChunkIndex {
    pub offsets: (u64, u32),
    /// The column index. `None`: the column has no such index.
    pub columns: Option<(u64, u32)>,
}

/// The page index of a file.
#[derive(Debug)]
pub(in crate::views::parquet) struct PageIndex {
    layout: Arc<ParquetLayout>,
    leaves: Vec<KnownLeaf>,
    /// For each column chunk, row group by row group, the end of its column index.
    columns: Vec<u32>,
    /// For each column chunk, the end of its offset index, counted from the end of all column indexes.
    offsets: Vec<u32>,
    /// For each column chunk, whether its column index is known: finding out takes a look at every page, and every read
    /// of the footer needs it.
    known: Vec<OnceLock<bool>>,
}

impl PageIndex {
    /// Returns the page index over a layout, with facts about each of its leaf columns. `None`: the index would be
    /// useless, because no column chunk has more than one page; or a page is longer than an index can express; or the
    /// index would exceed [`LONGEST`].
    pub fn new(layout: Arc<ParquetLayout>, leaves: Vec<KnownLeaf>) -> Option<Self> {
        let (mut columns, mut offsets) = (Vec::new(), Vec::new());
        let (mut column_bytes, mut offset_bytes) = (0, 0);
        let mut useful = false;
        for group in 0..layout.groups().count() {
            for (position, leaf) in leaves.iter().enumerate() {
                let pages = layout.pages(group, position);
                useful |= pages > 1;
                column_bytes += column_room(pages, leaf);
                offset_bytes += offset_length(pages);
                if column_bytes + offset_bytes > LONGEST {
                    return None;
                }
                // These numbers stay below the limit.
                columns.push(column_bytes as u32);
                offsets.push(offset_bytes as u32);
            }
        }
        let sayable = layout.leaves().iter().all(|leaf| leaf.pages.longest() <= i32::MAX as u64);
        let known = vec![OnceLock::new(); columns.len()];
        (useful && sayable).then_some(Self { layout, leaves, columns, offsets, known })
    }

    /// Returns the bytes of all column indexes.
    fn column_bytes(&self) -> u64 {
        self.columns.last().copied().unwrap_or(0).into()
    }

    /// Returns the bytes of the page index.
    pub fn bytes(&self) -> u64 {
        self.column_bytes() + u64::from(self.offsets.last().copied().unwrap_or(0))
    }

    /// Returns where the indexes of a column chunk lie. `None`: there is no such column chunk.
    pub fn chunk(&self, group: u64, leaf: usize) -> Option<ChunkIndex> {
        let chunk = usize::try_from(group).ok()?.checked_mul(self.leaves.len())?.checked_add(leaf)?;
        let start = self.layout.end();
        let (column, column_end) = piece(&self.columns, chunk)?;
        let (offset, offset_end) = piece(&self.offsets, chunk)?;
        let known = self.leaves.get(leaf).zip(self.known.get(chunk)).filter(|_| column_end > column);
        let is_known = known
            .is_some_and(|(known, once)| *once.get_or_init(|| ColumnIndex::is_known(known, self.rows(group, leaf))));
        let columns = is_known.then_some((start + u64::from(column), column_end - column));
        let offsets = (start + self.column_bytes() + u64::from(offset), offset_end - offset);
        Some(ChunkIndex { offsets, columns })
    }

    /// Returns the rows of each page of a column chunk.
    fn rows(&self, group: u64, leaf: usize) -> impl Iterator<Item = RowRange> {
        let pages = 0..self.layout.pages(group, leaf);
        pages.filter_map(move |page| Some(self.layout.page(group, leaf, page)?.rows))
    }

    /// Copies the wanted bytes of the index.
    pub fn read(&self, wanted: &mut WantedBytes<'_>) {
        let columns = self.layout.end();
        let offsets = columns + self.column_bytes();
        while let Some(at) = wanted.next().filter(|&at| at >= columns && at - columns < self.bytes()) {
            let (ends, start) = if at < offsets { (&self.columns, columns) } else { (&self.offsets, offsets) };
            // An empty entry ends at the end of the one before it, so the search skips it.
            let chunk = ends.partition_point(|&end| u64::from(end) <= at - start);
            let Some((first, end)) = piece(ends, chunk) else { return };
            let (group, leaf) = ((chunk / self.leaves.len()) as u64, chunk % self.leaves.len());
            let first_byte = start + u64::from(first);
            if at < offsets {
                self.read_columns(group, leaf, (first_byte, end - first), wanted);
            } else {
                self.read_offsets(group, leaf, first_byte, wanted);
            }
            if wanted.next() == Some(at) {
                // An index that ends before the wanted byte would loop forever.
                return;
            }
        }
    }

    fn read_columns(&self, group: u64, leaf: usize, (start, room): (u64, u32), wanted: &mut WantedBytes<'_>) {
        let known = self.leaves.get(leaf);
        match known.and_then(|known| ColumnIndex::new(known, self.rows(group, leaf))) {
            Some(index) => {
                let mut bytes = Vec::with_capacity(room as usize);
                index.write(room as usize, &mut bytes);
                wanted.take(start, &bytes);
            }
            None => wanted.zeros(start, room.into()),
        }
    }

    fn read_offsets(&self, group: u64, leaf: usize, start: u64, wanted: &mut WantedBytes<'_>) {
        let pages = self.layout.pages(group, leaf);
        // The pages are field 1, a list.
        let mut scratch = vec![0x19];
        list_header(ThriftType::Struct, pages as usize, &mut scratch);
        wanted.take(start, &scratch);
        let first = start + scratch.len() as u64;
        let end = first + pages * LOCATION;
        let first_row = self.layout.groups().rows_of(group).start;
        while let Some(at) = wanted.next().filter(|&at| at >= first && at < end) {
            let page = (at - first) / LOCATION;
            let Some(place) = self.layout.page(group, leaf, page) else { return };
            scratch.clear();
            location(&place, first_row, &mut scratch);
            wanted.take(first + page * LOCATION, &scratch);
        }
        // The struct ends here.
        wanted.take(end, &[0]);
    }
}

/// Returns the start and the end of a piece, from a list of ends.
fn piece(ends: &[u32], at: usize) -> Option<(u32, u32)> {
    let end = *ends.get(at)?;
    let before = at.checked_sub(1).and_then(|before| ends.get(before));
    Some((before.copied().unwrap_or(0), end))
}

/// Returns the bytes reserved for a column index: none for a single page, since the row group's statistics say the
/// same.
fn column_room(pages: u64, leaf: &KnownLeaf) -> u64 {
    if pages > 1 && leaf.bound > 0 { ColumnIndex::most(pages, leaf.bound) } else { 0 }
}

/// Returns the bytes of an offset index.
fn offset_length(pages: u64) -> u64 {
    1 + list_header_length(pages) + pages * LOCATION + 1
}

/// Appends the entry of a page in an offset index. Earlier code checked that the page's length fits.
fn location(page: &PagePlace, first_row: u64, out: &mut Vec<u8>) {
    structure(out, |fields| {
        fields.i64(1, page.start);
        fields.i32(2, page.bytes as i32);
        fields.i64(3, page.rows.start - first_row);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::parquet::body::leaf::Physical;
    use crate::views::parquet::layout::{DataPages, Groups, LeafSize, MeasuredPages, Page};

    /// Pages of 2, 2 and, in a row group of its own, 1 row.
    fn index() -> PageIndex {
        let groups = Groups::new(5, 4, None);
        let pages = [(2, 10), (2, 20), (1, 5)].map(|(rows, bytes)| Page { rows, bytes, entries: rows });
        let pages =
            DataPages::Measured(Arc::new(MeasuredPages::new(&groups, false, pages.map(|page| (page, 1))).unwrap()));
        let layout = ParquetLayout::new(groups, vec![LeafSize { dictionary: 0, pages }]).unwrap();
        let leaf = KnownLeaf { physical: Physical::Int32, bound: 4, statistics: None, times: None };
        PageIndex::new(Arc::new(layout), vec![leaf]).unwrap()
    }

    #[test]
    fn bytes_worked_out_by_hand() {
        let index = index();
        // A byte, two bounds of 5, a count of 9 for each page; lists, order, padding, end.
        let room = 2 * (1 + 10 + 9) + 4 * 2 + 6 + 6 + 1;
        let (long, short) = ([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], [0x80, 0x80, 0x80, 0]);
        // A place, a length, a first row, each twice: zigzag.
        let location = |offset: &[u8], length: &[u8], row: u8| {
            let long = |number: &[u8]| [number, &long[number.len() - 1..]].concat();
            [&[0x16][..], &long(offset), &[0x15], length, &short[length.len() - 1..], &[0x16], &long(&[row]), &[0]]
                .concat()
        };
        let expected = [
            &vec![0; room][..],
            &[0x19, 0x2c],
            // Behind `PAR1`, with headers of 45 bytes: 4, 55, 0; 59, 65, 2.
            &location(&[0x88], &[0xee], 0x80),
            &location(&[0xf6], &[0x82, 0x81], 0x84),
            &[0],
            &[0x19, 0x1c],
            // 124, 50, 0.
            &location(&[0xf8, 0x81], &[0xe4], 0x80),
            &[0],
        ]
        .concat();
        assert_eq!(index.bytes(), expected.len() as u64);
        let start = 4 + 55 + 65 + 50;
        for from in 0..expected.len() {
            for length in [1, 10, 1000] {
                let out = WantedBytes::collect(start + from as u64, length, |wanted| index.read(wanted));
                assert_eq!(out, expected[from..(from + length).min(expected.len())], "{length} bytes from {from}");
            }
        }
        let first = start + room as u64;
        let chunk = |offsets| Some(ChunkIndex { offsets, columns: None });
        assert_eq!(index.chunk(0, 0), chunk((first, 57)));
        assert_eq!(index.chunk(1, 0), chunk((first + 57, 30)));
    }
}
