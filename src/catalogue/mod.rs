//! The contents of an HDF5 file as plain data: groups, links, attributes, datatypes, fill values, filters, layouts and
//! chunk maps.
//!
//! This is the seam between libhdf5 and everything else. The worker process fills in these types and sends them over a
//! socket; higher layers need not know libhdf5. The types are data only: they read no file and call nothing.

mod chunk_map;
mod datatype;
mod elements;
mod mapping;
mod whole;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bstr::BString;
use serde::{Deserialize, Serialize};

pub use chunk_map::{Chunk, ChunkMap, ChunkMapBuilder, OutOfOrder, PACKED_CHUNK};
pub use datatype::{
    ByteOrder, Charset, Class, CompoundField, Datatype, EnumerationMember, FloatFormat, Padding, ReferenceKind,
};
pub use elements::{DESCRIPTOR_SIZE, Descriptor, Elements};
pub use mapping::{MappedSource, Mapping, Mappings};

/// An object: a file, and the address of the object's header in it (the native connector's object token).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// 0 for the source itself. The worker numbers other files, reached through external links, and only the worker can
    /// read them.
    pub file: u32,
    /// Address of the object header.
    pub address: u64,
}

/// A column: an object, or a field of it. A path is only for display: hard links give an object several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId {
    /// The dataset or group that holds the column.
    pub object: ObjectId,
    /// 0 for the whole element; `k + 1` for field `k` of a compound.
    pub field: u32,
}

impl ColumnId {
    /// The column of whole elements.
    pub fn whole(object: ObjectId) -> Self {
        Self { object, field: 0 }
    }
}

/// Facts about a whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Superblock version, 0 to 3.
    pub superblock: u32,
    /// Length of the user block in bytes; chunk addresses in this catalogue already include it, addresses stored
    /// inside the data (global heap) do not.
    pub user_block: u64,
    /// Width of addresses in the file, in bytes: 2, 4 or 8 (16 and 32 are refused).
    pub address_size: u8,
    /// Width of lengths in the file, in bytes.
    pub length_size: u8,
    /// Whether a writer has the file open in single-writer multiple-reader mode.
    pub swmr: bool,
    /// Whether the file has an image of libhdf5's metadata cache (`H5Pset_mdc_image_config`): the metadata at their
    /// usual places may then be outdated.
    pub has_image: bool,
    /// The root group.
    pub root: ObjectId,
}

/// A group with all that one listing shows of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The group itself.
    pub id: ObjectId,
    /// Its attributes, in the file's order.
    pub attributes: Arc<[Attribute]>,
    /// Its links: in creation order if the file tracks it, else bytewise by name. Only [`Group::retain`] changes them.
    pub links: Vec<Link>,
    /// Whether `links` is in creation order.
    pub creation_order: bool,
    /// Positions of links by name.
    #[serde(skip)]
    pub(crate) by_name: ByName,
}

impl Group {
    /// A group with these links.
    pub fn new(id: ObjectId, attributes: Arc<[Attribute]>, links: Vec<Link>, creation_order: bool) -> Self {
        Self { id, attributes, links, creation_order, by_name: ByName::default() }
    }

    /// The datasets behind its links, with the links' names.
    pub fn datasets(&self) -> impl Iterator<Item = (&BString, &Arc<Dataset>)> {
        self.links.iter().filter_map(|link| Some((&link.name, link.target.dataset()?)))
    }

    /// Keeps only some of its links.
    pub fn retain(&mut self, keep: impl FnMut(&Link) -> bool) {
        self.links.retain(keep);
        self.by_name = ByName::default();
    }

    /// The link with this name.
    pub fn link(&self, name: &[u8]) -> Option<&Link> {
        let at = self.by_name.position(self.links.len(), |at| Some(&self.links.get(at)?.name), name)?;
        self.links.get(at)
    }
}

