//! An Arrow file whose labels have been read: layouts, learnt facts, places of batches.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;

use super::IpcColumn;
use super::layout::{BatchLayout, Placed, Position};
use super::learnt::lengths::{Lengths, LengthsPass};
use super::learnt::nulls::Nulls;
use super::message::{self, MessageBlock, up};
use super::plan::{BufferRole, IpcPlan};
use super::table::{IpcTable, LARGEST};
use crate::learnt::pass::Keeper;
use crate::source::Interrupt;
use crate::store::Error;

/// Most bytes that the header of an empty batch could save.
const HEADER_MARGIN: u64 = 64;

/// Number of layouts of unlike batches to keep (LRU).
const LAYOUTS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// An Arrow file whose labels have been read.
#[derive(Debug)]
pub(super) struct IpcFile {
    /// Everything known before any value is read.
    pub table: Arc<IpcTable>,
    /// Null counts for headers.
    pub nulls: Nulls,
    /// The pass that learns lengths, if sizes depend on them.
    pub pass: Option<LengthsPass>,
    /// Bytes of a batch's header.
    pub header: u64,
    /// Layouts of the first and the last batch, if no size depends on values: all but the last are alike.
    layouts: Option<[Arc<BatchLayout>; 2]>,
    recent: Mutex<LruCache<u64, Arc<BatchLayout>>>,
    /// The size shown before the lengths are known, if learning them takes long; see [`IpcFile::promised`].
    pub promised: OnceLock<Option<u64>>,
    placed: OnceLock<Placement>,
}

/// Where the batches lie in the file.
#[derive(Debug)]
pub(super) struct Placement {
    /// First byte of each batch, and the end of the last one, if bodies differ in size.
    starts: Option<Vec<u64>>,
    /// Bytes of each body but the last, if these are equal.
    body: u64,
    /// Position just after the last batch.
    pub batches_end: u64,
    /// Position just after the last batch and the gap that follows it.
    pub end: u64,
    /// The bytes after the batches: end of stream, footer, magic.
    pub tail: Vec<u8>,
}

impl IpcFile {
    /// Lays the file out without reading anything.
    pub fn new(table: IpcTable, keeper: Option<Keeper>) -> Self {
        let table = Arc::new(table);
        let pass = LengthsPass::new(&table, keeper.clone());
        let last = table.batches().saturating_sub(1);
        let first = BatchLayout::new(&table, None, 0);
        let nulls = vec![0; first.node_rows.len()];
        let header = first.header(&table, &nulls, 0).len() as u64;
        let header = up(header + HEADER_MARGIN, table.alignment);
        let layouts = pass.is_none().then(|| [Arc::new(first), Arc::new(BatchLayout::new(&table, None, last))]);
        Self {
            nulls: Nulls::new(&table, keeper),
            pass,
            header,
            layouts,
            recent: Mutex::new(LruCache::new(LAYOUTS)),
            promised: OnceLock::new(),
            placed: OnceLock::new(),
            table,
        }
    }

    /// Returns the lengths, if sizes depend on them; waits for the pass that learns them.
    pub fn lengths(&self, interrupt: &Interrupt) -> Result<Option<&Lengths>, Error> {
        self.pass.as_ref().map(|pass| pass.lengths(interrupt)).transpose()
    }

    /// Returns the layout of a batch.
    pub fn layout(&self, batch: u64, interrupt: &Interrupt) -> Result<Arc<BatchLayout>, Error> {
        if let Some([first, last]) = &self.layouts {
            return Ok(Arc::clone(if batch == last.batch { last } else { first }));
        }
        if let Some(known) = self.recent.lock().get(&batch) {
            return Ok(Arc::clone(known));
        }
        let layout = Arc::new(BatchLayout::new(&self.table, self.lengths(interrupt)?, batch));
        self.recent.lock().put(batch, Arc::clone(&layout));
        Ok(layout)
    }

    /// If a buffer consists of stored bytes, returns the column, and the position of the buffer's first byte among
    /// these.
    pub fn stored(&self, batch: u64, buffer: &Placed) -> Option<(&IpcColumn, u64)> {
        let plan = self.table.plans.get(buffer.column)?;
        let stored = plan.direct?;
        let role = plan.streams.get(buffer.stream)?.role;
        matches!(role, BufferRole::Cells(_)).then_some(())?;
        Some((self.table.columns.get(buffer.column)?, self.table.rows_of(batch).0.checked_mul(stored)?))
    }

