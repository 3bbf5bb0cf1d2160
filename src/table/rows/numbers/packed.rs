//! Packed numbers: linear functions of stored ones, stored values that mean missing, and floating-point counts of a
//! unit of time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, Int8Array, Int16Array, PrimitiveArray, UInt8Array, UInt16Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::packing::{Linear, Packing, StoredNumber};
use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity};
use crate::store::statistics::{self, Scalar, Summary};
use crate::store::{
    Coded, Error, Facts, Fitting, Hints, RowRange, Rows, Span, StoredBytes, StoredFacts, Tally, fixed_width, try_memory,
};

/// Numbers computed from stored ones, also inside arrays. Stored bytes stay those of the stored numbers.
#[derive(Debug)]
pub struct PackedRows {
    stored: Arc<dyn Rows>,
    packing: Packing,
    path: String,
    tally: Arc<Tally>,
    facts: Facts,
}

impl PackedRows {
    /// Unpacks `stored`, which, unless the packing is empty, must be numbers or arrays of numbers, without nulls.
    /// `datatype`, if given, is reported as the stored type.
    pub fn new(
        path: String,
        stored: Arc<dyn Rows>,
        packing: Packing,
        datatype: Option<Arc<Datatype>>,
        tally: Arc<Tally>,
    ) -> Self {
        let inner = stored.facts();
        let data_type = packing.of_type(&inner.data_type);
        let (can_be_missing, depth) = (packing.missing.is_some() || packing.count.is_some(), depth(&data_type));
        let is_same = packing.linear.is_none() && packing.count.is_none();
        let hints = if is_same { inner.hints.clone() } else { without_stored(inner.hints.clone()) };
        let bits = packing.coding(&inner.data_type).and_then(|_| fixed_width(&inner.data_type).checked_mul(8));
        let facts = Facts {
            data_type,
            nullable: inner.nullable || can_be_missing && depth == 0,
            hints: if can_be_missing && depth > 0 { hints.of_nullable_items(depth) } else { hints },
            stored: StoredFacts {
                datatype: datatype.or_else(|| inner.stored.datatype.clone()),
                ..inner.stored.clone()
            },
            codes: bits.map_or(0, |bits| 1 << bits),
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { stored, packing, path, tally, facts }
    }

    /// Numbers, or lists of one length, as stored · factor + offset in double precision, with one factor for all or one
    /// for each position in a list. `None`: `stored` does not hold numbers, or its lists do not fit the factors.
    pub fn scaled(path: String, stored: Arc<dyn Rows>, factors: Vec<f64>, offset: f64) -> Option<Self> {
        let is_number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating();
        let fits = match stored.data_type() {
            DataType::FixedSizeList(item, places) => {
                is_number(item.data_type()) && (factors.len() == 1 || usize::try_from(*places) == Ok(factors.len()))
            }
            number => is_number(number) && factors.len() == 1,
        };
        let packing = match factors[..] {
            [factor] => {
                let linear = Linear { scale: Some(factor), offset: Some(offset), is_single: false };
                Packing { linear: Some(linear), ..Packing::default() }
            }
            _ => Packing {
                linear: Some(Linear::default()),
                by_place: Some((factors.into(), offset)),
                ..Packing::default()
            },
        };
        fits.then(|| Self::new(path, stored, packing, None, Arc::default()))
    }

    /// Unpacks stored numbers; adds instants out of range to `odd`.
    fn numbers(&self, stored: &ArrayRef, odd: &mut Oddities) -> Result<ArrayRef, Error> {
        if self.packing.is_none() {
            return Ok(stored.clone());
        }
        if let Some(list) = stored.as_fixed_size_list_opt() {
            let mut items = self.numbers(list.values(), &mut Oddities::new())?;
            if let Some((factors, offset)) = &self.packing.by_place {
                let numbers = items.as_primitive_opt::<Float64Type>().ok_or_else(|| self.no_numbers(stored))?;
                let scaled = numbers.values().iter().zip(factors.iter().cycle()).map(|(v, factor)| v * factor + offset);
                items = Arc::new(Float64Array::new(scaled.collect(), numbers.nulls().cloned()));
            }
            let DataType::FixedSizeList(item, length) = list.data_type() else { return Err(self.no_numbers(stored)) };
            let item = Arc::new(item.as_ref().clone().with_data_type(items.data_type().clone()));
            let lists =
                FixedSizeListArray::try_new_with_length(item, *length, items, list.nulls().cloned(), list.len());
            return Ok(Arc::new(lists.map_err(|error| Error::unsupported(&self.path, error))?));
        }
        macro_rules! of {
            ($($arrow:ty),*) => {
                match stored.data_type() {
                    $(data_type if *data_type == <$arrow>::DATA_TYPE => {
                        Ok(self.primitive::<$arrow>(stored.as_primitive(), odd))
                    })*
                    _ => Err(self.no_numbers(stored)),
                }
            };
        }
        of!(
            Int8Type,
            Int16Type,
            Int32Type,
            Int64Type,
            UInt8Type,
            UInt16Type,
            UInt32Type,
            UInt64Type,
            Float16Type,
            Float32Type,
            Float64Type
        )
    }

    fn no_numbers(&self, stored: &ArrayRef) -> Error {
        Error::unsupported(&self.path, format!("{} are no numbers", stored.data_type()))
    }

    /// The same numbers with nulls for those that mean missing.
    fn present<T: ArrowPrimitiveType>(&self, stored: &PrimitiveArray<T>) -> PrimitiveArray<T>
    where
        T::Native: StoredNumber,
    {
        let missing = self.packing.missing.as_ref().and_then(|missing| missing.as_primitive_opt::<T>());
        let present = missing.and_then(|missing| present(stored.values(), missing.values()));
        let nulls = NullBuffer::union(stored.nulls(), present.map(NullBuffer::new).as_ref());
        PrimitiveArray::<T>::new(stored.values().clone(), nulls)
    }

    /// The stored numbers of these rows, borrowed from a decoded chunk without a copy. `None`: no decoded chunk has all
    /// of them in succession.
    fn lent(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let width = self.stored.stored_width().unwrap_or(0);
        let bytes = [range.start, range.end.saturating_sub(range.start)].map(|rows| rows.checked_mul(width));
        let [Some(offset), Some(length @ 1..)] = bytes else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let (Some(bytes), Some(coded)) = (self.stored.bytes(), self.stored.coded()) else { return Ok(None) };
        match bytes.span(offset, length, interrupt)? {
            Span::Lent(lent) if lent.len() == length => Ok(coded.values(lent.into())),
            _ => Ok(None),
        }
    }

    /// Unpacks these codes.
    fn decoded(&self, codes: &dyn Array) -> Option<ArrayRef> {
        let linear = self.packing.coding(self.stored.data_type())?;
        macro_rules! of {
            ($($arrow:ty),*) => {
                match codes.data_type() {
                    $(data_type if *data_type == <$arrow>::DATA_TYPE => {
                        Some(linear.apply(codes.as_primitive::<$arrow>()))
                    })*
                    _ => None,
                }
            };
        }
        of!(Int8Type, Int16Type, UInt8Type, UInt16Type)
    }

    /// The summary of numbers from that of their codes, which may be in reverse order.
    fn summary_of_coded(&self, codes: &dyn Array) -> Option<Summary> {
        let known = statistics::summary(codes)?;
        let [least, greatest] = [&known.min, &known.max].map(|bound| match bound {
            Some(Scalar::Int(code)) => Some(*code as f64),
            Some(Scalar::UInt(code)) => Some(*code as f64),
            _ => None,
        });
        let Some((least, greatest)) = least.zip(greatest) else { return Some(known) };
        let linear = self.packing.coding(self.stored.data_type())?;
        let ends = [least, greatest].map(|code| linear.number(code, linear.is_single));
        // This gives zeros the signs that bounds must have.
        let Summary { min, max, .. } = statistics::summary(&Float64Array::from(ends.to_vec()))?;
        Some(Summary { min, max, ..known })
    }

    fn primitive<T: ArrowPrimitiveType>(&self, stored: &PrimitiveArray<T>, odd: &mut Oddities) -> ArrayRef
    where
        T::Native: StoredNumber,
    {
        let present = self.present(stored);
        let Some(count) = self.packing.count else {
            return match self.packing.linear {
                Some(linear) => linear.apply(&present),
                None => Arc::new(present),
            };
        };
        let instants = match self.packing.linear.map(|linear| (linear.apply(&present), linear.is_single)) {
            Some((counts, true)) => count.apply(counts.as_primitive::<Float32Type>()),
            Some((counts, false)) => count.apply(counts.as_primitive::<Float64Type>()),
            None => count.apply(&present),
        };
        if instants.null_count() > present.null_count() {
            // NaN is missing, but no oddity.
            let scale = self.packing.linear.and_then(|linear| linear.scale).unwrap_or(1.0);
            odd.add_where(Oddity::TimeOutOfRange, instants.len(), |row| {
                let is_number = !present.value(row).double().is_nan() && !scale.is_nan();
                present.is_valid(row) && instants.is_null(row) && is_number
            });
        }
        instants
    }
}

/// All codes of a type, in order of their unsigned bytes. `None`: too many to list.
fn all_codes(stored: &DataType) -> Option<ArrayRef> {
    let (short, long) = (0..=u8::MAX, 0..=u16::MAX);
    Some(match stored {
        DataType::Int8 => Arc::new(Int8Array::from_iter_values(short.map(|code| code as i8))),
        DataType::UInt8 => Arc::new(UInt8Array::from_iter_values(short)),
        DataType::Int16 => Arc::new(Int16Array::from_iter_values(long.map(|code| code as i16))),
        DataType::UInt16 => Arc::new(UInt16Array::from_iter_values(long)),
        _ => return None,
    })
}

/// A bit for each value, unset if the value is one of `missing`. `None`: none of them is.
fn present<T: StoredNumber>(values: &[T], missing: &[T]) -> Option<BooleanBuffer> {
    // Nearly always a single value means missing, and it often does not occur; one test over all values is many times
    // as fast as a bit for each.
    let is_missing = |value: T| missing.iter().fold(false, |any, one| any | value.is(*one));
    let found = match missing {
        [one] => values.iter().fold(false, |any, value| any | value.is(*one)),
        _ => values.iter().any(|value| is_missing(*value)),
    };
    found.then(|| match missing {
        [one] => BooleanBuffer::collect_bool(values.len(), |at| !values[at].is(*one)),
        _ => BooleanBuffer::collect_bool(values.len(), |at| !is_missing(values[at])),
    })
}

/// Number of arrays around the numbers of a type.
fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeList(item, _) => 1 + depth(item.data_type()),
        _ => 0,
    }
}

