//! A directory of a file: a group, a table, or what a dialect made up.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;

use super::contents::{Columns, Contents};
use super::file::{FileNode, Xattrs};
use super::files::Files;
use super::in_use::InUse;
use super::listing::{Child, GroupPlace, Place, Way};
use super::selections::{Subject, WhereDirectory};
use super::{Attributes, Children, Error, Interrupt, Kind, LinkNode, Node, NodeRef, Opened, lock};
use crate::catalogue::{ObjectId, join};
use crate::dialects::Made;
use crate::store::Rows;
use crate::table::Table;

/// Nodes of files that stay when the kernel has forgotten them: they know their exact size, which may have taken a
/// pass.
const MOST_UNUSED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Nodes of the files of a directory, by position: those in use, and the ones used last.
struct FileNodes {
    in_use: InUse<usize, FileNode>,
    last: LruCache<usize, Arc<FileNode>>,
}

impl Default for FileNodes {
    fn default() -> Self {
        Self { in_use: InUse::default(), last: LruCache::new(MOST_UNUSED) }
    }
}

/// A directory of a file, listed at first use.
pub(super) struct Directory {
    files_of: Files,
    place: Place,
    way: Way,
    contents: OnceLock<Arc<Contents>>,
    listing: Mutex<()>,
    /// Nodes of files in the directory and in `columns/`, by position.
    files: Mutex<FileNodes>,
    column_files: Mutex<FileNodes>,
    /// Directories below, only while they are in use: a file may have millions.
    directories: Mutex<InUse<usize, Directory>>,
}

impl Directory {
    /// The root group, or the one table of a file that has no groups.
    pub fn root(opened: Arc<Opened>) -> Self {
        let Some(id) = opened.hdf5().map(|file| file.info().root) else {
            return Self::new(opened, Place::File, Way::default());
        };
        let way = Way { groups: vec![(id, 0)], ..Way::default() };
        Self::new(opened, Place::Group(GroupPlace { id, path: "/".into(), link: "/".into() }), way)
    }

    /// The directory of a place below this one.
    fn below(&self, place: &Place) -> Self {
        let (place, way) = match place {
            Place::Group(group) => (place.clone(), self.way.to_group(group.id, &group.link)),
            // A group that is shown at another place is a group like any other.
            Place::Made(_, _, Made::Group(group)) => {
                let link = group.links.last().cloned().unwrap_or_default();
                let place = GroupPlace { id: group.id, path: group.path(), link };
                (Place::Group(place), self.way.to_elsewhere(group))
            }
            other => (other.clone(), self.way.to_directory()),
        };
        Self::new(self.opened().clone(), place, way)
    }

    fn new(opened: Arc<Opened>, place: Place, way: Way) -> Self {
        let (id, path, name) = match &place {
            Place::File => (ObjectId { file: 0, address: 0 }, "/".to_owned(), "/".into()),
            Place::Group(group) => (group.id, group.path.clone(), group.link.clone()),
            Place::Dataset(array) => (array.dataset.id, array.path.clone(), array.name.clone()),
            Place::Made(group, name, _) => (group.id, join(&group.path, name), name.clone()),
        };
        Self {
            files_of: Files { opened, id, path, name, selection: None },
            place,
            way,
            contents: OnceLock::new(),
            listing: Mutex::new(()),
            files: Mutex::default(),
            column_files: Mutex::default(),
            directories: Mutex::default(),
        }
    }

