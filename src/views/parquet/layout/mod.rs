//! Computes the layout of the file from the number of rows and the sizes of each leaf column.

mod groups;
mod measured;
mod slots;

use std::sync::Arc;

use super::thrift::LARGEST;
use super::thrift::page::PageHeaderForm;
use crate::store::RowRange;

pub(super) use groups::{Groups, ROWS_PER_LABEL, RowSizes};
pub(super) use measured::{MeasuredPages, Page};
pub(super) use slots::{Bodies, PAGE_BYTES, Slots};

/// Bytes of a page of memory.
const ALIGNMENT: u64 = 4096;

/// Number of bytes before everything else: `PAR1`.
const MAGIC: u64 = 4;

/// Sizes of a leaf column.
#[derive(Clone, Debug)]
pub(super) struct LeafSize {
    /// Bytes of the leaf's dictionary page with its header, at the start of each chunk; 0: no dictionary.
    pub dictionary: u64,
    /// Data pages of the leaf.
    pub pages: DataPages,
}

/// The data pages of a leaf column.
#[derive(Clone, Debug)]
pub(super) enum DataPages {
    /// Every page has a fixed slot.
    Slots(Slots),
    /// Pages are measured.
    Measured(Arc<MeasuredPages>),
}

impl DataPages {
    /// Returns the bytes of the longest page, header included.
    pub fn longest(&self) -> u64 {
        match self {
            DataPages::Slots(slots) => slots.bytes,
            DataPages::Measured(measured) => measured.longest,
        }
    }

    /// Returns the form of the pages' headers.
    pub fn header(&self) -> PageHeaderForm {
        match self {
            DataPages::Slots(slots) => slots.header,
            DataPages::Measured(measured) => measured.header(),
        }
    }
}

/// Where a column chunk lies, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnChunk {
    /// First byte of the chunk: that of the dictionary page, if there is one.
    pub start: u64,
    /// First byte of the data pages.
    pub data: u64,
    /// Bytes of all pages, headers included.
    pub bytes: u64,
    /// Number of values, nulls included.
    pub entries: u64,
}

/// The part of the file that contains a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParquetRegion {
    /// `PAR1`.
    Magic,
    /// A gap, up to this byte.
    Gap(u64),
    /// The dictionary page of a leaf, from its first byte up to the first byte of the data pages.
    Dictionary { leaf: usize, start: u64, end: u64 },
    /// A data page.
    Page(PagePlace),
    /// Everything after the row groups.
    Footer,
}

/// A data page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagePlace {
    pub leaf: usize,
    pub rows: RowRange,
    /// End of the rows of its column chunk: readers fetch whole column chunks, and may stop there.
    pub until: u64,
    /// First byte of the page's header.
    pub start: u64,
    /// Bytes of the page, header and padding included.
    pub bytes: u64,
}

/// The layout of the row groups.
#[derive(Debug)]
pub(super) struct ParquetLayout {
    groups: Groups,
    leaves: Vec<LeafSize>,
    starts: Starts,
    end: u64,
}

#[derive(Debug)]
enum Starts {
    /// All groups but the last are equal: offsets of chunks within a group, and the distance between groups.
    Alike { full: Vec<u64>, last: Vec<u64>, first: u64, stride: u64 },
    /// The first byte of each chunk of each group.
    Each(Vec<u64>),
}

