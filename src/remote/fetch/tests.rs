//! A client of its own, with delay, bandwidth, faults and counts, in place of a network.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep_until;

use super::*;
use crate::source::ObjectVersion;
use crate::store::{Budget, KeptFolder};

const MIB: u64 = 1 << 20;

/// How late a timer may ring.
const SLACK: Duration = Duration::from_millis(10);

/// An object in memory behind a line that all requests share.
#[derive(Debug)]
struct Line {
    bytes: Bytes,
    delay: Duration,
    /// Bytes a second.
    bandwidth: f64,
    piece: u64,
    /// When the line is free again.
    free: Arc<Mutex<Instant>>,
    /// One request in this number fails somewhere. 0: all succeed.
    fails: u64,
    changes_after: u64,
    asked: Mutex<Vec<Range<u64>>>,
    requests: AtomicU64,
}

impl Line {
    fn new(size: u64, delay: Duration, bandwidth: f64) -> Self {
        Self {
            bytes: content(size),
            delay,
            bandwidth,
            piece: 64 << 10,
            free: Arc::new(Mutex::new(Instant::now())),
            fails: 0,
            changes_after: u64::MAX,
            asked: Mutex::default(),
            requests: AtomicU64::new(0),
        }
    }

    /// How often a byte was asked for, at most.
    fn most_asked(&self) -> i64 {
        let asked = self.asked.lock();
        let mut edges: Vec<(u64, i64)> = asked.iter().flat_map(|asked| [(asked.start, 1), (asked.end, -1)]).collect();
        edges.sort_unstable();
        let depths = edges.iter().scan(0, |depth, (_, change)| {
            *depth += change;
            Some(*depth)
        });
        depths.max().unwrap_or(0)
    }
}

impl RangeClient for Line {
    fn get(&self, range: Range<u64>) -> BoxStream<'static, Result<Bytes, Error>> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        self.asked.lock().push(range.clone());
        if number > self.changes_after {
            return stream::iter([Err(Error::Changed(PathBuf::from("s3://bucket/key")))]).boxed();
        }
        let fails = self.fails > 0 && number.is_multiple_of(self.fails);
        let stop = if fails { range.start + number * 7919 % (range.end - range.start) } else { u64::MAX };
        let (first, bytes, free) = (Instant::now() + self.delay, self.bytes.clone(), self.free.clone());
        let (piece, bandwidth) = (self.piece, self.bandwidth);
        stream::unfold(range, move |range| {
            let (bytes, free) = (bytes.clone(), free.clone());
            async move {
                if range.is_empty() {
                    return None;
                }
                if range.start >= stop {
                    let error = io::Error::other("503 Slow Down");
                    return Some((Err(Error::Io { path: "s3://bucket/key".into(), error }), range.end..range.end));
                }
                sleep_until(first.into()).await;
                let end = range.end.min(range.start + piece).min(stop);
                let there = {
                    let mut free = free.lock();
                    *free = (*free).max(Instant::now() - SLACK)
                        + Duration::from_secs_f64((end - range.start) as f64 / bandwidth);
                    *free
                };
                sleep_until(there.into()).await;
                Some((Ok(bytes.slice(range.start as usize..end as usize)), end..range.end))
            }
        })
        .boxed()
    }
}

/// Bytes that do not repeat, at most 64 MiB of them.
fn content(size: u64) -> Bytes {
    static ALL: OnceLock<Bytes> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let (mut state, mut all) = (0x9e37_79b9_7f4a_7c15_u64, Vec::new());
        for _ in 0..8 * MIB {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            all.extend_from_slice(&state.to_le_bytes());
        }
        all.into()
    });
    all.slice(..size as usize)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A fetcher of one object.
struct Bench {
    runtime: Option<Runtime>,
    line: Arc<Line>,
    budget: Budget,
    fetching: Arc<Fetching>,
    fetcher: Fetcher,
}

