//! The columns of a Parquet file, and everything that their types determine before a value is read.

mod labels;
pub(super) mod shape;

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::Type;

use super::body::leaf::{FixedWidthBody, ParquetLeaf, Physical};
use super::body::shred::ShredStep;
use super::layout::{Bodies, Groups, ROWS_PER_LABEL, RowSizes, Slots};
use super::thrift::page::PageHeaderForm;
use super::thrift::schema::{self, WrittenSchema};
use crate::learnt::Learner;
use crate::learnt::pass::Keeper;
use crate::source::Interrupt;
use crate::store::{Error, Hints, Nan, Rows, ValueSet, fixed_width};
use crate::table::{Column, IndexForm, Origin, Times};
use crate::views::Misfit;
use crate::views::field_metadata;
use shape::{Given, LeafMapping};

pub(super) use labels::LabelsOf;

/// Most labels of categories that become a dictionary; with more, every row holds its label's text.
const MOST_LABELS: u64 = 1 << 24;

/// A column of a Parquet file.
#[derive(Clone, Debug)]
pub struct ParquetColumn {
    /// Name of the column in the file.
    pub(super) name: String,
    /// HDF5 path of the column.
    pub(super) path: String,
    /// Rows of the column.
    pub(super) rows: Arc<dyn Rows>,
    /// Hints about the values.
    hints: Hints,
    /// Labels of the column's categories.
    labels: Option<Arc<dyn Rows>>,
    /// For instants: the conversion from the stored integers, which `learner` knows.
    pub(super) times: Option<Times>,
    /// Whether the column labels rows.
    pub(super) is_label: bool,
    /// Time zone of the column's instants, since the type lacks it for nanoseconds.
    pub(super) zone: Option<Arc<str>>,
    /// The column's origin in the software that wrote it.
    pub(super) origin: Origin,
    /// Facts about the values that the file publishes as statistics.
    pub(super) learner: Option<Arc<Learner>>,
    /// The bitmap of the values, and whether it may be used.
    bitmap: Option<(Arc<IndexForm>, bool)>,
    /// The keeper of facts learnt about the column.
    pub(super) keeper: Option<Keeper>,
    /// The column's units, vocabulary and description.
    pub(super) notes: Vec<(&'static str, String)>,
    /// Whether readers see plain texts in place of labels or names.
    is_plain: bool,
    /// Number of leaf columns of the column.
    pub(super) leaves: usize,
    /// Number of codes that represent the column's numbers; 0: plain numbers.
    codes: u64,
}

impl ParquetColumn {
    /// Returns a column of a table as a column of the file.
    ///
    /// # Errors
    /// The reason why Parquet cannot represent the column.
    pub fn new(column: &Column) -> Result<Self, Misfit> {
        let zone = column.times().and_then(|times| match times.data_type() {
            DataType::Timestamp(_, zone) => zone,
            _ => None,
        });
        let times = column.times().map(Times::of_parquet);
        let rows = column.shown_by(times)?;
        let hints = rows.hints().clone();
        // For dictionary-encoded values, pyarrow skips no row group, and pandas makes a categorical column.
        let is_plain = (rows.cuts().is_some() || column.meaning.origin.is_level)
            && matches!(rows.data_type(), DataType::Dictionary(..));
        let name = column.name.to_string();
        let mut own = Self {
            name,
            path: column.path.clone(),
            labels: labels(&hints),
            rows,
            hints,
            times,
            is_label: column.is_label,
            zone,
            origin: column.meaning.origin.clone(),
            learner: None,
            bitmap: None,
            keeper: None,
            notes: column.notes(),
            is_plain,
            leaves: 0,
            codes: 0,
        };
        own.codes = codes(own.rows.as_ref());
        own.leaves = own.shape(&own.name, Given::default())?.leaves().len();
        Ok(own)
    }

