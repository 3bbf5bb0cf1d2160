//! The order of `SORTED_ROWS` (HEP001 §8.5): values, then missing rows, then NaN; each of equal values by row.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

/// Whether values of this type have an order.
pub fn has_order(data_type: &DataType) -> bool {
    Keys::new(data_type).is_some()
}

/// Whether missing values of this array are NaN, as where the fill value is: those belong to the tail of NaN.
pub(super) fn nan_is_missing(array: &dyn Array) -> bool {
    let Some(row) = array.nulls().and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row))) else {
        return false;
    };
    match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().value(row).is_nan(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_nan(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).is_nan(),
        _ => false,
    }
}

/// Values of a column, as what compares as they do; as many bytes a value as the column has, and a bit where any is missing.
#[derive(Clone, Debug)]
pub struct Keys {
    data_type: DataType,
    values: Values,
    /// A bit for each missing value; short where none follows.
    missing: Vec<u64>,
}

#[derive(Clone, Debug)]
enum Values {
    Byte(Vec<u8>),
    Word(Vec<u16>),
    Double(Vec<u32>),
    Quad(Vec<u64>),
    /// Texts one behind the other, and where each ends.
    Text {
        bytes: Vec<u8>,
        ends: Vec<u64>,
    },
}

/// Where a value stands, before its own order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Among the values.
    Value,
    /// In the tail of missing rows.
    Missing,
    /// In the tail of NaN.
    Nan,
}

/// The bits of a float so that greater numbers are greater integers; zero has no sign, and NaN is beyond all of them.
macro_rules! float_key {
    ($name:ident, $float:ty, $bits:ty) => {
        fn $name(value: $float) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            if value.is_nan() {
                return <$bits>::MAX;
            }
            let bits = value.to_bits();
            match bits & SIGN != 0 {
                true if bits == SIGN => SIGN,
                true => !bits,
                false => bits | SIGN,
            }
        }
    };
}
float_key!(half_key, half::f16, u16);
float_key!(single_key, f32, u32);
float_key!(double_key, f64, u64);

impl Keys {
    /// No value yet; `None` for a type without an order.
    pub fn new(data_type: &DataType) -> Option<Self> {
        let values = match data_type {
            DataType::Boolean | DataType::Int8 | DataType::UInt8 => Values::Byte(Vec::new()),
            DataType::Int16 | DataType::UInt16 | DataType::Float16 => Values::Word(Vec::new()),
            DataType::Int32 | DataType::UInt32 | DataType::Float32 => Values::Double(Vec::new()),
            DataType::Int64 | DataType::UInt64 | DataType::Float64 => Values::Quad(Vec::new()),
            DataType::LargeUtf8 | DataType::FixedSizeBinary(_) => Values::Text { bytes: Vec::new(), ends: Vec::new() },
            _ => return None,
        };
        Some(Self { data_type: data_type.clone(), values, missing: Vec::new() })
    }

    /// Bytes that one value takes; of strings, besides their own.
    pub fn width(&self) -> u64 {
        match &self.values {
            Values::Byte(_) => 1,
            Values::Word(_) => 2,
            Values::Double(_) => 4,
            Values::Quad(_) | Values::Text { .. } => 8,
        }
    }

    /// Bytes that the values take.
    pub fn bytes(&self) -> u64 {
        let texts = if let Values::Text { bytes, .. } = &self.values { bytes.len() as u64 } else { 0 };
        (self.len() as u64).saturating_mul(self.width()).saturating_add(texts)
    }

