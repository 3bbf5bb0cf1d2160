//! Selected rows of a table whose columns are parts of one dataset: if few rows lie far apart, whole rows are read once
//! for all columns. Reading column by column would decode each chunk once for each column.

use super::Selected;
use crate::catalogue::ObjectId;
use crate::source::Interrupt;
use crate::store::{Error, Reservation, RowRange, Rows, StridedField};

/// Bytes of whole rows to read at once; at most this part of the memory budget, one `SHARE`th.
const MOST_BYTES: u64 = 16 << 20;
const SHARE: u64 = 32;

/// Fewest rows of the table for each found row: closer rows lie in the same chunks anyway.
const APART: u64 = 8;

/// A reader that needs fewer than one in this many of the rows read at once does not wait for the others.
const FEWEST: u64 = 8;

/// Stored bytes of whole rows in succession.
#[derive(Debug)]
pub(super) struct Picked {
    bytes: Vec<u8>,
    _held: Reservation,
}

/// The dataset, and the number of a stretch of selected rows.
pub(super) type StretchKey = (ObjectId, u64);

impl Selected {
    /// Returns the stored bytes of the found rows in `range` in a column. `None`: reading the column alone is better.
    pub(super) fn picked(
        &self,
        rows: &dyn Rows,
        range: &RowRange,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(place) = rows.coded().and_then(|coded| coded.place()) else { return Ok(None) };
        let budget = self.evaluation.store().budget();
        let together = MOST_BYTES.min(budget.limit() / SHARE) / place.stride.max(1);
        if together == 0 || range.is_empty() || range.end > self.len() {
            return Ok(None);
        }
        let mut out = Vec::new();
        for part in range.start / together..(range.end - 1) / together + 1 {
            let all = part * together..((part + 1) * together).min(self.len());
            let wanted = range.start.max(all.start)..range.end.min(all.end);
            let key = (place.dataset.description().id, part);
            let is_little = (wanted.end - wanted.start).saturating_mul(FEWEST) < all.end - all.start;
            if is_little && !self.whole.is_known(&key) {
                return Ok(None);
            }
            let picked = self.whole.get_or_make(&key, interrupt, || self.pick(&place, &all, interrupt))?;
            let Some(picked) = picked.as_ref() else { return Ok(None) };
            // The rows lie in memory, so these numbers fit.
            let [start, end] = [wanted.start, wanted.end].map(|row| ((row - all.start) * place.stride) as usize);
            let (offset, width) = (place.offset as usize, place.width as usize);
            let whole = picked.bytes.get(start..end).unwrap_or_default();
            let parts = whole.chunks_exact(place.stride as usize).filter_map(|row| row.get(offset..)?.get(..width));
            parts.for_each(|part| out.extend_from_slice(part));
        }
        Ok(Some(out))
    }

    /// Reads the whole rows of a range. `None`: they do not lie far apart, or memory is short.
    fn pick(&self, place: &StridedField<'_>, range: &RowRange, interrupt: &Interrupt) -> Result<Option<Picked>, Error> {
        let count = range.end - range.start;
        let pieces = self.pieces(range, interrupt)?;
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(None) };
        if (last.first + last.length - first.first) / APART < count {
            return Ok(None);
        }
        let bytes = count.saturating_mul(place.stride);
        let Some(held) = self.evaluation.store().budget().try_reserve(bytes) else { return Ok(None) };
        let mut places = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for piece in &pieces {
            match &piece.bits {
                None => places.extend(piece.first..piece.first + piece.length),
                Some(bits) => places.extend(bits.set_indices().map(|at| piece.first + at as u64)),
            }
        }
        // As many bytes as were reserved.
        let mut bytes = vec![0; bytes as usize];
        place.dataset.read_rows(&places, place.stride, &mut bytes, interrupt)?;
        Ok((places.len() as u64 == count).then_some(Picked { bytes, _held: held }))
    }
}
