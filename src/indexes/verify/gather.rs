//! Gathers the values of a column, or of some of its rows, in memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use parking_lot::Mutex;

use super::column::{ColumnSlice, End, in_parallel};
use super::{Task, Verdict};
use crate::indexes::order::Keys;
use crate::store::decode::widen;
use crate::store::{Error, Reservation, Rows};
use crate::table::Rule;

/// Number of elements of an index that a thread takes at once.
pub(super) const STEP: u64 = 1 << 20;

/// Number of words of bits whose set bits are counted together.
const GROUP: usize = 8;

/// Row numbers of an index, and the rule that each must be a row of the column.
#[derive(Clone, Copy)]
pub(super) struct RowOrder<'a> {
    pub rows: &'a dyn Rows,
    pub rule: &'static Rule,
}

/// Reads row numbers of an index, and checks that each is a row of the column.
pub(super) fn elements(task: &Task<'_>, order: &RowOrder<'_>, range: Range<u64>) -> Result<UInt64Array, End> {
    let array = order.rows.array(range.clone(), task.interrupt)?;
    let rows = widen::unsigned(&array)
        .ok_or_else(|| Error::unsupported(&task.form.path, format!("row numbers of type {}", array.data_type())))?;
    match rows.values().iter().position(|row| *row >= task.form.rows()) {
        None => Ok(rows),
        Some(at) => {
            let found = format!("row {} of {}", rows.value(at), task.form.rows());
            let place = format!("element {}", range.start + at as u64);
            Err(Verdict::broken(order.rule, place, found).into())
        }
    }
}

/// The rows whose values are needed.
pub(super) struct WantedRows {
    bits: Vec<u64>,
    /// Number of needed rows before each [`GROUP`] of words.
    before: Vec<u64>,
}

impl WantedRows {
    /// Returns the bytes that this takes for a column of `rows` rows.
    pub fn bytes(rows: u64) -> u64 {
        let words = rows.div_ceil(64);
        (words + words.div_ceil(GROUP as u64)).saturating_mul(8)
    }

    /// Finds the rows that the elements `range` of an index name.
    pub fn new(task: &Task<'_>, order: &RowOrder<'_>, range: Range<u64>) -> Result<Result<Self, Verdict>, Error> {
        // The caller has checked that there is room.
        let bits: Vec<AtomicU64> = (0..task.form.rows().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let broken = in_parallel(range.end - range.start, STEP, task, &|part| {
            let rows = elements(task, order, range.start + part.start..range.start + part.end)?;
            for row in rows.values() {
                if let Some(word) = bits.get((row / 64) as usize) {
                    word.fetch_or(1 << (row % 64), Ordering::Relaxed);
                }
            }
            Ok(())
        })?;
        let bits: Vec<u64> = bits.into_iter().map(AtomicU64::into_inner).collect();
        Ok(broken.map_or_else(|| Ok(Self::of(bits)), Err))
    }

    fn of(bits: Vec<u64>) -> Self {
        let mut sum = 0;
        let before = bits.chunks(GROUP).map(|words| {
            let before = sum;
            sum += ones(words);
            before
        });
        Self { before: before.collect(), bits }
    }

    fn has(&self, row: u64) -> bool {
        self.bits.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns the number of needed rows before `row`.
    fn rank(&self, row: u64) -> u64 {
        let word = (row / 64) as usize;
        let group = word / GROUP;
        let of_group = self.bits.get(group * GROUP..word).map_or(0, ones);
        let of_word = self.bits.get(word).map_or(0, |bits| ones(&[bits & !(u64::MAX << (row % 64))]));
        self.before.get(group).copied().unwrap_or(0) + of_group + of_word
    }
}

fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Gathered values of a column.
pub(super) struct GatheredColumn {
    step: u64,
    /// Parts by step, in order.
    parts: Vec<Vec<Keys>>,
    /// The rows of these values. `None`: all rows.
    wanted: Option<WantedRows>,
    /// Number of nulls, and of NaN, in the whole column.
    pub tails: [u64; 2],
    _held: Vec<Reservation>,
}

impl GatheredColumn {
    /// The value of a row, if it was gathered.
    pub fn value(&self, row: u64) -> Option<GatheredValue<'_>> {
        let step = row / self.step;
        let at = match &self.wanted {
            None => row % self.step,
            Some(wanted) => wanted.rank(row) - wanted.rank(step * self.step),
        };
        // The position lies in memory, so it fits.
        let mut at = at as usize;
        for keys in self.parts.get(step as usize)? {
            if at < keys.len() {
                return Some(GatheredValue { row, keys, at });
            }
            at -= keys.len();
        }
        None
    }
}

/// A gathered value.
#[derive(Clone, Copy)]
pub(super) struct GatheredValue<'a> {
    pub row: u64,
    keys: &'a Keys,
    at: usize,
}

