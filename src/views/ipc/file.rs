//! A file once its labels are read: layouts, what is learnt, where batches lie.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;

use super::IpcColumn;
use super::layout::{Layout, Placed, Position};
use super::learnt::lengths::{Lengths, Pass};
use super::learnt::nulls::Nulls;
use super::message::{self, Place, up};
use super::plan::{Plan, Role};
use super::table::{LARGEST, Table};
use crate::source::Interrupt;
use crate::store::Error;
use crate::store::pass::Keeper;

/// Room that a header of a batch without bytes would need less.
const HEADER_MARGIN: u64 = 64;

/// Layouts of batches kept where they differ from each other.
const LAYOUTS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// The file once its labels are read.
#[derive(Debug)]
pub(super) struct File {
    /// What is fixed before any value is read.
    pub table: Arc<Table>,
    /// Counts for headers.
    pub nulls: Nulls,
    /// Lengths, where sizes depend on them.
    pub pass: Option<Pass>,
    /// Bytes of a header.
    pub header: u64,
    /// Those of the first and the last batch, where no size depends on values: all but the last are alike.
    layouts: Option<[Arc<Layout>; 2]>,
    recent: Mutex<LruCache<u64, Arc<Layout>>>,
    /// See [`File::promised`]: the size that is shown before lengths are known, where they take long.
    pub promised: OnceLock<Option<u64>>,
    placed: OnceLock<Placement>,
}

/// Where batches lie.
#[derive(Debug)]
pub(super) struct Placement {
    /// First byte of each batch where bodies differ, and the end of the last.
    starts: Option<Vec<u64>>,
    /// Bytes of a body where all but the last have the same.
    body: u64,
    /// One past the last batch.
    pub batches_end: u64,
    /// The same, and the gap behind it.
    pub end: u64,
    /// End of stream, footer, magic.
    pub tail: Vec<u8>,
}

impl File {
    /// Reads nothing.
    pub fn new(table: Table, keeper: Option<Keeper>) -> Self {
        let table = Arc::new(table);
        let pass = Pass::new(&table, keeper.clone());
        let last = table.batches().saturating_sub(1);
        let first = Layout::new(&table, None, 0);
        let nulls = vec![0; first.node_rows.len()];
        let header = first.header(&table, &nulls, 0).len() as u64;
        let header = up(header + HEADER_MARGIN, table.alignment);
        let layouts = pass.is_none().then(|| [Arc::new(first), Arc::new(Layout::new(&table, None, last))]);
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

    /// What a pass has learnt, where sizes depend on it: waits for it.
    pub fn lengths(&self, interrupt: &Interrupt) -> Result<Option<&Lengths>, Error> {
        self.pass.as_ref().map(|pass| pass.lengths(interrupt)).transpose()
    }

    /// Where buffers lie in a batch.
    pub fn layout(&self, batch: u64, interrupt: &Interrupt) -> Result<Arc<Layout>, Error> {
        if let Some([first, last]) = &self.layouts {
            return Ok(Arc::clone(if batch == last.batch { last } else { first }));
        }
        if let Some(known) = self.recent.lock().get(&batch) {
            return Ok(Arc::clone(known));
        }
        let layout = Arc::new(Layout::new(&self.table, self.lengths(interrupt)?, batch));
        self.recent.lock().put(batch, Arc::clone(&layout));
        Ok(layout)
    }

    /// A column and the position in its stored bytes at which a buffer of a batch begins, where they are the buffer.
    pub fn stored(&self, batch: u64, buffer: &Placed) -> Option<(&IpcColumn, u64)> {
        let plan = self.table.plans.get(buffer.column)?;
        let stored = plan.direct?;
        let role = plan.streams.get(buffer.stream)?.role;
        matches!(role, Role::Cells(_)).then_some(())?;
        Some((self.table.columns.get(buffer.column)?, self.table.rows_of(batch).0.checked_mul(stored)?))
    }

    /// Places of a column in a batch.
    pub fn position(&self, batch: u64, column: usize) -> Option<Position<'_>> {
        let plan: &Plan = self.table.plans.get(column)?;
        let lengths = self.pass.as_ref().and_then(Pass::known);
        Some(Position { table: &self.table, lengths, batch, column, plan })
    }

    /// The header of a batch: counts its nulls.
    pub fn header_of(&self, batch: u64, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let lengths = self.lengths(interrupt)?;
        let nulls = self.nulls.of_batch(batch, lengths, interrupt)?;
        let layout = self.layout(batch, interrupt)?;
        // Of batches that share a layout, only the rows of the last may differ, and that has its own.
        let header = layout.header(&self.table, &nulls, usize::try_from(self.header).unwrap_or(usize::MAX));
        if header.len() as u64 != self.header {
            let reason = format!("the header of batch {batch} takes {} bytes, not {}", header.len(), self.header);
            return Err(Error::unsupported("arrow", reason));
        }
        Ok(header)
    }

    /// Where batches lie, if that takes no pass any more.
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

    /// The size of a file whose lengths are as a sample says; `None` where exact ones take no longer.
    pub fn promised(&self, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        if let Some(promised) = self.promised.get() {
            return Ok(*promised);
        }
        let typical = self.pass.as_ref().map(|pass| pass.typical(interrupt)).transpose()?.flatten();
        Ok(*self.promised.get_or_init(|| typical.map(|lengths| self.place(Some(&lengths)).size())))
    }

    /// Whether where batches lie takes no pass, or one whose results are in the cache folder.
    pub fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        self.pass.as_ref().map_or(Ok(true), |pass| pass.is_found(interrupt))
    }

    /// A piece of a column is not as long as was learnt.
    pub fn distrust(&self, column: usize) {
        if let Some(pass) = &self.pass {
            pass.meter.distrust(column);
        }
    }

    /// Where batches lie.
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
                None => Layout::new(table, lengths, batch).filled(table),
            };
            places.push(Place { offset: at, metadata: self.header as u32, body });
            at = at.saturating_add(self.header).saturating_add(body).min(u64::MAX / 4);
        }
        let starts = || places.iter().map(|place| place.offset).collect();
        Placement {
            starts: self.layouts.is_none().then(starts),
            body: places.first().map_or(0, |place| place.body),
            batches_end: at,
            end: at,
            tail: message::tail(&table.schema, &table.head.dictionaries, &places),
        }
    }
}

impl Placement {
    /// The same with so much of nothing behind the last batch that the file has this size, unless it is longer.
    fn until(mut self, size: Option<u64>) -> Self {
        self.end += size.unwrap_or(0).saturating_sub(self.size());
        self
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.end.saturating_add(self.tail.len() as u64)
    }

    /// The batch that byte `at` is in, and where it begins.
    pub fn batch_at(&self, file: &File, at: u64) -> (u64, u64) {
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
