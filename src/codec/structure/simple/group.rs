//! The links of groups: symbol tables (file format III.A.1, B and D), and messages of the header (IV.A.2.g).

use bstr::BString;

use super::header::{Header, message};
use super::image::Image;
use super::{Links, Ranks, UNDEFINED, WIDTH, distinct};
use crate::codec::structure::{Rest, little_endian};

/// Bytes of an entry of a symbol table.
const ENTRY: usize = 40;

/// Bytes of a node's head.
pub(super) const NODE_HEAD: usize = 8 + 2 * WIDTH;

/// Most levels of a tree.
pub(super) const MOST_LEVELS: u64 = 4;

/// The names of a group of the old form.
struct Names(Vec<u8>);

impl Names {
    /// Reads a local heap. libhdf5 checks its list of free space.
    fn read(image: &mut Image<'_>, address: u64) -> Option<Self> {
        let head = image.take(address, 8 + 3 * WIDTH)?;
        let mut rest = Rest(head.strip_prefix(b"HEAP\0")?);
        rest.skip(3)?;
        let [size, mut free, data] = *rest.numbers(WIDTH, 3)? else { return None };
        let names = image.take(data, usize::try_from(size).ok()?)?;
        // Every block takes the bytes of two numbers, so more blocks are a circle.
        for _ in 0..=names.len() / (2 * WIDTH) {
            if free == 1 {
                return Some(Self(names));
            }
            let block = names.get(usize::try_from(free).ok()?..)?;
            let [next, length] = *Rest(block).numbers(WIDTH, 2)? else { return None };
            (length <= block.len() as u64 && next > 0).then_some(())?;
            free = next;
        }
        None
    }

    fn at(&self, offset: u64) -> Option<&[u8]> {
        let rest = self.0.get(usize::try_from(offset).ok()?..)?;
        rest.get(..rest.iter().position(|byte| *byte == 0)?)
    }
}

/// The links of a group of the old form, bytewise by name.
pub(super) fn symbol_table(image: &mut Image<'_>, ranks: Ranks, header: &Header) -> Option<Links> {
    let [tree, heap] = *Rest(header.body(message::SYMBOL_TABLE)?).numbers(WIDTH, 2)? else { return None };
    let names = Names::read(image, heap)?;
    let mut table = Table { image, ranks, names, links: Vec::new() };
    table.node(tree, None)?;
    let Table { links, .. } = table;
    let in_order = links.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a < b));
    in_order.then_some(Links { links, creation_order: false })
}

/// A walk through a symbol table.
struct Table<'a, 'b> {
    image: &'a mut Image<'b>,
    ranks: Ranks,
    names: Names,
    links: Vec<(BString, u64)>,
}

impl Table<'_, '_> {
    /// Adds the links below a node, whose level must be this one. Returns its first and last key.
    fn node(&mut self, address: u64, level: Option<u64>) -> Option<[BString; 2]> {
        let most = self.ranks.group.checked_mul(2)?;
        let node = self.image.take(address, NODE_HEAD + most.checked_mul(2 * WIDTH)? + WIDTH)?;
        let mut rest = Rest(node.strip_prefix(b"TREE\0")?);
        let own = rest.number(1).filter(|own| *own < MOST_LEVELS && level.is_none_or(|level| level == *own))?;
        let count = usize::try_from(rest.number(2)?).ok().filter(|count| *count <= most)?;
        rest.skip(2 * WIDTH)?;
        if count == 0 {
            // An empty group.
            return level.is_none().then(Default::default);
        }
        let numbers = rest.numbers(WIDTH, 2 * count + 1)?;
        let keys: Vec<BString> =
            numbers.iter().step_by(2).map(|key| Some(self.names.at(*key)?.into())).collect::<Option<_>>()?;
        for ([before, last], child) in keys.array_windows().zip(numbers.iter().skip(1).step_by(2)) {
            match own.checked_sub(1) {
                None => {
                    let from = self.links.len();
                    self.leaf(*child)?;
                    let names = self.links.get(from..)?;
                    names.iter().all(|(name, _)| before < name && name <= last).then_some(())?;
                }
                Some(below) => {
                    let [first, end] = self.node(*child, Some(below))?;
                    (*before == first && end <= *last).then_some(())?;
                }
            }
        }
        Some([keys.first()?.clone(), keys.last()?.clone()])
    }

    fn leaf(&mut self, address: u64) -> Option<()> {
        let most = self.ranks.leaf.checked_mul(2)?;
        let leaf = self.image.take(address, 8 + most.checked_mul(ENTRY)?)?;
        let mut rest = Rest(leaf.strip_prefix(b"SNOD\x01")?.get(1..)?);
        let count = usize::try_from(rest.number(2)?).ok().filter(|count| (1..=most).contains(count))?;
        for entry in rest.take(count * ENTRY)?.chunks_exact(ENTRY) {
            let mut rest = Rest(entry);
            let [name, address] = *rest.numbers(WIDTH, 2)? else { return None };
            let name = self.names.at(name).filter(|name| is_name(name))?;
            // Nothing cached, or the symbol table of a group; not a soft link.
            rest.number(4).filter(|cached| *cached <= 1)?;
            self.links.push((name.into(), address));
        }
        Some(())
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && !name.contains(&b'/') && !name.contains(&0)
}

/// The links of a group whose header has them.
pub(super) fn compact(header: &Header) -> Option<Links> {
    if let Some(info) = header.body(message::GROUP_INFO) {
        let mut rest = Rest(info);
        let (0, flags @ 0..=3) = (rest.byte()?, rest.byte()?) else { return None };
        rest.skip(4 * flags.count_ones() as usize)?;
    }
    let mut rest = Rest(header.body(message::LINK_INFO)?);
    let (0, flags @ 0..=3) = (rest.byte()?, rest.byte()?) else { return None };
    let (is_tracked, is_indexed) = (flags & 1 != 0, flags & 2 != 0);
    if is_tracked {
        rest.number(8).filter(|most| *most <= i64::MAX as u64)?;
    }
    rest.numbers(WIDTH, if is_indexed { 3 } else { 2 })?.iter().all(|place| *place == UNDEFINED).then_some(())?;
    let mut links = header.links().map(link).collect::<Option<Vec<_>>>()?;
    distinct(&links, |(name, ..)| name)?;
    let creation_order = is_tracked && is_indexed;
    if creation_order {
        links.iter().all(|(_, creation, _)| creation.is_some()).then_some(())?;
        distinct(&links, |(_, creation, _)| *creation)?;
        links.sort_by_key(|(_, creation, _)| *creation);
    } else {
        links.sort();
    }
    Some(Links { links: links.into_iter().map(|(name, _, address)| (name, address)).collect(), creation_order })
}

/// The name of a hard link, its number in the order of creation, and the address of its object.
fn link(body: &[u8]) -> Option<(BString, Option<i64>, u64)> {
    let mut rest = Rest(body);
    let (1, flags @ 0..=0x1f) = (rest.byte()?, rest.byte()?) else { return None };
    if flags & 8 != 0 {
        rest.byte().filter(|kind| *kind == 0)?;
    }
    let creation = if flags & 4 != 0 { Some(rest.number(8)? as i64) } else { None };
    if flags & 0x10 != 0 {
        rest.byte().filter(|charset| *charset <= 1)?;
    }
    let length = little_endian(rest.take(1 << (flags & 3))?);
    let name = rest.take(usize::try_from(length).ok()?).filter(|name| is_name(name))?;
    Some((name.into(), creation, rest.number(WIDTH)?))
}
