//! The boolean datatype (HEP001 of July 2026 §5): an enumeration of two names.

use crate::h5::element::{Element, Value};

/// The element type of a boolean.
pub(super) fn element() -> Element {
    Element::enumeration(&[("FALSE", 0i8), ("TRUE", 1)])
}

/// An attribute value of this type.
pub(super) fn value(value: bool) -> Value {
    Value::Scalar(element(), vec![u8::from(value)])
}
