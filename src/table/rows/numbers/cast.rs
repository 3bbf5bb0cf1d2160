//! Rows whose numbers are widened, or that may be missing by their type alone: what files of one dataset need to have
//! one schema.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type};
use arrow_array::{ArrayRef, Float64Array, new_empty_array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Cuts, Error, Fitting, Hints, RowRange, Rows, Shared};

/// The type to which numbers of two types can be cast without loss; `None` where there is none. Two integers become
/// `int64`, or `uint64` where both are unsigned; floats, and floats with integers of at most 32 bits, `float64`.
pub fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    let fits_float =
        |number: &DataType| number.is_floating() || number.primitive_width().is_some_and(|width| width < 8);
    match (a, b) {
        _ if a == b => Some(a.clone()),
        _ if a.is_unsigned_integer() && b.is_unsigned_integer() => Some(DataType::UInt64),
        _ if a.is_integer() && b.is_integer() => {
            [a, b].iter().all(|number| **number != DataType::UInt64).then_some(DataType::Int64)
        }
        _ if a.is_floating() || b.is_floating() => {
            let are_numbers = [a, b].iter().all(|number| number.is_floating() || number.is_integer());
            (are_numbers && fits_float(a) && fits_float(b)).then_some(DataType::Float64)
        }
        _ => None,
    }
}

/// The same values in a wider type, or in a column in which values may be missing.
#[derive(Debug)]
pub struct CastRows {
    rows: Arc<dyn Rows>,
    /// `Int64`, `UInt64` or `Float64`, of no rows any; `None` of any rows as they are.
    cast: Option<DataType>,
    nullable: bool,
}

impl CastRows {
    /// `cast` must be what [`common_type`] gives, or there must be no rows; without it only `nullable` changes.
    pub fn new(rows: Arc<dyn Rows>, cast: Option<DataType>, nullable: bool) -> Self {
        Self { rows, cast, nullable }
    }

    fn none(&self) -> Error {
        Error::Unsupported { path: "cast".into(), reason: format!("{} has other bytes as stored", self.data_type()) }
    }
}

impl Rows for CastRows {
    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn data_type(&self) -> &DataType {
        self.cast.as_ref().unwrap_or_else(|| self.rows.data_type())
    }

    fn nullable(&self) -> bool {
        self.nullable
    }

    fn hints(&self) -> Hints {
        let hints = self.rows.hints();
        if self.cast.is_some() { Hints { nan: hints.nan, ..Hints::default() } } else { hints }
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.rows.examine(interrupt)
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if let Some(cast) = self.cast.as_ref().filter(|_| self.is_empty()) {
            return Ok(new_empty_array(cast));
        }
        let array = self.rows.array(range, interrupt)?;
        let float = |array: &ArrayRef| match array.data_type() {
            DataType::Float16 => Some(array.as_primitive::<Float16Type>().unary(f64::from)),
            DataType::Float32 => Some(array.as_primitive::<Float32Type>().unary(f64::from)),
            DataType::Float64 => Some(array.as_primitive().clone()),
            // Of at most 32 bits.
            _ => widen::signed(array).map(|whole| whole.unary(|number| number as f64)),
        };
        let cast: Option<ArrayRef> = match &self.cast {
            None => return Ok(array),
            Some(DataType::Int64) => widen::signed(&array).map(|array| Arc::new(array) as ArrayRef),
            Some(DataType::UInt64) => widen::unsigned(&array).map(|array| Arc::new(array) as ArrayRef),
            Some(_) => float(&array).map(|array: Float64Array| Arc::new(array) as ArrayRef),
        };
        cast.ok_or_else(|| self.none())
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        // What is cast is there twice, and at most eight times as wide.
        self.rows.fitting(range, if self.cast.is_some() { bytes / 9 } else { bytes }, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Shared>, Error> {
        if self.cast.is_some() { Ok(None) } else { self.rows.shared(range, interrupt) }
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        if self.cast.is_some() { Ok(None) } else { self.rows.outline(range, interrupt) }
    }

    fn outline_tells_nulls(&self) -> bool {
        self.cast.is_none() && self.rows.outline_tells_nulls()
    }

    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        self.rows.alike_until(row, interrupt)
    }

    fn stored_width(&self) -> Option<u64> {
        self.rows.stored_width().filter(|_| self.cast.is_none())
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        if self.cast.is_some() {
            return Err(self.none());
        }
        self.rows.append_stored(offset, length, out, interrupt)
    }

    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        if self.cast.is_some() { Ok(false) } else { self.rows.append_byte_keys(range, out, interrupt) }
    }

    fn natural_rows(&self) -> Option<u64> {
        self.rows.natural_rows()
    }

    fn stride(&self) -> Option<u64> {
        self.rows.stride()
    }

    fn cuts(&self) -> Option<&Cuts> {
        self.rows.cuts()
    }
}
