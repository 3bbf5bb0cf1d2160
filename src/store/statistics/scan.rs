//! Summarises arrays: the one loop that every value of a column goes through once.
//!
//! It runs beside decoding, so it must be cheap: numbers are compared lane by lane in straight-line code that the
//! compiler vectorises, strings by their first sixteen bytes as one number, since identifiers often share the first
//! eight (`ENSG00000141510`).

use std::ops::{Add, Range};

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, FixedSizeBinaryArray, LargeStringArray};
use arrow_buffer::ArrowNativeType;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use half::f16;

use super::scalar::{LONGEST_TEXT, Scalar, Summary};

/// Bytes of values compared side by side: a few vectors, so that no instruction has to wait for the one before.
const SIDE_BY_SIDE: usize = 64;

/// Values processed at a time, once per question, so that they stay in the nearest cache.
pub(super) const STRETCH: usize = 1024;

/// Values whose validity fits in one word.
const WORD: usize = 64;

/// A dictionary with at most this many labels per row is summarised by its labels, a larger one by its rows.
const LABELS_PER_ROW: usize = 16;

/// Bytes of a string to compare: one more than the longest bound, which reveals that it is longer. Truncation loses
/// nothing, since the least of the truncated strings is the truncated least string.
const CUT: usize = LONGEST_TEXT + 1;

/// Counts and bounds of an array's rows; `None`: [`super::ScalarKind::of`] has no kind for its type. Strings longer
/// than [`LONGEST_TEXT`] are truncated to one byte more.
pub fn summary(array: &dyn Array) -> Option<Summary> {
    Some(match array.data_type() {
        DataType::Boolean => booleans(array.as_boolean()),
        DataType::Int8 => numbers::<Int8Type>(array),
        DataType::Int16 => numbers::<Int16Type>(array),
        DataType::Int32 => numbers::<Int32Type>(array),
        DataType::Int64 => numbers::<Int64Type>(array),
        DataType::UInt8 => numbers::<UInt8Type>(array),
        DataType::UInt16 => numbers::<UInt16Type>(array),
        DataType::UInt32 => numbers::<UInt32Type>(array),
        DataType::UInt64 => numbers::<UInt64Type>(array),
        DataType::Float16 => numbers::<Float16Type>(array),
        DataType::Float32 => numbers::<Float32Type>(array),
        DataType::Float64 => numbers::<Float64Type>(array),
        DataType::LargeUtf8 => strings(array.as_string::<i64>()),
        DataType::FixedSizeBinary(_) => fixed(array.as_fixed_size_binary()),
        DataType::Dictionary(keys, _) => match **keys {
            DataType::Int32 => labels::<Int32Type>(array)?,
            DataType::Int64 => labels::<Int64Type>(array)?,
            _ => return None,
        },
        _ => return None,
    })
}

/// A function that folds one more value into the result so far.
type Step<N, A> = fn(N, A) -> A;

/// A number with an order, and possibly a value outside it.
trait Number: Copy {
    /// The compared key: the number, or an integer with the same order.
    type Key: Copy;
    /// Counts NaN of a [`STRETCH`], in a number of the same width, so that one vector instruction can add the results
    /// of another.
    type Count: Copy + Default + Add<Output = Self::Count> + Into<f64>;
    /// At least as great as every key.
    const HIGHEST: Self::Key;
    /// At least as small as every key.
    const LOWEST: Self::Key;

    /// The lesser of the two; `least` where `self` is NaN.
    fn or_less(self, least: Self::Key) -> Self::Key;
    /// The greater of the two; `greatest` where `self` is NaN.
    fn or_greater(self, greatest: Self::Key) -> Self::Key;
    /// The lesser of two keys.
    fn less(a: Self::Key, b: Self::Key) -> Self::Key;
    /// The greater of two keys.
    fn greater(a: Self::Key, b: Self::Key) -> Self::Key;
    /// Adds one if `self` is NaN; `None` for types without NaN.
    const COUNT: Option<Step<Self, Self::Count>>;
    fn bounds(min: Self::Key, max: Self::Key) -> [Scalar; 2];
}

