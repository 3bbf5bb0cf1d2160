//! Slabs: all fields of some rows, each contiguous, gathered at once if many fields of the same rows are requested.
//!
//! Extracting one field of rows in memory costs nearly as much as reading the rows whole, since a processor fetches
//! cache lines that are longer than most fields. So reading column after column, as Parquet readers and text renderers
//! do, gathers all fields of a few thousand rows together.

use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::StoredDataset;
use crate::source::{Interrupt, Interrupted};
use crate::store::RowRange;
use crate::store::chunked::ChunkKey;
use crate::store::memory::ChunkBytes;

/// Bytes of the rows of a slab.
pub(super) const SLAB: u64 = 4 << 20;

/// Bytes of rows from which all fields are gathered before the next ones: they fit in a processor's near cache.
const TILE: u64 = 64 << 10;

/// Bytes of the longest field to gather with others: a longer one is copied as fast by itself.
const LONGEST: u64 = 256;

/// Number of fields that, if requested at about the same time, trigger gathering all.
const MANY: usize = 4;

/// Number of requests that count as made at about the same time, one for each field and slab; all of their data fits in
/// the cache. A Parquet reader requests one field of the rows of some row groups, then the next field, and announces
/// its later reads, so the requests may be for any rows.
const RECENT: usize = 64;

/// Flag that distinguishes slabs from chunks in the cache: no grid has 2^63 chunks.
const MARK: u64 = 1 << 63;

/// The fields of a dataset, and recent requests for them.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Offset and bytes of each field.
    known: Mutex<BTreeSet<(u64, u64)>>,
    layout: OnceLock<Option<Layout>>,
    /// The latest requests: slab and offset of the field.
    asked: Mutex<VecDeque<(u64, u64)>>,
}

/// The layout of a slab: one field after the other.
#[derive(Debug)]
struct Layout {
    /// For each field: its offset in a row, its bytes, and the bytes of the fields before it.
    fields: Vec<(u64, u64, u64)>,
    /// Bytes of all fields.
    width: u64,
    /// Rows of a slab.
    rows: u64,
    /// Bytes of a row in the dataset.
    stride: u64,
}

/// A slab was not made; its reader reads rows instead, and will find out why.
struct Skipped;

impl From<Interrupted> for Skipped {
    fn from(_: Interrupted) -> Self {
        Self
    }
}

impl Fields {
    /// Registers a field, before any read.
    pub fn add(&self, offset: u64, size: u64) {
        if size <= LONGEST {
            self.known.lock().insert((offset, size));
        }
    }

    /// Records a request for a field of a slab; returns whether many fields are requested.
    fn note(&self, slab: u64, field: u64) -> bool {
        let mut asked = self.asked.lock();
        if !asked.contains(&(slab, field)) {
            if asked.len() == RECENT {
                asked.pop_front();
            }
            asked.push_back((slab, field));
        }
        let mut seen = [None; MANY - 1];
        asked.iter().any(|(_, field)| {
            let known = seen.iter_mut().find(|seen| seen.is_none_or(|seen| seen == *field));
            known.map(|seen| *seen = Some(*field)).is_none()
        })
    }
}

impl Layout {
    /// Lays out a slab of the known fields. `None`: they are too few, or rows are too long.
    fn new(known: &BTreeSet<(u64, u64)>, stride: u64, most: u64) -> Option<Self> {
        let (mut fields, mut width) = (Vec::new(), 0_u64);
        for (offset, size) in known.iter().filter(|(offset, size)| offset.saturating_add(*size) <= stride) {
            fields.push((*offset, *size, width));
            width = width.checked_add(*size)?;
        }
        let rows = (SLAB.min(most) / stride.max(1)).checked_ilog2().map(|power| 1 << power)?;
        // Overlapping fields could take more than the rows do.
        (fields.len() >= MANY && width <= stride).then_some(Self { fields, width, rows, stride })
    }

    /// The offset of a field in a slab of `rows` rows.
    fn place(&self, (offset, size): (u64, u64), rows: u64) -> Option<u64> {
        let at = self.fields.binary_search_by_key(&(offset, size), |&(offset, size, _)| (offset, size)).ok()?;
        self.fields.get(at)?.2.checked_mul(rows)
    }
}

impl StoredDataset {
    /// Registers that a field is a column, before any read.
    pub(super) fn note_field(&self, offset: u64, size: u64) {
        self.fields.add(offset, size);
    }

    /// Rows of a slab; slabs begin at multiples of it. `None`: no slabs.
    pub(super) fn slab_rows(&self, stride: u64) -> Option<u64> {
        Some(self.slab_layout(stride)?.rows)
    }

    fn slab_layout(&self, stride: u64) -> Option<&Layout> {
        // Slabs hold memory while decoding may wait for more: all threads together must leave most of the budget.
        let most = self.file.store().budget().limit() / 64;
        self.fields.layout.get_or_init(|| Layout::new(&self.fields.known.lock(), stride, most)).as_ref()
    }

