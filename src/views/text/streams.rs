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
}

/// The blocks to render ahead of a sequential reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views) struct ReadAhead {
    /// Number of blocks to render ahead.
    pub blocks: usize,
    /// First byte of the reader's first block.
    pub since: u64,
}

impl BlockReaders {
    /// Records a read of a block of `length` bytes at `start`. At the first read in a block that follows its reader's
    /// last one, returns how much to render ahead.
    pub fn touch(&mut self, start: u64, length: u64) -> Option<ReadAhead> {
        let end = start.saturating_add(length);
        // Most requests are further pieces of a known block.
        if self.0.iter().any(|stream| stream.start == start) {
            return None;
        }
        match self.0.iter().position(|stream| stream.end == start) {
            Some(position) => {
                let stream = self.0.remove(position);
                let (run, since) = (stream.run + 1, stream.since);
                self.0.push(Stream { since, start, end, run });
                Some(ReadAhead { blocks: (1 << run.min(8)).min(MOST_AHEAD), since })
            }
            None => {
                if self.0.len() == STREAMS {
                    self.0.remove(0);
                }
                self.0.push(Stream { since: start, start, end, run: 0 });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_reader_is_served_ahead() {
        let mut streams = BlockReaders::default();
        assert_eq!(streams.touch(0, 10), None);
        assert_eq!(streams.touch(0, 10), None);
        assert_eq!(streams.touch(10, 5), Some(ReadAhead { blocks: 2, since: 0 }));
        assert_eq!(streams.touch(10, 5), None);
        assert_eq!(streams.touch(15, 5), Some(ReadAhead { blocks: 4, since: 0 }));
        assert_eq!(streams.touch(20, 5), Some(ReadAhead { blocks: 4, since: 0 }));
    }

    #[test]
    fn a_random_reader_is_not() {
        let mut streams = BlockReaders::default();
        for block in [5, 1, 9, 3, 7, 1, 12, 20, 30, 40] {
            assert_eq!(streams.touch(block * 10, 10), None, "{block}");
        }
    }

    #[test]
    fn readers_are_told_apart() {
        let mut streams = BlockReaders::default();
        streams.touch(0, 10);
        streams.touch(500, 10);
        assert_eq!(streams.touch(10, 10), Some(ReadAhead { blocks: 2, since: 0 }));
        assert_eq!(streams.touch(510, 10), Some(ReadAhead { blocks: 2, since: 500 }));
    }
}
