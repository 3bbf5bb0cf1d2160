//! Maps a column to leaves: structs are groups, lists are the three levels of parquet-format's `LogicalTypes.md`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeStringArray};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::store::{Hints, TextLength, ValueSet};
use crate::views::Misfit;
use crate::views::parquet::body::dictionary::DictionaryPage;
use crate::views::parquet::body::leaf::{LeafValues, ParquetLeaf, Physical};
use crate::views::parquet::body::plain::cell_width;
use crate::views::parquet::body::shred::{MOST_ENTRIES, ShredNode, ShredStep};
use crate::views::parquet::thrift::page::PageEncoding;

/// Deepest nesting of compounds, arrays and lists. Levels stay below 256.
const MOST_DEEP: usize = 64;

/// Most bytes of a row in a page: a page header counts bytes in 31 bits.
const MOST_ROW: u64 = 1 << 30;

/// Labels of at most this many bytes always become a dictionary: the type of a column should not depend on its number
/// of rows.
const SHORT_LABELS: u64 = 1 << 16;

/// Properties of a column beyond the hints of its rows.
#[derive(Clone, Debug, Default)]
pub(in crate::views::parquet) struct Given {
    /// Labels of the column's categories, if they were read.
    pub labels: Option<ArrayRef>,
    /// Number of rows of a row group; each row group repeats the dictionary.
    pub row_group: Option<u64>,
    /// Number of codes that represent the column's numbers; 0: plain numbers.
    pub codes: u64,
}

/// The mapping of a column to leaves of a Parquet schema.
#[derive(Clone, Debug)]
pub(in crate::views::parquet) struct LeafMapping {
    leaves: Vec<ParquetLeaf>,
    field: Field,
}

impl LeafMapping {
    /// Maps a column of `data_type`. `name` must be unique in the schema.
    ///
    /// Elements of lists are nullable. Within compounds and arrays only these are: booleans, texts (a reference may
    /// dangle), categories, and anything that `hints` declares nullable.
    ///
    /// # Errors
    /// The reason why Parquet cannot represent the column.
    pub fn new(name: &str, data_type: &DataType, nullable: bool, hints: &Hints, given: Given) -> Result<Self, Misfit> {
        let mut leaves = Vec::new();
        let way = Way { path: Vec::new(), nodes: Vec::new(), given };
        let field = way.follow(name, data_type, nullable, hints, &mut leaves)?;
        for leaf in &leaves {
            let row = leaf.entries_of_row().map_or(1, |entries| entries);
            if row > MOST_ENTRIES as u64 {
                return Err(Misfit::Size(format!("one row has {row} elements, more than a Parquet page can have")));
            }
            match leaf.most_body(1) {
                Some(bytes) if bytes > MOST_ROW => {
                    return Err(Misfit::Size(format!(
                        "one row takes {bytes} bytes, more than a Parquet page should have"
                    )));
                }
                _ => {}
            }
        }
        Ok(Self { leaves, field })
    }

    /// Returns the leaves, in the schema's order.
    pub fn leaves(&self) -> &[ParquetLeaf] {
        &self.leaves
    }

    /// Returns the leaves, in the schema's order.
    pub fn into_leaves(self) -> Vec<ParquetLeaf> {
        self.leaves
    }

