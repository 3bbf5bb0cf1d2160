//! One memory budget for everything cached.
//!
//! Decoded chunks, heap collections, chunk maps and rendered blocks all take their memory from one [`Budget`]: as a
//! [`Buffer`] (bytes, returned to a pool) or as a [`Reservation`] (bytes held elsewhere). When the budget is spent, the
//! least recently used entry of all [`Cache`](super::Cache)s is evicted.
//!
//! Waiting for memory must never deadlock, so there are two kinds of holders:
//!
//! - A **lease** of buffers serves decoding. Its holder waits for nothing else, so it ends soon, and others may wait
//!   for it. If nothing can be evicted and no lease is active, all memory is held by threads that may be waiting for
//!   this very lease: it is then granted beyond the budget. A request larger than the whole budget is granted the same
//!   way, one at a time. A chunk that takes seconds to decode must not stall readers of other chunks: a lease of more
//!   than a quarter of the budget leaves an eighth of it free; granted beyond the budget, it leaves half of it to all
//!   others as long as its buffers live.
//! - A **reservation** may be held while waiting. It is never granted beyond the budget, and fails as too large if
//!   nothing was released for [`STALLED`].

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::flight::try_memory;
use super::idle::{Idle, rounded, serves};
use super::pages::ZeroedPages;
use crate::source::{Interrupt, Interrupted};
use crate::store::Error;

/// How long a waiter sleeps between checks of its interrupt: short compared with the second within which Ctrl-C must
/// work.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Buffers, and the lease that they belong to.
pub(in crate::store) type Leased<const N: usize> = (DecodingLease, [Buffer; N]);

/// How long a reservation waits without any release before it fails.
const STALLED: Duration = Duration::from_secs(10);

/// The memory limit for everything cached. Clones share it.
#[derive(Clone)]
pub struct Budget(Arc<Shared>);

struct Shared {
    limit: u64,
    state: Mutex<State>,
    released: Condvar,
    /// Caches that can evict entries.
    caches: Mutex<Vec<Weak<dyn Evict>>>,
    /// A clock of uses, so that caches agree on the least recently used entry.
    clock: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Bytes of all buffers (including idle ones) and reservations.
    held: u64,
    /// Idle buffers.
    idle: Idle,
    /// Active leases.
    leases: usize,
    /// Live buffers of large leases that were granted beyond the budget.
    oversized: usize,
    /// Bytes of these buffers.
    oversized_bytes: u64,
    /// Incremented whenever something is released.
    releases: u64,
}

impl State {
    /// Whether `bytes` more fit in a budget of `limit`.
    fn has_room(&self, bytes: u64, limit: u64) -> bool {
        let (held, limit) = match self.oversized {
            0 => (self.held, limit),
            _ => (self.held.saturating_sub(self.oversized_bytes), limit / 2),
        };
        held.checked_add(bytes).is_some_and(|held| held <= limit)
    }
}

/// A cache that can evict entries.
pub(super) trait Evict: Send + Sync {
    /// Time of last use of its least recently used entry.
    fn oldest(&self) -> Option<u64>;
    /// Drops the least recently used entry that is not in use; `false`: the cache has no such entry.
    fn evict(&self) -> bool;
}

/// Why a request for memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shortage {
    /// The request exceeds the budget.
    #[error("{bytes} bytes are more than the {limit} that may be held (--cache-size)")]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
        /// The whole budget.
        limit: u64,
    },
    /// The requester no longer wants the memory.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Shortage {
    /// Turns the failure into an error of the dataset at `path`.
    pub fn at(self, path: &str, what: &str) -> Error {
        match self {
            Shortage::Interrupted(interrupted) => interrupted.into(),
            Shortage::TooLarge { bytes, limit } => {
                Error::TooLarge { path: path.into(), what: what.into(), bytes, limit, option: "--cache-size" }
            }
        }
    }
}

/// A share of the budget, returned when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

/// Bytes of the budget, returned to its pool when dropped. Their initial content is arbitrary.
#[derive(Debug)]
pub struct Buffer {
    budget: Budget,
    bytes: ZeroedPages,
    length: usize,
    oversized: bool,
}

