//! Makes rows of columns: plain values, lists and records.

use crate::table::Unreadable;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, LargeListArray, NullArray, StructArray, UInt64Array, new_empty_array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use arrow_select::concat::concat;
use arrow_select::take::take;

use super::blocks::TrevniBlock;
use super::file::TrevniFile;
use crate::catalogue::{ByteOrder, Class, Datatype, FloatFormat};
use crate::codec::trevni::{TrevniColumn, TrevniType};
use crate::source::Interrupt;
use crate::store::decode::outline::lists;
use crate::store::decode::{HeapBytes, Oddities, decode};
use crate::store::{
    ChunkDecoding, Coded, Error, Facts, Fitter, Fitting, Hints, RowRange, Rows, RowsContainer, StoredBytes,
    StoredFacts, TextLength, count_of, fixed_width,
};

/// Number of rows to weigh at once.
const WEIGHED: u64 = 1 << 14;

/// Bytes that a list takes besides its values.
const LIST: u64 = 16;

/// The Arrow type of a column's values.
pub(super) fn arrow_type(kind: TrevniType) -> DataType {
    match kind {
        TrevniType::Null => DataType::Null,
        TrevniType::Boolean => DataType::Boolean,
        TrevniType::Int | TrevniType::Fixed32 => DataType::Int32,
        TrevniType::Long | TrevniType::Fixed64 => DataType::Int64,
        TrevniType::Float => DataType::Float32,
        TrevniType::Double => DataType::Float64,
        TrevniType::String | TrevniType::Bytes => DataType::LargeUtf8,
    }
}

/// The type of a row's bytes in `.npy`. `None`: neither numbers nor booleans.
fn stored_type(kind: TrevniType) -> Option<Datatype> {
    let order = ByteOrder::Little;
    let integer = |size| Datatype::integer(size, true, order);
    let float = |size, format| Datatype { size, class: Class::Float { order, format } };
    match kind {
        TrevniType::Boolean => Some(Datatype { size: 1, class: Class::Flag }),
        TrevniType::Int | TrevniType::Fixed32 => Some(integer(4)),
        TrevniType::Long | TrevniType::Fixed64 => Some(integer(8)),
        TrevniType::Float => Some(float(4, FloatFormat::Single)),
        TrevniType::Double => Some(float(8, FloatFormat::Double)),
        TrevniType::Null | TrevniType::String | TrevniType::Bytes => None,
    }
}

/// The structure of rows, or of the items of lists.
#[derive(Clone, Debug)]
pub(super) enum TrevniSchema {
    /// The values of a column, one for each entry; of an array, the values of all entries, one after the other.
    Values(usize),
    /// Lists that have the lengths of an array, and items of the structure inside.
    Lists(usize, Box<TrevniSchema>),
    /// Like lists, but each entry has at most one item, and is null if it has none.
    Optional(usize, Box<TrevniSchema>),
    /// A record, with the name and structure of each field.
    Record(Vec<(String, TrevniSchema)>),
    /// Names for the numbers of the structure inside; a number without a name is null.
    Names(Box<TrevniSchema>, ArrayRef),
}

impl TrevniSchema {
    /// The structure of a single column.
    pub fn leaf(column: &TrevniColumn, at: usize) -> Self {
        let values = Self::Values(at);
        if column.is_array { Self::Lists(at, Box::new(values)) } else { values }
    }

