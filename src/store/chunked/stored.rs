//! Chunks as stored: locates each, reads and decodes its bytes.

use std::sync::Arc;

use super::{Chunks, Taken};
use crate::catalogue::{Chunk, ChunkMap, ChunkMapBuilder, Mappings, PACKED_CHUNK};
use crate::codec::{Missing, Pipeline, Scratch};
use crate::h5;
use crate::source::Interrupt;
use crate::store::memory::{ChunkBytes, Leased};
use crate::store::{Damage, Error, Reservation};

/// A chunk map, and its share of the budget.
#[derive(Debug)]
pub(in crate::store) struct HeldMap {
    pub map: ChunkMap,
    pub _held: Reservation,
}

/// The mappings of a virtual dataset, and their share of the budget.
#[derive(Debug)]
pub(in crate::store) struct HeldMappings {
    pub mappings: Mappings,
    pub _held: Reservation,
}

/// The reader of chunks.
#[derive(Debug)]
pub(in crate::store) enum ChunkReader {
    /// hepfs reads them from the file and decodes them.
    Own { pipeline: Pipeline, partial_unfiltered: bool },
    /// libhdf5 reads and decodes them, in its worker.
    Worker {
        /// The filter without a codec here, if that is the reason.
        filter: Option<Missing>,
    },
}

/// Where a chunk is stored, and how.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum StoredChunk {
    /// The chunk was never written.
    Missing,
    /// The chunk is at this place in the file, without filters.
    Plain(Chunk),
    /// The chunk is at this place in the file, filtered, with this filter mask.
    Filtered(Chunk, u32),
    /// Only the worker can read the chunk.
    Worker,
}

impl Chunks {
    /// Decodes a chunk in buffers of the lengths from [`Chunks::sizes`].
    pub(super) fn decode_block(
        &self,
        chunk: &Chunk,
        found: StoredChunk,
        leased: Leased<4>,
        interrupt: &Interrupt,
    ) -> Result<ChunkBytes, Error> {
        let (lease, [mut bytes, mut stored, mut first, mut second]) = leased;
        let decoded = self.decode(chunk, found, &mut bytes, [&mut stored, &mut first, &mut second], interrupt);
        // Checked before the result or an error counts: the file may have changed meanwhile.
        self.file.check()?;
        decoded?;
        drop((stored, first, second, lease));
        Ok(ChunkBytes { bytes, heap: None })
    }

    /// Lengths of the buffers for decoding: the chunk, its stored bytes, and two for scratch space.
    pub(super) fn sizes(&self, chunk: &Chunk, found: StoredChunk) -> Result<[usize; 4], Error> {
        let size = usize::try_from(self.grid.chunk_bytes()).map_err(|_| self.outside())?;
        let ChunkReader::Own { pipeline, .. } = &self.reader else { return Err(self.outside()) };
        // Checked before any allocation: the file must contain those bytes.
        if let Some(reason) = self.fault(chunk, self.file.size()?) {
            return Err(self.chunk_error(chunk, reason));
        }
        let StoredChunk::Filtered(_, mask) = found else { return Ok([size, 0, 0, 0]) };
        let Scratch { first, second } = pipeline.scratch(mask, size);
        Ok([size, chunk.size as usize, first, second])
    }

    /// Reads and decodes a chunk into `out`; the other buffers have at least the lengths from [`Chunks::sizes`]. The
    /// caller checks the file afterwards.
    pub(super) fn decode(
        &self,
        chunk: &Chunk,
        found: StoredChunk,
        out: &mut [u8],
        [stored, scratch @ ..]: [&mut [u8]; 3],
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        self.plan_reads(chunk, interrupt);
        match (found, &self.reader) {
            (StoredChunk::Filtered(_, mask), ChunkReader::Own { pipeline, .. }) => {
                let stored = stored.get_mut(..chunk.size as usize).ok_or_else(|| self.outside())?;
                self.file.read_at(chunk.address, stored, interrupt)?;
                // If the chunk belongs to another dataset, that one may need all of it.
                let needed = self.taken.as_ref().map_or_else(|| self.grid.bytes_inside(chunk.index), |_| u64::MAX);
                let needed = usize::try_from(needed).unwrap_or(usize::MAX).min(out.len());
                let decoded = pipeline.decode(mask, stored, out, needed, scratch);
                decoded.map_err(|error| self.chunk_error(chunk, error.to_string()))?;
            }
            _ => self.file.read_at(chunk.address, out, interrupt)?,
        }
        let counters = self.file.store().counters();
        counters.chunks_decoded.add(1);
        counters.bytes_decoded.add(out.len() as u64);
        Ok(())
    }

    /// Plans the read of this chunk, and of those behind it that its reader will want, if the source is on a network.
    pub(super) fn plan_reads(&self, chunk: &Chunk, interrupt: &Interrupt) {
        let source = self.file.source();
        if !source.is_remote() {
            return;
        }
        let units = self.planned.note(chunk.index, chunk.size);
        let Ok(Some(held)) = self.map(interrupt) else { return };
        let chunks = self.file.store().chunks();
        let ahead = (units.start..units.end.min(self.grid.chunks()))
            .filter(|index| *index == chunk.index || !chunks.is_known(&self.key(*index)))
            .filter_map(|index| held.map.get(index));
        source.plan(ahead.map(|chunk| chunk.address..chunk.address.saturating_add(chunk.size)));
    }

