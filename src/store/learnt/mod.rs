//! An opened source, and what is learnt of it: passes, statistics of columns, verdicts, decisions, what is kept.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Opening`] | one opening of a source of any format; what is learnt belongs to it |
//! | [`pass`] | passes over all values of a file shown |
//! | [`Learner`] | gathers the statistics of one column while its values pass by |
//! | [`Observed`] | rows whose values a learner sees |
//! | [`Kept`] | the user's cache folder |
//! | `Decisions` | what a mount has decided to show |
//!
//! Statistics are learnt by a pass ([`Learner::learn`]), or in passing whenever values of a column are decoded anyway.
//! They are kept in the cache folder once every block is known, and found there by the next mount.

mod decisions;
mod kept;
mod learn;
mod learner;
mod observed;
pub mod pass;
mod ranges;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::memory::WORTH_A_SPAN;
use super::{Error, Lent, Rows, Span, Store, StoredRun};
use crate::catalogue::ColumnId;
use crate::source::Source;

pub(super) use decisions::Decisions;
pub use kept::Kept;
pub use learn::step as rows_at_once;
pub use learner::Learner;
use learner::Reading;
pub use observed::Observed;

/// Columns of one block whose statistics are kept. A look at their values costs little more than one at what is kept.
const MOST_SMALL: u64 = 1024;

/// Learners among which those are looked for that are not used any more.
const LEAST_SWEPT: usize = 4096;

/// Whether the identity of a source stands for what is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It does: all values lie in the source, and only a rewrite changes them.
    Fixed,
    /// A writer has the source open in SWMR mode and may add to it.
    Growing,
    /// Values may lie in other files.
    Scattered,
}

/// One opening of a source, whatever its format: its bytes, and what is learnt of it.
///
/// Everything learnt belongs to one state of the source. When the last user drops the opening, the store forgets what
/// it caches under its [serial](Opening::serial).
#[derive(Debug)]
pub struct Opening {
    serial: u64,
    store: Arc<Store>,
    source: Arc<Source>,
    content: Content,
    learners: Mutex<Learners>,
    /// Columns of a few rows whose statistics were kept.
    small: AtomicU64,
    /// Columns of a few rows whose statistics were looked up in vain.
    missed: AtomicU64,
    /// Facts learnt once for as long as the source is open, such as verdicts on search indexes.
    notes: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

/// Learners by what they are learners of. They stay as long as the source is open, so that what is shown of a column
/// stays what it was; those of columns of a few rows only while they are in use or shown, for there may be very many.
#[derive(Debug)]
struct Learners {
    all: HashSet<ByReading>,
    /// How many there are when the next sweep is due.
    sweep: usize,
}

impl Default for Learners {
    fn default() -> Self {
        Self { all: HashSet::new(), sweep: LEAST_SWEPT }
    }
}

impl Learners {
    fn insert(&mut self, learner: &Arc<Learner>) {
        if self.all.len() >= self.sweep {
            self.all.retain(|ByReading(learner)| {
                !learner.is_small() || learner.is_shown() || Arc::strong_count(learner) > 1
            });
            // Doubled, so that the cost of the next sweep is spread over as many insertions.
            self.sweep = LEAST_SWEPT.max(self.all.len() * 2);
        }
        self.all.insert(ByReading(learner.clone()));
    }
}

/// A learner, found by what it is the learner of.
#[derive(Debug)]
struct ByReading(Arc<Learner>);

impl Borrow<Reading> for ByReading {
    fn borrow(&self) -> &Reading {
        self.0.reading()
    }
}

impl PartialEq for ByReading {
    fn eq(&self, other: &Self) -> bool {
        self.0.reading() == other.0.reading()
    }
}

impl Eq for ByReading {}

impl Hash for ByReading {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.reading().hash(state);
    }
}