    /// Returns the column's field as readers see it; `ArrowSchemaConverter` derives the schema of the leaves from it.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

/// The path from a column to the node being mapped.
#[derive(Clone)]
struct Way {
    path: Vec<String>,
    nodes: Vec<ShredNode>,
    given: Given,
}

impl Way {
    /// Adds the leaves of `data_type` below this node.
    fn follow(
        &self,
        name: &str,
        data_type: &DataType,
        nullable: bool,
        hints: &Hints,
        leaves: &mut Vec<ParquetLeaf>,
    ) -> Result<Field, Misfit> {
        if self.nodes.len() >= MOST_DEEP {
            return Err(Misfit::Size(format!("nested more than {MOST_DEEP} deep")));
        }
        // A column of nulls is nullable in any context.
        let nullable = nullable || data_type.is_null();
        let here = self.to(&[name], nullable, ShredStep::Value);
        let unknown = Hints::default();
        let items = hints.items.as_deref().unwrap_or(&unknown);
        match data_type {
            DataType::Struct(fields) => {
                let fields = here.fields(fields, nullable, hints, leaves)?;
                Ok(Field::new(name, DataType::Struct(fields), nullable))
            }
            DataType::FixedSizeList(element, length) => {
                let most = usize::try_from(*length).ok().filter(|length| *length > 0);
                let most = most.ok_or_else(|| Misfit::Type("an array without elements".into()))?;
                let way = self.to(&[name, "list"], nullable, ShredStep::FixedList(most));
                let missing = items.nullable || element.is_nullable() && can_be_missing(element.data_type());
                let element = way.follow("element", element.data_type(), missing, items, leaves)?;
                let element = Arc::new(element);
                // If a row may lack the array, pyarrow (up to 14; within a compound, also 26) sees one of length 0 and
                // rejects the file.
                let seen = match nullable || self.can_be_absent() {
                    true => DataType::List(element),
                    false => DataType::FixedSizeList(element, *length),
                };
                Ok(Field::new(name, seen, nullable))
            }
            DataType::LargeList(element) => {
                let way = self.to(&[name, "list"], nullable, ShredStep::List);
                let element = way.follow("element", element.data_type(), element.is_nullable(), items, leaves)?;
                Ok(Field::new(name, DataType::List(Arc::new(element)), nullable))
            }
            _ => {
                let (leaf, seen) = here.leaf(data_type, hints)?;
                leaves.push(leaf);
                let is_dictionary = matches!(seen, DataType::Dictionary(..));
                let field = Field::new(name, seen, nullable);
                let ordered = matches!(hints.values, Some(ValueSet::Categories { ordered: true, .. }));
                Ok(if is_dictionary { field.with_dict_is_ordered(ordered) } else { field })
            }
        }
    }

    fn fields(
        &self,
        fields: &Fields,
        nullable: bool,
        hints: &Hints,
        leaves: &mut Vec<ParquetLeaf>,
    ) -> Result<Fields, Misfit> {
        if fields.is_empty() {
            return Err(Misfit::Type("a compound without fields".into()));
        }
        let mut names = std::collections::HashSet::new();
        let none = Hints::default();
        let mut seen = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            if !names.insert(field.name()) {
                return Err(Misfit::Type(format!("a compound cannot have the field name {:?} twice", field.name())));
            }
            // ClickHouse rejects files with an empty name.
            let unnamed = (0..).map(|number| format!("_{number}"));
            let mut unnamed = unnamed.filter(|name| fields.iter().all(|field| field.name() != name));
            let name = Some(field.name().clone()).filter(|name| !name.is_empty()).or_else(|| unnamed.next());
            let mut way = self.clone();
            if let Some(last) = way.nodes.last_mut() {
                *last = ShredNode { nullable, step: ShredStep::Field(at) };
            }
            let hints = hints.fields.get(at).unwrap_or(&none);
            let can_be_missing = can_be_missing(field.data_type()) || hints.nullable;
            let missing = field.is_nullable() && can_be_missing;
            seen.push(way.follow(&name.unwrap_or_default(), field.data_type(), missing, hints, leaves)?);
        }
        Ok(Fields::from(seen))
    }

    /// Whether an enclosing compound is nullable, so that its content may be absent.
    fn can_be_absent(&self) -> bool {
        let mut compounds = self.nodes.iter().rev().take_while(|node| matches!(node.step, ShredStep::Field(_)));
        compounds.any(|node| node.nullable)
    }

    fn to(&self, names: &[&str], nullable: bool, step: ShredStep) -> Self {
        let mut way = self.clone();
        way.path.extend(names.iter().map(|name| (*name).to_owned()));
        way.nodes.push(ShredNode { nullable, step });
        way
    }

