//! Integers and floating-point numbers of any width and byte order.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::DataType;
use half::f16;

use crate::catalogue::{ByteOrder, FloatFormat};

/// Positions of an integer's significant bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitPlaces {
    /// Bytes, at most 8.
    pub width: usize,
    /// Byte order, little or big.
    pub order: ByteOrder,
    /// Significant bits.
    pub precision: u32,
    /// Position of the lowest significant bit.
    pub offset: u32,
}

impl BitPlaces {
    /// Whether every bit is significant.
    fn is_full(self) -> bool {
        self.offset == 0 && self.precision as usize == self.width * 8
    }

    /// The significant bits of one integer, sign-extended if `signed`.
    fn read(self, cell: &[u8], signed: bool) -> u64 {
        let mut bytes = [0; 8];
        match self.order {
            ByteOrder::Big => {
                for (to, from) in bytes.iter_mut().zip(cell.iter().rev()) {
                    *to = *from;
                }
            }
            _ => bytes[..cell.len()].copy_from_slice(cell),
        }
        let raw = u64::from_le_bytes(bytes).checked_shr(self.offset).unwrap_or(0);
        let unused = 64u32.saturating_sub(self.precision);
        if unused >= 64 {
            0
        } else if signed {
            (((raw << unused) as i64) >> unused) as u64
        } else {
            (raw << unused) >> unused
        }
    }
}

/// Whether the decoders below know the byte order.
pub(super) fn is_ordered(order: ByteOrder) -> bool {
    matches!(order, ByteOrder::Little | ByteOrder::Big)
}

/// The narrowest Arrow integer that holds `size` bytes (1 to 8).
pub(super) fn integer_type(size: u64, signed: bool) -> DataType {
    match (size, signed) {
        (0..=1, true) => DataType::Int8,
        (0..=1, false) => DataType::UInt8,
        (2, true) => DataType::Int16,
        (2, false) => DataType::UInt16,
        (3..=4, true) => DataType::Int32,
        (3..=4, false) => DataType::UInt32,
        (_, true) => DataType::Int64,
        (_, false) => DataType::UInt64,
    }
}

/// Integers in the type from [`integer_type`].
pub(super) fn integers(bytes: Buffer, layout: BitPlaces, signed: bool) -> ArrayRef {
    match integer_type(layout.width as u64, signed) {
        DataType::Int8 => widen::<Int8Type>(bytes, layout, true, |v| v as i8),
        DataType::UInt8 => widen::<UInt8Type>(bytes, layout, false, |v| v as u8),
        DataType::Int16 => widen::<Int16Type>(bytes, layout, true, |v| v as i16),
        DataType::UInt16 => widen::<UInt16Type>(bytes, layout, false, |v| v as u16),
        DataType::Int32 => widen::<Int32Type>(bytes, layout, true, |v| v as i32),
        DataType::UInt32 => widen::<UInt32Type>(bytes, layout, false, |v| v as u32),
        DataType::Int64 => widen::<Int64Type>(bytes, layout, true, |v| v as i64),
        _ => widen::<UInt64Type>(bytes, layout, false, |v| v),
    }
}

/// The three conversions from stored integers to Arrow: unchanged, byte-swapped, bit by bit.
fn widen<T: ArrowPrimitiveType>(
    bytes: Buffer,
    layout: BitPlaces,
    signed: bool,
    narrow: impl Fn(u64) -> T::Native,
) -> ArrayRef
where
    T::Native: SwapBytes,
{
    let native = layout.width == size_of::<T::Native>() && layout.is_full();
    if native {
        return in_order::<T>(bytes, layout.order);
    }
    let values: Vec<T::Native> =
        bytes.chunks_exact(layout.width.max(1)).map(|cell| narrow(layout.read(cell, signed))).collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

/// Values of a native width, swapped if the file's order differs from the machine's.
fn in_order<T: ArrowPrimitiveType>(bytes: Buffer, order: ByteOrder) -> ArrayRef
where
    T::Native: SwapBytes,
{
    let swapped = (order == ByteOrder::Big) != cfg!(target_endian = "big");
    let values = aligned::<T>(bytes);
    if !swapped || size_of::<T::Native>() == 1 {
        return Arc::new(PrimitiveArray::<T>::new(values, None));
    }
    Arc::new(PrimitiveArray::<T>::new(values.iter().map(|value| value.swapped()).collect::<Vec<_>>().into(), None))
}

/// The bytes as a typed buffer: in place if they are aligned, otherwise copied.
fn aligned<T: ArrowPrimitiveType>(bytes: Buffer) -> ScalarBuffer<T::Native> {
    let bytes =
        if bytes.as_ptr().align_offset(align_of::<T::Native>()) == 0 { bytes } else { Buffer::from(bytes.as_slice()) };
    ScalarBuffer::from(bytes)
}

/// IEEE numbers of up to 64 bits; `None` for any other format.
pub(super) fn floats(bytes: Buffer, order: ByteOrder, format: FloatFormat) -> Option<ArrayRef> {
    match format {
        FloatFormat::Half => Some(in_order::<Float16Type>(bytes, order)),
        FloatFormat::Single => Some(in_order::<Float32Type>(bytes, order)),
        FloatFormat::Double => Some(in_order::<Float64Type>(bytes, order)),
        FloatFormat::Extended | FloatFormat::Quadruple | FloatFormat::Other { .. } => None,
    }
}

/// Times whose upper half counts seconds and whose lower half counts microseconds, as seconds or as whole microseconds.
pub(super) fn split_seconds(bytes: Buffer, order: ByteOrder, is_integer: bool) -> ArrayRef {
    let stored = in_order::<Int64Type>(bytes, order);
    let stored = stored.as_primitive::<Int64Type>();
    if is_integer {
        // Both halves have 32 bits, so the sum cannot overflow.
        return Arc::new(stored.unary::<_, Int64Type>(|time| (time >> 32) * 1_000_000 + i64::from(time as i32)));
    }
    Arc::new(stored.unary::<_, Float64Type>(|time| 1e-6 * f64::from(time as i32) + (time >> 32) as f64))
}

/// Swaps the bytes of a value.
trait SwapBytes: Copy {
    fn swapped(self) -> Self;
}

macro_rules! swap_integers {
    ($($native:ty),*) => {$(
        impl SwapBytes for $native {
            fn swapped(self) -> Self {
                self.swap_bytes()
            }
        }
    )*};
}
swap_integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! swap_floats {
    ($($native:ty),*) => {$(
        impl SwapBytes for $native {
            fn swapped(self) -> Self {
                Self::from_bits(self.to_bits().swap_bytes())
            }
        }
    )*};
}
swap_floats!(f16, f32, f64);
