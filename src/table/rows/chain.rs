//! Chains rows of one type that are stored in several places, and converts floats to integers of another unit. Search
//! indexes and tables of several groups use it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Int64Array, new_empty_array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::source::Interrupt;
use crate::store::{Alike, Containers, Cuts, Error, Facts, Fitting, Hints, RowRange, Rows};

/// A part, its first row in the chain, and a range of its own rows.
type Part<'a> = (&'a Arc<dyn Rows>, u64, Range<u64>);

/// The rows of several parts of one type, in succession.
#[derive(Debug)]
pub struct ChainRows {
    parts: Arc<[Arc<dyn Rows>]>,
    /// First row of each part, and the total.
    starts: Arc<[u64]>,
    facts: Facts,
    /// The factor by which floats are multiplied before being rounded to integers. `None`: rows stay as they are.
    factor: Option<f64>,
}

impl ChainRows {
    /// Chains `parts`. `None`: no part is given, or their types differ.
    pub fn new(parts: Vec<Arc<dyn Rows>>) -> Option<Self> {
        let data_type = parts.first()?.data_type().clone();
        let is_one = parts.iter().all(|part| *part.data_type() == data_type);
        let mut starts = vec![0_u64];
        for part in &parts {
            starts.push(starts.last()?.checked_add(part.len())?);
        }
        let (parts, starts): (Arc<[_]>, Arc<[_]>) = (parts.into(), starts.into());
        let all = parts.iter().map(|part| part.hints().clone()).reduce(Hints::of_either).unwrap_or_default();
        let facts = Facts {
            nullable: parts.iter().any(|part| part.nullable()),
            // Value sets of single parts do not hold for the whole chain.
            hints: Hints { values: None, ..all },
            stride: parts.iter().filter_map(|part| part.stride()).max(),
            outline_tells_nulls: parts.iter().all(|part| part.outline_tells_nulls()),
            fields_lie_apart: parts.iter().all(|part| part.fields_lie_apart()),
            alike: Alike::new({
                let (parts, starts) = (parts.clone(), starts.clone());
                move |row, interrupt| {
                    let Some(at) = starts.partition_point(|start| *start <= row).checked_sub(1) else { return Ok(row) };
                    let Some(part) = parts.get(at) else { return Ok(row) };
                    Ok(starts[at].saturating_add(part.alike_until(row - starts[at], interrupt)?))
                }
            }),
            containers: Containers::of_all(parts.iter()),
            ..Facts::new(starts.last().copied().unwrap_or(0), data_type)
        };
        is_one.then_some(Self { parts, starts, facts, factor: None })
    }

    /// The same rows as integers in another unit. `None`: not float64.
    pub fn rounded(self, factor: f64) -> Option<Self> {
        let is_float = self.facts.data_type == DataType::Float64;
        is_float.then(|| Self { factor: Some(factor), ..self.of_type(DataType::Int64) })
    }

    /// The same rows with texts instead of labels, since each part may have labels of its own.
    pub fn with_texts(self) -> Self {
        match &self.facts.data_type {
            DataType::Dictionary(_, labels) => {
                let labels = labels.as_ref().clone();
                self.of_type(labels)
            }
            _ => self,
        }
    }

    /// The same rows in another type. Facts about the arrays of parts do not hold for it.
    fn of_type(self, data_type: DataType) -> Self {
        let facts = Facts { data_type, outline_tells_nulls: false, fields_lie_apart: false, ..self.facts };
        Self { facts, ..self }
    }

    /// The same rows, cut where parts end: blocks of statistics and row groups do not cross these ends.
    pub fn cut(self) -> Self {
        let facts = Facts { cuts: Cuts::new(self.starts.iter().copied()), ..self.facts };
        Self { facts, ..self }
    }

    fn unsupported(reason: impl ToString) -> Error {
        Error::unsupported("rows of several", reason)
    }

    /// The parts that hold these rows, each with its first row and its rows in the range.
    fn within(&self, rows: RowRange) -> Result<impl Iterator<Item = Part<'_>>, Error> {
        if rows.start > rows.end || rows.end > self.facts.len {
            return Err(Self::unsupported(format!("rows {rows:?} of {}", self.facts.len)));
        }
        let first = self.starts.partition_point(|start| *start <= rows.start).saturating_sub(1);
        let parts = self.parts.iter().zip(self.starts.windows(2)).skip(first);
        let parts = parts.map_while(move |(part, bounds)| {
            let (start, end) = (bounds[0], bounds[1]);
            (start < rows.end)
                .then(|| (part, start, rows.start.max(start) - start..rows.end.min(end).max(start) - start))
        });
        Ok(parts.filter(|(_, _, within)| within.start < within.end))
    }

    /// Joins the arrays that `read` gives for the parts of a range.
    fn joined(
        &self,
        range: RowRange,
        read: &dyn Fn(&dyn Rows, RowRange) -> Result<ArrayRef, Error>,
    ) -> Result<ArrayRef, Error> {
        let parts = self.within(range)?.map(|(part, _, within)| read(part.as_ref(), within));
        let arrays: Vec<ArrayRef> = parts.collect::<Result<_, Error>>()?;
        match arrays.as_slice() {
            [] => Ok(new_empty_array(&self.facts.data_type)),
            [one] => Ok(one.clone()),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several).map_err(Self::unsupported)
            }
        }
    }

    /// Converts an array of a part to the type of the chain.
    fn shown(&self, array: ArrayRef) -> Result<ArrayRef, Error> {
        if let Some(labelled) = array.as_any_dictionary_opt().filter(|_| !self.is_plain()) {
            return take(labelled.values().as_ref(), labelled.keys(), None).map_err(Self::unsupported);
        }
        let Some(factor) = self.factor else { return Ok(array) };
        let floats = array.as_primitive_opt::<Float64Type>();
        let floats = floats.ok_or_else(|| Self::unsupported(format!("{} as floats", array.data_type())))?;
        let rounded: Int64Array = floats.unary(|value| (value * factor).round() as i64);
        Ok(Arc::new(rounded))
    }

    /// Whether arrays of parts need no conversion.
    fn is_plain(&self) -> bool {
        self.factor.is_none() && self.parts.first().is_none_or(|part| *part.data_type() == self.facts.data_type)
    }
}

