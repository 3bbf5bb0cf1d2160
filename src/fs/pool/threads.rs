//! The threads of one lane: they start when work queues, and end when idle.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// A piece of work.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The threads of one lane.
pub(super) struct LaneThreads {
    bound: usize,
    name: &'static str,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    /// Threads that wait or work.
    threads: usize,
    closed: bool,
}

impl LaneThreads {
    /// A lane of at most `bound` threads, none of which has started.
    pub fn new(bound: usize, name: &'static str) -> Self {
        Self { bound, name, state: Mutex::default(), wake: Condvar::new() }
    }

    /// Queues work for a thread; returns the work if the lane has no thread and cannot start one.
    pub fn push(self: &Arc<Self>, work: Work) -> Result<(), Work> {
        let mut state = self.state.lock();
        state.queue.push_back(work);
        // An idle thread stays counted until it has the lock again, so this compares with the whole queue.
        if state.queue.len() > state.idle && state.threads < self.bound {
            let threads = self.clone();
            match thread::Builder::new().name(self.name.to_owned()).spawn(move || threads.serve()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::error!("{}: {error}: no memory or process id for a thread", self.name);
                    return state.queue.pop_back().map_or(Ok(()), Err);
                }
                Err(error) => tracing::warn!("{}: {error}; {} threads carry on", self.name, state.threads),
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Ends every thread after its current work.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.queue.pop_front() {
                drop(state);
                work();
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let timed_out = self.wake.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}
