//! Entries of `CHUNK_MINMAX` (HEP001 §8.4).

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::order;
use crate::store::statistics::{Scalar, summary};

/// Counts and bounds of a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinMaxEntry {
    /// The least value that is neither null nor NaN. `None`: the chunk has no such value, and the file holds the fill
    /// value instead.
    pub min: Option<Scalar>,
    /// The greatest value that is neither null nor NaN.
    pub max: Option<Scalar>,
    /// Number of NaN, including those that mean missing.
    pub nan_count: u64,
    /// Number of nulls in the chunk.
    pub fill_count: u64,
    /// Number of rows of the chunk.
    pub n: u64,
}

impl MinMaxEntry {
    /// Returns the entry of these values. `None`: their type has no order.
    pub fn of(array: &dyn Array) -> Option<Self> {
        let (nan_missing, missing) = (order::nan_is_missing(array), array.null_count() as u64);
        let (min, max, nans) = match array.data_type() {
            // Statistics would cut long strings short.
            DataType::LargeUtf8 => {
                let texts = array.as_string::<i64>();
                let [min, max] = bounds(texts.iter().flatten().map(str::as_bytes));
                (min, max, 0)
            }
            DataType::FixedSizeBinary(_) => {
                let [min, max] = bounds(array.as_fixed_size_binary().iter().flatten());
                (min, max, 0)
            }
            DataType::Dictionary(..) => return None,
            _ => {
                let summary = summary(array)?;
                (one_zero(summary.min), one_zero(summary.max), summary.nans)
            }
        };
        let nan_count = nans + if nan_missing { missing } else { 0 };
        Some(Self { min, max, nan_count, fill_count: missing, n: array.len() as u64 })
    }

    /// Merges this entry with that of other rows of the same chunk.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            min: chosen(self.min, other.min, Ordering::Less),
            max: chosen(self.max, other.max, Ordering::Greater),
            nan_count: self.nan_count.saturating_add(other.nan_count),
            fill_count: self.fill_count.saturating_add(other.fill_count),
            n: self.n.saturating_add(other.n),
        }
    }
}

/// Returns an entry for each chunk of `chunk` rows that the values touch, with the chunk's number. The values begin at
/// row `first`. `None`: their type has no order.
pub fn by_chunk(array: &ArrayRef, first: u64, chunk: u64) -> Option<Vec<(u64, MinMaxEntry)>> {
    let (chunk, end) = (chunk.max(1), first.checked_add(array.len() as u64)?);
    let mut entries = Vec::new();
    let mut row = first;
    while row < end {
        let number = row / chunk;
        let stop = (number + 1).saturating_mul(chunk).min(end);
        // Within the bounds of the array.
        let part = array.slice((row - first) as usize, (stop - row) as usize);
        entries.push((number, MinMaxEntry::of(part.as_ref())?));
        row = stop;
    }
    Some(entries)
}

/// Returns the value of a row as a bound, with both zeros as +0. `None`: NaN, null, or no such row.
pub fn stored(array: &ArrayRef, row: usize) -> Option<Scalar> {
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::LargeUtf8 => Scalar::Text(array.as_string::<i64>().value(row).into()),
        DataType::FixedSizeBinary(_) => Scalar::Text(array.as_fixed_size_binary().value(row).into()),
        _ => return one_zero(summary(array.slice(row, 1).as_ref())?.min),
    })
}

/// Whether two stated values are the least and the greatest of a chunk, where NaN counts as the greatest.
pub fn are_bounds(said: &ArrayRef, chunk: &MinMaxEntry) -> bool {
    let is = |row, expected: Option<&Scalar>| match (stored(said, row), expected) {
        (Some(said), Some(expected)) => {
            std::mem::discriminant(&said) == std::mem::discriminant(expected) && said.order(expected).is_eq()
        }
        (said, expected) => said.is_none() && expected.is_none(),
    };
    said.len() == 2 && is(0, chunk.min.as_ref()) && is(1, chunk.max.as_ref().filter(|_| chunk.nan_count == 0))
}

/// Turns −0 into +0.
fn one_zero(bound: Option<Scalar>) -> Option<Scalar> {
    bound.map(|bound| match bound {
        // The pattern matches either zero.
        Scalar::Float(0.0) => Scalar::Float(0.0),
        other => other,
    })
}

fn bounds<'a>(texts: impl Iterator<Item = &'a [u8]>) -> [Option<Scalar>; 2] {
    let bounds = texts.fold(None, |bounds: Option<[&[u8]; 2]>, text| {
        Some(bounds.map_or([text; 2], |[min, max]| [min.min(text), max.max(text)]))
    });
    bounds.map_or([None, None], |bounds| bounds.map(|bound| Some(Scalar::Text(bound.to_vec()))))
}

fn chosen(a: Option<Scalar>, b: Option<Scalar>, better: Ordering) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.order(&a) == better { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int32Array, LargeStringArray};
    use arrow_buffer::NullBuffer;

    use super::*;

    #[test]
    fn nan_and_missing_values_are_counted_and_not_ordered() {
        let nan = f64::NAN;
        let entry = MinMaxEntry::of(&Float64Array::from(vec![Some(2.0), None, Some(nan), Some(-1.0)])).unwrap();
        assert_eq!((entry.min, entry.max), (Some(Scalar::Float(-1.0)), Some(Scalar::Float(2.0))));
        assert_eq!((entry.nan_count, entry.fill_count, entry.n), (1, 1, 4));
        // Where NaN is the fill, each missing value is a NaN.
        let valid = NullBuffer::from(vec![true, false, false]);
        let entry = MinMaxEntry::of(&Float64Array::new(vec![2.0, nan, nan].into(), Some(valid))).unwrap();
        assert_eq!((entry.nan_count, entry.fill_count, entry.n), (2, 2, 3));
        let entry = MinMaxEntry::of(&Int32Array::from(vec![None, None])).unwrap();
        assert_eq!(entry, MinMaxEntry { min: None, max: None, nan_count: 0, fill_count: 2, n: 2 });
    }

    #[test]
    fn strings_are_whole() {
        let long = "x".repeat(100);
        let texts = LargeStringArray::from(vec![long.as_str(), "a", "é"]);
        let entry = MinMaxEntry::of(&texts.slice(0, 2)).unwrap();
        assert_eq!((entry.min, entry.max), (Some(Scalar::Text(b"a".to_vec())), Some(Scalar::Text(long.into_bytes()))));
    }

    #[test]
    fn chunks_that_are_split_come_together() {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
        let first = by_chunk(&values.slice(0, 5), 0, 4).unwrap();
        let second = by_chunk(&values.slice(5, 5), 5, 4).unwrap();
        assert_eq!(first.iter().map(|(chunk, entry)| (*chunk, entry.n)).collect::<Vec<_>>(), [(0, 4), (1, 1)]);
        assert_eq!(second.iter().map(|(chunk, entry)| (*chunk, entry.n)).collect::<Vec<_>>(), [(1, 3), (2, 2)]);
        let middle = first[1].1.clone().merge(second[0].1.clone());
        assert_eq!((middle.min, middle.max, middle.n), (Some(Scalar::Int(4)), Some(Scalar::Int(7)), 4));
    }
}