impl Bench {
    fn new(line: Line, ahead: u64, budget: u64) -> Self {
        Self::on(line, ahead, budget, KeptFolder::none())
    }

    fn on(line: Line, ahead: u64, budget: u64, disk: KeptFolder) -> Self {
        let (line, budget, runtime) = (Arc::new(line), Budget::new(budget), runtime());
        let settings = FetchSettings { connections: 64, ahead };
        let fetching = Fetching::new(settings, &budget, disk, runtime.handle().clone());
        let size = line.bytes.len() as u64;
        let identity = Identity::of_object("host", "bucket", "key", &ObjectVersion::Tag("1".into()), size);
        let fetcher = Fetcher::new(&fetching, line.clone(), identity, "s3://bucket/key".into());
        Self { runtime: Some(runtime), line, budget, fetching, fetcher }
    }

    fn read(&self, offset: u64, length: u64) -> Result<(), Error> {
        let mut out = vec![0; length as usize];
        self.fetcher.read_at(offset, &mut out, &Interrupt::new())?;
        assert!(out == self.line.bytes[offset as usize..(offset + length) as usize], "other bytes at {offset}");
        Ok(())
    }

    /// Waits until nothing is in flight.
    fn rest(&self) {
        let begun = Instant::now();
        let mut before = u64::MAX;
        while self.fetcher.object.in_flight.load(Ordering::Relaxed) > 0 || before != self.fetching.counts().fetched {
            assert!(begun.elapsed() < Duration::from_secs(20));
            before = self.fetching.counts().fetched;
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

const DELAY: Duration = Duration::from_millis(30);

fn quick(size: u64) -> Line {
    Line::new(size, Duration::from_millis(1), 1e9)
}

#[test]
fn bytes_that_are_held_or_in_flight_are_not_asked_for_again() {
    let bench = Bench::new(quick(64 * MIB), 0, 64 * MIB);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..40).for_each(|at| bench.read(at * 37_000, 300).unwrap()));
            scope.spawn(|| bench.read(32 * MIB, 3 * MIB).unwrap());
        }
        bench.fetcher.plan(&[32 * MIB..34 * MIB, 1_000..1_200, 33 * MIB..36 * MIB]);
    });
    assert!(bench.line.asked.lock().iter().all(|asked| !asked.is_empty()));
    let fetched: u64 = bench.line.asked.lock().iter().map(|asked| asked.end - asked.start).sum();
    let metadata = fetched
        - bench
            .line
            .asked
            .lock()
            .iter()
            .filter(|asked| asked.start >= 32 * MIB)
            .map(|asked| asked.end - asked.start)
            .sum::<u64>();
    assert!(metadata <= 41 * 2 * BLOCK, "{metadata}");
}

#[test]
fn metadata_comes_in_blocks_that_grow_while_neighbours_are_used() {
    let bench = Bench::new(quick(64 * MIB), 0, 64 * MIB);
    (0..2 * MIB / 1000).for_each(|at| bench.read(8 * MIB + at * 1000, 900).unwrap());
    let lengths: Vec<u64> = bench.line.asked.lock().iter().map(|asked| (asked.end - asked.start) >> 10).collect();
    assert_eq!(lengths, [16, 32, 64, 128, 256, 512, 1024, 1024]);
    // Another place begins anew, and what was read stays.
    bench.read(40 * MIB + 5, 10).unwrap();
    bench.read(8 * MIB, 500).unwrap();
    assert_eq!(bench.line.asked.lock().iter().skip(8).collect::<Vec<_>>(), [&(40 * MIB..40 * MIB + BLOCK)]);
    assert_eq!(bench.line.most_asked(), 1);
}

