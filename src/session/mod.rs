//! Opens sources, finds their tables, and gathers findings.
//!
//! A directory belongs to one opening of a source (`Opened`). When the file under the source's path becomes another
//! one, its directories stop being current, and a new opening answers.
//!
//! | room | what it does |
//! | --- | --- |
//! | `error`, `errors`, `rules` | why something cannot be read; the last errors; rules of any file |
//! | `names` | from HDF5 link names to file names |
//! | `in_use` | finds values by key while others hold them |
//! | `opened` | openings of a source: one for each state of the file |
//! | `listing` | from a group's links and what was claimed of them to names, none of them twice |
//! | `contents`, `directory` | what a directory holds once it was listed; the directories below it |
//! | `described` | the facts of a directory's `metadata.json` |
//! | `files`, `file`, `recent` | the view behind each name, with the attributes of its object |
//! | `selections` | the same over chosen rows |
//! | `sources` | files and folders that the user named |
//! | `datasets` | one table of many files |
//! | `live` | reports on a session: errors, findings, counts |
//! | `spot`, `walk` | what names lead to; what lies at a path, and below it |
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
mod in_use;
mod listing;
mod live;
pub(crate) mod names;
mod open;
mod opened;
mod recent;
pub(crate) mod rules;
pub(crate) mod selections;
pub(crate) mod sources;
mod spot;
mod verifier;
pub(crate) mod walk;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::hash::Hash;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bstr::BString;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

use crate::dialects::{Checks, Dialects};
use crate::h5;
use crate::indexes::Trust;
use crate::source::{Interrupt, Interrupted};
use crate::store::{File, NanPolicy, Reservation, Store};
use crate::table::{Finding, rule_of};
use crate::views::text::{BlockCache, CsvOptions};

pub use children::{Children, DirEntry, Kind, Names};
pub(crate) use described::Described;
pub(crate) use directory::Directory;
pub use error::Error;
pub(crate) use errors::ErrorLog;
pub(crate) use file::{ObjectAttributes, ShownFile};
pub use listing::Formats;
pub(crate) use live::LiveFile;
pub use open::{OpenFile, OpenTable, Start, TableError};
pub use opened::OpenError;
pub(crate) use opened::{Opened, SourceFile, Stamp};
pub(crate) use recent::Use;
pub(crate) use sources::is_known;
pub(crate) use spot::{FileSpot, Spot, datasets, root};
pub(crate) use verifier::Verifier;

/// Most rendered text kept, in bytes.
const MOST_RENDERED: u64 = 64 << 20;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How CSV is written.
    pub csv: CsvOptions,
    /// Whether Parquet files carry statistics of their values (`--parquet-stats`). Without it a
    /// file has the same bytes at each mount, on each machine.
    pub parquet_statistics: bool,
    /// Whether times are shown as instants (`--times`): for the store, which makes the rows.
    pub times: bool,
    /// The meaning of NaN in a column of floats (`--nan`): for the store as well.
    pub nan: NanPolicy,
    /// Which search indexes are used (`--indexes`).
    pub trust: Trust,
    /// Which ways of keeping tables are known.
    pub dialects: Dialects,
    /// Which files are shown (`--formats`).
    pub formats: Formats,
    /// Which rules tables are held against.
    pub checks: Checks,
    /// Links of a group whose members are described when it is listed. A larger group is gone through once more for its
    /// `metadata.json`: descriptions of very many take more memory than all else that is known of them.
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
            dialects: Dialects::default(),
            formats: Formats::default(),
            checks: Checks::default(),
            most_described: 1024,
        }
    }
}

/// A file, and what casts of its columns did not keep.
type Casts = (PathBuf, datasets::Tallies);

/// Tells of changes of sources.
pub trait Watcher: Send + Sync {
    /// Watches a file: rewritten, replaced, moved or deleted.
    ///
    /// # Errors
    /// Where neither the file nor its folder can be watched.
    fn add_file(&self, path: &Path) -> io::Result<()>;

    /// Watches a folder: names that come and go in it (not below it).
    ///
    /// # Errors
    /// Where the folder cannot be watched.
    fn add_folder(&self, path: &Path) -> io::Result<()>;
}

