//! Reads the whole catalogue of a small, simple file without libhdf5.
//!
//! Most small files use few forms of the format: groups of symbol tables or of links in their headers, and datasets
//! that are contiguous, compact or chunked with a B-tree of version 1. [`read`] knows these forms exactly. It returns
//! nothing for a file with anything else in it, anything odd, or anything that contradicts the rest: then the worker
//! answers. It accepts less than libhdf5, so what it returns is what libhdf5 would say.
//!
//! | room | task |
//! | --- | --- |
//! | `image` | bytes of the file; which structure has which |
//! | `header` | object headers |
//! | `datatype` | datatypes |
//! | `value` | dataspaces, attributes, global heaps |
//! | `group` | links |
//! | `dataset` | fill values, filters, layouts, chunk trees |
//!
//! The bytes are hostile until proved otherwise. Structures may not overlap, so no walk can go round in circles. The
//! bytes read, the objects and the nesting of datatypes are bounded. All arithmetic is checked.

mod dataset;
mod datatype;
mod group;
mod header;
mod image;
mod value;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bstr::BString;

use self::header::{Header, Kind};
use self::image::Image;
use self::value::Values;
use super::Rest;
use crate::catalogue::{ChunkMap, FileInfo, Group, Link, Object, ObjectId, Target};

/// Reads bytes at an address; `None`: it failed.
pub type BytesAt<'a> = dyn Fn(u64, &mut [u8]) -> Option<()> + 'a;

/// Bytes of an address and of a length; files with others are not simple.
const WIDTH: usize = 8;

/// The undefined address.
const UNDEFINED: u64 = u64::MAX;

/// Most objects of a simple file.
const MOST_OBJECTS: usize = 1000;

/// Most links of a simple file: several may lead to one object.
const MOST_LINKS: usize = 2 * MOST_OBJECTS;

/// Most bytes of attribute values in all links: many may lead to one object, and each has its description.
const MOST_VALUES: usize = 1 << 20;

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The catalogue of a simple file.
#[derive(Debug, PartialEq)]
pub struct SimpleFile {
    /// Facts about the file.
    pub info: FileInfo,
    /// All groups, breadth first from the root.
    pub groups: Vec<Group>,
    /// The chunks of all chunked datasets.
    pub chunks: Vec<(ObjectId, ChunkMap)>,
}

/// Half the most entries of nodes in B-trees and of leaves (file format II).
#[derive(Clone, Copy, Debug)]
struct Ranks {
    leaf: usize,
    group: usize,
    chunk: usize,
}

/// The links of a group as stored, in the order of [`Group::links`].
#[derive(Debug)]
struct Links {
    links: Vec<(BString, u64)>,
    creation_order: bool,
}

/// Reads the catalogue of a file of `length` bytes. `None`: the file is not simple, or reading failed.
pub fn read(read_at: &BytesAt<'_>, length: u64) -> Option<SimpleFile> {
    let mut image = Image::new(read_at, length)?;
    let (superblock, ranks, root) = superblock(&mut image)?;
    let id = |address| ObjectId { file: 0, address };
    let mut walk = Walk { image, ranks, values: Values::default(), chunks: Vec::new() };
    let mut objects = HashMap::new();
    let mut listed = Vec::new();
    let (mut queue, mut link_count) = (VecDeque::from([root]), 0usize);
    while let Some(address) = queue.pop_front() {
        if objects.contains_key(&address) {
            continue;
        }
        let (object, links) = walk.object(address)?;
        objects.insert(address, object);
        let Some(links) = links else { continue };
        link_count = link_count.checked_add(links.links.len())?;
        queue.extend(links.links.iter().map(|(_, address)| *address));
        listed.push((address, links));
        if link_count > MOST_LINKS || objects.len() > MOST_OBJECTS {
            return None;
        }
    }
    if objects.len() > MOST_OBJECTS || !walk.values.targets().all(|target| objects.contains_key(&target)) {
        return None;
    }
    let weights: HashMap<u64, usize> = objects.iter().map(|(address, object)| (*address, weight(object))).collect();
    let links = listed.iter().flat_map(|(_, links)| &links.links);
    if links.filter_map(|(_, address)| weights.get(address)).sum::<usize>() > MOST_VALUES {
        return None;
    }
    let mut groups = Vec::with_capacity(listed.len());
    for (address, Links { links, creation_order }) in listed {
        let link =
            |(name, address): (BString, u64)| Some(Link { name, target: Target::Hard(objects.get(&address)?.clone()) });
        let links: Vec<Link> = links.into_iter().map(link).collect::<Option<_>>()?;
        let Object::Group { attributes, .. } = objects.get(&address)? else { return None };
        groups.push(Group::new(id(address), attributes.clone(), links, creation_order));
    }
    let info = FileInfo {
        superblock,
        user_block: 0,
        address_size: WIDTH as u8,
        length_size: WIDTH as u8,
        swmr: false,
        has_image: false,
        root: id(root),
    };
    // The root must be a group: then it is the first.
    (groups.first()?.id == info.root).then_some(SimpleFile { info, groups, chunks: walk.chunks })
}