impl Rows for PackedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let stored = self.stored.array(range.clone(), interrupt)?;
        try_memory((stored.len() as u64).saturating_mul(fixed_width(&self.facts.data_type)))?;
        let mut odd = Oddities::new();
        let numbers = self.numbers(&stored, &mut odd)?;
        self.tally.add(range, &odd);
        Ok(numbers)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.stored.outline(range, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let _ = interrupt;
        let width = fixed_width(&self.facts.data_type).saturating_add(fixed_width(self.stored.data_type()));
        Ok(Fitting::fixed(&range, width, bytes))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.stored.bytes()
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl Coded for PackedRows {
    fn code_values(&self) -> Option<ArrayRef> {
        self.decoded(all_codes(self.stored.data_type())?.as_ref())
    }

    fn codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let stored = match self.lent(&range, interrupt)? {
            Some(stored) => stored,
            None => self.stored.array(range, interrupt)?,
        };
        Ok(match stored.data_type() {
            DataType::Int8 => Some(Arc::new(self.present::<Int8Type>(stored.as_primitive()))),
            DataType::UInt8 => Some(Arc::new(self.present::<UInt8Type>(stored.as_primitive()))),
            DataType::Int16 => Some(Arc::new(self.present::<Int16Type>(stored.as_primitive()))),
            DataType::UInt16 => Some(Arc::new(self.present::<UInt16Type>(stored.as_primitive()))),
            _ => None,
        })
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        // Oddities are counted when arrays are read.
        self.numbers(&self.stored.coded()?.values(bytes)?, &mut Oddities::new()).ok()
    }

    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        match values.data_type() {
            _ if self.packing.is_none() => self.stored.coded()?.summary_of(values, interrupt),
            codes if *codes != self.facts.data_type => self.summary_of_coded(values),
            _ => statistics::summary(values),
        }
    }
}

