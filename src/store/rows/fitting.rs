//! How many rows fit into an array of a given number of bytes.

use arrow_array::ArrayRef;

use super::{RowRange, Rows, Shared};
use crate::source::Interrupt;
use crate::store::{ARRAY_BYTES, Error, Flight};

/// The longest run of rows whose array takes no more bytes than allowed, and one row at least: [`Rows::fitting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    /// Behind its last row.
    pub end: u64,
    /// Bytes of its array, about. More than were allowed where one row takes more.
    pub bytes: u64,
}

impl Fitting {
    /// That of rows of `width` bytes each.
    pub fn fixed(range: &RowRange, width: u64, most: u64) -> Self {
        let count = (most / width.max(1)).max(1).min(range.end.saturating_sub(range.start));
        Self { end: range.start.saturating_add(count), bytes: count.saturating_mul(width) }
    }
}

/// Adds up rows for a [`Fitting`].
#[derive(Clone, Copy, Debug)]
pub struct Fitter {
    fitting: Fitting,
    most: u64,
    is_empty: bool,
}

impl Fitter {
    /// No row yet; the first is `start`.
    pub fn new(start: u64, most: u64) -> Self {
        Self { fitting: Fitting { end: start, bytes: 0 }, most, is_empty: true }
    }

    /// Bytes that are left.
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

    /// What was added.
    pub fn fitting(&self) -> Fitting {
        self.fitting
    }
}

/// Calls `take` with arrays in which every row of `range` is as often as the number says: rows that are stored as the
/// same bytes once, where all of them take more than `bytes` bytes. They come in no order.
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
        if let Some(Shared { values, keys }) = rows.shared(range.clone(), interrupt)?
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

/// Calls `take` with the arrays of the rows of `range`, one behind the other, as long as `bytes` bytes allow, or of one
/// row. Looks at `interrupt` before each.
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
