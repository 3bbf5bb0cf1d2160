//! Files and folders that the user named: the files that they contain, and their shown names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::in_use::InUse;
use super::{Directory, Error, OpenError, Session, SourceFile, datasets, live, names};
use crate::formats::{Format, is_usual_name};
use crate::source::{self, Interrupt, Listed, Source, Stamp, mounts};
use crate::store::on_threads;

/// Most names examined before a mount to find out whether a folder contains a file to show; takes some tenths of a
/// second.
const MOST_LOOKED_AT: usize = 10_000;

/// Most objects in stores that are opened at once: as many as there may be workers.
pub(super) const MOST_OBJECTS_AT_ONCE: usize = 8;

/// The shown name of a folder or file. It may lie in the root beside `.hepfs`, so reserved names are escaped.
fn shown_name(name: &OsStr) -> BString {
    let plain = names::encode_directory(name.as_bytes());
    let is_reserved = [live::DIRECTORY, datasets::DIRECTORY].iter().any(|reserved| plain == *reserved);
    if is_reserved { names::encode_reserved(name.as_bytes()) } else { plain }
}

/// Whether a path leads to a regular file of a known format, or to one that hepfs has no descriptor left for: then
/// opening it says so.
pub fn is_known(path: &Path) -> bool {
    match Source::open(path).and_then(|source| Format::of(&source, &Interrupt::new())) {
        Ok(format) => format.is_some(),
        Err(source::Error::Io { error, .. }) => error.raw_os_error() == Some(libc::EMFILE),
        Err(_) => false,
    }
}

/// Finds the file with a shown name without listing the folder; `None` for folders and for names with escapes.
fn file_called(folder: &Path, name: &[u8]) -> Option<PathBuf> {
    let own = OsStr::from_bytes(name);
    let path = folder.join(own);
    // A name without escapes is the shown name of that file alone.
    (shown_name(own) == name && path.symlink_metadata().is_ok_and(|found| !found.is_dir())).then_some(path)
}

/// Lists a folder: each path, and whether it is a folder. Links to folders do not count as folders, since they may lead
/// in circles. Mount points of hepfs are skipped: a mount in its own folder would contain itself without end.
fn contents(folder: &Path) -> io::Result<impl Iterator<Item = (PathBuf, bool)>> {
    let real = folder.canonicalize()?;
    let hidden = mounts::mountpoints().unwrap_or_default();
    let listed = std::fs::read_dir(folder)?.flatten();
    let shown = listed.filter(move |entry| !hidden.contains(&real.join(entry.file_name())));
    Ok(shown.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))))
}

/// Whether a folder contains a file of a known format, at any depth. If it has very many other files, the answer is
/// yes.
fn holds_known(folder: &Path) -> bool {
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = folders.pop_front() {
        for (path, is_folder) in contents(&folder).into_iter().flatten() {
            seen += 1;
            if is_folder {
                folders.push_back(path);
            } else if is_known(&path) {
                return true;
            }
            if seen >= MOST_LOOKED_AT {
                return true;
            }
        }
    }
    false
}

/// A file or folder that is shown as a directory.
#[derive(Clone)]
pub(crate) enum SourceEntry {
    File(Arc<FileRoot>),
    Folder(Arc<Folder>),
}

impl SourceEntry {
    /// Whether listings include it. A source that could not be opened at the mount is listed like a file found in a
    /// folder.
    fn is_shown(&self) -> bool {
        match self {
            SourceEntry::File(file) => file.named || is_known(file.path()),
            SourceEntry::Folder(_) => true,
        }
    }
}

/// A container of files and folders: a folder, or several sources.
pub(crate) trait Sources: Send + Sync {
    /// The entry with this shown name.
    ///
    /// # Errors
    /// [`Error::NotFound`]: no entry has this name.
    fn found(&self, name: &[u8], interrupt: &Interrupt) -> Result<SourceEntry, Error>;

    /// All entries, by shown name.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    fn all(&self, interrupt: &Interrupt) -> Result<Vec<(BString, SourceEntry)>, Error>;
}

