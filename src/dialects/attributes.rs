//! Reads attributes leniently, in whatever string or integer storage their producer chose.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_buffer::Buffer;
use arrow_cast::cast;
use arrow_schema::DataType;
use bstr::{BStr, BString, ByteSlice};

use crate::catalogue::{Attribute, ByteOrder, Charset, Class, Datatype, Elements, ObjectId, Padding, attribute};
use crate::codec::pickle;
use crate::store::decode::{HeapBytes, Oddities, Resolve, decode};

/// The strings in a string attribute, without their padding. `None`: not strings, or unreadable.
pub fn strings(attribute: &Attribute) -> Option<Vec<BString>> {
    let Elements { bytes, heap } = attribute.value.as_ref().ok()?;
    let width = usize::try_from(attribute.datatype.size).ok().filter(|width| *width > 0)?;
    let cells = bytes.chunks_exact(width);
    match &attribute.datatype.class {
        Class::FixedString { padding, .. } => Some(cells.map(|cell| padding.strip(cell).into()).collect()),
        Class::VariableString { .. } => cells
            .map(|cell| {
                let mut heap = HeapBytes(heap);
                let text = heap.resolve(cell, 1).ok()?;
                Some(Padding::NullTerminated.strip(text).into())
            })
            .collect(),
        _ => None,
    }
}

/// The string in a string attribute that holds only one. An array of one element counts as a scalar, since producers
/// vary.
pub fn text(attributes: &[Attribute], name: &str) -> Option<String> {
    let strings = strings(attribute(attributes, name)?)?;
    let [only] = strings.as_slice() else { return None };
    Some(only.to_str_lossy().into_owned())
}

/// The attributes, with the one called `name` replaced by this text.
pub fn with_text(attributes: &[Attribute], name: &str, text: &str) -> Arc<[Attribute]> {
    let written = text_attribute(name.into(), text);
    attributes.iter().map(|one| if one.name == name { written.clone() } else { one.clone() }).collect()
}

/// Makes an attribute that holds this text.
fn text_attribute(name: &BStr, text: &str) -> Attribute {
    let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 };
    // An element has at least one byte.
    let bytes = if text.is_empty() { "\0" } else { text };
    let datatype = Datatype { size: bytes.len() as u64, class };
    let value = Ok(Elements { bytes: bytes.into(), heap: Vec::new() });
    Attribute { name: name.into(), datatype, shape: Vec::new(), null: false, value, references: Vec::new() }
}

/// The integers in an attribute of integers of up to 64 bits. `None`: not such integers, or unreadable.
pub fn integers(attribute: &Attribute) -> Option<Vec<i128>> {
    let Class::Integer { signed, order, .. } = attribute.datatype.class else { return None };
    let width = usize::try_from(attribute.datatype.size).ok().filter(|width| (1..=8).contains(width))?;
    let values = attribute.value.as_ref().ok()?.bytes.chunks_exact(width).map(|bytes| {
        let mut wide = [0u8; 16];
        wide[..width].copy_from_slice(bytes);
        if order == ByteOrder::Big {
            wide[..width].reverse();
        }
        let unused = 128 - 8 * width as u32;
        let raw = u128::from_le_bytes(wide);
        if signed { ((raw << unused) as i128) >> unused } else { raw as i128 }
    });
    Some(values.collect())
}

/// The value that PyTables pickled into an attribute. `None`: not a pickle.
pub fn pickled(attribute: &Attribute) -> Option<pickle::PickleTree> {
    let Class::FixedString { charset, .. } = attribute.datatype.class else { return None };
    let bytes = Padding::NullPadded.strip(&attribute.value.as_ref().ok()?.bytes);
    // Bytes that are not a pickle are text, since Python 2 stored text as ASCII.
    if attribute.len() != Some(1) || !pickle::looks_pickled(bytes, charset == Charset::Utf8) {
        return None;
    }
    pickle::attribute(bytes).ok()
}

/// An attribute that is no pickle, as PyTables reads it: bitfields of one byte are booleans, and a string without
/// elements is an empty text.
pub fn of_pytables(attribute: &Attribute) -> Cow<'_, Attribute> {
    let Attribute { datatype, null, .. } = attribute;
    match datatype.class {
        Class::Bitfield { .. } if datatype.size == 1 => {
            let datatype = Datatype { size: 1, class: Class::Flag };
            Cow::Owned(Attribute { datatype, ..attribute.clone() })
        }
        Class::FixedString { .. } if *null => Cow::Owned(text_attribute(attribute.name.as_bstr(), "")),
        _ => Cow::Borrowed(attribute),
    }
}

