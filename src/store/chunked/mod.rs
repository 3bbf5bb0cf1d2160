//! A chunked dataset: locates chunks, decodes each once, copies from them.

mod beginning;
mod fill;
mod grid;
mod prefetch;
mod readers;
mod stored;
mod streams;
mod threads;
pub(super) mod worker;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::catalogue::{ChunkMap, Datatype, ObjectId};
use crate::h5;
use crate::source::{Interrupt, Interrupted};
use crate::store::ahead::PlannedReads;
use crate::store::memory::{ChunkBytes, WORTH_A_SPAN};
use crate::store::{Cache, Error, File, Lent, Span, StoredRun};

pub(super) use fill::{FillElement, FillError};
pub(super) use grid::ChunkGrid;
use grid::{ChunkRun, Within};
use prefetch::Prefetch;
pub(crate) use readers::Readers;
pub(super) use stored::{ChunkReader, HeldMap, HeldMappings, StoredChunk};
pub(crate) use streams::RequestStreams;
pub(super) use threads::DecodingThreads;

/// Runs of an unfiltered chunk that are shorter than this are read through the cache: one system call for each of them
/// would cost more than reading the whole chunk once.
const SHORT_RUN: u64 = 4096;

/// Share of the budget (as a divisor) to leave to data behind a sequential reader of arrays. Decoding again what lies
/// further behind takes no longer than the kernel takes to supply as much fresh memory.
const KEPT_PART: u64 = 16;

/// Share of the budget (as a divisor) to leave to data behind a reader of fields, who returns to all chunks of a row
/// group for the next field.
const KEPT_PART_OF_FIELDS: u64 = 2;

/// The cache key of a decoded chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChunkKey {
    /// Serial number of the file's opening.
    pub file: u64,
    pub object: ObjectId,
    /// Position in the grid, or the number of a stretch.
    pub chunk: u64,
}

/// The callback of [`Chunks::pieces`]: receives decoded bytes, or `None` and a buffer with bytes just read.
type TakePiece<'a> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) + 'a;

/// A dataset in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    pub file: Arc<File>,
    pub path: String,
    pub id: ObjectId,
    pub datatype: Datatype,
    pub grid: ChunkGrid,
    pub reader: ChunkReader,
    pub fill: Arc<Result<FillElement, FillError>>,
    pub streams: RequestStreams,
    /// Bytes of beginnings decoded since the last whole chunk.
    pub begun: AtomicU64,
    /// Reads of stored chunks that are planned.
    planned: PlannedReads,
    /// The chunk map of a file that a writer has open, as first seen.
    snapshot: OnceLock<Arc<HeldMap>>,
    /// The dataset whose chunks these are, if they belong to another one: they are cached under its numbers, so all
    /// share them.
    taken: Option<Taken>,
}

/// The source of a virtual dataset's chunks.
#[derive(Debug)]
pub(super) struct Taken {
    pub source: Arc<Chunks>,
    /// The mappings, in units of chunks.
    pub places: Arc<HeldMappings>,
}

impl Chunks {
    pub fn new(
        file: Arc<File>,
        path: String,
        (id, datatype): (ObjectId, Datatype),
        grid: ChunkGrid,
        reader: ChunkReader,
        fill: Arc<Result<FillElement, FillError>>,
    ) -> Self {
        let (streams, begun, snapshot) = (RequestStreams::default(), AtomicU64::new(0), OnceLock::new());
        let planned = PlannedReads::default();
        Self { file, path, id, datatype, grid, reader, fill, streams, begun, planned, snapshot, taken: None }
    }

    /// Declares that the chunks are those of another dataset.
    pub fn taking(self, taken: Taken) -> Self {
        Self { taken: Some(taken), ..self }
    }

    /// Fills `out` with the bytes from `offset` on, counted over all elements.
    pub fn read(self: &Arc<Self>, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let map = self.map(interrupt)?;
        let map = map.as_deref().map(|held| &held.map);
        let mut prefetch = self.plan_prefetch(map, offset, out.len() as u64, interrupt);
        self.grid.visit(offset, out.len() as u64, |index, runs| {
            interrupt.check()?;
            self.copy(index, map, runs, out, &mut prefetch, interrupt)
        })
    }

