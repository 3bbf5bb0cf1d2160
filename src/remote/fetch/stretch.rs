//! ByteStretches of an object: planned, in flight, or held.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard};

use super::counts::Counts;
use crate::source::{Error, Interrupt};
use crate::store::Reservation;

/// How often a waiting reader looks at its interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// A plan whose bytes lie unread for this long has lost its reader.
const STALE: Duration = Duration::from_secs(5);

/// Most runs of unread bytes to remember of a stretch that stays after having been read.
const MOST_UNREAD: usize = 64;

/// Ranges that were planned together. They are given up together, once their reader is gone.
#[derive(Debug, Default)]
pub(super) struct Plan {
    ended: AtomicBool,
    /// When bytes of it first arrived, or were last read.
    touched: Mutex<Option<Instant>>,
}

impl Plan {
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.touched.lock().is_some_and(|touched| touched.elapsed() > STALE)
    }
}

/// Bytes of an object that one request brings.
#[derive(Debug)]
pub(super) struct ByteStretch {
    pub range: Range<u64>,
    /// Whether it stays after having been read, as metadata does.
    pub is_kept: bool,
    pub plan: Arc<Plan>,
    counts: Arc<Counts>,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Whether a reader waits, or has waited, for it.
    is_wanted: bool,
    /// The bytes that arrived so far.
    bytes: Vec<u8>,
    /// Parts of the range that no reader has taken.
    unread: Vec<Range<u64>>,
    /// Its share of [`Counts::outstanding`].
    outstanding: u64,
    memory: Option<Reservation>,
}

#[derive(Debug)]
enum Phase {
    Queued,
    InFlight,
    Held,
    /// Given up: it must be asked for again.
    Dropped,
    Failed(Arc<Error>),
}

/// The result of reading a stretch.
pub(super) enum Reading {
    Copied {
        bytes: usize,
        /// Whether the reader had to wait.
        waited: Duration,
        /// Whether the stretch may go.
        is_spent: bool,
    },
    /// The stretch was given up.
    Gone,
}

impl ByteStretch {
    pub fn new(range: Range<u64>, is_kept: bool, plan: &Arc<Plan>, counts: &Arc<Counts>) -> Self {
        let state = State {
            phase: Phase::Queued,
            is_wanted: false,
            bytes: Vec::new(),
            unread: vec![range.clone()],
            outstanding: 0,
            memory: None,
        };
        let (plan, counts) = (plan.clone(), counts.clone());
        Self { range, is_kept, plan, counts, state: Mutex::new(state), news: Condvar::new() }
    }

    /// One whose bytes are there.
    pub fn held(
        range: Range<u64>,
        bytes: Vec<u8>,
        memory: Reservation,
        plan: &Arc<Plan>,
        counts: &Arc<Counts>,
    ) -> Self {
        let mut held = Self::new(range, true, plan, counts);
        let state = held.state.get_mut();
        (state.phase, state.bytes, state.memory) = (Phase::Held, bytes, Some(memory));
        state.unread.clear();
        held
    }

