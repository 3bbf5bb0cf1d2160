//! Openings of a source: one for each state of the file.

mod first_paths;
mod maker;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;

use first_paths::FirstPaths;
pub use maker::Maker;

use super::in_use::InUse;
use super::{Error, Session, last_used, lock, rules};
use crate::catalogue::ObjectId;
use crate::dialects::{Claims, Here};
use crate::formats::{self, Format, TableFile};
use crate::h5::{self, Client};
use crate::query::Selection;
use crate::source::{self, Interrupt, Source, Stamp, is_address};
use crate::store::{self, Damage, File, Opening, Store};
use crate::table::{Finding, SearchIndex, Table, did_you_mean};

/// Most selections kept per source. Each takes four bytes per 65,536 rows of its table, and its bitmap as long as there
/// is room.
const MOST_SELECTIONS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Most attempts to open a file that is being rewritten.
const MOST_ATTEMPTS: u32 = 3;

/// Why a source cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file itself cannot be opened or read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The file has no bytes.
    #[error("{path}: the file is empty", path = .0.display())]
    Empty(PathBuf),
    /// No signature of a known format is at an offset where it may be.
    #[error(
        "{path}: not an HDF5 file, nor of another known format (Trevni){relative}",
        path = .path.display()
    )]
    UnknownFormat {
        /// Path of the file.
        path: PathBuf,
        /// The remark of [`Format::relative`].
        relative: String,
    },
    /// A file that is one table cannot be opened.
    #[error("{path}: {error}", path = .path.display())]
    Table {
        /// Path of the file.
        path: PathBuf,
        /// Why it cannot be opened.
        error: store::Error,
    },
    /// The root group cannot be listed.
    #[error("{path}: cannot be read as HDF5: {reason}", path = .path.display())]
    Root {
        /// Path of the file.
        path: PathBuf,
        /// Why its root group cannot be listed.
        reason: String,
    },
    /// No file in a folder has a known format.
    #[error("{path}: there is no HDF5 file in this folder, nor one of another known format", path = .0.display())]
    NoFiles(PathBuf),
    /// A folder in a store shows nothing.
    #[error("{path}: {}", shows_nothing(*.objects, .above), path = .path.display())]
    NoObjects {
        /// Its address, which may have a pattern.
        path: PathBuf,
        /// How many objects it has.
        objects: u64,
        /// The address of the folder itself.
        above: PathBuf,
    },
    /// The file is one part of an HDF5 file that is stored in several.
    #[error("{path}: {what}", path = .path.display())]
    Part {
        /// Path of the part.
        path: PathBuf,
        /// The whole that it belongs to, and what to do.
        what: String,
    },
    /// libhdf5 cannot open the file.
    #[error("{path}: cannot be read as HDF5: {reason}", path = .path.display(), reason = in_words(.error))]
    Hdf5 {
        /// Path of the file.
        path: PathBuf,
        /// Why libhdf5 cannot open it.
        error: h5::Error,
    },
    /// None of several sources can be shown.
    #[error("{first}; none of the {others} other sources can be mounted either")]
    NoSource {
        /// The error of the first source.
        first: Box<OpenError>,
        /// Number of the others.
        others: usize,
    },
    /// Two sources would have the same name in the mount.
    #[error("{first} and {second} would both be shown as {name}", first = .first.display(), second = .second.display())]
    SameName {
        /// The source that came first.
        first: PathBuf,
        /// The other source.
        second: PathBuf,
        /// The base name that both have.
        name: String,
    },
}

/// Suggests what may help with an address.
fn of_store(address: &Path, kind: std::io::ErrorKind) -> &'static str {
    let is_web = address.as_os_str().as_bytes().starts_with(b"http");
    match kind {
        std::io::ErrorKind::NotFound if !is_web => " (the address of a folder ends with a slash)",
        std::io::ErrorKind::PermissionDenied if is_web => {
            " (a signed address works for a time, and with all behind its `?`)"
        }
        std::io::ErrorKind::PermissionDenied => " (--profile names credentials, --anonymous asks without)",
        _ => "",
    }
}

