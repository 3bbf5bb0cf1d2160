//! Passes over all values of a shown file, which learn a fact about each of its blocks: bytes of text, bytes of a page,
//! nulls.
//!
//! At most one pass runs per file, on a pool with a thread per core. Readers wait for it without holding a thread of
//! the pool, so passes cannot block each other. A step of a pass measures some blocks, then queues up behind the steps
//! of other passes. The pass ends early when its last reader leaves; its results stay, and the next pass continues from
//! there. The results of a complete pass are stored in the user's cache folder.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_channel::Sender;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::activity::{self, Unit};
use crate::source::{Interrupt, Interrupted};
use crate::store::{Error, Opening};

/// How long a waiting thread sleeps between checks of whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);

/// Measures blocks; shared by the threads of a pass.
pub trait Measure<T>: Send + Sync {
    /// Measures `blocks`, in order: one value per block.
    ///
    /// # Errors
    /// See [`Error`]; it ends the pass. One waiting reader gets the error, the others run the pass again.
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<T>, Error>;

    /// The verb of the pass in lists of work.
    fn doing(&self) -> &'static str {
        "sizing"
    }
}

/// The cache entry for the results of a pass.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The opened file that values come from.
    pub file: Arc<Opening>,
    /// Everything besides the file that the values depend on: object path, view, options, version. For example:
    /// `/run/columns/name parquet-pages 1`. A pass ignores an entry with another number of blocks.
    pub what: String,
    /// The file shown, or the directory of a selection, in lists of work: `run/table.csv`.
    pub title: Arc<str>,
}

impl Keeper {
    /// The keeper of a part of this one's values, or of values that depend on more.
    #[must_use]
    pub fn with(self, more: impl Display) -> Self {
        Self { what: format!("{} {more}", self.what), ..self }
    }

    /// The value cached under this name, if it `is_ours`; otherwise the result of `make`, which is cached.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn recall_or<T: Serialize + DeserializeOwned>(
        keeper: Option<Self>,
        is_ours: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let known = keeper.as_ref().and_then(|keeper| keeper.file.recall(&keeper.what));
        if let Some(known) = known.and_then(|bytes| postcard::from_bytes(&bytes).ok()).filter(is_ours) {
            return Ok(known);
        }
        let made = make()?;
        if let (Some(Self { file, what, .. }), Ok(bytes)) = (keeper, postcard::to_stdvec(&made)) {
            file.note(&what, &bytes, true);
        }
        Ok(made)
    }
}

/// The progress of passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassProgress {
    /// Number of known blocks.
    pub done: u64,
    /// Number of all blocks.
    pub all: u64,
    /// Whether the results are in the cache folder; `None`: not yet decided.
    pub kept: Option<bool>,
}

impl PassProgress {
    /// The combined progress of several passes; `None` for none.
    pub fn sum(passes: impl IntoIterator<Item = Self>) -> Option<Self> {
        passes.into_iter().reduce(|sum, next| Self {
            done: sum.done + next.done,
            all: sum.all + next.all,
            kept: sum.kept.zip(next.kept).map(|(sum, next)| sum && next),
        })
    }
}

/// The values of a file's blocks, and the pass that measures them.
pub struct Pass<T> {
    blocks: usize,
    per_step: usize,
    measure: Arc<dyn Measure<T>>,
    keeper: Option<Keeper>,
    /// All values, once the pass is complete.
    complete: OnceLock<Vec<T>>,
    /// Whether the values are in the cache folder.
    kept: OnceLock<bool>,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Values of the first blocks.
    known: Vec<T>,
    /// Values of later blocks, by number of the first.
    pieces: BTreeMap<usize, Vec<T>>,
    /// Whether the cache folder was consulted.
    looked: bool,
    running: Option<Running>,
    /// Why the last pass failed, until one of its readers has taken the error.
    error: Option<Error>,
    waiting: usize,
    /// Number of waiting readers that may need only the values of the first blocks.
    waiting_for_part: usize,
}

