//! A cache of rendered blocks of text and Parquet pages: the kernel requests a block of 1 MiB in eight pieces of 128
//! KiB.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

use crate::source::Interrupt;
use crate::store::{Error, SingleFlight};

/// A rendered block.
pub(super) type RenderedBlock = Arc<Vec<u8>>;

/// Number of a view, first row of a block and its number of rows; for a page, number of the view, leaf column and first
/// row.
pub(super) type BlockKey = (u64, u64, u64);

/// Returns a unique number for a view: the first part of its keys.
pub(super) fn next_view() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Bytes that a block may have, however small the cache is.
const LONGEST: u64 = 128 << 20;

/// Bytes of buffers to keep from evicted blocks: fresh memory costs a page fault every 4 KiB.
const SPARE: usize = 16 << 20;

/// Length in bytes of the longest buffer to recycle.
const LONGEST_SPARE: usize = 4 << 20;

/// An LRU of rendered blocks, shared by all views.
pub struct BlockCache {
    capacity: usize,
    state: Mutex<State>,
    rendering: SingleFlight<BlockKey>,
}

struct State {
    blocks: LruCache<BlockKey, Held>,
    /// Keys in order, so that those of one view stand together.
    keys: BTreeSet<BlockKey>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

/// A cached block.
struct Held {
    block: RenderedBlock,
    /// Bytes of the block handed out so far, if they are counted.
    handed_out: usize,
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl BlockCache {
    /// Returns a cache of at most `capacity` bytes. The newest block stays even if it alone is larger.
    pub fn new(capacity: usize) -> Self {
        let (blocks, keys) = (LruCache::unbounded(), BTreeSet::new());
        let state = State { blocks, keys, bytes: 0, spare: Vec::new(), spare_bytes: 0 };
        Self { capacity, state: Mutex::new(state), rendering: SingleFlight::default() }
    }

    /// Returns the length in bytes of the longest block to render: one row may be much longer than others.
    pub(super) fn longest_block(&self) -> u64 {
        (self.capacity as u64).saturating_mul(4).max(LONGEST)
    }

    /// Returns the number of bytes held now.
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Whether a block is cached, or being rendered.
    pub(super) fn expects(&self, key: &BlockKey) -> bool {
        // The order matters: a block whose rendering ends in between is in the cache.
        self.rendering.is_making(key) || self.state.lock().blocks.contains(key)
    }

    /// Returns the block `key`, calling `render` unless it is cached or being rendered. `render` gets an empty buffer.
    ///
    /// # Errors
    /// Those of `render`; [`Error::Interrupted`] if `interrupt` is raised while another thread renders.
    pub(super) fn get_or_render(
        &self,
        key: BlockKey,
        interrupt: &Interrupt,
        render: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Error>,
    ) -> Result<RenderedBlock, Error> {
        let find = || self.state.lock().blocks.get(&key).map(|held| held.block.clone());
        self.rendering.get_or_make(&key, interrupt, find, || {
            let spare = self.state.lock().spare();
            let block = Arc::new(render(spare)?);
            self.insert(key, &block);
            Ok(block)
        })
    }

    /// Whether `bytes` more would evict nothing.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.state.lock().bytes.saturating_add(bytes) <= self.capacity
    }

    /// Caches a block that was rendered ahead, unless that evicts another.
    pub(super) fn offer(&self, key: BlockKey, block: &RenderedBlock) {
        let state = self.state.lock();
        if state.bytes.saturating_add(block.capacity()) <= self.capacity {
            self.insert_in(state, key, block);
        }
    }

    /// Caches a block that was rendered elsewhere.
    pub(super) fn insert(&self, key: BlockKey, block: &RenderedBlock) {
        self.insert_in(self.state.lock(), key, block);
    }

    fn insert_in(&self, mut state: MutexGuard<'_, State>, key: BlockKey, block: &RenderedBlock) {
        state.bytes += block.capacity();
        state.keys.insert(key);
        if let Some(old) = state.blocks.put(key, Held { block: Arc::clone(block), handed_out: 0 }) {
            state.bytes -= old.block.capacity();
        }
        while state.bytes > self.capacity && state.blocks.len() > 1 {
            let Some((key, old)) = state.blocks.pop_lru() else { break };
            state.release(&key, old.block);
        }
    }

    /// Counts `bytes` of a block as handed out, for blocks that are read once. Once all its bytes are, its buffer is
    /// recycled.
    pub(super) fn hand_out(&self, key: &BlockKey, bytes: usize) {
        let mut state = self.state.lock();
        let Some(held) = state.blocks.peek_mut(key) else { return };
        held.handed_out += bytes;
        if held.handed_out >= held.block.len()
            && let Some(held) = state.blocks.pop(key)
        {
            state.release(key, held.block);
        }
    }

    /// Drops the blocks of a view.
    pub(super) fn forget(&self, view: u64) {
        let mut state = self.state.lock();
        while let Some(key) = state.keys.range((view, 0, 0)..).next().copied().filter(|key| key.0 == view)
            && let Some(held) = state.blocks.pop(&key)
        {
            state.release(&key, held.block);
        }
    }
}

impl State {
    /// Returns an empty buffer for the next block.
    fn spare(&mut self) -> Vec<u8> {
        let spare = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= spare.capacity();
        spare
    }

    fn release(&mut self, key: &BlockKey, block: RenderedBlock) {
        self.keys.remove(key);
        self.bytes -= block.capacity();
        if let Ok(mut buffer) = Arc::try_unwrap(block)
            // Unusually long buffers are not recycled.
            && buffer.capacity() <= LONGEST_SPARE.min(SPARE - self.spare_bytes)
        {
            buffer.clear();
            self.spare_bytes += buffer.capacity();
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_was_handed_out_serves_the_next_one() {
        let cache = BlockCache::new(1 << 20);
        // Returns the capacity of the buffer that the block came with.
        let make = |row| {
            cache.get_or_render((0, row, 0), &Interrupt::new(), |mut block| {
                let room = block.capacity() as u64;
                block.extend(room.to_le_bytes());
                block.resize(1000, 0);
                Ok(block)
            })
        };
        let length = make(0).unwrap().len();
        cache.hand_out(&(0, 0, 0), length - 1);
        assert!(cache.bytes() >= length);
        cache.hand_out(&(0, 0, 0), 1);
        assert_eq!(cache.bytes(), 0);
        let next = make(1).unwrap();
        assert!(next[..8] != [0; 8], "fresh memory");
        // A reader that holds a block keeps it.
        cache.hand_out(&(0, 1, 0), length);
        assert_eq!((cache.bytes(), next.len()), (0, length));
        cache.hand_out(&(0, 1, 0), length);
    }
}
