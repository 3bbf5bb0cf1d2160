//! Detects sequential readers of a dataset.
//!
//! Requests of one reader arrive slightly out of order and on several threads, and several readers may share a dataset.
//! So a dataset remembers the ends of a few [`Streams`], and a request near one of them carries it on. From its third
//! request on a stream is sequential, and the chunks behind it are decoded ahead while the reader is busy with what it
//! got.

use std::ops::Range;

use parking_lot::Mutex;

/// Streams remembered for a dataset.
const STREAMS: usize = 8;

/// How far from the end of a stream a request may begin and still carry it on: the kernel has up to a few requests of
/// 1 MiB under way at once.
const NEAR: u64 = 4 << 20;

/// Requests that make a stream sequential. Two neighbours also occur in random reads through a page cache that reads
/// ahead; three hardly do.
const SEQUENTIAL: u32 = 3;

/// Chunks given back at once.
const MOST_RELEASED: u64 = 64;

/// The readers of a dataset.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Vec<Stream>>);

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// One past the last byte asked for.
    end: u64,
    requests: u32,
    /// The chunk that the first of them ended in.
    first: u64,
    /// One past the last chunk scheduled.
    scheduled: u64,
    /// One past the last chunk given back.
    released: u64,
}

impl Streams {
    /// Notes a request for `bytes`, whose last chunk is `last`. Returns the chunks to decode next, about `window` after
    /// `last`, up to a multiple of `grain`; none unless the reader is sequential. A reader of one row group looks like
    /// a full scan, so this never runs further ahead than the reader has read.
    pub fn note(&self, bytes: Range<u64>, last: u64, window: u64, grain: u64) -> Range<u64> {
        let mut streams = self.0.lock();
        let near = |stream: &Stream| bytes.start.abs_diff(stream.end) <= NEAR;
        let mut stream = match streams.iter().position(near) {
            Some(i) => streams.remove(i),
            None => Stream { end: bytes.start, requests: 0, first: last, scheduled: 0, released: 0 },
        };
        // Going back over the same bytes, or hopping about near the end, is not going forward.
        if bytes.end > stream.end {
            stream.requests = if bytes.start <= stream.end.saturating_add(bytes.end - bytes.start) {
                stream.requests.saturating_add(1)
            } else {
                stream.first = last;
                1
            };
            stream.end = bytes.end;
        }
        let mut next = 0..0;
        if stream.requests >= SEQUENTIAL {
            let first = stream.scheduled.max(last.saturating_add(1));
            let asked = last.saturating_sub(stream.first).saturating_add(1);
            let end = last.saturating_add(1).saturating_add(window.min(asked));
            let end = end.checked_next_multiple_of(grain.max(1)).unwrap_or(end);
            if first < end {
                next = first..end;
                stream.scheduled = end;
            }
        }
        streams.insert(0, stream);
        streams.truncate(STREAMS);
        next
    }

    /// Whether a request that ended at `end`, and was noted, is one of a sequential reader.
    pub fn is_sequential(&self, end: u64) -> bool {
        let near = |stream: &Stream| stream.requests >= SEQUENTIAL && end.abs_diff(stream.end) <= NEAR;
        self.0.lock().iter().any(near)
    }

    /// Returns the chunks, of `chunk_bytes` bytes each, that a sequential reader has left behind by `distance` since
    /// the last call; its request ended at `end`. Late requests reach back no farther than [`NEAR`].
    pub fn left_behind(&self, end: u64, chunk_bytes: u64, distance: u64) -> Range<u64> {
        let mut streams = self.0.lock();
        let near = |stream: &&mut Stream| stream.requests >= SEQUENTIAL && end.abs_diff(stream.end) <= NEAR;
        let Some(stream) = streams.iter_mut().find(near) else { return 0..0 };
        let passed = stream.end.saturating_sub(distance.max(NEAR)) / chunk_bytes.max(1);
        // A stream that began in the middle has left nothing behind before that.
        let first = stream.released.max(passed.saturating_sub(MOST_RELEASED));
        stream.released = stream.released.max(passed);
        first..passed
    }

    /// Whether a chunk, counted as in [`Streams::left_behind`], was given back by its reader and no other sequential
    /// reader wants it: the prefetch came too late for it.
    pub fn is_left_behind(&self, chunk: u64) -> bool {
        let streams = self.0.lock();
        let mut sequential = streams.iter().filter(|stream| stream.requests >= SEQUENTIAL).peekable();
        sequential.peek().is_some() && sequential.all(|stream| chunk < stream.released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Chunks of 1 MiB, requests of 128 KiB.
    fn note(streams: &Streams, start: u64) -> Range<u64> {
        let end = start + 128 * KIB;
        streams.note(start..end, (end - 1) >> 20, 4, 1)
    }

    #[test]
    fn a_sequential_reader_gets_each_chunk_once_though_requests_swap() {
        let streams = Streams::default();
        let order = [0, 1, 3, 2, 4, 6, 5, 7, 9, 8, 10];
        let scheduled: Vec<u64> = order.iter().flat_map(|i| note(&streams, i * 128 * KIB)).collect();
        assert_eq!(scheduled, [1, 2, 3]);
        // The window grows with what was asked for, up to its 4 chunks.
        let scheduled: Vec<u64> = (11..40).flat_map(|i| note(&streams, i * 128 * KIB)).collect();
        assert_eq!(scheduled, [4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_sequential_reader_leaves_each_chunk_behind_once() {
        let streams = Streams::default();
        let mut left = Vec::new();
        for i in 0..(12 * 8) {
            note(&streams, i * 128 * KIB);
            left.extend(streams.left_behind((i + 1) * 128 * KIB, 1 << 20, 0));
        }
        // 12 MiB are read, of which the last 4 may still be asked for.
        assert_eq!(left, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(streams.left_behind(1 << 40, 1 << 20, 0), 0..0);
        assert!(streams.is_left_behind(7) && !streams.is_left_behind(8));
        // Another reader of the same chunks wants them.
        let at = 64 << 20;
        for i in 0..3 {
            note(&streams, at + i * 128 * KIB);
        }
        assert!(!streams.is_left_behind(7));
    }

    #[test]
    fn what_is_kept_behind_a_reader_is_as_long_as_was_asked() {
        let streams = Streams::default();
        for i in 0..(12 * 8) {
            note(&streams, i * 128 * KIB);
        }
        assert_eq!(streams.left_behind(12 << 20, 1 << 20, 10 << 20), 0..2);
        assert!(!streams.is_left_behind(2));
    }

    #[test]
    fn a_random_reader_gets_none() {
        let streams = Streams::default();
        let mut at = 1u64;
        for _ in 0..1000 {
            at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            assert_eq!(note(&streams, at >> 24), 0..0);
        }
    }

    #[test]
    fn two_readers_are_told_apart() {
        let streams = Streams::default();
        let far = 1u64 << 30;
        let scheduled: Vec<u64> = (0..4)
            .flat_map(|i| [note(&streams, i * 128 * KIB), note(&streams, far + i * 128 * KIB)])
            .flatten()
            .collect();
        assert_eq!(scheduled, [1, 1025]);
    }
}
