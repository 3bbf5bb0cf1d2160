//! Lengths of lists and variable-length texts, which a pass learns for each piece of rows.
//!
//! For each piece and column the pass stores whether the piece is unreadable (0 or 1), and its lengths. All numbers are
//! kept as prefix sums over the rows; pieces that are alike because nothing is stored in them share one entry.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::learnt::pass::Keeper;
use crate::source::Interrupt;
use crate::store::{Blocked, Error, RowRange, Rows, for_each_counted};
use crate::views::Misfit;
use crate::views::ipc::IpcColumn;
use crate::views::ipc::plan::{self, IpcNode, IpcNodeKind, IpcPlan, walk};
use crate::views::ipc::table::{IpcTable, lengths_of};
use crate::views::measure::{self, AT_STAT, Look, MOST_BYTES, Meter, Stretches};

/// Version of the data learnt for each piece; every change of their meaning must raise it, so that old data are
/// ignored.
const VERSION: u32 = 5;

/// About how many rows a step of the pass takes.
const STEP: u64 = 1 << 17;

/// The pass that learns the lengths.
pub(in crate::views::ipc) struct LengthsPass {
    pub meter: Meter<MeasuredTable>,
    sums: OnceLock<Lengths>,
}

impl std::fmt::Debug for LengthsPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("sums", &self.sums).finish_non_exhaustive()
    }
}

/// The lengths that the pass found in a piece of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::views::ipc) struct Learnt {
    /// For each column, the numbers counted by [`lengths_of`].
    numbers: Vec<u64>,
    /// Whether all rows could be read. If not, nothing is kept in the cache folder: an option or another plugin may
    /// help next time.
    #[serde(serialize_with = "only_if_readable")]
    readable: bool,
}

fn only_if_readable<S: Serializer>(readable: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    if *readable { serializer.serialize_bool(true) } else { Err(S::Error::custom("rows that cannot be read")) }
}

/// The learnt lengths as prefix sums.
#[derive(Debug)]
pub(in crate::views::ipc) struct Lengths {
    stretches: Arc<Stretches>,
    /// For each column, the index of its first number.
    first: Vec<usize>,
    /// Number of blocks of pieces, plus one.
    stride: usize,
    /// For each number, its sum before each block and after the last.
    sums: Vec<u64>,
}

impl LengthsPass {
    /// Returns a pass that has not begun. `None`: no size depends on the values.
    pub fn new(table: &Arc<IpcTable>, keeper: Option<Keeper>) -> Option<Self> {
        let numbers = table.lengths();
        if numbers == 0 {
            return None;
        }
        let piece = table.variable_piece;
        let step = usize::try_from(STEP / piece).unwrap_or(1).max(1);
        let lengths = format_args!("arrow-lengths {VERSION}: {numbers} of {piece} rows");
        let keeper = keeper.map(|keeper| keeper.with(lengths));
        let (measured, units) =
            (MeasuredTable { table: table.clone(), numbers }, Blocked::new(table.rows, piece, None));
        Some(Self { meter: Meter::new(measured, units, step, keeper), sums: OnceLock::new() })
    }

    /// Returns likely upper bounds of the lengths, estimated from a sample. `None`: [`LengthsPass::lengths`] takes no
    /// longer than a sample.
    pub fn typical(&self, interrupt: &Interrupt) -> Result<Option<Lengths>, Error> {
        if self.meter.work(interrupt)? <= AT_STAT {
            return Ok(None);
        }
        let (sample, stretches) = (self.meter.sample(interrupt)?, self.meter.stretches(interrupt)?);
        Ok(Some(Lengths::new(&self.meter.measured().table, stretches, |_, alike| {
            if alike { &*sample.alike } else { &*sample.stored }
        })))
    }

    /// Returns the lengths, if the pass is complete.
    pub fn known(&self) -> Option<&Lengths> {
        self.sums.get()
    }

