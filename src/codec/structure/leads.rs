//! Finds where the structures of a file lead, so that those can be fetched before libhdf5 reads one after the other.
//!
//! Nothing depends on what is found here but the time that reading takes: forms that are rare are left out, and bytes
//! that make no sense lead nowhere.

use super::header::{self, HeaderMessage, ReadAt};
use super::{Rest, Widths};

/// Bytes of a heap collection, or of the head of an index, to fetch.
const HEAD: u64 = 512;

/// Most bytes of a group's names to fetch at once.
const MOST_NAMES: u64 = 1 << 20;

/// Most entries of a node.
const MOST_ENTRIES: usize = 4096;

/// Kinds of messages in object headers (file format IV.A.2).
const LINK_INFO: u64 = 0x02;
const LINK: u64 = 0x06;
const LAYOUT: u64 = 0x08;
const ATTRIBUTE: u64 = 0x0c;
const SYMBOL_TABLE: u64 = 0x11;
const ATTRIBUTE_INFO: u64 = 0x15;

/// A structure at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// The header of an object, whose links are followed over this number of levels; its index of chunks is not.
    Object {
        /// Address.
        at: u64,
        /// Levels of links: 0, none; 1, to their names; 2, to the headers of their objects, and the names of the links
        /// of those.
        levels: u8,
    },
    /// The header of a chunked dataset, whose index is followed.
    Dataset(u64),
    /// A B-tree of version 1 with the links of a group.
    GroupTree {
        /// Address.
        at: u64,
        /// As of the group.
        levels: u8,
    },
    /// A node of symbols.
    Symbols {
        /// Address.
        at: u64,
        /// As of the group.
        levels: u8,
    },
    /// The heap with the names of a group.
    Names(u64),
    /// A fractal heap with links or attributes.
    FractalHeap {
        /// Address.
        at: u64,
        /// As of the group.
        levels: u8,
    },
    /// Blocks of a fractal heap.
    Block {
        /// Address.
        at: u64,
        /// Bytes.
        length: u64,
        /// Bytes before the first link.
        head: u8,
        /// As of the group.
        levels: u8,
    },
    /// A B-tree of version 1 with the chunks of a dataset.
    ChunkTree {
        /// Address.
        at: u64,
        /// Numbers in a key.
        dimensions: u8,
    },
    /// Bytes that lead nowhere, or whose way is not followed.
    Bytes {
        /// Address.
        at: u64,
        /// Their number.
        length: u64,
    },
}

impl Structure {
    /// The root group of a file without a user block, from its superblock, and the widths of its numbers. `None`: not a
    /// superblock.
    pub fn root(levels: u8, read: &ReadAt<'_>) -> Option<(Self, Widths)> {
        let bytes = read(0, 96)?;
        let mut rest = Rest(bytes.strip_prefix(b"\x89HDF\r\n\x1a\n")?);
        let version = rest.byte()?;
        rest.skip(if version < 2 { 4 } else { 0 })?;
        let widths = Widths { address: rest.byte()?.into(), length: rest.byte()?.into() };
        let widths = Some(widths).filter(|widths| widths.address <= 8 && widths.length <= 8)?;
        // Reserved byte, ranks of nodes, flags; or flags.
        rest.skip(match version {
            0 => 9,
            1 => 13,
            2 | 3 => 1,
            _ => return None,
        })?;
        // Base, free space, end, driver block, offset of a name; or base, extension, end.
        let before = if version < 2 { 5 } else { 3 };
        rest.numbers(widths.address, before)?;
        Some((Self::Object { at: rest.number(widths.address)?, levels }, widths))
    }

