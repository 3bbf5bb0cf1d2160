//! Decoding what a sequential reader will want next.
//!
//! Consecutive chunks of a dataset that lie one after the other in it are decoded together, into one buffer: a
//! *stretch*. A request that spans several chunks, as most do (the kernel's read-ahead knows nothing of chunks), can
//! then be lent what it wants instead of having it copied together.

use std::sync::{Arc, Weak};

use super::{ChunkReader, Chunks, StoredChunk};
use crate::catalogue::ChunkMap;
use crate::source::{Interrupt, Interrupted};
use crate::store::Store;
use crate::store::memory::Block;

/// Decoding is handed to a thread in portions of about this many bytes: below it, handing over costs more than it
/// gains.
const PORTION: u64 = 256 << 10;

/// Bytes of a stretch: several times the longest request, so that few requests meet two.
const STRETCH: u64 = 4 << 20;

/// Chunks of one request that are decoded ahead at most.
const MOST_AHEAD: usize = 65_536;

/// Why a chunk was not decoded ahead: its reader will find out.
struct Skipped;

impl From<Interrupted> for Skipped {
    fn from(_: Interrupted) -> Self {
        Skipped
    }
}

impl Chunks {
    /// Chunks of a stretch, at least two; `None` where chunks do not follow each other in the dataset, or are so large
    /// that they are decoded one by one, or not at all.
    pub fn stretch(&self) -> Option<u64> {
        let (store, size) = (self.file.store(), self.grid.chunk_bytes());
        let chunks = STRETCH.min(store.budget().limit() / 16) / size.max(1);
        // Versions have different stretches.
        (self.grid.is_line() && chunks >= 2 && size <= store.max_chunk() && self.taken.is_none()).then_some(chunks)
    }

    /// Chunks of a stretch that is to be made, where a reader's part of the budget has room for it.
    pub fn affordable_stretch(&self) -> Option<u64> {
        let most = self.file.store().ahead_of_reader();
        self.stretch().filter(|chunks| chunks.saturating_mul(self.grid.chunk_bytes()) <= most)
    }

    /// The stretch that all of the bytes `offset..offset + length` lie in, and where they begin in it.
    pub fn stretch_with(&self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let bytes = self.affordable_stretch()?.checked_mul(self.grid.chunk_bytes())?;
        let within = offset % bytes;
        (bytes - within >= length).then_some((offset / bytes, within))
    }

    /// Plans the chunks worth decoding ahead of a request.
    pub(super) fn plan_prefetch(self: &Arc<Self>, map: Option<&ChunkMap>, offset: u64, length: u64) -> Prefetch {
        let ChunkReader::Own { pipeline, .. } = &self.reader else { return Prefetch::default() };
        let Some(map) = map.filter(|map| !map.is_empty() && !pipeline.is_identity(0)) else {
            return Prefetch::default();
        };
        let size = self.grid.chunk_bytes().max(1);
        let (store, end) = (self.file.store(), offset + length);
        let threads = store.threads().count() as u64;
        let last = self.grid.chunk_at(end - 1);
        let sequential = store.note_reader(&self.streams, offset..end, last, self.grid.chunks());
        let share = store.ahead_of_reader();
        // Enough to keep all threads busy while the reader is at what they made before.
        let wanted = STRETCH.saturating_mul(threads + 1).max(size.saturating_mul(threads).saturating_mul(2));
        // Chunks that the request needs are short-lived. Others must not push out those that other readers need next.
        let [window, ahead] = [share.max(store.budget().limit() / 8), share]
            .map(|most| if threads == 0 { 0 } else { wanted.min(most) / size });
        let stretch = self.affordable_stretch();
        let grain = stretch.unwrap_or(1);
        let next = if sequential { self.streams.schedule(end, last, ahead, grain) } else { 0..0 };
        if window == 0 {
            return Prefetch { sequential, stretch, ..Prefetch::default() };
        }
        let mut chunks = Vec::new();
        if (length > size || !self.grid.is_line()) && self.grid.chunk_at(offset) != last {
            // Its own chunks first: those of a long request, and of any in an array whose rows many chunks share.
            // (Counted twice where several boxes meet them.) Chunks past the limit are decoded when they are reached.
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
        Prefetch { chunks, window, sequential, stretch, ..Prefetch::default() }
    }

    /// Decodes chunks that a reader will want, while memory allows. Those that it went past without them, because the
    /// cores were busy, are left: they may have been evicted since, and would push out what is wanted.
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
            self.decode_block(&chunk, found, leased).map_err(|_| Skipped)
        })?;
        store.counters().read_ahead.add(1);
        Ok(())
    }

    /// Whether these are all chunks of a stretch.
    fn is_stretch(&self, chunks: &[u64]) -> bool {
        let (Some(count), [first, .., last]) = (self.stretch(), chunks) else { return false };
        let end = first.saturating_add(count).min(self.grid.chunks());
        first % count == 0 && last.checked_add(1) == Some(end) && chunks.len() as u64 == end - first
    }

    /// The stretch with this number, if it is there or being made. A sequential reader who has caught up with the
    /// prefetch makes it: a chunk decoded by itself would block the stretch, and be copied from.
    pub(super) fn stretch_block(
        &self,
        stretch: u64,
        map: Option<&ChunkMap>,
        prefetch: &Prefetch,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<Block>>, Interrupted> {
        let stretches = self.file.store().stretches();
        let key = self.key(stretch);
        if prefetch.sequential
            && prefetch.stretch.is_some()
            && !stretches.is_known(&key)
            && let Some(map) = map
        {
            // The chunks are decoded one by one next, and report what was in the way.
            let _ = self.decode_stretch(stretch, map, interrupt);
        }
        stretches.get_or_wait(&key, interrupt)
    }

    /// Decodes all chunks of a stretch into one buffer, single-flight. Skipped where a chunk is not filtered, or is
    /// cached already.
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
                self.decode(chunk, *found, out, [&mut stored, &mut first, &mut second]).map_err(|_| Skipped)?;
            }
            self.file.check().map_err(|_| Skipped)?;
            drop((stored, first, second, lease));
            Ok::<_, Skipped>(Block { bytes, heap: None })
        })?;
        Ok(())
    }
}

/// Chunks to decode ahead during one request.
#[derive(Default)]
pub(super) struct Prefetch {
    chunks: Vec<u64>,
    /// Where the reader was last.
    at: usize,
    /// The first not handed over yet.
    next: usize,
    /// How many may be handed over beyond the chunk read now.
    window: usize,
    /// Whether the request is one of a sequential reader.
    pub sequential: bool,
    /// Chunks of a stretch, where the reader's share has room for one.
    stretch: Option<u64>,
    /// Lives as long as the request.
    request: Arc<()>,
}

impl Prefetch {
    /// Hands over what is near, now that the reader is at chunk `current`.
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
