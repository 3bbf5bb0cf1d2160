//! Numbers that are stored in other units than they are shown in.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float64Array};
use arrow_schema::{DataType, Field};

use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::{Error, Fitting, Hints, Lent, RowRange, Rows, Span};

/// Numbers, or lists of one length, multiplied and moved: stored · factor + offset, in float64. Bytes as stored stay
/// those of the numbers.
#[derive(Debug)]
pub struct ScaledRows {
    numbers: Arc<dyn Rows>,
    /// One, or one for each place of a list.
    factors: Vec<f64>,
    offset: f64,
    data_type: DataType,
    path: String,
}

impl ScaledRows {
    /// `None` where `numbers` are none, nor lists that `factors` fit.
    pub fn new(path: String, numbers: Arc<dyn Rows>, factors: Vec<f64>, offset: f64) -> Option<Self> {
        let is_number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating();
        let data_type = match numbers.data_type() {
            number if is_number(number) && factors.len() == 1 => DataType::Float64,
            DataType::FixedSizeList(item, places) if is_number(item.data_type()) => {
                let fits = factors.len() == 1 || usize::try_from(*places) == Ok(factors.len());
                let item = Field::new(item.name(), DataType::Float64, item.is_nullable());
                fits.then(|| DataType::FixedSizeList(Arc::new(item), *places))?
            }
            _ => return None,
        };
        Some(Self { numbers, factors, offset, data_type, path })
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::Unsupported { path: self.path.clone(), reason: reason.to_string() }
    }

    fn scaled(&self, array: &dyn Array) -> Result<Float64Array, Error> {
        let mut numbers = floats(array).ok_or_else(|| self.failed(format!("numbers of type {}", array.data_type())))?;
        if let [factor] = self.factors[..] {
            return Ok(numbers.unary(|number| number * factor + self.offset));
        }
        let (_, values, nulls) = numbers.into_parts();
        let mut values = values.to_vec();
        for row in values.chunks_mut(self.factors.len()) {
            row.iter_mut().zip(&self.factors).for_each(|(number, factor)| *number = *number * factor + self.offset);
        }
        numbers = Float64Array::new(values.into(), nulls);
        Ok(numbers)
    }
}

/// Any numbers as float64; `None` of anything else.
fn floats(array: &dyn Array) -> Option<Float64Array> {
    macro_rules! of {
        ($type:ty) => {
            array.as_primitive::<$type>().unary(|number| number as f64)
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Float16 => array.as_primitive::<Float16Type>().unary(f64::from),
        DataType::Float32 => of!(Float32Type),
        DataType::Float64 => array.as_primitive::<Float64Type>().clone(),
        _ => return None,
    })
}

impl Rows for ScaledRows {
    fn len(&self) -> u64 {
        self.numbers.len()
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.numbers.examine(interrupt)
    }

    fn nullable(&self) -> bool {
        self.numbers.nullable()
    }

    fn hints(&self) -> Hints {
        let stored = self.numbers.hints();
        let items = stored.items.map(|items| Box::new(Hints { nullable: items.nullable, ..Hints::default() }));
        Hints { nullable: stored.nullable, items, ..Hints::default() }
    }

    fn stored_type(&self) -> Option<&Datatype> {
        self.numbers.stored_type()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.numbers.array(range, interrupt)?;
        let (DataType::FixedSizeList(item, places), Some(lists)) = (&self.data_type, array.as_fixed_size_list_opt())
        else {
            return Ok(Arc::new(self.scaled(&array)?));
        };
        let numbers = Arc::new(self.scaled(lists.values())?);
        let nulls = lists.nulls().cloned();
        let scaled = FixedSizeListArray::try_new_with_length(item.clone(), *places, numbers, nulls, lists.len());
        Ok(Arc::new(scaled.map_err(|error| self.failed(error))?))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        // What is stored is there as well, at least an eighth as wide.
        self.numbers.fitting(range, bytes / 9, interrupt)
    }

    fn stored_width(&self) -> Option<u64> {
        self.numbers.stored_width()
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.numbers.append_stored(offset, length, out, interrupt)
    }

    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.numbers.stored_span(offset, length, interrupt)
    }

    fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        self.numbers.lend_scanned(offset, length, interrupt)
    }

    fn is_decoded(&self) -> bool {
        self.numbers.is_decoded()
    }

    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        self.numbers.alike_until(row, interrupt)
    }

    fn natural_rows(&self) -> Option<u64> {
        self.numbers.natural_rows()
    }

    fn stride(&self) -> Option<u64> {
        self.numbers.stride()
    }
}
