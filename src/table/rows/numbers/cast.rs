//! Rows in a wider type, or of a nullable type: files of one dataset need these to share a schema.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::{Coded, Error, Facts, Fitting, Hints, RowRange, Rows, SharedRows, StoredBytes, StoredFacts, Tally};

/// Unsigned integers up to here, and their negatives, are exact as `float64`.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// The common type of two types of numbers or times. `None`: they have none.
///
/// - Two integers become `int64`, or `uint64` if both are unsigned; signed ones and `uint64` have no common type.
/// - Two floats, and floats with integers, become `float64`, which may round integers of 64 bits.
/// - Instants of one zone, and durations, take the finer unit.
pub fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        _ if a.is_unsigned_integer() && b.is_unsigned_integer() => Some(DataType::UInt64),
        _ if a.is_integer() && b.is_integer() => {
            [a, b].iter().all(|number| **number != DataType::UInt64).then_some(DataType::Int64)
        }
        _ if a.is_floating() || b.is_floating() => {
            let are_numbers = [a, b].iter().all(|number| number.is_floating() || number.is_integer());
            are_numbers.then_some(DataType::Float64)
        }
        (DataType::Timestamp(one, zone), DataType::Timestamp(other, of_other)) => {
            (zone == of_other).then(|| DataType::Timestamp(finer(*one, *other), zone.clone()))
        }
        (DataType::Duration(one), DataType::Duration(other)) => Some(DataType::Duration(finer(*one, *other))),
        _ => None,
    }
}

fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    if per_second(one) >= per_second(other) { one } else { other }
}

/// Units in a second.
pub fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// How values are converted.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Values stay the same; only nullability changes.
    Same,
    /// Numbers in a wider type, taken out of dictionaries if necessary; `cast` does it, under this name.
    Number,
    /// Counts of this unit for instants and durations; null if 64 bits cannot hold the count.
    Count(TimeUnit),
    /// The same values in another form, such as texts instead of labels.
    Form,
}

/// Rows with the same values, in a wider type or in a nullable column.
#[derive(Debug)]
pub struct CastRows {
    rows: Arc<dyn Rows>,
    way: Way,
    facts: Facts,
    tally: Arc<Tally>,
}

impl CastRows {
    /// `cast` must come from [`common_type`], unless there are no rows. Without `cast`, only nullability changes.
    pub fn new(rows: Arc<dyn Rows>, cast: Option<DataType>, nullable: bool) -> Self {
        let way = if cast.is_some() { Way::Number } else { Way::Same };
        let data_type = cast.unwrap_or_else(|| rows.data_type().clone());
        Self::by(rows, way, data_type, nullable)
    }

    /// Instants or durations as counts of a unit at least as fine as theirs.
    pub fn counts(rows: Arc<dyn Rows>, unit: TimeUnit) -> Self {
        Self::by(rows, Way::Count(unit), DataType::Int64, true)
    }

    /// Values in another form of their type, as Arrow casts them.
    pub fn form(rows: Arc<dyn Rows>, data_type: DataType) -> Self {
        let nullable = rows.nullable();
        Self::by(rows, Way::Form, data_type, nullable)
    }

