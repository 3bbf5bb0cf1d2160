//! Statistics of arrays in memory, compared with a model that checks one value after the other.

mod cases;
mod model;
mod opening;
mod stored;

use std::sync::{Arc, Weak};

use arrow_array::ArrayRef;

use super::Learner;
use crate::catalogue::{ColumnId, ObjectId};
use crate::store::Blocked;
use crate::store::rows::in_memory::MemoryRows;
use crate::store::statistics::{GRAIN, Statistics};

const ID: ColumnId = ColumnId { object: ObjectId { file: 0, address: 96 }, field: 0 };

/// Rows of an array in chunks that are smaller than a block.
fn memory(array: ArrayRef) -> MemoryRows {
    MemoryRows::new(array).natural(10_000)
}

/// A learner for an array, of no file.
fn learner(array: &ArrayRef) -> Learner {
    Learner::new(&Weak::new(), "/t/x", ID, &memory(array.clone())).unwrap()
}

/// The blocks of an uncut column.
fn blocks(rows: u64) -> Blocked {
    Blocked::new(rows, GRAIN, None)
}

/// The statistics of an array, learnt in one go.
fn learn(array: ArrayRef) -> Arc<Statistics> {
    let learner = learner(&array);
    learner.observe(0, array.as_ref());
    learner.known().unwrap()
}
