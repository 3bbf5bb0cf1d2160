//! The tree of names over HDF5 files: what each directory holds and which view each file is.
//!
//! A node belongs to one opening of a source ([`Opened`]). When the file under the source's path becomes another one,
//! its nodes stop being current, the kernel asks again from the top, and a new opening answers.

mod changes;
mod contents;
mod datasets;
mod directory;
mod file;
mod files;
mod folder;
mod in_use;
mod listing;
mod live;
mod named;
mod opened;
pub mod rules;
mod selections;
mod verifier;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use bstr::BString;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

use super::Error;
use super::node::{Attributes, Children, Kind, Node, NodeRef, Xattrs};
use super::watch::Watch;
use crate::dialects::{Checks, Dialects};
use crate::h5;
use crate::indexes::Trust;
use crate::source::{Interrupt, Interrupted};
use crate::store::{File, NanPolicy, Reservation, Store};
use crate::table::{Finding, rule_of};
use crate::views::text::{BlockCache, CsvOptions};
use crate::views::{Effort, Size};

pub use crate::views::{printable, printable_json};
pub use folder::is_known;
pub use listing::Formats;
pub use opened::{OpenError, Opened, SourceFile};
pub use verifier::Verifier;

/// Most rendered text kept, in bytes.
const MOST_RENDERED: u64 = 64 << 20;

/// What users may choose of views.
#[derive(Clone, Debug)]
pub struct ViewOptions {
    /// How CSV is written.
    pub csv: CsvOptions,
    /// Whether Parquet files tell what is known of their values when they are opened (`--parquet-stats`). Without it a
    /// file has the same bytes at each mount, on each machine.
    pub parquet_statistics: bool,
    /// Whether times are shown as instants (`--times`): for the store, which makes the rows.
    pub times: bool,
    /// What NaN in a column of floats means (`--nan`): for the store as well.
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

impl Default for ViewOptions {
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

/// State that all nodes of a mount share.
#[derive(Debug)]
pub struct Context {
    /// Decoded chunks and their budget.
    pub store: Arc<Store>,
    /// Rendered text.
    pub blocks: Arc<BlockCache>,
    /// The part of the store's budget that rendered text may take.
    _blocks_share: Option<Reservation>,
    /// How CSV is written.
    pub csv: Arc<CsvOptions>,
    /// Whether Parquet files tell statistics.
    pub parquet_statistics: bool,
    /// Which search indexes are used.
    pub trust: Trust,
    /// Verifies search indexes that selections might have used.
    pub verifier: Verifier,
    /// Ways of keeping tables that are known.
    pub dialects: Dialects,
    /// Which files are shown.
    pub formats: Formats,
    /// Which rules tables are held against.
    pub checks: Checks,
    /// Links of a group whose members are described when it is listed.
    pub most_described: usize,
    /// Settings of the HDF5 workers.
    pub workers: h5::Options,
    /// What went wrong while serving, for `.hepfs/errors`.
    pub errors: live::ErrorLog,
    /// Sources opened so far, for `.hepfs/findings`.
    openings: Mutex<Vec<Weak<Opened>>>,
    /// Files that datasets leave out or cast, likewise, by the table's path.
    datasets: Mutex<BTreeMap<String, Vec<(PathBuf, Finding)>>>,
    /// Values that casts of parts of datasets did not keep, by the table's path and the partition.
    casts: Mutex<BTreeMap<(String, BString), Casts>>,
    /// Tells of changes, once there is a mount.
    watch: OnceLock<Weak<Watch>>,
}

impl Context {
    /// A context over a store; views are the usual.
    pub fn new(store: Arc<Store>, workers: h5::Options) -> Arc<Self> {
        Self::with_views(store, workers, ViewOptions::default())
    }

    /// A context over a store.
    pub fn with_views(store: Arc<Store>, workers: h5::Options, views: ViewOptions) -> Arc<Self> {
        // Blocks of about 1 MiB that one reader or a few go through in order: a small part of the budget serves them.
        let share = (store.budget().limit() / 8).min(MOST_RENDERED);
        let blocks = Arc::new(BlockCache::new(usize::try_from(share).unwrap_or(usize::MAX)));
        let blocks_share = store.budget().try_reserve(share);
        Arc::new(Self {
            store,
            blocks,
            _blocks_share: blocks_share,
            csv: Arc::new(views.csv),
            parquet_statistics: views.parquet_statistics,
            trust: views.trust,
            verifier: Verifier::default(),
            dialects: views.dialects,
            formats: views.formats,
            checks: views.checks,
            most_described: views.most_described,
            workers: h5::Options { attributes: views.dialects.attributes().into(), ..workers },
            errors: live::ErrorLog::default(),
            openings: Default::default(),
            datasets: Default::default(),
            casts: Default::default(),
            watch: OnceLock::new(),
        })
    }

