//! Tests over rows in memory, read back by the reader of `arrow_ipc`.

mod damage;
mod layout;
mod reading;
mod types;

use std::fmt;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow_ipc::reader::FileReader;

use super::table::Grain;
use super::{IpcColumn, IpcView};
use crate::catalogue::{ByteOrder, Class, Datatype, Field, FloatFormat, Member, Padding};
use crate::source::Interrupt;
use crate::store::{Error, RowRange, Rows};
use crate::views::rendered::BlockCache;
use crate::views::{Effort, View};

/// Rows of an Arrow array; those of `broken` cannot be read.
struct Memory {
    array: ArrayRef,
    nullable: bool,
    /// The stored bytes, and how many a row has.
    stored: Option<(Vec<u8>, u64)>,
    broken: Range<u64>,
    calls: AtomicUsize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.array.len())
    }
}

impl Memory {
    fn new(array: ArrayRef) -> Self {
        Self { nullable: array.is_nullable(), array, stored: None, broken: 0..0, calls: AtomicUsize::new(0) }
    }

    /// The values are what is stored.
    fn stored(array: ArrayRef) -> Self {
        let data = array.to_data();
        let bytes = data.buffers()[0].as_slice().to_vec();
        let width = (bytes.len() / array.len().max(1)) as u64;
        Self { stored: Some((bytes, width)), ..Self::new(array) }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn fails() -> Error {
        Error::Chunk { path: "/t/x".into(), chunk: 0, address: 0, reason: "broken".into() }
    }
}

impl Rows for Memory {
    fn len(&self) -> u64 {
        self.array.len() as u64
    }

    fn data_type(&self) -> &DataType {
        self.array.data_type()
    }

    fn nullable(&self) -> bool {
        self.nullable
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(range.start <= range.end && range.end <= self.len());
        if range.start < self.broken.end && self.broken.start < range.end {
            return Err(Self::fails());
        }
        Ok(self.array.slice(range.start as usize, (range.end - range.start) as usize))
    }

    fn stored_width(&self) -> Option<u64> {
        self.stored.as_ref().map(|(_, width)| *width)
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        let (bytes, width) = self.stored.as_ref().unwrap();
        if offset < self.broken.end * width && self.broken.start * width < offset + length as u64 {
            return Err(Self::fails());
        }
        out.extend_from_slice(&bytes[offset as usize..offset as usize + length]);
        Ok(())
    }

    fn natural_rows(&self) -> Option<u64> {
        None
    }
}

fn column(name: &str, rows: Arc<dyn Rows>, datatype: Option<Datatype>) -> IpcColumn {
    IpcColumn {
        name: name.into(),
        rows,
        datatype,
        ordered: false,
        is_label: false,
        units: None,
        units_vocabulary: None,
        description: None,
        learner: None,
    }
}

fn memory(name: &str, array: ArrayRef, datatype: Option<Datatype>) -> IpcColumn {
    column(name, Arc::new(Memory::new(array)), datatype)
}

fn view(columns: Vec<IpcColumn>) -> IpcView {
    IpcView::new(columns, Arc::new(BlockCache::new(16 << 20)), None)
}

/// Small enough that a few rows are several batches and many pieces.
const SMALL: Grain = Grain { batch: 16, piece: 64, variable: 4 };

fn size(view: &IpcView) -> usize {
    view.size(Effort::Quick, &Interrupt::new()).unwrap().bytes() as usize
}

/// All bytes, as many as the size says.
fn whole(view: &IpcView) -> Vec<u8> {
    let mut out = Vec::new();
    view.read(0, usize::MAX, &mut out, &Interrupt::new()).unwrap();
    assert_eq!(out.len(), size(view));
    out
}

/// What a reader makes of the bytes: it checks offsets, keys, views and UTF-8.
fn read(bytes: Vec<u8>) -> (SchemaRef, Vec<RecordBatch>) {
    let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
    (reader.schema(), reader.map(Result::unwrap).collect())
}

/// The only column, in one array.
fn only(column: IpcColumn) -> ArrayRef {
    let (schema, batches) = read(whole(&view(vec![column])));
    arrow::compute::concat_batches(&schema, &batches).unwrap().column(0).clone()
}

fn integer(size: u64, signed: bool) -> Datatype {
    let precision = size as u32 * 8;
    Datatype { size, class: Class::Integer { signed, order: ByteOrder::Little, precision, offset: 0 } }
}

fn double() -> Datatype {
    Datatype { size: 8, class: Class::Float { order: ByteOrder::Little, format: FloatFormat::Double } }
}

fn fixed_string(size: u64) -> Datatype {
    let charset = crate::catalogue::Charset::Utf8;
    Datatype { size, class: Class::FixedString { padding: Padding::NullPadded, charset } }
}

fn enumeration(size: u64, members: &[(&str, i128)]) -> Datatype {
    let members = members.iter().map(|&(name, value)| Member { name: name.into(), value }).collect();
    Datatype { size, class: Class::Enum { base: Box::new(integer(size, true)), members } }
}

fn compound(size: u64, fields: &[(&str, u64, Datatype)]) -> Datatype {
    let field = |(name, offset, datatype): &(&str, u64, Datatype)| Field {
        name: (*name).into(),
        offset: *offset,
        datatype: datatype.clone(),
    };
    Datatype { size, class: Class::Compound { fields: fields.iter().map(field).collect() } }
}
