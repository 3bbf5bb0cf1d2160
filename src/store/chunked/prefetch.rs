//! Decodes ahead of sequential readers.
//!
//! Consecutive chunks that are contiguous in the dataset are decoded together, into one buffer: a *stretch*. Most
//! requests span several chunks, since the kernel's read-ahead does not know chunks; with stretches they can borrow the
//! bytes instead of copying them together.

use std::sync::{Arc, Weak};

use super::streams::Scheduled;
use super::{ChunkReader, Chunks, StoredChunk};
use crate::catalogue::ChunkMap;
use crate::source::{Interrupt, Interrupted};
use crate::store::Store;
use crate::store::memory::ChunkBytes;

/// Bytes to decode per job of a thread: for less, the hand-over costs more than it gains.
const PORTION: u64 = 256 << 10;

/// Bytes of a stretch: several times the longest request, so that few requests span two.
const STRETCH: u64 = 4 << 20;

/// Most chunks to decode ahead for one request.
const MOST_AHEAD: usize = 65_536;

/// A chunk was not decoded ahead; its reader will find out why.
struct Skipped;

impl From<Interrupted> for Skipped {
    fn from(_: Interrupted) -> Self {
        Skipped
    }
}

impl Chunks {
    /// Number of chunks in a stretch, at least two; `None`: chunks are not contiguous in the dataset, or so large that
    /// they are decoded one by one, or not at all.
    pub fn stretch(&self) -> Option<u64> {
        let (store, size) = (self.file.store(), self.grid.chunk_bytes());
        let chunks = STRETCH.min(store.budget().limit() / 16) / size.max(1);
        // Versions cut the shared chunks into different stretches.
        (self.grid.is_line() && chunks >= 2 && size <= store.max_chunk() && self.taken.is_none()).then_some(chunks)
    }

    /// Number of chunks in a stretch, if a reader's share of the budget has room for making one.
    pub fn affordable_stretch(&self) -> Option<u64> {
        let most = self.file.store().ahead_of_reader();
        self.stretch().filter(|chunks| chunks.saturating_mul(self.grid.chunk_bytes()) <= most)
    }

    /// The stretch that contains all bytes `offset..offset + length`, and their position in it.
    pub fn stretch_with(&self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let bytes = self.affordable_stretch()?.checked_mul(self.grid.chunk_bytes())?;
        let within = offset % bytes;
        (bytes - within >= length).then_some((offset / bytes, within))
    }

    /// Plans the chunks to decode ahead of a request.
    pub(super) fn plan_prefetch(
        self: &Arc<Self>,
        map: Option<&ChunkMap>,
        offset: u64,
        length: u64,
        interrupt: &Interrupt,
    ) -> Prefetch {
        let ChunkReader::Own { pipeline, .. } = &self.reader else { return Prefetch::default() };
        let Some(map) = map.filter(|map| !map.is_empty() && !pipeline.is_identity(0)) else {
            return Prefetch::default();
        };
        let size = self.grid.chunk_bytes().max(1);
        let (store, end) = (self.file.store(), offset + length);
        let threads = store.threads().count() as u64;
        let last = self.grid.chunk_at(end - 1);
        let until = interrupt.end_of_reader(end, length);
        let stops = until < u64::MAX;
        let sequential = store.note_reader(&self.streams, offset..end, (last, self.grid.chunks()), stops);
        let share = store.ahead_of_reader();
        // Enough to keep all threads busy while the reader consumes the previous chunks.
        let wanted = STRETCH.saturating_mul(threads + 1).max(size.saturating_mul(threads).saturating_mul(2));
        // Chunks of the request itself are short-lived. Others must not evict those that other readers need next.
        let [window, ahead] = [share.max(store.budget().limit() / 8), share]
            .map(|most| if threads == 0 { 0 } else { wanted.min(most) / size });
        let stretch = self.affordable_stretch();
        let grain = stretch.unwrap_or(1);
        let until = if stops { self.grid.chunk_at(until.saturating_sub(1)).saturating_add(1) } else { until };
        let Scheduled { chunks: next, until } = match sequential {
            true => self.streams.schedule(end, last, (ahead, grain), until),
            false => Scheduled::default(),
        };
        if window == 0 {
            return Prefetch { sequential, stretch, until, ..Prefetch::default() };
        }
        let mut chunks = Vec::new();
        if (length > size || !self.grid.is_line()) && self.grid.chunk_at(offset) != last {
            // First the request's own chunks: those of a long request, or of any in an array whose rows span many
            // chunks. (A chunk that several boxes touch counts twice.) Chunks beyond the limit are decoded on demand.
            let mut met = 0;
            let _ = self.grid.visit(offset, length, |index, _| {
                chunks.push(index);
                met += 1;
                if met < MOST_AHEAD { Ok(()) } else { Err(()) }
            });
        }
        chunks.extend(next.start..next.end.min(self.grid.chunks()));
        chunks.retain(|index| map.get(*index).is_some());
        let window = window.saturating_add(grain) as usize;
        Prefetch { chunks, window, sequential, stretch, until, ..Prefetch::default() }
    }

