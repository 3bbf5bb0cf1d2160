//! Verifies a `CHUNK_BLOOM`: the filter of each chunk must hold all of the chunk's values. More bits set are no fault.

use parking_lot::Mutex;

use super::column::{ColumnSlice, End};
use super::{Task, Verdict};
use crate::indexes::verdict::IndexFacts;
use crate::indexes::{bloom, canonical};
use crate::store::{Error, StoredDataset};
use crate::table::{BloomRules, BloomScheme};

/// Longest filter to verify, in bytes.
const LONGEST: u64 = 64 << 20;

/// Most hash functions, each of which gives a bit of a value: a few suffice, and each bit is tested.
const MOST_BITS: u16 = 256;

/// The index under verification.
pub(super) struct BloomIndex<'a> {
    pub filters: &'a StoredDataset,
    pub bytes: u64,
    pub k: u16,
    pub rules: &'static BloomRules,
}

/// Row and chunk of a value that its filter lacks. `None`: not found so far.
type Lacking = Option<(u64, u64)>;

pub(super) fn verify(task: &Task<'_>, index: &BloomIndex<'_>, schemes: &[BloomScheme]) -> Result<Verdict, Error> {
    let length = usize::try_from(index.bytes).ok().filter(|_| index.bytes <= LONGEST);
    let Some(length) = length else {
        return Ok(Verdict::Unverifiable { why: format!("filters of {} bytes, more than {LONGEST}", index.bytes) });
    };
    if index.k > MOST_BITS {
        return Ok(Verdict::Unverifiable { why: format!("{} hash functions, more than {MOST_BITS}", index.k) });
    }
    // For each scheme, the first value found that a filter lacks.
    let lacking: Mutex<Vec<Lacking>> = Mutex::new(vec![None; schemes.len()]);
    let broken = task.column(task.step(), &|part: ColumnSlice<'_>| {
        let (mut row, end) = (part.first, part.first + part.values.len() as u64);
        let mut filter = vec![0; length];
        while row < end {
            task.interrupt.check().map_err(Error::from)?;
            let chunk = row / task.form.chunk;
            let stop = (chunk + 1).saturating_mul(task.form.chunk).min(end);
            let offset = chunk.saturating_mul(index.bytes);
            index.filters.read_bytes(offset, &mut filter, task.interrupt)?;
            // Within the bounds of the part.
            let values = part.values.slice((row - part.first) as usize, (stop - row) as usize);
            let open: Vec<usize> = possible(&lacking.lock()).collect();
            for reading in open {
                let Some(scheme) = schemes.get(reading) else { continue };
                let mut first = None;
                canonical::for_each(values.as_ref(), |at, bytes| {
                    if first.is_none() && !bloom::may_hold(&filter, scheme.hashes(bytes), index.k) {
                        first = Some((row + at as u64, chunk));
                    }
                });
                let mut lacking = lacking.lock();
                if let Some(known) = lacking.get_mut(reading) {
                    *known = [*known, first].into_iter().flatten().min();
                }
            }
            row = stop;
        }
        let lacking = lacking.lock();
        if possible(&lacking).next().is_some() {
            return Ok(());
        }
        let place = lacking.first().copied().flatten().map(|(row, chunk)| format!("chunk {chunk}, row {row}"));
        let found = if schemes.len() > 1 {
            "a value is not in it, by any reading of the seeds"
        } else {
            "a value is not in it"
        };
        Err(End::Decided(Verdict::broken(index.rules.values, place.unwrap_or_default(), found)))
    })?;
    let lacking = lacking.into_inner();
    // Filters hold all values by every scheme that remains, so any of these may be used.
    let schemes = possible(&lacking).filter_map(|reading| schemes.get(reading).copied()).take(1).collect();
    Ok(broken.unwrap_or(Verdict::Verified(IndexFacts { schemes, ..IndexFacts::default() })))
}

/// Returns the numbers of the schemes by which no filter lacks a value so far.
fn possible(lacking: &[Lacking]) -> impl Iterator<Item = usize> {
    lacking.iter().enumerate().filter(|(_, lacking)| lacking.is_none()).map(|(reading, _)| reading)
}
