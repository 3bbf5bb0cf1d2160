//! A cache of global heap collections.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Collection;
use crate::source::{Interrupt, Interrupted};
use crate::store::{Budget, Cache};

/// Most collections to keep of those that were requested once. Nearly all strings are read in the order in which they
/// were written, and a collection is stored uncompressed: to keep those that readers have passed would only fill
/// memory, which costs more than reading them again.
const FRESH: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Number of other collections read between two requests for one, below which the second does not count as reuse: it
/// just continues where a batch of rows ended.
const SOON: u64 = 64;

/// A file's serial number, and an address in it.
type Key = (u64, u64);

/// Collections under the common memory budget: all that were requested again later while cached, and the latest of the
/// others.
#[derive(Debug)]
pub struct Collections {
    fresh: Cache<Key, Collection>,
    /// Number of the next collection read.
    next: AtomicU64,
    used_again: Cache<Key, Collection>,
}

impl Collections {
    /// An empty cache.
    pub fn new(budget: &Budget) -> Self {
        Self { fresh: Cache::bounded(budget, FRESH), next: AtomicU64::new(0), used_again: Cache::new(budget) }
    }

    /// As [`Cache::get_or_make`]; `make` receives the number of the collection.
    ///
    /// # Errors
    /// Those of `make`, and [`Interrupted`] while waiting for another thread.
    pub(super) fn get_or_make<E: From<Interrupted>>(
        &self,
        key: &Key,
        interrupt: &Interrupt,
        make: impl FnOnce(u64) -> Result<Collection, E>,
    ) -> Result<Arc<Collection>, E> {
        if let Some(collection) = self.used_again.get(key) {
            return Ok(collection);
        }
        let collection = self.fresh.get_or_make(key, interrupt, || make(self.next.fetch_add(1, Ordering::Relaxed)))?;
        if self.next.load(Ordering::Relaxed).saturating_sub(collection.number()) > SOON {
            self.used_again.insert(*key, collection.clone());
            self.fresh.remove(key);
        }
        Ok(collection)
    }

    /// Drops the collections of a file.
    pub fn forget(&self, file: u64) {
        self.fresh.retain(|key| key.0 != file);
        self.used_again.retain(|key| key.0 != file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_once_makes_room_and_what_was_asked_for_again_stays() {
        let budget = Budget::new(1 << 30);
        let collections = Collections::new(&budget);
        let mut made = Vec::new();
        let mut ask = |address: u64| {
            let make = |number| {
                made.push(address);
                Ok::<_, Interrupted>(Collection::empty(&budget, number))
            };
            collections.get_or_make(&(1, address), &Interrupt::new(), make).unwrap();
        };
        // 0 returns after enough others to count as reuse, 1 at once.
        for address in [0, 1, 1].into_iter().chain(2..100).chain([0]).chain(100..600).chain([0, 1, 599]) {
            ask(address);
        }
        assert_eq!(made, (0..600).chain([1]).collect::<Vec<_>>());
        collections.forget(1);
        assert!(collections.fresh.is_empty() && collections.used_again.is_empty());
    }
}
