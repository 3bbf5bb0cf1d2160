//! The daemon's view of a worker: a child process, a socket, shared memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::nursery::{LibrarySettings, Process};
use super::pool::{self, Slot};
use crate::catalogue::Elements;
use crate::h5::options::Options;
use crate::h5::protocol::descriptors;
use crate::h5::protocol::{
    self, Envelope, GIVEN, Hello, MAX_ELEMENTS, MAX_FRAME, MAX_HEAP, MAX_WANTED, REFUSED, Request, SHARED,
    WorkerMessage, WorkerReply,
};

/// Contents of the shared memory above this size go back to the system after the read.
const KEEP_SHARED: u64 = 4 << 20;

/// A running worker. Dropping it ends the process and waits for it, so that no zombie stays.
#[derive(Debug)]
pub(in crate::h5) struct Worker {
    process: Process,
    socket: UnixStream,
    memory: File,
    /// Bytes of an incomplete reply.
    inbox: Vec<u8>,
    serial: u64,
    /// The last request that the worker has begun.
    begun: u64,
    _slot: Slot,
}

/// The worker is gone, or sends nonsense and must go.
#[derive(Debug)]
pub(in crate::h5) struct Gone(pub String);

/// How a worker gets at its source.
#[derive(Clone, Copy, Debug)]
pub(in crate::h5) enum SourceAccess<'a> {
    /// By its descriptor.
    Descriptor(BorrowedFd<'a>),
    /// By asking for its bytes. The number is the size of the source.
    Asked(u64),
}

/// The end of a wait for a message of a worker.
pub(in crate::h5) enum Heard {
    Reply(WorkerReply),
    /// It waits for bytes of the source: [`Worker::give_wanted`].
    Want {
        at: u64,
        length: u64,
    },
    /// No message came in time.
    Nothing,
}

