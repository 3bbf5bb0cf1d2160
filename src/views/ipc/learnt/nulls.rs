//! Null counts, learnt when a header is first read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::lengths::Lengths;
use crate::learnt::pass::{self, Keeper, Measure};
use crate::source::Interrupt;
use crate::store::{Error, RowRange, for_each_counted, for_each_part};
use crate::views::ipc::IpcColumn;
use crate::views::ipc::plan::{self, IpcNodeKind, IpcPlan, walk};
use crate::views::ipc::table::IpcTable;

/// Version of the counts; every change of their meaning must raise it, so that old counts are ignored.
const VERSION: u32 = 2;

/// Fewest rows decoded at once, unless they are wide.
const FEWEST: u64 = 1 << 16;

/// Most rows decoded at once, unless a chunk has more.
const MOST: u64 = 1 << 20;

/// Most bytes decoded at once.
const BYTES: u64 = 16 << 20;

/// Null counts of batches whose headers were read.
pub(in crate::views::ipc) struct Nulls {
    counter: Arc<Counter>,
    /// Counts of all batches, if they are kept or a caller asked for them.
    all: Arc<pass::Pass<Vec<u64>>>,
    known: Mutex<HashMap<u64, Arc<Vec<u64>>>>,
}

impl std::fmt::Debug for Nulls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nulls").field("known", &self.known).finish_non_exhaustive()
    }
}

/// Counts the nulls of batches.
struct Counter {
    table: Arc<IpcTable>,
    /// For each column, the index of its first count.
    first: Vec<usize>,
    /// Number of counts over all columns: one per bitmap.
    numbers: usize,
}

impl Nulls {
    /// Prepares to count; counts nothing yet.
    pub fn new(table: &Arc<IpcTable>, keeper: Option<Keeper>) -> Self {
        let mut numbers = 0;
        let mut first = Vec::with_capacity(table.plans.len());
        for plan in &table.plans {
            first.push(numbers);
            numbers += plan.nullable;
        }
        let counter = Arc::new(Counter { table: Arc::clone(table), first, numbers });
        let per_batch = table.per_batch;
        let counts = format_args!("arrow-nulls {VERSION}: {numbers} of {per_batch} rows");
        let keeper = keeper.map(|keeper| keeper.with(counts));
        let batches = if numbers == 0 { 0 } else { usize::try_from(table.batches()).unwrap_or(usize::MAX) };
        let all = pass::Pass::new(batches, 1, Arc::clone(&counter) as _, keeper);
        Self { counter, all, known: Mutex::default() }
    }

    /// Counts all batches.
    ///
    /// # Errors
    /// If rows cannot be read.
    pub fn count_all(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.all.all(interrupt).map(drop)
    }

    /// Returns the progress of the count. `None`: no column is nullable.
    pub fn progress(&self) -> Option<pass::PassProgress> {
        (self.counter.numbers > 0).then(|| self.all.progress())
    }

    /// Returns the null counts of all nodes of a batch.
    ///
    /// # Errors
    /// If rows of the batch cannot be read.
    pub fn of_batch(&self, batch: u64, lengths: Option<&Lengths>, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let counted = self.counted(batch, interrupt)?;
        let table = &self.counter.table;
        let (start, count) = table.rows_of(batch);
        let pieces = start / table.variable_piece..(start + count).div_ceil(table.variable_piece);
        let mut nulls = Vec::new();
        for (column, plan) in table.plans.iter().enumerate() {
            if lengths.is_some_and(|lengths| lengths.is_unreadable(column, pieces.clone())) {
                return Err(self.unreadable(column, start..start + count, interrupt));
            }
            for node in &plan.nodes {
                let first = self.counter.first.get(column);
                let place = node.nulls.map(|bitmap| first.map_or(0, |first| first + bitmap));
                nulls.push(place.and_then(|place| counted.get(place).copied()).unwrap_or(0));
            }
        }
        Ok(nulls)
    }

    /// Returns the error for rows that the pass could not read.
    fn unreadable(&self, column: usize, rows: RowRange, interrupt: &Interrupt) -> Error {
        let table = &self.counter.table;
        let path = table.columns.get(column).map_or_else(String::new, |column| column.name.to_string());
        let reason = format!("some of rows {}..{} could not be read before", rows.start, rows.end);
        let mut start = rows.start;
        while let Some(column) = table.columns.get(column).filter(|_| start < rows.end) {
            let end = start.saturating_add(table.variable_piece).min(rows.end);
            if let Err(error) = column.rows.array(start..end, interrupt) {
                return error;
            }
            start = end;
        }
        Error::unsupported(path, reason)
    }

