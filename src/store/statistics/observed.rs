//! Rows that teach their statistics to whoever listens.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::Learner;
use crate::source::Interrupt;
use crate::store::{Error, Lent, RowRange, Rows};

/// The rows of a column, whose arrays a [`Learner`] sees as they pass.
#[derive(Debug)]
pub struct Observed {
    rows: Arc<dyn Rows>,
    learner: Arc<Learner>,
}

impl Observed {
    /// `learner` must be one for these rows.
    pub fn new(rows: Arc<dyn Rows>, learner: Arc<Learner>) -> Self {
        Self { rows, learner }
    }
}

impl Rows for Observed {
    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn data_type(&self) -> &DataType {
        self.rows.data_type()
    }

    fn nullable(&self) -> bool {
        self.rows.nullable()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.rows.array(range.clone(), interrupt)?;
        // An array of another length would teach wrong things of the wrong rows.
        if array.len() as u64 == range.end.saturating_sub(range.start) {
            self.learner.observe(range.start, array.as_ref());
        }
        Ok(array)
    }

    fn stored_width(&self) -> Option<u64> {
        self.rows.stored_width()
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.rows.append_stored(offset, length, out, interrupt)
    }

    fn lend_stored(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        self.rows.lend_stored(offset, length, interrupt)
    }

    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        self.rows.append_byte_keys(range, out, interrupt)
    }

    fn natural_rows(&self) -> Option<u64> {
        self.rows.natural_rows()
    }
}
