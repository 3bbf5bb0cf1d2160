//! Values in PLAIN encoding (parquet-format, `Encodings.md`): little-endian cells, bits, texts preceded by their
//! lengths. Nulls are left out.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, ByteArrayType};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray};
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_buffer::{ArrowNativeType, ToByteSlice};
use arrow_schema::{DataType, TimeUnit};

use super::levels::append_bits;

use crate::views::Misfit;

/// The values of an array that belong to a page.
#[derive(Debug, PartialEq)]
pub(in crate::views::parquet) enum PageSelection {
    /// All values.
    All,
    /// Values whose bit is set: there is a bit for each value.
    Bits(BooleanBuffer),
    /// Values from each start up to its end, in rising order.
    Spans(Vec<(usize, usize)>),
}

impl PageSelection {
    /// Calls `span` with start and end of each run of selected values among `len`.
    pub fn spans(&self, len: usize, mut span: impl FnMut(usize, usize) -> Result<(), Misfit>) -> Result<(), Misfit> {
        match self {
            PageSelection::All if len > 0 => span(0, len),
            PageSelection::All => Ok(()),
            PageSelection::Bits(bits) => {
                let len = len.min(bits.len());
                BitSliceIterator::new(bits.values(), bits.offset(), len).try_for_each(|(start, end)| span(start, end))
            }
            PageSelection::Spans(spans) => spans.iter().try_for_each(|&(start, end)| span(start, end)),
        }
    }

