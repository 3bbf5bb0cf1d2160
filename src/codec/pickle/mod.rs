//! Reads Python pickles by structure: it imports, calls and builds nothing that they name.
//!
//! PyTables keeps attributes as pickles of protocol 0, and pandas' fixed format keeps each block of Python objects as
//! one pickle of a NumPy array. A pickle is a program for a stack machine. Opcodes that run code in Python (`REDUCE`,
//! `BUILD`) only leave a plain record here.
//!
//! [`attribute`] reads a small pickle into a [`PickleTree`] of values. [`object_array`] scans a large one and keeps 8
//! bytes for a value: its kind, and its offset in the pickle. Both run the same `machine`.

mod array;
mod cell;
mod machine;
mod shapes;
mod tokens;
mod tree;

pub use array::{ObjectArray, object_array};
pub use cell::{CellKind, PickledCell};
pub use shapes::{PandasLabel, class_of, json, label, named, zone};
pub use tree::{PickleTree, PickleValue, attribute};

/// Why a pickle cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A token is malformed, cut short or not supported, or does not fit the values on the stack.
    #[error("byte {at} of the pickle: {what}")]
    Token {
        /// Offset of the token.
        at: usize,
        /// The fault.
        what: &'static str,
    },
    /// The pickle exceeds a limit.
    #[error("the pickle has more than {most} {what}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A value of the pickle contains itself.
    #[error("a value of the pickle contains itself")]
    Cycle,
    /// The pickle is not an array of objects.
    #[error("the pickle holds {found}, not a NumPy array of objects of one or two dimensions")]
    Structure {
        /// Description of its content.
        found: String,
    },
    /// The shape of an array does not match its number of values.
    #[error("the array's shape says {expected} values, the pickle holds {found}")]
    Length {
        /// Number of values according to the shape.
        expected: u64,
        /// Number of values found; a lower bound if there are more.
        found: u64,
    },
    /// The pickle needs more memory than the caller allows.
    #[error("reading the pickle takes {needed} bytes of memory, more than the {limit} allowed")]
    Memory {
        /// Bytes needed.
        needed: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Whether an attribute of PyTables may be a pickle for [`attribute`]: PyTables stores text as UTF-8 and pickles as
/// ASCII.
///
/// `bytes` is the value without trailing NULs. If [`attribute`] then fails, the value is text: Python 2 stored text as
/// ASCII.
pub fn looks_pickled(bytes: &[u8], is_utf8: bool) -> bool {
    !is_utf8 && bytes.last() == Some(&b'.')
}

#[cfg(test)]
mod tests;
