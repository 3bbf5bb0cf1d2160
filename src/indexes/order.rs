//! The order of `SORTED_ROWS` (HEP001 §8.5): values, then missing rows, then NaN; equal values by row.

use std::cmp::Ordering;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::DataType;

use crate::store::cores;

/// Fewest values worth another thread: dividing and starting one takes as long as sorting some thousands.
const WORTH_A_THREAD: usize = 1 << 14;

/// Whether values of this type have an order.
pub fn has_order(data_type: &DataType) -> bool {
    Keys::new(data_type).is_some()
}

/// Whether the nulls of this array are stored as NaN, which the fill value then is: they belong to the tail of NaN.
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

/// Returns the array without its null mask: the stored values count, missing or not.
pub fn present(array: &ArrayRef) -> ArrayRef {
    let data = array.to_data().into_builder().nulls(None).build();
    data.map_or_else(|_| array.clone(), make_array)
}

/// Sort keys: values of a column as integers or bytes of the same order. They take as many bytes as the values, 8 more
/// for each string, and a bit for each value if any is null.
#[derive(Clone, Debug)]
pub struct Keys {
    data_type: DataType,
    values: Values,
    /// A bit for each value, set for nulls; ends with the last array that has one.
    missing: Vec<u64>,
}

#[derive(Clone, Debug)]
enum Values {
    Byte(Vec<u8>),
    Word(Vec<u16>),
    Double(Vec<u32>),
    Quad(Vec<u64>),
    /// The bytes of all strings, and the end of each.
    Text {
        bytes: Vec<u8>,
        ends: Vec<u64>,
    },
}

/// The part of the order (HEP001 §8.5) that a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderClass {
    /// Among the values, neither missing nor NaN.
    Value,
    /// In the tail of missing rows.
    Missing,
    /// In the tail of NaN.
    Nan,
}

