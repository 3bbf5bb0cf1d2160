//! The first rows of a table.

use std::sync::Arc;

use arrow_array::ArrayRef;

use crate::source::Interrupt;
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, SharedRows, StoredFacts};
use crate::table::Table;

/// Restricts a table to its first `limit` rows.
pub fn first(table: &mut Table, limit: u64) {
    table.rows = table.rows.min(limit);
    let rows = table.rows;
    for column in &mut table.columns {
        if let Ok(all) = &mut column.rows {
            *all = Arc::new(FirstRows::new(all.clone(), rows));
        }
        column.stored_strings = None;
        column.learner = None;
    }
}

/// The first rows of a column.
#[derive(Debug)]
struct FirstRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
}

impl FirstRows {
    fn new(rows: Arc<dyn Rows>, len: u64) -> Self {
        let inner = rows.facts();
        let hints = Hints { stored: false, ..inner.hints.clone() };
        let stored = StoredFacts::default();
        let facts = Facts { len, hints, cuts: None, stored, codes: 0, ..inner.clone() };
        Self { rows, facts }
    }
}

impl Rows for FirstRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.rows.array(range, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.rows.fitting(range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        self.rows.shared(range, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.rows.outline(range, interrupt)
    }

    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.rows.array_for_field(fields, range, interrupt)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::store::rows::in_memory::{FACTS, MemoryRows, changed, with_facts};

    #[test]
    fn first_rows_lie_where_all_rows_do() {
        let all = MemoryRows::new(Arc::new(Int64Array::from(vec![0; 6]))).natural(2).strided(24).alike();
        let first = FirstRows::new(Arc::new(all), 4);
        assert_eq!((first.facts().len, first.facts().natural_rows, first.facts().stride), (4, Some(2), Some(24)));
        assert_eq!((&first as &dyn Rows).alike_until(1, &Interrupt::new()).unwrap(), 4);
    }

    #[test]
    fn first_rows_keep_the_facts_that_they_do_not_give_up() {
        let given_up = ["len", "hints", "cuts", "stored type", "stored width", "decoded", "codes"];
        for which in 0..=FACTS {
            let all = with_facts(MemoryRows::new(Arc::new(Int64Array::from(vec![0; 6]))), which);
            let facts = all.facts().clone();
            let first = FirstRows::new(Arc::new(all), 4);
            let lost: Vec<_> = changed(&facts, first.facts());
            assert!(lost.iter().all(|fact| given_up.contains(fact)), "{lost:?}");
            assert!(which < FACTS || lost == given_up, "{lost:?}");
        }
    }
}
