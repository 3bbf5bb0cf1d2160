//! What a directory has: names, and what stands behind them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use crate::catalogue::{Dataset, ObjectId};
use crate::dialects::{Dialect, Made, Of, Site};
use crate::fs::node::{Children, DirEntry, Kind};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Single, SingleFile};
use crate::views::text::Format;

/// Files of a directory of a group, beside its children.
pub(in crate::fs::tree) const METADATA: &str = "metadata.json";
pub(in crate::fs::tree) const INDEXES: &str = "indexes.json";
pub(in crate::fs::tree) const HEAD: &str = "head.csv";
pub(in crate::fs::tree) const COLUMNS: &str = "columns";
pub(in crate::fs::tree) const WHERE: &str = "where";
pub(in crate::fs::tree) const TABLE_CSV: &str = "table.csv";
pub(in crate::fs::tree) const TABLE_NDJSON: &str = "table.ndjson";
pub(in crate::fs::tree) const TABLE_PARQUET: &str = "table.parquet";
pub(in crate::fs::tree) const TABLE_ARROW: &str = "table.arrow";
pub(in crate::fs::tree) const TABLE_NPY: &str = "table.npy";
pub(in crate::fs::tree) const TABLE_RAW: &str = "table.raw";

/// Names in a table's directory that no child may take.
pub(super) const RESERVED_IN_TABLES: [&str; 12] = [
    METADATA,
    INDEXES,
    HEAD,
    COLUMNS,
    WHERE,
    TABLE_CSV,
    TABLE_NDJSON,
    TABLE_PARQUET,
    TABLE_ARROW,
    TABLE_NPY,
    TABLE_RAW,
    crate::fs::tree::live::DIRECTORY,
];

/// Every suffix that a file of a dataset or column can have. The set is closed: one more would rename groups, which
/// give way to all of them whether a dataset has such a file or not.
pub(in crate::fs::tree) const SUFFIXES: [&str; 9] =
    [".arrow", ".csv", ".ndjson", ".npy", ".parquet", ".pgm", ".ppm", ".raw", ".txt"];

/// What stands behind a name.
#[derive(Clone, Debug)]
pub(in crate::fs::tree) enum Child {
    /// `metadata.json`.
    Metadata,
    /// `indexes.json`.
    Indexes,
    /// `columns/`.
    Columns,
    /// `where/`.
    Where,
    /// A text view of the whole table, or of its first rows.
    Table(Format, Option<u64>),
    /// The whole table as Parquet.
    Parquet,
    /// The whole table as an Arrow file.
    Arrow,
    /// Whole rows of a table that is one dataset, as stored; behind a NumPy header or not.
    Whole(Elements),
    /// A view of the column at this position.
    Column(usize, ColumnView),
    /// A file of a dataset that is a table by itself.
    Single(Arc<Array>, SingleFile),
    /// A directory below.
    Directory(Place),
    /// A symbolic link.
    Link(BString),
}

impl Child {
    /// What kind of node it is.
    pub fn kind(&self) -> Kind {
        match self {
            Child::Columns | Child::Where | Child::Directory(_) => Kind::Directory,
            Child::Link(_) => Kind::Symlink,
            _ => Kind::File,
        }
    }
}

/// Elements as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fs::tree) enum Elements {
    Raw,
    /// Behind a NumPy header.
    Npy,
}

/// A view of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fs::tree) enum ColumnView {
    Raw,
    Npy,
    Parquet,
    Text(Format),
    Arrow,
}

/// What a directory shows.
#[derive(Clone, Debug)]
pub(in crate::fs::tree) enum Place {
    /// A group.
    Group(GroupPlace),
    /// A dataset that is a table.
    Dataset(Arc<Array>),
    /// What a dialect made up below a group, under this name.
    Made(GroupPlace, BString, Made),
}

/// Where a group is found.
#[derive(Clone, Debug)]
pub(in crate::fs::tree) struct GroupPlace {
    pub id: ObjectId,
    /// HDF5 path.
    pub path: String,
    /// Name of the link.
    pub link: BString,
}

/// A dataset shown by itself.
#[derive(Debug)]
pub(in crate::fs::tree) struct Array {
    pub name: BString,
    pub path: String,
    pub dataset: Dataset,
    pub dialect: &'static dyn Dialect,
    /// Its tables, while one of its files is in use: they share what reads ahead.
    single: Mutex<Weak<Single>>,
}

impl Array {
    pub fn new(name: &BString, path: String, dataset: &Dataset, dialect: &'static dyn Dialect) -> Arc<Self> {
        let (name, dataset) = (name.clone(), dataset.clone());
        Arc::new(Self { name, path, dataset, dialect, single: Mutex::default() })
    }

    /// Where it is found.
    pub fn site<'a>(&'a self, file: &'a Arc<File>) -> Site<'a> {
        Site { file, path: &self.path, of: Of::Dataset(&self.dataset) }
    }

    /// The tables that its files show.
    ///
    /// # Errors
    /// Why the dataset cannot be opened.
    pub fn single(&self, file: &Arc<File>, interrupt: &Interrupt) -> Result<Arc<Single>, String> {
        let mut known = self.single.lock();
        if let Some(single) = known.upgrade() {
            return Ok(single);
        }
        let single = Arc::new(self.dialect.files(&self.site(file), &self.name, Some(interrupt))?.observed(file));
        *known = Arc::downgrade(&single);
        Ok(single)
    }
}

/// The names of a directory, in the order shown.
#[derive(Debug, Default)]
pub(in crate::fs::tree) struct Listing {
    entries: Vec<(BString, Child)>,
    positions: HashMap<BString, usize>,
}

impl Listing {
    pub fn add(&mut self, name: BString, child: Child) {
        // Names are made so that they differ; should two ever meet, the first stays.
        if !self.positions.contains_key(&name) {
            self.positions.insert(name.clone(), self.entries.len());
            self.entries.push((name, child));
        }
    }

    /// The names with what stands behind them.
    pub fn entries(&self) -> &[(BString, Child)] {
        &self.entries
    }

    /// The names, as a directory tells them.
    pub fn children(&self) -> Children {
        self.entries.iter().map(|(name, child)| DirEntry { name: name.clone(), kind: child.kind() }).collect()
    }

    /// What stands behind a name.
    pub fn get(&self, name: &[u8]) -> Option<(usize, &Child)> {
        let position = *self.positions.get(name.as_bstr())?;
        Some((position, &self.entries[position].1))
    }
}

/// The stem with a suffix behind it.
pub(in crate::fs::tree) fn with_suffix(stem: &BString, suffix: &str) -> BString {
    let mut name = stem.clone();
    name.extend_from_slice(suffix.as_bytes());
    name
}

/// Where a link leads in the mount, relative to the directory of the link.
#[derive(Debug)]
pub(in crate::fs::tree) enum Shown {
    /// To a directory.
    Directory(BString),
    /// To files of these suffixes, whose names begin so.
    Files { stem: BString, suffixes: Vec<&'static str> },
}
