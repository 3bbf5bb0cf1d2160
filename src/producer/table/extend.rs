//! Plans how to append rows to an existing table (HEP001 July, "Appending rows").
//!
//! The table's datasets keep their layout. If the last chunk of a dataset is not full, its rows are read, and the chunk
//! is rewritten together with the first new rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Fields};

use super::cells::{CellEncoding, item_of};
use super::options::Options;
use super::planned::{
    ColumnDatasets, Existing, KnownLabels, PlannedColumn, PlannedDataset, PlannedTable, Resumed, StandsFor,
};
use super::types;
use crate::catalogue::{
    ByteOrder, Class, Dataset, Datatype, Fill as StoredFill, FloatFormat, Group, Layout, Object, Padding, attribute,
    join,
};
use crate::codec::Compression;
use crate::dialects::attributes::{text, unsigned};
use crate::dialects::datasets;
use crate::dialects::hep001::names::{ARROW_TYPE, CATEGORIES, GENERATION, ROWS, STRINGS_CLASS};
use crate::h5::element::{ElementType, FillSetting};
use crate::h5::steps::References;
use crate::producer::options::Revision;
use crate::producer::paths::group_at;
use crate::source::Interrupt;
use crate::store::{DatasetRows, File, StoredBytes};
use crate::table::{self, Column, NestedJson};

/// Largest chunk to rewrite, in bytes.
const MOST: u64 = 64 << 20;

