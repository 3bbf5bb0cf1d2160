//! Measures the pages of leaf columns whose values vary in length.
//!
//! If a pass over the lengths would keep `stat` waiting, the file gets a size estimated from a sample, and its pages
//! have to fit in.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};

use super::body::leaf::{Body, ParquetLeaf};
use super::columns::{ParquetColumn, Prepared};
use super::layout::{Groups, MeasuredPages, PAGE_BYTES, Page};
use crate::learnt::pass::PassProgress;
use crate::source::Interrupt;
use crate::store::{Blocked, Error, RowRange, Rows, for_each_array};
use crate::views::Misfit;
use crate::views::measure::{self, AT_STAT, Look, MOST_BYTES, Meter};

/// Version of the way in which pages are cut and written; results kept by another version are ignored.
const VERSION: u32 = 5;

/// Number of rows measured at once, and most rows of a page. It divides the rows of every row group that has more.
const UNIT: u64 = 65_536;

/// Most rows that are skipped together if one of them cannot be read. Longer ranges are divided first.
const LEAST_UNREADABLE: u64 = 1024;

/// Most units per step of a pass.
const MOST_UNITS: u64 = 16;

/// One in this many bytes of a page of texts is reserved for invalid bytes, each of which grows to three.
const SPARE_PART: u64 = 128;

/// The pages of a unit, for each measured leaf of the unit's column.
type UnitPages = Vec<Vec<Page>>;

/// Measured pages of leaf columns, by the leaf's position among all leaves.
pub(super) type LeafPages = BTreeMap<usize, Arc<MeasuredPages>>;

/// The leaf columns of a file that must be measured, by column.
pub(super) struct MeasuredLeaves {
    groups: Groups,
    columns: Vec<Meter<MeasuredColumn>>,
}

#[derive(Debug)]
struct MeasuredColumn {
    column: ParquetColumn,
    /// The leaves to measure, each with its position among all leaves.
    leaves: Vec<(usize, ParquetLeaf)>,
}

impl MeasuredLeaves {
    /// Prepares to measure, without reading anything.
    pub fn new(columns: &[ParquetColumn], prepared: &Prepared) -> Self {
        let groups = &prepared.groups;
        // The unit is a power of two, unless cuts shorten it.
        let units = Blocked::new(groups.rows(), UNIT.min(groups.per_group()), groups.cuts.as_ref());
        let (rows, unit) = (groups.rows(), units.per_block());
        let cuts = groups.cuts.as_ref().map_or(String::new(), |cuts| format!(" cut {:016x}", cuts.digest()));
        let mut leaves: BTreeMap<usize, Vec<(usize, ParquetLeaf)>> = BTreeMap::new();
        if groups.rows() > 0 {
            for (position, leaf) in prepared.leaves.iter().enumerate().filter(|(_, leaf)| leaf.slots.is_none()) {
                leaves.entry(leaf.column).or_default().push((position, leaf.leaf.clone()));
            }
        }
        let columns = leaves.into_iter().filter_map(|(column, leaves)| {
            let column = columns.get(column)?.clone();
            // A step covers a chunk, so that it is decoded once; if cuts shorten units, it has many.
            let step = match column.rows.natural_rows().unwrap_or(0) / unit {
                _ if units.is_cut() => MOST_UNITS,
                units => units.clamp(1, MOST_UNITS),
            };
            // A column's own file and the table's have the same pages for the same rows, so they share the results.
            let leaves_of_it = leaves.len();
            let pages = format_args!("parquet-pages {VERSION} leaves {leaves_of_it} rows {rows} by {unit}{cuts}");
            let keeper = column.keeper.clone().map(|keeper| keeper.with(pages));
            Some(Meter::new(MeasuredColumn { column, leaves }, units.clone(), step as usize, keeper))
        });
        let columns = columns.collect();
        Self { groups: groups.clone(), columns }
    }

