//! Whole files of a mount without the mount: what decoding and rendering take. `scripts/bench/main` sets what FUSE adds
//! beside it.
//!
//! ```text
//! HEPFS_BENCH=run.h5:other.h5 cargo bench --bench engine     # criterion, `t/columns/x.raw` of each
//! engine --plain FILE NAME one|all [PLUGINS]                 # one read of NAME, as a line of JSON
//! ```
//!
//! The files are read as the adapter reads them for the kernel: in requests of 1 MiB, lent where the bytes lie together
//! already, by a reader for each core that takes the next request, while as many threads decode ahead. "One core" is
//! what a machine with one core would do.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use criterion::{Criterion, Throughput};
use hepfs::fs::tree;
use hepfs::fs::{Error, NodeRef};
use hepfs::h5;
use hepfs::session::Session;
use hepfs::source::Interrupt;
use hepfs::store::{self, Answer, Store};
use hepfs::views::Effort;
use serde_json::json;

/// What criterion reads of each file named by the environment.
const NAME: &str = "t/columns/x.raw";

/// As long as the kernel's requests.
const REQUEST: u64 = 1 << 20;

/// Anything that goes wrong ends a measurement.
type Failure = Box<dyn std::error::Error>;

/// A file of a tree, opened anew so that nothing of it is warm.
struct Cold {
    session: Arc<Session>,
    node: NodeRef,
    readers: usize,
}

/// What one read took.
struct Taken {
    bytes: u64,
    wall: Duration,
    /// Of all threads of this process; HDF5 workers are others.
    processor: Duration,
}

impl Cold {
    fn open(file: &Path, name: &str, plugins: Option<PathBuf>) -> Result<Self, Failure> {
        let readers = available_parallelism()?.get();
        let store = Store::new(store::Options { threads: readers, ..store::Options::default() });
        let session = Session::new(store, h5::Options { plugins, ..h5::Options::default() });
        let interrupt = Interrupt::new();
        let mut node = tree::root(&session, &[file.to_owned()], &interrupt)?;
        for part in name.split('/') {
            node = node.lookup(part.as_bytes(), &interrupt)?;
        }
        Ok(Self { session, node, readers })
    }

    /// Reads all of it, its exact size first, as `open` does.
    fn read(&self) -> Result<Taken, Failure> {
        let (since, processor) = (Instant::now(), ProcessTime::now());
        let bytes = self.node.size(Effort::Exact, &Interrupt::new())?.bytes();
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..self.readers).map(|_| scope.spawn(|| self.requests(&next, bytes))).collect();
            readers.into_iter().try_for_each(|reader| reader.join().expect("a reader panicked"))
        })?;
        Ok(Taken { bytes, wall: since.elapsed(), processor: processor.elapsed() })
    }

    /// Takes the next request until there is none.
    fn requests(&self, next: &AtomicU64, bytes: u64) -> Result<(), Error> {
        let (interrupt, mut buffer) = (Interrupt::new(), Vec::new());
        loop {
            let offset = next.fetch_add(REQUEST, Ordering::Relaxed);
            if offset >= bytes {
                return Ok(());
            }
            let end = offset + REQUEST.min(bytes - offset);
            let length = (end - offset) as usize;
            let mut answer = Answer::referring(buffer, length);
            self.node.gather(offset, length, &mut answer, &interrupt)?;
            answer.read_stored(&interrupt)?;
            for part in answer.parts() {
                black_box(part.in_memory());
            }
            buffer = answer.into_made();
        }
    }
}

/// Does something on one core, with all threads that it starts.
fn on_one_core<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        let core = core_affinity::get_core_ids().and_then(|cores| cores.first().copied());
        assert!(core.is_some_and(core_affinity::set_for_current), "threads cannot be kept to one core here");
        work()
    };
    thread::scope(|scope| scope.spawn(pinned).join().expect("the measurement panicked"))
}

/// One read, as JSON.
fn told(file: &Path, name: &str, plugins: Option<PathBuf>) -> Result<String, String> {
    let read = || {
        let cold = Cold::open(file, name, plugins)?;
        let taken = cold.read()?;
        Ok::<_, Failure>(json!({
            "bytes": taken.bytes,
            "seconds": taken.wall.as_secs_f64(),
            "core_seconds": taken.processor.as_secs_f64(),
            "worker_bytes": cold.session.store.counters().worker_bytes.get(),
        }))
    };
    read().map(|json| json.to_string()).map_err(|error| error.to_string())
}

/// `--plain`.
fn plain(arguments: &[String]) -> Result<(), Failure> {
    let [file, name, cores, plugins @ ..] = arguments else {
        return Err("usage: engine --plain FILE NAME one|all [PLUGINS]".into());
    };
    let read = || told(Path::new(file), name, plugins.first().map(PathBuf::from));
    println!("{}", if cores == "one" { on_one_core(read) } else { read() }?);
    Ok(())
}

/// Each file on one core and on all of them.
fn measure(criterion: &mut Criterion, files: Vec<PathBuf>) -> Result<(), Failure> {
    for file in files {
        let read = || Cold::open(&file, NAME, None)?.read();
        let mut group = criterion.benchmark_group(file.display().to_string());
        group.sample_size(10).throughput(Throughput::Bytes(read()?.bytes));
        // A fault of the file shows in the read above.
        let reads = |times: u64| (0..times).map(|_| read().expect("it was readable before").wall).sum::<Duration>();
        group.bench_function("one core", |bencher| bencher.iter_custom(|times| on_one_core(|| reads(times))));
        group.bench_function("all cores", |bencher| bencher.iter_custom(reads));
        group.finish();
    }
    Ok(())
}

fn main() -> ExitCode {
    hepfs::serve_if_worker();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("--plain") => plain(&arguments[1..]),
        _ => match std::env::var_os("HEPFS_BENCH").filter(|files| !files.is_empty()) {
            Some(files) => {
                let mut criterion = Criterion::default().configure_from_args();
                let measured = measure(&mut criterion, std::env::split_paths(&files).collect());
                criterion.final_summary();
                measured
            }
            // `cargo test --benches` runs this without files: nothing to measure, nothing wrong.
            None => {
                eprintln!("engine: HEPFS_BENCH names no files, FILE:FILE…");
                Ok(())
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("engine: {error}");
            ExitCode::FAILURE
        }
    }
}