    /// Its bytes, once it is held.
    pub fn bytes(&self) -> MappedMutexGuard<'_, [u8]> {
        MutexGuard::map(self.state.lock(), |state| &mut *state.bytes)
    }

    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether bytes of it have been read.
    pub fn was_used(&self) -> bool {
        !matches!(&*self.state.lock().unread, [unread] if *unread == self.range)
    }

    /// Notes that a reader waits for it; whether it waits for its request.
    pub fn want(&self) -> bool {
        let mut state = self.state.lock();
        state.is_wanted = true;
        matches!(state.phase, Phase::Queued)
    }

    pub fn is_wanted(&self) -> bool {
        self.state.lock().is_wanted
    }

    /// Puts a queued stretch in flight; `false`: it is no longer queued.
    pub fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let is_queued = matches!(state.phase, Phase::Queued);
        if is_queued {
            state.phase = Phase::InFlight;
            state.outstanding = self.len();
            self.counts.outstanding.fetch_add(self.len(), Ordering::Relaxed);
        }
        is_queued
    }

    /// Gives it room for its bytes.
    pub fn give(&self, memory: Reservation) {
        let mut state = self.state.lock();
        state.bytes.reserve_exact(self.len() as usize);
        state.memory = Some(memory);
    }

    /// Gives it up, unless a reader waits or it is in flight.
    pub fn drop_unwanted(&self) -> bool {
        let mut state = self.state.lock();
        let drops = !state.is_wanted && matches!(state.phase, Phase::Queued);
        if drops {
            state.phase = Phase::Dropped;
        }
        drops
    }

    /// Gives it up; those who wait for it may ask again.
    pub fn drop_bytes(&self) {
        self.close(Phase::Dropped);
    }

    /// Tells those who wait why its bytes do not come.
    pub fn fail(&self, error: Arc<Error>) {
        self.close(Phase::Failed(error));
    }

    fn close(&self, phase: Phase) {
        let mut state = self.state.lock();
        state.phase = phase;
        self.settle(&mut state, 0);
        (state.bytes, state.memory) = (Vec::new(), None);
        drop(state);
        self.news.notify_all();
    }

    /// Takes the next bytes.
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        state.bytes.extend_from_slice(bytes);
        if self.is_kept {
            let missing = self.len() - state.bytes.len() as u64;
            self.settle(&mut state, missing);
        }
        drop(state);
        self.plan.touched.lock().get_or_insert_with(Instant::now);
        self.news.notify_all();
    }

    /// Notes that all its bytes are there; whether it may go.
    pub fn hold(&self) -> bool {
        let mut state = self.state.lock();
        state.phase = Phase::Held;
        state.unread.is_empty() && !self.is_kept
    }

    fn settle(&self, state: &mut State, outstanding: u64) {
        let before = std::mem::replace(&mut state.outstanding, outstanding);
        self.counts.outstanding.fetch_sub(before - outstanding, Ordering::Relaxed);
    }

    /// Copies its bytes from `at` on into the beginning of `out`, as many as both have; waits for them.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and that of its request.
    pub fn read(&self, at: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<Reading, Error> {
        let end = self.range.end.min(at + out.len() as u64);
        let within = (at - self.range.start) as usize..(end - self.range.start) as usize;
        let mut state = self.state.lock();
        let mut begun = None;
        while state.bytes.len() < within.end {
            match &state.phase {
                Phase::Failed(error) => return Err(again(error)),
                Phase::Dropped => return Ok(Reading::Gone),
                Phase::Queued | Phase::InFlight | Phase::Held => {}
            }
            interrupt.check()?;
            begun.get_or_insert_with(Instant::now);
            self.news.wait_for(&mut state, LOOK);
        }
        out[..within.len()].copy_from_slice(&state.bytes[within.clone()]);
        let before = total(&state.unread);
        state.unread = without(&state.unread, &(at..end));
        if self.is_kept && state.unread.len() > MOST_UNREAD {
            state.unread.clear();
        }
        let after = total(&state.unread);
        self.counts.used.add(before - after);
        if !self.is_kept {
            self.settle(&mut state, after);
        }
        let is_spent = after == 0 && !self.is_kept && matches!(state.phase, Phase::Held);
        drop(state);
        *self.plan.touched.lock() = Some(Instant::now());
        let waited = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        Ok(Reading::Copied { bytes: within.len(), waited, is_spent })
    }
}

impl Drop for ByteStretch {
    fn drop(&mut self) {
        self.counts.outstanding.fetch_sub(self.state.get_mut().outstanding, Ordering::Relaxed);
    }
}

fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Ranges without what lies in another.
fn without(ranges: &[Range<u64>], taken: &Range<u64>) -> Vec<Range<u64>> {
    let parts = |range: &Range<u64>| [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end];
    ranges.iter().flat_map(parts).filter(|range| !range.is_empty()).collect()
}

/// The same error, for one more reader.
pub(super) fn again(error: &Arc<Error>) -> Error {
    match &**error {
        Error::Changed(path) => Error::Changed(path.clone()),
        Error::Io { path, error: cause } => {
            let cause = match cause.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(cause.kind(), Shared(error.clone())),
            };
            Error::Io { path: path.clone(), error: cause }
        }
        other => Error::Io { path: Default::default(), error: io::Error::other(other.to_string()) },
    }
}

/// The cause of an error that several readers get.
#[derive(Debug)]
struct Shared(Arc<Error>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Error::Io { error, .. } => error.fmt(f),
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for Shared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Error::Io { error, .. } => error.get_ref().map(|cause| cause as _),
            _ => None,
        }
    }
}
