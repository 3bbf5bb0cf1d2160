//! Reports what this process serves, and what that costs, to `hepfs status` and systemd.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::words::{bytes, count, of_limit, span};
use super::{RequestReport, Unit, WorkReport, under_way};

/// A mount with a request in the last seconds is not called idle.
const BUSY: f64 = 3.0;

/// The state of one process. Another version of the program may know less of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Its process ID.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// The command: `mount`, `run`, `query`, …
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// Where it is mounted; `None`: no mount.
    pub mountpoint: Option<String>,
    /// Device number of the mount, as in `/proc/self/mountinfo`; `None`: not known.
    pub device: Option<String>,
    /// Process ID of the `hepfs run` that the mount belongs to.
    pub job: Option<u32>,
    /// Number of the mount namespace that the mount is in.
    pub namespace: Option<u64>,
    /// Sources, as given.
    pub sources: Vec<String>,
    /// Files in them, as far as folders were listed; `None`: not known.
    pub files: Option<u64>,
    /// When it began, in seconds since 1970.
    pub since: u64,
    /// Seconds since then.
    pub seconds: f64,
    /// Its memory.
    pub memory: MemoryReport,
    /// Bytes of files that it sent to the kernel.
    pub bytes_served: u64,
    /// Errors of sources since it began.
    pub errors: u64,
    /// The last of them, oldest first.
    pub last_errors: Vec<ErrorReport>,
    /// Its long work, oldest first.
    pub works: Vec<WorkReport>,
    /// Seconds since the last request; `None`: no mount, or no request yet.
    pub seconds_idle: Option<f64>,
    /// Requests by kind.
    pub requests: Vec<RequestReport>,
    /// The counts of `.hepfs/stats`.
    pub counters: BTreeMap<String, u64>,
}

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryReport {
    /// Held by caches.
    pub held: u64,
    /// The most that caches may hold (`--cache-size`); 0: no caches.
    pub budget: u64,
    /// In use by the process in all, without its workers.
    pub resident: u64,
}

/// An error that requests ran into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The error.
    pub message: String,
    /// How many times in a row.
    pub times: u64,
}

/// Adds to a report what a part of the process knows.
type Teller = Box<dyn Fn(&mut Report) + Send>;

static TELLERS: Mutex<Vec<Teller>> = Mutex::new(Vec::new());

/// The first description. It counts as the beginning of the process.
static BEGAN: LazyLock<(Instant, SystemTime)> = LazyLock::new(|| (Instant::now(), SystemTime::now()));

/// Has each report of this process contain what `tell` adds. `tell` must not wait for requests.
pub fn describe(tell: impl Fn(&mut Report) + Send + 'static) {
    LazyLock::force(&BEGAN);
    TELLERS.lock().push(Box::new(tell));
}

