//! A group's directory.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bstr::BString;
use parking_lot::Mutex;

use super::file::Xattrs;
use super::files::Files;
use super::in_use::InUse;
use super::listing::{self, Child, Listing};
use super::selections::{Subject, WhereDirectory};
use super::{Attributes, Children, Error, Interrupt, Kind, LinkNode, Node, NodeRef, Opened, links, lock};
use crate::catalogue::{Attribute, ObjectId};
use crate::dialects::hep001::{self, Recognised};
use crate::fs::node::DirEntry;
use crate::store;
use crate::table::{Finding, Table};
use crate::views::metadata::Member;

/// A group, shown as a directory.
pub struct GroupNode {
    files_of: Files,
    /// The groups from the root down to this one.
    line: Vec<ObjectId>,
    loaded: OnceLock<Arc<Loaded>>,
    loading: Mutex<()>,
    /// Nodes of files in the directory and in `columns/`, by position. They stay, since they know their exact size.
    files: Mutex<HashMap<usize, NodeRef>>,
    column_files: Mutex<HashMap<usize, NodeRef>>,
    /// Groups below, only while somebody uses them: a file may have millions.
    groups: Mutex<InUse<usize, GroupNode>>,
}

/// A group after its first listing.
#[derive(Debug)]
pub struct Loaded {
    pub(super) attributes: Arc<[Attribute]>,
    /// The table, where the group is one.
    pub table: Option<Arc<Table>>,
    pub(super) listing: Listing,
    pub(super) columns: Listing,
    pub(super) members: Arc<Vec<Member>>,
    pub(super) column_members: Arc<Vec<Member>>,
    pub(super) findings: Vec<Finding>,
}

impl GroupNode {
    /// The root group.
    pub fn root(opened: Arc<Opened>) -> Self {
        let id = opened.file().info().root;
        Self::new(opened, id, "/".into(), "/".into(), &[])
    }

    /// A group found at `path` under the link `name`, below the groups `above`.
    fn new(opened: Arc<Opened>, id: ObjectId, path: String, name: BString, above: &[ObjectId]) -> Self {
        Self {
            line: above.iter().copied().chain([id]).collect(),
            files_of: Files { opened, id, path, name, selection: None },
            loaded: OnceLock::new(),
            loading: Mutex::new(()),
            files: Mutex::default(),
            column_files: Mutex::default(),
            groups: Mutex::default(),
        }
    }

