//! An open file, and where the bytes of an answer lie: made for it, decoded already, or in the source as they are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::fs::Error;
use crate::fs::node::NodeRef;
use crate::source::Interrupt;
use crate::store::{Lent, Span, StoredRun};
use crate::views::Access;

/// An open file.
pub struct OpenFile {
    pub(super) number: u64,
    node: NodeRef,
    pub(super) size: u64,
    /// The bytes of a live file, as they were at the open.
    pub content: Option<Vec<u8>>,
    /// The kernel may keep its bytes in the page cache.
    kept: bool,
    quick: AtomicBool,
    ahead: Arc<Ahead>,
}

/// What the kernel reads on its own of a file that bypasses its page cache, which it empties at each open. All who have
/// the file open share it, as they share that cache.
#[derive(Debug, Default)]
struct Ahead {
    /// A program maps or splices the file.
    is_cached: AtomicBool,
    /// First byte and end of each range that was refused.
    refused: Mutex<BTreeMap<u64, u64>>,
}

/// Bytes of an answer that lie in one place.
#[derive(Debug)]
pub enum Part {
    /// Made for this answer: where they are among what was.
    Made(Range<usize>),
    /// Decoded already.
    Lent(Lent),
    /// In the source, as they are.
    Stored(StoredRun),
}

impl Part {
    /// Its bytes.
    pub fn len(&self) -> usize {
        match self {
            Part::Made(range) => range.len(),
            Part::Lent(lent) => lent.len(),
            Part::Stored(run) => run.len(),
        }
    }

    /// Whether it lies in the source.
    pub fn is_stored(&self) -> bool {
        matches!(self, Part::Stored(_))
    }

    /// Its bytes in memory; none where they lie in the source.
    pub fn bytes<'a>(&'a self, made: &'a [u8]) -> &'a [u8] {
        match self {
            Part::Made(range) => made.get(range.clone()).unwrap_or_default(),
            Part::Lent(lent) => lent,
            Part::Stored(_) => &[],
        }
    }

    /// Gives back what was lent, once it is copied.
    fn copy(&mut self, made: &mut Vec<u8>) {
        if let Part::Lent(lent) = self {
            made.extend_from_slice(lent);
            *self = Part::Made(made.len() - lent.len()..made.len());
        }
    }
}

impl OpenFile {
    /// A file whose bytes are at hand (`content`) or asked of its node.
    pub(super) fn new(number: u64, node: NodeRef, size: u64, content: Option<Vec<u8>>) -> Self {
        let kept = content.is_none() && node.access() == Access::Any;
        Self { number, node, size, content, kept, quick: AtomicBool::new(false), ahead: Arc::default() }
    }

    /// Its node.
    pub(super) fn node(&self) -> &NodeRef {
        &self.node
    }

    /// The same file, whose bytes the kernel may keep.
    pub(super) fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Notes that somebody else has the file open.
    pub(super) fn join(&mut self, other: &Self) {
        self.ahead = other.ahead.clone();
    }

    /// Whether somebody waits for a read, which is a program's own or the kernel's.
    ///
    /// Programs announce what they will read (`POSIX_FADV_WILLNEED`; Arrow announces all column chunks at once). The
    /// kernel then fetches some of it, into a page cache that reads of a [direct](Self::is_direct) file pass by.
    /// Mappings and splices do look there. The kernel asks for their pages again where read-ahead was refused, and
    /// nothing is refused from then on; or, where it reads nothing ahead (`MADV_RANDOM`), for single pages, which are
    /// never refused: that would be a signal to the program.
    pub fn is_awaited(&self, offset: u64, length: usize, by_program: bool) -> bool {
        let Ahead { is_cached, refused } = &*self.ahead;
        if by_program || self.content.is_some() || !self.is_direct() || is_cached.load(Ordering::Relaxed) {
            return true;
        }
        let end = offset.saturating_add(length as u64);
        let mut refused = refused.lock();
        if refused.range(..end).next_back().is_some_and(|(_, end)| *end > offset) {
            is_cached.store(true, Ordering::Relaxed);
            refused.clear();
            return true;
        }
        let is_page = length <= rustix::param::page_size();
        if !is_page {
            refused.insert(offset, end);
        }
        is_page
    }

