//! Integers of any width as 64 bits.
//!
//! Nulls stay nulls. Values out of range become null: a negative number as `u64`, one past `i64::MAX` as `i64`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, Int64Array, UInt64Array};
use arrow_schema::DataType;

/// Widens integers to `u64`; `None`: not an array of integers.
pub fn unsigned(array: &dyn Array) -> Option<UInt64Array> {
    Some(match array.data_type() {
        DataType::UInt8 => array.as_primitive::<UInt8Type>().unary(u64::from),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().unary(u64::from),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().unary(u64::from),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().clone(),
        _ => signed(array)?.unary_opt(|value| u64::try_from(value).ok()),
    })
}

/// Widens integers to `i64`; `None`: not an array of integers.
pub fn signed(array: &dyn Array) -> Option<Int64Array> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().unary(i64::from),
        DataType::Int16 => array.as_primitive::<Int16Type>().unary(i64::from),
        DataType::Int32 => array.as_primitive::<Int32Type>().unary(i64::from),
        DataType::Int64 => array.as_primitive::<Int64Type>().clone(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().unary(i64::from),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().unary(i64::from),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().unary(i64::from),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().unary_opt(|value| i64::try_from(value).ok()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, Float64Array, Int8Array, Int16Array, Int32Array, UInt8Array, UInt16Array, UInt32Array,
    };

    use super::*;

    #[test]
    fn every_width_is_widened_and_nulls_stay() {
        let arrays: [ArrayRef; 8] = [
            Arc::new(Int8Array::from(vec![Some(7), None])),
            Arc::new(Int16Array::from(vec![Some(7), None])),
            Arc::new(Int32Array::from(vec![Some(7), None])),
            Arc::new(Int64Array::from(vec![Some(7), None])),
            Arc::new(UInt8Array::from(vec![Some(7), None])),
            Arc::new(UInt16Array::from(vec![Some(7), None])),
            Arc::new(UInt32Array::from(vec![Some(7), None])),
            Arc::new(UInt64Array::from(vec![Some(7), None])),
        ];
        for array in &arrays {
            assert_eq!(unsigned(array).unwrap(), UInt64Array::from(vec![Some(7), None]), "{}", array.data_type());
            assert_eq!(signed(array).unwrap(), Int64Array::from(vec![Some(7), None]), "{}", array.data_type());
        }
    }

    #[test]
    fn extremes_are_exact_and_those_of_the_other_sign_are_null() {
        let least = Int64Array::from(vec![i64::MIN, -1, 0, i64::MAX]);
        assert_eq!(signed(&least).unwrap(), least);
        assert_eq!(unsigned(&least).unwrap(), UInt64Array::from(vec![None, None, Some(0), Some(i64::MAX as u64)]));
        assert_eq!(unsigned(&Int8Array::from(vec![-1])).unwrap(), UInt64Array::from(vec![None]));
        let greatest = UInt64Array::from(vec![i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX]);
        assert_eq!(unsigned(&greatest).unwrap(), greatest);
        assert_eq!(signed(&greatest).unwrap(), Int64Array::from(vec![Some(i64::MAX), None, None]));
        assert_eq!(signed(&UInt32Array::from(vec![u32::MAX])).unwrap(), Int64Array::from(vec![0xFFFF_FFFF]));
    }

    #[test]
    fn other_values_are_not_taken() {
        assert!(signed(&Float64Array::from(vec![1.0])).is_none());
        assert!(unsigned(&Float64Array::from(vec![1.0])).is_none());
    }
}