impl<T> State<T> {
    /// Number of known blocks; more where pieces overlap.
    fn done(&self) -> usize {
        self.pieces.values().map(Vec::len).fold(self.known.len(), usize::saturating_add)
    }
}

struct Running {
    interrupt: Interrupt,
    /// First block not yet taken by a step.
    next: usize,
    /// Steps running or queued.
    steps: usize,
    /// `None`: there is no name for it.
    listed: Option<activity::Work>,
}

type Work = Box<dyn FnOnce() + Send>;

/// Whether the values of the first blocks suffice for a reader.
type Enough<'a, T> = &'a mut dyn FnMut(&[T]) -> bool;

/// A pool with a single queue: in a pool whose threads prefer their own work, as rayon's do, the longest pass would
/// finish before the shortest begins.
struct Pool {
    queue: Sender<Work>,
    threads: usize,
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let (queue, work) = crossbeam_channel::unbounded::<Work>();
        let started = (0..crate::store::cores()).filter(|number| {
            let work = work.clone();
            let run = move || {
                for work in work {
                    // A panic would end the thread, which serves many passes. The work itself reports its panics.
                    drop(catch_unwind(AssertUnwindSafe(work)));
                }
            };
            std::thread::Builder::new().name(format!("pass-{number}")).spawn(run).is_ok()
        });
        Pool { threads: started.count(), queue }
    })
}

/// Queues `work` on the pool for passes and rendering ahead; returns whether there is a pool.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    let pool = pool();
    pool.threads > 0 && pool.queue.send(Box::new(work)).is_ok()
}

/// Number of threads in the pool.
pub fn threads() -> usize {
    pool().threads.max(1)
}

