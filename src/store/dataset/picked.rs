//! Whole rows at places that lie apart, read by all cores.

use std::thread;

use parking_lot::Mutex;

use super::Dataset;
use crate::source::Interrupt;
use crate::store::Error;

/// Rows that a core takes at once: few enough that none has nothing to do at the end.
const AT_ONCE: usize = 256;

/// Where the bytes as stored of each row lie in a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The dataset.
    pub dataset: &'a std::sync::Arc<Dataset>,
    /// Bytes from a row to the next, at least 1.
    pub stride: u64,
    /// Bytes of the row before them.
    pub offset: u64,
    /// How many they are.
    pub width: u64,
}

impl Dataset {
    /// Fills `out` with the rows at `places`, which ascend, of `stride` bytes each.
    ///
    /// # Errors
    /// As [`Dataset::read_bytes`].
    pub fn read_rows(&self, places: &[u64], stride: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let Some(width) = usize::try_from(stride).ok().filter(|width| *width > 0) else { return Ok(()) };
        let parts = out.chunks_mut(width.saturating_mul(AT_ONCE)).zip(places.chunks(AT_ONCE));
        let cores = thread::available_parallelism().map_or(1, usize::from).min(parts.len());
        let parts = Mutex::new(parts);
        let failed = Mutex::new(None);
        let run = || {
            loop {
                let Some((out, places)) = parts.lock().next().filter(|_| failed.lock().is_none()) else { return };
                for (row, place) in out.chunks_exact_mut(width).zip(places) {
                    let read =
                        interrupt.check().map_err(Error::from).and_then(|()| self.read_row(*place, row, interrupt));
                    if let Err(error) = read {
                        failed.lock().get_or_insert(error);
                        return;
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..cores {
                scope.spawn(run);
            }
            run();
        });
        // As in `read_bytes`.
        self.file.check()?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    fn read_row(&self, place: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let length = out.len() as u64;
        let start =
            place.checked_mul(length).filter(|start| start.checked_add(length).is_some_and(|end| end <= self.bytes));
        let start = start.ok_or_else(|| self.past_the_end(place, 1, "row", self.bytes / length.max(1)))?;
        self.read_unchecked(start, out, interrupt)
    }
}
