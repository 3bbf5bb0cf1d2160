//! Lengths of lists and of text of variable length, learnt by a pass over the rows, for each piece of them.
//!
//! Of each piece of rows, each column has: 0 or 1 where it cannot be read, and its lengths. All are kept as sums
//! from the first row on; pieces that are alike because nothing of them is stored are one.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::source::Interrupt;
use crate::store::pass::{self, Keeper, Measure};
use crate::store::{Blocked, Error, RowRange, for_each_counted};
use crate::views::Misfit;
use crate::views::ipc::IpcColumn;
use crate::views::ipc::plan::{self, Kind, Node, Plan, walk};
use crate::views::ipc::table::{Table, lengths_of};
use crate::views::stretches::{Stretches, estimate, is_small};

/// What a change of what is learnt of a piece must raise, so that nothing kept before is believed.
const VERSION: u32 = 4;

/// Rows of a step of the pass, about.
const STEP: u64 = 1 << 17;

/// Values and lists whose outlines are looked at while `stat` waits.
const AT_STAT: u64 = 1 << 18;

/// Values that are as long to measure as one outline.
const PER_VALUE: u64 = 1 << 4;

/// Bytes of values that are measured together.
const MOST_BYTES: u64 = 16 << 20;

/// Bytes of texts that are looked at in each place of a sample.
const SAMPLED_BYTES: u64 = 64 << 10;

/// What a pass learns.
pub(in crate::views::ipc) struct Pass {
    measured: Arc<Measured>,
    keeper: Option<Keeper>,
    sample: OnceLock<Sample>,
    /// The numbers of each piece.
    pieces: OnceLock<Arc<pass::Pass<Learnt>>>,
    sums: OnceLock<Lengths>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("sums", &self.sums).finish_non_exhaustive()
    }
}

/// What is learnt of a piece of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Learnt {
    /// Of each column what [`lengths_of`] counts.
    numbers: Vec<u64>,
    /// All could be read. Otherwise nothing is kept in the cache folder: an option or another plugin may help next
    /// time.
    #[serde(serialize_with = "only_if_readable")]
    readable: bool,
}

fn only_if_readable<S: Serializer>(readable: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    if *readable { serializer.serialize_bool(true) } else { Err(S::Error::custom("rows that cannot be read")) }
}

/// What some rows tell of all.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sample {
    /// Columns whose outlines do not tell how long they are.
    by_values: Vec<bool>,
    /// Outlines to look at, or as much work.
    work: u64,
    /// Numbers of a piece that may be stored, and of one that is not, as a rule.
    stored: Vec<u64>,
    alike: Vec<u64>,
}

/// Lengths, summed.
#[derive(Debug)]
pub(in crate::views::ipc) struct Lengths {
    stretches: Arc<Stretches>,
    /// First number of each column.
    first: Vec<usize>,
    /// One more than blocks of pieces.
    stride: usize,
    /// For each number, its sum before each block and after the last.
    sums: Vec<u64>,
}

impl Pass {
    /// A pass that has not begun; `None` where no size depends on the values.
    pub fn new(table: &Arc<Table>, keeper: Option<Keeper>) -> Option<Self> {
        let numbers = table.lengths();
        if numbers == 0 {
            return None;
        }
        let (stretches, small, by_values) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (table, distrusted) = (Arc::clone(table), AtomicBool::new(false));
        let measured = Arc::new(Measured { table, numbers, stretches, small, by_values, distrusted });
        let (sample, pieces, sums) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Some(Self { measured, keeper, sample, pieces, sums })
    }

    fn keeper(&self, of: &str) -> Option<Keeper> {
        let Keeper { file, what } = self.keeper.clone()?;
        let (numbers, piece) = (self.measured.numbers, self.measured.table.variable_piece);
        Some(Keeper { file, what: format!("{what} arrow-lengths {VERSION} {of}: {numbers} of {piece} rows") })
    }