    /// Returns the pages of each leaf; waits for passes over unknown lengths.
    pub fn pages(&self, interrupt: &Interrupt) -> Result<LeafPages, Error> {
        let mut pages = BTreeMap::new();
        for meter in &self.columns {
            let (column, units) = (meter.measured(), meter.all(interrupt)?);
            let (stretches, padded) = (meter.stretches(interrupt)?, !meter.is_by_values(0));
            for (which, (position, _)) in column.leaves.iter().enumerate() {
                let all = stretches.runs().iter().flat_map(|run| {
                    let blocks = if run.alike { 1 } else { run.units as usize };
                    let times = if run.alike { run.units } else { 1 };
                    let blocks = (run.block..run.block + blocks)
                        .filter_map(|block| units.get(block).and_then(|leaves| leaves.get(which)));
                    blocks.flat_map(move |pages| repeated(pages, times))
                });
                pages.insert(*position, Arc::new(self.measured(column, padded, all)?));
            }
        }
        Ok(pages)
    }

    /// Returns pages of likely upper bounds, estimated from a sample. `None`: [`MeasuredLeaves::pages`] takes no longer
    /// than a sample.
    pub fn typical(&self, interrupt: &Interrupt) -> Result<Option<LeafPages>, Error> {
        let mut work = 0_u64;
        for meter in &self.columns {
            work = work.saturating_add(meter.work(interrupt)?);
        }
        if work <= AT_STAT {
            return Ok(None);
        }
        let mut pages = BTreeMap::new();
        for meter in &self.columns {
            let (column, sample) = (meter.measured(), meter.sample(interrupt)?);
            let stretches = meter.stretches(interrupt)?;
            for (which, (position, _)) in column.leaves.iter().enumerate() {
                let all = stretches.runs().iter().flat_map(|run| {
                    let typical = if run.alike { &sample.alike } else { &sample.stored };
                    let typical = typical.as_chunks().0.get(which).copied().unwrap_or_default();
                    let unit = meter.units().per_block();
                    stretches.parts_of(run).flat_map(move |rows| typical_pages(typical, rows.end - rows.start, unit))
                });
                pages.insert(*position, Arc::new(self.measured(column, true, all)?));
            }
        }
        Ok(Some(pages))
    }

    fn measured(
        &self,
        column: &MeasuredColumn,
        padded: bool,
        pages: impl Iterator<Item = (Page, u64)>,
    ) -> Result<MeasuredPages, Error> {
        let measured = MeasuredPages::new(&self.groups, padded, pages);
        measured.ok_or_else(|| column.column.unsupported("pages do not cover all rows"))
    }

    /// Whether no column needs measuring.
    pub fn is_fixed(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether the pages are known, so that [`MeasuredLeaves::pages`] reads no value.
    pub fn is_known(&self) -> bool {
        self.columns.iter().all(Meter::is_known)
    }

    /// Whether the pages are known, or kept in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        for meter in &self.columns {
            if !meter.is_found(interrupt)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records that a page of this leaf is longer than its outline says: its column is measured by values from now on.
    pub fn distrust(&self, leaf: usize) {
        let of_leaf = self.columns.iter().filter(|meter| meter.measured().leaves.iter().any(|(at, _)| *at == leaf));
        of_leaf.for_each(|meter| meter.distrust(0));
    }

    /// Whether some page was found longer than its outline says.
    pub fn is_distrusted(&self) -> bool {
        self.columns.iter().any(Meter::is_distrusted)
    }

    /// Returns the progress of the passes. `None`: no column needs measuring.
    pub fn progress(&self) -> Option<PassProgress> {
        PassProgress::sum(self.columns.iter().map(Meter::progress))
    }
}

/// Repeats the pages of a unit; equal pages are merged.
fn repeated(pages: &[Page], times: u64) -> impl Iterator<Item = (Page, u64)> {
    let alike = pages.first().filter(|first| times > 1 && pages.iter().all(|page| page == *first)).copied();
    let one_by_one = if alike.is_some() { 0 } else { times };
    let alike = alike.map(|page| (page, times * pages.len() as u64));
    alike.into_iter().chain((0..one_by_one).flat_map(move |_| pages.iter().map(|page| (*page, 1))))
}

/// Returns pages of the rows of some units, each with about this many bytes and entries. The last page may be short.
fn typical_pages([bytes, entries]: [u64; 2], rows: u64, unit: u64) -> impl Iterator<Item = (Page, u64)> {
    let count = (bytes / (PAGE_BYTES * 3 / 4)).max(1).next_power_of_two().min(unit);
    let per_page = unit / count;
    let rest = rows % per_page;
    let pages = [(per_page, rows / per_page), (rest.max(1), u64::from(rest > 0))];
    pages.into_iter().map(move |(rows, count)| {
        let [bytes, entries] =
            [bytes, entries].map(|all| u32::try_from(u128::from(all) * u128::from(rows) / u128::from(unit) + 1));
        // A unit has no more rows than fit in 32 bits.
        let rows = rows as u32;
        (Page { rows, bytes: bytes.unwrap_or(u32::MAX), entries: entries.unwrap_or(u32::MAX) }, count)
    })
}

/// The bytes and the entries of each body.
fn numbers(bodies: Vec<Body>) -> Vec<u64> {
    bodies.iter().flat_map(|body| [body.bytes, body.entries.into()]).collect()
}

/// A column's numbers are the bytes and the entries of the pages of each leaf.
impl measure::Measurable for MeasuredColumn {
    type Unit = UnitPages;

