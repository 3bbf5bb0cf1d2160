//! What a directory has: names, and what stands behind them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use crate::catalogue::{Dataset, ObjectId};
use crate::dialects::{Checks, Dialect, Made, Of, Site};
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

/// The same where columns are shown by themselves.
pub(super) const RESERVED_BESIDE_COLUMNS: [&str; 8] =
    [METADATA, HEAD, WHERE, TABLE_CSV, TABLE_NDJSON, TABLE_PARQUET, TABLE_ARROW, crate::fs::tree::live::DIRECTORY];

/// Every suffix that a file of a dataset or column can have. The set is closed: one more would rename groups, which
/// give way to all of them whether a dataset has such a file or not.
pub(in crate::fs::tree) const SUFFIXES: [&str; 9] =
    [".arrow", ".csv", ".ndjson", ".npy", ".parquet", ".pgm", ".ppm", ".raw", ".txt"];

/// Which files of tables and datasets are shown (`--formats`), by their suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats(u16);

impl Default for Formats {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Formats {
    /// All names that there are: suffixes without their dot.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SUFFIXES.iter().map(|suffix| suffix.trim_start_matches('.'))
    }

    /// Those of some names. What is no name of a format counts for nothing.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let place = |name: &str| Self::names().position(|known| known == name);
        Self(names.into_iter().filter_map(place).fold(0, |all, place| all | 1 << place))
    }

    /// Whether a file of this name is shown.
    pub(in crate::fs::tree) fn shows(self, name: &[u8]) -> bool {
        let place = SUFFIXES.iter().position(|suffix| name.ends_with(suffix.as_bytes()));
        place.is_none_or(|place| self.0 >> place & 1 == 1)
    }
}

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
    Directory(Box<Place>),
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

impl ColumnView {
    /// All of them, by their suffix.
    pub const ALL: [(&str, Self); 7] = [
        (".arrow", Self::Arrow),
        (".csv", Self::Text(Format::Csv)),
        (".ndjson", Self::Text(Format::Ndjson)),
        (".npy", Self::Npy),
        (".parquet", Self::Parquet),
        (".raw", Self::Raw),
        (".txt", Self::Text(Format::Txt)),
    ];
}

/// What a directory shows.
#[derive(Clone, Debug)]
pub(in crate::fs::tree) enum Place {
    /// The one table of a file that is no HDF5 file.
    File,
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
    pub dataset: Arc<Dataset>,
    pub dialect: &'static dyn Dialect,
    /// The group beside it that serves it.
    servant: Option<ObjectId>,
    /// Its tables, while one of its files is in use: they share what reads ahead.
    single: Mutex<Weak<Single>>,
}

impl Array {
    pub fn new(
        name: &BString,
        path: String,
        dataset: &Arc<Dataset>,
        dialect: &'static dyn Dialect,
        servant: Option<ObjectId>,
    ) -> Arc<Self> {
        let (name, dataset) = (name.clone(), dataset.clone());
        Arc::new(Self { name, path, dataset, dialect, servant, single: Mutex::default() })
    }

