//! The reason why stored bytes cannot be decoded.

use std::borrow::Cow;
use std::fmt;

/// Why stored bytes cannot be decoded: they are damaged, or have a form that no codec supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the filter that failed; the pipeline sets it.
    filter: Option<&'static str>,
    reason: Cow<'static, str>,
}

impl Error {
    /// The error with the name of its filter.
    pub(super) fn of(self, filter: &'static str) -> Self {
        Self { filter: Some(filter), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(filter) = self.filter {
            write!(f, "{filter}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Error {}

impl From<&'static str> for Error {
    fn from(reason: &'static str) -> Self {
        Self { filter: None, reason: reason.into() }
    }
}

impl From<String> for Error {
    fn from(reason: String) -> Self {
        Self { filter: None, reason: reason.into() }
    }
}
