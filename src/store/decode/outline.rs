//! Outlines: the lengths of elements without their content; see [`crate::store::Rows::outline`].

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, NullArray, StructArray, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
#[cfg(test)]
use arrow_schema::DataType;
use arrow_schema::{Field, Fields};

use crate::catalogue::{Class, Datatype, product};

/// Lists of outlines, without nulls.
pub fn lists(offsets: OffsetBuffer<i64>, items: ArrayRef) -> Option<ArrayRef> {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Some(Arc::new(LargeListArray::try_new(field, offsets, items, None).ok()?))
}

/// An outline of texts in which empty ones are null.
pub fn without_empty(outline: ArrayRef) -> ArrayRef {
    let Some(lengths) = outline.as_primitive_opt::<UInt64Type>() else { return outline };
    let lengths = lengths.values();
    let valid = BooleanBuffer::collect_bool(lengths.len(), |row| lengths[row] > 0);
    Arc::new(UInt64Array::new(lengths.clone(), Some(NullBuffer::new(valid))))
}

/// Whether elements have an outline: all but sequences of variable-length elements, which lie in the heap, and
/// references, whose text is the path of their target.
pub fn has_outline(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Sequence { base } => !base.is_variable() && !base.holds_reference(),
        Class::Compound { fields } => fields.iter().all(|field| has_outline(&field.datatype)),
        Class::Array { base, .. } => has_outline(base),
        Class::Reference(_) => false,
        _ => true,
    }
}

/// The outline of `count` elements of `stride` bytes each in `bytes`, at `offset` within each; `length` reads a
/// descriptor. `None`: the type has none, or `bytes` is too short.
pub fn outline(
    datatype: &Datatype,
    (bytes, offset, stride): (&[u8], usize, usize),
    count: usize,
    length: &impl Fn(&[u8]) -> u64,
) -> Option<ArrayRef> {
    if !has_outline(datatype) {
        return None;
    }
    if !datatype.is_variable() {
        return Some(empty(datatype, count));
    }
    let cells = bytes.chunks_exact(stride.max(1)).take(count).map(|cell| cell.get(offset..).unwrap_or_default());
    if bytes.len() / stride.max(1) < count {
        return None;
    }
    match &datatype.class {
        Class::VariableString { .. } => Some(Arc::new(UInt64Array::from_iter_values(cells.map(length)))),
        Class::Sequence { base } => {
            let mut total = 0_i64;
            let ends = cells.map(|cell| {
                total = total.checked_add_unsigned(length(cell))?;
                Some(total)
            });
            let offsets = std::iter::once(Some(0)).chain(ends).collect::<Option<Vec<i64>>>()?;
            lists(OffsetBuffer::new(offsets.into()), empty(base, usize::try_from(total).ok()?))
        }
        Class::Compound { fields } => {
            let mut columns = Vec::with_capacity(fields.len());
            for field in fields {
                let at = offset.checked_add(usize::try_from(field.offset).ok()?)?;
                columns.push(outline(&field.datatype, (bytes, at, stride), count, length)?);
            }
            compound(fields.iter().map(|field| field.name.to_string()), columns, count)
        }
        Class::Array { dims, base } => {
            let (per_row, size) = (usize::try_from(product(dims)?).ok()?, usize::try_from(base.size).ok()?);
            let mut items = Vec::new();
            for cell in cells {
                items.extend_from_slice(cell.get(..per_row.checked_mul(size)?)?);
            }
            arrays(dims, outline(base, (&items, 0, size), count.checked_mul(per_row)?, length)?)
        }
        _ => None,
    }
}

/// The outline of fixed-length elements.
fn empty(datatype: &Datatype, count: usize) -> ArrayRef {
    let nothing = || Arc::new(NullArray::new(count)) as ArrayRef;
    match &datatype.class {
        Class::Compound { fields } => {
            let columns = fields.iter().map(|field| empty(&field.datatype, count)).collect();
            compound(fields.iter().map(|field| field.name.to_string()), columns, count).unwrap_or_else(nothing)
        }
        Class::Array { dims, base } => product(dims)
            .and_then(|per_row| usize::try_from(per_row).ok()?.checked_mul(count))
            .and_then(|count| arrays(dims, empty(base, count)))
            .unwrap_or_else(nothing),
        _ => nothing(),
    }
}

fn compound(names: impl Iterator<Item = String>, columns: Vec<ArrayRef>, count: usize) -> Option<ArrayRef> {
    if columns.is_empty() {
        return Some(Arc::new(StructArray::new_empty_fields(count, None)));
    }
    let fields = names.zip(&columns).map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    Some(Arc::new(StructArray::try_new(fields.collect::<Fields>(), columns, None::<NullBuffer>).ok()?))
}

fn arrays(dims: &[u64], mut items: ArrayRef) -> Option<ArrayRef> {
    for extent in dims.iter().rev() {
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let extent = i32::try_from(*extent).ok().filter(|extent| *extent > 0)?;
        items = Arc::new(FixedSizeListArray::try_new(field, extent, items, None).ok()?);
    }
    Some(items)
}

/// The outline of an array's rows, for rows without a file.
#[cfg(test)]
pub fn outline_of(array: &ArrayRef) -> Option<ArrayRef> {
    Some(match array.data_type() {
        DataType::LargeUtf8 => {
            // Counts each U+FFFD as one invalid byte.
            let lengths = array
                .as_string::<i64>()
                .iter()
                .map(|text| text.map_or(0, |text| (text.len() - 2 * text.matches('\u{fffd}').count()) as u64));
            Arc::new(UInt64Array::from_iter_values(lengths))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let rows = (0..list.len()).map(|row| if list.is_null(row) { None } else { Some(list.value(row)) });
            let rows: Vec<Option<ArrayRef>> = rows.collect();
            let lengths = rows.iter().map(|row| row.as_ref().map_or(0, |row| row.len()));
            let offsets = OffsetBuffer::from_lengths(lengths);
            let items: Vec<ArrayRef> = rows.into_iter().flatten().collect();
            let items: Vec<&dyn Array> = items.iter().map(AsRef::as_ref).collect();
            let items = match items.as_slice() {
                [] => list.values().slice(0, 0),
                items => arrow_select::concat::concat(items).ok()?,
            };
            lists(offsets, outline_of(&items)?)?
        }
        DataType::Struct(fields) => {
            let columns: Option<Vec<ArrayRef>> = array.as_struct().columns().iter().map(outline_of).collect();
            compound(fields.iter().map(|field| field.name().clone()), columns?, array.len())?
        }
        DataType::FixedSizeList(_, extent) => {
            arrays(&[*extent as u64], outline_of(array.as_fixed_size_list().values())?)?
        }
        _ => Arc::new(NullArray::new(array.len())),
    })
}
