//! The worker: one thread, one source, one request at a time, until the socket closes.
//!
//! Each room imports from those above it in this list:
//!
//! | room | task |
//! | --- | --- |
//! | `nursery` | forks workers from a process with libhdf5 initialised |
//! | `sandbox` | gives up all rights that the worker does not need |
//! | `shared` | maps the memory shared with the daemon |
//! | `driver` | reads and writes files for libhdf5; holds back a writer's changes |
//! | `start` | starts libhdf5 |
//! | `address` | turns tokens into addresses and back |
//! | `ballast` | reserves address space for a while, out of libhdf5's reach |
//! | `values` | turns elements in memory into their form in the file |
//! | `kept` | keeps state of requests for later ones |
//! | `session` | opens files and objects |
//! | `answers` | answers requests that only read |
//! | `writer` | executes the steps of a writer, and commits them |

mod address;
mod answers;
mod ballast;
mod driver;
mod kept;
mod nursery;
mod sandbox;
mod session;
mod shared;
mod start;
mod values;
mod writer;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "fuzzing")]
pub use self::answers::ListedChunks;
use self::driver::{AskedSource, DriverSource, SourceDescriptor};
use self::session::WorkerSession;
use self::shared::SharedMemory;
use self::writer::WritingWorker;
use super::protocol::{
    self, Envelope, Hello, MAX_FRAME, Request, WorkerAnswer, WorkerMessage, WorkerRefusal, WorkerReply,
};
use crate::h5::protocol::descriptors;

/// Whether this program can start as a worker.
static SERVES: AtomicBool = AtomicBool::new(false);

/// Turns a process started as a worker of HDF5 into one, which serves until it ends; returns at once in any other
/// process. Workers are processes of the running program, started again: so call this first in `main`.
pub fn serve_if_worker() {
    // No other part of the program may run in a worker.
    if std::env::args_os().nth(1).is_none_or(|argument| argument != super::WORKER) {
        SERVES.store(true, Ordering::Relaxed);
        return;
    }
    // `hepfs hdf5-worker PARENT` is the nursery, which returns here in each of its forks as the worker.
    let outcome = nursery::run().and_then(|is_worker| if is_worker { run() } else { Ok(()) });
    if let Err(error) = &outcome {
        // For debugging only: the daemon notices the closed socket.
        eprintln!("hepfs hdf5-worker: {error}");
    }
    std::process::exit(i32::from(outcome.is_err()))
}

/// Whether this program has called [`serve_if_worker`].
pub fn serves() -> bool {
    SERVES.load(Ordering::Relaxed)
}

fn run() -> io::Result<()> {
    // SAFETY: standard input is the socket, taken over once.
    let mut socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    // Only standard input, output and error are ours.
    // SAFETY: no descriptor above 2 is in use yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    let descriptors = descriptors::receive(&socket)?;
    let Some(hello) = protocol::receive::<Hello>(&mut socket)? else { return Ok(()) };
    sandbox::die_with(hello.parent)?;
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(|| io::Error::other("no descriptors"));
    let shared = SharedMemory::map(next()?)?;
    let source = match hello.asks {
        Some(size) => DriverSource::Asked(AskedSource { size, wanted: shared.wanted() }),
        None => DriverSource::File(SourceDescriptor::of(next()?)?),
    };
    let target = match source {
        DriverSource::File(file) if hello.write => Some((file, File::from(next()?))),
        _ => None,
    };
    sandbox::limit(&hello)?;
    // From here on the process may open nothing that `hello` does not allow; libhdf5 has not seen a byte of the source
    // yet.
    let writable = target.as_ref().map(|(file, journal)| [file.descriptor(), journal.as_raw_fd()]);
    let sandbox = sandbox::enter(&hello, writable)?;
    let mut writer = target.map(|(file, journal)| WritingWorker::new(&hello, file, journal));
    let mut session = WorkerSession::new(&hello, source, shared, sandbox);
    loop {
        let Some(Envelope { serial, request }) = protocol::receive::<Envelope>(&mut socket)? else { return Ok(()) };
        protocol::send(&mut socket, &WorkerMessage::Begun(serial))?;
        let answer = catch_unwind(AssertUnwindSafe(|| match (&request, &mut writer) {
            (Request::Write(step), Some(writer)) => writer.step(step, &mut session.shared).map(WorkerAnswer::Written),
            _ => answers::answer(&mut session, &request),
        }))
        .unwrap_or_else(|_| Err(WorkerRefusal::Hdf5(format!("a defect in the worker while {}", request.what()))));
        let files = session.take_new_files();
        let mut frame = protocol::frame(&WorkerMessage::Reply(WorkerReply { serial, files: files.clone(), answer }));
        if let Some(bytes) = frame.as_ref().ok().map(Vec::len).filter(|bytes| *bytes > MAX_FRAME) {
            let (what, limit) = (request.what(), MAX_FRAME as u64);
            let answer = Err(WorkerRefusal::TooLarge { what, bytes: bytes as u64, limit });
            frame = protocol::frame(&WorkerMessage::Reply(WorkerReply { serial, files, answer }));
        }
        io::Write::write_all(&mut socket, &frame.map_err(io::Error::other)?)?;
    }
}
