//! Values of attributes as JSON and as text.

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use serde_json::Value;

use crate::catalogue::{Attribute, Datatype, Elements};
use crate::store::decode::{HeapBytes, Oddities, decode};
use crate::views::text::{TextFormat, TextLayout};

/// Most elements of an attribute to write out.
const MOST_ELEMENTS: u64 = 10_000;

fn elements(datatype: &Datatype, count: usize, elements: &Elements) -> Result<ArrayRef, String> {
    let bytes = Buffer::from(elements.bytes.as_slice());
    decode(datatype, bytes, count, &HeapBytes(&elements.heap), &mut Oddities::new()).map_err(|error| error.to_string())
}

/// Returns the values of an array as JSON, by the rules of all NDJSON views.
///
/// # Errors
/// The reason why the values cannot be written as text.
pub fn json_values(array: ArrayRef) -> Result<Vec<Value>, String> {
    let key = bstr::BString::from("");
    let mut lines = Vec::new();
    TextLayout::new(TextFormat::Ndjson, [&key]).render(&[array], &mut lines).map_err(|error| error.to_string())?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| match serde_json::from_slice(line) {
            Ok(Value::Object(mut row)) => Ok(row.remove("").unwrap_or_default()),
            Ok(other) => Ok(other),
            Err(error) => Err(error.to_string()),
        })
        .collect()
}

/// Returns one element as JSON.
pub(super) fn element(datatype: &Datatype, stored: &Elements) -> Value {
    match elements(datatype, 1, stored).and_then(json_values) {
        Ok(mut values) => values.pop().unwrap_or_default(),
        Err(reason) => serde_json::json!({ "error": reason }),
    }
}

/// Returns the value of an attribute: a scalar as itself, an array as nested arrays, a null dataspace as null. A
/// reference is the address of its target.
pub fn attribute_value(attribute: &Attribute) -> Value {
    shown(attribute).unwrap_or_else(|reason| serde_json::json!({ "error": reason }))
}

/// Returns the value of an attribute, or the reason why it cannot be shown.
fn shown(attribute: &Attribute) -> Result<Value, String> {
    let stored = attribute.value.as_ref().map_err(Clone::clone)?;
    if attribute.null {
        return Ok(Value::Null);
    }
    let count = match attribute.len() {
        Some(count) if count <= MOST_ELEMENTS => count as usize,
        _ => return Err(format!("{:?} elements are too many to show", attribute.shape)),
    };
    let flat: Vec<Value> = if attribute.datatype.is_reference() {
        let objects = attribute.references.iter().map(|id| id.as_ref().map(|id| format!("object {}", id.address)));
        objects.map(Value::from).collect()
    } else {
        elements(&attribute.datatype, count, stored).and_then(json_values)?
    };
    Ok(shaped(&attribute.shape, flat))
}

/// Nests elements in row-major order as arrays of `shape`.
fn shaped(shape: &[u64], mut flat: Vec<Value>) -> Value {
    if shape.is_empty() {
        return flat.pop().unwrap_or(Value::Null);
    }
    for extent in shape[1..].iter().rev() {
        let extent = (*extent as usize).max(1);
        let mut rows = Vec::with_capacity(flat.len() / extent);
        let mut cells = flat.into_iter();
        loop {
            let row: Vec<Value> = cells.by_ref().take(extent).collect();
            if row.is_empty() {
                break;
            }
            rows.push(row.into());
        }
        flat = rows;
    }
    flat.into()
}

/// Returns the value of an attribute for an extended attribute: a string as it is, anything else as JSON. `None`: it
/// cannot be shown; `metadata.json` has the reason.
pub fn attribute_text(attribute: &Attribute) -> Option<Vec<u8>> {
    match shown(attribute).ok()? {
        Value::String(text) => Some(text.into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shapes_nest_row_major() {
        let flat = (0..6).map(Value::from).collect::<Vec<_>>();
        assert_eq!(shaped(&[2, 3], flat.clone()), json!([[0, 1, 2], [3, 4, 5]]));
        assert_eq!(shaped(&[6], flat), json!([0, 1, 2, 3, 4, 5]));
        assert_eq!(shaped(&[], vec![json!("x")]), json!("x"));
        assert_eq!(shaped(&[0, 3], Vec::new()), json!([]));
    }
}