    fn pass(&self, interrupt: &Interrupt) -> Result<&Arc<pass::Pass<Learnt>>, Error> {
        if let Some(pieces) = self.pieces.get() {
            return Ok(pieces);
        }
        let table = &self.measured.table;
        let mut by_values = vec![true; table.plans.len()];
        if !self.measured.is_small(interrupt)? {
            let is_marked =
                |column| self.keeper(&mark(column)).is_some_and(|keeper| keeper.file.recall(&keeper.what).is_some());
            by_values.clone_from(&self.sample(interrupt)?.by_values);
            by_values.iter_mut().enumerate().for_each(|(column, by_values)| *by_values |= is_marked(column));
        }
        let by_values = self.measured.by_values.get_or_init(|| by_values);
        let blocks = self.measured.stretches(interrupt)?.blocks();
        let step = usize::try_from(STEP / table.variable_piece).unwrap_or(1).max(1);
        let modes: String = by_values.iter().map(|by_values| if *by_values { '1' } else { '0' }).collect();
        let pass = || pass::Pass::new(blocks, step, self.measured.clone(), self.keeper(&modes));
        Ok(self.pieces.get_or_init(pass))
    }

    fn sample(&self, interrupt: &Interrupt) -> Result<&Sample, Error> {
        if let Some(sample) = self.sample.get() {
            return Ok(sample);
        }
        let keeper = self.keeper("sample");
        let is_ours = |known: &Sample| known.by_values.len() == self.measured.table.plans.len();
        let sample = Keeper::recall_or(keeper, is_ours, || self.measured.sample(interrupt))?;
        Ok(self.sample.get_or_init(|| sample))
    }

    /// Lengths as they are as a rule, and a quarter more; `None` where [`Pass::lengths`] takes no longer than a sample.
    pub fn typical(&self, interrupt: &Interrupt) -> Result<Option<Lengths>, Error> {
        if self.measured.is_small(interrupt)? {
            return Ok(None);
        }
        let sample = self.sample(interrupt)?;
        if sample.work <= AT_STAT {
            return Ok(None);
        }
        let stretches = self.measured.stretches(interrupt)?;
        let typical = |_, alike| if alike { &*sample.alike } else { &*sample.stored };
        Ok(Some(Lengths::new(&self.measured.table, stretches, typical)))
    }

    /// What was learnt, if all of it was.
    pub fn known(&self) -> Option<&Lengths> {
        self.sums.get()
    }

    /// Whether all of it is known, or kept in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        Ok(self.sums.get().is_some() || self.pass(interrupt)?.found().is_some())
    }

    /// How far it is.
    pub fn progress(&self) -> pass::Progress {
        let table = &self.measured.table;
        let all = table.rows.div_ceil(table.variable_piece);
        self.pieces.get().map_or(pass::Progress { done: 0, all, kept: None }, |pieces| pieces.progress())
    }

    /// A piece of this column is not as long as its outline says: it is measured by its values from now on.
    pub fn distrust(&self, column: usize) {
        let by_outline = self.measured.by_values.get().is_some_and(|by_values| by_values.get(column) == Some(&false));
        if !by_outline || self.measured.distrusted.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(Keeper { file, what }) = self.keeper(&mark(column)) {
            file.note(&what, &[1], true);
        }
    }

    /// Whether a piece was found that is not as long as its outline says.
    pub fn is_distrusted(&self) -> bool {
        self.measured.distrusted.load(Ordering::Relaxed)
    }

    /// Waits until everything is learnt.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; and where the source cannot be read. Rows that cannot be decoded are learnt as such.
    pub fn lengths(&self, interrupt: &Interrupt) -> Result<&Lengths, Error> {
        if let Some(known) = self.sums.get() {
            return Ok(known);
        }
        let pieces = self.pass(interrupt)?.all(interrupt)?;
        let stretches = self.measured.stretches(interrupt)?;
        let numbers = |block: usize, _| pieces.get(block).map_or(&[][..], |piece| &piece.numbers);
        Ok(self.sums.get_or_init(|| Lengths::new(&self.measured.table, stretches, numbers)))
    }
}

/// What is noted of a column that must be measured by its values.
fn mark(column: usize) -> String {
    format!("by-values {column}")
}

