//! Converts Arrow arrays to stored elements.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, LargeStringArray, UInt64Array, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use super::types;

/// Why values could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The values have no stored form, for this reason.
    #[error("{0}")]
    Wrong(String),
    /// A value contradicts a choice that was made without seeing all values, in this way.
    #[error("{0}")]
    Surprise(&'static str),
    /// The consumer of chunks has stopped.
    #[error("interrupted")]
    Stopped,
}

/// How the values of an array become elements of a fixed width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellEncoding {
    /// Numbers of this many bytes, stored as they are in memory.
    Number(usize),
    /// Integers, floats or decimals, stored in another width: this many bytes.
    Widened(usize),
    /// Booleans, stored in a byte each.
    Boolean,
    /// Text, padded with NUL to this many bytes.
    Text(usize),
    /// Text, padded with at least one NUL to this many bytes.
    Terminated(usize),
    /// Binary values of this many bytes.
    Bytes(usize),
    /// Fields, stored one after the other.
    Fields(Vec<CellEncoding>),
    /// This many items, stored one after the other.
    Items(Box<CellEncoding>, usize),
}

impl CellEncoding {
    /// Number of bytes in an element.
    pub fn width(&self) -> usize {
        match self {
            Self::Number(width)
            | Self::Widened(width)
            | Self::Text(width)
            | Self::Terminated(width)
            | Self::Bytes(width) => *width,
            Self::Boolean => 1,
            Self::Fields(fields) => fields.iter().map(Self::width).sum(),
            Self::Items(item, count) => item.width() * count,
        }
    }
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Wrong(error.to_string())
}

/// Casts an array to one of a few types: numbers, booleans, and texts, bytes or lists with 64-bit offsets. Times and
/// narrow decimals become integers.
///
/// # Errors
/// The type cannot be cast to any of these.
pub(super) fn normal(array: &ArrayRef) -> Result<ArrayRef, Failure> {
    let to = match array.data_type() {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
            return normal(&arrow_cast::cast(array, types::plain(array.data_type())).map_err(wrong)?);
        }
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        DataType::List(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::LargeList(item.clone())
        }
        DataType::Timestamp(..) | DataType::Time64(_) | DataType::Duration(_) | DataType::Date64 => DataType::Int64,
        DataType::Date32 | DataType::Time32(_) => DataType::Int32,
        DataType::Decimal32(..) => {
            return Ok(Arc::new(array.as_primitive::<Decimal32Type>().reinterpret_cast::<Int32Type>()));
        }
        DataType::Decimal64(..) => {
            return Ok(Arc::new(array.as_primitive::<Decimal64Type>().reinterpret_cast::<Int64Type>()));
        }
        _ => return Ok(array.clone()),
    };
    arrow_cast::cast(array, &to).map_err(wrong)
}

/// Splits lists with 64-bit offsets into their lengths and their items, back to back. A null list has length 0.
///
/// # Errors
/// The array does not hold such lists.
pub(super) fn lists(array: &ArrayRef) -> Result<(Vec<u64>, ArrayRef), Failure> {
    let lists = array.as_list_opt::<i64>().ok_or_else(|| wrong(format!("{} is no list", array.data_type())))?;
    let offsets = lists.value_offsets();
    let lengths = (0..lists.len()).map(|row| {
        let [from, to] = [offsets[row], offsets[row + 1]];
        if lists.is_null(row) { 0 } else { (to - from) as u64 }
    });
    let lengths: Vec<u64> = lengths.collect();
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let within = lists.values().slice(first as usize, (last - first) as usize);
    if lengths.iter().sum::<u64>() == (last - first) as u64 {
        return Ok((lengths, within));
    }
    let kept = (0..lists.len()).filter(|row| lists.is_valid(*row));
    let places: UInt64Array =
        kept.flat_map(|row| (offsets[row] - first) as u64..(offsets[row + 1] - first) as u64).collect();
    Ok((lengths, arrow_select::take::take(&within, &places, None).map_err(wrong)?))
}