    /// Appends `length` bytes from byte `offset` on of a dataset whose chunks are contiguous ([`ChunkGrid::is_line`]).
    /// Copies decoded chunks straight into uninitialised memory.
    pub fn append(
        self: &Arc<Self>,
        offset: u64,
        length: usize,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        self.pieces(offset..offset.saturating_add(length as u64), u64::MAX, out, interrupt, &mut |decoded, out| {
            out.extend_from_slice(decoded.unwrap_or_default());
        })
    }

    /// Calls `take` for `bytes` piece by piece, split at chunk boundaries: with the decoded bytes in place, or with
    /// `None` after appending at most `most` bytes to `out`.
    pub fn pieces(
        self: &Arc<Self>,
        bytes: Range<u64>,
        most: u64,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
        take: &mut TakePiece<'_>,
    ) -> Result<(), Error> {
        let map = self.map(interrupt)?;
        let map = map.as_deref().map(|held| &held.map);
        let (mut at, end) = (bytes.start, bytes.end);
        let mut prefetch = self.plan_prefetch(map, at, end.saturating_sub(at), interrupt);
        let size = self.grid.chunk_bytes().max(1);
        while at < end {
            interrupt.check()?;
            let (index, within) = (at / size, at % size);
            let found = self.locate(index, map);
            let mut count = (size - within).min(end - at);
            if matches!(found, StoredChunk::Filtered(..) | StoredChunk::Worker) {
                let chunk = self.decoded(index, (found, map), within + count, &mut prefetch, interrupt)?;
                let bytes = chunk.get(within as usize..(within + count) as usize);
                take(Some(bytes.ok_or_else(|| self.outside())?), out);
                at += count;
                continue;
            }
            count = count.min(most);
            if let StoredChunk::Plain(chunk) = found
                && within.saturating_add(count) <= chunk.size
            {
                // A single run is read by itself, however short: loading the whole chunk would cost more.
                self.plan_reads(&chunk, interrupt);
                let address = chunk.address.checked_add(within).ok_or_else(|| self.outside())?;
                self.file.opening().append_at(address, count as usize, out, interrupt)?;
            } else {
                let start = out.len();
                out.resize(start + count as usize, 0);
                self.grid.visit(at, count, |index, runs| {
                    self.copy(index, map, runs, &mut out[start..], &mut prefetch, interrupt)
                })?;
            }
            take(None, out);
            at += count;
        }
        Ok(())
    }

    /// Borrows `length` bytes from byte `offset` on of a dataset whose chunks are contiguous. `None`: they do not lie
    /// in one decoded chunk, nor in one stretch of chunks decoded together.
    pub fn lend(self: &Arc<Self>, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let size = self.grid.chunk_bytes().max(1);
        let (index, within) = (offset / size, offset % size);
        let fits = size - within >= length as u64;
        let stretch = if fits { None } else { self.stretch_with(offset, length as u64) };
        if length == 0 || (!fits && stretch.is_none()) {
            return Ok(None);
        }
        let map = self.map(interrupt)?;
        let map = map.as_deref().map(|held| &held.map);
        let found = self.locate(index, map);
        match found {
            StoredChunk::Filtered(..) => {}
            StoredChunk::Plain(chunk) if fits && within.saturating_add(length as u64) <= chunk.size => {
                self.plan_reads(&chunk, interrupt);
                let address = chunk.address.checked_add(within).ok_or_else(|| self.outside())?;
                return self.file.opening().lend(address, length, interrupt);
            }
            _ => return Ok(None),
        }
        let mut prefetch = self.plan_prefetch(map, offset, length as u64, interrupt);
        let Some((stretch, within)) = stretch else {
            let chunk = self.decoded(index, (found, map), within + length as u64, &mut prefetch, interrupt)?;
            return Ok(chunk.part(within as usize..within as usize + length));
        };
        prefetch.start(self, (offset + length as u64 - 1) / size);
        let held = self.stretch_block(stretch, map, &prefetch, interrupt)?;
        Ok(held.and_then(|block| Lent::new(block, within as usize..within as usize + length)))
    }

