//! Schedules the requests for all objects of a store: those in flight, and the order of those to come.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::FetchSettings;
use super::counts::{Counts, FetchCounts};
use super::disk::Disk;
use super::measured::Measured;
use super::object::{FetchedObject, MOMENT, Wanted};
use super::stretch::ByteStretch;
use crate::remote::RangeClient;
use crate::source::{Error, FETCHED_WHOLE, Identity};
use crate::store::{Budget, Cache, KeptFolder};

/// Most bytes between two stretches that one request brings.
const GAP: u64 = 64 << 10;

/// Divisor of the length of a request: its gaps take no more than that part.
const GAPS: u64 = 8;

/// Most and fewest bytes of a request, if more are wanted. Between them it is a quarter of the window, so that requests
/// run side by side.
const MOST_REQUEST: u64 = 8 << 20;
const LEAST_REQUEST: u64 = 1 << 20;

/// The schedule, the memory and the counters that all objects of a store share.
pub struct Fetching {
    settings: FetchSettings,
    budget: Budget,
    disk: Arc<Disk>,
    runtime: Handle,
    pub(super) counts: Arc<Counts>,
    /// ByteStretches that have arrived, by the number of their object and their place.
    pub(super) held: Cache<(u64, u64), ByteStretch>,
    schedule: Mutex<Schedule>,
    objects: AtomicU64,
}

struct Schedule {
    /// ByteStretches that readers wait for.
    urgent: VecDeque<Queued>,
    planned: VecDeque<Queued>,
    /// Objects whose rest is fetched when nothing else is.
    rests: VecDeque<Weak<FetchedObject>>,
    /// ByteStretches of values that have arrived, oldest first.
    arrived: VecDeque<(u64, Weak<ByteStretch>)>,
    requests: usize,
    measured: Measured,
}

/// A stretch that may have been begun, with others, before its turn.
type Queued = (Arc<FetchedObject>, Weak<ByteStretch>);