impl Lengths {
    /// Sums the numbers of each block, or of one that is alike.
    fn new<'a>(table: &Table, stretches: &Arc<Stretches>, of: impl Fn(usize, bool) -> &'a [u64]) -> Self {
        let mut numbers = 0;
        let mut first = Vec::with_capacity(table.plans.len());
        for plan in &table.plans {
            first.push(numbers);
            numbers += lengths_of(plan);
        }
        let stride = stretches.blocks() + 1;
        let mut sums = Vec::with_capacity(numbers * stride);
        for number in 0..numbers {
            let mut sum = 0_u64;
            sums.push(sum);
            for run in stretches.runs() {
                let (blocks, times) = if run.alike { (1, run.units) } else { (run.units as usize, 1) };
                for block in run.block..run.block + blocks {
                    let each = of(block, run.alike).get(number).copied().unwrap_or(0);
                    sum = sum.saturating_add(each.saturating_mul(times));
                    sums.push(sum);
                }
            }
        }
        Self { stretches: Arc::clone(stretches), first, stride, sums }
    }

    fn number(&self, column: usize, number: usize, pieces: Range<u64>) -> u64 {
        let of_column = self.first.get(column).and_then(|first| first.checked_add(number)?.checked_mul(self.stride));
        let Some(sums) = of_column.and_then(|start| self.sums.get(start..start.checked_add(self.stride)?)) else {
            return 0;
        };
        let at = |piece: u64| {
            let Some((run, block)) = self.stretches.unit(piece) else { return sums.last().copied().unwrap_or(0) };
            let before = sums.get(block).copied().unwrap_or(0);
            if !run.alike {
                return before;
            }
            let all = sums.get(block + 1).copied().unwrap_or(before) - before;
            // Each of them has as much.
            before + all / run.units.max(1) * (piece - run.first)
        };
        at(pieces.end).saturating_sub(at(pieces.start))
    }

    /// A length of a column, summed over pieces `first..end`.
    pub fn sum(&self, column: usize, length: usize, first: u64, end: u64) -> u64 {
        self.number(column, 1 + length, first..end)
    }

    /// Whether some rows of these pieces cannot be read.
    pub fn is_unreadable(&self, column: usize, pieces: Range<u64>) -> bool {
        self.number(column, 0, pieces) > 0
    }
}

/// Measures pieces.
struct Measured {
    table: Arc<Table>,
    /// Numbers of a piece.
    numbers: usize,
    stretches: OnceLock<Arc<Stretches>>,
    /// It takes no longer than a sample to measure all values.
    small: OnceLock<bool>,
    /// Of each column, whether its values are read.
    by_values: OnceLock<Vec<bool>>,
    distrusted: AtomicBool,
}

impl Measure<Learnt> for Measured {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<Learnt>, Error> {
        let stretches = self.stretches(interrupt)?;
        let piece = |block: usize| {
            let rows = stretches.rows_of(block);
            let mut learnt = Learnt { numbers: Vec::with_capacity(self.numbers), readable: true };
            for (column, (plan, shown)) in self.table.plans.iter().zip(&self.table.columns).enumerate() {
                let by_values = self.by_values.get().and_then(|by_values| by_values.get(column)).copied();
                measure_column(plan, shown, rows.clone(), by_values.unwrap_or(true), &mut learnt, interrupt)?;
            }
            Ok(learnt)
        };
        blocks.map(piece).collect()
    }
}

impl Measured {
    fn is_small(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        if let Some(small) = self.small.get() {
            return Ok(*small);
        }
        let mut variable = self.table.plans.iter().zip(&self.table.columns).filter(|(plan, _)| plan.is_variable());
        let is_small = |all: bool, (_, column): (_, &IpcColumn)| {
            Ok::<_, Error>(all && is_small(column.rows.as_ref(), self.table.rows, interrupt)?)
        };
        let small = variable.try_fold(true, is_small)?;
        Ok(*self.small.get_or_init(|| small))
    }

    fn stretches(&self, interrupt: &Interrupt) -> Result<&Arc<Stretches>, Error> {
        if let Some(stretches) = self.stretches.get() {
            return Ok(stretches);
        }
        let table = &self.table;
        let stretches = Stretches::find(Blocked::new(table.rows, table.variable_piece, None), |row| {
            interrupt.check()?;
            let mut end = u64::MAX;
            for (plan, column) in table.plans.iter().zip(&table.columns).filter(|(plan, _)| plan.is_variable()) {
                debug_assert!(plan.lengths > 0);
                if end > row {
                    end = end.min(column.rows.alike_until(row, interrupt)?);
                }
            }
            Ok(end)
        })?;
        Ok(self.stretches.get_or_init(|| Arc::new(stretches)))
    }

