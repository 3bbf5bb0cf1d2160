//! `where/` in a table's directory: selections by name.
//!
//! A name is looked up by parsing it, which is free. It is never listed: a program that walks a tree would walk for
//! ever. Rows are looked for when a file below is opened, or its exact size is asked for.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bstr::ByteSlice;
use parking_lot::Mutex;

use super::contents::{Columns, Contents};
use super::file::{FileNode, ObjectXattrs};
use super::files::Files;
use super::in_use::InUse;
use super::listing::{self, Child, ColumnView};
use super::opened::Asked;
use super::{Attributes, Children, Effort, Error, Interrupt, Kind, Node, NodeRef, Size, Xattrs};
use crate::fs::node::DirEntry;
use crate::query::{self, Bound, Predicate, Selection, path};
use crate::store::Span;
use crate::store::pass::Progress;
use crate::table::Table;
use crate::views::Access;
use crate::views::constant::ConstantView;

/// The file that tells what can be asked.
const VALUES: &str = "values.txt";

/// A table, and the conditions on its rows so far.
#[derive(Clone)]
pub(super) struct Subject {
    files: Arc<Files>,
    table: Arc<Table>,
    conditions: Vec<Predicate>,
}

impl Subject {
    /// All rows of the table of a group.
    pub fn new(files: &Files, table: &Arc<Table>) -> Self {
        Self { files: Arc::new(files.clone()), table: table.clone(), conditions: Vec::new() }
    }

    /// Those of its rows that satisfy one more segment as well.
    fn and(&self, segment: &[u8]) -> Result<(Self, Bound), query::Error> {
        let mut conditions = self.conditions.clone();
        conditions.push(path::parse(segment)?);
        let bound =
            Bound::trusting(&self.table, &Predicate::All(conditions.clone()), self.files.opened.context().trust)?;
        let above = self.files.selection.as_ref().map(|above| format!("{above}/")).unwrap_or_default();
        let selection = Some(format!("{above}{}", path::readable(segment)));
        let files = Files { selection, ..self.files.as_ref().clone() };
        Ok((Self { files: Arc::new(files), table: self.table.clone(), conditions }, bound))
    }

    fn path(&self) -> String {
        self.files.selection.clone().unwrap_or_default()
    }
}

/// The directory `where/`.
pub(super) struct WhereDirectory(Subject);

impl WhereDirectory {
    pub fn new(subject: Subject) -> Self {
        Self(subject)
    }

    fn values(&self) -> FileNode {
        let table = self.0.table.clone();
        let make = move |interrupt: &Interrupt| Ok(query::values_text(&table, interrupt).into_bytes());
        let xattrs = ObjectXattrs::new(VALUES.into(), [].into());
        let view = Arc::new(ConstantView::new(self.0.files.blocks(), make));
        FileNode::new(&self.0.files.opened, view, xattrs)
    }
}

impl Node for WhereDirectory {
    fn attributes(&self) -> Attributes {
        self.0.files.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.files.opened.is_current()
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        if name == VALUES.as_bytes() {
            return Ok(Arc::new(self.values()));
        }
        if is_asked_everywhere(name) {
            return Err(Error::NotFound);
        }
        let files = &self.0.files;
        let (subject, bound) = self.0.and(name).map_err(|error| {
            let place = format!("{}: {}/where/{}", files.opened.path().display(), files.path, name.as_bstr());
            let before = name.get(..error.position()).unwrap_or(name).as_bstr().chars().count();
            files.opened.context().errors.add(&format!("{place}: character {}: {error}", before + 1));
            Error::NotFound
        })?;
        Ok(Arc::new(SelectionDirectory(Arc::new(Chosen::new(subject, bound)?))))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(std::iter::once(DirEntry { name: VALUES.into(), kind: Kind::File }).collect())
    }

    fn source(&self) -> Option<&Path> {
        Some(self.0.files.opened.path())
    }
}

/// Whether a name is one that programs try in every directory, which is no selection gone wrong: of a hidden file, or
/// of one that tables have, for a pattern like `mnt/**/table.parquet`. An error for each would drive out those that
/// matter.
fn is_asked_everywhere(name: &[u8]) -> bool {
    !name.contains(&b':') && (name.starts_with(b".") || listing::is_of_tables(name))
}

/// Rows that are chosen, and the files that show them.
struct Chosen {
    subject: Subject,
    selection: Arc<Selection>,
    /// The table with all rows, which has the same files under the same names.
    all: Arc<Contents>,
    /// The chosen rows, once they are known.
    loaded: OnceLock<Arc<Contents>>,
    /// Nodes of files by position, in the directory and in `columns/`, while they are in use: they own this.
    nodes: Mutex<InUse<(bool, usize), SelectionFile>>,
}

impl Chosen {
    fn new(subject: Subject, bound: Bound) -> Result<Self, Error> {
        let Subject { files, table, .. } = &subject;
        let keeper = files.keeper("rows");
        let make = || {
            let store = files.opened.store();
            let selection = Selection::new(&table.path, table.rows, bound, store, Some(keeper.clone()))?;
            Ok(Asked { table: table.path.clone(), path: subject.path(), selection: Arc::new(selection) })
        };
        let selection = files.opened.selection(&keeper.what, make)?;
        let mut all = Contents::of_table(query::selectable(table, &subject.path()));
        all.show(files.opened.context().formats);
        let all = Arc::new(all);
        Ok(Self { selection, all, loaded: OnceLock::new(), nodes: Mutex::default(), subject })
    }

