//! Integers and bytes that a file says to be of another type: dates, times of day, decimals, narrower integers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::{DataType, TimeUnit};

use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Error, Hints, RowRange, Rows, Span};

/// Rows shown as a type that their values stand for. Bytes as stored stay as they are.
#[derive(Debug)]
pub struct TypedRows {
    rows: Arc<dyn Rows>,
    data_type: DataType,
    path: String,
}

impl TypedRows {
    /// `None` where values of the rows do not stand for this type. 32-bit integers stand for dates and for milliseconds of
    /// a day, 64-bit ones for finer times of day, signed ones for decimals, all for narrower ones of their kind; 16 bytes
    /// stand for decimals.
    pub fn new(path: String, rows: Arc<dyn Rows>, data_type: DataType) -> Option<Self> {
        let stored = rows.data_type();
        let is_signed = stored.is_signed_integer();
        let fits = match &data_type {
            DataType::Date32 | DataType::Time32(TimeUnit::Millisecond) => *stored == DataType::Int32,
            DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => *stored == DataType::Int64,
            DataType::Decimal128(..) => is_signed || *stored == DataType::FixedSizeBinary(16),
            whole if whole.is_integer() => stored.is_integer() && whole.is_signed_integer() == is_signed,
            _ => false,
        };
        fits.then_some(Self { rows, data_type, path })
    }

    fn typed(&self, array: &ArrayRef) -> Option<ArrayRef> {
        Some(match &self.data_type {
            DataType::Date32 => Arc::new(array.as_primitive_opt::<Int32Type>()?.reinterpret_cast::<Date32Type>()),
            DataType::Time32(_) => {
                Arc::new(array.as_primitive_opt::<Int32Type>()?.reinterpret_cast::<Time32MillisecondType>())
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                Arc::new(array.as_primitive_opt::<Int64Type>()?.reinterpret_cast::<Time64MicrosecondType>())
            }
            DataType::Time64(_) => {
                Arc::new(array.as_primitive_opt::<Int64Type>()?.reinterpret_cast::<Time64NanosecondType>())
            }
            DataType::Decimal128(..) => {
                let decimals: Decimal128Array = match array.as_fixed_size_binary_opt() {
                    Some(cells) => {
                        let value = |cell: Option<&[u8]>| Some(i128::from_le_bytes(cell?.try_into().ok()?));
                        cells.iter().map(value).collect()
                    }
                    None => widen::signed(array.as_ref())?.unary(i128::from),
                };
                Arc::new(decimals.with_data_type(self.data_type.clone()))
            }
            // What does not fit is missing.
            narrow => arrow_cast::cast(array, narrow).ok()?,
        })
    }
}

impl Rows for TypedRows {
    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.rows.examine(interrupt)
    }

    fn nullable(&self) -> bool {
        self.rows.nullable() || self.data_type.is_integer()
    }

    fn hints(&self) -> Hints {
        Hints { stored: false, ..Hints::default() }
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.rows.array(range, interrupt)?;
        self.typed(&array).ok_or_else(|| Error::Unsupported {
            path: self.path.clone(),
            reason: format!("{} as {}", array.data_type(), self.data_type),
        })
    }

    fn stored_type(&self) -> Option<&Datatype> {
        self.rows.stored_type()
    }

    fn stored_width(&self) -> Option<u64> {
        self.rows.stored_width()
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.rows.append_stored(offset, length, out, interrupt)
    }

    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.rows.stored_span(offset, length, interrupt)
    }

    fn is_decoded(&self) -> bool {
        self.rows.is_decoded()
    }

    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        self.rows.alike_until(row, interrupt)
    }

    fn natural_rows(&self) -> Option<u64> {
        self.rows.natural_rows()
    }

    fn stride(&self) -> Option<u64> {
        self.rows.stride()
    }
}
