//! The entries of a directory: names, and the files and directories behind them.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use bstr::{BString, ByteSlice};
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::catalogue::{Dataset, ObjectId, join};
use crate::dialects::{Checks, Dialect, Dialects, Made, Of, Site};
use crate::session::in_use::InUse;
use crate::session::{DirEntry, EntryKind, live};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Single, SingleFile};
use crate::views::metadata::{Details, ShownAs, ShownMember};
use crate::views::text::TextFormat;

/// Name of the page to look at. The names below, too, stand beside those of members.
pub(crate) const INDEX_PAGE: &str = "index.html";
/// Name of the file that describes a group or table.
pub(crate) const METADATA: &str = "metadata.json";
pub(crate) const INDEXES: &str = "indexes.json";
pub(crate) const HEAD: &str = "head.csv";
pub(crate) const COLUMNS: &str = "columns";
pub(crate) const WHERE: &str = "where";
pub(crate) const TABLE_CSV: &str = "table.csv";
pub(crate) const TABLE_NDJSON: &str = "table.ndjson";
pub(crate) const TABLE_PARQUET: &str = "table.parquet";
pub(crate) const TABLE_ARROW: &str = "table.arrow";
pub(crate) const TABLE_NPY: &str = "table.npy";
pub(crate) const TABLE_RAW: &str = "table.raw";

/// Names in a table's directory that no child may take.
pub(super) const RESERVED_IN_TABLES: [&str; 13] = [
    INDEX_PAGE,
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
    live::DIRECTORY,
];

/// Names that no child may take in the directory of a table that only adds names.
pub(super) const RESERVED_BESIDE_COLUMNS: [&str; 9] =
    [INDEX_PAGE, METADATA, HEAD, WHERE, TABLE_CSV, TABLE_NDJSON, TABLE_PARQUET, TABLE_ARROW, live::DIRECTORY];

/// The suffix of pages, which no dataset or column has.
pub(super) const HTML: &str = ".html";

/// Every suffix of a file of a dataset or column, and that of pages. The set is closed: a further suffix would rename
/// groups, whose names avoid all of these, whether or not a dataset has such a file.
pub(crate) const SUFFIXES: [&str; 11] =
    [".arrow", ".csv", ".html", ".ndjson", ".npy", ".parquet", ".pgm", ".png", ".ppm", ".raw", ".txt"];

/// The file formats shown for tables and datasets (`--formats`), by suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats(u16);

impl Default for Formats {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Formats {
    /// All format names: the suffixes without their dot.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SUFFIXES.iter().map(|suffix| suffix.trim_start_matches('.'))
    }

    /// The set of these formats; unknown names are ignored.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let places = names.into_iter().filter_map(|name| Self::names().position(|known| known == name));
        Self(places.fold(0, |all, place| all | 1 << place))
    }

    /// Whether Parquet is the only one.
    pub(crate) fn is_parquet_alone(self) -> bool {
        self == Self::of(["parquet"])
    }

    /// Whether a file of this name is shown.
    pub(crate) fn shows(self, name: &[u8]) -> bool {
        let place = SUFFIXES.iter().position(|suffix| name.ends_with(suffix.as_bytes()));
        place.is_none_or(|place| self.0 >> place & 1 == 1)
    }
}

/// The file, directory or link behind a name.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    /// `index.html`.
    Page,
    /// `metadata.json`.
    Metadata,
    /// `indexes.json`.
    Indexes,
    /// The list of datasets that differ from an earlier state.
    Changes,
    /// `columns/`.
    Columns,
    /// `where/`.
    Where,
    /// A text view of the whole table, or of its first rows.
    Table(TextFormat, Option<u64>),
    /// The whole table as Parquet.
    Parquet,
    /// The whole table as an Arrow file.
    Arrow,
    /// Rows of a table that is one dataset, as stored, with or without a NumPy header.
    Whole(ElementsForm),
    /// A view of the column at this position.
    Column(usize, ColumnView),
    /// A file of a dataset that is a table by itself.
    Single(Arc<ShownArray>, SingleFile),
    /// A subdirectory.
    Directory(Box<DirectoryPlace>),
    /// A symbolic link.
    Link(BString),
}

impl Child {
    /// The kind of its directory entry.
    pub fn kind(&self) -> EntryKind {
        match self {
            Child::Columns | Child::Where | Child::Directory(_) => EntryKind::Directory,
            Child::Link(_) => EntryKind::Symlink,
            _ => EntryKind::File,
        }
    }
}

/// How a file shows elements as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementsForm {
    Raw,
    /// With a NumPy header.
    Npy,
}

/// How a file shows a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnView {
    Raw,
    Npy,
    Parquet,
    Text(TextFormat),
    Arrow,
}

