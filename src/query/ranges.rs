//! The values that satisfy a condition, as ranges.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ArrowNativeType;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::pattern::Pattern;
use crate::indexes::minmax::stored;
use crate::store::statistics::Scalar;

/// Most ranges to search linearly; more are searched by bisection.
const FEW: usize = 8;

/// The least byte string of a range, and the least one after it. `None`: the range has no end.
pub(super) type TextRange = (Vec<u8>, Option<Vec<u8>>);

/// A condition on the values of a column.
#[derive(Debug, PartialEq)]
pub(super) enum ValueTest {
    /// The value is missing.
    Null,
    /// The value is not null.
    Valid,
    /// The value is stored as NaN, even if that is shown as null.
    Nan,
    /// The value is neither null nor NaN.
    NotNan,
    /// The value is not null and lies in the ranges, or outside of them if `negated`.
    Compare { ranges: ValueRanges, negated: bool },
}

/// Ranges of values, in order and without overlaps. Ranges of numbers include both ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueRanges {
    /// Integers and booleans.
    Integers(Vec<[i128; 2]>),
    /// Floats of any width, as doubles; NaN lies in no range.
    Floats(Vec<[f64; 2]>),
    /// Strings and bytes, compared bytewise.
    Texts(Vec<TextRange>),
    /// Strings that match a pattern, and a range that holds them all.
    Like(Pattern, TextRange),
}

/// How the values between two bounds lie to ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// All lie in one range.
    Inside,
    /// None lies in a range.
    Outside,
    /// Some lie in a range and some do not, or it is unknown.
    Unknown,
}

/// Sorts ranges and merges overlapping ones.
fn merged<T: Copy + PartialOrd>(mut ranges: Vec<[T; 2]>) -> Vec<[T; 2]> {
    ranges.retain(|[least, greatest]| least <= greatest);
    ranges.sort_by(|a, b| a[0].partial_cmp(&b[0]).unwrap_or(std::cmp::Ordering::Equal));
    let mut out: Vec<[T; 2]> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range[0] <= last[1] => {
                if range[1] > last[1] {
                    last[1] = range[1];
                }
            }
            _ => out.push(range),
        }
    }
    out
}

impl ValueRanges {
    pub fn integers(ranges: Vec<[i128; 2]>) -> Self {
        Self::Integers(merged(ranges))
    }

    pub fn floats(ranges: Vec<[f64; 2]>) -> Self {
        Self::Floats(merged(ranges))
    }

    pub fn texts(mut ranges: Vec<TextRange>) -> Self {
        ranges.retain(|(least, behind)| behind.as_ref().is_none_or(|behind| least < behind));
        ranges.sort();
        let mut out: Vec<TextRange> = Vec::with_capacity(ranges.len());
        for (least, behind) in ranges {
            match out.last_mut() {
                Some(last) if last.1.as_ref().is_none_or(|end| least <= *end) => {
                    if let (Some(end), Some(new)) = (&last.1, &behind) {
                        last.1 = Some(end.max(new).clone());
                    } else {
                        last.1 = None;
                    }
                }
                _ => out.push((least, behind)),
            }
        }
        Self::Texts(out)
    }

    /// Returns a range for each value at some positions of an array. `None`: values of its type have no order.
    pub fn of_values(array: &ArrayRef, places: Range<usize>) -> Option<Self> {
        let values = places.filter_map(|place| stored(array, place));
        let data_type = array.data_type();
        Some(match data_type {
            DataType::LargeUtf8 | DataType::FixedSizeBinary(_) => {
                let texts = values.filter_map(|value| match value {
                    Scalar::Text(text) => Some((text.clone(), Some([text, vec![0]].concat()))),
                    _ => None,
                });
                Self::texts(texts.collect())
            }
            data_type if data_type.is_floating() => {
                let floats = values.filter_map(|value| match value {
                    Scalar::Float(value) => Some([value, value]),
                    _ => None,
                });
                Self::floats(floats.collect())
            }
            data_type if data_type.is_integer() || *data_type == DataType::Boolean => {
                Self::integers(values.filter_map(|value| wide(&value).map(|value| [value, value])).collect())
            }
            _ => return None,
        })
    }

