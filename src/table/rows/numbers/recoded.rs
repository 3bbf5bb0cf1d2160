//! Integers in R's meaning: level numbers, which count from one, and logicals.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, NullArray};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, StoredBytes, Tally};

/// The code of a missing logical.
const MISSING: i64 = 2;

/// Integers recoded as other values. Stored bytes do not change.
#[derive(Debug)]
pub struct RecodedRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
    path: String,
    /// Counts numbers that are not logicals.
    tally: Arc<Tally>,
}

impl RecodedRows {
    /// Numbers from one become codes from zero. Zero becomes −1, which means missing among codes.
    ///
    /// # Errors
    /// The type of rows that are not integers.
    pub fn from_one(path: String, rows: Arc<dyn Rows>) -> Result<Self, String> {
        Self::new(path, rows, DataType::Int64, Arc::default())
    }

    /// Zeros and ones become booleans, two becomes null. Any other number becomes null, and `tally` counts it.
    ///
    /// # Errors
    /// The type of rows that are not integers.
    pub fn logicals(path: String, rows: Arc<dyn Rows>, tally: Arc<Tally>) -> Result<Self, String> {
        Self::new(path, rows, DataType::Boolean, tally)
    }

    fn new(path: String, rows: Arc<dyn Rows>, data_type: DataType, tally: Arc<Tally>) -> Result<Self, String> {
        match rows.data_type() {
            whole if whole.is_integer() => {
                let inner = rows.facts();
                let facts = Facts {
                    nullable: data_type == DataType::Boolean || inner.nullable,
                    data_type,
                    hints: Hints::default(),
                    codes: 0,
                    outline_tells_nulls: false,
                    ..inner.clone()
                };
                Ok(Self { rows, facts, path, tally })
            }
            other => Err(format!("numbers of type {other}")),
        }
    }

    fn logical(&self, numbers: &Int64Array, range: RowRange) -> BooleanArray {
        let mut odd = Oddities::new();
        odd.add_where(Oddity::InvalidBoolean, numbers.len(), |row| {
            numbers.is_valid(row) && !(0..=MISSING).contains(&numbers.value(row))
        });
        self.tally.add(range, &odd);
        numbers.iter().map(|number| number.filter(|number| (0..MISSING).contains(number)).map(|n| n == 1)).collect()
    }
}

impl Rows for RecodedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.rows.array(range.clone(), interrupt)?;
        let numbers = widen::signed(&array)
            .ok_or_else(|| Error::unsupported(&self.path, format!("numbers of type {}", array.data_type())))?;
        Ok(match self.facts.data_type {
            DataType::Boolean => Arc::new(self.logical(&numbers, range)),
            _ => Arc::new(numbers.unary::<_, Int64Type>(|number| number.wrapping_sub(1))),
        })
    }

    fn fitting(&self, range: RowRange, bytes: u64, _: &Interrupt) -> Result<Fitting, Error> {
        // The widened numbers, and their results.
        Ok(Fitting::fixed(&range, 24, bytes))
    }

    fn outline(&self, range: RowRange, _: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(Some(Arc::new(NullArray::new(count))))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.rows.bytes()
    }
}
