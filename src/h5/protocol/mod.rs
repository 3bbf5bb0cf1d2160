//! The messages over the socket between the client and its worker: a length of four bytes (little-endian), then a
//! postcard-encoded message.

pub(crate) mod descriptors;

use std::io::{self, Read, Write};
use std::time::Duration;

use bstr::BString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Attribute, Chunk, FileInfo, MappedSource, Mapping, Object, ObjectId};
use crate::h5::steps::{Step, StepOutcome};

/// Longest answer that the daemon accepts; a longer one ends the worker.
pub(super) const MAX_FRAME: usize = 16 << 20;

/// Bytes that end a page of links or chunks: few enough that the daemon decodes a page while the worker makes the next,
/// and far enough below [`MAX_FRAME`] for one more item.
pub(super) const PAGE: usize = 1 << 20;

/// Most bytes of an item (a link with the description of its object); of a longer one the page has only the name.
pub(super) const MAX_ITEM: usize = 8 << 20;

/// Links that a worker lists in one batch.
pub(super) const LINKS_AT_ONCE: u64 = 4096;

/// Most links listed of one group: 16 Mi names are about a gigabyte.
pub(super) const MAX_LINKS: usize = 16 << 20;

/// Most chunks of a dataset whose chunk map [`Request::Ahead`] includes.
pub(super) const CHUNKS_AHEAD: u64 = 1024;

/// Most bytes of fixed-size elements in a read.
pub(super) const MAX_ELEMENTS: u64 = 16 << 20;

/// Most bytes of variable-length content in a read.
pub(super) const MAX_HEAP: u64 = 48 << 20;

/// Length of the memory shared with a worker for elements, then heap.
pub(super) const SHARED: u64 = MAX_ELEMENTS + MAX_HEAP;

/// Most bytes of the source that a worker asks for at once; they come behind [`SHARED`].
pub(super) const MAX_WANTED: u64 = 1 << 20;

/// Bytes by which the daemon says that wanted bytes are there, or cannot be read.
pub(super) const GIVEN: [u8; 1] = [1];
pub(super) const REFUSED: [u8; 1] = [0];

/// Most datasets that a virtual dataset may map: the daemon asks for a description of each.
pub(super) const MAX_SOURCES: usize = 4096;

/// Most bytes of the paths of these datasets, all together.
pub(super) const MAX_SOURCE_PATHS: usize = 1 << 20;

/// The first message to a worker, sent together with descriptors: of the shared memory, of the source unless the worker
/// asks for its bytes, of the journal if the worker writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Absolute path of the source.
    pub path: Vec<u8>,
    /// Size of a source without a descriptor, whose bytes the worker asks for ([`WorkerMessage::Want`]).
    pub asks: Option<u64>,
    /// Canonical path of the folder whose files the worker may follow links to; `None`: it follows none.
    pub follow: Option<Vec<u8>>,
    /// Folder of filter plugins.
    pub plugins: Option<Vec<u8>>,
    /// `RLIMIT_AS` in bytes.
    pub memory: u64,
    /// Process id of the daemon.
    pub parent: u32,
    /// Files that earlier workers of the same source have numbered 1, 2, ….
    pub files: Vec<Vec<u8>>,
    /// Names of attributes that the worker reads of every object, however many attributes the object has.
    pub wanted: Vec<String>,
    /// Longest time that the worker lists links for one answer.
    pub page_time: Duration,
    /// Whether the worker writes.
    pub write: bool,
}

/// A request to a worker. Equal requests have equal encodings: so the client recognises a deadly one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Request {
    /// Open the source and describe it. The first request to every worker.
    Open,
    /// List links `start..end` of a group, as many as fit. `plain`: without the values of attributes that point into a
    /// heap.
    Group { id: ObjectId, start: u64, end: u64, plain: bool },
    /// Describe one object.
    Object { id: ObjectId },
    /// List groups and chunk maps of a small file, in one answer.
    Ahead,
    /// List chunks `start..` of a dataset with at most `limit`, as many as fit.
    Chunks { id: ObjectId, limit: u64, start: u64 },
    /// List mappings `start..` of a virtual dataset, as many as fit, of elements or of chunks of the source.
    Mappings { id: ObjectId, start: u64, by_chunk: bool },
    /// Read elements into the shared memory.
    Read { id: ObjectId, start: Vec<u64>, count: Vec<u64> },
    /// Find paths of the objects at these addresses of a file, as many as fit.
    Paths { file: u32, addresses: Vec<u64> },
    /// Execute a step of writing.
    Write(Step),
    /// Test which actions the sandbox still allows.
    Probe,
    /// Fail on purpose; for tests.
    Fault(Fault),
}

/// Ways to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Fault {
    Crash,
    Hang,
    Panic,
    /// Asks for bytes that lie in no source.
    Greed,
    /// Asks for this number of first bytes of the source again and again.
    Repeat(u64),
}

