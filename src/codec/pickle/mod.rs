//! Python pickles, read by structure: nothing in them is imported, called or built.
//!
//! PyTables keeps attributes as pickles of protocol 0, and pandas' fixed format keeps each block of Python objects as
//! one pickle of a NumPy array. A pickle is a program for a stack machine. What would run code in Python (`REDUCE`,
//! `BUILD`) gives a plain record of itself here.
//!
//! [`attribute`] reads a small pickle into a [`Tree`] of values. [`object_array`] scans a large one and keeps 8 bytes
//! for a value: its kind, and where it stands in the pickle. Both run the same `machine`.

mod array;
mod cell;
mod machine;
mod shapes;
mod tokens;
mod tree;

pub use array::{ObjectArray, object_array};
pub use cell::{Cell, Kind};
pub use shapes::{Label, class_of, json, label, named, zone};
pub use tree::{Tree, Value, attribute};

/// Why a pickle is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A token that is malformed, cut short or not read, or that does not fit what is on the stack.
    #[error("byte {at} of the pickle: {what}")]
    Token {
        /// Where the token begins.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// More than is read.
    #[error("the pickle has more than {most} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// Most of it that is read.
        most: usize,
    },
    /// A value that contains itself.
    #[error("a value of the pickle contains itself")]
    Cycle,
    /// The pickle of something else than an array of objects.
    #[error("the pickle holds {found}, not a NumPy array of objects of one or two dimensions")]
    Structure {
        /// What it holds.
        found: String,
    },
    /// The shape of an array says another number of values than there are.
    #[error("the array's shape says {expected} values, the pickle holds {found}")]
    Length {
        /// By the shape.
        expected: u64,
        /// At least, where there are more.
        found: u64,
    },
    /// More memory than the caller allows.
    #[error("reading the pickle takes {needed} bytes of memory, more than the {limit} allowed")]
    Memory {
        /// Bytes that were about to be taken.
        needed: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Whether an attribute of PyTables is worth a try of [`attribute`]: it stores text as UTF-8 and pickles as ASCII.
///
/// `bytes` is the value without trailing NULs. Where the try fails, the value is text: Python 2 stored text as ASCII.
pub fn looks_pickled(bytes: &[u8], is_utf8: bool) -> bool {
    !is_utf8 && bytes.last() == Some(&b'.')
}

#[cfg(test)]
mod tests;
