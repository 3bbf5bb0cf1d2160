//! The column that an index is of, and how its table keeps indexes.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::{Error, stored};
use crate::catalogue::{Attribute, Class, Datatype, Fill, Group, Layout, Object, ReferenceKind, attribute, join};
use crate::dialects::attributes::unsigned;
use crate::h5::steps::References;
use crate::source::Interrupt;
use crate::store::arrow::FillTest;
use crate::store::{Dataset, DatasetRows, File, Rows};
use crate::table::{Column, Table};

/// Kinds of search index (HEP001 §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `CHUNK_MINMAX`.
    MinMax,
    /// `SORTED_ROWS`.
    Sorted,
    /// `BITMAP`.
    Bitmap,
    /// `CHUNK_BLOOM`.
    Bloom,
}

impl Kind {
    /// The value of the attribute `KIND`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::MinMax => "CHUNK_MINMAX",
            Kind::Sorted => "SORTED_ROWS",
            Kind::Bitmap => "BITMAP",
            Kind::Bloom => "CHUNK_BLOOM",
        }
    }
}

/// A draft of HEP001, as far as search indexes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// July 2026.
    July,
    /// April 2026.
    April,
}

/// What a table calls the parts of its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The group.
    pub group: &'static str,
    /// The column's list of indexes.
    pub list: &'static str,
    /// The list of columns of an index (April).
    pub back: &'static str,
    /// The reference of a bitmap to its values.
    pub values: &'static str,
}

const JULY: Names = Names { group: "SEARCH_INDEXES", list: "SEARCH_INDEX_LIST", back: "COLUMN_LIST", values: "VALUES" };
const APRIL: Names =
    Names { group: "_search_indexes", list: "_search_indexes", back: "_columns_list", values: "_values" };

/// A column with everything that building an index takes.
#[derive(Debug)]
pub struct Subject {
    /// HDF5 path of the table group.
    pub table: String,
    /// Name of the column.
    pub name: BString,
    /// HDF5 path of the column.
    pub path: String,
    /// Rows of the table.
    pub rows: u64,
    /// Rows of a chunk of the column; `None` where it is in one run.
    pub chunk: Option<u64>,
    /// Type of an element, and what missing ones hold.
    pub datatype: Datatype,
    /// See `datatype`.
    pub fill: Fill,
    /// Its values: codes of an enumeration or of categories.
    pub values: Arc<dyn Rows>,
    /// The order of the values means something.
    pub is_ordered: bool,
    /// The draft that indexes are written by.
    pub revision: Revision,
    /// What the table calls things.
    pub names: Names,
    /// How references are stored.
    pub references: References,
    /// `GENERATION` of the table, where it has one.
    pub generation: Option<u64>,
    /// Names in the group of indexes, where there is one.
    pub taken: Option<Vec<BString>>,
}

