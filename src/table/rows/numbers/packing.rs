//! Unpacks stored numbers: by a linear function, as counts of a unit of time, with codes that mean missing.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use half::f16;

/// The steps of unpacking stored numbers, in the order of the fields.
#[derive(Clone, Debug, Default)]
pub struct Packing {
    /// Stored values that mean missing, in the type of the stored numbers. NaN means any NaN.
    pub missing: Option<ArrayRef>,
    /// The linear function of all other numbers.
    pub linear: Option<Linear>,
    /// A factor for each position in a list, in double precision, and the offset to add.
    pub by_place: Option<(Arc<[f64]>, f64)>,
    /// The unit of time that the results count.
    pub count: Option<UnitCount>,
}

impl Packing {
    /// Whether there is no step: numbers are shown as stored.
    pub fn is_none(&self) -> bool {
        self.missing.is_none() && self.linear.is_none() && self.count.is_none()
    }

    /// The linear function of every stored number, whether it means missing or not, if the numbers are codes: see
    /// [`Facts::codes`].
    ///
    /// [`Facts::codes`]: crate::store::Facts::codes
    pub(super) fn coding(&self, stored: &DataType) -> Option<Linear> {
        let linear = self.linear.filter(|_| self.count.is_none())?;
        // Numbers between two finite ones are finite.
        code_bounds(stored)?.into_iter().all(|code| linear.number(code, linear.is_single).is_finite()).then_some(linear)
    }

    /// The type of unpacked numbers, from that of the stored ones.
    pub(super) fn of_type(&self, stored: &DataType) -> DataType {
        match (stored, self.count, self.linear) {
            (DataType::FixedSizeList(item, length), ..) => {
                let item = item.as_ref().clone().with_data_type(self.of_type(item.data_type()));
                DataType::FixedSizeList(Arc::new(item), *length)
            }
            (_, Some(_), _) => DataType::Int64,
            (_, None, Some(linear)) => linear.data_type(),
            (stored, None, None) => stored.clone(),
        }
    }
}

/// The least and the greatest number of a type that is short enough for codes.
fn code_bounds(stored: &DataType) -> Option<[f64; 2]> {
    Some(match stored {
        DataType::Int8 => [i8::MIN.into(), i8::MAX.into()],
        DataType::UInt8 => [u8::MIN.into(), u8::MAX.into()],
        DataType::Int16 => [i16::MIN.into(), i16::MAX.into()],
        DataType::UInt16 => [u16::MIN.into(), u16::MAX.into()],
        _ => return None,
    })
}

/// A number is stored × `scale` + `offset`; each step is rounded to the type of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Linear {
    /// The factor. `None`: no multiplication.
    pub scale: Option<f64>,
    /// The number to add. `None`: no addition.
    pub offset: Option<f64>,
    /// Whether numbers are float32, computed in single precision; otherwise float64.
    pub is_single: bool,
}

impl Linear {
    /// Unpacks one stored number, in single precision if `is_single`.
    pub fn number(&self, stored: f64, is_single: bool) -> f64 {
        let (scale, offset) = (self.scale.unwrap_or(1.0), self.offset.unwrap_or(0.0));
        match is_single {
            true => (stored as f32 * scale as f32 + offset as f32).into(),
            false => stored * scale + offset,
        }
    }

    fn data_type(&self) -> DataType {
        if self.is_single { DataType::Float32 } else { DataType::Float64 }
    }

    pub(super) fn apply<T: ArrowPrimitiveType>(&self, stored: &PrimitiveArray<T>) -> ArrayRef
    where
        T::Native: StoredNumber,
    {
        macro_rules! linear {
            ($arrow:ty, $read:ident, $float:ty) => {{
                let (scale, offset) = (self.scale.map(|scale| scale as $float), self.offset.map(|by| by as $float));
                let values = stored.values();
                let values: Vec<$float> = match (scale, offset) {
                    (Some(scale), Some(offset)) => values.iter().map(|v| v.$read() * scale + offset).collect(),
                    (Some(scale), None) => values.iter().map(|v| v.$read() * scale).collect(),
                    (None, Some(offset)) => values.iter().map(|v| v.$read() + offset).collect(),
                    (None, None) => values.iter().map(|v| v.$read()).collect(),
                };
                Arc::new(PrimitiveArray::<$arrow>::new(values.into(), stored.nulls().cloned()))
            }};
        }
        if self.is_single { linear!(Float32Type, single, f32) } else { linear!(Float64Type, double, f64) }
    }
}

