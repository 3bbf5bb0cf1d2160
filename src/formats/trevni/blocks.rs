//! Locates the blocks of columns, and decodes them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, NullArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use parking_lot::{Mutex, MutexGuard};

use super::file::{TrevniFile, path_of};
use super::rules;
use crate::codec;
use crate::codec::trevni::{
    BlockDescriptor, Checked, MOST_OF_ROW, Stop, TrevniColumn, TrevniPacking, TrevniReader, TrevniType, TrevniValues,
    decode, weight,
};
use crate::source::Interrupt;
use crate::store::{Budget, Error, Opening, Reservation, try_memory};

/// Bytes of descriptors to read first.
const FIRST_LOOK: u64 = 1 << 10;
/// Most bytes of descriptors to read at once: a file may have very many columns, or blocks.
const MOST_AT_ONCE: u64 = 1 << 20;

/// Approximate number of bytes in the blocks to hand to a thread at once, before compression.
const PORTION: u64 = 256 << 10;

/// Bytes to decode ahead for each thread.
const AHEAD: u64 = 4 << 20;

/// Approximate number of bytes that a byte of a block takes once it is decoded.
const GROWTH: u64 = 3;

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
    rows: Vec<u64>,
    /// For each block, its offset in the file, its bytes before compression, and its bytes as stored.
    blocks: Vec<(u64, u32, u32)>,
    _share: Reservation,
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
    fn size(&self, block: usize) -> u64 {
        self.blocks.get(block).map_or(0, |(_, size, _)| u64::from(*size))
    }
}

/// A decoded block.
#[derive(Debug)]
pub(super) struct TrevniBlock {
    /// For a child, the number of entries before each row, and at the end their total. `None`: each row is one entry.
    entries: Option<Vec<u64>>,
    /// For an array, the number of values before each entry, and at the end their total. `None`: each entry is one
    /// value.
    starts: Option<ScalarBuffer<i64>>,
    /// The values of all entries, one after the other.
    pub values: ArrayRef,
    _share: Reservation,
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

/// Held while a block is decoded that takes more than half of the budget: such blocks are decoded one at a time.
static OVERSIZED: Mutex<()> = Mutex::new(());

/// How often a waiting thread looks at its interrupt.
const LOOK: Duration = Duration::from_millis(20);

fn alone(interrupt: &Interrupt) -> Result<MutexGuard<'static, ()>, Error> {
    loop {
        if let Some(alone) = OVERSIZED.try_lock_for(LOOK) {
            return Ok(alone);
        }
        interrupt.check()?;
    }
}

impl TrevniFile {
    /// Finds where the blocks of a column lie, and remembers it.
    pub(super) fn places(&self, at: usize, interrupt: &Interrupt) -> Result<Arc<Places>, Error> {
        let (column, _, packing) = self.column(at)?;
        let count = self.columns.get(at).and_then(|seen| seen.as_ref().ok()).map_or(0, |survey| survey.blocks);
        self.places.get_or_make(&at, interrupt, || {
            let path = path_of(column);
            let bytes = count.saturating_mul(24).saturating_add(64);
            let share = self.share(&path, bytes, interrupt)?;
            // The survey has counted the blocks.
            let (mut rows, mut blocks) = (vec![0_u64], Vec::with_capacity(count as usize));
            rows.reserve_exact(count as usize);
            let end = Descriptors::new(&self.opening, column).read(interrupt, &mut |block| {
                let before = rows.last().copied().unwrap_or(0);
                rows.push(before.saturating_add(u64::from(block.rows)));
                blocks.push((0, block.size, block.stored));
                Ok(())
            })?;
            let mut at = end.map_err(|error| Error::unsupported(path, error))?;
            for (place, _, stored) in &mut blocks {
                *place = at;
                at = at.saturating_add(u64::from(*stored)).saturating_add(packing.checksum_size());
            }
            Ok(Places { rows, blocks, _share: share })
        })
    }

    /// Reserves `bytes` of the budget for data to be kept. If they are more than half of the budget, they are charged
    /// to it without waiting for room.
    fn share(&self, path: &str, bytes: u64, interrupt: &Interrupt) -> Result<Reservation, Error> {
        let store = self.opening.store();
        store.admit(path, bytes, || "a block".into())?;
        let budget: &Budget = store.budget();
        if bytes <= budget.limit() / 2 {
            return budget.reserve(bytes, interrupt).map_err(|shortage| shortage.at(path, "a block"));
        }
        try_memory(bytes)?;
        Ok(budget.charge(bytes))
    }

    /// Decodes a block of a column, or takes it from the cache.
    pub(super) fn block(&self, at: usize, block: usize, interrupt: &Interrupt) -> Result<Arc<TrevniBlock>, Error> {
        let key = (at, block);
        let counters = self.opening.store().counters();
        if let Some(known) = self.blocks.get(&key) {
            counters.hits.add(1);
            return Ok(known);
        }
        counters.misses.add(1);
        self.blocks.get_or_make(&key, interrupt, || self.decode(at, block, interrupt))
    }

