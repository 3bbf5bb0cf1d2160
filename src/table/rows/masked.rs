//! A column of values with a mask of missing ones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Alike, Containers, Error, Facts, Fitting, Hints, RowRange, Rows, SharedRows, StoredBytes};

/// Values that are null where a mask is true or not zero (or, if inverted, where it is false or zero), and beyond the
/// end of the mask. A mask of arrays covers single items. The stored bytes are those of the values, without the mask.
#[derive(Debug)]
pub struct MaskedRows {
    values: Arc<dyn Rows>,
    mask: Arc<dyn Rows>,
    /// The mask's bit for a value that is present.
    valid: bool,
    /// Number of levels of arrays around each element of the mask.
    depth: usize,
    path: String,
    facts: Facts,
}

impl MaskedRows {
    /// Masks `values`; present are those where the mask is false or zero.
    ///
    /// # Errors
    /// The type of `mask`, if it is neither booleans nor integers, nor arrays of these with the extents of the values.
    pub fn new(path: String, values: Arc<dyn Rows>, mask: Arc<dyn Rows>) -> Result<Self, String> {
        let (mut depth, mut masking, mut masked) = (0, mask.data_type(), values.data_type());
        while let (DataType::FixedSizeList(marks, length), DataType::FixedSizeList(items, own)) = (masking, masked)
            && length == own
        {
            (depth, masking, masked) = (depth + 1, marks.data_type(), items.data_type());
        }
        match masking {
            DataType::Boolean => {}
            integers if integers.is_integer() => {}
            _ => return Err(format!("a mask of type {}", mask.data_type())),
        }
        let inner = values.facts();
        let hints = inner.hints.clone();
        let hints = match depth {
            0 => Hints { nan: hints.nan.among_others(), ..hints },
            depth => hints.of_nullable_items(depth),
        };
        let facts = Facts {
            nullable: depth == 0 || inner.nullable,
            hints,
            codes: 0,
            // The outline is that of the values and ignores the mask.
            outline_tells_nulls: false,
            fields_lie_apart: false,
            alike: Alike::new({
                let (values, mask) = (values.clone(), mask.clone());
                move |row, interrupt| {
                    let end = values.alike_until(row, interrupt)?;
                    // Beyond the end of the mask, all values are missing.
                    let is_masked = row < mask.len();
                    Ok(if is_masked { end.min(mask.alike_until(row, interrupt)?) } else { end })
                }
            }),
            containers: Containers::of_all([&values, &mask]),
            ..inner.clone()
        };
        Ok(Self { depth, values, mask, valid: false, path, facts })
    }

    /// The same rows with an inverted mask if `valid`: values are present where the mask is true.
    pub fn valid_when(self, valid: bool) -> Self {
        Self { valid, ..self }
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// Which rows of `range`, or which of their items, are present.
    fn present(&self, range: &RowRange, interrupt: &Interrupt) -> Result<BooleanBuffer, Error> {
        let mut count = usize::try_from(range.end.saturating_sub(range.start)).map_err(|error| self.failed(error))?;
        let masked = range.start.min(self.mask.len())..range.end.min(self.mask.len());
        let mut mask = self.mask.array(masked, interrupt)?;
        for _ in 0..self.depth {
            let arrays = mask.as_fixed_size_list_opt().ok_or_else(|| self.failed("the mask is not of arrays"))?;
            // Never negative in a valid array.
            count = count.saturating_mul(arrays.value_length().unsigned_abs() as usize);
            mask = arrays.values().clone();
        }
        let marked = match mask.as_boolean_opt() {
            Some(mask) => mask.values().clone(),
            None => {
                let numbers = widen::signed(&mask).ok_or_else(|| self.failed("the mask is not of integers"))?;
                BooleanBuffer::collect_bool(numbers.len(), |row| numbers.value(row) != 0)
            }
        };
        let valid = if self.valid { marked } else { !&marked };
        let present = match mask.nulls() {
            // A value whose mask is null is missing as well.
            Some(nulls) => &valid & nulls.inner(),
            None => valid,
        };
        if present.len() == count {
            return Ok(present);
        }
        let mut padded = BooleanBufferBuilder::new(count);
        padded.append_buffer(&present);
        padded.append_n(count.saturating_sub(present.len()), false);
        Ok(padded.finish())
    }

    /// Adds nulls to an array where a row, or an item `depth` arrays inside, is not present.
    fn masked(&self, array: &ArrayRef, depth: usize, present: BooleanBuffer) -> Result<ArrayRef, Error> {
        if let (Some(arrays), 1..) = (array.as_fixed_size_list_opt(), depth)
            && let DataType::FixedSizeList(field, length) = arrays.data_type()
        {
            let items = self.masked(arrays.values(), depth - 1, present)?;
            let masked = FixedSizeListArray::try_new(field.clone(), *length, items, arrays.nulls().cloned());
            return Ok(Arc::new(masked.map_err(|error| self.failed(error))?));
        }
        let nulls = NullBuffer::union(array.nulls(), Some(&NullBuffer::new(present)));
        let data = array.to_data().into_builder().nulls(nulls).build();
        Ok(make_array(data.map_err(|error| self.failed(error))?))
    }
}

impl Rows for MaskedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let present = self.present(&range, interrupt)?;
        let values = self.values.array(range, interrupt)?;
        self.masked(&values, self.depth, present)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.values.fitting(range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let shared = if self.depth == 0 { self.values.shared(range.clone(), interrupt)? } else { None };
        let Some(SharedRows { values, mut keys }) = shared else { return Ok(None) };
        let present = self.present(&range, interrupt)?;
        // One additional null value for all missing rows.
        let missing = u32::try_from(values.len()).map_err(|error| self.failed(error))?;
        let none = new_null_array(values.data_type(), 1);
        let values = concat(&[values.as_ref(), none.as_ref()]).map_err(|error| self.failed(error))?;
        for (key, _) in keys.iter_mut().zip(&present).filter(|(_, is_there)| !is_there) {
            *key = missing;
        }
        Ok(Some(SharedRows { values, keys }))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let Some(outline) = self.values.outline(range.clone(), interrupt)? else { return Ok(None) };
        // The outline keeps the stored lengths of missing items.
        if *outline.data_type() == DataType::Null || self.depth > 0 {
            return Ok(Some(outline));
        }
        let present = self.present(&range, interrupt)?;
        self.masked(&outline, 0, present).map(Some)
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.values.bytes()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float32Type, Int32Type};
    use arrow_array::{BooleanArray, LargeStringArray, UInt32Array};
    use arrow_schema::Field;
    use arrow_select::take::take;

