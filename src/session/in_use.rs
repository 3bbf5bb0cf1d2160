//! A map of weak references: finds values by key as long as someone holds them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// A map of values that others hold. Dead entries are swept when the map would have to grow.
#[derive(Debug)]
pub(super) struct InUse<K, V: ?Sized>(HashMap<K, Weak<V>>);

impl<K, V: ?Sized> Default for InUse<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: ?Sized> InUse<K, V> {
    /// The value of a key, if it is in use.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)?.upgrade()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: &Arc<V>) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|_, value| value.strong_count() > 0);
            // Doubling spreads the cost of the next sweep over as many insertions.
            self.0.reserve(self.0.len() + 1);
        }
        self.0.insert(key, Arc::downgrade(value));
    }

    /// All values in use, with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Arc<V>)> {
        self.0.iter().filter_map(|(key, value)| Some((key, value.upgrade()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_takes_no_room() {
        let mut in_use = InUse::default();
        let kept: Vec<Arc<u32>> = (0..10).map(Arc::new).collect();
        for key in 0..10_000u32 {
            in_use.insert(key, kept.get(key as usize).unwrap_or(&Arc::new(key)));
        }
        assert!(in_use.0.capacity() < 200, "{}", in_use.0.capacity());
        assert_eq!(in_use.iter().count(), 10);
        assert_eq!(in_use.get(&9).as_deref(), Some(&9));
        assert_eq!(in_use.get(&10), None);
        drop(kept);
        assert_eq!(in_use.get(&9), None);
    }
}
