//! A group's directory.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bstr::BString;
use parking_lot::Mutex;

use super::file::{FileNode, Xattrs};
use super::in_use::InUse;
use super::listing::{self, Child, ColumnView, Listing};
use super::{Attributes, Children, Error, Interrupt, Kind, LinkNode, Node, NodeRef, Opened, links, lock};
use crate::catalogue::{Attribute, ObjectId};
use crate::dialects::hep001::{self, Recognised};
use crate::fs::node::DirEntry;
use crate::store;
use crate::table::{Column, Finding, Table};
use crate::views::View;
use crate::views::constant::ConstantView;
use crate::views::ipc::{IpcColumn, IpcView};
use crate::views::metadata::{self, Member};
use crate::views::npy::{NpyType, NpyView, RawView, RowsBytes};
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::pass::Keeper;
use crate::views::text::{Format, TextColumn, TextView};

/// A group, shown as a directory.
pub struct GroupNode {
    opened: Arc<Opened>,
    id: ObjectId,
    path: String,
    name: BString,
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
    attributes: Arc<[Attribute]>,
    /// The table, where the group is one.
    pub table: Option<Arc<Table>>,
    listing: Listing,
    columns: Listing,
    members: Arc<Vec<Member>>,
    column_members: Arc<Vec<Member>>,
    findings: Vec<Finding>,
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
            opened,
            id,
            path,
            name,
            line: above.iter().copied().chain([id]).collect(),
            loaded: OnceLock::new(),
            loading: Mutex::new(()),
            files: Mutex::default(),
            column_files: Mutex::default(),
            groups: Mutex::default(),
        }
    }

    /// The opening it belongs to.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// HDF5 path.
    pub fn path(&self) -> &str {
        &self.path
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
        let loaded = Arc::new(self.list(interrupt).inspect_err(|error| self.opened.log(error))?);
        Ok(self.loaded.get_or_init(|| loaded).clone())
    }

    fn list(&self, interrupt: &Interrupt) -> Result<Loaded, Error> {
        let file = self.opened.file();
        let failed = |error| Error::from(store::Error::Hdf5 { path: self.path.clone(), error });
        let group = Arc::new(file.group(self.id, interrupt).map_err(failed)?);
        file.check()?;
        let mut findings = Vec::new();
        let table = match hep001::recognise(&self.path, &group.attributes) {
            Recognised::No => None,
            Recognised::Refused(finding) => {
                findings.push(finding);
                None
            }
            Recognised::Table => Some(Arc::new(hep001::build(file, &self.path, &group, interrupt))),
        };
        let leads = links::Resolver::new(&self.opened, &group, &self.path, &self.line, interrupt);
        let (listing, members) =
            listing::list(&group, &self.path, table.as_deref(), file.client().follows_external(), &|target, name| {
                leads.shown(target, name)
            });
        let (columns, column_members) = table.as_deref().map(listing::list_columns).unwrap_or_default();
        // What it cut short looks broken, and a listing stays for as long as its group is known.
        interrupt.check()?;
        if let Some(table) = &table {
            findings.extend(table.findings.iter().cloned());
            for column in &table.columns {
                self.opened.watch(&column.path, &column.tally);
            }
        }
        self.opened.report(&self.path, findings.clone());
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
                    let opened = self.opened.clone();
                    let group = Arc::new(GroupNode::new(opened, *id, path.clone(), link.clone(), &self.line));
                    groups.insert(position, &group);
                    group
                });
                Ok(Arc::new(GroupDirectory(group)))
            }
            Child::Columns => Ok(Arc::new(ColumnsDirectory { group: self.clone(), loaded: loaded.clone() })),
            Child::Link(target) => Ok(Arc::new(LinkNode { opened: self.opened.clone(), target: target.clone() })),
            file => self.kept(&self.files, loaded, position, file),
        }
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
        let node = self.file(loaded, child)?;
        nodes.insert(position, node.clone());
        Ok(node)
    }

    /// The node of a file.
    fn file(&self, loaded: &Arc<Loaded>, child: &Child) -> Result<NodeRef, Error> {
        let of_group = || Xattrs { name: self.name.clone(), attributes: loaded.attributes.clone() };
        let (view, xattrs): (Arc<dyn View>, Xattrs) = match child {
            Child::Metadata => {
                let loaded = loaded.clone();
                let path = self.path.clone();
                let make = move || match &loaded.table {
                    Some(table) => metadata::table(table, &loaded.column_members, &loaded.members),
                    None => metadata::group(&path, &loaded.attributes, &loaded.members, &loaded.findings),
                };
                (Arc::new(ConstantView::new(make)), of_group())
            }
            Child::Indexes => {
                let table = loaded.table.clone().ok_or(Error::NotFound)?;
                (Arc::new(ConstantView::new(move || metadata::indexes(&table))), of_group())
            }
            Child::Table(format, limit) => {
                let table = loaded.table.as_ref().ok_or(Error::NotFound)?;
                let columns = table.columns.iter().filter(|column| column.in_table);
                let columns = columns.filter_map(|column| self.text_column(table, column)).collect();
                (self.text("table", columns, *format, *limit), of_group())
            }
            Child::Parquet => {
                let table = loaded.table.as_ref().ok_or(Error::NotFound)?;
                let columns = table.columns.iter().enumerate().filter(|(_, column)| column.in_table);
                let columns = columns.filter_map(|(at, column)| self.parquet_column(table, at, column)).collect();
                (self.parquet(columns), of_group())
            }
            Child::Arrow => {
                let table = loaded.table.as_ref().ok_or(Error::NotFound)?;
                (self.arrow("table", IpcColumn::of_table(table)), of_group())
            }
            Child::Column(position, view) => {
                let table = loaded.table.as_ref().ok_or(Error::NotFound)?;
                let column = table.columns.get(*position).ok_or(Error::NotFound)?;
                let xattrs = Xattrs { name: column.name.clone(), attributes: column.attributes.clone() };
                (self.column(table, column, *position, *view)?, xattrs)
            }
            Child::Raw(array) | Child::Npy(array) => {
                let dataset =
                    store::Dataset::new(self.opened.file().clone(), array.path.clone(), array.dataset.clone())?;
                let stored = ArrayBytes(Arc::new(dataset));
                let view: Arc<dyn View> = if matches!(child, Child::Raw(_)) {
                    Arc::new(RawView::new(stored))
                } else {
                    let dtype = NpyType::of(&array.dataset.datatype).map_err(|error| Error::Io(error.to_string()))?;
                    Arc::new(NpyView::new(&dtype, &array.dataset.shape, stored).ok_or(Error::TooLarge)?)
                };
                let xattrs = Xattrs { name: array.name.clone(), attributes: array.dataset.attributes.clone() };
                (view, xattrs)
            }
            Child::Columns | Child::Group { .. } | Child::Link(_) => return Err(Error::NotAFile),
        };
        Ok(Arc::new(FileNode { opened: self.opened.clone(), view, xattrs: Arc::new(xattrs) }))
    }

    fn text_column(&self, table: &Table, column: &Column) -> Option<TextColumn> {
        let rows = column.rows.as_ref().ok()?.clone();
        let file_size = self.opened.file().source().identity().size;
        Some(TextColumn { name: column.name.clone(), rows, longest: listing::longest_text(table, column, file_size) })
    }

    fn text(&self, what: &str, columns: Vec<TextColumn>, format: Format, limit: Option<u64>) -> Arc<dyn View> {
        let context = self.opened.context();
        let keeper = Some(self.keeper(what));
        Arc::new(TextView::new(columns, format, &context.csv, limit, context.blocks.clone(), keeper))
    }

    /// A column of a Parquet file; none where it has no place in one.
    fn parquet_column(&self, table: &Table, position: usize, column: &Column) -> Option<ParquetColumn> {
        let parquet = ParquetColumn::new(table, column).ok()?;
        let learner = column.learner.clone().filter(|_| self.opened.context().parquet_statistics);
        Some(parquet.told_by(learner).kept_by(self.keeper(&column_what(position, column))))
    }

    fn parquet(&self, columns: Vec<ParquetColumn>) -> Arc<dyn View> {
        Arc::new(ParquetView::new(columns, self.opened.context().blocks.clone()))
    }

    fn arrow(&self, what: &str, columns: Vec<IpcColumn>) -> Arc<dyn View> {
        let rendered = self.opened.context().blocks.clone();
        Arc::new(IpcView::new(columns, rendered, Some(self.keeper(what))))
    }

    /// Where what is learnt of `what` in this group is kept. Two paths that are no UTF-8 may read the same: the object's
    /// number in the file tells them apart.
    fn keeper(&self, what: &str) -> Keeper {
        Keeper { file: self.opened.file().clone(), what: format!("{} {:?} {what}", self.path, self.id) }
    }

    fn column(
        &self,
        table: &Table,
        column: &Column,
        position: usize,
        view: ColumnView,
    ) -> Result<Arc<dyn View>, Error> {
        let what = column_what(position, column);
        let rows = column.rows.as_ref().map_err(|reason| Error::Io(reason.clone()))?;
        let storage = || column.storage.as_ref().ok_or(Error::NotFound);
        let stored = || RowsBytes::new(rows.clone()).ok_or(Error::NotFound);
        Ok(match view {
            ColumnView::Arrow => self.arrow(&what, vec![IpcColumn::new(table, column).map_err(Error::Io)?]),
            ColumnView::Text(format) => {
                self.text(&what, self.text_column(table, column).into_iter().collect(), format, None)
            }
            ColumnView::Raw => match &column.stored_strings {
                Some(strings) => {
                    let column = TextColumn { name: column.name.clone(), rows: strings.clone(), longest: None };
                    self.text(&what, vec![column], Format::NulTerminated, None)
                }
                None => Arc::new(RawView::new(stored()?)),
            },
            ColumnView::Parquet => {
                self.parquet(vec![self.parquet_column(table, position, column).ok_or(Error::NotFound)?])
            }
            ColumnView::Npy => {
                let dtype = NpyType::of(&storage()?.datatype).map_err(|error| Error::Io(error.to_string()))?;
                Arc::new(NpyView::new(&dtype, &[rows.len()], stored()?).ok_or(Error::TooLarge)?)
            }
        })
    }
}