    /// The opening it belongs to.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.files_of.opened
    }

    /// Lists the directory, once.
    ///
    /// # Errors
    /// Where the worker cannot list its group.
    pub fn load(&self, interrupt: &Interrupt) -> Result<Arc<Contents>, Error> {
        if let Some(contents) = self.contents.get() {
            return Ok(contents.clone());
        }
        let _one = lock(&self.listing, interrupt)?;
        if let Some(contents) = self.contents.get() {
            return Ok(contents.clone());
        }
        let contents = Arc::new(self.list(interrupt).inspect_err(|error| self.opened().log(error))?);
        Ok(self.contents.get_or_init(|| contents).clone())
    }

    fn list(&self, interrupt: &Interrupt) -> Result<Contents, Error> {
        let opened = self.opened();
        let mut contents = match &self.place {
            Place::File => Contents::of_table(opened.table_file().ok_or(Error::NotFound)?.table()),
            Place::Group(group) => Contents::of_group(opened, group, &self.way, interrupt)?,
            Place::Dataset(array) => Contents::of_dataset(opened, array, interrupt)?,
            Place::Made(group, _, made) => Contents::of_made(opened, group, made, interrupt)?,
        };
        contents.show(opened.context().formats);
        if let Some(table) = &contents.table {
            opened.watch_table(table);
        }
        opened.report(&self.files_of.path, contents.findings.clone());
        Ok(contents)
    }

    /// The directory below at a position of the listing.
    pub fn directory(&self, position: usize, place: &Place) -> Arc<Self> {
        let mut below = self.directories.lock();
        below.get(&position).unwrap_or_else(|| {
            let directory = Arc::new(self.below(place));
            below.insert(position, &directory);
            directory
        })
    }

    /// What makes its files.
    pub fn files(&self) -> &Files {
        &self.files_of
    }

    fn child(self: &Arc<Self>, contents: &Arc<Contents>, position: usize, child: &Child) -> Result<NodeRef, Error> {
        match child {
            Child::Directory(place) => Ok(Arc::new(DirectoryNode(self.directory(position, place)))),
            Child::Columns => Ok(Arc::new(ColumnsNode { directory: self.clone(), contents: contents.clone() })),
            Child::Where => {
                let table = contents.table.as_ref().ok_or(Error::NotFound)?;
                Ok(Arc::new(WhereDirectory::new(Subject::new(&self.files_of, table))))
            }
            Child::Link(target) => Ok(Arc::new(LinkNode { opened: self.opened().clone(), target: target.clone() })),
            file => self.kept(&self.files, contents, position, file),
        }
    }

    /// The node of a file, made once as long as it is current.
    fn kept(
        &self,
        nodes: &Mutex<FileNodes>,
        contents: &Arc<Contents>,
        position: usize,
        child: &Child,
    ) -> Result<NodeRef, Error> {
        let mut nodes = nodes.lock();
        // One whose layout was given up stays with who has it open.
        if let Some(node) = nodes.in_use.get(&position).filter(|node| node.is_current()) {
            return Ok(node);
        }
        let node = Arc::new(self.files_of.file(contents, child)?);
        nodes.in_use.insert(position, &node);
        // What is driven out ends outside the lock.
        let _old = nodes.last.push(position, node.clone());
        drop(nodes);
        Ok(node)
    }
}

/// The node of a directory; a wrapper, so that a directory can hand itself to its children.
pub(super) struct DirectoryNode(pub Arc<Directory>);

impl Node for DirectoryNode {
    fn attributes(&self) -> Attributes {
        self.0.opened().attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.opened().is_current()
    }

    fn repeats(&self) -> bool {
        // What is hidden, such as versions.
        matches!(&self.0.place, Place::Made(_, name, Made::Directory { .. }) if name.starts_with(b"."))
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let contents = self.0.load(interrupt)?;
        let (position, child) = contents.listing.get(name).ok_or(Error::NotFound)?;
        self.0.child(&contents, position, &child)
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        Ok(Children::new(self.0.load(interrupt)?))
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.0.contents.get()?.table.clone()
    }

    fn source(&self) -> Option<&Path> {
        Some(self.0.opened().path())
    }

    fn examine(&self, failed: &mut dyn FnMut(&str, String), interrupt: &Interrupt) {
        let Ok(contents) = self.0.load(interrupt) else { return };
        let mut look = |path: &str, rows: &Result<Arc<dyn Rows>, String>| {
            // What cannot be opened at all is said where it is listed.
            if let Ok(rows) = rows
                && !interrupt.is_raised()
                && let Err(error) = rows.examine(interrupt)
            {
                failed(path, error.to_string());
            }
        };
        let columns = contents.table.iter().filter(|table| !table.only_adds).flat_map(|table| &table.columns);
        columns.for_each(|column| look(&column.path, &column.rows));
        for position in 0..contents.listing.entries().len() {
            if let Some(array) = contents.listing.array(position)
                && let Ok(file) = self.0.opened().file()
                && let Ok(single) = array.single(file, interrupt)
            {
                single.whole.columns.iter().for_each(|column| look(&array.path, &column.rows));
            }
        }
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.0.opened().opening().why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        let contents = self.0.load(interrupt)?;
        let xattrs = Xattrs::new(self.0.files_of.name.clone(), contents.attributes.clone());
        Ok(xattrs.list(self.0.opened(), interrupt))
    }
}

/// The directory `columns/` of a table.
struct ColumnsNode {
    directory: Arc<Directory>,
    contents: Arc<Contents>,
}

impl Node for ColumnsNode {
    fn attributes(&self) -> Attributes {
        self.directory.opened().attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.directory.opened().is_current()
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let (position, child) = self.contents.columns().get(name).ok_or(Error::NotFound)?;
        self.directory.kept(&self.directory.column_files, &self.contents, position, &child)
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(Children::new(Columns(self.contents.clone())))
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.contents.table.clone()
    }

    fn source(&self) -> Option<&Path> {
        Some(self.directory.opened().path())
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.directory.opened().opening().why_not_kept()
    }
}
