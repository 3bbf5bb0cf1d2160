//! State that requests keep for later ones: a page continues where the one before ended, and the last dataset read
//! stays open.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

use bstr::BString;

use super::values::{Dataspace, ElementConversion};
use crate::catalogue::{ByName, MappedSource, ObjectId};
use crate::codec::structure::mapped::MappingList;
use crate::h5::library::ffi::ObjectToken;
use crate::h5::library::{FailureReason, Id};

/// Most links of other groups kept with a listing whose links lead through them.
const MOST_PASSED: u64 = 1 << 20;

/// A listing of a group's links, in progress or complete.
#[derive(Debug)]
pub(super) struct LinkListing {
    pub id: ObjectId,
    pub creation_order: bool,
    pub links: Vec<ListedLink>,
    /// Where libhdf5 continues; `None`: the listing is complete.
    pub next: Option<u64>,
    /// The reason for an early end of the list.
    pub failure: Option<FailureReason>,
    /// Bytes left for attribute values of members.
    pub values_left: usize,
    /// Bytes left for values of links.
    pub link_values_left: usize,
    /// Other groups on the paths of soft links.
    pub passed: HashMap<ObjectId, Passed>,
    /// Number of links left to list in these groups.
    pub passed_left: u64,
    by_name: ByName,
}

impl LinkListing {
    /// A listing before its first link, which keeps no values.
    pub fn new(id: ObjectId, creation_order: bool) -> Self {
        Self {
            id,
            creation_order,
            links: Vec::new(),
            next: Some(0),
            failure: None,
            values_left: 0,
            link_values_left: 0,
            passed: HashMap::new(),
            passed_left: MOST_PASSED,
            by_name: ByName::default(),
        }
    }

    /// Whether the listing has every link of the group.
    pub fn is_whole(&self) -> bool {
        self.next.is_none() && self.failure.is_none()
    }

    /// Finds a link by its name in a complete listing.
    pub fn link(&self, name: &[u8]) -> Option<&ListedLink> {
        let at = self.by_name.position(self.links.len(), |at| Some(&self.links.get(at)?.name), name)?;
        self.links.get(at)
    }
}

/// A group that the paths of soft links lead through.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Number of lookups of its links by libhdf5.
    pub asked: u32,
    /// Its links, if libhdf5 would take long to find each.
    pub listing: Option<Box<LinkListing>>,
}

/// A link as the library lists it.
#[derive(Clone, Debug)]
pub(super) struct ListedLink {
    pub name: BString,
    pub kind: c_int,
    pub token: ObjectToken,
    /// Its number in creation order, if tracked.
    pub creation: i64,
    /// The value of a soft or external link, if the listing has read it.
    pub value: Option<Vec<u8>>,
}

/// A walk in progress through the mappings of a virtual dataset.
#[derive(Debug)]
pub(super) struct MappingWalk {
    pub id: ObjectId,
    /// Whether mappings are in chunks of their source.
    pub by_chunk: bool,
    pub mappings: VirtualMappings,
    pub shape: Vec<u64>,
    pub count: usize,
    pub next: usize,
    pub sources: MappedDatasets,
}

/// The mappings of a virtual dataset.
#[derive(Debug)]
pub(super) enum VirtualMappings {
    /// Mappings read from the file.
    Stored(MappingList),
    /// Mappings in a copy of the dataset's creation property list.
    Listed(Id),
}

/// The datasets of the mappings so far.
#[derive(Debug, Default)]
pub(super) struct MappedDatasets {
    pub met: Vec<MappedDataset>,
    pub by_path: HashMap<BString, u32>,
    pub path_bytes: usize,
}

/// A mapped dataset.
#[derive(Debug)]
pub(super) struct MappedDataset {
    pub mapped: MappedSource,
    pub shape: Vec<u64>,
    /// Extent of a chunk; empty if it has no chunks.
    pub chunk: Vec<u64>,
}

/// A dataset that stays open between reads, and with it libhdf5's chunk cache.
#[derive(Debug)]
pub(super) struct OpenedDataset {
    pub id: ObjectId,
    pub dataset: Id,
    pub datatype: Id,
    pub plan: ElementConversion,
    pub extent: Dataspace,
    /// Extent of a chunk; empty if the dataset has no chunks.
    pub chunk: Vec<u64>,
}

/// A walk over the hard links of a file, breadth-first: the first path to an object becomes its path.
#[derive(Debug)]
pub(super) struct Paths {
    pub file: u32,
    pub found: HashMap<u64, String>,
    pub queue: VecDeque<u64>,
}
