//! A keyed cache under the common memory budget, with single flight: each value is made once, however many wait for it.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;
use parking_lot::Mutex;

use super::SingleFlight;
use super::budget::{Budget, Evict};
use crate::source::{Interrupt, Interrupted};

/// Values by key. A value must own its share of the [`Budget`] ([`Buffer`](super::Buffer),
/// [`Reservation`](super::Reservation)): the share returns when the last user drops the value, which may be after its
/// eviction.
pub struct Cache<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    budget: Budget,
    /// Each value with its time of last use.
    values: Mutex<LruCache<K, (Arc<V>, u64)>>,
    making: SingleFlight<K>,
}

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    /// An empty cache whose entries are evicted when `budget` is exhausted.
    pub fn new(budget: &Budget) -> Self {
        Self::of(budget, LruCache::unbounded())
    }

    /// As [`Cache::new`], with at most this many entries.
    pub fn bounded(budget: &Budget, most: NonZeroUsize) -> Self {
        Self::of(budget, LruCache::new(most))
    }

    fn of(budget: &Budget, values: LruCache<K, (Arc<V>, u64)>) -> Self {
        let (values, making) = (Mutex::new(values), SingleFlight::default());
        let inner = Arc::new(Inner { budget: budget.clone(), values, making });
        let weak: Weak<Inner<K, V>> = Arc::downgrade(&inner);
        budget.register(weak);
        Self { inner }
    }

    /// The value of `key`, if it is cached.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let now = self.inner.budget.tick();
        self.inner.values.lock().get_mut(key).map(|(value, used)| {
            *used = now;
            value.clone()
        })
    }

    /// Whether the value of `key` is cached or being made; does not count as a use.
    pub fn is_known(&self, key: &K) -> bool {
        // In this order: a value finished in between is cached.
        self.inner.making.is_making(key) || self.inner.values.lock().contains(key)
    }

    /// The value of `key`; waits while it is being made. `None`: neither cached nor being made, or making it failed.
    ///
    /// # Errors
    /// [`Interrupted`] while waiting.
    pub fn get_or_wait(&self, key: &K, interrupt: &Interrupt) -> Result<Option<Arc<V>>, Interrupted> {
        if let Some(value) = self.get(key) {
            return Ok(Some(value));
        }
        self.inner.making.wait(key, interrupt)?;
        Ok(self.get(key))
    }

    /// The value of `key`, made by `make` if it is not cached. Others who request it wait meanwhile; if `make` fails,
    /// the first of them makes it instead.
    ///
    /// # Errors
    /// Those of `make`, and [`Interrupted`] while waiting for another thread.
    pub fn get_or_make<E: From<Interrupted>>(
        &self,
        key: &K,
        interrupt: &Interrupt,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let find = || self.get(key);
        self.inner.making.get_or_make(key, interrupt, find, || {
            let value = Arc::new(make()?);
            self.insert(key.clone(), value.clone());
            Ok(value)
        })
    }

    /// Caches a value that was made elsewhere.
    pub fn insert(&self, key: K, value: Arc<V>) {
        let now = self.inner.budget.tick();
        // The replaced or evicted value is dropped outside the lock, since that returns its memory.
        let _old = self.inner.values.lock().push(key, (value, now));
    }

    /// Makes the entry of `key` the first to evict, until its next use.
    pub fn demote(&self, key: &K) {
        let mut values = self.inner.values.lock();
        if let Some((_, used)) = values.peek_mut(key) {
            *used = 0;
            values.demote(key);
        }
    }

    /// Drops the entry of `key`.
    pub fn remove(&self, key: &K) {
        // Dropped outside the lock, since that returns its memory.
        let _old = self.inner.values.lock().pop(key);
    }

    /// Drops every entry whose key does not satisfy `keep`.
    pub fn retain(&self, keep: impl Fn(&K) -> bool) {
        let mut dropped = Vec::new();
        let mut values = self.inner.values.lock();
        let keys: Vec<K> = values.iter().filter(|(key, _)| !keep(key)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            dropped.push(values.pop(&key));
        }
        drop(values);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.inner.values.lock().len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, V> Evict for Inner<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    fn oldest(&self) -> Option<u64> {
        self.values.lock().peek_lru().map(|(_, (_, used))| *used)
    }

    fn evict(&self) -> bool {
        let mut values = self.values.lock();
        // Evicting an entry in use would free nothing now, and it would be made a second time at once, so these are
        // skipped. Few are in use at any moment: one per thread.
        let unused = values.iter().rev().take(64).find(|(_, (value, _))| Arc::strong_count(value) == 1);
        let Some(key) = unused.map(|(key, _)| key.clone()) else { return false };
        let entry = values.pop(&key);
        drop(values);
        entry.is_some()
    }
}

