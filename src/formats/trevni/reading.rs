//! Finds and decodes blocks on demand, and ahead of readers.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, NullArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use parking_lot::{Mutex, MutexGuard};

use super::blocks::{Descriptors, Places, TrevniBlock};
use super::file::{TrevniFile, path_of};
use super::rules;
use crate::codec;
use crate::codec::trevni::{Checked, MOST_OF_ROW, TrevniPacking, TrevniType, TrevniValues, decode, weight};
use crate::source::Interrupt;
use crate::store::{Budget, Error, Reservation, try_memory};

/// Approximate number of bytes in the blocks to hand to a thread at once, before compression.
const PORTION: u64 = 256 << 10;

/// Bytes to decode ahead for each thread.
const AHEAD: u64 = 4 << 20;

/// Approximate number of bytes that a byte of a block takes once it is decoded.
const GROWTH: u64 = 3;

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
    pub(super) fn ahead(&self, at: usize, places: &Places, range: &Range<u64>, interrupt: &Interrupt) {
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
        let until = interrupt.end_of_reader(range.end, range.end - range.start);
        let next = if store.note_reader(streams, bytes, (last, places.blocks.len() as u64), until < u64::MAX) {
            let ahead = AHEAD.saturating_mul(threads + 1).min(store.ahead_of_reader());
            let until = places.blocks(&(until.saturating_sub(1)..until)).end as u64;
            streams.schedule(end, last, ((ahead / size).max(1), 1), until).chunks
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