    /// Values.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Byte(values) => values.len(),
            Values::Word(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Quad(values) => values.len(),
            Values::Text { ends, .. } => ends.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds values; says whether they are of the type these are of.
    pub fn extend(&mut self, array: &dyn Array) -> bool {
        if *array.data_type() != self.data_type {
            return false;
        }
        if array.null_count() > 0 && !nan_is_missing(array) {
            let before = self.len();
            self.missing.resize((before + array.len()).div_ceil(64), 0);
            let nulls = array.nulls().into_iter().flat_map(|nulls| (0..nulls.len()).filter(|row| nulls.is_null(*row)));
            nulls.map(|row| before + row).for_each(|at| self.missing[at / 64] |= 1 << (at % 64));
        }
        macro_rules! add {
            ($($arrow:ident $primitive:ident $variant:ident $key:expr),*) => {
                match (array.data_type(), &mut self.values) {
                    $((DataType::$arrow, Values::$variant(keys)) => {
                        let values = array.as_primitive::<$primitive>().values();
                        keys.extend(values.iter().map(|value| $key(*value)));
                    })*
                    (DataType::Boolean, Values::Byte(keys)) => {
                        keys.extend(array.as_boolean().values().iter().map(u8::from));
                    }
                    (DataType::LargeUtf8, Values::Text { bytes, ends }) => {
                        let array = array.as_string::<i64>();
                        for row in 0..array.len() {
                            bytes.extend_from_slice(array.value(row).as_bytes());
                            ends.push(bytes.len() as u64);
                        }
                    }
                    (DataType::FixedSizeBinary(_), Values::Text { bytes, ends }) => {
                        let array = array.as_fixed_size_binary();
                        for row in 0..array.len() {
                            bytes.extend_from_slice(array.value(row));
                            ends.push(bytes.len() as u64);
                        }
                    }
                    _ => return false,
                }
            };
        }
        add!(
            Int8 Int8Type Byte |value: i8| value.cast_unsigned() ^ 1 << 7,
            UInt8 UInt8Type Byte |value: u8| value,
            Int16 Int16Type Word |value: i16| value.cast_unsigned() ^ 1 << 15,
            UInt16 UInt16Type Word |value: u16| value,
            Float16 Float16Type Word half_key,
            Int32 Int32Type Double |value: i32| value.cast_unsigned() ^ 1 << 31,
            UInt32 UInt32Type Double |value: u32| value,
            Float32 Float32Type Double single_key,
            Int64 Int64Type Quad |value: i64| value.cast_unsigned() ^ 1 << 63,
            UInt64 UInt64Type Quad |value: u64| value,
            Float64 Float64Type Quad double_key
        );
        true
    }

    /// Where a value stands.
    pub fn part(&self, row: usize) -> Part {
        if self.missing.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1) {
            return Part::Missing;
        }
        let is_nan = self.data_type.is_floating()
            && match &self.values {
                Values::Word(keys) => keys.get(row) == Some(&u16::MAX),
                Values::Double(keys) => keys.get(row) == Some(&u32::MAX),
                Values::Quad(keys) => keys.get(row) == Some(&u64::MAX),
                Values::Byte(_) | Values::Text { .. } => false,
            };
        if is_nan { Part::Nan } else { Part::Value }
    }

    /// The order of two rows, ties by row. A row that is not there comes before all others.
    pub fn order(&self, a: usize, b: usize) -> Ordering {
        self.order_among(a, self, b).then(a.cmp(&b))
    }

    /// The order of a value and one of other keys of the same type; equal values, missing ones and NaN are equal.
    pub fn order_among(&self, a: usize, other: &Self, b: usize) -> Ordering {
        let (part, other_part) = (self.part(a), other.part(b));
        if part != other_part || part != Part::Value {
            return part.cmp(&other_part);
        }
        match (&self.values, &other.values) {
            (Values::Byte(keys), Values::Byte(others)) => keys.get(a).cmp(&others.get(b)),
            (Values::Word(keys), Values::Word(others)) => keys.get(a).cmp(&others.get(b)),
            (Values::Double(keys), Values::Double(others)) => keys.get(a).cmp(&others.get(b)),
            (Values::Quad(keys), Values::Quad(others)) => keys.get(a).cmp(&others.get(b)),
            (Values::Text { bytes, ends }, Values::Text { bytes: other_bytes, ends: other_ends }) => {
                text(bytes, ends, a).cmp(&text(other_bytes, other_ends, b))
            }
            // Of one type they are stored alike.
            _ => Ordering::Equal,
        }
    }