macro_rules! integers {
    ($kind:ident, $wide:ty: $($native:ty),*) => {$(
        impl Number for $native {
            type Key = Self;
            type Count = u8;
            const HIGHEST: Self = Self::MAX;
            const LOWEST: Self = Self::MIN;
            const COUNT: Option<Step<Self, u8>> = None;

            fn or_less(self, least: Self) -> Self {
                self.min(least)
            }

            fn or_greater(self, greatest: Self) -> Self {
                self.max(greatest)
            }

            fn less(a: Self, b: Self) -> Self {
                a.min(b)
            }

            fn greater(a: Self, b: Self) -> Self {
                a.max(b)
            }

            fn bounds(min: Self, max: Self) -> [Scalar; 2] {
                [min, max].map(|bound| Scalar::$kind(<$wide>::from(bound)))
            }
        }
    )*};
}
integers!(Int, i64: i8, i16, i32, i64);
integers!(UInt, u64: u8, u16, u32, u64);

/// Bounds of floating-point numbers, with the signs of zeros as in [`Scalar::Float`].
fn float_bounds(min: f64, max: f64) -> [Scalar; 2] {
    [if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max }].map(Scalar::Float)
}

macro_rules! floats {
    ($($native:ty),*) => {$(
        impl Number for $native {
            type Key = Self;
            type Count = Self;
            const HIGHEST: Self = Self::INFINITY;
            const LOWEST: Self = Self::NEG_INFINITY;
            const COUNT: Option<Step<Self, Self>> =
                Some(|value, count| count + if value.is_nan() { 1.0 } else { 0.0 });

            // Comparisons with NaN are false. In this form, each is one instruction.
            fn or_less(self, least: Self) -> Self {
                if self < least { self } else { least }
            }

            fn or_greater(self, greatest: Self) -> Self {
                if self > greatest { self } else { greatest }
            }

            fn less(a: Self, b: Self) -> Self {
                a.or_less(b)
            }

            fn greater(a: Self, b: Self) -> Self {
                a.or_greater(b)
            }

            fn bounds(min: Self, max: Self) -> [Scalar; 2] {
                float_bounds(f64::from(min), f64::from(max))
            }
        }
    )*};
}
floats!(f32, f64);

/// Few processors compare half-precision floats, so they are compared as integer keys: the bits of the number, with all
/// but the sign inverted if it is negative. −0.0 sorts before +0.0. NaN takes the key from which a bound starts, so it
/// changes neither bound.
impl Number for f16 {
    type Key = i16;
    type Count = u16;
    const HIGHEST: i16 = i16::MAX;
    const LOWEST: i16 = i16::MIN;
    const COUNT: Option<Step<Self, u16>> = Some(|value, count| count + u16::from(is_nan(value.to_bits())));

    fn or_less(self, least: i16) -> i16 {
        let key = if is_nan(self.to_bits()) { i16::MAX } else { key(self.to_bits()) };
        key.min(least)
    }

    fn or_greater(self, greatest: i16) -> i16 {
        let key = if is_nan(self.to_bits()) { i16::MIN } else { key(self.to_bits()) };
        key.max(greatest)
    }

    fn less(a: i16, b: i16) -> i16 {
        a.min(b)
    }

    fn greater(a: i16, b: i16) -> i16 {
        a.max(b)
    }

    fn bounds(min: i16, max: i16) -> [Scalar; 2] {
        // The mapping to keys is its own inverse.
        let [min, max] = [min, max].map(|bound| Self::from_bits(key(bound.cast_unsigned()).cast_unsigned()).to_f64());
        float_bounds(min, max)
    }
}

/// Strings of eight bytes, as numbers with the same order.
impl Number for [u8; 8] {
    type Key = u64;
    type Count = u8;
    const HIGHEST: u64 = u64::MAX;
    const LOWEST: u64 = u64::MIN;
    const COUNT: Option<Step<Self, u8>> = None;

