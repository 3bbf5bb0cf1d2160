//! Converts the type of a column to nodes and streams.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Fields};

use super::dictionary::IpcDictionary;
use super::{BufferRole, Domain, INLINE, IpcNode, IpcNodeKind, SharedTexts, Stream, VIEW, Views};
use crate::store::{Hints, TextLength, ValueSet};
use crate::views::Misfit;

/// Widest fixed-length string shown, in bytes: three times as many must stay far below Arrow's 2^31.
const WIDEST_STRING: u64 = 1 << 28;

/// Builds a column's nodes and streams; holds those made so far.
#[derive(Debug, Default)]
pub(in crate::views::ipc) struct PlanBuilder {
    pub nodes: Vec<IpcNode>,
    pub streams: Vec<Stream>,
    pub lengths: usize,
    pub nullable: usize,
    /// The column's labels, until the node of the column's values takes them: only lists may enclose it.
    labels: Option<Arc<IpcDictionary>>,
    /// Number of lists and arrays that enclose the next node.
    lists: usize,
}

impl PlanBuilder {
    /// Returns a builder for a column whose values, possibly within lists, are these labels.
    pub fn new(labels: Option<Arc<IpcDictionary>>) -> Self {
        Self { labels, ..Self::default() }
    }

    fn push(&mut self, kind: IpcNodeKind, nullable: bool, domain: Domain) -> usize {
        let node = self.nodes.len();
        let nulls = nullable.then(|| {
            self.nullable += 1;
            self.nullable - 1
        });
        let length = matches!(kind, IpcNodeKind::Text | IpcNodeKind::List).then(|| {
            self.lengths += 1;
            self.lengths - 1
        });
        let streams = &mut self.streams;
        let mut add = |role| streams.push(Stream { node, role });
        if !matches!(kind, IpcNodeKind::Nothing) {
            add(BufferRole::Validity);
        }
        match &kind {
            IpcNodeKind::Values(width) | IpcNodeKind::Keys(width, _) => add(BufferRole::Cells(*width)),
            IpcNodeKind::Bits => add(BufferRole::Bits),
            IpcNodeKind::Views(views) => {
                add(BufferRole::Cells(VIEW));
                if views.shared.is_some() {
                    add(BufferRole::Shared);
                }
                for width in [views.usual, views.longer] {
                    if width > 0 {
                        add(BufferRole::Slots(width));
                    }
                }
            }
            IpcNodeKind::Text => {
                add(BufferRole::Offsets);
                add(BufferRole::Bytes);
            }
            IpcNodeKind::List => add(BufferRole::Offsets),
            IpcNodeKind::Nothing | IpcNodeKind::Struct(_) | IpcNodeKind::FixedList(_) => {}
        }
        self.nodes.push(IpcNode { kind, nulls, domain, length });
        node
    }

