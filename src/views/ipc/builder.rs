//! From the type of a column to its nodes and streams.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Fields};

use super::dictionary::Dictionary;
use super::plan::{Domain, INLINE, Kind, Node, Role, Shared, Stream, VIEW, Views};
use crate::catalogue::{Class, Datatype};

/// Widest fixed-length string shown: three times as much must be far from Arrow's 2^31.
const WIDEST_STRING: u64 = 1 << 28;

/// Nodes and streams so far.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub nodes: Vec<Node>,
    pub streams: Vec<Stream>,
    pub lengths: usize,
    pub nullable: usize,
    /// Lists and arrays around what comes next.
    lists: usize,
}

impl Builder {
    fn push(&mut self, kind: Kind, nullable: bool, domain: Domain) -> usize {
        let node = self.nodes.len();
        let nulls = nullable.then(|| {
            self.nullable += 1;
            self.nullable - 1
        });
        let length = matches!(kind, Kind::Text | Kind::List).then(|| {
            self.lengths += 1;
            self.lengths - 1
        });
        self.streams.push(Stream { node, role: Role::Validity });
        let streams = &mut self.streams;
        let mut add = |role| streams.push(Stream { node, role });
        match &kind {
            Kind::Values(width) | Kind::Keys(width, _) => add(Role::Cells(*width)),
            Kind::Bits => add(Role::Bits),
            Kind::Views(views) => {
                add(Role::Cells(VIEW));
                if views.shared.is_some() {
                    add(Role::Shared);
                }
                for width in [views.usual, views.longer] {
                    if width > 0 {
                        add(Role::Slots(width));
                    }
                }
            }
            Kind::Text => {
                add(Role::Offsets);
                add(Role::Bytes);
            }
            Kind::List => add(Role::Offsets),
            Kind::Struct(_) | Kind::FixedList(_) => {}
        }
        self.nodes.push(Node { kind, nulls, domain, length });
        node
    }

    /// Adds keys into a dictionary; tells their type.
    pub fn keys(&mut self, labels: Arc<Dictionary>, nullable: bool) -> DataType {
        let data_type = labels.data_type();
        self.push(Kind::Keys(labels.key_width(), labels), nullable, Domain::Rows(1));
        data_type
    }

