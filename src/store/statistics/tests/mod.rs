//! Statistics of arrays in memory, against a model that looks at one value after the other.

mod cases;
mod model;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use super::{Learner, Statistics};
use crate::catalogue::ObjectId;
use crate::source::Interrupt;
use crate::store::{Error, RowRange, Rows};

/// Rows of an Arrow array.
#[derive(Debug)]
struct Memory {
    array: ArrayRef,
    /// Rows handed out.
    read: AtomicU64,
    /// No array may be longer.
    most: u64,
}

impl Memory {
    fn new(array: ArrayRef) -> Self {
        Self { array, read: AtomicU64::new(0), most: u64::MAX }
    }
}

impl Rows for Memory {
    fn len(&self) -> u64 {
        self.array.len() as u64
    }

    fn data_type(&self) -> &DataType {
        self.array.data_type()
    }

    fn nullable(&self) -> bool {
        self.array.is_nullable()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        interrupt.check()?;
        let rows = range.end - range.start;
        if rows > self.most {
            let (path, what, bytes) = (String::new(), "rows".to_owned(), rows);
            return Err(Error::TooLarge { path, what, bytes, limit: self.most, option: "none" });
        }
        self.read.fetch_add(rows, Ordering::Relaxed);
        Ok(self.array.slice(range.start as usize, rows as usize))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        unreachable!("statistics ask for arrays")
    }

    fn natural_rows(&self) -> Option<u64> {
        Some(10_000)
    }
}

const ID: ObjectId = ObjectId { file: 0, address: 96 };

/// A learner for an array, of no file.
fn learner(array: &ArrayRef) -> Learner {
    Learner::new(&Weak::new(), "/t/x", ID, &Memory::new(array.clone())).unwrap()
}

/// The statistics of an array, learnt in one go.
fn learn(array: ArrayRef) -> Arc<Statistics> {
    let learner = learner(&array);
    learner.observe(0, array.as_ref());
    learner.known().unwrap()
}
