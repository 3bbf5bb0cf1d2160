//! Reads attributes of PyTables: text, and pickles for most other values.

use crate::catalogue::{Attribute, Class, attribute};
use crate::codec::pickle::{PandasLabel, PickleTree, label};
use crate::dialects::attributes::{integer, number, pickled, text};

/// The value of an attribute that pandas wrote.
pub(super) enum PandasAttribute {
    Text(String),
    /// A pickled value.
    Tree(PickleTree),
}

impl PandasAttribute {
    /// Reads an attribute that is text or a pickle. `None`: no such attribute, or one of another type. PyTables stores
    /// an empty text as an attribute without elements.
    pub fn of(attributes: &[Attribute], name: &str) -> Option<Self> {
        let found = attribute(attributes, name)?;
        if found.null && matches!(found.datatype.class, Class::FixedString { .. }) {
            return Some(Self::Text(String::new()));
        }
        pickled(found).map(Self::Tree).or_else(|| text(attributes, name).map(Self::Text))
    }

    /// Reads a name of any type, in the form of Python's `str`. `None`: no such attribute, or Python's `None`.
    pub fn label(attributes: &[Attribute], name: &str) -> Option<String> {
        match Self::of(attributes, name) {
            Some(Self::Text(text)) => Some(text),
            Some(Self::Tree(tree)) => {
                label(tree.root()).filter(|label| *label != PandasLabel::None).map(|label| label.to_string())
            }
            None => {
                let stored = attribute(attributes, name)?;
                let integer = integer(attributes, name).map(PandasLabel::Integer);
                Some(integer.or_else(|| number(stored).map(PandasLabel::Float))?.to_string())
            }
        }
    }

    /// Reads the pickled value in an attribute. `None`: it holds no pickle.
    pub fn tree(attributes: &[Attribute], name: &str) -> Option<PickleTree> {
        match Self::of(attributes, name)? {
            Self::Tree(tree) => Some(tree),
            Self::Text(_) => None,
        }
    }

    /// Reads the text in an attribute, stored plainly or as a pickle. `None`: it holds no text.
    pub fn text(attributes: &[Attribute], name: &str) -> Option<String> {
        match Self::of(attributes, name)? {
            Self::Tree(tree) => tree.root().text().map(str::to_owned),
            Self::Text(text) => Some(text),
        }
    }
}

/// Whether an attribute of one byte, NumPy's form of a boolean, is not zero.
pub(super) fn is_set(attributes: &[Attribute], name: &str) -> bool {
    let value = attribute(attributes, name).and_then(|attribute| attribute.value.as_ref().ok());
    value.is_some_and(|value| matches!(value.bytes.as_slice(), [byte] if *byte != 0))
}
