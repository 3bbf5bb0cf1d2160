//! Reads stored bytes for a single scan.

use arrow_buffer::Buffer;

use super::{RowRange, Rows};
use crate::source::Interrupt;
use crate::store::{ARRAY_BYTES, Error, Flight};

/// Calls `take` with the rows of `range` piece by piece, and their stored bytes: those of a chunk in place, otherwise
/// copies of at most [`ARRAY_BYTES`]. Returns whether it reached the end: not if rows have no width or exceed that
/// size, nor if `take` stops it.
///
/// # Errors
/// As [`StoredBytes::append`](super::StoredBytes::append).
pub fn for_each_stored(
    rows: &dyn Rows,
    range: RowRange,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(RowRange, Buffer) -> bool,
) -> Result<bool, Error> {
    // The limit for longer rows is checked when arrays are made.
    let Some(width) = rows.stored_width().filter(|width| (1..=ARRAY_BYTES).contains(width)) else { return Ok(false) };
    let Some(stored) = rows.bytes() else { return Ok(false) };
    let few = ARRAY_BYTES / width;
    let grain = rows.natural_rows().filter(|grain| *grain > 0);
    let mut start = range.start;
    while start < range.end {
        interrupt.check()?;
        let left = range.end - start;
        let of_chunk = left.min(grain.map_or(few, |grain| grain - start % grain));
        let length = of_chunk.checked_mul(width).and_then(|length| usize::try_from(length).ok());
        let (Some(offset), Some(length)) = (start.checked_mul(width), length) else { return Ok(false) };
        let (count, goes_on) = match stored.lend(offset, length, interrupt)? {
            Some(lent) => (of_chunk, take(start..start + of_chunk, lent.into())),
            None => {
                let (count, length) = (of_chunk.min(few), length.min((few * width) as usize));
                let _flight = Flight::begin(length as u64, interrupt)?;
                let mut bytes = Vec::with_capacity(length);
                stored.append(offset, length, &mut bytes, interrupt)?;
                (count, take(start..start + count, Buffer::from_vec(bytes)))
            }
        };
        if !goes_on {
            return Ok(false);
        }
        start += count;
    }
    Ok(true)
}