/// Marks that decoding is in progress, until dropped. See the module's description.
#[derive(Debug)]
pub(in crate::store) struct DecodingLease(Budget);

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared {
            limit,
            state: Mutex::default(),
            released: Condvar::new(),
            caches: Mutex::default(),
            clock: AtomicU64::new(0),
        }))
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes held now, by buffers (including idle ones) and reservations.
    pub fn held(&self) -> u64 {
        self.0.state.lock().held
    }

    /// Reserves `bytes`; evicts least recently used entries and waits for others if need be.
    ///
    /// # Errors
    /// [`Shortage::TooLarge`] if they exceed the budget, or if nothing is released for 10 s; [`Shortage::Interrupted`].
    pub fn reserve(&self, bytes: u64, interrupt: &Interrupt) -> Result<Reservation, Shortage> {
        let too_large = Shortage::TooLarge { bytes, limit: self.0.limit };
        if bytes > self.0.limit {
            return Err(too_large);
        }
        let mut patience = Patience::new();
        loop {
            if let Some(reservation) = self.try_reserve(bytes) {
                return Ok(reservation);
            }
            interrupt.check()?;
            if !self.wait(&mut patience) {
                return Err(too_large);
            }
        }
    }

    /// Reserves `bytes` if that takes no waiting; may evict least recently used entries.
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        loop {
            let mut state = self.0.state.lock();
            if state.has_room(bytes, self.0.limit) {
                state.held += bytes;
                return Some(Reservation { budget: self.clone(), bytes });
            }
            if bytes > self.0.limit {
                return None;
            }
            drop(state);
            if !self.free_something(&[]) {
                return None;
            }
        }
    }

    /// Counts `bytes` that a lease turned out to need beside its buffers, or that exceed the budget. A lease must not
    /// wait (see the module's description), so this goes beyond the budget, and the next request makes up for it.
    pub(crate) fn charge(&self, bytes: u64) -> Reservation {
        let mut state = self.0.state.lock();
        state.held = state.held.saturating_add(bytes);
        Reservation { budget: self.clone(), bytes }
    }

    /// Leases buffers of these sizes for decoding; waits for others if need be.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::NoMemory`] if the system is out of memory.
    pub(in crate::store) fn lease<const N: usize>(
        &self,
        sizes: [usize; N],
        interrupt: &Interrupt,
    ) -> Result<Leased<N>, Error> {
        while let Err(error) = try_memory(total(&sizes)) {
            if !self.free_something(&sizes) {
                return Err(error);
            }
        }
        let mut patience = Patience::new();
        loop {
            if let Some(lease) = self.try_lease(sizes) {
                return Ok(lease);
            }
            let mut state = self.0.state.lock();
            if state.leases == 0 && (total(&sizes) <= self.0.limit || state.oversized == 0) {
                let large = self.is_large(total(&sizes));
                return Ok(self.grant(&mut state, sizes, large));
            }
            drop(state);
            interrupt.check()?;
            self.wait(&mut patience);
        }
    }

    /// Leases buffers of these sizes for decoding, if that takes no waiting.
    pub(in crate::store) fn try_lease<const N: usize>(&self, sizes: [usize; N]) -> Option<Leased<N>> {
        loop {
            let mut state = self.0.state.lock();
            let fresh = state.idle.missing(&sizes);
            // Slow work leaves room for fast work.
            let spare = if self.is_large(fresh) { self.0.limit / 8 } else { 0 };
            if state.has_room(fresh.saturating_add(spare), self.0.limit) {
                return Some(self.grant(&mut state, sizes, false));
            }
            drop(state);
            if !self.free_something(&sizes) {
                return None;
            }
        }
    }

    /// Whether this is a large share of the budget.
    fn is_large(&self, bytes: u64) -> bool {
        bytes > self.0.limit / 4
    }

    /// Hands out buffers, from the pool if they fit; `oversized` ones do not count against the budget.
    fn grant<const N: usize>(
        &self,
        state: &mut State,
        sizes: [usize; N],
        oversized: bool,
    ) -> (DecodingLease, [Buffer; N]) {
        state.leases += 1;
        let missing = state.idle.missing(&sizes);
        let buffers = sizes.map(|length| {
            let bytes = match state.idle.take(length) {
                Some(bytes) => bytes,
                None => self.fresh(state, rounded(length), missing),
            };
            if oversized {
                state.oversized += 1;
                state.oversized_bytes += bytes.len() as u64;
            }
            Buffer { budget: self.clone(), bytes, length, oversized }
        });
        (DecodingLease(self.clone()), buffers)
    }

    /// Allocates and counts a buffer. If the budget has room beyond the `missing` bytes of the whole lease, the other
    /// buffers of its huge page are allocated with it, as idle ones.
    fn fresh(&self, state: &mut State, length: usize, missing: u64) -> ZeroedPages {
        let others = ZeroedPages::sharing(length).map_or(0, |count| ((count - 1) * length) as u64);
        let has_room = others > 0 && state.has_room(missing.saturating_add(others), self.0.limit);
        let mut parts = if has_room { ZeroedPages::shared(length) } else { Vec::new() };
        state.held += (length * parts.len().max(1)) as u64;
        let first = parts.pop().unwrap_or_else(|| ZeroedPages::new(length));
        parts.into_iter().for_each(|part| state.idle.put(part));
        first
    }

    /// Drops an idle buffer that serves none of the `wanted` lengths; failing that, the least recently used entry of
    /// all caches; failing that, any idle buffer.
    fn free_something(&self, wanted: &[usize]) -> bool {
        self.free_idle(|idle| !wanted.iter().any(|length| serves(idle, *length)))
            || self.evict()
            || self.free_idle(|_| true)
    }

    /// Drops an idle buffer whose length `which` accepts.
    fn free_idle(&self, which: impl Fn(usize) -> bool) -> bool {
        let mut state = self.0.state.lock();
        let freed = state.idle.take_largest(which);
        state.held -= freed.as_ref().map_or(0, |freed| freed.len() as u64);
        // Returned to the system outside the lock.
        drop(state);
        freed.is_some()
    }

    /// Drops the least recently used entry of all caches that is not in use; `false`: there is no such entry.
    fn evict(&self) -> bool {
        let mut caches: Vec<_> = {
            let mut caches = self.0.caches.lock();
            caches.retain(|cache| cache.strong_count() > 0);
            caches.iter().filter_map(Weak::upgrade).collect()
        };
        caches.retain(|cache| cache.oldest().is_some());
        caches.sort_by_key(|cache| cache.oldest());
        caches.iter().any(|cache| cache.evict())
    }

    /// Waits briefly for a release; `false`: for too long, nothing has been released.
    fn wait(&self, patience: &mut Patience) -> bool {
        let mut state = self.0.state.lock();
        if state.releases == patience.releases {
            self.0.released.wait_for(&mut state, LOOK);
        }
        if state.releases != patience.releases {
            *patience = Patience { releases: state.releases, since: Instant::now() };
        }
        patience.since.elapsed() < STALLED
    }

    /// Registers a cache that can evict entries.
    pub(super) fn register(&self, cache: Weak<dyn Evict>) {
        let mut caches = self.0.caches.lock();
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(cache);
    }

    /// The next tick of the clock of uses.
    pub(super) fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn release(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.state.lock();
        change(&mut state);
        state.releases = state.releases.wrapping_add(1);
        drop(state);
        self.0.released.notify_all();
    }
}

