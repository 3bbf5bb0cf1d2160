//! Counts the requests that a mount answers, by kind, with how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

/// The kind of a request, in the words of `linux/fuse.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A name looked up.
    Lookup,
    /// Attributes.
    Getattr,
    /// A file or directory opened.
    Open,
    /// Bytes of a file.
    Read,
    /// Names of a directory.
    Readdir,
    /// Extended attributes.
    Xattr,
    /// All others.
    Other,
}

impl RequestKind {
    const ALL: [Self; 7] =
        [Self::Lookup, Self::Getattr, Self::Open, Self::Read, Self::Readdir, Self::Xattr, Self::Other];

    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Getattr => "getattr",
            Self::Open => "open",
            Self::Read => "read",
            Self::Readdir => "readdir",
            Self::Xattr => "xattr",
            Self::Other => "other",
        }
    }
}

/// Durations are counted in steps of a quarter of a power of two, up to 2^40 ns (18 minutes).
const STEPS: usize = 4 * 41;

/// Exponents of the bounds that a report has, in ns: 16 µs, 131 µs, 1 ms, 8 ms, 67 ms, 0.5 s, 4 s, 34 s.
const BOUNDS: [u32; 8] = [14, 17, 20, 23, 26, 29, 32, 35];

/// Requests of one kind.
#[derive(Debug)]
struct OfKind {
    nanoseconds: AtomicU64,
    steps: [AtomicU64; STEPS],
}

/// The requests of a mount.
#[derive(Debug)]
pub struct Requests {
    began: Instant,
    /// Nanoseconds from `began` to the last answer; 0: none yet.
    last: AtomicU64,
    bytes: AtomicU64,
    kinds: [OfKind; RequestKind::ALL.len()],
}

/// Requests of one kind, as reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestReport {
    /// Their kind.
    pub kind: RequestKind,
    /// How many were answered.
    pub count: u64,
    /// Seconds that all answers took together.
    pub seconds: f64,
    /// Median of the seconds until an answer, 13 % off at most.
    pub median: f64,
    /// Their 99th percentile, 13 % off at most.
    pub percentile_99: f64,
    /// Pairs: seconds, and the number of requests that took no longer.
    pub at_most: Vec<(f64, u64)>,
}

/// A request under way, which is counted when this is dropped.
#[derive(Debug)]
pub struct Timer {
    /// `None`: not counted.
    requests: Option<Arc<Requests>>,
    kind: RequestKind,
    began: Instant,
}

/// The thread that checks that the mount of this process answers; 0: none.
static OWN_THREAD: AtomicU32 = AtomicU32::new(0);

/// Leaves requests of the calling thread out of the counts. One thread checks that the mount of this process answers.
pub fn count_not_this_thread() {
    OWN_THREAD.store(gettid().as_raw_pid().cast_unsigned(), Ordering::Relaxed);
}

impl Timer {
    /// A request that has just arrived from a thread; 0: not known.
    pub fn start(requests: &Arc<Requests>, kind: RequestKind, thread: u32) -> Self {
        let is_own = thread != 0 && thread == OWN_THREAD.load(Ordering::Relaxed);
        Self { requests: (!is_own).then(|| requests.clone()), kind, began: Instant::now() }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(requests) = &self.requests {
            requests.count(self.kind, self.began);
        }
    }
}

impl Default for Requests {
    fn default() -> Self {
        let kinds = std::array::from_fn(|_| OfKind {
            nanoseconds: AtomicU64::new(0),
            steps: std::array::from_fn(|_| AtomicU64::new(0)),
        });
        Self { began: Instant::now(), last: AtomicU64::new(0), bytes: AtomicU64::new(0), kinds }
    }
}

impl Requests {
    /// Counts a request that arrived at `began` as answered now.
    fn count(&self, kind: RequestKind, began: Instant) {
        let now = Instant::now();
        let took = nanoseconds(now.saturating_duration_since(began));
        if let Some(of_kind) = self.kinds.get(kind as usize) {
            of_kind.nanoseconds.fetch_add(took, Ordering::Relaxed);
            if let Some(step) = of_kind.steps.get(step_of(took)) {
                step.fetch_add(1, Ordering::Relaxed);
            }
        }
        // The kernel closes files long after their last use.
        if kind != RequestKind::Other {
            self.last.store(nanoseconds(now.saturating_duration_since(self.began)).max(1), Ordering::Relaxed);
        }
    }