    /// Reads the structure, and finds those that it leads to. `None`: `read` does not have all its bytes, or they make
    /// no sense.
    pub fn follow(self, widths: Widths, read: &ReadAt<'_>) -> Option<Vec<Self>> {
        let mut found = Vec::new();
        match self {
            Self::Object { at, levels } => {
                for message in header::messages(at, widths, read)? {
                    of_message(&message, levels, widths, &mut found);
                }
            }
            Self::Dataset(at) => {
                let messages = header::messages(at, widths, read)?;
                found.extend(messages.iter().find_map(|message| chunk_index(message, widths)));
            }
            Self::GroupTree { at, levels } => {
                found = node(at, widths.length, widths, read)?
                    .map(|(level, at)| match level {
                        0 => Self::Symbols { at, levels },
                        _ => Self::GroupTree { at, levels },
                    })
                    .collect();
            }
            Self::ChunkTree { at, dimensions } => {
                let key = 8 + 8 * usize::from(dimensions);
                let children = node(at, key, widths, read)?.filter(|(level, _)| *level > 0);
                found = children.map(|(_, at)| Self::ChunkTree { at, dimensions }).collect();
            }
            Self::Symbols { at, levels } => symbols(at, levels, widths, read, &mut found)?,
            Self::Names(at) => {
                let head = read(at, 8 + 3 * 8)?;
                let mut rest = Rest(head.strip_prefix(b"HEAP")?);
                rest.skip(4)?;
                let length = rest.number(widths.length)?.min(MOST_NAMES);
                rest.skip(widths.length)?;
                found.push(Self::Bytes { at: rest.number(widths.address)?, length });
            }
            Self::FractalHeap { at, levels } => found = fractal_heap(at, levels, widths, read)?,
            Self::Block { at, length, head, levels } => {
                let bytes = read(at, usize::try_from(length).ok()?)?;
                let mut rest = Rest(bytes.strip_prefix(b"FHDB")?);
                rest.skip(usize::from(head).checked_sub(4)?)?;
                while levels > 1
                    && let Some(target) = link(&mut rest, widths)
                {
                    found.extend(target.map(|at| Self::Object { at, levels: levels - 1 }));
                }
            }
            Self::Bytes { at, length } => drop(read(at, usize::try_from(length).ok()?)?),
        }
        Some(found)
    }
}

/// Adds where a message of an object header leads.
fn of_message(message: &HeaderMessage, levels: u8, widths: Widths, found: &mut Vec<Structure>) -> Option<()> {
    let mut rest = Rest(message.body.as_deref()?);
    match message.kind {
        SYMBOL_TABLE if levels > 0 => {
            found.push(Structure::GroupTree { at: rest.number(widths.address)?, levels });
            found.push(Structure::Names(rest.number(widths.address)?));
        }
        LINK_INFO | ATTRIBUTE_INFO if levels > 0 => {
            let is_links = message.kind == LINK_INFO;
            let [0, flags] = *rest.take(2)? else { return None };
            let order = if is_links { 8 } else { 2 };
            rest.skip(if flags & 1 != 0 { order } else { 0 })?;
            let [heap, names] = *rest.numbers(widths.address, 2)? else { return None };
            // A group with few links has them in its header.
            if Some(heap) != widths.undefined() {
                found.push(Structure::FractalHeap { at: heap, levels: if is_links { levels } else { 1 } });
                found.push(Structure::Bytes { at: names, length: HEAD });
            }
        }
        LINK if levels > 1 => {
            found.extend(link(&mut rest, widths)?.map(|at| Structure::Object { at, levels: levels - 1 }));
        }
        // A single text of variable length ends with its descriptor: length, address, index.
        ATTRIBUTE if is_text(rest.0)? => {
            let body = rest.0;
            let descriptor = body.get(body.len().checked_sub(8 + widths.address)?..)?;
            let at = super::little_endian(descriptor.get(4..4 + widths.address)?);
            found.extend((at > 0).then_some(Structure::Bytes { at, length: HEAD }));
        }
        _ => {}
    }
    Some(())
}

/// Whether an attribute has a datatype of variable length.
fn is_text(attribute: &[u8]) -> Option<bool> {
    let mut rest = Rest(attribute);
    let version = rest.byte()?;
    rest.skip(1)?;
    let [name, _, _] = *rest.numbers(2, 3)? else { return None };
    rest.skip(if version == 3 { 1 } else { 0 })?;
    let name = usize::try_from(name).ok()?;
    rest.skip(if version == 1 { name.next_multiple_of(8) } else { name })?;
    Some(rest.byte()? & 0x0f == 9)
}

/// The index of a chunked layout.
fn chunk_index(message: &HeaderMessage, widths: Widths) -> Option<Structure> {
    let body = message.body.as_deref().filter(|_| message.kind == LAYOUT)?;
    match body {
        [3, 2, dimensions, rest @ ..] => {
            Some(Structure::ChunkTree { at: Rest(rest).number(widths.address)?, dimensions: *dimensions })
        }
        [4, 2, ..] => {
            let at = super::little_endian(body.get(body.len().checked_sub(widths.address)?..)?);
            Some(Structure::Bytes { at, length: HEAD })
        }
        _ => None,
    }
}

