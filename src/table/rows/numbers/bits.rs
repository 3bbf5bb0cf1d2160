//! A column of booleans stored as bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::{Error, Facts, RowRange, Rows};

/// The bits of bytes, the least significant first, or their inverse.
#[derive(Debug)]
pub struct BitRows {
    bytes: Arc<dyn Rows>,
    facts: Facts,
    is_opposite: bool,
    path: String,
}

impl BitRows {
    /// The first `len` bits.
    ///
    /// # Errors
    /// The rows are not `uint8`, or have fewer bytes than `len` bits need.
    pub fn new(path: String, bytes: Arc<dyn Rows>, len: u64, is_opposite: bool) -> Result<Self, String> {
        if *bytes.data_type() != DataType::UInt8 {
            return Err(format!("bits of type {}", bytes.data_type()));
        }
        if bytes.len() < len.div_ceil(8) {
            return Err(format!("{} bytes of {len} bits", bytes.len()));
        }
        let natural_rows = bytes.natural_rows().and_then(|rows| rows.checked_mul(8));
        let facts =
            Facts { natural_rows, containers: bytes.facts().containers.clone(), ..Facts::new(len, DataType::Boolean) };
        Ok(Self { bytes, facts, is_opposite, path })
    }
}

impl Rows for BitRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = crate::store::count_of(&range, self.facts.len, &self.path)?;
        let first = range.start / 8;
        let bytes = self.bytes.array(first..range.end.div_ceil(8).max(first), interrupt)?;
        let bytes = Buffer::from(bytes.as_primitive::<UInt8Type>().values().inner().as_slice());
        let bits = BooleanBuffer::new(bytes, (range.start % 8) as usize, count);
        let bits = if self.is_opposite { !&bits } else { bits };
        Ok(Arc::new(BooleanArray::new(bits, None)))
    }
}