    /// Adds a node and everything below it; returns its type in the file.
    ///
    /// # Errors
    /// The reason why the column cannot be shown.
    pub fn node(
        &mut self,
        data_type: &DataType,
        hints: &Hints,
        nullable: bool,
        domain: Domain,
    ) -> Result<DataType, Misfit> {
        // pyarrow cannot convert lists of string views to pandas.
        let in_rows = self.lists == 0;
        match data_type {
            DataType::Null => {
                self.push(IpcNodeKind::Nothing, false, domain);
                Ok(DataType::Null)
            }
            DataType::Boolean => {
                self.push(IpcNodeKind::Bits, nullable, domain);
                Ok(DataType::Boolean)
            }
            DataType::Float16 => {
                self.push(IpcNodeKind::Values(4), nullable, domain);
                Ok(DataType::Float32)
            }
            // A wider element is declared with exactly this width.
            DataType::FixedSizeBinary(i32::MAX) => Err(Misfit::Size(format!("elements of {} bytes or more", i32::MAX))),
            DataType::FixedSizeBinary(width) => {
                let width = u64::try_from(*width).ok().filter(|width| *width > 0);
                let width = width.ok_or_else(|| Misfit::Type("elements without bytes".into()))?;
                self.push(IpcNodeKind::Values(width), nullable, domain);
                Ok(data_type.clone())
            }
            DataType::LargeUtf8
                if let (true, TextLength::Stored(width) | TextLength::Encoded(width)) = (in_rows, hints.texts) =>
            {
                if width > WIDEST_STRING {
                    return Err(Misfit::Size(format!("strings of {width} bytes, more than {WIDEST_STRING}")));
                }
                let (inline, longest) = (INLINE as u64, width * 3);
                let usual = if width > inline { width } else { 0 };
                let longer = if longest > inline { longest } else { 0 };
                self.push(IpcNodeKind::Views(Views { shared: None, usual, longer }), nullable, domain);
                Ok(DataType::Utf8View)
            }
            DataType::Dictionary(..) if let Some(labels) = self.labels.take() => {
                let data_type = labels.data_type();
                self.push(IpcNodeKind::Keys(labels.key_width(), labels), nullable, domain);
                Ok(data_type)
            }
            DataType::Dictionary(_, labels) if let (true, Some(ValueSet::Names(names))) = (in_rows, &hints.values) => {
                if **labels != DataType::LargeUtf8 {
                    return Err(Misfit::Type(format!("an enumeration with labels of {labels}")));
                }
                let shared = SharedTexts::new(names.names().map(str::to_owned))?;
                // A code without a name is shown as a number; with a base of 4 bytes it fits in a view ("-2147483648").
                let usual = if names.longest_number() > INLINE { 20 } else { 0 };
                self.push(IpcNodeKind::Views(Views { shared: Some(shared), usual, longer: 0 }), nullable, domain);
                Ok(DataType::Utf8View)
            }
            DataType::LargeUtf8 => {
                self.push(IpcNodeKind::Text, nullable, domain);
                Ok(DataType::LargeUtf8)
            }
            DataType::Binary => {
                self.push(IpcNodeKind::Text, nullable, domain);
                Ok(DataType::LargeBinary)
            }
            // Labels of a type unusual for dictionaries, or within arrays and compounds: every row holds its own value.
            DataType::Dictionary(_, values) => self.node(values, &Hints::default(), true, domain),
            DataType::Struct(fields) => {
                self.push(IpcNodeKind::Struct(fields.len()), nullable, domain);
                let fields = fields.iter().enumerate().map(|(position, field)| {
                    let shown = self.part(field.data_type(), hints.fields.get(position), domain)?;
                    Ok(Arc::new(field.as_ref().clone().with_data_type(shown)))
                });
                Ok(DataType::Struct(fields.collect::<Result<Fields, Misfit>>()?))
            }
            DataType::FixedSizeList(field, per) => {
                let count = u64::try_from(*per).map_err(|_| Misfit::Type("a list of negative length".into()))?;
                self.push(IpcNodeKind::FixedList(count), nullable, domain);
                let domain =
                    domain.times(count).ok_or_else(|| Misfit::Size("an array of more than 2^64 elements".into()))?;
                self.lists += 1;
                let shown = self.part(field.data_type(), hints.items.as_deref(), domain)?;
                self.lists -= 1;
                Ok(DataType::FixedSizeList(Arc::new(field.as_ref().clone().with_data_type(shown)), *per))
            }
            DataType::LargeList(field) => {
                let node = self.push(IpcNodeKind::List, nullable, domain);
                let length = self.nodes.get(node).and_then(|node| node.length).unwrap_or(0);
                self.lists += 1;
                let items = self.nodes.len();
                let shown = self.part(field.data_type(), hints.items.as_deref(), Domain::Items { length, per: 1 })?;
                self.lists -= 1;
                let mut field = field.as_ref().clone().with_data_type(shown);
                if let Some(IpcNode { kind: IpcNodeKind::Keys(_, labels), .. }) = self.nodes.get(items) {
                    field = field.with_dict_is_ordered(labels.is_ordered());
                }
                Ok(DataType::LargeList(Arc::new(field)))
            }
            number => {
                let width = number.primitive_width().ok_or_else(|| Misfit::Type(format!("values of {number}")))?;
                self.push(IpcNodeKind::Values(width as u64), nullable, domain);
                Ok(number.clone())
            }
        }
    }

    /// Adds a child of the last node: a field, or the items of a list. Without hints it counts as nullable.
    fn part(&mut self, data_type: &DataType, hints: Option<&Hints>, domain: Domain) -> Result<DataType, Misfit> {
        match hints {
            Some(hints) => self.node(data_type, hints, hints.nullable, domain),
            None => self.node(data_type, &Hints::default(), true, domain),
        }
    }
}

impl SharedTexts {
    fn new(texts: impl Iterator<Item = String>) -> Result<Self, Misfit> {
        let mut shared = Self { bytes: Vec::new(), positions: HashMap::new() };
        for text in texts {
            let position =
                i32::try_from(shared.bytes.len()).map_err(|_| Misfit::Size("names of more than 2^31 bytes".into()))?;
            shared.bytes.extend_from_slice(text.as_bytes());
            shared.positions.entry(text).or_insert(position as u32);
        }
        i32::try_from(shared.bytes.len()).map_err(|_| Misfit::Size("names of more than 2^31 bytes".into()))?;
        Ok(shared)
    }
}