impl Worker {
    /// Starts a worker for `source` and passes it the descriptor, if the source has one.
    ///
    /// With the descriptor of a journal the worker may write to the source, which must then be open for writing.
    pub fn start(
        source: SourceAccess<'_>,
        journal: Option<BorrowedFd<'_>>,
        path: &Path,
        options: &Options,
        files: &[Vec<u8>],
        slot: Slot,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // The first message may be longer than the socket's buffer.
        ours.set_write_timeout(Some(options.deadline))?;
        let memory = shared_memory()?;
        let canonical = options.follow_external.then(|| path.canonicalize()).transpose()?;
        let folder = canonical.as_deref().and_then(Path::parent).map(Path::to_owned);
        let path = canonical.unwrap_or_else(|| path.to_owned());
        let kind = LibrarySettings {
            program: options.program.clone(),
            has_plugins: options.plugins.is_some(),
            folder: folder.clone(),
        };
        let process = pool::start(kind, theirs.into())?;
        let (descriptor, asks) = match source {
            SourceAccess::Descriptor(descriptor) => (Some(descriptor), None),
            SourceAccess::Asked(size) => (None, Some(size)),
        };
        let hello = Hello {
            path: path.into_os_string().into_vec(),
            asks,
            follow: folder.map(|folder| folder.into_os_string().into_vec()),
            plugins: options.plugins.as_ref().map(|folder| folder.as_os_str().as_bytes().to_vec()),
            memory: options.memory,
            parent: std::process::id(),
            files: files.to_vec(),
            wanted: options.attributes.to_vec(),
            page_time: options.page_time,
            write: journal.is_some(),
        };
        let descriptors: Vec<_> =
            [memory.as_fd()].into_iter().chain(descriptor).chain(journal).map(|one| one.as_raw_fd()).collect();
        descriptors::send(&ours, &descriptors)?;
        protocol::send(&mut &ours, &hello)?;
        ours.set_nonblocking(true)?;
        tracing::debug!(worker = process.id(), source = %hello.path.as_bstr(), "HDF5 worker started");
        Ok(Self { process, socket: ours, memory, inbox: Vec::new(), serial: 0, begun: 0, _slot: slot })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The processor time used so far; zero once the process has ended.
    pub fn processor_time(&self) -> Duration {
        self.process.processor_time().unwrap_or_default()
    }

    /// Sends a request; returns its number.
    pub fn send(&mut self, request: Request) -> Result<u64, Gone> {
        self.serial += 1;
        let frame = protocol::frame(&Envelope { serial: self.serial, request }).map_err(|e| Gone(e.to_string()))?;
        // Only one request is in progress at a time, and it fits the socket's buffer, so this never blocks.
        self.socket.write_all(&frame).map_err(|error| self.gone(&error.to_string()))?;
        Ok(self.serial)
    }

    /// Waits up to `wait` for the reply of a worker that asks for no bytes.
    pub fn reply(&mut self, wait: Duration) -> Result<Option<WorkerReply>, Gone> {
        match self.hear(wait)? {
            Heard::Reply(reply) => Ok(Some(reply)),
            Heard::Nothing => Ok(None),
            Heard::Want { .. } => Err(self.gone("it asks for bytes of a file that it has")),
        }
    }

    /// Waits up to `wait` for a message.
    pub fn hear(&mut self, wait: Duration) -> Result<Heard, Gone> {
        if let Some(heard) = self.take_message()? {
            return Ok(heard);
        }
        let deadline = Instant::now() + wait;
        loop {
            if !readable(&self.socket, deadline.saturating_duration_since(Instant::now())) {
                return Ok(Heard::Nothing);
            }
            let mut buffer = [0; 16 << 10];
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err(self.gone("it closed its socket")),
                Ok(n) => {
                    self.inbox.extend_from_slice(&buffer[..n]);
                    if let Some(heard) = self.take_message()? {
                        return Ok(heard);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(self.gone(&error.to_string())),
            }
        }
    }

    /// Whether the worker has begun the last request.
    pub fn has_begun(&self) -> bool {
        self.begun == self.serial
    }

    fn take_message(&mut self) -> Result<Option<Heard>, Gone> {
        loop {
            let Some(length) = self.inbox.first_chunk::<4>() else { return Ok(None) };
            let length = u32::from_le_bytes(*length) as usize;
            if length > MAX_FRAME {
                return Err(self.gone(&format!("it sent a reply of {length} bytes")));
            }
            let Some(body) = self.inbox.get(4..4 + length) else { return Ok(None) };
            let message = postcard::from_bytes(body);
            self.inbox.drain(..4 + length);
            match message {
                Ok(WorkerMessage::Begun(serial)) => self.begun = serial,
                Ok(WorkerMessage::Reply(reply)) => return Ok(Some(Heard::Reply(reply))),
                Ok(WorkerMessage::Want { at, length }) => return Ok(Some(Heard::Want { at, length })),
                Err(error) => return Err(self.gone(&format!("it sent an unreadable reply: {error}"))),
            }
        }
    }

    /// Whether the process still runs and its socket is open.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None)) && !self.inbox_is_closed()
    }

    fn inbox_is_closed(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one entry, no waiting.
        unsafe { libc::poll(&mut poll, 1, 0) };
        poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
    }

    /// Copies an answer out of the shared memory.
    pub fn elements(&self, bytes: u64, heap: u64) -> Result<Elements, Gone> {
        if bytes > MAX_ELEMENTS || heap > MAX_HEAP {
            return Err(self.gone_alive(&format!("it claims {bytes} + {heap} bytes of elements")));
        }
        let read = |length: u64, at: u64| {
            let mut bytes = vec![0; length as usize];
            self.memory.read_exact_at(&mut bytes, at).map(|()| bytes)
        };
        let elements = read(bytes, 0).and_then(|fixed| Ok(Elements { bytes: fixed, heap: read(heap, bytes)? }));
        if bytes + heap > KEEP_SHARED {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: plain numbers. A failure only keeps memory in use.
            unsafe { libc::fallocate(self.memory.as_raw_fd(), mode, 0, SHARED as i64) };
        }
        elements.map_err(|error| self.gone_alive(&error.to_string()))
    }

    /// Gives the worker the bytes that it waits for; `None`: they cannot be read.
    pub fn give_wanted(&mut self, bytes: Option<&[u8]>) -> Result<(), Gone> {
        let (bytes, answer) = bytes.map_or((&[][..], &REFUSED), |bytes| (bytes, &GIVEN));
        let given = self.memory.write_all_at(bytes, SHARED).and_then(|()| self.socket.write_all(answer));
        given.map_err(|error| self.gone(&error.to_string()))
    }

    /// Copies bytes into the shared memory.
    pub fn give(&self, bytes: &[u8]) -> Result<(), Gone> {
        self.memory.write_all_at(bytes, 0).map_err(|error| self.gone_alive(&error.to_string()))
    }

    fn gone_alive(&self, why: &str) -> Gone {
        Gone(format!("worker {}: {why}", self.id()))
    }

    /// Ends the process and describes its end.
    fn gone(&mut self, why: &str) -> Gone {
        // The exit status says more than the closed socket, so a dying process gets a moment before the kill.
        let mut status = None;
        for _ in 0..50 {
            match self.process.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(found) => {
                    status = found;
                    break;
                }
                Err(_) => break,
            }
        }
        self.process.end();
        match status {
            Some(status) => match status.signal() {
                Some(signal) => Gone(format!("worker {}: signal {signal}", self.id())),
                None => Gone(format!("worker {}: {status}", self.id())),
            },
            None => Gone(format!("worker {}: {why}", self.id())),
        }
    }
}

/// Waits until the socket has bytes to read (or the other end is closed).
fn readable(socket: &UnixStream, wait: Duration) -> bool {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one entry.
    let ready = unsafe { libc::poll(&mut poll, 1, milliseconds) };
    ready > 0
}

/// Creates memory that neither side can shrink.
///
/// By system calls: the C library has `memfd_create` from glibc 2.27 on only.
fn shared_memory() -> io::Result<File> {
    let file = File::from(memfd_create("hepfs-h5", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(SHARED + MAX_WANTED)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}