/// The same hints, without the claim that stored bytes are values.
fn without_stored(hints: Hints) -> Hints {
    Hints { stored: false, items: hints.items.map(|items| Box::new(without_stored(*items))), ..hints }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array, Int16Array, Int64Array};

    use super::super::packing::UnitCount;
    use super::*;

    fn numbers(stored: ArrayRef, packing: Packing) -> (ArrayRef, Oddities) {
        let held = Arc::new(crate::table::HeldRows::new(stored.clone(), false, Hints::default()));
        let rows = PackedRows::new("/x".into(), held, packing, None, Arc::default());
        let mut odd = Oddities::new();
        let made = rows.numbers(&stored, &mut odd).unwrap();
        assert_eq!(made.data_type(), &rows.facts().data_type);
        (made, odd)
    }

    #[test]
    fn missing_ones_are_those_that_are_stored() {
        let linear = Linear { scale: Some(0.5), offset: Some(10.0), is_single: false };
        let missing: ArrayRef = Arc::new(Int16Array::from(vec![-1, 9]));
        let packing = Packing { missing: Some(missing), linear: Some(linear), ..Packing::default() };
        // 20 stands for 20.0, −20 for 0.0: neither is missing, though a missing one may be stored as either.
        let (made, _) = numbers(Arc::new(Int16Array::from(vec![-1, 20, 9, -20])), packing);
        assert_eq!(made.as_primitive::<Float64Type>(), &Float64Array::from(vec![None, Some(20.0), None, Some(0.0)]));
    }

    #[test]
    fn nan_means_any_nan_and_float32_is_computed_as_such() {
        let missing: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN]));
        let linear = Linear { scale: Some(f64::from(0.1_f32)), offset: None, is_single: true };
        let packing = Packing { missing: Some(missing), linear: Some(linear), ..Packing::default() };
        let (made, _) = numbers(Arc::new(Float32Array::from(vec![f32::from_bits(0xffc0_1234), 3.0])), packing);
        assert_eq!(made.as_primitive::<Float32Type>(), &Float32Array::from(vec![None, Some(3.0 * 0.1_f32)]));
    }

    #[test]
    fn codes_stand_for_the_same_numbers() {
        let stored: ArrayRef = Arc::new(Int16Array::from(vec![-32_768, 7, -1, 0, 32_767]));
        let missing: ArrayRef = Arc::new(Int16Array::from(vec![7]));
        let rows = |stored: &ArrayRef, scale: f64, offset: Option<f64>, is_single| {
            let held = Arc::new(crate::table::HeldRows::new(stored.clone(), false, Hints::default()));
            let linear = Some(Linear { scale: Some(scale), offset, is_single });
            let packing = Packing { missing: Some(missing.clone()), linear, ..Packing::default() };
            PackedRows::new("/x".into(), held, packing, None, Arc::default())
        };
        let interrupt = Interrupt::new();
        for (scale, offset, is_single) in [(0.5, Some(10.0), false), (-0.1, None, false), (0.0, Some(-0.0), true)] {
            let rows = rows(&stored, scale, offset, is_single);
            assert_eq!(rows.facts().codes, 65_536);
            let codes = rows.codes(0..5, &interrupt).unwrap().unwrap();
            let places = codes.as_primitive::<Int16Type>().unary::<_, UInt16Type>(|code| code as u16);
            let numbers = arrow_select::take::take(&rows.code_values().unwrap(), &places, None).unwrap();
            let array = rows.array(0..5, &interrupt).unwrap();
            assert_eq!(&numbers, &array);
            assert_eq!(array.null_count(), 1);
            assert_eq!(rows.summary_of(codes.as_ref(), &interrupt), statistics::summary(array.as_ref()));
        }
        // A code of an infinite number has no place in bounds; four bytes have too many codes.
        assert_eq!(rows(&stored, 1e304, Some(1.7e308), false).facts().codes, 0);
        assert_eq!(rows(&stored, f64::NAN, None, false).facts().codes, 0);
        let long: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![1]));
        assert_eq!(rows(&long, 0.5, None, false).facts().codes, 0);
    }

    #[test]
    fn counts_that_are_no_instants_are_missing_and_told() {
        let second = 1_000_000_000_000_000_000;
        let count = UnitCount { step: second, epoch: 0 };
        let packing = Packing { count: Some(count), ..Packing::default() };
        let (made, odd) = numbers(Arc::new(Float64Array::from(vec![1.5, f64::NAN, 1e300])), packing);
        assert_eq!(made.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1_500_000), None, None]));
        assert!(odd.iter().eq([(Oddity::TimeOutOfRange, 2)]));
    }
}
