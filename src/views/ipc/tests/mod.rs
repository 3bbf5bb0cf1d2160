//! Tests over rows in memory, read back by the reader of `arrow_ipc`.

mod damage;
mod layout;
mod lengths;
mod reading;
mod types;

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, SchemaRef};

use super::table::Grain;
use super::{IpcColumn, IpcView};
use crate::catalogue::{ByteOrder, Class, Datatype, EnumerationMember, FloatFormat, Padding};
use crate::source::Interrupt;
use crate::store::rows::in_memory::MemoryRows;
use crate::store::{Answer, Hints, Rows};
use crate::table::Origin;
use crate::views::rendered::BlockCache;
use crate::views::{Effort, View, gathered};

fn column(name: &str, rows: Arc<dyn Rows>, datatype: Option<Datatype>) -> IpcColumn {
    IpcColumn {
        name: name.into(),
        rows,
        hints: datatype.as_ref().map(Hints::of).unwrap_or_default(),
        is_label: false,
        origin: Origin::default(),
        notes: Vec::new(),
        learner: None,
    }
}

fn memory(name: &str, array: ArrayRef, datatype: Option<Datatype>) -> IpcColumn {
    column(name, Arc::new(MemoryRows::new(array)), datatype)
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
    let out = gathered(view, 0, usize::MAX).unwrap();
    assert_eq!(out.len(), size(view));
    out
}

/// Reads the bytes back with a reader that checks offsets, keys, views and UTF-8.
fn read(bytes: Vec<u8>) -> (SchemaRef, Vec<RecordBatch>) {
    let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
    (reader.schema(), reader.map(Result::unwrap).collect())
}

/// The only column, in one array.
fn only(column: IpcColumn) -> ArrayRef {
    let (schema, batches) = read(whole(&view(vec![column])));
    arrow_select::concat::concat_batches(&schema, &batches).unwrap().column(0).clone()
}

fn integer(size: u64, signed: bool) -> Datatype {
    Datatype::integer(size, signed, ByteOrder::Little)
}

fn double() -> Datatype {
    Datatype { size: 8, class: Class::Float { order: ByteOrder::Little, format: FloatFormat::Double } }
}

fn fixed_string(size: u64) -> Datatype {
    let charset = crate::catalogue::Charset::Utf8;
    Datatype { size, class: Class::FixedString { padding: Padding::NullPadded, charset } }
}

fn enumeration(size: u64, members: &[(&str, i128)]) -> Datatype {
    let members = members.iter().map(|&(name, value)| EnumerationMember { name: name.into(), value }).collect();
    Datatype { size, class: Class::Enum { base: Box::new(integer(size, true)), members } }
}