    /// Decodes chunks for a reader while memory allows. Chunks that the reader has already passed, because the cores
    /// were busy, are skipped: they may have been evicted since, and would evict wanted ones.
    fn decode_ahead(&self, chunks: &[u64], request: &Weak<()>) {
        let interrupt = Interrupt::new();
        let Ok(Some(map)) = self.map(&interrupt) else { return };
        let late = |last: u64| {
            let end = last.saturating_add(1).saturating_mul(self.grid.chunk_bytes());
            request.strong_count() == 0 && self.streams.have_passed(end)
        };
        if let Some(count) = self.stretch().filter(|_| self.is_stretch(chunks))
            && let [first, .., last] = chunks
            && !late(*last)
            && self.decode_stretch(first / count, &map.map, &interrupt).is_ok()
        {
            self.file.store().counters().read_ahead.add(chunks.len() as u64);
            return;
        }
        for index in chunks.iter().filter(|index| !late(**index)) {
            if self.decode_one_ahead(*index, &map.map, &interrupt).is_err() {
                return;
            }
        }
    }

    fn decode_one_ahead(&self, index: u64, map: &ChunkMap, interrupt: &Interrupt) -> Result<(), Skipped> {
        let store = self.file.store();
        let key = self.key(index);
        let found @ StoredChunk::Filtered(chunk, _) = self.locate(index, Some(map)) else { return Ok(()) };
        let in_stretch = self.stretch().is_some_and(|chunks| store.stretches().is_known(&self.key(index / chunks)));
        if in_stretch || store.chunks().is_known(&key) || self.grid.chunk_bytes() > store.max_chunk() {
            return Ok(());
        }
        store.chunks().get_or_make(&key, interrupt, || {
            let sizes = self.sizes(&chunk, found).map_err(|_| Skipped)?;
            let leased = store.budget().try_lease(sizes).ok_or(Skipped)?;
            self.decode_block(&chunk, found, leased, interrupt).map_err(|_| Skipped)
        })?;
        store.counters().read_ahead.add(1);
        Ok(())
    }

    /// Whether these are exactly the chunks of a stretch.
    fn is_stretch(&self, chunks: &[u64]) -> bool {
        let (Some(count), [first, .., last]) = (self.stretch(), chunks) else { return false };
        let end = first.saturating_add(count).min(self.grid.chunks());
        first % count == 0 && last.checked_add(1) == Some(end) && chunks.len() as u64 == end - first
    }

