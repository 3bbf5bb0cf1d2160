//! Integers and bytes that a file declares to be of another type: dates, times of day, durations, decimals, narrower
//! integers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, Decimal128Array, NullArray, make_array};
use arrow_schema::{DataType, TimeUnit};

use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Error, Facts, Hints, RowRange, Rows, StoredBytes};

/// Rows shown in another type. Stored bytes do not change.
#[derive(Debug)]
pub struct TypedRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
    /// Number of shown units in a stored second; 1 if units do not change.
    factor: i32,
    path: String,
}

impl TypedRows {
    /// Shows `rows` in another type. `None`: they cannot have it. 32-bit integers can be dates, or times of day in
    /// seconds (shown as milliseconds) or milliseconds; 64-bit integers finer times of day, durations and instants;
    /// signed integers, and values of 16 bytes, decimals; all integers, integers of the same signedness. A value
    /// outside of the type is null.
    pub fn new(path: String, rows: Arc<dyn Rows>, data_type: DataType) -> Option<Self> {
        let stored = rows.data_type();
        let is_signed = stored.is_signed_integer();
        let fits = match &data_type {
            DataType::Date32 | DataType::Time32(_) => *stored == DataType::Int32,
            DataType::Duration(_) | DataType::Timestamp(..) => *stored == DataType::Int64,
            DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => *stored == DataType::Int64,
            DataType::Decimal128(..) => is_signed || *stored == DataType::FixedSizeBinary(16),
            whole if whole.is_integer() => stored.is_integer() && whole.is_signed_integer() == is_signed,
            _ => false,
        };
        // Parquet has no seconds.
        let (data_type, factor) = match data_type {
            DataType::Time32(TimeUnit::Second) => (DataType::Time32(TimeUnit::Millisecond), 1000),
            DataType::Timestamp(TimeUnit::Second, zone) => (DataType::Timestamp(TimeUnit::Millisecond, zone), 1000),
            other => (other, 1),
        };
        let inner = rows.facts();
        let facts = Facts {
            nullable: inner.nullable || !matches!(data_type, DataType::Date32 | DataType::Duration(_)),
            hints: if matches!(data_type, DataType::Duration(_)) { inner.hints.clone() } else { Hints::default() },
            data_type,
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        fits.then_some(Self { rows, facts, factor, path })
    }

    fn typed(&self, array: &ArrayRef) -> Option<ArrayRef> {
        Some(match &self.facts.data_type {
            DataType::Date32 => Arc::new(array.as_primitive_opt::<Int32Type>()?.reinterpret_cast::<Date32Type>()),
            DataType::Time32(_) => {
                let (times, within) = (array.as_primitive_opt::<Int32Type>()?, of_day(1000));
                Arc::new(
                    times.unary_opt::<_, Time32MillisecondType>(|stored| {
                        stored.checked_mul(self.factor).and_then(&within)
                    }),
                )
            }
            DataType::Duration(_) | DataType::Timestamp(..) => {
                let counts = array.as_primitive_opt::<Int64Type>()?;
                let counts = match self.factor {
                    1 => counts.clone(),
                    factor => counts.unary_opt(|count: i64| count.checked_mul(factor.into())),
                };
                make_array(counts.to_data().into_builder().data_type(self.facts.data_type.clone()).build().ok()?)
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                let micros = array.as_primitive_opt::<Int64Type>()?;
                Arc::new(micros.unary_opt::<_, Time64MicrosecondType>(of_day(1_000_000)))
            }
            DataType::Time64(_) => {
                let nanos = array.as_primitive_opt::<Int64Type>()?;
                Arc::new(nanos.unary_opt::<_, Time64NanosecondType>(of_day(1_000_000_000)))
            }
            DataType::Decimal128(digits, _) => {
                let decimals: Decimal128Array = match array.as_fixed_size_binary_opt() {
                    Some(cells) => cells.iter().map(|cell| Some(i128::from_le_bytes(cell?.try_into().ok()?))).collect(),
                    None => widen::signed(array.as_ref())?.unary(i128::from),
                };
                Arc::new(decimals.null_if_overflow_precision(*digits).with_data_type(self.facts.data_type.clone()))
            }
            narrow => arrow_cast::cast(array, narrow).ok()?,
        })
    }
}

/// Returns a filter that keeps counts since midnight if they are less than a day; `second` is the number of their units
/// in a second.
fn of_day<T: Copy + Into<i64>>(second: i64) -> impl Fn(T) -> Option<T> {
    move |value| (0..86_400 * second).contains(&value.into()).then_some(value)
}

impl Rows for TypedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn outline(&self, range: RowRange, _: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(Some(Arc::new(NullArray::new(count))))
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.rows.array(range, interrupt)?;
        self.typed(&array)
            .ok_or_else(|| Error::unsupported(&self.path, format!("{} as {}", array.data_type(), self.facts.data_type)))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.rows.bytes()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array};

    use super::*;
    use crate::store::rows::in_memory::MemoryRows;

    /// A row for each value; whether it is there once it is typed.
    fn is_there(array: ArrayRef, data_type: DataType) -> Vec<bool> {
        let len = array.len() as u64;
        let rows = TypedRows::new("/t/c".into(), Arc::new(MemoryRows::new(array)), data_type).unwrap();
        assert!(rows.facts().nullable);
        let array = rows.array(0..len, &Interrupt::new()).unwrap();
        (0..array.len()).map(|row| array.is_valid(row)).collect()
    }

    #[test]
    fn what_a_type_does_not_have_is_missing() {
        let day = 86_400_000;
        let small = || Arc::new(Int32Array::from(vec![-1, 0, day - 1, day])) as ArrayRef;
        let large =
            |factor| Arc::new(Int64Array::from(vec![-1, 0, i64::from(day) * factor - 1, i64::from(day) * factor]));
        let within = [false, true, true, false];
        assert_eq!(is_there(small(), DataType::Time32(TimeUnit::Millisecond)), within);
        assert_eq!(is_there(large(1000), DataType::Time64(TimeUnit::Microsecond)), within);
        assert_eq!(is_there(large(1_000_000), DataType::Time64(TimeUnit::Nanosecond)), within);
        let decimals = || Arc::new(Int64Array::from(vec![-1000, -999, 999, 1000])) as ArrayRef;
        assert_eq!(is_there(decimals(), DataType::Decimal128(3, 1)), within);
        assert_eq!(is_there(decimals(), DataType::Decimal128(4, 1)), [true; 4]);
    }
}
