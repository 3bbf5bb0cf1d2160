//! Least and greatest values, and their kinds.

use std::cmp::Ordering;

use arrow_schema::DataType;

/// Bytes of the longest string that serves as a bound.
pub const LONGEST_TEXT: usize = 64;

/// The kind of a column's values, as far as their order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// Booleans, false first.
    Bool,
    /// Signed integers of any width.
    Int,
    /// Unsigned integers of any width.
    UInt,
    /// Floating-point numbers of any width.
    Float,
    /// Strings and fixed-width bytes, ordered bytewise.
    Text,
}

impl ScalarKind {
    /// The kind of an Arrow array of this type; a dictionary has that of its labels. `None` for types without an order:
    /// structs and lists.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Int,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Self::UInt,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::LargeUtf8 | DataType::FixedSizeBinary(_) => Self::Text,
            DataType::Dictionary(keys, labels) if matches!(**keys, DataType::Int32 | DataType::Int64) => {
                match &**labels {
                    DataType::Dictionary(..) => return None,
                    labels => return Self::of(labels),
                }
            }
            _ => return None,
        })
    }
}

/// A least or greatest value, wide enough for every type of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number, never NaN; exact for narrower types. A least zero is −0.0 and a greatest zero +0.0,
    /// whichever occurred, as Parquet requires; they are equal as numbers.
    Float(f64),
    /// The bytes of a string (in UTF-8) or of a binary value, at most [`LONGEST_TEXT`].
    Text(Vec<u8>),
}

impl Scalar {
    /// An integer as a signed one if that takes at most 64 bits, else as an unsigned one. `None`: it takes more than 64
    /// bits.
    pub fn of_integer(number: i128) -> Option<Self> {
        i64::try_from(number).map(Self::Int).or_else(|_| u64::try_from(number).map(Self::UInt)).ok()
    }

    /// Orders two values of one kind: zeros by sign, strings bytewise. Values of different kinds never occur together.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::UInt(a), Self::UInt(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// The lesser of two bounds, either of which may be missing.
pub(super) fn least(a: Option<Scalar>, b: Option<Scalar>) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.order(&a).is_lt() { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The greater of two bounds, either of which may be missing.
pub(super) fn greatest(a: Option<Scalar>, b: Option<Scalar>) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.order(&a).is_gt() { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Exact counts and bounds of a range of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of rows.
    pub rows: u64,
    /// Number of nulls.
    pub nulls: u64,
    /// Number of NaN.
    pub nans: u64,
    /// The least value that is neither null nor NaN; `None`: there is no such value, or a string longer than
    /// [`LONGEST_TEXT`] bytes is or may be the least.
    pub min: Option<Scalar>,
    /// The greatest value that is neither null nor NaN; `None` in the same cases.
    pub max: Option<Scalar>,
}

impl Summary {
    /// Number of values with an order: neither null nor NaN.
    pub fn values(&self) -> u64 {
        self.rows.saturating_sub(self.nulls).saturating_sub(self.nans)
    }

    /// Merges the summary of other rows of the same column. If one side has values but lacks a bound, the merged bound
    /// is unknown.
    pub(crate) fn merge(self, other: Self) -> Self {
        let unknown = |side: &Self, bound: &Option<Scalar>| side.values() > 0 && bound.is_none();
        let min_unknown = unknown(&self, &self.min) || unknown(&other, &other.min);
        let max_unknown = unknown(&self, &self.max) || unknown(&other, &other.max);
        Self {
            rows: self.rows + other.rows,
            nulls: self.nulls + other.nulls,
            nans: self.nans + other.nans,
            min: if min_unknown { None } else { least(self.min, other.min) },
            max: if max_unknown { None } else { greatest(self.max, other.max) },
        }
    }

    /// Drops bounds that are strings longer than [`LONGEST_TEXT`].
    pub(crate) fn without_long_text(mut self) -> Self {
        for bound in [&mut self.min, &mut self.max] {
            bound.take_if(|bound| matches!(bound, Scalar::Text(text) if text.len() > LONGEST_TEXT));
        }
        self
    }
}