#[test]
fn neighbours_that_were_planned_come_in_one_request() {
    let bench = Bench::new(quick(64 * MIB), 0, 64 * MIB);
    // 20 KiB each, with 2 KiB between, so a request has 47 of them.
    let ranges: Vec<_> = (0..100).map(|at| MIB + at * (22 << 10)..MIB + at * (22 << 10) + (20 << 10)).collect();
    bench.fetcher.plan(&ranges);
    ranges.iter().for_each(|range| bench.read(range.start, 20 << 10).unwrap());
    assert_eq!(bench.line.requests.load(Ordering::Relaxed), 2);
    // Far from each other, each has a request of its own, of these bytes alone.
    let apart: Vec<_> = (0..10).map(|at| 10 * MIB + at * MIB..10 * MIB + at * MIB + 20_000).collect();
    bench.fetcher.plan(&apart);
    apart.iter().for_each(|range| bench.read(range.start, 20_000).unwrap());
    let mut asked = bench.line.asked.lock()[2..].to_vec();
    asked.sort_unstable_by_key(|asked| asked.start);
    assert_eq!(asked, apart);
    assert_eq!(bench.fetching.counts().used, 100 * (20 << 10) + 10 * 20_000);
    // Read once, they are not kept.
    bench.rest();
    assert_eq!(bench.budget.held(), 0);
}

#[test]
fn a_small_object_comes_whole_and_the_rest_of_a_larger_one_when_that_pays() {
    let bench = Bench::new(quick(9 * MIB), 256 * MIB, 64 * MIB);
    (0..900).for_each(|at| bench.read(at * 10_000, 100).unwrap());
    assert_eq!(bench.line.requests.load(Ordering::Relaxed), 5);
    let bench = Bench::new(Line::new(40 * MIB, DELAY, 2e9), 256 * MIB, 256 * MIB);
    (0..400).for_each(|at| bench.read(at * 7_919 * 13 % (40 * MIB), 10).unwrap());
    let requests = bench.line.requests.load(Ordering::Relaxed);
    assert!(requests < 380, "{requests}");
    assert_eq!(bench.line.most_asked(), 1);
    // Without memory for it, it does not.
    let bench = Bench::new(Line::new(40 * MIB, Duration::from_millis(2), 2e9), 256 * MIB, 64 * MIB);
    (0..400).for_each(|at| bench.read(at * 7_919 * 13 % (40 * MIB), 10).unwrap());
    let fetched = bench.fetching.counts().fetched;
    assert!(fetched <= 410 * BLOCK, "{fetched}");
}

#[test]
fn a_reader_takes_bytes_as_they_come() {
    let mut line = Line::new(64 * MIB, DELAY, 2e5);
    line.piece = 4 << 10;
    let bench = Bench::new(line, 0, 64 * MIB);
    bench.fetcher.plan(std::slice::from_ref(&(0..MIB)));
    bench.read(0, 20 << 10).unwrap();
    // All of it takes five seconds.
    assert!(bench.fetching.counts().fetched < MIB / 2);
}

#[test]
fn an_interrupt_ends_a_wait() {
    let bench = Bench::new(Line::new(64 * MIB, Duration::from_secs(60), 1e9), 0, 64 * MIB);
    let interrupt = Interrupt::new();
    thread::scope(|scope| {
        let reader = scope.spawn(|| bench.fetcher.read_at(0, &mut [0; 100], &interrupt));
        thread::sleep(Duration::from_millis(50));
        interrupt.raise();
        let raised = Instant::now();
        assert!(matches!(reader.join().unwrap(), Err(Error::Interrupted(_))));
        assert!(raised.elapsed() < Duration::from_secs(2), "{:?}", raised.elapsed());
    });
}