/// The state of this process as of now.
pub fn report() -> Report {
    let (instant, time) = *BEGAN;
    let mut report = Report {
        pid: std::process::id(),
        uid: rustix::process::geteuid().as_raw(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        namespace: std::fs::metadata("/proc/self/ns/mnt").ok().map(|metadata| metadata.ino()),
        since: time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        seconds: instant.elapsed().as_secs_f64(),
        memory: MemoryReport { resident: resident(), ..MemoryReport::default() },
        works: under_way(),
        ..Report::default()
    };
    TELLERS.lock().iter().for_each(|tell| tell(&mut report));
    report
}

/// Bytes of memory that this process has (proc_pid_statm(5)); 0: not known.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

impl Report {
    /// Renders the line of `hepfs status` without the name of the mount, for systemd.
    pub fn line(&self) -> String {
        let served = self.mountpoint.is_some().then(|| format!("{} served", bytes(self.bytes_served)));
        let errors = match self.errors {
            0 => None,
            1 => Some("1 error".to_owned()),
            errors => Some(format!("{} errors", count(errors))),
        };
        let memory = Some(self.memory()).filter(|memory| !memory.is_empty());
        let parts = [Some(self.source()), Some(self.since()), memory, served, errors, Some(self.now())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The sources in a few words: `run.h5`, or `runs/ (1 204 files)`.
    pub fn source(&self) -> String {
        let named = match self.sources.as_slice() {
            [] => String::new(),
            [one] => name_of(one),
            [first, others @ ..] => format!("{} and {} more", name_of(first), count(others.len() as u64)),
        };
        match self.files {
            Some(1) | None => named,
            Some(files) => format!("{named} ({} files)", count(files)),
        }
    }

    /// All texts.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let works = self.works.iter_mut();
        let of_works = works.flat_map(|work| [&mut work.title, &mut work.doing].into_iter().chain(&mut work.source));
        let own = [&mut self.command, &mut self.version].into_iter().chain(&mut self.mountpoint);
        let errors = self.last_errors.iter_mut().map(|error| &mut error.message);
        own.chain(&mut self.sources).chain(errors).chain(of_works)
    }

    /// How long it has been there: `2 h 10 min`.
    pub fn since(&self) -> String {
        span(self.seconds)
    }

    /// Memory of its caches: `412 MiB of 1 GiB`.
    pub fn memory(&self) -> String {
        match self.memory.budget {
            0 => String::new(),
            budget => of_limit(self.memory.held, budget),
        }
    }

    /// Its activity now: `table.ndjson: sizing 63 %, 41 s left`, or `idle 12 min`.
    pub fn now(&self) -> String {
        match (self.works.as_slice(), self.seconds_idle) {
            ([work], _) => work.words(),
            ([first, others @ ..], _) => format!("{}; {} more", first.words(), count(others.len() as u64)),
            ([], Some(idle)) if idle < BUSY => "serving".to_owned(),
            ([], Some(idle)) => format!("idle {}", span(idle)),
            ([], None) if self.mountpoint.is_some() => "no request yet".to_owned(),
            ([], None) => "running".to_owned(),
        }
    }
}

impl WorkReport {
    /// The work in a few words: `table.ndjson: sizing 63 %, 41 s left`.
    pub fn words(&self) -> String {
        let done = match (self.all, self.unit) {
            (Some(all), _) => format!(" {} %", self.done.min(all).saturating_mul(100) / all.max(1)),
            // The number of blocks tells people nothing.
            (None, Unit::Blocks | Unit::Steps) => String::new(),
            (None, _) if self.done == 0 => String::new(),
            (None, Unit::Bytes) => format!(" {}", bytes(self.done)),
            (None, Unit::Rows) => format!(" {} rows", count(self.done)),
            (None, Unit::Values) => format!(" {} values", count(self.done)),
            (None, Unit::Files) => format!(" {} files", count(self.done)),
            (None, Unit::Objects) => format!(" {} objects", count(self.done)),
        };
        let left = self.seconds_left.map(|seconds| format!(", {} left", span(seconds))).unwrap_or_default();
        format!("{}: {}{done}{left}", self.title, self.doing)
    }
}

/// The last name of a path, with a `/` behind that of a folder that was given so.
fn name_of(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if path.ends_with('/') { format!("{name}/") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(all: Option<u64>, seconds_left: Option<f64>) -> WorkReport {
        let (title, doing) = ("table.ndjson".to_owned(), "sizing".to_owned());
        WorkReport {
            source: None,
            title,
            doing,
            done: 63,
            all,
            unit: Unit::Blocks,
            seconds: 70.0,
            per_second: None,
            seconds_left,
        }
    }

    #[test]
    fn a_line_tells_all_but_the_name() {
        let mut report = Report {
            mountpoint: Some("/mnt".to_owned()),
            sources: vec!["/data/run_042.h5".to_owned()],
            seconds: 7_830.0,
            memory: MemoryReport { held: 412 << 20, budget: 1 << 30, resident: 0 },
            bytes_served: 184_000_000_000,
            works: vec![work(Some(100), Some(41.0))],
            ..Report::default()
        };
        let line = "run_042.h5, 2 h 10 min, 412 MiB of 1 GiB, 184 GB served, table.ndjson: sizing 63 %, 41 s left";
        assert_eq!(report.line(), line);
        (report.works, report.errors, report.seconds_idle) = (Vec::new(), 3, Some(720.0));
        (report.sources, report.files) = (vec!["/scratch/runs/".to_owned()], Some(1204));
        let line = "runs/ (1 204 files), 2 h 10 min, 412 MiB of 1 GiB, 184 GB served, 3 errors, idle 12 min";
        assert_eq!(report.line(), line);
    }

    #[test]
    fn a_command_without_a_mount_tells_less() {
        let report = Report { sources: vec!["a.h5".to_owned(), "b.h5".to_owned()], seconds: 18.2, ..Report::default() };
        assert_eq!(report.line(), "a.h5 and 1 more, 18 s, running");
        let report = Report { works: vec![work(None, None), work(None, None)], ..report };
        assert_eq!(report.now(), "table.ndjson: sizing; 1 more");
    }

    #[test]
    fn reports_come_back_from_json() {
        describe(|report| report.sources.push("described".to_owned()));
        let report = report();
        assert!(report.memory.resident > 0 && report.since > 1_700_000_000, "{report:?}");
        assert_eq!(report.sources, ["described"]);
        let back: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(back, report);
    }
}
