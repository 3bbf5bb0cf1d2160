//! A requested range of bytes, assembled from pieces.

use std::ops::Range;

use crate::source::Interrupt;
use crate::store::{Answer, Error, Rows};

/// The bytes still wanted for `answer`: `length` bytes from byte `at` on.
pub(super) struct WantedBytes<'a> {
    at: u64,
    length: usize,
    pub answer: &'a mut Answer,
}

impl<'a> WantedBytes<'a> {
    /// Returns a request for `length` bytes from byte `at` on.
    pub fn new(at: u64, length: usize, answer: &'a mut Answer) -> Self {
        Self { at, length, answer }
    }

    /// Returns the position of the next wanted byte. `None`: no more are wanted.
    pub fn next(&self) -> Option<u64> {
        (self.length > 0).then_some(self.at)
    }

    /// Consumes the wanted range of a piece of `bytes` bytes that begins at byte `start`; returns that range relative
    /// to the piece.
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

    /// Copies the wanted bytes of `piece`, which begins at byte `start`; returns their number.
    pub fn take(&mut self, start: u64, piece: &[u8]) -> usize {
        let Some(part) = self.part(start, piece.len() as u64) else { return 0 };
        // The range lies within the piece, hence within usize.
        let taken = &piece[part.start as usize..part.end as usize];
        self.answer.made().extend_from_slice(taken);
        taken.len()
    }

    /// Copies the wanted bytes of a piece of `bytes` bytes that begins at byte `start`: stored bytes of rows, from
    /// their byte `first` on. The reader will want no more than `behind` bytes behind the piece, where that is known.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn take_stored(
        &mut self,
        (start, bytes): (u64, u64),
        rows: &dyn Rows,
        (first, behind): (u64, Option<u64>),
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Some(part) = self.part(start, bytes) else { return Ok(()) };
        let rest = behind.map(|behind| behind.saturating_add(bytes - part.end));
        let bounded = rest.map(|rest| interrupt.followed_by(rest, part.end - part.start));
        let interrupt = bounded.as_ref().unwrap_or(interrupt);
        self.answer.append_stored(rows, first + part.start, (part.end - part.start) as usize, interrupt)
    }

    /// Appends the wanted part of `bytes` zeros from byte `start` on.
    pub fn zeros(&mut self, start: u64, bytes: u64) {
        if let Some(part) = self.part(start, bytes) {
            let made = self.answer.made();
            made.resize(made.len() + (part.end - part.start) as usize, 0);
        }
    }
}

#[cfg(test)]
impl WantedBytes<'_> {
    /// Returns the bytes that `take` copies for a request of `length` bytes from byte `at` on.
    pub fn collect(at: u64, length: usize, take: impl FnOnce(&mut WantedBytes<'_>)) -> Vec<u8> {
        let mut answer = Answer::default();
        take(&mut WantedBytes::new(at, length, &mut answer));
        answer.into_made()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        let taken = WantedBytes::collect(2, 7, |wanted| {
            assert_eq!(wanted.take(0, b"a"), 0);
            assert_eq!(wanted.take(1, b"bcd"), 2);
            wanted.zeros(4, 2);
            assert_eq!(wanted.next(), Some(6));
            assert_eq!(wanted.take(6, b"efghij"), 3);
            assert_eq!(wanted.next(), None);
            assert_eq!(wanted.take(9, b"k"), 0);
        });
        assert_eq!(taken, b"cd\0\0efg");
    }
}