impl ParquetLayout {
    /// Lays the row groups out. `None`: the file would be too large.
    pub fn new(groups: Groups, leaves: Vec<LeafSize>) -> Option<Self> {
        let alike = groups.cuts.is_none() && leaves.iter().all(|leaf| matches!(leaf.pages, DataPages::Slots(_)));
        let count = groups.count();
        let (starts, end) = if count == 0 || leaves.is_empty() {
            (Starts::Each(Vec::new()), MAGIC)
        } else if alike {
            let most = groups.per_group().min(groups.rows());
            let is_aligned =
                |leaf: &LeafSize| matches!(&leaf.pages, DataPages::Slots(slots) if slots.aligned(most).is_some());
            let aligned = leaves.iter().any(is_aligned);
            // If some chunk of a row group is aligned, so is the row group; the first chunk of the file leaves room for
            // the magic.
            let (first, from) = if aligned { (0, MAGIC) } else { (MAGIC, 0) };
            let (full, full_end) = place(&leaves, &groups, 0, from)?;
            let (last, last_end) = place(&leaves, &groups, count - 1, from)?;
            let stride = if aligned { full_end.checked_next_multiple_of(ALIGNMENT)? } else { full_end };
            let end = stride.checked_mul(count - 1)?.checked_add(first)?.checked_add(last_end)?;
            (Starts::Alike { full, last, first, stride }, end)
        } else {
            let mut starts = Vec::new();
            let mut end = MAGIC;
            for group in 0..count {
                let (places, group_end) = place(&leaves, &groups, group, end)?;
                starts.extend(places);
                end = group_end;
            }
            (Starts::Each(starts), end)
        };
        (end <= LARGEST / 2).then_some(Self { groups, leaves, starts, end })
    }

    /// Adds a gap of `bytes` after the last page. `None`: the file would be too large.
    pub fn with_gap(mut self, bytes: u64) -> Option<Self> {
        self.end = self.end.checked_add(bytes).filter(|end| *end <= LARGEST / 2)?;
        Some(self)
    }

    /// Returns the row groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the sizes of the leaf columns.
    pub fn leaves(&self) -> &[LeafSize] {
        &self.leaves
    }

    /// Returns the end of the last page, gap included.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offsets of a row group's chunks, and the byte of the file from which they count.
    fn starts(&self, group: u64) -> (&[u64], u64) {
        match &self.starts {
            Starts::Alike { full, last, first, stride } => {
                let starts = if group + 1 == self.groups.count() { last } else { full };
                (starts, first + group * stride)
            }
            Starts::Each(starts) => {
                let at = usize::try_from(group).unwrap_or(usize::MAX).saturating_mul(self.leaves.len());
                (starts.get(at..at.saturating_add(self.leaves.len())).unwrap_or_default(), 0)
            }
        }
    }

    /// Returns a column chunk.
    pub fn chunk(&self, group: u64, leaf: usize) -> Option<ColumnChunk> {
        let (starts, base) = self.starts(group);
        let (start, size) = (base + starts.get(leaf)?, self.leaves.get(leaf)?);
        let rows = self.groups.rows_of(group);
        let entries = match &size.pages {
            DataPages::Slots(slots) => (rows.end - rows.start).saturating_mul(slots.entries),
            DataPages::Measured(measured) => measured.entries(group),
        };
        Some(ColumnChunk {
            start,
            data: start + size.dictionary,
            bytes: chunk_bytes(size, &self.groups, group)?,
            entries,
        })
    }

    fn group_at(&self, offset: u64) -> u64 {
        match &self.starts {
            Starts::Alike { first, stride, .. } => {
                (offset.saturating_sub(*first) / stride.max(&1)).min(self.groups.count().saturating_sub(1))
            }
            Starts::Each(starts) => {
                let chunk = starts.partition_point(|&start| start <= offset).saturating_sub(1);
                (chunk / self.leaves.len().max(1)) as u64
            }
        }
    }