impl<T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static> Pass<T> {
    /// A pass over `blocks` unknown blocks; a step measures `per_step` of them, such as those of a chunk. Reads
    /// nothing.
    pub fn new(blocks: usize, per_step: usize, measure: Arc<dyn Measure<T>>, keeper: Option<Keeper>) -> Arc<Self> {
        let state = State {
            known: Vec::new(),
            pieces: BTreeMap::new(),
            looked: false,
            running: None,
            error: None,
            waiting: 0,
            waiting_for_part: 0,
        };
        let pass = Self {
            blocks,
            per_step: per_step.max(1),
            measure,
            keeper,
            complete: OnceLock::new(),
            kept: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        pass.advance(&mut pass.state.lock());
        if blocks == 0 {
            let _ = pass.kept.set(true);
        }
        Arc::new(pass)
    }

    /// The values of all blocks, if they are known; does no work.
    pub fn known(&self) -> Option<&[T]> {
        self.complete.get().map(Vec::as_slice)
    }

    /// The values of all blocks, if they are known or in the cache folder, which is consulted once.
    pub fn found(&self) -> Option<&[T]> {
        if self.complete.get().is_none() {
            self.look(&mut self.state.lock(), false);
        }
        self.known()
    }

    /// The values of all blocks; waits for a pass over unknown ones.
    ///
    /// # Errors
    /// Those of the measure; [`Error::Interrupted`] within 50 ms after `interrupt` is raised.
    pub fn all(self: &Arc<Self>, interrupt: &Interrupt) -> Result<&[T], Error> {
        self.wait(None, interrupt)?;
        // The values are complete: nothing else ends a wait without a condition.
        Ok(self.known().unwrap_or_default())
    }

    /// Waits until `reached` accepts the values of the first blocks, or all are known; a pass measures unknown ones.
    ///
    /// # Errors
    /// Those of [`Pass::all`].
    pub fn until(self: &Arc<Self>, mut reached: impl FnMut(&[T]) -> bool, interrupt: &Interrupt) -> Result<(), Error> {
        self.wait(Some(&mut reached), interrupt)
    }

    /// Waits for all blocks, or until the first ones suffice.
    fn wait(self: &Arc<Self>, mut enough: Option<Enough<'_, T>>, interrupt: &Interrupt) -> Result<(), Error> {
        let for_part = usize::from(enough.is_some());
        let mut reached = |known: &[T]| enough.as_mut().is_some_and(|enough| enough(known));
        if self.complete.get().is_some() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if state.running.is_none() {
            // The error may be left over from a pass that all readers have left.
            state.error = None;
            // `hepfs prepare` may have cached it meanwhile.
            if !reached(&state.known) {
                self.look(&mut state, true);
            }
        }
        state.waiting += 1;
        state.waiting_for_part += for_part;
        let outcome = loop {
            if self.complete.get().is_some() || reached(&state.known) {
                break Ok(());
            }
            if interrupt.is_raised() {
                break Err(Error::Interrupted(Interrupted));
            }
            if state.running.is_none() {
                if let Some(error) = state.error.take() {
                    break Err(error);
                }
                if let Err(error) = self.start(&mut state) {
                    break Err(error);
                }
            }
            self.changed.wait_for(&mut state, PATIENCE);
        };
        state.waiting -= 1;
        state.waiting_for_part -= for_part;
        if state.waiting == 0
            && let Some(running) = &state.running
        {
            running.interrupt.raise();
        }
        outcome
    }

    /// Calls `with` with the values of the first blocks, as far as they are known.
    pub fn with_first<R>(&self, with: impl FnOnce(&[T]) -> R) -> R {
        match self.complete.get() {
            Some(all) => with(all),
            None => with(&self.state.lock().known),
        }
    }

    /// Records values of blocks from `first` on that were measured elsewhere.
    pub fn record(&self, first: usize, values: Vec<T>) {
        if self.complete.get().is_none() {
            self.add(&mut self.state.lock(), first, values);
        }
    }

    /// As [`Pass::record`]; if this completes the values, they are cached.
    pub fn contribute(self: &Arc<Self>, first: usize, values: Vec<T>) {
        self.record(first, values);
        if self.complete.get().is_some() && self.kept.get().is_none() {
            let pass = Arc::clone(self);
            spawn(move || pass.keep());
        }
    }

    /// Number of waiting readers.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    /// The progress of the pass.
    pub fn progress(&self) -> PassProgress {
        let done = match self.complete.get() {
            Some(_) => self.blocks,
            None => self.state.lock().done().min(self.blocks),
        };
        PassProgress { done: done as u64, all: self.blocks as u64, kept: self.kept.get().copied() }
    }

    /// Loads the values from the cache folder, unless that was tried before.
    fn look(&self, state: &mut State<T>, again: bool) {
        if state.looked && !again || self.complete.get().is_some() {
            return;
        }
        state.looked = true;
        let Some(keeper) = &self.keeper else { return };
        let Keeper { file, what, .. } = keeper;
        let kept = if self.blocks == 1 { file.kept_of_few(what) } else { file.kept(what) };
        let Some(bytes) = kept else { return };
        // Values of another shape belong to something else; the checksum has ruled out damage.
        if let Ok((values, [])) = postcard::take_from_bytes::<Vec<T>>(&bytes)
            && values.len() == self.blocks
        {
            state.known = Vec::new();
            state.pieces = BTreeMap::new();
            if self.complete.set(values).is_ok() {
                let _ = self.kept.set(true);
            }
            self.changed.notify_all();
        }
    }

    /// Caches all values, once they are known; no reader waits for it.
    fn keep(&self) {
        let Some(values) = self.complete.get() else { return };
        self.kept.get_or_init(|| {
            self.keeper.as_ref().is_some_and(|keeper| {
                postcard::to_stdvec(values).is_ok_and(|bytes| keeper.file.keep(&keeper.what, &bytes))
            })
        });
    }

    fn add(&self, state: &mut State<T>, first: usize, values: Vec<T>) {
        if self.complete.get().is_some() {
            return;
        }
        let longer = state.pieces.get(&first).is_none_or(|there| there.len() < values.len());
        if longer && first < self.blocks {
            state.pieces.insert(first, values);
        }
        self.advance(state);
        // To wake readers that need more would make them and the pass compete for cores at each step.
        if self.complete.get().is_some() || state.waiting_for_part > 0 {
            self.changed.notify_all();
        }
    }

    /// Moves adjacent pieces to the first values.
    fn advance(&self, state: &mut State<T>) {
        let known = &mut state.known;
        while let Some(piece) = state.pieces.first_entry().filter(|piece| *piece.key() <= known.len()) {
            let (first, values) = piece.remove_entry();
            known.extend(values.into_iter().skip(known.len() - first));
        }
        if known.len() >= self.blocks && self.complete.get().is_none() {
            known.truncate(self.blocks);
            let _ = self.complete.set(std::mem::take(known));
            state.pieces = BTreeMap::new();
        }
    }

    fn start(self: &Arc<Self>, state: &mut State<T>) -> Result<(), Error> {
        let steps = threads();
        let interrupt = Interrupt::new();
        let listed = self.keeper.as_ref().map(|Keeper { file, title, .. }| {
            let work = activity::Work::begin(&**title, self.measure.doing(), Unit::Blocks).of(file.source().path());
            work.expect(self.blocks as u64);
            work.reach(state.done() as u64);
            work
        });
        state.running = Some(Running { interrupt: interrupt.clone(), next: state.known.len(), steps, listed });
        for _ in 0..steps {
            let (pass, interrupt) = (Arc::clone(self), interrupt.clone());
            if !spawn(move || pass.step(&interrupt)) {
                state.running = None;
                return Err(failed("cannot start threads"));
            }
        }
        if let Some(keeper) = &self.keeper {
            keeper.file.store().counters().passes.add(1);
        }
        Ok(())
    }

    /// Takes the next unknown blocks, measures them, and queues the next step.
    fn step(self: Arc<Self>, interrupt: &Interrupt) {
        let taken = {
            let mut state = self.state.lock();
            let taken = if interrupt.is_raised() { None } else { self.take(&mut state) };
            if taken.is_none() {
                self.leave(&mut state);
            }
            taken
        };
        let Some(blocks) = taken else { return };
        let (first, count) = (blocks.start, blocks.len());
        let measured = catch_unwind(AssertUnwindSafe(|| self.measure.measure(blocks, interrupt)))
            .unwrap_or_else(|_| Err(failed("a panic while values were measured")))
            .and_then(|values| {
                if values.len() == count { Ok(values) } else { Err(failed("blocks were left out while measuring")) }
            });
        let mut state = self.state.lock();
        match measured {
            Ok(values) => {
                if let Some(work) = state.running.as_ref().and_then(|running| running.listed.as_ref()) {
                    work.add(count as u64);
                }
                let was_complete = self.complete.get().is_some();
                self.add(&mut state, first, values);
                drop(state);
                if !was_complete && self.complete.get().is_some() {
                    self.keep();
                }
                let (pass, interrupt) = (Arc::clone(&self), interrupt.clone());
                spawn(move || pass.step(&interrupt));
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

    fn take(&self, state: &mut State<T>) -> Option<Range<usize>> {
        if self.complete.get().is_some() {
            return None;
        }
        let running = state.running.as_mut()?;
        let mut first = running.next.max(state.known.len());
        while let Some((start, values)) = state.pieces.range(..=first).next_back()
            && start + values.len() > first
        {
            first = start + values.len();
        }
        // Up to the end of the step's cell in the grid of steps: steps stay aligned with chunks, however often a pass
        // restarts.
        let mut last = (first / self.per_step + 1).saturating_mul(self.per_step).min(self.blocks);
        if let Some((start, _)) = state.pieces.range(first..).next() {
            last = last.min(*start);
        }
        running.next = last;
        (first < last).then_some(first..last)
    }

    /// Ends a step; the last one ends the pass.
    fn leave(&self, state: &mut State<T>) {
        if let Some(running) = &mut state.running {
            running.steps -= 1;
            if running.steps == 0 {
                state.running = None;
            }
        }
        self.changed.notify_all();
    }
}

fn failed(reason: &str) -> Error {
    Error::unsupported("a pass over values", reason)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// The square of each block's number; counts measured blocks.
    #[derive(Default)]
    struct Squares(AtomicUsize);

    impl Measure<u64> for Squares {
        fn measure(&self, blocks: Range<usize>, _: &Interrupt) -> Result<Vec<u64>, Error> {
            self.0.fetch_add(blocks.len(), Ordering::Relaxed);
            Ok(blocks.map(|block| (block * block) as u64).collect())
        }
    }

    fn squares(blocks: usize) -> Vec<u64> {
        (0..blocks).map(|block| (block * block) as u64).collect()
    }

    #[test]
    fn nothing_to_measure_is_known() {
        let pass = Pass::new(0, 5, Arc::new(Squares::default()), None);
        assert_eq!(pass.known(), Some([].as_slice()));
        assert_eq!(pass.progress(), PassProgress { done: 0, all: 0, kept: Some(true) });
    }

    #[test]
    fn a_pass_measures_every_block_once() {
        let measure = Arc::new(Squares::default());
        let pass = Pass::new(1000, 7, measure.clone(), None);
        assert_eq!((pass.known(), pass.found()), (None, None));
        assert_eq!(pass.all(&Interrupt::new()).unwrap(), squares(1000));
        assert_eq!(measure.0.load(Ordering::Relaxed), 1000);
        let progress = pass.progress();
        assert_eq!((progress.done, progress.all), (1000, 1000));
    }

    #[test]
    fn a_pass_goes_as_far_as_somebody_wants() {
        let measure = Arc::new(Squares::default());
        let pass = Pass::new(1_000_000, 1, measure.clone(), None);
        pass.until(|known| known.len() >= 10, &Interrupt::new()).unwrap();
        assert!(pass.with_first(|known| known.starts_with(&squares(10))));
        assert!(pass.known().is_none());
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while pass.state.lock().running.is_some() && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let measured = measure.0.load(Ordering::Relaxed);
        assert!(measured < 1_000_000, "nobody waited");
    }

    #[test]
    fn blocks_left_out_are_an_error() {
        struct Lazy;
        impl Measure<u64> for Lazy {
            fn measure(&self, blocks: Range<usize>, _: &Interrupt) -> Result<Vec<u64>, Error> {
                Ok(vec![0; blocks.len() - 1])
            }
        }
        let pass = Pass::new(10, 3, Arc::new(Lazy), None);
        assert!(pass.all(&Interrupt::new()).unwrap_err().to_string().contains("left out"));
        assert_eq!(pass.progress().done, 0);
    }

    proptest! {
        /// However the pieces recorded elsewhere lie, the pass fills the gaps.
        #[test]
        fn pieces_overlap(
            blocks in 1..60_usize,
            per_step in 1..9_usize,
            pieces in prop::collection::vec((0..70_usize, 0..20_usize), 0..8),
        ) {
            let measure = Arc::new(Squares::default());
            let pass = Pass::new(blocks, per_step, measure.clone(), None);
            let mut learnt = std::collections::BTreeSet::new();
            for (first, length) in pieces {
                let end = (first + length).min(blocks);
                let piece = squares(end).split_off(first.min(end));
                learnt.extend(first..end);
                pass.record(first, piece);
            }
            prop_assert_eq!(pass.all(&Interrupt::new()).unwrap(), squares(blocks));
            // No block is measured twice, except where recorded pieces overlap.
            prop_assert!(measure.0.load(Ordering::Relaxed) <= blocks);
            prop_assert!(learnt.len() < blocks || measure.0.load(Ordering::Relaxed) == 0);
        }
    }
}