/// The children of a node of a B-tree of version 1, each with the level of the node.
fn node(at: u64, key: usize, widths: Widths, read: &ReadAt<'_>) -> Option<impl Iterator<Item = (u8, u64)> + use<>> {
    let head = read(at, 8 + 2 * widths.address)?;
    let mut rest = Rest(head.strip_prefix(b"TREE")?);
    rest.skip(1)?;
    let level = rest.byte()?;
    let count = usize::try_from(rest.number(2)?).ok().filter(|count| *count <= MOST_ENTRIES)?;
    let entry = key + widths.address;
    let entries = read(at.checked_add(head.len() as u64)?, count * entry)?;
    Some((0..entries.len() / entry.max(1)).filter_map(move |number| {
        let child = entries.get(number * entry + key..(number + 1) * entry)?;
        Some((level, super::little_endian(child)))
    }))
}

/// Adds the objects of a node of symbols, and the links of those that are groups.
fn symbols(at: u64, levels: u8, widths: Widths, read: &ReadAt<'_>, found: &mut Vec<Structure>) -> Option<()> {
    let head = read(at, 8)?;
    let mut rest = Rest(head.strip_prefix(b"SNOD")?);
    rest.skip(2)?;
    let count = usize::try_from(rest.number(2)?).ok().filter(|count| *count <= MOST_ENTRIES)?;
    let entry = 2 * widths.address + 24;
    let entries = read(at.checked_add(8)?, count * entry)?;
    for entry in entries.chunks_exact(entry).filter(|_| levels > 1) {
        let levels = levels - 1;
        let mut rest = Rest(entry);
        rest.skip(widths.address)?;
        found.push(Structure::Object { at: rest.number(widths.address)?, levels });
        if rest.number(8)? == 1 {
            found.push(Structure::GroupTree { at: rest.number(widths.address)?, levels });
            found.push(Structure::Names(rest.number(widths.address)?));
        }
    }
    Some(())
}

/// The direct blocks of a fractal heap without filters (file format III.G), as far as one indirect block has them.
fn fractal_heap(at: u64, levels: u8, widths: Widths, read: &ReadAt<'_>) -> Option<Vec<Structure>> {
    let head = read(at, 22 + 12 * 8 + 3 * 8)?;
    let mut rest = Rest(head.strip_prefix(b"FRHP")?);
    rest.skip(3)?;
    let filters = rest.number(2)?;
    let flags = rest.byte()?;
    rest.skip(4)?;
    // Next identifier and tree of huge objects; free space and its manager; sizes and counts of managed, huge and tiny
    // objects.
    rest.skip(2 * (widths.length + widths.address) + 8 * widths.length)?;
    let width = rest.number(2)?;
    let [start, most_direct] = *rest.numbers(widths.length, 2)? else { return None };
    let bits = u8::try_from(rest.number(2)?).ok()?;
    rest.skip(2)?;
    let root = rest.number(widths.address)?;
    let rows = rest.number(2)?;
    if filters > 0 || Some(root) == widths.undefined() {
        return Some(Vec::new());
    }
    let offset = bits.div_ceil(8);
    let before = u8::try_from(5 + widths.address).ok()?.checked_add(offset)?;
    let head = before.checked_add(if flags & 2 != 0 { 4 } else { 0 })?;
    let block = |at, length: u64| Structure::Block { at, length: length.min(MOST_NAMES), head, levels };
    if rows == 0 {
        return Some(vec![block(root, start)]);
    }
    // Rows of blocks: the first two are of the starting size, each later one doubles.
    let sizes = (0..rows).map_while(|row| start.checked_shl(u32::try_from(row.saturating_sub(1)).ok()?));
    let sizes = sizes.take_while(|size| *size <= most_direct).flat_map(|size| (0..width).map(move |_| size));
    let sizes: Vec<u64> = sizes.take(MOST_ENTRIES).collect();
    let indirect = read(root.checked_add(before.into())?, sizes.len() * widths.address)?;
    let blocks = indirect.chunks_exact(widths.address.max(1)).map(super::little_endian).zip(sizes);
    Some(blocks.filter(|(at, _)| Some(*at) != widths.undefined()).map(|(at, size)| block(at, size)).collect())
}

