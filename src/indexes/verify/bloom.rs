//! Verifies a `CHUNK_BLOOM`: the filter of each chunk must hold all of its values. Further bits are no error.

use parking_lot::Mutex;

use super::column::{ColumnSlice, End};
use super::{Task, Verdict};
use crate::indexes::verdict::IndexFacts;
use crate::indexes::{bloom, canonical};
use crate::store::{Error, StoredDataset};
use crate::table::{BloomRules, BloomScheme};

/// Longest filter to verify.
const LONGEST: u64 = 64 << 20;

/// Most bits of a value: a few suffice, and each is tested.
const MOST_BITS: u16 = 256;

/// The index under verification.
pub(super) struct BloomIndex<'a> {
    pub filters: &'a StoredDataset,
    pub bytes: u64,
    pub k: u16,
    pub rules: &'static BloomRules,
}

/// A value that a filter lacks: its row and chunk.
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
    // Every remaining scheme finds all values, so any of them may be used.
    let schemes = possible(&lacking).filter_map(|reading| schemes.get(reading).copied()).take(1).collect();
    Ok(broken.unwrap_or(Verdict::Verified(IndexFacts { schemes, ..IndexFacts::default() })))
}

/// Schemes under which no value is lacking so far.
fn possible(lacking: &[Lacking]) -> impl Iterator<Item = usize> {
    lacking.iter().enumerate().filter(|(_, lacking)| lacking.is_none()).map(|(reading, _)| reading)
}
