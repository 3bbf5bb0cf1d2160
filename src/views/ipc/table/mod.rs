//! Everything known before any value is read: plans, labels, batches, pieces, the bytes before the first batch.

mod schema;

use std::borrow::Borrow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Schema};

use super::IpcColumn;
use super::message::{self, Batch, BufferExtent, MessageBlock, NodeCounts, up};
use super::plan::dictionary::IpcDictionary;
use super::plan::{BufferRole, Domain, IpcPlan, UnplannedColumn};
use crate::source::Interrupt;
use crate::store::{Error, ValueSet};
use crate::views::Misfit;

/// Most batches: each takes 24 bytes of the footer, which the first `stat` of a file builds.
const MOST_BATCHES: u64 = 1 << 10;

/// Most nodes in all headers together: each takes 16 bytes, and 32 or more for its buffers.
const MOST_NODES: u64 = 1 << 20;

/// How a file is cut into batches and pieces by default.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    /// Rows of a batch, a power of two: the least of a column that a reader fetches, and the rows that one header
    /// covers.
    pub batch: u64,
    /// About how many bytes a rendered piece of rows has: several 128 KiB requests of the kernel, yet a small part of a
    /// file.
    pub piece: u64,
    /// Rows of a piece of a column whose sizes depend on the values, a power of two.
    pub variable: u64,
}

impl Default for Grain {
    fn default() -> Self {
        Self { batch: 1 << 17, piece: 1 << 20, variable: 1 << 14 }
    }
}

/// Most bytes of the source file for such a piece; it gets fewer rows if they take more.
const VARIABLE_BYTES: u64 = 4 << 20;

/// Most lengths to learn (8 bytes each); with more, pieces get larger.
const MOST_LENGTHS: u64 = 1 << 22;

/// Values of at least this many bytes begin at a page boundary.
pub(super) const PAGED: u64 = 64 << 10;

/// Bytes of a memory page, the unit of a memory map.
pub(super) const PAGE: u64 = 4096;

/// Alignment of every other buffer (`Arrow columnar format`, "Buffer Alignment and Padding").
pub(super) const ALIGNMENT: u64 = 64;

/// Most bytes of all batches together: well within what `stat` can report.
pub(super) const LARGEST: u64 = 1 << 62;

/// The columns of a file, with everything known before a value is read.
#[derive(Debug)]
pub(super) struct IpcTable {
    /// Columns of the file.
    pub columns: Vec<IpcColumn>,
    /// Plans of these columns.
    pub plans: Vec<IpcPlan>,
    /// Number of rows of the table.
    pub rows: u64,
    /// Rows of a batch, a power of two.
    pub per_batch: u64,
    /// Rows of a piece of each column, a power of two that divides a batch.
    pub pieces: Vec<u64>,
    /// Rows of a piece of the columns whose sizes depend on the values.
    pub variable_piece: u64,
    /// Multiple of bytes at which batches begin.
    pub alignment: u64,
    /// Schema of the file.
    pub schema: Schema,
    /// The bytes before the first batch.
    pub head: Head,
}

/// The bytes before the first batch.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Parts of the head, each with its first byte; zeros fill the gaps.
    pub parts: Vec<(u64, Buffer)>,
    /// Places of the dictionary batches in the head.
    pub dictionaries: Vec<MessageBlock>,
    /// Bytes of the head, padding included.
    pub length: u64,
}

/// Checks by their types whether these columns can make an Arrow file.
pub(super) fn check(columns: impl IntoIterator<Item = impl Borrow<IpcColumn>>) -> Result<(), Misfit> {
    // One column at a time: a table may have very many, and their plans are made on demand.
    let (mut bytes, mut rows) = (Some(0_u64), None);
    for column in columns {
        let column = column.borrow();
        let plan = IpcPlan::new(shape(column), None)?;
        bytes = bytes.and_then(|bytes| bytes.checked_add(plan.row_bytes));
        rows = Some(rows.map_or(column.rows.len(), |rows: u64| rows.min(column.rows.len())));
    }
    fit(bytes, rows.unwrap_or(0))
}

