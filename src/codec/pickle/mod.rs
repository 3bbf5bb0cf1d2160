//! Python pickles, read by structure: nothing in them is imported, called or built.
//!
//! PyTables keeps attributes as pickles of protocol 0, and pandas' fixed format keeps each block of Python objects as
//! one pickle of a NumPy array. A pickle is a program for a stack machine. What would run code in Python (`REDUCE`,
//! `BUILD`) gives a plain record of itself here.
//!
//! [`attribute`] reads a small pickle into a [`Tree`] of values. [`object_array`] scans a large one and keeps 8 bytes
//! for a value: its kind, and where it stands in the pickle.

mod array;
mod calendar;
mod labels;
mod machine;
mod tokens;
mod tree;
mod zones;

pub use array::{BYTES_PER_VALUE, Cell, Counts, Kind, ObjectArray, object_array};
pub use labels::{Label, Unit, label};
pub use machine::attribute;
pub use tree::{Tree, Value, View};
pub use zones::zone;

/// Why a pickle is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It ends within a token, or before the opcode that ends it.
    #[error("the pickle is cut short: the token at byte {at} does not fit in it")]
    Cut {
        /// Where the token begins.
        at: usize,
    },
    /// No opcode of pickle, or one that is not read here.
    #[error("opcode {opcode:#04x} at byte {at} of the pickle is not read")]
    Opcode {
        /// Where it stands.
        at: usize,
        /// The byte.
        opcode: u8,
    },
    /// The argument of an opcode is malformed.
    #[error("the token at byte {at} of the pickle is no valid {what}")]
    Argument {
        /// Where the token begins.
        at: usize,
        /// What it should be.
        what: &'static str,
    },
    /// An opcode needs values that are not on the stack, or of another type.
    #[error("the opcode at byte {at} of the pickle finds no {what} on the stack")]
    Stack {
        /// Where it stands.
        at: usize,
        /// What it needs.
        what: &'static str,
    },
    /// A reference to a memo entry that was never written.
    #[error("byte {at} of the pickle refers to memo entry {index}, which does not exist")]
    Memo {
        /// Where the reference stands.
        at: usize,
        /// The entry.
        index: u64,
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
    #[error("the pickle holds {found}, not a NumPy array of objects")]
    Structure {
        /// What it holds.
        found: String,
    },
    /// The shape of an array says another number of values than there are.
    #[error("the array's shape says {expected} values, the pickle holds {found}")]
    Length {
        /// By the shape.
        expected: u64,
        /// In the list (at least).
        found: u64,
    },
    /// The index of an array would take too much memory.
    #[error("indexing the pickle takes {needed} bytes, more than the {limit} allowed")]
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