    /// Returns a column over any rows.
    #[cfg(test)]
    pub(super) fn of(name: &str, rows: Arc<dyn Rows>, hints: Hints) -> Self {
        let (name, path) = (name.to_owned(), format!("/{name}"));
        let mut own = Self {
            name,
            path,
            rows: rows.clone(),
            labels: labels(&hints),
            hints,
            times: None,
            is_label: false,
            zone: None,
            origin: Origin::default(),
            learner: None,
            bitmap: None,
            keeper: None,
            notes: Vec::new(),
            is_plain: false,
            leaves: 0,
            codes: codes(rows.as_ref()),
        };
        own.leaves = own.shape(&own.name, Given::default()).map_or(0, |shape| shape.leaves().len());
        own
    }

    /// Gives the column a learner, whose facts the file publishes from the moment it is made.
    pub fn told_by(self, learner: Option<Arc<Learner>>) -> Self {
        Self { learner, ..self }
    }

    /// Gives the column the bitmap of its values. The bitmap takes room in the file, whether it may be used or not.
    pub fn with_bitmap(self, form: Option<Arc<IndexForm>>, is_used: bool) -> Self {
        Self { bitmap: form.map(|form| (form, is_used)), ..self }
    }

    /// Gives the column a keeper whose key no other column has.
    pub fn kept_by(self, keeper: Keeper) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Makes the column show plain texts in place of labels or names, whether or not its pages have a dictionary: files
    /// that are read as one table must agree on the type.
    pub fn plain(self) -> Self {
        Self { is_plain: true, ..self }
    }

    /// Returns the field that readers see for a [`ParquetColumn::plain`] column.
    ///
    /// # Errors
    /// The reason why Parquet cannot represent the column.
    pub fn plain_field(&self) -> Result<Field, Misfit> {
        Ok(plain(self.shape(&self.name, Given::default())?.field()))
    }

    fn shape(&self, name: &str, given: Given) -> Result<LeafMapping, Misfit> {
        let given = Given { codes: self.codes, ..given };
        LeafMapping::new(name, self.rows.data_type(), self.rows.nullable(), &self.hints, given)
    }

    /// Returns the column's leaves in a file with such row groups, under the column's own name. Does not read labels.
    ///
    /// # Errors
    /// The reason why Parquet cannot represent the column.
    pub(super) fn leaves_of(&self, groups: &Groups) -> Result<impl Iterator<Item = PreparedLeaf>, Error> {
        let shape = self.shape(&self.name, Given { row_group: Some(groups.typical()), ..Given::default() });
        let leaves = shape.map_err(|reason| self.unsupported(reason))?.into_leaves();
        Ok(leaves.into_iter().map(|leaf| PreparedLeaf::new(groups, 0, leaf)))
    }

    /// Whether the column's leaves depend on its labels, which must be read first.
    pub(super) fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// Whether the column has plain floats whose only nulls are NaN.
    pub(super) fn misses_nan_alone(&self) -> bool {
        self.rows.data_type().is_floating() && self.hints.nan == Nan::Missing { alone: true }
    }

