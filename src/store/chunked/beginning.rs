//! Decodes just the beginning of a large chunk, so that `head` does not wait for 256 MiB.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ChunkReader, Chunks, StoredChunk};
use crate::codec::Prefix;
use crate::source::Interrupt;
use crate::store::memory::ChunkBytes;
use crate::store::{Error, Lent};

/// Bytes of the smallest chunk whose beginning is decoded alone: to decode a smaller one whole takes some milliseconds,
/// and then it is cached.
const LARGE: u64 = 8 << 20;

/// The longest beginning to decode is the size of the chunk divided by this: decoders that stop early are slower.
const PART: u64 = 8;

/// Spare bytes to read beyond twice the share computed from the whole chunk's ratio, since compression varies within a
/// chunk.
const SPARE: u64 = 64 << 10;

impl Chunks {
    /// Decodes just the first `end` bytes of a chunk; `None`: impossible, or hardly less work than the whole chunk.
    ///
    /// Beginnings are not cached. Once all of them together have cost as much as the whole chunk, it is decoded and
    /// cached, so that repeated reads pay at most twice.
    pub fn beginning(&self, found: StoredChunk, end: u64, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let size = self.grid.chunk_bytes();
        let store = self.file.store();
        let (StoredChunk::Filtered(chunk, mask), ChunkReader::Own { pipeline, .. }) = (found, &self.reader) else {
            return Ok(None);
        };
        let is_worthwhile = size >= LARGE && end <= size / PART && size <= store.max_chunk();
        if !is_worthwhile || !pipeline.has_prefix(mask) || store.chunks().get(&self.key(chunk.index)).is_some() {
            return Ok(None);
        }
        if self.begun.fetch_add(end, Ordering::Relaxed).saturating_add(end) > size {
            return Ok(None);
        }
        let [_, stored, ..] = self.sizes(&chunk, found)?;
        // The product stays below 2^128, and the result is at most the stored size.
        let share = (stored as u128 * u128::from(end) / u128::from(size)) as u64;
        let mut take = stored.min(share.saturating_mul(2).saturating_add(SPARE) as usize);
        loop {
            interrupt.check()?;
            let (lease, [mut bytes, mut input]) = store.budget().lease([end as usize, take], interrupt)?;
            self.file.read_at(chunk.address, &mut input, interrupt)?;
            let decoded = pipeline.decode_prefix(mask, &input, &mut bytes);
            self.file.check()?;
            drop((input, lease));
            match decoded {
                Prefix::Done => {
                    store.counters().misses.add(1);
                    store.counters().bytes_decoded.add(end);
                    return Ok(Lent::new(Arc::new(ChunkBytes { bytes, heap: None }), 0..end as usize));
                }
                Prefix::MoreInput if take < stored => take = stored.min(take.saturating_mul(4)),
                // Decoding the whole chunk reports the fault.
                Prefix::MoreInput | Prefix::Unavailable => return Ok(None),
            }
        }
    }
}