/// Turns a float's bits into an integer of the same order; both zeros are equal, and NaN is the greatest.
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
    /// Returns keys without values. `None`: the type has no order.
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

    /// Returns the bytes that one key takes; for strings, beside the string's own.
    pub fn width(&self) -> u64 {
        match &self.values {
            Values::Byte(_) => 1,
            Values::Word(_) => 2,
            Values::Double(_) => 4,
            Values::Quad(_) | Values::Text { .. } => 8,
        }
    }

    /// Whether values are strings or bytes.
    pub fn is_text(&self) -> bool {
        matches!(self.values, Values::Text { .. })
    }

    /// Returns the bytes that all keys take.
    pub fn bytes(&self) -> u64 {
        let texts = if let Values::Text { bytes, .. } = &self.values { bytes.len() as u64 } else { 0 };
        (self.len() as u64).saturating_mul(self.width()).saturating_add(texts)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Byte(values) => values.len(),
            Values::Word(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Quad(values) => values.len(),
            Values::Text { ends, .. } => ends.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an array's values; returns whether it has the type of these keys.
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

    /// Returns the part of the order that a row's value belongs to.
    pub fn part(&self, row: usize) -> OrderClass {
        if self.missing.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1) {
            return OrderClass::Missing;
        }
        let is_nan = self.data_type.is_floating()
            && match &self.values {
                Values::Word(keys) => keys.get(row) == Some(&u16::MAX),
                Values::Double(keys) => keys.get(row) == Some(&u32::MAX),
                Values::Quad(keys) => keys.get(row) == Some(&u64::MAX),
                Values::Byte(_) | Values::Text { .. } => false,
            };
        if is_nan { OrderClass::Nan } else { OrderClass::Value }
    }

    /// Compares the values of two rows; ties go by row. A row out of bounds comes first.
    pub fn order(&self, a: usize, b: usize) -> Ordering {
        self.order_among(a, self, b).then(a.cmp(&b))
    }

    /// Compares a value with one of other keys of the same type. All nulls are equal, and so are all NaN.
    pub fn order_among(&self, a: usize, other: &Self, b: usize) -> Ordering {
        let (part, other_part) = (self.part(a), other.part(b));
        if part != other_part || part != OrderClass::Value {
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
            // Keys of one type have the same variant.
            _ => Ordering::Equal,
        }
    }

    /// Returns the rows in order, sorted on all cores. This takes 8 bytes a row beside the keys; if `memory` allows 16,
    /// it may use them to be faster.
    pub fn sorted(&self, memory: u64) -> Vec<u64> {
        let rows = self.len() as u64;
        let has_room = memory / size_of::<(u64, u64)>() as u64 >= rows;
        match &self.values {
            Values::Byte(keys) => self.packed(keys),
            Values::Word(keys) => self.packed(keys),
            Values::Double(keys) if rows <= 1 << u32::BITS => self.packed(keys),
            // Each comparison fetches two keys from anywhere in memory.
            _ if !has_room => {
                let mut sorted: Vec<u64> = (0..rows).collect();
                sort(&mut sorted, &|a: &u64, b: &u64| self.order(*a as usize, *b as usize));
                sorted
            }
            Values::Double(keys) => self.paired(keys.iter().map(|key| u64::from(*key)), |_, _| Ordering::Equal),
            Values::Quad(keys) => self.paired(keys.iter().copied(), |_, _| Ordering::Equal),
            Values::Text { bytes, ends } => {
                let of = |row| text(bytes, ends, row);
                self.paired((0..self.len()).map(|row| beginning(of(row))), |a, b| of(a as usize).cmp(&of(b as usize)))
            }
        }
    }

    /// Returns the rows in order by sorting numbers that hold key and row. Both must fit into 64 bits.
    fn packed<K: Copy + Into<u64>>(&self, keys: &[K]) -> Vec<u64> {
        let bits_of_row = u64::BITS - 8 * size_of::<K>() as u32;
        let numbers = (0..).zip(keys).map(|(row, key)| (*key).into() << bits_of_row | row);
        let (mut sorted, tail) = self.apart(numbers);
        sort(&mut sorted, &u64::cmp);
        sorted.iter_mut().for_each(|number| *number &= (1 << bits_of_row) - 1);
        sorted.extend(tail);
        sorted
    }

    /// Returns the rows in order by sorting pairs of key and row; `then` orders values with equal keys.
    fn paired(&self, keys: impl Iterator<Item = u64>, then: impl Fn(u64, u64) -> Ordering + Sync) -> Vec<u64> {
        let (mut pairs, tail) = self.apart(keys.zip(0..));
        sort(&mut pairs, &|a: &(u64, u64), b: &(u64, u64)| {
            a.0.cmp(&b.0).then_with(|| then(a.1, b.1)).then(a.1.cmp(&b.1))
        });
        let mut sorted: Vec<u64> = pairs.into_iter().map(|(_, row)| row).collect();
        sorted.extend(tail);
        sorted
    }

    /// Separates the items of rows with values from the rows of the tails, which come in their order.
    fn apart<T>(&self, of_rows: impl Iterator<Item = T>) -> (Vec<T>, Vec<u64>) {
        let (mut values, mut missing, mut nans) = (Vec::with_capacity(self.len()), Vec::new(), Vec::new());
        for (row, value) in of_rows.enumerate() {
            match self.part(row) {
                OrderClass::Value => values.push(value),
                OrderClass::Missing => missing.push(row as u64),
                OrderClass::Nan => nans.push(row as u64),
            }
        }
        missing.append(&mut nans);
        (values, missing)
    }

    /// Returns the number of rows in the tail of missing values, and in the tail of NaN.
    pub fn tails(&self) -> [u64; 2] {
        let missing = self.missing.iter().map(|word| u64::from(word.count_ones())).sum();
        let nans = if self.data_type.is_floating() {
            (0..self.len()).filter(|row| self.part(*row) == OrderClass::Nan).count() as u64
        } else {
            0
        };
        [missing, nans]
    }
}

/// Sorts in place on all cores.
fn sort<T: Send>(values: &mut [T], order: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    sort_by_cores(values, order, cores());
}

/// Quicksort down to one part for each core: merging would take the memory of all values once more.
fn sort_by_cores<T: Send>(values: &mut [T], order: &(impl Fn(&T, &T) -> Ordering + Sync), cores: usize) {
    let fewer = cores / 2;
    if fewer == 0 || values.len() < WORTH_A_THREAD {
        return values.sort_unstable_by(order);
    }
    // Each side gets values in proportion to the cores that sort it.
    let middle = (values.len() / cores).saturating_mul(fewer);
    values.select_nth_unstable_by(middle, order);
    let (below, above) = values.split_at_mut(middle);
    thread::scope(|scope| {
        scope.spawn(|| sort_by_cores(below, order, fewer));
        sort_by_cores(above, order, cores - fewer);
    });
}

