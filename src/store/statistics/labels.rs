//! Summaries of codes with labels: the same result as [`scan::summary`] of the dictionary array, without making one.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, LargeStringArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use bstr::ByteSlice;

use super::Scalar;
use super::scalar::Summary;
use super::scan::{self, STRETCH, Texts, place, valid_rows};
use crate::catalogue::EnumerationMember;

/// Labels in the order of their codes.
#[derive(Clone, Debug)]
pub struct CodeLabels {
    labels: LargeStringArray,
    /// Codes of a least and a greatest label.
    ends: [usize; 2],
}

impl CodeLabels {
    /// More labels than a block has rows are not worth scanning for each block.
    pub const MOST: u64 = super::GRAIN;

    /// Prepares labels. `None`: they are not text, some are null, or the set is empty.
    pub fn new(labels: &ArrayRef) -> Option<Self> {
        let labels = labels.as_string_opt::<i64>().filter(|labels| labels.null_count() == 0)?;
        let first = (0..labels.len()).min_by_key(|code| labels.value(*code))?;
        let last = (0..labels.len()).max_by_key(|code| labels.value(*code))?;
        Some(Self { labels: labels.clone(), ends: [first, last] })
    }

    /// Counts and bounds of rows with these codes; codes without a label are null. `None`: the codes are not integers.
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
        // Negative codes wrap past all labels here.
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
            // Labels between the first and the last add nothing.
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

/// Counts and bounds of rows with these codes of an enumeration, and whether all codes are named. A code with several
/// names has the first, an unnamed one its number. `None`: the codes are not integers, or lie further apart than
/// [`CodeLabels::MOST`].
pub fn named(codes: &dyn Array, members: &[EnumerationMember]) -> Option<(Summary, bool)> {
    let [least, greatest] = match scan::summary(codes)? {
        Summary { min: Some(Scalar::Int(min)), max: Some(Scalar::Int(max)), .. } => [min, max].map(i128::from),
        Summary { min: Some(Scalar::UInt(min)), max: Some(Scalar::UInt(max)), .. } => [min, max].map(i128::from),
        // All rows are null.
        Summary { rows, nulls, min: None, .. } if rows == nulls => {
            return Some((Summary { rows, nulls, ..Summary::default() }, true));
        }
        _ => return None,
    };
    let span = usize::try_from(greatest - least).ok().filter(|span| (*span as u64) < CodeLabels::MOST)?;
    let mut used = vec![false; span + 1];
    let ends = ends(members, least, span);
    match codes.data_type() {
        DataType::Int8 => mark(codes.as_primitive::<Int8Type>(), least, ends, &mut used),
        DataType::Int16 => mark(codes.as_primitive::<Int16Type>(), least, ends, &mut used),
        DataType::Int32 => mark(codes.as_primitive::<Int32Type>(), least, ends, &mut used),
        DataType::Int64 => mark(codes.as_primitive::<Int64Type>(), least, ends, &mut used),
        DataType::UInt8 => mark(codes.as_primitive::<UInt8Type>(), least, ends, &mut used),
        DataType::UInt16 => mark(codes.as_primitive::<UInt16Type>(), least, ends, &mut used),
        DataType::UInt32 => mark(codes.as_primitive::<UInt32Type>(), least, ends, &mut used),
        DataType::UInt64 => mark(codes.as_primitive::<UInt64Type>(), least, ends, &mut used),
        _ => return None,
    }
    let mut names = Vec::new();
    for member in members {
        let used = place_of(member, least, span).and_then(|place| used.get_mut(place));
        if used.is_some_and(std::mem::take) {
            names.push(member.name.to_str_lossy());
        }
    }
    let of_members = names.len();
    let unnamed = used.iter().enumerate().filter(|(_, used)| **used);
    names.extend(unnamed.map(|(place, _)| (least + place as i128).to_string().into()));
    let mut texts = Texts::new();
    names.iter().for_each(|name| texts.add(name.as_bytes(), 0..name.len()));
    Some((texts.finish(codes.len(), codes.null_count()), names.len() == of_members))
}

/// Position of a member among `span` + 1 codes from `least` on.
fn place_of(member: &EnumerationMember, least: i128, span: usize) -> Option<usize> {
    let place = member.value.checked_sub(least).and_then(|place| usize::try_from(place).ok());
    place.filter(|place| *place <= span)
}

/// Positions, among `span` + 1 codes from `least` on, of a least and a greatest name; `None`: some code is unnamed.
fn ends(members: &[EnumerationMember], least: i128, span: usize) -> Option<[usize; 2]> {
    if members.len() <= span {
        return None;
    }
    let mut names = vec![None; span + 1];
    for member in members {
        if let Some(name) = place_of(member, least, span).and_then(|place| names.get_mut(place)) {
            name.get_or_insert_with(|| member.name.to_str_lossy());
        }
    }
    let names = names.into_iter().enumerate().map(|(place, name)| Some((name?, place)));
    let names = names.collect::<Option<Vec<_>>>()?;
    Some([names.iter().min()?.1, names.iter().max()?.1])
}

/// Marks the codes of rows, counted from the least code, until both `ends` are marked: names between them add nothing.
fn mark<T: ArrowPrimitiveType>(codes: &PrimitiveArray<T>, least: i128, ends: Option<[usize; 2]>, used: &mut [bool]) {
    // With wrap-around, differences are those of the numbers.
    let least = least as usize;
    let mark = |code: &T::Native, used: &mut [bool]| {
        if let Some(used) = used.get_mut(code.as_usize().wrapping_sub(least)) {
            *used = true;
        }
    };
    if codes.null_count() > 0 {
        valid_rows(codes.nulls(), codes.len()).for_each(|row| mark(&codes.value(row), used));
        return;
    }
    for stretch in codes.values().chunks(STRETCH) {
        stretch.iter().for_each(|code| mark(code, used));
        if ends.is_some_and(|ends| ends.iter().all(|end| used.get(*end) == Some(&true))) {
            return;
        }
    }
}

/// Whether all codes are below `end`: one vectorised scan, many times as fast as checking one by one.
fn lie_within<T: ArrowPrimitiveType>(codes: &PrimitiveArray<T>, end: usize) -> bool {
    let Some(Summary { min, max, .. }) = scan::summary(codes) else { return false };
    match (min, max) {
        (Some(Scalar::Int(min)), Some(Scalar::Int(max))) => min >= 0 && max < end as i64,
        (_, Some(Scalar::UInt(max))) => max < end as u64,
        _ => false,
    }
}
