//! Executes the requests of a client: one at a time, by a worker that is started when it is needed.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::patience::{IMPATIENT, Patience, STRIKES};
use super::pool::{self, GLANCE};
use super::process::{Gone, Heard, SourceAccess, Worker};
use super::scout::{LikelyGroups, scout};
use crate::catalogue::{ChunkMap, Elements, FileInfo, Group, ObjectId};
use crate::h5::error::Error;
use crate::h5::options::Options;
use crate::h5::protocol::{MAX_WANTED, Request, WorkerAnswer, WorkerReply};
use crate::source::{self, Interrupt, Interrupted, Source, limit_met};

/// Most workers tried for one request, if they die before they begin it.
const MAX_STARTS: u32 = 3;

/// A request may ask for all bytes of an object this many times over: libhdf5 forgets what its caches do not hold.
const MOST_PASSES: u64 = 64;

/// A request may always ask for this many bytes of an object.
const FEW_BYTES: u64 = 256 << 20;

/// Most files that a worker may number; a larger number is nonsense.
const MAX_FILES: usize = 1024;

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
pub(super) struct SharedClient {
    pub source: Arc<Source>,
    /// Absolute path of the source; of an object, its address behind a slash.
    path: PathBuf,
    pub options: Options,
    pub state: Mutex<ClientState>,
    /// Pages of groups, by their first link, that libhdf5 could list only without the values of some attributes.
    pub hung: Mutex<HashSet<(ObjectId, u64)>>,
}

#[derive(Debug)]
pub(super) struct ClientState {
    pub worker: Option<StartedWorker>,
    pub info: Option<FileInfo>,
    /// The catalogue of a simple file, until it is taken or a worker runs.
    pub simple: Option<PrefetchedCatalogue>,
    /// Groups that are likely to be asked for next.
    siblings: LikelyGroups,
    /// Whether the client has warned of gaps in the sandbox.
    has_warned: bool,
    /// Number of answered requests.
    pub requests: u64,
    /// Number of deaths and hangs, by request.
    strikes: HashMap<Request, u32>,
    /// Number of hangs, over all requests.
    hangs: u32,
    /// Files that the workers of this source have numbered 1, 2, ….
    files: Vec<Vec<u8>>,
    last_used: Instant,
}

#[derive(Debug)]
pub(super) struct StartedWorker {
    pub worker: Worker,
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
    /// Bytes of the source that the worker has asked for.
    wanted: u64,
    /// Why the worker did not get bytes that it asked for; the first reason.
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

pub(super) fn nonsense() -> Error {
    Error::Worker("its answer makes no sense".into())
}

impl SharedClient {
    pub fn new(source: Arc<Source>, path: PathBuf, options: Options) -> Self {
        let state = ClientState {
            worker: None,
            info: None,
            simple: None,
            siblings: LikelyGroups::default(),
            has_warned: false,
            requests: 0,
            strikes: HashMap::new(),
            hangs: 0,
            files: Vec::new(),
            last_used: Instant::now(),
        };
        Self { source, path, options, state: Mutex::new(state), hung: Mutex::default() }
    }

    /// Waits for the caller's turn.
    pub fn turn(&self, interrupt: &Interrupt) -> Result<MutexGuard<'_, ClientState>, Error> {
        loop {
            if interrupt.is_raised() {
                return Err(Error::Interrupted);
            }
            if let Some(state) = self.state.try_lock_for(GLANCE) {
                return Ok(state);
            }
        }
    }

    pub fn file(self: &Arc<Self>, interrupt: &Interrupt) -> Result<FileInfo, Error> {
        let mut state = self.turn(interrupt)?;
        if state.info.is_none() {
            scout(&self.source, None, &mut state.siblings, &Request::Open, interrupt)?;
            if !self.list_simple(&mut state, interrupt) {
                self.ready(&mut state, interrupt)?;
            }
        }
        state.info.clone().ok_or_else(nonsense)
    }

