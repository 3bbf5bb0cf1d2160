//! What a group's directory holds: pure functions from the catalogue to names and what stands behind them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use crate::catalogue::{Class, Dataset, Group, Layout, Object, ObjectId, Target, join};
use crate::fs::names;
use crate::fs::node::Kind;
use crate::store::Reach;
use crate::table::{Column, Table};
use crate::views::ipc::{self, IpcColumn};
use crate::views::metadata::{Member, array_details};
use crate::views::npy::NpyType;
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::text::Format;

/// Files of a directory of a group, beside its children.
pub(super) const METADATA: &str = "metadata.json";
pub(super) const INDEXES: &str = "indexes.json";
pub(super) const HEAD: &str = "head.csv";
pub(super) const COLUMNS: &str = "columns";
const WHERE: &str = "where";
const TABLE_PARQUET: &str = "table.parquet";
const TABLE_ARROW: &str = "table.arrow";

/// Names in a table's directory that no child may take: those above, views still to come among them, so that a name
/// stays what it is when they come.
const RESERVED_IN_TABLES: [&str; 10] = [
    METADATA,
    INDEXES,
    HEAD,
    COLUMNS,
    WHERE,
    "table.csv",
    "table.ndjson",
    TABLE_PARQUET,
    TABLE_ARROW,
    super::live::DIRECTORY,
];

/// Names in any other group's directory that no child may take.
const RESERVED_IN_GROUPS: [&str; 2] = [METADATA, super::live::DIRECTORY];

/// Rows of `head.csv`.
pub(super) const HEAD_ROWS: u64 = 1000;

/// Largest size that `stat` can state.
const LARGEST: u64 = i64::MAX as u64;

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
    /// An array's elements as stored.
    Raw(Arc<Array>),
    /// The same behind a NumPy header.
    Npy(Arc<Array>),
    /// A group.
    Group { id: ObjectId, path: String, link: BString },
    /// A symbolic link.
    Link(BString),
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

/// A dataset that is no column.
#[derive(Debug)]
pub(super) struct Array {
    pub name: BString,
    pub path: String,
    pub dataset: Arc<Dataset>,
}

impl Child {
    /// What kind of node it is.
    pub fn kind(&self) -> Kind {
        match self {
            Child::Columns | Child::Where | Child::Group { .. } => Kind::Directory,
            Child::Link(_) => Kind::Symlink,
            _ => Kind::File,
        }
    }
}

/// The names of a directory, in the order shown.
#[derive(Debug, Default)]
pub(super) struct Listing {
    entries: Vec<(BString, Child)>,
    positions: HashMap<BString, usize>,
}