    use super::*;
    use crate::store::rows::in_memory::MemoryRows;

    fn of(array: ArrayRef) -> Arc<dyn Rows> {
        Arc::new(MemoryRows::new(array))
    }

    fn lists(items: ArrayRef, length: i32) -> ArrayRef {
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        Arc::new(FixedSizeListArray::new(field, length, items, None))
    }

    #[test]
    fn a_mask_of_arrays_tells_of_each_item() {
        let values = lists(lists(Arc::new((0..12).map(Some).collect::<arrow_array::Int32Array>()), 3), 2);
        let marks: BooleanArray = (0..12).map(|at| Some(at % 5 == 0)).collect();
        let mask = lists(lists(Arc::new(marks), 3), 2);
        let rows = MaskedRows::new("/t/w".into(), of(values.clone()), of(mask.clone())).unwrap();
        assert!(!rows.facts().nullable);
        let array = rows.array(1..2, &Interrupt::new()).unwrap();
        let items = array.as_fixed_size_list().values().as_fixed_size_list().values().clone();
        let items: Vec<Option<i32>> = items.as_primitive::<Int32Type>().iter().collect();
        assert_eq!(items, [Some(6), Some(7), Some(8), Some(9), None, Some(11)]);
        // Beyond the end of the mask, all items are missing.
        let short = MaskedRows::new("/t/w".into(), of(values.clone()), of(mask.slice(0, 1))).unwrap();
        let array = short.array(0..2, &Interrupt::new()).unwrap();
        assert_eq!(array.as_fixed_size_list().values().as_fixed_size_list().values().null_count(), 2 + 6);
        // Arrays of another length are refused; a mask of the outer arrays masks those.
        let others = lists(Arc::new(BooleanArray::from(vec![true; 6])), 3);
        assert!(MaskedRows::new("/t/w".into(), of(values.clone()), of(others)).is_err());
        let outer = lists(Arc::new(BooleanArray::from(vec![true, false, false, false])), 2);
        let rows = MaskedRows::new("/t/w".into(), of(values), of(outer)).unwrap();
        let array = rows.array(0..2, &Interrupt::new()).unwrap();
        let inner = array.as_fixed_size_list().values().clone();
        assert!(inner.is_null(0) && inner.null_count() == 1);
    }

    #[test]
    fn a_mask_of_rows_masks_whole_arrays() {
        let floats: arrow_array::Float32Array = (0..4).map(|at| Some(at as f32)).collect();
        let mask = of(Arc::new(BooleanArray::from(vec![false, true])));
        let rows = MaskedRows::new("/t/v".into(), of(lists(Arc::new(floats), 2)), mask).unwrap();
        assert!(rows.facts().nullable);
        let array = rows.array(0..2, &Interrupt::new()).unwrap();
        assert!(array.is_valid(0) && array.is_null(1));
        assert_eq!(array.as_fixed_size_list().value(0).as_primitive::<Float32Type>().values(), &[0.0, 1.0]);
    }

    /// Rows that all share one stored text.
    #[derive(Debug)]
    struct OneText(MemoryRows);

    impl Rows for OneText {
        fn facts(&self) -> &Facts {
            self.0.facts()
        }

        fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
            self.0.array(range, interrupt)
        }

        fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
            let keys = range.clone().map(|_| 0).collect();
            Ok(Some(SharedRows { values: self.array(0..1, interrupt)?, keys }))
        }
    }

    #[test]
    fn shared_rows_are_those_of_arrays() {
        let texts = Arc::new(OneText(MemoryRows::new(Arc::new(LargeStringArray::from(vec!["a"; 4])))));
        let mask = of(Arc::new(BooleanArray::from(vec![false, true, true, false])));
        let rows = MaskedRows::new("/t/s".into(), texts, mask).unwrap();
        let SharedRows { values, keys } = rows.shared(0..4, &Interrupt::new()).unwrap().unwrap();
        let shown = take(&values, &UInt32Array::from(keys), None).unwrap();
        assert_eq!(shown.as_ref(), rows.array(0..4, &Interrupt::new()).unwrap().as_ref());
    }
}
