//! Compounds, complex numbers, arrays and variable-length sequences.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, StructArray};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};

use super::{DecodeError, Oddities, VariableParts, arrow_type, decode};
use crate::catalogue::{CompoundField, Datatype};

/// The type of an array: nested fixed-size lists, one per dimension, the last innermost. `None`: an extent is zero, or
/// exceeds Arrow's 32 bits.
pub(super) fn array_type(dims: &[u64], base: &Datatype) -> Option<DataType> {
    dims.iter().rev().try_fold(arrow_type(base), |inner, extent| {
        let extent = i32::try_from(*extent).ok().filter(|extent| *extent > 0)?;
        Some(DataType::FixedSizeList(Arc::new(ArrowField::new_list_field(inner, true)), extent))
    })
}

/// One field of every element, concatenated.
fn gather(bytes: &[u8], stride: usize, offset: u64, size: u64) -> Option<Buffer> {
    let offset = usize::try_from(offset).ok()?;
    let size = usize::try_from(size).ok()?;
    let end = offset.checked_add(size).filter(|end| *end <= stride)?;
    let mut out = MutableBuffer::with_capacity(bytes.len() / stride.max(1) * size);
    for cell in bytes.chunks_exact(stride.max(1)) {
        out.extend_from_slice(&cell[offset..end]);
    }
    Some(out.into())
}

pub(super) fn compound(
    bytes: &[u8],
    width: usize,
    count: usize,
    fields: &[CompoundField],
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let mut columns = Vec::with_capacity(fields.len());
    let mut named = Vec::with_capacity(fields.len());
    for field in fields {
        let cells = gather(bytes, width, field.offset, field.datatype.size)
            .ok_or_else(|| DecodeError::new(0, format!("field {} lies outside its compound", field.name)))?;
        let column = decode(&field.datatype, cells, count, parts, oddities)?;
        named.push(ArrowField::new(field.name.to_string(), column.data_type().clone(), true));
        columns.push(column);
    }
    if columns.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
    }
    StructArray::try_new(Fields::from(named), columns, None)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| DecodeError::new(0, error.to_string()))
}

pub(super) fn complex(
    bytes: &[u8],
    width: usize,
    count: usize,
    base: &Datatype,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let part = |name: &str, offset| CompoundField { name: name.into(), offset, datatype: base.clone() };
    compound(bytes, width, count, &[part("re", 0), part("im", base.size)], parts, oddities)
}

pub(super) fn arrays(
    bytes: Buffer,
    dims: &[u64],
    base: &Datatype,
    count: usize,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let per_row = crate::catalogue::product(dims).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let total = per_row.and_then(|n| n.checked_mul(count));
    let (Some(per_row), Some(total)) = (per_row, total) else {
        return Err(DecodeError::new(0, format!("array extents {dims:?} overflow")));
    };
    let mut inner = Oddities::new();
    let mut array = decode(base, bytes, total, parts, &mut inner)
        .map_err(|error| DecodeError { row: error.row / per_row as u64, ..error })?;
    oddities.extend(inner.iter().map(|(oddity, at)| (oddity, at / per_row as u64)));
    for extent in dims.iter().rev() {
        let extent = i32::try_from(*extent).map_err(|_| DecodeError::new(0, "array extent past 2^31"))?;
        let field = Arc::new(ArrowField::new_list_field(array.data_type().clone(), true));
        array = Arc::new(
            FixedSizeListArray::try_new(field, extent, array, None)
                .map_err(|error| DecodeError::new(0, error.to_string()))?,
        );
    }
    Ok(array)
}

pub(super) fn sequences(
    bytes: &[u8],
    width: usize,
    base: &Datatype,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let mut offsets = Vec::with_capacity(bytes.len() / width.max(1) + 1);
    offsets.push(0i64);
    let mut values = MutableBuffer::new(0);
    let mut length = 0usize;
    let element = usize::try_from(base.size).unwrap_or(usize::MAX).max(1);
    let mut cursor = parts.cursor();
    for (row, descriptor) in bytes.chunks_exact(width.max(1)).enumerate() {
        let cells = cursor.resolve(descriptor, base.size).map_err(|cause| DecodeError { row: row as u64, cause })?;
        length += cells.len() / element;
        values.extend_from_slice(&cells[..cells.len() / element * element]);
        offsets.push(length as i64);
    }
    let mut inner = Oddities::new();
    let row_of = |element: u64| offsets.partition_point(|offset| *offset as u64 <= element).saturating_sub(1) as u64;
    let array = decode(base, values.into(), length, parts, &mut inner)
        .map_err(|error| DecodeError { row: row_of(error.row), ..error })?;
    oddities.extend(inner.iter().map(|(oddity, element)| (oddity, row_of(element))));
    let field = Arc::new(ArrowField::new_list_field(array.data_type().clone(), true));
    LargeListArray::try_new(field, OffsetBuffer::new(offsets.into()), array, None)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| DecodeError::new(0, error.to_string()))
}