/// Floating-point counts of a unit of time, as whole microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCount {
    /// Attoseconds of the unit.
    pub step: i128,
    /// Microseconds from 1970 to the epoch of the counts.
    pub epoch: i64,
}

/// Attoseconds in a microsecond.
const MICROSECOND: i128 = 1_000_000_000_000;

impl UnitCount {
    /// Microseconds since 1970, halves rounded to even. `None`: NaN, or more than 64 bits.
    pub fn instant(&self, count: f64) -> Option<i64> {
        let since = if self.step % MICROSECOND == 0 {
            let step = (self.step / MICROSECOND) as f64;
            // Whole units and the rest are rounded separately, so they keep their digits. Both sums are even in the
            // unit where a half can occur: only a single microsecond is odd, and it is rounded directly.
            let (whole, rest) = if step > 1.0 { (count.trunc(), count.fract()) } else { (0.0, count) };
            let rest = (rest * step).round_ties_even();
            // The comparison excludes NaN and infinity.
            let fit = [whole * step, rest].iter().all(|part| (-9.3e18..9.3e18).contains(part));
            fit.then(|| whole as i128 * step as i128 + rest as i128)
        } else {
            let steps = (MICROSECOND / self.step.max(1)) as f64;
            let rest = (count / steps).round_ties_even();
            (-9.3e18..9.3e18).contains(&rest).then_some(rest as i128)
        }?;
        i64::try_from(since + i128::from(self.epoch)).ok()
    }

    pub(super) fn apply<T: ArrowPrimitiveType>(&self, counts: &PrimitiveArray<T>) -> ArrayRef
    where
        T::Native: StoredNumber,
    {
        Arc::new(counts.unary_opt::<_, Int64Type>(|count| self.instant(count.double())))
    }
}

/// A type of stored numbers.
pub(super) trait StoredNumber: Copy + PartialEq {
    /// The number in double precision.
    fn double(self) -> f64;
    /// The number in single precision.
    fn single(self) -> f32;
    /// Whether two numbers mean the same; any NaN equals any other.
    fn is(self, other: Self) -> bool;
}

macro_rules! stored {
    ($($native:ty: $is:expr),*) => {$(
        impl StoredNumber for $native {
            #[inline]
            fn double(self) -> f64 {
                self as f64
            }

            #[inline]
            fn single(self) -> f32 {
                self as f32
            }

            #[inline]
            fn is(self, other: Self) -> bool {
                $is(self, other)
            }
        }
    )*};
}
stored!(i8: |a, b| a == b, u8: |a, b| a == b, i16: |a, b| a == b, u16: |a, b| a == b, i32: |a, b| a == b);
stored!(u32: |a, b| a == b, i64: |a, b| a == b, u64: |a, b| a == b);
stored!(f32: |a: f32, b: f32| a == b || a.is_nan() && b.is_nan());
stored!(f64: |a: f64, b: f64| a == b || a.is_nan() && b.is_nan());

impl StoredNumber for f16 {
    fn double(self) -> f64 {
        self.to_f64()
    }

    fn single(self) -> f32 {
        self.to_f32()
    }

    fn is(self, other: Self) -> bool {
        self == other || self.is_nan() && other.is_nan()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_half_to_even_and_end_with_64_bits() {
        let instant = |step, count| UnitCount { step, epoch: 0 }.instant(count);
        let second = MICROSECOND * 1_000_000;
        assert_eq!(instant(second, 0.000_000_5), Some(0));
        // A little less than a half, as Python's fractions have it.
        assert_eq!(instant(second, 1.000_001_5), Some(1_000_001));
        assert_eq!(instant(second * 86_400, 19_000.25), Some(1_641_621_600_000_000));
        assert_eq!([instant(MICROSECOND, 1.5), instant(MICROSECOND, 2.5)], [Some(2), Some(2)]);
        assert_eq!([instant(MICROSECOND / 1000, 1_500.0), instant(MICROSECOND / 1000, 2_500.0)], [Some(2), Some(2)]);
        assert_eq!([instant(second, f64::NAN), instant(second, f64::INFINITY), instant(second, 1e13)], [None; 3]);
    }
}