    fn counted(&self, batch: u64, interrupt: &Interrupt) -> Result<Arc<Vec<u64>>, Error> {
        if let Some(known) = self.known.lock().get(&batch) {
            return Ok(Arc::clone(known));
        }
        let place = usize::try_from(batch).unwrap_or(usize::MAX);
        let counts = match self.all.found().and_then(|all| all.get(place)) {
            Some(kept) => kept.clone(),
            None => {
                let counts = self.counter.count(batch, interrupt)?;
                if self.counter.table.batches() > 1 {
                    self.all.contribute(place, vec![counts.clone()]);
                }
                counts
            }
        };
        let counts = Arc::new(counts);
        self.known.lock().insert(batch, Arc::clone(&counts));
        Ok(counts)
    }
}

impl Measure<Vec<u64>> for Counter {
    fn measure(&self, batches: std::ops::Range<usize>, interrupt: &Interrupt) -> Result<Vec<Vec<u64>>, Error> {
        let counts = batches.map(|batch| {
            let counts = self.zeros();
            for (column, rows) in self.parts(batch as u64) {
                self.add(column, rows, &counts, interrupt)?;
            }
            Ok(loaded(&counts))
        });
        counts.collect()
    }

    fn doing(&self) -> &'static str {
        "counting"
    }
}

fn loaded(counts: &[AtomicU64]) -> Vec<u64> {
    counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

impl Counter {
    fn zeros(&self) -> Vec<AtomicU64> {
        (0..self.numbers).map(|_| AtomicU64::new(0)).collect()
    }

    /// Counts one batch on all cores, for one waiting reader.
    fn count(&self, batch: u64, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let (parts, counts) = (self.parts(batch), self.zeros());
        for_each_part(parts.len() as u64, interrupt, |part| match parts.get(part as usize) {
            Some((column, rows)) => self.add(*column, rows.clone(), &counts, interrupt),
            None => Ok(()),
        })?;
        Ok(loaded(&counts))
    }

    /// Returns the units of work: a column and some of its rows.
    fn parts(&self, batch: u64) -> Vec<(usize, RowRange)> {
        let (start, count) = self.table.rows_of(batch);
        let mut parts = Vec::new();
        for (column, (plan, shown)) in self.table.plans.iter().zip(&self.table.columns).enumerate() {
            if plan.nullable == 0 {
                continue;
            }
            let natural = shown.rows.natural_rows().unwrap_or(0);
            let most = (BYTES / plan.row_bytes.max(1)).max(1);
            let rows = natural.clamp(FEWEST, MOST).min(most);
            let rows = if plan.is_variable() { rows.min(self.table.variable_piece) } else { rows };
            let mut at = start;
            while at < start + count {
                // The part ends at a chunk's end if chunks are that long.
                let end = (at / rows + 1).saturating_mul(rows).min(start + count);
                parts.push((column, at..end));
                at = end;
            }
        }
        parts
    }

    fn add(&self, column: usize, rows: RowRange, counts: &[AtomicU64], interrupt: &Interrupt) -> Result<(), Error> {
        let (Some(plan), Some(shown)) = (self.table.plans.get(column), self.table.columns.get(column)) else {
            return Ok(());
        };
        let numbers = self.first.get(column).and_then(|first| counts.get(*first..)).unwrap_or_default();
        interrupt.check()?;
        if let (Some(nulls), [number, ..]) = (known(plan, shown, rows.clone()), numbers) {
            number.fetch_add(nulls, Ordering::Relaxed);
            return Ok(());
        }
        let count = &mut |array, times| {
            walk(&plan.nodes, &array, &mut |node, _, array| {
                if let Some(number) = node.nulls.and_then(|bitmap| numbers.get(bitmap)) {
                    number.fetch_add(plan::nulls(node, array).saturating_mul(times), Ordering::Relaxed);
                }
                Ok(())
            })
            .map_err(|misfit| Error::unsupported(shown.name.to_string(), misfit))
        };
        if shown.rows.outline_tells_nulls()
            && let Some(outline) = shown.rows.outline(rows.clone(), interrupt)?
        {
            return count(outline, 1);
        }
        for_each_counted(shown.rows.as_ref(), rows, BYTES, interrupt, count)
    }
}

/// Returns the null count of rows of a column with known statistics. For categories the statistics do not suffice,
/// since labels may be null.
fn known(plan: &IpcPlan, column: &IpcColumn, rows: RowRange) -> Option<u64> {
    let [node] = plan.nodes.as_slice() else { return None };
    if matches!(node.kind, IpcNodeKind::Keys(..)) {
        return None;
    }
    Some(column.learner.as_ref()?.known()?.over(rows)?.nulls)
}
