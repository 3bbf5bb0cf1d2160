//! Dataspaces, and attributes with their values (file format IV.A.2.b and m, III.E).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::datatype::{self, is_converted};
use super::header::Header;
use super::image::Image;
use super::{UNDEFINED, WIDTH, distinct};
use crate::catalogue::{Attribute, Class, Datatype, Descriptor, Elements, ObjectId, ReferenceKind, product};
use crate::codec::structure::{MAX_RANK, Rest};

/// Most attributes of an object.
const MOST_ATTRIBUTES: usize = 256;

/// Most bytes of all variable-length contents of a file: many elements may have the same.
const MOST_CONTENTS: usize = 256 << 10;

/// Elements along a dimension, and bytes of all elements, are fewer; libhdf5 refuses a little more.
const MOST_EXTENT: u64 = 1 << 62;

/// Bytes of the headers of a global heap and of an object in it.
const HEAP_HEADER: usize = 16;

/// Fewest bytes of a global heap (`H5HG_MINSIZE`).
const LEAST_HEAP: usize = 4096;

/// A dataspace.
#[derive(Debug)]
pub(super) struct Extent {
    pub shape: Vec<u64>,
    pub max_shape: Vec<Option<u64>>,
    pub null: bool,
}

impl Extent {
    /// Reads the dataspace at the beginning of a message.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut rest = Rest(body);
        let (version, rank, flags) = (rest.byte()?, usize::from(rest.byte()?), rest.byte()?);
        let null = match version {
            1 => rest.skip(5).map(|()| false)?,
            2 => match (rest.byte()?, rank) {
                (0, 0) => false,
                (1, 1..) => false,
                (2, 0) => true,
                _ => return None,
            },
            _ => return None,
        };
        if rank > MAX_RANK || flags > 1 {
            return None;
        }
        let shape = rest.numbers(WIDTH, rank)?;
        let most = if flags == 1 { rest.numbers(WIDTH, rank)? } else { shape.clone() };
        let fits = shape.iter().zip(&most).all(|(now, most)| now <= most && *now < MOST_EXTENT);
        let max_shape = most.into_iter().map(|most| (most != UNDEFINED).then_some(most)).collect();
        fits.then_some(Self { shape, max_shape, null })
    }

    /// Bytes of all elements of a size; `None`: too many.
    pub fn bytes(&self, size: u64) -> Option<u64> {
        if self.null { Some(0) } else { product(&self.shape)?.checked_mul(size).filter(|bytes| *bytes < MOST_EXTENT) }
    }
}

/// Reads attributes, and collects what they lead to.
#[derive(Debug, Default)]
pub(super) struct Values {
    heaps: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    targets: Vec<u64>,
    contents: usize,
}

impl Values {
    /// The targets of all references that libhdf5 would open.
    pub fn targets(&self) -> impl Iterator<Item = u64> {
        self.targets.iter().copied()
    }

    /// The attributes of an object.
    pub fn attributes(&mut self, image: &mut Image<'_>, header: &Header) -> Option<Vec<Attribute>> {
        let bodies = header.attributes().filter(|bodies| bodies.len() <= MOST_ATTRIBUTES)?;
        let attributes: Vec<_> = bodies.into_iter().map(|body| self.attribute(image, body)).collect::<Option<_>>()?;
        distinct(&attributes, |attribute| &attribute.name)?;
        Some(attributes)
    }