    /// Replaces numbers by their codes, if the column has codes.
    fn numbers(&self, (physical, values, seen): (Physical, LeafValues, DataType)) -> (Physical, LeafValues, DataType) {
        let dictionary = match values {
            LeafValues::Cells(bytes) if self.nodes.len() == 1 => DictionaryPage::of_codes(self.given.codes, bytes),
            _ => None,
        };
        (physical, dictionary.map_or(values, |dictionary| LeafValues::Indices(Arc::new(dictionary))), seen)
    }

    /// Returns the leaf at this node, and its type as readers see it.
    fn leaf(self, data_type: &DataType, hints: &Hints) -> Result<(ParquetLeaf, DataType), Misfit> {
        let no = || Misfit::Type(format!("{data_type} has no place in a Parquet file"));
        let text = |values| (Physical::ByteArray, values, DataType::Utf8);
        let codes = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let mut looked_up = false;
        let (physical, values, seen) = match data_type {
            DataType::LargeUtf8 => text(LeafValues::Texts(hints.texts)),
            DataType::Binary => (Physical::ByteArray, LeafValues::Texts(TextLength::Unknown), DataType::Binary),
            DataType::Dictionary(key, labels) => match (key.as_ref(), labels.as_ref()) {
                (DataType::Int32, DataType::LargeUtf8) => {
                    let values = names(hints).map(|names| LeafValues::Indices(Arc::new(names)));
                    (Physical::ByteArray, values.unwrap_or(LeafValues::Texts(hints.texts)), codes)
                }
                (DataType::Int64, DataType::LargeUtf8) => match categories(&self.given, hints) {
                    Some(dictionary) => (Physical::ByteArray, LeafValues::Indices(Arc::new(dictionary)), codes),
                    None => text(LeafValues::Texts(
                        self.given.labels.as_ref().and_then(longest).map_or(TextLength::Unknown, TextLength::Shown),
                    )),
                },
                (DataType::Int32 | DataType::Int64, labels) => {
                    looked_up = true;
                    fixed(labels).ok_or_else(no)?
                }
                _ => return Err(no()),
            },
            _ => self.numbers(fixed(data_type).ok_or_else(no)?),
        };
        if matches!(data_type, DataType::FixedSizeBinary(..=0)) {
            return Err(Misfit::Type("elements without bytes".into()));
        }
        let lists =
            self.nodes.iter().filter(|node| matches!(node.step, ShredStep::FixedList(_) | ShredStep::List)).count();
        let nullable = self.nodes.iter().filter(|node| node.nullable).count();
        let encoding =
            if matches!(values, LeafValues::Indices(_)) { PageEncoding::Dictionary } else { PageEncoding::Plain };
        let mut leaf = ParquetLeaf {
            path: self.path,
            physical,
            // The depth bounds both counts.
            max_definition: (lists + nullable) as u16,
            max_repetition: lists as u16,
            encoding,
            stored: false,
            nodes: self.nodes,
            values,
            looked_up,
        };
        let in_struct = leaf.nodes.iter().any(|node| matches!(node.step, ShredStep::Field(_)));
        let has_places = leaf.is_exact() || matches!(leaf.values, LeafValues::Cells(_)) && lists == 0;
        leaf.stored = hints.stored && has_places && !in_struct && !looked_up && is_stored(data_type, &leaf.values);
        Ok((leaf, seen))
    }
}

/// Whether stored elements of `data_type` have the width of cells in pages.
fn is_stored(data_type: &DataType, values: &LeafValues) -> bool {
    match values {
        LeafValues::Cells(width) => match data_type {
            DataType::FixedSizeBinary(_) => true,
            number => number.primitive_width().is_some_and(|stored| stored as u64 == *width),
        },
        LeafValues::Indices(dictionary) => dictionary.is_by_byte(),
        LeafValues::Bits | LeafValues::Texts(_) => false,
    }
}

/// Whether an element of a compound or array can be null by itself.
fn can_be_missing(data_type: &DataType) -> bool {
    match data_type {
        // A boolean can be neither 0 nor 1; a reference can dangle.
        DataType::Boolean | DataType::LargeUtf8 => true,
        // An enumeration shows an unnamed code as its number; a category without a label is null.
        DataType::Dictionary(key, _) => **key != DataType::Int32,
        _ => false,
    }
}

