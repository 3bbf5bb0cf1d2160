//! Measures texts and lists, whose lengths determine the size and the layout of a file.
//!
//! A pass measures them unit by unit, by [outlines](Rows::outline), which read descriptors and offsets alone, or by the
//! values themselves. If even that would keep `stat` waiting, a sample estimates the lengths.

mod stretches;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::learnt::pass::{Keeper, Measure, Pass, PassProgress};
use crate::source::Interrupt;
use crate::store::{Blocked, Error, RowRange, Rows};
pub(super) use stretches::Stretches;
use stretches::{estimate, is_small};

/// Most outlines of values and lists, over all columns of a file, that are read while `stat` waits.
pub(super) const AT_STAT: u64 = 1 << 18;

/// Number of outlines that take as long to read as measuring one value.
const PER_VALUE: u64 = 1 << 4;

/// Most bytes of values to measure at once.
pub(super) const MOST_BYTES: u64 = 16 << 20;

/// Bytes of texts read at each place of a sample.
const SAMPLED_BYTES: u64 = 64 << 10;

/// The columns of a file whose lengths are measured together.
pub(super) trait Measurable: Send + Sync + 'static {
    /// The lengths of a unit of rows.
    type Unit: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// Returns the number of columns, measured or not.
    fn columns(&self) -> usize;

    /// Returns the columns that are measured, with their numbers.
    fn variable(&self) -> impl Iterator<Item = (usize, &dyn Rows)>;

    /// Returns how many numbers describe a column's lengths.
    fn numbers(&self, column: usize) -> usize;

    /// Measures a unit of rows, each column either `by_values` or by its outline.
    fn measure(&self, rows: RowRange, by_values: &[bool], interrupt: &Interrupt) -> Result<Self::Unit, Error>;

    /// Measures some rows of a column; returns its numbers, each summed over these rows.
    fn look(&self, column: usize, rows: RowRange, look: &mut Look, interrupt: &Interrupt) -> Result<Vec<u64>, Error>;

    /// Returns whether a sample skips rows that fail with this error.
    fn is_passed_over(error: &Error) -> bool;

    /// Returns whether this number grows if texts take more bytes shown than their outlines leave room for.
    fn grows(number: usize) -> bool;

    /// Returns the outlines of lists and values that a unit takes beside those of its rows, for a column with these
    /// numbers.
    fn entries(&self, column: usize, numbers: &[u64]) -> u64;
}

/// State of measuring some rows of a column.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Whether outlines do not suffice, so that values are read.
    pub by_values: bool,
    /// Bytes of texts as shown; `room` counts those that outlines leave for them.
    pub shown: u64,
    pub room: u64,
}

impl Look {
    /// Returns the end of the first rows that hold few enough bytes of texts to be read. `None`: the first row alone
    /// holds too many.
    pub fn few(rows: &dyn Rows, range: &RowRange, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        let few = rows.fitting(range.clone(), SAMPLED_BYTES, interrupt)?;
        Ok((few.bytes <= MOST_BYTES).then_some(few.end))
    }
}

/// Lengths estimated from a sample of rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// For each column, whether its outlines do not suffice.
    by_values: Vec<bool>,
    /// Work of measuring all rows, counted in outlines.
    work: u64,
    /// Typical numbers of all columns for a unit that may be stored; `alike` has them for one that is not.
    pub stored: Vec<u64>,
    pub alike: Vec<u64>,
}

/// The lengths of some columns, as far as they are known, and the pass that finds them.
pub(super) struct Meter<M: Measurable> {
    shared: Arc<Shared<M>>,
    /// Number of units that a step of the pass measures.
    step: usize,
    keeper: Option<Keeper>,
    sample: OnceLock<Sample>,
    pass: OnceLock<Arc<Pass<M::Unit>>>,
    /// Whether a value turned out longer than its outline said.
    distrusted: AtomicBool,
}

