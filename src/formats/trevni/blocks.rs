//! The blocks of columns, and their places.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;

use crate::codec;
use crate::codec::trevni::{BlockDescriptor, Stop, TrevniColumn, TrevniReader, TrevniType};
use crate::source::Interrupt;
use crate::store::{Error, Opening, Reservation};

/// Bytes of descriptors to read first.
const FIRST_LOOK: u64 = 1 << 10;
/// Most bytes of descriptors to read at once: a file may have very many columns, or blocks.
const MOST_AT_ONCE: u64 = 1 << 20;

/// Totals over the block descriptors of a column.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// Number of blocks.
    pub blocks: u64,
    /// Rows of the table in these blocks.
    pub rows: u64,
    /// Bytes of the blocks before compression.
    pub size: u64,
    /// Bytes of the blocks as stored.
    pub stored: u64,
    /// Number of rows in the largest block.
    pub most_rows: u64,
    /// Offset in the file at which the column ends.
    pub end: u64,
}

impl Survey {
    /// Adds a block to the totals.
    ///
    /// # Errors
    /// The fault of the descriptor.
    pub fn add(&mut self, column: &TrevniColumn, block: BlockDescriptor) -> Result<(), codec::Error> {
        let (rows, size) = (u64::from(block.rows), u64::from(block.size));
        if let (Ok((kind, _)), false, None) = (&column.form, column.is_array, column.parent) {
            let expected = match kind {
                TrevniType::Null => Some(0),
                TrevniType::Boolean => Some(rows.div_ceil(8)),
                TrevniType::Fixed32 | TrevniType::Float => rows.checked_mul(4),
                TrevniType::Fixed64 | TrevniType::Double => rows.checked_mul(8),
                // Each row takes at least one byte, so there are no more rows than bytes.
                _ => Some(size.max(rows)),
            };
            if expected != Some(size) {
                return Err(
                    format!("block {} says {rows} rows of type {} in {size} bytes", self.blocks, kind.name()).into()
                );
            }
        }
        // Each number is less than 2^32, and there are fewer than 2^32 of them, so the sums fit.
        self.rows += rows;
        self.size += size;
        self.stored += u64::from(block.stored);
        self.blocks += 1;
        self.most_rows = self.most_rows.max(rows);
        Ok(())
    }

    /// Notes where the column ends, given that its descriptors end at `end`, in a file of `size` bytes.
    ///
    /// # Errors
    /// Blocks lie beyond the end of the file.
    pub fn end(self, column: &TrevniColumn, end: u64, size: u64) -> Result<Self, codec::Error> {
        let packing = column.form.as_ref().map_or(0, |(_, packing)| packing.checksum_size());
        let end = end.saturating_add(self.stored).saturating_add(packing.saturating_mul(self.blocks));
        if end > size {
            return Err(format!("its blocks end at byte {end}, the file at {size}").into());
        }
        Ok(Self { end, ..self })
    }
}

/// Reads the block descriptors of a column, in pieces.
pub(super) struct Descriptors<'a> {
    opening: &'a Opening,
    column: &'a TrevniColumn,
    /// The piece of the file in memory, which begins at `start`.
    bytes: Vec<u8>,
    start: u64,
    next: u64,
}

impl<'a> Descriptors<'a> {
    pub fn new(opening: &'a Opening, column: &'a TrevniColumn) -> Self {
        Self { opening, column, bytes: Vec::new(), start: column.start, next: FIRST_LOOK }
    }

    /// Calls `see` with the descriptor of each block. Returns the offset at which the descriptors end.
    ///
    /// # Errors
    /// The file cannot be read, or the caller was interrupted. The inner error is a fault of a descriptor, found here
    /// or by `see`.
    pub fn read(
        mut self,
        interrupt: &Interrupt,
        see: &mut dyn FnMut(BlockDescriptor) -> Result<(), codec::Error>,
    ) -> Result<Result<u64, codec::Error>, Error> {
        let blocks = match self.one(0, &mut |reader| reader.u32(), interrupt)? {
            Ok((blocks, _)) => u64::from(blocks),
            Err(reason) => return Ok(Err(reason)),
        };
        let mut at = 4;
        let left = self.total().saturating_sub(at);
        if blocks > left / BlockDescriptor::BYTES {
            return Ok(Err(format!("{blocks} blocks in {left} bytes").into()));
        }
        let first = match (self.column.has_values, &self.column.form) {
            (false, _) => None,
            (true, Ok((kind, _))) => Some(*kind),
            (true, Err(reason)) => return Ok(Err(reason.clone())),
        };
        for block in 0..blocks {
            if block % 4096 == 0 {
                interrupt.check()?;
            }
            let read = self.one(at, &mut |reader| BlockDescriptor::read(reader, first), interrupt)?;
            match read.and_then(|((descriptor, follow), length)| see(descriptor).map(|()| length + follow)) {
                Ok(length) => at += length,
                Err(reason) => return Ok(Err(format!("the descriptor of block {block}: {reason}").into())),
            }
        }
        Ok(Ok(self.column.start.saturating_add(at)))
    }

