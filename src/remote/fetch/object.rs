//! One version of an object, as stretches that do not overlap.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::counts::Counts;
use super::disk::KeptPlaces;
use super::stretch::{ByteStretch, Plan, again};
use crate::remote::RangeClient;
use crate::source::Error;

/// Bytes of a block of metadata, and the length from which on a range is fetched exactly.
pub(super) const BLOCK: u64 = 16 << 10;

/// Most bytes of a block whose neighbours are used.
const LARGEST_BLOCK: u64 = 1 << 20;

/// Most bytes of a stretch of values. Its memory returns when all of it has been read.
const LONGEST: u64 = 1 << 20;

/// A store that made its reader wait for this long is not asked again for as long.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// How bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Exactly, to be read once.
    Exactly,
    /// With the blocks around them, to be kept.
    Blocks,
    /// Exactly, to be kept.
    Kept,
}

/// One version of an object.
#[derive(Debug)]
pub(super) struct FetchedObject {
    /// Differs from that of any other object of the same store.
    pub number: u64,
    pub client: Arc<dyn RangeClient>,
    pub address: PathBuf,
    pub stretches: Mutex<ByteStretches>,
    /// Its stretches in the cache folder.
    pub on_disk: Arc<KeptPlaces>,
    /// Bytes that are fetched although no reader asked for them.
    pub rest: Arc<Plan>,
    /// Where to look for more of the rest. `None`: it is not being fetched, and was not.
    pub rest_from: Mutex<Option<u64>>,
    /// Whether the store has another version by now.
    pub has_changed: AtomicBool,
    /// When the store was last given up, and why.
    pub given_up: Mutex<Option<(Instant, Arc<Error>)>>,
    /// Whether its last reader is gone.
    pub is_closed: AtomicBool,
    /// Requests in flight.
    pub in_flight: AtomicU64,
    /// Requests begun while no other for it was in flight.
    pub rounds: AtomicU64,
    /// Bytes that were fetched, now or for the cache folder.
    pub fetched: AtomicU64,
}

impl FetchedObject {
    pub fn new(number: u64, client: Arc<dyn RangeClient>, on_disk: Arc<KeptPlaces>, address: PathBuf) -> Self {
        let fetched = AtomicU64::new(on_disk.bytes());
        Self {
            number,
            client,
            address,
            on_disk,
            stretches: Mutex::default(),
            rest: Arc::default(),
            rest_from: Mutex::new(None),
            has_changed: AtomicBool::new(false),
            given_up: Mutex::default(),
            is_closed: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            fetched,
        }
    }

    pub fn size(&self) -> u64 {
        self.on_disk.identity.size
    }

    /// # Errors
    /// [`Error::Changed`] once an answer has said so.
    pub fn check(&self) -> Result<(), Error> {
        let has_changed = self.has_changed.load(Ordering::Relaxed);
        if has_changed { Err(Error::Changed(self.address.clone())) } else { Ok(()) }
    }

    /// Why the store was given up a moment ago. The kernel asks again for pages that it did not get, so one read of a
    /// program would otherwise wait for several deadlines.
    pub fn failure(&self) -> Option<Error> {
        let given_up = self.given_up.lock();
        given_up.as_ref().filter(|(at, _)| at.elapsed() < MOMENT).map(|(_, error)| again(error))
    }

    /// The bytes that were not fetched.
    pub fn missing(&self) -> u64 {
        self.size().saturating_sub(self.fetched.load(Ordering::Relaxed))
    }

    /// The first gap that has bytes of a range, as far as it goes on both sides: no stretch has them, and they are not
    /// in the cache folder.
    pub fn gap(&self, stretches: &mut ByteStretches, mut range: Range<u64>) -> Option<Range<u64>> {
        loop {
            let gap = stretches.gap(range.clone(), self.size())?;
            let at = gap.start.max(range.start);
            let Some(kept) = self.on_disk.with(at) else {
                let between = self.on_disk.gap(at);
                return Some(gap.start.max(between.start)..gap.end.min(between.end));
            };
            range.start = kept.end;
        }
    }

