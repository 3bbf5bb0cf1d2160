//! Places of buffers in the body of a batch, and of pieces of rows in a buffer.

use super::learnt::lengths::Lengths;
use super::message::{self, Batch, BufferExtent, NodeCounts, up};
use super::plan::{BufferRole, Domain, IpcNodeKind, IpcPlan, Stream};
use super::table::{ALIGNMENT, IpcTable, PAGE, PAGED};
use crate::store::Error;

/// About the most bytes of a data buffer of string views: positions in it have 32 bits.
const MOST_SLOTS: u64 = 1 << 30;

/// Most bytes of several rows that are rendered together.
const LONGEST_PIECE: u64 = 1 << 30;

/// The layout of a batch.
#[derive(Debug)]
pub(super) struct BatchLayout {
    /// Number of the batch.
    pub batch: u64,
    /// Buffers of the batch in the order of the schema.
    pub buffers: Vec<Placed>,
    /// Number of rows of each node.
    pub node_rows: Vec<u64>,
    /// Number of data buffers of each node of string views.
    pub data_buffers: Vec<i64>,
    /// Bytes of the batch's body.
    pub body: u64,
}

/// A buffer in the body of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// Number of the column.
    pub column: usize,
    /// Number of the stream in the column.
    pub stream: usize,
    /// First byte of the stream that the buffer holds: a long stream is cut into several buffers.
    pub start: u64,
    /// The buffer's place in the body.
    pub extent: BufferExtent,
}

/// Returns the bytes of each buffer but the last into which slots of `width` bytes are cut.
pub(super) fn bytes_of_slots(width: u64) -> u64 {
    MOST_SLOTS / width.max(1) * width
}

impl BatchLayout {
    /// Lays a batch out. `lengths` must cover it if sizes depend on the values.
    pub fn new(table: &IpcTable, lengths: Option<&Lengths>, batch: u64) -> Self {
        let mut layout = Self { batch, buffers: Vec::new(), node_rows: Vec::new(), data_buffers: Vec::new(), body: 0 };
        for (column, plan) in table.plans.iter().enumerate() {
            let place = Position { table, lengths, batch, column, plan };
            let end = place.pieces();
            layout.node_rows.extend(plan.nodes.iter().map(|node| place.rows_before(node.domain, end)));
            for (number, stream) in plan.streams.iter().enumerate() {
                layout.place(table, &place, number, stream);
            }
        }
        layout
    }

    fn place(&mut self, table: &IpcTable, place: &Position<'_>, number: usize, stream: &Stream) {
        let column = place.column;
        let node = place.plan.nodes.get(stream.node);
        let views =
            matches!((node.map(|node| &node.kind), stream.role), (Some(IpcNodeKind::Views(_)), BufferRole::Cells(_)));
        if views {
            self.data_buffers.push(0);
        }
        let mut add = |start, length| {
            let paged = table.alignment == PAGE && matches!(stream.role, BufferRole::Cells(_)) && length >= PAGED;
            let offset = up(self.body, if paged { PAGE } else { ALIGNMENT });
            self.buffers.push(Placed { column, stream: number, start, extent: BufferExtent { offset, length } });
            self.body = up(offset.saturating_add(length).min(u64::MAX / 2), ALIGNMENT);
        };
        let total = place.bytes(stream);
        match stream.role {
            BufferRole::Slots(width) => {
                let most = bytes_of_slots(width);
                let parts = total.div_ceil(most);
                for part in 0..parts {
                    add(part * most, most.min(total - part * most));
                }
                self.count_data_buffers(parts as i64);
            }
            BufferRole::Shared => {
                add(0, total);
                self.count_data_buffers(1);
            }
            _ => add(0, total),
        }
    }

    fn count_data_buffers(&mut self, more: i64) {
        if let Some(count) = self.data_buffers.last_mut() {
            *count += more;
        }
    }

    /// Returns the bytes of the body, padded up to the next batch.
    pub fn filled(&self, table: &IpcTable) -> u64 {
        up(self.body, table.alignment)
    }

    /// Returns the header before the body, at least `length` bytes long; `nulls` counts the nulls of each node.
    pub fn header(&self, table: &IpcTable, nulls: &[u64], length: usize) -> Vec<u8> {
        let plans = table.plans.iter().flat_map(|plan| &plan.nodes);
        let counted = self.node_rows.iter().zip(nulls).zip(plans);
        let nodes = counted.map(|((&rows, &nulls), node)| {
            let nulls = if let IpcNodeKind::Nothing = node.kind { rows } else { nulls };
            NodeCounts { rows, nulls }
        });
        let nodes: Vec<NodeCounts> = nodes.collect();
        let buffers: Vec<BufferExtent> = self.buffers.iter().map(|buffer| buffer.extent).collect();
        let batch = Batch {
            rows: table.rows_of(self.batch).1,
            nodes: &nodes,
            buffers: &buffers,
            data_buffers: &self.data_buffers,
            body: self.filled(table),
        };
        message::batch(&batch, length)
    }

