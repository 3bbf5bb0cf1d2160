//! The answer to a read: a sequence of bytes, each part in memory or still in the source.

use std::ops::Range;

use super::{Error, Lent, Rows, Span, StoredRun};
use crate::source::Interrupt;

/// Bytes of a range of a file, gathered in order: produced for the answer, borrowed from decoded chunks, or left in the
/// source.
#[derive(Debug, Default)]
pub struct Answer {
    /// Produced bytes, concatenated over all parts.
    made: Vec<u8>,
    parts: Vec<Part>,
    /// Number of produced bytes already in `parts`; the rest follows the last part.
    placed: usize,
    /// Number of requested bytes, if parts may stay where they are. `None`: all bytes go into memory.
    wanted: Option<usize>,
}

/// Contiguous bytes of one kind.
#[derive(Debug)]
enum Part {
    Made(Range<usize>),
    Lent(Lent),
    Stored(StoredRun),
}

/// Contiguous bytes of a finished answer.
#[derive(Clone, Copy, Debug)]
pub enum AnswerPart<'a> {
    /// Bytes in memory.
    Memory(&'a [u8]),
    /// Unchanged bytes of the source.
    Source(&'a StoredRun),
}

impl AnswerPart<'_> {
    /// Number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        match self {
            AnswerPart::Memory(bytes) => bytes.len(),
            AnswerPart::Source(run) => run.len(),
        }
    }

    /// The bytes that are in memory; empty if the part lies in the source.
    pub fn in_memory(&self) -> &[u8] {
        match self {
            AnswerPart::Memory(bytes) => bytes,
            AnswerPart::Source(_) => &[],
        }
    }
}

impl Answer {
    /// An answer in memory that continues `made`.
    pub fn in_memory(made: Vec<u8>) -> Self {
        Self { made, ..Self::default() }
    }

    /// An answer of `wanted` bytes, whose parts may stay where they are. `buffer` receives the produced bytes.
    pub fn referring(mut buffer: Vec<u8>, wanted: usize) -> Self {
        buffer.clear();
        Self { wanted: Some(wanted), ..Self::in_memory(buffer) }
    }

    /// Collects the bytes that `gather` appends, in memory.
    ///
    /// # Errors
    /// Those of `gather`.
    pub fn collect<E>(gather: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<Vec<u8>, E> {
        let mut answer = Self::default();
        gather(&mut answer)?;
        Ok(answer.into_made())
    }

    /// The buffer for produced bytes: appending to it continues the answer.
    pub fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }

    /// Returns the buffer: the whole answer, if all of it is in memory.
    pub fn into_made(self) -> Vec<u8> {
        self.made
    }

    /// Appends at most `length` of `bytes` from `offset` on.
    pub fn append(&mut self, bytes: &[u8], offset: u64, length: usize) {
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        self.made.extend_from_slice(rest.get(..length).unwrap_or(rest));
    }