    /// Whether the pass is complete, or its results are in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        Ok(self.sums.get().is_some() || self.meter.is_found(interrupt)?)
    }

    /// Returns the lengths, after waiting until the pass is complete.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or an error of reading the source. Rows that cannot be decoded are recorded as such.
    pub fn lengths(&self, interrupt: &Interrupt) -> Result<&Lengths, Error> {
        if let Some(known) = self.sums.get() {
            return Ok(known);
        }
        let (pieces, stretches) = (self.meter.all(interrupt)?, self.meter.stretches(interrupt)?);
        let numbers = |block: usize, _| pieces.get(block).map_or(&[][..], |piece| &piece.numbers);
        Ok(self.sums.get_or_init(|| Lengths::new(&self.meter.measured().table, stretches, numbers)))
    }
}

impl Lengths {
    /// Sums the numbers of each block, or of the one that stands for several alike.
    fn new<'a>(table: &IpcTable, stretches: &Arc<Stretches>, of: impl Fn(usize, bool) -> &'a [u64]) -> Self {
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
        let [start, end] = [pieces.start, pieces.end].map(|piece| {
            let Some((run, block)) = self.stretches.unit(piece) else { return sums.last().copied().unwrap_or(0) };
            let before = sums.get(block).copied().unwrap_or(0);
            if !run.alike {
                return before;
            }
            let all = sums.get(block + 1).copied().unwrap_or(before) - before;
            // All units of the run contribute equally.
            before + all / run.units.max(1) * (piece - run.first)
        });
        end.saturating_sub(start)
    }

    /// Returns a length of a column, summed over pieces `first..end`.
    pub fn sum(&self, column: usize, length: usize, first: u64, end: u64) -> u64 {
        self.number(column, 1 + length, first..end)
    }

    /// Whether some rows of these pieces cannot be read.
    pub fn is_unreadable(&self, column: usize, pieces: Range<u64>) -> bool {
        self.number(column, 0, pieces) > 0
    }
}

/// A table whose pieces are measured.
pub(in crate::views::ipc) struct MeasuredTable {
    table: Arc<IpcTable>,
    /// How many numbers a piece has, over all columns.
    numbers: usize,
}

impl MeasuredTable {
    fn column(&self, column: usize) -> Option<(&IpcPlan, &IpcColumn)> {
        Some((self.table.plans.get(column)?, self.table.columns.get(column)?))
    }
}

/// A column's numbers are those of [`lengths_of`].
impl measure::Measurable for MeasuredTable {
    type Unit = Learnt;

    fn columns(&self) -> usize {
        self.table.plans.len()
    }

    fn variable(&self) -> impl Iterator<Item = (usize, &dyn Rows)> {
        let columns = self.table.plans.iter().zip(&self.table.columns).enumerate();
        columns.filter_map(|(at, (plan, column))| plan.is_variable().then_some((at, column.rows.as_ref())))
    }

    fn numbers(&self, column: usize) -> usize {
        self.table.plans.get(column).map_or(0, lengths_of)
    }

    fn measure(&self, rows: RowRange, by_values: &[bool], interrupt: &Interrupt) -> Result<Learnt, Error> {
        let mut learnt = Learnt { numbers: Vec::with_capacity(self.numbers), readable: true };
        for (at, (plan, column)) in self.table.plans.iter().zip(&self.table.columns).enumerate() {
            let by_values = by_values.get(at).copied().unwrap_or(true);
            measure_column(plan, column, rows.clone(), by_values, &mut learnt, interrupt)?;
        }
        Ok(learnt)
    }

