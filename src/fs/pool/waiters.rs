//! The watch over long requests: it cancels those whose sender was killed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::requester::Waiting;

/// Shortest wait that the watch checks; people do not notice shorter ones.
const PATIENCE: Duration = Duration::from_millis(100);

/// Interval between checks of long waits: Ctrl-C then takes effect within 0.2 s.
const ROUND: Duration = Duration::from_millis(100);

/// A pending request without the type of its answer.
pub(super) trait Waiter: Send + Sync {
    /// Whether the sender of the request still waits.
    fn waiting(&self) -> Waiting;
    /// Answers "interrupted", and stops the work behind it.
    fn cancel(&self);
}

/// The waiting requests, and a thread that checks those that wait long. It sleeps while no request waits.
#[derive(Default)]
pub(super) struct Waiters {
    state: Mutex<State>,
    wake: Condvar,
    is_over: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

#[derive(Default)]
struct State {
    requests: HashMap<u64, (Instant, Weak<dyn Waiter>)>,
    started: bool,
    asleep: bool,
    closed: bool,
}

impl Waiters {
    /// Watches over a request until [`Waiters::remove`].
    pub fn add(self: &Arc<Self>, id: u64, request: Weak<dyn Waiter>) {
        let mut state = self.state.lock();
        state.requests.insert(id, (Instant::now(), request));
        if !state.started {
            let waiters = self.clone();
            match thread::Builder::new().name("hepfs-watch".to_owned()).spawn(move || waiters.rounds()) {
                Ok(_) => state.started = true,
                Err(error) => tracing::warn!("no watch over interrupted requests: {error}"),
            }
        }
        if state.asleep {
            state.asleep = false;
            self.wake.notify_one();
        }
    }

    /// Cancels every request.
    pub fn cancel_all(&self) {
        let all: Vec<_> = self.state.lock().requests.values().filter_map(|(_, weak)| weak.upgrade()).collect();
        for request in all {
            request.cancel();
        }
    }

    /// Removes a request that has its answer.
    pub fn remove(&self, id: u64) {
        self.state.lock().requests.remove(&id);
    }

    /// Sets the test for the end of the session, which cancels all requests.
    pub fn watch_end(&self, is_over: Box<dyn Fn() -> bool + Send + Sync>) {
        self.is_over.set(is_over).ok();
    }

    /// Ends the watching thread.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    fn rounds(&self) {
        let mut quiet = 0;
        let mut state = self.state.lock();
        while !state.closed {
            // The thread sleeps for good only after a second without requests: waking it costs each request a system
            // call.
            if quiet > 10 {
                state.asleep = true;
                self.wake.wait(&mut state);
                state.asleep = false;
                quiet = 0;
                continue;
            }
            self.wake.wait_for(&mut state, ROUND);
            quiet = if state.requests.is_empty() { quiet + 1 } else { 0 };
            let long: Vec<Arc<dyn Waiter>> = state
                .requests
                .values()
                .filter(|(since, _)| since.elapsed() >= PATIENCE)
                .filter_map(|(_, request)| request.upgrade())
                .collect();
            drop(state);
            if !long.is_empty() && self.is_over.get().is_some_and(|is_over| is_over()) {
                self.cancel_all();
            }
            // The last reference may be dropped here, and its drop takes the lock.
            for request in long {
                if request.waiting() != Waiting::Yes {
                    request.cancel();
                }
            }
            state = self.state.lock();
        }
    }
}
