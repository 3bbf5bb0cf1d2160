//! Roots and folders: which HDF5 files a mount shows, and under which names.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;
use parking_lot::Mutex;

use super::directory::{Directory, DirectoryNode};
use super::in_use::InUse;
use super::live::DIRECTORY;
use super::opened::signature;
use super::{Attributes, Children, Context, Error, Interrupt, Kind, Node, NodeRef, OpenError};
use super::{SourceFile, plain_attributes};
use crate::fs::node::DirEntry;
use crate::fs::{mount, names};
use crate::source::{self, Source};
use crate::table::Table;

/// Names looked at before a mount to find out whether a folder holds an HDF5 file: some tenths of a second.
const MOST_LOOKED_AT: usize = 10_000;

/// The name under which a folder or a file is shown: one of them may lie beside `.hepfs` in the root.
fn shown_name(name: &OsStr) -> BString {
    let plain = names::encode_directory(name.as_bytes());
    if plain == DIRECTORY { names::encode_reserved(name.as_bytes()) } else { plain }
}

/// Whether a path leads to a regular file with the HDF5 signature.
pub fn is_hdf5(path: &Path) -> bool {
    Source::open(path).and_then(|source| signature::is_in(&source)).unwrap_or(false)
}

/// Lists a folder: each path, and whether it is a folder. Links to folders are none: they may lead in circles. Mount
/// points of hepfs are left out: our own may lie in the folder, and would lead into itself for ever.
fn contents(folder: &Path) -> io::Result<impl Iterator<Item = (PathBuf, bool)>> {
    let real = folder.canonicalize()?;
    let hidden = mount::mountpoints().unwrap_or_default();
    let listed = std::fs::read_dir(folder)?.flatten();
    let shown = listed.filter(move |entry| !hidden.contains(&real.join(entry.file_name())));
    Ok(shown.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))))
}

/// Whether a folder holds an HDF5 file, at any depth. A folder with very many other files is taken to hold one.
fn holds_hdf5(folder: &Path) -> bool {
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = folders.pop_front() {
        for (path, is_folder) in contents(&folder).into_iter().flatten() {
            seen += 1;
            if is_folder {
                folders.push_back(path);
            } else if is_hdf5(&path) {
                return true;
            }
            if seen >= MOST_LOOKED_AT {
                return true;
            }
        }
    }
    false
}

/// A source's root group, whichever file has its path now.
pub(super) struct FileRoot {
    source: Arc<SourceFile>,
    group: Mutex<Option<Arc<Directory>>>,
    /// Whether the user named it: then it stays though the file goes. One that was found in a folder goes with its
    /// file.
    named: bool,
}

impl FileRoot {
    /// A source found in a folder.
    fn found(source: Arc<SourceFile>) -> Self {
        Self { source, group: Mutex::new(None), named: false }
    }

    /// A source named by the user. Opened and listed now, so that the mount fails with the reason.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(context: &Arc<Context>, path: &Path, interrupt: &Interrupt) -> Result<Self, OpenError> {
        let source = SourceFile::new(context.clone(), path.to_owned());
        let root = Self { source, group: Mutex::new(None), named: true };
        let group = root.current(interrupt)?;
        group.load(interrupt).map_err(|error| OpenError::Root { path: path.to_owned(), reason: error.to_string() })?;
        Ok(root)
    }

    fn group(&self, interrupt: &Interrupt) -> Result<Arc<Directory>, Error> {
        self.current(interrupt).map_err(|error| {
            if !error.is_interrupted() {
                self.source.context().errors.add(&error.to_string());
            }
            error.into()
        })
    }

    fn current(&self, interrupt: &Interrupt) -> Result<Arc<Directory>, OpenError> {
        let opened = self.source.current(interrupt)?;
        let mut group = self.group.lock();
        match &*group {
            Some(group) if Arc::ptr_eq(group.opened(), &opened) => Ok(group.clone()),
            _ => Ok(group.insert(Arc::new(Directory::root(opened))).clone()),
        }
    }
}

impl Node for FileRoot {
    fn attributes(&self) -> Attributes {
        self.source.attributes().unwrap_or_else(|| plain_attributes(Kind::Directory, SystemTime::now()))
    }

    fn is_current(&self) -> bool {
        self.named || source::stat(self.source.path()).is_ok_and(|metadata| metadata.is_file())
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        DirectoryNode(self.group(interrupt)?).lookup(name, interrupt)
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        DirectoryNode(self.group(interrupt)?).children(interrupt)
    }

