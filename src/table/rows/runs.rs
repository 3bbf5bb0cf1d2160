//! A column of run numbers, expanded from compressed pointers.

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, LargeStringArray};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::statistics::{Scalar, Summary};
use crate::store::{ARRAY_BYTES, Cuts, Error, Facts, Hints, RowRange, Rows, Summaries, TextLength, for_each_array};
use crate::table::rows::{CategoryRows, HeldRows};

/// Number of pointers from one that is kept in memory to the next; larger if more than [`MOST_KEPT`] would be kept.
const KEPT: u64 = 1024;
/// Most pointers to keep in memory.
const MOST_KEPT: u64 = 64 << 10;

/// Pointers read at once.
const AT_ONCE: u64 = 16 << 10;

/// Number of pointers read before looking for unwritten ones again.
const PART: u64 = ARRAY_BYTES / 8;

/// The number of the run that holds each row. Run `i` has the rows from pointer `i` up to pointer `i + 1`, so numbers
/// never fall. Memory holds only one of many pointers.
#[derive(Debug)]
pub struct RunRows {
    pointers: Arc<dyn Rows>,
    facts: Facts,
    path: String,
    /// One of every [`step`](Self::step) pointers, once all are known to ascend.
    kept: OnceLock<Vec<u64>>,
}

impl RunRows {
    /// The runs of `len` rows, numbered in int64 if `wide`, else in int32. `path` is that of the pointers; only the
    /// first and the last are read.
    ///
    /// # Errors
    /// The fault of these two pointers.
    pub fn new(
        path: String,
        pointers: Arc<dyn Rows>,
        len: u64,
        wide: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        let data_type = if wide { DataType::Int64 } else { DataType::Int32 };
        let containers = pointers.facts().containers.clone();
        let facts = Facts { containers, ..Facts::new(len, data_type) };
        let runs = Self { pointers, facts, path, kept: OnceLock::new() };
        let Some(last) = runs.pointers.len().checked_sub(1) else { return Err("no pointers".into()) };
        let [first, last] = [0, last].map(|at| runs.read(at..at + 1, interrupt).map_err(|error| error.to_string()));
        let (first, last) = (first?, last?);
        if (first.as_slice(), last.as_slice()) != (&[0], &[len]) {
            return Err(format!("pointers from {first:?} to {last:?}, of {len} entries"));
        }
        Ok(runs)
    }

    /// The same rows, cut at these ends of runs: blocks of statistics and row groups do not cross them.
    pub fn cut(self, ends: impl IntoIterator<Item = u64>) -> Self {
        let facts = Facts { cuts: Cuts::new(ends), ..self.facts };
        Self { facts, ..self }
    }

    /// Reads pointers and checks that none is negative.
    fn read(&self, range: RowRange, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let array = self.pointers.array(range.clone(), interrupt)?;
        self.numbers(range.start, &array)
    }

    fn numbers(&self, start: u64, array: &ArrayRef) -> Result<Vec<u64>, Error> {
        if let Some(numbers) = widen::unsigned(array).filter(|_| array.data_type().is_unsigned_integer()) {
            return Ok(numbers.values().to_vec());
        }
        let numbers = widen::signed(array).ok_or_else(|| self.failed(format!("of type {}", array.data_type())))?;
        let numbered = (start..).zip(numbers.values());
        numbered
            .map(|(at, number)| u64::try_from(*number).map_err(|_| self.failed(format!("pointer {at} is {number}"))))
            .collect()
    }

    fn failed(&self, reason: String) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// Number of pointers from one that is kept to the next.
    fn step(&self) -> u64 {
        KEPT.max(self.pointers.len().div_ceil(MOST_KEPT))
    }

    /// The kept pointers; the first call reads and checks all.
    fn kept(&self, interrupt: &Interrupt) -> Result<&[u64], Error> {
        if let Some(kept) = self.kept.get() {
            return Ok(kept);
        }
        let (count, step) = (self.pointers.len(), self.step());
        let (mut kept, mut last, mut at) = (Vec::new(), 0, 0);
        let mut add = |range: RowRange, pointer: u64| {
            if pointer < last || pointer > self.facts.len {
                let reason =
                    format!("pointer {} is {pointer} after {last}, of {} entries", range.start, self.facts.len);
                return Err(self.failed(reason));
            }
            last = pointer;
            let numbers = range.start.div_ceil(step)..range.end.div_ceil(step);
            kept.extend(numbers.map(|_| pointer));
            Ok(())
        };
        while at < count {
            interrupt.check()?;
            let alike = self.pointers.alike_until(at, interrupt)?.min(count);
            if alike > at {
                self.read(at..at + 1, interrupt)?.into_iter().try_for_each(|pointer| add(at..alike, pointer))?;
                at = alike;
                continue;
            }
            let part = at..count.min(at.saturating_add(PART));
            at = part.end;
            for_each_array(self.pointers.as_ref(), part, ARRAY_BYTES, interrupt, &mut |range, array| {
                let pointers = self.numbers(range.start, &array)?;
                (range.start..).zip(pointers).try_for_each(|(at, pointer)| add(at..at + 1, pointer))
            })?;
        }
        Ok(self.kept.get_or_init(|| kept))
    }
}

