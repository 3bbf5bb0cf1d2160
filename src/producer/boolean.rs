//! The boolean datatype (HEP001 of July 2026 §5): an enumeration of FALSE and TRUE.

use crate::h5::element::{AttributeValue, ElementType};

/// The element type of a boolean.
pub(super) fn element() -> ElementType {
    ElementType::enumeration(&[("FALSE", 0i8), ("TRUE", 1)])
}

/// A boolean as an attribute value.
pub(super) fn value(value: bool) -> AttributeValue {
    AttributeValue::Scalar(element(), vec![u8::from(value)])
}
