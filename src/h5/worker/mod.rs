//! The worker: one thread, one source, one request at a time, until the socket closes.

mod attribute;
mod commit;
mod dataset;
mod datatype;
mod disk;
mod driver;
mod grid;
mod link;
mod mapping;
mod object;
mod overlay;
mod read;
mod reference;
mod sandbox;
mod session;
mod writer;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use self::session::Session;
use self::writer::Writer;
use super::protocol::{self, Answer, Envelope, Fault, Hello, MAX_FRAME, Message, Refusal, Reply, Request};
use crate::h5::protocol::descriptors;

/// Runs the worker; what `hepfs hdf5-worker` does. The socket is standard input.
pub fn worker_main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // For debugging only: the daemon knows from the closed socket.
            eprintln!("hepfs hdf5-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    // SAFETY: standard input is the socket, taken over once.
    let mut socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    // Nothing but input, output and error is ours.
    // SAFETY: no descriptor above 2 is in use yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    let descriptors = descriptors::receive(&socket)?;
    let Some(hello) = protocol::receive::<Hello>(&mut socket)? else { return Ok(()) };
    sandbox::die_with(hello.parent)?;
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(|| io::Error::other("no descriptors"));
    let (source, shared) = (driver::Source::of(next()?)?, read::SharedMemory::map(next()?)?);
    let journal = if hello.write { Some(File::from(next()?)) } else { None };
    sandbox::limit(&hello)?;
    // From here on nothing may be opened that `hello` does not allow; libhdf5 has not seen a byte of the source yet.
    let writable = journal.as_ref().map(|journal| [source.descriptor(), journal.as_raw_fd()]);
    let sandbox = sandbox::enter(&hello, writable)?;
    let mut writer = journal.map(|journal| Writer::new(&hello, source, journal));
    let mut session = Session::new(&hello, source, shared, sandbox);
    loop {
        let Some(Envelope { serial, request }) = protocol::receive::<Envelope>(&mut socket)? else { return Ok(()) };
        protocol::send(&mut socket, &Message::Begun(serial))?;
        let answer = catch_unwind(AssertUnwindSafe(|| match (&request, &mut writer) {
            (Request::Write(step), Some(writer)) => writer.step(step, &mut session.shared).map(Answer::Written),
            _ => answer(&mut session, &request),
        }))
        .unwrap_or_else(|_| Err(Refusal::Hdf5(format!("a defect in the worker while {}", request.what()))));
        let files = session.take_new_files();
        let mut frame = protocol::frame(&Message::Reply(Reply { serial, files: files.clone(), answer }));
        if let Some(bytes) = frame.as_ref().ok().map(Vec::len).filter(|bytes| *bytes > MAX_FRAME) {
            let (what, limit) = (request.what(), MAX_FRAME as u64);
            let answer = Err(Refusal::TooLarge { what, bytes: bytes as u64, limit });
            frame = protocol::frame(&Message::Reply(Reply { serial, files, answer }));
        }
        io::Write::write_all(&mut socket, &frame.map_err(io::Error::other)?)?;
    }
}

fn answer(session: &mut Session, request: &Request) -> Result<Answer, Refusal> {
    match request {
        Request::Open => session.open(),
        Request::Group { id, start } => session.group(*id, *start),
        Request::Object { id } => Ok(Answer::Object(session.object(*id))),
        Request::Chunks { id, limit, start } => session.chunks(*id, *limit, *start),
        Request::Mappings { id, start } => session.mappings(*id, *start),
        Request::Read { id, start, count } => session.read(*id, start, count),
        Request::Paths { file, addresses } => session.paths(*file, addresses),
        Request::Write(_) => Err(Refusal::Hdf5("this worker only reads".into())),
        Request::Probe => Ok(Answer::Probe(sandbox::probe())),
        Request::Fault(Fault::Crash) => std::process::abort(),
        Request::Fault(Fault::Hang) => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        Request::Fault(Fault::Panic) => panic!("as asked"),
    }
}