/// Why a folder in a store shows nothing.
fn shows_nothing(objects: u64, above: &Path) -> String {
    match objects {
        0 => "no object has such an address".to_owned(),
        _ => format!("no object here has a usual name, such as a.h5 or a.nc; {}* shows all {objects}", above.display()),
    }
}

/// Why libhdf5 cannot open a file; if the file is truncated, how much of it is there.
fn in_words(error: &h5::Error) -> String {
    let text = error.to_string();
    let numbers = ["truncated file: eof = ", "stored_eof = "].map(|before| {
        let behind = text.split_once(before)?.1;
        behind.split(|character: char| !character.is_ascii_digit()).next()?.parse::<u64>().ok()
    });
    match numbers {
        [Some(there), Some(all)] => format!("the file is truncated: {there} of {all} bytes are there"),
        _ => text,
    }
}

impl OpenError {
    /// Suggests the name of a file that exists beside a missing source, or what a store may want; empty for any other
    /// error.
    pub fn meant(&self) -> String {
        let OpenError::Source(source::Error::Io { path, error }) = self else { return String::new() };
        if is_address(path) {
            return of_store(path, error.kind()).to_owned();
        }
        if error.kind() != std::io::ErrorKind::NotFound {
            return String::new();
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The part behind a colon was meant as a path within the file.
        let name = name.split(':').next().unwrap_or_default();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        did_you_mean(name, beside.map(|entry| entry.file_name().to_string_lossy().into_owned()))
    }

    /// Whether the open failed because its requester is no longer waiting.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            OpenError::Hdf5 { error: h5::Error::Interrupted, .. }
                | OpenError::Table { error: store::Error::Interrupted(_), .. }
                | OpenError::Source(source::Error::Interrupted(_))
        )
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Source(source::Error::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                Error::NotFound
            }
            OpenError::Source(source::Error::Changed(_)) => Error::Stale,
            interrupted if interrupted.is_interrupted() => Error::Interrupted,
            other => Error::Io(other.to_string()),
        }
    }
}

/// The content of an opened source.
#[derive(Debug)]
enum Content {
    /// A tree of objects.
    Hdf5(Arc<File>),
    /// The one table of the file.
    Table(Arc<dyn TableFile>),
}

/// One opening of a source.
#[derive(Debug)]
pub struct OpenedSource {
    session: Arc<Session>,
    content: Content,
    stamp: Stamp,
    /// Whether the mount knows that it is not current.
    is_told: AtomicBool,
    /// Shown paths of groups with several names.
    first_paths: FirstPaths,
    /// Findings of the groups looked at so far, by HDF5 path.
    findings: Mutex<std::collections::BTreeMap<String, Vec<Finding>>>,
    /// Tables listed so far, of groups in use.
    tables: Mutex<InUse<String, Table>>,
    /// Claims on the groups whose directories are in use, by HDF5 path.
    claims: Mutex<InUse<String, Claims>>,
    /// Groups of made-up tables in use, by HDF5 path.
    makers: Mutex<InUse<String, Maker>>,
    /// LRU of selections by key, each with the path of its table and its path below `where/`.
    selections: Mutex<LruCache<String, RequestedSelection>>,
}

/// A selection in the cache.
#[derive(Clone, Debug)]
pub struct RequestedSelection {
    /// HDF5 path of the table.
    pub table: String,
    /// The path below `where/`.
    pub path: String,
    /// The selected rows.
    pub selection: Arc<Selection>,
}