/// Positions of links in the order of their names, made at the first search.
#[derive(Debug, Default)]
pub(crate) struct ByName(OnceLock<Box<[u32]>>);

impl ByName {
    /// Finds the position of the link with this name among `count` links; `named` gives their names.
    pub(crate) fn position<'a>(
        &self,
        count: usize,
        named: impl Fn(usize) -> Option<&'a BString>,
        name: &[u8],
    ) -> Option<usize> {
        let named = |at: &u32| named(*at as usize).map(|name| name.as_slice());
        let order = self.0.get_or_init(|| {
            let mut order: Box<[u32]> = (0..count as u32).collect();
            order.sort_by_key(named);
            order
        });
        let at = order.get(order.partition_point(|at| named(at) < Some(name)))?;
        (named(at) == Some(name)).then_some(*at as usize)
    }
}

/// A clone starts empty, because the links of a copy may change.
impl Clone for ByName {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for ByName {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The name: any bytes except NUL and `/`, usually UTF-8. An empty name belongs to the unreadable link that
    /// represents links that could not be listed.
    pub name: BString,
    /// The target.
    pub target: Target,
}

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// A hard link, with its object.
    Hard(Object),
    /// A soft link: a path in this file, which may lead nowhere.
    Soft {
        /// The path as stored, absolute or relative to the group of the link.
        path: BString,
        /// The object at that path now, or why there is no such object.
        object: Result<Box<Object>, Dangling>,
    },
    /// A link to an object in another file.
    External {
        /// The other file, as stored.
        file: BString,
        /// The path in it.
        path: BString,
        /// The object in the other file. `None`: external links are not followed, or this one dangles.
        object: Option<Box<Object>>,
    },
    /// A link of a class registered by some application; the number is its class.
    UserDefined(u32),
    /// libhdf5 could not read the link; the text is its reason.
    Unreadable(String),
}

impl Target {
    /// The object that is shown under the link's own name. `None` for soft links, which are shown as links.
    pub fn followed(&self) -> Option<&Object> {
        if matches!(self, Target::Soft { .. }) { None } else { self.object() }
    }

    /// The object behind the link, if any.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Target::Hard(object) => Some(object),
            Target::Soft { object, .. } => object.as_deref().ok(),
            Target::External { object, .. } => object.as_deref(),
            Target::UserDefined(_) | Target::Unreadable(_) => None,
        }
    }

    /// The dataset behind the link, if it is one.
    pub fn dataset(&self) -> Option<&Arc<Dataset>> {
        if let Object::Dataset(dataset) = self.object()? { Some(dataset) } else { None }
    }
}

/// Most soft and external links on one path, including the requested one: libhdf5's own limit (`H5Pset_nlinks`).
pub const MOST_LINKS_PASSED: usize = 16;

/// Why a soft link leads to no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dangling {
    /// The path leads to no object that can be read.
    Nowhere,
    /// The path leads through more than [`MOST_LINKS_PASSED`] links.
    TooManyLinks,
}

/// An object behind a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Object {
    /// A group. Its attributes identify its kind; its links are listed separately.
    Group {
        /// The group.
        id: ObjectId,
        /// Hard links that lead to it (`H5O_info2_t.rc`).
        link_count: u32,
        /// Its attributes.
        attributes: Arc<[Attribute]>,
    },
    /// A dataset, shared by all that have opened it, since a group may have very many.
    Dataset(Arc<Dataset>),
    /// A committed datatype.
    Datatype {
        /// The object.
        id: ObjectId,
        /// The type.
        datatype: Box<Datatype>,
        /// Its attributes.
        attributes: Arc<[Attribute]>,
    },
    /// libhdf5 could not open or describe the object.
    Unreadable {
        /// The object.
        id: ObjectId,
        /// libhdf5's reason.
        reason: String,
    },
}

impl Object {
    /// The object's address.
    pub fn id(&self) -> ObjectId {
        match self {
            Object::Group { id, .. } | Object::Datatype { id, .. } | Object::Unreadable { id, .. } => *id,
            Object::Dataset(dataset) => dataset.id,
        }
    }