    /// Looks at some rows of all columns.
    fn sample(&self, interrupt: &Interrupt) -> Result<Sample, Error> {
        let (table, stretches) = (&self.table, self.stretches(interrupt)?);
        let mut sample = Sample { by_values: Vec::new(), work: 0, stored: Vec::new(), alike: Vec::new() };
        for (plan, column) in table.plans.iter().zip(&table.columns) {
            let mut look = Look { plan, column, by_values: false, shown: 0, room: 0 };
            if !plan.is_variable() {
                sample.by_values.push(false);
                continue;
            }
            let mut of = |alike: bool| {
                let mut seen = vec![Vec::new(); lengths_of(plan)];
                for rows in stretches.sample(alike) {
                    interrupt.check()?;
                    let count = (rows.end - rows.start).max(1) as f64;
                    match look.numbers(rows, interrupt) {
                        Ok(numbers) => {
                            for (seen, number) in seen.iter_mut().zip(numbers) {
                                seen.push(number as f64 / count);
                            }
                        }
                        // Others tell of them.
                        Err(error) if is_lasting(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                let typical = |seen: Vec<f64>| (estimate(seen.into_iter(), alike) * table.variable_piece as f64) as u64;
                Ok::<_, Error>(seen.into_iter().map(typical).collect::<Vec<u64>>())
            };
            let (mut stored, mut alike) = (of(false)?, of(true)?);
            // Nothing is unreadable as a rule.
            for numbers in [&mut stored, &mut alike] {
                if let Some(unreadable) = numbers.first_mut() {
                    *unreadable = 0;
                }
            }
            // What is shown of texts may be longer than they are.
            if look.shown > look.room {
                let grown = |number: &mut u64| *number = number.saturating_mul(look.shown) / look.room.max(1);
                stored.iter_mut().for_each(grown);
            }
            let longest = stored.iter().copied().max().unwrap_or(0);
            let of_piece = table.variable_piece.saturating_add(if plan.nodes.len() > 1 { longest } else { 0 });
            let pieces = stretches.stored_rows() / table.variable_piece + stretches.runs().len() as u64;
            let each = of_piece.saturating_mul(if look.by_values { PER_VALUE } else { 1 });
            sample.work = sample.work.saturating_add(pieces.saturating_mul(each));
            sample.by_values.push(look.by_values);
            sample.stored.append(&mut stored);
            sample.alike.append(&mut alike);
        }
        Ok(sample)
    }
}

/// A look at some rows of a column.
struct Look<'a> {
    plan: &'a Plan,
    column: &'a IpcColumn,
    by_values: bool,
    /// Bytes and items as shown, and as outlines have it.
    shown: u64,
    room: u64,
}

impl Look<'_> {
    fn numbers(&mut self, rows: RowRange, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let (plan, column) = (self.plan, self.column);
        let mut numbers = vec![0; lengths_of(plan)];
        let outline = column.rows.outline(rows.clone(), interrupt)?;
        let Some(outline) = outline.filter(|outline| add_outline(plan, outline, &mut numbers)) else {
            self.by_values = true;
            numbers.fill(0);
            add(plan, column, rows, &mut numbers, interrupt)?;
            return Ok(numbers);
        };
        if plan.nodes.iter().any(|node| matches!(node.kind, Kind::Text)) {
            let few = column.rows.fitting(rows.clone(), SAMPLED_BYTES, interrupt)?;
            if few.bytes <= MOST_BYTES {
                let outline = outline.slice(0, (few.end - rows.start).min(outline.len() as u64) as usize);
                let (mut shown, mut room) = (vec![0; numbers.len()], vec![0; numbers.len()]);
                add_outline(plan, &outline, &mut room);
                add(plan, column, rows.start..few.end, &mut shown, interrupt)?;
                self.by_values |= shown != room;
                let sum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
                (self.shown, self.room) =
                    (self.shown.saturating_add(sum(&shown)), self.room.saturating_add(sum(&room)));
            }
        }
        Ok(numbers)
    }
}

fn measure_column(
    plan: &Plan,
    column: &IpcColumn,
    rows: RowRange,
    by_values: bool,
    learnt: &mut Learnt,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let mut numbers = vec![0; lengths_of(plan)];
    if numbers.is_empty() {
        return Ok(());
    }
    interrupt.check()?;
    let outlined =
        if by_values { Ok(false) } else { add_outlines(plan, column, rows.clone(), &mut numbers, interrupt) };
    let outcome = match outlined {
        Ok(true) => Ok(()),
        Ok(false) => {
            numbers.fill(0);
            add(plan, column, rows, &mut numbers, interrupt)
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => {}
        // Unreadable rows take no room. Reading their bytes fails as this did.
        Err(error) if is_lasting(&error) => {
            numbers.fill(0);
            if let Some(unreadable) = numbers.first_mut() {
                *unreadable = 1;
            }
            learnt.readable = false;
        }
        Err(error) => return Err(error),
    }
    learnt.numbers.append(&mut numbers);
    Ok(())
}

/// Adds the lengths of some rows by their values.
fn add(
    plan: &Plan,
    column: &IpcColumn,
    rows: RowRange,
    numbers: &mut [u64],
    interrupt: &Interrupt,
) -> Result<(), Error> {
    for_each_counted(column.rows.as_ref(), rows, MOST_BYTES, interrupt, &mut |array, times| {
        walk(&plan.nodes, &array, &mut |node, _, array| {
            if let Some(number) = node.length.and_then(|length| numbers.get_mut(1 + length)) {
                let length = plan::length(array).ok_or_else(|| Misfit::Array("values of another type".into()))?;
                *number = number.saturating_add(length.saturating_mul(times));
            }
            Ok(())
        })
        .map_err(|misfit| Error::Unsupported { path: column.name.to_string(), reason: misfit.to_string() })
    })
}

/// Adds the lengths of some rows by their outlines, in halves where these take much; says whether they tell all.
fn add_outlines(
    plan: &Plan,
    column: &IpcColumn,
    rows: RowRange,
    numbers: &mut [u64],
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    match column.rows.outline(rows.clone(), interrupt) {
        Ok(outline) => Ok(outline.is_some_and(|outline| add_outline(plan, &outline, numbers))),
        Err(Error::TooLarge { .. }) if rows.end - rows.start > 1 => {
            let middle = rows.start.midpoint(rows.end);
            Ok(add_outlines(plan, column, rows.start..middle, numbers, interrupt)?
                && add_outlines(plan, column, middle..rows.end, numbers, interrupt)?)
        }
        Err(error) => Err(error),
    }
}

/// Adds the lengths of rows with this outline; says whether it tells all of them.
fn add_outline(plan: &Plan, outline: &ArrayRef, numbers: &mut [u64]) -> bool {
    let mut nodes = plan.nodes.iter();
    outline_step(&mut nodes, outline, numbers).is_some()
}

fn outline_step(nodes: &mut std::slice::Iter<'_, Node>, outline: &ArrayRef, numbers: &mut [u64]) -> Option<()> {
    let node = nodes.next()?;
    let number = node.length.and_then(|length| numbers.get_mut(1 + length));
    match &node.kind {
        Kind::Text => {
            let lengths = outline.as_primitive_opt::<UInt64Type>()?.values();
            let number = number?;
            *number = lengths.iter().fold(*number, |sum, length| sum.saturating_add(*length));
        }
        Kind::List => {
            let list = outline.as_list_opt::<i64>()?;
            let offsets = list.value_offsets();
            let (first, last) = (*offsets.first()?, *offsets.last()?);
            let number = number?;
            *number = number.saturating_add((last - first) as u64);
            // Offsets of an Arrow array lie in it.
            outline_step(nodes, &list.values().slice(first as usize, (last - first) as usize), numbers)?;
        }
        Kind::Struct(count) => {
            let fields = outline.as_struct_opt().filter(|fields| fields.num_columns() == *count)?;
            fields.columns().iter().try_for_each(|column| outline_step(nodes, column, numbers))?;
        }
        Kind::FixedList(_) => outline_step(nodes, outline.as_fixed_size_list_opt()?.values(), numbers)?,
        Kind::Nothing | Kind::Values(_) | Kind::Bits | Kind::Keys(..) | Kind::Views(_) => {}
    }
    Some(())
}

/// Whether reading again would fail again.
fn is_lasting(error: &Error) -> bool {
    matches!(error, Error::Chunk { .. } | Error::Heap { .. } | Error::Unsupported { .. } | Error::TooLarge { .. })
}
