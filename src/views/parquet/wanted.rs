//! A range of bytes that is put together from pieces.

use std::ops::Range;

/// What is still wanted: `length` bytes from byte `at` on, to be appended to `out`.
pub(super) struct Wanted<'a> {
    at: u64,
    length: usize,
    pub out: &'a mut Vec<u8>,
}

impl<'a> Wanted<'a> {
    /// `length` bytes from byte `at` on.
    pub fn new(at: u64, length: usize, out: &'a mut Vec<u8>) -> Self {
        Self { at, length, out }
    }

    /// The byte that is wanted next.
    pub fn next(&self) -> Option<u64> {
        (self.length > 0).then_some(self.at)
    }

    /// What is wanted of a piece of `bytes` bytes that begins at byte `start`, counted from its beginning; counts as
    /// taken.
    pub fn part(&mut self, start: u64, bytes: u64) -> Option<Range<u64>> {
        let skip = self.at.checked_sub(start)?;
        let count = bytes.checked_sub(skip)?.min(self.length as u64);
        if count == 0 {
            return None;
        }
        self.at += count;
        self.length -= count as usize;
        Some(skip..skip + count)
    }

    /// Takes what is wanted of `piece`, which begins at byte `start`; returns how many bytes.
    pub fn take(&mut self, start: u64, piece: &[u8]) -> usize {
        let Some(part) = self.part(start, piece.len() as u64) else { return 0 };
        // Within the piece, so within usize.
        let taken = &piece[part.start as usize..part.end as usize];
        self.out.extend_from_slice(taken);
        taken.len()
    }

    /// Takes what is wanted of `bytes` zeros from byte `start` on.
    pub fn zeros(&mut self, start: u64, bytes: u64) {
        if let Some(part) = self.part(start, bytes) {
            self.out.resize(self.out.len() + (part.end - part.start) as usize, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        let mut out = Vec::new();
        let mut wanted = Wanted::new(2, 7, &mut out);
        assert_eq!(wanted.take(0, b"a"), 0);
        assert_eq!(wanted.take(1, b"bcd"), 2);
        wanted.zeros(4, 2);
        assert_eq!(wanted.next(), Some(6));
        assert_eq!(wanted.take(6, b"efghij"), 3);
        assert_eq!(wanted.next(), None);
        assert_eq!(wanted.take(9, b"k"), 0);
        assert_eq!(out, b"cd\0\0efg");
    }
}