    /// The object's attributes.
    pub fn attributes(&self) -> &[Attribute] {
        match self {
            Object::Group { attributes, .. } | Object::Datatype { attributes, .. } => attributes,
            Object::Dataset(dataset) => &dataset.attributes,
            Object::Unreadable { .. } => &[],
        }
    }
}

/// An attribute with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name. An empty name belongs to the attribute without value that represents attributes that could not be
    /// listed.
    pub name: BString,
    /// Type of one element.
    pub datatype: Datatype,
    /// Extent; empty for a scalar. See `null` for a null dataspace.
    pub shape: Vec<u64>,
    /// Whether the dataspace is null: it has no elements.
    pub null: bool,
    /// The elements in row-major order, or why they could not be read.
    pub value: Result<Elements, String>,
    /// For a reference type: the target of each element in this file, in order; `None` for a null or dangling
    /// reference. Empty for other types.
    pub references: Vec<Option<ObjectId>>,
}

impl Attribute {
    /// Number of elements. `None`: 2^64 or more.
    pub fn len(&self) -> Option<u64> {
        if self.null { Some(0) } else { product(&self.shape) }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// The attribute with this name.
pub fn attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|attribute| attribute.name == name)
}

/// The product of `extents`. `None`: 2^64 or more.
pub fn product(extents: &[u64]) -> Option<u64> {
    // A zero makes the product zero, even if the other extents would overflow.
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1u64, |n, extent| n.checked_mul(*extent))
}

/// A dataset: everything except its elements and its chunk map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// The object.
    pub id: ObjectId,
    /// Where its elements are stored.
    pub layout: Layout,
    /// The rest of its description.
    pub description: Arc<DatasetDescription>,
}

/// Facts that neighbouring datasets often share: datatype, dataspace, fill value, filters and attributes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetDescription {
    /// Type of one element, in its stored layout.
    pub datatype: Datatype,
    /// Extent in elements; empty for a scalar. See `null`.
    pub shape: Vec<u64>,
    /// Largest allowed extent, `None` for unlimited. As long as `shape`.
    pub max_shape: Vec<Option<u64>>,
    /// Whether the dataspace is null: it has no elements.
    pub null: bool,
    /// The value of unwritten elements.
    pub fill: Fill,
    /// Filter pipeline in the order applied on writing.
    pub filters: Vec<Filter>,
    /// Its attributes.
    pub attributes: Arc<[Attribute]>,
}

impl Deref for Dataset {
    type Target = DatasetDescription;

    fn deref(&self) -> &DatasetDescription {
        &self.description
    }
}

impl Dataset {
    /// A copy with a changed description.
    pub fn described(&self, change: impl FnOnce(&mut DatasetDescription)) -> Self {
        let mut changed = self.clone();
        change(Arc::make_mut(&mut changed.description));
        changed
    }

    /// Whether another dataset shares the description and has the same kind of layout, so that both can be read in the
    /// same way.
    pub fn is_kept_like(&self, other: &Self) -> bool {
        let is_stored_alike = match (&self.layout, &other.layout) {
            (Layout::Contiguous { .. }, Layout::Contiguous { .. }) | (Layout::Compact, Layout::Compact) => true,
            (Layout::Chunked { .. }, Layout::Chunked { .. }) => self.layout == other.layout,
            _ => false,
        };
        is_stored_alike && self.id.file == other.id.file && Arc::ptr_eq(&self.description, &other.description)
    }

    /// Number of elements. `None`: 2^64 or more.
    pub fn len(&self) -> Option<u64> {
        if self.null { Some(0) } else { product(&self.shape) }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Bytes of all elements, without filters. `None`: 2^64 or more.
    pub fn bytes(&self) -> Option<u64> {
        self.len()?.checked_mul(self.datatype.size)
    }
}

/// A fill value (`H5Pfill_value_defined`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fill {
    /// Explicitly undefined: unwritten elements read as zero here.
    Undefined,
    /// The library's default: zero.
    Default,
    /// Set by the producer: one element. HEP001 reads it as "missing".
    Explicit(Elements),
    /// libhdf5 could not read it.
    Unreadable(String),
}