    pub(super) fn unsupported(&self, reason: impl ToString) -> Error {
        Error::unsupported(self.path.clone(), reason)
    }
}

/// A leaf column, prepared for the layout.
#[derive(Debug)]
pub(super) struct PreparedLeaf {
    /// Position of the leaf's column.
    pub column: usize,
    pub leaf: ParquetLeaf,
    /// Slots of the leaf's pages. `None`: the pages must be measured.
    pub slots: Option<Slots>,
    /// The layout of a full page whose rows have fixed places.
    pub cells: Option<FixedWidthBody>,
}

/// Everything known before a value is read, except labels.
#[derive(Debug)]
pub(super) struct Prepared {
    pub groups: Groups,
    pub leaves: Vec<PreparedLeaf>,
    pub schema: WrittenSchema,
    /// The Arrow fields of the columns.
    pub fields: Fields,
}

/// Chooses the row groups of a file of these columns.
pub(super) fn groups<C: Borrow<ParquetColumn>>(columns: impl IntoIterator<Item = C>) -> Groups {
    let (mut rows, mut sizes, mut cuts) = (None::<u64>, RowSizes::default(), None);
    for column in columns {
        let column = column.borrow();
        rows = Some(rows.map_or(column.rows.len(), |rows| rows.min(column.rows.len())));
        sizes.leaves += column.leaves;
        sizes.width = sizes.width.saturating_add(fixed_width(column.rows.data_type()));
        sizes.stride = sizes.stride.max(column.rows.stride().unwrap_or(0));
        sizes.labels = sizes.labels.max(column.labels.as_ref().map_or(column.codes, |labels| labels.len()));
        cuts = cuts.or_else(|| column.rows.cuts().cloned());
    }
    Groups::choose(rows.unwrap_or(0), &sizes, cuts.as_ref())
}

/// Row groups and leaves, which determine places and sizes.
#[derive(Debug)]
struct Leaves {
    groups: Groups,
    leaves: Vec<PreparedLeaf>,
    fields: Vec<Field>,
}

impl Leaves {
    /// Prepares columns; reads labels and nothing else.
    ///
    /// # Errors
    /// If labels cannot be read, or a column has no leaves.
    fn new(columns: &[ParquetColumn], interrupt: &Interrupt) -> Result<Self, Error> {
        let groups = groups(columns);
        let mut leaves = Vec::new();
        let mut fields = Vec::with_capacity(columns.len());
        let names = unique(columns.iter().map(|column| column.name.as_str()));
        for (position, (column, name)) in columns.iter().zip(&names).enumerate() {
            let mut given = Given { row_group: Some(groups.typical()), ..Given::default() };
            if let Some(rows) = &column.labels {
                given.labels = Some(read_labels(rows, interrupt)?);
            }
            let shape = column.shape(name, given).map_err(|reason| column.unsupported(reason))?;
            leaves.extend(shape.leaves().iter().map(|leaf| PreparedLeaf::new(&groups, position, leaf.clone())));
            fields.push(shape.field().clone());
        }
        leaves.shrink_to_fit();
        Ok(Self { groups, leaves, fields })
    }
}

impl Prepared {
    /// Prepares columns and their schema; reads labels and nothing else.
    ///
    /// # Errors
    /// If labels cannot be read, or the columns have no schema.
    pub fn new(columns: &[ParquetColumn], interrupt: &Interrupt) -> Result<Self, Error> {
        let Leaves { groups, leaves, fields } = Leaves::new(columns, interrupt)?;
        let noted = columns.iter().zip(fields).map(|(column, field)| {
            let field = if column.is_plain { plain(&field) } else { field };
            field.with_metadata(field_metadata(&column.notes))
        });
        let fields: Fields = noted.collect();
        let schema = schema::convert(&Schema::new(fields.clone()));
        let schema = schema.map_err(|misfit| Error::unsupported("parquet", misfit))?;
        // The crate `parquet` makes the schema, this code makes the pages: they must agree.
        let columns = schema.columns().iter().map(|column| (column.path().parts(), column.physical_type()));
        if !columns.eq(leaves.iter().map(|leaf| (leaf.leaf.path.as_slice(), physical_of(leaf.leaf.physical)))) {
            let reason = "schema and data have different leaf columns";
            return Err(Error::unsupported("parquet", reason));
        }
        Ok(Self { groups, leaves, schema: WrittenSchema::new(&schema), fields })
    }
}

/// Returns the field with the types of values in place of dictionaries.
fn plain(field: &Field) -> Field {
    let below = |field: &FieldRef| Arc::new(plain(field));
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::List(items) => DataType::List(below(items)),
        DataType::LargeList(items) => DataType::LargeList(below(items)),
        DataType::FixedSizeList(items, length) => DataType::FixedSizeList(below(items), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect()),
        other => other.clone(),
    };
    Field::new(field.name(), data_type, field.is_nullable())
}