/// Whether the attributes belong to an object of PyTables, so that some may be pickles.
pub fn is_of_pytables(attributes: &[Attribute]) -> bool {
    ["CLASS", "VERSION", "TITLE"].iter().all(|name| attribute(attributes, name).is_some())
}

/// The integer in an attribute that holds only one.
pub fn integer(attributes: &[Attribute], name: &str) -> Option<i128> {
    let [only] = integers(attribute(attributes, name)?)?[..] else { return None };
    Some(only)
}

/// The number in an attribute that holds only one integer or float.
pub fn number(attribute: &Attribute) -> Option<f64> {
    let [only] = numbers(attribute)?[..] else { return None };
    Some(only)
}

/// The numbers of an attribute of integers or floats, of any shape.
pub fn numbers(attribute: &Attribute) -> Option<Vec<f64>> {
    if let Some(integers) = integers(attribute) {
        return Some(integers.into_iter().map(|integer| integer as f64).collect());
    }
    let Class::Float { .. } = attribute.datatype.class else { return None };
    let bytes = attribute.value.as_ref().ok()?.bytes.as_slice();
    let count = usize::try_from(attribute.len()?).ok()?;
    if Some(bytes.len() as u64) != attribute.datatype.size.checked_mul(count as u64) {
        return None;
    }
    let read = decode(&attribute.datatype, Buffer::from(bytes), count, &HeapBytes(&[]), &mut Oddities::new()).ok()?;
    let numbers = cast(&read, &DataType::Float64).ok()?;
    numbers
        .as_primitive_opt::<Float64Type>()
        .filter(|numbers| numbers.null_count() == 0)
        .map(|numbers| numbers.values().to_vec())
}

/// The unsigned integer in an attribute that holds only one.
pub fn unsigned(attributes: &[Attribute], name: &str) -> Option<u64> {
    u64::try_from(integer(attributes, name)?).ok()
}

/// The number in words, or "no number".
pub fn said(number: Option<impl std::fmt::Display>) -> String {
    number.map_or("no number".to_owned(), |number| number.to_string())
}

/// The boolean in an attribute that holds only one. An integer of one byte, 0 or 1, counts as well, since AnnData
/// writes booleans in that form.
pub fn boolean(attributes: &[Attribute], name: &str) -> Option<bool> {
    let attribute = attribute(attributes, name)?;
    let bytes = &attribute.value.as_ref().ok()?.bytes;
    let boolean = attribute.datatype.is_boolean() || matches!(attribute.datatype.class, Class::Integer { .. });
    match bytes.as_slice() {
        [byte] if boolean && *byte <= 1 => Some(*byte == 1),
        _ => None,
    }
}

/// The first of these names under which an attribute is present, and the attribute. Drafts spell the names differently.
pub fn any<'a>(attributes: &'a [Attribute], names: &[&'static str]) -> Option<(&'static str, &'a Attribute)> {
    names.iter().find_map(|name| attribute(attributes, name).map(|found| (*name, found)))
}

/// The targets of an attribute of references, element by element. `None`: it holds no references.
pub fn references(attribute: &Attribute) -> Option<&[Option<ObjectId>]> {
    attribute.datatype.is_reference().then_some(attribute.references.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::FloatFormat;

    #[test]
    fn numbers_are_of_either_byte_order() {
        let read = |format, order, bytes: &[u8]| {
            let datatype = Datatype { size: bytes.len() as u64, class: Class::Float { order, format } };
            let value = Ok(Elements { bytes: bytes.into(), heap: Vec::new() });
            let name = "a".into();
            number(&Attribute { name, datatype, shape: Vec::new(), null: false, value, references: Vec::new() })
        };
        let (little, big) = (ByteOrder::Little, ByteOrder::Big);
        assert_eq!(read(FloatFormat::Double, big, &0.1_f64.to_be_bytes()), Some(0.1));
        assert_eq!(read(FloatFormat::Double, little, &0.1_f64.to_le_bytes()), Some(0.1));
        assert_eq!(read(FloatFormat::Single, big, &1.5_f32.to_be_bytes()), Some(1.5));
        assert_eq!(read(FloatFormat::Single, little, &1.5_f32.to_le_bytes()), Some(1.5));
        assert_eq!(read(FloatFormat::Half, big, &[0x3e, 0x00]), Some(1.5));
        assert_eq!(read(FloatFormat::Half, little, &[0x00, 0x3e]), Some(1.5));
    }
}