impl Opening {
    /// An opening of `source`, with nothing learnt.
    pub fn new(store: Arc<Store>, source: Arc<Source>, content: Content) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let (learners, small, missed, notes) = Default::default();
        Arc::new(Self { serial, store, source, content, learners, small, missed, notes })
    }

    /// Number of this opening, unique in the process: what is cached of the source is cached under it.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its bytes.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Where decoded chunks are kept.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Checks that what was read belongs to the source that was opened. A source that [grows](Content::Growing) passes.
    ///
    /// # Errors
    /// [`source::Error::Changed`](crate::source::Error::Changed) after a rewrite in place.
    pub fn check(&self) -> Result<(), Error> {
        if self.content == Content::Growing { Ok(()) } else { Ok(self.source.check()?) }
    }

    /// Length of the source in bytes: as opened, or as it is now where it grows.
    ///
    /// # Errors
    /// As [`Source::metadata`].
    pub fn size(&self) -> Result<u64, Error> {
        let grows = self.content == Content::Growing;
        Ok(if grows { self.source.metadata()?.len() } else { self.source.identity().size })
    }

    /// Fills `out` from byte `offset` on, and counts the bytes.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.source.read_at(offset, out)?;
        self.store.counters().bytes_read.add(out.len() as u64);
        Ok(())
    }

    /// Appends `length` bytes from byte `offset` on to `out`, and counts them.
    ///
    /// # Errors
    /// As [`Source::append_at`].
    pub fn append_at(&self, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.source.append_at(offset, length, out)?;
        self.store.counters().bytes_read.add(length as u64);
        Ok(())
    }

    /// Reads `length` bytes from byte `offset` on into a buffer of the budget; `None` where there is no buffer, or a
    /// copy of so few bytes costs less.
    ///
    /// # Errors
    /// As [`Opening::read_at`].
    pub fn lend(&self, offset: u64, length: usize) -> Result<Option<Lent>, Error> {
        if length < WORTH_A_SPAN {
            return Ok(None);
        }
        Lent::made(self.store.budget(), length, |bytes| self.read_at(offset, bytes))
    }

    /// The span of `length` bytes that are shown as they are stored from byte `offset` on.
    pub fn span(self: &Arc<Self>, offset: u64, length: usize) -> Span {
        StoredRun::span(self, offset, length)
    }

    /// Whether its identity stands for its content, so that what is learnt of it may be kept.
    pub fn has_one_content(&self) -> bool {
        self.content == Content::Fixed
    }

    /// Finds what is kept of this source as `what` in the user's cache folder; see [`Kept::get`]. Nothing is kept of a
    /// source whose identity does not stand for its content.
    pub fn kept(&self, what: &str) -> Option<Vec<u8>> {
        if !self.has_one_content() {
            return None;
        }
        let found = self.store.kept().get(&self.source.identity(), what)?;
        self.store.counters().kept_found.add(1);
        Some(found)
    }

    /// As [`Opening::kept`], for statistics of one block of values. After very many lookups in vain, a look at the
    /// values of the next column costs less than one at the cache folder.
    fn kept_of_few(&self, what: &str) -> Option<Vec<u8>> {
        if self.missed.load(Ordering::Relaxed) >= MOST_SMALL {
            return None;
        }
        let found = self.kept(what);
        self.missed.fetch_add(u64::from(found.is_none()), Ordering::Relaxed);
        found
    }

    /// Keeps what was computed from this source as `what`; returns whether it is kept. See [`Kept::put`]. Nothing is
    /// kept where the source may have changed since it was opened.
    pub fn keep(&self, what: &str, bytes: &[u8]) -> bool {
        let kept = self.put(what, bytes);
        self.store.counters().kept_written.add(u64::from(kept));
        kept
    }

    /// Whether statistics are kept of one more column, which has one block or more: a file may have very many of one.
    fn may_keep(&self, is_small: bool) -> bool {
        !is_small || self.small.fetch_add(1, Ordering::Relaxed) < MOST_SMALL
    }

    /// As [`Opening::keep`], uncounted.
    pub(super) fn put(&self, what: &str, bytes: &[u8]) -> bool {
        self.why_not_kept().is_none() && self.store.kept().put(&self.source.identity(), what, bytes)
    }

    /// Why [`Opening::keep`] keeps nothing, where something about the source or the options is in the way.
    pub fn why_not_kept(&self) -> Option<&'static str> {
        if self.store.kept().folder().is_none() {
            return Some("there is no cache folder");
        }
        match self.content {
            Content::Growing => Some("a writer has the file open in SWMR mode, so its content may change"),
            Content::Scattered => {
                Some("with --follow-external values may lie in other files, whose changes nothing tells")
            }
            Content::Fixed if !self.source.was_settled() => Some("the file had just been written when it was opened"),
            Content::Fixed => self.source.check().is_err().then_some("the file has changed since it was opened"),
        }
    }

    /// The note of this source under `what`: made since it was opened, or kept before.
    pub fn recall(&self, what: &str) -> Option<Arc<[u8]>> {
        if let Some(known) = self.notes.lock().get(what) {
            return Some(known.clone());
        }
        let kept: Arc<[u8]> = self.kept(what)?.into();
        Some(self.notes.lock().entry(what.to_owned()).or_insert(kept).clone())
    }

    /// Remembers what was learnt as `what` for as long as the source is open, and keeps it if it is `lasting`. Returns
    /// whether it is kept.
    pub fn note(&self, what: &str, bytes: &[u8], lasting: bool) -> bool {
        self.notes.lock().insert(what.to_owned(), bytes.into());
        lasting && self.keep(what, bytes)
    }

    /// Whether files show what is known as `what`: the answer `now`, if this state of the source is asked for the first
    /// time.
    pub fn shows(&self, what: &str, now: bool) -> bool {
        // The source may have been opened before, and forgotten when its last user was gone.
        self.store.decisions().take(&self.source.identity(), what, now)
    }

    /// The learner of a column, always the same one; `path` is what it is displayed as. `None` for types without order,
    /// and for sources whose identity does not stand for their content.
    pub fn learner(self: &Arc<Self>, path: &str, column: ColumnId, rows: &dyn Rows) -> Option<Arc<Learner>> {
        if !self.has_one_content() {
            return None;
        }
        let mut learners = self.learners.lock();
        if let Some(known) = learners.all.get(&Reading::new(column, rows)) {
            return Some(known.0.clone());
        }
        let fresh = Arc::new(Learner::new(&Arc::downgrade(self), path, column, rows)?);
        learners.insert(&fresh);
        Some(fresh)
    }

    /// The learners of columns opened so far, by path.
    pub fn learners(&self) -> Vec<Arc<Learner>> {
        let mut learners: Vec<_> = self.learners.lock().all.iter().map(|learner| learner.0.clone()).collect();
        learners.sort_by(|a, b| a.path().cmp(b.path()));
        learners
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.store.forget(self.serial);
    }
}
