//! A pass over a column that learns all of its statistics: `hepfs prepare --stats`.

use std::ops::Range;
use std::sync::Arc;

use super::learner::Learner;
use crate::source::Interrupt;
use crate::store::statistics::{GRAIN, Statistics};
use crate::store::{Error, Rows, for_each_array, for_each_part};

/// Approximate bytes of values that a thread decodes at once, or whole chunks, if these are smaller.
const STEP_BYTES: u64 = 16 << 20;

/// Assumed bytes of a variable-length value.
const ANY_WIDTH: u64 = 64;

impl Learner {
    /// Decodes the unknown rows of `rows` (those that this learner was made for) on all cores, and reports rows done to
    /// `progress`: numbers that add up to the rows of the column. An interrupted pass leaves its results to the next
    /// one.
    ///
    /// # Errors
    /// Those of [`Rows::array`]; [`Error::Interrupted`] soon after `interrupt` is raised.
    pub fn learn(
        &self,
        rows: &dyn Rows,
        interrupt: &Interrupt,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Arc<Statistics>, Error> {
        self.ask(rows, interrupt)?;
        if let Some(known) = self.known() {
            progress(self.rows());
            return Ok(known);
        }
        let step = step(rows.natural_rows(), rows.stored_width().unwrap_or(ANY_WIDTH));
        for_each_part(self.rows().div_ceil(step), interrupt, |part| {
            let start = part.saturating_mul(step);
            let range = start..start.saturating_add(step).min(self.rows());
            let length = range.end - range.start;
            self.learn_range(rows, range, interrupt)?;
            progress(length);
            Ok::<_, Error>(())
        })?;
        self.known().ok_or_else(|| Error::unsupported(self.path(), "the file changed while its statistics were learnt"))
    }

    fn learn_range(&self, rows: &dyn Rows, range: Range<u64>, interrupt: &Interrupt) -> Result<(), Error> {
        if self.has_seen(&range) {
            return Ok(());
        }
        let observed = for_each_array(rows, range.clone(), STEP_BYTES, interrupt, &mut |part, array| {
            self.observe_all(part.start, array.as_ref());
            Ok(())
        });
        match observed {
            // The array exceeds the store's limit: learn each half by itself.
            Err(Error::TooLarge { .. }) if range.end - range.start > 1 => {
                let middle = range.start + (range.end - range.start) / 2;
                self.learn_range(rows, range.start..middle, interrupt)?;
                self.learn_range(rows, middle..range.end, interrupt)
            }
            observed => observed,
        }
    }
}

/// Number of rows, of `width` bytes each and in chunks of `natural` rows, for a thread to decode at once: whole chunks
/// of together about 16 MiB.
pub fn step(natural: Option<u64>, width: u64) -> u64 {
    let most = (STEP_BYTES / width.max(1)).max(1);
    match natural.filter(|natural| *natural > 0) {
        Some(natural) if natural >= most => natural.min(most.saturating_mul(4)),
        Some(natural) => (most / natural).saturating_mul(natural),
        None => most.next_multiple_of(GRAIN).min(most.max(GRAIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_to_chunks() {
        assert_eq!(step(Some(1000), 8), 2_097_000);
        assert_eq!(step(Some(3_000_000), 8), 3_000_000);
        // A chunk of gigabytes is in the cache; its arrays are made piece by piece.
        assert_eq!(step(Some(1 << 40), 8), 8 << 20);
        assert_eq!(step(None, 8), 2 << 20);
        assert_eq!(step(Some(10), 1 << 40), 4);
        assert_eq!(step(None, 1 << 40), 1 << 16);
    }
}
