//! Tells the kind of an element by its attributes.

use crate::catalogue::{Attribute, attribute};
use crate::dialects::attributes::text;

/// The attribute of a data frame that names the child with its row labels.
pub(super) const INDEX: &str = "_index";

/// The attribute of a data frame that lists its columns in order.
pub(super) const ORDER: &str = "column-order";

/// The attribute that states the kind of an element.
const TYPE: &str = "encoding-type";

/// The attribute that states the version of an element's kind.
const VERSION: &str = "encoding-version";

/// Every attribute that this dialect reads.
pub(super) const ATTRIBUTES: [&str; 11] =
    [TYPE, VERSION, INDEX, ORDER, "categories", "ordered", OLD_SPARSE, "shape", "h5sparse_shape", FORM, LENGTH];

/// The attribute of an awkward array that holds its form as JSON.
pub(super) const FORM: &str = "form";
/// The attribute of an awkward array that states its number of rows.
pub(super) const LENGTH: &str = "length";

/// The attribute that stated the kind of a sparse matrix before version 0.7.
const OLD_SPARSE: &str = "h5sparse_format";

/// An axis of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnndataAxis {
    Row,
    Column,
}

/// The kind of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EncodingType {
    /// A data frame.
    Frame,
    /// A column of codes, and the categories that they stand for.
    Categorical,
    /// Values, and a mask that is true where a value is missing.
    Masked,
    /// A sparse matrix.
    Sparse,
    /// An awkward array, whose rows may have any shape: a form and its buffers.
    Awkward,
    /// A plain array, or an element that states no kind.
    Plain,
    /// A kind that hepfs does not know, by its name.
    Other(String),
}

impl EncodingType {
    /// The kind that the attributes of an element state.
    pub fn of(attributes: &[Attribute]) -> Self {
        match kind(attributes).as_deref() {
            Some("dataframe") => Self::Frame,
            Some("categorical") => Self::Categorical,
            Some("nullable-integer" | "nullable-boolean" | "nullable-string-array") => Self::Masked,
            Some("awkward-array") => Self::Awkward,
            _ if sparse(attributes).is_some() => Self::Sparse,
            Some("array" | "string-array") => Self::Plain,
            Some(other) => Self::Other(other.to_owned()),
            // Some producers mark a data frame by these two attributes alone.
            None if attribute(attributes, INDEX).is_some() && attribute(attributes, ORDER).is_some() => Self::Frame,
            None => Self::Plain,
        }
    }
}

/// The axis along which a sparse matrix is compressed. `None`: not a sparse matrix. Files before version 0.7 state it
/// in another attribute.
pub(super) fn sparse(attributes: &[Attribute]) -> Option<AnndataAxis> {
    match kind(attributes).or_else(|| text(attributes, OLD_SPARSE))?.as_str() {
        "csr_matrix" | "csr" => Some(AnndataAxis::Row),
        "csc_matrix" | "csc" => Some(AnndataAxis::Column),
        _ => None,
    }
}

/// The kind of an element, as written in the file.
pub(super) fn kind(attributes: &[Attribute]) -> Option<String> {
    text(attributes, TYPE)
}

/// The version of the kind, if stated.
pub(super) fn version(attributes: &[Attribute]) -> Option<String> {
    text(attributes, VERSION)
}