/// All files at any depth, sorted by their shown paths. A subfolder that cannot be listed is skipped.
///
/// # Errors
/// If the request was interrupted, or `top` cannot be listed.
pub(crate) fn files(top: &dyn Sources, interrupt: &Interrupt) -> Result<BTreeMap<BString, Arc<FileRoot>>, Error> {
    let mut files = BTreeMap::new();
    let mut waiting: Vec<(BString, SourceEntry)> = top.all(interrupt)?;
    while let Some((path, found)) = waiting.pop() {
        interrupt.check()?;
        match found {
            SourceEntry::File(file) => drop(files.insert(path, file)),
            SourceEntry::Folder(folder) => {
                let below = folder.all(interrupt).inspect_err(Error::log).unwrap_or_default();
                waiting.extend(below.into_iter().map(|(name, found)| (bstr::join("/", [&path, &name]).into(), found)));
            }
        }
    }
    Ok(files)
}

/// The root group of the file that has a source's path now.
pub(crate) struct FileRoot {
    source: Arc<SourceFile>,
    group: Mutex<Option<Arc<Directory>>>,
    /// Path in the mount.
    shown: BString,
    /// Whether the user named it: then it stays when the file goes. A file found in a folder goes with its file.
    named: bool,
}

impl FileRoot {
    /// A source found in a folder.
    fn found(source: Arc<SourceFile>, shown: BString) -> Self {
        Self { source, group: Mutex::new(None), shown, named: false }
    }

    /// Opens a source that the user named, whose path in the mount is `shown`, and lists its root, so that a mount
    /// fails early and with the reason.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(session: &Arc<Session>, path: &Path, shown: BString, interrupt: &Interrupt) -> Result<Self, OpenError> {
        let source = SourceFile::new(session.clone(), path.to_owned());
        let root = Self { source, group: Mutex::new(None), shown, named: true };
        let group = root.current(interrupt)?;
        group.load(interrupt).map_err(|error| OpenError::Root { path: path.to_owned(), reason: error.to_string() })?;
        Ok(root)
    }

    /// Path of the source.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The root group of the file.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn group(&self, interrupt: &Interrupt) -> Result<Arc<Directory>, Error> {
        self.current(interrupt).map_err(|error| {
            if !error.is_interrupted() {
                self.source.session().errors.add(&error.to_string());
            }
            error.into()
        })
    }

    /// The root group, for a program that looks into this directory.
    ///
    /// # Errors
    /// [`Error::Stale`] if the user named the file and it is gone.
    pub fn shown(&self, interrupt: &Interrupt) -> Result<Arc<Directory>, Error> {
        self.group(interrupt).map_err(|error| match error {
            // The mount point stays, whatever happened to the file.
            Error::NotFound if self.named => Error::Stale,
            error => error,
        })
    }

    /// Whether the file is open, in its present state.
    fn is_open(&self) -> bool {
        self.source.is_open()
    }

    /// Closes a file found in a folder, unless it is in use.
    pub fn release(&self) {
        if self.named {
            return;
        }
        // The group may close the file, which may take long: outside the lock.
        let group = self.group.lock().take_if(|group| Arc::strong_count(group) == 1);
        drop(group);
        self.source.release();
    }

    /// The root group, if someone asked for it before.
    pub fn known(&self) -> Option<Arc<Directory>> {
        self.group.lock().clone()
    }

    /// The file's times and mode; `None`: there never was such a file. Never slow.
    pub fn stamp(&self) -> Option<Stamp> {
        self.source.stamp()
    }

    /// Whether the file exists, or the user named it.
    pub fn is_current(&self) -> bool {
        self.named || self.source.session().opener.stat(self.path()).is_ok_and(|found| found.is_file())
    }

    fn current(&self, interrupt: &Interrupt) -> Result<Arc<Directory>, OpenError> {
        let opened = self.source.current(interrupt)?;
        let mut group = self.group.lock();
        match &*group {
            Some(group) if Arc::ptr_eq(group.opened(), &opened) => Ok(group.clone()),
            _ => Ok(group.insert(Arc::new(Directory::root(opened, self.shown.clone()))).clone()),
        }
    }
}

