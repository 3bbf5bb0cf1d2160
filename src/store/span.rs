//! The location of the bytes of an answer.

use std::sync::Arc;

use super::memory::WORTH_A_SPAN;
use super::{Error, Lent, Opening};
use crate::source::{Interrupt, ReadLease, Source};

/// Where the first bytes of a range are, up to the first change of place. Never empty, nor longer than the range.
#[derive(Clone, Debug)]
pub enum Span {
    /// To be rendered: this many bytes.
    Made(usize),
    /// Already decoded.
    Lent(Lent),
    /// In the file, unchanged.
    Stored(StoredRun),
}

impl Span {
    /// Number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        match self {
            Span::Made(length) => *length,
            Span::Lent(lent) => lent.len(),
            Span::Stored(run) => run.length,
        }
    }
}

/// Contiguous bytes of a source that are shown as stored.
#[derive(Clone, Debug)]
pub struct StoredRun {
    opening: Arc<Opening>,
    address: u64,
    length: usize,
}

impl StoredRun {
    /// The span of `length` bytes from byte `address` of the source on.
    pub(super) fn span(opening: &Arc<Opening>, address: u64, length: usize) -> Span {
        if length < WORTH_A_SPAN {
            return Span::Made(length);
        }
        Span::Stored(Self { opening: opening.clone(), address, length })
    }

    /// The source.
    pub fn source(&self) -> &Source {
        self.opening.source()
    }

    /// Position of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Appends `next`, if it is adjacent in the file.
    ///
    /// # Errors
    /// Returns `next` if it is not.
    pub fn join(&mut self, next: StoredRun) -> Result<(), StoredRun> {
        let end = self.address.checked_add(self.length as u64);
        if !Arc::ptr_eq(&self.opening, &next.opening) || end != Some(next.address) {
            return Err(next);
        }
        self.length += next.length;
        Ok(())
    }

    /// Appends its bytes to `out`.
    ///
    /// # Errors
    /// As [`Opening::append_at`], and as [`Opening::check`] if the source has changed.
    pub(super) fn append(&self, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        interrupt.check()?;
        let read = self.opening.append_at(self.address, self.length, out, interrupt);
        self.opening.check().and(read)
    }

    /// Counts the bytes as passed to the kernel, under a lease.
    pub fn count_passed_on(&self, _: &ReadLease) {
        let counters = self.opening.store().counters();
        counters.bytes_read.add(self.length as u64);
        counters.bytes_passed_on.add(self.length as u64);
    }
}
