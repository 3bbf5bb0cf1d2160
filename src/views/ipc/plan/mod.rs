//! What the rows of a column become in Arrow: nodes in the order of the schema, and the streams of bytes each has.
//!
//! A *stream* is one buffer of a node over all rows of a batch; cut into pieces of rows it is rendered. What stands
//! where in a stream is arithmetic where a node has as many rows as the table (times a constant), and else follows from
//! lengths that a pass has learnt.

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
use builder::Builder;
use dictionary::Dictionary;

/// Longest text that a string view holds by itself.
pub(super) const INLINE: usize = 12;

/// Bytes of a string view.
pub(super) const VIEW: u64 = 16;

/// A column as it is shown.
#[derive(Debug)]
pub(super) struct Plan {
    /// Type in the schema.
    pub data_type: DataType,
    /// Nodes in the order of the schema.
    pub nodes: Vec<Node>,
    /// Their streams in the order of the schema.
    pub streams: Vec<Stream>,
    /// Lengths to learn of a piece of rows.
    pub lengths: usize,
    /// Nodes with a validity bitmap.
    pub nullable: usize,
    /// Width of a row whose stored bytes are the bytes of its values.
    pub direct: Option<u64>,
    /// Bytes of a row in all streams, as far as they are arithmetic.
    pub row_bytes: u64,
    /// What is rendered together: the whole column, or one field of compounds whose fields lie apart.
    pub parts: Vec<Part>,
}

/// What is rendered together.
#[derive(Debug)]
pub(super) struct Part {
    /// The field, of the column's compounds; `None` of the whole column.
    pub field: Option<usize>,
    /// Its first node.
    pub node: usize,
    /// Its streams.
    pub streams: Range<usize>,
}

/// A node of the schema.
#[derive(Debug)]
pub(super) struct Node {
    /// What its buffers hold.
    pub kind: Kind,
    /// It has a validity bitmap, this one among those of the column.
    pub nulls: Option<usize>,
    /// How many rows it has.
    pub domain: Domain,
    /// Its length among those of the column, of a list or text of variable length.
    pub length: Option<usize>,
}

/// What the buffers of a node hold.
#[derive(Debug)]
pub(super) enum Kind {
    /// Little-endian values of this many bytes.
    Values(u64),
    /// Bits.
    Bits,
    /// Keys of this many bytes into a dictionary.
    Keys(u64, Arc<Dictionary>),
    /// String views over slots of a fixed width.
    Views(Views),
    /// Offsets and bytes.
    Text,
    /// Nothing: every row is missing.
    Nothing,
    /// This many children, one after the other.
    Struct(usize),
    /// This many rows of the next node for each row.
    FixedList(u64),
    /// Offsets into the next node.
    List,
}

/// Where the texts of string views lie that are too long to stand in the view.
#[derive(Debug)]
pub(super) struct Views {
    /// Texts that many rows share, and where each begins: a data buffer of its own before all others.
    pub shared: Option<Shared>,
    /// Bytes of a row's slot for a text as long as the stored string; 0 where every such text stands in the view.
    pub usual: u64,
    /// Bytes of a row's slot for a text that is longer, since U+FFFD takes three bytes instead of one; 0 where there is
    /// none.
    pub longer: u64,
}

/// Texts that many rows share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The texts back to back.
    pub bytes: Vec<u8>,
    /// Where each begins.
    pub positions: HashMap<String, u32>,
}

/// How many rows a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// This many for each row of the table.
    Rows(u64),
    /// This many for each item of the lists with this length.
    Items {
        /// Number of the length among those of the column.
        length: usize,
        /// Rows for each item.
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
    /// The node.
    pub node: usize,
    /// Which of its buffers.
    pub role: Role,
}

/// Which of a node's buffers, and how a row takes place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A bit for each row, set where it is not null.
    Validity,
    /// A bit for each row.
    Bits,
    /// This many bytes for each row: values, keys, views.
    Cells(u64),
    /// Eight bytes for each row and eight more.
    Offsets,
    /// The bytes of text of variable length.
    Bytes,
    /// The texts that many rows share.
    Shared,
    /// Slots of this many bytes for texts that do not stand in their views, cut into several buffers.
    Slots(u64),
}

/// The shape of a column before it is planned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// What [`crate::store::Rows::array`] gives.
    pub data_type: &'a DataType,
    /// What the rows tell of their values.
    pub hints: &'a Hints,
    /// Whether any row can be null.
    pub nullable: bool,
    /// Bytes of a stored row.
    pub stored_width: Option<u64>,
    /// Whether each field of compounds is read without the others.
    pub apart: bool,
}

