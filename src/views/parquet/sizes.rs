//! Pages of leaf columns whose values have no fixed length.
//!
//! A pass finds how long they are: by their [outlines](crate::store::Rows::outline), which take descriptors and offsets
//! alone, or by the values themselves. Where even that would keep `stat` waiting, a sample says how much room all pages
//! take as a rule, and the file has that length.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef};
use serde::{Deserialize, Serialize};

use super::body::leaf::{Body, Leaf};
use super::columns::{ParquetColumn, Prepared};
use super::layout::{Groups, Measured, PAGE_BYTES, Page};
use crate::source::Interrupt;
use crate::store::pass::{Keeper, Measure, Pass, Progress};
use crate::store::{Blocked, Cuts, Error, RowRange, for_each_array};
use crate::views::Misfit;
use crate::views::stretches::{Stretches, estimate, is_small};

/// Counts changes of how pages are cut or written: what was kept before one is not used after it.
const VERSION: u32 = 4;

/// Rows measured at once, and of a page at most, unless row groups have fewer: it divides each that has not.
const UNIT: u64 = 65_536;

/// Rows that are given up together where one of them cannot be read.
const LEAST_UNREADABLE: u64 = 1024;

/// Units of one step of a pass at most.
const MOST_UNITS: u64 = 16;

/// Values and lists whose outlines are looked at while `stat` waits, in all columns of a file together.
const AT_STAT: u64 = 1 << 18;

/// Values that are as long to measure as one outline.
const PER_VALUE: u64 = 1 << 4;

/// Bytes of values that are measured together.
const MOST_BYTES: u64 = 16 << 20;

/// Bytes of texts that are looked at in each place of a sample.
const SAMPLED_BYTES: u64 = 64 << 10;

/// Of texts, this part of a page is left for bytes that are no UTF-8 and grow to three.
const SPARE_PART: u64 = 128;

/// The pages of a unit, for each measured leaf of its column.
type UnitPages = Vec<Vec<Page>>;

/// Measured pages of leaf columns, by their position among all.
pub(super) type LeafPages = BTreeMap<usize, Arc<Measured>>;

/// The leaf columns of a file that must be measured, by column.
pub(super) struct Sizes {
    groups: Groups,
    columns: Vec<Lengths>,
}

/// What is known of the lengths of a column.
struct Lengths {
    measured: Arc<MeasuredColumn>,
    sample: OnceLock<Sample>,
    pass: OnceLock<Arc<Pass<UnitPages>>>,
    /// A page turned out longer than its outline said.
    distrusted: AtomicBool,
}

#[derive(Debug)]
struct MeasuredColumn {
    column: ParquetColumn,
    /// Units of rows, a power of two of them where nothing cuts them short.
    units: Blocked,
    /// Tells where that is.
    cuts: Option<u64>,
    /// With the position of each among all leaves.
    leaves: Vec<(usize, Leaf)>,
    stretches: OnceLock<Stretches>,
    /// It takes no longer than a sample to measure all values.
    small: OnceLock<bool>,
    by_values: OnceLock<bool>,
}

/// What some rows tell of all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Sample {
    /// Outlines do not tell how long pages are.
    by_values: bool,
    /// Outlines to look at, or as much work.
    work: u64,
    /// Of each measured leaf, room for a unit of rows that may be stored, and of one that is not.
    stored: Vec<Typical>,
    alike: Vec<Typical>,
}

/// Room for the pages of a unit, as a rule.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Typical {
    bytes: u64,
    entries: u64,
}

