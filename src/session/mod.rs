//! Opens sources, finds their tables, and gathers findings.
//!
//! A directory belongs to one opening of a source (`OpenedSource`). When another file takes the source's path, its
//! directories stop being current, and a new opening serves it.
//!
//! | room | task |
//! | --- | --- |
//! | `error`, `errors`, `rules` | why something cannot be read; the last errors; rules of any file |
//! | `findings` | gathers findings on a source, each once, and what cannot be read |
//! | `names` | from HDF5 link names to file names |
//! | `in_use` | finds values by key while others hold them |
//! | `opened` | openings of a source: one for each state of the file |
//! | `listing` | from a group's links and the claims on them to names, none of them twice |
//! | `contents`, `directory` | the listing of a directory; its subdirectories |
//! | `described` | the facts of a directory's `metadata.json` |
//! | `pages` | the pages to look at, `index.html` |
//! | `files`, `file`, `recent` | the view behind each name, with the attributes of its object |
//! | `selections` | the views over selected rows |
//! | `sources` | files and folders that the user named |
//! | `datasets` | one table of many files |
//! | `live` | reports on a session: errors, findings, counts |
//! | `spot`, `walk` | finds directories and files by name; follows paths, and visits everything below a directory |
//! | `open` | the library's entry: open files and tables |

mod changes;
mod children;
mod contents;
pub(crate) mod datasets;
mod described;
mod directory;
mod error;
mod errors;
mod file;
mod files;
mod findings;
mod in_use;
mod listing;
mod live;
pub(crate) mod names;
mod open;
mod opened;
pub(crate) mod pages;
mod recent;
pub(crate) mod rules;
pub(crate) mod selections;
pub(crate) mod sources;
mod spot;
mod verifier;
pub(crate) mod walk;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::{self, Debug, Formatter};
use std::hash::Hash;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bstr::BString;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

use crate::activity::Report;
use crate::dialects::{Checks, Dialects};
use crate::h5;
use crate::indexes::Trust;
use crate::source::{Interrupt, Interrupted, Opener, is_address};
use crate::store::{File, NanPolicy, Reservation, Store};
use crate::table::{Finding, rule_of};
use crate::views::text::{BlockCache, CsvOptions};

pub use children::{Children, DirEntry, DirectoryNames, EntryKind};
pub(crate) use described::DirectoryDescription;
pub(crate) use directory::Directory;
pub use error::Error;
pub(crate) use errors::ErrorLog;
pub(crate) use file::{ObjectAttributes, ShownFile};
pub(crate) use findings::Findings;
pub use listing::Formats;
pub(crate) use live::LiveFile;
pub use open::{OpenFile, OpenTable, Start, TableError};
pub use opened::OpenError;
pub(crate) use opened::{OpenedSource, SourceFile};
pub(crate) use recent::Use;
pub(crate) use sources::is_known;
pub(crate) use spot::{FileSpot, Spot, datasets, root};
pub(crate) use verifier::Verifier;

/// Most bytes of rendered text to keep.
const MOST_RENDERED: u64 = 64 << 20;

/// Most errors in the report of this process.
const MOST_ERRORS_TOLD: usize = 5;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CSV settings.
    pub csv: CsvOptions,
    /// Whether Parquet files carry statistics (`--parquet-stats`). Without them a file has the same bytes in each
    /// mount, on each machine.
    pub parquet_statistics: bool,
    /// Whether times are shown as instants (`--times`); the store makes the rows.
    pub times: bool,
    /// The meaning of NaN in a column of floats (`--nan`), also for the store.
    pub nan: NanPolicy,
    /// Which search indexes to use (`--indexes`).
    pub trust: Trust,
    /// Opens sources.
    pub opener: Opener,
    /// Whether search indexes of objects in stores are verified in the background (`--verify`).
    pub verifies_objects: bool,
    /// The known dialects.
    pub dialects: Dialects,
    /// The file formats to show (`--formats`).
    pub formats: Formats,
    /// The rules to check tables against.
    pub checks: Checks,
    /// Whether other users may read (`--allow-other`). Then `.hepfs/passes` lists the work of this process alone.
    pub is_shared: bool,
    /// Most links of a group whose listing describes its members. For a larger group, `metadata.json` lists it once
    /// more: descriptions of very many members take more memory than anything else known about them.
    pub most_described: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            csv: CsvOptions::default(),
            parquet_statistics: true,
            times: true,
            nan: NanPolicy::default(),
            trust: Trust::default(),
            opener: Opener::default(),
            verifies_objects: false,
            dialects: Dialects::default(),
            formats: Formats::default(),
            checks: Checks::default(),
            is_shared: false,
            most_described: 1024,
        }
    }
}