impl Plan {
    /// Plans a column; `labels` are those of its categories, or of an enumeration of one byte, also in lists.
    ///
    /// # Errors
    /// Why the column cannot be shown.
    pub fn new(shape: Shape<'_>, labels: Option<Arc<Dictionary>>) -> Result<Self, Misfit> {
        let mut builder = Builder::new(labels);
        let data_type = builder.node(shape.data_type, shape.hints, shape.nullable, Domain::Rows(1))?;
        let Builder { nodes, streams, lengths, nullable, .. } = builder;
        let mut row_bytes = 0_u64;
        for stream in &streams {
            let Domain::Rows(per) = nodes.get(stream.node).map_or(Domain::Rows(0), |node| node.domain) else {
                continue;
            };
            let cell = match stream.role {
                // A whole byte, so that the sum is never too small.
                Role::Validity | Role::Bits => 1,
                Role::Cells(width) | Role::Slots(width) => width,
                Role::Offsets => 8,
                Role::Bytes | Role::Shared => 0,
            };
            let cell = cell.checked_mul(per).and_then(|cell| row_bytes.checked_add(cell));
            row_bytes = cell.ok_or_else(|| Misfit::Size("a row of more than 2^64 bytes".into()))?;
        }
        let direct = shape.stored_width.filter(|_| shape.hints.stored);
        let direct = direct.filter(|stored| match (nodes.last(), streams.last()) {
            (Some(Node { kind: Kind::Values(width), domain: Domain::Rows(per), .. }), Some(stream)) => {
                stream.role == Role::Cells(*width) && per.checked_mul(*width) == Some(*stored)
            }
            _ => false,
        });
        let parts = parts(&nodes, &streams, shape.apart);
        Ok(Self { data_type, nodes, streams, lengths, nullable, direct, row_bytes, parts })
    }

    /// The number of the part that a stream is rendered with, and that part.
    pub fn part_of(&self, stream: usize) -> Option<(usize, &Part)> {
        self.parts.iter().enumerate().find(|(_, part)| part.streams.contains(&stream))
    }

    /// Whether sizes depend on the values.
    pub fn is_variable(&self) -> bool {
        self.lengths > 0
    }
}

/// What is rendered together of a column: nothing is, of compounds that may be missing, but the whole.
fn parts(nodes: &[Node], streams: &[Stream], apart: bool) -> Vec<Part> {
    let whole = Part { field: None, node: 0, streams: 0..streams.len() };
    let Some(Node { kind: Kind::Struct(fields), nulls: None, .. }) = nodes.first().filter(|_| apart) else {
        return vec![whole];
    };
    let mut node = 1;
    let part = |field| {
        let first = node;
        node = past(nodes, first);
        let place = |node| streams.partition_point(|stream| stream.node < node);
        Part { field: Some(field), node: first, streams: place(first)..place(node) }
    };
    (0..*fields).map(part).collect()
}

/// The node behind one and all that lies below it.
fn past(nodes: &[Node], node: usize) -> usize {
    match nodes.get(node).map(|node| &node.kind) {
        Some(Kind::Struct(count)) => (0..*count).fold(node + 1, |next, _| past(nodes, next)),
        Some(Kind::FixedList(_) | Kind::List) => past(nodes, node + 1),
        _ => node + 1,
    }
}

/// Calls `visit` with each node and its rows, in the order of the schema.
///
/// # Errors
/// Where `array` is not of the type that was planned, or has nulls where there can be none.
pub(super) fn walk(
    nodes: &[Node],
    array: &ArrayRef,
    visit: &mut dyn FnMut(&Node, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    walk_below(nodes, 0, array, visit)
}

/// As [`walk`], for one node and what lies below it.
///
/// # Errors
/// As [`walk`].
pub(super) fn walk_below(
    nodes: &[Node],
    mut node: usize,
    array: &ArrayRef,
    visit: &mut dyn FnMut(&Node, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    step(nodes, &mut node, array, None, visit)
}

/// As [`walk_below`]; under the nulls of `outer` anything may lie.
fn step(
    nodes: &[Node],
    next: &mut usize,
    array: &ArrayRef,
    outer: Option<&NullBuffer>,
    visit: &mut dyn FnMut(&Node, usize, &ArrayRef) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float16Type, Float32Type};
    let number = *next;
    let node = nodes.get(number).ok_or_else(|| Misfit::Array("fewer nodes than arrays".into()))?;
    *next += 1;
    let keeps_keys = match &node.kind {
        Kind::Keys(..) => true,
        Kind::Views(views) => views.shared.is_some(),
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
        (DataType::Float16, Kind::Values(_)) => {
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
        Kind::Struct(count) => {
            let fields = array.as_struct_opt().ok_or_else(other)?;
            if fields.num_columns() != *count {
                return Err(other());
            }
            let outer = NullBuffer::union(outer, array.nulls());
            for column in fields.columns() {
                step(nodes, next, column, outer.as_ref(), visit)?;
            }
        }
        Kind::FixedList(count) => {
            let list = array.as_fixed_size_list_opt().ok_or_else(other)?;
            if u64::try_from(list.value_length()).ok() != Some(*count) {
                return Err(other());
            }
            let outer = NullBuffer::union(outer, array.nulls()).map(|outer| outer.expand(list.value_length() as usize));
            step(nodes, next, list.values(), outer.as_ref(), visit)?;
        }
        Kind::List => {
            let list = array.as_list_opt::<i64>().ok_or_else(other)?;
            let offsets = list.value_offsets();
            let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
            // Offsets of an Arrow array lie in memory, hence within usize.
            let items = list.values().slice(first as usize, (last - first) as usize);
            step(nodes, next, &items, None, visit)?;
        }
        _ => {}
    }
    Ok(())
}

/// Nulls of a node's rows.
pub(super) fn nulls(node: &Node, array: &ArrayRef) -> u64 {
    match &node.kind {
        Kind::Keys(_, labels) => labels.nulls(array),
        _ => array.null_count() as u64,
    }
}

/// Length of a list or text of variable length, summed over its rows.
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

/// A field of the schema.
pub(super) fn field(name: &str, plan: &Plan) -> Field {
    let nullable = plan.nodes.first().is_some_and(|node| node.nulls.is_some() || matches!(node.kind, Kind::Nothing));
    Field::new(name, plan.data_type.clone(), nullable)
}