    /// Appends `length` stored bytes of some rows, from byte `offset` over all of them on.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn append_stored(
        &mut self,
        rows: &dyn Rows,
        mut offset: u64,
        mut length: usize,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let stored = rows.stored_bytes()?;
        while length > 0 {
            let span = match self.wanted {
                Some(_) => stored.span(offset, length, interrupt)?,
                None => Span::Made(length),
            };
            let count = span.len();
            if count == 0 || count > length {
                let reason = format!("a span of {count} bytes at {offset}, but {length} were requested");
                return Err(Error::unsupported("rows", reason));
            }
            match span {
                Span::Made(count) => stored.append(offset, count, &mut self.made, interrupt)?,
                Span::Lent(lent) => self.lend(lent),
                Span::Stored(run) => self.refer(run),
            }
            offset += count as u64;
            length -= count;
        }
        Ok(())
    }

    /// Appends bytes of a decoded chunk. A borrowed part counts against the budget, and producing further bytes may
    /// wait for the budget, which could deadlock: only the last part of an answer is borrowed, others are copied.
    pub fn lend(&mut self, lent: Lent) {
        if self.wanted == Some(self.len() + lent.len()) {
            self.place(Part::Lent(lent));
        } else {
            self.made.extend_from_slice(&lent);
        }
    }

    fn refer(&mut self, run: StoredRun) {
        // Consecutive chunks are often contiguous in the source as well.
        let run = match self.parts.last_mut() {
            Some(Part::Stored(last)) if self.placed == self.made.len() => match last.join(run) {
                Ok(()) => return,
                Err(run) => run,
            },
            _ => run,
        };
        self.place(Part::Stored(run));
    }

    /// Adds a part that follows the bytes produced so far.
    fn place(&mut self, part: Part) {
        if self.placed < self.made.len() {
            self.parts.push(Part::Made(self.placed..self.made.len()));
            self.placed = self.made.len();
        }
        self.parts.push(part);
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.parts().map(|part| part.len()).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = AnswerPart<'_>> {
        let placed = self.parts.iter().map(move |part| match part {
            Part::Made(range) => AnswerPart::Memory(self.made.get(range.clone()).unwrap_or_default()),
            Part::Lent(lent) => AnswerPart::Memory(lent),
            Part::Stored(run) => AnswerPart::Source(run),
        });
        let behind = self.made.get(self.placed..).unwrap_or_default();
        placed.chain((!behind.is_empty()).then_some(AnswerPart::Memory(behind)))
    }

    /// Whether part of it lies in a source.
    pub fn is_stored(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Stored(_)))
    }

    /// Reads the parts in the source into memory.
    ///
    /// # Errors
    /// See [`Error`]; the answer is then unusable.
    pub fn read_stored(&mut self, interrupt: &Interrupt) -> Result<(), Error> {
        if self.placed < self.made.len() {
            self.parts.push(Part::Made(self.placed..self.made.len()));
        }
        for part in &mut self.parts {
            let start = self.made.len();
            if let Part::Stored(run) = part {
                run.append(&mut self.made, interrupt)?;
                *part = Part::Made(start..self.made.len());
            }
        }
        self.placed = self.made.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::Source;
    use crate::store::{Budget, Opening, Options, SourceConstancy, Store};

    fn lent(bytes: &[u8]) -> Lent {
        let budget = Budget::new(1 << 20);
        let made = Lent::made(&budget, bytes.len(), |out| {
            out.copy_from_slice(bytes);
            Ok::<_, Error>(())
        });
        made.unwrap().unwrap()
    }

    fn in_memory(answer: &Answer) -> Vec<Option<&[u8]>> {
        let bytes = answer.parts().map(|part| match part {
            AnswerPart::Memory(bytes) => Some(bytes),
            AnswerPart::Source(_) => None,
        });
        bytes.collect()
    }

    #[test]
    fn only_the_last_bytes_stay_lent() {
        let mut answer = Answer::referring(b"old".to_vec(), 7);
        answer.append(b"abc", 1, 9);
        answer.lend(lent(b"de"));
        answer.lend(lent(b"fgh"));
        assert_eq!(in_memory(&answer), [Some(&b"bcde"[..]), Some(b"fgh")]);
        assert_eq!((answer.len(), answer.is_stored()), (7, false));
        let all = Answer::collect(|answer| {
            answer.lend(lent(b"fgh"));
            answer.append(b"i", 0, 1);
            Ok::<_, Error>(())
        });
        assert_eq!(all.unwrap(), b"fghi");
    }

    #[test]
    fn runs_of_the_source_are_joined_and_read_in_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let source = Arc::new(Source::open(&path).unwrap());
        let opening = Opening::new(Store::new(Options::default()), source, SourceConstancy::Fixed);
        let (mut answer, run) = (Answer::referring(Vec::new(), 300_006), 100_000);
        let refer = |answer: &mut Answer, at| match StoredRun::span(&opening, at, run) {
            Span::Stored(run) => answer.refer(run),
            span => panic!("{span:?}"),
        };
        answer.append(b"abc", 0, 3);
        refer(&mut answer, 0);
        refer(&mut answer, 100_000);
        answer.append(b"de", 0, 2);
        refer(&mut answer, 200_000);
        answer.append(b"f", 0, 1);
        assert_eq!(in_memory(&answer), [Some(&b"abc"[..]), None, Some(b"de"), None, Some(b"f")]);
        assert_eq!((answer.len(), answer.is_stored()), (300_006, true));
        answer.read_stored(&Interrupt::new()).unwrap();
        assert!(!answer.is_stored());
        let read: Vec<u8> = in_memory(&answer).into_iter().flatten().flatten().copied().collect();
        assert!(read == [b"abc", &bytes[..200_000], b"de", &bytes[200_000..], b"f"].concat());
    }
}