/// The items of fixed-size lists, back to back. The items of a null list are null.
///
/// # Errors
/// The array does not hold such lists.
pub(super) fn items(array: &ArrayRef) -> Result<ArrayRef, Failure> {
    let lists = array.as_fixed_size_list_opt().ok_or_else(|| wrong(format!("{} is no list", array.data_type())))?;
    let count = lists.value_length() as usize;
    let items = lists.values().slice(0, lists.len() * count);
    let nulls = lists.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.expand(count));
    masked(&items, nulls.as_ref())
}

/// The array with these nulls in addition to its own.
///
/// # Errors
/// The array and the nulls have different lengths.
pub(super) fn masked(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, Failure> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(array.clone()) };
    if *array.data_type() == DataType::Null {
        return Ok(array.clone());
    }
    let nulls = NullBuffer::union(array.nulls(), Some(nulls));
    array.to_data().into_builder().nulls(nulls).build().map(make_array).map_err(wrong)
}

/// Appends the elements of an array, with `fill` for nulls. Unless all values are known, a value that equals `fill` is
/// a [`Failure::Surprise`].
///
/// # Errors
/// See [`Failure`].
pub(super) fn append(
    cells: &CellEncoding,
    array: &ArrayRef,
    fill: Option<&[u8]>,
    is_known: bool,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let start = out.len();
    let width = cells.width();
    match cells {
        CellEncoding::Number(_) => {
            let data = array.to_data();
            let (from, length) = (data.offset() * width, data.len() * width);
            let bytes = data.buffers().first().and_then(|buffer| buffer.as_slice().get(from..from + length));
            out.extend_from_slice(bytes.ok_or_else(|| wrong(format!("{} is no number", array.data_type())))?);
        }
        CellEncoding::Widened(_) => widen(array, width, out)?,
        CellEncoding::Boolean => {
            let values = array.as_boolean_opt().ok_or_else(|| wrong("no booleans"))?.values();
            out.extend((0..values.len()).map(|row| u8::from(values.value(row))));
        }
        CellEncoding::Text(most) | CellEncoding::Terminated(most) => {
            let most = most - usize::from(matches!(cells, CellEncoding::Terminated(_)));
            let texts = array.as_string_opt::<i64>().ok_or_else(|| wrong("no text"))?;
            no_nul(texts)?;
            out.resize(start + texts.len() * width, 0);
            let room = out.get_mut(start..).unwrap_or_default();
            for (cell, text) in room.chunks_exact_mut(width).zip(texts.iter()) {
                let Some(text) = text else { continue };
                let cell = cell.get_mut(..text.len()).filter(|cell| cell.len() <= most).ok_or_else(|| {
                    wrong(format!(
                        "a text of {} bytes is longer than the {most} that the column has room for: write all rows anew \
                         with --mode replace, and with --string vlen where texts of any length may follow",
                        text.len()
                    ))
                })?;
                cell.copy_from_slice(text.as_bytes());
            }
        }
        CellEncoding::Bytes(_) => {
            let array = array.as_fixed_size_binary_opt().ok_or_else(|| wrong("no bytes"))?;
            out.extend_from_slice(array.value_data().get(..array.len() * width).unwrap_or_default());
        }
        CellEncoding::Fields(fields) => {
            let array = array.as_struct_opt().ok_or_else(|| wrong("no struct"))?;
            out.resize(start + array.len() * width, 0);
            let mut place = 0;
            for (cells, field) in fields.iter().zip(array.columns()) {
                let field = normal(field)?;
                no_nulls(&field, array.nulls(), is_known)?;
                let mut bytes = Vec::new();
                append(cells, &field, Some(&vec![0; cells.width()]), true, &mut bytes)?;
                let room = out.get_mut(start..).unwrap_or_default();
                for (row, cell) in room.chunks_exact_mut(width).zip(bytes.chunks_exact(cells.width())) {
                    row[place..place + cell.len()].copy_from_slice(cell);
                }
                place += cells.width();
            }
        }
        CellEncoding::Items(item, count) => {
            let list = array.as_fixed_size_list_opt().ok_or_else(|| wrong("no list of one length"))?;
            let values = normal(&list.values().slice(0, list.len() * count))?;
            let around = list.nulls().map(|nulls| nulls.expand(*count));
            no_nulls(&values, around.as_ref(), is_known)?;
            append(item, &values, Some(&vec![0; item.width()]), true, out)?;
        }
    }
    let written = out.get_mut(start..).unwrap_or_default();
    if written.len() != array.len() * width {
        return Err(wrong("elements of another width"));
    }
    if let Some(fill) = fill.filter(|_| !is_known)
        && collides(written, fill, array)
    {
        return Err(Failure::Surprise("a value is the one that stands for missing ones"));
    }
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
    let fill = fill.ok_or(Failure::Surprise("a value is missing, and no value stands for missing ones"))?;
    for (row, cell) in written.chunks_exact_mut(width).enumerate() {
        if nulls.is_null(row) {
            cell.copy_from_slice(fill);
        }
    }
    Ok(())
}

