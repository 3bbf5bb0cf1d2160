//! `stat` of paths, once for each request of the kernel.
//!
//! Every layer that a request crosses asks whether a node is current, and each answer would take a `stat`: over a
//! network file system, a round trip. So a request has a [`StatMemo`], which goes with it from thread to thread, and
//! [`stat`] looks there first. This also makes all layers see the same state of a path.
//!
//! A look into a store may take long. A request waits for it no longer than its requester does; on a session
//! thread, which must not wait, it goes to another thread.
//!
//! Bytes are checked differently: by `fstat` of the open descriptor, after they were read
//! ([`Source::check`](super::Source::check)). That is never answered from a memo.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::{Identity, Interrupt};

/// An answer in a memo serves this long: a request that waited for a worker or for slow work looks again.
const FRESH: Duration = Duration::from_millis(50);

/// Number of calls of `stat(2)` so far, in the whole process.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Number of times that all memos were made to expire.
static EXPIRED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The memo of the request that this thread works for.
    static CURRENT: RefCell<Option<StatMemo>> = const { RefCell::new(None) };
}

/// The answer to a look at a path or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStat {
    /// Whether it is a file or a folder.
    pub kind: SourceKind,
    /// Its identity.
    pub identity: Identity,
    /// Its times and mode.
    pub stamp: Stamp,
}

/// Kinds of places that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A regular file, or an object.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket.
    Other,
}

/// Times and mode of a source, as `stat` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Last change, last change of the inode, last access.
    pub times: [SystemTime; 3],
    /// Permission bits, of which only those for reading are kept.
    pub mode: u16,
}

impl SourceStat {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => SourceKind::File,
            kind if kind.is_dir() => SourceKind::Folder,
            _ => SourceKind::Other,
        };
        let times = [
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.ctime(), metadata.ctime_nsec()),
            (metadata.atime(), metadata.atime_nsec()),
        ];
        let times = times.map(|(seconds, nanoseconds)| {
            let whole = Duration::from_secs(seconds.unsigned_abs());
            let base = if seconds < 0 { SystemTime::UNIX_EPOCH - whole } else { SystemTime::UNIX_EPOCH + whole };
            base + Duration::from_nanos(nanoseconds.unsigned_abs())
        });
        let stamp = Stamp { times, mode: (metadata.permissions().mode() & 0o444) as u16 };
        Self { kind, identity: Identity::of(metadata), stamp }
    }

    /// Whether it is a regular file, or an object.
    pub fn is_file(&self) -> bool {
        self.kind == SourceKind::File
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == SourceKind::Folder
    }

    /// When the content last changed.
    pub fn modified(&self) -> SystemTime {
        self.stamp.times[0]
    }
}

impl Stamp {
    /// The second since the epoch in which the content last changed.
    pub fn modified_second(&self) -> i64 {
        match self.times[0].duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => since.as_secs().cast_signed(),
            Err(before) => -(before.duration().as_nanos().div_ceil(1_000_000_000) as i64),
        }
    }
}

/// Answers of `stat` for one request of the kernel, and how long it may wait for others. Clones share the answers.
#[derive(Clone, Debug, Default)]
pub struct StatMemo {
    answers: Arc<Mutex<BTreeMap<PathBuf, Answer>>>,
    patience: Patience,
}

/// How long a request waits for what a store says of an object.
#[derive(Clone, Debug, Default)]
enum Patience {
    #[default]
    Endless,
    Until(Interrupt),
    /// Not at all; whether there would have been a wait.
    None(Arc<AtomicBool>),
}

/// An answer of `stat` for a path.
#[derive(Debug)]
struct Answer {
    found: Result<SourceStat, i32>,
    era: Era,
    /// When the answer came: over a network, it may take longer than an answer stays fresh.
    at: Instant,
}

/// The time between two expiries of all memos. An answer belongs to the era in which its question was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Era(u64);

impl Era {
    pub fn now() -> Self {
        Self(EXPIRED.load(Ordering::Acquire))
    }
}

impl Answer {
    fn is_fresh(&self) -> bool {
        self.era == Era::now() && self.at.elapsed() < FRESH
    }
}

