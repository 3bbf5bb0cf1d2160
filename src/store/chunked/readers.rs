//! How many sequential readers share the memory in which chunks are decoded ahead.

use lru::LruCache;
use parking_lot::Mutex;

use super::Streams;

/// The sequential readers of all datasets, by what they asked for last.
#[derive(Debug)]
pub(crate) struct Readers(Mutex<Lately>);

#[derive(Debug)]
struct Lately {
    /// Bytes asked for by all of them.
    asked: u64,
    /// What had been asked for when each dataset was read last, the latest first.
    datasets: LruCache<Dataset, u64>,
}

/// A dataset, by the address of its streams. One that takes the place of another is taken for it, which is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Dataset(usize);

impl Dataset {
    fn of(streams: &Streams) -> Self {
        Self(std::ptr::from_ref(streams).addr())
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self(Mutex::new(Lately { asked: 0, datasets: LruCache::unbounded() }))
    }
}

impl Readers {
    /// Notes that a sequential reader of a dataset asked for `bytes` bytes.
    pub fn note(&self, streams: &Streams, bytes: u64) {
        let mut lately = self.0.lock();
        lately.asked = lately.asked.saturating_add(bytes);
        let asked = lately.asked;
        lately.datasets.put(Dataset::of(streams), asked);
    }

    /// Notes that a sequential reader of a dataset came to its end.
    pub fn leave(&self, streams: &Streams) {
        self.0.lock().datasets.pop(&Dataset::of(streams));
    }

    /// Bytes of `memory` for each reader. Those who asked for nothing while all asked for that much have no part: it
    /// does not hold any more what was decoded ahead of them.
    pub fn share(&self, memory: u64) -> u64 {
        let mut lately = self.0.lock();
        let since = lately.asked.saturating_sub(memory);
        while lately.datasets.peek_lru().is_some_and(|(_, asked)| *asked < since) {
            lately.datasets.pop_lru();
        }
        memory / (lately.datasets.len() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_until_they_leave_or_are_left_behind() {
        let (readers, datasets) = (Readers::default(), [Streams::default(), Streams::default(), Streams::default()]);
        assert_eq!(readers.share(120), 120);
        for streams in &datasets {
            readers.note(streams, 10);
            readers.note(streams, 10);
        }
        assert_eq!(readers.share(120), 40);
        readers.leave(&datasets[1]);
        assert_eq!(readers.share(120), 60);
        readers.note(&datasets[2], 80);
        assert_eq!(readers.share(120), 60);
        readers.note(&datasets[2], 1);
        assert_eq!(readers.share(120), 120);
    }
}