#[test]
fn an_error_is_forgotten_and_a_change_is_not() {
    let mut line = quick(64 * MIB);
    line.fails = 2;
    let bench = Bench::new(line, 0, 64 * MIB);
    bench.read(0, 100).unwrap();
    // A request that fails before its reader looks is made again.
    let error = (0..8).find_map(|_| bench.read(MIB, MIB).err()).unwrap();
    assert_eq!(error.to_string(), "s3://bucket/key: 503 Slow Down");
    bench.read(MIB, MIB).unwrap();
    let mut line = quick(64 * MIB);
    line.changes_after = 1;
    let bench = Bench::new(line, 0, 64 * MIB);
    bench.read(0, 100).unwrap();
    assert!(bench.read(MIB, 100).unwrap_err().is_change());
    assert!(bench.read(0, 100).unwrap_err().is_change());
    assert_eq!(bench.line.requests.load(Ordering::Relaxed), 2);
}

#[test]
fn a_reader_that_stops_ends_what_was_begun_for_it() {
    let bench = Bench::new(quick(64 * MIB), 0, 32 * MIB);
    bench.fetcher.plan(&(0..64).map(|at| at * MIB..(at + 1) * MIB).collect::<Vec<_>>());
    bench.read(0, MIB).unwrap();
    thread::sleep(Duration::from_millis(100));
    bench.rest();
    // The window, and the request that fills it.
    let fetched = bench.fetching.counts().fetched;
    assert!((8 * MIB..=12 * MIB).contains(&fetched), "{fetched}");
    // Others are not held up.
    bench.read(50 * MIB, 4 * MIB).unwrap();
}

#[test]
fn plans_take_no_more_than_the_budget() {
    let bench = Bench::new(quick(64 * MIB), 0, 8 * MIB);
    let _others = bench.budget.try_reserve(7 * MIB).unwrap();
    bench.fetcher.plan(&(0..64).map(|at| at * MIB..(at + 1) * MIB).collect::<Vec<_>>());
    bench.rest();
    assert!(bench.budget.held() <= 8 * MIB, "{}", bench.budget.held());
    // A reader gets its bytes even so.
    bench.read(50 * MIB, 5 * MIB).unwrap();
}

#[test]
fn all_memory_returns_with_the_fetcher() {
    let bench = Bench::new(quick(64 * MIB), 256 * MIB, 64 * MIB);
    bench.fetcher.plan(&[0..MIB, 5 * MIB..5 * MIB + 20]);
    bench.read(9 * MIB, 10).unwrap();
    bench.rest();
    let budget = bench.budget.clone();
    assert_eq!(budget.held(), MIB + 2 * BLOCK);
    drop(bench);
    assert_eq!(budget.held(), 0);
}

#[test]
fn what_comes_unasked_comes_from_the_cache_folder_first() {
    for (size, kept) in [(40 * MIB, 8 * MIB..24 * MIB), (9 * MIB, 2 * MIB..5 * MIB)] {
        let temporary = tempfile::tempdir().unwrap();
        let folder = KeptFolder::new(temporary.path().join("objects"), 64 * MIB);
        let open = |ahead| Bench::on(Line::new(size, DELAY, 2e9), ahead, 256 * MIB, folder.clone());
        let first = open(0);
        (kept.start / 1000 + 1..kept.end / 1000).for_each(|at| first.read(at * 1000, 900).unwrap());
        first.rest();
        drop(first);
        let second = open(256 * MIB);
        (0..400).for_each(|at| second.read(at * 7_919 * 13 % size, 10).unwrap());
        second.rest();
        let asked = second.line.asked.lock();
        let within = asked.iter().map(|asked| asked.end.min(kept.end).saturating_sub(asked.start.max(kept.start)));
        assert!(within.sum::<u64>() <= BLOCK && second.fetching.counts().disk_hits > 4, "{asked:?}");
        // All else came.
        let fetched: u64 = asked.iter().map(|asked| asked.end - asked.start).sum();
        assert!(fetched >= size - (kept.end + MIB - kept.start), "{fetched}");
    }
}