pub(super) fn physical_of(physical: Physical) -> Type {
    match physical {
        Physical::Boolean => Type::BOOLEAN,
        Physical::Int32 => Type::INT32,
        Physical::Int64 => Type::INT64,
        Physical::Float => Type::FLOAT,
        Physical::Double => Type::DOUBLE,
        Physical::ByteArray => Type::BYTE_ARRAY,
        Physical::FixedLenByteArray(_) => Type::FIXED_LEN_BYTE_ARRAY,
    }
}

/// Makes names unique: if names are equal once invalid UTF-8 is replaced, later ones get a number.
fn unique<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let all: HashSet<&str> = names.clone().collect();
    let mut taken = HashSet::new();
    let distinct = names.map(|name| {
        let numbered = (2_u64..).map(|number| format!("{name}~{number}"));
        let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
        // There are more numbers than names.
        let free =
            |candidate: &String| !taken.contains(candidate) && (candidate == name || !all.contains(candidate.as_str()));
        let name = candidates.find(free).unwrap_or_default();
        taken.insert(name.clone());
        name
    });
    distinct.collect()
}

/// Returns the number of codes that represent the rows' numbers; 0 if there are so few rows that plain numbers take
/// less room.
fn codes(rows: &dyn Rows) -> u64 {
    Some(rows.code_count()).filter(|codes| codes.saturating_mul(ROWS_PER_LABEL) <= rows.len()).unwrap_or(0)
}

/// Returns the labels of a column of categories, unless they are too many for a dictionary.
fn labels(hints: &Hints) -> Option<Arc<dyn Rows>> {
    match &hints.innermost().values {
        Some(ValueSet::Categories { labels, .. }) if labels.len() <= MOST_LABELS => Some(labels.clone()),
        _ => None,
    }
}

fn read_labels(labels: &Arc<dyn Rows>, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
    labels.array(0..labels.len(), interrupt)
}

impl PreparedLeaf {
    fn new(groups: &Groups, column: usize, leaf: ParquetLeaf) -> Self {
        let slots = if has_fixed_entries(&leaf) { Slots::new(groups, &leaf) } else { None };
        let cells = slots.as_ref().and_then(|slots| leaf.cells(slots.rows));
        Self { column, leaf, slots, cells }
    }

    /// Returns the layout of a page of `rows` rows with fixed places.
    pub fn cells(&self, rows: u64) -> Option<FixedWidthBody> {
        let full = self.cells?;
        if self.slots.as_ref().is_some_and(|slots| slots.rows == rows) { Some(full) } else { self.leaf.cells(rows) }
    }
}

impl Bodies for ParquetLeaf {
    fn most(&self, rows: u64) -> Option<u64> {
        self.most_body(rows)
    }

    fn header(&self) -> PageHeaderForm {
        match () {
            () if self.is_exact() => PageHeaderForm::Exact,
            () if self.is_squeezed() => PageHeaderForm::Squeezed,
            () => PageHeaderForm::Padded,
        }
    }

    fn entries(&self) -> u64 {
        self.entries_of_row().unwrap_or(1)
    }

    fn lead(&self, rows: u64) -> Option<u64> {
        Some(self.cells(rows)?.before)
    }
}

/// Whether every row has equally many entries; a null array has one, whatever its length.
fn has_fixed_entries(leaf: &ParquetLeaf) -> bool {
    let longer = leaf.nodes.iter().rposition(|node| {
        matches!(node.step, ShredStep::List) || matches!(node.step, ShredStep::FixedList(length) if length != 1)
    });
    match longer {
        Some(last) => leaf.entries_of_row().is_some() && !leaf.nodes.iter().take(last + 1).any(|node| node.nullable),
        None => true,
    }
}
