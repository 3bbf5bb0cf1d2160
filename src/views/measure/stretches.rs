//! Units of rows whose lengths must be learnt, and runs of units that are alike because nothing of them is stored. A
//! run is measured by its first unit alone, so that rows without storage cost nothing.

use crate::source::Interrupt;
use crate::store::{Blocked, Error, RowRange, Rows};

/// Number of places of a sample.
const PLACES: u64 = 8;

/// Number of rows to read at each place of a sample.
const ROWS: u64 = 1 << 10;

/// Most rows, and bytes of values, that take no longer to measure than a sample.
const FEW: u64 = 1 << 14;
const FEW_BYTES: u64 = 16 << 20;

/// Whether measuring the first `count` rows by their values takes no longer than a sample of them.
///
/// # Errors
/// If the request was interrupted, or memory is exhausted.
pub(super) fn is_small(rows: &dyn Rows, count: u64, interrupt: &Interrupt) -> Result<bool, Error> {
    if count > FEW {
        return Ok(false);
    }
    match rows.fitting(0..count, FEW_BYTES, interrupt) {
        Ok(fitting) => Ok(fitting.end >= count && fitting.bytes <= FEW_BYTES),
        Err(error @ (Error::Interrupted(_) | Error::NoMemory { .. })) => Err(error),
        // Reading the rows would fail with the same error.
        Err(_) => Ok(true),
    }
}

/// Units of rows, grouped into runs of alike units.
#[derive(Debug)]
pub(in crate::views) struct Stretches {
    units: Blocked,
    runs: Vec<UnitRun>,
    blocks: usize,
    /// Number of rows in units that may be stored.
    stored: u64,
}

/// Consecutive units of rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::views) struct UnitRun {
    /// Number of the first unit.
    pub first: u64,
    /// Number of units.
    pub units: u64,
    /// The block of the first unit. In an alike run all units share it, otherwise each has its own.
    pub block: usize,
    /// Whether all units are alike.
    pub alike: bool,
}

impl Stretches {
    /// Groups units of rows into runs; `alike_until` returns the end of the alike rows that begin at a row. If cuts
    /// shorten units, none count as alike.
    ///
    /// # Errors
    /// Those of `alike_until`.
    pub fn find(units: Blocked, mut alike_until: impl FnMut(u64) -> Result<u64, Error>) -> Result<Self, Error> {
        let all = units.count();
        let mut found = Self { units, runs: Vec::new(), blocks: 0, stored: 0 };
        let mut first = 0;
        while first < all {
            let rows = found.units.rows_of(first);
            let end = match found.units.is_cut() {
                true => first,
                false => alike_until(rows.start)?.min(found.units.rows()) / found.units.per_block(),
            };
            let alike = end > first + 1;
            let units = if alike { end - first } else { 1 };
            match found.runs.last_mut().filter(|last| !last.alike && !alike) {
                Some(last) => last.units += 1,
                None => found.runs.push(UnitRun { first, units, block: found.blocks, alike }),
            }
            found.blocks = found.blocks.saturating_add(1);
            found.stored += if alike { 0 } else { rows.end - rows.start };
            first += units;
        }
        Ok(found)
    }

    /// Returns the runs, in the order of their rows.
    pub fn runs(&self) -> &[UnitRun] {
        &self.runs
    }

    /// Returns the number of blocks to measure.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the number of rows in units that may be stored.
    pub fn stored_rows(&self) -> u64 {
        self.stored
    }

    /// Returns the rows of a unit.
    pub fn rows_of_unit(&self, unit: u64) -> RowRange {
        self.units.rows_of(unit)
    }

