//! Joins columns into one column of compounds.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, StructArray};
use arrow_schema::{DataType, Field, Fields};

use crate::source::Interrupt;
use crate::store::{Containers, Error, Facts, Fitting, Hints, RowRange, Rows};

/// Compounds with a field for each column, as many as the shortest column has rows.
#[derive(Debug)]
pub struct CompoundRows {
    fields: Vec<Arc<dyn Rows>>,
    facts: Facts,
    path: String,
}

impl CompoundRows {
    /// Joins `columns`, each with the name of its field.
    ///
    /// # Errors
    /// There is no field.
    pub fn new(path: String, columns: Vec<(String, Arc<dyn Rows>)>) -> Result<Self, String> {
        let len = columns.iter().map(|(_, rows)| rows.len()).min().ok_or("no field can be read")?;
        let named = columns.iter().map(|(name, rows)| Field::new(name, rows.data_type().clone(), true));
        let data_type = DataType::Struct(named.collect());
        let fields: Vec<Arc<dyn Rows>> = columns.into_iter().map(|(_, rows)| rows).collect();
        let hints = fields.iter().map(|field| Hints { nullable: field.nullable(), ..field.hints().clone() });
        let facts = Facts {
            hints: Hints { fields: hints.collect(), ..Hints::default() },
            natural_rows: fields.iter().filter_map(|field| field.natural_rows()).max(),
            outline_tells_nulls: fields
                .iter()
                .all(|field| field.outline_tells_nulls() || !field.nullable() && field.data_type().is_numeric()),
            fields_lie_apart: true,
            containers: Containers::of_all(&fields),
            ..Facts::new(len, data_type)
        };
        Ok(Self { fields, facts, path })
    }

    fn failed(&self, reason: String) -> Error {
        Error::unsupported(&self.path, reason)
    }
}

impl Rows for CompoundRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let DataType::Struct(fields) = &self.facts.data_type else { return Err(self.failed("no fields".into())) };
        let arrays = self.fields.iter().map(|field| field.array(range.clone(), interrupt));
        let compounds = StructArray::try_new(fields.clone(), arrays.collect::<Result<_, _>>()?, None);
        Ok(Arc::new(compounds.map_err(|error| self.failed(error.to_string()))?))
    }

    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let Some((at, within)) = fields.split_first() else { return self.array(range, interrupt) };
        let field = self.fields.get(*at).ok_or_else(|| self.failed(format!("there is no field {at}")))?;
        let array = field.array_for_field(within, range, interrupt)?;
        let nothing: ArrayRef = Arc::new(NullArray::new(array.len()));
        let columns: Vec<ArrayRef> = std::iter::repeat_n(nothing, *at).chain([array]).collect();
        let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
        let compounds = StructArray::try_new(fields.collect(), columns.clone(), None);
        Ok(Arc::new(compounds.map_err(|error| self.failed(error.to_string()))?))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        // Fields may differ greatly in size: the one with the fewest fitting rows decides for all.
        let share = bytes / (self.fields.len() as u64).max(1);
        let (mut end, mut each) = (range.end, Vec::with_capacity(self.fields.len()));
        for field in &self.fields {
            let fitting = field.fitting(range.start..end, share, interrupt)?;
            end = end.min(fitting.end);
            each.push(fitting);
        }
        let mut taken = 0_u64;
        for (field, fitting) in self.fields.iter().zip(each) {
            // Asking all fields again would double the questions at each level of nesting.
            let fitting = match fitting.end == end {
                true => fitting,
                false => field.fitting(range.start..end, u64::MAX, interrupt)?,
            };
            taken = taken.saturating_add(fitting.bytes);
        }
        Ok(Fitting { end, bytes: taken })
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let DataType::Struct(fields) = &self.facts.data_type else { return Ok(None) };
        let mut outlines = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let Some(outline) = field.outline(range.clone(), interrupt)? else { return Ok(None) };
            outlines.push(outline);
        }
        let named = fields.iter().zip(&outlines);
        let fields: Fields =
            named.map(|(field, outline)| Field::new(field.name(), outline.data_type().clone(), true)).collect();
        Ok(StructArray::try_new(fields, outlines, None).ok().map(|outline| Arc::new(outline) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use arrow_array::new_null_array;

    use super::*;

    /// Eight bytes a row, of which it is counted how often they are asked for.
    #[derive(Debug)]
    struct Counted(Arc<AtomicU64>, Facts);

    impl Rows for Counted {
        fn facts(&self) -> &Facts {
            &self.1
        }

        fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
            Ok(new_null_array(&DataType::Int64, (range.end - range.start) as usize))
        }

        fn fitting(&self, range: RowRange, bytes: u64, _: &Interrupt) -> Result<Fitting, Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Fitting::fixed(&range, 8, bytes))
        }
    }

    #[test]
    fn a_field_of_many_compounds_is_asked_a_few_times_what_fits() {
        let asked = Arc::new(AtomicU64::new(0));
        let mut rows: Arc<dyn Rows> = Arc::new(Counted(Arc::clone(&asked), Facts::new(100, DataType::Int64)));
        for _ in 0..20 {
            rows = Arc::new(CompoundRows::new("/t".into(), vec![("field".into(), rows)]).unwrap());
        }
        let fitting =
            |bytes| rows.fitting(0..100, bytes, &Interrupt::new()).map(|fitting| (fitting.end, fitting.bytes));
        assert_eq!(fitting(1 << 20).unwrap(), (100, 800));
        assert_eq!(fitting(100).unwrap(), (12, 96));
        assert!(asked.load(Ordering::Relaxed) < 100, "{asked:?}");
    }
}
