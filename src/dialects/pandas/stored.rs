//! Attributes as PyTables stores them: text, numbers, and anything else as a pickle.

use crate::catalogue::{Attribute, Charset, Class, attribute};
use crate::codec::pickle::{self, Tree};
use crate::dialects::attributes::text;

/// An attribute of pandas.
pub(super) enum Stored {
    Text(String),
    /// What was pickled.
    Tree(Tree),
}

impl Stored {
    /// An attribute that is text or a pickle; `None` where there is none, or it is neither.
    pub fn of(attributes: &[Attribute], name: &str) -> Option<Self> {
        let stored = attribute(attributes, name)?;
        if let Class::FixedString { charset, .. } = stored.datatype.class
            && let Ok(value) = &stored.value
        {
            let end = value.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let bytes = &value.bytes[..end];
            // What will not decode is text: Python 2 stored text as ASCII.
            if pickle::looks_pickled(bytes, charset == Charset::Utf8)
                && let Ok(tree) = pickle::attribute(bytes)
            {
                return Some(Self::Tree(tree));
            }
        }
        text(attributes, name).map(Self::Text)
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
