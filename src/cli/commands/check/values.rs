//! Reads all values of tables in one pass, to find unreadable rows and count broken rules.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ArrayRef;
use parking_lot::Mutex;

use super::held::{self, RuleTest};
use crate::source::Interrupt;
use crate::store::{self, ARRAY_BYTES, Flight, RowRange, Rows, SharedRows, for_each_array, on_all_cores};
use crate::table::{Column, Finding, Table};

/// Most bytes to read into one array, unless one row takes more. An array is dropped once it is checked.
const ARRAY: u64 = 4 << 20;

/// Number of rows of a column to read at once.
const STRETCH: u64 = 1 << 17;

/// A stretch of whole rows, read for columns that are fields, takes the cache size divided by this: memory holds two
/// such stretches, and the data decoded ahead.
const STRETCHES: u64 = 4;

/// Fewest bytes of a stretch of whole rows, however small the cache is.
const LEAST_STRETCH: u64 = 1 << 20;

/// Unreadable pieces of a column after which the rest is skipped: a file may claim any number of rows.
const MOST_FAILURES: u64 = 1 << 12;

/// The unreadable rows of a column.
pub(super) struct UnreadableRows {
    /// HDF5 path of the column.
    pub path: String,
    /// Number of unreadable rows.
    pub rows: u64,
    /// The first unreadable row.
    pub first: u64,
    /// Why the first row cannot be read.
    pub reason: String,
    /// Number of unreadable pieces; after [`MOST_FAILURES`] the rest of the column was skipped.
    failures: u64,
}

impl UnreadableRows {
    /// Whether rows were skipped.
    pub fn is_left(&self) -> bool {
        self.failures >= MOST_FAILURES
    }
}

/// The result of reading all values.
#[derive(Default)]
pub(super) struct Read {
    /// Columns with rows that cannot be read.
    pub unreadable: Vec<UnreadableRows>,
    /// Rules that values break, except those that columns count themselves ([`Table::met`]).
    pub findings: Vec<Finding>,
}

/// A column, or a set of labels, to read.
struct Subject<'a> {
    path: &'a str,
    rows: &'a Arc<dyn Rows>,
    /// Number of rows to read. For computed rows, the first stretch stands for all.
    len: u64,
    /// Rules to check against the values.
    tests: Vec<RuleTest<'a>>,
}

impl<'a> Subject<'a> {
    fn new(path: &'a str, rows: &'a Arc<dyn Rows>, tests: Vec<RuleTest<'a>>, interrupt: &Interrupt) -> Self {
        let len = if tests.is_empty() && rows.known().is_some_and(|known| known.is_computed(interrupt)) {
            rows.len().min(STRETCH)
        } else {
            rows.len()
        };
        Self { path, rows, len, tests }
    }
}

/// A range of rows of a column to read.
struct Task<'a> {
    /// Index of the table, and of the column within it.
    column: (usize, usize),
    subject: Arc<Subject<'a>>,
    range: RowRange,
}

/// The columns of some tables, and the labels of their categories.
pub(super) struct ValuesToRead<'a> {
    tables: Vec<&'a Table>,
    walk: Walk<'a>,
}

impl<'a> ValuesToRead<'a> {
    /// Plans to read all values; `cache_size` is that of the chunk cache.
    pub fn new(tables: Vec<&'a Table>, cache_size: u64, interrupt: &Interrupt) -> Self {
        let walk = Walk::new(&tables, (cache_size / STRETCHES).max(LEAST_STRETCH), interrupt);
        Self { tables, walk }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        let subjects = self.walk.tables.iter().flat_map(|columns| &columns.all).flatten();
        subjects.map(|subject| subject.len).fold(0, u64::saturating_add)
    }

    /// Reads the values on all cores, and counts them in `done`. `None` if it was interrupted.
    pub fn read(self, done: &AtomicU64, interrupt: &Interrupt) -> Option<Read> {
        let subjects: Vec<_> = self.walk.tables.iter().map(|columns| columns.all.clone()).collect();
        let (walk, found) = (Mutex::new(self.walk), Mutex::new(BTreeMap::<(usize, usize), UnreadableRows>::new()));
        on_all_cores(u64::MAX, || {
            loop {
                let Some((task, passed)) = walk.lock().next(interrupt) else { return };
                match task.read(interrupt, &found) {
                    Ok(true) => {}
                    Ok(false) => walk.lock().leave(task.column),
                    Err(_) => return,
                }
                done.fetch_add(passed, Ordering::Relaxed);
            }
        });
        let found_in = |(table, subjects): (&&Table, Vec<Option<Arc<Subject<'_>>>>)| {
            let mut findings = Vec::new();
            for subject in subjects.into_iter().flatten() {
                let found = subject.tests.iter().filter_map(|test| test.outcome(subject.path));
                findings.extend(found.map(|found| found.by(table.judged_by)));
            }
            findings.extend(table.columns.iter().filter_map(held::fill_among).map(|found| found.by(table.judged_by)));
            findings
        };
        (!interrupt.is_raised()).then(|| Read {
            unreadable: found.into_inner().into_values().collect(),
            findings: self.tables.iter().zip(subjects).flat_map(found_in).collect(),
        })
    }
}