    /// Adds stretches for the bytes of a range that neither a stretch nor the cache folder has.
    pub fn want(
        &self,
        range: Range<u64>,
        wanted: Wanted,
        plan: &Arc<Plan>,
        counts: &Arc<Counts>,
    ) -> Vec<Arc<ByteStretch>> {
        let mut stretches = self.stretches.lock();
        let (mut at, mut added) = (range.start, Vec::new());
        while let Some(gap) = self.gap(&mut stretches, at..range.end) {
            let first = gap.start.max(at);
            let part = match wanted {
                Wanted::Blocks => block(&gap, first, stretches.before(gap.start).as_deref()),
                _ => first..gap.end.min(range.end).min(first + LONGEST),
            };
            at = part.end;
            let stretch = Arc::new(ByteStretch::new(part, wanted != Wanted::Exactly, plan, counts));
            stretches.put(&stretch);
            added.push(stretch);
        }
        added
    }
}

/// The block around byte `at`, within a gap behind stretch `before`. It grows while neighbours are used.
fn block(gap: &Range<u64>, at: u64, before: Option<&ByteStretch>) -> Range<u64> {
    let start = gap.start.max(at - at % BLOCK);
    let grown = before.filter(|before| before.is_kept && before.range.end == start && before.was_used());
    let length = grown.map_or(BLOCK, |before| (before.len() * 2).clamp(BLOCK, LARGEST_BLOCK));
    start..gap.end.min((start + length).next_multiple_of(BLOCK))
}

/// ByteStretches in the order of their places.
#[derive(Debug, Default)]
pub(super) struct ByteStretches {
    slots: BTreeMap<u64, Slot>,
    /// Number of slots at which to look for those whose stretch is gone.
    most: usize,
}

/// A stretch lives here as long as it is queued; then in its request, and in the cache.
#[derive(Debug)]
struct Slot {
    stretch: Weak<ByteStretch>,
    queued: Option<Arc<ByteStretch>>,
}

impl ByteStretches {
    /// The last stretch that begins before byte `end`.
    pub fn before(&mut self, end: u64) -> Option<Arc<ByteStretch>> {
        loop {
            let (start, slot) = self.slots.range(..end).next_back()?;
            let (start, stretch) = (*start, slot.stretch.upgrade());
            if stretch.is_some() {
                return stretch;
            }
            self.slots.remove(&start);
        }
    }

    /// The first stretch that begins at byte `start` or behind.
    pub fn behind(&mut self, start: u64) -> Option<Arc<ByteStretch>> {
        loop {
            let (start, slot) = self.slots.range(start..).next()?;
            let (start, stretch) = (*start, slot.stretch.upgrade());
            if stretch.is_some() {
                return stretch;
            }
            self.slots.remove(&start);
        }
    }

    /// The stretch that has byte `at`.
    pub fn at(&mut self, at: u64) -> Option<Arc<ByteStretch>> {
        self.before(at + 1).filter(|stretch| stretch.range.end > at)
    }

    /// The first gap that has bytes of a range of an object of `size` bytes, as far as it goes on both sides.
    pub fn gap(&mut self, range: Range<u64>, size: u64) -> Option<Range<u64>> {
        let mut at = range.start;
        while at < range.end {
            match self.before(at + 1) {
                Some(before) if before.range.end > at => at = before.range.end,
                before => {
                    let end = self.behind(at).map_or(size, |behind| behind.range.start);
                    return Some(before.map_or(0, |before| before.range.end)..end);
                }
            }
        }
        None
    }

    /// Adds a stretch where none is.
    pub fn put(&mut self, stretch: &Arc<ByteStretch>) {
        if self.slots.len() >= self.most {
            self.slots.retain(|_, slot| slot.stretch.strong_count() > 0);
            self.most = (self.slots.len() * 2).max(1024);
        }
        let slot = Slot { stretch: Arc::downgrade(stretch), queued: Some(stretch.clone()) };
        self.slots.insert(stretch.range.start, slot);
    }

    /// Leaves a stretch to its request.
    pub fn release(&mut self, stretch: &Arc<ByteStretch>) {
        self.slots.entry(stretch.range.start).and_modify(|slot| slot.queued = None);
    }

    pub fn remove(&mut self, stretch: &Arc<ByteStretch>) {
        let start = stretch.range.start;
        if self.slots.get(&start).is_some_and(|slot| slot.stretch.as_ptr() == Arc::as_ptr(stretch)) {
            self.slots.remove(&start);
        }
    }
}