    /// Returns the positions of a column within a batch.
    pub fn position(&self, batch: u64, column: usize) -> Option<Position<'_>> {
        let plan: &IpcPlan = self.table.plans.get(column)?;
        let lengths = self.pass.as_ref().and_then(LengthsPass::known);
        Some(Position { table: &self.table, lengths, batch, column, plan })
    }

    /// Returns the header of a batch; counts the batch's nulls.
    pub fn header_of(&self, batch: u64, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let lengths = self.lengths(interrupt)?;
        let nulls = self.nulls.of_batch(batch, lengths, interrupt)?;
        let layout = self.layout(batch, interrupt)?;
        // Batches that share a layout have equally many rows; the last batch has its own layout.
        let header = layout.header(&self.table, &nulls, usize::try_from(self.header).unwrap_or(usize::MAX));
        if header.len() as u64 != self.header {
            let reason = format!("the header of batch {batch} takes {} bytes, not {}", header.len(), self.header);
            return Err(Error::unsupported("arrow", reason));
        }
        Ok(header)
    }

    /// Returns the places of batches, if finding them takes no further pass.
    pub fn known(&self) -> Option<&Placement> {
        if let Some(placed) = self.placed.get() {
            return Some(placed);
        }
        let (lengths, promised) = match &self.pass {
            Some(pass) => (Some(pass.known()?), *self.promised.get()?),
            None => (None, None),
        };
        Some(self.placed.get_or_init(|| self.place(lengths).until(promised)))
    }

    /// Returns the size estimated from a sample of lengths. `None`: learning the exact lengths takes no longer.
    pub fn promised(&self, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        if let Some(promised) = self.promised.get() {
            return Ok(*promised);
        }
        let typical = self.pass.as_ref().map(|pass| pass.typical(interrupt)).transpose()?.flatten();
        Ok(*self.promised.get_or_init(|| typical.map(|lengths| self.place(Some(&lengths)).size())))
    }

    /// Whether the places of batches are known without a pass, or its results are in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        self.pass.as_ref().map_or(Ok(true), |pass| pass.is_found(interrupt))
    }

    /// Records that a piece of a column is longer than its outline said.
    pub fn distrust(&self, column: usize) {
        if let Some(pass) = &self.pass {
            pass.meter.distrust(column);
        }
    }

    /// Returns the places of batches; waits for the pass if need be.
    pub fn placement(&self, interrupt: &Interrupt) -> Result<&Placement, Error> {
        let promised = self.promised(interrupt)?;
        let lengths = self.lengths(interrupt)?;
        let placed = self.placed.get_or_init(|| self.place(lengths).until(promised));
        if placed.size() >= LARGEST {
            let reason = format!("{} rows pass 2^62 bytes", self.table.rows);
            return Err(Error::unsupported("arrow", reason));
        }
        Ok(placed)
    }

    fn place(&self, lengths: Option<&Lengths>) -> Placement {
        let table = &self.table;
        let batches = table.batches();
        let mut at = table.head.length;
        let mut places = Vec::with_capacity(usize::try_from(batches).unwrap_or(0));
        for batch in 0..batches {
            let body = match &self.layouts {
                Some([first, last]) => if batch + 1 == batches { last } else { first }.filled(table),
                None => BatchLayout::new(table, lengths, batch).filled(table),
            };
            places.push(MessageBlock { offset: at, metadata: self.header as u32, body });
            at = at.saturating_add(self.header).saturating_add(body).min(u64::MAX / 4);
        }
        Placement {
            starts: self.layouts.is_none().then(|| places.iter().map(|place| place.offset).collect()),
            body: places.first().map_or(0, |place| place.body),
            batches_end: at,
            end: at,
            tail: message::tail(&table.schema, &table.head.dictionaries, &places),
        }
    }
}

impl Placement {
    /// Leaves a gap after the last batch, so that the file has `size` bytes; a longer file stays as it is.
    fn until(mut self, size: Option<u64>) -> Self {
        self.end += size.unwrap_or(0).saturating_sub(self.size());
        self
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.end.saturating_add(self.tail.len() as u64)
    }

    /// Returns the batch that contains byte `at`, and the batch's first byte.
    pub fn batch_at(&self, file: &IpcFile, at: u64) -> (u64, u64) {
        let head = file.table.head.length;
        match &self.starts {
            Some(starts) => {
                let batch = starts.partition_point(|start| *start <= at).saturating_sub(1);
                (batch as u64, starts.get(batch).copied().unwrap_or(head))
            }
            None => {
                let each = file.header + self.body;
                let batch = ((at - head) / each.max(1)).min(file.table.batches().saturating_sub(1));
                (batch, head + batch * each)
            }
        }
    }
}
