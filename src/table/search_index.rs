//! Search indexes of a table: the file's declarations, and the forms that hepfs can use.

use std::sync::Arc;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::finding::Rule;
use super::index_rules::{BitmapRules, BloomRules, BoundsRules, MinMaxRules, SortedRules, ValueRules};
use crate::catalogue::{Attribute, ObjectId};
use crate::learnt::Learner;
use crate::store::{Opening, Rows, StoredDataset};

/// A search index as the file declares it, not yet verified.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    /// HDF5 path.
    pub path: String,
    /// Its kind in the dialect's terms, even if unknown to hepfs.
    pub kind: Option<String>,
    /// The revision of the dialect that it follows.
    pub revision: &'static str,
    /// Names of the columns that it covers.
    pub columns: Vec<BString>,
    /// Extent of its dataset.
    pub shape: Vec<u64>,
    /// Bytes of all its elements, without filters.
    pub bytes: u64,
    /// Generation of the table when it was built, if stated.
    pub source_generation: Option<u64>,
    /// Number of rows of the table when it was built, if stated.
    pub source_rows: Option<u64>,
    /// Its other attributes.
    pub attributes: Arc<[Attribute]>,
    /// Its form, if it keeps every rule that the catalogue can decide; otherwise why it counts as absent.
    pub form: Result<Arc<IndexForm>, AbsentIndex>,
}

/// Why a search index counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentIndex {
    /// The rule that the index breaks.
    pub rule: &'static Rule,
    /// The state found instead.
    pub found: String,
    /// The kind of reason.
    pub reason: AbsenceReason,
}

/// Kinds of reasons why a search index counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsenceReason {
    /// The index breaks a rule.
    Broken,
    /// The index describes another state of the table, without saying so.
    Stale,
    /// The index says itself that it is outdated; the file is in order.
    Outdated,
    /// hepfs has no use for an index of this kind; the file is in order.
    Unused,
}

impl AbsentIndex {
    /// An index that breaks `rule`.
    pub fn new(rule: &'static Rule, found: impl Into<String>) -> Self {
        Self { rule, found: found.into(), reason: AbsenceReason::Broken }
    }
}

/// A search index with a valid form. Its contents may still be wrong.
#[derive(Debug)]
pub struct IndexForm {
    /// HDF5 path.
    pub path: String,
    /// The objects of the index and of its column.
    pub objects: [ObjectId; 2],
    /// The opened file that holds both.
    pub file: Arc<Opening>,
    /// Name of the column, or of a field inside one: `position.x`.
    pub column: BString,
    /// Whether it is a field inside a column.
    pub is_part: bool,
    /// The column's rows as shown. Reading them also teaches `learner`.
    pub shown: Arc<dyn Rows>,
    /// The learner of the column's statistics, once the table is [observed](super::Table::observed).
    pub learner: Option<Arc<Learner>>,
    /// The values that the index covers: codes for enumerations and categories.
    pub values: Arc<dyn Rows>,
    /// Labels of codes. `None`: values are shown directly.
    pub labels: Option<ShownLabels>,
    /// Whether NaN counts as missing among these values.
    pub nan_is_missing: bool,
    /// Rows of a chunk of the column, at least 1.
    pub chunk: u64,
    /// The content of the index.
    pub kind: IndexContent,
}

impl IndexForm {
    /// Rows of the column.
    pub fn rows(&self) -> u64 {
        self.values.len()
    }

    /// Number of chunks that hold the rows.
    pub fn chunks(&self) -> u64 {
        self.rows().div_ceil(self.chunk.max(1))
    }
}

/// Labels of a column's codes.
#[derive(Clone, Debug)]
pub enum ShownLabels {
    /// Label n for code n.
    Categories(Arc<dyn Rows>),
    /// Codes of an enumeration with their names; any other code is shown as a number.
    Members(Vec<(i128, String)>),
}

