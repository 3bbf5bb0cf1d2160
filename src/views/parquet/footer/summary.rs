//! Statistics of a column chunk.

use std::collections::HashMap;

use super::column_index::KnownLeaf;
use crate::store::statistics::{self, LONGEST_TEXT, Scalar};
use crate::views::parquet::body::leaf::{ParquetLeaf, Physical};
use crate::views::parquet::layout::Groups;

/// Returns the most bytes of a bound of a leaf's values; 0: the leaf has no bounds.
pub(in crate::views::parquet) fn bound(leaf: &ParquetLeaf) -> usize {
    match leaf.physical {
        // Statistics cover rows, so those of a compound or list do not describe its parts.
        _ if leaf.path.len() > 1 => 0,
        Physical::Boolean => 1,
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::ByteArray => LONGEST_TEXT,
        // No engine reads bounds of opaque bytes.
        Physical::FixedLenByteArray(_) => 0,
    }
}

/// A summary of the values of a leaf column in a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct LeafSummary {
    /// Number of nulls.
    pub nulls: u64,
    /// The least and the greatest value, in PLAIN encoding without a length. `None`: there is no value, one is NaN, a
    /// bound is too long, or another row group has values but no bounds.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
}

/// Returns the summaries of row groups. If one of them has values but no bounds, all lose their bounds: DataFusion
/// takes the largest bound that it finds for that of the column, and a column whose bounds are all one value for a
/// constant.
pub(in crate::views::parquet) fn summaries(leaf: &KnownLeaf, groups: &Groups) -> HashMap<u64, LeafSummary> {
    let (mut summaries, mut is_bounded) = (HashMap::new(), true);
    for group in 0..groups.count() {
        let known = leaf.over(groups.rows_of(group));
        let summary = known.as_ref().map(|known| LeafSummary::new(known, leaf.physical));
        let is_empty = known.is_some_and(|known| known.nulls == known.rows);
        is_bounded &= is_empty || summary.as_ref().is_some_and(|summary| summary.bounds.is_some());
        summaries.extend(summary.map(|summary| (group, summary)));
    }
    if !is_bounded {
        summaries.values_mut().for_each(|summary| summary.bounds = None);
    }
    summaries
}

impl LeafSummary {
    /// Returns a summary: one without bounds if there are NaN values, since engines order NaN differently.
    fn new(known: &statistics::Summary, physical: Physical) -> Self {
        let bounds = match (&known.min, &known.max) {
            (Some(least), Some(largest)) if known.nans == 0 => plain(least, physical).zip(plain(largest, physical)),
            _ => None,
        };
        Self { nulls: known.nulls, bounds }
    }
}

/// Returns a value in PLAIN encoding. `None`: the leaf has no such values.
pub(in crate::views::parquet) fn plain(value: &Scalar, physical: Physical) -> Option<Vec<u8>> {
    Some(match (value, physical) {
        (Scalar::Bool(value), Physical::Boolean) => vec![u8::from(*value)],
        (Scalar::Int(value), Physical::Int32) => i32::try_from(*value).ok()?.to_le_bytes().into(),
        (Scalar::Int(value), Physical::Int64) => value.to_le_bytes().into(),
        (Scalar::UInt(value), Physical::Int32) => u32::try_from(*value).ok()?.to_le_bytes().into(),
        (Scalar::UInt(value), Physical::Int64) => value.to_le_bytes().into(),
        // The conversion is lossless: the column's values have this width.
        (Scalar::Float(value), Physical::Float) => (*value as f32).to_le_bytes().into(),
        (Scalar::Float(value), Physical::Double) => value.to_le_bytes().into(),
        (Scalar::Text(text), Physical::ByteArray) => text.clone(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(nans: u64, min: Scalar, max: Scalar) -> statistics::Summary {
        statistics::Summary { rows: 10, nulls: 2, nans, min: Some(min), max: Some(max) }
    }

    #[test]
    fn bounds_have_the_width_of_the_leaf() {
        let narrow = LeafSummary::new(&known(0, Scalar::Int(-2), Scalar::Int(3)), Physical::Int32);
        assert_eq!(narrow.bounds, Some((vec![0xfe, 0xff, 0xff, 0xff], vec![3, 0, 0, 0])));
        let unsigned = LeafSummary::new(&known(0, Scalar::UInt(1), Scalar::UInt(u64::from(u32::MAX))), Physical::Int32);
        assert_eq!(unsigned.bounds, Some((vec![1, 0, 0, 0], vec![0xff; 4])));
        let single = LeafSummary::new(&known(0, Scalar::Float(-0.0), Scalar::Float(1.5)), Physical::Float);
        assert_eq!(single.bounds, Some((vec![0, 0, 0, 0x80], vec![0, 0, 0xc0, 0x3f])));
        let text =
            LeafSummary::new(&known(0, Scalar::Text(b"a".into()), Scalar::Text(b"b".into())), Physical::ByteArray);
        assert_eq!((text.nulls, text.bounds), (2, Some((b"a".to_vec(), b"b".to_vec()))));
    }

    #[test]
    fn all_row_groups_have_bounds_or_none() {
        let groups = Groups::new(300_000, 131_072, None);
        let bounds = |odd: Option<f64>| {
            let values = (0..300_000).map(|row| if row / 131_072 == 1 { odd } else { Some(row as f64) });
            let learner = crate::views::parquet::tests::learnt(values.collect::<arrow_array::Float64Array>());
            let statistics = learner.shown();
            let leaf = KnownLeaf { physical: Physical::Double, bound: 8, statistics, times: None };
            let summaries = summaries(&leaf, &groups);
            [0, 1, 2].map(|group| summaries[&group].bounds.is_some())
        };
        assert_eq!(bounds(Some(1.0)), [true; 3]);
        assert_eq!(bounds(Some(f64::NAN)), [false; 3]);
        // A row group without values needs no bounds.
        assert_eq!(bounds(None), [true, false, true]);
    }

    #[test]
    fn nan_and_values_of_another_kind_have_no_bounds() {
        let nan = LeafSummary::new(&known(1, Scalar::Float(0.0), Scalar::Float(1.0)), Physical::Double);
        assert_eq!((nan.nulls, nan.bounds), (2, None));
        assert_eq!(LeafSummary::new(&known(0, Scalar::Int(0), Scalar::Int(1 << 40)), Physical::Int32).bounds, None);
        let bytes = known(0, Scalar::Text(vec![0]), Scalar::Text(vec![1]));
        assert_eq!(LeafSummary::new(&bytes, Physical::FixedLenByteArray(1)).bounds, None);
    }
}