    /// Appends a field, given by its offset and bytes, of `rows` within one slab of a dataset of `len` rows. Returns
    /// whether it did, which takes many recent requests for fields of these rows.
    pub(super) fn append_from_slab(
        &self,
        field: (u64, u64),
        rows: &RowRange,
        len: u64,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> bool {
        let Some(layout) = self.fields.layout.get().and_then(Option::as_ref) else { return false };
        let number = rows.start / layout.rows;
        let whole = number * layout.rows..len.min((number + 1).saturating_mul(layout.rows));
        let Some(place) = layout.place(field, whole.end - whole.start) else { return false };
        let key = ChunkKey { file: self.file.serial(), object: self.description.id, chunk: number | MARK };
        let (chunks, make) = (self.file.store().chunks(), || self.slab(layout, &whole, interrupt));
        let block = match self.fields.note(number, field.0) {
            true => chunks.get_or_make(&key, interrupt, make).ok(),
            false => chunks.get(&key),
        };
        let Some(block) = block else { return false };
        let start = (place + (rows.start - whole.start) * field.1) as usize;
        let part = block.bytes.get(start..start + ((rows.end - rows.start) * field.1) as usize);
        part.map(|part| out.extend_from_slice(part)).is_some()
    }

    /// All fields of some rows.
    fn slab(&self, layout: &Layout, rows: &RowRange, interrupt: &Interrupt) -> Result<ChunkBytes, Skipped> {
        let (count, stride) = (rows.end - rows.start, layout.stride);
        // At most [`SLAB`]. Not cleared, since all of it is written.
        let (lease, [mut made]) =
            self.file.store().budget().try_lease([(layout.width * count) as usize]).ok_or(Skipped)?;
        // While holding a lease, a thread must not wait.
        drop(lease);
        let (tile, mut row) = ((TILE / stride).max(1) * stride, 0_u64);
        let bytes = rows.start * stride..rows.end * stride;
        let gathered = self.for_each_piece(bytes, tile, interrupt, &mut |piece| {
            for tile in piece.chunks(tile as usize) {
                for (offset, size, before) in &layout.fields {
                    let place = (before * count + row * size) as usize;
                    gather(tile, *offset as usize, stride as usize, *size as usize, &mut made[place..]);
                }
                row += tile.len() as u64 / stride;
            }
        });
        gathered.map_err(|_| Skipped)?;
        if row == count { Ok(ChunkBytes { bytes: made, heap: None }) } else { Err(Skipped) }
    }
}

/// Copies the part of each row in `bytes`, concatenated.
pub(super) fn gather(bytes: &[u8], offset: usize, stride: usize, size: usize, out: &mut [u8]) {
    // A copy of constant width is one instruction.
    match size {
        1 => gather_known::<1>(bytes, offset, stride, out),
        2 => gather_known::<2>(bytes, offset, stride, out),
        4 => gather_known::<4>(bytes, offset, stride, out),
        8 => gather_known::<8>(bytes, offset, stride, out),
        16 => gather_known::<16>(bytes, offset, stride, out),
        _ => {
            let parts = parts(bytes, offset, stride, size);
            out.chunks_exact_mut(size.max(1)).zip(parts).for_each(|(to, part)| to.copy_from_slice(part));
        }
    }
}

fn gather_known<const SIZE: usize>(bytes: &[u8], offset: usize, stride: usize, out: &mut [u8]) {
    let (out, _) = out.as_chunks_mut::<SIZE>();
    out.iter_mut().zip(parts(bytes, offset, stride, SIZE)).for_each(|(to, part)| to.copy_from_slice(part));
}

/// The part of each row, as slices.
fn parts(bytes: &[u8], offset: usize, stride: usize, size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks_exact(stride.max(1)).filter_map(move |row| row.get(offset..)?.get(..size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_fields_at_about_the_same_time_are_gathered_together() {
        let asks = |asked: &[(u64, u64)]| {
            let fields = Fields::default();
            let of = |&(slab, field): &(u64, u64)| fields.note(slab, field);
            asked.iter().map(of).collect::<Vec<bool>>()
        };
        // One field after the other, each twice, as a Parquet reader does that announces its later reads.
        assert_eq!(
            asks(&[(0, 0), (0, 0), (0, 8), (0, 8), (0, 16), (0, 24), (0, 0)]),
            [false, false, false, false, false, true, true]
        );
        assert_eq!(asks(&[(0, 0), (70, 8), (140, 16), (210, 24), (280, 0)]), [false, false, false, true, true]);
        // Three fields of many rows; one field after the other, further apart than the recorded requests.
        let three: Vec<_> = (0..500).map(|slab| (slab / 3, slab % 3 * 8)).collect();
        assert!(asks(&three).iter().all(|many| !many));
        let columns: Vec<_> = (0..10).flat_map(|field| (0..100).map(move |slab| (slab, field * 8))).collect();
        assert!(asks(&columns).iter().all(|many| !many));
        // A reader of all fields, then one of a single field.
        let all = (0..20).flat_map(|slab| (0..10).map(move |field| (slab, field * 8)));
        let then: Vec<_> = all.chain((20..200).map(|slab| (slab, 0))).collect();
        let asked = asks(&then);
        assert!(asked[3..200].iter().all(|many| *many));
        assert!(asked[264..].iter().all(|many| !many));
    }
}
