//! Lists the long work of this process: passes, exports, checks. Each has a title, its progress, speed and time left.
//!
//! | room | task |
//! | --- | --- |
//! | `requests` | counts and times the requests that a mount answers |
//! | `report` | all that a process says of itself |
//! | `folders` | where processes answer on sockets |
//! | `answering`, `asking` | the two ends of such a socket |
//! | `words` | numbers as people write them |

mod answering;
mod asking;
mod folders;
mod report;
mod requests;
pub(crate) mod words;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use answering::{Answering, serve};
pub use asking::{Asked, Others, of_user, others, process_of};
pub use folders::own_folder;
pub use report::{ErrorReport, MemoryReport, Report, describe, report};
pub use requests::{RequestKind, RequestReport, Requests, Timer, count_not_this_thread};

/// Speed is that of the last 30 s: a pass over chunks of several filters has no other that lasts.
const WINDOW: Duration = Duration::from_secs(30);

/// Least time between two samples of the progress.
const SAMPLE: Duration = Duration::from_millis(500);

/// Least time until a speed is known.
const LEAST: Duration = Duration::from_secs(1);

/// How long a step goes on until its own speed counts as much as what was announced before it: at first, buffers fill.
const SETTLING: f64 = 3.0;

/// The unit of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Rows of a table.
    Rows,
    /// Values, of all columns together.
    Values,
    /// Blocks of a column, page or text.
    Blocks,
    /// Files.
    Files,
    /// HDF5 objects.
    Objects,
    /// Steps of unlike work, which take about the same time.
    Steps,
}

/// Work under way. It leaves the list when it is dropped.
#[derive(Debug)]
pub struct Work(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    number: u64,
    began: Instant,
    done: AtomicU64,
    /// 0: not known.
    all: AtomicU64,
    later: AtomicU64,
    step: Mutex<Step>,
}

/// A step of the work: its units are of one kind.
#[derive(Debug)]
struct Step {
    source: Option<String>,
    title: String,
    doing: Cow<'static, str>,
    unit: Unit,
    /// Progress at times of the last [`WINDOW`], oldest first.
    samples: VecDeque<(Instant, u64)>,
    /// When the step began, and the seconds left that the step before it announced then.
    announced: Option<(Instant, f64)>,
}

/// All work of this process, in the order in which it began.
static LIST: Mutex<BTreeMap<u64, Arc<Entry>>> = Mutex::new(BTreeMap::new());

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The state of one piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkReport {
    /// Path of the file that is read; `None`: not one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The file or table worked on, such as `run_042/table.ndjson`.
    pub title: String,
    /// The verb, such as `sizing`, with an object if need be, such as `verifying index label__bitmap`.
    pub doing: String,
    /// Units done so far.
    pub done: u64,
    /// Units in all; `None`: not known.
    pub all: Option<u64>,
    /// Unit of `done` and `all`.
    pub unit: Unit,
    /// Seconds since the work began.
    pub seconds: f64,
    /// Units per second over the last 30 s; `None`: too early to tell.
    pub per_second: Option<f64>,
    /// Seconds left, of later steps as well; `None`: not known.
    pub seconds_left: Option<f64>,
}

impl Work {
    /// Begins work of unknown size, and lists it.
    pub fn begin(title: impl Into<String>, doing: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        let began = Instant::now();
        let samples = VecDeque::from([(began, 0)]);
        let step = Step { source: None, title: title.into(), doing: doing.into(), unit, samples, announced: None };
        let entry = Arc::new(Entry {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            began,
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
            later: AtomicU64::new(0),
            step: Mutex::new(step),
        });
        LIST.lock().insert(entry.number, entry.clone());
        Self(entry)
    }

    /// Sets the file that is read.
    pub fn of(self, source: &Path) -> Self {
        self.0.step.lock().source = Some(source.display().to_string());
        self
    }

    /// Names what is worked on now, and how. The progress goes on.
    pub fn name(&self, title: impl Into<String>, doing: impl Into<Cow<'static, str>>) {
        let mut step = self.0.step.lock();
        (step.title, step.doing) = (title.into(), doing.into());
    }

    /// Begins a further step, whose progress begins at 0 and whose size is unknown. The time goes on.
    pub fn step(&self, unit: Unit) {
        let counted_this = self.0.later.load(Ordering::Relaxed) > 0;
        let announced = self.0.announced().filter(|_| counted_this);
        let mut step = self.0.step.lock();
        step.unit = unit;
        step.announced = announced;
        self.0.all.store(0, Ordering::Relaxed);
        self.0.later.store(0, Ordering::Relaxed);
        self.0.done.store(0, Ordering::Relaxed);
        step.samples = VecDeque::from([(Instant::now(), 0)]);
    }

    /// Forgets the speed so far: what follows takes another time for each unit.
    pub fn turn(&self) {
        let announced = self.0.announced();
        let mut step = self.0.step.lock();
        step.announced = announced;
        step.samples = VecDeque::from([(Instant::now(), self.0.done.load(Ordering::Relaxed))]);
    }

    /// Sets the units in all.
    pub fn expect(&self, all: u64) {
        self.0.all.store(all, Ordering::Relaxed);
    }

    /// Sets how many units of this step take as long as the steps after it. They count for the time left alone.
    pub fn expect_later(&self, later: u64) {
        self.0.later.store(later, Ordering::Relaxed);
    }

