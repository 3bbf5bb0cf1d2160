//! A column in memory.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::{Error, Hints, RowRange, Rows};

/// The rows of an array. They have no bytes as stored.
#[derive(Debug)]
pub struct HeldRows {
    array: ArrayRef,
    data_type: DataType,
    nullable: bool,
    hints: Hints,
}

impl HeldRows {
    /// The rows of `array`, which may be missing where it says so or `nullable` does.
    pub fn new(array: ArrayRef, nullable: bool, hints: Hints) -> Self {
        let (data_type, nullable) = (array.data_type().clone(), nullable || array.is_nullable());
        Self { array, data_type, nullable, hints }
    }
}

impl Rows for HeldRows {
    fn len(&self) -> u64 {
        self.array.len() as u64
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nullable(&self) -> bool {
        self.nullable
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        let past = || Error::Unsupported { path: String::new(), reason: format!("rows {range:?} of {}", self.len()) };
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= self.len()).ok_or_else(past)?;
        // Within the array.
        Ok(self.array.slice(range.start as usize, length as usize))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported { path: String::new(), reason: "rows in memory have no bytes as stored".into() })
    }

    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }

    fn natural_rows(&self) -> Option<u64> {
        None
    }
}