    /// Locates up to `length` bytes from `offset` on, in a dataset whose chunks are contiguous.
    pub fn span(self: &Arc<Self>, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let size = self.grid.chunk_bytes().max(1);
        let (index, within) = (offset / size, offset % size);
        let left_of = |bytes: u64| usize::try_from(bytes - offset % bytes).map_or(length, |left| left.min(length));
        let of_chunk = left_of(size);
        let held = self.map(interrupt)?;
        match self.locate(index, held.as_deref().map(|held| &held.map)) {
            StoredChunk::Filtered(..) => {
                let stretch = self.affordable_stretch().and_then(|chunks| chunks.checked_mul(size)).unwrap_or(size);
                let count = left_of(stretch);
                if stretch < WORTH_A_SPAN as u64 && count < length {
                    return Ok(Span::Made(length));
                }
                Ok(self.lend(offset, count, interrupt)?.map_or(Span::Made(count), Span::Lent))
            }
            StoredChunk::Plain(chunk)
                if size >= WORTH_A_SPAN as u64 && within.saturating_add(of_chunk as u64) <= chunk.size =>
            {
                self.plan_reads(&chunk, interrupt);
                let address = chunk.address.checked_add(within).ok_or_else(|| self.outside())?;
                Ok(StoredRun::span(self.file.opening(), address, of_chunk))
            }
            _ => Ok(Span::Made(if size < WORTH_A_SPAN as u64 { length } else { of_chunk })),
        }
    }

