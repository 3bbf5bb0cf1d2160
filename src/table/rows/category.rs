//! A categorical column: codes that point into a set of labels (HEP001 §6.6).

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type, UInt8Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use parking_lot::Mutex;

use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::statistics::{CodeLabels, Scalar, Summary};
use crate::store::{
    ChunkDecoding, Coded, Error, Facts, Fitting, Hints, RowRange, Rows, StoredBytes, StoredFacts, Summaries, Tally,
    ValueSet,
};

/// Codes shown as their labels. Code −1, the explicit fill and codes out of range are null.
#[derive(Debug)]
pub struct CategoryRows {
    codes: Arc<dyn Rows>,
    labels: Arc<dyn Rows>,
    path: String,
    facts: Facts,
    loaded: Mutex<Option<ArrayRef>>,
    /// Labels prepared for summaries of codes. `None`: they do not allow summaries, or cannot be read.
    summed: OnceLock<Option<CodeLabels>>,
    tally: Arc<Tally>,
}

impl CategoryRows {
    /// Most labels of a set that is held in memory.
    pub const MOST_LABELS: u64 = 1 << 26;

    /// Shows `codes`, which must be integers, as `labels`; `tally` counts codes out of range.
    pub fn new(path: String, codes: Arc<dyn Rows>, labels: Arc<dyn Rows>, tally: Arc<Tally>) -> Self {
        let data_type = DataType::Dictionary(Box::new(DataType::Int64), Box::new(labels.data_type().clone()));
        let inner = codes.facts();
        let values = ValueSet::Categories { labels: labels.clone(), ordered: false };
        let facts = Facts {
            data_type,
            nullable: true,
            hints: Hints { texts: labels.hints().texts, values: Some(values), nullable: true, ..Hints::default() },
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { facts, codes, labels, path, loaded: Mutex::new(None), summed: OnceLock::new(), tally }
    }

    /// The same rows; `ordered` says whether the order of the labels means something.
    pub fn ordered(self, ordered: bool) -> Self {
        let values = ValueSet::Categories { labels: self.labels.clone(), ordered };
        let hints = Hints { values: Some(values), ..self.facts.hints };
        Self { facts: Facts { hints, ..self.facts }, ..self }
    }

    fn labels(&self, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let mut loaded = self.loaded.lock();
        if let Some(labels) = &*loaded {
            return Ok(labels.clone());
        }
        let count = self.labels.len();
        if count > Self::MOST_LABELS {
            return Err(Error::unsupported(
                &self.path,
                format!("{count} categories, more than the {} that are supported", Self::MOST_LABELS),
            ));
        }
        let labels = self.labels.array(0..count, interrupt)?;
        *loaded = Some(labels.clone());
        Ok(labels)
    }

    fn labelled(&self, keys: Int64Array, labels: ArrayRef) -> Result<ArrayRef, Error> {
        match DictionaryArray::<Int64Type>::try_new(keys, labels) {
            Ok(array) => Ok(Arc::new(array)),
            Err(error) => Err(Error::unsupported(&self.path, error)),
        }
    }
}

/// Codes shown as their labels, without a dictionary; labels that count time appear in the column's unit. Stored bytes
/// are those of the codes.
#[derive(Debug)]
pub struct LabelRows {
    categories: CategoryRows,
    facts: Facts,
}

impl LabelRows {
    /// The labels of `categories`, with the same nulls.
    pub fn new(categories: CategoryRows) -> Self {
        let inner = categories.codes.facts();
        let facts = Facts {
            data_type: categories.labels.data_type().clone(),
            nullable: true,
            hints: Hints::default(),
            stored: StoredFacts { decoded: ChunkDecoding::Never, ..inner.stored.clone() },
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { categories, facts }
    }
}

impl Rows for LabelRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.categories.array(range, interrupt)?;
        let labelled = array.as_dictionary::<Int64Type>();
        arrow_select::take::take(labelled.values(), labelled.keys(), None)
            .map_err(|error| Error::unsupported(&self.categories.path, error))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.categories.bytes()
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for LabelRows {
    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        self.categories.is_computed(interrupt)
    }
}

impl Rows for CategoryRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let labels = self.labels(interrupt)?;
        let codes = self.codes.array(range.clone(), interrupt)?;
        let unsigned = codes.data_type().is_unsigned_integer();
        // An unsigned code of 2^63 or more turns negative here, and is out of range either way; only a signed −1 means
        // missing.
        let keys: Option<ScalarBuffer<i64>> = match codes.data_type() {
            DataType::UInt64 => Some(codes.as_primitive::<UInt64Type>().values().inner().clone().into()),
            _ => widen::signed(&codes).map(|codes| codes.values().clone()),
        };
        let keys =
            keys.ok_or_else(|| Error::unsupported(&self.path, format!("codes of type {}", codes.data_type())))?;
        let count = labels.len() as i64;
        // Nearly always all codes have labels, and one test over all codes is several times as fast as one for each.
        if codes.null_count() == 0 && keys.iter().fold(true, |all, key| all & (0..count).contains(key)) {
            return self.labelled(Int64Array::new(keys, None), labels);
        }
        let valid =
            BooleanBuffer::collect_bool(keys.len(), |row| codes.is_valid(row) && (0..count).contains(&keys[row]));
        let mut nulls = None;
        let mut keys = keys;
        if valid.count_set_bits() < keys.len() {
            let mut odd = Oddities::new();
            odd.add_where(Oddity::CategoryOutOfRange, keys.len(), |row| {
                codes.is_valid(row) && !valid.value(row) && (unsigned || keys[row] != -1)
            });
            self.tally.add(range, &odd);
            // Some readers require even keys under nulls to lie in the dictionary.
            keys = (0..keys.len()).map(|row| if valid.value(row) { keys[row] } else { 0 }).collect();
            nulls = Some(NullBuffer::new(valid));
        }
        self.labelled(Int64Array::new(keys, nulls), labels)
    }

    fn fitting(&self, range: RowRange, bytes: u64, _: &Interrupt) -> Result<Fitting, Error> {
        // The codes, and the keys made from them.
        Ok(Fitting::fixed(&range, 16, bytes))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.codes.outline(range, interrupt)
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.codes.bytes()
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Coded for CategoryRows {
    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        let codes = self.codes.array(range, interrupt)?;
        let bytes = match codes.data_type() {
            _ if codes.null_count() > 0 => return Ok(false),
            DataType::Int8 => codes.as_primitive::<Int8Type>().values().inner().as_slice(),
            DataType::UInt8 => codes.as_primitive::<UInt8Type>().values().inner().as_slice(),
            _ => return Ok(false),
        };
        // Negative codes have bytes from 128.
        let codes_of_labels = if codes.data_type().is_signed_integer() { 128 } else { 256 };
        let labels = self.labels.len().min(codes_of_labels);
        let are_labels = bytes.iter().max().is_none_or(|most| u64::from(*most) < labels);
        if are_labels {
            out.extend_from_slice(bytes);
        }
        Ok(are_labels)
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.codes.coded()?.values(bytes)
    }

    fn summary_of(&self, codes: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let labels = match self.summed.get() {
            Some(labels) => labels,
            // Reading codes should not wait for many labels.
            None if self.labels.len() > CodeLabels::MOST => return None,
            None => match self.labels(interrupt) {
                Err(Error::Interrupted(_)) => return None,
                labels => self.summed.get_or_init(|| CodeLabels::new(&labels.ok()?)),
            },
        };
        labels.as_ref()?.summary(codes)
    }

    fn sound_summary_of(&self, codes: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let stored = self.codes.coded()?.sound_summary_of(codes, interrupt)?;
        let (labels, signed) = (self.labels.len(), codes.data_type().is_signed_integer());
        let are_sound = [&stored.min, &stored.max].into_iter().flatten().all(|code| match code {
            Scalar::Int(code) => *code == -1 && signed || u64::try_from(*code).is_ok_and(|code| code < labels),
            Scalar::UInt(code) => *code < labels,
            _ => false,
        });
        if are_sound { self.summary_of(codes, interrupt) } else { None }
    }
}