    /// Bytes from the column's start to the end of the file.
    fn total(&self) -> u64 {
        self.opening.source().identity().size.saturating_sub(self.column.start)
    }

    /// Returns what `read` makes of the bytes from `at`, counted from the column's start, and how many bytes that took.
    fn one<T>(
        &mut self,
        at: u64,
        read: &mut dyn FnMut(&mut TrevniReader<'_>) -> Result<T, Stop>,
        interrupt: &Interrupt,
    ) -> Result<Result<(T, u64), codec::Error>, Error> {
        loop {
            let position = self.column.start.saturating_add(at);
            let skipped = usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX);
            let bytes = self.bytes.get(skipped..).unwrap_or_default();
            let left = self.total().saturating_sub(at);
            let mut reader = TrevniReader::new(bytes, left);
            match read(&mut reader) {
                Ok(read) => return Ok(Ok((read, reader.at() as u64))),
                Err(Stop::Bad(reason)) => return Ok(Err(reason)),
                Err(Stop::More) => {
                    let length = self.next.min(left);
                    // A value takes only a few bytes, so more of them would not help.
                    if (bytes.len() as u64) >= length {
                        return Ok(Err("it is cut short".into()));
                    }
                    self.bytes.clear();
                    self.opening.append_at(position, length as usize, &mut self.bytes, interrupt)?;
                    self.start = position;
                    self.next = self.next.saturating_mul(4).min(MOST_AT_ONCE);
                }
            }
        }
    }
}

/// Where the blocks of a column lie.
#[derive(Debug)]
pub(super) struct Places {
    /// The first row of each block, and at the end the total number of rows.
    pub rows: Vec<u64>,
    /// For each block, its offset in the file, its bytes before compression, and its bytes as stored.
    pub blocks: Vec<(u64, u32, u32)>,
    pub _share: Reservation,
}

impl Places {
    /// Which blocks hold the rows of `range`.
    pub fn blocks(&self, range: &Range<u64>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let first = self.rows.partition_point(|start| *start <= range.start).saturating_sub(1);
        let end = self.rows.partition_point(|start| *start < range.end).min(self.blocks.len());
        first..end.max(first)
    }

    /// The rows that a block holds.
    pub fn rows(&self, block: usize) -> Range<u64> {
        let [start, end] = [block, block + 1].map(|block| self.rows.get(block).copied().unwrap_or(0));
        start..end
    }

    /// The rows of `range` that lie in a block, counted from the block's first row.
    pub fn part(&self, block: usize, range: &Range<u64>) -> Range<usize> {
        let rows = self.rows(block);
        let [start, end] = [range.start, range.end].map(|row| row.clamp(rows.start, rows.end) - rows.start);
        start as usize..end as usize
    }

    /// Bytes that a block takes before compression.
    pub fn size(&self, block: usize) -> u64 {
        self.blocks.get(block).map_or(0, |(_, size, _)| u64::from(*size))
    }
}

/// A decoded block.
#[derive(Debug)]
pub(super) struct TrevniBlock {
    /// For a child, the number of entries before each row, and at the end their total. `None`: each row is one entry.
    pub entries: Option<Vec<u64>>,
    /// For an array, the number of values before each entry, and at the end their total. `None`: each entry is one
    /// value.
    pub starts: Option<ScalarBuffer<i64>>,
    /// The values of all entries, one after the other.
    pub values: ArrayRef,
    pub _share: Reservation,
}

impl TrevniBlock {
    /// The entries that belong to these rows.
    pub fn entries(&self, rows: &Range<usize>) -> Range<usize> {
        let [start, end] = [rows.start, rows.end].map(|row| match &self.entries {
            // This is at most the number of values or starts in memory.
            Some(entries) => entries.get(row).copied().unwrap_or(0) as usize,
            None => row,
        });
        start..end
    }

    /// The values that belong to these entries.
    pub fn values_of(&self, entries: &Range<usize>) -> Range<usize> {
        let [start, end] = [entries.start, entries.end].map(|entry| match &self.starts {
            Some(starts) => starts.get(entry).copied().unwrap_or(0) as usize,
            None => entry,
        });
        start..end
    }

    /// Where the values of each of these entries start, and where the last ones end. `None`: the column is not an
    /// array.
    pub fn starts(&self, entries: &Range<usize>) -> Option<&[i64]> {
        self.starts.as_ref()?.get(entries.start..entries.end.checked_add(1)?)
    }
}
