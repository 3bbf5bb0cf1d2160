//! The steps of a writing worker.

use serde::{Deserialize, Serialize};

use super::element::{AttributeValue, ElementType, FillSetting};
use crate::codec::Compression;

/// The storage type of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum References {
    /// `H5T_STD_REF`, of HDF5 1.12.
    Standard,
    /// `H5T_STD_REF_OBJ`, of any version.
    Object,
}

/// An object of the file being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TargetObject {
    /// By its HDF5 path, absolute.
    Path(Vec<u8>),
    /// The number of a new object, counted since the opening of the file.
    New(u32),
}

/// The element type of a new dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NewElement {
    /// This type.
    Of(ElementType),
    /// The element type of another dataset.
    Like(TargetObject),
    /// Consecutive fields, without padding.
    Compound(Vec<(String, NewElement)>),
}

/// A new chunked dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewDataset {
    /// Type of its elements.
    pub element: NewElement,
    /// Number of elements in each dimension.
    pub extents: Vec<u64>,
    /// Whether each dimension can grow.
    pub grows: Vec<bool>,
    /// Extents of a chunk, all positive.
    pub chunk: Vec<u64>,
    /// Compression of the chunks.
    pub compression: Compression,
    /// Whether a byte shuffle comes before compression; never for elements of one byte.
    pub shuffles: bool,
    /// The fill value.
    pub fill: FillSetting,
}

/// A step of writing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Opens the file for writing. It is the first step, and follows each [`Step::Commit`].
    Begin,
    /// Creates a group without a link yet.
    Group,
    /// Creates a dataset without a link yet.
    Dataset(NewDataset),
    /// Writes a box of elements out of the shared memory: first `bytes` of elements, as in this machine's memory, then
    /// `heap` bytes of strings with a NUL each. `strings` are the offsets of pointers within an element; each pointer
    /// field holds the position of its string in the heap.
    Elements {
        /// The dataset.
        object: TargetObject,
        /// First element in each dimension.
        start: Vec<u64>,
        /// Number of elements in each dimension.
        count: Vec<u64>,
        /// Bytes of the elements.
        bytes: u64,
        /// Bytes of the heap.
        heap: u64,
        /// Offsets of pointers within an element.
        strings: Vec<u64>,
    },
    /// Changes the extents of a dataset.
    Extend {
        /// The dataset.
        object: TargetObject,
        /// New number of elements in each dimension.
        extents: Vec<u64>,
    },
    /// Writes a chunk, with all filters already applied, out of the shared memory.
    Chunk {
        /// The dataset.
        object: TargetObject,
        /// First element of the chunk in each dimension.
        start: Vec<u64>,
        /// Bytes of the chunk as stored.
        bytes: u64,
    },
    /// Sets an attribute; replaces one of the same name.
    Attribute {
        /// The object that has the attribute.
        object: TargetObject,
        /// Name of the attribute.
        name: String,
        /// Value of the attribute.
        value: AttributeValue,
    },
    /// Sets an attribute of references; replaces one of the same name.
    References {
        /// The object that has the attribute.
        object: TargetObject,
        /// Name of the attribute.
        name: String,
        /// Storage type of the references.
        kind: References,
        /// The objects to refer to.
        to: Vec<TargetObject>,
        /// Whether the attribute is a list; otherwise it is a scalar.
        is_list: bool,
    },
    /// Adds a reference to a list, and creates a missing list. It drops dangling references.
    AddReference {
        /// The object that has the list.
        object: TargetObject,
        /// Name of the attribute.
        name: String,
        /// Storage type of references in a new list.
        kind: References,
        /// The object to refer to.
        to: TargetObject,
    },
    /// Removes an object from a list of references, and then an empty list.
    RemoveReference {
        /// The object that has the list.
        object: TargetObject,
        /// Name of the attribute.
        name: String,
        /// The object whose references are removed.
        to: TargetObject,
    },
    /// Gives an object a path.
    Link {
        /// The object to link.
        object: TargetObject,
        /// The group where the path begins; `None`: the root group.
        group: Option<TargetObject>,
        /// Whether to replace a link at this path.
        replaces: bool,
        /// Path of the new link.
        path: Vec<u8>,
    },
    /// Removes a link. Its object stays in the file, but nothing finds it.
    Unlink {
        /// Path of the link.
        path: Vec<u8>,
    },
    /// Makes libhdf5 write its buffers; bytes beyond the file's end are then on the disk.
    Flush,
    /// Closes the file and makes all changes since [`Step::Begin`] visible.
    Commit {
        /// Whether the changes remove anything.
        removes: bool,
    },
}

impl Step {
    /// The step as an action, for messages.
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

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// The step is done; there is nothing to return.
    Yes,
    /// The step created an object of this number.
    New(u32),
    /// Everything is on the disk; the commit took this many writes over bytes in use.
    Committed(u64),
}
