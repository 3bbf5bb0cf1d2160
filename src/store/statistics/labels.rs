//! Summaries of codes that lead to labels: what [`scan::summary`] says of the dictionary array, without making one.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, LargeStringArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowNativeType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::Scalar;
use super::scalar::Summary;
use super::scan::{self, STRETCH, Texts, place, valid_rows};

/// Labels in the order of their codes.
#[derive(Clone, Debug)]
pub struct Labels {
    labels: LargeStringArray,
    /// Codes of a least and a greatest label.
    ends: [usize; 2],
}

impl Labels {
    /// More labels than a block has rows are not worth going through for each block.
    pub const MOST: u64 = super::GRAIN;

    /// `None` for labels that are no text, and where one is missing or none is there.
    pub fn new(labels: &ArrayRef) -> Option<Self> {
        let labels = labels.as_string_opt::<i64>().filter(|labels| labels.null_count() == 0)?;
        let codes = || 0..labels.len();
        let ends = [codes().min_by_key(|code| labels.value(*code))?, codes().max_by_key(|code| labels.value(*code))?];
        Some(Self { labels: labels.clone(), ends })
    }

    /// What rows with these codes hold; those that lead to no label are missing. `None` for codes that are no integers.
    pub fn summary(&self, codes: &dyn Array) -> Option<Summary> {
        Some(match codes.data_type() {
            DataType::Int8 => self.of(codes.as_primitive::<Int8Type>()),
            DataType::Int16 => self.of(codes.as_primitive::<Int16Type>()),
            DataType::Int32 => self.of(codes.as_primitive::<Int32Type>()),
            DataType::Int64 => self.of(codes.as_primitive::<Int64Type>()),
            DataType::UInt8 => self.of(codes.as_primitive::<UInt8Type>()),
            DataType::UInt16 => self.of(codes.as_primitive::<UInt16Type>()),
            DataType::UInt32 => self.of(codes.as_primitive::<UInt32Type>()),
            DataType::UInt64 => self.of(codes.as_primitive::<UInt64Type>()),
            _ => return None,
        })
    }

    fn of<T: ArrowPrimitiveType>(&self, codes: &PrimitiveArray<T>) -> Summary {
        let none = self.labels.len();
        // Negative codes are past all labels here.
        let code = |value: &T::Native| value.as_usize().min(none);
        let mut used = vec![false; none + 1];
        let mut nulls = codes.null_count();
        if nulls > 0 {
            for row in valid_rows(codes.nulls(), codes.len()) {
                let code = code(&codes.value(row));
                used[code] = true;
                nulls += usize::from(code == none);
            }
        } else if lie_within(codes, none) {
            // Labels between the first and the last say nothing new.
            for stretch in codes.values().chunks(STRETCH) {
                stretch.iter().for_each(|value| used[code(value)] = true);
                if self.ends.iter().all(|end| used[*end]) {
                    break;
                }
            }
        } else {
            codes.values().iter().for_each(|value| used[code(value)] = true);
            nulls = codes.values().iter().filter(|value| code(value) == none).count();
        }
        let mut texts = Texts::new();
        for (label, _) in used.iter().take(none).enumerate().filter(|(_, used)| **used) {
            texts.add(self.labels.value_data(), place(&self.labels, label));
        }
        texts.finish(codes.len(), nulls)
    }
}

/// Whether all codes are below `end`: one look at them in a row, many times as fast as one by one.
fn lie_within<T: ArrowPrimitiveType>(codes: &PrimitiveArray<T>, end: usize) -> bool {
    let Some(Summary { min, max, .. }) = scan::summary(codes) else { return false };
    match (min, max) {
        (Some(Scalar::Int(min)), Some(Scalar::Int(max))) => min >= 0 && max < end as i64,
        (_, Some(Scalar::UInt(max))) => max < end as u64,
        _ => false,
    }
}
