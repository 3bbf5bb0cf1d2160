//! Elements as libhdf5 gives them, and as they are handed over: in the form that they have in the file.

mod aligned;
mod datatype;
mod extent;
mod reference;

pub(super) use aligned::{Aligned, reclaim};
pub(super) use datatype::{Heap, Plan, describe};
pub(super) use extent::Extent;
pub(super) use reference::dereference;