    /// For parallel scans: decodes the chunk of these bytes on the calling core, which reads them next, and waits for
    /// no other core. `None`: they are not part of one chunk, or requests of this length do not divide chunks.
    pub fn lend_scanned(
        self: &Arc<Self>,
        offset: u64,
        length: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<Lent>, Error> {
        let size = self.grid.chunk_bytes();
        let Some(Within { index, start, ends }) = self.grid.within_chunk(offset, length as u64) else {
            return Ok(None);
        };
        if length == 0 || !(ends || size.is_multiple_of(length as u64)) {
            return Ok(None);
        }
        // Within the chunk, as `start` is.
        let range = start as usize..start as usize + length;
        let map = self.map(interrupt)?;
        let found = self.locate(index, map.as_deref().map(|held| &held.map));
        if !matches!(found, StoredChunk::Filtered(..)) {
            return Ok(None);
        }
        let store = self.file.store();
        if let Some(chunks) = self.stretch()
            && let Some(block) = store.stretches().get(&self.key(index / chunks))
        {
            store.counters().hits.add(1);
            let before = (index % chunks * size) as usize;
            return Ok(Lent::new(block, before + range.start..before + range.end));
        }
        let block = self.block(index, found, &mut Prefetch::default(), interrupt)?;
        if ends && self.taken.is_none() {
            store.chunks().remove(&self.key(index));
        }
        Ok(Lent::new(block, range))
    }

    /// Releases the chunks behind a sequential reader whose request ended at byte `end` and who will not return:
    /// reusing their buffers is much cheaper than touching fresh memory.
    pub fn release_behind(&self, end: u64) {
        self.release(end, None);
    }

    /// As [`Chunks::release_behind`], for a reader who may return: leaves a share of the budget.
    pub fn release_far_behind(&self, end: u64) {
        self.release(end, Some(KEPT_PART));
    }

    /// As [`Chunks::release_far_behind`], for a reader of one field of each element, who may return for the others:
    /// leaves a larger share.
    pub fn release_behind_fields(&self, end: u64) {
        self.release(end, Some(KEPT_PART_OF_FIELDS));
    }

    fn release(&self, end: u64, kept_part: Option<u64>) {
        // A reader of one version will next read another.
        if self.taken.is_some() {
            return;
        }
        let store = self.file.store();
        let distance = kept_part.map_or(0, |kept| store.part_of_reader() / kept);
        let left = self.streams.left_behind(end, distance, store.ahead_of_reader());
        // A chunk requested before its stretch was decoded is cached by itself.
        let size = self.grid.chunk_bytes();
        let caches = [(store.chunks(), Some(1)), (store.stretches(), self.stretch())];
        let each = |bytes: Range<u64>, one: &dyn Fn(&Cache<ChunkKey, ChunkBytes>, &ChunkKey)| {
            for (cache, chunks) in &caches {
                let Some(length) = chunks.map(|chunks| chunks.saturating_mul(size).max(1)) else { continue };
                (bytes.start / length..bytes.end / length).for_each(|number| one(cache, &self.key(number)));
            }
        };
        each(left.passed, &Cache::demote);
        each(left.released, &Cache::remove);
    }

    /// The end of the unwritten bytes that begin at `offset`; `offset` itself if that byte is written, or nothing is
    /// known.
    pub fn unwritten_until(&self, offset: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let map = if self.grid.is_line() { self.map(interrupt)? } else { None };
        let size = self.grid.chunk_bytes().max(1);
        Ok(match map {
            Some(held) => held.map.next(offset / size).map_or(u64::MAX, |index| index.saturating_mul(size)).max(offset),
            None => offset,
        })
    }

    /// Whether chunks are filtered, or come from the worker.
    pub fn is_decoded(&self) -> bool {
        match &self.reader {
            ChunkReader::Own { pipeline, .. } => !pipeline.is_identity(0),
            ChunkReader::Worker { .. } => true,
        }
    }

    fn copy(
        self: &Arc<Self>,
        index: u64,
        map: Option<&ChunkMap>,
        runs: &mut dyn Iterator<Item = ChunkRun>,
        out: &mut [u8],
        prefetch: &mut Prefetch,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let found = self.locate(index, map);
        let mut runs = runs.peekable();
        // A stored chunk may have room for more rows than the dataset has: its valid rows are read as one run.
        let all = self.grid.bytes_inside(index);
        let long = runs.peek().is_none_or(|run| run.length >= SHORT_RUN || run.length == all);
        match found {
            StoredChunk::Missing => {
                let fill = self.fill()?;
                for run in runs {
                    // Elements are contiguous in a chunk from its first byte on.
                    fill.write((run.chunk % self.datatype.size.max(1)) as usize, part(out, run)?);
                }
            }
            StoredChunk::Plain(chunk) if long || !self.is_cacheable() => {
                self.plan_reads(&chunk, interrupt);
                for run in runs {
                    let end = run.chunk + run.length;
                    let start = chunk.address.checked_add(run.chunk);
                    match start {
                        Some(start) if end <= chunk.size => self.file.read_at(start, part(out, run)?, interrupt)?,
                        _ => return Err(self.chunk_error(&chunk, self.too_short(&chunk))),
                    }
                }
            }
            StoredChunk::Plain(_) | StoredChunk::Filtered(..) | StoredChunk::Worker => {
                // In a line, a chunk has one run.
                let end = match runs.peek() {
                    Some(run) if self.grid.is_line() => run.chunk + run.length,
                    _ => self.grid.chunk_bytes(),
                };
                let chunk = self.decoded(index, (found, map), end, prefetch, interrupt)?;
                for run in runs {
                    let (start, length) = (run.chunk as usize, run.length as usize);
                    let bytes = chunk.get(start..start + length).ok_or_else(|| self.outside())?;
                    part(out, run)?.copy_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    /// Whether an unfiltered chunk may go through the cache without evicting everything else.
    fn is_cacheable(&self) -> bool {
        let store = self.file.store();
        self.grid.chunk_bytes() <= (store.budget().limit() / 4).min(store.max_chunk())
    }

    /// The bytes of a chunk, at least those before `end`, from a stretch decoded ahead, from the cache, or decoded now.
    fn decoded(
        self: &Arc<Self>,
        index: u64,
        (found, map): (StoredChunk, Option<&ChunkMap>),
        end: u64,
        prefetch: &mut Prefetch,
        interrupt: &Interrupt,
    ) -> Result<Lent, Error> {
        let size = self.grid.chunk_bytes() as usize;
        if let Some(chunks) = self.stretch() {
            prefetch.start(self, index);
            if let Some(block) = self.stretch_block(index / chunks, map, prefetch, interrupt)? {
                self.file.store().counters().hits.add(1);
                let start = (index % chunks) as usize * size;
                return Lent::new(block, start..start + size).ok_or_else(|| self.outside());
            }
        }
        if !prefetch.sequential
            && let Some(beginning) = self.beginning(found, end, interrupt)?
        {
            return Ok(beginning);
        }
        let block = self.block(index, found, prefetch, interrupt)?;
        let whole = 0..block.bytes.len();
        Lent::new(block, whole).ok_or_else(|| self.outside())
    }

    /// The bytes of a chunk, from the cache or decoded now.
    fn block(
        self: &Arc<Self>,
        index: u64,
        found: StoredChunk,
        prefetch: &mut Prefetch,
        interrupt: &Interrupt,
    ) -> Result<Arc<ChunkBytes>, Error> {
        let store = self.file.store();
        let key = self.key(index);
        let cached = store.chunks().get(&key);
        prefetch.start(self, index);
        if let Some(block) = cached {
            store.counters().hits.add(1);
            return Ok(block);
        }
        store.counters().misses.add(1);
        store.chunks().get_or_make(&key, interrupt, || self.make(index, found, interrupt))
    }

    /// The chunk with this index as read by the worker, for variable-length elements.
    pub fn worker_block(self: &Arc<Self>, index: u64, interrupt: &Interrupt) -> Result<Arc<ChunkBytes>, Error> {
        self.block(index, StoredChunk::Worker, &mut Prefetch::default(), interrupt)
    }

    pub fn key(&self, chunk: u64) -> ChunkKey {
        if let Some(Taken { source, places }) = &self.taken
            && let Some(run) = places.mappings.find(chunk).0
        {
            return source.key(run.first.saturating_add(chunk.saturating_sub(run.at)));
        }
        ChunkKey { file: self.file.serial(), object: self.id, chunk }
    }

    /// Reads and decodes a chunk.
    fn make(&self, index: u64, found: StoredChunk, interrupt: &Interrupt) -> Result<ChunkBytes, Error> {
        let limit = self.file.store().max_chunk();
        let bytes = self.grid.chunk_bytes();
        if bytes > limit {
            let (path, what) = (self.path.clone(), "a chunk".into());
            return Err(Error::TooLarge { path, what, bytes, limit, option: "--max-chunk" });
        }
        match found {
            StoredChunk::Worker => worker::read_chunk(self, index, interrupt),
            StoredChunk::Missing => Err(self.outside()),
            StoredChunk::Plain(chunk) | StoredChunk::Filtered(chunk, _) => {
                let sizes = self.sizes(&chunk, found)?;
                self.begun.store(0, Ordering::Relaxed);
                self.decode_block(&chunk, found, self.file.store().budget().lease(sizes, interrupt)?, interrupt)
            }
        }
    }

    /// Wraps the worker's error in one that names this dataset.
    pub fn worker_error(&self, error: h5::Error) -> Error {
        match error {
            h5::Error::Interrupted => Interrupted.into(),
            error => Error::Hdf5 { path: self.path.clone(), error },
        }
    }

    pub fn fill(&self) -> Result<&FillElement, Error> {
        self.fill.as_ref().as_ref().map_err(|reason| Error::unsupported(&self.path, reason))
    }

    fn outside(&self) -> Error {
        Error::unsupported(&self.path, "a chunk lies outside the memory it was read to")
    }
}

/// The part of a reader's buffer for a run.
fn part(out: &mut [u8], run: ChunkRun) -> Result<&mut [u8], Error> {
    let range: Range<usize> = run.out as usize..(run.out + run.length) as usize;
    out.get_mut(range).ok_or_else(|| Error::unsupported("", "a run lies outside the bytes asked for"))
}