    fn columns(&self) -> usize {
        1
    }

    fn variable(&self) -> impl Iterator<Item = (usize, &dyn Rows)> {
        std::iter::once((0, self.column.rows.as_ref()))
    }

    fn numbers(&self, _: usize) -> usize {
        2 * self.leaves.len()
    }

    fn measure(&self, rows: RowRange, by_values: &[bool], interrupt: &Interrupt) -> Result<UnitPages, Error> {
        let mut pages = vec![Vec::new(); self.leaves.len()];
        self.divided(rows, by_values.first().copied().unwrap_or(true), &mut pages, interrupt)?;
        Ok(pages)
    }

    fn look(&self, _: usize, rows: RowRange, look: &mut Look, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let Some(outline) = self.outline(rows.clone(), interrupt)? else {
            look.by_values = true;
            let array = self.column.rows.array(rows, interrupt)?;
            let bodies = self.leaves.iter().map(|(_, leaf)| leaf.measure(&array).map_err(|misfit| self.failed(misfit)));
            return Ok(numbers(bodies.collect::<Result<_, _>>()?));
        };
        if self.leaves.iter().any(|(_, leaf)| leaf.holds_texts())
            && let Some(end) = Look::few(self.column.rows.as_ref(), &rows, interrupt)?
        {
            let array = self.column.rows.array(rows.start..end, interrupt)?;
            let few = outline.slice(0, array.len().min(outline.len()));
            for (_, leaf) in &self.leaves {
                let bytes = leaf.measure(&array).map_err(|misfit| self.failed(misfit))?.bytes;
                let most = self.room(leaf, &few).map_err(|misfit| self.failed(misfit))?.map_or(0, |body| body.bytes);
                look.by_values |= bytes > most;
                (look.shown, look.room) = (look.shown + bytes, look.room + most);
            }
        }
        let rooms = self.leaves.iter().map(|(_, leaf)| self.room(leaf, &outline));
        let rooms = rooms.map(|room| room.map_err(|misfit| self.failed(misfit)));
        Ok(numbers(rooms.collect::<Result<Option<_>, Error>>()?.unwrap_or_default()))
    }

    fn is_passed_over(error: &Error) -> bool {
        matches!(error, Error::Chunk { .. } | Error::Heap { .. } | Error::TooLarge { .. })
    }

    fn grows(number: usize) -> bool {
        number.is_multiple_of(2)
    }

    fn entries(&self, _: usize, numbers: &[u64]) -> u64 {
        numbers.iter().skip(1).step_by(2).copied().max().unwrap_or(0)
    }
}

impl MeasuredColumn {
    fn failed(&self, misfit: Misfit) -> Error {
        self.column.unsupported(misfit)
    }

    /// Returns the outline of some rows, if it suffices to bound all leaves.
    fn outline(&self, rows: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let Some(outline) = self.column.rows.outline(rows, interrupt)? else { return Ok(None) };
        let none = outline.slice(0, 0);
        let tells = self.leaves.iter().all(|(_, leaf)| matches!(self.room(leaf, &none), Ok(Some(_))));
        Ok(tells.then_some(outline))
    }

