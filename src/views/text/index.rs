//! The offset of each block of a file: sums of lengths that a pass learns.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::learnt::pass::{Keeper, Measure, Pass, PassProgress};
use crate::source::Interrupt;
use crate::store::Error;

/// Where a block lies: its number, its first byte, its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub block: usize,
    pub start: u64,
    pub length: u64,
}

/// The offsets of a file's blocks, as far as they are known.
pub(super) struct Index {
    pass: Arc<Pass<u64>>,
    /// Offset of each block, and the end of the last one, once all are known.
    complete: OnceLock<Vec<u64>>,
    /// Offsets of the blocks before the first unknown one, and the end of these blocks.
    offsets: Mutex<Vec<u64>>,
}

impl Index {
    /// Returns an index of `blocks` unknown blocks; a step of the pass measures `per_step` of them.
    pub fn new(blocks: usize, per_step: usize, measure: Arc<dyn Measure<u64>>, keeper: Option<Keeper>) -> Self {
        Self {
            pass: Pass::new(blocks, per_step, measure, keeper),
            complete: OnceLock::new(),
            offsets: Mutex::new(vec![0]),
        }
    }

    /// Returns the bytes of all blocks, once they are known.
    pub fn total(&self) -> Option<u64> {
        self.offsets_of(self.pass.known()?).last().copied()
    }

    /// Returns the bytes of all blocks, if they are known or kept in the cache folder.
    pub fn found(&self) -> Option<u64> {
        self.offsets_of(self.pass.found()?).last().copied()
    }

    /// Returns the bytes of all blocks; waits for a pass over unknown ones.
    ///
    /// # Errors
    /// See [`Pass::all`].
    pub fn measured(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        Ok(self.offsets_of(self.pass.all(interrupt)?).last().copied().unwrap_or(0))
    }

    fn offsets_of(&self, lengths: &[u64]) -> &[u64] {
        self.complete.get_or_init(|| {
            // The partial offsets are no longer needed.
            *self.offsets.lock() = vec![0];
            let mut offsets = Vec::with_capacity(lengths.len() + 1);
            offsets.push(0);
            extend(&mut offsets, lengths);
            offsets
        })
    }

    /// Returns the block with byte `offset`, if it is known.
    pub fn locate(&self, offset: u64) -> Option<Located> {
        match self.pass.known() {
            Some(lengths) => locate(self.offsets_of(lengths), offset),
            None => self.pass.with_first(|lengths| {
                let mut offsets = self.offsets.lock();
                extend(&mut offsets, lengths);
                locate(&offsets, offset)
            }),
        }
    }

    /// Returns the block with byte `offset`, after a pass over unknown blocks before it. `None`: `offset` lies past the
    /// end.
    ///
    /// # Errors
    /// See [`Pass::until`].
    pub fn ensure(&self, offset: u64, interrupt: &Interrupt) -> Result<Option<Located>, Error> {
        let reached = |lengths: &[u64]| {
            let mut offsets = self.offsets.lock();
            extend(&mut offsets, lengths);
            offsets.last().is_some_and(|&end| end > offset)
        };
        self.pass.until(reached, interrupt)?;
        Ok(self.locate(offset))
    }

    /// Returns the first unknown block, and its first byte.
    pub fn frontier(&self) -> Option<(usize, u64)> {
        if self.pass.known().is_some() {
            return None;
        }
        self.pass.with_first(|lengths| {
            let mut offsets = self.offsets.lock();
            extend(&mut offsets, lengths);
            Some((lengths.len(), *offsets.get(lengths.len())?))
        })
    }

    /// Records the lengths of blocks from `first` on.
    pub fn record(&self, first: usize, lengths: Vec<u64>) {
        self.pass.record(first, lengths);
    }

    /// Returns the progress of the pass.
    pub fn progress(&self) -> PassProgress {
        self.pass.progress()
    }

    /// Returns the number of threads that wait for the pass.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.pass.waiting()
    }
}

/// Extends `offsets` by blocks of these lengths.
fn extend(offsets: &mut Vec<u64>, lengths: &[u64]) {
    let Some(known) = offsets.len().checked_sub(1) else { return };
    let mut end = offsets.last().copied().unwrap_or(0);
    for length in lengths.iter().skip(known) {
        end = end.saturating_add(*length);
        offsets.push(end);
    }
}

pub(super) fn locate(offsets: &[u64], offset: u64) -> Option<Located> {
    let block = offsets.partition_point(|&start| start <= offset).checked_sub(1)?;
    let (start, end) = (*offsets.get(block)?, *offsets.get(block + 1)?);
    Some(Located { block, start, length: end - start })
}