    /// The stretch with this number, if it is cached or being decoded. A sequential reader who has caught up with the
    /// prefetch, and will read to its end, decodes it: a chunk decoded by itself would rule out the stretch, and force
    /// copies.
    pub(super) fn stretch_block(
        &self,
        stretch: u64,
        map: Option<&ChunkMap>,
        prefetch: &Prefetch,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<ChunkBytes>>, Interrupted> {
        let stretches = self.file.store().stretches();
        let key = self.key(stretch);
        if prefetch.sequential
            && let Some(count) = prefetch.stretch
            && stretch.saturating_add(1).saturating_mul(count).min(self.grid.chunks()) <= prefetch.until
            && !stretches.is_known(&key)
            && let Some(map) = map
        {
            // On failure the chunks are decoded one by one, which reports the cause.
            let _ = self.decode_stretch(stretch, map, interrupt);
        }
        stretches.get_or_wait(&key, interrupt)
    }

    /// Decodes all chunks of a stretch into one buffer, single-flight. Skips the stretch if a chunk is unfiltered or
    /// already cached.
    fn decode_stretch(&self, stretch: u64, map: &ChunkMap, interrupt: &Interrupt) -> Result<(), Skipped> {
        let store: &Store = self.file.store();
        let count = self.stretch().ok_or(Skipped)?;
        if store.stretches().is_known(&self.key(stretch)) {
            return Ok(());
        }
        let first = stretch.saturating_mul(count);
        let chunks = first..first.saturating_add(count).min(self.grid.chunks());
        if chunks.is_empty() || chunks.clone().any(|index| store.chunks().is_known(&self.key(index))) {
            return Err(Skipped);
        }
        let mut sizes = [0; 4];
        let mut places = Vec::new();
        for index in chunks {
            let found @ StoredChunk::Filtered(chunk, _) = self.locate(index, Some(map)) else { return Err(Skipped) };
            let [bytes, scratch @ ..] = self.sizes(&chunk, found).map_err(|_| Skipped)?;
            sizes[0] += bytes;
            for (most, size) in sizes[1..].iter_mut().zip(scratch) {
                *most = size.max(*most);
            }
            places.push((chunk, found));
        }
        let size = self.grid.chunk_bytes() as usize;
        store.stretches().get_or_make(&self.key(stretch), interrupt, || {
            let (lease, [mut bytes, mut stored, mut first, mut second]) =
                store.budget().try_lease(sizes).ok_or(Skipped)?;
            for ((chunk, found), out) in places.iter().zip(bytes.chunks_exact_mut(size)) {
                let scratch = [&mut stored[..], &mut first, &mut second];
                self.decode(chunk, *found, out, scratch, interrupt).map_err(|_| Skipped)?;
            }
            self.file.check().map_err(|_| Skipped)?;
            drop((stored, first, second, lease));
            Ok::<_, Skipped>(ChunkBytes { bytes, heap: None })
        })?;
        Ok(())
    }
}

/// The chunks to decode ahead during one request.
#[derive(Default)]
pub(super) struct Prefetch {
    chunks: Vec<u64>,
    /// The reader's last position.
    at: usize,
    /// The first chunk not yet handed over.
    next: usize,
    /// Most chunks to hand over beyond the one being read.
    window: usize,
    /// Whether a sequential reader made the request.
    pub sequential: bool,
    /// Chunks of a stretch, if the reader's share has room for one.
    stretch: Option<u64>,
    /// End of the chunks that may be decoded for a sequential reader.
    until: u64,
    /// Alive as long as the request.
    request: Arc<()>,
}

impl Prefetch {
    /// Hands over nearby chunks, now that the reader is at chunk `current`.
    pub fn start(&mut self, chunks: &Arc<Chunks>, current: u64) {
        let unread = self.chunks.get(self.at..).unwrap_or_default();
        self.at += unread.iter().position(|index| *index == current).map_or(0, |i| i + 1);
        let here = self.at;
        self.next = self.next.max(here);
        let end = self.chunks.len().min(here.saturating_add(self.window));
        let portion = (PORTION / chunks.grid.chunk_bytes().max(1)).max(1) as usize;
        while self.next < end {
            let rest = &self.chunks[self.next..end];
            let stretch = self.stretch.unwrap_or(1) as usize;
            // The dataset may end within a stretch.
            let left = rest.first().map_or(0, |first| chunks.grid.chunks().saturating_sub(*first));
            let whole = rest.get(..stretch.min(usize::try_from(left).unwrap_or(usize::MAX)));
            let some = match whole {
                Some(whole) if self.stretch.is_some() && chunks.is_stretch(whole) => whole.to_vec(),
                _ => rest[..rest.len().min(portion)].to_vec(),
            };
            let stop = self.next + some.len();
            let (worker, request) = (chunks.clone(), Arc::downgrade(&self.request));
            if !chunks.file.store().threads().submit(move || worker.decode_ahead(&some, &request)) {
                return;
            }
            self.next = stop;
        }
    }
}
