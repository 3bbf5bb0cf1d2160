//! Variable-length strings as they are stored: for `.raw`, where nothing is missing and no encoding is assumed.

use std::sync::Arc;

use ::arrow::array::{ArrayRef, LargeBinaryBuilder};
use ::arrow::datatypes::DataType;

use super::arrow::strip;
use super::{Dataset, Error, RowRange, Rows, count_of};
use crate::catalogue::Padding;
use crate::source::Interrupt;

/// The bytes of each string up to its first NUL, the fill value like any other.
#[derive(Debug)]
pub struct StoredStrings {
    dataset: Arc<Dataset>,
    len: u64,
}

impl StoredStrings {
    /// The first `len` elements of `dataset`, which must be of variable-length strings.
    pub fn new(dataset: Arc<Dataset>, len: u64) -> Self {
        Self { len: len.min(dataset.len()), dataset }
    }
}

impl Rows for StoredStrings {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &DataType::LargeBinary
    }

    fn nullable(&self) -> bool {
        false
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.len, self.dataset.path())?;
        let batch = self.dataset.read_elements(range.clone(), interrupt)?;
        let width = usize::try_from(self.dataset.element_size()).unwrap_or(usize::MAX).max(1);
        let mut strings = LargeBinaryBuilder::with_capacity(count, batch.bytes.len());
        let mut cursor = batch.heap.cursor();
        for (row, descriptor) in (range.start..).zip(batch.bytes.chunks_exact(width)) {
            let text = cursor.resolve(descriptor, 1).map_err(|cause| cause.at(self.dataset.path(), row))?;
            strings.append_value(strip(text, Padding::NullTerminated));
        }
        Ok(Arc::new(strings.finish()))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported {
            path: self.dataset.path().to_owned(),
            reason: "strings of variable length have no fixed width".into(),
        })
    }

    fn natural_rows(&self) -> Option<u64> {
        self.dataset.natural_rows()
    }
}
