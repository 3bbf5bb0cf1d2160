//! Least and greatest values, and what they are of.

use std::cmp::Ordering;

use arrow_schema::DataType;

/// Bytes of the longest string kept as a bound.
pub const LONGEST_TEXT: usize = 64;

/// The kind of a column's values, as far as order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Booleans, false first.
    Bool,
    /// Signed integers of any width.
    Int,
    /// Unsigned integers of any width.
    UInt,
    /// Floating-point numbers of any width.
    Float,
    /// Strings and bytes of fixed width, bytewise.
    Text,
}

impl Kind {
    /// The kind of an Arrow array of this type, a dictionary by its labels; `None` for types without order: structs and
    /// lists.
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
    /// A floating-point number, never NaN; of a narrower type it is exact. A least zero is −0.0 and a greatest zero
    /// +0.0, whichever were met: what Parquet asks of its writers, and equal as numbers.
    Float(f64),
    /// The bytes of a string (in UTF-8) or of a binary value, at most [`LONGEST_TEXT`].
    Text(Vec<u8>),
}

impl Scalar {
    /// An integer, signed where 64 bits hold it so; `None` beyond 64 bits.
    pub fn of_integer(number: i128) -> Option<Self> {
        i64::try_from(number).map(Self::Int).or_else(|_| u64::try_from(number).map(Self::UInt)).ok()
    }

    /// The order of two values of one kind: zeros of both signs by sign, strings bytewise. Values of different kinds
    /// never meet.
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
    /// Rows.
    pub rows: u64,
    /// Missing ones among them.
    pub nulls: u64,
    /// NaN among them.
    pub nans: u64,
    /// The least value that is neither missing nor NaN; `None` without such a value, or where a string longer than
    /// [`LONGEST_TEXT`] bytes is or may be the least.
    pub min: Option<Scalar>,
    /// The greatest, likewise.
    pub max: Option<Scalar>,
}

impl Summary {
    /// Rows with a value that has an order: neither missing nor NaN.
    pub fn values(&self) -> u64 {
        self.rows.saturating_sub(self.nulls).saturating_sub(self.nans)
    }

    /// This and a summary of other rows of the same column. A bound that one side has values for but does not know is
    /// not known.
    pub(in crate::store) fn merge(self, other: Self) -> Self {
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

    /// A string longer than [`LONGEST_TEXT`] is no bound.
    pub(in crate::store) fn without_long_text(mut self) -> Self {
        for bound in [&mut self.min, &mut self.max] {
            bound.take_if(|bound| matches!(bound, Scalar::Text(text) if text.len() > LONGEST_TEXT));
        }
        self
    }
}