impl ColumnView {
    /// All views, with their suffixes.
    pub const ALL: [(&str, Self); 7] = [
        (".arrow", Self::Arrow),
        (".csv", Self::Text(TextFormat::Csv)),
        (".ndjson", Self::Text(TextFormat::Ndjson)),
        (".npy", Self::Npy),
        (".parquet", Self::Parquet),
        (".raw", Self::Raw),
        (".txt", Self::Text(TextFormat::Txt)),
    ];
}

/// The group, dataset or made-up table that a directory shows.
#[derive(Clone, Debug)]
pub(crate) enum DirectoryPlace {
    /// The table of a file that is not HDF5.
    File,
    /// A group.
    Group(GroupPlace),
    /// A dataset that is a table.
    Dataset(Arc<ShownArray>),
    /// A directory that a dialect made up below a group, under this name.
    Made(GroupPlace, BString, Made),
}

/// The identity, path and link of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlace {
    pub id: ObjectId,
    /// HDF5 path.
    pub path: String,
    /// Name of the link.
    pub link: BString,
}

/// A dataset shown by itself.
#[derive(Debug)]
pub(crate) struct ShownArray {
    pub name: BString,
    pub path: String,
    pub dataset: Arc<Dataset>,
    pub dialect: &'static dyn Dialect,
    /// The group beside the dataset that serves it.
    servant: Option<ObjectId>,
    /// Its tables, shared while one of its files is in use, so that the files share read-ahead.
    single: Mutex<Weak<Single>>,
}

impl ShownArray {
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

    /// The dataset's site, for its dialect.
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
    /// The reason why the dataset cannot be opened.
    pub fn single(&self, file: &Arc<File>, interrupt: &Interrupt) -> Result<Arc<Single>, String> {
        let mut known = self.single.lock();
        if let Some(single) = known.upgrade() {
            return Ok(single);
        }
        let single = Arc::new(Dialects::files(self.dialect, &self.site(file), &self.name, interrupt)?);
        *known = Arc::downgrade(&single);
        Ok(single)
    }
}