    fn or_less(self, least: u64) -> u64 {
        u64::from_be_bytes(self).min(least)
    }

    fn or_greater(self, greatest: u64) -> u64 {
        u64::from_be_bytes(self).max(greatest)
    }

    fn less(a: u64, b: u64) -> u64 {
        a.min(b)
    }

    fn greater(a: u64, b: u64) -> u64 {
        a.max(b)
    }

    fn bounds(min: u64, max: u64) -> [Scalar; 2] {
        [min, max].map(|bound| Scalar::Text(bound.to_be_bytes().to_vec()))
    }
}

/// The least and the greatest of strings of eight bytes, as [keys](Number::Key).
pub(super) fn of_eights(cells: &[[u8; 8]]) -> [u64; 2] {
    let mut bounds = Bounds::<[u8; 8]> { min: u64::MAX, max: u64::MIN, nans: 0 };
    bounds.add(cells);
    [bounds.min, bounds.max]
}

fn key(half: u16) -> i16 {
    let bits = half.cast_signed();
    bits ^ ((bits >> 15) & i16::MAX)
}

fn is_nan(half: u16) -> bool {
    half & 0x7fff > 0x7c00
}

/// Folds all values with `op` from `start` on, in separate lanes: the compiler vectorises a loop over an array of fixed
/// length.
#[inline(always)]
fn lanes<N: Copy, A: Copy, const LANES: usize>(values: &[N], start: A, op: impl Fn(N, A) -> A) -> [A; LANES] {
    let mut lanes = [start; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = op(*value, *lane);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = op(*value, *lane);
    }
    lanes
}

/// Folds values as `lanes` does, and combines the lanes by `join`; the number of lanes depends on the size of the
/// numbers.
#[inline(always)]
fn fold<N: Copy, A: Copy>(values: &[N], start: A, op: impl Fn(N, A) -> A, join: impl Fn(A, A) -> A) -> A {
    match SIDE_BY_SIDE / size_of::<N>().max(1) {
        0..=8 => lanes::<_, _, 8>(values, start, op).into_iter().fold(start, join),
        9..=16 => lanes::<_, _, 16>(values, start, op).into_iter().fold(start, join),
        17..=32 => lanes::<_, _, 32>(values, start, op).into_iter().fold(start, join),
        _ => lanes::<_, _, 64>(values, start, op).into_iter().fold(start, join),
    }
}

/// Least, greatest and number of NaN so far.
struct Bounds<N: Number> {
    min: N::Key,
    max: N::Key,
    nans: u64,
}

impl<N: Number> Bounds<N> {
    fn add(&mut self, values: &[N]) {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports AVX2, as checked.
            return unsafe { self.add_avx2(values) };
        }
        self.add_portable(values);
    }

    /// Runs the portable loops in registers twice as wide, which compare 8-byte numbers in one instruction instead of
    /// six.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_avx2(&mut self, values: &[N]) {
        self.add_portable(values);
    }

    #[inline(always)]
    fn add_portable(&mut self, values: &[N]) {
        for values in values.chunks(STRETCH) {
            self.min = fold(values, self.min, N::or_less, N::less);
            self.max = fold(values, self.max, N::or_greater, N::greater);
            if let Some(count) = N::COUNT {
                let nans = fold(values, N::Count::default(), count, |a, b| a + b);
                // At most [`STRETCH`].
                self.nans += nans.into() as u64;
            }
        }
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array) -> Summary
where
    T::Native: Number,
{
    let values = array.as_primitive::<T>().values();
    let mut bounds = Bounds::<T::Native> { min: T::Native::HIGHEST, max: T::Native::LOWEST, nans: 0 };
    match (array.nulls().filter(|nulls| nulls.null_count() > 0), values.first()) {
        (Some(nulls), Some(first)) => {
            // Values that are not null, compacted.
            let mut valid = [*first; STRETCH + WORD];
            let mut count = 0;
            for (values, bits) in values.chunks(WORD).zip(nulls.inner().bit_chunks().iter_padded()) {
                if bits == u64::MAX && values.len() == WORD {
                    valid[count..count + WORD].copy_from_slice(values);
                    count += WORD;
                } else {
                    for (at, value) in values.iter().enumerate() {
                        // A null is overwritten by the next value: an unpredictable branch would cost more.
                        valid[count] = *value;
                        count += (bits >> at & 1) as usize;
                    }
                }
                if count >= STRETCH {
                    bounds.add(&valid[..count]);
                    count = 0;
                }
            }
            bounds.add(&valid[..count]);
        }
        _ => bounds.add(values),
    }
    let (rows, nulls, nans) = (array.len() as u64, array.null_count() as u64, bounds.nans);
    let any = rows - nulls - nans > 0;
    let [min, max] = T::Native::bounds(bounds.min, bounds.max).map(|bound| any.then_some(bound));
    Summary { rows, nulls, nans, min, max }
}

