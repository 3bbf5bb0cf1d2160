//! Bloom filters of labels, for row groups of columns that have a `BITMAP`.
//!
//! A verified bitmap determines the labels of each row group; a filter is built when it is read. Its size follows from
//! the number of the bitmap's values alone. If nothing is known, zeros fill its place, and the footer does not refer to
//! it.

use std::sync::Arc;

use parquet::bloom_filter::Sbbf;

use crate::views::parquet::columns::LabelsOf;
use crate::views::parquet::layout::ParquetLayout;
use crate::views::wanted::WantedBytes;

/// Number of bytes of a filter per label: false positives stay below 1 %.
const BYTES_OF_LABEL: usize = 2;

/// The Bloom filters of a file.
#[derive(Debug)]
pub(in crate::views::parquet) struct ParquetBloomFilters {
    layout: Arc<ParquetLayout>,
    start: u64,
    columns: Vec<LabelsOf>,
    /// Offset of each column's filter among those of a row group, and the end of the last.
    rooms: Vec<u64>,
}

impl ParquetBloomFilters {
    /// Returns the filters of some leaf columns, from byte `start` of the file on.
    pub fn new(layout: Arc<ParquetLayout>, start: u64, columns: Vec<LabelsOf>) -> Self {
        let mut rooms = vec![0];
        let mut end = 0;
        for column in &columns {
            end += bytes_of(&empty(column.values)).len() as u64;
            rooms.push(end);
        }
        Self { layout, start, columns, rooms }
    }

    /// Returns the bytes of the filters of a row group.
    fn group(&self) -> u64 {
        self.rooms.last().copied().unwrap_or(0)
    }

    /// Returns the bytes of all filters.
    pub fn bytes(&self) -> u64 {
        self.layout.groups().count() * self.group()
    }

    /// Whether a leaf has filters, known or not.
    pub fn has_room(&self, leaf: usize) -> bool {
        self.columns.iter().any(|column| column.leaf == leaf)
    }

    /// Returns the position and length of the filter of a column chunk. `None`: nothing is known of it.
    pub fn chunk(&self, group: u64, leaf: usize) -> Option<(u64, u32)> {
        let at = self.columns.iter().position(|column| column.leaf == leaf)?;
        let (_, occurring) = self.columns.get(at)?.known.as_ref()?;
        let (first, end) = (self.rooms.get(at)?, self.rooms.get(at + 1)?);
        let place = (self.start + group * self.group() + first, u32::try_from(end - first).ok()?);
        occurring.covers(&self.layout.groups().rows_of(group)).then_some(place)
    }

    /// Copies the wanted bytes of the filters.
    pub fn read(&self, wanted: &mut WantedBytes<'_>) {
        let end = self.start + self.bytes();
        while let Some(at) = wanted.next().filter(|&at| at >= self.start && at < end) {
            let (group, inside) = ((at - self.start) / self.group(), (at - self.start) % self.group());
            let column = self.rooms.partition_point(|&room| room <= inside) - 1;
            let Some((column, room)) = self.columns.get(column).zip(self.rooms.get(column)) else { return };
            let filter = bytes_of(&self.filter(group, column));
            if wanted.take(self.start + group * self.group() + room, &filter) == 0 {
                return;
            }
        }
    }

    /// Builds the filter of a column chunk; empty if nothing is known.
    fn filter(&self, group: u64, column: &LabelsOf) -> Sbbf {
        let mut filter = empty(column.values);
        if let Some((labels, occurring)) = &column.known {
            let rows = self.layout.groups().rows_of(group);
            let there = labels.iter().enumerate().filter(|(value, _)| occurring.may_occur(*value as u64, &rows));
            there.filter_map(|(_, label)| label.as_ref()).for_each(|label| filter.insert(label.as_slice()));
        }
        filter
    }
}

/// Returns an empty filter for this many labels.
fn empty(values: usize) -> Sbbf {
    Sbbf::new_with_num_of_bytes(values.saturating_mul(BYTES_OF_LABEL))
}

/// Returns the filter's header and bits.
fn bytes_of(filter: &Sbbf) -> Vec<u8> {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    drop(filter.write(&mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::Occurring;
    use crate::views::parquet::layout::{DataPages, Groups, LeafSize, MeasuredPages, Page};

    #[test]
    fn room_holds_what_is_known() {
        let groups = Groups::new(131_080, 131_072, None);
        let pages = [131_072, 8].map(|rows| Page { rows, bytes: rows, entries: rows });
        let measured = Arc::new(MeasuredPages::new(&groups, false, pages.map(|page| (page, 1))).unwrap());
        let leaf = LeafSize { dictionary: 50, pages: DataPages::Measured(measured) };
        let layout = Arc::new(ParquetLayout::new(groups, vec![leaf.clone(), leaf]).unwrap());
        let mut occurring = Occurring::new(3, 131_080).unwrap();
        occurring.add(1, 0, &[1]);
        occurring.add(2, 131_072, &[1]);
        let labels = vec![None, Some(b"early".to_vec()), Some(b"late".to_vec())];
        let known = LabelsOf { leaf: 1, values: 3, known: Some((labels, occurring)) };
        let unknown = LabelsOf { leaf: 0, values: 100, known: None };
        let filters = ParquetBloomFilters::new(layout, 1000, vec![unknown, known]);
        // Headers of 16 and 15 bytes, 256 and 32 of bits.
        assert_eq!(filters.bytes(), 2 * (272 + 47));
        assert_eq!((filters.chunk(0, 0), filters.chunk(1, 1)), (None, Some((1000 + 319 + 272, 47))));
        let whole = WantedBytes::collect(1000, usize::MAX, |wanted| filters.read(wanted));
        assert_eq!(whole.len() as u64, filters.bytes());
        for (group, texts) in [(0, ["early", "late"]), (1, ["late", "early"])] {
            let (start, length) = filters.chunk(group, 1).unwrap();
            let start = start as usize - 1000;
            let filter = Sbbf::from_bytes(&whole[start..start + length as usize]).unwrap();
            assert_eq!(texts.map(|text| filter.check(text)), [true, false]);
        }
        for start in [0, 1, 271, 272, 300, 318, 319, 637] {
            let out = WantedBytes::collect(1000 + start as u64, 60, |wanted| filters.read(wanted));
            assert_eq!(out, whole[start..(start + 60).min(whole.len())]);
        }
    }
}
