//! Converts elements from libhdf5's form in memory to their form in the file.

mod aligned;
mod datatype;
mod extent;
mod reference;

pub(super) use aligned::{Aligned, reclaim};
pub(super) use datatype::{ElementConversion, HeapOutput, describe};
pub(super) use extent::Dataspace;
pub(super) use reference::dereference;