fn booleans(array: &BooleanArray) -> Summary {
    let (rows, nulls) = (array.len() as u64, array.null_count() as u64);
    let (trues, any) = (array.true_count() as u64, rows > nulls);
    Summary {
        rows,
        nulls,
        nans: 0,
        min: any.then(|| Scalar::Bool(trues == rows - nulls)),
        max: any.then_some(Scalar::Bool(trues > 0)),
    }
}

/// The first sixteen bytes of the text at `range` as one number, padded with zeros: if two of these differ, the texts
/// have the same order.
pub(super) fn head(data: &[u8], range: &Range<usize>) -> u128 {
    let length = range.len();
    match data.get(range.start..).and_then(<[u8]>::first_chunk) {
        // Masks out bytes after the text.
        Some(head) if length > 0 => u128::from_be_bytes(*head) & (u128::MAX << (128 - 8 * length.min(16))),
        Some(_) => 0,
        None => {
            let mut head = [0; 16];
            let text = data.get(range.clone()).unwrap_or_default();
            head[..text.len()].copy_from_slice(text);
            u128::from_be_bytes(head)
        }
    }
}

/// The least and the greatest string so far.
pub(super) struct Texts<'a> {
    /// The heads of both strings.
    heads: [u128; 2],
    bounds: Option<[&'a [u8]; 2]>,
}

impl<'a> Texts<'a> {
    pub fn new() -> Self {
        Self { heads: [u128::MAX, 0], bounds: None }
    }

    /// Adds the text at `range` of `data`.
    #[inline]
    pub fn add(&mut self, data: &'a [u8], range: Range<usize>) {
        let head = head(data, &range);
        // Nearly always true.
        if self.heads[0] < head && head < self.heads[1] {
            return;
        }
        self.compare(head, data.get(range).unwrap_or_default());
    }

    #[cold]
    fn compare(&mut self, head: u128, text: &'a [u8]) {
        let [min, max] = self.bounds.get_or_insert([text; 2]);
        // At the first text, both heads are still at their limits, and this sets them.
        if head < self.heads[0] || cut(text) < cut(min) {
            *min = text;
        }
        if head > self.heads[1] || cut(text) > cut(max) {
            *max = text;
        }
        self.heads = [self.heads[0].min(head), self.heads[1].max(head)];
    }

    pub fn finish(self, rows: usize, nulls: usize) -> Summary {
        let texts = self.bounds.map(|bounds| bounds.map(|text| Scalar::Text(cut(text).to_vec())));
        let (min, max) = texts.map(Into::into).unzip();
        Summary { rows: rows as u64, nulls: nulls as u64, nans: 0, min, max }
    }
}

pub(super) fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(CUT)]
}

/// The rows that are not null.
pub(super) fn valid_rows(nulls: Option<&NullBuffer>, rows: usize) -> impl Iterator<Item = usize> {
    (0..rows).filter(move |row| nulls.is_none_or(|nulls| nulls.is_valid(*row)))
}