    /// Clips ranges of integers to two bounds; other ranges stay.
    pub fn within(self, [least, greatest]: [i128; 2]) -> Self {
        match self {
            Self::Integers(ranges) => {
                Self::integers(ranges.into_iter().map(|[from, to]| [from.max(least), to.min(greatest)]).collect())
            }
            other => other,
        }
    }

    /// Returns how the values from `least` to `greatest` lie to the ranges.
    pub fn lie(&self, least: &Scalar, greatest: &Scalar) -> Lie {
        match (self, least, greatest) {
            (Self::Floats(ranges), Scalar::Float(least), Scalar::Float(greatest)) => lie(ranges, least, greatest),
            (Self::Texts(ranges), Scalar::Text(least), Scalar::Text(greatest)) => {
                if ranges.iter().all(|(from, to)| from > greatest || to.as_ref().is_some_and(|to| to <= least)) {
                    return Lie::Outside;
                }
                let mut ranges = ranges.iter();
                let is_inside = ranges.any(|(from, to)| from <= least && to.as_ref().is_none_or(|to| greatest < to));
                if is_inside { Lie::Inside } else { Lie::Unknown }
            }
            (Self::Like(_, range), ..) => match Self::Texts(vec![range.clone()]).lie(least, greatest) {
                Lie::Outside => Lie::Outside,
                _ => Lie::Unknown,
            },
            (Self::Integers(ranges), least, greatest) => match (wide(least), wide(greatest)) {
                (Some(least), Some(greatest)) => lie(ranges, &least, &greatest),
                _ => Lie::Unknown,
            },
            _ => Lie::Unknown,
        }
    }

    /// Returns the values in the ranges, if each range is a single value.
    pub fn points(&self) -> Option<Vec<Scalar>> {
        match self {
            Self::Integers(ranges) => {
                let are_points = ranges.iter().all(|[least, greatest]| least == greatest);
                // No column holds integers beyond 64 bits.
                are_points.then(|| ranges.iter().filter_map(|[point, _]| Scalar::of_integer(*point)).collect())
            }
            Self::Floats(ranges) => {
                ranges.iter().map(|[least, greatest]| (least == greatest).then_some(Scalar::Float(*least))).collect()
            }
            Self::Texts(ranges) => {
                let points = ranges.iter().map(|(least, behind)| {
                    let is_one = behind.as_ref().and_then(|behind| behind.strip_suffix(&[0])) == Some(least);
                    is_one.then(|| Scalar::Text(least.clone()))
                });
                points.collect()
            }
            Self::Like(..) => None,
        }
    }

    /// Returns for each range the values below it, and the values up to its end. `None`: a pattern.
    pub fn ends(&self) -> Option<Vec<[Self; 2]>> {
        Some(match self {
            Self::Integers(ranges) => {
                let ends = ranges.iter().map(|[least, greatest]| {
                    [least.checked_sub(1), Some(*greatest)]
                        .map(|end| Self::Integers(end.map(|end| [i128::MIN, end]).into_iter().collect()))
                });
                ends.collect()
            }
            Self::Floats(ranges) => {
                let ends = ranges.iter().map(|[least, greatest]| {
                    let below = Some(*least).filter(|least| *least > f64::NEG_INFINITY).map(f64::next_down);
                    [below, Some(*greatest)]
                        .map(|end| Self::Floats(end.map(|end| [f64::NEG_INFINITY, end]).into_iter().collect()))
                });
                ends.collect()
            }
            Self::Texts(ranges) => {
                let ends = ranges.iter().map(|(least, behind)| {
                    [Some(least.clone()), behind.clone()].map(|behind| Self::texts(vec![(Vec::new(), behind)]))
                });
                ends.collect()
            }
            Self::Like(..) => return None,
        })
    }

    /// Returns which values of an array lie in a range, including those under nulls. `None`: ranges of another kind.
    pub fn matching(&self, array: &dyn Array) -> Option<BooleanBuffer> {
        match self {
            Self::Integers(ranges) => integers(ranges, array),
            Self::Floats(ranges) => floats(ranges, array),
            Self::Texts(ranges) => texts(ranges, array),
            Self::Like(pattern, _) => {
                let strings = array.as_string_opt::<i64>()?;
                Some(BooleanBuffer::collect_bool(strings.len(), |at| pattern.matches(strings.value(at))))
            }
        }
    }
}