/// Reads a link (file format IV.A.2.g). The address of its object; `Some(None)`: it leads elsewhere.
fn link(rest: &mut Rest<'_>, widths: Widths) -> Option<Option<u64>> {
    let [1, flags] = *rest.take(2)? else { return None };
    let kind = if flags & 8 != 0 { rest.byte()? } else { 0 };
    rest.skip(if flags & 4 != 0 { 8 } else { 0 })?;
    rest.skip(if flags & 16 != 0 { 1 } else { 0 })?;
    let name = rest.number(1 << (flags & 3))?;
    rest.skip(usize::try_from(name).ok()?)?;
    if kind == 0 {
        return Some(Some(rest.number(widths.address)?));
    }
    let length = rest.number(2)?;
    rest.skip(usize::try_from(length).ok()?)?;
    Some(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Beginnings of structures.
    const HEADS: [&[u8]; 11] = [
        b"",
        b"OHDR\x02",
        b"\x01\x00\x01\x00",
        b"TREE\x00\x00\x02\x00",
        b"TREE\x01\x01\x02\x00",
        b"SNOD\x01\x00\x02\x00",
        b"HEAP\x00\x00\x00\x00",
        b"FRHP\x00\x08\x00\x00\x00",
        b"FHDB\x00",
        b"\x89HDF\r\n\x1a\n\x00",
        b"\x89HDF\r\n\x1a\n\x02\x08\x08",
    ];

    const WIDTHS: Widths = Widths { address: 8, length: 8 };

    fn reading(file: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> {
        |at, length| {
            let at = usize::try_from(at).ok().filter(|at| *at <= file.len())?;
            Some(file[at..file.len().min(at.saturating_add(length))].to_vec())
        }
    }

    /// As the file format lays them out (II.A, III.A.1).
    #[test]
    fn a_superblock_leads_to_the_root_and_a_tree_to_its_children() {
        let mut old = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0".to_vec();
        for number in [0, u64::MAX, 4096, u64::MAX, 0, 96, 1] {
            old.extend(number.to_le_bytes());
        }
        let root = Structure::Object { at: 96, levels: 2 };
        assert_eq!(Structure::root(2, &reading(&old)).unwrap().0, root);
        let mut new = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
        for number in [0, u64::MAX, 4096, 96] {
            new.extend(number.to_le_bytes());
        }
        assert_eq!(Structure::root(2, &reading(&new)).unwrap().0, root);
        let mut tree = b"TREE\0\x01\x02\0".to_vec();
        for number in [u64::MAX, u64::MAX, 0, 800, 8, 1600, 16] {
            tree.extend(u64::to_le_bytes(number));
        }
        let below = |at| Structure::GroupTree { at, levels: 1 };
        assert_eq!(below(0).follow(WIDTHS, &reading(&tree)), Some(vec![below(800), below(1600)]));
        tree[5] = 0;
        let below = |at| Structure::Symbols { at, levels: 1 };
        let tree = Structure::GroupTree { at: 0, levels: 1 }.follow(WIDTHS, &reading(&tree));
        assert_eq!(tree, Some(vec![below(800), below(1600)]));
    }

    /// A hard link with its order and character set, a soft one, one of another version (IV.A.2.g).
    #[test]
    fn links_lead_to_their_objects() {
        let mut bytes = vec![1, 0x14, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, b'a', b'b', 0x40, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend([1, 8, 1, 1, b'c', 3, 0, b'/', b'a', b'b', 2, 0]);
        let mut rest = Rest(&bytes);
        assert_eq!([link(&mut rest, WIDTHS), link(&mut rest, WIDTHS)], [Some(Some(0x140)), Some(None)]);
        assert_eq!(link(&mut rest, WIDTHS), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            head in prop::sample::select(HEADS.to_vec()),
            tail in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 3, 4, 8, 9, 17, 255]), 0..300),
            (at, levels, dimensions, head_bytes) in (0u64..9, 0u8..4, any::<u8>(), any::<u8>()),
            (address, length) in (0usize..9, 0usize..9),
        ) {
            let file = [head, &tail].concat();
            let (widths, read) = (Widths { address, length }, reading(&file));
            let _ = Structure::root(levels, &read);
            for place in [
                Structure::Object { at, levels },
                Structure::Dataset(at),
                Structure::GroupTree { at, levels },
                Structure::Symbols { at, levels },
                Structure::Names(at),
                Structure::FractalHeap { at, levels },
                Structure::Block { at, length: file.len() as u64, head: head_bytes, levels },
                Structure::ChunkTree { at, dimensions },
                Structure::Bytes { at, length: u64::MAX },
            ] {
                let _ = place.follow(widths, &read);
            }
        }
    }
}