    /// Returns the buffer that contains byte `offset` of the body with the position in it, and the start of the next
    /// buffer or the padded end of the body.
    pub fn around(&self, offset: u64, table: &IpcTable) -> (Option<(&Placed, u64)>, u64) {
        let after = self.buffers.partition_point(|buffer| buffer.extent.offset <= offset);
        let next = self.buffers.get(after).map_or(self.filled(table), |next| next.extent.offset);
        let last = after.checked_sub(1).and_then(|number| self.buffers.get(number));
        let within = last.map(|buffer| (buffer, offset - buffer.extent.offset));
        (within.filter(|(buffer, within)| *within < buffer.extent.length), next)
    }
}

/// Where a column's streams and pieces lie within a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position<'a> {
    /// The table of the file.
    pub table: &'a IpcTable,
    /// Lengths learnt by a pass, if sizes depend on them.
    pub lengths: Option<&'a Lengths>,
    /// Number of the batch.
    pub batch: u64,
    /// Number of the column.
    pub column: usize,
    /// The column's plan.
    pub plan: &'a IpcPlan,
}

impl Position<'_> {
    fn piece(&self) -> u64 {
        self.table.pieces.get(self.column).copied().unwrap_or(1).max(1)
    }

    /// Returns the number of pieces in the batch.
    pub fn pieces(&self) -> u64 {
        self.table.rows_of(self.batch).1.div_ceil(self.piece())
    }

    /// Returns the rows of a piece.
    pub fn rows_of(&self, piece: u64) -> std::ops::Range<u64> {
        let (start, count) = self.table.rows_of(self.batch);
        let first = piece.saturating_mul(self.piece()).min(count);
        let last = first.saturating_add(self.piece()).min(count);
        start + first..start + last
    }

    /// Rejects a piece of several rows that are too long to be rendered together.
    pub fn admit(&self, piece: u64) -> Result<(), Error> {
        let (rows, shares) = (self.rows_of(piece), self.plan.streams.iter().map(|stream| self.share(stream, piece)));
        let bytes = shares.fold(0_u64, |sum, share| sum.saturating_add(share.end - share.start));
        if bytes <= LONGEST_PIECE || rows.end - rows.start <= 1 {
            return Ok(());
        }
        let column = self.table.columns.get(self.column).map(|column| column.name.to_string());
        let (path, what) = (column.unwrap_or_default(), format!("rows {}..{}", rows.start, rows.end));
        Err(Error::TooLarge { path, what, bytes, limit: LONGEST_PIECE, option: "bytes at once" })
    }

    /// Returns the number of a node's rows before a piece; for the piece after the last, all of them.
    pub fn rows_before(&self, domain: Domain, piece: u64) -> u64 {
        match domain {
            Domain::Rows(per) => {
                let (start, _) = self.table.rows_of(self.batch);
                (self.rows_of(piece).start - start).saturating_mul(per)
            }
            Domain::Items { length, per } => self.length_before(length, piece).saturating_mul(per),
        }
    }

    /// Returns a length, summed over the rows before a piece.
    pub fn length_before(&self, length: usize, piece: u64) -> u64 {
        let first = self.rows_of(0).start / self.piece();
        self.lengths.map_or(0, |lengths| lengths.sum(self.column, length, first, first.saturating_add(piece)))
    }

    /// Returns the first unit of a piece in a stream: a bit in bitmaps, otherwise a byte.
    pub fn start(&self, stream: &Stream, piece: u64) -> u64 {
        let Some(node) = self.plan.nodes.get(stream.node) else { return 0 };
        let rows = self.rows_before(node.domain, piece);
        match stream.role {
            BufferRole::Validity if node.nulls.is_none() => 0,
            BufferRole::Validity | BufferRole::Bits => rows,
            BufferRole::Cells(width) | BufferRole::Slots(width) => rows.saturating_mul(width),
            // The final offset belongs to the last piece.
            BufferRole::Offsets if piece >= self.pieces() => rows.saturating_mul(8).saturating_add(8),
            BufferRole::Offsets => rows.saturating_mul(8),
            BufferRole::Bytes => node.length.map_or(0, |length| self.length_before(length, piece)),
            BufferRole::Shared => 0,
        }
    }

    /// Returns the bytes of a stream.
    pub fn bytes(&self, stream: &Stream) -> u64 {
        match (stream.role, self.plan.nodes.get(stream.node).map(|node| &node.kind)) {
            (BufferRole::Shared, Some(IpcNodeKind::Views(views))) => {
                views.shared.as_ref().map_or(0, |shared| shared.bytes.len() as u64)
            }
            (BufferRole::Validity | BufferRole::Bits, _) => self.start(stream, self.pieces()).div_ceil(8),
            _ => self.start(stream, self.pieces()),
        }
    }

    /// Returns the range of a stream's bytes that a piece touches.
    pub fn share(&self, stream: &Stream, piece: u64) -> std::ops::Range<u64> {
        let (start, end) = (self.start(stream, piece), self.start(stream, piece.saturating_add(1)));
        match stream.role {
            // This holds for a piece without bits as well, so neither start nor end ever decreases from piece to piece.
            BufferRole::Validity | BufferRole::Bits => start / 8..end.div_ceil(8),
            _ => start..end,
        }
    }
}
