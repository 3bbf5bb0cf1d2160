//! Lengths of lists and of text of variable length, learnt by a pass over the rows, for each piece of them.
//!
//! Of each piece of rows, each such column has: 0 or 1 where it cannot be read, its lengths, the nulls of its nodes.
//! All are kept as sums from the first row on.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::source::Interrupt;
use crate::store::pass::{self, Keeper, Measure};
use crate::store::{Error, RowRange};
use crate::views::ipc::IpcColumn;
use crate::views::ipc::plan::{self, Plan, walk};
use crate::views::ipc::table::{Table, lengths_of};

/// What a change of what is learnt of a piece must raise, so that nothing kept before is believed.
const VERSION: u32 = 3;

/// Rows of a step of the pass, about.
const STEP: u64 = 1 << 17;

/// What a pass learns.
pub(in crate::views::ipc) struct Pass {
    /// The numbers of each piece.
    pieces: Arc<pass::Pass<Learnt>>,
    table: Arc<Table>,
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

/// Lengths and counts of nulls, summed.
#[derive(Debug)]
pub(in crate::views::ipc) struct Lengths {
    /// First number of each column.
    first: Vec<usize>,
    /// Lengths of each column.
    lengths: Vec<usize>,
    /// One more than pieces.
    stride: usize,
    /// For each number, its sum before each piece and after the last.
    sums: Vec<u64>,
}

impl Pass {
    /// A pass that has not begun; `None` where no size depends on the values.
    pub fn new(table: &Arc<Table>, keeper: Option<Keeper>) -> Option<Self> {
        let numbers = table.lengths();
        if numbers == 0 {
            return None;
        }
        let pieces = usize::try_from(table.rows.div_ceil(table.variable_piece)).unwrap_or(usize::MAX);
        let step = usize::try_from(STEP / table.variable_piece).unwrap_or(1).max(1);
        let keeper = keeper.map(|Keeper { file, what }| {
            let what = format!("{what} arrow-lengths {VERSION}: {numbers} of {} rows", table.variable_piece);
            Keeper { file, what }
        });
        let measure = Arc::new(Measured { table: Arc::clone(table), numbers });
        let pieces = pass::Pass::new(pieces, step, measure, keeper);
        Some(Self { pieces, table: Arc::clone(table), sums: OnceLock::new() })
    }

    /// What was learnt, if all of it was.
    pub fn known(&self) -> Option<&Lengths> {
        self.sums.get()
    }

    /// How far it is.
    pub fn progress(&self) -> pass::Progress {
        self.pieces.progress()
    }

    fn sum(&self, pieces: &[Learnt]) -> &Lengths {
        self.sums.get_or_init(|| Lengths::new(&self.table, pieces))
    }

    /// Waits until everything is learnt.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; and where the source cannot be read. Rows that cannot be decoded are learnt as such.
    pub fn lengths(&self, interrupt: &Interrupt) -> Result<&Lengths, Error> {
        match self.sums.get() {
            Some(known) => Ok(known),
            None => Ok(self.sum(self.pieces.all(interrupt)?)),
        }
    }
}

impl Lengths {
    fn new(table: &Table, pieces: &[Learnt]) -> Self {
        let mut numbers = 0;
        let mut first = Vec::with_capacity(table.plans.len());
        for plan in &table.plans {
            first.push(numbers);
            numbers += lengths_of(plan);
        }
        let lengths = table.plans.iter().map(|plan| plan.lengths).collect();
        let stride = pieces.len() + 1;
        let mut sums = Vec::with_capacity(numbers * stride);
        for number in 0..numbers {
            let mut sum = 0_u64;
            sums.push(sum);
            for piece in pieces {
                sum = sum.saturating_add(piece.numbers.get(number).copied().unwrap_or(0));
                sums.push(sum);
            }
        }
        Self { first, lengths, stride, sums }
    }

    fn number(&self, column: usize, number: usize, pieces: Range<u64>) -> u64 {
        let at = |piece: u64| {
            let piece = usize::try_from(piece).unwrap_or(usize::MAX).min(self.stride - 1);
            let place = self.first.get(column)?.checked_add(number)?.checked_mul(self.stride)?.checked_add(piece)?;
            self.sums.get(place).copied()
        };
        at(pieces.end).unwrap_or(0).saturating_sub(at(pieces.start).unwrap_or(0))
    }

    /// A length of a column, summed over pieces `first..end`.
    pub fn sum(&self, column: usize, length: usize, first: u64, end: u64) -> u64 {
        self.number(column, 1 + length, first..end)
    }

    /// Nulls of a node, by the number of its bitmap; `None` where the rows cannot be read.
    pub fn nulls(&self, column: usize, bitmap: usize, pieces: Range<u64>) -> Option<u64> {
        if self.number(column, 0, pieces.clone()) > 0 {
            return None;
        }
        let lengths = self.lengths.get(column)?;
        Some(self.number(column, 1 + lengths + bitmap, pieces))
    }
}

/// Measures pieces.
struct Measured {
    table: Arc<Table>,
    /// Numbers of a piece.
    numbers: usize,
}

impl Measure<Learnt> for Measured {
    fn measure(&self, pieces: Range<usize>, interrupt: &Interrupt) -> Result<Vec<Learnt>, Error> {
        let piece = |piece: usize| {
            let start = (piece as u64).saturating_mul(self.table.variable_piece);
            let rows = start..start.saturating_add(self.table.variable_piece).min(self.table.rows);
            let mut learnt = Learnt { numbers: Vec::with_capacity(self.numbers), readable: true };
            for (plan, column) in self.table.plans.iter().zip(&self.table.columns) {
                measure_column(plan, column, rows.clone(), &mut learnt, interrupt)?;
            }
            Ok(learnt)
        };
        pieces.map(piece).collect()
    }
}

fn measure_column(
    plan: &Plan,
    column: &IpcColumn,
    rows: RowRange,
    learnt: &mut Learnt,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let mut numbers = vec![0; lengths_of(plan)];
    if numbers.is_empty() {
        return Ok(());
    }
    match add(plan, column, rows, &mut numbers, interrupt) {
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

fn add(
    plan: &Plan,
    column: &IpcColumn,
    rows: RowRange,
    numbers: &mut [u64],
    interrupt: &Interrupt,
) -> Result<(), Error> {
    interrupt.check()?;
    let array = column.rows.array(rows, interrupt)?;
    walk(&plan.nodes, &array, &mut |node, _, array| {
        if let Some(number) = node.length.and_then(|length| numbers.get_mut(1 + length)) {
            *number = number.saturating_add(plan::length(array).ok_or("values of another type")?);
        }
        if let Some(number) = node.nulls.and_then(|bitmap| numbers.get_mut(1 + plan.lengths + bitmap)) {
            *number = number.saturating_add(plan::nulls(node, array));
        }
        Ok(())
    })
    .map_err(|reason| Error::Unsupported { path: column.name.to_string(), reason })
}

/// Whether reading again would fail again.
fn is_lasting(error: &Error) -> bool {
    matches!(error, Error::Chunk { .. } | Error::Heap { .. } | Error::Unsupported { .. } | Error::TooLarge { .. })
}
