//! Divides the memory for decoding ahead among sequential readers.

use lru::LruCache;
use parking_lot::Mutex;

use super::RequestStreams;

/// The sequential readers of all datasets, by their latest requests.
#[derive(Debug)]
pub(crate) struct Readers(Mutex<Lately>);

#[derive(Debug)]
struct Lately {
    /// Bytes requested by all readers together.
    asked: u64,
    /// For each reader, the value of `asked` at its latest request; the latest first.
    readers: LruCache<Reader, u64>,
}

/// A reader, identified by the address of the dataset's streams and the byte at which it began. Confusing it with a
/// later reader in the same place is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reader {
    streams: usize,
    start: u64,
}

impl Reader {
    fn of(streams: &RequestStreams, start: u64) -> Self {
        Self { streams: std::ptr::from_ref(streams).addr(), start }
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self(Mutex::new(Lately { asked: 0, readers: LruCache::unbounded() }))
    }
}

impl Readers {
    /// Records that the sequential reader of a dataset who began at byte `start` requested `bytes` bytes.
    pub fn note(&self, streams: &RequestStreams, start: u64, bytes: u64) {
        let mut lately = self.0.lock();
        lately.asked = lately.asked.saturating_add(bytes);
        let asked = lately.asked;
        lately.readers.put(Reader::of(streams, start), asked);
    }

    /// Records that the sequential reader of a dataset who began at byte `start` has reached the end.
    pub fn leave(&self, streams: &RequestStreams, start: u64) {
        self.0.lock().readers.pop(&Reader::of(streams, start));
    }

    /// Each reader's share of `memory`. A reader who requested nothing while all together requested that much has no
    /// share: the data decoded ahead of it is gone.
    pub fn share(&self, memory: u64) -> u64 {
        let mut lately = self.0.lock();
        let since = lately.asked.saturating_sub(memory);
        while lately.readers.peek_lru().is_some_and(|(_, asked)| *asked < since) {
            lately.readers.pop_lru();
        }
        memory / (lately.readers.len() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_until_they_leave_or_are_left_behind() {
        let (readers, datasets) = (Readers::default(), [RequestStreams::default(), RequestStreams::default()]);
        assert_eq!(readers.share(120), 120);
        let all = [(&datasets[0], 0), (&datasets[1], 0), (&datasets[1], 1 << 20)];
        for (streams, start) in all {
            readers.note(streams, start, 10);
            readers.note(streams, start, 10);
        }
        assert_eq!(readers.share(120), 40);
        readers.leave(&datasets[1], 0);
        assert_eq!(readers.share(120), 60);
        readers.note(&datasets[1], 1 << 20, 80);
        assert_eq!(readers.share(120), 60);
        readers.note(&datasets[1], 1 << 20, 1);
        assert_eq!(readers.share(120), 120);
    }
}