impl Sizes {
    /// Reads nothing.
    pub fn new(columns: &[ParquetColumn], prepared: &Prepared) -> Self {
        let groups = &prepared.groups;
        let units = Blocked::new(groups.rows(), UNIT.min(groups.per_group()), groups.cuts.as_ref());
        let mut leaves: BTreeMap<usize, Vec<(usize, Leaf)>> = BTreeMap::new();
        if groups.rows() > 0 {
            for (position, leaf) in prepared.leaves.iter().enumerate().filter(|(_, leaf)| leaf.slots.is_none()) {
                leaves.entry(leaf.column).or_default().push((position, leaf.leaf.clone()));
            }
        }
        let columns = leaves.into_iter().filter_map(|(column, leaves)| {
            let (stretches, small, by_values) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
            let column = columns.get(column)?.clone();
            let (units, cuts) = (units.clone(), groups.cuts.as_ref().map(Cuts::digest));
            let measured = Arc::new(MeasuredColumn { column, units, cuts, leaves, stretches, small, by_values });
            let (sample, pass, distrusted) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
            Some(Lengths { measured, sample, pass, distrusted })
        });
        let columns = columns.collect();
        Self { groups: groups.clone(), columns }
    }

    /// The pages of each leaf: waits for passes over what is not known.
    pub fn pages(&self, interrupt: &Interrupt) -> Result<LeafPages, Error> {
        let mut pages = BTreeMap::new();
        for lengths in &self.columns {
            let column = &lengths.measured;
            let units = lengths.pass(interrupt)?.all(interrupt)?;
            let (stretches, padded) = (column.stretches(interrupt)?, !column.by_values());
            for (which, (position, _)) in column.leaves.iter().enumerate() {
                let of_block = |block: usize| units.get(block).and_then(|leaves| leaves.get(which));
                let all = stretches.runs().iter().flat_map(|run| {
                    let blocks = if run.alike { 1 } else { run.units as usize };
                    let times = if run.alike { run.units } else { 1 };
                    let blocks = (run.block..run.block + blocks).filter_map(of_block);
                    blocks.flat_map(move |pages| repeated(pages, times))
                });
                pages.insert(*position, Arc::new(self.measured(column, padded, all)?));
            }
        }
        Ok(pages)
    }