    /// The Arrow type of an entry.
    ///
    /// # Errors
    /// Why a column cannot be read.
    fn data_type(&self, file: &TrevniFile) -> Result<DataType, Unreadable> {
        Ok(match self {
            Self::Values(at) => arrow_type(file.column(*at)?.1),
            Self::Lists(_, item) => {
                let nullable = item.nullable(file);
                DataType::LargeList(Arc::new(Field::new_list_field(item.data_type(file)?, nullable)))
            }
            Self::Optional(_, item) => item.data_type(file)?,
            Self::Record(fields) => {
                let field =
                    |(name, part): &(String, Self)| Ok(Field::new(name, part.data_type(file)?, part.nullable(file)));
                DataType::Struct(fields.iter().map(field).collect::<Result<Vec<_>, Unreadable>>()?.into())
            }
            Self::Names(_, names) => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(names.data_type().clone()))
            }
        })
    }

    /// Whether an entry may be missing.
    fn nullable(&self, file: &TrevniFile) -> bool {
        match self {
            Self::Values(at) => file.column(*at).is_ok_and(|(_, kind, _)| kind == TrevniType::Null),
            Self::Optional(..) | Self::Names(..) => true,
            Self::Lists(..) | Self::Record(_) => false,
        }
    }

    /// The hints for rows of this structure.
    fn hints(&self, file: &TrevniFile) -> Hints {
        let nullable = self.nullable(file);
        match self {
            Self::Values(at) => {
                let kind = file.column(*at).map_or(TrevniType::Null, |(_, kind, _)| kind);
                Hints { stored: arrow_type(kind).is_primitive(), nullable, ..Hints::default() }
            }
            Self::Lists(_, item) => Hints { items: Some(Box::new(item.hints(file))), ..Hints::default() },
            Self::Optional(_, item) => Hints { stored: false, nullable, ..item.hints(file) },
            Self::Record(fields) => {
                Hints { fields: fields.iter().map(|(_, part)| part.hints(file)).collect(), ..Hints::default() }
            }
            Self::Names(..) => Hints { nullable, ..Hints::default() },
        }
    }

    /// Collects all columns that the structure needs, some of them twice.
    fn columns(&self, all: &mut Vec<usize>) {
        match self {
            Self::Values(at) => all.push(*at),
            Self::Lists(at, item) | Self::Optional(at, item) => {
                all.push(*at);
                item.columns(all);
            }
            Self::Record(fields) => fields.iter().for_each(|(_, part)| part.columns(all)),
            Self::Names(part, _) => part.columns(all),
        }
    }
}

/// The rows of one block that are asked for.
struct Piece<'a> {
    /// First row of the block.
    first: u64,
    block: &'a TrevniBlock,
    /// The rows that are asked for, counted from the first row of the block.
    rows: Range<usize>,
}

/// Rows of a column of the table, or of one column of the file by itself.
#[derive(Debug)]
pub(super) struct ColumnRows {
    file: Arc<TrevniFile>,
    path: String,
    part: TrevniSchema,
    /// The columns to read for a row, of which the first has no parent.
    columns: Vec<usize>,
    /// The facts name stored elements only for numbers and booleans with one value per row.
    facts: Facts,
}

