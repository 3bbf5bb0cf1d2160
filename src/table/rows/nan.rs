//! Floats with NaN as missing values, and the same floats with NaN as values again.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Coded, Error, Facts, Fitting, Hints, Nan, RowRange, Rows, StoredBytes, StridedField, Summaries};

/// Masks NaN in rows of floats, or unmasks it. Stored bytes do not change.
///
/// Both directions rely on a promise of [`Rows::array`]: the slot under a null keeps its number. So NaN can be
/// recovered even from rows that were selected, chained or held after masking.
#[derive(Debug)]
pub struct NanRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
}

impl NanRows {
    /// Masks NaN. `None`: not floats, or NaN already means missing, or every value is one of a few finite numbers.
    pub fn missing(rows: &Arc<dyn Rows>) -> Option<Self> {
        let can_be = rows.data_type().is_floating() && rows.code_count() == 0 && rows.hints().nan == Nan::Value;
        can_be.then(|| Self::new(rows, Nan::Missing { alone: !rows.nullable() }, true))
    }

    /// Unmasks NaN. `None`: NaN does not mean missing.
    pub fn kept(rows: &Arc<dyn Rows>) -> Option<Self> {
        let Nan::Missing { alone } = rows.hints().nan else { return None };
        rows.data_type().is_floating().then(|| Self::new(rows, Nan::Value, !alone))
    }

    /// The same floats with another meaning of NaN.
    pub(super) fn new(rows: &Arc<dyn Rows>, nan: Nan, nullable: bool) -> Self {
        let inner = rows.facts();
        let hints = Hints { nan, ..inner.hints.clone() };
        let facts = Facts { nullable, hints, codes: 0, outline_tells_nulls: false, ..inner.clone() };
        Self { rows: rows.clone(), facts }
    }

    fn is_masked(&self) -> bool {
        self.facts.hints.nan != Nan::Value
    }

    /// Sets the validity of NaN in an array as these rows define it.
    fn shown(&self, array: ArrayRef) -> ArrayRef {
        let Some(nan) = nan_in(array.as_ref()) else { return array };
        let nulls = match (self.is_masked(), array.nulls()) {
            (true, nulls) => NullBuffer::union(nulls, Some(&NullBuffer::new(!&nan))),
            (false, Some(nulls)) => Some(NullBuffer::new(nulls.inner() | &nan)),
            (false, None) => return array,
        };
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        // Only the validity changes, and its length fits the array.
        array.to_data().into_builder().nulls(nulls).build().map_or(array, make_array)
    }

    /// Rewrites the summary of the inner rows for this meaning of NaN. `None`: the inner rows have nulls, some of which
    /// may be NaN.
    fn told(&self, summary: Summary) -> Option<Summary> {
        match self.is_masked() {
            true => Some(Summary { nulls: summary.nulls.saturating_add(summary.nans), nans: 0, ..summary }),
            false => (summary.nulls == 0).then_some(summary),
        }
    }
}

/// A bit for each NaN in an array of floats, whatever its validity. `None`: no NaN.
pub fn nan_in(array: &dyn Array) -> Option<BooleanBuffer> {
    macro_rules! of {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            // In most cases, no value is NaN, and one test over all values is many times as fast as a bit for each.
            let any = values.iter().fold(false, |any, value| any | value.is_nan());
            any.then(|| BooleanBuffer::collect_bool(values.len(), |at| values[at].is_nan()))
        }};
    }
    match array.data_type() {
        DataType::Float16 => of!(Float16Type),
        DataType::Float32 => of!(Float32Type),
        DataType::Float64 => of!(Float64Type),
        _ => None,
    }
}

impl Rows for NanRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.rows.array(range, interrupt).map(|array| self.shown(array))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.rows.fitting(range, bytes, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.rows.outline(range, interrupt)
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.rows.bytes()
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Coded for NanRows {
    fn place(&self) -> Option<StridedField<'_>> {
        self.rows.coded()?.place()
    }

    fn array_of(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.rows.coded()?.array_of(bytes).map(|array| self.shown(array))
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let values = self.rows.coded()?.values(bytes).filter(|values| values.data_type().is_floating())?;
        Some(self.shown(values))
    }

    fn summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        // `values` are the shown numbers.
        statistics::summary(values).filter(|_| values.data_type().is_floating())
    }

    fn sound_summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        self.rows.coded()?.sound_summary_of(values, interrupt)
    }
}

impl Summaries for NanRows {
    fn scan(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let Some(known) = self.rows.known() else { return Ok(None) };
        Ok(known.scan(range, interrupt)?.and_then(|summary| self.told(summary)))
    }

    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let Some(known) = self.rows.known() else { return Ok(None) };
        Ok(known.summary(range, interrupt)?.and_then(|summary| self.told(summary)))
    }

    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        self.rows.known().is_some_and(|known| known.is_computed(interrupt))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;

    use super::*;
    use crate::store::rows::in_memory::MemoryRows;

    fn rows(values: Vec<Option<f64>>) -> Arc<dyn Rows> {
        Arc::new(MemoryRows::new(Arc::new(Float64Array::from(values))))
    }

    fn validity(rows: &dyn Rows) -> Vec<bool> {
        let array = rows.array(0..rows.len(), &Interrupt::new()).unwrap();
        (0..array.len()).map(|row| array.is_valid(row)).collect()
    }

    #[test]
    fn nan_is_missing_and_a_value_again() {
        let stored = rows(vec![Some(1.0), Some(f64::NAN), Some(2.0), Some(-f64::NAN)]);
        let masked: Arc<dyn Rows> = Arc::new(NanRows::missing(&stored).unwrap());
        assert_eq!(validity(masked.as_ref()), [true, false, true, false]);
        assert!(masked.nullable());
        // Once is enough.
        assert!(NanRows::missing(&masked).is_none());
        let kept = NanRows::kept(&masked).unwrap();
        assert_eq!(validity(&kept), [true; 4]);
        assert!(kept.array(0..4, &Interrupt::new()).unwrap().as_primitive::<Float64Type>().value(3).is_nan());
        assert!(NanRows::kept(&stored).is_none());
    }

    #[test]
    fn what_is_missing_otherwise_stays_so() {
        let stored = rows(vec![None, Some(f64::NAN), Some(0.5)]);
        let masked: Arc<dyn Rows> = Arc::new(NanRows::missing(&stored).unwrap());
        assert_eq!(masked.hints().nan, Nan::Missing { alone: false });
        assert_eq!(validity(masked.as_ref()), [false, false, true]);
        let kept = NanRows::kept(&masked).unwrap();
        assert!(kept.facts().nullable);
        assert_eq!(validity(&kept), [false, true, true]);
    }

    #[test]
    fn integers_have_no_nan() {
        let stored: Arc<dyn Rows> = Arc::new(MemoryRows::new(Arc::new(arrow_array::Int64Array::from(vec![1]))));
        assert!(NanRows::missing(&stored).is_none());
    }
}
