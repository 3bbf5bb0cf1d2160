//! Roots and folders: which HDF5 files a mount shows, and under which names.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use bstr::BString;
use parking_lot::Mutex;

use super::group::GroupDirectory;
use super::{Attributes, Children, Context, Effort, Error, GroupNode, Interrupt, Kind, Node, NodeRef, OpenError, Size};
use super::{SourceFile, directory_only, plain_attributes};
use crate::fs::names;
use crate::fs::node::DirEntry;

/// The HDF5 signature (format specification, II.A).
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Whether a regular file has the HDF5 signature: at 0, 512, 1024, 2048, … as the format allows.
fn is_hdf5(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    if !metadata.is_file() {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    let offsets = std::iter::once(0).chain((9..).map(|power| 1u64 << power));
    offsets.take_while(|offset| offset + 8 <= metadata.len()).any(|offset| {
        let mut found = [0; 8];
        file.read_exact_at(&mut found, offset).is_ok() && found == *SIGNATURE
    })
}

/// The only source of a mount: its root group, whichever file has its path now.
pub(super) struct FileRoot {
    source: Arc<SourceFile>,
    group: Mutex<Option<Arc<GroupNode>>>,
}

impl FileRoot {
    pub fn new(source: Arc<SourceFile>) -> Self {
        Self { source, group: Mutex::new(None) }
    }

    fn group(&self, interrupt: &Interrupt) -> Result<Arc<GroupNode>, Error> {
        let opened = self.source.current(interrupt)?;
        let mut group = self.group.lock();
        match &*group {
            Some(group) if Arc::ptr_eq(group.opened(), &opened) => Ok(group.clone()),
            _ => Ok(group.insert(Arc::new(GroupNode::root(opened))).clone()),
        }
    }
}

impl Node for FileRoot {
    fn attributes(&self) -> Attributes {
        match &*self.group.lock() {
            Some(group) => group.opened().attributes(Kind::Directory),
            None => plain_attributes(Kind::Directory, SystemTime::now()),
        }
    }

    fn is_current(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        GroupDirectory(self.group(interrupt)?).lookup(name, interrupt)
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        GroupDirectory(self.group(interrupt)?).children(interrupt)
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        GroupDirectory(self.group(interrupt)?).xattrs(interrupt)
    }

    directory_only!();
}

/// A folder on disk: folders and HDF5 files in it, as they are when it is listed.
pub(super) struct FolderNode {
    context: Arc<Context>,
    path: PathBuf,
    known: Mutex<BTreeMap<BString, Weak<dyn Node>>>,
}

impl FolderNode {
    pub fn new(context: Arc<Context>, path: PathBuf) -> Self {
        Self { context, path, known: Mutex::default() }
    }

    /// File names as shown, with the paths behind them.
    fn scan(&self) -> Result<BTreeMap<BString, PathBuf>, Error> {
        let listed =
            std::fs::read_dir(&self.path).map_err(|error| Error::Io(format!("{}: {error}", self.path.display())))?;
        let mut shown = BTreeMap::new();
        for entry in listed.flatten() {
            // Links to folders are not followed: they may lead in circles.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let path = entry.path();
            if is_folder || is_hdf5(&path) {
                shown.insert(names::encode_directory(entry.file_name().as_bytes()), path);
            }
        }
        Ok(shown)
    }

    fn node(&self, name: BString, path: PathBuf) -> NodeRef {
        let mut known = self.known.lock();
        known.retain(|_, node| node.strong_count() > 0);
        if let Some(node) = known.get(&name).and_then(Weak::upgrade) {
            return node;
        }
        let node: NodeRef = if path.is_dir() {
            Arc::new(FolderNode::new(self.context.clone(), path))
        } else {
            Arc::new(FileRoot::new(SourceFile::new(self.context.clone(), path)))
        };
        known.insert(name, Arc::downgrade(&node));
        node
    }
}

impl Node for FolderNode {
    fn attributes(&self) -> Attributes {
        let modified = std::fs::metadata(&self.path).and_then(|metadata| metadata.modified());
        plain_attributes(Kind::Directory, modified.unwrap_or_else(|_| SystemTime::now()))
    }

    fn is_current(&self) -> bool {
        self.path.is_dir()
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let mut shown = self.scan()?;
        let path = shown.remove(&BString::from(name)).ok_or(Error::NotFound)?;
        Ok(self.node(name.into(), path))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        let directory = |name| DirEntry { name, kind: Kind::Directory };
        Ok(self.scan()?.into_keys().map(directory).collect())
    }

    fn xattrs(&self, _: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        Ok(Vec::new())
    }

    directory_only!();
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
            let name = names::encode_directory(base.unwrap_or_else(|| path.as_os_str().to_owned()).as_bytes());
            let node: NodeRef = if path.is_dir() {
                Arc::new(FolderNode::new(context.clone(), path.clone()))
            } else {
                let source = SourceFile::new(context.clone(), path.clone());
                source.current(interrupt)?;
                Arc::new(FileRoot::new(source))
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

    fn xattrs(&self, _: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        Ok(Vec::new())
    }

    directory_only!();
}