fn lie<T: PartialOrd>(ranges: &[[T; 2]], least: &T, greatest: &T) -> Lie {
    if ranges.iter().all(|range| range[1] < *least || range[0] > *greatest) {
        Lie::Outside
    } else if ranges.iter().any(|range| range[0] <= *least && *greatest <= range[1]) {
        Lie::Inside
    } else {
        Lie::Unknown
    }
}

fn wide(scalar: &Scalar) -> Option<i128> {
    match scalar {
        Scalar::Bool(value) => Some(i128::from(*value)),
        Scalar::Int(value) => Some(i128::from(*value)),
        Scalar::UInt(value) => Some(i128::from(*value)),
        Scalar::Float(_) | Scalar::Text(_) => None,
    }
}

/// Returns a bit for each value, set where it `holds`.
fn collect<T>(values: &[T], holds: impl Fn(&T) -> bool) -> BooleanBuffer {
    collect_some(values, |_| true, holds)
}

/// As [`collect`]; `may_hold` tells whether any of 64 values can hold.
#[inline(always)]
fn collect_some<T>(values: &[T], may_hold: impl Fn(&[T; 64]) -> bool, holds: impl Fn(&T) -> bool) -> BooleanBuffer {
    let (whole, rest) = values.as_chunks::<64>();
    let mut words = Vec::with_capacity(whole.len() + 1);
    for values in whole {
        if !may_hold(values) {
            words.push(0);
            continue;
        }
        // This makes a byte for each value first, which compilers vectorise.
        let mut held = [0_u8; 64];
        for (held, value) in held.iter_mut().zip(values) {
            *held = u8::from(holds(value));
        }
        let word = held.as_chunks::<8>().0.iter().rev().fold(0, |word, bytes| word << 8 | u64::from(packed(*bytes)));
        words.push(word);
    }
    if !rest.is_empty() {
        words.push(rest.iter().enumerate().fold(0, |word, (at, value)| word | u64::from(holds(value)) << at));
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, values.len())
}