/// Bytes of the values of an object's attributes, roughly.
fn weight(object: &Object) -> usize {
    let values = object.attributes().iter().filter_map(|attribute| attribute.value.as_ref().ok());
    values.map(|value| value.bytes.len() + value.heap.len()).sum()
}

/// Reads the superblock: its version, the ranks, the address of the root group's header.
fn superblock(image: &mut Image<'_>) -> Option<(u32, Ranks, u64)> {
    let head = image.peek(0, 10)?;
    let version = *head.get(SIGNATURE.len()).filter(|_| head.starts_with(SIGNATURE))?;
    let mut ranks = Ranks { leaf: 4, group: 16, chunk: 32 };
    let length = match version {
        0 => 96,
        1 => 100,
        2 | 3 => 48,
        _ => return None,
    };
    let whole = image.peek(0, length)?;
    let mut rest = Rest(whole.get(SIGNATURE.len() + 1..)?);
    let root = if version < 2 {
        // Versions of free space, root entry, a reserved byte, shared headers; two widths, a reserved byte.
        let [0, 0, _, 0, 8, 8, _] = rest.take(7)? else { return None };
        ranks.leaf = usize::try_from(rest.number(2)?).ok()?;
        ranks.group = usize::try_from(rest.number(2)?).ok()?;
        let flags = rest.number(4)?;
        if version == 1 {
            ranks.chunk = usize::try_from(rest.number(2)?).ok()?;
            rest.skip(2)?;
        }
        let [0, UNDEFINED, end, UNDEFINED] = *rest.numbers(WIDTH, 4)? else { return None };
        image.end_at(end)?;
        rest.skip(WIDTH)?;
        let (root, cached) = (rest.number(WIDTH)?, rest.number(4)?);
        // Until version 3, flags of openings for writing mean nothing; libraries before 1.6 set them.
        (flags <= 3 && cached <= 1).then_some(root)?
    } else {
        let [8, 8, 0] = rest.take(3)? else { return None };
        let [0, UNDEFINED, end, root] = *rest.numbers(WIDTH, 4)? else { return None };
        image.end_at(end)?;
        header::has_checksum(&whole)?;
        root
    };
    if [ranks.leaf, ranks.group, ranks.chunk].contains(&0) {
        return None;
    }
    image.take(0, length)?;
    Some((version.into(), ranks, root))
}

/// A walk through the objects of a file.
struct Walk<'a> {
    image: Image<'a>,
    ranks: Ranks,
    values: Values,
    chunks: Vec<(ObjectId, ChunkMap)>,
}

impl Walk<'_> {
    /// Describes an object; of a group also the links.
    fn object(&mut self, address: u64) -> Option<(Object, Option<Links>)> {
        let id = ObjectId { file: 0, address };
        let header = Header::read(&mut self.image, address)?;
        let attributes = self.values.attributes(&mut self.image, &header)?;
        Some(match header.kind()? {
            Kind::Dataset => {
                let (dataset, chunks) = dataset::read(&mut self.image, self.ranks, id, &header, attributes)?;
                self.chunks.extend(chunks.map(|chunks| (id, chunks)));
                (Object::Dataset(Arc::new(dataset)), None)
            }
            kind => {
                let links = match kind {
                    Kind::OldGroup => group::symbol_table(&mut self.image, self.ranks, &header)?,
                    _ => group::compact(&header)?,
                };
                let object = Object::Group { id, link_count: header.references, attributes: attributes.into() };
                (object, Some(links))
            }
        })
    }
}

/// Distinct items by their keys, in their order; `None`: two have the same key.
fn distinct<'a, T, K: Ord + 'a>(items: &'a [T], key: impl Fn(&'a T) -> K) -> Option<()> {
    let mut known = BTreeMap::new();
    items.iter().all(|item| known.insert(key(item), ()).is_none()).then_some(())
}