    /// The reason why a chunk's size or place in the chunk index is impossible, in a file of `end` bytes.
    fn fault(&self, chunk: &Chunk, end: u64) -> Option<String> {
        let ChunkReader::Own { pipeline, partial_unfiltered } = &self.reader else { return None };
        let size = self.grid.chunk_bytes();
        let is_plain = pipeline.is_identity(chunk.mask) || *partial_unfiltered && self.grid.overhangs(chunk.index);
        if chunk.is_unknown() {
            return Some("the chunk index is damaged here: its place is not known".into());
        }
        if is_plain && chunk.size < size {
            return Some(self.too_short(chunk));
        }
        if chunk.size == 0 {
            return Some("it is stored in 0 bytes".into());
        }
        if !is_plain && !usize::try_from(size).is_ok_and(|size| Pipeline::is_plausible(size, chunk.size)) {
            return Some(format!("{} bytes are stored for {size}, more than any filter gives", chunk.size));
        }
        let passes = chunk.address.checked_add(chunk.size).is_none_or(|chunk_end| chunk_end > end);
        passes.then(|| format!("its {} bytes pass the end of the file at {end}", chunk.size))
    }

    /// Reports impossible entries of the chunk index: the rows of such chunks are errors, whether or not anyone reads
    /// them.
    fn report_faults(&self, map: &ChunkMap) -> Result<(), Error> {
        let end = self.file.size()?;
        let mut faults = map.iter().filter_map(|chunk| Some((chunk.index, self.fault(&chunk, end)?)));
        if let Some((first, reason)) = faults.next() {
            self.file.report_damage(&self.path, Damage { chunks: 1 + faults.count() as u64, first, reason });
        }
        Ok(())
    }

    pub(super) fn locate(&self, index: u64, map: Option<&ChunkMap>) -> StoredChunk {
        let (ChunkReader::Own { pipeline, partial_unfiltered }, Some(map)) = (&self.reader, map) else {
            return StoredChunk::Worker;
        };
        match map.get(index) {
            None => StoredChunk::Missing,
            Some(chunk) if chunk.is_unknown() => StoredChunk::Filtered(chunk, chunk.mask),
            Some(chunk) if *partial_unfiltered && self.grid.overhangs(index) => StoredChunk::Plain(chunk),
            Some(chunk) if pipeline.is_identity(chunk.mask) => StoredChunk::Plain(chunk),
            Some(chunk) => StoredChunk::Filtered(chunk, chunk.mask),
        }
    }

    /// The chunk map, from the cache or the worker. `None`: the worker reads the chunks.
    pub(in crate::store) fn map(&self, interrupt: &Interrupt) -> Result<Option<Arc<HeldMap>>, Error> {
        if let ChunkReader::Worker { .. } = self.reader {
            return Ok(None);
        }
        if let Some(map) = self.snapshot.get() {
            return Ok(Some(map.clone()));
        }
        let store = self.file.store();
        let key = (self.file.serial(), self.id);
        let map = store.maps().get_or_make(&key, interrupt, || {
            if let Some(taken) = &self.taken {
                return self.taken_map(taken, interrupt);
            }
            // Half the budget, to leave room for the chunks themselves.
            let limit = store.budget().limit() / 2 / PACKED_CHUNK;
            let map = self.file.chunks(self.id, limit, interrupt);
            self.file.check()?;
            let map = map.map_err(|error| self.map_error(error))?;
            self.report_faults(&map)?;
            let reserved = store.budget().reserve(map.memory() as u64, interrupt);
            let held = reserved.map_err(|error| error.at(&self.path, "the list of its chunks"))?;
            Ok::<_, Error>(HeldMap { map, _held: held })
        })?;
        Ok(Some(if self.file.info().swmr { self.snapshot.get_or_init(|| map).clone() } else { map }))
    }

    /// The chunk map of a dataset made of another dataset's chunks.
    fn taken_map(&self, taken: &Taken, interrupt: &Interrupt) -> Result<HeldMap, Error> {
        let source = taken.source.map(interrupt)?.ok_or_else(|| self.outside())?;
        let mut map = ChunkMapBuilder::default();
        for run in taken.places.mappings.runs() {
            interrupt.check()?;
            for at in 0..run.len {
                // Both stay within the chunks of their datasets.
                if let Some(chunk) = source.map.get(run.first.saturating_add(at)) {
                    let index = run.at.saturating_add(at);
                    map.push(Chunk { index, ..chunk }).map_err(|_| self.outside())?;
                }
            }
        }
        let map = map.finish();
        let reserved = self.file.store().budget().reserve(map.memory() as u64, interrupt);
        Ok(HeldMap { map, _held: reserved.map_err(|error| error.at(&self.path, "the list of its chunks"))? })
    }

    fn map_error(&self, error: h5::Error) -> Error {
        match error {
            h5::Error::TooLarge { bytes, limit, .. } => {
                let (path, what) = (self.path.clone(), "the list of its chunks".into());
                Error::TooLarge { path, what, bytes, limit, option: "--cache-size" }
            }
            error => {
                if let h5::Error::Hdf5(_) | h5::Error::Poisoned(_) = &error {
                    let reason = format!("the chunk index cannot be read: {error}");
                    self.file.report_damage(&self.path, Damage { chunks: self.grid.chunks(), first: 0, reason });
                }
                self.worker_error(error)
            }
        }
    }

    pub(super) fn too_short(&self, chunk: &Chunk) -> String {
        format!("{} bytes are stored without filters, {} expected", chunk.size, self.grid.chunk_bytes())
    }

    pub(super) fn chunk_error(&self, chunk: &Chunk, reason: String) -> Error {
        Error::Chunk { path: self.path.clone(), chunk: chunk.index, address: chunk.address, reason }
    }
}