impl<K, V> std::fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("budget", &self.inner.budget).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::store::Reservation;
    use crate::store::memory::budget::LOOK;

    #[derive(Debug, PartialEq)]
    enum Failure {
        Made,
        Interrupted,
    }

    impl From<Interrupted> for Failure {
        fn from(_: Interrupted) -> Self {
            Failure::Interrupted
        }
    }

    fn block(budget: &Budget, bytes: u64) -> Result<Reservation, Failure> {
        budget.reserve(bytes, &Interrupt::new()).map_err(|_| Failure::Made)
    }

    #[test]
    fn one_makes_it_however_many_wait() {
        let budget = Budget::new(1000);
        let cache = Cache::new(&budget);
        let (made, start) = (AtomicUsize::new(0), Barrier::new(8));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let value = cache.get_or_make(&1, &Interrupt::new(), || {
                        thread::sleep(LOOK);
                        made.fetch_add(1, Ordering::Relaxed);
                        block(&budget, 10)
                    });
                    assert_eq!(value.unwrap().bytes(), 10);
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
        assert_eq!(budget.held(), 10);
    }

    #[test]
    fn where_one_fails_or_panics_the_next_takes_over() {
        let budget = Budget::new(1000);
        let cache = Cache::new(&budget);
        let (tries, start) = (AtomicUsize::new(0), Barrier::new(4));
        let outcomes: Vec<bool> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let made = cache.get_or_make(&1, &Interrupt::new(), || {
                            thread::sleep(LOOK);
                            match tries.fetch_add(1, Ordering::Relaxed) {
                                0 => Err(Failure::Made),
                                1 => panic!("a decoder that panics"),
                                _ => block(&budget, 10),
                            }
                        });
                        made.is_ok()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(false)).collect()
        });
        assert_eq!(outcomes.iter().filter(|ok| **ok).count(), 2);
        assert_eq!(tries.into_inner(), 3);
    }

    #[test]
    fn a_waiter_looks_at_its_interrupt() {
        let budget = Budget::new(1000);
        let cache = Cache::new(&budget);
        let (making, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                cache.get_or_make(&1, &Interrupt::new(), || {
                    making.wait();
                    done.wait();
                    block(&budget, 10)
                })
            });
            making.wait();
            let interrupt = Interrupt::new();
            interrupt.raise();
            let waited = cache.get_or_make(&1, &interrupt, || block(&budget, 10));
            assert_eq!(waited.map(|value| value.bytes()), Err(Failure::Interrupted));
            done.wait();
        });
    }

    #[test]
    fn the_least_recently_used_of_all_caches_goes_first() {
        let budget = Budget::new(100);
        let (chunks, pages) = (Cache::new(&budget), Cache::new(&budget));
        let put = |cache: &Cache<u32, Reservation>, key: u32| {
            drop(cache.get_or_make(&key, &Interrupt::new(), || block(&budget, 25)).unwrap());
        };
        put(&chunks, 1);
        put(&pages, 2);
        put(&chunks, 3);
        put(&pages, 4);
        chunks.get(&1);
        put(&chunks, 5);
        assert_eq!((pages.is_known(&2), budget.held()), (false, 100));
        // 3 is next, but in use, so 4 is evicted instead.
        let used = chunks.get(&3);
        chunks.get(&1);
        chunks.get(&5);
        put(&pages, 6);
        assert!(chunks.is_known(&3) && !pages.is_known(&4));
        drop(used);
        chunks.retain(|key| *key != 3);
        assert_eq!((chunks.len(), budget.held()), (2, 75));
    }
}