/// Packs the lowest bits of eight bytes into one, that of the first byte lowest. The factor moves each to a separate
/// bit of the top byte.
fn packed(bytes: [u8; 8]) -> u8 {
    (u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Returns which values lie in one of the ranges, compared as `W`.
fn scan<T: Copy, W: PartialOrd + Copy>(values: &[T], ranges: &[[W; 2]], widen: impl Fn(T) -> W) -> BooleanBuffer {
    match ranges {
        [] => BooleanBuffer::new_unset(values.len()),
        &[[least, greatest]] => {
            // Most conditions match nearly nothing: one vectorised test covers several values.
            collect_some(
                values,
                |values| values.iter().fold(false, |any, value| any | lies_in([least, greatest], widen(*value))),
                |value| lies_in([least, greatest], widen(*value)),
            )
        }
        few if few.len() <= FEW => collect(values, |value| {
            let value = widen(*value);
            few.iter().fold(false, |any, range| any | lies_in(*range, value))
        }),
        many => collect(values, |value| {
            let value = widen(*value);
            let at = many.partition_point(|range| range[1] < value);
            many.get(at).is_some_and(|[least, greatest]| *least <= value && value <= *greatest)
        }),
    }
}

/// Whether a value lies in a range. `&` avoids a branch.
#[inline(always)]
fn lies_in<W: PartialOrd>([least, greatest]: [W; 2], value: W) -> bool {
    (least <= value) & (value <= greatest)
}

fn integers(ranges: &[[i128; 2]], array: &dyn Array) -> Option<BooleanBuffer> {
    macro_rules! native {
        ($($arrow:ident $primitive:ident $type:ident),*) => {
            match array.data_type() {
                $(DataType::$arrow => {
                    let within = ranges.iter().filter_map(|[least, greatest]| {
                        let least = (*least).max($type::MIN.into());
                        let greatest = (*greatest).min($type::MAX.into());
                        Some([$type::try_from(least).ok()?, $type::try_from(greatest).ok()?])
                    });
                    let within: Vec<[$type; 2]> = within.filter(|[least, greatest]| least <= greatest).collect();
                    Some(scan(array.as_primitive::<$primitive>().values(), &within, |value| value))
                })*
                DataType::Boolean => {
                    let values = array.as_boolean().values();
                    Some(match [0, 1].map(|value| ranges.iter().any(|range| lies_in(*range, value))) {
                        [true, true] => BooleanBuffer::new_set(values.len()),
                        [false, false] => BooleanBuffer::new_unset(values.len()),
                        [false, true] => values.clone(),
                        [true, false] => !values,
                    })
                }
                _ => None,
            }
        };
    }
    native!(
        Int8 Int8Type i8, Int16 Int16Type i16, Int32 Int32Type i32, Int64 Int64Type i64,
        UInt8 UInt8Type u8, UInt16 UInt16Type u16, UInt32 UInt32Type u32, UInt64 UInt64Type u64
    )
}

fn floats(ranges: &[[f64; 2]], array: &dyn Array) -> Option<BooleanBuffer> {
    Some(match array.data_type() {
        DataType::Float16 => scan(array.as_primitive::<Float16Type>().values(), ranges, |value| value.to_f64()),
        DataType::Float32 => scan(array.as_primitive::<Float32Type>().values(), ranges, f64::from),
        DataType::Float64 => scan(array.as_primitive::<Float64Type>().values(), ranges, |value| value),
        _ => return None,
    })
}

/// Whether a text lies in one of the ranges.
fn lies_in_one(ranges: &[TextRange], value: &[u8]) -> bool {
    // The first range that ends after the value.
    let at = ranges.partition_point(|range| range.1.as_ref().is_some_and(|behind| behind.as_slice() <= value));
    ranges.get(at).is_some_and(|range| range.0.as_slice() <= value)
}

fn texts(ranges: &[TextRange], array: &dyn Array) -> Option<BooleanBuffer> {
    Some(match array.data_type() {
        DataType::LargeUtf8 => {
            let strings = array.as_string::<i64>();
            BooleanBuffer::collect_bool(strings.len(), |at| lies_in_one(ranges, strings.value(at).as_bytes()))
        }
        DataType::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary();
            BooleanBuffer::collect_bool(bytes.len(), |at| lies_in_one(ranges, bytes.value(at)))
        }
        _ => return None,
    })
}

/// Returns which keys of a dictionary array have a matching label, including those under nulls. `None`: the array has
/// no such keys.
pub(super) fn of_labels(array: &dyn Array, matching: &BooleanBuffer) -> Option<BooleanBuffer> {
    fn keys<T: ArrowNativeType>(keys: &[T], matching: &BooleanBuffer) -> BooleanBuffer {
        // A key under a null is arbitrary.
        collect(keys, |key| key.to_usize().is_some_and(|key| key < matching.len() && matching.value(key)))
    }
    let DataType::Dictionary(key, _) = array.data_type() else { return None };
    Some(match **key {
        DataType::Int32 => keys(array.as_dictionary::<Int32Type>().keys().values(), matching),
        DataType::Int64 => keys(array.as_dictionary::<Int64Type>().keys().values(), matching),
        _ => return None,
    })
}

/// Returns which codes have a matching label, and which are not missing (`None`: all of them). Returns no pair if a
/// code has no label: the caller must decode and count it.
pub(super) fn of_codes(codes: &dyn Array, matching: &BooleanBuffer) -> Option<(BooleanBuffer, Option<BooleanBuffer>)> {
    macro_rules! native {
        ($($arrow:ident $primitive:ident),*) => {
            match codes.data_type() {
                $(DataType::$arrow => {
                    let stored = codes.as_primitive::<$primitive>().values();
                    classify(stored, codes.nulls(), |code| Class::of(i128::from(code), matching))
                })*
                // Bytes have so few values that all are looked up beforehand.
                DataType::Int8 => {
                    let table: [Class; 256] = std::array::from_fn(|code| Class::of((code as u8 as i8).into(), matching));
                    let stored = codes.as_primitive::<Int8Type>().values();
                    classify(stored, codes.nulls(), |code| table[usize::from(code as u8)])
                }
                DataType::UInt8 => {
                    let table: [Class; 256] = std::array::from_fn(|code| Class::of(code as i128, matching));
                    classify(codes.as_primitive::<UInt8Type>().values(), codes.nulls(), |code| table[usize::from(code)])
                }
                _ => None,
            }
        };
    }
    native!(
        Int16 Int16Type, Int32 Int32Type, Int64 Int64Type, UInt16 UInt16Type, UInt32 UInt32Type, UInt64 UInt64Type
    )
}

/// The class of a code, as a bit, so that a set of classes is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class(u8);

impl Class {
    const MATCHES: u8 = 1;
    const OTHER: u8 = 2;
    const MISSING: u8 = 4;
    const ODD: u8 = 8;

    fn of(code: i128, matching: &BooleanBuffer) -> Self {
        let place = usize::try_from(code).ok().filter(|place| *place < matching.len());
        Self(match place {
            Some(place) if matching.value(place) => Self::MATCHES,
            Some(_) => Self::OTHER,
            None if code == -1 => Self::MISSING,
            None => Self::ODD,
        })
    }

    fn is(self, classes: u8) -> bool {
        self.0 & classes != 0
    }
}

fn classify<T: Copy>(
    codes: &[T],
    nulls: Option<&NullBuffer>,
    class: impl Fn(T) -> Class,
) -> Option<(BooleanBuffer, Option<BooleanBuffer>)> {
    let mut met = 0;
    let words = codes.chunks(64).map(|codes| {
        codes.iter().enumerate().fold(0_u64, |word, (at, code)| {
            let class = class(*code);
            met |= class.0;
            word | u64::from(class.is(Class::MATCHES)) << at
        })
    });
    let matching = BooleanBuffer::new(Buffer::from_vec(words.collect()), 0, codes.len());
    let stored = nulls.map(|nulls| nulls.inner().clone());
    if met & (Class::MISSING | Class::ODD) == 0 {
        return Some((matching, stored));
    }
    let labelled = collect(codes, |code| class(*code).is(Class::MATCHES | Class::OTHER));
    if met & Class::ODD != 0 {
        let odd = collect(codes, |code| class(*code).is(Class::ODD));
        let odd = stored.as_ref().map_or(odd.clone(), |stored| &odd & stored);
        if odd.count_set_bits() > 0 {
            return None;
        }
    }
    Some((matching, Some(stored.map_or(labelled.clone(), |stored| &labelled & &stored))))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int8Array, Int32Array, UInt8Array};
    use proptest::prelude::*;

    use super::*;

    /// What the codes say, one by one: whether each matches, and whether it is a value; `None` where one has no label.
    fn expected(codes: &[Option<i64>], matching: &[bool]) -> Option<Vec<(bool, bool)>> {
        let one = |code: &Option<i64>| match code {
            None | Some(-1) => Some((false, false)),
            Some(code) => matching.get(usize::try_from(*code).ok()?).map(|matches| (*matches, true)),
        };
        codes.iter().map(one).collect()
    }

    fn found(codes: &dyn Array, matching: &[bool]) -> Option<Vec<(bool, bool)>> {
        let (matches, valid) = of_codes(codes, &BooleanBuffer::from(matching))?;
        let is_valid = |at: usize| valid.as_ref().is_none_or(|valid| valid.value(at));
        Some((0..codes.len()).map(|at| (matches.value(at) && is_valid(at), is_valid(at))).collect())
    }

    proptest! {
        #[test]
        fn codes_say_what_their_labels_say(
            matching in prop::collection::vec(any::<bool>(), 1..6),
            codes in prop::collection::vec(prop::option::weighted(0.95, prop_oneof![40 => -1..5_i64, 1 => 5..120_i64]), 0..200),
            narrow in any::<bool>(),
        ) {
            let codes: Vec<Option<i64>> = codes;
            let found = if narrow {
                let codes: Int8Array = codes.iter().map(|code| code.map(|code| code as i8)).collect();
                found(&codes, &matching)
            } else {
                let codes: Int32Array = codes.iter().map(|code| code.map(|code| code as i32)).collect();
                found(&codes, &matching)
            };
            prop_assert_eq!(found, expected(&codes, &matching));
        }
    }

    proptest! {
        #[test]
        fn each_value_has_its_bit(values in prop::collection::vec(any::<bool>(), 0..300)) {
            prop_assert_eq!(collect(&values, |value| *value), BooleanBuffer::from(values));
        }
    }

    #[test]
    fn unsigned_codes_are_never_missing_by_themselves() {
        let codes = UInt8Array::from(vec![Some(0), None, Some(1)]);
        assert_eq!(found(&codes, &[false, true]), Some(vec![(false, true), (false, false), (true, true)]));
        assert_eq!(found(&UInt8Array::from(vec![255]), &[true; 5]), None);
    }
}
