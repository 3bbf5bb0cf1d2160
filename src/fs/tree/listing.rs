//! What a group's directory holds: pure functions from the catalogue, and what dialects claim of it, to names and what
//! stands behind them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::tables;
use crate::catalogue::{Dataset, Group, Layout, Object, ObjectId, Target, join};
use crate::dialects::{Claims, Dialect, Dialects, Made, Mark, Of, Site};
use crate::fs::names;
use crate::fs::node::Kind;
use crate::store::{File, Reach};
use crate::table::{Finding, Single, SingleFile};
use crate::views::metadata::{Member, array_details};
use crate::views::text::Format;

/// Files of a directory of a group, beside its children.
pub(super) const METADATA: &str = "metadata.json";
pub(super) const INDEXES: &str = "indexes.json";
pub(super) const HEAD: &str = "head.csv";
pub(super) const COLUMNS: &str = "columns";
pub(super) const WHERE: &str = "where";
pub(super) const TABLE_CSV: &str = "table.csv";
pub(super) const TABLE_NDJSON: &str = "table.ndjson";
pub(super) const TABLE_PARQUET: &str = "table.parquet";
pub(super) const TABLE_ARROW: &str = "table.arrow";

/// Names in a table's directory that no child may take.
pub(super) const RESERVED_IN_TABLES: [&str; 10] = [
    METADATA,
    INDEXES,
    HEAD,
    COLUMNS,
    WHERE,
    TABLE_CSV,
    TABLE_NDJSON,
    TABLE_PARQUET,
    TABLE_ARROW,
    super::live::DIRECTORY,
];

/// Names in any other directory that no child may take.
const RESERVED_IN_GROUPS: [&str; 2] = [METADATA, super::live::DIRECTORY];

/// Every suffix that a file of a dataset or column can have. The set is closed: one more would rename groups, which give way
/// to all of them whether a dataset has such a file or not.
pub(super) const SUFFIXES: [&str; 9] =
    [".arrow", ".csv", ".ndjson", ".npy", ".parquet", ".pgm", ".ppm", ".raw", ".txt"];

/// What stands behind a name.
#[derive(Clone, Debug)]
pub(super) enum Child {
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

/// A view of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnView {
    Raw,
    Npy,
    Parquet,
    Text(Format),
    Arrow,
}

/// What a directory shows.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A group.
    Group(GroupPlace),
    /// A dataset that is a table.
    Dataset(Arc<Array>),
    /// What a dialect made up below a group, under this name.
    Made(GroupPlace, BString, Made),
}

/// Where a group is found.
#[derive(Clone, Debug)]
pub(super) struct GroupPlace {
    pub id: ObjectId,
    /// HDF5 path.
    pub path: String,
    /// Name of the link.
    pub link: BString,
}

/// A dataset shown by itself.
#[derive(Debug)]
pub(super) struct Array {
    pub name: BString,
    pub path: String,
    pub dataset: Dataset,
    pub dialect: &'static dyn Dialect,
    /// Its tables, while one of its files is in use: they share what reads ahead.
    single: Mutex<Weak<Single>>,
}

impl Array {
    fn new(name: &BString, path: String, dataset: &Dataset, dialect: &'static dyn Dialect) -> Arc<Self> {
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
    pub fn single(&self, file: &Arc<File>) -> Result<Arc<Single>, String> {
        let mut known = self.single.lock();
        if let Some(single) = known.upgrade() {
            return Ok(single);
        }
        let single = Arc::new(self.dialect.files(&self.site(file), &self.name)?.observed(file));
        *known = Arc::downgrade(&single);
        Ok(single)
    }
}

/// The names of a directory, in the order shown.
#[derive(Debug, Default)]
pub(super) struct Listing {
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

    /// What stands behind a name.
    pub fn get(&self, name: &[u8]) -> Option<(usize, &Child)> {
        let position = *self.positions.get(name.as_bstr())?;
        Some((position, &self.entries[position].1))
    }
}

/// Names in the directory of a group, so that no two members share one.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Names that no member may take.
    reserved: HashSet<BString>,
    /// Stems of members that are files, to which directories give way.
    stems: HashSet<BString>,
}