impl std::fmt::Debug for Fetching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetching").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Fetching {
    /// A new one: memory of this budget, a folder of entries, tasks on this runtime.
    pub fn new(settings: FetchSettings, budget: &Budget, disk: KeptFolder, runtime: Handle) -> Arc<Self> {
        let schedule = Schedule {
            urgent: VecDeque::new(),
            planned: VecDeque::new(),
            rests: VecDeque::new(),
            arrived: VecDeque::new(),
            requests: 0,
            measured: Measured::new(),
        };
        Arc::new(Self {
            settings,
            budget: budget.clone(),
            disk: Disk::new(disk),
            runtime,
            counts: Arc::default(),
            held: Cache::new(budget),
            schedule: Mutex::new(schedule),
            objects: AtomicU64::new(0),
        })
    }

    /// Requests, bytes and waits so far.
    pub fn counts(&self) -> FetchCounts {
        self.counts.snapshot()
    }

    fn window(&self, measured: &Measured) -> u64 {
        measured.window().min(self.budget.limit() / 4)
    }

    pub(super) fn object(&self, client: Arc<dyn RangeClient>, identity: Identity, address: PathBuf) -> FetchedObject {
        let number = self.objects.fetch_add(1, Ordering::Relaxed);
        FetchedObject::new(number, client, self.disk.places(identity), address)
    }

    /// The stretch of the cache folder that has byte `at`, which no stretch has.
    pub(super) fn kept_on_disk(&self, object: &FetchedObject, at: u64) -> Option<Arc<ByteStretch>> {
        let (kept, mut bytes) = self.disk.get(&object.on_disk, at)?;
        let memory = self.budget.try_reserve(kept.end - kept.start);
        let mut memory = memory.unwrap_or_else(|| self.budget.charge(kept.end - kept.start));
        let mut stretches = object.stretches.lock();
        let gap = stretches.gap(at..at + 1, object.size())?;
        let range = kept.start.max(gap.start)..kept.end.min(gap.end);
        bytes.truncate((range.end - kept.start) as usize);
        bytes.drain(..(range.start - kept.start) as usize);
        memory.keep(range.end - range.start);
        let stretch = Arc::new(ByteStretch::held(range, bytes, memory, &object.rest, &self.counts));
        stretches.put(&stretch);
        stretches.release(&stretch);
        drop(stretches);
        self.held.insert((object.number, stretch.range.start), stretch.clone());
        self.counts.disk_hits.add(1);
        Some(stretch)
    }

    /// Whether an object is small enough to be fetched whole.
    pub(super) fn takes_whole(&self, object: &FetchedObject) -> bool {
        object.size() <= FETCHED_WHOLE.min(self.settings.ahead).min(self.budget.limit() / 4)
    }

    /// Queues stretches in this order, behind those queued before.
    pub(super) fn plan(self: &Arc<Self>, object: &Arc<FetchedObject>, stretches: Vec<Arc<ByteStretch>>) {
        let queued = stretches.iter().map(|stretch| (object.clone(), Arc::downgrade(stretch)));
        self.schedule.lock().planned.extend(queued);
        self.dispatch();
    }

    /// Keeps a stretch that has arrived, unless it has been read meanwhile.
    fn hold(&self, object: &FetchedObject, stretch: Arc<ByteStretch>) {
        self.held.insert((object.number, stretch.range.start), stretch.clone());
        if stretch.is_kept {
            self.disk.keep(&object.on_disk, stretch.range.start, &stretch.bytes(), &self.runtime);
        }
        if stretch.hold() {
            self.forget(object, &stretch);
        } else if !stretch.is_kept {
            let arrived = &mut self.schedule.lock().arrived;
            if arrived.len() == arrived.capacity() {
                arrived.retain(|(_, stretch)| stretch.strong_count() > 0);
            }
            arrived.push_back((object.number, Arc::downgrade(&stretch)));
        }
    }

    /// Begins the request of a stretch that a reader waits for before all that are planned.
    pub(super) fn hurry(self: &Arc<Self>, object: &Arc<FetchedObject>, stretch: &Arc<ByteStretch>) {
        if stretch.want() {
            self.schedule.lock().urgent.push_back((object.clone(), Arc::downgrade(stretch)));
            self.dispatch();
        }
    }

    /// Notes that bytes of a stretch were read; `is_spent`: the last ones.
    pub(super) fn note_read(
        self: &Arc<Self>,
        object: &FetchedObject,
        stretch: &Arc<ByteStretch>,
        waited: Duration,
        is_spent: bool,
    ) {
        self.counts.waited.add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
        if is_spent {
            self.forget(object, stretch);
        } else {
            // The use of a cached one counts.
            self.held.get(&(object.number, stretch.range.start));
        }
        if !stretch.is_kept {
            self.dispatch();
        }
    }

    /// Forgets a stretch that has been read.
    pub(super) fn forget(&self, object: &FetchedObject, stretch: &Arc<ByteStretch>) {
        object.stretches.lock().remove(stretch);
        self.held.remove(&(object.number, stretch.range.start));
    }

    /// Ends all that was begun for an object, apart from requests in flight.
    pub(super) fn close(&self, object: &FetchedObject) {
        object.is_closed.store(true, Ordering::Relaxed);
        let number = object.number;
        let mut schedule = self.schedule.lock();
        let Schedule { urgent, planned, arrived, .. } = &mut *schedule;
        let is_other = |queued: &Queued| queued.0.number != number;
        urgent.retain(is_other);
        planned.retain(is_other);
        arrived.retain(|(object, _)| *object != number);
        drop(schedule);
        self.held.retain(|(object, _)| *object != number);
        self.disk.finish(&object.on_disk);
    }

    /// Begins requests, as many as the network asks for.
    pub(super) fn dispatch(self: &Arc<Self>) {
        loop {
            let next = self.next(&mut self.schedule.lock());
            let Some(request) = next else { return };
            self.begin(request);
        }
    }

    /// The next request, whose stretches are marked as in flight.
    fn next(&self, schedule: &mut Schedule) -> Option<Request> {
        if schedule.requests >= self.settings.connections {
            return None;
        }
        let window = self.window(&schedule.measured);
        let most = (window / 4).clamp(LEAST_REQUEST, MOST_REQUEST);
        while let Some((object, stretch)) = schedule.urgent.pop_front() {
            if let Some(stretch) = stretch.upgrade().filter(|stretch| stretch.begin()) {
                return Some(self.group(schedule, object, stretch, most));
            }
        }
        while !schedule.planned.is_empty() {
            self.drop_stale(schedule, window);
            let room = window.saturating_sub(self.counts.outstanding.load(Ordering::Relaxed));
            if room == 0 {
                return None;
            }
            let Some((object, stretch)) = schedule.planned.pop_front() else { break };
            let Some(stretch) = stretch.upgrade() else { continue };
            if stretch.plan.is_over() && stretch.drop_unwanted() {
                object.stretches.lock().remove(&stretch);
            } else if stretch.begin() {
                return Some(self.group(schedule, object, stretch, most));
            }
        }
        while self.counts.outstanding.load(Ordering::Relaxed) < window {
            let object = schedule.rests.front()?.upgrade();
            match object.and_then(|object| Some((self.rest(schedule, &object, most)?, object))) {
                Some((stretch, object)) => return Some(self.group(schedule, object, stretch, most)),
                None => drop(schedule.rests.pop_front()),
            }
        }
        None
    }

    /// Drops values that were not read for long, the oldest first, while they leave no room for others.
    fn drop_stale(&self, schedule: &mut Schedule, window: u64) {
        while let Some((object, stretch)) = schedule.arrived.front() {
            match stretch.upgrade() {
                Some(stretch) if !stretch.plan.is_over() => return,
                Some(_) if self.counts.outstanding.load(Ordering::Relaxed) < window => return,
                Some(stretch) => self.held.remove(&(*object, stretch.range.start)),
                None => {}
            }
            schedule.arrived.pop_front();
        }
    }

    /// The next stretch of an object's rest, marked as in flight. `None`: there is no more, or it does not pay.
    fn rest(&self, schedule: &Schedule, object: &Arc<FetchedObject>, most: u64) -> Option<Arc<ByteStretch>> {
        let mut from = object.rest_from.lock();
        if !self.pays(&schedule.measured, object) || object.check().is_err() || object.failure().is_some() {
            // It may pay later.
            *from = None;
            return None;
        }
        let Some(gap) = object.gap(&mut object.stretches.lock(), (*from)?..object.size()) else {
            *from = Some(u64::MAX);
            return None;
        };
        let end = gap.end.min(gap.start + most);
        *from = Some(end);
        let stretches = object.want(gap.start..end, Wanted::Kept, &object.rest, &self.counts);
        stretches.into_iter().next().filter(|first| first.begin())
    }

    /// Whether the rest of an object costs less than the rounds that reading it has taken so far.
    fn pays(&self, measured: &Measured, object: &FetchedObject) -> bool {
        let rounds = object.rounds.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as u32;
        let missing = object.missing();
        missing <= self.settings.ahead.min(self.budget.limit() / 4)
            && measured.delay() * rounds > measured.time_of(missing)
    }

    /// A request of a stretch and of those that follow in the object, while few bytes lie between.
    fn group(
        &self,
        schedule: &mut Schedule,
        object: Arc<FetchedObject>,
        first: Arc<ByteStretch>,
        most: u64,
    ) -> Request {
        schedule.requests += 1;
        let (start, mut end, mut bytes) = (first.range.start, first.range.end, first.len());
        let mut stretches = object.stretches.lock();
        stretches.release(&first);
        let mut group = VecDeque::from([first]);
        while let Some(next) = stretches.behind(end) {
            let (gap, all) = (next.range.start - end, next.range.end - start);
            let gaps = all - bytes - next.len();
            if gap > GAP || gaps * GAPS > all || all > most || !next.begin() {
                break;
            }
            (end, bytes) = (next.range.end, bytes + next.len());
            stretches.release(&next);
            group.push_back(next);
        }
        drop(stretches);
        Request { object, group }
    }

    /// Begins a request, as far as memory allows.
    fn begin(self: &Arc<Self>, Request { object, mut group }: Request) {
        let with_memory = group.iter().take_while(|stretch| {
            let memory = self.budget.try_reserve(stretch.len());
            let memory = memory.or_else(|| stretch.is_wanted().then(|| self.budget.charge(stretch.len())));
            memory.map(|memory| stretch.give(memory)).is_some()
        });
        let without = group.split_off(with_memory.count());
        without.iter().for_each(|stretch| {
            object.stretches.lock().remove(stretch);
            stretch.drop_bytes();
        });
        let mut schedule = self.schedule.lock();
        let (Some(first), Some(last)) = (group.front(), group.back()) else {
            schedule.requests -= 1;
            return;
        };
        let range = first.range.start..last.range.end;
        self.counts.requests.add(1);
        self.counts.most_in_flight.fetch_max(schedule.requests as u64, Ordering::Relaxed);
        if schedule.requests == 1 {
            self.counts.rounds.add(1);
            schedule.measured.begin();
        }
        if object.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            object.rounds.fetch_add(1, Ordering::Relaxed);
            let mut from = object.rest_from.lock();
            if from.is_none() && self.pays(&schedule.measured, &object) {
                *from = Some(0);
                schedule.rests.push_back(Arc::downgrade(&object));
            }
        }
        drop(schedule);
        let (fetching, request) = (self.clone(), Request { object, group });
        self.runtime.spawn(async move {
            InFlight { fetching: fetching.clone(), request }.run(range).await;
            fetching.dispatch();
        });
    }
}