    /// Counts bytes sent.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes sent so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Seconds since the last answer; `None`: there was none.
    pub fn seconds_idle(&self) -> Option<f64> {
        let last = Some(self.last.load(Ordering::Relaxed)).filter(|last| *last > 0)?;
        Some(self.began.elapsed().saturating_sub(Duration::from_nanos(last)).as_secs_f64())
    }

    /// The requests of each kind that there were.
    pub fn report(&self) -> Vec<RequestReport> {
        let kinds = RequestKind::ALL.iter().zip(&self.kinds);
        kinds.filter_map(|(kind, of_kind)| of_kind.report(*kind)).collect()
    }
}

impl OfKind {
    fn report(&self, kind: RequestKind) -> Option<RequestReport> {
        let steps: Vec<u64> = self.steps.iter().map(|step| step.load(Ordering::Relaxed)).collect();
        let count: u64 = steps.iter().sum();
        let quantile = |part: f64| {
            let (wanted, mut below) = ((count as f64 * part).ceil() as u64, 0);
            let at = steps.iter().position(|step| {
                below += step;
                below >= wanted
            });
            at.map_or(0.0, |at| middle_of(at) / 1e9)
        };
        let at_most = |exponent: u32| steps.iter().take(first_step(exponent)).sum();
        (count > 0).then(|| RequestReport {
            kind,
            count,
            seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            median: quantile(0.5),
            percentile_99: quantile(0.99),
            at_most: BOUNDS.map(|exponent| (2f64.powi(exponent as i32) / 1e9, at_most(exponent))).to_vec(),
        })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The first step of durations of 2^`exponent` ns and more.
fn first_step(exponent: u32) -> usize {
    4 * exponent as usize
}

/// The step of a duration: its highest bit, and the two bits below.
fn step_of(nanoseconds: u64) -> usize {
    let exponent = nanoseconds.max(1).ilog2();
    let fourth = (nanoseconds << 2 >> exponent) & 3;
    (first_step(exponent) + fourth as usize).min(STEPS - 1)
}

/// The middle of a step, in nanoseconds.
fn middle_of(step: usize) -> f64 {
    2f64.powi((step / 4) as i32) * (1.0 + (step % 4) as f64 / 4.0 + 0.125)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearly_those_of_sorted_durations() {
        let requests = Requests::default();
        let now = Instant::now();
        // 1 ms to 1 s: the median is 500 ms, the 99th percentile 990 ms. The clock adds microseconds.
        for milliseconds in 1..=1000 {
            requests.count(RequestKind::Read, now - Duration::from_millis(milliseconds));
        }
        let report = requests.report();
        assert_eq!(report.len(), 1);
        let read = &report[0];
        assert_eq!((read.kind, read.count), (RequestKind::Read, 1000));
        assert!((0.45..0.55).contains(&read.median), "{read:?}");
        assert!((0.9..1.09).contains(&read.percentile_99), "{read:?}");
        assert!((500.0..501.0).contains(&read.seconds), "{read:?}");
        let at_most: Vec<u64> = read.at_most.iter().map(|(_, count)| *count).collect();
        // 2^20 ns are 1.05 ms, 2^23 8.4 ms, 2^26 67 ms, 2^29 537 ms.
        assert_eq!(at_most[..2], [0, 0]);
        assert_eq!(at_most[3..], [8, 67, 536, 1000, 1000]);
        assert!(requests.seconds_idle().unwrap() < 60.0);
    }

    #[test]
    fn every_duration_has_a_step_whose_middle_is_near() {
        for nanoseconds in (0..40).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 3, (2 << bit) - 1]) {
            let middle = middle_of(step_of(nanoseconds));
            let off = (middle - nanoseconds as f64).abs() / nanoseconds as f64;
            assert!(off <= 0.15 || nanoseconds < 8, "{nanoseconds}: {middle}");
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
        assert_eq!(step_of(0), 0);
    }

    #[test]
    fn kinds_are_in_their_places() {
        for (at, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