impl GatheredValue<'_> {
    /// Whether this equals a value of other keys of the same type; both zeros are equal, and so are all NaN.
    pub fn equals(&self, keys: &Keys, at: usize) -> bool {
        at < keys.len() && self.keys.order_among(self.at, keys, at).is_eq()
    }

    /// Whether this precedes another value in the index; equal values go by row.
    pub fn is_before(&self, other: &Self) -> bool {
        self.keys.order_among(self.at, other.keys, other.at).then(self.row.cmp(&other.row)).is_lt()
    }
}

/// Why values could not be gathered.
pub(super) enum GatherRefusal {
    Decided(Verdict),
    /// The values take at least this many bytes, which are not available.
    Short(u64),
}

#[derive(Default)]
struct Gathered {
    parts: Vec<Vec<Keys>>,
    tails: [u64; 2],
    held: Vec<Reservation>,
    bytes: u64,
    is_short: bool,
}

/// Gathers the values of the wanted rows (`None`: of all rows) in at most `memory` bytes.
pub(super) fn gather(
    task: &Task<'_>,
    empty: &Keys,
    wanted: Option<WantedRows>,
    memory: u64,
) -> Result<Result<GatheredColumn, GatherRefusal>, Error> {
    let rows = task.form.rows();
    let budget = task.form.file.store().budget();
    let step = task.step();
    let steps = usize::try_from(rows.div_ceil(step)).unwrap_or(0);
    let gathered = Mutex::new(Gathered { parts: vec![Vec::new(); steps], ..Gathered::default() });
    if wanted.is_some() {
        let bytes = WantedRows::bytes(rows);
        let Some(room) = budget.try_reserve(bytes) else { return Ok(Err(GatherRefusal::Short(bytes))) };
        let gathered = &mut *gathered.lock();
        gathered.bytes = bytes;
        gathered.held.push(room);
    }
    let verdict = task.column(step, &|part: ColumnSlice<'_>| {
        let unverifiable =
            || End::from(Verdict::Unverifiable { why: format!("values of type {}", part.values.data_type()) });
        let mut keys = empty.clone();
        if !keys.extend(part.values.as_ref()) {
            return Err(unverifiable());
        }
        let [missing, nans] = keys.tails();
        if let Some(wanted) = &wanted {
            let is_wanted = BooleanBuffer::collect_bool(part.values.len(), |at| wanted.has(part.first + at as u64));
            let values = filter(part.values, &BooleanArray::from(is_wanted)).map_err(|_| unverifiable())?;
            keys = empty.clone();
            keys.extend(&values);
        }
        let gathered = &mut *gathered.lock();
        gathered.tails[0] += missing;
        gathered.tails[1] += nans;
        gathered.bytes = gathered.bytes.saturating_add(keys.bytes());
        let room = if gathered.bytes > memory { None } else { budget.try_reserve(keys.bytes()) };
        let Some(room) = room else {
            gathered.is_short = true;
            return Err(unverifiable());
        };
        gathered.held.push(room);
        // One thread delivers all parts of a step, in order.
        if let Some(parts) = usize::try_from(part.first / step).ok().and_then(|step| gathered.parts.get_mut(step)) {
            parts.push(keys);
        }
        Ok(())
    })?;
    let Gathered { parts, tails, held, bytes, is_short } = gathered.into_inner();
    Ok(match verdict {
        Some(_) if is_short => Err(GatherRefusal::Short(bytes)),
        Some(verdict) => Err(GatherRefusal::Decided(verdict)),
        None => Ok(GatheredColumn { step, parts, wanted, tails, _held: held }),
    })
}
