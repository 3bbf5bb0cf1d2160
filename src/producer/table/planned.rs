//! Plans of tables: how each column is stored.

use std::sync::Arc;

use super::cells::CellEncoding;
use crate::codec::Compression;
use crate::h5::element::{AttributeValue, ElementType, FillSetting};
use crate::h5::steps::References;
use crate::producer::options::Revision;
use crate::table::NestedJson;

/// A planned table: how each of its columns is stored.
#[derive(Debug)]
pub struct PlannedTable {
    pub(super) columns: Vec<PlannedColumn>,
    /// Positions of the columns that label rows.
    pub(super) labels: Vec<usize>,
    pub(super) revision: Revision,
    pub(super) references: References,
    pub(super) is_compressed: bool,
    /// HDF5 path of the table.
    pub(super) path: String,
    /// The existing table. `None`: a new one is written.
    pub(super) existing: Option<Existing>,
}

/// A planned dataset.
#[derive(Clone, Debug)]
pub(super) struct PlannedDataset {
    /// Number of the dataset among those of the table.
    pub number: usize,
    /// Type of the dataset's elements.
    pub element: ElementType,
    /// Bytes of an element.
    pub width: usize,
    /// Fill value of the dataset.
    pub fill: FillSetting,
    /// Number of elements in a chunk.
    pub chunk: u64,
    /// Whether bytes are shuffled before compression.
    pub shuffles: bool,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Attributes of the dataset, if it lies inside lists; those of a column are in [`PlannedColumn`].
    pub attributes: Vec<(&'static str, String)>,
    /// Where new elements begin in an existing dataset. `None`: the dataset is new.
    pub resumed: Option<Arc<Resumed>>,
}

impl PlannedDataset {
    /// The element that stands for null. `None`: no element does, or it is a string of variable length.
    pub fn fill(&self) -> Option<&[u8]> {
        match &self.fill {
            FillSetting::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The datasets that hold a column.
#[derive(Clone, Debug)]
pub(super) enum ColumnDatasets {
    /// One dataset, with one value per element.
    Cells(PlannedDataset, CellEncoding),
    /// Codes of labels, and whether the order of the labels means something.
    Codes(PlannedDataset, bool),
    /// Strings of variable length.
    Strings(PlannedDataset),
    /// Lists: a dataset of end offsets, one that masks null lists, and those of the items.
    Lists { offsets: PlannedDataset, mask: Option<PlannedDataset>, items: Box<ColumnDatasets> },
    /// Texts or bytes of any length: a dataset of end offsets, one that masks null texts, and one of bytes. With
    /// `stands_for`, this is a list of bytes whose attribute names the type; otherwise `STRING_VALUES`, which cannot be
    /// a column.
    Texts {
        offsets: PlannedDataset,
        mask: Option<PlannedDataset>,
        bytes: PlannedDataset,
        stands_for: Option<StandsFor>,
    },
}

/// The type that lists of bytes stand for.
#[derive(Clone, Debug)]
pub(super) enum StandsFor {
    Text,
    Bytes,
    Json(NestedJson),
}

impl StandsFor {
    /// The value of the attribute `arrow_type`.
    pub fn name(&self) -> String {
        match self {
            Self::Text => "utf8".into(),
            Self::Bytes => "binary".into(),
            Self::Json(json) => json.name(),
        }
    }
}

impl ColumnDatasets {
    /// Whether the column is a group of datasets, which can hold rows of any length.
    pub fn is_group(&self) -> bool {
        matches!(self, Self::Lists { .. } | Self::Texts { .. })
    }

    /// Bytes that a row takes before compression, without the items of lists.
    pub fn row_bytes(&self) -> u64 {
        match self {
            Self::Cells(part, _) | Self::Strings(part) | Self::Codes(part, _) => part.width as u64,
            Self::Lists { .. } | Self::Texts { .. } => 9,
        }
    }

    /// Describes for a user how a column is stored, and what stands for missing values.
    pub fn told(&self, missing: Option<&str>) -> String {
        match self {
            Self::Cells(part, _) | Self::Strings(part) => {
                let missing = missing.unwrap_or("none");
                format!("{}, missing {missing}, chunks of {}", element(part), part.chunk)
            }
            Self::Codes(part, _) => format!("{} codes of labels, chunks of {}", element(part), part.chunk),
            Self::Lists { items, .. } => format!("lists of {}", items.told(None)),
            Self::Texts { stands_for: Some(StandsFor::Json(json)), .. } => json.name(),
            Self::Texts { .. } => "bytes of any length".to_owned(),
        }
    }

    /// Calls `see` with each dataset.
    pub fn each(&self, see: &mut dyn FnMut(&PlannedDataset)) {
        match self {
            Self::Cells(part, _) | Self::Codes(part, _) | Self::Strings(part) => see(part),
            Self::Lists { offsets, mask, items } => {
                see(offsets);
                mask.iter().for_each(&mut *see);
                items.each(see);
            }
            Self::Texts { offsets, mask, bytes, .. } => {
                see(offsets);
                mask.iter().for_each(&mut *see);
                see(bytes);
            }
        }
    }
}

/// A planned column.
#[derive(Clone, Debug)]
pub(super) struct PlannedColumn {
    /// Name of the column.
    pub name: String,
    /// The datasets that hold it.
    pub shape: ColumnDatasets,
    /// Attributes of its dataset or group.
    pub attributes: Vec<(String, AttributeValue)>,
    /// Whether all its values were known when it was planned.
    pub is_known: bool,
    /// How it is stored, and what stands for missing values, described for a user.
    pub stored: String,
    /// A choice that a user may want to know.
    pub note: Option<String>,
    /// Bytes that a row takes before compression, without the items of lists.
    pub row_bytes: u64,
    /// Labels that an existing column of codes already has. `None`: the column is new, or has no codes.
    pub known: Option<KnownLabels>,
}

/// How to store the values of a dataset.
pub(super) struct ChosenStorage {
    pub element: ElementType,
    pub cells: CellEncoding,
    pub fill: FillSetting,
    /// The least and the greatest value, to be stated if the fill value is not the usual one.
    pub valid: Option<[AttributeValue; 2]>,
    /// Name of the Arrow type, if HDF5's type does not imply it.
    pub arrow_type: Option<String>,
    pub units: Option<String>,
    pub note: Option<String>,
    /// The fill value, described for a user.
    pub missing: String,
}

impl ChosenStorage {
    pub fn new(element: ElementType, cells: CellEncoding, fill: FillSetting, missing: impl Into<String>) -> Self {
        Self { element, cells, fill, valid: None, arrow_type: None, units: None, note: None, missing: missing.into() }
    }
}

/// Where new elements of an existing dataset begin.
#[derive(Clone, Debug)]
pub(super) struct Resumed {
    /// HDF5 path of the dataset.
    pub path: Vec<u8>,
    /// Extent of the dataset.
    pub extent: u64,
    /// First element to write: that of the chunk that is not full, or, for strings of variable length, the first new
    /// one.
    pub start: u64,
    /// Existing elements from `start` on.
    pub held: Vec<u8>,
    /// In a dataset of offsets, the last offset.
    pub last: u64,
}

/// A table to which rows are appended.
#[derive(Clone, Debug)]
pub(super) struct Existing {
    /// Number of rows before the change.
    pub rows: u64,
    /// `GENERATION` of the table, if present.
    pub generation: Option<u64>,
    /// Number of search indexes that become stale.
    pub indexes: usize,
}

/// The labels of an existing column of codes.
#[derive(Clone, Debug)]
pub(super) struct KnownLabels {
    /// HDF5 path of the label set.
    pub path: Vec<u8>,
    /// Bytes that each label takes.
    pub width: usize,
    /// The labels, in the order of their codes.
    pub labels: Vec<Box<str>>,
}

fn element(part: &PlannedDataset) -> String {
    match &part.element {
        ElementType::Signed(width) => format!("int{}", u32::from(*width) * 8),
        ElementType::Unsigned(width) => format!("uint{}", u32::from(*width) * 8),
        ElementType::Float(width) => format!("float{}", u32::from(*width) * 8),
        ElementType::Text { size, .. } => format!("string[{size}]"),
        ElementType::VariableText => "strings of variable length".to_owned(),
        ElementType::Opaque(size) => format!("opaque[{size}]"),
        ElementType::Enum { members, .. } => format!("enum of {}", members.len()),
        ElementType::Compound(fields) => format!("compound of {}", fields.len()),
        ElementType::Array(_, count) => format!("array[{count}]"),
    }
}