impl Subject {
    /// A column of a table of this file.
    ///
    /// # Errors
    /// Where the table or the column can have no index.
    pub fn new(
        file: &Arc<File>,
        table: &Table,
        name: &[u8],
        revision: Option<Revision>,
        references: Option<References>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let refused = |reason: String| Error::refused(&table.path, reason);
        let column = table.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<_> = table.columns.iter().map(|column| column.name.to_string()).collect();
            refused(format!("there is no column {:?}; columns: {}", name.as_bstr(), known.join(", ")))
        })?;
        let refused = |reason: &str| Error::refused(&column.path, reason);
        let has_rows = attribute(&table.attributes, "NROWS").is_some();
        let revision = match (revision, has_rows) {
            (Some(Revision::July), false) => {
                return Err(Error::refused(
                    &table.path,
                    "HEP001 July: a search index is valid where its SOURCE_NROWS is the table's NROWS, and this table has none: \
                     it takes indexes of the April revision",
                ));
            }
            (Some(Revision::April), true) => {
                return Err(Error::refused(
                    &table.path,
                    "HEP001 July: a search index of a table with NROWS has SOURCE_GENERATION and SOURCE_NROWS, which April \
                     does not know: it takes indexes of the July revision",
                ));
            }
            (_, true) => Revision::July,
            (_, false) => Revision::April,
        };
        let group = group_at(file, &table.path, interrupt)?;
        let link = group.link(&column.name).and_then(|link| link.target.object());
        let Some(Object::Dataset(dataset)) = link else {
            return Err(refused("HEP001 §8: search indexes are of columns that are datasets, this is a list column"));
        };
        if dataset.id.file != 0 || matches!(dataset.layout, Layout::External { .. }) {
            return Err(refused("search indexes are of data in the same file, this column's lie in another"));
        }
        if let Some(found) = stored::why_not(&dataset.datatype) {
            return Err(refused(&format!(
                "HEP001 §8.5: search indexes are of numbers, booleans, enumerations, strings and opaque values, this \
                 column holds {found}"
            )));
        }
        if dataset.len().is_none_or(|len| len < table.rows) {
            return Err(refused(&format!("{:?} elements for {} rows of the table", dataset.shape, table.rows)));
        }
        let mut coded = (**dataset).clone();
        coded.datatype = dataset.datatype.coded();
        let missing = FillTest::new(&coded.datatype, &coded.fill);
        let values = Dataset::new(file.clone(), column.path.clone(), Arc::new(coded))?;
        let names = names(table, revision);
        let taken = match group.link(names.group.as_bytes()).and_then(|link| link.target.object()) {
            Some(Object::Group { id, .. }) => {
                let group = file.group(*id, interrupt).map_err(|error| refused(&error.to_string()))?;
                Some(group.links.into_iter().map(|link| link.name).collect())
            }
            Some(_) => return Err(Error::refused(&join(&table.path, names.group.as_bytes()), "is no group")),
            None => None,
        };
        let is_coded = matches!(dataset.datatype.class, Class::Enum { .. }) && !dataset.datatype.is_boolean();
        let categories = column.categories.and_then(|at| table.categories.get(at));
        Ok(Self {
            table: table.path.clone(),
            name: column.name.clone(),
            path: column.path.clone(),
            rows: table.rows,
            chunk: match &dataset.layout {
                Layout::Chunked { chunk, .. } => chunk.first().copied().filter(|chunk| *chunk > 0),
                _ => None,
            },
            datatype: dataset.datatype.clone(),
            fill: dataset.fill.clone(),
            values: Arc::new(DatasetRows::new(Arc::new(values), table.rows, missing, Arc::default())),
            is_ordered: match categories {
                Some(categories) => categories.ordered == Some(true),
                None => !is_coded,
            },
            revision,
            names,
            references: references.unwrap_or_else(|| habit(table, revision)),
            generation: unsigned(&table.attributes, "GENERATION"),
            taken,
        })
    }

    /// Rows that one entry or filter is of.
    pub fn chunk_rows(&self) -> u64 {
        self.chunk.unwrap_or(self.rows).max(1)
    }

    /// Chunks with rows of the table in them.
    pub fn chunks(&self) -> u64 {
        self.rows.div_ceil(self.chunk_rows())
    }
}

/// The group at an HDF5 path.
///
/// # Errors
/// Where there is none, or the path is shown with bytes that are no UTF-8.
pub fn group_at(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> Result<Group, Error> {
    let refused = |reason: String| Error::refused(path, reason);
    let listed = |id| file.group(id, interrupt).map_err(|error| refused(error.to_string()));
    let mut group = listed(file.info().root)?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Some(Object::Group { id, .. }) = group.link(part.as_bytes()).and_then(|link| link.target.object()) else {
            return Err(refused(format!("no group leads on at {part:?}")));
        };
        if id.file != 0 {
            return Err(refused("lies in another file".into()));
        }
        group = listed(*id)?;
    }
    Ok(group)
}

/// What a table calls the parts of its indexes: as it does already.
pub fn names(table: &Table, revision: Revision) -> Names {
    let has_capitals = table.servants.iter().any(|name| name == JULY.group) || table.revision == "May-June 2026";
    let has_april = table.servants.iter().any(|name| name == APRIL.group);
    if revision == Revision::July || has_capitals && !has_april { JULY } else { APRIL }
}

/// How the table stores references; `H5T_STD_REF` where it has none.
fn habit(table: &Table, revision: Revision) -> References {
    let kind = |attribute: &Attribute| match attribute.datatype.class {
        Class::Reference(kind) => Some(kind),
        _ => None,
    };
    let of_columns = table.columns.iter().flat_map(|column: &Column| column.attributes.iter());
    match table.attributes.iter().chain(of_columns).find_map(kind) {
        Some(ReferenceKind::Standard) => References::Standard,
        Some(_) => References::Object,
        None if revision == Revision::April => References::Object,
        None => References::Standard,
    }
}