#[test]
fn another_mount_finds_metadata_and_small_objects_in_the_cache_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("objects");
    let open = |size| Bench::on(quick(size), 256 * MIB, 64 * MIB, KeptFolder::new(folder.clone(), 64 * MIB));
    let places: Vec<u64> = (0..50).map(|at| at * 700_001).collect();
    let read = |bench: &Bench| {
        bench.fetcher.plan(std::slice::from_ref(&(30 * MIB..30 * MIB + 500)));
        places.iter().for_each(|at| bench.read(*at, 200).unwrap());
        bench.read(30 * MIB, 500).unwrap();
    };
    let (first, other, small) = (open(40 * MIB), open(40 * MIB), open(3 * MIB));
    read(&first);
    // At the same time, another mount keeps another part.
    other.read(39 * MIB, 100).unwrap();
    first.read(20 * MIB, MIB).unwrap();
    small.read(5, 10).unwrap();
    // A reader may have its bytes before they are kept.
    [&first, &other, &small].into_iter().for_each(Bench::rest);
    drop((first, other, small));
    let (again, small) = (open(40 * MIB), open(3 * MIB));
    read(&again);
    again.read(39 * MIB, 100).unwrap();
    (0..3 * MIB / 1000).for_each(|at| small.read(at * 1000, 1000).unwrap());
    assert_eq!(again.line.asked.lock()[..], []);
    assert_eq!(small.line.asked.lock()[..], []);
    assert!(again.fetching.counts().disk_hits >= 50);
    // Values were not kept.
    again.read(20 * MIB, MIB).unwrap();
    assert!(again.line.requests.load(Ordering::Relaxed) > 0);
    drop((again, small));
    // An entry that is cut, flipped or gone is fetched again.
    for (number, entry) in std::fs::read_dir(&folder).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        match number % 4 {
            0 => bytes[middle] ^= 1,
            1 => bytes.truncate(middle),
            2 => bytes.clear(),
            _ => continue,
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let damaged = open(40 * MIB);
    read(&damaged);
    assert!(damaged.line.requests.load(Ordering::Relaxed) > 10);
}

/// What a thread does with an object.
#[derive(Clone, Debug)]
enum Act {
    Read(u64, u64),
    Plan(Vec<(u64, u64)>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let range = || (0..24 * MIB, prop_oneof![1..20_000_u64, 1..300_000_u64]);
    let act = prop_oneof![
        3 => range().prop_map(|(at, length)| Act::Read(at, length)),
        1 => prop::collection::vec(range(), 1..20).prop_map(Act::Plan),
    ];
    prop::collection::vec(act, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn reads_give_the_right_bytes_or_an_error(
        threads in prop::collection::vec(acts(), 1..4),
        fails in prop_oneof![Just(0_u64), 2..9_u64],
        piece in 1_000..100_000_u64,
        budget in prop_oneof![Just(MIB), Just(64 * MIB)],
        ahead in prop_oneof![Just(0), Just(256 * MIB)],
    ) {
        let mut line = Line::new(25 * MIB, Duration::from_micros(300), 2e9);
        (line.fails, line.piece) = (fails, piece);
        let bench = Bench::new(line, ahead, budget);
        let read = AtomicUsize::new(0);
        let (bench_of, read_of) = (&bench, &read);
        thread::scope(|scope| {
            for acts in &threads {
                scope.spawn(move || for act in acts {
                    match act {
                        Act::Plan(ranges) => {
                            let ranges: Vec<_> = ranges.iter().map(|(at, length)| *at..at + length).collect();
                            bench_of.fetcher.plan(&ranges);
                        }
                        Act::Read(at, length) => match bench_of.read(*at, *length) {
                            Ok(()) => drop(read_of.fetch_add(*length as usize, Ordering::Relaxed)),
                            Err(error) => assert!(fails > 0, "{error}"),
                        },
                    }
                });
            }
        });
        bench.rest();
        prop_assert!(bench.budget.held() <= budget.max(4 * MIB), "{}", bench.budget.held());
        let counts = bench.fetching.counts();
        prop_assert!(counts.used <= counts.fetched);
    }
}
