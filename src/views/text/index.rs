//! Where each block of a file begins, learnt by a pass over the values.
//!
//! At most one pass runs for an index at a time, on a pool of its own with a thread for each core; whoever needs it waits
//! for it without holding a thread of the pool, so passes cannot block each other. A step of a pass measures some blocks
//! and then queues up again behind the steps of other passes. The pass ends early when nobody waits for it any more; what
//! it has measured stays, and the next one goes on from there.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_channel::Sender;
use parking_lot::{Condvar, Mutex};

use crate::source::{Interrupt, Interrupted};
use crate::store::Error;

/// Measures blocks.
pub(super) trait Measure: Send + Sync {
    /// Bytes of each of `blocks`.
    fn lengths(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<u64>, Error>;
}

/// What a caller needs to know of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Every block.
    All,
    /// The block with this byte.
    Byte(u64),
}

/// A block: its number, where it begins, its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub block: usize,
    pub start: u64,
    pub length: u64,
}

/// Length of a block that has not been measured.
const UNKNOWN: u64 = u64::MAX;

/// How often a waiting thread looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);

/// Where blocks begin.
pub(super) struct Index {
    blocks: usize,
    per_step: usize,
    /// Where each block begins, and where the last one ends; once all are known.
    complete: OnceLock<Vec<u64>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Length of each block, or [`UNKNOWN`]; empty until first needed.
    lengths: Vec<u64>,
    /// As `Index::complete`, for the blocks up to the first unknown one.
    offsets: Vec<u64>,
    pass: Option<Pass>,
    /// Why the last pass failed, until one of those who waited for it has taken it.
    error: Option<Error>,
    waiting: usize,
}

struct Pass {
    interrupt: Interrupt,
    /// First block that no step has taken yet.
    next: usize,
    /// Steps running or queued.
    steps: usize,
}

type Work = Box<dyn FnOnce() + Send>;

/// One queue for all: a pool whose threads prefer work that they queued themselves, as rayon's do, would finish the
/// longest pass before it begins the shortest.
struct Pool {
    queue: Sender<Work>,
    threads: usize,
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let (queue, work) = crossbeam_channel::unbounded::<Work>();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let started = (0..cores).filter(|number| {
            let work = work.clone();
            let run = move || {
                for work in work {
                    // A panic would end the thread, which many wait for. Whoever waits for this work is told by it.
                    drop(catch_unwind(AssertUnwindSafe(work)));
                }
            };
            std::thread::Builder::new().name(format!("text-{number}")).spawn(run).is_ok()
        });
        Pool { threads: started.count(), queue }
    })
}

/// Runs `work` on the pool for passes and rendering ahead, after what was queued before; says whether there is one.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    let pool = pool();
    pool.threads > 0 && pool.queue.send(Box::new(work)).is_ok()
}

/// Threads of the pool.
pub(super) fn cores() -> usize {
    pool().threads.max(1)
}