    /// Where it is found.
    pub fn site<'a>(&'a self, file: &'a Arc<File>) -> Site<'a> {
        Site {
            file,
            path: &self.path,
            of: Of::Dataset(&self.dataset),
            servant: self.servant,
            checks: Checks::default(),
        }
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

/// What one member of a directory is shown as.
#[derive(Debug)]
pub(in crate::fs::tree) enum Entry {
    /// One name.
    One(BString, Child),
    /// The files of a column: its position, and a bit for each of [`ColumnView::ALL`].
    Column(BString, usize, u8),
    /// The files of a dataset that is a table by itself.
    Single(BString, Arc<Array>, Arc<[SingleFile]>),
    /// Symbolic links to files of these suffixes, whose names begin with the second stem.
    Links(BString, BString, Vec<&'static str>),
}

impl Entry {
    /// The name, or the stem of the names.
    fn stem(&self) -> &BString {
        match self {
            Self::One(stem, _) | Self::Column(stem, ..) | Self::Single(stem, ..) | Self::Links(stem, ..) => stem,
        }
    }

    /// Whether a mount of some formats shows what stands behind the name with this suffix.
    fn is_shown(&self, suffix: &str, child: &Child, formats: Formats) -> bool {
        match self {
            Self::One(name, _) => {
                !matches!(child, Child::Table(..) | Child::Parquet | Child::Arrow) || formats.shows(name)
            }
            _ => formats.shows(suffix.as_bytes()),
        }
    }

    /// What stands behind the names, each with what follows the stem.
    fn children(&self) -> impl Iterator<Item = (&'static str, Child)> {
        let count = match self {
            Self::One(..) => 1,
            Self::Column(..) => ColumnView::ALL.len(),
            Self::Single(_, _, files) => files.len(),
            Self::Links(_, _, suffixes) => suffixes.len(),
        };
        (0..count).filter_map(|at| self.child(at))
    }

    fn child(&self, at: usize) -> Option<(&'static str, Child)> {
        match self {
            Self::One(_, child) => Some(("", child.clone())),
            Self::Column(_, position, shown) => {
                let (suffix, view) = *ColumnView::ALL.get(at).filter(|_| shown >> at & 1 == 1)?;
                Some((suffix, Child::Column(*position, view)))
            }
            Self::Single(_, array, files) => {
                let file = files.get(at)?;
                Some((file.suffix, Child::Single(array.clone(), file.clone())))
            }
            Self::Links(_, target, suffixes) => {
                let suffix = *suffixes.get(at)?;
                Some((suffix, Child::Link(with_suffix(target, suffix))))
            }
        }
    }

    fn is_one(&self) -> bool {
        matches!(self, Self::One(..))
    }
}

/// The names of a directory, in the order shown. A directory may have very many, so the files of a member are one
/// [`Entry`], and their names are made when they are asked for.
#[derive(Debug, Default)]
pub(in crate::fs::tree) struct Listing {
    entries: Vec<Entry>,
    /// Positions of entries of one name, and of those of several, by their stem.
    names: HashMap<BString, u32>,
    stems: HashMap<BString, u32>,
    /// What is shown of them.
    pub formats: Formats,
}

/// Names of one entry at most: positions of children are told apart by it.
const MOST_OF_ENTRY: usize = 16;

impl Listing {
    /// Adds one name.
    pub fn add(&mut self, name: BString, child: Child) {
        self.push(Entry::One(name, child));
    }

    /// Adds the names of a member.
    pub fn push(&mut self, entry: Entry) {
        let Ok(position) = u32::try_from(self.entries.len()) else { return };
        let places = if entry.is_one() { &mut self.names } else { &mut self.stems };
        // Names are made so that they differ; should two ever meet, the first stays.
        if !places.contains_key(entry.stem()) {
            places.insert(entry.stem().clone(), position);
            self.entries.push(entry);
        }
    }

    /// The members with the numbers of their first names, shown or not.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().map(|(position, entry)| (position * MOST_OF_ENTRY, entry))
    }

    /// The members, shown or not.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The names, as a directory tells them.
    pub fn children(&self) -> Children {
        let named = |entry: &Entry| {
            let stem = entry.stem().clone();
            let is_shown = |(suffix, child): &(&str, Child)| entry.is_shown(suffix, child, self.formats);
            let children: Vec<_> = entry.children().filter(is_shown).collect();
            children
                .into_iter()
                .map(move |(suffix, child)| DirEntry { name: with_suffix(&stem, suffix), kind: child.kind() })
        };
        self.entries.iter().flat_map(named).collect()
    }

    /// What stands behind a name, with a number of its own.
    pub fn get(&self, name: &[u8]) -> Option<(usize, Child)> {
        if let Some(position) = self.names.get(name.as_bstr()) {
            let entry = self.entries.get(*position as usize)?;
            let (_, child) = entry.child(0).filter(|(suffix, child)| entry.is_shown(suffix, child, self.formats))?;
            return Some((*position as usize * MOST_OF_ENTRY, child));
        }
        SUFFIXES.iter().find_map(|suffix| {
            let stem = name.strip_suffix(suffix.as_bytes())?;
            let position = *self.stems.get(stem.as_bstr())? as usize;
            let entry = self.entries.get(position)?;
            let found = (0..MOST_OF_ENTRY).filter_map(|at| Some((at, entry.child(at)?)));
            let (at, (_, child)) = found.into_iter().find(|(_, (of, _))| of == suffix)?;
            if !entry.is_shown(suffix, &child, self.formats) {
                return None;
            }
            Some((position * MOST_OF_ENTRY + at, child))
        })
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
