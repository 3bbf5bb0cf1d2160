//! Rows of one type that are stored in several places, one behind the other; and numbers that are stored in another
//! unit. What search indexes are made of.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use crate::source::Interrupt;
use crate::store::{Error, RowRange, Rows};

/// The rows of several, which are of one type.
#[derive(Debug)]
pub struct ChainRows {
    parts: Vec<Arc<dyn Rows>>,
    data_type: DataType,
    /// Floats are multiplied by this, and rounded to integers.
    factor: Option<f64>,
    len: u64,
}

impl ChainRows {
    /// `None` where types differ, or there is nothing.
    pub fn new(parts: Vec<Arc<dyn Rows>>) -> Option<Self> {
        let data_type = parts.first()?.data_type().clone();
        let len = parts.iter().try_fold(0_u64, |len, part| len.checked_add(part.len()))?;
        let is_one = parts.iter().all(|part| *part.data_type() == data_type);
        is_one.then_some(Self { parts, data_type, factor: None, len })
    }

    /// The same rows in another unit, as integers; `None` where they are not float64.
    pub fn rounded(self, factor: f64) -> Option<Self> {
        let data_type = DataType::Int64;
        (self.data_type == DataType::Float64).then_some(Self { factor: Some(factor), data_type, ..self })
    }

    fn unsupported(reason: String) -> Error {
        Error::Unsupported { path: "search index".into(), reason }
    }
}

impl Rows for ChainRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nullable(&self) -> bool {
        self.parts.iter().any(|part| part.nullable())
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if range.start > range.end || range.end > self.len {
            return Err(Self::unsupported(format!("rows {range:?} of {}", self.len)));
        }
        let (mut arrays, mut first) = (Vec::new(), 0);
        for part in &self.parts {
            let end = first + part.len();
            let (from, to) = (range.start.max(first), range.end.min(end));
            // An empty range takes the type of the first part.
            if from < to || range.is_empty() && arrays.is_empty() {
                let within = if from < to { from - first..to - first } else { 0..0 };
                arrays.push(part.array(within, interrupt)?);
            }
            first = end;
        }
        let array = match arrays.as_slice() {
            [one] => one.clone(),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several).map_err(|error| Self::unsupported(error.to_string()))?
            }
        };
        let Some(factor) = self.factor else { return Ok(array) };
        let floats = array.as_primitive_opt::<Float64Type>();
        let floats = floats.ok_or_else(|| Self::unsupported(format!("{} as floats", array.data_type())))?;
        let rounded: Int64Array = floats.unary(|value| (value * factor).round() as i64);
        Ok(Arc::new(rounded))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Self::unsupported("it has no bytes of its own".into()))
    }

    fn natural_rows(&self) -> Option<u64> {
        None
    }
}
