//! Pages of leaf columns whose values have no fixed length: measured by a pass over them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};

use super::body::leaf::Leaf;
use super::columns::{ParquetColumn, Prepared};
use super::layout::{Groups, Measured, PAGE_BYTES, Page};
use crate::source::Interrupt;
use crate::store::pass::{Keeper, Measure, Pass, Progress};
use crate::store::{Error, RowRange};

/// Counts changes of how pages are cut or written: what was kept before one is not used after it.
const VERSION: u32 = 2;

/// Rows measured at once, and of a page at most: it divides every row group.
const UNIT: u64 = 65_536;

/// Rows that are given up together where one of them cannot be read.
const LEAST_UNREADABLE: u64 = 1024;

/// Units of one step of a pass at most.
const MOST_UNITS: u64 = 16;

/// The pages of a unit, for each measured leaf of its column.
type UnitPages = Vec<Vec<Page>>;

/// The leaf columns of a file that must be measured, by column.
pub(super) struct Sizes {
    groups: Groups,
    columns: Vec<(Arc<MeasuredColumn>, Arc<Pass<UnitPages>>)>,
}

#[derive(Debug)]
struct MeasuredColumn {
    column: ParquetColumn,
    rows: u64,
    /// With the position of each among all leaves.
    leaves: Vec<(usize, Leaf)>,
}

impl Sizes {
    /// Reads nothing.
    pub fn new(columns: &[ParquetColumn], prepared: &Prepared) -> Self {
        let rows = prepared.groups.rows;
        let mut leaves: BTreeMap<usize, Vec<(usize, Leaf)>> = BTreeMap::new();
        if rows > 0 {
            for (position, leaf) in prepared.leaves.iter().enumerate().filter(|(_, leaf)| leaf.slots.is_none()) {
                leaves.entry(leaf.column).or_default().push((position, leaf.leaf.clone()));
            }
        }
        let columns = leaves.into_iter().filter_map(|(column, leaves)| {
            let column = Arc::new(MeasuredColumn { column: columns.get(column)?.clone(), rows, leaves });
            let pass = Pass::new(column.units(), column.units_of_step(), column.clone() as _, column.keeper());
            Some((column, pass))
        });
        Self { groups: prepared.groups, columns: columns.collect() }
    }

    /// The pages of each leaf, by its position among all leaves: waits for passes over what is not known.
    pub fn pages(&self, interrupt: &Interrupt) -> Result<BTreeMap<usize, Arc<Measured>>, Error> {
        let mut pages = BTreeMap::new();
        for (column, pass) in &self.columns {
            let units = pass.all(interrupt)?;
            for (which, (position, _)) in column.leaves.iter().enumerate() {
                let all = units.iter().filter_map(|leaves| leaves.get(which)).flatten().copied();
                let measured = Measured::new(&self.groups, all)
                    .ok_or_else(|| column.column.unsupported("pages do not cover all rows".into()))?;
                pages.insert(*position, Arc::new(measured));
            }
        }
        Ok(pages)
    }

    /// Whether all is known, so that [`Sizes::pages`] reads no value.
    pub fn is_known(&self) -> bool {
        self.columns.iter().all(|(_, pass)| pass.known().is_some())
    }

    /// How far the passes are; `None` where there is nothing to measure.
    pub fn progress(&self) -> Option<Progress> {
        Progress::sum(self.columns.iter().map(|(_, pass)| pass.progress()))
    }
}

impl Measure<UnitPages> for MeasuredColumn {
    fn measure(&self, units: Range<usize>, interrupt: &Interrupt) -> Result<Vec<UnitPages>, Error> {
        let unit = |unit: usize| {
            interrupt.check()?;
            let start = (unit as u64).saturating_mul(UNIT);
            let mut pages = vec![Vec::new(); self.leaves.len()];
            self.measure(start..start.saturating_add(UNIT).min(self.rows), &mut pages, interrupt)?;
            Ok(pages)
        };
        units.map(unit).collect()
    }
}

impl MeasuredColumn {
    fn units(&self) -> usize {
        usize::try_from(self.rows.div_ceil(UNIT)).unwrap_or(usize::MAX)
    }

    /// Units of a step: those of a chunk, so that it is decoded once.
    fn units_of_step(&self) -> usize {
        let natural = self.column.rows.natural_rows().unwrap_or(0);
        (natural / UNIT).clamp(1, MOST_UNITS) as usize
    }

    /// The file of a column and the table's with the same rows have the same pages.
    fn keeper(&self) -> Option<Keeper> {
        let Keeper { file, what } = self.column.keeper.clone()?;
        let (leaves, rows) = (self.leaves.len(), self.rows);
        Some(Keeper { file, what: format!("{what} parquet-pages {VERSION} leaves {leaves} rows {rows} by {UNIT}") })
    }

    fn measure(&self, rows: RowRange, pages: &mut [Vec<Page>], interrupt: &Interrupt) -> Result<(), Error> {
        let count = rows.end - rows.start;
        let measured = self.column.rows.array(rows.clone(), interrupt).and_then(|array| {
            let failed = |reason| self.column.unsupported(reason);
            let mut leaves = self.leaves.iter().zip(pages.iter_mut());
            leaves.try_for_each(|((_, leaf), pages)| divide(leaf, &array, pages).map_err(failed))
        });
        match measured {
            // More than the store hands out at once, or some rows cannot be read: in halves.
            Err(Error::TooLarge { .. }) if count > 1 => self.halves(rows, pages, interrupt),
            Err(Error::Chunk { .. } | Error::Heap { .. }) if count > LEAST_UNREADABLE => {
                self.halves(rows, pages, interrupt)
            }
            // Their page has a place, so that the others can be read; reading it is an error.
            Err(Error::Chunk { .. } | Error::Heap { .. }) => {
                let rows = u32::try_from(count).unwrap_or(u32::MAX);
                pages.iter_mut().for_each(|pages| pages.push(Page { rows, bytes: 0, entries: rows }));
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn halves(&self, rows: RowRange, pages: &mut [Vec<Page>], interrupt: &Interrupt) -> Result<(), Error> {
        let middle = rows.start + half(rows.end - rows.start);
        self.measure(rows.start..middle, pages, interrupt)?;
        self.measure(middle..rows.end, pages, interrupt)
    }
}

/// The largest power of two below a number above 1.
fn half(rows: u64) -> u64 {
    rows.next_power_of_two() / 2
}

/// Cuts an array into pages of at most [`PAGE_BYTES`], or of one row.
fn divide(leaf: &Leaf, array: &ArrayRef, pages: &mut Vec<Page>) -> Result<(), String> {
    let rows = array.len();
    let whole = leaf.measure(array);
    // An error may say that there are more values than a page can count.
    if rows > 1 && whole.as_ref().map_or(true, |body| body.bytes > PAGE_BYTES) {
        let middle = half(rows as u64) as usize;
        divide(leaf, &array.slice(0, middle), pages)?;
        return divide(leaf, &array.slice(middle, rows - middle), pages);
    }
    let body = whole?;
    let rows = u32::try_from(rows).map_err(|error| error.to_string())?;
    let bytes = u32::try_from(body.bytes).map_err(|error| error.to_string())?;
    pages.push(Page { rows, bytes, entries: body.entries });
    Ok(())
}
