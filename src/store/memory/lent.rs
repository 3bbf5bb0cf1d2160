//! Bytes borrowed from the cache.

use std::ops::{Deref, Range};
use std::sync::Arc;

use arrow_buffer::Buffer;

use super::{Budget, Reservation, budget};

/// Fewer bytes than this are copied, since borrowing them costs more.
pub(in crate::store) const WORTH_A_SPAN: usize = 64 << 10;

/// The bytes of a whole chunk, or of a stretch of chunks.
#[derive(Debug)]
pub(in crate::store) struct ChunkBytes {
    pub bytes: budget::Buffer,
    /// The content of the descriptors in `bytes`, if a worker returned both.
    pub heap: Option<Arc<(Vec<u8>, Reservation)>>,
}

/// Bytes of a decoded chunk, of several decoded together, or of the file itself. The reader keeps them alive, which
/// saves a copy.
#[derive(Clone, Debug)]
pub struct Lent {
    block: Arc<ChunkBytes>,
    range: Range<usize>,
}

impl Lent {
    /// Lends a range of a chunk. `None`: the range exceeds the chunk.
    pub(in crate::store) fn new(block: Arc<ChunkBytes>, range: Range<usize>) -> Option<Self> {
        block.bytes.get(range.clone())?;
        Some(Self { block, range })
    }

    /// Lends bytes that `fill` writes into a recycled, uncleared buffer of `length` bytes. `None`: the budget has no
    /// buffer.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn made<E>(
        budget: &Budget,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Self>, E> {
        let Some((_lease, [mut bytes])) = budget.try_lease([length]) else { return Ok(None) };
        fill(&mut bytes)?;
        Ok(Self::new(Arc::new(ChunkBytes { bytes, heap: None }), 0..length))
    }

    /// A range of it; `None`: the range exceeds its end.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        Self::new(self.block.clone(), self.range.start + range.start..self.range.start + range.end)
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Checked at construction, and the chunk never changes.
        self.block.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Passes the bytes to Arrow without a copy.
impl From<Lent> for Buffer {
    fn from(lent: Lent) -> Self {
        bytes::Bytes::from_owner(lent).into()
    }
}