impl Index {
    /// An index of `blocks` blocks of which none is known; a step of a pass measures `per_step` of them.
    pub fn new(blocks: usize, per_step: usize) -> Self {
        Self {
            blocks,
            per_step: per_step.max(1),
            complete: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Bytes of all blocks, once they are known.
    pub fn total(&self) -> Option<u64> {
        self.complete.get().and_then(|offsets| offsets.last().copied())
    }

    /// The block with byte `offset`, where it is known.
    pub fn locate(&self, offset: u64) -> Option<Located> {
        match self.complete.get() {
            Some(offsets) => locate(offsets, offset),
            None => locate(&self.state.lock().offsets, offset),
        }
    }

    /// The first block that is not known, and where it begins.
    pub fn frontier(&self) -> Option<(usize, u64)> {
        if self.complete.get().is_some() {
            return None;
        }
        let mut state = self.state.lock();
        self.prepare(&mut state);
        let start = state.offsets.last().copied()?;
        Some((state.offsets.len() - 1, start))
    }

    /// Learns the lengths of blocks from `first` on.
    pub fn record(&self, first: usize, lengths: &[u64]) {
        if self.complete.get().is_some() {
            return;
        }
        let mut state = self.state.lock();
        self.prepare(&mut state);
        self.record_locked(&mut state, first, lengths);
        drop(state);
        self.changed.notify_all();
    }

    fn prepare(&self, state: &mut State) {
        if self.complete.get().is_none() && state.offsets.is_empty() {
            state.lengths = vec![UNKNOWN; self.blocks];
            state.offsets = vec![0];
            self.advance(state);
        }
    }

    fn record_locked(&self, state: &mut State, first: usize, lengths: &[u64]) {
        for (slot, &length) in state.lengths.iter_mut().skip(first).zip(lengths) {
            *slot = length;
        }
        self.advance(state);
    }

    /// Extends the known offsets.
    fn advance(&self, state: &mut State) {
        while let Some(&length) = state.lengths.get(state.offsets.len() - 1).filter(|&&length| length != UNKNOWN) {
            let start = state.offsets.last().copied().unwrap_or(0);
            state.offsets.push(start.saturating_add(length));
        }
        if state.offsets.len() == self.blocks + 1 && self.complete.get().is_none() {
            let _ = self.complete.set(state.offsets.clone());
            state.lengths = Vec::new();
        }
    }

    fn reached(&self, state: &State, target: Target) -> bool {
        self.complete.get().is_some()
            || match target {
                Target::All => false,
                Target::Byte(offset) => state.offsets.last().is_some_and(|&end| end > offset),
            }
    }

    /// Waits until `target` is known, with a pass over what is not.
    ///
    /// # Errors
    /// Those of `measure`; [`Error::Interrupted`] within 50 ms after `interrupt` is raised.
    pub fn ensure(
        self: &Arc<Self>,
        target: Target,
        measure: &Arc<dyn Measure>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        if self.complete.get().is_some() {
            return Ok(());
        }
        let mut state = self.state.lock();
        self.prepare(&mut state);
        if state.pass.is_none() {
            // Left over from a pass for which nobody waited in the end.
            state.error = None;
        }
        state.waiting += 1;
        let outcome = loop {
            if self.reached(&state, target) {
                break Ok(());
            }
            if interrupt.is_raised() {
                break Err(Error::Interrupted(Interrupted));
            }
            if state.pass.is_none() {
                if let Some(error) = state.error.take() {
                    break Err(error);
                }
                if let Err(error) = self.start(&mut state, measure) {
                    break Err(error);
                }
            }
            self.changed.wait_for(&mut state, PATIENCE);
        };
        state.waiting -= 1;
        if state.waiting == 0
            && let Some(pass) = &state.pass
        {
            pass.interrupt.raise();
        }
        outcome
    }

    fn start(self: &Arc<Self>, state: &mut State, measure: &Arc<dyn Measure>) -> Result<(), Error> {
        let steps = cores();
        let interrupt = Interrupt::new();
        state.pass = Some(Pass { interrupt: interrupt.clone(), next: state.offsets.len() - 1, steps });
        for _ in 0..steps {
            let (index, measure, interrupt) = (Arc::clone(self), Arc::clone(measure), interrupt.clone());
            if !spawn(move || index.step(&measure, &interrupt)) {
                state.pass = None;
                return Err(failed("cannot start threads"));
            }
        }
        Ok(())
    }

    /// Takes the next unknown blocks, measures them, queues up again.
    fn step(self: Arc<Self>, measure: &Arc<dyn Measure>, interrupt: &Interrupt) {
        let taken = {
            let mut state = self.state.lock();
            let taken = if interrupt.is_raised() { None } else { self.take(&mut state) };
            if taken.is_none() {
                self.leave(&mut state);
            }
            taken
        };
        let Some(blocks) = taken else { return };
        let first = blocks.start;
        let measured = catch_unwind(AssertUnwindSafe(|| measure.lengths(blocks, interrupt)))
            .unwrap_or_else(|_| Err(failed("a panic while text was measured")));
        let mut state = self.state.lock();
        match measured {
            Ok(lengths) => {
                self.record_locked(&mut state, first, &lengths);
                self.changed.notify_all();
                drop(state);
                let (index, measure, interrupt) = (Arc::clone(&self), Arc::clone(measure), interrupt.clone());
                spawn(move || index.step(&measure, &interrupt));
            }
            Err(error) => {
                // Steps that end because the pass was stopped did not fail.
                if !interrupt.is_raised() {
                    state.error = Some(error);
                    interrupt.raise();
                }
                self.leave(&mut state);
            }
        }
    }

    fn take(&self, state: &mut State) -> Option<Range<usize>> {
        let lengths = &state.lengths;
        let pass = state.pass.as_mut()?;
        let first = pass.next + lengths.get(pass.next..)?.iter().position(|&length| length == UNKNOWN)?;
        // To the end of the step's place in the grid of steps: steps keep to chunks however often a pass is begun anew.
        let last = (first / self.per_step + 1).saturating_mul(self.per_step).min(lengths.len());
        let known = lengths.get(first..last)?.iter().position(|&length| length != UNKNOWN);
        let last = known.map_or(last, |known| first + known);
        pass.next = last;
        Some(first..last)
    }

    /// Ends a step; the last one ends the pass.
    fn leave(&self, state: &mut State) {
        if let Some(pass) = &mut state.pass {
            pass.steps -= 1;
            if pass.steps == 0 {
                state.pass = None;
            }
        }
        self.changed.notify_all();
    }
}

pub(super) fn locate(offsets: &[u64], offset: u64) -> Option<Located> {
    let block = offsets.partition_point(|&start| start <= offset).checked_sub(1)?;
    let (start, end) = (*offsets.get(block)?, *offsets.get(block + 1)?);
    Some(Located { block, start, length: end - start })
}

fn failed(reason: &str) -> Error {
    Error::Unsupported { path: "text".into(), reason: reason.into() }
}