/// The content of an index.
#[derive(Debug)]
pub enum IndexContent {
    /// `CHUNK_MINMAX`: for each chunk a struct of `min`, `max`, `nan_count`, `fill_count`, `n`.
    MinMax {
        /// At least as many entries as chunks.
        entries: Arc<dyn Rows>,
        /// Its rules.
        rules: &'static MinMaxRules,
    },
    /// `SORTED_ROWS`: row numbers by value.
    SortedRows {
        /// Unsigned integers, at least one for each row.
        order: Arc<dyn Rows>,
        /// Number of rows in the tail of missing values, and in the tail of NaN.
        tails: [u64; 2],
        /// Its rules.
        rules: &'static SortedRules,
    },
    /// Sorted values with the row of each, without nulls. Equal values are in any order; NaN is the greatest.
    SortedValues {
        /// The values; null where those of the column are.
        values: Arc<dyn Rows>,
        /// Unsigned integers, as many as values.
        order: Arc<dyn Rows>,
        /// Values ascend in each run of this length, at least 1.
        run: u64,
        /// Its rules.
        rules: &'static ValueRules,
    },
    /// The least and the greatest value of each run of [`IndexForm::chunk`] rows, in succession; NaN is the greatest.
    /// Rows may follow the last run.
    Bounds {
        /// Two for each run.
        bounds: Arc<dyn Rows>,
        /// Its rules.
        rules: &'static BoundsRules,
    },
    /// `BITMAP`: the rows of each value.
    Bitmap {
        /// The bitmaps of all values, in succession.
        bits: Arc<StoredDataset>,
        /// Bytes of a bitmap.
        row_bytes: u64,
        /// The value of each bitmap; null where it equals the column's fill value.
        values: Arc<dyn Rows>,
        /// These values as the column shows them.
        shown: Arc<dyn Rows>,
        /// Whether the column has no other values.
        exhaustive: bool,
        /// Its rules.
        rules: &'static BitmapRules,
    },
    /// `CHUNK_BLOOM`: a filter for each chunk.
    Bloom {
        /// At least one filter for each chunk, in succession.
        filters: Arc<StoredDataset>,
        /// Bytes of a filter, at least 1.
        filter_bytes: u64,
        /// Number of bits of each value in a filter, at least 1.
        k: u16,
        /// Schemes that the filters may follow; several if the specification is ambiguous.
        schemes: Vec<BloomScheme>,
        /// Its rules.
        rules: &'static BloomRules,
    },
}

impl IndexContent {
    /// The rule with this name among those that verification may find broken.
    pub fn rule(&self, id: &str) -> Option<&'static Rule> {
        let all: &[&'static Rule] = match self {
            Self::MinMax { rules, .. } => &[rules.rows, rules.missing, rules.nans, rules.least, rules.greatest],
            Self::SortedRows { rules, .. } => &[rules.elements, rules.order, rules.tails],
            Self::SortedValues { rules, .. } => &[rules.elements, rules.distinct, rules.values, rules.order],
            Self::Bounds { rules, .. } => &[rules.bounds],
            Self::Bitmap { rules, .. } => &[rules.distinct, rules.exhaustive, rules.bits],
            Self::Bloom { rules, .. } => &[rules.values],
        };
        all.iter().copied().find(|rule| rule.id == id)
    }

    /// The name of this kind of index in reports of used indexes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MinMax { .. } => "CHUNK_MINMAX",
            Self::SortedRows { .. } => "SORTED_ROWS",
            Self::SortedValues { .. } => "SORTED_VALUES",
            Self::Bounds { .. } => "BOUNDS",
            Self::Bitmap { .. } => "BITMAP",
            Self::Bloom { .. } => "CHUNK_BLOOM",
        }
    }
}

/// The computation of the two hashes of a value in a `CHUNK_BLOOM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BloomScheme {
    /// Both halves of one hash.
    OneHash {
        /// Its seed.
        seed: u32,
    },
    /// The low half of the hash seeded 0, the high half of the one seeded 0x9E3779B9.
    LowHigh,
    /// The low half of either hash.
    LowLow,
}
