//! Plans a column: its Arrow nodes in the order of the schema, and the byte streams of each.
//!
//! A *stream* is one buffer of a node over all rows of a batch; it is rendered in pieces of rows. Positions in a stream
//! are arithmetic if the node has a constant number of rows per row of the table, and otherwise follow from lengths
//! that a pass has learnt.

mod builder;
pub(super) mod dictionary;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use crate::store::Hints;
use crate::views::Misfit;
use builder::PlanBuilder;
use dictionary::IpcDictionary;

/// Longest text, in bytes, that a string view holds by itself.
pub(super) const INLINE: usize = 12;

/// Bytes of a string view.
pub(super) const VIEW: u64 = 16;

/// The plan of a column.
#[derive(Debug)]
pub(super) struct IpcPlan {
    /// Type of the column in the schema.
    pub data_type: DataType,
    /// Nodes in the order of the schema.
    pub nodes: Vec<IpcNode>,
    /// Streams of these nodes in the order of the schema.
    pub streams: Vec<Stream>,
    /// Number of lengths to learn for each piece of rows.
    pub lengths: usize,
    /// Number of nodes with a validity bitmap.
    pub nullable: usize,
    /// Width of a row, if the stored bytes are the bytes of its values.
    pub direct: Option<u64>,
    /// Bytes of a row in all streams, not counting lengths that depend on values.
    pub row_bytes: u64,
    /// Parts rendered separately: the whole column, or each field of compounds whose fields are stored apart.
    pub parts: Vec<StreamGroup>,
}

/// A part of a column that is rendered as a unit.
#[derive(Debug)]
pub(super) struct StreamGroup {
    /// The field of the column's compounds; `None`: the whole column.
    pub field: Option<usize>,
    /// The part's first node.
    pub node: usize,
    /// The part's streams, by position.
    pub streams: Range<usize>,
}

/// A node of the schema.
#[derive(Debug)]
pub(super) struct IpcNode {
    /// The content of the node's buffers.
    pub kind: IpcNodeKind,
    /// The index of the node's validity bitmap among those of the column, if it has one.
    pub nulls: Option<usize>,
    /// How many rows the node has.
    pub domain: Domain,
    /// For a list or variable-length text, the index of its length among those of the column.
    pub length: Option<usize>,
}

/// The content of a node's buffers.
#[derive(Debug)]
pub(super) enum IpcNodeKind {
    /// Little-endian values of this many bytes.
    Values(u64),
    /// Booleans, a bit each.
    Bits,
    /// Keys of this many bytes into a dictionary.
    Keys(u64, Arc<IpcDictionary>),
    /// String views over slots of a fixed width.
    Views(Views),
    /// Variable-length texts: offsets and bytes.
    Text,
    /// No buffer: every row is null.
    Nothing,
    /// A struct of this many child nodes.
    Struct(usize),
    /// This many rows of the next node for each row.
    FixedList(u64),
    /// Lists: offsets into the next node.
    List,
}

/// Places for texts too long for their string view.
#[derive(Debug)]
pub(super) struct Views {
    /// Texts that many rows share. They lie in a data buffer before all others.
    pub shared: Option<SharedTexts>,
    /// Bytes of a row's slot for a text as long as stored; 0: every such text fits in its view.
    pub usual: u64,
    /// Bytes of a row's slot for a text that is longer than stored, since U+FFFD takes three bytes instead of one; 0:
    /// no such slots.
    pub longer: u64,
}

/// Texts that many rows share.
#[derive(Debug)]
pub(super) struct SharedTexts {
    /// The texts, concatenated.
    pub bytes: Vec<u8>,
    /// The position of each text.
    pub positions: HashMap<String, u32>,
}

/// How many rows a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// This many rows for each row of the table.
    Rows(u64),
    /// Rows for each item of the lists with this length.
    Items {
        /// Index of the length among those of the column.
        length: usize,
        /// Number of rows for each item.
        per: u64,
    },
}

impl Domain {
    pub fn times(self, count: u64) -> Option<Self> {
        Some(match self {
            Domain::Rows(per) => Domain::Rows(per.checked_mul(count)?),
            Domain::Items { length, per } => Domain::Items { length, per: per.checked_mul(count)? },
        })
    }
}

/// A buffer of a node over all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Number of the node.
    pub node: usize,
    /// The buffer's role within the node.
    pub role: BufferRole,
}

