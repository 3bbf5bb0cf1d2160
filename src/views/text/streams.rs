//! Recognises sequential readers: a view knows offsets alone, not who reads.

/// Sequential readers of one file that are told apart.
const STREAMS: usize = 8;

/// Blocks rendered ahead of a reader at most.
const MOST_AHEAD: usize = 4;

/// The latest blocks of the latest readers, the most recent last.
#[derive(Debug, Default)]
pub(in crate::views) struct Streams(Vec<Stream>);

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where the reader's latest block begins and ends.
    start: u64,
    end: u64,
    /// Blocks read one after the other.
    run: usize,
}

impl Streams {
    /// Notes that a block of `length` bytes from `start` on was read. Says how many blocks behind it should be made
    /// ready, when that is to be decided: at the first read in a block that follows its reader's last.
    pub fn touch(&mut self, start: u64, length: u64) -> Option<usize> {
        let end = start.saturating_add(length);
        // Most requests are further pieces of a known block.
        if self.0.iter().any(|stream| stream.start == start) {
            return None;
        }
        match self.0.iter().position(|stream| stream.end == start) {
            Some(position) => {
                let stream = self.0.remove(position);
                let run = stream.run + 1;
                self.0.push(Stream { start, end, run });
                Some((1 << run.min(8)).min(MOST_AHEAD))
            }
            None => {
                if self.0.len() == STREAMS {
                    self.0.remove(0);
                }
                self.0.push(Stream { start, end, run: 0 });
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
        let mut streams = Streams::default();
        assert_eq!(streams.touch(0, 10), None);
        assert_eq!(streams.touch(0, 10), None);
        assert_eq!(streams.touch(10, 5), Some(2));
        assert_eq!(streams.touch(10, 5), None);
        assert_eq!(streams.touch(15, 5), Some(4));
        assert_eq!(streams.touch(20, 5), Some(4));
    }

    #[test]
    fn a_random_reader_is_not() {
        let mut streams = Streams::default();
        for block in [5, 1, 9, 3, 7, 1, 12, 20, 30, 40] {
            assert_eq!(streams.touch(block * 10, 10), None, "{block}");
        }
    }

    #[test]
    fn readers_are_told_apart() {
        let mut streams = Streams::default();
        streams.touch(0, 10);
        streams.touch(500, 10);
        assert_eq!(streams.touch(10, 10), Some(2));
        assert_eq!(streams.touch(510, 10), Some(2));
    }
}
