//! An open file, and the answers to reads of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::fs::Error;
use crate::fs::node::NodeRef;
use crate::session;
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::AccessPattern;

/// An open file.
pub struct OpenNode {
    pub(super) number: u64,
    node: NodeRef,
    pub(super) size: u64,
    /// The bytes of a live file, from the time of the open.
    pub content: Option<Vec<u8>>,
    /// Whether the kernel may keep its bytes in the page cache.
    kept: bool,
    quick: AtomicBool,
    ahead: Arc<Ahead>,
}

/// The read-ahead of the kernel in a file that bypasses its page cache, which the kernel empties at each open. All open
/// files of one inode share this record, as they share that cache.
#[derive(Debug, Default)]
struct Ahead {
    /// Whether a program maps or splices the file.
    is_cached: AtomicBool,
    /// First byte and end of each refused range.
    refused: Mutex<BTreeMap<u64, u64>>,
}

impl OpenNode {
    /// A file whose bytes are in memory (`content`) or come from its node.
    pub(super) fn new(number: u64, node: NodeRef, size: u64, content: Option<Vec<u8>>) -> Self {
        let kept = content.is_none() && node.access() == AccessPattern::Any;
        Self { number, node, size, content, kept, quick: AtomicBool::new(false), ahead: Arc::default() }
    }

    /// The node that the file reads from.
    pub(super) fn node(&self) -> &NodeRef {
        &self.node
    }

    /// The same file, whose bytes the kernel may keep in its page cache.
    pub(super) fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Records that another program has the file open.
    pub(super) fn join(&mut self, other: &Self) {
        self.ahead = other.ahead.clone();
    }

    /// Whether a program waits for a read. Otherwise it is a read-ahead of the kernel that no program needs.
    ///
    /// Programs announce their reads (`POSIX_FADV_WILLNEED`; Arrow announces all column chunks at once). The kernel
    /// then fetches some of the bytes into a page cache that reads of a [direct](Self::is_direct) file bypass. Mappings
    /// and splices do use that cache. They ask again for pages of a refused read-ahead, and from then on nothing is
    /// refused. If the kernel reads nothing ahead (`MADV_RANDOM`), it asks for single pages, which are never refused: a
    /// refusal would send the program a signal.
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

    /// Whether the last read was quick; the first may have to find everything out.
    pub fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    /// Records whether the last read was quick.
    pub fn set_quick(&self, quick: bool) {
        self.quick.store(quick, Ordering::Relaxed);
    }

    /// Gathers the bytes from `offset` on, `length` of them or all up to the end. `buffer` takes computed bytes; stored
    /// bytes stay in the source.
    pub fn gather(&self, offset: u64, length: usize, buffer: Vec<u8>, interrupt: &Interrupt) -> Result<Answer, Error> {
        let left = self.size.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(length, |left| left.min(length));
        let mut answer = Answer::referring(buffer, wanted);
        match &self.content {
            Some(content) => answer.append(content, offset, wanted),
            None => self.gather_whole(offset, wanted, &mut answer, interrupt)?,
        }
        Ok(answer)
    }

    /// Reads the stored parts of an answer gathered from `offset` on into memory.
    pub fn read_stored(&self, offset: u64, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let wanted = answer.len();
        if answer.read_stored(interrupt).is_err() {
            // The node knows the cause of the failure, and logs it.
            *answer = Answer::default();
            self.gather_whole(offset, wanted, answer, interrupt)?;
        }
        Ok(())
    }

    fn gather_whole(
        &self,
        offset: u64,
        wanted: usize,
        answer: &mut Answer,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        if wanted > 0 {
            self.node.gather(offset, wanted, answer, interrupt)?;
        }
        let got = answer.len();
        if got != wanted {
            // The kernel takes a short answer for the end of the file: it would silently cut the reader off.
            let size = self.size;
            return Err(session::Error::Io(format!(
                "{got} bytes at {offset} instead of {wanted}, in a file of {size}"
            ))
            .into());
        }
        Ok(())
    }

    /// Whether the kernel should pass reads on unchanged, without its page cache.
    pub fn is_direct(&self) -> bool {
        !self.kept
    }
}