fn text<'a>(bytes: &'a [u8], ends: &[u64], row: usize) -> Option<&'a [u8]> {
    let end = *ends.get(row)?;
    let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    // Offsets into bytes in memory, so they fit.
    bytes.get(start as usize..end as usize)
}

/// Returns the first bytes of a string as a number of the same order.
fn beginning(text: Option<&[u8]>) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(text.unwrap_or_default()).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BooleanArray, Float16Array, Float32Array, Float64Array, Int8Array, LargeStringArray, UInt16Array,
    };
    use arrow_buffer::NullBuffer;
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    fn sorted(arrays: &[&dyn Array]) -> (Vec<u64>, [u64; 2]) {
        let mut keys = Keys::new(arrays[0].data_type()).unwrap();
        assert!(arrays.iter().all(|array| keys.extend(*array)));
        let sorted = keys.sorted(u64::MAX);
        assert_eq!(keys.sorted(0), sorted, "by reference");
        (sorted, keys.tails())
    }

    /// The standard library's stable sort.
    fn stable<T: PartialOrd>(values: &[Option<T>], is_nan: impl Fn(&T) -> bool) -> Vec<u64> {
        let mut rows: Vec<usize> = (0..values.len()).collect();
        let part = |row: usize| values[row].as_ref().map_or(1, |value| if is_nan(value) { 2 } else { 0 });
        rows.sort_by(|a, b| {
            let values = values[*a].as_ref().and_then(|value| value.partial_cmp(values[*b].as_ref()?));
            part(*a).cmp(&part(*b)).then(values.unwrap_or(Ordering::Equal))
        });
        rows.into_iter().map(|row| row as u64).collect()
    }

    /// More values than one thread sorts, many of them equal, by fewer and more cores than there are.
    #[test]
    fn parts_of_all_cores_are_one_order() {
        let values: Vec<(u32, u32)> = (0..70_001u32).map(|row| (row.wrapping_mul(2_654_435_761) >> 20, row)).collect();
        let mut expected = values.clone();
        expected.sort();
        for cores in [1, 2, 3, 7, 64] {
            let mut sorted = values.clone();
            sort_by_cores(&mut sorted, &<(u32, u32)>::cmp, cores);
            assert_eq!(sorted, expected, "{cores} cores");
        }
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
            let array = arrow_array::Int64Array::from(values);
            prop_assert_eq!(sorted(&[&array]).0, rows);
        }

        /// Few values, so that many are equal; texts that differ late, and by NUL at their end.
        #[test]
        fn others_as_a_stable_sort(
            texts in prop::collection::vec(prop::option::of("[ab\0]{0,2}(bbbbbbb[a\0]{0,3})?"), 0..50),
            bytes in prop::collection::vec(prop::option::of(any::<i8>()), 0..50),
            words in prop::collection::vec(prop::option::of(0u16..9), 0..50),
            floats in prop::collection::vec(prop::option::of(prop::sample::select(
                vec![0.0, -0.0, 1.5, -1.5, f32::NAN, f32::INFINITY, f32::MIN, f32::MIN_POSITIVE]
            )), 0..50),
        ) {
            prop_assert_eq!(sorted(&[&LargeStringArray::from(texts.clone())]).0, stable(&texts, |_| false));
            prop_assert_eq!(sorted(&[&Int8Array::from(bytes.clone())]).0, stable(&bytes, |_| false));
            prop_assert_eq!(sorted(&[&UInt16Array::from(words.clone())]).0, stable(&words, |_| false));
            prop_assert_eq!(sorted(&[&Float32Array::from(floats.clone())]).0, stable(&floats, |value| value.is_nan()));
            let wide: Vec<Option<f64>> = floats.iter().map(|value| value.map(f64::from)).collect();
            prop_assert_eq!(sorted(&[&Float64Array::from(wide.clone())]).0, stable(&wide, |value| value.is_nan()));
        }
    }
}