struct Shared<M> {
    measured: M,
    units: Blocked,
    stretches: OnceLock<Arc<Stretches>>,
    /// Whether measuring all values takes no longer than a sample.
    small: OnceLock<bool>,
    /// For each column, whether its values are read.
    by_values: OnceLock<Vec<bool>>,
}

impl<M: Measurable> Meter<M> {
    /// Returns a meter over `measured`; reads nothing. A step of the pass measures `step` units; `keeper` keeps the
    /// results.
    pub fn new(measured: M, units: Blocked, step: usize, keeper: Option<Keeper>) -> Self {
        let (stretches, small, by_values) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let shared = Arc::new(Shared { measured, units, stretches, small, by_values });
        let (sample, pass, distrusted) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
        Self { shared, step, keeper, sample, pass, distrusted }
    }

    /// Returns the units of rows.
    pub fn units(&self) -> &Blocked {
        &self.shared.units
    }

    /// Returns the keeper of one of the results.
    fn keeper(&self, of: &str) -> Option<Keeper> {
        Some(self.keeper.clone()?.with(of))
    }

    /// Returns the keeper of the mark that a column must be measured by its values.
    fn mark(&self, column: usize) -> Option<Keeper> {
        self.keeper(&format!("by-values {column}"))
    }

    /// Returns the columns that the meter measures.
    pub fn measured(&self) -> &M {
        &self.shared.measured
    }

    /// Returns the runs of units that are alike.
    pub fn stretches(&self, interrupt: &Interrupt) -> Result<&Arc<Stretches>, Error> {
        self.shared.stretches(interrupt)
    }

    /// Returns the work of the pass, counted in outlines. 0: a sample takes no less.
    pub fn work(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        if self.shared.is_small(interrupt)? { Ok(0) } else { Ok(self.sample(interrupt)?.work) }
    }

    /// Returns lengths estimated from a sample of rows.
    pub fn sample(&self, interrupt: &Interrupt) -> Result<&Sample, Error> {
        if let Some(sample) = self.sample.get() {
            return Ok(sample);
        }
        let is_ours = |known: &Sample| known.by_values.len() == self.measured().columns();
        let sample = Keeper::recall_or(self.keeper("sample"), is_ours, || self.shared.sample(interrupt))?;
        Ok(self.sample.get_or_init(|| sample))
    }

    fn pass(&self, interrupt: &Interrupt) -> Result<&Arc<Pass<M::Unit>>, Error> {
        if let Some(pass) = self.pass.get() {
            return Ok(pass);
        }
        let mut by_values = vec![true; self.measured().columns()];
        if !self.shared.is_small(interrupt)? {
            by_values.clone_from(&self.sample(interrupt)?.by_values);
            for (column, by_values) in by_values.iter_mut().enumerate() {
                *by_values |= self.mark(column).is_some_and(|mark| mark.file.recall(&mark.what).is_some());
            }
        }
        let by_values = self.shared.by_values.get_or_init(|| by_values);
        let modes: String = by_values.iter().map(|by_values| if *by_values { '1' } else { '0' }).collect();
        let blocks = self.stretches(interrupt)?.blocks();
        Ok(self.pass.get_or_init(|| Pass::new(blocks, self.step, self.shared.clone(), self.keeper(&modes))))
    }

    /// Returns the lengths of each unit, with one entry for a run of alike units; waits for the pass.
    pub fn all(&self, interrupt: &Interrupt) -> Result<&[M::Unit], Error> {
        self.pass(interrupt)?.all(interrupt)
    }

    /// Whether the pass is complete.
    pub fn is_known(&self) -> bool {
        self.pass.get().is_some_and(|pass| pass.known().is_some())
    }