    /// Returns the room for a page of rows with this outline.
    fn room(&self, leaf: &ParquetLeaf, outline: &ArrayRef) -> Result<Option<Body>, Misfit> {
        Ok(leaf.room(outline, self.column.rows.outline_tells_nulls())?.map(|body| {
            let spare = if leaf.holds_texts() { body.bytes / SPARE_PART } else { 0 };
            Body { bytes: body.bytes + spare, ..body }
        }))
    }

    fn divided(
        &self,
        rows: RowRange,
        by_values: bool,
        pages: &mut [Vec<Page>],
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let count = rows.end - rows.start;
        match self.whole(rows.clone(), by_values, pages, interrupt) {
            Err(error) if is_divisible(&error, count) => {
                let middle = rows.start + half(count);
                self.divided(rows.start..middle, by_values, pages, interrupt)?;
                self.divided(middle..rows.end, by_values, pages, interrupt)
            }
            // An unreadable page keeps a place, so that others stay readable; reading it fails.
            Err(Error::Chunk { .. } | Error::Heap { .. }) => {
                let rows = u32::try_from(count).unwrap_or(u32::MAX);
                pages.iter_mut().for_each(|pages| pages.push(Page { rows, bytes: 0, entries: rows }));
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn whole(
        &self,
        rows: RowRange,
        by_values: bool,
        pages: &mut [Vec<Page>],
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        if !by_values && let Some(outline) = self.outline(rows.clone(), interrupt)? {
            return self.divide_all(
                &outline,
                &|leaf, rows| self.room(leaf, rows)?.ok_or_else(|| Misfit::Array("no outline".into())),
                pages,
            );
        }
        let before: Vec<usize> = pages.iter().map(Vec::len).collect();
        let whole = for_each_array(self.column.rows.as_ref(), rows, MOST_BYTES, interrupt, &mut |_, array| {
            self.divide_all(&array, &ParquetLeaf::measure, pages)
        });
        if whole.is_err() {
            // The caller retries with fewer rows.
            pages.iter_mut().zip(before).for_each(|(pages, before)| pages.truncate(before));
        }
        whole
    }

    /// Cuts an array into pages, leaf by leaf.
    fn divide_all(
        &self,
        array: &ArrayRef,
        measure: &dyn Fn(&ParquetLeaf, &ArrayRef) -> Result<Body, Misfit>,
        pages: &mut [Vec<Page>],
    ) -> Result<(), Error> {
        let mut leaves = self.leaves.iter().zip(pages);
        let divided = leaves.try_for_each(|((_, leaf), pages)| divide(leaf, array, measure, pages));
        divided.map_err(|misfit| self.failed(misfit))
    }
}

/// Whether fewer rows than this many may be read, though all of them fail.
fn is_divisible(error: &Error, rows: u64) -> bool {
    match error {
        // The rows are more than the store returns at once.
        Error::TooLarge { .. } => rows > 1,
        // Some of these rows cannot be read.
        Error::Chunk { .. } | Error::Heap { .. } => rows > LEAST_UNREADABLE,
        _ => false,
    }
}

/// Returns the largest power of two below a number above 1.
fn half(rows: u64) -> u64 {
    rows.next_power_of_two() / 2
}

/// Cuts an array into pages of at most [`PAGE_BYTES`], or of one row, by `measure`.
fn divide(
    leaf: &ParquetLeaf,
    array: &ArrayRef,
    measure: &dyn Fn(&ParquetLeaf, &ArrayRef) -> Result<Body, Misfit>,
    pages: &mut Vec<Page>,
) -> Result<(), Misfit> {
    let rows = array.len();
    let whole = measure(leaf, array);
    let is_too_large = match &whole {
        Ok(body) => body.bytes > PAGE_BYTES,
        Err(misfit) => matches!(misfit, Misfit::Size(_)),
    };
    if rows > 1 && is_too_large {
        let middle = half(rows as u64) as usize;
        divide(leaf, &array.slice(0, middle), measure, pages)?;
        return divide(leaf, &array.slice(middle, rows - middle), measure, pages);
    }
    let body = whole?;
    let rows = u32::try_from(rows).map_err(|error| Misfit::Size(error.to_string()))?;
    let bytes = u32::try_from(body.bytes).map_err(|error| Misfit::Size(error.to_string()))?;
    pages.push(Page { rows, bytes, entries: body.entries });
    Ok(())
}