    /// Whether the read that ended last was quick; the first may have to find everything out.
    pub fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    /// Records whether the last read was quick.
    pub fn set_quick(&self, quick: bool) {
        self.quick.store(quick, Ordering::Relaxed);
    }

    /// Gathers the bytes from `offset` on, `length` of them or all up to the end. Those that have to be made are
    /// appended to `made`; the rest stay in their places.
    pub fn gather(
        &self,
        offset: u64,
        length: usize,
        made: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Part>, Error> {
        let left = self.size.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(length, |left| left.min(length));
        if let Some(content) = &self.content {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = content.get(start..).and_then(|rest| rest.get(..wanted)).unwrap_or_default();
            made.extend_from_slice(bytes);
            return Ok(vec![Part::Made(made.len() - bytes.len()..made.len())]);
        }
        let mut parts = Vec::<Part>::new();
        // Bytes located so far; of these, bytes at the end that are still to be made.
        let (mut done, mut unmade) = (0, 0);
        while done < wanted {
            // A loan counts against the budget, and the next part may have to wait for room there. Holding a loan while
            // waiting could deadlock.
            if let Some(last) = parts.last_mut() {
                last.copy(made);
            }
            let span = self.node.span(offset + done as u64, wanted - done, interrupt)?;
            let bytes = span.len();
            if bytes == 0 || bytes > wanted - done {
                return Err(Error::Io(format!("a span of {bytes} bytes at {done} of {wanted} from {offset} on")));
            }
            done += bytes;
            if let Span::Made(_) = span {
                unmade += bytes;
                continue;
            }
            if unmade > 0 {
                parts.push(self.make(offset + (done - bytes - unmade) as u64, unmade, made, interrupt)?);
                unmade = 0;
            }
            match (span, parts.last_mut()) {
                // Chunks often follow each other in the file too.
                (Span::Stored(run), Some(Part::Stored(last))) => {
                    if let Err(run) = last.join(run) {
                        parts.push(Part::Stored(run));
                    }
                }
                (Span::Stored(run), _) => parts.push(Part::Stored(run)),
                (Span::Lent(lent), _) => parts.push(Part::Lent(lent)),
                (Span::Made(_), _) => {}
            }
        }
        if unmade > 0 {
            parts.push(self.make(offset + (done - unmade) as u64, unmade, made, interrupt)?);
        }
        Ok(parts)
    }

    /// Reads those of `parts`, which were gathered from `offset` on, that lie in the source.
    pub fn read_stored(
        &self,
        offset: u64,
        parts: &mut [Part],
        made: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        // As in `gather`.
        parts.iter_mut().for_each(|part| part.copy(made));
        let mut at = offset;
        for part in parts {
            let length = part.len();
            if part.is_stored() {
                *part = self.make(at, length, made, interrupt)?;
            }
            at += length as u64;
        }
        Ok(())
    }

    fn make(&self, offset: u64, length: usize, made: &mut Vec<u8>, interrupt: &Interrupt) -> Result<Part, Error> {
        let start = made.len();
        self.node.read(offset, length, made, interrupt)?;
        let got = made.len() - start;
        if got < length {
            // A short answer is the end of the file to the kernel: the reader would be cut off without a word.
            let size = self.size;
            return Err(Error::Io(format!("{got} bytes at {offset} instead of {length}, in a file of {size}")));
        }
        made.truncate(start + length);
        Ok(Part::Made(start..start + length))
    }

    /// Whether the kernel should pass reads on as they are, without its page cache.
    pub fn is_direct(&self) -> bool {
        !self.kept
    }
}
