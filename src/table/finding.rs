//! A rule that a file breaks: reported, never a refusal.

use serde::Serialize;

/// What is wrong, where, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// HDF5 path of the object.
    pub path: String,
    /// The rule, such as `HEP001 §9: column-order lists every column once`.
    pub rule: String,
    /// What was met instead.
    pub found: String,
}

impl Finding {
    /// A finding.
    pub fn new(path: impl Into<String>, rule: impl Into<String>, found: impl Into<String>) -> Self {
        Self { path: path.into(), rule: rule.into(), found: found.into() }
    }
}