    fn by(rows: Arc<dyn Rows>, way: Way, data_type: DataType, nullable: bool) -> Self {
        let (inner, is_same) = (rows.facts(), matches!(way, Way::Same));
        let hints = inner.hints.clone();
        let hints = match way {
            Way::Same => hints,
            // The value set of labels does not apply to texts.
            Way::Form => Hints { values: None, stored: false, ..hints },
            _ => Hints { nan: hints.nan, ..Hints::default() },
        };
        let width = inner.stored.width.filter(|_| is_same);
        let facts = Facts {
            data_type,
            nullable,
            hints,
            stored: StoredFacts { width, ..StoredFacts::default() },
            codes: 0,
            outline_tells_nulls: is_same && inner.outline_tells_nulls,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { rows, way, facts, tally: Arc::default() }
    }

    /// The same rows; `tally` counts values that are rounded or have no count in the unit.
    pub fn counted(self, tally: Arc<Tally>) -> Self {
        Self { tally, ..self }
    }

    fn is_same(&self) -> bool {
        matches!(self.way, Way::Same)
    }

    /// Numbers as floats; adds rounded ones to `odd`.
    fn floats(&self, array: &ArrayRef, odd: &mut Oddities) -> Option<Float64Array> {
        Some(match array.data_type() {
            DataType::Float16 => array.as_primitive::<Float16Type>().unary(f64::from),
            DataType::Float32 => array.as_primitive::<Float32Type>().unary(f64::from),
            DataType::Float64 => array.as_primitive::<Float64Type>().clone(),
            DataType::Int64 => {
                let whole = array.as_primitive::<Int64Type>();
                odd.add_where(Oddity::Rounded, whole.len(), |row| {
                    whole.is_valid(row) && is_rounded(whole.value(row).unsigned_abs())
                });
                whole.unary(|number| number as f64)
            }
            DataType::UInt64 => {
                let whole = array.as_primitive::<UInt64Type>();
                odd.add_where(Oddity::Rounded, whole.len(), |row| whole.is_valid(row) && is_rounded(whole.value(row)));
                whole.unary(|number| number as f64)
            }
            // Integers of at most 32 bits.
            _ => widen::signed(array)?.unary(|number| number as f64),
        })
    }

    /// Counts in a finer unit; adds those that 64 bits cannot hold to `odd`.
    fn scaled(&self, array: &ArrayRef, unit: TimeUnit, odd: &mut Oddities) -> Option<ArrayRef> {
        let (DataType::Timestamp(own, _) | DataType::Duration(own)) = array.data_type() else { return None };
        let factor = per_second(unit) / per_second(*own);
        let counts = cast(array, &DataType::Int64).ok()?;
        if factor <= 1 {
            return (factor == 1).then_some(counts);
        }
        let counts = counts.as_primitive::<Int64Type>();
        let scaled = counts.unary_opt::<_, Int64Type>(|count| count.checked_mul(factor));
        odd.add_where(Oddity::TimeOutOfRange, counts.len(), |row| counts.is_valid(row) && scaled.is_null(row));
        Some(Arc::new(scaled))
    }
}

/// Whether `float64` rounds an integer of this absolute value.
fn is_rounded(whole: u64) -> bool {
    whole > EXACT && whole.trailing_zeros() + f64::MANTISSA_DIGITS < u64::BITS - whole.leading_zeros()
}

impl Rows for CastRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if !self.is_same() && self.facts.len == 0 {
            return Ok(new_empty_array(&self.facts.data_type));
        }
        let array = self.rows.array(range.clone(), interrupt)?;
        let number = match array.as_any_dictionary_opt() {
            Some(labelled) if matches!(self.way, Way::Number) => cast(&array, labelled.values().data_type()).ok(),
            _ => Some(array.clone()),
        };
        let mut odd = Oddities::new();
        let cast: Option<ArrayRef> = number.and_then(|array| match (self.way, &self.facts.data_type) {
            (Way::Same, _) => Some(array),
            (Way::Number, DataType::Int64) => widen::signed(&array).map(|array| Arc::new(array) as ArrayRef),
            (Way::Number, DataType::UInt64) => widen::unsigned(&array).map(|array| Arc::new(array) as ArrayRef),
            (Way::Number, _) => self.floats(&array, &mut odd).map(|array| Arc::new(array) as ArrayRef),
            (Way::Count(unit), _) => self.scaled(&array, unit, &mut odd),
            (Way::Form, form) => cast(&array, form).ok(),
        });
        self.tally.add(range, &odd);
        cast.ok_or_else(|| Error::unsupported("cast", format!("values that are no {}", self.facts.data_type)))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let bytes = match self.way {
            Way::Same => bytes,
            // A cast array exists twice and is at most eight times as wide; without a dictionary, a label exists once
            // for each row.
            Way::Number | Way::Count(_) => bytes / 9,
            Way::Form => bytes / 16,
        };
        self.rows.fitting(range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        if self.is_same() { self.rows.shared(range, interrupt) } else { Ok(None) }
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        if self.is_same() { self.rows.outline(range, interrupt) } else { Ok(None) }
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.rows.bytes().filter(|_| self.is_same())
    }

    fn coded(&self) -> Option<&dyn Coded> {
        self.rows.coded().filter(|_| self.is_same()).map(|_| self as _)
    }
}

impl Coded for CastRows {
    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        self.rows.coded().map_or(Ok(false), |coded| coded.append_byte_keys(range, out, interrupt))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, TimestampMillisecondArray, UInt64Array};

    use super::*;
    use crate::store::TallyCount;
    use crate::store::rows::in_memory::MemoryRows;

    fn all(rows: &CastRows) -> ArrayRef {
        rows.array(0..rows.facts().len, &Interrupt::new()).unwrap()
    }

    /// Python: `int(float(number)) == number`.
    #[test]
    fn integers_that_floats_do_not_hold_are_counted() {
        let even = (1 << 53) + 2;
        let numbers = vec![Some(1 << 53), Some((1 << 53) + 1), Some(even), None, Some(-(1 << 53) - 1), Some(i64::MIN)];
        let tally = Arc::<Tally>::default();
        let numbers = Arc::new(MemoryRows::new(Arc::new(Int64Array::from(numbers))));
        let cast = CastRows::new(numbers, Some(DataType::Float64), true).counted(tally.clone());
        assert_eq!(all(&cast).as_primitive::<Float64Type>().value(2), even as f64);
        assert_eq!(tally.counts(), [(Oddity::Rounded, TallyCount { rows: 2, first: 1 })]);
        let tally = Arc::<Tally>::default();
        let numbers = UInt64Array::from(vec![u64::MAX, 1 << 63, u64::MAX << 11, u64::MAX << 10]);
        let numbers = Arc::new(MemoryRows::new(Arc::new(numbers)));
        all(&CastRows::new(numbers, Some(DataType::Float64), true).counted(tally.clone()));
        assert_eq!(tally.counts(), [(Oddity::Rounded, TallyCount { rows: 2, first: 0 })]);
    }

    #[test]
    fn instants_that_a_finer_unit_does_not_hold_are_missing_and_counted() {
        let tally = Arc::<Tally>::default();
        let instants = TimestampMillisecondArray::from(vec![Some(1), None, Some(i64::MAX / 1000 + 1)]);
        let cast = CastRows::counts(Arc::new(MemoryRows::new(Arc::new(instants))), TimeUnit::Microsecond);
        let cast = cast.counted(tally.clone());
        assert_eq!(all(&cast).as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1000), None, None]));
        assert_eq!(tally.counts(), [(Oddity::TimeOutOfRange, TallyCount { rows: 1, first: 2 })]);
    }
}