    /// Sets the units done so far. Cheap enough to be called for each block.
    pub fn reach(&self, done: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.sample(Instant::now(), done);
    }

    /// Counts more units as done.
    pub fn add(&self, more: u64) {
        let done = self.0.done.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        self.0.sample(Instant::now(), done);
    }

    /// The state as of now.
    pub fn report(&self) -> WorkReport {
        self.0.report(Instant::now())
    }

    /// The state of the oldest work that was begun since, such as a pass that this work waits for.
    pub fn begun_since(&self) -> Option<WorkReport> {
        let next = LIST.lock().range(self.0.number + 1..).next().map(|(_, entry)| entry.clone());
        next.map(|entry| entry.report(Instant::now()))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        LIST.lock().remove(&self.0.number);
    }
}

/// The state of all work of this process, the oldest first.
pub fn under_way() -> Vec<WorkReport> {
    let list: Vec<Arc<Entry>> = LIST.lock().values().cloned().collect();
    let now = Instant::now();
    list.iter().map(|entry| entry.report(now)).collect()
}

impl Entry {
    /// Notes the progress, unless the last sample is recent or another thread notes it.
    fn sample(&self, now: Instant, done: u64) {
        if let Some(mut step) = self.step.try_lock() {
            step.sample(now, done);
        }
    }

    /// The seconds left as they are announced now, with this moment.
    fn announced(&self) -> Option<(Instant, f64)> {
        let now = Instant::now();
        self.report(now).seconds_left.map(|seconds| (now, seconds))
    }

    fn report(&self, now: Instant) -> WorkReport {
        let mut step = self.step.lock();
        let done = self.done.load(Ordering::Relaxed);
        let all = Some(self.all.load(Ordering::Relaxed)).filter(|all| *all > 0);
        step.sample(now, done);
        let first = step.samples.front().copied().unwrap_or((self.began, 0));
        let over = now.saturating_duration_since(first.0);
        let per_second = (over >= LEAST).then(|| done.saturating_sub(first.1) as f64 / over.as_secs_f64());
        let later = self.later.load(Ordering::Relaxed);
        let measured = all
            .zip(per_second.filter(|speed| *speed > 0.0))
            .map(|(all, speed)| all.saturating_sub(done).saturating_add(later) as f64 / speed);
        let seconds_left = step.seconds_left(now, measured);
        WorkReport {
            source: step.source.clone(),
            title: step.title.clone(),
            doing: step.doing.to_string(),
            done,
            all,
            unit: step.unit,
            seconds: now.saturating_duration_since(self.began).as_secs_f64(),
            per_second,
            seconds_left,
        }
    }
}

impl Step {
    /// Seconds left by this step's own speed and by what was announced before it.
    fn seconds_left(&self, now: Instant, measured: Option<f64>) -> Option<f64> {
        let Some((began, before)) = self.announced else { return measured };
        let over = now.saturating_duration_since(began).as_secs_f64();
        let announced = (before - over).max(0.0);
        let Some(measured) = measured else { return Some(announced) };
        Some((measured * over + announced * SETTLING) / (over + SETTLING))
    }

    fn sample(&mut self, now: Instant, done: u64) {
        if self.samples.back().is_some_and(|(last, _)| now.saturating_duration_since(*last) < SAMPLE) {
            return;
        }
        self.samples.push_back((now, done));
        // The first sample is the last one before the window, so the speed is over the whole of it.
        while self.samples.get(1).is_some_and(|(next, _)| now.saturating_duration_since(*next) >= WINDOW) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_last_half_minute() {
        let work = Work::begin("energy.csv", "sizing", Unit::Bytes);
        work.expect(10_000);
        let entry = &work.0;
        let at = |seconds| entry.began + Duration::from_secs(seconds);
        assert_eq!(entry.report(entry.began).per_second, None);
        // 10 a second for a minute, then 100 a second for half of one.
        for second in 1..=90 {
            let done = if second <= 60 { second * 10 } else { 600 + (second - 60) * 100 };
            entry.done.store(done, Ordering::Relaxed);
            entry.sample(at(second), done);
        }
        let report = entry.report(at(90));
        assert_eq!((report.done, report.per_second), (3_600, Some(100.0)));
        assert_eq!(report.seconds_left, Some(64.0));
        assert_eq!(report.seconds, 90.0);
        // It stands still for 15 s.
        assert_eq!(entry.report(at(105)).per_second, Some(50.0));
    }

    #[test]
    fn a_step_keeps_to_what_was_announced_until_its_speed_has_settled() {
        let work = Work::begin("run_042", "sorting", Unit::Rows);
        let at = |seconds| work.0.began + Duration::from_secs(seconds);
        work.0.step.lock().announced = Some((at(0), 20.0));
        let left = |seconds, measured| work.0.step.lock().seconds_left(at(seconds), measured);
        assert_eq!(left(2, None), Some(18.0));
        // 3 s after the beginning, its own speed counts half.
        assert_eq!(left(3, Some(7.0)), Some(12.0));
        assert_eq!(left(27, Some(10.0)), Some(9.0));
    }

    #[test]
    fn work_is_listed_until_it_is_dropped() {
        let listed = || under_way().iter().any(|report| report.title == "listed until dropped");
        let work = Work::begin("listed until dropped", "checking", Unit::Rows);
        assert!(listed());
        drop(work);
        assert!(!listed());
    }
}
