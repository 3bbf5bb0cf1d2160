//! A keyed cache under the common memory budget, in which a value is made once however many wait for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;
use parking_lot::{Condvar, Mutex};

use super::budget::{Budget, Evict, LOOK};
use crate::source::{Interrupt, Interrupted};

/// Values by key. A value must own the part of the [`Budget`] that it takes ([`Buffer`](super::Buffer),
/// [`Reservation`](super::Reservation)): it is given back when the last user drops the value, which may be after its
/// eviction.
pub struct Cache<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    budget: Budget,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    /// With the moment of last use.
    values: LruCache<K, (Arc<V>, u64)>,
    /// Keys whose value is being made.
    makers: HashMap<K, Arc<Making>>,
}

/// A value that is being made.
#[derive(Default)]
struct Making {
    ended: Mutex<bool>,
    ending: Condvar,
}

impl Making {
    fn wait(&self, interrupt: &Interrupt) -> Result<(), Interrupted> {
        let mut ended = self.ended.lock();
        while !*ended {
            interrupt.check()?;
            self.ending.wait_for(&mut ended, LOOK);
        }
        Ok(())
    }
}

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    /// An empty cache whose entries are evicted when `budget` runs short.
    pub fn new(budget: &Budget) -> Self {
        Self::of(budget, LruCache::unbounded())
    }

    /// As [`Cache::new`], with at most this many entries.
    pub fn bounded(budget: &Budget, most: NonZeroUsize) -> Self {
        Self::of(budget, LruCache::new(most))
    }

    fn of(budget: &Budget, values: LruCache<K, (Arc<V>, u64)>) -> Self {
        let entries = Entries { values, makers: HashMap::new() };
        let inner = Arc::new(Inner { budget: budget.clone(), entries: Mutex::new(entries) });
        let weak: Weak<Inner<K, V>> = Arc::downgrade(&inner);
        budget.register(weak);
        Self { inner }
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let now = self.inner.budget.tick();
        let mut entries = self.inner.entries.lock();
        entries.values.get_mut(key).map(|(value, used)| {
            *used = now;
            value.clone()
        })
    }

    /// Whether the value of `key` is there or being made; this is no use of it.
    pub fn is_known(&self, key: &K) -> bool {
        let entries = self.inner.entries.lock();
        entries.values.contains(key) || entries.makers.contains_key(key)
    }

    /// The value of `key`; waits while it is being made. `None` where it is neither there nor being made, or making it
    /// failed.
    ///
    /// # Errors
    /// [`Interrupted`] while waiting.
    pub fn get_or_wait(&self, key: &K, interrupt: &Interrupt) -> Result<Option<Arc<V>>, Interrupted> {
        if let Some(value) = self.get(key) {
            return Ok(Some(value));
        }
        let making = self.inner.entries.lock().makers.get(key).cloned();
        if let Some(making) = making {
            making.wait(interrupt)?;
        }
        Ok(self.get(key))
    }

    /// The value of `key`, made by `make` if it is not there. Others who ask meanwhile wait; where `make` fails, the
    /// first of them makes it instead.
    ///
    /// # Errors
    /// Those of `make`, and [`Interrupted`] while waiting for another.
    pub fn get_or_make<E: From<Interrupted>>(
        &self,
        key: &K,
        interrupt: &Interrupt,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let making = loop {
            if let Some(value) = self.get(key) {
                return Ok(value);
            }
            let other = {
                let mut entries = self.inner.entries.lock();
                match entries.makers.get(key) {
                    Some(other) => other.clone(),
                    // Made between the look above and this one.
                    None if entries.values.contains(key) => continue,
                    None => {
                        let making = Arc::new(Making::default());
                        entries.makers.insert(key.clone(), making.clone());
                        break making;
                    }
                }
            };
            other.wait(interrupt)?;
        };
        // Dropped on every way out, a panic too: no waiter may wait for ever.
        let _end = End { inner: &*self.inner, key, making };
        let value = Arc::new(make()?);
        let now = self.inner.budget.tick();
        // The old value, if any, or the one that makes room, must be dropped outside the lock: it gives its memory
        // back.
        let _old = self.inner.entries.lock().values.push(key.clone(), (value.clone(), now));
        Ok(value)
    }

    /// Keeps a value that was made elsewhere.
    pub fn insert(&self, key: K, value: Arc<V>) {
        let now = self.inner.budget.tick();
        // As above.
        let _old = self.inner.entries.lock().values.push(key, (value, now));
    }

    /// Makes the entry of `key` the first to evict, until it is used again.
    pub fn demote(&self, key: &K) {
        let mut entries = self.inner.entries.lock();
        if let Some((_, used)) = entries.values.peek_mut(key) {
            *used = 0;
            entries.values.demote(key);
        }
    }

    /// Drops the entry of `key`.
    pub fn remove(&self, key: &K) {
        // Dropped outside the lock: it gives its memory back.
        let _old = self.inner.entries.lock().values.pop(key);
    }

    /// Drops every entry whose key does not satisfy `keep`.
    pub fn retain(&self, keep: impl Fn(&K) -> bool) {
        let mut dropped = Vec::new();
        let mut entries = self.inner.entries.lock();
        let keys: Vec<K> = entries.values.iter().filter(|(key, _)| !keep(key)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            dropped.push(entries.values.pop(&key));
        }
        drop(entries);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.inner.entries.lock().values.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

struct End<'a, K: Hash + Eq, V> {
    inner: &'a Inner<K, V>,
    key: &'a K,
    making: Arc<Making>,
}

impl<K: Hash + Eq, V> Drop for End<'_, K, V> {
    fn drop(&mut self) {
        self.inner.entries.lock().makers.remove(self.key);
        *self.making.ended.lock() = true;
        self.making.ending.notify_all();
    }
}

impl<K, V> Evict for Inner<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    fn oldest(&self) -> Option<u64> {
        self.entries.lock().values.peek_lru().map(|(_, (_, used))| *used)
    }

    fn evict(&self) -> bool {
        let mut entries = self.entries.lock();
        // An entry in use would free nothing now and be made a second time at once; those are passed over. Few are in
        // use at any moment: one a thread.
        let unused = entries.values.iter().rev().take(64).find(|(_, (value, _))| Arc::strong_count(value) == 1);
        let Some(key) = unused.map(|(key, _)| key.clone()) else { return false };
        let entry = entries.values.pop(&key);
        drop(entries);
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
        // 3 is next, but in use: 4 goes instead.
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