/// Maps numbers, booleans and binary cells. `None`: another type.
fn fixed(data_type: &DataType) -> Option<(Physical, LeafValues, DataType)> {
    let (physical, seen) = match data_type {
        // Columns of nulls are written as pyarrow and `parquet` do: levels alone, with a type that readers know.
        DataType::Null => return Some((Physical::Int32, LeafValues::Cells(0), DataType::Null)),
        DataType::Boolean => return Some((Physical::Boolean, LeafValues::Bits, DataType::Boolean)),
        DataType::Int8 | DataType::UInt8 => {
            let identity = DictionaryPage::identity(*data_type == DataType::Int8);
            return Some((Physical::Int32, LeafValues::Indices(Arc::new(identity)), data_type.clone()));
        }
        DataType::Int16 | DataType::UInt16 | DataType::Int32 | DataType::UInt32 => (Physical::Int32, data_type),
        // Parquet has no unit of seconds.
        DataType::Timestamp(TimeUnit::Second, _) => return None,
        DataType::Date32 | DataType::Time32(TimeUnit::Millisecond) => (Physical::Int32, data_type),
        DataType::Time64(_) => (Physical::Int64, data_type),
        DataType::Decimal128(digits, _) => match cell_width(data_type)? {
            4 => (Physical::Int32, data_type),
            8 => (Physical::Int64, data_type),
            width if *digits <= 38 => (Physical::FixedLenByteArray(i32::try_from(width).ok()?), data_type),
            _ => return None,
        },
        DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..) | DataType::Duration(_) => {
            (Physical::Int64, data_type)
        }
        DataType::Float16 | DataType::Float32 => (Physical::Float, &DataType::Float32),
        DataType::Float64 => (Physical::Double, data_type),
        DataType::FixedSizeBinary(width) => (Physical::FixedLenByteArray(*width), data_type),
        _ => return None,
    };
    Some((physical, LeafValues::Cells(cell_width(data_type)?), seen.clone()))
}

/// Returns the dictionary of a one-byte enumeration. Codes are decoded even if they are the indices of a page, since
/// unnamed ones must be counted.
fn names(hints: &Hints) -> Option<DictionaryPage> {
    let Some(ValueSet::Names(names)) = &hints.values else { return None };
    let bytes = names.is_of_one_byte().then_some(0..=u8::MAX)?;
    let least = *names.codes().start();
    // With signed codes, a byte from 128 on is a negative code.
    let codes = bytes.map(|byte| if least < 0 { i128::from(byte as i8) } else { i128::from(byte) });
    let shown: Vec<String> = codes.map(|code| names.shown(code)).collect();
    DictionaryPage::names(&(Arc::new(LargeStringArray::from(shown)) as ArrayRef))
}

/// Returns the dictionary of categories. `None`: plain texts take less, unless the dictionary is short or its order is
/// meaningful.
fn categories(given: &Given, hints: &Hints) -> Option<DictionaryPage> {
    let labels = given.labels.as_ref()?;
    let texts = given.row_group.and_then(|rows| rows.checked_mul(longest(labels)?.checked_add(4)?));
    // The length is computed without building a dictionary, which takes long for very many labels.
    let body = labels.as_string_opt::<i64>()?.iter().flatten().map(|label| 4 + label.len() as u64).sum::<u64>();
    let is_ordered = matches!(hints.values, Some(ValueSet::Categories { ordered: true, .. }));
    let is_one = texts.is_none_or(|texts| body <= texts.max(SHORT_LABELS)) || is_ordered;
    if is_one { DictionaryPage::categories(labels) } else { None }
}

/// Returns the bytes of the longest label.
fn longest(labels: &ArrayRef) -> Option<u64> {
    let labels = labels.as_string_opt::<i64>()?;
    Some(labels.iter().flatten().map(str::len).max().unwrap_or(0) as u64)
}
