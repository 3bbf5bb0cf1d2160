//! What requests keep for those after them: a page goes on where the one before ended, and the dataset read last
//! stays open.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

use bstr::BString;

use super::values::{Extent, Plan};
use crate::catalogue::{ByName, MappedSource, ObjectId};
use crate::codec::structure::mapped::MappingList;
use crate::h5::library::ffi::Token;
use crate::h5::library::{Id, Reason};

/// Links of other groups that are kept with a listing, as far as its links lead through them.
const MOST_PASSED: u64 = 1 << 20;

/// The links of a group, by name and class.
#[derive(Debug)]
pub(super) struct Listing {
    pub id: ObjectId,
    pub creation_order: bool,
    pub links: Vec<Found>,
    /// Where the library goes on, as long as there is more.
    pub next: Option<u64>,
    /// Why the list ends early.
    pub failure: Option<Reason>,
    /// Bytes of attributes that may still be read of members.
    pub values_left: usize,
    /// Bytes of values of links that may still be kept.
    pub link_values_left: usize,
    /// Other groups that soft links lead through.
    pub passed: HashMap<ObjectId, Passed>,
    /// Links that may still be listed of them.
    pub passed_left: u64,
    by_name: ByName,
}

impl Listing {
    /// A listing before its first link, that keeps no values.
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

    /// Whether every link of the group is there.
    pub fn is_whole(&self) -> bool {
        self.next.is_none() && self.failure.is_none()
    }

    /// A link of a group whose listing is whole.
    pub fn link(&self, name: &[u8]) -> Option<&Found> {
        let at = self.by_name.position(self.links.len(), |at| Some(&self.links.get(at)?.name), name)?;
        self.links.get(at)
    }
}

/// A group that paths lead through.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// How often libhdf5 was asked for a link of it.
    pub asked: u32,
    /// Its links, where libhdf5 would take long to find each.
    pub listing: Option<Box<Listing>>,
}

/// A link as the library lists it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub name: BString,
    pub kind: c_int,
    pub token: Token,
    /// Its number in creation order, where that is tracked.
    pub creation: i64,
    /// The value of a soft or external link, where it was read with the list.
    pub value: Option<Vec<u8>>,
}

/// A virtual dataset on the way through its mappings.
#[derive(Debug)]
pub(super) struct MappingWalk {
    pub id: ObjectId,
    /// Whether mappings are told in chunks of their source.
    pub by_chunk: bool,
    pub mappings: Mapped,
    pub shape: Vec<u64>,
    pub count: usize,
    pub next: usize,
    pub sources: Sources,
}

/// The mappings of a virtual dataset.
#[derive(Debug)]
pub(super) enum Mapped {
    /// Read from the file.
    Stored(MappingList),
    /// In a copy of its creation property list.
    Listed(Id),
}

/// The datasets that its mappings met so far.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub met: Vec<Source>,
    pub by_path: HashMap<BString, u32>,
    pub path_bytes: usize,
}

/// A dataset that is mapped.
#[derive(Debug)]
pub(super) struct Source {
    pub mapped: MappedSource,
    pub shape: Vec<u64>,
    /// Extent of a chunk; empty where it has none.
    pub chunk: Vec<u64>,
}

/// A dataset that stays open between reads, so that libhdf5's chunk cache does.
#[derive(Debug)]
pub(super) struct Opened {
    pub id: ObjectId,
    pub dataset: Id,
    pub datatype: Id,
    pub plan: Plan,
    pub extent: Extent,
    /// Extent of a chunk, or empty.
    pub chunk: Vec<u64>,
}

/// A walk over the hard links of a file, breadth-first: the first path that leads to an object stands for it.
#[derive(Debug)]
pub(super) struct Paths {
    pub file: u32,
    pub found: HashMap<u64, String>,
    pub queue: VecDeque<u64>,
}