/// The role of a buffer within its node, and how much of the buffer each row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferRole {
    /// A bit for each row, set where it is not null.
    Validity,
    /// A bit for each row.
    Bits,
    /// This many bytes for each row: values, keys, views.
    Cells(u64),
    /// Eight bytes for each row, and eight for the end.
    Offsets,
    /// The bytes of variable-length texts.
    Bytes,
    /// The texts that many rows share.
    Shared,
    /// Slots of this many bytes for texts that do not fit in their views, cut into several buffers.
    Slots(u64),
}

/// The properties of a column that its plan depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnplannedColumn<'a> {
    /// The type that [`crate::store::Rows::array`] returns.
    pub data_type: &'a DataType,
    /// Hints about the values.
    pub hints: &'a Hints,
    /// Whether any row can be null.
    pub nullable: bool,
    /// Bytes of a stored row. `None`: rows differ in length.
    pub stored_width: Option<u64>,
    /// Whether the fields of compounds can be read separately.
    pub apart: bool,
}

impl IpcPlan {
    /// Plans a column; `labels` are those of its categories or one-byte enumeration, possibly within lists.
    ///
    /// # Errors
    /// The reason why the column cannot be shown.
    pub fn new(shape: UnplannedColumn<'_>, labels: Option<Arc<IpcDictionary>>) -> Result<Self, Misfit> {
        let mut builder = PlanBuilder::new(labels);
        let data_type = builder.node(shape.data_type, shape.hints, shape.nullable, Domain::Rows(1))?;
        let PlanBuilder { nodes, streams, lengths, nullable, .. } = builder;
        let mut row_bytes = 0_u64;
        for stream in &streams {
            let Domain::Rows(per) = nodes.get(stream.node).map_or(Domain::Rows(0), |node| node.domain) else {
                continue;
            };
            let cell = match stream.role {
                // A bit counts as a whole byte, so that the sum is an upper bound.
                BufferRole::Validity | BufferRole::Bits => 1,
                BufferRole::Cells(width) | BufferRole::Slots(width) => width,
                BufferRole::Offsets => 8,
                BufferRole::Bytes | BufferRole::Shared => 0,
            };
            let cell = cell.checked_mul(per).and_then(|cell| row_bytes.checked_add(cell));
            row_bytes = cell.ok_or_else(|| Misfit::Size("a row of more than 2^64 bytes".into()))?;
        }
        let direct = shape.stored_width.filter(|_| shape.hints.stored);
        let direct = direct.filter(|stored| match (nodes.last(), streams.last()) {
            (Some(IpcNode { kind: IpcNodeKind::Values(width), domain: Domain::Rows(per), .. }), Some(stream)) => {
                stream.role == BufferRole::Cells(*width) && per.checked_mul(*width) == Some(*stored)
            }
            _ => false,
        });
        let parts = parts(&nodes, &streams, shape.apart);
        Ok(Self { data_type, nodes, streams, lengths, nullable, direct, row_bytes, parts })
    }

    /// Returns the part that contains a stream, and the part's number.
    pub fn part_of(&self, stream: usize) -> Option<(usize, &StreamGroup)> {
        self.parts.iter().enumerate().find(|(_, part)| part.streams.contains(&stream))
    }

    /// Whether sizes depend on the values.
    pub fn is_variable(&self) -> bool {
        self.lengths > 0
    }
}

/// Returns the parts of a column. Nullable compounds are rendered as a whole.
fn parts(nodes: &[IpcNode], streams: &[Stream], apart: bool) -> Vec<StreamGroup> {
    let whole = StreamGroup { field: None, node: 0, streams: 0..streams.len() };
    let Some(IpcNode { kind: IpcNodeKind::Struct(fields), nulls: None, .. }) = nodes.first().filter(|_| apart) else {
        return vec![whole];
    };
    let mut node = 1;
    let groups = (0..*fields).map(|field| {
        let first = node;
        node = past(nodes, first);
        let [start, end] = [first, node].map(|node| streams.partition_point(|stream| stream.node < node));
        StreamGroup { field: Some(field), node: first, streams: start..end }
    });
    groups.collect()
}

/// Returns the node after a node and everything below it.
fn past(nodes: &[IpcNode], node: usize) -> usize {
    match nodes.get(node).map(|node| &node.kind) {
        Some(IpcNodeKind::Struct(count)) => (0..*count).fold(node + 1, |next, _| past(nodes, next)),
        Some(IpcNodeKind::FixedList(_) | IpcNodeKind::List) => past(nodes, node + 1),
        _ => node + 1,
    }
}