impl OpenedSource {
    fn open(session: &Arc<Session>, path: &Path, interrupt: &Interrupt) -> Result<Arc<Self>, OpenError> {
        let mut attempt = 1;
        loop {
            match Self::try_open(session, path, interrupt) {
                // Two rewrites within the time of one open are rare.
                Err(OpenError::Source(source::Error::Changed(_))) if attempt < MOST_ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn try_open(session: &Arc<Session>, path: &Path, interrupt: &Interrupt) -> Result<Arc<Self>, OpenError> {
        let source = Arc::new(session.opener.open(path, interrupt)?);
        if let Some(finding) = unfinished(&source) {
            tracing::warn!("{}: {}", path.display(), finding.found);
        }
        // Checked here for an error message that users understand; libhdf5 has none.
        if source.identity().size == 0 {
            return Err(OpenError::Empty(path.to_owned()));
        }
        session.store.kept().compare(&source, interrupt)?;
        let format = Format::of(&source, interrupt)?.ok_or_else(|| {
            let relative = Format::relative(&source, interrupt);
            OpenError::UnknownFormat { path: path.to_owned(), relative }
        })?;
        let content = match format {
            Format::Hdf5 => {
                let client = Arc::new(Client::new(source.clone(), session.workers.clone()));
                let file = File::open(session.store.clone(), source.clone(), client, interrupt);
                let hdf5 = |error| OpenError::Hdf5 { path: path.to_owned(), error };
                let file = file.map_err(|error| match error {
                    h5::Error::Source(error) => {
                        Arc::try_unwrap(error).map_or_else(|error| hdf5(h5::Error::Source(error)), OpenError::Source)
                    }
                    h5::Error::Interrupted => hdf5(error),
                    error => match Format::part(&source, interrupt) {
                        Some(what) => OpenError::Part { path: path.to_owned(), what },
                        None => hdf5(error),
                    },
                })?;
                // The answers of libhdf5 match the identity only if the file has not changed since.
                if !file.info().swmr {
                    source.check()?;
                }
                Content::Hdf5(file)
            }
            other => {
                let file = formats::open(other, &session.store, &source, interrupt);
                Content::Table(file.map_err(|error| match error {
                    store::Error::Source(error) => OpenError::Source(error),
                    error => OpenError::Table { path: path.to_owned(), error },
                })?)
            }
        };
        let stamp = source.stat()?.stamp;
        let opened = Arc::new(Self {
            session: session.clone(),
            content,
            stamp,
            is_told: AtomicBool::new(false),
            first_paths: FirstPaths::default(),
            findings: Mutex::default(),
            tables: Mutex::default(),
            selections: Mutex::new(last_used(MOST_SELECTIONS)),
            claims: Mutex::default(),
            makers: Mutex::default(),
        });
        let mut openings = session.openings.lock();
        openings.retain(|opening| opening.strong_count() > 0);
        openings.push(Arc::downgrade(&opened));
        Ok(opened)
    }

    /// The session that the opening belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The part that is independent of the format: bytes, and facts learnt about them.
    pub fn opening(&self) -> &Arc<Opening> {
        match &self.content {
            Content::Hdf5(file) => file.opening(),
            Content::Table(file) => file.opening(),
        }
    }

    /// The store for decoded values.
    pub fn store(&self) -> &Arc<Store> {
        self.opening().store()
    }

    /// The HDF5 file; `None`: another format.
    pub fn hdf5(&self) -> Option<&Arc<File>> {
        match &self.content {
            Content::Hdf5(file) => Some(file),
            Content::Table(_) => None,
        }
    }

    /// The HDF5 file, for reaching groups and datasets.
    ///
    /// # Errors
    /// [`Error::NotFound`] for another format, which has neither.
    pub fn file(&self) -> Result<&Arc<File>, Error> {
        self.hdf5().ok_or(Error::NotFound)
    }

    /// The file that is one table; `None`: HDF5.
    pub fn table_file(&self) -> Option<&Arc<dyn TableFile>> {
        match &self.content {
            Content::Hdf5(_) => None,
            Content::Table(file) => Some(file),
        }
    }

    /// Path of the source.
    pub fn path(&self) -> &Path {
        self.opening().source().path()
    }

    /// Whether the source's path still leads to the state of the file that was opened. Growth of a file that a writer
    /// has open in SWMR mode does not count: readers see it as it was when it was opened.
    pub fn is_current(&self) -> bool {
        let source = self.opening().source();
        match source.identity_now() {
            Ok(now) if now == source.identity() => true,
            Ok(now) if self.hdf5().is_some_and(|file| file.info().swmr) => source.identity().may_grow_into(&now),
            _ => {
                if is_address(source.path()) && !self.is_told.swap(true, Ordering::Relaxed) {
                    self.session.tell_changed(source.path());
                }
                false
            }
        }
    }

    /// The file's times and mode.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Logs an error of reading the file, for `.hepfs/errors`; skips interrupted and stale requests.
    pub fn log(&self, error: &Error) {
        if matches!(error, Error::Store(_) | Error::Io(_)) {
            self.session.errors.add(&format!("{}: {error}", self.path().display()));
        }
    }

    /// Records the findings of a group, for `.hepfs/findings`.
    pub fn report(&self, path: &str, findings: Vec<Finding>) {
        if !findings.is_empty() {
            self.findings.lock().insert(path.to_owned(), findings);
        }
    }

    /// Records a table, for its search indexes in `.hepfs/indexes` and its oddities in `.hepfs/findings`.
    pub fn watch_table(&self, table: &Arc<Table>) {
        self.tables.lock().insert(table.path.clone(), table);
    }

    /// Search indexes of the tables listed so far, each with the table's path.
    pub fn search_indexes(&self) -> Vec<(String, SearchIndex)> {
        let mut tables: Vec<_> = self.tables.lock().iter().map(|(path, table)| (path.clone(), table)).collect();
        tables.sort_by(|a, b| a.0.cmp(&b.0));
        let indexes = tables.into_iter().flat_map(|(path, table)| {
            table.indexes.iter().map(|index| (path.clone(), index.clone())).collect::<Vec<_>>()
        });
        indexes.collect()
    }

    /// The selection of this key, made at the first request and kept in an LRU.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn selection(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<RequestedSelection, Error>,
    ) -> Result<Arc<Selection>, Error> {
        let mut selections = self.selections.lock();
        if let Some(known) = selections.get(key) {
            return Ok(known.selection.clone());
        }
        let asked = make()?;
        let selection = asked.selection.clone();
        // The evicted selection frees its memory outside the lock.
        let _old = selections.push(key.to_owned(), asked);
        drop(selections);
        Ok(selection)
    }

    /// The selections in the LRU, the last one first.
    pub fn selections(&self) -> Vec<RequestedSelection> {
        self.selections.lock().iter().map(|(_, asked)| asked.clone()).collect()
    }

    /// All findings so far, those on values last.
    pub fn findings(&self) -> Vec<Finding> {
        // A journal beside a file comes and goes independently of the file.
        let (hdf5, table) = (self.hdf5(), self.table_file());
        let damaged = hdf5.map(|file| file.damage()).unwrap_or_default().into_iter().map(|(path, damage)| {
            let Damage { chunks, first, reason } = damage;
            let found = format!("{chunks} chunks cannot be read; the first is chunk {first}: {reason}");
            Finding::new(path, &rules::CHUNK_INDEX, found)
        });
        let dialects = self.session.dialects.0;
        let unfollowed = hdf5.map(|file| file.unfollowed()).unwrap_or_default();
        let unfollowed = unfollowed.into_iter().filter_map(|(path, reason)| {
            let mut rules = dialects.iter().filter_map(|dialect| dialect.about().mappings);
            let (_, rule) = rules.find(|(below, _)| path.starts_with(below))?;
            Some(Finding::new(path, rule, reason))
        });
        let known: Vec<Finding> = self.findings.lock().values().flatten().cloned().collect();
        let met = table.map(|file| file.findings()).unwrap_or_default();
        let found =
            unfinished(self.opening().source()).into_iter().chain(known).chain(damaged).chain(unfollowed).chain(met);
        let mut found: Vec<Finding> = found.collect();
        let tables: Vec<_> = self.tables.lock().iter().map(|(_, table)| table).collect();
        let mut of_values: Vec<_> = tables.iter().flat_map(|table| table.met()).collect();
        // A column may belong to several tables.
        of_values.sort_by(|a, b| (&a.path, a.rule.id, &a.found).cmp(&(&b.path, b.rule.id, &b.found)));
        of_values.dedup();
        found.append(&mut of_values);
        found
    }

    /// The claims on a group and its members. As long as a caller holds the answer, the dialects are not asked again.
    pub(super) fn claims(&self, here: &Here<'_>) -> Arc<Claims> {
        // A writer in SWMR mode may add to the group, so such claims are not kept.
        let lasts = here.file.opening().has_one_content();
        if lasts && let Some(known) = self.claims.lock().get(here.path) {
            return known;
        }
        let claims = Arc::new(self.session.dialects.claims(here));
        if lasts && !here.interrupt.is_raised() {
            self.claims.lock().insert(here.path.to_owned(), &claims);
        }
        claims
    }

    /// Link names from the root to a group with several hard links, along the path at which it is a directory: the
    /// first in breadth-first order. Its other names are symbolic links. `None`: the group is not shown.
    ///
    /// # Errors
    /// If the request was interrupted.
    pub(super) fn first_path(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Option<VecDeque<BString>>, Error> {
        self.first_paths.of(id, self, interrupt)
    }
}

/// The finding on an unfinished change of the file, if a journal lies beside it.
pub(super) fn unfinished(source: &Source) -> Option<Finding> {
    // Nothing lies beside an object.
    source.folder()?;
    let journal = h5::journal_of(source.path())?;
    let found = format!(
        "{}: a run of `hepfs index`, `import` or `convert` changes this file now, or ended before it was done: the next \
         one restores the file",
        journal.display()
    );
    Some(Finding::new("/", &rules::UNFINISHED, found))
}

/// A source by its path, reopened whenever the file there changes.
#[derive(Debug)]
pub struct SourceFile {
    session: Arc<Session>,
    path: PathBuf,
    opened: Mutex<Option<Arc<OpenedSource>>>,
    /// The last answer to `stat`, repeated once the file is gone.
    last: Mutex<Option<Stamp>>,
}

impl SourceFile {
    /// A source that is opened at first use.
    pub fn new(session: Arc<Session>, path: PathBuf) -> Arc<Self> {
        Arc::new(Self { session, path, opened: Mutex::new(None), last: Mutex::new(None) })
    }

    /// The session that the source belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The file's times and mode; `None`: there never was such a file. Never slow.
    pub fn stamp(&self) -> Option<Stamp> {
        // An open of the file may hold the lock for long.
        let current = self.opened.try_lock().and_then(|opened| opened.as_ref().filter(|o| o.is_current()).cloned());
        let now = match current {
            Some(opened) => Some(opened.stamp),
            None => self.session.opener.stat(&self.path).ok().map(|found| found.stamp),
        };
        let mut last = self.last.lock();
        *last = now.or(*last);
        *last
    }

    /// Path of the source.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is open, in its present state.
    pub fn is_open(&self) -> bool {
        // An open of the file may hold the lock for long.
        let opened = self.opened.try_lock();
        opened.is_some_and(|opened| opened.as_ref().is_some_and(|opened| opened.is_current()))
    }

    /// Closes the file, unless its opening is in use.
    pub fn release(&self) {
        let opened = self.opened.try_lock();
        let unused = opened.and_then(|mut opened| opened.take_if(|opened| Arc::strong_count(opened) == 1));
        // Closing may take long: outside the lock.
        drop(unused);
    }

    /// The opening of the file as it is now.
    ///
    /// # Errors
    /// If the file no longer exists, or has no known format.
    pub fn current(&self, interrupt: &Interrupt) -> Result<Arc<OpenedSource>, OpenError> {
        let mut opened = lock(&self.opened, interrupt)
            .map_err(|_| OpenError::Hdf5 { path: self.path.clone(), error: h5::Error::Interrupted })?;
        if let Some(opened) = &*opened
            && opened.is_current()
        {
            return Ok(opened.clone());
        }
        // The old opening lives on as long as it has readers.
        *opened = None;
        // Watch first, then open, so that no change goes unnoticed.
        self.session.watch_file(&self.path);
        let fresh = OpenedSource::open(&self.session, &self.path, interrupt)?;
        *opened = Some(fresh.clone());
        Ok(fresh)
    }
}
