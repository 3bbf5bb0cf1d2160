//! Attributes as PyTables stores them: text, numbers, and anything else as a pickle.

use crate::catalogue::{Attribute, Class, attribute};
use crate::codec::pickle::{Label, Tree, label};
use crate::dialects::attributes::{integer, number, pickled, text};

/// An attribute of pandas.
pub(super) enum Stored {
    Text(String),
    /// What was pickled.
    Tree(Tree),
}

impl Stored {
    /// An attribute that is text or a pickle; `None` where there is none, or it is neither. PyTables stores an empty
    /// text as an attribute without an element.
    pub fn of(attributes: &[Attribute], name: &str) -> Option<Self> {
        let found = attribute(attributes, name)?;
        if found.null && matches!(found.datatype.class, Class::FixedString { .. }) {
            return Some(Self::Text(String::new()));
        }
        pickled(found).map(Self::Tree).or_else(|| text(attributes, name).map(Self::Text))
    }

    /// A name as Python's `str` shows it, whatever it is; `None` where there is none, or it is `None`.
    pub fn label(attributes: &[Attribute], name: &str) -> Option<String> {
        match Self::of(attributes, name) {
            Some(Self::Text(text)) => Some(text),
            Some(Self::Tree(tree)) => {
                label(tree.root()).filter(|label| *label != Label::None).map(|label| label.to_string())
            }
            None => {
                let stored = attribute(attributes, name)?;
                let integer = integer(attributes, name).map(Label::Integer);
                Some(integer.or_else(|| number(stored).map(Label::Float))?.to_string())
            }
        }
    }

    /// The pickled value.
    pub fn tree(attributes: &[Attribute], name: &str) -> Option<Tree> {
        match Self::of(attributes, name)? {
            Self::Tree(tree) => Some(tree),
            Self::Text(_) => None,
        }
    }

    /// The text; a pickled one counts.
    pub fn text(attributes: &[Attribute], name: &str) -> Option<String> {
        match Self::of(attributes, name)? {
            Self::Tree(tree) => tree.root().text().map(str::to_owned),
            Self::Text(text) => Some(text),
        }
    }
}

/// Whether a number of one byte, as NumPy's booleans are stored, is not zero.
pub(super) fn is_set(attributes: &[Attribute], name: &str) -> bool {
    let value = attribute(attributes, name).and_then(|attribute| attribute.value.as_ref().ok());
    value.is_some_and(|value| matches!(value.bytes.as_slice(), [byte] if *byte != 0))
}