/// What is learnt of a column, for a [`Keeper`].
fn column_what(position: usize, column: &Column) -> String {
    format!("column {position} {:?}", column.name)
}

/// The bytes of a dataset of any rank.
struct ArrayBytes(Arc<store::Dataset>);

impl crate::views::npy::Stored for ArrayBytes {
    fn len_bytes(&self) -> u64 {
        self.0.len().saturating_mul(self.0.element_size())
    }

    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), store::Error> {
        self.0.append_once(offset, length, out, interrupt)
    }
}

fn children(listing: &Listing) -> Children {
    listing.entries().iter().map(|(name, child)| DirEntry { name: name.clone(), kind: child.kind() }).collect()
}

/// The directory of a group; a wrapper, so that a group can hand itself to its children.
pub(super) struct GroupDirectory(pub Arc<GroupNode>);

impl Node for GroupDirectory {
    fn attributes(&self) -> Attributes {
        self.0.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.opened.is_current()
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
        self.0.opened.file().why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        let loaded = self.0.load(interrupt)?;
        Ok(Xattrs { name: self.0.name.clone(), attributes: loaded.attributes.clone() }.list())
    }
}

/// The directory `columns/` of a table.
struct ColumnsDirectory {
    group: Arc<GroupNode>,
    loaded: Arc<Loaded>,
}

impl Node for ColumnsDirectory {
    fn attributes(&self) -> Attributes {
        self.group.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.group.opened.is_current()
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
        self.group.opened.file().why_not_kept()
    }
}