/// Sources that are opened with the same settings: what they share.
pub struct Session {
    /// Decoded chunks and their budget.
    #[doc(hidden)]
    pub store: Arc<Store>,
    /// Rendered text.
    pub(crate) blocks: Arc<BlockCache>,
    /// The part of the store's budget that rendered text may take.
    _blocks_share: Option<Reservation>,
    /// How CSV is written.
    pub(crate) csv: Arc<CsvOptions>,
    /// Whether Parquet files tell statistics.
    pub(crate) parquet_statistics: bool,
    /// Which search indexes are used.
    pub(crate) trust: Trust,
    /// Verifies search indexes that selections might have used.
    pub(crate) verifier: Verifier,
    /// Ways of keeping tables that are known.
    pub(crate) dialects: Dialects,
    /// Which files are shown.
    pub(crate) formats: Formats,
    /// Which rules tables are held against.
    pub(crate) checks: Checks,
    /// Links of a group whose members are described when it is listed.
    pub(crate) most_described: usize,
    /// Settings of the HDF5 workers.
    pub(crate) workers: h5::Options,
    /// The last errors met while serving, for `.hepfs/errors`.
    pub(crate) errors: ErrorLog,
    /// Sources opened so far, for `.hepfs/findings`.
    openings: Mutex<Vec<Weak<Opened>>>,
    /// Files that datasets leave out or cast, likewise, by the table's path.
    datasets: Mutex<BTreeMap<String, Vec<(PathBuf, Finding)>>>,
    /// Values that casts of parts of datasets did not keep, by the table's path and the partition.
    casts: Mutex<BTreeMap<(String, BString), Casts>>,
    /// Tells of changes, once there is a mount.
    watch: OnceLock<Weak<dyn Watcher>>,
}

impl Debug for Session {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Session {
    /// A session over a store, with the usual settings.
    #[doc(hidden)]
    pub fn new(store: Arc<Store>, workers: h5::Options) -> Arc<Self> {
        Self::with_settings(store, workers, Settings::default())
    }

    /// A session over a store.
    #[doc(hidden)]
    pub fn with_settings(store: Arc<Store>, workers: h5::Options, settings: Settings) -> Arc<Self> {
        // Blocks of about 1 MiB that one reader or a few go through in order: a small part of the budget serves them.
        let share = (store.budget().limit() / 8).min(MOST_RENDERED);
        let blocks = Arc::new(BlockCache::new(usize::try_from(share).unwrap_or(usize::MAX)));
        let blocks_share = store.budget().try_reserve(share);
        Arc::new(Self {
            store,
            blocks,
            _blocks_share: blocks_share,
            csv: Arc::new(settings.csv),
            parquet_statistics: settings.parquet_statistics,
            trust: settings.trust,
            verifier: Verifier::default(),
            dialects: settings.dialects,
            formats: settings.formats,
            checks: settings.checks,
            most_described: settings.most_described,
            workers: h5::Options { attributes: settings.dialects.attributes().into(), ..workers },
            errors: ErrorLog::default(),
            openings: Default::default(),
            datasets: Default::default(),
            casts: Default::default(),
            watch: OnceLock::new(),
        })
    }

    /// Watches every folder that is listed and every file that is opened from now on, and the files open already.
    pub(crate) fn watch_with<W: Watcher + 'static>(&self, watch: &Arc<W>) {
        let watch: Weak<W> = Arc::downgrade(watch);
        self.watch.set(watch).ok();
        self.opened().iter().for_each(|opened| self.watch_file(opened.path()));
    }

    /// Writes the answers of the HDF5 workers for all open sources to the cache folder, as far as they are not there
    /// yet.
    pub(crate) fn save(&self) {
        self.files().iter().for_each(|file| file.save_answers());
    }

    /// The HDF5 files that are open.
    pub(crate) fn files(&self) -> Vec<Arc<File>> {
        self.opened().iter().filter_map(|opened| opened.hdf5().cloned()).collect()
    }

    /// Findings of datasets: files that are left out or cast, values that a cast did not keep.
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

    /// Findings of unfinished changes of the open sources.
    pub(crate) fn unfinished(&self) -> Vec<Finding> {
        self.opened().iter().filter_map(|opened| opened::unfinished(opened.path())).collect()
    }

    /// Sources that are open.
    pub(crate) fn opened(&self) -> Vec<Arc<Opened>> {
        self.openings.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn watch_file(&self, path: &Path) {
        self.watched(path, |watch| watch.add_file(path));
    }

    fn watch_folder(&self, path: &Path) {
        self.watched(path, |watch| watch.add_folder(path));
    }

    fn watched(&self, path: &Path, add: impl FnOnce(&dyn Watcher) -> io::Result<()>) {
        // Without a watch, a change is seen at the next open, or when the kernel's caches expire.
        if let Some(watch) = self.watch.get().and_then(Weak::upgrade)
            && let Err(error) = add(watch.as_ref())
        {
            tracing::info!("{} is not watched: {error}", path.display());
        }
    }
}

/// How often a wait for a lock looks at its interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Locks a mutex that may be held for long.
///
/// # Errors
/// [`Interrupted`] when the request no longer waits.
fn lock<'a, T>(mutex: &'a Mutex<T>, interrupt: &Interrupt) -> Result<MutexGuard<'a, T>, Interrupted> {
    loop {
        if let Some(guard) = mutex.try_lock_for(LOOK) {
            return Ok(guard);
        }
        interrupt.check()?;
    }
}

/// Makes a cache of the `most` values used last. It takes no memory while it is empty: each directory has one.
fn last_used<K: Hash + Eq, V>(most: NonZeroUsize) -> LruCache<K, V> {
    let mut values = LruCache::unbounded();
    values.resize(most);
    values
}