/// The columns and labels of one table that are to be read.
struct Columns<'a> {
    /// `None` once the rest of the column is skipped.
    all: Vec<Option<Arc<Subject<'a>>>>,
    /// Number of rows to read at once.
    step: u64,
    /// Number of rows of the longest column.
    longest: u64,
}

/// Number of rows of the longest column that is not skipped.
fn longest(all: &[Option<Arc<Subject<'_>>>]) -> u64 {
    all.iter().flatten().map(|subject| subject.len).max().unwrap_or(0)
}

/// The rows still to read. The columns of a table take turns, so that a chunk with fields of many columns serves all of
/// them.
struct Walk<'a> {
    tables: Vec<Columns<'a>>,
    table: usize,
    start: u64,
    /// First row of the next stretch.
    next: u64,
    column: usize,
}

impl<'a> Walk<'a> {
    /// Plans to read each object once, even if two tables share it; `whole_rows` is the size in bytes of a stretch of
    /// rows with several fields.
    fn new(tables: &[&'a Table], whole_rows: u64, interrupt: &Interrupt) -> Self {
        let mut known = HashSet::new();
        let columns_of = |table: &&'a Table| {
            let is_new =
                |column: &&Column| column.rows.as_ref().is_ok_and(|rows| known.insert((column.id, rows.len())));
            let columns = table.columns.iter().filter(is_new);
            let columns = columns.filter_map(|column| {
                let expected = column.meaning.expected.as_deref();
                let range = expected.and_then(|expected| expected.range.as_ref());
                let near = expected.and_then(|expected| expected.near.as_ref());
                let tests = range.map(|(rule, bounds)| RuleTest::within(rule, bounds)).into_iter();
                let tests = tests.chain(near.map(RuleTest::near)).collect();
                Some(Subject::new(&column.path, column.rows.as_ref().ok()?, tests, interrupt))
            });
            let labels = table.categories.iter().filter_map(|set| {
                let rows = set.labels.as_ref().ok()?;
                let test = table.labels_differ.and_then(|rule| RuleTest::distinct(rule, rows.as_ref()));
                Some(Subject::new(&set.path, rows, test.into_iter().collect(), interrupt))
            });
            let all: Vec<_> = columns.chain(labels).map(|subject| Some(Arc::new(subject))).collect();
            let stride = all.iter().flatten().filter_map(|subject| subject.rows.stride()).max().unwrap_or(1).max(1);
            Columns { longest: longest(&all), all, step: (whole_rows / stride).clamp(1, STRETCH) }
        };
        let tables = tables.iter().map(columns_of).collect();
        Self { tables, table: 0, start: 0, next: 0, column: usize::MAX }
    }

    /// Skips the rest of a column.
    fn leave(&mut self, (table, at): (usize, usize)) {
        let Some(columns) = self.tables.get_mut(table) else { return };
        if let Some(column) = columns.all.get_mut(at) {
            *column = None;
        }
        columns.longest = longest(&columns.all);
    }

    /// The next rows to read, and how many rows they stand for: if rows were never stored, the first of them stand for
    /// all. `None`: all rows are read.
    fn next(&mut self, interrupt: &Interrupt) -> Option<(Task<'a>, u64)> {
        loop {
            let columns = self.tables.get(self.table)?;
            if self.column >= columns.all.len() {
                (self.start, self.column) = (self.next, 0);
                let end = self.start.saturating_add(columns.step);
                let alike =
                    |subject: &Subject<'_>| subject.rows.alike_until(self.start, interrupt).unwrap_or(0).max(end);
                // Columns that end in this stretch do not affect where the others continue.
                let on = columns.all.iter().flatten().filter(|subject| subject.len > end);
                self.next = on.map(|subject| alike(subject)).min().unwrap_or(end);
            }
            if self.start >= columns.longest {
                (self.table, self.next, self.column) = (self.table + 1, 0, usize::MAX);
                continue;
            }
            let at = self.column;
            self.column += 1;
            let subject = columns.all.get(at).cloned().flatten();
            if let Some(subject) = subject.filter(|subject| subject.len > self.start) {
                let len = subject.len;
                let range = self.start..len.min(self.start.saturating_add(columns.step));
                let passed = len.min(self.next) - self.start;
                return Some((Task { column: (self.table, at), subject, range }, passed));
            }
        }
    }
}

