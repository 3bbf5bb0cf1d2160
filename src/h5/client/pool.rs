//! The workers of all clients of this process: how many there may be, which of them has to go, and the one thread that
//! starts and watches them.
//!
//! A worker asks the kernel to be killed when its parent dies, and to the kernel the parent is the *thread* that
//! started it. So one thread starts them all and never ends.

use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded, unbounded};
use parking_lot::Mutex;

use crate::h5::error::Error;
use crate::source::Interrupt;

/// How often idle and abandoned workers are looked at.
const TICK: Duration = Duration::from_millis(200);

/// How often a waiting thread looks whether it is still wanted.
pub(in crate::h5) const GLANCE: Duration = Duration::from_millis(20);

static ALIVE: Mutex<usize> = Mutex::new(0);
static CLIENTS: Mutex<Vec<Weak<dyn Client>>> = Mutex::new(Vec::new());
/// The thread that starts workers, with the process it is in: a fork leaves it behind.
static STARTER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

struct Job {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

/// What may have a worker.
pub(in crate::h5) trait Client: Send + Sync {
    /// Since when its worker has had nothing to do; `None` where there is none or it is busy.
    fn idle_since(&self) -> Option<Instant>;

    /// Ends the worker if it has nothing to do.
    fn evict(&self) -> bool;

    /// Ends a worker that is dead, hangs on an abandoned request, or has had nothing to do for long.
    fn tick(&self);
}

/// The right to have one worker; dropped with it.
#[derive(Debug)]
pub(in crate::h5) struct Slot(());

impl Drop for Slot {
    fn drop(&mut self) {
        *ALIVE.lock() -= 1;
    }
}

/// Makes a client known, so that its idle worker can be ended.
pub(in crate::h5) fn register(client: &Arc<impl Client + 'static>) {
    let mut clients = CLIENTS.lock();
    clients.retain(|client| client.strong_count() > 0);
    let client: Arc<dyn Client> = client.clone();
    clients.push(Arc::downgrade(&client));
}

fn clients() -> Vec<Arc<dyn Client>> {
    CLIENTS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Waits until fewer than `limit` workers are alive, ending the one that was idle longest if need be.
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

/// Starts a process from the thread that never ends.
pub(in crate::h5) fn spawn(command: Command) -> io::Result<Child> {
    let (answer, child) = bounded(1);
    starter()?.send(Job { command, answer }).map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
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
        let mut ticked = Instant::now();
        loop {
            match jobs.recv_timeout(if *ALIVE.lock() > 0 { TICK } else { Duration::from_secs(3600) }) {
                Ok(Job { mut command, answer }) => {
                    // The caller is gone: the child must not outlive it.
                    if let Err(refused) = answer.send(command.spawn())
                        && let Ok(mut child) = refused.into_inner()
                    {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                }
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