    /// The opening it belongs to.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.files_of.opened
    }

    /// HDF5 path.
    pub fn path(&self) -> &str {
        &self.files_of.path
    }

    /// Lists the group, once.
    ///
    /// # Errors
    /// Where the worker cannot list it.
    pub fn load(&self, interrupt: &Interrupt) -> Result<Arc<Loaded>, Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let _one = lock(&self.loading, interrupt)?;
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let loaded = Arc::new(self.list(interrupt).inspect_err(|error| self.files_of.opened.log(error))?);
        Ok(self.loaded.get_or_init(|| loaded).clone())
    }

    fn list(&self, interrupt: &Interrupt) -> Result<Loaded, Error> {
        let file = self.files_of.opened.file();
        let failed = |error| Error::from(store::Error::Hdf5 { path: self.files_of.path.clone(), error });
        let group = Arc::new(file.group(self.files_of.id, interrupt).map_err(failed)?);
        file.check()?;
        let mut findings = Vec::new();
        let table = match hep001::recognise(&self.files_of.path, &group.attributes) {
            Recognised::No => None,
            Recognised::Refused(finding) => {
                findings.push(finding);
                None
            }
            Recognised::Table => Some(Arc::new(hep001::build(file, &self.files_of.path, &group, interrupt))),
        };
        let leads = links::Resolver::new(&self.files_of.opened, &group, &self.files_of.path, &self.line, interrupt);
        let (listing, members) = listing::list(
            &group,
            &self.files_of.path,
            table.as_deref(),
            file.client().follows_external(),
            &|target, name| leads.shown(target, name),
        );
        let (columns, column_members) = table.as_deref().map(listing::list_columns).unwrap_or_default();
        // What it cut short looks broken, and a listing stays for as long as its group is known.
        interrupt.check()?;
        if let Some(table) = &table {
            findings.extend(table.findings.iter().cloned());
            self.files_of.opened.watch_table(table);
            for column in &table.columns {
                self.files_of.opened.watch(&column.path, &column.tally);
            }
        }
        self.files_of.opened.report(&self.files_of.path, findings.clone());
        Ok(Loaded {
            attributes: group.attributes.clone(),
            table,
            listing,
            columns,
            members: Arc::new(members),
            column_members: Arc::new(column_members),
            findings,
        })
    }

    fn child(self: &Arc<Self>, loaded: &Arc<Loaded>, position: usize, child: &Child) -> Result<NodeRef, Error> {
        match child {
            Child::Group { id, path, link } => {
                let mut groups = self.groups.lock();
                let group = groups.get(&position).unwrap_or_else(|| {
                    let opened = self.files_of.opened.clone();
                    let group = Arc::new(GroupNode::new(opened, *id, path.clone(), link.clone(), &self.line));
                    groups.insert(position, &group);
                    group
                });
                Ok(Arc::new(GroupDirectory(group)))
            }
            Child::Columns => Ok(Arc::new(ColumnsDirectory { group: self.clone(), loaded: loaded.clone() })),
            Child::Where => Ok(Arc::new(self.selections(loaded)?)),
            Child::Link(target) => {
                Ok(Arc::new(LinkNode { opened: self.files_of.opened.clone(), target: target.clone() }))
            }
            file => self.kept(&self.files, loaded, position, file),
        }
    }

    /// The directory `where/`.
    fn selections(&self, loaded: &Loaded) -> Result<WhereDirectory, Error> {
        let table = loaded.table.as_ref().ok_or(Error::NotFound)?;
        Ok(WhereDirectory::new(Subject::new(&self.files_of, table)))
    }

    /// The node of a file, made once.
    fn kept(
        &self,
        nodes: &Mutex<HashMap<usize, NodeRef>>,
        loaded: &Arc<Loaded>,
        position: usize,
        child: &Child,
    ) -> Result<NodeRef, Error> {
        let mut nodes = nodes.lock();
        if let Some(node) = nodes.get(&position) {
            return Ok(node.clone());
        }
        let node: NodeRef = Arc::new(self.files_of.file(loaded, child)?);
        nodes.insert(position, node.clone());
        Ok(node)
    }
}

pub(super) fn children(listing: &Listing) -> Children {
    listing.entries().iter().map(|(name, child)| DirEntry { name: name.clone(), kind: child.kind() }).collect()
}

/// The directory of a group; a wrapper, so that a group can hand itself to its children.
pub(super) struct GroupDirectory(pub Arc<GroupNode>);

impl Node for GroupDirectory {
    fn attributes(&self) -> Attributes {
        self.0.files_of.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.files_of.opened.is_current()
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let loaded = self.0.load(interrupt)?;
        let (position, child) = loaded.listing.get(name).ok_or(Error::NotFound)?;
        self.0.child(&loaded, position, child)
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        Ok(children(&self.0.load(interrupt)?.listing))
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.0.loaded.get()?.table.clone()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.0.files_of.opened.file().why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        let loaded = self.0.load(interrupt)?;
        Ok(Xattrs { name: self.0.files_of.name.clone(), attributes: loaded.attributes.clone() }.list())
    }
}

/// The directory `columns/` of a table.
struct ColumnsDirectory {
    group: Arc<GroupNode>,
    loaded: Arc<Loaded>,
}

impl Node for ColumnsDirectory {
    fn attributes(&self) -> Attributes {
        self.group.files_of.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.group.files_of.opened.is_current()
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let (position, child) = self.loaded.columns.get(name).ok_or(Error::NotFound)?;
        self.group.kept(&self.group.column_files, &self.loaded, position, child)
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(children(&self.loaded.columns))
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.loaded.table.clone()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.group.files_of.opened.file().why_not_kept()
    }
}