/// Fails if a value is null although its row is not.
fn no_nulls(values: &ArrayRef, around: Option<&NullBuffer>, is_known: bool) -> Result<(), Failure> {
    let all = NullBuffer::union(values.nulls(), around).map_or(0, |nulls| nulls.null_count());
    if all == around.map_or(0, NullBuffer::null_count) {
        return Ok(());
    }
    let within = "values are missing within a row that is there";
    if is_known { Err(wrong(within)) } else { Err(Failure::Surprise(within)) }
}

/// Fails if a text contains a NUL, which HDF5's strings cannot hold.
pub(super) fn no_nul(texts: &LargeStringArray) -> Result<(), Failure> {
    let (first, last) = (texts.value_offsets().first(), texts.value_offsets().last());
    let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
    let bytes = texts.value_data().get(first as usize..last as usize).unwrap_or_default();
    match memchr::memchr(0, bytes) {
        // The bytes of a null text do not count.
        Some(_) if texts.iter().flatten().any(|text| text.contains('\0')) => Err(wrong(
            "a text has a NUL, which HDF5's strings cannot hold: write all rows anew with --mode replace, which then \
             stores lists of bytes",
        )),
        _ => Ok(()),
    }
}

/// Whether a value that is not null has the stored form of `fill`.
fn collides(cells: &[u8], fill: &[u8], array: &ArrayRef) -> bool {
    fn met<const N: usize>(cells: &[u8], fill: &[u8]) -> bool {
        let Ok(fill) = <[u8; N]>::try_from(fill) else { return true };
        cells.as_chunks::<N>().0.iter().fold(false, |met, cell| met | (*cell == fill))
    }
    let any = match fill.len() {
        1 => met::<1>(cells, fill),
        2 => met::<2>(cells, fill),
        4 => met::<4>(cells, fill),
        8 => met::<8>(cells, fill),
        _ => true,
    };
    any && cells.chunks_exact(fill.len().max(1)).enumerate().any(|(row, cell)| cell == fill && array.is_valid(row))
}

fn widen(array: &ArrayRef, width: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    if let Some(decimals) = array.as_primitive_opt::<Decimal128Type>() {
        for value in decimals.values() {
            out.extend_from_slice(value.to_le_bytes().get(..width).ok_or_else(|| wrong("a decimal of 16 bytes"))?);
        }
        return Ok(());
    }
    // Integers and floating-point numbers stay exact in a wider type of their kind.
    let to = match (array.data_type(), width) {
        (DataType::Float16, 4) => DataType::Float32,
        (DataType::Float16 | DataType::Float32, _) => DataType::Float64,
        (signed, 2) if signed.is_signed_integer() => DataType::Int16,
        (signed, 4) if signed.is_signed_integer() => DataType::Int32,
        (signed, _) if signed.is_signed_integer() => DataType::Int64,
        (_, 2) => DataType::UInt16,
        (_, 4) => DataType::UInt32,
        _ => DataType::UInt64,
    };
    let wide = arrow_cast::cast(array, &to).map_err(wrong)?;
    append(&CellEncoding::Number(width), &wide, Some(&vec![0; width]), true, out)
}

/// The item field of a list type. `None`: not a list type.
pub(super) fn item_of(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}
