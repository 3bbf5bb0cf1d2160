//! Counts requests, bytes and waits, for `.hepfs/stats`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::Counter;

/// Counts since a store of objects is in use.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub requests: Counter,
    pub fetched: Counter,
    pub used: Counter,
    pub rounds: Counter,
    pub memory_hits: Counter,
    pub disk_hits: Counter,
    pub waited: Counter,
    pub most_in_flight: AtomicU64,
    /// Bytes in flight, and bytes of values that arrived and were not read.
    pub outstanding: AtomicU64,
}

/// Requests, bytes and waits so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchCounts {
    /// Requests begun.
    pub requests: u64,
    /// Bytes that arrived.
    pub fetched: u64,
    /// Those of them that were read, each counted once.
    pub used: u64,
    /// Most requests in flight at once.
    pub most_in_flight: u64,
    /// Requests begun while no other was in flight.
    pub rounds: u64,
    /// Time for which readers waited, over all threads.
    pub waited: Duration,
    /// Reads whose bytes were all in memory.
    pub memory_hits: u64,
    /// ByteStretches that came from the cache folder.
    pub disk_hits: u64,
}

impl Counts {
    pub fn snapshot(&self) -> FetchCounts {
        FetchCounts {
            requests: self.requests.get(),
            fetched: self.fetched.get(),
            used: self.used.get(),
            most_in_flight: self.most_in_flight.load(Ordering::Relaxed),
            rounds: self.rounds.get(),
            waited: Duration::from_nanos(self.waited.get()),
            memory_hits: self.memory_hits.get(),
            disk_hits: self.disk_hits.get(),
        }
    }
}
