//! What a writing worker is asked, step by step.

use serde::{Deserialize, Serialize};

use super::element::{Element, Fill, Value};
use crate::codec::Compression;

/// How references are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum References {
    /// `H5T_STD_REF`, of HDF5 1.12.
    Standard,
    /// `H5T_STD_REF_OBJ`, of any version.
    Object,
}

/// An object of the file that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Object {
    /// By its HDF5 path, absolute.
    Path(Vec<u8>),
    /// One of those made since the file was opened, in their order.
    New(u32),
}

/// Type of the elements of a new dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NewElement {
    /// This one.
    Of(Element),
    /// That of the elements of a dataset.
    Like(Object),
    /// Fields one behind the other, without padding.
    Compound(Vec<(String, NewElement)>),
}

/// A dataset to be made, in chunks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layout {
    /// Type of its elements.
    pub element: NewElement,
    /// Elements in each dimension.
    pub extents: Vec<u64>,
    /// Which dimensions can grow.
    pub grows: Vec<bool>,
    /// Extents of a chunk; none is zero.
    pub chunk: Vec<u64>,
    /// How chunks are compressed.
    pub compression: Compression,
    /// The bytes of elements are sorted before that; never of elements of one byte.
    pub shuffles: bool,
    /// The fill value.
    pub fill: Fill,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Opens the file for writing. First, and again after each [`Step::Commit`].
    Begin,
    /// Makes a group that nothing leads to yet.
    Group,
    /// Makes a dataset that nothing leads to yet.
    Dataset(Layout),
    /// Writes a box of elements out of the shared memory: first `bytes` of elements, as in this machine's memory, then
    /// `heap` bytes of strings with a NUL each. `strings` are the places in an element where a pointer belongs; there
    /// stands the position of the string in the heap.
    Elements {
        /// The dataset.
        object: Object,
        /// First element.
        start: Vec<u64>,
        /// Elements.
        count: Vec<u64>,
        /// Bytes of the elements.
        bytes: u64,
        /// Bytes of the heap.
        heap: u64,
        /// See above.
        strings: Vec<u64>,
    },
    /// Makes a dataset longer or shorter.
    Extend {
        /// The dataset.
        object: Object,
        /// Elements in each dimension.
        extents: Vec<u64>,
    },
    /// Writes a chunk, with all filters applied, out of the shared memory.
    Chunk {
        /// The dataset.
        object: Object,
        /// Its first element.
        start: Vec<u64>,
        /// Bytes as stored.
        bytes: u64,
    },
    /// Sets an attribute, in the place of one of that name.
    Attribute {
        /// The object.
        object: Object,
        /// Its name.
        name: String,
        /// Its value.
        value: Value,
    },
    /// Sets an attribute of references, in the place of one of that name.
    References {
        /// The object.
        object: Object,
        /// Name of the attribute.
        name: String,
        /// How they are stored.
        kind: References,
        /// What to refer to.
        to: Vec<Object>,
        /// It is a list; else a scalar.
        is_list: bool,
    },
    /// Adds a reference to a list, which is made where there is none. References that lead nowhere are left out.
    AddReference {
        /// The object.
        object: Object,
        /// Name of the attribute.
        name: String,
        /// How a new list stores references.
        kind: References,
        /// What to refer to.
        to: Object,
    },
    /// Takes an object out of a list of references, and the list away where nothing is left in it.
    RemoveReference {
        /// The object.
        object: Object,
        /// Name of the attribute.
        name: String,
        /// What no longer to refer to.
        to: Object,
    },
    /// Gives an object a path.
    Link {
        /// The object.
        object: Object,
        /// The group that the path begins at; else the root group.
        group: Option<Object>,
        /// Takes away what has the path already.
        replaces: bool,
        /// The path.
        path: Vec<u8>,
    },
    /// Takes a path away. What it led to stays in the file, where nothing finds it.
    Unlink {
        /// The path.
        path: Vec<u8>,
    },
    /// Has libhdf5 write what it holds; behind the file's end it is on the disk then.
    Flush,
    /// Closes the file and makes all changes since [`Step::Begin`] visible.
    Commit {
        /// The changes take something away.
        removes: bool,
    },
}

impl Step {
    /// What is being done, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Step::Begin => "opening the file for writing",
            Step::Group => "making a group",
            Step::Dataset(_) => "making a dataset",
            Step::Elements { .. } => "writing elements",
            Step::Extend { .. } => "changing the length of a dataset",
            Step::Chunk { .. } => "writing a chunk",
            Step::Attribute { .. } | Step::References { .. } => "writing an attribute",
            Step::AddReference { .. } | Step::RemoveReference { .. } => "changing a list of references",
            Step::Link { .. } => "linking an object",
            Step::Unlink { .. } => "removing a link",
            Step::Flush => "flushing",
            Step::Commit { .. } => "committing",
        }
    }
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// It is done.
    Yes,
    /// The object made has this number.
    New(u32),
    /// Everything is on the disk; it took this many writes over bytes that were in use.
    Committed(u64),
}