/// Calls `visit` with each node and its rows, in the order of the schema.
///
/// # Errors
/// If `array` differs from the planned type, or has nulls where the plan allows none.
pub(super) fn walk(
    nodes: &[IpcNode],
    array: &ArrayRef,
    visit: &mut dyn FnMut(&IpcNode, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    walk_below(nodes, 0, array, visit)
}

/// As [`walk`], for one node and everything below it.
///
/// # Errors
/// As [`walk`].
pub(super) fn walk_below(
    nodes: &[IpcNode],
    mut node: usize,
    array: &ArrayRef,
    visit: &mut dyn FnMut(&IpcNode, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    step(nodes, &mut node, array, None, visit)
}

/// As [`walk_below`]; values under the nulls of `outer` are arbitrary.
fn step(
    nodes: &[IpcNode],
    next: &mut usize,
    array: &ArrayRef,
    outer: Option<&NullBuffer>,
    visit: &mut dyn FnMut(&IpcNode, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float16Type, Float32Type};
    let number = *next;
    let node = nodes.get(number).ok_or_else(|| Misfit::Array("fewer nodes than arrays".into()))?;
    *next += 1;
    let keeps_keys = match &node.kind {
        IpcNodeKind::Keys(..) => true,
        IpcNodeKind::Views(views) => views.shared.is_some(),
        _ => false,
    };
    let plain;
    let array = match array.data_type() {
        DataType::Dictionary(..) if !keeps_keys => {
            let keys = array.as_any_dictionary();
            let taken = arrow_select::take::take(keys.values(), keys.keys(), None)
                .map_err(|error| Misfit::Size(error.to_string()))?;
            plain = taken;
            &plain
        }
        _ => array,
    };
    let wide;
    let array = match (array.data_type(), &node.kind) {
        (DataType::Float16, IpcNodeKind::Values(_)) => {
            let halves = array.as_primitive::<Float16Type>();
            wide = Arc::new(halves.unary::<_, Float32Type>(f32::from)) as ArrayRef;
            &wide
        }
        _ => array,
    };
    if node.nulls.is_none() && array.nulls().is_some_and(|nulls| !outer.is_some_and(|outer| outer.contains(nulls))) {
        return Err(Misfit::Array(format!("{} nulls of {} where none can be", array.null_count(), array.data_type())));
    }
    visit(node, number, array)?;
    let other = || Misfit::Array(format!("values of {} where another type was expected", array.data_type()));
    match &node.kind {
        IpcNodeKind::Struct(count) => {
            let fields = array.as_struct_opt().ok_or_else(other)?;
            if fields.num_columns() != *count {
                return Err(other());
            }
            let outer = NullBuffer::union(outer, array.nulls());
            for column in fields.columns() {
                step(nodes, next, column, outer.as_ref(), visit)?;
            }
        }
        IpcNodeKind::FixedList(count) => {
            let list = array.as_fixed_size_list_opt().ok_or_else(other)?;
            if u64::try_from(list.value_length()).ok() != Some(*count) {
                return Err(other());
            }
            let outer = NullBuffer::union(outer, array.nulls()).map(|outer| outer.expand(list.value_length() as usize));
            step(nodes, next, list.values(), outer.as_ref(), visit)?;
        }
        IpcNodeKind::List => {
            let list = array.as_list_opt::<i64>().ok_or_else(other)?;
            let offsets = list.value_offsets();
            let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
            // Offsets of an Arrow list lie within its values, hence within usize.
            let items = list.values().slice(first as usize, (last - first) as usize);
            step(nodes, next, &items, None, visit)?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the number of nulls among a node's rows.
pub(super) fn nulls(node: &IpcNode, array: &ArrayRef) -> u64 {
    match &node.kind {
        IpcNodeKind::Keys(_, labels) => labels.nulls(array),
        _ => array.null_count() as u64,
    }
}

/// Returns the length of a list or variable-length text, summed over its rows.
pub(super) fn length(array: &ArrayRef) -> Option<u64> {
    use arrow_array::cast::AsArray;
    let offsets = match array.data_type() {
        DataType::Binary => {
            let offsets = array.as_binary::<i32>().value_offsets();
            return u64::try_from(offsets.last()? - offsets.first()?).ok();
        }
        DataType::LargeUtf8 => array.as_string::<i64>().value_offsets(),
        DataType::LargeList(_) => array.as_list::<i64>().value_offsets(),
        _ => return None,
    };
    let (first, last) = (offsets.first()?, offsets.last()?);
    u64::try_from(last - first).ok()
}

/// Returns the field of a column in the schema.
pub(super) fn field(name: &str, plan: &IpcPlan) -> Field {
    let nullable =
        plan.nodes.first().is_some_and(|node| node.nulls.is_some() || matches!(node.kind, IpcNodeKind::Nothing));
    Field::new(name, plan.data_type.clone(), nullable)
}