    /// Returns the row ranges of a run: the whole run, or each of its units if cuts shorten units.
    pub fn parts_of<'a>(&'a self, run: &UnitRun) -> impl Iterator<Item = RowRange> + use<'a> {
        let each = if self.units.is_cut() { 1 } else { run.units.max(1) };
        let firsts = (run.first..run.first + run.units).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        firsts.map(move |first| self.rows_of_unit(first).start..self.rows_of_unit(first + each - 1).end)
    }

    /// Returns the rows that a block is measured by.
    pub fn rows_of(&self, block: usize) -> RowRange {
        let run = self.runs.partition_point(|run| run.block <= block).checked_sub(1).and_then(|run| self.runs.get(run));
        self.rows_of_unit(run.map_or(0, |run| run.first + (block - run.block) as u64))
    }

    /// Returns the run of a unit, and the unit's block.
    pub fn unit(&self, unit: u64) -> Option<(&UnitRun, usize)> {
        let run = self.runs.get(self.runs.partition_point(|run| run.first <= unit).checked_sub(1)?)?;
        Some((run, if run.alike { run.block } else { run.block + (unit - run.first) as usize }))
    }

    /// Returns a deterministic sample: some rows at each of a few places, spread evenly over units that may be stored,
    /// or over alike runs.
    pub fn sample(&self, alike: bool) -> Vec<RowRange> {
        let runs = self.runs.iter().filter(|run| run.alike == alike).map(|run| {
            let rows = self.rows_of_unit(run.first).start..self.rows_of_unit(run.first + run.units - 1).end;
            if alike { rows.start..rows.end.min(rows.start.saturating_add(ROWS)) } else { rows }
        });
        let runs = runs.filter(|rows| !rows.is_empty());
        let all = runs.clone().fold(0_u64, |all, rows| all.saturating_add(rows.end - rows.start));
        let places = PLACES.min(all.div_ceil(ROWS));
        let mut sample: Vec<RowRange> = Vec::new();
        let (mut runs, mut before) = (runs.peekable(), 0);
        for place in 0..places {
            let at = (u128::from(all) * u128::from(2 * place + 1) / u128::from(2 * places)) as u64;
            while let Some(rows) = runs.next_if(|rows| before + (rows.end - rows.start) <= at) {
                before += rows.end - rows.start;
            }
            let Some(rows) = runs.peek() else { break };
            // The start is rounded, so that files cut into other units sample the same rows.
            let start = ((rows.start + at - before) / ROWS * ROWS).max(rows.start);
            let rows = start..start.saturating_add(ROWS).min(rows.end);
            if sample.last() != Some(&rows) {
                sample.push(rows);
            }
        }
        sample
    }
}

/// Extrapolates the mean at several places of a sample to a likely upper bound per row: the mean plus a quarter (for
/// alike rows a fiftieth), or plus four standard errors, whichever is larger.
pub(super) fn estimate(means: impl Iterator<Item = f64> + Clone, alike: bool) -> f64 {
    let count = means.clone().count().max(1) as f64;
    let mean = means.clone().sum::<f64>() / count;
    let variance = means.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean * if alike { 1.02 } else { 1.25 }).max(mean + 4.0 * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_only_claimed_are_runs() {
        // Chunks 3 and 1000 of 100 rows are stored.
        let alike = |row: u64| {
            Ok(match row / 100 {
                3 | 1000 => row,
                0..3 => 300,
                4..1000 => 100_000,
                _ => 1 << 40,
            })
        };
        let stretches = Stretches::find(Blocked::new(1 << 40, 10, None), alike).unwrap();
        let runs: Vec<_> = stretches.runs().iter().map(|run| (run.first, run.units, run.block, run.alike)).collect();
        let rest = (1 << 40) / 10 - 10_010;
        // The last unit is short.
        let expected = [
            (0, 30, 0, true),
            (30, 10, 1, false),
            (40, 9960, 11, true),
            (10_000, 10, 12, false),
            (10_010, rest, 22, true),
            (10_010 + rest, 1, 23, false),
        ];
        assert_eq!(runs, expected);
        assert_eq!((stretches.blocks(), stretches.stored_rows()), (24, 206));
        assert_eq!((stretches.rows_of(0), stretches.rows_of(5)), (0..10, 340..350));
        assert_eq!((stretches.rows_of(22), stretches.rows_of(23)), (100_100..100_110, (1 << 40) - 6..1 << 40));
        assert_eq!(stretches.unit(9999).map(|(run, block)| (run.first, block)), Some((40, 11)));
        assert_eq!(stretches.unit(10_003).map(|(run, block)| (run.first, block)), Some((10_000, 15)));
        assert!(stretches.sample(false).iter().all(|rows| (300..400).contains(&rows.start) || rows.start >= 100_000));
        let is_alike = |row: u64| row < 300 || (400..1424).contains(&row) || (100_100..101_124).contains(&row);
        assert!(stretches.sample(true).iter().all(|rows| is_alike(rows.start) && is_alike(rows.end - 1)));
    }

    #[test]
    fn a_sample_is_spread_over_all_rows() {
        let stretches = Stretches::find(Blocked::new(4_000_000, 65_536, None), Ok).unwrap();
        let sample = stretches.sample(false);
        assert_eq!(sample.len(), 8);
        assert!(sample.iter().all(|rows| rows.end - rows.start == 1024 && rows.end <= 4_000_000));
        assert!(sample.windows(2).all(|pair| (490_000..510_000).contains(&(pair[1].start - pair[0].start))));
        assert_eq!(Stretches::find(Blocked::new(4_000_000, 16_384, None), Ok).unwrap().sample(false), sample);
        let few = Stretches::find(Blocked::new(100_000, 65_536, None), Ok).unwrap();
        assert!(few.sample(false).windows(2).all(|pair| pair[0].start < pair[1].start));
    }

    #[test]
    fn an_estimate_is_more_than_the_mean() {
        assert_eq!(estimate([8.0; 16].into_iter(), false), 10.0);
        assert!(estimate([0.0, 100.0].into_iter(), true) > 150.0);
        assert_eq!(estimate(std::iter::empty(), false), 0.0);
    }
}
