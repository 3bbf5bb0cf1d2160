//! The interface to libhdf5 for the rest of the program.

mod listing;
mod nursery;
mod patience;
pub(super) mod pool;
pub(super) mod process;
mod simple;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hdf5_metno_sys::HDF5_VERSION;
use parking_lot::{Mutex, MutexGuard};

use self::patience::{IMPATIENT, Patience};
use self::pool::GLANCE;
use self::process::{Gone, Heard, SourceAccess, Worker};
use crate::catalogue::{
    ChunkMap, ChunkMapBuilder, Elements, FileInfo, Group, MappedSource, Mapping, Mappings, Object, ObjectId,
};
use crate::h5::error::Error;
use crate::h5::options::{Options, Region};
use crate::h5::protocol::{
    CHUNKS_AHEAD, Fault, MAX_SOURCE_PATHS, MAX_SOURCES, MAX_WANTED, Request, WorkerAnswer, WorkerReply,
};
use crate::source::{self, Interrupt, Interrupted, Source, limit_met};

/// Deaths and hangs after which the client refuses a request for good.
const STRIKES: u32 = 2;

/// Most addresses in one request for paths.
const MAX_ADDRESSES: usize = 16_384;

/// Most workers tried for one request, if they die before they begin it.
const MAX_STARTS: u32 = 3;

/// Most files that a worker may number; a larger number is nonsense.
const MAX_FILES: usize = 1024;

/// Speaks to the worker of one source. Cheap to share; any thread may call any method.
///
/// The worker executes one request at a time. If the current request kills the worker, the waiting requests lose
/// nothing: they go to a fresh worker.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

/// The catalogue of a small file, as far as it fits in one answer of the worker.
#[derive(Debug, Default)]
pub struct PrefetchedCatalogue {
    /// Complete groups.
    pub groups: Vec<Group>,
    /// Chunks of datasets.
    pub chunks: Vec<(ObjectId, ChunkMap)>,
}

/// The part of a client that the pool watches.
#[derive(Debug)]
struct Inner {
    source: Arc<Source>,
    /// Absolute path of the source, or what stands for it.
    path: PathBuf,
    options: Options,
    state: Mutex<State>,
    /// Pages of groups, by their first link, that libhdf5 could list only without the values of some attributes.
    hung: Mutex<HashSet<(ObjectId, u64)>>,
}

#[derive(Debug)]
struct State {
    worker: Option<Running>,
    info: Option<FileInfo>,
    /// The catalogue of a simple file, until it is taken or a worker runs.
    simple: Option<PrefetchedCatalogue>,
    /// Whether the client has warned of gaps in the sandbox.
    has_warned: bool,
    /// Number of answered requests.
    requests: u64,
    /// Number of deaths and hangs, by request.
    strikes: HashMap<Request, u32>,
    /// Number of hangs, over all requests.
    hangs: u32,
    /// Files that the workers of this source have numbered 1, 2, ….
    files: Vec<Vec<u8>>,
    last_used: Instant,
}

#[derive(Debug)]
struct Running {
    worker: Worker,
    /// Whether the worker has opened the source.
    opened: bool,
    /// The current request.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    serial: u64,
    request: Request,
    /// When it began, put off by all waits for bytes of the source.
    since: Instant,
    /// Why the worker was refused bytes that it asked for, at first.
    refused: Option<source::Error>,
    /// Processor time of the worker before the request.
    spent: Duration,
    patience: Patience,
}

/// The result of a look at the worker.
enum Look {
    /// A reply to the current request.
    Reply(WorkerReply),
    /// Nothing yet.
    Waiting,
    /// The current request failed together with its worker.
    Failed(Failure),
}