    /// Calls `run` with the selected values, in order, in runs as long as possible. Scattered values are gathered 64 at
    /// a time.
    pub fn runs<T: ArrowNativeType>(&self, values: &[T], mut run: impl FnMut(&[T])) -> Result<(), Misfit> {
        match self {
            PageSelection::All => run(values),
            PageSelection::Spans(spans) => {
                for &(start, end) in spans {
                    run(values.get(start..end).ok_or_else(|| outside(start, end, values.len()))?);
                }
            }
            PageSelection::Bits(bits) => {
                if bits.len() != values.len() {
                    return Err(outside(0, bits.len(), values.len()));
                }
                let mut words = bits.bit_chunks().iter_padded();
                for block in values.chunks(64) {
                    let word = words.next().unwrap_or(0);
                    match word.count_ones() as usize {
                        0 => {}
                        ones if ones == block.len() => run(block),
                        ones => {
                            // Stores every value, but advances only past valid ones: a loop without branches to
                            // mispredict.
                            let mut gathered = [T::default(); 64];
                            let mut at = 0usize;
                            for (i, value) in block.iter().enumerate() {
                                gathered[at & 63] = *value;
                                at += (word >> i) as usize & 1;
                            }
                            run(&gathered[..ones.min(64)]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn outside(start: usize, end: usize, len: usize) -> Misfit {
    Misfit::Array(format!("values {start}..{end} of {len}"))
}

/// Appends numbers in little-endian order.
pub(in crate::views::parquet) fn append_cells<T: ArrowNativeType>(values: &[T], out: &mut Vec<u8>) {
    let from = out.len();
    out.extend_from_slice(values.to_byte_slice());
    if cfg!(target_endian = "big") {
        out[from..].chunks_exact_mut(size_of::<T>().max(1)).for_each(<[u8]>::reverse);
    }
}

/// Appends numbers as another type, in little-endian order.
pub(in crate::views::parquet) fn append_mapped<T: Copy, U: ArrowNativeType>(
    values: &[T],
    map: impl Fn(T) -> U,
    out: &mut Vec<u8>,
) {
    for block in values.chunks(256) {
        let mut mapped = [U::default(); 256];
        for (to, from) in mapped.iter_mut().zip(block) {
            *to = map(*from);
        }
        append_cells(&mapped[..block.len()], out);
    }
}

/// Returns the bytes of the cell for values of `data_type`. `None`: these are not shown as cells.
pub(in crate::views::parquet) fn cell_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Timestamp(..) | DataType::Duration(_) => {
            Some(8)
        }
        DataType::Date32 | DataType::Time32(_) => Some(4),
        DataType::Time64(_) => Some(8),
        DataType::Decimal128(digits, _) => Some(decimal_width(*digits) as u64),
        // Narrow numbers are widened to four bytes.
        number if number.is_numeric() && number.primitive_width().is_some_and(|width| width <= 4) => Some(4),
        DataType::FixedSizeBinary(width) => u64::try_from(*width).ok(),
        _ => None,
    }
}

/// Appends the selected values of `array`: numbers, booleans or binary cells.
///
/// # Errors
/// A type without a PLAIN form here.
pub(in crate::views::parquet) fn append_fixed(
    array: &ArrayRef,
    selection: &PageSelection,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    fn number<T: ArrowPrimitiveType, U: ArrowNativeType>(
        array: &ArrayRef,
        selection: &PageSelection,
        map: impl Fn(T::Native) -> U,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        selection.runs(array.as_primitive::<T>().values(), |run| append_mapped(run, &map, out))
    }
    fn same<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        selection: &PageSelection,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        selection.runs(array.as_primitive::<T>().values(), |run| append_cells(run, out))
    }
    match array.data_type() {
        DataType::Null => Ok(()),
        DataType::Int64 => same::<Int64Type>(array, selection, out),
        DataType::UInt64 => same::<UInt64Type>(array, selection, out),
        DataType::Float64 => same::<Float64Type>(array, selection, out),
        DataType::Timestamp(TimeUnit::Millisecond, _) => same::<TimestampMillisecondType>(array, selection, out),
        DataType::Timestamp(TimeUnit::Microsecond, _) => same::<TimestampMicrosecondType>(array, selection, out),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => same::<TimestampNanosecondType>(array, selection, out),
        // Durations of all units have the same representation in memory.
        DataType::Duration(_) => {
            let counts = arrow_cast::cast(array, &DataType::Int64).map_err(|error| Misfit::Size(error.to_string()))?;
            same::<Int64Type>(&counts, selection, out)
        }
        DataType::Int32 => same::<Int32Type>(array, selection, out),
        DataType::UInt32 => same::<UInt32Type>(array, selection, out),
        DataType::Float32 => same::<Float32Type>(array, selection, out),
        DataType::Int16 => number::<Int16Type, i32>(array, selection, i32::from, out),
        DataType::UInt16 => number::<UInt16Type, i32>(array, selection, i32::from, out),
        DataType::Int8 => number::<Int8Type, i32>(array, selection, i32::from, out),
        DataType::UInt8 => number::<UInt8Type, i32>(array, selection, i32::from, out),
        DataType::Float16 => number::<Float16Type, f32>(array, selection, |half| half.to_f32(), out),
        DataType::Date32 => same::<Date32Type>(array, selection, out),
        DataType::Time32(TimeUnit::Millisecond) => same::<Time32MillisecondType>(array, selection, out),
        DataType::Time64(TimeUnit::Microsecond) => same::<Time64MicrosecondType>(array, selection, out),
        DataType::Time64(TimeUnit::Nanosecond) => same::<Time64NanosecondType>(array, selection, out),
        DataType::Decimal128(digits, _) => append_decimals(array, decimal_width(*digits), selection, out),
        DataType::Boolean => append_booleans(array.as_boolean().values(), selection, out),
        DataType::FixedSizeBinary(width) => {
            let width = usize::try_from(*width).map_err(|_| Misfit::Array(format!("binary cells of {width} bytes")))?;
            let array = array.as_fixed_size_binary();
            let cells = array.value_data();
            selection.spans(array.len(), |start, end| {
                let bytes = start.checked_mul(width).zip(end.checked_mul(width));
                let bytes = bytes.and_then(|(start, end)| cells.get(start..end));
                out.extend_from_slice(bytes.ok_or_else(|| outside(start, end, array.len()))?);
                Ok(())
            })
        }
        other => Err(Misfit::Array(format!("{other} is of no fixed width"))),
    }
}

/// Returns the bytes of a decimal of this precision (`parquet.thrift` DECIMAL): those of INT32 or INT64, otherwise the
/// fewest that hold it.
fn decimal_width(digits: u8) -> usize {
    match digits {
        0..=9 => 4,
        10..=18 => 8,
        _ => (1..16).find(|width| 10i128.pow(digits.min(38).into()) <= 1 << (8 * width - 1)).unwrap_or(16),
    }
}

/// Appends decimals: narrow ones as little-endian integers, wide ones as big-endian bytes.
fn append_decimals(array: &ArrayRef, width: usize, selection: &PageSelection, out: &mut Vec<u8>) -> Result<(), Misfit> {
    selection.runs(array.as_primitive::<Decimal128Type>().values(), |run| {
        for value in run {
            if width <= 8 {
                out.extend_from_slice(&value.to_le_bytes()[..width]);
            } else {
                out.extend_from_slice(&value.to_be_bytes()[16 - width..]);
            }
        }
    })
}

fn append_booleans(values: &BooleanBuffer, selection: &PageSelection, out: &mut Vec<u8>) -> Result<(), Misfit> {
    match selection {
        PageSelection::All => append_bits(values, out),
        PageSelection::Bits(bits) if bits.len() == values.len() => append_selected_bits(values, bits, out),
        PageSelection::Bits(bits) => return Err(outside(0, bits.len(), values.len())),
        PageSelection::Spans(spans) => {
            let mut kept = BooleanBufferBuilder::new(values.len());
            for &(start, end) in spans {
                if start > end || end > values.len() {
                    return Err(outside(start, end, values.len()));
                }
                kept.append_buffer(&values.slice(start, end - start));
            }
            append_bits(&kept.finish(), out);
        }
    }
    Ok(())
}

/// Appends those bits of `values` for which `selected`, of equal length, is set.
fn append_selected_bits(values: &BooleanBuffer, selected: &BooleanBuffer, out: &mut Vec<u8>) {
    let (mut pending, mut used) = (0u128, 0u32);
    let words = values.bit_chunks().iter_padded().zip(selected.bit_chunks().iter_padded());
    for (values, selected) in words {
        let (mut kept, mut count) = (0u64, 0u32);
        if selected == u64::MAX {
            (kept, count) = (values, 64);
        } else {
            for bit in 0..64 {
                let chosen = selected >> bit & 1;
                kept |= (values >> bit & chosen).wrapping_shl(count);
                count += chosen as u32;
            }
        }
        pending |= u128::from(kept) << used;
        used += count;
        if used >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            used -= 64;
        }
    }
    out.extend_from_slice(&pending.to_le_bytes()[..used.div_ceil(8) as usize]);
}

/// Calls `text` with each selected value of `array`: text, bytes, or a dictionary of texts.
///
/// # Errors
/// Any other type, and the errors of `text`.
fn texts(
    array: &ArrayRef,
    selection: &PageSelection,
    mut text: impl FnMut(&[u8]) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    fn each<T: ByteArrayType>(
        array: &GenericByteArray<T>,
        selection: &PageSelection,
        text: &mut dyn FnMut(&[u8]) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let bytes = array.value_data();
        let offsets = array.value_offsets();
        selection.spans(array.len(), |start, end| {
            let offsets = offsets.get(start..=end).ok_or_else(|| outside(start, end, array.len()))?;
            offsets.windows(2).try_for_each(|pair| {
                let range = pair[0].as_usize()..pair[1].as_usize();
                text(bytes.get(range).ok_or_else(|| Misfit::Array("text outside its array".into()))?)
            })
        })
    }
    if let Some(array) = array.as_string_opt::<i64>() {
        return each(array, selection, &mut text);
    }
    if let Some(array) = array.as_binary_opt::<i32>() {
        return each(array, selection, &mut text);
    }
    let dictionary =
        array.as_any_dictionary_opt().ok_or_else(|| Misfit::Array(format!("{} is no text", array.data_type())))?;
    let labels = dictionary.values().as_string_opt::<i64>();
    let labels = labels.ok_or_else(|| Misfit::Array(format!("{} is no text", array.data_type())))?;
    let mut label = |key: usize| {
        if key >= labels.len() {
            return Err(Misfit::Array(format!("label {key} of {}", labels.len())));
        }
        text(labels.value(key).as_bytes())
    };
    let keys = dictionary.keys();
    match (keys.as_primitive_opt::<Int32Type>(), keys.as_primitive_opt::<Int64Type>()) {
        (Some(keys), _) => spans_of(keys.values(), selection, |key| label(key.as_usize())),
        (_, Some(keys)) => spans_of(keys.values(), selection, |key| label(key.as_usize())),
        _ => Err(Misfit::Array(format!("keys of {}", keys.data_type()))),
    }
}

fn spans_of<T: Copy>(
    keys: &[T],
    selection: &PageSelection,
    mut key: impl FnMut(T) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    selection.spans(keys.len(), |start, end| {
        let keys = keys.get(start..end).ok_or_else(|| outside(start, end, keys.len()))?;
        keys.iter().try_for_each(|value| key(*value))
    })
}

/// Checks that a text is at most `longest` bytes, so that it cannot overflow its page; returns its length.
fn checked(text: &[u8], longest: Option<u64>) -> Result<u32, Misfit> {
    let length = text.len() as u64;
    if longest.is_some_and(|longest| length > longest) {
        return Err(Misfit::Size(format!(
            "a text of {length} bytes where at most {} were foreseen",
            longest.unwrap_or(0)
        )));
    }
    u32::try_from(length).map_err(|_| Misfit::Size(format!("a text of {length} bytes is too long for Parquet")))
}

/// Returns the number of bytes that [`append_texts`] writes.
///
/// # Errors
/// As [`append_texts`].
pub(in crate::views::parquet) fn text_bytes(
    array: &ArrayRef,
    selection: &PageSelection,
    longest: Option<u64>,
) -> Result<u64, Misfit> {
    if let (Some(texts), PageSelection::All, None) = (array.as_string_opt::<i64>(), selection, longest) {
        let offsets = texts.value_offsets();
        if let (Some(first), Some(last)) = (offsets.first(), offsets.last()) {
            return Ok((last - first) as u64 + 4 * texts.len() as u64);
        }
    }
    let mut bytes = 0u64;
    texts(array, selection, |text| {
        bytes += 4 + u64::from(checked(text, longest)?);
        Ok(())
    })?;
    Ok(bytes)
}

/// Appends the selected texts of `array`, each preceded by its length in 4 bytes.
///
/// # Errors
/// An array without texts, or a text longer than `longest`.
pub(in crate::views::parquet) fn append_texts(
    array: &ArrayRef,
    selection: &PageSelection,
    longest: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    texts(array, selection, |text| {
        out.extend_from_slice(&checked(text, longest)?.to_le_bytes());
        out.extend_from_slice(text);
        Ok(())
    })
}