impl Namespace {
    /// The names of a group's members. A soft link counts as files, wherever it leads: so names depend on the group alone.
    pub fn new(group: &Group, claims: &Claims) -> Self {
        let reserved: &[&str] = if claims.is_table { &RESERVED_IN_TABLES } else { &RESERVED_IN_GROUPS };
        let reserved = reserved.iter().map(|name| BString::from(*name));
        let made = claims.made.iter().map(|(name, _)| names::encode_directory(name));
        let mut namespace = Self { reserved: reserved.chain(made).collect(), stems: HashSet::new() };
        let is_files = |target: &Target| {
            matches!(target, Target::Soft { .. }) || matches!(target.object(), Some(Object::Dataset(_)))
        };
        let shown = group.links.iter().filter(|link| !claims.members.contains_key(&link.name));
        namespace.stems = shown.filter(|link| is_files(&link.target)).map(|link| namespace.stem(&link.name)).collect();
        namespace
    }

    /// The stem of the names of a member that is files; escaped where one of them would be reserved.
    pub fn stem(&self, name: &[u8]) -> BString {
        let plain = names::encode(name);
        let is_reserved = |suffix: &&str| self.reserved.contains(&with_suffix(&plain, suffix));
        if SUFFIXES.iter().any(|suffix| is_reserved(&suffix)) { names::encode_reserved(name) } else { plain }
    }

    /// The name of a member that is a directory; escaped where it is reserved or a file may have it.
    pub fn directory(&self, name: &[u8]) -> BString {
        let plain = names::encode_directory(name);
        let stem = |suffix: &&str| plain.strip_suffix(suffix.as_bytes());
        let is_taken = |stem: &[u8]| self.stems.contains(stem.as_bstr());
        if self.reserved.contains(&plain) || SUFFIXES.iter().filter_map(stem).any(is_taken) {
            names::encode_reserved(name)
        } else {
            plain
        }
    }
}

/// The stem with a suffix behind it.
pub(super) fn with_suffix(stem: &BString, suffix: &str) -> BString {
    let mut name = stem.clone();
    name.extend_from_slice(suffix.as_bytes());
    name
}

/// Where a link leads in the mount, relative to the directory of the link.
#[derive(Debug)]
pub(super) enum Shown {
    /// To a directory.
    Directory(BString),
    /// To files of these suffixes, whose names begin so.
    Files { stem: BString, suffixes: Vec<&'static str> },
}

/// Where a link leads; the reason where that is nothing that is shown. `None` for what is shown under the link's own name.
pub(super) type LinkTarget<'a> = dyn Fn(&Target, &BString) -> Option<Result<Shown, String>> + 'a;

/// A group while its members are listed.
pub(super) struct Members<'a> {
    pub file: &'a Arc<File>,
    pub path: &'a str,
    pub group: &'a Group,
    pub dialects: Dialects,
    pub claims: &'a Claims,
    pub link_target: &'a LinkTarget<'a>,
}

