//! The workers of all clients of this process: their number, the eviction of idle ones, and the one thread that starts
//! and watches them.
//!
//! A worker asks the kernel to kill it when its parent dies, and for the kernel the parent is the *thread* that started
//! it. So one thread starts them all and never ends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded, unbounded};
use parking_lot::Mutex;

use super::nursery::{LibrarySettings, Nursery, Process};
use crate::h5::error::Error;
use crate::source::Interrupt;

/// Interval between checks of idle and abandoned workers.
const TICK: Duration = Duration::from_millis(200);

/// Time after which an unused nursery ends.
const UNUSED: Duration = Duration::from_secs(30);

/// Interval at which a waiting thread checks whether its caller still waits.
pub(in crate::h5) const GLANCE: Duration = Duration::from_millis(20);

static ALIVE: Mutex<usize> = Mutex::new(0);
static CLIENTS: Mutex<Vec<Weak<dyn WorkerOwner>>> = Mutex::new(Vec::new());
/// The thread that starts workers, with the id of its process: a fork leaves the thread behind.
static STARTER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

struct Job {
    kind: LibrarySettings,
    /// The standard input of the worker.
    socket: OwnedFd,
    answer: Sender<io::Result<Process>>,
}

/// A holder of at most one worker.
pub(in crate::h5) trait WorkerOwner: Send + Sync {
    /// Whether the owner has a worker, or may have one.
    fn has_worker(&self) -> bool;

    /// The time since which the worker is idle; `None`: there is no worker, or it is busy.
    fn idle_since(&self) -> Option<Instant>;

    /// Ends the worker if it is idle.
    fn evict(&self) -> bool;

    /// Ends a worker that is dead, hangs in an abandoned request, or has been idle for long.
    fn tick(&self);
}

/// The right to have one worker. Dropping it returns the right.
#[derive(Debug)]
pub(in crate::h5) struct Slot(());

impl Drop for Slot {
    fn drop(&mut self) {
        *ALIVE.lock() -= 1;
    }
}

/// Registers a client with a worker, so that the pool can end the worker when idle.
pub(in crate::h5) fn register(client: &Arc<impl WorkerOwner + 'static>) {
    let client: Arc<dyn WorkerOwner> = client.clone();
    let mut met = Vec::new();
    let mut known = CLIENTS.lock();
    known.retain(|known| {
        let Some(known) = known.upgrade() else { return false };
        let stays = known.has_worker() && !Arc::ptr_eq(&known, &client);
        met.push(known);
        stays
    });
    known.push(Arc::downgrade(&client));
    // Dropped outside the lock: dropping the last reference ends a worker, which takes milliseconds.
    drop(known);
    drop(met);
}

fn clients() -> Vec<Arc<dyn WorkerOwner>> {
    CLIENTS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Waits until fewer than `limit` workers are alive; if necessary, ends the one that was idle longest.
pub(in crate::h5) fn acquire(limit: usize, interrupt: &Interrupt) -> Result<Slot, Error> {
    loop {
        {
            let mut alive = ALIVE.lock();
            if *alive < limit.max(1) {
                *alive += 1;
                return Ok(Slot(()));
            }
        }
        let longest =
            clients().into_iter().filter_map(|client| Some((client.idle_since()?, client))).min_by_key(|c| c.0);
        if longest.is_some_and(|(_, client)| client.evict()) {
            continue;
        }
        if interrupt.is_raised() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(GLANCE);
    }
}

/// Starts a worker with this standard input from the thread that never ends.
pub(super) fn start(kind: LibrarySettings, socket: OwnedFd) -> io::Result<Process> {
    let (answer, process) = bounded(1);
    starter()?.send(Job { kind, socket, answer }).map_err(io::Error::other)?;
    process.recv().map_err(io::Error::other)?
}

/// Forks a worker from the nursery; starts a new nursery for other settings.
fn worker(nursery: &mut Option<Nursery>, kind: &LibrarySettings, socket: &OwnedFd) -> io::Result<Process> {
    if let Some(process) = nursery.as_mut().filter(|nursery| nursery.kind == *kind)
        && let Ok(worker) = process.worker(socket)
    {
        return Ok(worker);
    }
    // The system may have killed the nursery for lack of memory.
    *nursery = None;
    nursery.insert(Nursery::start(kind.clone())?).worker(socket)
}

fn starter() -> io::Result<Sender<Job>> {
    let mut starter = STARTER.lock();
    let process = std::process::id();
    if let Some((of, sender)) = &*starter
        && *of == process
    {
        return Ok(sender.clone());
    }
    let (sender, jobs) = unbounded::<Job>();
    std::thread::Builder::new().name("hdf5-workers".into()).spawn(move || {
        let (mut nursery, mut ticked) = (None, Instant::now());
        loop {
            let wait = match (*ALIVE.lock(), &nursery) {
                (0, None) => Duration::from_secs(3600),
                (0, Some(_)) => UNUSED,
                _ => TICK,
            };
            match jobs.recv_timeout(wait) {
                // If the caller has gone, the drop of the answer ends the worker.
                Ok(Job { kind, socket, answer }) => drop(answer.send(worker(&mut nursery, &kind, &socket))),
                Err(RecvTimeoutError::Timeout) if wait == UNUSED => nursery = None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                clients().iter().for_each(|client| client.tick());
            }
        }
    })?;
    *starter = Some((process, sender.clone()));
    Ok(sender)
}
