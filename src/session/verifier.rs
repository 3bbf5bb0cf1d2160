//! Verifies search indexes in the background, one at a time: those that a selection could not use.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::activity::{Unit, Work};
use crate::indexes;
use crate::source::Interrupt;
use crate::table::IndexForm;

/// A queue of search indexes, and a thread that verifies them until the queue is empty.
#[derive(Debug, Default)]
pub struct Verifier(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<IndexForm>>,
    /// Indexes queued before, by opening of the file and path: an index that could not be read is not tried again.
    queued: HashSet<(u64, String)>,
    is_running: bool,
    thread: Option<JoinHandle<()>>,
}

impl Verifier {
    /// Queues indexes for verification.
    pub fn queue(&self, forms: Vec<Arc<IndexForm>>) {
        let mut state = self.0.state.lock();
        for form in forms {
            if state.queued.insert((form.file.serial(), form.path.clone())) {
                state.waiting.push_back(form);
            }
        }
        if state.is_running || state.waiting.is_empty() || self.0.interrupt.is_raised() {
            return;
        }
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("hepfs-verify".to_owned()).spawn(move || shared.run());
        match thread {
            Ok(thread) => (state.is_running, state.thread) = (true, Some(thread)),
            Err(error) => tracing::warn!("search indexes are not verified: {error}"),
        }
    }

    /// Interrupts the running verification, and drops all later ones.
    pub fn stop(&self) {
        self.0.interrupt.raise();
        let thread = self.0.state.lock().thread.take();
        if let Some(thread) = thread {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.waiting.pop_front().filter(|_| !self.interrupt.is_raised());
                state.is_running = next.is_some();
                next
            };
            let Some(form) = next else { return };
            let (table, name) = form.path.rsplit_once('/').unwrap_or_default();
            let doing = format!("verifying index {name}");
            let work = Work::begin(table.trim_matches('/'), doing, Unit::Rows).of(form.file.source().path());
            work.expect(form.rows());
            match indexes::verify(&form, &self.interrupt, &|rows| work.add(rows)) {
                Ok(verdict) => tracing::info!("{}: {verdict:?}", form.path),
                Err(error) if self.interrupt.is_raised() => tracing::debug!("{}: {error}", form.path),
                Err(error) => tracing::warn!("{} could not be verified: {error}", form.path),
            }
        }
    }
}
