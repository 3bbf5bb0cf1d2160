//! Single flight: a value is made once, however many request it meanwhile.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::budget::LOOK;
use crate::source::{Interrupt, Interrupted};

/// Keys whose value is being made.
#[derive(Debug)]
pub struct SingleFlight<K>(Mutex<HashMap<K, Arc<Making>>>);

/// A value that is being made.
#[derive(Debug, Default)]
struct Making {
    ended: Mutex<bool>,
    ending: Condvar,
}

impl<K> Default for SingleFlight<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> SingleFlight<K> {
    /// Whether the value of `key` is being made.
    pub fn is_making(&self, key: &K) -> bool {
        self.0.lock().contains_key(key)
    }

    /// Waits while the value of `key` is being made.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn wait(&self, key: &K, interrupt: &Interrupt) -> Result<(), Interrupted> {
        let making = self.0.lock().get(key).cloned();
        making.map_or(Ok(()), |making| making.wait(interrupt))
    }

    /// The value that `find` returns, or one that `make` makes and stores where `find` finds it. Others who request it
    /// wait meanwhile; if `make` fails, the first of them makes it instead.
    ///
    /// # Errors
    /// Those of `make`, and [`Interrupted`] while waiting for another thread.
    pub fn get_or_make<V, E: From<Interrupted>>(
        &self,
        key: &K,
        interrupt: &Interrupt,
        find: impl Fn() -> Option<V>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        let making = loop {
            if let Some(value) = find() {
                return Ok(value);
            }
            let other = {
                let mut all = self.0.lock();
                let Some(other) = all.get(key) else {
                    let making = Arc::new(Making::default());
                    all.insert(key.clone(), making.clone());
                    break making;
                };
                other.clone()
            };
            other.wait(interrupt)?;
        };
        // Dropped on every exit, a panic included: no waiter may wait forever.
        let _end = End { all: self, key, making };
        // Another thread may have made it since the check above.
        find().map_or_else(make, Ok)
    }
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

struct End<'a, K: Hash + Eq> {
    all: &'a SingleFlight<K>,
    key: &'a K,
    making: Arc<Making>,
}

impl<K: Hash + Eq> Drop for End<'_, K> {
    fn drop(&mut self) {
        self.all.0.lock().remove(self.key);
        *self.making.ended.lock() = true;
        self.making.ending.notify_all();
    }
}