/// Why a request has no answer.
enum Failure {
    Error(Error),
    /// The worker died before it began the request, which is not to blame and may go to another worker.
    NotBegun(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl Client {
    /// A client for `source`; it starts no worker before the first request.
    pub fn new(source: Arc<Source>, mut options: Options) -> Self {
        // The daemon may change its working directory before the first worker starts.
        options.plugins = options.plugins.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
        // An object leads to no file.
        options.follow_external &= source.folder().is_some();
        let path = match source.folder() {
            Some(_) => std::path::absolute(source.path()).unwrap_or_else(|_| source.path().to_owned()),
            // libhdf5 takes names in the file as names beside it only if its path is absolute.
            None => Path::new("/").join(source.path()),
        };
        let state = State {
            worker: None,
            info: None,
            simple: None,
            has_warned: false,
            requests: 0,
            strikes: HashMap::new(),
            hangs: 0,
            files: Vec::new(),
            last_used: Instant::now(),
        };
        Self { inner: Arc::new(Inner { source, path, options, state: Mutex::new(state), hung: Mutex::default() }) }
    }

    /// Whether the worker follows external links, storage and virtual sources ([`Options::follow_external`]).
    pub fn follows_external(&self) -> bool {
        self.inner.options.follow_external
    }

    /// Whether the worker may load filter plugins ([`Options::plugins`]).
    pub fn has_plugins(&self) -> bool {
        self.inner.options.plugins.is_some()
    }

    /// Everything beside the file that answers depend on: the version of libhdf5, and the plugins.
    pub fn settings(&self) -> String {
        let plugins = self.inner.options.plugins.as_deref().map(plugins_in);
        format!("libhdf5 {HDF5_VERSION:?} plugins {plugins:?}")
    }

    /// Describes the file as a whole.
    ///
    /// # Errors
    /// [`Error::NotHdf5`] if the file is not an HDF5 file; see [`Error`] for the rest.
    pub fn file(&self, interrupt: &Interrupt) -> Result<FileInfo, Error> {
        self.inner.file(interrupt)
    }

    /// Asks for the groups of a small file and the chunk maps of their datasets in one request. The answer omits large
    /// groups, and omits everything if the request fails: callers ask for the missing parts. Of a simple file it has
    /// everything, without a worker ([`Options::lists_simple`]); but only once, after [`Client::file`].
    ///
    /// # Errors
    /// See [`Error`]: the worker does not start, its answer makes no sense, or the request was interrupted.
    pub fn ahead(&self, interrupt: &Interrupt) -> Result<PrefetchedCatalogue, Error> {
        if let Some(simple) = self.inner.turn(interrupt)?.simple.take() {
            return Ok(simple);
        }
        let mut ahead = PrefetchedCatalogue::default();
        let answers = match self.inner.ahead(interrupt)? {
            Some(WorkerAnswer::Ahead(answers)) => answers,
            _ => return Ok(ahead),
        };
        for (request, answer) in answers {
            match (request, answer) {
                (Request::Group { id, .. }, WorkerAnswer::Group(page)) if page.next.is_none() => {
                    ahead.groups.push(listing::whole(id, page)?);
                }
                (Request::Chunks { id, .. }, WorkerAnswer::Chunks { chunks, next: None }) => {
                    let mut map = ChunkMapBuilder::default();
                    if chunks.len() as u64 <= CHUNKS_AHEAD && chunks.into_iter().all(|chunk| map.push(chunk).is_ok()) {
                        ahead.chunks.push((id, map.finish()));
                    }
                }
                _ => return Err(nonsense()),
            }
        }
        Ok(ahead)
    }

    /// Lists a group: its links, with a description of each of their objects (in pages).
    ///
    /// A link with an empty name, always unreadable, stands for links that could not be listed.
    ///
    /// # Errors
    /// See [`Error`]. A link or object that cannot be read gets a description that says so, and fails nothing else.
    pub fn group(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Group, Error> {
        listing::group(&self.inner, id, interrupt)
    }

    /// Describes one object.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn object(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Object, Error> {
        match self.inner.call(Request::Object { id }, interrupt)?.0 {
            WorkerAnswer::Object(object) => Ok(object),
            _ => Err(nonsense()),
        }
    }

    /// Lists the chunks of a chunked dataset (in pages).
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] past `limit` chunks.
    pub fn chunks(&self, id: ObjectId, limit: u64, interrupt: &Interrupt) -> Result<ChunkMap, Error> {
        let mut map = ChunkMapBuilder::default();
        let mut start = 0u64;
        loop {
            let answer = self.inner.call(Request::Chunks { id, limit, start }, interrupt)?.0;
            let WorkerAnswer::Chunks { chunks, next } = answer else { return Err(nonsense()) };
            let end = start.saturating_add(chunks.len() as u64);
            if end > limit {
                return Err(nonsense());
            }
            for chunk in chunks {
                map.push(chunk).map_err(|_| nonsense())?;
            }
            match next {
                None => return Ok(map.finish()),
                Some(next) if next > start && next == end => start = next,
                Some(_) => return Err(nonsense()),
            }
        }
    }

    /// Lists the mappings of a virtual dataset of `len` elements (in pages), if each maps one run of elements of a
    /// dataset in the same file.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Hdf5`] if the mappings are of another kind, [`Error::TooLarge`] past `limit` runs.
    pub fn mappings(&self, id: ObjectId, len: u64, limit: u64, interrupt: &Interrupt) -> Result<Mappings, Error> {
        self.mappings_by((id, false), len, limit, interrupt)
    }

    /// Lists the mappings in chunks of the source, if each maps a whole chunk, or the part of one within the extent.
    /// They are not checked against the number of chunks of the virtual dataset.
    ///
    /// # Errors
    /// As [`Client::mappings`].
    pub fn mappings_by_chunk(&self, id: ObjectId, limit: u64, interrupt: &Interrupt) -> Result<Mappings, Error> {
        self.mappings_by((id, true), u64::MAX, limit, interrupt)
    }

    fn mappings_by(
        &self,
        (id, by_chunk): (ObjectId, bool),
        len: u64,
        limit: u64,
        interrupt: &Interrupt,
    ) -> Result<Mappings, Error> {
        let (mut all_sources, mut all) = (Vec::<MappedSource>::new(), Vec::new());
        let (mut start, mut path_bytes) = (0, 0);
        loop {
            let answer = self.inner.call(Request::Mappings { id, start, by_chunk }, interrupt)?.0;
            let WorkerAnswer::Mappings { mut sources, mut runs, next } = answer else { return Err(nonsense()) };
            path_bytes += sources.iter().map(|source| source.path.len()).sum::<usize>();
            all_sources.append(&mut sources);
            all.append(&mut runs);
            // A sound worker keeps these limits.
            if all_sources.len() > MAX_SOURCES || path_bytes > MAX_SOURCE_PATHS {
                return Err(nonsense());
            }
            if all.len() as u64 > limit {
                let what = format!("the list of the mappings of the dataset at address {}", id.address);
                let [bytes, limit] =
                    [all.len() as u64, limit].map(|runs| runs.saturating_mul(size_of::<Mapping>() as u64));
                return Err(Error::TooLarge { what, bytes, limit });
            }
            match next {
                None => return Mappings::new(all_sources, all, len).map_err(Error::Hdf5),
                Some(next) if next > start => start = next,
                Some(_) => return Err(nonsense()),
            }
        }
    }

    /// Reads elements of any dataset through `H5Dread`, in the file's own type, in row-major order.
    ///
    /// A standard reference (`H5T_STD_REF`) to a region or an attribute points into the heap like a sequence of bytes.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] if the answer would exceed the limit of a request:
    /// [`READ_LIMIT`](crate::h5::READ_LIMIT) for the elements, three times that for the contents of variable-length
    /// elements.
    pub fn read(&self, id: ObjectId, region: &Region, interrupt: &Interrupt) -> Result<Elements, Error> {
        let request = Request::Read { id, start: region.start.clone(), count: region.count.clone() };
        self.inner.call(request, interrupt)?.1.ok_or_else(nonsense)
    }

    /// Paths of the objects at these addresses of a file (see [`ObjectId`]): for each the shortest path over hard
    /// links, and among equally long ones the first bytewise; `None`: no path leads to an object there.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn paths(&self, file: u32, addresses: &[u64], interrupt: &Interrupt) -> Result<Vec<Option<String>>, Error> {
        let mut paths = Vec::with_capacity(addresses.len());
        while let Some(rest) = addresses.get(paths.len()..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..MAX_ADDRESSES).unwrap_or(rest);
            let request = Request::Paths { file, addresses: piece.to_vec() };
            match self.inner.call(request, interrupt)?.0 {
                WorkerAnswer::Paths(page) if page.is_empty() || page.len() > piece.len() => return Err(nonsense()),
                WorkerAnswer::Paths(mut page) => paths.append(&mut page),
                WorkerAnswer::Again => {}
                _ => return Err(nonsense()),
            }
        }
        Ok(paths)
    }

    /// Tries in the worker what its sandbox should forbid. Returns each attempt, and whether it succeeded. For tests.
    ///
    /// # Errors
    /// See [`Error`].
    #[doc(hidden)]
    pub fn probe(&self, interrupt: &Interrupt) -> Result<Vec<(String, bool)>, Error> {
        match self.inner.call(Request::Probe, interrupt)?.0 {
            WorkerAnswer::Probe(found) => Ok(found),
            _ => Err(nonsense()),
        }
    }

    /// Makes the worker fail: `crash`, `hang`, `panic`, or `greed`. For tests.
    ///
    /// # Errors
    /// The error of that failure.
    #[doc(hidden)]
    pub fn rehearse(&self, fault: &str, interrupt: &Interrupt) -> Result<(), Error> {
        let fault = match fault {
            "crash" => Fault::Crash,
            "hang" => Fault::Hang,
            "greed" => Fault::Greed,
            _ => Fault::Panic,
        };
        self.inner.call(Request::Fault(fault), interrupt).map(|_| ())
    }

    /// Number of answered requests. For tests.
    #[doc(hidden)]
    pub fn requests(&self) -> u64 {
        self.inner.state.lock().requests
    }

    /// The process id of the worker, if one runs. For tests.
    #[doc(hidden)]
    pub fn worker_id(&self) -> Option<u32> {
        self.inner.state.lock().worker.as_ref().map(|running| running.worker.id())
    }
}

