//! Reads a column on all cores.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::{Task, Verdict};
use crate::learnt::rows_at_once;
use crate::source::Interrupted;
use crate::store::{ARRAY_BYTES, Error, for_each_array, for_each_part};

/// Assumed bytes of a value of variable length.
const ANY_WIDTH: u64 = 64;

/// Most bytes of values to compare at once. Other readers take fewer, but here each part also reads the index.
const MOST_AT_ONCE: u64 = 2 * ARRAY_BYTES;

/// U+FFFD, which replaces invalid UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Why a pass over the column ended early.
pub(super) enum End {
    /// The verdict is known.
    Decided(Verdict),
    Failed(Error),
}

impl From<Interrupted> for End {
    fn from(interrupted: Interrupted) -> Self {
        Self::Failed(interrupted.into())
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Verdict> for End {
    fn from(verdict: Verdict) -> Self {
        Self::Decided(verdict)
    }
}

/// Values of the column from row `first` on.
pub(super) struct ColumnSlice<'a> {
    pub first: u64,
    pub values: &'a ArrayRef,
}

impl Task<'_> {
    /// Returns how many rows a thread takes at once.
    pub fn step(&self) -> u64 {
        let values = &self.form.values;
        rows_at_once(values.natural_rows(), values.stored_width().unwrap_or(ANY_WIDTH)).max(1)
    }

    /// Passes all values of the column to `see`, in parts of at most `step` rows. A part begins at a multiple of `step`
    /// or continues another part of the same step. A verdict from `see` ends the pass.
    pub fn column(
        &self,
        step: u64,
        see: &(dyn Fn(ColumnSlice<'_>) -> Result<(), End> + Sync),
    ) -> Result<Option<Verdict>, Error> {
        let rows = self.form.rows();
        let learner = self.form.learner.as_ref();
        let teaches = learner.is_some_and(|learner| learner.known().is_none());
        in_parallel(rows, step, self, &|range| {
            let length = range.end - range.start;
            if teaches {
                // Reading the rows as shown teaches the statistics. For enumerations and categories these are labels,
                // which the comparison does not use.
                self.teach(range.clone())?;
            }
            self.part(range, see)?;
            (self.progress)(length);
            Ok(())
        })
    }

    fn teach(&self, range: Range<u64>) -> Result<(), Error> {
        let shown = self.form.shown.as_ref();
        match for_each_array(shown, range.clone(), ARRAY_BYTES, self.interrupt, &mut |_, _| Ok(())) {
            Err(Error::TooLarge { .. }) if range.end - range.start > 1 => {
                let middle = range.start + (range.end - range.start) / 2;
                self.teach(range.start..middle)?;
                self.teach(middle..range.end)
            }
            other => other,
        }
    }

    fn halves(&self, range: Range<u64>, see: &(dyn Fn(ColumnSlice<'_>) -> Result<(), End> + Sync)) -> Result<(), End> {
        // A multiple of 8, so that no byte of a bitmap belongs to two parts.
        let middle = range.start + (range.end - range.start) / 16 * 8;
        let middle = if middle > range.start { middle } else { range.start + 8 };
        self.part(range.start..middle, see)?;
        self.part(middle..range.end, see)
    }

    fn part(&self, range: Range<u64>, see: &(dyn Fn(ColumnSlice<'_>) -> Result<(), End> + Sync)) -> Result<(), End> {
        // More rows than the store gives at once are read in halves.
        let may_divide = range.end - range.start > 8;
        if may_divide && self.form.values.fitting(range.clone(), MOST_AT_ONCE, self.interrupt)?.end < range.end {
            return self.halves(range, see);
        }
        let values = match self.form.values.array(range.clone(), self.interrupt) {
            Err(Error::TooLarge { .. }) if may_divide => return self.halves(range, see),
            values => values?,
        };
        if values.len() as u64 != range.end - range.start {
            return Err(End::Failed(Error::unsupported(
                &self.form.path,
                format!("rows {range:?} of its column came as {} values", values.len()),
            )));
        }
        if *values.data_type() == DataType::LargeUtf8
            && memchr::memmem::find(values.as_string::<i64>().value_data(), REPLACEMENT).is_some()
        {
            let why = "the column has strings that are not UTF-8, or hold U+FFFD".to_owned();
            return Err(End::Decided(Verdict::Unverifiable { why }));
        }
        see(ColumnSlice { first: range.start, values: &values })
    }
}

/// Runs `work` for all of `0..length`, `step` at a time, until a call decides the verdict or fails.
pub(super) fn in_parallel(
    length: u64,
    step: u64,
    task: &Task<'_>,
    work: &(dyn Fn(Range<u64>) -> Result<(), End> + Sync),
) -> Result<Option<Verdict>, Error> {
    let step = step.max(1);
    // The verdict does not depend on the order of threads.
    let outcome = for_each_part(length.div_ceil(step), task.interrupt, |part| {
        let start = part.saturating_mul(step);
        work(start..start.saturating_add(step).min(length))
    });
    match outcome {
        Ok(()) => Ok(None),
        Err(End::Decided(verdict)) => Ok(Some(verdict)),
        Err(End::Failed(error)) => Err(error),
    }
}