    fn table(&self) -> Option<Arc<Table>> {
        DirectoryNode(self.group.lock().clone()?).table()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        DirectoryNode(self.group.lock().clone()?).why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        DirectoryNode(self.group(interrupt)?).xattrs(interrupt)
    }
}

/// A folder on disk: folders and HDF5 files in it, as they are when it is listed.
pub(super) struct FolderNode {
    context: Arc<Context>,
    path: PathBuf,
    known: Mutex<InUse<BString, dyn Node>>,
}

impl FolderNode {
    pub fn new(context: Arc<Context>, path: PathBuf) -> Self {
        Self { context, path, known: Mutex::default() }
    }

    /// A folder named by the user, which should hold an HDF5 file somewhere.
    ///
    /// # Errors
    /// [`OpenError::NoFiles`] where there is none, [`OpenError::Source`] where the folder cannot be read.
    pub fn open(context: &Arc<Context>, path: &Path) -> Result<Self, OpenError> {
        std::fs::read_dir(path)
            .map_err(|error| OpenError::Source(source::Error::Io { path: path.to_owned(), error }))?;
        if !holds_hdf5(path) {
            return Err(OpenError::NoFiles(path.to_owned()));
        }
        Ok(Self::new(context.clone(), path.to_owned()))
    }

    /// Lists the folders and HDF5 files that `choose` picks by their shown names, with their paths. Only files that it
    /// picks are opened.
    fn scan(&self, choose: impl Fn(&BString) -> bool) -> Result<BTreeMap<BString, PathBuf>, Error> {
        // Before it is read, so that no change comes in between.
        self.context.watch_folder(&self.path);
        let listed = contents(&self.path).map_err(|error| Error::Io(format!("{}: {error}", self.path.display())))?;
        let named = listed.filter_map(|(path, is_folder)| Some((shown_name(path.file_name()?), path, is_folder)));
        let chosen = named.filter(|(name, path, is_folder)| choose(name) && (*is_folder || is_hdf5(path)));
        Ok(chosen.map(|(name, path, _)| (name, path)).collect())
    }

    fn node(&self, name: BString, path: PathBuf) -> NodeRef {
        let mut known = self.known.lock();
        if let Some(node) = known.get(&name).filter(|node| node.is_current()) {
            return node;
        }
        let node: NodeRef = if source::stat(&path).is_ok_and(|metadata| metadata.is_dir()) {
            Arc::new(FolderNode::new(self.context.clone(), path))
        } else {
            Arc::new(FileRoot::found(SourceFile::new(self.context.clone(), path)))
        };
        known.insert(name, &node);
        node
    }
}

impl Node for FolderNode {
    fn attributes(&self) -> Attributes {
        let modified = source::stat(&self.path).and_then(|metadata| metadata.modified());
        plain_attributes(Kind::Directory, modified.unwrap_or_else(|_| SystemTime::now()))
    }

    fn is_current(&self) -> bool {
        source::stat(&self.path).is_ok_and(|metadata| metadata.is_dir())
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let (name, path) = self.scan(|shown| shown == name)?.pop_last().ok_or(Error::NotFound)?;
        Ok(self.node(name, path))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        let directory = |name| DirEntry { name, kind: Kind::Directory };
        Ok(self.scan(|_| true)?.into_keys().map(directory).collect())
    }
}

/// Several sources given by name.
pub(super) struct SeveralNode {
    sources: BTreeMap<BString, NodeRef>,
    time: SystemTime,
}

impl SeveralNode {
    pub fn new(context: Arc<Context>, paths: &[PathBuf], interrupt: &Interrupt) -> Result<Self, OpenError> {
        let mut sources: BTreeMap<BString, NodeRef> = BTreeMap::new();
        let mut first: BTreeMap<BString, PathBuf> = BTreeMap::new();
        for path in paths {
            let base = path.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
            let name = shown_name(&base.unwrap_or_else(|| path.as_os_str().to_owned()));
            let node: NodeRef = if path.is_dir() {
                Arc::new(FolderNode::open(&context, path)?)
            } else {
                Arc::new(FileRoot::open(&context, path, interrupt)?)
            };
            if let Some(first) = first.insert(name.clone(), path.clone()) {
                return Err(OpenError::SameName { first, second: path.clone(), name: name.to_string() });
            }
            sources.insert(name, node);
        }
        Ok(Self { sources, time: SystemTime::now() })
    }
}

impl Node for SeveralNode {
    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::Directory, self.time)
    }

    fn is_current(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        self.sources.get(&BString::from(name)).cloned().ok_or(Error::NotFound)
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        let directory = |name: &BString| DirEntry { name: name.clone(), kind: Kind::Directory };
        Ok(self.sources.keys().map(directory).collect())
    }
}
