//! Detects sequential readers of a dataset.
//!
//! Requests of one reader arrive slightly out of order and on several threads, and several readers may share a dataset.
//! So a dataset records the ends of a few [`RequestStreams`], and a request near one of them continues it. From its
//! third request on a stream is sequential, and the chunks ahead of it are decoded while the reader processes its data.

use std::ops::Range;

use parking_lot::Mutex;

/// Most streams recorded for a dataset.
const STREAMS: usize = 8;

/// Largest distance between a stream's end and a request that continues it: the kernel has a few requests of up to 1
/// MiB in flight.
const NEAR: u64 = 4 << 20;

/// Chunks read in order for which a reader that stops at the end of a column chunk gets one chunk behind that end. So
/// at most this part of all that such readers read is decoded in vain.
const PASSED: u64 = 10;

/// Bytes read in order before that. Splits of some row groups have fewer bytes of a column.
const LONG: u64 = 8 << 20;

/// Requests that make a stream sequential. Two adjacent ones also occur in random reads through a page cache that reads
/// ahead; three hardly do.
const SEQUENTIAL: u32 = 3;

/// The readers of a dataset.
#[derive(Debug, Default)]
pub(crate) struct RequestStreams(Mutex<Vec<Stream>>);

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The byte at which it began, which identifies it.
    start: u64,
    /// End of the last request.
    end: u64,
    requests: u32,
    /// The chunk in which the first request ended.
    first: u64,
    /// End of the chunks scheduled for decoding.
    scheduled: u64,
    /// End of the bytes to evict first.
    passed: u64,
    /// End of the released bytes.
    released: u64,
    /// Whether a request told of no place where its reader stops.
    passes: bool,
}

/// The chunks to decode ahead of a sequential reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// Chunks to decode now.
    pub chunks: Range<u64>,
    /// End of the chunks that may be decoded for it at all.
    pub until: u64,
}

/// Bytes that a sequential reader has left behind since they were last asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftBehind {
    /// Bytes that only late requests may still want: evict these first.
    pub passed: Range<u64>,
    /// Bytes that no request will want again.
    pub released: Range<u64>,
}

impl RequestStreams {
    /// Records a request for `bytes`, whose last chunk is `last`, and whether its reader is known to stop somewhere.
    /// Returns the first byte of the reader, if that is a sequential one.
    pub fn note(&self, bytes: Range<u64>, last: u64, stops: bool) -> Option<u64> {
        let mut streams = self.0.lock();
        let mut stream = match streams.iter().position(|stream| bytes.start.abs_diff(stream.end) <= NEAR) {
            Some(i) => streams.remove(i),
            None => {
                let (start, end) = (bytes.start, bytes.start);
                let (passed, released) = (start, start);
                Stream { start, end, requests: 0, first: last, scheduled: 0, passed, released, passes: false }
            }
        };
        stream.passes |= !stops;
        // To repeat bytes, or to hop about near the end, is no progress.
        if bytes.end > stream.end {
            stream.requests = if bytes.start <= stream.end.saturating_add(bytes.end - bytes.start) {
                stream.requests.saturating_add(1)
            } else {
                stream.first = last;
                1
            };
            stream.end = bytes.end;
        }
        streams.insert(0, stream);
        streams.truncate(STREAMS);
        (stream.requests >= SEQUENTIAL).then_some(stream.start)
    }

    /// The chunks to decode next for a sequential reader whose request ended at byte `end`, in the chunk `last`: about
    /// `window` of them, up to a multiple of `grain`. The request must have been recorded. The start of a full scan
    /// looks like a read of one row group, so this never runs further ahead than the reader has read.
    ///
    /// At the chunk `until` the reader may stop ([`Interrupt::end_of_reader`](crate::source::Interrupt)), and another
    /// process may go on. So of long columns alone a few chunks behind it are decoded, and of short ones none. A reader
    /// that has passed such a place within one request stops nowhere.
    pub fn schedule(&self, end: u64, last: u64, (window, grain): (u64, u64), until: u64) -> Scheduled {
        let mut streams = self.0.lock();
        let Some(stream) = streams.iter_mut().find(|stream| stream.is_sequential_at(end)) else {
            return Scheduled::default();
        };
        let first = stream.scheduled.max(last.saturating_add(1));
        let asked = last.saturating_sub(stream.first).saturating_add(1);
        let ahead = last.saturating_add(1).saturating_add(window.min(asked));
        let most = match stream.end.saturating_sub(stream.start) {
            _ if stream.passes => u64::MAX,
            0..LONG => 0,
            _ => last.saturating_add(1).saturating_add(asked / PASSED),
        };
        let until = until.max(most);
        let ahead = ahead.checked_next_multiple_of(grain.max(1)).unwrap_or(ahead).min(until);
        if first >= ahead {
            return Scheduled { chunks: 0..0, until };
        }
        stream.scheduled = ahead;
        Scheduled { chunks: first..ahead, until }
    }

    /// The bytes that a sequential reader, whose request ended at byte `end`, has left behind: to evict first, those
    /// further back than both `distance` and `late` (at most [`NEAR`]); to release, those further back than both
    /// `distance` and [`NEAR`], which no late request exceeds.
    pub(super) fn left_behind(&self, end: u64, distance: u64, late: u64) -> LeftBehind {
        let mut streams = self.0.lock();
        let Some(stream) = streams.iter_mut().find(|stream| stream.is_sequential_at(end)) else {
            return LeftBehind { passed: 0..0, released: 0..0 };
        };
        let end = stream.end;
        let since = |before: &mut u64, distance: u64| {
            let first = *before;
            *before = first.max(end.saturating_sub(distance));
            first..*before
        };
        LeftBehind {
            passed: since(&mut stream.passed, distance.max(late.min(NEAR))),
            released: since(&mut stream.released, distance.max(NEAR)),
        }
    }

