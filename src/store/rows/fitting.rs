//! Computes how many rows fit in an array of a given size.

use arrow_array::ArrayRef;

use super::{RowRange, Rows, SharedRows};
use crate::source::Interrupt;
use crate::store::{ARRAY_BYTES, Error, Flight};

/// The longest run of rows whose array takes at most the allowed bytes, but at least one row: [`Rows::fitting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    /// End of the run.
    pub end: u64,
    /// Approximate bytes of its array. They exceed the limit if a single row does.
    pub bytes: u64,
}

impl Fitting {
    /// The run for rows of `width` bytes each.
    pub fn fixed(range: &RowRange, width: u64, most: u64) -> Self {
        let count = (most / width.max(1)).max(1).min(range.end.saturating_sub(range.start));
        Self { end: range.start.saturating_add(count), bytes: count.saturating_mul(width) }
    }
}

/// Accumulates rows for a [`Fitting`].
#[derive(Clone, Copy, Debug)]
pub struct Fitter {
    fitting: Fitting,
    most: u64,
    is_empty: bool,
}

impl Fitter {
    /// An empty run at row `start`.
    pub fn new(start: u64, most: u64) -> Self {
        Self { fitting: Fitting { end: start, bytes: 0 }, most, is_empty: true }
    }

    /// Bytes that are left for further rows.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.fitting.bytes)
    }

    /// Adds `rows` rows of `bytes` bytes together if these are the first or still fit; returns whether it did.
    pub fn add(&mut self, rows: u64, bytes: u64) -> bool {
        let fits = self.is_empty || bytes <= self.left();
        if fits && rows > 0 {
            self.is_empty = false;
            self.fitting.end = self.fitting.end.saturating_add(rows);
            self.fitting.bytes = self.fitting.bytes.saturating_add(bytes);
        }
        fits
    }

    /// The run of the rows added so far.
    pub fn fitting(&self) -> Fitting {
        self.fitting
    }
}

/// Calls `take` with arrays and multiplicities that together cover each row of `range`. If all rows take more than
/// `bytes` bytes and at most half of them are distinct, equal stored rows appear once with their number, in any order.
///
/// # Errors
/// As [`for_each_array`], and those of [`Rows::shared`].
pub fn for_each_counted(
    rows: &dyn Rows,
    range: RowRange,
    bytes: u64,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(ArrayRef, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    if rows.fitting(range.clone(), bytes, interrupt)?.end < range.end {
        let _flight = Flight::begin(ARRAY_BYTES, interrupt)?;
        if let Some(SharedRows { values, keys }) = rows.shared(range.clone(), interrupt)?
            && values.len() <= keys.len() / 2
        {
            let mut times = vec![0_u64; values.len()];
            for key in keys {
                if let Some(times) = times.get_mut(key as usize) {
                    *times += 1;
                }
            }
            return times.into_iter().enumerate().try_for_each(|(at, times)| take(values.slice(at, 1), times));
        }
    }
    for_each_array(rows, range, bytes, interrupt, &mut |_, array| take(array, 1))
}

/// Calls `take` with the arrays of the rows of `range` in order, each as long as `bytes` bytes allow, or of one row.
/// Checks `interrupt` before each.
///
/// # Errors
/// Those of [`Rows::fitting`], [`Rows::array`] and `take`; [`Error::Unsupported`] for an array of another length.
pub fn for_each_array(
    rows: &dyn Rows,
    range: RowRange,
    bytes: u64,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(RowRange, ArrayRef) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut start = range.start;
    while start < range.end {
        interrupt.check()?;
        let fitting = rows.fitting(start..range.end, bytes, interrupt)?;
        let part = start..fitting.end.clamp(start + 1, range.end);
        let _flight = Flight::begin(fitting.bytes, interrupt)?;
        let array = rows.array(part.clone(), interrupt)?;
        if array.len() as u64 != part.end - part.start {
            let reason = format!("rows {}..{} came as {} values", part.start, part.end, array.len());
            return Err(Error::unsupported("rows", reason));
        }
        start = part.end;
        take(part, array)?;
    }
    Ok(())
}