    /// Returns the part of the file that contains byte `offset`.
    pub fn locate(&self, offset: u64) -> ParquetRegion {
        if offset < MAGIC {
            return ParquetRegion::Magic;
        }
        if offset >= self.end {
            return ParquetRegion::Footer;
        }
        let group = self.group_at(offset);
        let (starts, base) = self.starts(group);
        let relative = offset.saturating_sub(base);
        // Finds the start of the next chunk, possibly in the next row group.
        let next = |leaf: usize| match starts.get(leaf) {
            Some(start) => base + start,
            None => self.chunk(group + 1, 0).map_or(self.end, |chunk| chunk.start),
        };
        let Some(leaf) = starts.partition_point(|&start| start <= relative).checked_sub(1) else {
            return ParquetRegion::Gap(next(0));
        };
        let Some((chunk, size)) = self.chunk(group, leaf).zip(self.leaves.get(leaf)) else {
            return ParquetRegion::Gap(self.end);
        };
        if offset >= chunk.start + chunk.bytes {
            return ParquetRegion::Gap(next(leaf + 1));
        }
        let Some(at) = offset.checked_sub(chunk.data) else {
            return ParquetRegion::Dictionary { leaf, start: chunk.start, end: chunk.data };
        };
        let number = match &size.pages {
            DataPages::Slots(slots) => at / slots.bytes,
            DataPages::Measured(measured) => measured.number(group, at),
        };
        self.page(group, leaf, number).map_or(ParquetRegion::Gap(self.end), ParquetRegion::Page)
    }

    /// Returns the number of data pages of a column chunk.
    pub fn pages(&self, group: u64, leaf: usize) -> u64 {
        let rows = self.groups.rows_of(group);
        match self.leaves.get(leaf).map(|leaf| &leaf.pages) {
            Some(DataPages::Slots(slots)) => (rows.end - rows.start).div_ceil(slots.rows),
            Some(DataPages::Measured(measured)) => measured.pages(group),
            None => 0,
        }
    }

    /// Returns a data page of a column chunk, by number.
    pub fn page(&self, group: u64, leaf: usize, number: u64) -> Option<PagePlace> {
        let (chunk, size) = self.chunk(group, leaf).zip(self.leaves.get(leaf))?;
        let rows = self.groups.rows_of(group);
        match &size.pages {
            DataPages::Slots(slots) => {
                let first =
                    rows.start.checked_add(number.checked_mul(slots.rows)?).filter(|&first| first < rows.end)?;
                let end = first.saturating_add(slots.rows).min(rows.end);
                let bytes = slots.page(end - first)?;
                let start = chunk.data + number * slots.bytes;
                Some(PagePlace { leaf, rows: first..end, until: rows.end, start, bytes })
            }
            DataPages::Measured(measured) => {
                let (first, count, start, bytes) = measured.page(group, number)?;
                let first = rows.start + first;
                let start = chunk.data + start;
                Some(PagePlace { leaf, rows: first..first + count, until: rows.end, start, bytes })
            }
        }
    }
}

/// Returns the bytes of a column chunk.
fn chunk_bytes(leaf: &LeafSize, groups: &Groups, group: u64) -> Option<u64> {
    let rows = groups.rows_of(group);
    let data = match &leaf.pages {
        DataPages::Slots(slots) => slots.chunk(rows.end - rows.start)?,
        DataPages::Measured(measured) => measured.chunk(group),
    };
    data.checked_add(leaf.dictionary)
}

/// Returns the first byte of each chunk of a row group that begins at byte `at`, and the end of the last.
fn place(leaves: &[LeafSize], groups: &Groups, group: u64, mut at: u64) -> Option<(Vec<u64>, u64)> {
    let mut starts = Vec::with_capacity(leaves.len());
    let rows = groups.rows_of(group);
    for leaf in leaves {
        let bytes = chunk_bytes(leaf, groups, group)?;
        if let DataPages::Slots(slots) = &leaf.pages
            && let Some(lead) = slots.aligned(rows.end - rows.start)
        {
            let before = leaf.dictionary + lead;
            at = at.checked_add(before)?.checked_next_multiple_of(ALIGNMENT)? - before;
        }
        starts.push(at);
        at = at.checked_add(bytes)?;
        if at > LARGEST {
            return None;
        }
    }
    Some((starts, at))
}

#[cfg(test)]
mod tests;