    /// The rows in their order.
    pub fn sorted(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = (0..self.len() as u64).collect();
        rows.sort_unstable_by(|a, b| self.order(*a as usize, *b as usize));
        rows
    }

    /// Rows in the tail of missing rows, and in that of NaN.
    pub fn tails(&self) -> [u64; 2] {
        let missing = self.missing.iter().map(|word| u64::from(word.count_ones())).sum();
        let nans = if self.data_type.is_floating() {
            (0..self.len()).filter(|row| self.part(*row) == Part::Nan).count() as u64
        } else {
            0
        };
        [missing, nans]
    }
}

fn text<'a>(bytes: &'a [u8], ends: &[u64], row: usize) -> Option<&'a [u8]> {
    let end = *ends.get(row)?;
    let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    // As long as the bytes in memory.
    bytes.get(start as usize..end as usize)
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Float16Array, Float32Array, Float64Array, Int8Array, LargeStringArray};
    use arrow::buffer::NullBuffer;
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    fn sorted(arrays: &[&dyn Array]) -> (Vec<u64>, [u64; 2]) {
        let mut keys = Keys::new(arrays[0].data_type()).unwrap();
        assert!(arrays.iter().all(|array| keys.extend(*array)));
        (keys.sorted(), keys.tails())
    }

    #[test]
    fn tails_follow_and_zeros_are_one() {
        let values = [Some(0.0), Some(f64::NAN), None, Some(-0.0), Some(f64::NEG_INFINITY), Some(-1.0)];
        let values = Float64Array::from(values.to_vec());
        let more = Float64Array::from(vec![Some(-f64::NAN), Some(0.0), None, Some(f64::INFINITY)]);
        let expected = vec![4, 5, 0, 3, 7, 9, 2, 8, 1, 6];
        assert_eq!(sorted(&[&values, &more]), (expected.clone(), [2, 2]));
        let narrow = |array: &Float64Array| array.iter().map(|v| v.map(|v| v as f32)).collect::<Float32Array>();
        assert_eq!(sorted(&[&narrow(&values), &narrow(&more)]), (expected.clone(), [2, 2]));
        let half = |array: &Float64Array| array.iter().map(|v| v.map(f16::from_f64)).collect::<Float16Array>();
        assert_eq!(sorted(&[&half(&values), &half(&more)]), (expected, [2, 2]));
    }

    #[test]
    fn missing_rows_that_are_nan_are_in_the_tail_of_nan() {
        let valid = NullBuffer::from(vec![false, true, false]);
        let values = Float32Array::new(vec![f32::NAN, 1.0, f32::NAN].into(), Some(valid));
        assert_eq!(sorted(&[&values]), (vec![1, 0, 2], [0, 2]));
    }

    #[test]
    fn others_by_their_own_order() {
        assert_eq!(sorted(&[&Int8Array::from(vec![3, -1, -128, 127])]).0, [2, 1, 0, 3]);
        assert_eq!(sorted(&[&BooleanArray::from(vec![true, false, true])]).0, [1, 0, 2]);
        let texts = LargeStringArray::from(vec![Some("b"), None, Some(""), Some("é"), Some("ab"), Some("b")]);
        assert_eq!(sorted(&[&texts]), (vec![2, 4, 0, 5, 3, 1], [1, 0]));
    }

    proptest! {
        #[test]
        fn integers_as_a_stable_sort(values in prop::collection::vec(any::<i64>(), 0..50)) {
            let mut rows: Vec<u64> = (0..values.len() as u64).collect();
            rows.sort_by_key(|row| values[*row as usize]);
            let array = arrow::array::Int64Array::from(values);
            prop_assert_eq!(sorted(&[&array]).0, rows);
        }
    }
}