/// A file, and the tallies of values that casts of its columns rounded or lost.
type Casts = (PathBuf, datasets::Tallies);

/// Watches sources for changes.
pub trait Watcher: Send + Sync {
    /// Watches a file for being rewritten, replaced, moved or deleted.
    ///
    /// # Errors
    /// If neither the file nor its folder can be watched.
    fn add_file(&self, path: &Path) -> io::Result<()>;

    /// Watches a folder, without its subfolders, for names that come and go.
    ///
    /// # Errors
    /// If the folder cannot be watched.
    fn add_folder(&self, path: &Path) -> io::Result<()>;

    /// Takes note that a source that nothing can watch has changed. It waits for nothing.
    fn changed(&self, path: &Path);
}

/// The common state of sources that are opened with the same settings.
pub struct Session {
    /// The cache of decoded chunks, and its budget.
    #[doc(hidden)]
    pub store: Arc<Store>,
    /// The cache of rendered text.
    pub(crate) blocks: Arc<BlockCache>,
    /// The share of the store's budget for rendered text.
    blocks_share: Option<Reservation>,
    /// CSV settings.
    pub(crate) csv: Arc<CsvOptions>,
    /// Whether Parquet files carry statistics.
    pub(crate) parquet_statistics: bool,
    /// Which search indexes to use.
    pub(crate) trust: Trust,
    /// Verifies the search indexes that selections could not use.
    pub(crate) verifier: Verifier,
    /// Opens sources.
    pub(crate) opener: Opener,
    /// Whether search indexes of objects in stores are verified in the background.
    pub(crate) verifies_objects: bool,
    /// The known dialects.
    pub(crate) dialects: Dialects,
    /// The file formats to show.
    pub(crate) formats: Formats,
    /// The rules to check tables against.
    pub(crate) checks: Checks,
    /// Whether other users may read.
    pub(crate) is_shared: bool,
    /// Most links of a group whose listing describes its members.
    pub(crate) most_described: usize,
    /// Settings of the HDF5 workers.
    pub(crate) workers: h5::Options,
    /// The last errors, for `.hepfs/errors`.
    pub(crate) errors: ErrorLog,
    /// Sources opened so far, for `.hepfs/findings`.
    openings: Mutex<Vec<Weak<OpenedSource>>>,
    /// Findings on files that datasets leave out or cast, by the table's path; also for `.hepfs/findings`.
    datasets: Mutex<BTreeMap<String, Vec<(PathBuf, Finding)>>>,
    /// Values that casts of datasets rounded or lost, by the table's path and the partition.
    casts: Mutex<BTreeMap<(String, BString), Casts>>,
    /// How many files the folders have that were listed.
    listed: Mutex<BTreeMap<PathBuf, u64>>,
    /// The watcher, once there is a mount.
    watch: OnceLock<Weak<dyn Watcher>>,
    /// The mount point, once it is known.
    mountpoint: OnceLock<PathBuf>,
}

impl Debug for Session {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Session {
    /// A session over a store, with default settings.
    #[doc(hidden)]
    pub fn new(store: Arc<Store>, workers: h5::Options) -> Arc<Self> {
        Self::with_settings(store, workers, Settings::default())
    }

    /// A session over a store.
    #[doc(hidden)]
    pub fn with_settings(store: Arc<Store>, workers: h5::Options, settings: Settings) -> Arc<Self> {
        // A few readers go through blocks of about 1 MiB in order, so a small share of the budget suffices.
        let share = (store.budget().limit() / 8).min(MOST_RENDERED);
        let blocks = Arc::new(BlockCache::new(usize::try_from(share).unwrap_or(usize::MAX)));
        let blocks_share = store.budget().try_reserve(share);
        Arc::new(Self {
            store,
            blocks,
            blocks_share,
            csv: Arc::new(settings.csv),
            parquet_statistics: settings.parquet_statistics,
            trust: settings.trust,
            verifier: Verifier::default(),
            opener: settings.opener,
            verifies_objects: settings.verifies_objects,
            dialects: settings.dialects,
            formats: settings.formats,
            checks: settings.checks,
            is_shared: settings.is_shared,
            most_described: settings.most_described,
            workers: h5::Options { attributes: settings.dialects.attributes().into(), ..workers },
            errors: ErrorLog::default(),
            openings: Default::default(),
            datasets: Default::default(),
            casts: Default::default(),
            listed: Default::default(),
            watch: OnceLock::new(),
            mountpoint: OnceLock::new(),
        })
    }