impl Summaries for CategoryRows {
    fn summary_of_codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        self.codes.known().map_or(Ok(None), |codes| codes.summary(range, interrupt))
    }

    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        // As in `summary_of`, many labels are not worth reading for a summary.
        if self.labels.len() > CodeLabels::MOST {
            return Ok(None);
        }
        // Labels and codes have different orders, but a single label is both the least and the greatest.
        let Some(codes) = self.summary_of_codes(range, interrupt)? else { return Ok(None) };
        let code = match (&codes.min, &codes.max) {
            (Some(Scalar::Int(min)), Some(max)) if codes.nulls == 0 && *max == Scalar::Int(*min) => *min,
            _ => return Ok(None),
        };
        let labels = self.labels(interrupt)?;
        let labels = labels.as_string_opt::<i64>().filter(|labels| labels.null_count() == 0);
        let at = usize::try_from(code).ok().filter(|at| labels.is_some_and(|labels| *at < labels.len()));
        let label = labels.zip(at).map(|(labels, at)| Scalar::Text(labels.value(at).into()));
        Ok(label.map(|label| Summary { min: Some(label.clone()), max: Some(label), ..codes }))
    }

    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        let last = i128::from(self.labels.len());
        let has_label = |code| matches!(code, Some(Scalar::Int(code)) if (0..last).contains(&i128::from(code)));
        self.codes.known().is_some_and(|codes| codes.is_computed(interrupt))
            && matches!(self.summary_of_codes(0..self.codes.len(), interrupt),
                Ok(Some(codes)) if has_label(codes.min.clone()) && has_label(codes.max.clone()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, LargeStringArray, UInt64Array};

    use super::*;
    use crate::table::rows::{EvenRows, HeldRows, RunRows};

    #[test]
    fn numbers_of_runs_are_computed_where_each_has_a_label() {
        let none = Interrupt::new();
        let held = |array: Arc<dyn Array>| Arc::new(HeldRows::new(array, false, Hints::default())) as Arc<dyn Rows>;
        let pointers = held(Arc::new(UInt64Array::from(vec![0, 5, 5, 9])));
        let runs: Arc<dyn Rows> = Arc::new(RunRows::new("/p".into(), pointers, 9, false, &none).unwrap());
        let shown = |labels: &[&str], codes| {
            let labels = held(Arc::new(LargeStringArray::from(labels.to_vec())));
            CategoryRows::new("/c".into(), codes, labels, Arc::default())
        };
        assert!(shown(&["a", "b", "c"], runs.clone()).is_computed(&none));
        assert!(!shown(&["a", "b"], runs.clone()).is_computed(&none));
        let even = Arc::new(EvenRows::whole(0, 1, 3).unwrap());
        assert!(!shown(&["a", "b", "c"], even).is_computed(&none), "whose bounds are not told");
    }
}
