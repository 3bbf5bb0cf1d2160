//! Search indexes of a table: what the file says they are, and what counts as one.

use std::sync::Arc;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::finding::Rule;
use super::index_rules::{BitmapRules, BloomRules, BoundsRules, MinMaxRules, SortedRules, ValueRules};
use crate::catalogue::{Attribute, ObjectId};
use crate::store::Learner;
use crate::store::{Dataset, Opening, Rows};

/// A search index as the file declares it. It is untrusted.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    /// HDF5 path.
    pub path: String,
    /// Its kind, as its dialect calls it: one this program does not know, too.
    pub kind: Option<String>,
    /// The revision of the dialect that it follows.
    pub revision: &'static str,
    /// Names of the columns that it covers.
    pub columns: Vec<BString>,
    /// Extent of the dataset.
    pub shape: Vec<u64>,
    /// Bytes of all elements, without filters.
    pub bytes: u64,
    /// The generation of the table that it was built at, where it says so.
    pub source_generation: Option<u64>,
    /// The rows that it was built over, where it says so.
    pub source_rows: Option<u64>,
    /// Its other attributes.
    pub attributes: Arc<[Attribute]>,
    /// Its form, where it keeps every rule that the catalogue can tell; else it is treated as absent.
    pub form: Result<Arc<IndexForm>, Absent>,
}

/// Why a search index is treated as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The rule that it breaks.
    pub rule: &'static Rule,
    /// The state found instead.
    pub found: String,
    /// The kind of the fault.
    pub reason: Reason,
}

/// Kinds of reasons to treat a search index as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The index breaks a rule.
    Broken,
    /// It describes another state of the table.
    Stale,
    /// It says itself that it does: nothing is wrong with the file.
    Outdated,
    /// It is of a kind that has no use here: nothing is wrong with the file.
    Unused,
}

impl Absent {
    /// An index that breaks `rule`.
    pub fn new(rule: &'static Rule, found: impl Into<String>) -> Self {
        Self { rule, found: found.into(), reason: Reason::Broken }
    }
}

/// A search index that has the form of one. Whether what it says is true is another question.
#[derive(Debug)]
pub struct IndexForm {
    /// HDF5 path.
    pub path: String,
    /// The index and its column.
    pub objects: [ObjectId; 2],
    /// The opened file that both lie in.
    pub file: Arc<Opening>,
    /// Name of the column, or of a field of one: `position.x`.
    pub column: BString,
    /// Whether it is a field of a column.
    pub is_part: bool,
    /// The column's rows as they are shown. What is read of them teaches `learner`.
    pub shown: Arc<dyn Rows>,
    /// The learner of the column's statistics, once the columns of the table [learn](super::Table::observed).
    pub learner: Option<Arc<Learner>>,
    /// The values that the index speaks of: codes, of enumerations and categories.
    pub values: Arc<dyn Rows>,
    /// Labels shown for codes; `None` where values are shown as they are.
    pub labels: Option<Labels>,
    /// Whether NaN counts as missing there.
    pub nan_is_missing: bool,
    /// Rows of a chunk of the column, at least 1.
    pub chunk: u64,
    /// Its content.
    pub kind: IndexKind,
}

impl IndexForm {
    /// Rows of the column.
    pub fn rows(&self) -> u64 {
        self.values.len()
    }

    /// Chunks that hold them.
    pub fn chunks(&self) -> u64 {
        self.rows().div_ceil(self.chunk.max(1))
    }
}

/// Labels shown for the codes of a column.
#[derive(Clone, Debug)]
pub enum Labels {
    /// Code n as label n.
    Categories(Arc<dyn Rows>),
    /// Codes of an enumeration, with their names; another one is shown as its number.
    Members(Vec<(i128, String)>),
}

/// The content of an index.
#[derive(Debug)]
pub enum IndexKind {
    /// `CHUNK_MINMAX`: for each chunk a struct of `min`, `max`, `nan_count`, `fill_count`, `n`.
    MinMax {
        /// As many entries as chunks, at least.
        entries: Arc<dyn Rows>,
        /// Its rules.
        rules: &'static MinMaxRules,
    },
    /// `SORTED_ROWS`: row numbers by value.
    SortedRows {
        /// Unsigned integers, one for each row at least.
        order: Arc<dyn Rows>,
        /// Rows in the tail of missing rows, and in that of NaN.
        tails: [u64; 2],
        /// Its rules.
        rules: &'static SortedRules,
    },
    /// Values in order, and the row of each. Neither is missing, and equal values stand in any order; NaN is the
    /// greatest.
    SortedValues {
        /// The values, missing where those of the column are.
        values: Arc<dyn Rows>,
        /// Unsigned integers, as many.
        order: Arc<dyn Rows>,
        /// Values ascend in each run of this length, at least 1.
        run: u64,
        /// Its rules.
        rules: &'static ValueRules,
    },
    /// For each run of [`IndexForm::chunk`] rows its least and its greatest value, one behind the other; NaN is the
    /// greatest. There may be rows behind the last run.
    Bounds {
        /// Two for each run.
        bounds: Arc<dyn Rows>,
        /// Its rules.
        rules: &'static BoundsRules,
    },
    /// `BITMAP`: for each value the rows that have it.
    Bitmap {
        /// A bitmap for each value, one behind the other.
        bits: Arc<Dataset>,
        /// Bytes of a bitmap.
        row_bytes: u64,
        /// The values, missing where they are the column's fill value.
        values: Arc<dyn Rows>,
        /// The same as the column shows them.
        shown: Arc<dyn Rows>,
        /// Whether no other value occurs.
        exhaustive: bool,
        /// Its rules.
        rules: &'static BitmapRules,
    },
    /// `CHUNK_BLOOM`: for each chunk a filter.
    Bloom {
        /// A filter for each chunk at least, one behind the other.
        filters: Arc<Dataset>,
        /// Bytes of a filter, at least 1.
        filter_bytes: u64,
        /// Bits of a value in a filter, at least 1.
        k: u16,
        /// Schemes that the filters may follow: several where the specification can be read in several ways.
        schemes: Vec<BloomScheme>,
        /// Its rules.
        rules: &'static BloomRules,
    },
}

impl IndexKind {
    /// The rule of this name among those that verification may find broken.
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

    /// The name in reports of the indexes used.
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

/// How the two hashes of a value in a `CHUNK_BLOOM` are computed.
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