    /// Adds what the session knows to the report of this process. Waits for no request.
    pub(crate) fn tell(&self, report: &mut Report) {
        let budget = self.store.budget();
        // The share for rendered text counts as held from the beginning, so that nothing else takes it.
        let share = self.blocks_share.as_ref().map_or(0, Reservation::bytes);
        report.memory.held = budget.held().saturating_sub(share) + self.blocks.bytes() as u64;
        report.memory.budget = budget.limit();
        (report.errors, report.last_errors) = (self.errors.count(), self.errors.reports(MOST_ERRORS_TOLD));
        let counters = self.store.counters().table().into_iter().chain(self.opener.counters());
        report.counters = counters.map(|(name, value)| (name.into(), value)).collect();
        let listed = self.listed.lock();
        report.files = (!listed.is_empty()).then(|| listed.values().sum());
    }

    /// Watches every folder listed and every file opened from now on, and the files already open.
    pub(crate) fn watch_with<W: Watcher + 'static>(&self, watch: &Arc<W>) {
        let watch: Weak<W> = Arc::downgrade(watch);
        self.watch.set(watch).ok();
        self.opened().iter().for_each(|opened| self.watch_file(opened.path()));
    }

    /// Tells the path at which the session is mounted, or the address at which it is served, for pages.
    pub(crate) fn mounted_at(&self, mountpoint: &Path) {
        // Not canonical: to look at a mount that is not served yet would never end.
        self.mountpoint.set(crate::source::absolute(mountpoint).unwrap_or_else(|_| mountpoint.to_owned())).ok();
    }

    /// The absolute path of a path in the mount; `None`: there is no mount.
    fn mounted_path(&self, shown: &BString) -> Option<PathBuf> {
        Some(self.mountpoint.get()?.join(OsStr::from_bytes(shown)))
    }

    /// Writes the HDF5 workers' answers about all open sources to the cache folder, unless they are there already.
    pub(crate) fn save(&self) {
        self.files().iter().for_each(|file| file.save_answers());
    }

    /// The HDF5 files that are open.
    pub(crate) fn files(&self) -> Vec<Arc<File>> {
        self.opened().iter().filter_map(|opened| opened.hdf5().cloned()).collect()
    }

    /// Findings on datasets: files left out, columns cast, values that a cast lost.
    pub(crate) fn of_datasets(&self) -> Vec<(PathBuf, Finding)> {
        let mut all: Vec<_> = self.datasets.lock().values().flatten().cloned().collect();
        for (source, tallies) in self.casts.lock().values() {
            let counted =
                tallies.iter().flat_map(|(path, tally)| tally.counts().into_iter().map(move |one| (path, one)));
            let found = counted.map(|(path, (oddity, count))| Finding::of_rows(path, None, rule_of(oddity), count));
            all.extend(found.map(|finding| (source.clone(), finding)));
        }
        all
    }

    /// Findings on unfinished changes of the open sources.
    pub(crate) fn unfinished(&self) -> Vec<Finding> {
        self.opened().iter().filter_map(|opened| opened::unfinished(opened.opening().source())).collect()
    }

    /// Sources that are open.
    pub(crate) fn opened(&self) -> Vec<Arc<OpenedSource>> {
        self.openings.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn watch_file(&self, path: &Path) {
        self.watched(path, |watch| watch.add_file(path));
    }

    fn watch_folder(&self, path: &Path) {
        self.watched(path, |watch| watch.add_folder(path));
    }

    /// Tells the mount that an object of a store has changed.
    fn tell_changed(&self, path: &Path) {
        if let Some(watch) = self.watch.get().and_then(Weak::upgrade) {
            watch.changed(path);
        }
    }

    fn watched(&self, path: &Path, add: impl FnOnce(&dyn Watcher) -> io::Result<()>) {
        // Without a watch, a change is noticed at the next open, or when the kernel's caches expire. Nothing watches a
        // store.
        if !is_address(path)
            && let Some(watch) = self.watch.get().and_then(Weak::upgrade)
            && let Err(error) = add(watch.as_ref())
        {
            tracing::info!("{} is not watched: {error}", path.display());
        }
    }
}

/// How often a wait for a lock checks its interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Locks a mutex that others may hold for long.
///
/// # Errors
/// [`Interrupted`]: the requester is no longer waiting.
fn lock<'a, T>(mutex: &'a Mutex<T>, interrupt: &Interrupt) -> Result<MutexGuard<'a, T>, Interrupted> {
    loop {
        if let Some(guard) = mutex.try_lock_for(LOOK) {
            return Ok(guard);
        }
        interrupt.check()?;
    }
}

/// Makes an LRU of `most` values. It allocates nothing while empty, since each directory has one.
fn last_used<K: Hash + Eq, V>(most: NonZeroUsize) -> LruCache<K, V> {
    let mut values = LruCache::unbounded();
    values.resize(most);
    values
}