/// The range of a row's text in the array's data.
pub(super) fn place(array: &LargeStringArray, row: usize) -> Range<usize> {
    let offsets = array.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

fn strings(array: &LargeStringArray) -> Summary {
    let mut texts = Texts::new();
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => (0..array.len()).for_each(|row| texts.add(array.value_data(), place(array, row))),
        nulls => valid_rows(nulls, array.len()).for_each(|row| texts.add(array.value_data(), place(array, row))),
    }
    texts.finish(array.len(), array.null_count())
}

fn fixed(array: &FixedSizeBinaryArray) -> Summary {
    let mut texts = Texts::new();
    valid_rows(array.nulls(), array.len()).for_each(|row| texts.add(array.value(row), 0..array.value(row).len()));
    texts.finish(array.len(), array.null_count())
}

/// Summarises a dictionary by its labels. The rows of a null label are null.
fn labels<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Option<Summary> {
    let array = array.as_dictionary::<K>();
    let (keys, labels) = (array.keys(), array.values());
    let rows = array.len();
    let Some(names) = labels.as_string_opt::<i64>() else {
        // Numbers are summarised by rows.
        return summary(arrow_select::take::take(labels.as_ref(), keys, None).ok()?.as_ref());
    };
    let mut texts = Texts::new();
    let mut nulls = keys.null_count();
    let key = |row: usize| keys.values().get(row).and_then(|key| key.to_usize()).filter(|key| *key < names.len());
    if names.len() / LABELS_PER_ROW <= rows {
        // Each label once, in the order of their memory.
        let mut used = vec![false; names.len()];
        let mut take = |key: usize| {
            if let Some(used) = used.get_mut(key) {
                *used = true;
            }
        };
        match keys.nulls().filter(|_| nulls > 0) {
            None => keys.values().iter().for_each(|key| take(key.as_usize())),
            keys => valid_rows(keys, rows).filter_map(key).for_each(take),
        }
        for (label, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            if names.is_valid(label) {
                texts.add(names.value_data(), place(names, label));
            }
        }
        if names.null_count() > 0 {
            nulls += valid_rows(keys.nulls(), rows).filter_map(key).filter(|key| names.is_null(*key)).count();
        }
    } else {
        for key in valid_rows(keys.nulls(), rows).filter_map(key) {
            if names.is_valid(key) {
                texts.add(names.value_data(), place(names, key));
            } else {
                nulls += 1;
            }
        }
    }
    Some(texts.finish(rows, nulls))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The results of the portable loops, and of those for this processor.
    fn both<N: Number>(values: &[N]) -> [([Scalar; 2], u64); 2] {
        [Bounds::add_portable, Bounds::add].map(|add| {
            let mut bounds = Bounds::<N> { min: N::HIGHEST, max: N::LOWEST, nans: 0 };
            add(&mut bounds, values);
            (N::bounds(bounds.min, bounds.max), bounds.nans)
        })
    }

    proptest! {
        #[test]
        fn wide_registers_find_the_same(bits in prop::collection::vec(any::<u64>(), 1..400)) {
            let [portable, own] = both(&bits);
            prop_assert_eq!(portable, own);
            let [portable, own] = both(&bits.iter().map(|bits| bits.cast_signed()).collect::<Vec<_>>());
            prop_assert_eq!(portable, own);
            let [portable, own] = both(&bits.iter().map(|bits| bits.to_ne_bytes()).collect::<Vec<_>>());
            prop_assert_eq!(portable, own);
            let [portable, own] = both(&bits.iter().map(|bits| *bits as u16).collect::<Vec<_>>());
            prop_assert_eq!(portable, own);
            let [portable, own] = both(&bits.iter().map(|bits| f16::from_bits(*bits as u16)).collect::<Vec<_>>());
            prop_assert_eq!(format!("{portable:?}"), format!("{own:?}"));
            let [portable, own] = both(&bits.iter().map(|bits| f32::from_bits(*bits as u32)).collect::<Vec<_>>());
            prop_assert_eq!(format!("{portable:?}"), format!("{own:?}"));
            let [portable, own] = both(&bits.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>());
            prop_assert_eq!(format!("{portable:?}"), format!("{own:?}"));
        }
    }
}