fn fits(plans: &[IpcPlan], rows: u64) -> Result<(), Misfit> {
    fit(plans.iter().try_fold(0_u64, |sum, plan| sum.checked_add(plan.row_bytes)), rows)
}

/// Checks that `rows` rows of `row` bytes each fit. `None`: the bytes of a row overflow.
fn fit(row: Option<u64>, rows: u64) -> Result<(), Misfit> {
    // Padding at most doubles the bytes of the columns.
    let bytes = row.and_then(|row| row.checked_mul(rows)).filter(|bytes| *bytes <= LARGEST / 4);
    bytes.map(drop).ok_or_else(|| Misfit::Size(format!("{rows} rows pass 2^60 bytes")))
}

fn rows(columns: &[IpcColumn]) -> u64 {
    columns.iter().map(|column| column.rows.len()).min().unwrap_or(0)
}

fn shape(column: &IpcColumn) -> UnplannedColumn<'_> {
    UnplannedColumn {
        data_type: column.rows.data_type(),
        hints: &column.hints,
        nullable: column.rows.nullable(),
        stored_width: column.rows.stored_width(),
        apart: column.rows.fields_lie_apart(),
    }
}

/// Whether the values, possibly within lists, are labels. Labels within arrays do not count: DuckDB misreads arrays of
/// dictionary keys.
fn is_dictionary(column: &IpcColumn) -> bool {
    let mut data_type = column.rows.data_type();
    while let DataType::LargeList(item) = data_type {
        data_type = item.data_type();
    }
    matches!(data_type, DataType::Dictionary(..))
}

/// Whether a column's labels must be read before it can be laid out, as those of categories must.
pub(super) fn has_labels(column: &IpcColumn) -> bool {
    is_dictionary(column) && !matches!(column.hints.innermost().values, Some(ValueSet::Names(_)))
}

/// Reads the labels of a column that has a dictionary in the file.
fn labels(column: &IpcColumn, interrupt: &Interrupt) -> Result<Option<IpcDictionary>, Error> {
    if !is_dictionary(column) {
        return Ok(None);
    }
    let ordered = match &column.hints.innermost().values {
        Some(ValueSet::Names(names)) => return Ok(IpcDictionary::of_codes(names)),
        Some(ValueSet::Categories { ordered, .. }) => *ordered,
        None => false,
    };
    // An array of no rows has all labels nonetheless.
    let mut none = column.rows.array(0..0, interrupt)?;
    while let Some(list) = none.as_list_opt::<i64>() {
        none = list.values().clone();
    }
    let labels = none.as_any_dictionary_opt().map(|dictionary| dictionary.values());
    Ok(labels.and_then(|labels| IpcDictionary::of_categories(labels, ordered)))
}

impl IpcTable {
    /// Lays a file out. Reads nothing but labels. `source` is the size of the file that the rows come from, if known:
    /// apart from compression, the texts and lists of all rows cannot take more.
    ///
    /// # Errors
    /// If labels cannot be read, or a column cannot be shown after all.
    pub fn new(
        columns: Vec<IpcColumn>,
        grain: Grain,
        source: Option<u64>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let mut plans = Vec::with_capacity(columns.len());
        let mut dictionaries = Vec::new();
        for column in &columns {
            let labels = labels(column, interrupt)?.map(Arc::new);
            dictionaries.extend(labels.clone());
            plans.push(IpcPlan::new(shape(column), labels).map_err(|misfit| Error::unsupported("arrow", misfit))?);
        }
        let rows = rows(&columns);
        fits(&plans, rows).map_err(|misfit| Error::unsupported("arrow", misfit))?;

        let nodes = plans.iter().map(|plan| plan.nodes.len() as u64).sum::<u64>().max(1);
        let mut per_batch = grain.batch;
        while rows.div_ceil(per_batch) > MOST_BATCHES.min(MOST_NODES / nodes).max(1) {
            per_batch *= 2;
        }
        let lengths = plans.iter().map(|plan| lengths_of(plan) as u64).sum::<u64>();
        let row = source.unwrap_or(0) / rows.max(1);
        let mut variable_piece = 1 << (VARIABLE_BYTES / row.max(1)).clamp(1, grain.variable).ilog2();
        while variable_piece < per_batch && rows.div_ceil(variable_piece).saturating_mul(lengths) > MOST_LENGTHS {
            variable_piece *= 2;
        }
        let pieces = plans.iter().map(|plan| piece(plan, variable_piece, per_batch, grain.piece)).collect();

        let paged = plans.iter().any(|plan| is_paged(plan, rows.min(per_batch)));
        let alignment = if paged { PAGE } else { ALIGNMENT };
        let schema = schema::schema(&columns, &plans);
        let head = Head::new(&schema, &dictionaries, alignment);
        Ok(Self { columns, plans, rows, per_batch, pieces, variable_piece, alignment, schema, head })
    }

