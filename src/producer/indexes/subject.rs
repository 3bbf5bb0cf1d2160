//! Describes the column to index, and how its table stores indexes.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::options::Options;
use super::stored;
use crate::catalogue::{Class, Datatype, Fill, Group, Layout, Object, ReferenceKind, attribute, join};
use crate::dialects::attributes::unsigned;
use crate::dialects::hep001::draft::Draft;
use crate::dialects::hep001::members::members;
use crate::dialects::hep001::names::{COLUMN_LIST, GENERATION, ROWS, SEARCH_INDEX_GROUPS, SEARCH_INDEX_LIST, VALUES};
use crate::h5::steps::References;
use crate::producer::options::Revision;
use crate::producer::paths::group_at;
use crate::producer::{Error, is_own};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, File, Rows, StoredDataset};
use crate::table::{Column, Table, did_you_mean};

/// The table's names for the parts of its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexNames {
    /// Name of the group of indexes.
    pub group: &'static str,
    /// Attribute in which the column lists its indexes.
    pub list: &'static str,
    /// Attribute in which an index lists its columns (April).
    pub back: &'static str,
    /// Attribute in which a bitmap refers to its values.
    pub values: &'static str,
}

/// The names as spelled since May.
const CAPITALS: IndexNames =
    IndexNames { group: SEARCH_INDEX_GROUPS[0], list: SEARCH_INDEX_LIST[0], back: COLUMN_LIST[0], values: VALUES[0] };
/// The names as spelled in April.
const UNDERSCORES: IndexNames =
    IndexNames { group: SEARCH_INDEX_GROUPS[1], list: SEARCH_INDEX_LIST[1], back: COLUMN_LIST[1], values: VALUES[1] };

/// A column, with everything that building an index needs.
#[derive(Debug)]
pub(super) struct IndexedColumn {
    /// HDF5 path of the table group.
    pub table: String,
    /// Name of the column.
    pub name: BString,
    /// HDF5 path of the column.
    pub path: String,
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of rows in a chunk of the column. `None`: it is not chunked.
    pub chunk: Option<u64>,
    /// Type of the column's elements.
    pub datatype: Datatype,
    /// Fill value of the column, which stands for missing values.
    pub fill: Fill,
    /// The values of the column; those of an enumeration or of categories are codes.
    pub values: Arc<dyn Rows>,
    /// Whether the order of the values means something: that of codes may not.
    pub is_ordered: bool,
    /// The draft to write indexes by.
    pub revision: Revision,
    /// The table's names for the parts of its indexes.
    pub names: IndexNames,
    /// How to store references.
    pub references: References,
    /// `GENERATION` of the table, if present.
    pub generation: Option<u64>,
    /// Names in use in the group of indexes. `None`: there is no such group yet.
    pub taken: Option<Vec<BString>>,
}

impl IndexedColumn {
    /// Finds a column of a table in this file, and what building an index for it needs.
    ///
    /// # Errors
    /// The table or the column cannot have an index.
    pub fn new(
        file: &Arc<File>,
        table: &Table,
        name: &[u8],
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        own(table)?;
        let refused = |reason: String| Error::refused(&table.path, reason);
        let column = table.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<_> = table.columns.iter().map(|column| column.name.to_string()).collect();
            let meant = did_you_mean(&name.to_str_lossy(), &known);
            refused(format!("there is no column {:?}{meant}; columns: {}", name.as_bstr(), known.join(", ")))
        })?;
        let refused = |reason: &str| Error::refused(&column.path, reason);
        let has_rows = attribute(&table.attributes, ROWS).is_some();
        let revision = match (options.revision, has_rows) {
            (Some(Revision::July), false) => {
                return Err(Error::refused(
                    &table.path,
                    "HEP001 July: a search index is valid where its SOURCE_NROWS is the table's NROWS, and this table \
                     has none: it takes indexes of the April revision",
                ));
            }
            (Some(Revision::April), true) => {
                return Err(Error::refused(
                    &table.path,
                    "HEP001 July: a search index of a table with NROWS has SOURCE_GENERATION and SOURCE_NROWS, which \
                     April does not know: it takes indexes of the July revision",
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
        let coded = dataset.described(|coded| coded.datatype = dataset.datatype.coded());
        let missing = FillTest::new(&coded.datatype, &coded.fill);
        let values = StoredDataset::new(file.clone(), column.path.clone(), Arc::new(coded))?;
        let names = names(&group, revision);
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
            references: options.references.map_or_else(|| habit(table, revision), References::from),
            generation: unsigned(&table.attributes, GENERATION),
            taken,
        })
    }

    /// Number of rows that one entry or filter covers.
    pub fn chunk_rows(&self) -> u64 {
        self.chunk.unwrap_or(self.rows).max(1)
    }

    /// Number of chunks that hold rows of the table.
    pub fn chunks(&self) -> u64 {
        self.rows.div_ceil(self.chunk_rows())
    }
}

/// Refuses a table of a dialect without search indexes.
///
/// # Errors
/// The table is of such a dialect.
pub(super) fn own(table: &Table) -> Result<(), Error> {
    if is_own(table) {
        return Ok(());
    }
    Err(Error::refused(&table.path, format!("tables of {} take no search indexes", table.dialect)))
}

/// The table's names for the parts of its indexes: in July always in capitals, before that in the spelling that the
/// table uses.
fn names(group: &Group, revision: Revision) -> IndexNames {
    let [has_capitals, has_underscores] = [&CAPITALS, &UNDERSCORES].map(|names| {
        let link = group.link(names.group.as_bytes()).and_then(|link| link.target.object());
        matches!(link, Some(Object::Group { .. }))
    });
    let has_capitals = has_capitals || Draft::of(group, &members(group)) == Draft::MayJune;
    if revision == Revision::July || has_capitals && !has_underscores { CAPITALS } else { UNDERSCORES }
}

/// How the table already stores references, or, if it has none, how the revision demands it.
fn habit(table: &Table, revision: Revision) -> References {
    let of_columns = table.columns.iter().flat_map(|column: &Column| column.attributes.iter());
    let kind = table.attributes.iter().chain(of_columns).find_map(|attribute| match attribute.datatype.class {
        Class::Reference(kind) => Some(kind),
        _ => None,
    });
    match kind {
        Some(ReferenceKind::Standard) => References::Standard,
        Some(_) => References::Object,
        None if revision == Revision::April => References::Object,
        None => References::Standard,
    }
}