impl Task<'_> {
    /// Reads the rows; if some cannot be read, reads them again chunk by chunk. Returns whether the rest of the column
    /// is worth reading.
    ///
    /// # Errors
    /// If it was interrupted.
    fn read(
        &self,
        interrupt: &Interrupt,
        found: &Mutex<BTreeMap<(usize, usize), UnreadableRows>>,
    ) -> Result<bool, store::Error> {
        if self.try_read(self.range.clone(), interrupt)?.is_ok() {
            return Ok(true);
        }
        let grain = self.subject.rows.natural_rows().unwrap_or(u64::MAX).max(1);
        let mut start = self.range.start;
        while start < self.range.end {
            let end = (start / grain).saturating_add(1).saturating_mul(grain).min(self.range.end);
            if let Err(reason) = self.try_read(start..end, interrupt)? {
                let mut found = found.lock();
                let none = || {
                    let (path, reason) = (self.subject.path.to_owned(), String::new());
                    UnreadableRows { path, rows: 0, first: u64::MAX, reason, failures: 0 }
                };
                let column = found.entry(self.column).or_insert_with(none);
                // Computed rows all fail if one does.
                let failed = if end == self.subject.len { self.subject.rows.len() } else { end };
                column.rows += failed - start;
                column.failures += 1;
                if start < column.first {
                    (column.first, column.reason) = (start, reason);
                }
                if column.is_left() {
                    return Ok(false);
                }
            }
            start = end;
        }
        Ok(true)
    }

    fn try_read(&self, range: RowRange, interrupt: &Interrupt) -> Result<Result<(), String>, store::Error> {
        let Subject { rows, tests, .. } = self.subject.as_ref();
        match rows.known().map_or(Ok(None), |known| known.scan(range.clone(), interrupt)) {
            Ok(Some(all)) if tests.iter().all(|test| test.is_kept_by(&all)) => return Ok(Ok(())),
            Ok(_) => {}
            Err(error @ store::Error::Interrupted(_)) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
        }
        match self.look_at_shared(&range, interrupt) {
            Ok(false) => {}
            Err(error @ store::Error::Interrupted(_)) => return Err(error),
            outcome => return Ok(outcome.map(|_| ()).map_err(|error| error.to_string())),
        }
        let mut take = |part: RowRange, array: ArrayRef| {
            tests.iter().for_each(|test| test.look(part.start, &array));
            Ok(())
        };
        match for_each_array(rows.as_ref(), range, ARRAY, interrupt, &mut take) {
            Err(error @ store::Error::Interrupted(_)) => Err(error),
            outcome => Ok(outcome.map_err(|error| error.to_string())),
        }
    }

    /// Checks values shared by many rows once for all of them; returns whether the rows are done.
    fn look_at_shared(&self, range: &RowRange, interrupt: &Interrupt) -> Result<bool, store::Error> {
        let Subject { rows, tests, .. } = self.subject.as_ref();
        if !tests.iter().all(RuleTest::is_of_labels)
            || rows.fitting(range.clone(), ARRAY_BYTES, interrupt)?.end >= range.end
        {
            return Ok(false);
        }
        let _flight = Flight::begin(ARRAY_BYTES, interrupt)?;
        let Some(SharedRows { values, keys }) = rows.shared(range.clone(), interrupt)? else { return Ok(false) };
        for test in tests {
            test.look_at_labels(range.start, &values, keys.iter().map(|key| *key as usize));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;
    use crate::catalogue::{ColumnId, ObjectId};
    use crate::store::Facts;

    /// Rows that a file claims, none of which can be read.
    #[derive(Debug)]
    struct Claimed(Facts);

    impl Rows for Claimed {
        fn facts(&self) -> &Facts {
            &self.0
        }

        fn array(&self, _: RowRange, _: &Interrupt) -> Result<ArrayRef, store::Error> {
            Err(store::Error::unsupported("/t/x", "a damaged index"))
        }
    }

    #[test]
    fn rows_that_are_only_claimed_end() {
        let facts = Facts { natural_rows: Some(1000), ..Facts::new(1 << 62, DataType::Int64) };
        let (id, claimed) = (ColumnId::whole(ObjectId { file: 0, address: 0 }), Claimed(facts));
        let column = Column::new("x".into(), "/t/x".into(), id, Ok(Arc::new(claimed)), Arc::default());
        let table = Table { rows: 1 << 62, columns: vec![column], ..Table::empty("/t", "HEP001") };
        let interrupt = Interrupt::new();
        let found = ValuesToRead::new(vec![&table], 0, &interrupt).read(&AtomicU64::default(), &interrupt).unwrap();
        let found = found.unreadable;
        assert!(found.len() == 1 && found[0].first == 0 && found[0].is_left());
        assert!((MOST_FAILURES * 100..MOST_FAILURES * 2000).contains(&found[0].rows), "{}", found[0].rows);
    }
}
