//! `SORTED_ROWS`: rows that follow each other strictly in the total order are all different, so as many as the column has
//! are a permutation.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use parking_lot::Mutex;

use super::column::{End, Part, in_parallel};
use super::{Task, Verdict};
use crate::indexes::order::Keys;
use crate::indexes::verdict::Facts;
use crate::store::{Error, Reservation, Rows};

/// Elements of the index that a thread takes at once.
const STEP: u64 = 1 << 20;

const ORDER: &str = "HEP001 §8.5: rows are in the order of their values, missing ones and NaN last, ties by row";

pub(super) fn verify(task: &Task<'_>, order: &dyn Rows, tails: [u64; 2]) -> Result<Verdict, Error> {
    let keys = match collect(task)? {
        Ok(keys) => keys,
        Err(verdict) => return Ok(verdict),
    };
    let found = keys.tails();
    if found != tails {
        let rule = "HEP001 §8.5: fill_tail_length and nan_tail_length are the numbers of missing rows and of NaN";
        return Ok(Verdict::broken(rule, "attributes", format!("{tails:?}, the column has {found:?}")));
    }
    let broken = in_parallel(task.form.rows(), STEP, task, &|range| {
        // With the one before, so that no pair is left out between two steps.
        let first = range.start.saturating_sub(1);
        let array = order.array(first..range.end, task.interrupt)?;
        let unsupported = |reason: String| Error::Unsupported { path: task.form.path.clone(), reason };
        let wide = cast(&array, &DataType::UInt64).map_err(|error| unsupported(error.to_string()))?;
        let mut before: Option<u64> = None;
        for (at, row) in wide.as_primitive::<UInt64Type>().values().iter().enumerate() {
            let place = || format!("element {}", first + at as u64);
            if *row >= task.form.rows() {
                let found = format!("row {row} of {}", task.form.rows());
                return Err(End::Decided(Verdict::broken(
                    "HEP001 §8.5: elements are rows of the column",
                    place(),
                    found,
                )));
            }
            if let Some(before) = before
                && keys.order(before, *row).is_ge()
            {
                return Err(End::Decided(Verdict::broken(ORDER, place(), format!("row {row} behind row {before}"))));
            }
            before = Some(*row);
        }
        Ok(())
    })?;
    Ok(broken.unwrap_or_else(|| Verdict::Verified(Facts::default())))
}

/// All values of the column, in memory.
struct Column {
    step: u64,
    /// By position in steps.
    parts: Vec<Vec<Keys>>,
    _held: Vec<Reservation>,
}

impl Column {
    fn place(&self, row: u64) -> (usize, usize, usize) {
        // In memory, so it fits.
        let (step, mut at) = ((row / self.step) as usize, (row % self.step) as usize);
        let parts = self.parts.get(step).map(Vec::as_slice).unwrap_or_default();
        for (part, keys) in parts.iter().enumerate() {
            if at < keys.len() {
                return (step, part, at);
            }
            at -= keys.len();
        }
        (step, parts.len(), at)
    }

    fn order(&self, a: u64, b: u64) -> std::cmp::Ordering {
        let keys = |(step, part, at): (usize, usize, usize)| Some((self.parts.get(step)?.get(part)?, at));
        match (keys(self.place(a)), keys(self.place(b))) {
            (Some((a_keys, a_at)), Some((b_keys, b_at))) => a_keys.order_among(a_at, b_keys, b_at).then(a.cmp(&b)),
            // Rows past the end were refused.
            _ => std::cmp::Ordering::Equal,
        }
    }

    fn tails(&self) -> [u64; 2] {
        self.parts.iter().flatten().map(Keys::tails).fold([0, 0], |sum, tails| [sum[0] + tails[0], sum[1] + tails[1]])
    }
}

fn collect(task: &Task<'_>) -> Result<Result<Column, Verdict>, Error> {
    let data_type = task.form.values.data_type();
    let unverifiable = |why: String| Verdict::Unverifiable { why };
    let Some(empty) = Keys::new(data_type) else {
        return Ok(Err(unverifiable(format!("values of type {data_type}"))));
    };
    let rows = task.form.rows();
    let budget = task.form.file.store().budget();
    let needs = |bytes: u64| {
        let limit = budget.limit() / 2;
        unverifiable(format!("needs {bytes} bytes of memory at once, more than {limit}: a larger --cache-size helps"))
    };
    let known = rows.saturating_mul(empty.width()).saturating_add(rows / 8);
    if known > budget.limit() / 2 {
        return Ok(Err(needs(known)));
    }
    let step = task.step();
    let steps = usize::try_from(rows.div_ceil(step)).unwrap_or(0);
    // (keys by step, what they take, the bytes of it)
    let gathered = Mutex::new((vec![Vec::new(); steps], Vec::new(), 0_u64));
    let see = |part: Part<'_>| {
        let mut keys = empty.clone();
        if !keys.extend(part.values.as_ref()) {
            return Err(End::Decided(unverifiable(format!("values of type {}", part.values.data_type()))));
        }
        let mut gathered = gathered.lock();
        let (parts, held, bytes) = &mut *gathered;
        *bytes = bytes.saturating_add(keys.bytes());
        let room = if *bytes > budget.limit() / 2 { None } else { budget.try_reserve(keys.bytes()) };
        let Some(room) = room else { return Err(End::Decided(needs((*bytes).max(known)))) };
        held.push(room);
        // Parts of one step come in their order, from one thread.
        if let Some(parts) = usize::try_from(part.first / step).ok().and_then(|step| parts.get_mut(step)) {
            parts.push(keys);
        }
        Ok(())
    };
    if let Some(verdict) = task.column(step, &see)? {
        return Ok(Err(verdict));
    }
    let (parts, held, _) = gathered.into_inner();
    Ok(Ok(Column { step, parts, _held: held }))
}