impl Members<'_> {
    /// Adds the members that are shown by themselves, with what `metadata.json` says of each.
    pub fn list(&self, listing: &mut Listing, members: &mut Vec<Member>, findings: &mut Vec<Finding>) {
        let names = Namespace::new(self.group, self.claims);
        for (name, made) in &self.claims.made {
            let here = GroupPlace { id: self.group.id, path: self.path.to_owned(), link: name.clone() };
            listing.add(names::encode_directory(name), Child::Directory(Place::Made(here, name.clone(), made.clone())));
        }
        let mut directories = Vec::new();
        for link in self.group.links.iter().filter(|link| !self.claims.members.contains_key(&link.name)) {
            let mut member = Member::new(&link.name, "link");
            match &link.target {
                Target::Hard(object) | Target::External { object: Some(object), .. } => {
                    let path = join(self.path, &link.name);
                    member.kind = self.dialects.kind(&path, object);
                    match object {
                        Object::Group { id, .. } => {
                            let child = match (self.link_target)(&link.target, &link.name) {
                                Some(Ok(Shown::Directory(elsewhere))) => Ok(Child::Link(elsewhere)),
                                Some(Ok(Shown::Files { .. })) => Err("it is a column elsewhere".to_owned()),
                                Some(Err(reason)) => Err(reason),
                                None => Ok(Child::Directory(Place::Group(GroupPlace {
                                    id: *id,
                                    path,
                                    link: link.name.clone(),
                                }))),
                            };
                            directories.push((member, child));
                            continue;
                        }
                        Object::Dataset(dataset) => {
                            if let Some(child) = self.dataset(&names, path, dataset, listing, &mut member, findings) {
                                directories.push((member, Ok(child)));
                                continue;
                            }
                        }
                        Object::Datatype { .. } => {
                            member.not_shown.push("a committed datatype has no elements".into());
                        }
                        Object::Unreadable { reason, .. } => member.not_shown.push(reason.clone()),
                    }
                }
                Target::Soft { path, .. } => {
                    member.details.insert("target".into(), path.to_string().into());
                    match (self.link_target)(&link.target, &link.name) {
                        Some(Ok(Shown::Files { stem, suffixes })) => {
                            let own = names.stem(&link.name);
                            for suffix in suffixes {
                                let target = Child::Link(with_suffix(&stem, suffix));
                                member.shown_as.push(with_suffix(&own, suffix));
                                listing.add(with_suffix(&own, suffix), target);
                            }
                        }
                        Some(Ok(Shown::Directory(target))) => {
                            directories.push((member, Ok(Child::Link(target))));
                            continue;
                        }
                        Some(Err(reason)) => member.not_shown.push(reason),
                        None => member.not_shown.push("it leads to nothing that is shown".into()),
                    }
                }
                Target::External { file, path, object: None } => {
                    member.kind = "external link";
                    member.details.insert("file".into(), file.to_string().into());
                    member.details.insert("target".into(), path.to_string().into());
                    member.not_shown.push(if Reach::of(self.file).follows() {
                        "it leads to nothing that may be followed: other files lie below the source's own folder".into()
                    } else {
                        "links into other files are followed only with --follow-external".into()
                    });
                }
                Target::UserDefined(class) => {
                    member.kind = "user-defined link";
                    member.not_shown.push(format!("links of class {class} are not known"));
                }
                Target::Unreadable(reason) => member.not_shown.push(reason.clone()),
            }
            members.push(member);
        }
        for (mut member, child) in directories {
            match child {
                Ok(child) => {
                    let name = names.directory(&member.name);
                    member.shown_as.push(name.clone());
                    listing.add(name, child);
                }
                Err(reason) => member.not_shown.push(reason),
            }
            members.push(member);
        }
    }

    /// Adds the files of a dataset, or gives the directory that it is.
    fn dataset(
        &self,
        names: &Namespace,
        path: String,
        dataset: &Dataset,
        listing: &mut Listing,
        member: &mut Member,
        findings: &mut Vec<Finding>,
    ) -> Option<Child> {
        member.details = array_details(dataset);
        let (dialect, mark) = self.dialects.shown(&path, dataset, findings)?;
        let array = Array::new(&member.name, path, dataset, dialect);
        if mark == Mark::Table {
            return Some(Child::Directory(Place::Dataset(array)));
        }
        let stem = names.stem(&member.name);
        for (file, view) in files(self.file, &array).unwrap_or_else(|reason| {
            member.not_shown.push(reason);
            Vec::new()
        }) {
            match view {
                Ok(()) => {
                    let name = with_suffix(&stem, file.suffix);
                    member.shown_as.push(name.clone());
                    listing.add(name, Child::Single(array.clone(), file));
                }
                Err(reason) => member.not_shown.push(format!("{}: {reason}", file.suffix)),
            }
        }
        None
    }
}

/// The files of a dataset, each with the reason where it cannot be shown; one reason where none can.
fn files(file: &Arc<File>, array: &Array) -> Result<Vec<(SingleFile, Result<(), String>)>, String> {
    let Array { dataset, .. } = array;
    if dataset.null {
        return Err("the dataspace is null: there is no element".into());
    }
    if let Layout::Unknown(class) = dataset.layout {
        return Err(format!("layout class {class} is not known"));
    }
    if let Some(reason) = Reach::of(file).lacks(dataset) {
        return Err(reason);
    }
    // Looked at and dropped: a group may have very many datasets.
    let single = array.dialect.files(&array.site(file), &array.name)?;
    Ok(single.files.iter().map(|one| (one.clone(), tables::single_view(&single, one, &dataset.datatype))).collect())
}

/// The suffixes of the files that a dataset is shown as.
pub(super) fn suffixes(
    file: &Arc<File>,
    path: &str,
    name: &BString,
    dataset: &Dataset,
    dialect: &'static dyn Dialect,
) -> Vec<&'static str> {
    let array = Array::new(name, path.to_owned(), dataset, dialect);
    let shown = files(file, &array).unwrap_or_default().into_iter();
    shown.filter(|(_, view)| view.is_ok()).map(|(file, _)| file.suffix).collect()
}