impl PlannedTable {
    /// Plans how to append rows with these fields to a table. Fields and columns belong together by name.
    ///
    /// # Errors
    /// How the fields differ from the table's columns, one line each.
    pub fn extend(
        file: &Arc<File>,
        table: &table::Table,
        fields: &Fields,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Self, Vec<String>> {
        let rows = unsigned(&table.attributes, ROWS);
        let april = "rows are appended by the rules of HEP001 July (\"Appending rows\"), and a table of April has no \
                     NROWS: `hepfs convert` writes a table of July from it";
        let rows = rows.ok_or_else(|| vec![april.to_owned()])?;
        let group = group_at(file, &table.path, interrupt).map_err(|error| vec![error.to_string()])?;
        let mut reader = Reader { file, rows, parts: 0, interrupt };
        let (mut columns, mut wrong) = (Vec::new(), Vec::new());
        for field in fields {
            match table.columns.iter().find(|column| column.name == field.name().as_str()) {
                None => wrong.push(format!("{:?} {}: the table has no such column", field.name(), field.data_type())),
                Some(column) => match reader.column(column, field, table, &group) {
                    Ok(column) => columns.push(column),
                    Err(reason) => wrong.push(format!("{:?} {}: {reason}", field.name(), field.data_type())),
                },
            }
        }
        for column in &table.columns {
            let name = column.name.to_string();
            if fields.find(&name).is_none() {
                wrong.push(format!("{name:?}: the table has this column, the input has not"));
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let generation = unsigned(&table.attributes, GENERATION);
        Ok(Self {
            columns,
            labels: Vec::new(),
            revision: Revision::July,
            references: options.references.map_or(References::Standard, References::from),
            is_compressed: true,
            path: table.path.clone(),
            existing: Some(Existing { rows, generation, indexes: table.indexes.len() }),
        })
    }
}

struct Reader<'a> {
    file: &'a Arc<File>,
    rows: u64,
    parts: usize,
    interrupt: &'a Interrupt,
}

impl Reader<'_> {
    fn column(
        &mut self,
        column: &Column,
        field: &Field,
        table: &table::Table,
        group: &Group,
    ) -> Result<PlannedColumn, String> {
        let arrow_type = text(&column.attributes, ARROW_TYPE);
        let link = group.link(&column.name).and_then(|link| link.target.object()).ok_or("it is not there")?;
        let mut labels = None;
        let shape = match link {
            Object::Dataset(dataset) if attribute(&column.attributes, CATEGORIES[0]).is_some() => {
                labels = Some(self.labels(column, table)?);
                let is_text = types::plain(field.data_type()).is_string();
                let codes = element_of(&dataset.datatype).filter(|_| is_text).ok_or("the table has labels of text")?;
                ColumnDatasets::Codes(self.part(&column.path, dataset, codes, self.rows)?, false)
            }
            Object::Dataset(dataset) => {
                self.dataset(&column.path, dataset, types::plain(field.data_type()), arrow_type.as_deref())?
            }
            object => self.list(&column.path, object, field, arrow_type.as_deref(), self.rows)?,
        };
        Ok(PlannedColumn {
            name: column.name.to_string(),
            shape,
            attributes: Vec::new(),
            is_known: false,
            stored: "as the rows that are there".into(),
            note: None,
            row_bytes: 0,
            known: labels,
        })
    }

    fn dataset(
        &mut self,
        path: &str,
        dataset: &Arc<Dataset>,
        data_type: &DataType,
        arrow_type: Option<&str>,
    ) -> Result<ColumnDatasets, String> {
        if matches!(dataset.datatype.class, Class::VariableString { .. }) {
            let is_text = data_type.is_string();
            let part = self.part(path, dataset, ElementType::VariableText, self.rows)?;
            return if is_text { Ok(ColumnDatasets::Strings(part)) } else { Err("the table has text".into()) };
        }
        let (element, cells) = cells_of(data_type, &dataset.datatype, arrow_type)
            .ok_or_else(|| format!("the table stores {}", arrow_type.map_or(told(&dataset.datatype), str::to_owned)))?;
        Ok(ColumnDatasets::Cells(self.part(path, dataset, element, self.rows)?, cells))
    }

    fn list(
        &mut self,
        path: &str,
        object: &Object,
        field: &Field,
        arrow_type: Option<&str>,
        entries: u64,
    ) -> Result<ColumnDatasets, String> {
        let Object::Group { id, attributes, .. } = object else { return Err("the table has no such list".into()) };
        let group = self.file.group(*id, self.interrupt).map_err(|error| error.to_string())?;
        let offsets = self.member(path, &group, "OFFSETS", &ElementType::Unsigned(8), entries.saturating_add(1))?;
        let mask = match group.link(b"MASK") {
            Some(_) => Some(self.member(path, &group, "MASK", &crate::producer::boolean::element(), entries)?),
            None if field.is_nullable() => {
                return Err("lists of the table cannot be missing: it has no MASK".into());
            }
            None => None,
        };
        let items = offsets.resumed.as_ref().map_or(0, |resumed| resumed.last);
        let is_strings = text(attributes, "CLASS").as_deref() == Some(STRINGS_CLASS);
        let data_type = types::plain(field.data_type());
        let is_text = data_type.is_string();
        let is_binary = matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
        let is_bytes =
            is_text && (is_strings || arrow_type == Some("utf8")) || is_binary && arrow_type == Some("binary");
        let json = NestedJson::of(data_type).filter(|json| arrow_type == Some(json.name().as_str()));
        if is_bytes || json.is_some() {
            let name = if is_strings { "CHARS" } else { "VALUES" };
            let bytes = self.member(path, &group, name, &ElementType::Unsigned(1), items)?;
            return Ok(ColumnDatasets::Texts { offsets, mask, bytes, stands_for: json.map(StandsFor::Json) });
        }
        let item = item_of(data_type).ok_or("the table has lists")?;
        let values = group.link(b"VALUES").and_then(|link| link.target.object()).ok_or("no VALUES")?;
        let inner = join(path, b"VALUES");
        let items = match values {
            Object::Dataset(dataset) => {
                let arrow_type = text(&dataset.attributes, ARROW_TYPE);
                let cells = cells_of(types::plain(item.data_type()), &dataset.datatype, arrow_type.as_deref());
                let (element, cells) = cells.ok_or_else(|| {
                    let stored = arrow_type.unwrap_or_else(|| told(&dataset.datatype));
                    format!("the table has lists of {stored}")
                })?;
                ColumnDatasets::Cells(self.part(&inner, dataset, element, items)?, cells)
            }
            object @ Object::Group { attributes, .. } => {
                self.list(&inner, object, item, text(attributes, ARROW_TYPE).as_deref(), items)?
            }
            _ => return Err("no VALUES".into()),
        };
        Ok(ColumnDatasets::Lists { offsets, mask, items: Box::new(items) })
    }

    fn member(
        &mut self,
        path: &str,
        group: &Group,
        name: &str,
        element: &ElementType,
        elements: u64,
    ) -> Result<PlannedDataset, String> {
        let dataset = datasets::member(group, name)?;
        if element_of(&dataset.datatype).as_ref() != Some(element) {
            return Err(format!("{name} is stored as {}", told(&dataset.datatype)));
        }
        self.part(&join(path, name.as_bytes()), dataset, element.clone(), elements)
    }

    /// Plans to write after the `elements` of a dataset that are in use.
    fn part(
        &mut self,
        path: &str,
        dataset: &Arc<Dataset>,
        element: ElementType,
        elements: u64,
    ) -> Result<PlannedDataset, String> {
        let (Layout::Chunked { chunk, partial_unfiltered: false }, [extent], [None]) =
            (&dataset.layout, dataset.shape.as_slice(), dataset.max_shape.as_slice())
        else {
            return Err("it is not stored in chunks that can grow".into());
        };
        let (shuffles, compression) = packing(dataset).ok_or("import does not write its filters")?;
        let chunk = chunk.first().copied().unwrap_or(1).max(1);
        let is_variable = element == ElementType::VariableText;
        let width = dataset.datatype.size;
        if *extent < elements || chunk.saturating_mul(width) > MOST {
            return Err(format!("it has {extent} elements of {elements}, or chunks of more than {MOST} bytes"));
        }
        let fill = match (&dataset.fill, is_variable) {
            (StoredFill::Explicit(fill), false) => FillSetting::Bytes(fill.bytes.clone()),
            (StoredFill::Explicit(fill), true) if !fill.heap.is_empty() => {
                FillSetting::Text(String::from_utf8_lossy(&fill.heap).trim_end_matches('\0').to_owned())
            }
            _ => FillSetting::Unset,
        };
        let start = if is_variable { elements } else { elements / chunk * chunk };
        let mut held = Vec::new();
        let mut last = 0;
        if !is_variable && elements > 0 {
            let opened = datasets::open(self.file, path, dataset)?;
            let rows = DatasetRows::plain(opened, elements);
            // The last element is read even if its chunk is full: it may be the last offset.
            let from = start.min(elements - 1);
            // The dataset could be opened, so all elements take less than 2^63 bytes.
            rows.append(from * width, ((elements - from) * width) as usize, &mut held, self.interrupt)
                .map_err(|error| error.to_string())?;
            last = held.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            held.drain(..((start - from) * width) as usize);
        }
        let resumed = Resumed { path: path.as_bytes().to_vec(), extent: *extent, start, held, last };
        let number = self.parts;
        self.parts += 1;
        Ok(PlannedDataset {
            number,
            element,
            width: width as usize,
            fill,
            chunk,
            shuffles,
            compression,
            attributes: Vec::new(),
            resumed: Some(Arc::new(resumed)),
        })
    }

    fn labels(&self, column: &Column, table: &table::Table) -> Result<KnownLabels, String> {
        let set = column.categories.and_then(|at| table.categories.get(at)).ok_or("its labels cannot be read")?;
        let labels = set.labels.clone()?;
        let Class::FixedString { .. } = set.datatype.class else {
            return Err("its labels are no fixed strings".into());
        };
        let array = labels.array(0..labels.len(), self.interrupt).map_err(|error| error.to_string())?;
        let texts = array.as_string_opt::<i64>().ok_or("its labels are no text")?;
        let labels = texts.iter().map(|text| text.unwrap_or_default().into()).collect();
        // The path of the label set may be made up from its address, so its link is looked up in the group of label
        // sets.
        let group = join(&table.path, crate::dialects::hep001::names::CATEGORIES_GROUP.as_bytes());
        let path = self.path_of_labels(column, &group).ok_or("its labels do not lie in CATEGORIES")?;
        Ok(KnownLabels { path, width: set.datatype.size as usize, labels })
    }

    fn path_of_labels(&self, column: &Column, group: &str) -> Option<Vec<u8>> {
        let target = attribute(&column.attributes, CATEGORIES[0])?;
        let id = crate::dialects::attributes::references(target)?.first().copied().flatten()?;
        let members = group_at(self.file, group, self.interrupt).ok()?;
        let link = members.links.iter().find(|link| link.target.object().is_some_and(|object| object.id() == id))?;
        Some(join(group, &link.name).into_bytes())
    }
}

/// Whether the dataset shuffles bytes, and how it is compressed. `None`: import does not write its filters.
fn packing(dataset: &Dataset) -> Option<(bool, Compression)> {
    let (shuffles, rest) = match dataset.filters.as_slice() {
        [first, rest @ ..] if first.id == 2 => (true, rest),
        all => (false, all),
    };
    let level =
        |filter: &crate::catalogue::Filter| filter.parameters.first().and_then(|level| u8::try_from(*level).ok());
    let compression = match rest {
        [] => Compression::None,
        [filter] => match filter.id {
            1 => Compression::Deflate(level(filter)?.clamp(1, 9)),
            32015 => Compression::Zstandard(level(filter).unwrap_or(3).clamp(1, 19)),
            32004 => Compression::Lz4,
            _ => return None,
        },
        _ => return None,
    };
    Some((shuffles, compression))
}

/// The element type with which import writes this stored type. `None`: import does not write it.
fn element_of(stored: &Datatype) -> Option<ElementType> {
    let width = u8::try_from(stored.size).ok();
    Some(match &stored.class {
        Class::Integer { signed, order, precision, offset: 0 }
            if stored.size.checked_mul(8) == Some((*precision).into())
                && (*order == ByteOrder::Little || stored.size == 1) =>
        {
            if *signed {
                ElementType::Signed(width?)
            } else {
                ElementType::Unsigned(width?)
            }
        }
        Class::Float { order: ByteOrder::Little, format } => match format {
            FloatFormat::Half | FloatFormat::Single | FloatFormat::Double => ElementType::Float(width?),
            FloatFormat::Extended | FloatFormat::Quadruple | FloatFormat::Other { .. } => return None,
        },
        Class::FixedString { padding, charset } if *padding != Padding::SpacePadded => ElementType::Text {
            charset: *charset,
            size: usize::try_from(stored.size).ok()?,
            is_terminated: *padding == Padding::NullTerminated,
        },
        Class::Opaque { .. } => ElementType::Opaque(usize::try_from(stored.size).ok()?),
        Class::Enum { base, members } => ElementType::Enum {
            base: Box::new(element_of(base)?),
            members: members
                .iter()
                .map(|member| Some((member.name.to_string(), i64::try_from(member.value).ok()?)))
                .collect::<Option<_>>()?,
        },
        Class::Array { dims, base } => match dims.as_slice() {
            [count] => ElementType::Array(Box::new(element_of(base)?), *count),
            _ => return None,
        },
        Class::Compound { fields } => {
            let mut place = 0;
            let mut found = Vec::new();
            for field in fields {
                if field.offset != place {
                    return None;
                }
                place = field.offset.checked_add(field.datatype.size)?;
                found.push((field.name.to_string(), element_of(&field.datatype)?));
            }
            ElementType::Compound(found)
        }
        _ => return None,
    })
}

/// How to write values of an Arrow type as elements of a stored type. `None`: they cannot be written so.
fn cells_of(data_type: &DataType, stored: &Datatype, arrow_type: Option<&str>) -> Option<(ElementType, CellEncoding)> {
    let element = element_of(stored)?;
    let width = usize::try_from(stored.size).ok()?;
    let declared = types::declared(data_type);
    let is_plain = declared.is_none() && arrow_type.is_none_or(|name| data_type.to_string().to_lowercase() == name);
    let own = data_type.primitive_width();
    let number = if own == Some(width) { CellEncoding::Number(width) } else { CellEncoding::Widened(width) };
    let cells = match (&element, data_type) {
        (_, DataType::Decimal128(..)) if declared.as_deref() == arrow_type => match &element {
            ElementType::Signed(8) => CellEncoding::Widened(8),
            ElementType::Opaque(16) => CellEncoding::Number(16),
            _ => return None,
        },
        (ElementType::Signed(_), _) if declared.is_some() && declared.as_deref() == arrow_type => {
            (own? == width).then_some(CellEncoding::Number(width))?
        }
        (ElementType::Signed(_), whole) if is_plain && whole.is_signed_integer() && own? <= width => number,
        (ElementType::Unsigned(_), whole) if is_plain && whole.is_unsigned_integer() && own? <= width => number,
        (ElementType::Float(_), float) if is_plain && float.is_floating() && own? <= width => number,
        (ElementType::Text { size, is_terminated, .. }, text) if text.is_string() => {
            // The last byte of a terminated text is its NUL. The encoder rejects longer texts.
            if *is_terminated { return terminated(&element, *size) } else { CellEncoding::Text(*size) }
        }
        (ElementType::Opaque(size), DataType::FixedSizeBinary(bytes)) if i32::try_from(*size) == Ok(*bytes) => {
            CellEncoding::Bytes(*size)
        }
        (ElementType::Enum { members, .. }, DataType::Boolean) => {
            let mut known = [("FALSE", 0), ("TRUE", 1)].iter();
            let are_there = known.all(|known| members.iter().any(|member| (member.0.as_str(), member.1) == *known));
            (are_there && width == 1).then_some(CellEncoding::Boolean)?
        }
        (ElementType::Array(_, count), DataType::FixedSizeList(item, length))
            if i32::try_from(*count) == Ok(*length) =>
        {
            let Class::Array { base, .. } = &stored.class else { return None };
            CellEncoding::Items(Box::new(cells_of(item.data_type(), base, None)?.1), usize::try_from(*count).ok()?)
        }
        (ElementType::Compound(_), DataType::Struct(fields)) => {
            let Class::Compound { fields: known } = &stored.class else { return None };
            let pairs = fields.iter().zip(known);
            let cells = pairs.map(|(field, known)| {
                (known.name == field.name().as_str()).then_some(())?;
                Some(cells_of(field.data_type(), &known.datatype, None)?.1)
            });
            CellEncoding::Fields(cells.collect::<Option<Vec<_>>>().filter(|_| fields.len() == known.len())?)
        }
        _ => return None,
    };
    Some((element, cells))
}

/// How to write texts of which each has at least one byte for NUL. `None`: there is no room for anything else.
fn terminated(element: &ElementType, size: usize) -> Option<(ElementType, CellEncoding)> {
    (size > 1).then(|| (element.clone(), CellEncoding::Terminated(size)))
}

/// Names a stored type for a message.
fn told(stored: &Datatype) -> String {
    let arrow = crate::store::decode::arrow_type(stored);
    format!("{arrow} of {} bytes", stored.size)
}