/// Restores, when dropped, the memo that was current before.
struct Entered(Option<StatMemo>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl StatMemo {
    /// Does `work` on this thread as part of the request.
    pub fn scope<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = Entered(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// A new memo, for a request that is answered from memory or else handed over.
    pub fn impatient() -> Self {
        Self { patience: Patience::None(Arc::default()), ..Self::default() }
    }

    /// The same answers, for a thread that may wait until the interrupt is raised.
    pub fn until(&self, interrupt: &Interrupt) -> Self {
        Self { answers: self.answers.clone(), patience: Patience::Until(interrupt.clone()) }
    }

    /// Whether an answer is as old as it is because the request did not wait.
    pub fn is_late(&self) -> bool {
        matches!(&self.patience, Patience::None(is_late) if is_late.load(Ordering::Relaxed))
    }

    /// The interrupt of the request that this thread works for. `None`: it may not wait.
    pub fn patience() -> Option<Interrupt> {
        CURRENT.with_borrow(|memo| match memo.as_ref().map(|memo| &memo.patience) {
            None | Some(Patience::Endless) => Some(Interrupt::new()),
            Some(Patience::Until(interrupt)) => Some(interrupt.clone()),
            Some(Patience::None(is_late)) => {
                is_late.store(true, Ordering::Relaxed);
                None
            }
        })
    }

    /// The memo of the request that this thread works for, or a new one.
    pub fn current() -> Self {
        CURRENT.with_borrow(Clone::clone).unwrap_or_default()
    }

    /// Makes every request look again, including those under way. Call it when a source has changed, before the
    /// kernel's caches are dropped, since answers given after that stay in them.
    pub fn expire_all() {
        EXPIRED.fetch_add(1, Ordering::AcqRel);
    }

    fn get(&self, path: &Path) -> Option<io::Result<SourceStat>> {
        let answers = self.answers.lock();
        let answer = answers.get(path).filter(|answer| answer.is_fresh())?;
        Some(answer.found.map_err(io::Error::from_raw_os_error))
    }
}

/// Number of times that a source was reported as changed. It stays the same if no source is watched.
pub fn changes() -> u64 {
    EXPIRED.load(Ordering::Acquire)
}

/// Looks up the file or folder at this path, following links. A request that has just looked gets what it saw
/// then.
///
/// # Errors
/// Those of `stat(2)`.
pub fn stat(path: &Path) -> io::Result<SourceStat> {
    let known = CURRENT.with_borrow(|memo| memo.as_ref()?.get(path));
    known.unwrap_or_else(|| stat_now(path))
}

/// As [`stat`], but always asks the system.
///
/// # Errors
/// Those of `stat(2)`.
pub(super) fn stat_now(path: &Path) -> io::Result<SourceStat> {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let era = Era::now();
    let answer = fs::metadata(path).map(|metadata| SourceStat::of(&metadata));
    let found = answer.as_ref().copied();
    note(path, era, found.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)));
    answer
}

/// Remembers for this request what a path leads to.
pub(super) fn note(path: &Path, era: Era, found: Result<SourceStat, i32>) {
    CURRENT.with_borrow(|memo| {
        if let Some(StatMemo { answers, .. }) = memo {
            answers.lock().insert(path.to_owned(), Answer { found, era, at: Instant::now() });
        }
    });
}

/// Number of calls of `stat(2)` so far in this process.
pub fn stat_calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn grown(path: &Path) -> u64 {
        let length = fs::metadata(path).map_or(0, |metadata| metadata.len()) + 1;
        fs::write(path, vec![0; usize::try_from(length).unwrap()]).unwrap();
        length
    }

    fn length(path: &Path) -> u64 {
        stat(path).unwrap().identity.size
    }

    #[test]
    fn a_request_sees_one_state_of_a_path_on_all_its_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        // A slow machine may forget in between.
        let attempt = || {
            let memo = StatMemo::default();
            let begun = (Era::now(), Instant::now());
            let seen = memo.scope(|| {
                let before = (grown(&path), length(&path));
                let after = (grown(&path), length(&path));
                let on_another = thread::scope(|scope| scope.spawn(|| memo.scope(|| length(&path))).join().unwrap());
                (before, after, on_another)
            });
            (begun.0 == Era::now() && begun.1.elapsed() < FRESH).then_some(seen)
        };
        let (before, after, on_another) = (0..100).find_map(|_| attempt()).unwrap();
        assert_eq!(before.0, before.1);
        assert_eq!((after.0, after.1), (before.0 + 1, before.1));
        assert_eq!(on_another, before.1);
        // Outside of requests, and in the next one.
        assert_eq!(length(&path), after.0);
        assert_eq!(StatMemo::default().scope(|| length(&path)), after.0);
    }

    #[test]
    fn a_request_that_takes_long_looks_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        StatMemo::default().scope(|| {
            assert_eq!(length(file.path()), 0);
            let now = grown(file.path());
            thread::sleep(FRESH);
            assert_eq!(length(file.path()), now);
        });
    }

    #[test]
    fn a_reported_change_lets_requests_under_way_look_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        StatMemo::default().scope(|| {
            assert_eq!(length(file.path()), 0);
            let now = grown(file.path());
            StatMemo::expire_all();
            assert_eq!(length(file.path()), now);
        });
    }

    #[test]
    fn what_is_not_there_is_remembered_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let seen = (0..100).find_map(|_| {
            fs::remove_file(&path).ok();
            let begun = (Era::now(), Instant::now());
            let seen = StatMemo::default().scope(|| {
                let before = stat(&path).map_err(|error| error.raw_os_error());
                grown(&path);
                let after = stat(&path).map_err(|error| error.raw_os_error());
                (before.unwrap_err(), after.err().flatten())
            });
            (begun.0 == Era::now() && begun.1.elapsed() < FRESH).then_some(seen)
        });
        assert_eq!(seen, Some((Some(libc::ENOENT), Some(libc::ENOENT))));
    }

    #[test]
    fn the_memo_before_is_back_after_a_panic() {
        let memo = StatMemo::default();
        memo.scope(|| {
            std::panic::catch_unwind(|| StatMemo::default().scope(|| panic!("on purpose"))).unwrap_err();
            assert!(
                CURRENT.with_borrow(|current| current
                    .as_ref()
                    .is_some_and(|now| Arc::ptr_eq(&now.answers, &memo.answers)))
            );
        });
        assert!(CURRENT.with_borrow(Option::is_none));
    }
}