    fn look(&self, column: usize, rows: RowRange, look: &mut Look, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        let Some((plan, column)) = self.column(column) else { return Ok(Vec::new()) };
        let mut numbers = vec![0; lengths_of(plan)];
        let outline = column.rows.outline(rows.clone(), interrupt)?;
        let Some(outline) = outline.filter(|outline| add_outline(plan, outline, &mut numbers)) else {
            look.by_values = true;
            numbers.fill(0);
            add(plan, column, rows, &mut numbers, interrupt)?;
            return Ok(numbers);
        };
        if plan.nodes.iter().any(|node| matches!(node.kind, IpcNodeKind::Text))
            && let Some(end) = Look::few(column.rows.as_ref(), &rows, interrupt)?
        {
            let outline = outline.slice(0, (end - rows.start).min(outline.len() as u64) as usize);
            let (mut shown, mut room) = (vec![0; numbers.len()], vec![0; numbers.len()]);
            add_outline(plan, &outline, &mut room);
            add(plan, column, rows.start..end, &mut shown, interrupt)?;
            look.by_values |= shown != room;
            let sum = |sum: u64, numbers: &[u64]| numbers.iter().fold(sum, |sum, number| sum.saturating_add(*number));
            (look.shown, look.room) = (sum(look.shown, &shown), sum(look.room, &room));
        }
        Ok(numbers)
    }

    fn is_passed_over(error: &Error) -> bool {
        is_lasting(error)
    }

    fn grows(_: usize) -> bool {
        true
    }

    fn entries(&self, column: usize, numbers: &[u64]) -> u64 {
        let is_nested = self.table.plans.get(column).is_some_and(|plan| plan.nodes.len() > 1);
        numbers.iter().copied().max().filter(|_| is_nested).unwrap_or(0)
    }
}

fn measure_column(
    plan: &IpcPlan,
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
        // Unreadable rows take no bytes; a later read of their bytes fails with the same error.
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

/// Adds the lengths of some rows, read as values.
fn add(
    plan: &IpcPlan,
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
        .map_err(|misfit| Error::unsupported(column.name.to_string(), misfit))
    })
}

/// Adds the lengths of some rows from their outlines, halving the range if the outlines are large; returns whether the
/// outlines suffice.
fn add_outlines(
    plan: &IpcPlan,
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

/// Adds the lengths of rows with this outline; returns whether it suffices.
fn add_outline(plan: &IpcPlan, outline: &ArrayRef, numbers: &mut [u64]) -> bool {
    let mut nodes = plan.nodes.iter();
    outline_step(&mut nodes, outline, numbers).is_some()
}

fn outline_step(nodes: &mut std::slice::Iter<'_, IpcNode>, outline: &ArrayRef, numbers: &mut [u64]) -> Option<()> {
    let node = nodes.next()?;
    let number = node.length.and_then(|length| numbers.get_mut(1 + length));
    match &node.kind {
        IpcNodeKind::Text => {
            let lengths = outline.as_primitive_opt::<UInt64Type>()?.values();
            let number = number?;
            *number = lengths.iter().fold(*number, |sum, length| sum.saturating_add(*length));
        }
        IpcNodeKind::List => {
            let list = outline.as_list_opt::<i64>()?;
            let offsets = list.value_offsets();
            let (first, last) = (*offsets.first()?, *offsets.last()?);
            let number = number?;
            *number = number.saturating_add((last - first) as u64);
            // Offsets of an Arrow list lie within its values, hence within usize.
            outline_step(nodes, &list.values().slice(first as usize, (last - first) as usize), numbers)?;
        }
        IpcNodeKind::Struct(count) => {
            let fields = outline.as_struct_opt().filter(|fields| fields.num_columns() == *count)?;
            fields.columns().iter().try_for_each(|column| outline_step(nodes, column, numbers))?;
        }
        IpcNodeKind::FixedList(_) => outline_step(nodes, outline.as_fixed_size_list_opt()?.values(), numbers)?,
        IpcNodeKind::Nothing
        | IpcNodeKind::Values(_)
        | IpcNodeKind::Bits
        | IpcNodeKind::Keys(..)
        | IpcNodeKind::Views(_) => {}
    }
    Some(())
}

/// Whether reading once more would fail in the same way.
fn is_lasting(error: &Error) -> bool {
    matches!(error, Error::Chunk { .. } | Error::Heap { .. } | Error::Unsupported { .. } | Error::TooLarge { .. })
}
