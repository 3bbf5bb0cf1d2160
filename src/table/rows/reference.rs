//! A column of references: shown as the HDF5 paths they lead to, which only the worker can tell.

use std::sync::Arc;

use arrow::array::{ArrayRef, LargeStringArray};
use arrow::datatypes::DataType;

use crate::source::Interrupt;
use crate::store::{Dataset, Error, RowRange, Rows};

/// References asked for at once: each takes the worker some microseconds and some hundred bytes.
const PIECE: u64 = 8192;

/// References as text; a null or dangling one is missing.
#[derive(Debug)]
pub struct ReferenceRows {
    dataset: Arc<Dataset>,
    len: u64,
}

impl ReferenceRows {
    /// The first `len` elements of `dataset`, which must be of a reference type.
    pub fn new(dataset: Arc<Dataset>, len: u64) -> Self {
        Self { len: len.min(dataset.len()), dataset }
    }
}

impl Rows for ReferenceRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &DataType::LargeUtf8
    }

    fn nullable(&self) -> bool {
        true
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = crate::store::count_of(&range, self.len, self.dataset.path())?;
        let mut paths = Vec::with_capacity(count.min(PIECE as usize));
        let mut start = range.start;
        while start < range.end {
            let piece = PIECE.min(range.end - start);
            paths.extend(self.dataset.references(start, piece, interrupt)?);
            start += piece;
        }
        Ok(Arc::new(LargeStringArray::from(paths)))
    }

    fn stored_width(&self) -> Option<u64> {
        Some(self.dataset.element_size())
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.dataset.append_once(offset, length, out, interrupt)
    }

    fn natural_rows(&self) -> Option<u64> {
        self.dataset.natural_rows()
    }
}
