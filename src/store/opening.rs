//! An opened source of any format: its bytes, and facts about them that outlive a request.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::memory::WORTH_A_SPAN;
use super::{Error, Lent, Store};
use crate::source::{Interrupt, Source};

/// Whether the identity of a source determines the values read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceConstancy {
    /// All values lie in the source, and only a rewrite changes them.
    Fixed,
    /// A writer has the source open in SWMR mode, and may append to it.
    Growing,
    /// Values may be in other files as well.
    Scattered,
}

/// One opening of a source, whatever its format: its bytes, and facts learnt about it.
///
/// Everything learnt belongs to one state of the source. When the last user drops the opening, the store drops its
/// cache entries under this opening's [serial](Opening::serial).
#[derive(Debug)]
pub struct Opening {
    serial: u64,
    store: Arc<Store>,
    source: Arc<Source>,
    content: SourceConstancy,
    /// See [`Opening::attached`].
    attached: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Number of small columns whose statistics were cached.
    small: AtomicU64,
    /// Number of small columns whose statistics were looked up without success.
    missed: AtomicU64,
    /// Facts learnt while the source is open, such as verdicts on search indexes.
    notes: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl Opening {
    /// Most single-block columns of a source whose statistics are cached. Scanning their values costs little more than
    /// reading the cache.
    pub(crate) const MOST_SMALL: u64 = 1024;

    /// A new opening of `source`.
    pub fn new(store: Arc<Store>, source: Arc<Source>, content: SourceConstancy) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let (attached, small, missed, notes) = Default::default();
        Arc::new(Self { serial, store, source, content, attached, small, missed, notes })
    }

    /// Number of this opening, unique in the process: part of its cache keys.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The source of its bytes.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The store for decoded chunks.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Checks that bytes read so far belong to the source as opened. A [growing](SourceConstancy::Growing) source
    /// always passes.
    ///
    /// # Errors
    /// [`source::Error::Changed`](crate::source::Error::Changed) after a rewrite in place.
    pub fn check(&self) -> Result<(), Error> {
        if self.content == SourceConstancy::Growing { Ok(()) } else { Ok(self.source.check()?) }
    }

    /// Length of the source in bytes: as opened, or the current one if it grows.
    ///
    /// # Errors
    /// As [`Source::stat`].
    pub fn size(&self) -> Result<u64, Error> {
        let grows = self.content == SourceConstancy::Growing;
        Ok(if grows { self.source.stat()?.identity.size } else { self.source.identity().size })
    }

    /// Fills `out` from byte `offset` on, and counts the bytes.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        self.source.read_at(offset, out, interrupt)?;
        self.store.counters().bytes_read.add(out.len() as u64);
        Ok(())
    }

    /// Appends `length` bytes from byte `offset` on to `out`, and counts them.
    ///
    /// # Errors
    /// As [`Source::append_at`].
    pub fn append_at(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.source.append_at(offset, length, out, interrupt)?;
        self.store.counters().bytes_read.add(length as u64);
        Ok(())
    }

    /// Reads `length` bytes from byte `offset` on into a buffer of the budget. `None`: the budget has no buffer, or
    /// copying so few bytes costs less.
    ///
    /// # Errors
    /// As [`Opening::read_at`].
    pub fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        if length < WORTH_A_SPAN {
            return Ok(None);
        }
        Lent::made(self.store.budget(), length, |bytes| self.read_at(offset, bytes, interrupt))
    }

    /// Whether the identity determines the content, so that facts learnt about it may be cached.
    pub fn has_one_content(&self) -> bool {
        self.content == SourceConstancy::Fixed
    }

    /// Finds the entry `what` about this source in the user's cache folder; see [`KeptFolder::get`]. `None` if the
    /// identity does not determine the content.
    pub fn kept(&self, what: &str) -> Option<Vec<u8>> {
        if !self.has_one_content() {
            return None;
        }
        let found = self.store.kept().get(&self.source.identity(), what)?;
        self.store.counters().kept_found.add(1);
        Some(found)
    }

    /// As [`Opening::kept`], for statistics of a single block. After very many misses, scanning the values of the next
    /// column costs less than a lookup in the cache folder.
    pub(crate) fn kept_of_few(&self, what: &str) -> Option<Vec<u8>> {
        if self.missed.load(Ordering::Relaxed) >= Self::MOST_SMALL {
            return None;
        }
        let found = self.kept(what);
        self.missed.fetch_add(u64::from(found.is_none()), Ordering::Relaxed);
        found
    }

    /// Caches a result computed from this source as `what`; returns whether it did. See [`KeptFolder::put`]. Caches
    /// nothing if the source may have changed since it was opened.
    pub fn keep(&self, what: &str, bytes: &[u8]) -> bool {
        let kept = self.put(what, bytes);
        self.store.counters().kept_written.add(u64::from(kept));
        kept
    }

    /// Whether to cache the statistics of one more column, which is small or not: a file may have very many small ones.
    pub(crate) fn may_keep(&self, is_small: bool) -> bool {
        !is_small || self.small.fetch_add(1, Ordering::Relaxed) < Self::MOST_SMALL
    }

    /// As [`Opening::keep`], without counting.
    pub(super) fn put(&self, what: &str, bytes: &[u8]) -> bool {
        self.why_not_kept().is_none() && self.store.kept().put(&self.source.identity(), what, bytes)
    }

    /// Why [`Opening::keep`] caches nothing, if the source or the options rule it out.
    pub fn why_not_kept(&self) -> Option<&'static str> {
        if self.store.kept().folder().is_none() {
            return Some("there is no cache folder");
        }
        match self.content {
            SourceConstancy::Growing => Some("a writer has the file open in SWMR mode, so its content may change"),
            SourceConstancy::Scattered => {
                Some("with --follow-external values may lie in other files, whose changes go unnoticed")
            }
            SourceConstancy::Fixed if !self.source.was_settled() => {
                Some("the file had just been written when it was opened")
            }
            SourceConstancy::Fixed => {
                self.source.check().is_err().then_some("the file has changed since it was opened")
            }
        }
    }

    /// The note `what` of this source, from this opening or from the cache folder.
    pub fn recall(&self, what: &str) -> Option<Arc<[u8]>> {
        if let Some(known) = self.notes.lock().get(what) {
            return Some(known.clone());
        }
        let kept: Arc<[u8]> = self.kept(what)?.into();
        Some(self.notes.lock().entry(what.to_owned()).or_insert(kept).clone())
    }

    /// Records the fact `what` for as long as the source is open, and caches it if it is `lasting`. Returns whether it
    /// is cached.
    pub fn note(&self, what: &str, bytes: &[u8], lasting: bool) -> bool {
        self.notes.lock().insert(what.to_owned(), bytes.into());
        lasting && self.keep(what, bytes)
    }

    /// Whether files publish the fact `what`: `now`, if this is the first question about this state of the source.
    pub fn shows(&self, what: &str, now: bool) -> bool {
        // The source may have been opened before, and dropped with its last user.
        self.store.decisions().take(&self.source.identity(), what, now)
    }

    /// State of the layer above that lives as long as the opening, made at the first call. `None`: the opening has
    /// state of another type.
    pub(crate) fn attached<T: Any + Default + Send + Sync>(&self) -> Option<&T> {
        self.attached.get_or_init(|| Box::<T>::default()).downcast_ref()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.store.forget(self.serial);
    }
}