/// A folder: its folders and its files of known formats, as they are when it is listed. In a store, where a look at
/// each object would be a request, names tell the format, unless the address has a pattern.
pub(crate) struct Folder {
    session: Arc<Session>,
    path: PathBuf,
    /// Path in the mount.
    shown: BString,
    files: Mutex<InUse<BString, FileRoot>>,
    folders: Mutex<InUse<BString, Folder>>,
    /// Whether the user named it: then it stays, whatever happens to it.
    named: bool,
    since: SystemTime,
    /// The members of a folder in a store, as last listed.
    stored: Mutex<Option<Arc<StoredMembers>>>,
}

/// The members of a folder in a store.
struct StoredMembers {
    /// The list from which they come.
    listed: Arc<Vec<Listed>>,
    /// By their shown names.
    members: BTreeMap<BString, StoredMember>,
}

struct StoredMember {
    path: PathBuf,
    is_folder: bool,
    /// Whether listings have it: a pattern chose it, or its name is one of a known format. Others answer by name.
    is_shown: bool,
}

impl StoredMembers {
    /// Those that match a pattern, in the folder at the address `above`. Where an object and a folder have one name,
    /// the object has it; `hidden` is called with the address of the folder.
    fn new(listed: Arc<Vec<Listed>>, (above, pattern): (&Path, &[u8]), mut hidden: impl FnMut(&Path)) -> Self {
        let mut members: BTreeMap<BString, StoredMember> = BTreeMap::new();
        for member in listed.iter().filter(|member| source::matches(&member.name, pattern)) {
            let Some(stat) = member.stat else { continue };
            let is_folder = stat.is_folder();
            let mut path = above.join(OsStr::from_bytes(&member.name)).into_os_string();
            path.push(if is_folder { "/" } else { "" });
            let is_shown = !pattern.is_empty() || is_folder || is_usual_name(&member.name);
            let new = StoredMember { path: path.into(), is_folder, is_shown };
            match members.entry(shown_name(OsStr::from_bytes(&member.name))) {
                Entry::Vacant(free) => _ = free.insert(new),
                Entry::Occupied(taken) if is_folder && !taken.get().is_folder => hidden(&new.path),
                Entry::Occupied(mut taken) => hidden(&taken.insert(new).path),
            }
        }
        Self { listed, members }
    }
}

impl Folder {
    pub fn new(session: Arc<Session>, path: PathBuf, shown: BString) -> Self {
        let (files, folders, since, stored) = (Mutex::default(), Mutex::default(), SystemTime::now(), Mutex::default());
        Self { session, path, shown, files, folders, named: false, since, stored }
    }

    /// Opens a folder that the user named, which must contain a file of a known format at some depth; one in a store, a
    /// file or a folder to show.
    ///
    /// # Errors
    /// [`OpenError::NoFiles`] if it contains none, [`OpenError::Source`] if the folder cannot be read.
    pub fn open(session: &Arc<Session>, path: &Path, shown: BString, interrupt: &Interrupt) -> Result<Self, OpenError> {
        let folder = Self { named: true, ..Self::new(session.clone(), path.to_owned(), shown) };
        if let Some(place @ (above, _)) = source::folder_of(path) {
            let stored = folder.stored(place, interrupt)?;
            if !stored.members.values().any(|member| member.is_shown) {
                let (objects, above) = (stored.members.len() as u64, above.to_owned());
                return Err(OpenError::NoObjects { path: path.to_owned(), objects, above });
            }
            return Ok(folder);
        }
        std::fs::read_dir(path)
            .map_err(|error| OpenError::Source(source::Error::Io { path: path.to_owned(), error }))?;
        if !holds_known(path) {
            return Err(OpenError::NoFiles(path.to_owned()));
        }
        Ok(folder)
    }