struct Patience {
    releases: u64,
    since: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { releases: 0, since: Instant::now() }
    }
}

/// Bytes that buffers of these sizes take.
fn total(sizes: &[usize]) -> u64 {
    sizes.iter().map(|size| rounded(*size) as u64).fold(0, u64::saturating_add)
}

impl Reservation {
    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the reservation to `bytes`: returns what is left over, or counts what exceeds it.
    pub fn keep(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.budget.release(|state| state.held = (state.held - before).saturating_add(bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(|state| state.held -= self.bytes);
    }
}

impl Drop for DecodingLease {
    fn drop(&mut self) {
        self.0.release(|state| state.leases -= 1);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let length = bytes.len() as u64;
        let limit = self.budget.0.limit;
        let oversized = self.oversized;
        let mut unwanted = None;
        self.budget.release(|state| {
            if oversized {
                state.oversized -= 1;
                state.oversized_bytes -= length;
            }
            // A quarter of the budget may be idle; more would only be evicted later, at a worse moment.
            if oversized || length == 0 || !state.has_room(0, limit) || state.idle.bytes() + length > limit / 4 {
                state.held -= length;
                unwanted = Some(bytes);
            } else {
                state.idle.put(bytes);
            }
        });
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit()).field("held", &self.held()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_held_is_counted_to_the_byte() {
        let budget = Budget::new(1 << 20);
        let reservation = budget.reserve(400, &Interrupt::new()).unwrap();
        assert_eq!((budget.held(), reservation.bytes()), (400, 400));
        let (lease, buffers) = budget.lease([5000, 0], &Interrupt::new()).unwrap();
        assert_eq!(budget.held(), 400 + 8192);
        assert_eq!((buffers[0].len(), buffers[1].len()), (5000, 0));
        drop((lease, buffers, reservation));
        // The buffer waits to be used again.
        assert_eq!(budget.held(), 8192);
        drop(budget.reserve(1 << 20, &Interrupt::new()).unwrap());
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn a_buffer_is_used_again() {
        let budget = Budget::new(1 << 20);
        let (lease, [mut buffer]) = budget.lease([10_000], &Interrupt::new()).unwrap();
        buffer[0] = 7;
        let place = buffer.as_ptr();
        drop((lease, buffer));
        let (_lease, [buffer]) = budget.lease([9_000], &Interrupt::new()).unwrap();
        assert_eq!((buffer.as_ptr(), buffer.len()), (place, 9_000));
    }

    #[test]
    fn a_buffer_serves_one_of_a_lease() {
        let budget = Budget::new(100_000);
        let others = budget.reserve(84_000, &Interrupt::new()).unwrap();
        drop(budget.try_lease([8192]).unwrap());
        assert!(budget.try_lease([8192, 8192]).is_none());
        drop(others);
        assert!(budget.try_lease([8192, 8192]).is_some());
    }

    #[test]
    fn what_shares_a_page_is_idle_where_there_is_room_for_the_lease_as_well() {
        let (chunk, scratch) = (1 << 20, 320 << 10);
        for (limit, held) in [(8 << 20, (2 << 20) + 6 * scratch), (2 << 20, chunk + scratch)] {
            let budget = Budget::new(limit as u64);
            let leased = budget.try_lease([chunk, scratch]).unwrap();
            assert_eq!(budget.held(), held as u64, "of {limit}");
            drop(leased);
        }
    }

    #[test]
    fn more_than_the_budget_cannot_be_reserved() {
        let budget = Budget::new(1000);
        let error = budget.reserve(1001, &Interrupt::new()).unwrap_err();
        assert_eq!(error, Shortage::TooLarge { bytes: 1001, limit: 1000 });
        let error = error.at("/a", "a block").to_string();
        assert_eq!(error, "/a: a block takes 1001 bytes, more than the 1000 allowed (--cache-size)");
    }

    #[test]
    fn a_waiter_gets_what_another_releases() {
        let budget = Budget::new(1000);
        let held = budget.reserve(900, &Interrupt::new()).unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.reserve(500, &Interrupt::new()).map(|held| held.bytes()));
            thread::sleep(LOOK * 2);
            assert!(!waiter.is_finished());
            drop(held);
            assert_eq!(waiter.join().unwrap(), Ok(500));
        });
    }

    #[test]
    fn a_waiter_looks_at_its_interrupt() {
        let budget = Budget::new(1000);
        let _held = budget.reserve(900, &Interrupt::new()).unwrap();
        let interrupt = Interrupt::new();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.reserve(500, &interrupt).map(drop));
            interrupt.raise();
            assert_eq!(waiter.join().unwrap(), Err(Shortage::Interrupted(Interrupted)));
        });
    }

    #[test]
    fn decoding_goes_on_when_everything_is_held_by_those_who_wait() {
        let budget = Budget::new(100 << 10);
        let _held = budget.reserve(100 << 10, &Interrupt::new()).unwrap();
        assert!(budget.try_lease([5000]).is_none());
        let (_lease, [buffer]) = budget.lease([5000], &Interrupt::new()).unwrap();
        assert_eq!(buffer.len(), 5000);
    }

    #[test]
    fn what_is_larger_than_the_budget_leaves_half_of_it_to_others() {
        let budget = Budget::new(1 << 20);
        let (huge, buffers) = budget.lease([1 << 20, 1 << 20], &Interrupt::new()).unwrap();
        let small = budget.try_lease([250 << 10]).unwrap();
        let _other = budget.try_lease([200 << 10]).unwrap();
        assert!(budget.try_lease([100 << 10]).is_none() && budget.try_reserve(100 << 10).is_none());
        drop(small);
        // An idle buffer of another length makes room for it.
        assert!(budget.try_reserve(200 << 10).is_some());
        drop((huge, buffers));
        assert!(budget.try_reserve(700 << 10).is_some());
    }

    #[test]
    fn what_nearly_fills_the_budget_leaves_room_for_others() {
        let budget = Budget::new(1 << 20);
        let half = budget.try_lease([448 << 10]).unwrap();
        assert!(budget.try_lease([512 << 10]).is_none(), "an eighth stays free");
        assert!(budget.try_lease([100 << 10]).is_some());
        drop(half);
        let held = budget.reserve(200 << 10, &Interrupt::new()).unwrap();
        let nearly = budget.lease([896 << 10], &Interrupt::new()).unwrap();
        assert!(budget.try_lease([100 << 10]).is_some());
        drop((held, nearly));
        assert!(budget.try_reserve(1 << 20).is_some());
    }

    #[test]
    fn buffers_larger_than_the_budget_come_one_at_a_time() {
        let budget = Budget::new(100 << 10);
        let (lease, [first]) = budget.lease([1 << 20], &Interrupt::new()).unwrap();
        drop(lease);
        let interrupt = Interrupt::new();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| budget.lease([1 << 20], &interrupt).map(|(_, [buffer])| buffer.len()));
            thread::sleep(LOOK * 2);
            assert!(!waiter.is_finished());
            drop(first);
            assert_eq!(waiter.join().unwrap().unwrap(), 1 << 20);
        });
        assert_eq!(budget.held(), 0);
    }
}