    /// Whether every sequential reader has requested bytes up to `end` or beyond. A reader who still waits for them
    /// decodes them itself.
    pub(super) fn have_passed(&self, end: u64) -> bool {
        self.0.lock().iter().filter(|stream| stream.requests >= SEQUENTIAL).all(|stream| end <= stream.end)
    }
}

impl Stream {
    /// Whether this is a sequential reader that a request ending at `end` may belong to.
    fn is_sequential_at(&self, end: u64) -> bool {
        self.requests >= SEQUENTIAL && end.abs_diff(self.end) <= NEAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Chunks of 1 MiB, requests of 128 KiB.
    fn note(streams: &RequestStreams, start: u64) -> Range<u64> {
        let end = start + 128 * KIB;
        let last = (end - 1) >> 20;
        if streams.note(start..end, last, false).is_none() {
            return 0..0;
        }
        streams.schedule(end, last, (4, 1), u64::MAX).chunks
    }

    #[test]
    fn a_sequential_reader_gets_each_chunk_once_though_requests_swap() {
        let streams = RequestStreams::default();
        let order = [0, 1, 3, 2, 4, 6, 5, 7, 9, 8, 10];
        let scheduled: Vec<u64> = order.iter().flat_map(|i| note(&streams, i * 128 * KIB)).collect();
        assert_eq!(scheduled, [1, 2, 3]);
        // The window grows with the requested bytes, up to its 4 chunks.
        let scheduled: Vec<u64> = (11..40).flat_map(|i| note(&streams, i * 128 * KIB)).collect();
        assert_eq!(scheduled, [4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_sequential_reader_leaves_each_byte_behind_once() {
        let streams = RequestStreams::default();
        let (mut passed, mut released) = (0, 0);
        for i in 0..(12 * 8) {
            note(&streams, i * 128 * KIB);
            let left = streams.left_behind((i + 1) * 128 * KIB, 0, 256 * KIB);
            if i < 2 {
                assert_eq!(left, LeftBehind { passed: 0..0, released: 0..0 });
                continue;
            }
            assert_eq!((left.passed.start, left.released.start), (passed, released));
            (passed, released) = (left.passed.end, left.released.end);
        }
        // Of 12 MiB read, late requests may still want the last 4.
        assert_eq!((passed, released), ((12 << 20) - 256 * KIB, 8 << 20));
        assert_eq!(streams.left_behind(1 << 40, 0, 0), LeftBehind { passed: 0..0, released: 0..0 });
        assert!(streams.have_passed(12 << 20) && !streams.have_passed((12 << 20) + 1));
        // Another reader left nothing behind before it began.
        let at = 64 << 20;
        for i in 0..3 {
            note(&streams, at + i * 128 * KIB);
        }
        let left = LeftBehind { passed: at..at + 384 * KIB, released: at..at };
        assert_eq!(streams.left_behind(at + 384 * KIB, 0, 0), left);
        assert!(streams.have_passed(8 << 20));
        // One more wants the same bytes.
        for i in 0..3 {
            note(&streams, i * 128 * KIB);
        }
        assert!(!streams.have_passed(8 << 20));
    }

    #[test]
    fn what_is_kept_behind_a_reader_is_as_long_as_was_asked() {
        let streams = RequestStreams::default();
        for i in 0..(12 * 8) {
            note(&streams, i * 128 * KIB);
        }
        let behind = 0..2 << 20;
        assert_eq!(streams.left_behind(12 << 20, 10 << 20, 0), LeftBehind { passed: behind.clone(), released: behind });
    }

    #[test]
    fn a_reader_gets_a_small_part_of_what_it_has_read_behind_its_column_chunk() {
        // Chunks of 64 KiB, requests of 128 KiB, column chunks of 1 MiB.
        let streams = RequestStreams::default();
        let mut most_behind = 0;
        for request in 0..256 {
            let end = (request + 1) * 128 * KIB;
            let (last, until) = (end / (64 * KIB) - 1, end.next_multiple_of(1 << 20) / (64 * KIB));
            if streams.note(end - 128 * KIB..end, last, true).is_some() {
                let scheduled = streams.schedule(end, last, (48, 4), until);
                let behind = scheduled.until.max(scheduled.chunks.end) - until;
                assert!(behind <= if end < 8 << 20 { 0 } else { last / 10 }, "{request}: {scheduled:?}");
                most_behind = behind.max(most_behind);
            }
        }
        assert_eq!(most_behind, 51);
        // One request without an end shows that the reader goes on.
        let end = 257 * 128 * KIB;
        assert!(streams.note(end - 128 * KIB..end, 513, false).is_some());
        assert_eq!(streams.schedule(end, 513, (48, 4), u64::MAX).chunks, 560..564);
        let end = 258 * 128 * KIB;
        assert!(streams.note(end - 128 * KIB..end, 515, true).is_some());
        assert_eq!(streams.schedule(end, 515, (48, 4), 528).until, u64::MAX);
    }

    #[test]
    fn a_random_reader_gets_none() {
        let streams = RequestStreams::default();
        let mut at = 1u64;
        for _ in 0..1000 {
            at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            assert_eq!(note(&streams, at >> 24), 0..0);
        }
    }

    #[test]
    fn two_readers_are_told_apart() {
        let streams = RequestStreams::default();
        let far = 1u64 << 30;
        let scheduled: Vec<u64> = (0..4)
            .flat_map(|i| [note(&streams, i * 128 * KIB), note(&streams, far + i * 128 * KIB)])
            .flatten()
            .collect();
        assert_eq!(scheduled, [1, 1025]);
    }
}