impl RunRows {
    /// At most [`AT_ONCE`] consecutive runs, one of which holds the row.
    fn runs_about(&self, row: u64, interrupt: &Interrupt) -> Result<RowRange, Error> {
        let behind = self.kept(interrupt)?.partition_point(|pointer| *pointer <= row) as u64;
        let step = self.step();
        let mut runs = step * behind.saturating_sub(1)..self.pointers.len().min(step.saturating_mul(behind));
        while runs.end.saturating_sub(runs.start) > AT_ONCE {
            let middle = runs.start.midpoint(runs.end);
            match self.read(middle..middle + 1, interrupt)?.first() {
                Some(pointer) if *pointer <= row => runs.start = middle,
                _ => runs.end = middle,
            }
        }
        Ok(runs)
    }

    /// The run that holds a row: that of the last pointer that does not exceed the row.
    fn run_of(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let runs = self.runs_about(row, interrupt)?;
        let first = runs.start;
        let pointers = self.read(runs, interrupt)?;
        let behind = pointers.partition_point(|pointer| *pointer <= row) as u64;
        Ok(first.saturating_add(behind).saturating_sub(1))
    }
}

impl Rows for RunRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let mut numbers = Vec::with_capacity(usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
        let (mut at, mut run, mut is_near) = (range.start, 0, false);
        while at < range.end {
            interrupt.check()?;
            if !is_near {
                run = self.runs_about(at, interrupt)?.start;
            }
            let before = at;
            let end = self.pointers.len().min(run.saturating_add(AT_ONCE + 1));
            let pointers = self.read(run..end, interrupt)?;
            if pointers.len() < 2 {
                return Err(self.failed(format!("row {at} lies in no run")));
            }
            for ends in &pointers[1..] {
                let until = (*ends).min(range.end);
                if until > at {
                    numbers.resize(numbers.len() + (until - at) as usize, run as i64);
                    at = until;
                }
                run += 1;
            }
            // After very many empty runs, search for the next one.
            is_near = at > before;
        }
        Ok(match self.facts.data_type {
            DataType::Int32 => Arc::new(numbers.into_iter().map(|number| number as i32).collect::<Int32Array>()),
            _ => Arc::new(Int64Array::from(numbers)),
        })
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for RunRows {
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else { return Ok(None) };
        // Numbers ascend, so the first is the least.
        let [min, max] = [range.start, last].map(|row| self.run_of(row, interrupt));
        let [min, max] = [min?, max?].map(|run| Some(Scalar::Int(run as i64)));
        Ok(Some(Summary { rows: range.end - range.start, nulls: 0, nans: 0, min, max }))
    }

    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }
}

/// The label of the run that holds each row, for runs with these ends: the parts of a table, where statistics and row
/// groups end.
///
/// # Errors
/// The fault of the ends.
pub fn labelled_runs(
    path: &str,
    labels: Vec<String>,
    ends: &[u64],
    interrupt: &Interrupt,
) -> Result<Arc<dyn Rows>, String> {
    let held = |array: ArrayRef, hints| Arc::new(HeldRows::new(array, false, hints)) as Arc<dyn Rows>;
    let longest = labels.iter().map(String::len).max().unwrap_or(0) as u64;
    let texts = Hints { texts: TextLength::Shown(longest), ..Hints::default() };
    let labels = held(Arc::new(LargeStringArray::from(labels)), texts);
    let pointers = std::iter::once(0).chain(ends.iter().map(|end| end.cast_signed()));
    let pointers = held(Arc::new(Int64Array::from_iter_values(pointers)), Hints::default());
    let len = ends.last().copied().unwrap_or(0);
    let runs = RunRows::new(path.to_owned(), pointers, len, false, interrupt)?.cut(ends.iter().copied());
    Ok(Arc::new(CategoryRows::new(path.to_owned(), Arc::new(runs), labels, Arc::default())))
}
