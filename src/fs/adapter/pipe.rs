//! Splices answers together in the kernel: bytes of the source go from its page cache to the reader without a copy
//! through this process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

use crate::source::{ReadLease, Source};
use crate::store::AnswerPart;

/// Size of a pipe that holds an answer of 1 MiB and its header. Without `CAP_SYS_RESOURCE` a pipe is no larger than
/// `fs.pipe-max-size`.
const LARGE: usize = 2 << 20;

/// The usual `fs.pipe-max-size`.
const USUAL: usize = 1 << 20;

/// Pages that an answer may need beside those that its bytes fill: parts begin and end within pages.
const SPARE: usize = 8;

/// Most pipes kept for the next answers.
const KEPT: usize = 16;

/// Empty pipes, kept for the next answers.
#[derive(Default)]
pub(super) struct Pipes(Mutex<Vec<Pipe>>);

/// A pipe of as many pages as the system grants.
pub(super) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    pages: usize,
}

/// Length of the longest answer that fits in a pipe.
pub(super) fn longest_answer() -> usize {
    let pages = Pipe::new().map_or(0, |pipe| pipe.pages);
    // Pipes this small carry no answer, so they limit none.
    if pages <= 4 * SPARE { usize::MAX } else { (pages - SPARE) * page_size() }
}

impl Pipes {
    /// Fills a pipe with an answer: this `header` and these parts, some of which lie in a source. `None`: no pipe is
    /// large enough, or the source has no lease.
    pub fn fill<'a>(&self, header: &[u8], parts: &'a [AnswerPart<'a>]) -> Option<Filled<'a>> {
        let mut stored = parts.iter().filter_map(|part| match part {
            AnswerPart::Source(run) => Some(run.source()),
            AnswerPart::Memory(_) => None,
        });
        let source: &Source = stored.next()?;
        if stored.any(|other| !std::ptr::eq(other, source)) {
            return None;
        }
        let pipe = self.0.lock().pop();
        let pipe = pipe.map_or_else(Pipe::new, Ok).inspect_err(|error| tracing::debug!("no pipe: {error}")).ok()?;
        if parts.iter().map(pages).sum::<usize>() + 1 > pipe.pages {
            self.give_back(pipe);
            return None;
        }
        let Some(lease) = source.lease() else {
            self.give_back(pipe);
            return None;
        };
        // An error from here on closes the pipe together with its contents.
        pipe.write(header).ok()?;
        for part in parts {
            let filled = match part {
                AnswerPart::Source(run) => pipe.take_from(&lease, run.address(), run.len()),
                AnswerPart::Memory(bytes) => pipe.write(bytes),
            };
            filled.inspect_err(|error| tracing::debug!("a pipe was not filled: {error}")).ok()?;
        }
        let length = header.len() + parts.iter().map(AnswerPart::len).sum::<usize>();
        Some(Filled { pipe, lease, parts, length })
    }

    fn give_back(&self, pipe: Pipe) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(pipe);
        }
    }
}

/// A pipe that holds an answer; the lease keeps writers from the source meanwhile.
pub(super) struct Filled<'a> {
    pipe: Pipe,
    lease: ReadLease,
    parts: &'a [AnswerPart<'a>],
    /// Bytes in the pipe, header included.
    length: usize,
}

impl Filled<'_> {
    /// Hands the answer to the kernel, which copies it to the requester.
    ///
    /// # Errors
    /// `ENOENT` if the requester has gone.
    pub fn send(self, device: impl AsFd, pipes: &Pipes) -> io::Result<()> {
        // Counted before the requester has the bytes: it may ask for the statistics next.
        for part in self.parts {
            if let AnswerPart::Source(run) = part {
                run.count_passed_on(&self.lease);
            }
        }
        let sent = splice(&self.pipe.reader, None, device, None, self.length, SpliceFlags::empty())?;
        if sent != self.length {
            return Err(io::Error::other(format!("the kernel took {sent} of {} bytes", self.length)));
        }
        drop(self.lease);
        pipes.give_back(self.pipe);
        Ok(())
    }
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        if fcntl_setpipe_size(&writer, LARGE).is_err() {
            fcntl_setpipe_size(&writer, USUAL).ok();
        }
        let pages = fcntl_getpipe_size(&writer)? / page_size();
        Ok(Self { reader, writer, pages })
    }

    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.writer, bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Splices `length` bytes of the file from byte `address` on into the pipe.
    fn take_from(&self, file: impl AsFd, address: u64, mut length: usize) -> io::Result<()> {
        let mut at = address;
        while length > 0 {
            match splice(&file, Some(&mut at), &self.writer, None, length, SpliceFlags::NONBLOCK) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(taken) => length -= taken,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Most pages of a pipe that a part takes.
fn pages(part: &AnswerPart<'_>) -> usize {
    let page = page_size();
    match part {
        AnswerPart::Source(run) => ((run.address() % page as u64) as usize + run.len()).div_ceil(page),
        // The first bytes may fill up the page before.
        AnswerPart::Memory(bytes) => bytes.len().div_ceil(page) + 1,
    }
}
