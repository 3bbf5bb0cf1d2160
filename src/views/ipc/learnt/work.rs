//! Work on all cores that one reader waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::source::Interrupt;
use crate::store::Error;
use crate::store::pass::{cores, spawn};

/// How often the reader looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);

/// A part of some work, by its number.
pub(in crate::views::ipc) type Part = dyn Fn(usize, &Interrupt) -> Result<(), Error> + Send + Sync;

struct Shared {
    parts: usize,
    next: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    error: Option<Error>,
}

/// Does all `parts`, on this thread and others; the calling thread works too, so it never waits for a thread to be
/// free.
///
/// # Errors
/// The first one of a part, after which no other part begins.
pub(in crate::views::ipc) fn in_parallel(parts: usize, part: &Arc<Part>, interrupt: &Interrupt) -> Result<(), Error> {
    let shared =
        Arc::new(Shared { parts, next: AtomicUsize::new(0), state: Mutex::default(), changed: Condvar::new() });
    for _ in 1..cores().min(parts) {
        let (shared, part, interrupt) = (Arc::clone(&shared), Arc::clone(part), interrupt.clone());
        spawn(move || shared.work(&part, &interrupt));
    }
    shared.work(part, interrupt);
    let mut state = shared.state.lock();
    while state.running > 0 {
        // Parts that others are at end by themselves soon after the interrupt, which they share.
        shared.changed.wait_for(&mut state, PATIENCE);
    }
    match state.error.take() {
        Some(error) => Err(error),
        None => Ok(interrupt.check()?),
    }
}

impl Shared {
    fn work(&self, part: &Arc<Part>, interrupt: &Interrupt) {
        loop {
            let running = Running::start(self);
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.parts || interrupt.is_raised() {
                return;
            }
            if let Err(error) = part(number, interrupt) {
                self.next.store(self.parts, Ordering::Relaxed);
                self.state.lock().error.get_or_insert(error);
            }
            drop(running);
        }
    }
}

/// A part that a thread is at; also over when that thread panics.
struct Running<'a>(&'a Shared);

impl<'a> Running<'a> {
    fn start(shared: &'a Shared) -> Self {
        shared.state.lock().running += 1;
        Self(shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if std::thread::panicking() {
            let error = Error::Unsupported { path: "arrow".into(), reason: "a panic while rows were counted".into() };
            state.error.get_or_insert(error);
        }
        state.running -= 1;
        drop(state);
        self.0.changed.notify_all();
    }
}
