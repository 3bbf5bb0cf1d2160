//! Recognises sequential readers by the offsets of their reads, since a view does not know its readers.

/// Most sequential readers of one file to track.
const STREAMS: usize = 8;

/// Most blocks to render ahead of a reader.
const MOST_AHEAD: usize = 4;

/// The latest blocks of the latest readers, the most recent last.
#[derive(Debug, Default)]
pub(in crate::views) struct BlockReaders(Vec<Stream>);

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// First byte of the reader's first block.
    since: u64,
    /// First byte of the reader's latest block; `end` is the byte after that block.
    start: u64,
    end: u64,
    /// Number of consecutive blocks read.
    run: usize,
    /// Whether one of its requests went over the end of a part that others read as a whole.
    passes: bool,
}

/// The blocks to render ahead of a sequential reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views) struct ReadAhead {
    /// Number of blocks to render ahead.
    pub blocks: usize,
    /// First byte of the reader's first block.
    pub since: u64,
    /// Number of blocks that the reader has read in order.
    pub run: usize,
    /// Whether the reader is known to pass the end of a part that others read as a whole, such as a row group.
    pub passes: bool,
}

impl BlockReaders {
    /// Records a read of a block of `length` bytes at `start`. Its request `passes` the end of a part that others read
    /// as a whole, or not. At the first read in a block that follows its reader's last one, returns how much to render
    /// ahead.
    pub fn touch(&mut self, start: u64, length: u64, passes: bool) -> Option<ReadAhead> {
        let end = start.saturating_add(length);
        // Most requests are further pieces of a known block.
        if let Some(stream) = self.0.iter_mut().find(|stream| stream.start == start) {
            stream.passes |= passes;
            return None;
        }
        match self.0.iter().position(|stream| stream.end == start) {
            Some(position) => {
                let stream = self.0.remove(position);
                let (run, since, passes) = (stream.run + 1, stream.since, stream.passes || passes);
                self.0.push(Stream { since, start, end, run, passes });
                Some(ReadAhead { blocks: (1 << run.min(8)).min(MOST_AHEAD), since, run, passes })
            }
            None => {
                if self.0.len() == STREAMS {
                    self.0.remove(0);
                }
                self.0.push(Stream { since: start, start, end, run: 0, passes });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_ahead(blocks: usize, since: u64, run: usize) -> Option<ReadAhead> {
        Some(ReadAhead { blocks, since, run, passes: false })
    }

    #[test]
    fn a_sequential_reader_is_served_ahead() {
        let mut streams = BlockReaders::default();
        assert_eq!(streams.touch(0, 10, false), None);
        assert_eq!(streams.touch(0, 10, false), None);
        assert_eq!(streams.touch(10, 5, false), read_ahead(2, 0, 1));
        assert_eq!(streams.touch(10, 5, false), None);
        assert_eq!(streams.touch(15, 5, false), read_ahead(4, 0, 2));
        assert_eq!(streams.touch(20, 5, false), read_ahead(4, 0, 3));
    }

    #[test]
    fn a_reader_that_has_passed_an_end_once_passes_all() {
        let mut streams = BlockReaders::default();
        streams.touch(0, 10, false);
        assert_eq!(streams.touch(10, 10, false), read_ahead(2, 0, 1));
        assert_eq!(streams.touch(10, 10, true), None);
        assert!(streams.touch(20, 10, false).is_some_and(|ahead| ahead.passes));
        assert!(streams.touch(30, 10, false).is_some_and(|ahead| ahead.passes));
    }

    #[test]
    fn a_random_reader_is_not() {
        let mut streams = BlockReaders::default();
        for block in [5, 1, 9, 3, 7, 1, 12, 20, 30, 40] {
            assert_eq!(streams.touch(block * 10, 10, false), None, "{block}");
        }
    }

    #[test]
    fn readers_are_told_apart() {
        let mut streams = BlockReaders::default();
        streams.touch(0, 10, false);
        streams.touch(500, 10, false);
        assert_eq!(streams.touch(10, 10, false), read_ahead(2, 0, 1));
        assert_eq!(streams.touch(510, 10, false), read_ahead(2, 500, 1));
    }
}