/// ByteStretches that one request brings, in the order of their places.
struct Request {
    object: Arc<FetchedObject>,
    group: VecDeque<Arc<ByteStretch>>,
}

impl Request {
    /// Tells those who wait for it why it gives no more bytes.
    fn fail(&mut self, error: Arc<Error>) {
        for stretch in self.group.drain(..) {
            self.object.stretches.lock().remove(&stretch);
            stretch.fail(error.clone());
        }
    }
}

/// A request in flight, with the stretches that have not arrived. However it ends, its readers wait no longer.
struct InFlight {
    fetching: Arc<Fetching>,
    request: Request,
}

impl InFlight {
    async fn run(mut self, range: Range<u64>) {
        let (begun, mut at) = (Instant::now(), range.start);
        let mut last = begun;
        if let Some(error) = self.request.object.failure() {
            return self.request.fail(Arc::new(error));
        }
        let mut pieces = self.request.object.client.get(range.clone());
        while !self.request.group.is_empty() && !self.request.object.is_closed.load(Ordering::Relaxed) {
            match pieces.next().await {
                Some(Ok(piece)) => {
                    let mut schedule = self.fetching.schedule.lock();
                    if at == range.start {
                        schedule.measured.note_delay(begun.elapsed());
                    }
                    schedule.measured.note_bytes(piece.len() as u64);
                    drop(schedule);
                    self.take(at, &piece);
                    at += piece.len() as u64;
                    last = Instant::now();
                    self.fetching.dispatch();
                }
                Some(Err(error)) => {
                    let (object, error) = (&self.request.object, Arc::new(error));
                    object.has_changed.fetch_or(error.is_change(), Ordering::Relaxed);
                    if last.elapsed() >= MOMENT {
                        *object.given_up.lock() = Some((Instant::now(), error.clone()));
                    }
                    return self.request.fail(error);
                }
                None => return,
            }
        }
    }

    /// Hands a piece of the answer, from byte `at` of the object on, to its stretches.
    fn take(&mut self, at: u64, piece: &[u8]) {
        let (end, Request { object, group }) = (at + piece.len() as u64, &mut self.request);
        self.fetching.counts.fetched.add(piece.len() as u64);
        object.fetched.fetch_add(piece.len() as u64, Ordering::Relaxed);
        while let Some(stretch) = group.pop_front_if(|stretch| stretch.range.start < end) {
            let from = stretch.range.start.max(at);
            let to = stretch.range.end.min(end);
            stretch.append(&piece[(from - at) as usize..(to - at) as usize]);
            if to < stretch.range.end {
                group.push_front(stretch);
                return;
            }
            self.fetching.hold(object, stretch);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let path = self.request.object.address.clone();
        self.request.fail(Arc::new(Error::Io { path, error: io::ErrorKind::UnexpectedEof.into() }));
        self.fetching.schedule.lock().requests -= 1;
        self.request.object.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