    fn decode(&self, at: usize, block: usize, interrupt: &Interrupt) -> Result<TrevniBlock, Error> {
        let (column, kind, packing) = self.column(at)?;
        let places = self.places(at, interrupt)?;
        let path = path_of(column);
        let (place, size, stored) = places.blocks.get(block).copied().unwrap_or((0, 0, 0));
        let rows = places.rows(block);
        let failed = |reason: codec::Error| {
            let reason = reason.to_string();
            Error::Chunk { path: path.clone(), chunk: block as u64, address: place, reason }
        };
        let store = self.opening.store();
        if u64::from(size) > store.max_chunk() {
            let (what, limit) = (format!("block {block}"), store.max_chunk());
            return Err(Error::TooLarge { path, what, bytes: u64::from(size), limit, option: "--max-chunk" });
        }
        let entries = match column.parent {
            Some(parent) => Some(self.counts(parent, rows.clone(), interrupt)?),
            None => None,
        };
        let count = match &entries {
            Some(entries) => entries.last().copied().unwrap_or(0),
            None => rows.end - rows.start,
        };
        let own = entries.as_ref().map_or(0, |entries| entries.len() as u64 * 8);
        let texts =
            if matches!(kind, TrevniType::String | TrevniType::Bytes) { u64::from(size).saturating_mul(3) } else { 0 };
        let decoded = weight(kind, column.is_array, count, u64::from(size)).saturating_add(texts).saturating_add(own);
        let most = decoded.saturating_add(u64::from(size)).saturating_add(u64::from(stored));
        let _alone = if most > store.budget().limit() / 2 { Some(alone(interrupt)?) } else { None };
        let mut share = self.share(&path, most, interrupt)?;

        let raw = self.raw(packing, (place, size, stored), interrupt).map_err(|error| match error {
            Unpacked::Source(error) => error,
            Unpacked::Bad(reason) => failed(reason),
        })?;
        let (raw, checked) = raw;
        if checked == Checked::NotComputed {
            let rule = &rules::CHECKSUM;
            self.report(
                at,
                rule,
                format!("block {block} has the checksum 0, which Apache's writer stores without one"),
            );
        }
        let runs = self.header.version > 1;
        let found = decode(&raw, kind, column.is_array, runs, count).map_err(failed)?;
        drop(raw);
        let starts = found.starts.map(ScalarBuffer::from);
        let values = array(kind, found.values).map_err(failed)?;
        let counters = store.counters();
        counters.chunks_decoded.add(1);
        counters.bytes_decoded.add(u64::from(size));
        let held = values.get_array_memory_size() as u64 + starts.as_ref().map_or(0, |starts| starts.len() as u64 * 8);
        share.keep(held.saturating_add(own));
        let block = TrevniBlock { entries, starts, values, _share: share };
        if column.is_array {
            for row in 0..(rows.end - rows.start) as usize {
                let values = block.values_of(&block.entries(&(row..row + 1)));
                if (values.end - values.start) as u64 > MOST_OF_ROW {
                    let reason = format!("row {} has {} values", rows.start + row as u64, values.end - values.start);
                    return Err(failed(reason.into()));
                }
            }
        }
        Ok(block)
    }

    /// Reads a block, and undoes its compression. Also returns whether its checksum was computed.
    fn raw(
        &self,
        packing: TrevniPacking,
        (place, size, stored): (u64, u32, u32),
        interrupt: &Interrupt,
    ) -> Result<(Vec<u8>, Checked), Unpacked> {
        let mut bytes = Vec::new();
        let (stored, size) = (stored as usize, size as usize);
        // The survey has made sure that the block ends within the file.
        let checksum = packing.checksum_size() as usize;
        self.opening.append_at(place, stored.saturating_add(checksum), &mut bytes, interrupt)?;
        self.opening.check()?;
        let (data, checksum) = bytes.split_at(stored.min(bytes.len()));
        let mut raw = vec![0; size];
        packing.unpack(data, &mut raw).map_err(Unpacked::Bad)?;
        let checked = packing.check(&raw, checksum).map_err(Unpacked::Bad)?;
        Ok((raw, checked))
    }