    /// Watches every folder that is listed and every file that is opened from now on, and the files open already.
    pub fn watch_with(&self, watch: &Arc<Watch>) {
        self.watch.set(Arc::downgrade(watch)).ok();
        self.opened().iter().for_each(|opened| self.watch_file(opened.path()));
    }

    /// Writes the answers of the HDF5 workers for all open sources to the cache folder, as far as they are not there
    /// yet.
    pub fn save(&self) {
        self.files().iter().for_each(|file| file.save_answers());
    }

    /// The HDF5 files that are open.
    pub fn files(&self) -> Vec<Arc<File>> {
        self.opened().iter().filter_map(|opened| opened.hdf5().cloned()).collect()
    }

    /// Rules that the groups listed so far break, with the source of each.
    pub fn findings(&self) -> Vec<(PathBuf, Finding)> {
        let of_one = |opened: &Arc<Opened>| {
            let path = opened.path().to_owned();
            opened.findings().into_iter().map(move |finding| (path.clone(), finding))
        };
        self.opened().iter().flat_map(of_one).collect()
    }

    /// What datasets say of files: which are left out or cast, and which values a cast did not keep.
    pub fn of_datasets(&self) -> Vec<(PathBuf, Finding)> {
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
    pub fn unfinished(&self) -> Vec<Finding> {
        self.opened().iter().filter_map(|opened| opened::unfinished(opened.path())).collect()
    }

    /// The source that was opened last. Its findings are told for as long as it is held.
    pub fn newest(&self) -> Option<Arc<Opened>> {
        self.openings.lock().last().and_then(Weak::upgrade)
    }

    /// Sources that are open.
    fn opened(&self) -> Vec<Arc<Opened>> {
        self.openings.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn watch_file(&self, path: &Path) {
        self.watched(path, |watch| watch.add_file(path));
    }

    fn watch_folder(&self, path: &Path) {
        self.watched(path, |watch| watch.add_folder(path));
    }

    fn watched(&self, path: &Path, add: impl FnOnce(&Watch) -> std::io::Result<()>) {
        // Without a watch, a change is seen at the next open, or when the kernel's caches expire.
        if let Some(watch) = self.watch.get().and_then(Weak::upgrade)
            && let Err(error) = add(&watch)
        {
            tracing::info!("{} is not watched: {error}", path.display());
        }
    }
}

/// The root of a mount of these sources: one file shows its root group, anything else one directory each.
///
/// # Errors
/// Where no source given by name can be opened, as a file or as a folder with a file of a format that is known. Of
/// several, those that cannot are in `.hepfs/errors`.
pub fn root(context: &Arc<Context>, sources: &[PathBuf], interrupt: &Interrupt) -> Result<NodeRef, OpenError> {
    let (shown, files): (NodeRef, Option<Arc<dyn folder::Sources>>) = match sources {
        [only] if !only.is_dir() => (Arc::new(folder::FileRoot::open(context, only, interrupt)?), None),
        [only] => {
            let folder = Arc::new(folder::FolderNode::open(context, only)?);
            (folder.clone(), Some(folder))
        }
        several => {
            let several = Arc::new(folder::SeveralNode::new(context.clone(), several, interrupt)?);
            (several.clone(), Some(several))
        }
    };
    let datasets = files.filter(|_| datasets::are_shown(context.formats)).map(|files| datasets::root(context, files));
    Ok(Arc::new(live::RootNode::new(context.clone(), shown, datasets)))
}

/// The datasets of these sources, as a mount of them has in `.datasets`. No source is opened before it is asked for.
///
/// # Errors
/// Where a source is not there, or was given twice.
pub fn datasets(context: &Arc<Context>, sources: &[PathBuf]) -> Result<NodeRef, OpenError> {
    let sources: Arc<dyn folder::Sources> = match sources {
        [only] if only.is_dir() => Arc::new(folder::FolderNode::new(context.clone(), only.clone())),
        several => Arc::new(folder::NamedSources::new(context, several)?),
    };
    Ok(datasets::root(context, sources))
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

/// Attributes of a node that belongs to no HDF5 file.
fn plain_attributes(kind: Kind, time: SystemTime) -> Attributes {
    let mode = if kind == Kind::Directory { 0o555 } else { 0o444 };
    Attributes { kind, mode, mtime: time, ctime: time, atime: time }
}

/// A symbolic link.
struct LinkNode {
    opened: Arc<Opened>,
    target: BString,
}

impl Node for LinkNode {
    fn attributes(&self) -> Attributes {
        self.opened.attributes(Kind::Symlink)
    }

    fn is_current(&self) -> bool {
        self.opened.is_current()
    }

    fn readlink(&self) -> Result<BString, Error> {
        Ok(self.target.clone())
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.target.len() as u64))
    }
}