/// A request with its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Envelope {
    pub serial: u64,
    pub request: Request,
}

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WorkerMessage {
    /// The worker has the request of this number and begins: if it dies now, that request is to blame.
    Begun(u64),
    /// The worker waits for bytes of the source: [`GIVEN`] or [`REFUSED`] follows.
    Want {
        /// Position of the first byte.
        at: u64,
        /// At most [`MAX_WANTED`] bytes, which end within the source.
        length: u64,
    },
    Reply(WorkerReply),
}

/// The answer to the request of the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerReply {
    pub serial: u64,
    /// Files numbered during this request, in order; they follow those of [`Hello::files`] and of earlier replies.
    pub files: Vec<Vec<u8>>,
    pub answer: Result<WorkerAnswer, WorkerRefusal>,
}

/// The answer to a request, by its kind.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WorkerAnswer {
    Open {
        info: FileInfo,
        sandbox: Sandbox,
    },
    Group(GroupPage),
    Object(Object),
    /// Other requests, each with the answer to it.
    Ahead(Vec<(Request, WorkerAnswer)>),
    Chunks {
        chunks: Vec<Chunk>,
        next: Option<u64>,
    },
    Mappings {
        /// Sources that earlier pages do not have, numbered on from theirs.
        sources: Vec<MappedSource>,
        /// The runs, with adjacent ones that continue each other joined.
        runs: Vec<Mapping>,
        next: Option<u64>,
    },
    /// Lengths of the two parts in the shared memory; the heap follows the elements.
    Elements {
        bytes: u64,
        heap: u64,
    },
    Paths(Vec<Option<String>>),
    /// The work takes longer than one request should: the client asks again, and the worker continues.
    Again,
    Written(StepOutcome),
    Probe(Vec<(String, bool)>),
}

/// A part of a group.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GroupPage {
    /// Attributes of the group, on its first page only.
    pub attributes: Vec<Attribute>,
    pub creation_order: bool,
    /// Number of links of the group.
    pub total: u64,
    /// Number of links on the page.
    pub count: u64,
    /// [`crate::catalogue::Link`]s, encoded back to back (so that the worker encodes each only once to know its size).
    pub links: Vec<u8>,
    /// First link of the next page; `None`: this is the last one.
    pub next: Option<u64>,
}

/// The parts of the sandbox around a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sandbox {
    /// Whether Landlock is enforced.
    pub landlock: bool,
    /// Whether the system-call filter is active.
    pub seccomp: bool,
    /// The protection that the sandbox lacks, in words.
    pub notes: Vec<String>,
}

/// Why a worker refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WorkerRefusal {
    Hdf5(String),
    Beyond(String),
    NotHdf5(String),
    TooLarge { what: String, bytes: u64, limit: u64 },
}

impl Request {
    /// The request as an action, for messages: "… crashed while {this}".
    pub fn what(&self) -> String {
        match self {
            Request::Open => "opening the file".into(),
            Request::Ahead => "listing the file".into(),
            Request::Group { id, .. } => format!("listing the group {}", at(id)),
            Request::Object { id } => format!("describing the object {}", at(id)),
            Request::Chunks { id, .. } => format!("listing the chunks of the dataset {}", at(id)),
            Request::Mappings { id, .. } => format!("listing the mappings of the dataset {}", at(id)),
            Request::Read { id, start, count } => {
                format!("reading {count:?} elements from {start:?} of the dataset {}", at(id))
            }
            Request::Paths { addresses, .. } => format!("looking for the paths of {} objects", addresses.len()),
            Request::Write(step) => step.what().into(),
            Request::Probe => "testing the sandbox".into(),
            Request::Fault(fault) => format!("a rehearsal ({fault:?})"),
        }
    }
}

fn at(id: &ObjectId) -> String {
    match id.file {
        0 => format!("at address {}", id.address),
        file => format!("at address {} of linked file {file}", id.address),
    }
}

/// Encodes a message with its length in front.
pub(super) fn frame<T: Serialize>(message: &T) -> Result<Vec<u8>, postcard::Error> {
    let mut bytes = postcard::to_extend(message, vec![0; 4])?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| postcard::Error::SerializeBufferFull)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Writes a message (the worker's side, whose sockets block).
pub(super) fn send<T: Serialize>(socket: &mut impl Write, message: &T) -> io::Result<()> {
    socket.write_all(&frame(message).map_err(io::Error::other)?)
}

/// Reads a message (the worker's side); `None` at the end of the stream.
pub(super) fn receive<T: DeserializeOwned>(socket: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match socket.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::other("message too long"));
    }
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

/// Bytes as text for a message: at most one line, without control characters.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = BString::from(bytes.get(..bytes.len().min(1024)).unwrap_or(bytes)).to_string();
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}