/// One member of a directory, with all its names.
#[derive(Debug)]
pub(crate) enum ListingEntry {
    /// A single name, and what stands behind it.
    One(BString, Box<Child>),
    /// The files of a column: its position, and a bit for each of [`ColumnView::ALL`].
    Column(BString, usize, u8),
    /// The files of a dataset that is a table by itself.
    Single(ShownName, Arc<Dataset>, Arc<Siblings>),
    /// The directory of a subgroup, and whether it is marked as a table; the path is that of the group above.
    Group(ShownName, ObjectId, Arc<String>, bool),
    /// Symbolic links with these suffixes, to files whose names begin with the second stem.
    Links(BString, Box<(BString, Vec<&'static str>)>),
}

/// A member's name as shown, and as stored.
#[derive(Debug)]
pub(crate) struct ShownName {
    shown: BString,
    /// The link's name, if it differs.
    link: Option<Box<BString>>,
}

impl ShownName {
    pub fn new(shown: BString, link: &BString) -> Self {
        let link = (shown != *link).then(|| Box::new(link.clone()));
        Self { shown, link }
    }

    /// The link's name.
    pub fn link(&self) -> &BString {
        self.link.as_deref().unwrap_or(&self.shown)
    }
}

/// The common properties of a group's datasets that are shown alike.
#[derive(Clone, Debug)]
pub(crate) struct Siblings {
    /// HDF5 path of the group.
    pub path: Arc<String>,
    pub dialect: &'static dyn Dialect,
    /// The group beside the datasets that serves them.
    pub servant: Option<ObjectId>,
    pub files: Vec<SingleFile>,
    /// The suffixes of the files, for descriptions.
    pub suffixes: Arc<[&'static str]>,
}

impl Siblings {
    /// Whether both sets are shown in the same way.
    pub fn are_like(&self, other: &Self) -> bool {
        self.dialect.about().name == other.dialect.about().name
            && (&self.path, self.servant, &self.files) == (&other.path, other.servant, &other.files)
    }

    fn array(&self, named: &ShownName, dataset: &Arc<Dataset>) -> Arc<ShownArray> {
        ShownArray::new(named.link(), join(&self.path, named.link()), dataset, self.dialect, self.servant)
    }
}

impl ListingEntry {
    /// The entry's name, or the stem of its names.
    fn stem(&self) -> &BString {
        match self {
            Self::One(stem, _) | Self::Column(stem, ..) | Self::Links(stem, _) => stem,
            Self::Single(named, ..) | Self::Group(named, ..) => &named.shown,
        }
    }

    /// The suffix and kind of the entry's name at an index; `None`: the entry has no such name.
    fn kind(&self, at: usize) -> Option<(&'static str, EntryKind)> {
        match self {
            Self::One(_, child) => (at == 0).then(|| ("", child.kind())),
            Self::Group(..) => (at == 0).then_some(("", EntryKind::Directory)),
            Self::Column(_, _, shown) => {
                let (suffix, _) = *ColumnView::ALL.get(at).filter(|_| shown >> at & 1 == 1)?;
                Some((suffix, EntryKind::File))
            }
            Self::Single(_, _, siblings) => Some((siblings.files.get(at)?.suffix, EntryKind::File)),
            Self::Links(_, links) => Some((links.1.get(at)?, EntryKind::Symlink)),
        }
    }

    /// The suffix and kind of the entry's name at an index, if the mount shows files of this format.
    fn shown(&self, at: usize, formats: Formats) -> Option<(&'static str, EntryKind)> {
        let (suffix, kind) = self.kind(at)?;
        let is_shown = match self {
            Self::One(name, child) => {
                !matches!(**child, Child::Page | Child::Changes | Child::Table(..) | Child::Parquet | Child::Arrow)
                    || formats.shows(name)
            }
            _ => formats.shows(suffix.as_bytes()),
        };
        is_shown.then_some((suffix, kind))
    }

    fn is_one(&self) -> bool {
        matches!(self, Self::One(..) | Self::Group(..))
    }

    /// Whether the entry is a member, not a file of the directory itself.
    pub fn is_member(&self) -> bool {
        match self {
            Self::One(_, child) => matches!(**child, Child::Directory(_) | Child::Link(_)),
            Self::Column(..) => false,
            Self::Single(..) | Self::Group(..) | Self::Links(..) => true,
        }
    }

    /// The member as far as the listing knows it; `None`: a file of the directory itself.
    pub fn member(&self) -> Option<ShownMember> {
        match self {
            Self::Group(named, _, _, is_table) => {
                let kind = if *is_table { "table" } else { "group" };
                let shown_as = ShownAs::Name(named.shown.clone());
                Some(ShownMember { shown_as, ..ShownMember::new(named.link(), kind) })
            }
            Self::Single(named, dataset, siblings) => {
                let shown_as = ShownAs::Files(named.shown.clone(), siblings.suffixes.clone());
                let details = Details::Array(dataset.clone(), None);
                Some(ShownMember { shown_as, details, ..ShownMember::new(named.link(), "array") })
            }
            Self::One(name, child) => {
                let kind = match &**child {
                    Child::Directory(place) => match &**place {
                        DirectoryPlace::Dataset(_) | DirectoryPlace::File => "table",
                        DirectoryPlace::Group(_) | DirectoryPlace::Made(..) => "group",
                    },
                    Child::Link(_) => "link",
                    _ => return None,
                };
                Some(ShownMember { shown_as: ShownAs::Name(name.clone()), ..ShownMember::new(name, kind) })
            }
            Self::Links(stem, links) => {
                let files = ShownAs::Files(stem.clone(), links.1.as_slice().into());
                Some(ShownMember { shown_as: files, ..ShownMember::new(stem, "link") })
            }
            Self::Column(..) => None,
        }
    }

    /// The directory that the entry stands for; `None`: files or a link.
    pub fn place(&self) -> Option<DirectoryPlace> {
        match self {
            Self::One(_, child) => match &**child {
                Child::Directory(place) => Some((**place).clone()),
                _ => None,
            },
            Self::Group(named, id, path, _) => {
                let link = named.link().clone();
                Some(DirectoryPlace::Group(GroupPlace { id: *id, path: join(path, &link), link }))
            }
            _ => None,
        }
    }
}

/// The names of a directory, in the order shown. A directory may have very many, so each member is one
/// [`ListingEntry`], and its names are made on demand.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    entries: Vec<ListingEntry>,
    /// Positions of the entries with a single name, by that name.
    names: HashTable<u32>,
    /// Positions of the entries with several names, by their common stem.
    stems: HashTable<u32>,
    hasher: RandomState,
    /// Datasets shown by themselves, by position, so that the files of one share read-ahead.
    arrays: Mutex<InUse<usize, ShownArray>>,
    /// The formats shown.
    pub formats: Formats,
}

/// Most names that one entry has: a child's number is the entry's position times this, plus the index of the name.
const MOST_OF_ENTRY: usize = 16;

impl Listing {
    /// Adds a single name.
    pub fn add(&mut self, name: BString, child: Child) {
        self.push(ListingEntry::One(name, Box::new(child)));
    }

    /// Adds a member.
    pub fn push(&mut self, entry: ListingEntry) {
        let Ok(position) = u32::try_from(self.entries.len()) else { return };
        let Self { entries, hasher, .. } = self;
        let places = if entry.is_one() { &mut self.names } else { &mut self.stems };
        let stem = |at: &u32| entries.get(*at as usize).map(ListingEntry::stem);
        let hash = hasher.hash_one(entry.stem());
        // Names are made unique; if two ever collide, the first stays.
        if places.find(hash, |at| stem(at) == Some(entry.stem())).is_none() {
            places.insert_unique(hash, position, |at| stem(at).map_or(0, |stem| hasher.hash_one(stem)));
            self.entries.push(entry);
        }
    }

    /// The position of the entry with this name or stem.
    fn position(&self, places: &HashTable<u32>, stem: &[u8]) -> Option<usize> {
        let at = places.find(self.hasher.hash_one(stem.as_bstr()), |at| {
            self.entries.get(*at as usize).is_some_and(|entry| *entry.stem() == *stem)
        });
        Some(*at? as usize)
    }

    /// The members, shown or not, each with the number of its first name.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &ListingEntry)> {
        self.entries.iter().enumerate().map(|(position, entry)| (position * MOST_OF_ENTRY, entry))
    }

    /// The members, shown or not.
    pub fn entries(&self) -> &[ListingEntry] {
        &self.entries
    }

    /// The first shown name at or after a place, with its place.
    pub fn name(&self, place: u64) -> Option<(u64, DirEntry)> {
        let mut place = usize::try_from(place).ok()?;
        loop {
            let entry = self.entries.get(place / MOST_OF_ENTRY)?;
            if let Some((suffix, kind)) = entry.shown(place % MOST_OF_ENTRY, self.formats) {
                return Some((place as u64, DirEntry { name: with_suffix(entry.stem(), suffix), kind }));
            }
            place += 1;
        }
    }

    /// The number of a shown name; `None`: no shown entry has it.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if let Some(position) = self.position(&self.names, name) {
            self.entries.get(position)?.shown(0, self.formats)?;
            return Some(position * MOST_OF_ENTRY);
        }
        SUFFIXES.iter().find_map(|suffix| {
            let position = self.position(&self.stems, name.strip_suffix(suffix.as_bytes())?)?;
            let entry = self.entries.get(position)?;
            let at = (0..MOST_OF_ENTRY).find(|at| entry.shown(*at, self.formats).is_some_and(|(of, _)| of == *suffix));
            Some(position * MOST_OF_ENTRY + at?)
        })
    }

    /// The child behind a shown name, and its number.
    pub fn get(&self, name: &[u8]) -> Option<(usize, Child)> {
        let number = self.find(name)?;
        Some((number, self.child(number)?))
    }

    /// Whether a number stands for a file of a dataset that is a table by itself.
    pub fn is_single(&self, number: usize) -> bool {
        matches!(self.entries.get(number / MOST_OF_ENTRY), Some(ListingEntry::Single(..)))
    }

    /// The child behind a number.
    pub fn child(&self, number: usize) -> Option<Child> {
        let (position, at) = (number / MOST_OF_ENTRY, number % MOST_OF_ENTRY);
        Some(match self.entries.get(position)? {
            ListingEntry::One(_, child) => (**child).clone(),
            entry @ ListingEntry::Group(..) => Child::Directory(Box::new(entry.place()?)),
            ListingEntry::Column(_, column, _) => Child::Column(*column, ColumnView::ALL.get(at)?.1),
            ListingEntry::Single(_, _, siblings) => {
                Child::Single(self.array(position)?, siblings.files.get(at)?.clone())
            }
            ListingEntry::Links(_, links) => Child::Link(with_suffix(&links.0, links.1.get(at)?)),
        })
    }

    /// The dataset shown by itself at a position of the entries.
    pub fn array(&self, position: usize) -> Option<Arc<ShownArray>> {
        let ListingEntry::Single(named, dataset, siblings) = self.entries.get(position)? else { return None };
        let mut arrays = self.arrays.lock();
        Some(arrays.get(&position).unwrap_or_else(|| {
            let array = siblings.array(named, dataset);
            arrays.insert(position, &array);
            array
        }))
    }
}

/// The stem, followed by a suffix.
pub(crate) fn with_suffix(stem: &BString, suffix: &str) -> BString {
    let mut name = stem.clone();
    name.extend_from_slice(suffix.as_bytes());
    name
}

/// The target of a link in the mount, relative to the link's directory.
#[derive(Clone, Debug)]
pub(crate) enum LinkDestination {
    /// A directory.
    Directory(BString),
    /// Files with these suffixes, whose names begin with this stem.
    Files { stem: BString, suffixes: Vec<&'static str> },
}
