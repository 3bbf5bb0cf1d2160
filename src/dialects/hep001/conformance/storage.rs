//! Tells how attributes are stored. The drafts demand exact forms from producers, though readers accept more.

use crate::catalogue::{Attribute, Charset, Class, Datatype, Padding};

/// Whether an attribute is one element in a scalar dataspace.
pub(super) fn is_scalar(attribute: &Attribute) -> bool {
    !attribute.null && attribute.shape.is_empty()
}

/// Whether an attribute is an array of rank 1.
pub(super) fn is_line(attribute: &Attribute) -> bool {
    !attribute.null && attribute.shape.len() == 1
}

/// Whether an attribute is one ASCII string of fixed length; with `is_terminated`, one that ends with NUL.
pub(super) fn is_token(attribute: &Attribute, is_terminated: bool) -> bool {
    is_scalar(attribute)
        && match attribute.datatype.class {
            Class::FixedString { charset: Charset::Ascii, .. } if !is_terminated => true,
            Class::FixedString { padding, charset: Charset::Ascii } => match padding {
                Padding::NullTerminated => true,
                Padding::NullPadded => attribute.value.as_ref().is_ok_and(|value| value.bytes.last() == Some(&0)),
                Padding::SpacePadded => false,
            },
            _ => false,
        }
}

/// Whether an attribute is a string that is declared null-padded.
pub(super) fn is_padded(attribute: &Attribute) -> bool {
    matches!(attribute.datatype.class, Class::FixedString { padding: Padding::NullPadded, .. })
}

/// Whether the elements are UTF-8 strings of fixed length.
pub(super) fn is_utf8(attribute: &Attribute) -> bool {
    matches!(attribute.datatype.class, Class::FixedString { charset: Charset::Utf8, .. })
}

/// Whether the elements are unsigned integers of this many bytes.
pub(super) fn is_unsigned(attribute: &Attribute, size: u64) -> bool {
    attribute.datatype.size == size && matches!(attribute.datatype.class, Class::Integer { signed: false, .. })
}

/// Whether an attribute is one unsigned integer of 64 bits.
pub(super) fn is_uint64(attribute: &Attribute) -> bool {
    is_scalar(attribute) && is_unsigned(attribute, 8)
}

/// Whether a boolean type has the form that the drafts demand from producers: an enumeration over a signed byte.
pub(super) fn is_strict_boolean(datatype: &Datatype) -> bool {
    datatype.is_boolean()
        && matches!(&datatype.class, Class::Enum { base, .. } if matches!(base.class, Class::Integer { signed: true, .. }))
}

/// Describes the storage of an attribute for a finding.
pub(super) fn stored(attribute: &Attribute) -> String {
    let size = attribute.datatype.size;
    let datatype = match &attribute.datatype.class {
        Class::FixedString { padding, charset } => {
            let padding = match padding {
                Padding::NullTerminated => "null-terminated",
                Padding::NullPadded => "null-padded",
                Padding::SpacePadded => "space-padded",
            };
            let charset = if *charset == Charset::Ascii { "ASCII" } else { "UTF-8" };
            format!("a {padding} {charset} string of {size} bytes")
        }
        Class::VariableString { .. } => "a string of variable length".to_owned(),
        Class::Integer { signed, .. } => format!("{}int{}", if *signed { "" } else { "u" }, size.saturating_mul(8)),
        Class::Float { .. } => format!("a float of {size} bytes"),
        Class::Enum { .. } => format!("an enumeration of {size} bytes"),
        Class::Reference(_) => "a reference".to_owned(),
        _ => format!("another type of {size} bytes"),
    };
    match (attribute.null, attribute.shape.as_slice()) {
        (true, _) => format!("{datatype}, without a value"),
        (false, []) => datatype,
        (false, shape) => format!("{datatype}, of shape {shape:?}"),
    }
}