impl ColumnRows {
    /// Makes the rows of the structure `part`, displayed as `path`. Its first column must have no parent, and all its
    /// columns must have the same number of rows.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn new(file: &Arc<TrevniFile>, path: String, part: TrevniSchema) -> Result<Self, Unreadable> {
        let data_type = part.data_type(file)?;
        let mut columns = Vec::new();
        part.columns(&mut columns);
        let mut seen = HashSet::new();
        columns.retain(|column| seen.insert(*column));
        let survey = |at: &usize| file.columns.get(*at).and_then(|seen| seen.as_ref().ok());
        let mut lengths = columns.iter().filter_map(survey).map(|survey| survey.rows);
        let len = lengths.next().unwrap_or(0);
        if let Some(other) = lengths.find(|length| *length != len) {
            return Err(format!("its columns have {len} and {other} rows").into());
        }
        let stored = match part {
            TrevniSchema::Values(at) => stored_type(file.column(at)?.1),
            _ => None,
        };
        let texts = match (columns.as_slice(), &data_type) {
            // Each stored byte becomes at most two digits, or the three bytes of U+FFFD.
            ([only], DataType::LargeUtf8) => TextLength::Within(survey(only).map_or(0, |survey| survey.size)),
            _ => TextLength::Unknown,
        };
        let (hints, nullable) = (Hints { texts, ..part.hints(file) }, part.nullable(file));
        let survey = columns.first().and_then(survey);
        let facts = Facts {
            nullable,
            hints,
            natural_rows: survey.filter(|survey| survey.blocks > 1).map(|survey| survey.most_rows),
            stored: match stored {
                Some(stored) => StoredFacts::of(Arc::new(stored), ChunkDecoding::Always),
                None => StoredFacts { decoded: ChunkDecoding::Always, ..StoredFacts::default() },
            },
            containers: columns.iter().map(|at| Arc::new(FileColumn { file: file.clone(), at: *at }) as _).collect(),
            // Only values of nullable types can be missing.
            outline_tells_nulls: !any_nullable(&data_type, nullable),
            ..Facts::new(len, data_type)
        };
        Ok(Self { file: file.clone(), path, part, columns, facts })
    }

    fn failed(&self, reason: String) -> Error {
        Error::unsupported(self.path.clone(), reason)
    }

    /// Calls `take` with a piece for each block of a column that holds rows of `range`.
    fn for_each(
        &self,
        column: usize,
        range: &RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(Piece<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let places = self.file.places(column, interrupt)?;
        self.file.ahead(column, &places, range, interrupt);
        for at in places.blocks(range) {
            interrupt.check()?;
            let (first, rows) = (places.rows(at).start, places.part(at, range));
            take(Piece { first, block: &*self.file.block(column, at, interrupt)?, rows })?;
        }
        Ok(())
    }

    /// Asks for `more` bytes in addition to those that these rows already take.
    fn admit(&self, range: &RowRange, bytes: &mut u64, more: u64) -> Result<(), Error> {
        *bytes = bytes.saturating_add(more);
        self.file.opening.store().admit(&self.path, *bytes, || format!("rows {}..{}", range.start, range.end))
    }

    /// Reads the values of a column in these rows.
    fn values(&self, column: usize, range: &RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let (mut pieces, mut bytes): (Vec<ArrayRef>, u64) = (Vec::new(), 0);
        self.for_each(column, range, interrupt, &mut |Piece { block, rows, .. }| {
            let values = block.values_of(&block.entries(&rows));
            let piece = block.values.slice(values.start, values.end - values.start);
            self.admit(range, &mut bytes, weight(&piece))?;
            pieces.push(piece);
            Ok(())
        })?;
        match pieces.as_slice() {
            [] => Ok(new_empty_array(&arrow_type(self.file.column(column)?.1))),
            [only] => Ok(only.clone()),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several).map_err(|error| self.arrow_error(&error))
            }
        }
    }

    /// Reads where the values of each entry of an array start in these rows, and where the last ones end.
    fn starts(&self, column: usize, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<i64>, Error> {
        let (mut starts, mut bytes) = (vec![0_i64], 0);
        self.for_each(column, range, interrupt, &mut |Piece { block, rows, .. }| {
            let entries = block.entries(&rows);
            self.admit(range, &mut bytes, (entries.end - entries.start) as u64 * 8)?;
            let of_block = block.starts(&entries).unwrap_or_default();
            let (before, first) = (starts.last().copied().unwrap_or(0), of_block.first().copied().unwrap_or(0));
            starts.extend(of_block.iter().skip(1).map(|start| before + (start - first)));
            Ok(())
        })?;
        Ok(starts)
    }

    /// Makes the entries of a structure in these rows, as an array of the type `data_type`.
    fn made(
        &self,
        part: &TrevniSchema,
        data_type: &DataType,
        range: &RowRange,
        interrupt: &Interrupt,
    ) -> Result<ArrayRef, Error> {
        match (part, data_type) {
            (TrevniSchema::Values(at), _) => self.values(*at, range, interrupt),
            (TrevniSchema::Lists(at, item), DataType::LargeList(field)) => {
                let starts = self.starts(*at, range, interrupt)?;
                let items = self.made(item, field.data_type(), range, interrupt)?;
                let list = LargeListArray::try_new(field.clone(), OffsetBuffer::new(starts.into()), items, None);
                Ok(Arc::new(list.map_err(|error| self.arrow_error(&error))?))
            }
            (TrevniSchema::Optional(at, item), _) => {
                let starts = self.starts(*at, range, interrupt)?;
                let items = self.made(item, data_type, range, interrupt)?;
                if let Some(pair) = starts.windows(2).find(|pair| pair[1] - pair[0] > 1) {
                    let count = pair[1] - pair[0];
                    return Err(self.failed(format!("{count} values where the schema has one or none")));
                }
                let indices: UInt64Array =
                    starts.windows(2).map(|pair| (pair[0] < pair[1]).then_some(pair[0] as u64)).collect();
                take(&items, &indices, None).map_err(|error| self.arrow_error(&error))
            }
            (TrevniSchema::Record(parts), DataType::Struct(fields)) => {
                let arrays = parts
                    .iter()
                    .zip(fields)
                    .map(|((_, part), field)| self.made(part, field.data_type(), range, interrupt))
                    .collect::<Result<Vec<_>, _>>()?;
                let records = StructArray::try_new(fields.clone(), arrays, None);
                Ok(Arc::new(records.map_err(|error| self.arrow_error(&error))?))
            }
            (TrevniSchema::Names(part, names), _) => {
                let codes = self.made(part, &DataType::Int32, range, interrupt)?;
                let codes = codes.as_primitive_opt::<Int32Type>().ok_or_else(|| self.failed("no codes".into()))?;
                let named = codes
                    .iter()
                    .map(|code| code.filter(|code| usize::try_from(*code).is_ok_and(|code| code < names.len())));
                let keys: Int32Array = named.collect();
                let dictionary = DictionaryArray::try_new(keys, names.clone());
                Ok(Arc::new(dictionary.map_err(|error| self.arrow_error(&error))?))
            }
            (_, other) => Err(self.failed(format!("rows of type {other}"))),
        }
    }

    fn arrow_error(&self, error: &ArrowError) -> Error {
        self.failed(error.to_string())
    }

    /// Adds to `weights` the bytes that each row of `range` takes in an array.
    fn weigh(&self, range: &RowRange, weights: &mut [u64], interrupt: &Interrupt) -> Result<(), Error> {
        for column in self.columns.iter().copied() {
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

/// Approximate number of bytes in an array's values, shared memory included.
fn weight(array: &ArrayRef) -> u64 {
    let texts = array.as_string_opt::<i64>().map(|texts| texts.value_offsets());
    let text = texts.and_then(|starts| Some(starts.last()? - starts.first()?)).unwrap_or(0) as u64;
    (array.len() as u64).saturating_mul(fixed_width(array.data_type())).saturating_add(text)
}

/// The lengths of the texts and lists in an array. `None`: an array cannot hold them.
fn outline(array: &ArrayRef) -> Option<ArrayRef> {
    Some(match array.data_type() {
        DataType::LargeUtf8 => {
            let starts = array.as_string::<i64>().value_offsets();
            let lengths = starts.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect::<Vec<_>>();
            Arc::new(UInt64Array::new(lengths.into(), array.nulls().cloned()))
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

/// Whether values of a type, or any values inside them, may be missing.
fn any_nullable(data_type: &DataType, nullable: bool) -> bool {
    nullable
        || match data_type {
            DataType::LargeList(item) => any_nullable(item.data_type(), item.is_nullable()),
            DataType::Struct(fields) => fields.iter().any(|field| any_nullable(field.data_type(), field.is_nullable())),
            _ => false,
        }
}

/// A column of a file, as a container of rows.
#[derive(Debug)]
struct FileColumn {
    file: Arc<TrevniFile>,
    at: usize,
}

impl RowsContainer for FileColumn {
    fn is_decoded(&self) -> bool {
        true
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.file.places(self.at, interrupt).map(drop)
    }
}

impl Rows for ColumnRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.facts.len, &self.path)?;
        if self.facts.data_type == DataType::Null {
            return Ok(Arc::new(NullArray::new(count)));
        }
        self.made(&self.part, &self.facts.data_type, &range, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        if self.facts.stored.datatype.is_some() || self.facts.data_type == DataType::Null {
            return Ok(Fitting::fixed(&range, fixed_width(&self.facts.data_type), bytes));
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

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        Ok(outline(&self.array(range, interrupt)?))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl StoredBytes for ColumnRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let width = self.facts.stored.width.ok_or(Error::NotStored)?;
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.facts.len.saturating_mul(width));
        let end = end.ok_or_else(|| self.failed(format!("{length} bytes from byte {offset} on")))?;
        let (range, before) = (offset / width..end.div_ceil(width), out.len());
        let TrevniSchema::Values(column) = self.part else { return Err(self.failed("rows of no fixed width".into())) };
        let appended = self.for_each(column, &range, interrupt, &mut |Piece { first, block, rows }| {
            // These are the requested bytes of these rows.
            let [from, to] = [rows.start, rows.end].map(|row| (first + row as u64) * width);
            let wanted = from.max(offset)..to.min(end);
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
}

impl Coded for ColumnRows {
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let stored = self.facts.stored.datatype.as_deref().filter(|_| self.facts.data_type.is_primitive())?;
        let count = bytes.len() / usize::try_from(stored.size).ok()?;
        decode(stored, bytes, count, &HeapBytes(&[]), &mut Oddities::new()).ok()
    }
}