impl Listing {
    fn add(&mut self, name: BString, child: Child) {
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

/// Where a link leads in the mount, relative to the directory of the link; `None` where it leads nowhere that is shown.
pub(super) type LinkTarget<'a> = dyn Fn(&Target, &[u8]) -> Option<Shown> + 'a;

/// How the target of a link is shown.
pub(super) enum Shown {
    /// As a directory.
    Directory(BString),
    /// As files whose names begin so.
    Files { stem: BString },
}

/// The directory of a group, with what `metadata.json` says of each member.
///
/// `reach` says what may be read; `link_target` tells where a soft link leads, and for a hard link to a group whether that group is shown elsewhere.
pub(super) fn list(
    group: &Group,
    path: &str,
    table: Option<&Table>,
    reach: Reach,
    link_target: &LinkTarget<'_>,
) -> (Listing, Vec<Member>) {
    let mut listing = Listing::default();
    let reserved: &[&str] = if table.is_some() { &RESERVED_IN_TABLES } else { &RESERVED_IN_GROUPS };
    let mut members = Vec::new();
    listing.add(METADATA.into(), Child::Metadata);
    if let Some(table) = table {
        listing.add(INDEXES.into(), Child::Indexes);
        if table.columns.iter().any(|column| column.in_table) {
            listing.add(HEAD.into(), Child::Table(Format::Csv, Some(HEAD_ROWS)));
            for (suffix, format) in [("csv", Format::Csv), ("ndjson", Format::Ndjson)] {
                if text_fits(table.rows) {
                    listing.add(format!("table.{suffix}").into(), Child::Table(format, None));
                }
            }
            let nothing = || Err("no column can be shown".into());
            let arrow = match IpcColumn::of_table(table).as_slice() {
                [] => nothing(),
                columns => ipc::check(columns),
            };
            let parquet = match parquet_columns(table).as_slice() {
                [] => nothing(),
                columns => ParquetView::check(columns),
            };
            for (name, child, shown) in [(TABLE_PARQUET, Child::Parquet, parquet), (TABLE_ARROW, Child::Arrow, arrow)] {
                match shown {
                    Ok(()) => listing.add(name.into(), child),
                    Err(reason) => members.push(Member {
                        name: name.into(),
                        kind: "view",
                        shown_as: Vec::new(),
                        not_shown: vec![reason],
                        details: Default::default(),
                    }),
                }
            }
        }
        listing.add(COLUMNS.into(), Child::Columns);
        if table.columns.iter().any(|column| column.in_table) {
            listing.add(WHERE.into(), Child::Where);
        }
    }
    let columns: HashSet<&BString> = table.iter().flat_map(|table| &table.columns).map(|column| &column.name).collect();
    let servants: HashSet<&BString> = table.iter().flat_map(|table| &table.servants).collect();
    let mut taken: HashSet<BString> = reserved.iter().map(|name| BString::from(*name)).collect();
    let links = || group.links.iter().filter(|link| !columns.contains(&link.name) && !servants.contains(&link.name));
    // Files first: a group named `x.npy` gives way to the view of a dataset `x`.
    for link in links() {
        let mut member = Member {
            name: link.name.clone(),
            kind: "array",
            shown_as: Vec::new(),
            not_shown: Vec::new(),
            details: Default::default(),
        };
        match &link.target {
            Target::Hard(Object::Dataset(dataset))
            | Target::External { object: Some(Object::Dataset(dataset)), .. } => {
                let array = Arc::new(Array {
                    name: link.name.clone(),
                    path: join(path, &link.name),
                    dataset: Arc::new((**dataset).clone()),
                });
                let stem = free_stem(&link.name, &[".npy", ".raw"], &taken);
                let [npy, raw] = array_views(dataset, reach);
                for (suffix, view, child) in
                    [(".npy", npy, Child::Npy(array.clone())), (".raw", raw, Child::Raw(array.clone()))]
                {
                    match view {
                        Ok(()) => {
                            let name = with_suffix(&stem, suffix);
                            taken.insert(name.clone());
                            member.shown_as.push(name.clone());
                            listing.add(name, child);
                        }
                        Err(reason) => member.not_shown.push(format!("{suffix}: {reason}")),
                    }
                }
                member.details = array_details(dataset);
            }
            Target::Soft { path: soft, object } => {
                member.kind = "link";
                member.details.insert("target".into(), soft.to_string().into());
                match link_target(&link.target, &link.name) {
                    Some(Shown::Files { stem: target }) => {
                        let stem = free_stem(&link.name, &[".npy", ".raw"], &taken);
                        let [npy, mut raw] = match object {
                            Some(Object::Dataset(dataset)) => array_views(dataset, reach),
                            _ => [Ok(()), Ok(())],
                        };
                        if let Some(Object::Dataset(dataset)) = object
                            && target.contains_str("columns/")
                            && matches!(dataset.datatype.class, Class::VariableString { .. })
                        {
                            // What an array cannot have, a column has.
                            raw = Ok(());
                        }
                        for (suffix, view) in [(".npy", npy), (".raw", raw)] {
                            if let Err(reason) = view {
                                member.not_shown.push(format!("{suffix}: {reason}"));
                                continue;
                            }
                            let name = with_suffix(&stem, suffix);
                            taken.insert(name.clone());
                            member.shown_as.push(name.clone());
                            listing.add(name, Child::Link(with_suffix(&target, suffix)));
                        }
                    }
                    // Directories come below.
                    Some(Shown::Directory(_)) => continue,
                    None => member.not_shown.push("it leads to nothing that is shown".into()),
                }
            }
            Target::External { file, path, object } => {
                if matches!(object, Some(Object::Group { .. })) {
                    continue;
                }
                member.kind = "external link";
                member.details.insert("file".into(), file.to_string().into());
                member.details.insert("target".into(), path.to_string().into());
                member.not_shown.push(if reach.follows() {
                    "it leads to nothing that may be followed: other files lie below the source's own folder".into()
                } else {
                    "links into other files are followed only with --follow-external".into()
                });
            }
            Target::UserDefined(class) => {
                member.kind = "user-defined link";
                member.not_shown.push(format!("links of class {class} are not known"));
            }
            Target::Unreadable(reason) => {
                member.kind = "link";
                member.not_shown.push(reason.clone());
            }
            Target::Hard(Object::Datatype { .. }) => {
                member.kind = "datatype";
                member.not_shown.push("a committed datatype has no elements".into());
            }
            Target::Hard(Object::Unreadable { reason, .. }) => {
                member.kind = "unreadable";
                member.not_shown.push(reason.clone());
            }
            Target::Hard(Object::Group { .. }) => continue,
        }
        members.push(member);
    }
    for link in links() {
        let stem = || {
            let plain = names::encode_directory(&link.name);
            if taken.contains(&plain) { names::encode_reserved(&link.name) } else { plain }
        };
        let (kind, child) = match &link.target {
            Target::Hard(Object::Group { id, attributes, .. })
            | Target::External { object: Some(Object::Group { id, attributes, .. }), .. } => {
                let is_table = crate::dialects::hep001::text(attributes, "CLASS").as_deref() == Some("COLUMN_TABLE");
                let child = match link_target(&link.target, &link.name) {
                    Some(Shown::Directory(elsewhere)) => Child::Link(elsewhere),
                    _ => Child::Group { id: *id, path: join(path, &link.name), link: link.name.clone() },
                };
                (if is_table { "table" } else { "group" }, child)
            }
            Target::Soft { .. } => match link_target(&link.target, &link.name) {
                Some(Shown::Directory(target)) => ("link", Child::Link(target)),
                _ => continue,
            },
            _ => continue,
        };
        let name = stem();
        taken.insert(name.clone());
        members.push(Member {
            name: link.name.clone(),
            kind,
            shown_as: vec![name.clone()],
            not_shown: Vec::new(),
            details: Default::default(),
        });
        listing.add(name, child);
    }
    (listing, members)
}

/// The name, or for a dataset the stem of the names, under which a member of a group is shown; what [`list`] gives it,
/// short of clashes between escaped names.
pub(super) fn shown_name(group: &Group, is_table: bool, name: &[u8], object: &Object) -> BString {
    if !matches!(object, Object::Group { .. }) {
        return names::encode(name);
    }
    let plain = names::encode_directory(name);
    let reserved: &[&str] = if is_table { &RESERVED_IN_TABLES } else { &RESERVED_IN_GROUPS };
    let is_view = |suffix: &str| {
        let stem = plain.strip_suffix(suffix.as_bytes());
        let stem = stem.and_then(|stem| group.links.iter().find(|link| names::encode(&link.name) == stem));
        matches!(stem.and_then(|link| link.target.object()), Some(Object::Dataset(_)))
    };
    if reserved.iter().any(|reserved| plain == *reserved) || is_view(".npy") || is_view(".raw") {
        names::encode_reserved(name)
    } else {
        plain
    }
}

/// The stem of a dataset's file names; escaped where one of them would be taken.
fn free_stem(name: &BString, suffixes: &[&str], taken: &HashSet<BString>) -> BString {
    let plain = names::encode(name);
    let clashes = suffixes.iter().any(|suffix| taken.contains(&with_suffix(&plain, suffix)));
    if clashes { names::encode_reserved(name) } else { plain }
}

fn with_suffix(stem: &BString, suffix: &str) -> BString {
    let mut name = stem.clone();
    name.extend_from_slice(suffix.as_bytes());
    name
}

/// Whether text of so many rows can have a size that `stat` can state: every row has two bytes at least.
fn text_fits(rows: u64) -> bool {
    rows.checked_mul(2).is_some_and(|bytes| bytes <= LARGEST)
}

/// Whether `.npy` and `.raw` of an array can be shown.
fn array_views(dataset: &Dataset, reach: Reach) -> [Result<(), String>; 2] {
    let refuse = |reason: String| [Err(reason.clone()), Err(reason)];
    if dataset.null {
        return refuse("the dataspace is null: there is no element".into());
    }
    if let Layout::Unknown(class) = dataset.layout {
        return refuse(format!("layout class {class} is not known"));
    }
    if let Some(reason) = reach.lacks(dataset) {
        return refuse(reason);
    }
    let bytes = dataset.len().and_then(|len| len.checked_mul(dataset.datatype.size));
    // A header takes its share of what `stat` can state.
    if bytes.is_none_or(|bytes| bytes > LARGEST - (1 << 20)) {
        return refuse(format!("extent {:?} passes 2^63 bytes", dataset.shape));
    }
    if dataset.datatype.is_variable() {
        return refuse("elements of variable length have no fixed place".into());
    }
    [NpyType::of(&dataset.datatype).map(drop).map_err(|error| error.to_string()), Ok(())]
}

/// The directory `columns/`, with what `metadata.json` says of each column's views.
pub(super) fn list_columns(table: &Table) -> (Listing, Vec<Member>) {
    let mut listing = Listing::default();
    let mut members = Vec::with_capacity(table.columns.len());
    for (position, column) in table.columns.iter().enumerate() {
        let stem = names::encode(&column.name);
        let mut member = Member {
            name: column.name.clone(),
            kind: "column",
            shown_as: Vec::new(),
            not_shown: Vec::new(),
            details: Default::default(),
        };
        for (suffix, view) in COLUMN_VIEWS {
            match column_view(column, view) {
                Ok(()) => {
                    let name = with_suffix(&stem, suffix);
                    member.shown_as.push(name.clone());
                    listing.add(name, Child::Column(position, view));
                }
                Err(reason) => member.not_shown.push(format!("{suffix}: {reason}")),
            }
        }
        members.push(member);
    }
    (listing, members)
}

const COLUMN_VIEWS: [(&str, ColumnView); 7] = [
    (".arrow", ColumnView::Arrow),
    (".csv", ColumnView::Text(Format::Csv)),
    (".ndjson", ColumnView::Text(Format::Ndjson)),
    (".npy", ColumnView::Npy),
    (".parquet", ColumnView::Parquet),
    (".raw", ColumnView::Raw),
    (".txt", ColumnView::Text(Format::Txt)),
];

/// Whether a file or directory of some table may have this name.
pub(super) fn is_of_tables(name: &[u8]) -> bool {
    RESERVED_IN_TABLES.iter().any(|reserved| name == reserved.as_bytes())
        || COLUMN_VIEWS.iter().any(|(suffix, _)| name.ends_with(suffix.as_bytes()))
}

/// The columns of `table.parquet`: those of `table.csv` that have a place in a Parquet file.
fn parquet_columns(table: &Table) -> Vec<ParquetColumn> {
    let columns = table.columns.iter().filter(|column| column.in_table);
    columns.filter_map(|column| ParquetColumn::new(column).ok()).collect()
}

/// Whether a column can have a view.
fn column_view(column: &Column, view: ColumnView) -> Result<(), String> {
    let rows = column.rows.as_ref().map_err(Clone::clone)?;
    let too_large = || format!("{} rows pass 2^63 bytes", rows.len());
    match view {
        ColumnView::Text(_) if text_fits(rows.len()) => Ok(()),
        ColumnView::Text(_) => Err(too_large()),
        ColumnView::Parquet => ParquetView::check(&[ParquetColumn::new(column)?]),
        ColumnView::Arrow => IpcColumn::new(column).map(drop),
        ColumnView::Raw | ColumnView::Npy => {
            let stored = rows.stored_type().ok_or("a list column has no elements of its own")?;
            if view == ColumnView::Raw && column.stored_strings.is_some() {
                return if text_fits(rows.len()) { Ok(()) } else { Err(too_large()) };
            }
            let width = rows.stored_width().ok_or("elements of variable length have no fixed place")?;
            if rows.len().checked_mul(width).is_none_or(|bytes| bytes > LARGEST - (1 << 20)) {
                return Err(too_large());
            }
            if view == ColumnView::Npy {
                NpyType::of(stored).map_err(|error| error.to_string())?;
            }
            Ok(())
        }
    }
}
