//! Reads scattered whole rows on all cores.

use parking_lot::Mutex;

use super::StoredDataset;
use crate::source::Interrupt;
use crate::store::{Error, for_each_part};

/// Rows that a core takes at once: few, so that no core idles at the end.
const AT_ONCE: usize = 256;

/// Where the stored bytes of each row are in a dataset.
#[derive(Clone, Copy, Debug)]
pub struct StridedField<'a> {
    /// The dataset.
    pub dataset: &'a std::sync::Arc<StoredDataset>,
    /// Bytes from one row to the next, at least 1.
    pub stride: u64,
    /// Offset of the bytes within the row.
    pub offset: u64,
    /// Number of bytes.
    pub width: u64,
}

impl StoredDataset {
    /// Fills `out` with the rows at `places` (ascending), of `stride` bytes each.
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`].
    pub fn read_rows(&self, places: &[u64], stride: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let Some(width) = usize::try_from(stride).ok().filter(|width| *width > 0) else { return Ok(()) };
        let parts = out.chunks_mut(width.saturating_mul(AT_ONCE)).zip(places.chunks(AT_ONCE));
        let (count, parts) = (parts.len() as u64, Mutex::new(parts));
        let read = for_each_part(count, interrupt, |_| {
            // Parts are taken in order.
            let Some((out, places)) = parts.lock().next() else { return Ok(()) };
            out.chunks_exact_mut(width).zip(places).try_for_each(|(row, place)| {
                interrupt.check()?;
                self.read_row(*place, row, interrupt)
            })
        });
        // As in `read_bytes`.
        self.file.check().and(read)
    }

    fn read_row(&self, place: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let length = out.len() as u64;
        let start =
            place.checked_mul(length).filter(|start| start.checked_add(length).is_some_and(|end| end <= self.bytes));
        let start = start.ok_or_else(|| self.past_the_end(place, 1, "row", self.bytes / length.max(1)))?;
        self.read_unchecked(start, out, interrupt)
    }
}