    /// Lists the folders and files, with their paths, and has the session know how many files there are.
    fn scan_all(&self, interrupt: &Interrupt) -> Result<impl Iterator<Item = (BString, PathBuf)> + use<>, Error> {
        let found = self.scan(|_| true, interrupt)?;
        let files = found.values().filter(|(_, is_folder)| !is_folder).count();
        self.session.listed.lock().insert(self.path.clone(), files as u64);
        Ok(found.into_iter().map(|(name, (path, _))| (name, path)))
    }

    /// Lists the folders and files whose shown names `choose` accepts, with their paths, and whether they are folders.
    /// Only accepted files are opened.
    fn scan(
        &self,
        choose: impl Fn(&BString) -> bool,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<BString, (PathBuf, bool)>, Error> {
        if let Some(place) = source::folder_of(&self.path) {
            let stored = self.stored_now(place, interrupt)?;
            let shown = stored.members.iter().filter(|(name, member)| member.is_shown && choose(name));
            return Ok(shown.map(|(name, of)| (name.clone(), (of.path.clone(), of.is_folder))).collect());
        }
        // Watch first, then read, so that no change goes unnoticed.
        self.session.watch_folder(&self.path);
        let listed = contents(&self.path).map_err(|error| {
            let reason = format!("{}: {error}", self.path.display());
            self.session.errors.add(&reason);
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::Stale,
                _ => Error::Io(reason),
            }
        })?;
        let named = listed.filter_map(|(path, is_folder)| Some((shown_name(path.file_name()?), path, is_folder)));
        let chosen = named.filter(|(name, path, is_folder)| choose(name) && (*is_folder || self.is_known(name, path)));
        Ok(chosen.map(|(name, path, is_folder)| (name, (path, is_folder))).collect())
    }

    /// The members of a folder in a store, which has this address and pattern.
    fn stored(&self, place: (&Path, &[u8]), interrupt: &Interrupt) -> Result<Arc<StoredMembers>, source::Error> {
        let listed = self.session.opener.list(place.0, interrupt)?;
        let mut stored = self.stored.lock();
        if let Some(stored) = stored.as_ref().filter(|stored| Arc::ptr_eq(&stored.listed, &listed)) {
            return Ok(stored.clone());
        }
        let mut unnamable =
            listed.iter().filter(|member| member.stat.is_none() && source::matches(&member.name, place.1));
        if let Some(first) = unnamable.next() {
            let others = unnamable.count();
            let more = if others == 0 { String::new() } else { format!(" and {others} more") };
            let said = "not shown, for no path can have an empty part, `.`, `..` or control characters";
            self.session.errors.add(&format!("{}: `{}`{more}: {said}", place.0.display(), first.name));
        }
        let hidden = |folder: &Path| {
            let said = "not shown: an object has the same name";
            self.session.errors.add(&format!("{}: {said}", folder.display()));
        };
        Ok(stored.insert(Arc::new(StoredMembers::new(listed, place, hidden))).clone())
    }

    /// As [`Folder::stored`], for a request of a mount or command.
    fn stored_now(&self, place: (&Path, &[u8]), interrupt: &Interrupt) -> Result<Arc<StoredMembers>, Error> {
        self.stored(place, interrupt).map_err(|error| match error {
            source::Error::Interrupted(_) => Error::Interrupted,
            error => {
                self.session.errors.add(&error.to_string());
                Error::Io(error.to_string())
            }
        })
    }

    /// As [`is_known`], without another look at a file that is open.
    fn is_known(&self, name: &BString, path: &Path) -> bool {
        let file = self.files.lock().get(name);
        file.is_some_and(|file| file.is_open()) || is_known(path)
    }

    /// When the folder last changed, or the present time if the system does not know. One in a store has no time.
    pub fn modified(&self) -> SystemTime {
        if source::is_address(&self.path) {
            return self.since;
        }
        source::stat(&self.path).map_or_else(|_| SystemTime::now(), |found| found.modified())
    }

    /// Whether the folder exists, or the user named it.
    pub fn is_current(&self) -> bool {
        self.named || self.session.opener.is_folder(&self.path)
    }