    /// Sends [`Request::Ahead`]; `None` if the worker dies or hangs in it.
    pub fn ahead(self: &Arc<Self>, interrupt: &Interrupt) -> Result<Option<WorkerAnswer>, Error> {
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
    pub fn call(
        self: &Arc<Self>,
        request: Request,
        interrupt: &Interrupt,
    ) -> Result<(WorkerAnswer, Option<Elements>), Error> {
        let mut state = self.turn(interrupt)?;
        state.refuse_poisoned(&request)?;
        let ClientState { info, siblings, .. } = &mut *state;
        scout(&self.source, info.as_ref(), siblings, &request, interrupt)?;
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
    fn ready(self: &Arc<Self>, state: &mut ClientState, interrupt: &Interrupt) -> Result<(), Error> {
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
                state.worker = Some(StartedWorker { worker, opened: false, pending: None });
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
        state: &mut ClientState,
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
    fn execute(
        &self,
        state: &mut ClientState,
        request: Request,
        interrupt: &Interrupt,
    ) -> Result<WorkerAnswer, Failure> {
        let patience = Patience::of(&request, self.options.deadline, state.hangs);
        let Some(running) = state.worker.as_mut() else { return Err(nonsense().into()) };
        let (spent, since) = (running.worker.processor_time(), Instant::now());
        let sent = running.worker.send(request.clone());
        let serial = *sent.as_ref().unwrap_or(&0);
        running.pending = Some(Pending { serial, request, since, wanted: 0, refused: None, spent, patience });
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
    /// that of the requester; `None`: the request is abandoned, so it gets no more bytes.
    fn look(&self, state: &mut ClientState, wait: Duration, interrupt: Option<&Interrupt>) -> Look {
        state.last_used = Instant::now();
        let Some(running) = state.worker.as_mut() else { return Look::Failed(nonsense().into()) };
        let Some(pending) = running.pending.as_mut() else { return Look::Failed(nonsense().into()) };
        let reply = match running.worker.hear(wait) {
            Err(gone) => return Look::Failed(state.died(&gone, &self.source)),
            Ok(Heard::Reply(reply)) if reply.serial == pending.serial => reply,
            Ok(Heard::Reply(_)) => {
                state.worker = None;
                return Look::Failed(nonsense().into());
            }
            Ok(unfinished) => {
                // Also at each want: a worker that asks again at once is never silent.
                let spent = running.worker.processor_time().saturating_sub(pending.spent);
                let passed = pending.patience.passed(pending.since.elapsed(), spent);
                return match (passed, unfinished) {
                    (Some(limit), _) => Look::Failed(state.hung(limit, &self.source).into()),
                    (None, Heard::Want { at, length }) => self.answer_want(state, at, length, interrupt),
                    (None, _) => Look::Waiting,
                };
            }
        };
        let refused = pending.refused.take();
        running.pending = None;
        if let Some(error) = refused {
            // Its answer may come from a part of the content. It may also keep false content for later requests.
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

    /// Gives the worker bytes of the source. Ends it if it may not ask for these, or has asked for too many.
    fn answer_want(&self, state: &mut ClientState, at: u64, length: u64, interrupt: Option<&Interrupt>) -> Look {
        let Some(running) = state.worker.as_mut() else { return Look::Failed(nonsense().into()) };
        let Some(pending) = running.pending.as_mut() else { return Look::Failed(nonsense().into()) };
        let size = self.source.identity().size;
        let ends_within = at.checked_add(length).is_some_and(|end| end <= size);
        if self.source.descriptor().is_some() || !(1..=MAX_WANTED).contains(&length) || !ends_within {
            state.worker = None;
            return Look::Failed(nonsense().into());
        }
        pending.wanted += length;
        let most = size.saturating_mul(MOST_PASSES).max(FEW_BYTES);
        if pending.wanted > most {
            return Look::Failed(state.hung(format!("reads of {most} bytes"), &self.source).into());
        }
        let begun = Instant::now();
        let bytes = match interrupt {
            None => Err(Interrupted.into()),
            Some(interrupt) => {
                let mut bytes = vec![0; length as usize];
                self.source.read_at(at, &mut bytes, interrupt).map(|()| bytes)
            }
        };
        pending.since += begun.elapsed();
        let given = running.worker.give_wanted(bytes.as_deref().ok());
        pending.refused = pending.refused.take().or(bytes.err());
        match given {
            Ok(()) => Look::Waiting,
            Err(gone) => Look::Failed(state.died(&gone, &self.source)),
        }
    }
}

impl pool::WorkerOwner for SharedClient {
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

impl ClientState {
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