    /// Whether the pass is complete, or its results are in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        Ok(self.pass(interrupt)?.found().is_some())
    }

    /// Returns the progress of the pass.
    pub fn progress(&self) -> PassProgress {
        let all = self.units().count();
        self.pass.get().map_or(PassProgress { done: 0, all, kept: None }, |pass| pass.progress())
    }

    /// Whether a column is measured by its values; true until that is decided.
    pub fn is_by_values(&self, column: usize) -> bool {
        self.shared.by_values.get().and_then(|by_values| by_values.get(column)).copied().unwrap_or(true)
    }

    /// Records that a value is longer than its outline says: the column is measured by its values from now on.
    pub fn distrust(&self, column: usize) {
        if self.is_by_values(column) || self.distrusted.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(Keeper { file, what, .. }) = self.mark(column) {
            file.note(&what, &[1], true);
        }
    }

    /// Whether some value was found longer than its outline says.
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Relaxed)
    }
}

impl<M: Measurable> Measure<M::Unit> for Shared<M> {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<M::Unit>, Error> {
        let stretches = self.stretches(interrupt)?;
        let by_values = self.by_values.get().map_or(&[][..], Vec::as_slice);
        let units = blocks.map(|block| {
            interrupt.check()?;
            self.measured.measure(stretches.rows_of(block), by_values, interrupt)
        });
        units.collect()
    }
}

impl<M: Measurable> Shared<M> {
    fn is_small(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        if let Some(small) = self.small.get() {
            return Ok(*small);
        }
        let count = self.units.rows();
        let small = self
            .measured
            .variable()
            .try_fold(true, |all, (_, rows)| Ok::<_, Error>(all && is_small(rows, count, interrupt)?))?;
        Ok(*self.small.get_or_init(|| small))
    }

    fn stretches(&self, interrupt: &Interrupt) -> Result<&Arc<Stretches>, Error> {
        if let Some(stretches) = self.stretches.get() {
            return Ok(stretches);
        }
        let stretches = Stretches::find(self.units.clone(), |row| {
            interrupt.check()?;
            let mut end = u64::MAX;
            for (_, rows) in self.measured.variable() {
                if end > row {
                    end = end.min(rows.alike_until(row, interrupt)?);
                }
            }
            Ok(end)
        })?;
        Ok(self.stretches.get_or_init(|| Arc::new(stretches)))
    }

    fn sample(&self, interrupt: &Interrupt) -> Result<Sample, Error> {
        let (stretches, unit) = (self.stretches(interrupt)?, self.units.per_block());
        let units = stretches.stored_rows() / unit + stretches.runs().len() as u64;
        let mut sample = Sample { by_values: vec![false; self.measured.columns()], ..Sample::default() };
        for (column, _) in self.measured.variable() {
            let mut look = Look::default();
            let mut typical = |alike: bool| {
                let mut places: Vec<Vec<f64>> = Vec::new();
                for rows in stretches.sample(alike) {
                    interrupt.check()?;
                    let count = (rows.end - rows.start).max(1) as f64;
                    match self.measured.look(column, rows, &mut look, interrupt) {
                        Ok(numbers) => places.push(numbers.iter().map(|number| *number as f64 / count).collect()),
                        // Another place of the sample stands in for these rows.
                        Err(error) if M::is_passed_over(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                let estimates = (0..self.measured.numbers(column)).map(|number| {
                    let of_places = places.iter().filter_map(|place| place.get(number).copied());
                    (estimate(of_places, alike) * unit as f64) as u64
                });
                Ok(estimates.collect::<Vec<_>>())
            };
            let (mut stored, alike) = (typical(false)?, typical(true)?);
            // Texts may take more bytes as shown than as stored.
            if look.shown > look.room {
                let grown = stored.iter_mut().enumerate().filter(|(number, _)| M::grows(*number));
                grown.for_each(|(_, number)| *number = number.saturating_mul(look.shown) / look.room.max(1));
            }
            let outlines = unit.saturating_add(self.measured.entries(column, &stored));
            let each = outlines.saturating_mul(if look.by_values { PER_VALUE } else { 1 });
            sample.work = sample.work.saturating_add(units.saturating_mul(each));
            if let Some(by_values) = sample.by_values.get_mut(column) {
                *by_values = look.by_values;
            }
            sample.stored.extend(stored);
            sample.alike.extend(alike);
        }
        Ok(sample)
    }
}
