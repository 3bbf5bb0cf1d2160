//! Bytes lent out of the cache.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::chunks::Block;

/// A stretch of a decoded chunk, kept alive by whoever reads it: it spares a copy on the way to the reader.
#[derive(Clone, Debug)]
pub struct Lent {
    block: Arc<Block>,
    range: Range<usize>,
}

impl Lent {
    /// `None` where the range passes the end of the chunk.
    pub(super) fn new(block: Arc<Block>, range: Range<usize>) -> Option<Self> {
        block.bytes.get(range.clone())?;
        Some(Self { block, range })
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Checked when it was made; the chunk never changes.
        self.block.bytes.get(self.range.clone()).unwrap_or_default()
    }
}