/// Where the elements of a dataset are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Layout {
    /// In the object header; read by the worker.
    Compact,
    /// In one contiguous run.
    Contiguous {
        /// First byte in the file, the user block included; `None` when no space was allocated.
        address: Option<u64>,
    },
    /// In chunks of equal extent.
    Chunked {
        /// Extent of a chunk in elements, one for each dimension; none is zero.
        chunk: Vec<u64>,
        /// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`: chunks that overhang the extent are stored without filters.
        partial_unfiltered: bool,
    },
    /// Mapped from other datasets. [`Mappings`] has the mappings whose elements need not come from the worker.
    Virtual {
        /// The mapped files and datasets.
        sources: Vec<VirtualSource>,
    },
    /// In other files (external raw storage).
    External {
        /// Names of those files, as stored.
        files: Vec<BString>,
    },
    /// A class that hepfs does not know.
    Unknown(i32),
}

/// One mapping of a virtual dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualSource {
    /// The file as stored; `.` means the same file, whatever its name.
    pub file: BString,
    /// Path of the dataset in it.
    pub dataset: BString,
}

/// A filter of a pipeline (`H5Pget_filter2`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Registered number: 1 deflate, 2 shuffle, 3 fletcher32, …
    pub id: i32,
    /// `H5Z_FLAG_OPTIONAL`: skipped for a chunk on which it fails.
    pub optional: bool,
    /// Client data; at most the first 256 numbers, which is all that libhdf5 reports.
    pub parameters: Vec<u32>,
    /// Name as stored.
    pub name: String,
    /// Whether libhdf5 can undo it: built in, or by a plugin from the user's folder.
    pub available: bool,
}

/// HDF5 path of the member `name` of the group at `path`; bytes that are not UTF-8 are written `\\xNN`.
pub fn join(path: &str, name: &[u8]) -> String {
    let slash = if path == "/" { "" } else { "/" };
    let mut joined = format!("{path}{slash}");
    for chunk in name.utf8_chunks() {
        joined.push_str(chunk.valid());
        joined.extend(chunk.invalid().iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()).map(char::from));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_name_in_any_order() {
        let named = |(number, name): (u32, &str)| Link { name: name.into(), target: Target::UserDefined(number) };
        let links = (0..).zip(["b", "", "a", "c", "a"]).map(named).collect();
        let mut group = Group::new(ObjectId { file: 0, address: 8 }, Arc::default(), links, true);
        let found = |group: &Group, name: &str| match group.link(name.as_bytes())?.target {
            Target::UserDefined(number) => Some(number),
            _ => None,
        };
        let all = |group: &Group| ["a", "b", "", "c", "d", "aa"].map(|name| found(group, name));
        assert_eq!(all(&group), [Some(2), Some(0), Some(1), Some(3), None, None]);
        let copy = Group { links: group.links[3..].to_vec(), ..group.clone() };
        assert_eq!(all(&copy), [Some(4), None, None, Some(3), None, None]);
        group.retain(|link| link.name != "b");
        assert_eq!(all(&group), [Some(2), None, Some(1), Some(3), None, None]);
        assert_eq!(group, group.clone());
    }

    #[test]
    fn paths_show_every_byte() {
        assert_eq!(join("/", b"a"), "/a");
        assert_eq!(join("/a", b"b\xff\xfe c"), "/a/b\\xff\\xfe c");
    }

    #[test]
    fn an_extent_of_zero_never_overflows() {
        assert_eq!(product(&[u64::MAX, 0, u64::MAX]), Some(0));
        assert_eq!(product(&[u64::MAX, 2]), None);
    }
}