    /// Names of the folders and files in it.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self, interrupt: &Interrupt) -> Result<Vec<BString>, Error> {
        Ok(self.scan_all(interrupt)?.map(|(name, _)| name).collect())
    }

    fn made(&self, name: BString, path: PathBuf) -> SourceEntry {
        let session = self.session.clone();
        let shown = names::below(&self.shown, &name);
        if self.session.opener.is_folder(&path) {
            SourceEntry::Folder(kept(&self.folders, name, Folder::is_current, || Folder::new(session, path, shown)))
        } else {
            SourceEntry::File(kept(&self.files, name, FileRoot::is_current, || {
                FileRoot::found(SourceFile::new(session, path), shown)
            }))
        }
    }
}

/// The value of this name in use, if it is current; otherwise a new one.
fn kept<S>(
    known: &Mutex<InUse<BString, S>>,
    name: BString,
    is_current: impl Fn(&S) -> bool,
    make: impl FnOnce() -> S,
) -> Arc<S> {
    let mut known = known.lock();
    known.get(&name).filter(|one| is_current(one)).unwrap_or_else(|| {
        let one = Arc::new(make());
        known.insert(name, &one);
        one
    })
}

impl Sources for Folder {
    fn found(&self, name: &[u8], interrupt: &Interrupt) -> Result<SourceEntry, Error> {
        if let Some(place) = source::folder_of(&self.path) {
            let stored = self.stored_now(place, interrupt)?;
            let member = stored.members.get(name.as_bstr()).ok_or(Error::NotFound)?;
            return Ok(self.made(name.into(), member.path.clone()));
        }
        self.session.watch_folder(&self.path);
        if let Some(path) = file_called(&self.path, name) {
            let name = BString::from(name);
            return if self.is_known(&name, &path) { Ok(self.made(name, path)) } else { Err(Error::NotFound) };
        }
        let (name, (path, _)) = self.scan(|shown| shown == name, interrupt)?.pop_last().ok_or(Error::NotFound)?;
        Ok(self.made(name, path))
    }

    fn all(&self, interrupt: &Interrupt) -> Result<Vec<(BString, SourceEntry)>, Error> {
        Ok(self.scan_all(interrupt)?.map(|(name, path)| (name.clone(), self.made(name, path))).collect())
    }
}

/// Several sources that the user named.
pub(crate) struct SeveralSources {
    sources: BTreeMap<BString, SourceEntry>,
    since: SystemTime,
}

impl SeveralSources {
    /// When the sources were opened.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Opens all sources. One that fails is reported and does not stop the others; from then on it is treated like a
    /// file found in a folder.
    ///
    /// # Errors
    /// If two sources have the same name, or all fail to open.
    pub fn new(session: Arc<Session>, paths: &[PathBuf], interrupt: &Interrupt) -> Result<Self, OpenError> {
        let mut first: BTreeMap<BString, &PathBuf> = BTreeMap::new();
        for path in paths {
            let base = path.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
            // A source that does not exist has no canonical path: take its name as given.
            let base = base.or_else(|| path.file_name().map(ToOwned::to_owned));
            let name = shown_name(&base.unwrap_or_else(|| path.as_os_str().to_owned()));
            if let Some(first) = first.insert(name.clone(), path) {
                let (first, second) = (first.clone(), path.clone());
                return Err(OpenError::SameName { first, second, name: name.to_string() });
            }
        }
        let (mut sources, mut failures) = (BTreeMap::new(), Vec::new());
        let first: Vec<(BString, &PathBuf)> = first.into_iter().collect();
        let opened = side_by_side(&first, |(name, path)| {
            if session.opener.is_folder(path) {
                Folder::open(&session, path, name.clone(), interrupt)
                    .map(|folder| SourceEntry::Folder(Arc::new(folder)))
            } else {
                FileRoot::open(&session, path, name.clone(), interrupt).map(|file| SourceEntry::File(Arc::new(file)))
            }
        });
        for ((name, path), opened) in first.into_iter().zip(opened) {
            let found = match opened {
                Err(error) if error.is_interrupted() => return Err(error),
                Err(error) => {
                    failures.push(error);
                    if session.opener.is_folder(path) {
                        SourceEntry::Folder(Arc::new(Folder::new(session.clone(), path.clone(), name.clone())))
                    } else {
                        let source = SourceFile::new(session.clone(), path.clone());
                        SourceEntry::File(Arc::new(FileRoot::found(source, name.clone())))
                    }
                }
                Ok(found) => found,
            };
            sources.insert(name, found);
        }
        let have_all_failed = failures.len() == paths.len();
        let mut failures = failures.into_iter();
        if have_all_failed && let Some(first) = failures.next() {
            return Err(OpenError::NoSource { first: Box::new(first), others: failures.len() });
        }
        for error in failures {
            session.errors.add(&format!("{error}{}; the other sources are mounted", error.meant()));
        }
        Ok(Self { sources, since: SystemTime::now() })
    }
}