    /// Adds a node with all below it; tells the type it is shown as.
    ///
    /// # Errors
    /// Why it cannot be shown.
    pub fn node(
        &mut self,
        data_type: &DataType,
        datatype: Option<&Datatype>,
        nullable: bool,
        domain: Domain,
    ) -> Result<DataType, String> {
        let class = datatype.map(|datatype| &datatype.class);
        // pyarrow makes no pandas column of lists of string views.
        let in_rows = self.lists == 0;
        match (data_type, class) {
            (DataType::Boolean, _) => {
                self.push(Kind::Bits, nullable, domain);
                Ok(DataType::Boolean)
            }
            (DataType::Float16, _) => {
                self.push(Kind::Values(4), nullable, domain);
                Ok(DataType::Float32)
            }
            (DataType::FixedSizeBinary(width), _) => {
                let width = u64::try_from(*width).ok().filter(|width| *width > 0);
                let width = width.ok_or("elements without bytes")?;
                if datatype.is_some_and(|datatype| datatype.size != width) {
                    return Err(format!("elements of more than {} bytes", i32::MAX));
                }
                self.push(Kind::Values(width), nullable, domain);
                Ok(data_type.clone())
            }
            (DataType::LargeUtf8, Some(Class::FixedString { .. })) if in_rows => {
                let width = datatype.map_or(0, |datatype| datatype.size);
                if width > WIDEST_STRING {
                    return Err(format!("strings of {width} bytes, more than {WIDEST_STRING}"));
                }
                let (inline, longest) = (INLINE as u64, width * 3);
                let usual = if width > inline { width } else { 0 };
                let longer = if longest > inline { longest } else { 0 };
                self.push(Kind::Views(Views { shared: None, usual, longer }), nullable, domain);
                Ok(DataType::Utf8View)
            }
            (DataType::Dictionary(_, labels), Some(Class::Enum { base, members })) if in_rows => {
                if **labels != DataType::LargeUtf8 {
                    return Err(format!("an enumeration with labels of {labels}"));
                }
                let shared = Shared::new(members.iter().map(|member| member.name.to_string()))?;
                // A code without a name is a number: of a base of 4 bytes it fits a view ("-2147483648").
                let usual = if base.size > 4 { 20 } else { 0 };
                self.push(Kind::Views(Views { shared: Some(shared), usual, longer: 0 }), nullable, domain);
                Ok(DataType::Utf8View)
            }
            (DataType::LargeUtf8, _) => {
                self.push(Kind::Text, nullable, domain);
                Ok(DataType::LargeUtf8)
            }
            // Labels of a type that dictionaries are seldom of, or of an enumeration in a list: each for itself.
            (DataType::Dictionary(_, values), _) => self.node(values, None, true, domain),
            (DataType::Struct(fields), _) => {
                self.push(Kind::Struct(fields.len()), nullable, domain);
                let fields = fields.iter().enumerate().map(|(position, field)| {
                    let datatype = match class {
                        Some(Class::Compound { fields }) => fields.get(position).map(|field| &field.datatype),
                        _ => None,
                    };
                    let shown =
                        self.node(field.data_type(), datatype, may_be_null(field.data_type(), datatype), domain)?;
                    Ok(Arc::new(field.as_ref().clone().with_data_type(shown)))
                });
                Ok(DataType::Struct(fields.collect::<Result<Fields, String>>()?))
            }
            (DataType::FixedSizeList(field, per), _) => {
                let count = u64::try_from(*per).map_err(|_| "a list of negative length")?;
                self.push(Kind::FixedList(count), nullable, domain);
                let inner = class.and_then(|class| inner_of_array(class, *per));
                let datatype = inner.as_ref();
                let domain = domain.times(count).ok_or("an array of more than 2^64 elements")?;
                let nullable = may_be_null(field.data_type(), datatype);
                self.lists += 1;
                let shown = self.node(field.data_type(), datatype, nullable, domain)?;
                self.lists -= 1;
                Ok(DataType::FixedSizeList(Arc::new(field.as_ref().clone().with_data_type(shown)), *per))
            }
            (DataType::LargeList(field), _) => {
                let node = self.push(Kind::List, nullable, domain);
                let datatype = match class {
                    Some(Class::Sequence { base }) => Some(base.as_ref()),
                    _ => None,
                };
                // Of a list column any item may be missing.
                let nullable = class.is_none() || may_be_null(field.data_type(), datatype);
                let length = self.nodes.get(node).and_then(|node| node.length).unwrap_or(0);
                self.lists += 1;
                let shown = self.node(field.data_type(), datatype, nullable, Domain::Items { length, per: 1 })?;
                self.lists -= 1;
                Ok(DataType::LargeList(Arc::new(field.as_ref().clone().with_data_type(shown))))
            }
            (number, _) => {
                let width = number.primitive_width().ok_or_else(|| format!("values of {number}"))?;
                self.push(Kind::Values(width as u64), nullable, domain);
                Ok(number.clone())
            }
        }
    }
}

impl Shared {
    fn new(texts: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut shared = Self { bytes: Vec::new(), positions: HashMap::new() };
        for text in texts {
            let position = i32::try_from(shared.bytes.len()).map_err(|_| "names of more than 2^31 bytes")?;
            shared.bytes.extend_from_slice(text.as_bytes());
            shared.positions.entry(text).or_insert(position as u32);
        }
        i32::try_from(shared.bytes.len()).map_err(|_| "names of more than 2^31 bytes")?;
        Ok(shared)
    }
}

/// The type of what an array holds in its first dimension.
fn inner_of_array(class: &Class, extent: i32) -> Option<Datatype> {
    let Class::Array { dims, base } = class else { return None };
    match dims.as_slice() {
        [_] => Some(base.as_ref().clone()),
        [first, rest @ ..] if u64::try_from(extent) == Ok(*first) => {
            let size = rest.iter().try_fold(base.size, |size, extent| size.checked_mul(*extent))?;
            Some(Datatype { size, class: Class::Array { dims: rest.to_vec(), base: base.clone() } })
        }
        _ => None,
    }
}

/// Whether a part of an element can be null by itself: an invalid boolean, a reference that leads nowhere, and what is
/// made of such by types that are not stored.
fn may_be_null(data_type: &DataType, datatype: Option<&Datatype>) -> bool {
    match (data_type, datatype.map(|datatype| &datatype.class)) {
        (DataType::Boolean, _) => true,
        (DataType::LargeUtf8, Some(Class::FixedString { .. } | Class::VariableString { .. })) => false,
        (DataType::LargeUtf8, _) => true,
        (DataType::Dictionary(..), Some(Class::Enum { .. })) => false,
        (DataType::Dictionary(..) | DataType::LargeList(_), None) => true,
        _ => false,
    }
}