    /// Returns the number of batches.
    pub fn batches(&self) -> u64 {
        self.rows.div_ceil(self.per_batch)
    }

    /// Returns the first row of a batch, and its number of rows.
    pub fn rows_of(&self, batch: u64) -> (u64, u64) {
        let start = batch.saturating_mul(self.per_batch).min(self.rows);
        (start, self.per_batch.min(self.rows - start))
    }

    /// Returns how many numbers are learnt for each piece of rows, over all columns.
    pub fn lengths(&self) -> usize {
        self.plans.iter().map(lengths_of).sum()
    }
}

/// Whether some buffer of the first batch is long enough to begin at a page boundary.
fn is_paged(plan: &IpcPlan, rows: u64) -> bool {
    plan.streams.iter().any(|stream| match (stream.role, plan.nodes.get(stream.node).map(|node| node.domain)) {
        (BufferRole::Cells(width), Some(Domain::Rows(per))) => width.saturating_mul(per).saturating_mul(rows) >= PAGED,
        _ => false,
    })
}

/// Returns how many numbers are learnt for each piece of a column whose sizes depend on the values: one says whether
/// the piece is unreadable, the others are its lengths.
pub(super) fn lengths_of(plan: &IpcPlan) -> usize {
    if plan.is_variable() { 1 + plan.lengths } else { 0 }
}

fn piece(plan: &IpcPlan, variable_piece: u64, per_batch: u64, bytes: u64) -> u64 {
    if plan.is_variable() {
        return variable_piece;
    }
    let rendered = plan.row_bytes.saturating_sub(plan.direct.unwrap_or(0)).max(1);
    let wanted = (bytes / rendered).max(1);
    // Rounded down to a power of two.
    (1 << wanted.ilog2()).min(per_batch)
}

impl Head {
    fn new(schema: &Schema, dictionaries: &[Arc<IpcDictionary>], alignment: u64) -> Self {
        let mut head = Self::default();
        head.push(message::schema(schema, ALIGNMENT).into());
        for (number, dictionary) in dictionaries.iter().enumerate() {
            let rows = dictionary.labels().len() as u64;
            let buffers = dictionary.buffers();
            let mut extents = vec![BufferExtent { offset: 0, length: 0 }];
            let mut body = 0;
            for buffer in &buffers {
                extents.push(BufferExtent { offset: body, length: buffer.len() as u64 });
                body = up(body + buffer.len() as u64, ALIGNMENT);
            }
            let batch =
                Batch { rows, nodes: &[NodeCounts { rows, nulls: 0 }], buffers: &extents, data_buffers: &[], body };
            let metadata = message::dictionary(number as i64, &batch);
            let place = MessageBlock { offset: head.length, metadata: metadata.len() as u32, body };
            head.dictionaries.push(place);
            head.push(metadata.into());
            for buffer in buffers {
                head.push(buffer);
                head.length = up(head.length, ALIGNMENT);
            }
        }
        head.length = up(head.length, alignment);
        head
    }

    fn push(&mut self, bytes: Buffer) {
        let start = self.length;
        self.length += bytes.len() as u64;
        self.parts.push((start, bytes));
    }
}
