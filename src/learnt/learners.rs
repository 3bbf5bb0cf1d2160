//! The learners of an opening.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::learner::{ColumnReading, Learner};
use crate::catalogue::ColumnId;
use crate::store::{Opening, Rows};

/// Number of learners at which unused ones are swept.
const LEAST_SWEPT: usize = 4096;

/// Learners, found by how their column is read. They live as long as the source is open, so that a column's published
/// statistics never change; those of small columns only while they are in use or published, since there may be very
/// many.
#[derive(Debug)]
struct Learners {
    all: HashSet<ByReading>,
    /// Number of learners that triggers the next sweep.
    sweep: usize,
}

impl Default for Learners {
    fn default() -> Self {
        Self { all: HashSet::new(), sweep: LEAST_SWEPT }
    }
}

impl Learners {
    fn insert(&mut self, learner: &Arc<Learner>) {
        if self.all.len() >= self.sweep {
            self.all.retain(|ByReading(learner)| {
                !learner.is_small() || learner.is_shown() || Arc::strong_count(learner) > 1
            });
            // Doubling spreads the cost of the next sweep over as many insertions.
            self.sweep = LEAST_SWEPT.max(self.all.len() * 2);
        }
        self.all.insert(ByReading(learner.clone()));
    }
}

/// A learner, hashed by how its column is read.
#[derive(Debug)]
struct ByReading(Arc<Learner>);

impl Borrow<ColumnReading> for ByReading {
    fn borrow(&self) -> &ColumnReading {
        self.0.reading()
    }
}

impl PartialEq for ByReading {
    fn eq(&self, other: &Self) -> bool {
        self.0.reading() == other.0.reading()
    }
}

impl Eq for ByReading {}

impl Hash for ByReading {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.reading().hash(state);
    }
}

impl Learner {
    /// The learner of a column: one for all callers. `path` is for display. `None` for types without an order, and for
    /// sources whose identity does not determine their content.
    pub fn of(opening: &Arc<Opening>, path: &str, column: ColumnId, rows: &dyn Rows) -> Option<Arc<Self>> {
        if !opening.has_one_content() {
            return None;
        }
        let mut learners = opening.attached::<Mutex<Learners>>()?.lock();
        if let Some(known) = learners.all.get(&ColumnReading::new(column, rows)) {
            return Some(known.0.clone());
        }
        let fresh = Arc::new(Self::new(&Arc::downgrade(opening), path, column, rows)?);
        learners.insert(&fresh);
        Some(fresh)
    }

    /// The learners of the columns of an opening that were opened so far, by path.
    pub fn all_of(opening: &Opening) -> Vec<Arc<Self>> {
        let all = opening.attached::<Mutex<Learners>>().map(Mutex::lock);
        let mut learners: Vec<_> = all.iter().flat_map(|all| &all.all).map(|learner| learner.0.clone()).collect();
        learners.sort_by(|a, b| a.path().cmp(b.path()));
        learners
    }
}