impl Rows for ChainRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.joined(range, &|part, within| self.shown(part.array(within, interrupt)?))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        // A joined array exists twice; without a dictionary, a label exists once for each row.
        let most = if self.is_plain() { bytes / 2 } else { bytes / 16 };
        let (mut end, mut taken) = (range.start, 0_u64);
        for (part, start, within) in self.within(range)? {
            let last = start + within.end;
            let fitting = part.fitting(within, most.saturating_sub(taken), interrupt)?;
            if taken > 0 && taken.saturating_add(fitting.bytes) > most {
                break;
            }
            (end, taken) = (start + fitting.end, taken.saturating_add(fitting.bytes));
            if end < last {
                break;
            }
        }
        Ok(Fitting { end, bytes: taken.saturating_mul(bytes.checked_div(most).unwrap_or(2)) })
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        if !self.is_plain() {
            return Ok(None);
        }
        let mut outlines = Vec::new();
        for (part, _, within) in self.within(range)? {
            let Some(outline) = part.outline(within, interrupt)? else { return Ok(None) };
            outlines.push(outline);
        }
        let outlines: Vec<&dyn Array> = outlines.iter().map(AsRef::as_ref).collect();
        // Outlines of different types cannot be joined, and then nothing is known.
        Ok(concat(&outlines).ok())
    }

    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if !self.facts.fields_lie_apart {
            return self.array(range, interrupt);
        }
        self.joined(range, &|part, within| part.array_for_field(fields, within, interrupt))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{DictionaryArray, StringArray};

    use super::*;
    use crate::store::rows::in_memory::MemoryRows;
    use crate::table::HeldRows;

    fn chain(arrays: Vec<ArrayRef>) -> ChainRows {
        let held = |array| Arc::new(HeldRows::new(array, false, Hints::default())) as Arc<dyn Rows>;
        ChainRows::new(arrays.into_iter().map(held).collect()).unwrap().with_texts()
    }

    #[test]
    fn rows_of_several_are_those_of_each_in_turn() {
        let lengths = [3_i64, 0, 1, 5, 0];
        let mut next = 0_i64;
        let parts = lengths.map(|length| {
            let part: Int64Array = (next..next + length).collect();
            next += length;
            Arc::new(part) as ArrayRef
        });
        let chain = chain(parts.to_vec());
        assert_eq!(chain.facts().len, 9);
        for start in 0..=9_u64 {
            for end in start..=9 {
                let array = chain.array(start..end, &Interrupt::new()).unwrap();
                let expected: Int64Array = (start as i64..end as i64).collect();
                assert_eq!(array.as_primitive::<Int64Type>(), &expected, "{start}..{end}");
                let fitting = chain.fitting(start..end, 40, &Interrupt::new()).unwrap();
                assert!(fitting.end <= end && (fitting.end > start || start == end), "{start}..{end}: {fitting:?}");
            }
        }
        assert!(chain.array(3..10, &Interrupt::new()).is_err());
    }

    #[test]
    fn what_parts_know_of_where_they_lie_is_known_of_all() {
        let memory = |bytes| MemoryRows::new(Arc::new(Int64Array::from(vec![0; 3]))).strided(bytes);
        let chain = ChainRows::new(vec![Arc::new(memory(24)), Arc::new(memory(40).alike())]).unwrap().cut();
        assert_eq!((chain.facts().stride, chain.facts().cuts.clone()), (Some(40), Cuts::new([3, 6])));
        let none = Interrupt::new();
        let ends: Vec<u64> = (0..7).map(|row| (&chain as &dyn Rows).alike_until(row, &none).unwrap()).collect();
        assert_eq!(ends, [0, 1, 2, 6, 6, 6, 6]);
        let lost = ChainRows::new(vec![Arc::new(memory(24)), Arc::new(memory(24).lost())]).unwrap();
        assert!(lost.facts().containers.examine(&none).is_err() && chain.facts().containers.examine(&none).is_ok());
    }

    #[test]
    fn labels_of_different_sets_become_texts() {
        let of =
            |texts: [Option<&str>; 2]| Arc::new(texts.into_iter().collect::<DictionaryArray<Int64Type>>()) as ArrayRef;
        let chain = chain(vec![of([Some("a"), None]), of([Some("b"), Some("b")])]);
        let array = chain.array(0..4, &Interrupt::new()).unwrap();
        assert_eq!(array.as_string::<i32>(), &StringArray::from(vec![Some("a"), None, Some("b"), Some("b")]));
    }
}