    /// The chosen rows: waits until they are known.
    fn load(&self, interrupt: &Interrupt) -> Result<Arc<Contents>, Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let selected = self.selection.selected(interrupt).map_err(|error| {
            let error = Error::from(error);
            self.subject.files.opened.log(&error);
            error
        })?;
        // What would have helped may help the next one.
        self.subject.files.opened.context().verifier.queue(self.selection.unverified());
        let filtered = query::filtered(&self.subject.table, &selected, &self.subject.path());
        Ok(self.loaded.get_or_init(|| Arc::new(Contents::of_table(filtered))).clone())
    }

    fn file(self: &Arc<Self>, in_columns: bool, position: usize, child: &Child) -> NodeRef {
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.get(&(in_columns, position)) {
            return node;
        }
        let node = Arc::new(SelectionFile {
            chosen: self.clone(),
            child: child.clone(),
            file: OnceLock::new(),
            of_all: OnceLock::new(),
        });
        nodes.insert((in_columns, position), &node);
        node
    }
}

/// The directory of a selection.
struct SelectionDirectory(Arc<Chosen>);

impl Node for SelectionDirectory {
    fn attributes(&self) -> Attributes {
        self.0.subject.files.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.subject.files.opened.is_current()
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let further = || WhereDirectory(self.0.subject.clone());
        Ok(match self.0.all.listing.get(name) {
            Some((_, Child::Columns)) => Arc::new(SelectionColumns(self.0.clone())),
            Some((_, Child::Where)) => Arc::new(further()),
            Some((position, child)) => self.0.file(false, position, &child),
            // No file of a table has a colon in its name.
            None if name.contains(&b':') => further().lookup(name, interrupt)?,
            None => return Err(Error::NotFound),
        })
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(Children::new(self.0.all.clone()))
    }

    fn source(&self) -> Option<&Path> {
        Some(self.0.subject.files.opened.path())
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.0.subject.files.opened.opening().why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        let Files { name, opened, .. } = self.0.subject.files.as_ref();
        Ok(ObjectXattrs::new(name.clone(), self.0.subject.table.attributes.clone()).shown(opened, interrupt))
    }
}

/// Its directory `columns/`.
struct SelectionColumns(Arc<Chosen>);

impl Node for SelectionColumns {
    fn attributes(&self) -> Attributes {
        self.0.subject.files.opened.attributes(Kind::Directory)
    }

    fn is_current(&self) -> bool {
        self.0.subject.files.opened.is_current()
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let (position, child) = self.0.all.columns().get(name).ok_or(Error::NotFound)?;
        Ok(self.0.file(true, position, &child))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(Children::new(Columns(self.0.all.clone())))
    }

    fn source(&self) -> Option<&Path> {
        Some(self.0.subject.files.opened.path())
    }
}

/// A file over chosen rows, which becomes a file like any other once they are known.
struct SelectionFile {
    chosen: Arc<Chosen>,
    child: Child,
    file: OnceLock<FileNode>,
    of_all: OnceLock<FileNode>,
}

impl SelectionFile {
    fn file(&self, interrupt: &Interrupt) -> Result<&FileNode, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.chosen.subject.files.file(&self.chosen.load(interrupt)?, &self.child)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// The same file over all rows.
    fn of_all(&self) -> Result<&FileNode, Error> {
        if let Some(file) = self.of_all.get() {
            return Ok(file);
        }
        // What is known of the selected rows says nothing of all.
        let files = Files { selection: None, ..self.chosen.subject.files.as_ref().clone() };
        let file = files.file(&self.chosen.all, &self.child)?;
        Ok(self.of_all.get_or_init(|| file))
    }

    /// Whether a bound serves as its size until it is opened.
    fn is_text(&self) -> bool {
        matches!(self.child, Child::Table(..) | Child::Column(_, ColumnView::Text(_)))
    }
}

impl Node for SelectionFile {
    fn attributes(&self) -> Attributes {
        self.chosen.subject.files.opened.attributes(Kind::File)
    }

    fn is_current(&self) -> bool {
        self.file.get().map_or_else(|| self.chosen.subject.files.opened.is_current(), FileNode::is_current)
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let is_known = self.file.get().is_some()
            || match effort {
                Effort::Known | Effort::Free => self.chosen.selection.known().is_some(),
                Effort::Quick => !self.is_text() || self.chosen.selection.found().is_some(),
                Effort::Exact => true,
            };
        if is_known {
            return self.file(interrupt)?.size(effort, interrupt);
        }
        // Fewer rows take less.
        let effort = if effort == Effort::Known { effort } else { Effort::Free };
        Ok(Size::AtMost(self.of_all()?.view.size(effort, interrupt)?.bytes()))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.file(interrupt)?.read(offset, length, out, interrupt)
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.file(interrupt)?.span(offset, length, interrupt)
    }

    fn prepare(&self, interrupt: &Interrupt) -> Result<Size, Error> {
        self.file(interrupt)?.prepare(interrupt)
    }

    fn progress(&self) -> Option<Progress> {
        match self.file.get() {
            Some(file) => file.progress(),
            None => Some(self.chosen.selection.progress()),
        }
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.chosen.subject.files.opened.opening().why_not_kept()
    }

    fn access(&self) -> Access {
        self.file.get().map_or_else(|| self.of_all().map_or(Access::Any, |file| file.access()), |file| file.access())
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.of_all()?.xattrs(interrupt)
    }
}
