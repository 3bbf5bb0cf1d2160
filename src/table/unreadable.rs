//! The reason why an object in a file cannot be shown.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::store::decode::DecodeError;
use crate::{codec, h5, source, store};

/// Why an object in a file cannot be shown, in words for findings and `metadata.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(Cow<'static, str>);

impl Deref for Unreadable {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

impl From<&'static str> for Unreadable {
    fn from(reason: &'static str) -> Self {
        Self(reason.into())
    }
}

impl From<String> for Unreadable {
    fn from(reason: String) -> Self {
        Self(reason.into())
    }
}

impl From<Unreadable> for String {
    fn from(Unreadable(reason): Unreadable) -> Self {
        reason.into_owned()
    }
}

/// Converts errors of lower layers to their text.
macro_rules! from_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for Unreadable {
            fn from(error: $error) -> Self {
                Self(error.to_string().into())
            }
        })*
    };
}

from_errors!(
    codec::Error,
    DecodeError,
    h5::Error,
    source::Interrupted,
    store::Error,
    arrow_schema::ArrowError,
    std::num::TryFromIntError
);
