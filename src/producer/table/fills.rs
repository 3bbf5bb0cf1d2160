//! Lists candidates for fill values: first those that HEP001 July recommends (§"Missing values"), then others that are
//! rare in data.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray};
use arrow_schema::DataType;
use half::f16;

/// A number at one end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RangeEnd {
    /// An integer.
    Whole(i128),
    /// A floating-point number, not NaN.
    Float(f64),
}

impl RangeEnd {
    pub fn min(self, other: Self) -> Self {
        if self.is_below(other) { self } else { other }
    }

    pub fn max(self, other: Self) -> Self {
        if self.is_below(other) { other } else { self }
    }

    pub fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a < b,
            (Self::Float(a), Self::Float(b)) => a < b,
            _ => false,
        }
    }
}

/// The default fill value of netCDF for floating-point numbers, which HEP001 recommends.
const USUAL: f64 = 9.969_209_968_386_869e36;

const SINGLE: [f32; 6] = [USUAL as f32, -(USUAL as f32), f32::MAX, f32::MIN, 1.234_567_9e30, f32::NAN];
const DOUBLE: [f64; 6] = [USUAL, -USUAL, f64::MAX, f64::MIN, 1.234_567_890_123_456_7e300, f64::NAN];
const HALF: [u16; 6] = [0x7bff, 0xfbff, 0x7bfe, 0xfbfe, 0x0001, 0x7e00];

/// Candidates for text. A text column is at least as wide as the one chosen.
const TEXTS: [&str; 6] = ["", "NA", "<missing>", "<null>", "\u{fffd}", "\u{1a}missing\u{1a}"];

/// Bytes of the longest of these texts.
pub(super) const LONGEST_TEXT: usize = 9;

/// The start of the first pattern of bytes, and, if patterns are longer than this, each of them. A counter follows,
/// since neither erased flash memory nor padding leaves such bytes.
const MARK: &[u8] = b"FILL";

/// Number of patterns of bytes to choose from.
const PATTERNS: u8 = 8;

/// Texts that may serve as fill values, the usual one first.
pub(super) fn texts() -> &'static [&'static str] {
    &TEXTS
}

/// The bit for this text among [`texts`]; 0 for any other text.
pub(super) fn met_text(text: &[u8]) -> u32 {
    TEXTS.iter().position(|fill| fill.as_bytes() == text).map_or(0, |at| 1 << at)
}

/// Patterns of this many bytes that may serve as fill values.
pub(super) fn patterns(width: usize) -> Vec<Vec<u8>> {
    let patterns = (1..=PATTERNS).map(|number| {
        let first = number.wrapping_mul(31).wrapping_sub(30);
        let mark = MARK.iter().copied().filter(|_| first == 1 || width > MARK.len());
        mark.chain((0..=u8::MAX).cycle().skip(usize::from(first))).take(width).collect()
    });
    patterns.collect()
}

/// A bit for each of [`patterns`] that occurs among the values.
pub(super) fn met_bytes(cells: &FixedSizeBinaryArray) -> u32 {
    let patterns = patterns(usize::try_from(cells.value_length()).unwrap_or(0));
    // The first byte rules out most cells.
    let mut is_first = [false; 256];
    patterns.iter().filter_map(|pattern| pattern.first()).for_each(|first| is_first[usize::from(*first)] = true);
    let likely = cells.iter().flatten().filter(|cell| cell.first().is_none_or(|first| is_first[usize::from(*first)]));
    likely.fold(0, |met, cell| {
        let found = patterns.iter().enumerate().filter(|(_, pattern)| pattern.as_slice() == cell);
        found.fold(met, |met, (at, _)| met | 1 << at)
    })
}

/// Numbers of a floating-point type that may serve as fill values, the usual one first.
pub(super) fn floats(data_type: &DataType) -> Vec<Vec<u8>> {
    match data_type {
        DataType::Float16 => HALF.iter().map(|bits| bits.to_le_bytes().to_vec()).collect(),
        DataType::Float32 => SINGLE.iter().map(|value| value.to_le_bytes().to_vec()).collect(),
        _ => DOUBLE.iter().map(|value| value.to_le_bytes().to_vec()).collect(),
    }
}

/// The least and the greatest number in an array, NaN aside, and a bit for each of [`floats`] that occurs.
pub(super) fn numbers(array: &ArrayRef) -> (Option<[RangeEnd; 2]>, u32) {
    fn whole<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<[RangeEnd; 2]>
    where
        T::Native: Into<i128> + Ord,
    {
        let array = array.as_primitive::<T>();
        let ends = match array.null_count() {
            0 => array.values().iter().min().copied().zip(array.values().iter().max().copied()),
            _ => array.iter().flatten().min().zip(array.iter().flatten().max()),
        };
        ends.map(|(least, greatest)| [least, greatest].map(|end| RangeEnd::Whole(end.into())))
    }
    fn float<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        fills: &[T::Native],
        same: impl Fn(T::Native, T::Native) -> bool,
        wide: impl Fn(T::Native) -> f64,
    ) -> (Option<[RangeEnd; 2]>, u32) {
        let array = array.as_primitive::<T>();
        let mut met = 0;
        for (at, fill) in fills.iter().enumerate() {
            let is_met = match array.null_count() {
                0 => array.values().iter().fold(false, |met, value| met | same(*value, *fill)),
                _ => array.iter().flatten().any(|value| same(value, *fill)),
            };
            met |= u32::from(is_met) << at;
        }
        let mut range: Option<[f64; 2]> = None;
        for value in array.iter().flatten().map(wide).filter(|value| !value.is_nan()) {
            range = Some(range.map_or([value; 2], |[a, b]| [a.min(value), b.max(value)]));
        }
        (range.map(|range| range.map(RangeEnd::Float)), met)
    }
    match array.data_type() {
        DataType::Int8 => (whole::<Int8Type>(array), 0),
        DataType::Int16 => (whole::<Int16Type>(array), 0),
        DataType::Int32 => (whole::<Int32Type>(array), 0),
        DataType::Int64 => (whole::<Int64Type>(array), 0),
        DataType::UInt8 => (whole::<UInt8Type>(array), 0),
        DataType::UInt16 => (whole::<UInt16Type>(array), 0),
        DataType::UInt32 => (whole::<UInt32Type>(array), 0),
        DataType::UInt64 => (whole::<UInt64Type>(array), 0),
        DataType::Float16 => {
            let fills = HALF.map(f16::from_bits);
            float::<Float16Type>(array, &fills, |a, b| a == b || a.is_nan() && b.is_nan(), f16::to_f64)
        }
        DataType::Float32 => float::<Float32Type>(array, &SINGLE, |a, b| a == b || a.is_nan() && b.is_nan(), f64::from),
        DataType::Float64 => float::<Float64Type>(array, &DOUBLE, |a, b| a == b || a.is_nan() && b.is_nan(), |v| v),
        _ => (None, 0),
    }
}