    /// Pages as long as those of each leaf are as a rule, and a quarter more; `None` where [`Sizes::pages`] takes no
    /// longer than a sample.
    pub fn typical(&self, interrupt: &Interrupt) -> Result<Option<LeafPages>, Error> {
        let mut work = 0_u64;
        for lengths in &self.columns {
            if !lengths.measured.is_small(interrupt)? {
                work = work.saturating_add(lengths.sample(interrupt)?.work);
            }
        }
        if work <= AT_STAT {
            return Ok(None);
        }
        let mut pages = BTreeMap::new();
        for lengths in &self.columns {
            let (column, sample) = (&lengths.measured, lengths.sample(interrupt)?);
            let stretches = column.stretches(interrupt)?;
            for (which, (position, _)) in column.leaves.iter().enumerate() {
                let all = stretches.runs().iter().flat_map(|run| {
                    let typical = if run.alike { &sample.alike } else { &sample.stored };
                    let typical = typical.get(which).copied().unwrap_or_default();
                    let unit = column.units.per_block();
                    stretches.parts_of(run).flat_map(move |rows| typical.pages(rows.end - rows.start, unit))
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
    ) -> Result<Measured, Error> {
        let measured = Measured::new(&self.groups, padded, pages);
        measured.ok_or_else(|| column.column.unsupported("pages do not cover all rows"))
    }

    /// Whether there is nothing to measure.
    pub fn is_fixed(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether all is known, so that [`Sizes::pages`] reads no value.
    pub fn is_known(&self) -> bool {
        self.columns.iter().all(|lengths| lengths.pass.get().is_some_and(|pass| pass.known().is_some()))
    }

    /// The same, or found in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        for lengths in &self.columns {
            if lengths.pass(interrupt)?.found().is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A page of this leaf is longer than its outline says: its column is measured by its values from now on.
    pub fn distrust(&self, leaf: usize) {
        let has_leaf = |lengths: &&Lengths| lengths.measured.leaves.iter().any(|(position, _)| *position == leaf);
        for lengths in self.columns.iter().filter(has_leaf).filter(|lengths| !lengths.measured.by_values()) {
            if !lengths.distrusted.swap(true, Ordering::Relaxed)
                && let Some(Keeper { file, what }) = lengths.measured.keeper("by-values")
            {
                file.note(&what, &[1], true);
            }
        }
    }

    /// Whether a page was found that is longer than its outline says.
    pub fn is_distrusted(&self) -> bool {
        self.columns.iter().any(|lengths| lengths.distrusted.load(Ordering::Relaxed))
    }

    /// How far the passes are; `None` where there is nothing to measure.
    pub fn progress(&self) -> Option<Progress> {
        let progress = |lengths: &Lengths| match lengths.pass.get() {
            Some(pass) => pass.progress(),
            None => Progress { done: 0, all: lengths.measured.units.count(), kept: None },
        };
        Progress::sum(self.columns.iter().map(progress))
    }
}

/// The pages of a unit that is repeated; pages that are alike as one.
fn repeated(pages: &[Page], times: u64) -> impl Iterator<Item = (Page, u64)> {
    let alike = pages.first().filter(|first| times > 1 && pages.iter().all(|page| page == *first)).copied();
    let one_by_one = if alike.is_some() { 0 } else { times };
    let alike = alike.map(|page| (page, times * pages.len() as u64));
    alike.into_iter().chain((0..one_by_one).flat_map(move |_| pages.iter().map(|page| (*page, 1))))
}

impl Typical {
    /// Pages of a fixed number of rows of some units; the last may be short.
    fn pages(self, rows: u64, unit: u64) -> impl Iterator<Item = (Page, u64)> {
        let count = (self.bytes / (PAGE_BYTES * 3 / 4)).max(1).next_power_of_two().min(unit);
        let per_page = unit / count;
        let part = move |rows: u64| {
            let share = |all: u64| u32::try_from(u128::from(all) * u128::from(rows) / u128::from(unit) + 1);
            let (bytes, entries) = (share(self.bytes), share(self.entries));
            // No more rows than a unit.
            Page { rows: rows as u32, bytes: bytes.unwrap_or(u32::MAX), entries: entries.unwrap_or(u32::MAX) }
        };
        let rest = rows % per_page;
        [(part(per_page), rows / per_page), (part(rest.max(1)), u64::from(rest > 0))].into_iter()
    }
}

impl Lengths {
    fn sample(&self, interrupt: &Interrupt) -> Result<&Sample, Error> {
        if let Some(sample) = self.sample.get() {
            return Ok(sample);
        }
        let keeper = self.measured.keeper("sample");
        let sample = Keeper::recall_or(keeper, |_| true, || self.measured.sample(interrupt))?;
        Ok(self.sample.get_or_init(|| sample))
    }

    fn pass(&self, interrupt: &Interrupt) -> Result<&Arc<Pass<UnitPages>>, Error> {
        if let Some(pass) = self.pass.get() {
            return Ok(pass);
        }
        let column = &self.measured;
        let is_marked = |Keeper { file, what }: Keeper| file.recall(&what).is_some();
        let by_values = column.is_small(interrupt)?
            || column.keeper("by-values").is_some_and(is_marked)
            || self.sample(interrupt)?.by_values;
        let by_values = *column.by_values.get_or_init(|| by_values);
        let blocks = column.stretches(interrupt)?.blocks();
        let keeper = column.keeper(if by_values { "exact" } else { "room" });
        let pass = || Pass::new(blocks, column.units_of_step(), column.clone() as _, keeper);
        Ok(self.pass.get_or_init(pass))
    }
}

impl Measure<UnitPages> for MeasuredColumn {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<UnitPages>, Error> {
        let stretches = self.stretches(interrupt)?;
        let unit = |block: usize| {
            interrupt.check()?;
            let mut pages = vec![Vec::new(); self.leaves.len()];
            self.measure(stretches.rows_of(block), &mut pages, interrupt)?;
            Ok(pages)
        };
        blocks.map(unit).collect()
    }
}

impl MeasuredColumn {
    fn is_small(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        if let Some(small) = self.small.get() {
            return Ok(*small);
        }
        let small = is_small(self.column.rows.as_ref(), self.units.rows(), interrupt)?;
        Ok(*self.small.get_or_init(|| small))
    }

    fn stretches(&self, interrupt: &Interrupt) -> Result<&Stretches, Error> {
        if let Some(stretches) = self.stretches.get() {
            return Ok(stretches);
        }
        let stretches = Stretches::find(self.units.clone(), |row| {
            interrupt.check()?;
            self.column.rows.alike_until(row, interrupt)
        })?;
        Ok(self.stretches.get_or_init(|| stretches))
    }

    fn by_values(&self) -> bool {
        self.by_values.get().copied().unwrap_or(true)
    }

    /// Units of a step: those of a chunk, so that it is decoded once; many where they are cut short.
    fn units_of_step(&self) -> usize {
        if self.units.is_cut() {
            return MOST_UNITS as usize;
        }
        let natural = self.column.rows.natural_rows().unwrap_or(0);
        (natural / self.units.per_block()).clamp(1, MOST_UNITS) as usize
    }

    /// The file of a column and the table's with the same rows have the same pages.
    fn keeper(&self, of: &str) -> Option<Keeper> {
        let Keeper { file, what } = self.column.keeper.clone()?;
        let (leaves, rows, unit) = (self.leaves.len(), self.units.rows(), self.units.per_block());
        let cuts = self.cuts.map_or(String::new(), |cuts| format!(" cut {cuts:016x}"));
        Some(Keeper {
            file,
            what: format!("{what} parquet-pages {VERSION} {of} leaves {leaves} rows {rows} by {unit}{cuts}"),
        })
    }

    /// Looks at some rows.
    fn sample(&self, interrupt: &Interrupt) -> Result<Sample, Error> {
        let (stretches, unit) = (self.stretches(interrupt)?, self.units.per_block());
        let mut by_values = false;
        let mut grown = (0, 0);
        let mut of = |alike: bool| {
            let mut seen = vec![Vec::new(); self.leaves.len()];
            for rows in stretches.sample(alike) {
                let count = (rows.end - rows.start) as f64;
                match self.look(rows, &mut by_values, &mut grown, interrupt) {
                    Ok(bodies) => {
                        for (seen, body) in seen.iter_mut().zip(bodies) {
                            seen.push((body.bytes as f64 / count, f64::from(body.entries) / count));
                        }
                    }
                    // Others tell of them.
                    Err(Error::Chunk { .. } | Error::Heap { .. } | Error::TooLarge { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let typical = |seen: Vec<(f64, f64)>| Typical {
                bytes: (estimate(seen.iter().map(|(bytes, _)| *bytes), alike) * unit as f64) as u64,
                entries: (estimate(seen.iter().map(|(_, entries)| *entries), alike) * unit as f64) as u64,
            };
            Ok(seen.into_iter().map(typical).collect::<Vec<_>>())
        };
        let (mut stored, alike) = (of(false)?, of(true)?);
        // What is shown of texts may be longer than they are.
        let (shown, room) = grown;
        if shown > room {
            stored.iter_mut().for_each(|leaf| leaf.bytes = leaf.bytes.saturating_mul(shown) / u64::max(room, 1));
        }
        let entries = stored.iter().map(|leaf| leaf.entries).max().unwrap_or(0);
        let of_unit = unit.saturating_add(entries).saturating_mul(if by_values { PER_VALUE } else { 1 });
        let work = (stretches.stored_rows() / unit + stretches.runs().len() as u64).saturating_mul(of_unit);
        Ok(Sample { by_values, work, stored, alike })
    }

    /// The bodies of a page of some rows, for each leaf; sets `by_values` where that takes their values. Counts bytes
    /// of texts as shown and the room for them.
    fn look(
        &self,
        rows: RowRange,
        by_values: &mut bool,
        (shown, room): &mut (u64, u64),
        interrupt: &Interrupt,
    ) -> Result<Vec<Body>, Error> {
        interrupt.check()?;
        let Some(outline) = self.outline(rows.clone(), interrupt)? else {
            *by_values = true;
            let array = self.column.rows.array(rows, interrupt)?;
            return self
                .leaves
                .iter()
                .map(|(_, leaf)| leaf.measure(&array).map_err(|misfit| self.column.unsupported(misfit)))
                .collect();
        };
        if self.leaves.iter().any(|(_, leaf)| leaf.holds_texts()) {
            let few = self.column.rows.fitting(rows.clone(), SAMPLED_BYTES, interrupt)?;
            if few.bytes <= MOST_BYTES {
                let array = self.column.rows.array(rows.start..few.end, interrupt)?;
                let few = outline.slice(0, array.len().min(outline.len()));
                for (_, leaf) in &self.leaves {
                    let bytes = leaf.measure(&array).map_err(|misfit| self.column.unsupported(misfit))?.bytes;
                    let most = self
                        .room(leaf, &few)
                        .map_err(|misfit| self.column.unsupported(misfit))?
                        .map_or(0, |body| body.bytes);
                    *by_values |= bytes > most;
                    (*shown, *room) = (*shown + bytes, *room + most);
                }
            }
        }
        let rooms = self
            .leaves
            .iter()
            .map(|(_, leaf)| self.room(leaf, &outline).map_err(|misfit| self.column.unsupported(misfit)));
        Ok(rooms.collect::<Result<Option<Vec<Body>>, Error>>()?.unwrap_or_default())
    }

    /// The outline of some rows, where it tells how much room all leaves take.
    fn outline(&self, rows: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let Some(outline) = self.column.rows.outline(rows, interrupt)? else { return Ok(None) };
        let none = outline.slice(0, 0);
        let tells = self.leaves.iter().all(|(_, leaf)| matches!(self.room(leaf, &none), Ok(Some(_))));
        Ok(tells.then_some(outline))
    }

    /// Room for a page of rows with this outline.
    fn room(&self, leaf: &Leaf, outline: &ArrayRef) -> Result<Option<Body>, Misfit> {
        let spare = |body: Body| {
            let spare = if leaf.holds_texts() { body.bytes / SPARE_PART } else { 0 };
            Body { bytes: body.bytes + spare, ..body }
        };
        Ok(leaf.room(outline, self.column.rows.outline_tells_nulls())?.map(spare))
    }

    fn measure(&self, rows: RowRange, pages: &mut [Vec<Page>], interrupt: &Interrupt) -> Result<(), Error> {
        let count = rows.end - rows.start;
        match self.measure_whole(rows.clone(), pages, interrupt) {
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

    fn measure_whole(&self, rows: RowRange, pages: &mut [Vec<Page>], interrupt: &Interrupt) -> Result<(), Error> {
        if !self.by_values()
            && let Some(outline) = self.outline(rows.clone(), interrupt)?
        {
            let mut leaves = self.leaves.iter().zip(pages.iter_mut());
            let room =
                |leaf: &Leaf, rows: &ArrayRef| self.room(leaf, rows)?.ok_or_else(|| Misfit::Array("no outline".into()));
            return leaves.try_for_each(|((_, leaf), pages)| {
                divide(leaf, &outline, &room, pages).map_err(|misfit| self.column.unsupported(misfit))
            });
        }
        let before: Vec<usize> = pages.iter().map(Vec::len).collect();
        let whole = for_each_array(self.column.rows.as_ref(), rows, MOST_BYTES, interrupt, &mut |_, array| {
            let mut leaves = self.leaves.iter().zip(pages.iter_mut());
            leaves.try_for_each(|((_, leaf), pages)| {
                divide(leaf, &array, &Leaf::measure, pages).map_err(|misfit| self.column.unsupported(misfit))
            })
        });
        if whole.is_err() {
            // The caller tries parts of the rows.
            pages.iter_mut().zip(before).for_each(|(pages, before)| pages.truncate(before));
        }
        whole
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

/// Cuts an array into pages of at most [`PAGE_BYTES`], or of one row, as `measure` tells.
fn divide(
    leaf: &Leaf,
    array: &ArrayRef,
    measure: &dyn Fn(&Leaf, &ArrayRef) -> Result<Body, Misfit>,
    pages: &mut Vec<Page>,
) -> Result<(), Misfit> {
    let rows = array.len();
    let whole = measure(leaf, array);
    // An error may say that there are more values than a page can count.
    if rows > 1 && whole.as_ref().map_or(true, |body| body.bytes > PAGE_BYTES) {
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
