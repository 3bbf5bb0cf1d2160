//! Canonical bytes: the form of a value that does not depend on its storage (HEP001 July, "Canonical byte
//! representation").

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::DataType;
use half::f16;

use crate::store::statistics::Scalar;

/// Whether values of this type have canonical bytes.
pub fn has_canonical(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_floating()
        || matches!(data_type, DataType::Boolean | DataType::LargeUtf8 | DataType::FixedSizeBinary(_))
}

/// Calls `see` with the row and the canonical bytes of each value of `array` that is neither null nor NaN; returns
/// whether the type has canonical bytes. Numbers are little-endian in the type's width, −0 as +0; strings are without
/// padding; booleans are one byte.
pub fn for_each(array: &dyn Array, mut see: impl FnMut(usize, &[u8])) -> bool {
    macro_rules! numbers {
        ($($arrow:ident $primitive:ident $bytes:expr),*) => {
            match array.data_type() {
                $(DataType::$arrow => values::<$primitive>(array, |row, value| {
                    let bytes: fn(<$primitive as ArrowPrimitiveType>::Native) -> Option<_> = $bytes;
                    if let Some(bytes) = bytes(value) {
                        see(row, &bytes);
                    }
                }),)*
                DataType::Boolean => {
                    let values = array.as_boolean();
                    valid(array).for_each(|row| see(row, &[u8::from(values.value(row))]));
                }
                DataType::LargeUtf8 => {
                    let values = array.as_string::<i64>();
                    valid(array).for_each(|row| see(row, values.value(row).as_bytes()));
                }
                DataType::FixedSizeBinary(_) => {
                    let values = array.as_fixed_size_binary();
                    valid(array).for_each(|row| see(row, values.value(row)));
                }
                _ => return false,
            }
        };
    }
    numbers!(
        Int8 Int8Type |value| Some(value.to_le_bytes()),
        Int16 Int16Type |value| Some(value.to_le_bytes()),
        Int32 Int32Type |value| Some(value.to_le_bytes()),
        Int64 Int64Type |value| Some(value.to_le_bytes()),
        UInt8 UInt8Type |value| Some(value.to_le_bytes()),
        UInt16 UInt16Type |value| Some(value.to_le_bytes()),
        UInt32 UInt32Type |value| Some(value.to_le_bytes()),
        UInt64 UInt64Type |value| Some(value.to_le_bytes()),
        Float16 Float16Type |value| (!value.is_nan()).then(|| half(value).to_le_bytes()),
        // −0 + 0 is +0; any other number stays the same.
        Float32 Float32Type |value| (!value.is_nan()).then(|| (value + 0.0).to_le_bytes()),
        Float64 Float64Type |value| (!value.is_nan()).then(|| (value + 0.0).to_le_bytes())
    );
    true
}

fn half(value: f16) -> f16 {
    if value == f16::ZERO { f16::ZERO } else { value }
}

fn valid(array: &dyn Array) -> impl Iterator<Item = usize> {
    let nulls = array.nulls();
    (0..array.len()).filter(move |row| nulls.is_none_or(|nulls| nulls.is_valid(*row)))
}

fn values<T: ArrowPrimitiveType>(array: &dyn Array, mut see: impl FnMut(usize, T::Native)) {
    let values = array.as_primitive::<T>().values();
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => values.iter().enumerate().for_each(|(row, value)| see(row, *value)),
        Some(nulls) => nulls.valid_indices().for_each(|row| see(row, values[row])),
    }
}

/// The canonical bytes of a value for a column of this type. `None`: NaN, or a value that the column cannot hold.
pub fn of_scalar(value: &Scalar, data_type: &DataType) -> Option<Vec<u8>> {
    let wide = match value {
        Scalar::Bool(value) => return (*data_type == DataType::Boolean).then(|| vec![u8::from(*value)]),
        Scalar::Int(value) => i128::from(*value),
        Scalar::UInt(value) => i128::from(*value),
        Scalar::Float(value) => return float(*value, data_type),
        Scalar::Text(text) => {
            let holds = match data_type {
                DataType::LargeUtf8 => true,
                DataType::FixedSizeBinary(width) => usize::try_from(*width) == Ok(text.len()),
                _ => false,
            };
            return holds.then(|| text.clone());
        }
    };
    Some(match data_type {
        DataType::Boolean => vec![u8::try_from(wide).ok().filter(|value| *value <= 1)?],
        DataType::Int8 => i8::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::Int16 => i16::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::Int32 => i32::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::Int64 => i64::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::UInt8 => u8::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::UInt16 => u16::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::UInt32 => u32::try_from(wide).ok()?.to_le_bytes().to_vec(),
        DataType::UInt64 => u64::try_from(wide).ok()?.to_le_bytes().to_vec(),
        _ => return None,
    })
}

fn float(value: f64, data_type: &DataType) -> Option<Vec<u8>> {
    if value.is_nan() {
        return None;
    }
    let value = value + 0.0;
    match data_type {
        DataType::Float16 => {
            let narrow = f16::from_f64(value);
            (narrow.to_f64() == value).then(|| narrow.to_le_bytes().to_vec())
        }
        DataType::Float32 => {
            let narrow = value as f32;
            (f64::from(narrow) == value).then(|| narrow.to_le_bytes().to_vec())
        }
        DataType::Float64 => Some(value.to_le_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Float16Array, Float32Array, Int16Array, LargeStringArray};

    use super::*;

    fn all(array: &ArrayRef) -> Vec<(usize, Vec<u8>)> {
        let mut seen = Vec::new();
        assert!(for_each(array.as_ref(), |row, bytes| seen.push((row, bytes.to_vec()))));
        seen
    }

    #[test]
    fn missing_and_nan_have_none_and_zero_has_no_sign() {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(-0.0), None, Some(f32::NAN), Some(1.5)]));
        assert_eq!(all(&floats), [(0, vec![0; 4]), (3, vec![0, 0, 0xc0, 0x3f])]);
        let halves: ArrayRef = Arc::new(Float16Array::from(vec![f16::NEG_ZERO, f16::ONE, f16::NAN]));
        assert_eq!(all(&halves), [(0, vec![0, 0]), (1, vec![0, 0x3c])]);
        let integers: ArrayRef = Arc::new(Int16Array::from(vec![Some(-2), None]));
        assert_eq!(all(&integers), [(0, vec![0xfe, 0xff])]);
        let booleans: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
        assert_eq!(all(&booleans), [(0, vec![1]), (2, vec![0])]);
        let texts: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("é"), Some(""), None]));
        assert_eq!(all(&texts), [(0, vec![0xc3, 0xa9]), (1, vec![])]);
    }

    #[test]
    fn scalars_have_the_bytes_of_values() {
        assert_eq!(of_scalar(&Scalar::Int(-2), &DataType::Int16), Some(vec![0xfe, 0xff]));
        assert_eq!(of_scalar(&Scalar::Int(300), &DataType::UInt8), None);
        assert_eq!(of_scalar(&Scalar::Int(1), &DataType::Boolean), Some(vec![1]));
        assert_eq!(of_scalar(&Scalar::UInt(u64::MAX), &DataType::UInt64), Some(vec![0xff; 8]));
        assert_eq!(of_scalar(&Scalar::Float(-0.0), &DataType::Float32), Some(vec![0; 4]));
        assert_eq!(of_scalar(&Scalar::Float(0.1), &DataType::Float32), None);
        assert_eq!(of_scalar(&Scalar::Float(f64::NAN), &DataType::Float64), None);
        assert_eq!(of_scalar(&Scalar::Text(vec![1]), &DataType::FixedSizeBinary(2)), None);
    }
}