/// Lists the plugins in a folder: names, sizes, times of last change.
fn plugins_in(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let described = found.filter_map(|entry| {
        // The target of a link counts.
        let metadata = std::fs::metadata(entry.path()).ok()?;
        Some((entry.path(), metadata.len(), metadata.modified().ok()))
    });
    let mut files: Vec<_> = described.collect();
    files.sort();
    files
}

fn nonsense() -> Error {
    Error::Worker("its answer makes no sense".into())
}

impl Inner {
    /// Waits for the caller's turn.
    fn turn(&self, interrupt: &Interrupt) -> Result<MutexGuard<'_, State>, Error> {
        loop {
            if interrupt.is_raised() {
                return Err(Error::Interrupted);
            }
            if let Some(state) = self.state.try_lock_for(GLANCE) {
                return Ok(state);
            }
        }
    }

    fn file(self: &Arc<Self>, interrupt: &Interrupt) -> Result<FileInfo, Error> {
        let mut state = self.turn(interrupt)?;
        if state.info.is_none() && !self.list_simple(&mut state, interrupt) {
            self.ready(&mut state, interrupt)?;
        }
        state.info.clone().ok_or_else(nonsense)
    }

    /// Sends [`Request::Ahead`]; `None` if the worker dies or hangs in it.
    fn ahead(self: &Arc<Self>, interrupt: &Interrupt) -> Result<Option<WorkerAnswer>, Error> {
        let mut state = self.turn(interrupt)?;
        self.ready(&mut state, interrupt)?;
        match self.execute(&mut state, Request::Ahead, interrupt) {
            Ok(answer) => {
                state.requests += 1;
                Ok(Some(answer))
            }
            Err(Failure::Error(Error::Interrupted)) => Err(Error::Interrupted),
            Err(_) => Ok(None),
        }
    }

    /// Executes a request. It copies elements out of the shared memory before the next request can overwrite them.
    fn call(
        self: &Arc<Self>,
        request: Request,
        interrupt: &Interrupt,
    ) -> Result<(WorkerAnswer, Option<Elements>), Error> {
        let mut state = self.turn(interrupt)?;
        state.refuse_poisoned(&request)?;
        let answer = self.execute_ready(&mut state, request, interrupt)?;
        state.requests += 1;
        let elements = match (&answer, &state.worker) {
            (WorkerAnswer::Elements { bytes, heap }, Some(running)) => match running.worker.elements(*bytes, *heap) {
                Ok(elements) => Some(elements),
                Err(Gone(why)) => {
                    state.worker = None;
                    return Err(Error::Worker(why));
                }
            },
            _ => None,
        };
        Ok((answer, elements))
    }

    /// Ensures that a worker runs, has the source open and is idle.
    fn ready(self: &Arc<Self>, state: &mut State, interrupt: &Interrupt) -> Result<(), Error> {
        state.simple = None;
        // An abandoned request first finishes, in one way or another.
        while state.worker.as_ref().is_some_and(|running| running.pending.is_some()) {
            if interrupt.is_raised() {
                return Err(Error::Interrupted);
            }
            match self.look(state, GLANCE, None) {
                Look::Reply(_) | Look::Waiting => {}
                Look::Failed(_) => tracing::debug!("an abandoned request failed"),
            }
        }
        if state.worker.as_mut().is_some_and(|running| !running.worker.is_alive()) {
            // The worker died while idle (perhaps the system ran out of memory): no request is to blame.
            state.worker = None;
        }
        for _ in 0..MAX_STARTS {
            if state.worker.is_none() {
                state.refuse_poisoned(&Request::Open)?;
                let slot = pool::acquire(self.options.workers, interrupt)?;
                let size = self.source.identity().size;
                let source = self.source.descriptor().map_or(SourceAccess::Asked(size), SourceAccess::Descriptor);
                let mut options = self.options.clone();
                if state.hangs >= STRIKES {
                    // Pages must finish within the shorter deadline.
                    options.page_time /= IMPATIENT;
                }
                let worker =
                    Worker::start(source, None, &self.path, &options, &state.files, slot).map_err(|error| {
                        Error::Worker(format!("{}: {error}{}", self.options.program.display(), limit_met(&error)))
                    })?;
                state.worker = Some(Running { worker, opened: false, pending: None });
                pool::register(self);
            }
            if state.worker.as_ref().is_some_and(|running| running.opened) {
                return Ok(());
            }
            match self.execute(state, Request::Open, interrupt) {
                Err(Failure::NotBegun(how)) => tracing::warn!(how, "an HDF5 worker did not start"),
                Err(Failure::Error(error)) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        Err(Error::Worker(format!("{} exits before it begins a request", self.options.program.display())))
    }

    /// Executes a request, by another worker if the first died before it began.
    fn execute_ready(
        self: &Arc<Self>,
        state: &mut State,
        request: Request,
        interrupt: &Interrupt,
    ) -> Result<WorkerAnswer, Error> {
        for _ in 0..MAX_STARTS {
            self.ready(state, interrupt)?;
            match self.execute(state, request.clone(), interrupt) {
                Err(Failure::NotBegun(how)) => tracing::debug!(how, "an HDF5 worker was gone before it began"),
                Err(Failure::Error(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
        Err(Error::Worker("it exits before it begins a request".into()))
    }

    /// Sends a request to an idle worker and waits for its end.
    fn execute(&self, state: &mut State, request: Request, interrupt: &Interrupt) -> Result<WorkerAnswer, Failure> {
        let patience = Patience::of(&request, self.options.deadline, state.hangs);
        let Some(running) = state.worker.as_mut() else { return Err(nonsense().into()) };
        let (spent, since) = (running.worker.processor_time(), Instant::now());
        let sent = running.worker.send(request.clone());
        let serial = *sent.as_ref().unwrap_or(&0);
        running.pending = Some(Pending { serial, request, since, refused: None, spent, patience });
        if let Err(gone) = sent {
            return Err(state.died(&gone, &self.source));
        }
        loop {
            match self.look(state, GLANCE, Some(interrupt)) {
                Look::Reply(reply) => return reply.answer.map_err(|refusal| Error::from(refusal).into()),
                Look::Failed(failure) => return Err(failure),
                Look::Waiting if interrupt.is_raised() => return Err(Error::Interrupted.into()),
                Look::Waiting => {}
            }
        }
    }

    /// Checks whether the current request has finished, and gives the worker bytes that it waits for. `interrupt` is
    /// that of the requester; `None`: nobody waits for the request any more, so it gets no more bytes.
    fn look(&self, state: &mut State, wait: Duration, interrupt: Option<&Interrupt>) -> Look {
        state.last_used = Instant::now();
        let Some(running) = state.worker.as_mut() else { return Look::Failed(nonsense().into()) };
        let Some(pending) = running.pending.as_mut() else { return Look::Failed(nonsense().into()) };
        let reply = match running.worker.hear(wait) {
            Err(gone) => return Look::Failed(state.died(&gone, &self.source)),
            Ok(Heard::Want { at, length }) => {
                let begun = Instant::now();
                let bytes = match interrupt {
                    _ if !self.may_want(at, length) => {
                        state.worker = None;
                        return Look::Failed(nonsense().into());
                    }
                    None => Err(Interrupted.into()),
                    Some(interrupt) => {
                        let mut bytes = vec![0; length as usize];
                        self.source.read_at(at, &mut bytes, interrupt).map(|()| bytes)
                    }
                };
                pending.since += begun.elapsed();
                let given = running.worker.give_wanted(bytes.as_deref().ok());
                pending.refused = pending.refused.take().or(bytes.err());
                return match given {
                    Ok(()) => Look::Waiting,
                    Err(gone) => Look::Failed(state.died(&gone, &self.source)),
                };
            }
            Ok(Heard::Nothing) => {
                let spent = running.worker.processor_time().saturating_sub(pending.spent);
                return match pending.patience.passed(pending.since.elapsed(), spent) {
                    Some(limit) => Look::Failed(state.hung(limit, &self.source).into()),
                    None => Look::Waiting,
                };
            }
            Ok(Heard::Reply(reply)) if reply.serial != pending.serial => {
                state.worker = None;
                return Look::Failed(nonsense().into());
            }
            Ok(Heard::Reply(reply)) => reply,
        };
        let refused = pending.refused.take();
        running.pending = None;
        if let Some(error) = refused {
            // Whatever it answers, it has not seen all. Nor may it remember what it took for the content.
            state.worker = None;
            return Look::Failed(Error::from(error).into());
        }
        if state.files.len() + reply.files.len() > MAX_FILES {
            state.worker = None;
            return Look::Failed(nonsense().into());
        }
        state.files.extend_from_slice(&reply.files);
        if !running.opened {
            match &reply.answer {
                Ok(WorkerAnswer::Open { info, sandbox }) => {
                    running.opened = true;
                    if !std::mem::replace(&mut state.has_warned, true) {
                        for note in &sandbox.notes {
                            tracing::warn!(source = %self.source.path().display(), "HDF5 worker: {note}");
                        }
                    }
                    state.info = Some(info.clone());
                }
                // This worker is useless; the next request tries again: the file may be repaired by then.
                _ => state.worker = None,
            }
        }
        Look::Reply(reply)
    }
}

impl Inner {
    /// Whether a worker may ask for these bytes.
    fn may_want(&self, at: u64, length: u64) -> bool {
        let ends_within = at.checked_add(length).is_some_and(|end| end <= self.source.identity().size);
        self.source.descriptor().is_none() && (1..=MAX_WANTED).contains(&length) && ends_within
    }
}

impl pool::WorkerOwner for Inner {
    fn has_worker(&self) -> bool {
        // A client with a busy worker holds the lock.
        self.state.try_lock().is_none_or(|state| state.worker.is_some())
    }

    fn idle_since(&self) -> Option<Instant> {
        let state = self.state.try_lock()?;
        state.worker.as_ref().filter(|running| running.pending.is_none()).map(|_| state.last_used)
    }

    fn evict(&self) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let idle = state.worker.as_ref().is_some_and(|running| running.pending.is_none());
        if idle {
            state.worker = None;
        }
        idle
    }

    fn tick(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        let last_used = state.last_used;
        let Some(running) = state.worker.as_mut() else { return };
        if running.pending.is_some() {
            if let Look::Failed(_) = self.look(&mut state, Duration::ZERO, None) {
                tracing::debug!("an abandoned request failed");
            }
        } else if last_used.elapsed() >= self.options.idle || !running.worker.is_alive() {
            state.worker = None;
        }
    }
}

impl State {
    fn refuse_poisoned(&self, request: &Request) -> Result<(), Error> {
        match self.strikes.get(request) {
            Some(strikes) if *strikes >= STRIKES => Err(Error::Poisoned(request.what())),
            _ => Ok(()),
        }
    }

    /// Ends the worker together with the current request, and counts a strike against the request.
    fn strike(&mut self, count: impl FnOnce(&Request) -> u32) -> String {
        let pending = self.worker.take().and_then(|running| running.pending);
        let Some(pending) = pending else { return "nothing".into() };
        let (what, count) = (pending.request.what(), count(&pending.request));
        *self.strikes.entry(pending.request).or_insert(0) += count;
        what
    }

    fn died(&mut self, Gone(how): &Gone, source: &Source) -> Failure {
        if self.worker.as_ref().is_some_and(|running| !running.worker.has_begun()) {
            self.worker = None;
            return Failure::NotBegun(how.clone());
        }
        let what = self.strike(|_| 1);
        tracing::warn!(source = %source.path().display(), how, "the HDF5 worker died while {what}");
        Error::Died(what).into()
    }

    fn hung(&mut self, limit: String, source: &Source) -> Error {
        let pending = self.worker.as_ref().and_then(|running| running.pending.as_ref());
        // A look ahead has so little time that a slow disk exceeds it.
        self.hangs += u32::from(pending.is_some_and(|pending| pending.request != Request::Ahead));
        // A page of a chunk map is short: libhdf5 visits entries that the file only claims to have, and would do so
        // again.
        let what = self.strike(|request| if let Request::Chunks { .. } = request { STRIKES } else { 1 });
        let source = source.path().display();
        tracing::warn!(%source, limit, "killed the HDF5 worker: no answer while {what}");
        Error::Deadline { what, limit }
    }
}
