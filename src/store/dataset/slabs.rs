//! The fields of some rows, each by itself: made once where many fields of the same rows are asked for.
//!
//! To take a field out of rows that lie in memory costs nearly as much as to read all of the rows, since a processor
//! fetches memory in lines that are longer than most fields. So reading column after column, as readers of
//! Parquet and renderers of text do, gets all fields of a few thousand rows gathered together from the fourth field
//! on.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::Dataset;
use crate::source::{Interrupt, Interrupted};
use crate::store::RowRange;
use crate::store::chunked::ChunkKey;
use crate::store::memory::Block;

/// Bytes of the rows of a slab.
pub(super) const SLAB: u64 = 4 << 20;

/// Bytes of rows that all fields are gathered from before the next ones: what a processor keeps near.
const TILE: u64 = 64 << 10;

/// A longer field is copied as fast by itself.
const LONGEST: u64 = 256;

/// Times that another field of the same rows was asked for before they are gathered together.
const CHANGES: u32 = 3;

/// Slabs of which it is remembered what was asked for.
const REMEMBERED: usize = 4096;

/// Marks slabs among chunks in the cache: no grid has as many.
const MARK: u64 = 1 << 63;

/// The fields of a dataset, and what was asked of them.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Offset and bytes of each.
    known: Mutex<BTreeSet<(u64, u64)>>,
    layout: OnceLock<Option<Layout>>,
    /// Of a slab, the field that was last asked for, and how often that was another than before.
    asked: Mutex<HashMap<u64, (u64, u32)>>,
}

/// How a slab is laid out: field behind field.
#[derive(Debug)]
struct Layout {
    /// Offset and bytes of each field in a row, and bytes of the fields before it.
    fields: Vec<(u64, u64, u64)>,
    /// Bytes of all fields.
    width: u64,
    /// Rows of a slab, and bytes of each in the dataset.
    rows: u64,
    stride: u64,
}

/// Why a slab was not made: who wanted it reads rows, and finds out.
struct Skipped;

impl From<Interrupted> for Skipped {
    fn from(_: Interrupted) -> Self {
        Self
    }
}

impl Fields {
    /// Notes a field, before any is read.
    pub fn add(&self, offset: u64, size: u64) {
        if size <= LONGEST {
            self.known.lock().insert((offset, size));
        }
    }

    /// Counts who asks for a field of a slab; returns whether the slab is worth while.
    fn note(&self, slab: u64, field: u64) -> bool {
        let mut asked = self.asked.lock();
        if asked.len() >= REMEMBERED {
            asked.clear();
        }
        let (last, changes) = asked.entry(slab).or_insert((field, 0));
        if *last != field {
            (*last, *changes) = (field, changes.saturating_add(1));
        }
        *changes >= CHANGES
    }
}

impl Layout {
    /// `None` where fields are too few, or rows too long.
    fn new(known: &BTreeSet<(u64, u64)>, stride: u64, most: u64) -> Option<Self> {
        let (mut fields, mut width) = (Vec::new(), 0_u64);
        for (offset, size) in known.iter().filter(|(offset, size)| offset.saturating_add(*size) <= stride) {
            fields.push((*offset, *size, width));
            width = width.checked_add(*size)?;
        }
        let rows = (SLAB.min(most) / stride.max(1)).checked_ilog2().map(|power| 1 << power)?;
        // Fields that overlap could take more than rows do.
        (fields.len() > CHANGES as usize && width <= stride).then_some(Self { fields, width, rows, stride })
    }

    /// Where a field lies in a slab of `rows` rows.
    fn place(&self, (offset, size): (u64, u64), rows: u64) -> Option<u64> {
        let at = self.fields.binary_search_by_key(&(offset, size), |&(offset, size, _)| (offset, size)).ok()?;
        self.fields.get(at)?.2.checked_mul(rows)
    }
}

impl Dataset {
    /// Notes that a field is a column, before any is read.
    pub(super) fn note_field(&self, offset: u64, size: u64) {
        self.fields.add(offset, size);
    }

    /// Rows of a slab, from a multiple of which on each slab begins; `None` where there are none.
    pub(super) fn slab_rows(&self, stride: u64) -> Option<u64> {
        Some(self.slab_layout(stride)?.rows)
    }

    fn slab_layout(&self, stride: u64) -> Option<&Layout> {
        // Held while rows are decoded, which may wait for memory: all threads together must leave most of it.
        let most = self.file.store().budget().limit() / 64;
        self.fields.layout.get_or_init(|| Layout::new(&self.fields.known.lock(), stride, most)).as_ref()
    }

    /// Appends a field, given by its offset and its bytes, of `rows`, which lie in one slab of a dataset of `len` rows;
    /// returns whether it did: whether many fields of these rows are asked for.
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
        if !self.fields.note(number, field.0) {
            return false;
        }
        let whole = number * layout.rows..len.min((number + 1).saturating_mul(layout.rows));
        let Some(place) = layout.place(field, whole.end - whole.start) else { return false };
        let key = ChunkKey { file: self.file.serial(), object: self.description.id, chunk: number | MARK };
        let make = || self.slab(layout, &whole, interrupt);
        let Ok(block) = self.file.store().chunks().get_or_make(&key, interrupt, make) else { return false };
        let start = (place + (rows.start - whole.start) * field.1) as usize;
        let part = block.bytes.get(start..start + ((rows.end - rows.start) * field.1) as usize);
        part.map(|part| out.extend_from_slice(part)).is_some()
    }

    /// All fields of some rows.
    fn slab(&self, layout: &Layout, rows: &RowRange, interrupt: &Interrupt) -> Result<Block, Skipped> {
        let (count, stride) = (rows.end - rows.start, layout.stride);
        // No more than [`SLAB`]. Not cleared: all of it is written.
        let (lease, [mut made]) =
            self.file.store().budget().try_lease([(layout.width * count) as usize]).ok_or(Skipped)?;
        // Who holds one waits for nothing.
        drop(lease);
        let (tile, mut row) = ((TILE / stride).max(1) * stride, 0_u64);
        let bytes = rows.start * stride..rows.end * stride;
        let gathered = self.for_each_piece(bytes, tile, interrupt, &mut |piece| {
            for tile in piece.chunks(tile as usize) {
                for (offset, size, before) in &layout.fields {
                    let place = (before * count + row * size) as usize;
                    super::field::gather(tile, *offset as usize, stride as usize, *size as usize, &mut made[place..]);
                }
                row += tile.len() as u64 / stride;
            }
        });
        gathered.map_err(|_| Skipped)?;
        if row == count { Ok(Block { bytes: made, heap: None }) } else { Err(Skipped) }
    }
}
