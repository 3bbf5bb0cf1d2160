//! A column that is entirely missing.

use std::sync::Arc;

use arrow_array::{ArrayRef, NullArray, UInt64Array, new_null_array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::{Alike, Error, Facts, Hints, RowRange, Rows, Summaries, TextLength, count_of};

/// Rows that are all null: a column that one of several tables lacks. They take memory only while being read.
#[derive(Debug)]
pub struct AbsentRows {
    facts: Facts,
}

impl AbsentRows {
    /// `len` nulls of a type.
    pub fn new(len: u64, data_type: DataType) -> Self {
        let hints = hints(&data_type, true);
        Self { facts: Facts { nullable: true, hints, alike: Alike::all(), ..Facts::new(len, data_type) } }
    }
}

/// Hints for each part of a type: whether it can be missing, as the type states.
fn hints(data_type: &DataType, nullable: bool) -> Hints {
    let (items, fields) = match data_type {
        DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) => {
            (Some(Box::new(hints(item.data_type(), item.is_nullable()))), Vec::new())
        }
        DataType::Struct(fields) => {
            (None, fields.iter().map(|field| hints(field.data_type(), field.is_nullable())).collect())
        }
        _ => (None, Vec::new()),
    };
    Hints { texts: TextLength::Shown(0), nullable, items, fields, ..Hints::default() }
}

impl Rows for AbsentRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        Ok(new_null_array(&self.facts.data_type, count_of(&range, self.facts.len, "")?))
    }

    fn outline(&self, range: RowRange, _: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = count_of(&range, self.facts.len, "")?;
        Ok(match &self.facts.data_type {
            DataType::LargeUtf8 | DataType::Utf8 => Some(Arc::new(UInt64Array::new_null(count))),
            nested if nested.is_nested() => None,
            _ => Some(Arc::new(NullArray::new(count))),
        })
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for AbsentRows {
    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    #[test]
    fn any_number_of_rows_is_missing() {
        let texts = AbsentRows::new(u64::MAX, DataType::LargeUtf8);
        let array = texts.array(u64::MAX - 3..u64::MAX, &Interrupt::new()).unwrap();
        assert_eq!((array.len(), array.null_count(), array.data_type()), (3, 3, &DataType::LargeUtf8));
        assert!(texts.array(0..5, &Interrupt::new()).is_ok_and(|array| array.null_count() == 5));
        assert!(AbsentRows::new(4, DataType::Int8).array(0..5, &Interrupt::new()).is_err());
    }
}