    fn attribute(&mut self, image: &mut Image<'_>, body: &[u8]) -> Option<Attribute> {
        let mut rest = Rest(body);
        let (version, flags) = (rest.byte()?, rest.byte()?);
        let [name, of_type, of_space] = *rest.numbers(2, 3)? else { return None };
        match (version, flags) {
            (1, _) | (2, 0) => {}
            (3, 0) => drop(rest.byte().filter(|charset| *charset <= 1)?),
            _ => return None,
        }
        let mut part = |length: u64| {
            let length = usize::try_from(length).ok()?;
            let whole = if version == 1 { length.next_multiple_of(8) } else { length };
            rest.take(whole)?.get(..length)
        };
        let name = part(name)?.strip_suffix(b"\0").filter(|name| !name.is_empty() && !name.contains(&0))?;
        let datatype = datatype::read(part(of_type)?)?;
        let extent = Extent::read(part(of_space)?)?;
        let bytes = rest.take(usize::try_from(extent.bytes(datatype.size)?).ok()?)?;
        let (mut value, mut references) = (Elements::default(), Vec::new());
        if datatype.class == Class::Reference(ReferenceKind::Object) {
            for target in Rest(bytes).numbers(WIDTH, bytes.len() / WIDTH)? {
                references.push((target > 0).then_some(ObjectId { file: 0, address: target }));
                self.targets.extend((target > 0).then_some(target));
            }
        }
        for element in bytes.chunks_exact(usize::try_from(datatype.size).ok()?) {
            let element = self.element(image, &datatype, element, &mut value.heap)?;
            value.bytes.extend_from_slice(&element);
        }
        let Extent { shape, null, .. } = extent;
        Some(Attribute { name: name.into(), datatype, shape, null, value: Ok(value), references })
    }

    /// An element as the catalogue has it; its variable-length contents go to `heap`.
    fn element(
        &mut self,
        image: &mut Image<'_>,
        datatype: &Datatype,
        bytes: &[u8],
        heap: &mut Vec<u8>,
    ) -> Option<Vec<u8>> {
        let (width, is_text) = match &datatype.class {
            Class::VariableString { .. } => (1, true),
            Class::Sequence { base } => (base.size, false),
            Class::Compound { fields } if is_converted(datatype) => {
                // libhdf5 converts field by field, into zeros.
                let mut element = vec![0; bytes.len()];
                for field in fields {
                    let from = usize::try_from(field.offset).ok()?;
                    let place = from..from.checked_add(usize::try_from(field.datatype.size).ok()?)?;
                    let value = self.element(image, &field.datatype, bytes.get(place.clone())?, heap)?;
                    element.get_mut(place)?.copy_from_slice(&value);
                }
                return Some(element);
            }
            _ => return Some(bytes.to_vec()),
        };
        let stored = Descriptor::parse(bytes)?;
        let contents: &[u8] = match (stored.length, stored.position) {
            (0, 0) => &[],
            (1.., 1..) => {
                let object = self.heap(image, stored.position)?.get(&stored.index.into())?;
                (u64::from(stored.length).checked_mul(width)? == object.len() as u64).then_some(object)?
            }
            _ => return None,
        };
        let contents = if is_text { contents.split(|byte| *byte == 0).next()? } else { contents };
        let length = if is_text { u32::try_from(contents.len()).ok()? } else { stored.length };
        let position = heap.len() as u64;
        heap.extend_from_slice(contents);
        self.contents = self.contents.checked_add(heap.len() - position as usize).filter(|all| *all < MOST_CONTENTS)?;
        Some(Descriptor { length, position, index: 0 }.to_bytes().to_vec())
    }

    /// The objects of a global heap by their numbers.
    fn heap(&mut self, image: &mut Image<'_>, address: u64) -> Option<&BTreeMap<u64, Vec<u8>>> {
        if let Entry::Vacant(place) = self.heaps.entry(address) {
            let head = image.peek(address, HEAP_HEADER)?;
            let size = Rest(head.strip_prefix(b"GCOL\x01")?.get(3..)?).number(WIDTH)?;
            let size = usize::try_from(size).ok().filter(|size| *size >= LEAST_HEAP && size % 8 == 0)?;
            place.insert(objects(&image.take(address, size)?)?);
        }
        self.heaps.get(&address)
    }
}

/// The objects of a global heap. Free space, if there is any, comes last.
fn objects(heap: &[u8]) -> Option<BTreeMap<u64, Vec<u8>>> {
    let mut objects = BTreeMap::new();
    let mut rest = Rest(heap.get(HEAP_HEADER..)?);
    while !rest.0.is_empty() {
        let left = rest.0.len();
        let index = rest.number(2)?;
        rest.skip(6)?;
        let size = usize::try_from(rest.number(WIDTH)?).ok()?;
        if index == 0 {
            return (size == left).then_some(objects);
        }
        let padded = size.checked_next_multiple_of(8)?;
        if objects.insert(index, rest.take(padded)?.get(..size)?.to_vec()).is_some() {
            return None;
        }
    }
    Some(objects)
}