/// Opens sources in order; objects in stores, which mostly wait, several at once.
fn side_by_side<T: Send>(sources: &[(BString, &PathBuf)], open: impl Fn(&(BString, &PathBuf)) -> T + Sync) -> Vec<T> {
    let objects = sources.iter().filter(|(_, path)| source::is_address(path)).count();
    let (opened, next) = (Mutex::new(BTreeMap::new()), AtomicUsize::new(0));
    on_threads(objects.clamp(1, MOST_OBJECTS_AT_ONCE) as u64, || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(at) else { return };
            let one = open(source);
            opened.lock().insert(at, one);
        }
    });
    opened.into_inner().into_values().collect()
}

/// Files and folders that the user named for one table of many; each is opened on demand. Sources with equal base names
/// are shown by their paths as given.
pub(crate) struct NamedSources(BTreeMap<BString, SourceEntry>);

impl NamedSources {
    /// Records the sources without opening them.
    ///
    /// # Errors
    /// If a source does not exist, or is given twice.
    pub fn new(session: &Arc<Session>, paths: &[PathBuf]) -> Result<Self, OpenError> {
        let base = |path: &PathBuf| shown_name(path.file_name().unwrap_or(path.as_os_str()));
        let mut counts: BTreeMap<BString, usize> = BTreeMap::new();
        paths.iter().for_each(|path| *counts.entry(base(path)).or_default() += 1);
        let mut sources = BTreeMap::new();
        for path in paths {
            let found = match session.opener.is_folder(path) {
                true => SourceEntry::Folder(Arc::new(Folder::new(session.clone(), path.clone(), BString::default()))),
                false => {
                    session.opener.stat(path)?;
                    let source = SourceFile::new(session.clone(), path.clone());
                    SourceEntry::File(Arc::new(FileRoot::found(source, BString::default())))
                }
            };
            let name = Some(base(path)).filter(|name| counts.get(name) == Some(&1));
            let name = name.unwrap_or_else(|| path.as_os_str().as_bytes().into());
            if sources.insert(name.clone(), found).is_some() {
                let name = name.to_string();
                return Err(OpenError::SameName { first: path.clone(), second: path.clone(), name });
            }
        }
        Ok(Self(sources))
    }
}

impl Sources for NamedSources {
    fn found(&self, name: &[u8], _: &Interrupt) -> Result<SourceEntry, Error> {
        self.0.get(&BString::from(name)).cloned().ok_or(Error::NotFound)
    }

    fn all(&self, _: &Interrupt) -> Result<Vec<(BString, SourceEntry)>, Error> {
        Ok(self.0.iter().map(|(name, found)| (name.clone(), found.clone())).collect())
    }
}

impl Sources for SeveralSources {
    fn found(&self, name: &[u8], _: &Interrupt) -> Result<SourceEntry, Error> {
        self.sources.get(&BString::from(name)).filter(|found| found.is_shown()).cloned().ok_or(Error::NotFound)
    }

    fn all(&self, _: &Interrupt) -> Result<Vec<(BString, SourceEntry)>, Error> {
        let shown = self.sources.iter().filter(|(_, found)| found.is_shown());
        Ok(shown.map(|(name, found)| (name.clone(), found.clone())).collect())
    }
}