    /// Counts the values of an array: how many come before each row of `range`, and at the end their total.
    fn counts(&self, at: usize, range: Range<u64>, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let (column, ..) = self.column(at)?;
        let rows = range.end - range.start;
        let store = self.opening.store();
        store.admit(&path_of(column), rows.saturating_mul(8), || format!("the lengths of {rows} rows"))?;
        let places = self.places(at, interrupt)?;
        let mut counts = Vec::with_capacity(rows as usize + 1);
        let mut total = 0_u64;
        counts.push(0);
        for block in places.blocks(&range) {
            interrupt.check()?;
            let (part, block) = (places.part(block, &range), self.block(at, block, interrupt)?);
            for row in part {
                let values = block.values_of(&block.entries(&(row..row + 1)));
                total = total.saturating_add((values.end - values.start) as u64);
                counts.push(total);
            }
        }
        if counts.len() as u64 == rows + 1 {
            return Ok(counts);
        }
        // If a column has fewer rows than the table, it has no lengths for the rows of its children.
        let reason = format!("it has no rows {}..{}, which a child has", range.start, range.end);
        Err(Error::unsupported(path_of(column), reason))
    }

    /// Has other cores decode blocks: those of `range` after its first, and those that a sequential reader will need
    /// next.
    pub(super) fn ahead(&self, at: usize, places: &Places, range: &Range<u64>) {
        let store = self.opening.store();
        let threads = store.threads_ahead() as u64;
        let wanted = places.blocks(range);
        let (Some(streams), Some(file), true) = (self.streams.get(at), self.this.upgrade(), threads > 0) else {
            return;
        };
        if wanted.is_empty() {
            return;
        }
        let size = places.size(wanted.start).max(1).saturating_mul(GROWTH);
        let last = wanted.end.saturating_sub(1) as u64;
        let bytes = range.start.saturating_mul(8)..range.end.saturating_mul(8);
        let end = bytes.end;
        let next = if store.note_reader(streams, bytes, last, places.blocks.len() as u64) {
            let ahead = AHEAD.saturating_mul(threads + 1).min(store.ahead_of_reader());
            streams.schedule(end, last, (ahead / size).max(1), 1)
        } else {
            0..0
        };
        let end = usize::try_from(next.end).unwrap_or(usize::MAX).min(places.blocks.len());
        let next = usize::try_from(next.start).unwrap_or(usize::MAX).min(end)..end;
        let all: Vec<usize> = wanted.skip(1).chain(next).filter(|block| !self.blocks.is_known(&(at, *block))).collect();
        let portion = (PORTION / places.size(0).max(1)).clamp(1, 1024) as usize;
        for some in all.chunks(portion) {
            let (file, some) = (file.clone(), some.to_vec());
            let is_begun = store.decode_soon(move || {
                let interrupt = Interrupt::new();
                for block in some {
                    // The thread that needs the block will get its error.
                    if file.blocks.is_known(&(at, block)) || file.block(at, block, &interrupt).is_err() {
                        continue;
                    }
                    file.opening.store().counters().read_ahead.add(1);
                }
            });
            if !is_begun {
                return;
            }
        }
    }
}

/// Why a block could not be unpacked.
enum Unpacked {
    Source(Error),
    Bad(codec::Error),
}

impl<E: Into<Error>> From<E> for Unpacked {
    fn from(error: E) -> Self {
        Self::Source(error.into())
    }
}

/// Converts decoded values to an Arrow array.
fn array(kind: TrevniType, values: TrevniValues) -> Result<ArrayRef, codec::Error> {
    Ok(match values {
        TrevniValues::Null(count) => {
            Arc::new(NullArray::new(usize::try_from(count).map_err(|error| error.to_string())?))
        }
        TrevniValues::Boolean(bits, count) => {
            Arc::new(BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, count), None))
        }
        TrevniValues::Int(values) => Arc::new(Int32Array::from(values)),
        TrevniValues::Long(values) => Arc::new(Int64Array::from(values)),
        TrevniValues::Float(values) => Arc::new(Float32Array::from(values)),
        TrevniValues::Double(values) => Arc::new(Float64Array::from(values)),
        TrevniValues::Bytes(starts, bytes) if kind == TrevniType::Bytes => Arc::new(hexadecimal(&starts, &bytes)),
        TrevniValues::Bytes(starts, bytes) => Arc::new(texts(starts, bytes)),
    })
}

/// Converts bytes to texts, with U+FFFD for invalid UTF-8.
fn texts(starts: Vec<i64>, bytes: Vec<u8>) -> LargeStringArray {
    let cell = |pair: &[i64]| bytes.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
    if !starts.windows(2).all(|pair| std::str::from_utf8(cell(pair)).is_ok()) {
        let mut builder = LargeStringBuilder::with_capacity(starts.len(), bytes.len());
        starts.windows(2).for_each(|pair| builder.append_value(String::from_utf8_lossy(cell(pair))));
        return builder.finish();
    }
    LargeStringArray::new(OffsetBuffer::new(starts.into()), Buffer::from_vec(bytes), None)
}

/// Writes the bytes of each value in hexadecimal.
fn hexadecimal(starts: &[i64], bytes: &[u8]) -> LargeStringArray {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let text: Vec<u8> =
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect();
    let starts: Vec<i64> = starts.iter().map(|start| start * 2).collect();
    LargeStringArray::new(OffsetBuffer::new(starts.into()), Buffer::from_vec(text), None)
}
