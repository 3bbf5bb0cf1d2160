//! Rows of columns: as they are, or as lists and records.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, NullArray, StructArray, UInt64Array, new_empty_array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat;

use super::blocks::Block;
use super::file::{File, path_of};
use crate::catalogue::{ByteOrder, Class, Datatype, FloatFormat};
use crate::codec::trevni::Kind;
use crate::source::Interrupt;
use crate::store::decode::outline::lists;
use crate::store::decode::{Memory, Oddities, decode};
use crate::store::{Error, Fitter, Fitting, Hints, RowRange, Rows, TextLength, count_of, fixed_width};

/// Rows that are weighed together.
const WEIGHED: u64 = 1 << 14;

/// Bytes of a list beside its values.
const LIST: u64 = 16;

/// Arrow type of a value.
pub(super) fn arrow_type(kind: Kind) -> DataType {
    match kind {
        Kind::Null => DataType::Null,
        Kind::Boolean => DataType::Boolean,
        Kind::Int | Kind::Fixed32 => DataType::Int32,
        Kind::Long | Kind::Fixed64 => DataType::Int64,
        Kind::Float => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::String | Kind::Bytes => DataType::LargeUtf8,
    }
}

/// The type of the bytes of a row in `.npy`: of numbers and booleans.
fn stored_type(kind: Kind) -> Option<Datatype> {
    let order = ByteOrder::Little;
    let integer = |size: u32| Datatype {
        size: u64::from(size),
        class: Class::Integer { signed: true, order, precision: size * 8, offset: 0 },
    };
    let float = |size, format| Datatype { size, class: Class::Float { order, format } };
    match kind {
        Kind::Boolean => Some(Datatype { size: 1, class: Class::Flag }),
        Kind::Int | Kind::Fixed32 => Some(integer(4)),
        Kind::Long | Kind::Fixed64 => Some(integer(8)),
        Kind::Float => Some(float(4, FloatFormat::Single)),
        Kind::Double => Some(float(8, FloatFormat::Double)),
        Kind::Null | Kind::String | Kind::Bytes => None,
    }
}

/// A column as a part of rows: its values, and what its children add to each.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Position of the column.
    pub column: usize,
    /// Whether its own values are shown.
    pub own: bool,
    /// Columns with an entry for each of its values.
    pub children: Vec<Part>,
    /// Whether what is in its lists are records, though there be one field.
    pub records: bool,
}

impl Part {
    /// A column by itself.
    pub fn leaf(column: usize) -> Self {
        Self { column, own: true, children: Vec::new(), records: false }
    }

    /// The type of an entry.
    ///
    /// # Errors
    /// Why the column cannot be read, or there is nothing to show.
    fn data_type(&self, file: &File) -> Result<DataType, String> {
        let (column, kind, _) = file.column(self.column).map_err(|error| error.to_string())?;
        let mut fields = Vec::new();
        if self.own {
            fields.push(Field::new(&column.name, arrow_type(kind), kind == Kind::Null));
        }
        for child in &self.children {
            let (column, ..) = file.column(child.column).map_err(|error| error.to_string())?;
            let data_type = child.data_type(file)?;
            fields.push(Field::new(&column.name, data_type.clone(), data_type == DataType::Null));
        }
        let item = match (self.records, fields.as_slice()) {
            (false, [only]) => only.data_type().clone(),
            _ => DataType::Struct(Fields::from(fields)),
        };
        Ok(if column.is_array { list_of(item) } else { item })
    }

    /// All columns in it.
    fn columns(&self) -> Vec<usize> {
        let below = self.children.iter().flat_map(Part::columns);
        std::iter::once(self.column).chain(below).collect()
    }
}

/// What values of this type tell by themselves.
fn hints_of(data_type: &DataType) -> Hints {
    match data_type {
        DataType::Struct(fields) => {
            Hints { fields: fields.iter().map(|field| hints_of(field.data_type())).collect(), ..Hints::default() }
        }
        DataType::LargeList(item) => Hints { items: Some(Box::new(hints_of(item.data_type()))), ..Hints::default() },
        DataType::Null => Hints { nullable: true, ..Hints::default() },
        other => Hints { stored: other.is_primitive(), ..Hints::default() },
    }
}

fn list_of(item: DataType) -> DataType {
    let nullable = item == DataType::Null;
    DataType::LargeList(Arc::new(Field::new_list_field(item, nullable)))
}

/// Rows of one block.
struct Piece<'a> {
    /// The first row of the block.
    first: u64,
    block: &'a Block,
    /// Counted from there.
    rows: Range<usize>,
}

/// Rows of a column of the table, or of one column alone.
#[derive(Debug)]
pub(super) struct ColumnRows {
    file: Arc<File>,
    path: String,
    part: Part,
    data_type: DataType,
    len: u64,
    /// Of numbers and booleans that are one a row.
    stored: Option<Datatype>,
}

impl ColumnRows {
    /// The rows of `part`, which begins at a column without parent.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn new(file: &Arc<File>, part: Part) -> Result<Self, String> {
        let (column, kind, _) = file.column(part.column).map_err(|error| error.to_string())?;
        let data_type = part.data_type(file)?;
        let is_plain = !column.is_array && part.children.is_empty();
        let stored = if is_plain { stored_type(kind) } else { None };
        let survey = file.columns.get(part.column).and_then(|seen| seen.as_ref().ok());
        let len = survey.map_or(0, |survey| survey.rows);
        Ok(Self { file: file.clone(), path: path_of(column), part, data_type, len, stored })
    }

    fn failed(&self, reason: String) -> Error {
        Error::Unsupported { path: self.path.clone(), reason }
    }

    /// Calls `take` with a piece for each block that rows of `range` of a column lie in.
    fn for_each(
        &self,
        column: usize,
        range: &RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(Piece<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let places = self.file.places(column, interrupt)?;
        self.file.ahead(column, &places, range);
        for at in places.blocks(range) {
            interrupt.check()?;
            let (first, rows) = (places.rows(at).start, places.part(at, range));
            take(Piece { first, block: &*self.file.block(column, at, interrupt)?, rows })?;
        }
        Ok(())
    }

    /// The entries of a column in some rows: of an array, where the values of each begin and end; and all values.
    fn entries(
        &self,
        column: usize,
        range: &RowRange,
        interrupt: &Interrupt,
    ) -> Result<(Option<Vec<i64>>, ArrayRef), Error> {
        let (described, kind, _) = self.file.column(column)?;
        let mut starts = described.is_array.then(|| vec![0_i64]);
        let (mut pieces, mut bytes): (Vec<ArrayRef>, u64) = (Vec::new(), 0);
        let store = self.file.opening.store();
        let what = || format!("rows {}..{}", range.start, range.end);
        self.for_each(column, range, interrupt, &mut |Piece { block, rows, .. }| {
            let entries = block.entries(&rows);
            let values = block.values_of(&entries);
            let piece = block.values.slice(values.start, values.end - values.start);
            bytes = bytes.saturating_add(weight(&piece)).saturating_add((entries.end - entries.start) as u64 * 8);
            store.admit(&self.path, bytes, what)?;
            if let (Some(starts), Some(of_block)) = (&mut starts, block.starts(&entries)) {
                let (before, first) = (starts.last().copied().unwrap_or(0), of_block.first().copied().unwrap_or(0));
                starts.extend(of_block.iter().skip(1).map(|start| before + (start - first)));
            }
            pieces.push(piece);
            Ok(())
        })?;
        let values = match pieces.as_slice() {
            [] => new_empty_array(&arrow_type(kind)),
            [only] => only.clone(),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several).map_err(|error| self.failed(error.to_string()))?
            }
        };
        Ok((starts, values))
    }

    /// The entries of a part in some rows, of `data_type`.
    fn made(
        &self,
        part: &Part,
        data_type: &DataType,
        range: &RowRange,
        interrupt: &Interrupt,
    ) -> Result<ArrayRef, Error> {
        let (starts, values) = self.entries(part.column, range, interrupt)?;
        let item = match data_type {
            DataType::LargeList(item) if starts.is_some() => item.data_type(),
            other => other,
        };
        let count = values.len();
        let fields = match item {
            DataType::Struct(fields) => Some(fields),
            _ => None,
        };
        let own = if part.own { Some(values) } else { None };
        let mut arrays: Vec<ArrayRef> = own.into_iter().collect();
        for child in &part.children {
            let at = arrays.len();
            let child_type = fields.and_then(|fields| Some(fields.get(at)?.data_type())).unwrap_or(item);
            let array = self.made(child, child_type, range, interrupt)?;
            if array.len() != count {
                return Err(self.failed(format!("{} entries of a child for {count} values", array.len())));
            }
            arrays.push(array);
        }
        let items = match fields {
            Some(fields) => {
                let records = StructArray::try_new(fields.clone(), arrays, None);
                Arc::new(records.map_err(|error| self.failed(error.to_string()))?) as ArrayRef
            }
            None => arrays.pop().unwrap_or_else(|| Arc::new(NullArray::new(count))),
        };
        let (Some(starts), DataType::LargeList(field)) = (starts, data_type) else { return Ok(items) };
        let list = LargeListArray::try_new(field.clone(), OffsetBuffer::new(starts.into()), items, None);
        Ok(Arc::new(list.map_err(|error| self.failed(error.to_string()))?))
    }

    /// Adds what each row of `range` takes in an array to `weights`.
    fn weigh(&self, range: &RowRange, weights: &mut [u64], interrupt: &Interrupt) -> Result<(), Error> {
        for column in self.part.columns() {
            let mut at = 0;
            self.for_each(column, range, interrupt, &mut |Piece { block, rows, .. }| {
                let texts = block.values.as_string_opt::<i64>().map(|texts| texts.value_offsets());
                let width = fixed_width(block.values.data_type());
                for row in rows {
                    let entries = block.entries(&(row..row + 1));
                    let values = block.values_of(&entries);
                    let text = texts.map_or(0, |starts| starts[values.end] - starts[values.start]) as u64;
                    let count = (values.end - values.start) as u64;
                    if let Some(weight) = weights.get_mut(at) {
                        let lists = LIST * (entries.end - entries.start) as u64;
                        *weight = weight.saturating_add(text + lists).saturating_add(count.saturating_mul(width));
                    }
                    at += 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// What the values of an array take, about: what it shares with others counts as well.
fn weight(array: &ArrayRef) -> u64 {
    let texts = array.as_string_opt::<i64>().map(|texts| texts.value_offsets());
    let text = texts.and_then(|starts| Some(starts.last()? - starts.first()?)).unwrap_or(0) as u64;
    (array.len() as u64).saturating_mul(fixed_width(array.data_type())).saturating_add(text)
}

/// How long the texts and lists of an array are.
fn outline(array: &ArrayRef) -> Option<ArrayRef> {
    Some(match array.data_type() {
        DataType::LargeUtf8 => {
            let starts = array.as_string::<i64>().value_offsets();
            Arc::new(UInt64Array::from_iter_values(starts.windows(2).map(|pair| (pair[1] - pair[0]) as u64)))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            lists(list.offsets().clone(), outline(list.values())?)?
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(outline).collect::<Option<Vec<_>>>()?;
            let named = fields.iter().zip(&columns);
            let fields = named.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
            Arc::new(StructArray::try_new(fields.collect::<Fields>(), columns, None).ok()?)
        }
        _ => Arc::new(NullArray::new(array.len())),
    })
}

impl Rows for ColumnRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nullable(&self) -> bool {
        self.data_type == DataType::Null
    }

    fn hints(&self) -> Hints {
        let hints = hints_of(&self.data_type);
        let survey = self.file.columns.get(self.part.column).and_then(|seen| seen.as_ref().ok());
        match (&self.data_type, survey) {
            // Two digits a byte, or a byte that is no UTF-8 shown as three.
            (DataType::LargeUtf8, Some(survey)) => Hints { texts: TextLength::Within(survey.size), ..hints },
            _ => hints,
        }
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.len, &self.path)?;
        if self.data_type == DataType::Null {
            return Ok(Arc::new(NullArray::new(count)));
        }
        self.made(&self.part, &self.data_type, &range, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        if self.stored.is_some() || self.data_type == DataType::Null {
            return Ok(Fitting::fixed(&range, fixed_width(&self.data_type), bytes));
        }
        let mut fitter = Fitter::new(range.start, bytes);
        let mut start = range.start;
        while start < range.end {
            let end = start.saturating_add(WEIGHED).min(range.end);
            let mut weights = vec![0; (end - start) as usize];
            self.weigh(&(start..end), &mut weights, interrupt)?;
            for weight in weights {
                if !fitter.add(1, weight) {
                    return Ok(fitter.fitting());
                }
            }
            start = end;
        }
        Ok(fitter.fitting())
    }

    fn stored_type(&self) -> Option<&Datatype> {
        self.stored.as_ref()
    }

    fn stored_width(&self) -> Option<u64> {
        self.stored.as_ref().map(|stored| stored.size)
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let width = self.stored_width().ok_or_else(|| self.failed("rows of no fixed width".into()))?;
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.len.saturating_mul(width));
        let end = end.ok_or_else(|| self.failed(format!("{length} bytes from byte {offset} on")))?;
        let (range, before) = (offset / width..end.div_ceil(width), out.len());
        let appended = self.for_each(self.part.column, &range, interrupt, &mut |Piece { first, block, rows }| {
            // The bytes of these rows that were asked for.
            let byte = |row: usize| (first + row as u64) * width;
            let wanted = byte(rows.start).max(offset)..byte(rows.end).min(end);
            let place = |byte: u64| (byte - first * width) as usize;
            if let Some(flags) = block.values.as_boolean_opt() {
                out.extend((place(wanted.start)..place(wanted.end)).map(|row| u8::from(flags.value(row))));
                return Ok(());
            }
            let data = block.values.to_data();
            let bytes = data.buffers().first().and_then(|bytes| bytes.get(place(wanted.start)..place(wanted.end)));
            out.extend_from_slice(bytes.ok_or_else(|| self.failed("a block without values".into()))?);
            Ok(())
        });
        appended.inspect_err(|_| out.truncate(before))
    }

    fn is_decoded(&self) -> bool {
        true
    }

    fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let stored = self.stored.as_ref().filter(|_| self.data_type.is_primitive())?;
        let count = bytes.len() / usize::try_from(stored.size).ok()?;
        decode(stored, bytes, count, &Memory(&[]), &mut Oddities::new()).ok()
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        Ok(outline(&self.array(range, interrupt)?))
    }

    fn outline_tells_nulls(&self) -> bool {
        self.data_type != DataType::Null
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.part.columns().into_iter().try_for_each(|column| self.file.places(column, interrupt).map(drop))
    }

    fn natural_rows(&self) -> Option<u64> {
        let survey = self.file.columns.get(self.part.column)?.as_ref().ok()?;
        (survey.blocks > 1).then_some(survey.most_rows)
    }
}
