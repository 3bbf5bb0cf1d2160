//! Object headers (file format IV.A), with their checksums and counts.

use super::image::Image;
use super::{UNDEFINED, WIDTH, distinct};
use crate::codec::structure::{Rest, little_endian};

/// Most blocks of a header.
const MOST_BLOCKS: usize = 64;

/// Flags that a message may have here: constant, and not to be shared.
const HARMLESS: u8 = 1 | 4;

/// Flags of a header of version 2: width of the size of its first block, attributes in order of creation, that order
/// indexed, limits of attributes, times.
const WIDTH_OF_SIZE: u8 = 3;
const TRACKED: u8 = 4;
const LIMITS: u8 = 0x10;
const TIMES: u8 = 0x20;
const KNOWN: u8 = 0x3f;

/// Kinds of messages (file format IV.A.2).
pub(super) mod message {
    pub const NIL: u64 = 0;
    pub const DATASPACE: u64 = 1;
    pub const LINK_INFO: u64 = 2;
    pub const DATATYPE: u64 = 3;
    pub const OLD_FILL: u64 = 4;
    pub const FILL: u64 = 5;
    pub const LINK: u64 = 6;
    pub const LAYOUT: u64 = 8;
    pub const GROUP_INFO: u64 = 0xa;
    pub const FILTERS: u64 = 0xb;
    pub const ATTRIBUTE: u64 = 0xc;
    pub const CONTINUATION: u64 = 0x10;
    pub const SYMBOL_TABLE: u64 = 0x11;
    pub const TIME: u64 = 0x12;
    pub const ATTRIBUTE_INFO: u64 = 0x15;
    pub const REFERENCES: u64 = 0x16;
}

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A group whose links are in a symbol table.
    OldGroup,
    /// A group whose links are in its header.
    Group,
    Dataset,
}

/// A message of a header.
#[derive(Debug)]
struct Message {
    kind: u64,
    /// Number in the order of creation, if the header tracks that of attributes.
    creation: u64,
    body: Vec<u8>,
}

/// An object header.
#[derive(Debug)]
pub(super) struct Header {
    /// Number of hard links.
    pub references: u32,
    messages: Vec<Message>,
    is_tracked: bool,
}

impl Header {
    /// Reads the header at an address.
    pub fn read(image: &mut Image<'_>, address: u64) -> Option<Self> {
        let header = match *image.peek(address, 4)? {
            [b'O', b'H', b'D', b'R'] => Self::version_2(image, address)?,
            [1, ..] => Self::version_1(image, address)?,
            _ => return None,
        };
        (header.references > 0).then_some(header)
    }

    fn version_1(image: &mut Image<'_>, address: u64) -> Option<Self> {
        let prefix = image.peek(address, 16)?;
        let mut rest = Rest(prefix.get(2..)?);
        let (count, references, size) = (rest.number(2)?, rest.number(4)?, rest.number(4)?);
        let first = image.take(address, 16usize.checked_add(usize::try_from(size).ok()?)?)?;
        let mut header = Self { references: references as u32, messages: Vec::new(), is_tracked: false };
        let (mut blocks, mut at, mut continued) = (Vec::new(), 0, 0);
        let mut block = first.get(16..)?.to_vec();
        loop {
            let mut rest = Rest(&block);
            while !rest.0.is_empty() {
                let (kind, size) = (rest.number(2)?, rest.number(2)?);
                let flags = rest.byte()?;
                rest.skip(3)?;
                let body = rest.take(usize::try_from(size).ok().filter(|size| size % 8 == 0)?)?;
                continued += u64::from(kind == message::CONTINUATION);
                header.add(kind, flags, 0, body, &mut blocks)?;
            }
            let Some((address, size)) = blocks.get(at).copied() else { break };
            at += 1;
            block = image.take(address, size)?;
        }
        let is_later = |message: &Message| matches!(message.kind, message::ATTRIBUTE_INFO | message::REFERENCES);
        let has_later = header.messages.iter().any(is_later);
        (header.messages.len() as u64 + continued == count && !has_later).then_some(header)
    }

    fn version_2(image: &mut Image<'_>, address: u64) -> Option<Self> {
        let head = image.peek(address, 6)?;
        let [.., 2, flags @ 0..=KNOWN] = *head else { return None };
        let (times, limits) = (if flags & TIMES != 0 { 16 } else { 0 }, if flags & LIMITS != 0 { 4 } else { 0 });
        let width = 1 << (flags & WIDTH_OF_SIZE);
        let prefix = 6 + times + limits + width;
        let size = Rest(image.peek(address, prefix)?.get(prefix - width..)?).number(width)?;
        let whole = usize::try_from(size).ok()?.checked_add(prefix + 4)?;
        let first = image.take(address, whole)?;
        if limits > 0 {
            let [most, least] = *Rest(first.get(6 + times..)?).numbers(2, 2)? else { return None };
            (most >= least).then_some(())?;
        }
        let mut header = Self { references: 1, messages: Vec::new(), is_tracked: flags & TRACKED != 0 };
        let (mut blocks, mut at) = (Vec::new(), 0);
        let mut block = has_checksum(&first)?.get(prefix..)?.to_vec();
        let head = if header.is_tracked { 6 } else { 4 };
        loop {
            let mut rest = Rest(Some(&block).filter(|block| block.len() >= head)?);
            let mut has_gap_message = false;
            while rest.0.len() >= head {
                let (kind, size, flags) = (rest.number(1)?, rest.number(2)?, rest.byte()?);
                let creation = if header.is_tracked { rest.number(2)? } else { 0 };
                has_gap_message |= kind == message::NIL;
                let body = rest.take(usize::try_from(size).ok()?)?;
                header.add(kind, flags, creation, body, &mut blocks)?;
            }
            if !rest.0.is_empty() && has_gap_message {
                return None;
            }
            let Some((address, size)) = blocks.get(at).copied() else { break };
            at += 1;
            let further = image.take(address, size)?;
            block = has_checksum(&further)?.strip_prefix(b"OCHK")?.to_vec();
        }
        let counts: Vec<&[u8]> = header.bodies(message::REFERENCES).collect();
        if let [count] = *counts {
            let [0, count @ ..] = count else { return None };
            header.references = u32::from_le_bytes(count.try_into().ok()?);
        }
        Some(header)
    }

    /// Adds a message, or the place of the block that a continuation leads to.
    fn add(&mut self, kind: u64, flags: u8, creation: u64, body: &[u8], blocks: &mut Vec<(u64, usize)>) -> Option<()> {
        if flags & !HARMLESS != 0 {
            return None;
        }
        if kind == message::CONTINUATION {
            let [address, size] = *Rest(body).numbers(WIDTH, 2)? else { return None };
            blocks.push((address, usize::try_from(size).ok().filter(|size| *size >= 8)?));
            return (body.len() == 2 * WIDTH && blocks.len() < MOST_BLOCKS).then_some(());
        }
        if kind == message::TIME && (body.len() != 8 || body.first() != Some(&1)) {
            return None;
        }
        self.messages.push(Message { kind, creation, body: body.to_vec() });
        Some(())
    }

    /// The bodies of all messages of a kind.
    fn bodies(&self, kind: u64) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().filter(move |message| message.kind == kind).map(|message| message.body.as_slice())
    }

    /// The body of the message of a kind, if there is one.
    pub fn body(&self, kind: u64) -> Option<&[u8]> {
        self.bodies(kind).next()
    }

    /// The links.
    pub fn links(&self) -> impl Iterator<Item = &[u8]> {
        self.bodies(message::LINK)
    }

    /// The attributes, in the order in which libhdf5 lists them.
    pub fn attributes(&self) -> Option<Vec<&[u8]>> {
        let mut found: Vec<&Message> =
            self.messages.iter().filter(|message| message.kind == message::ATTRIBUTE).collect();
        if self.is_tracked {
            distinct(&found, |message| message.creation)?;
            found.sort_by_key(|message| message.creation);
        }
        Some(found.into_iter().map(|message| message.body.as_slice()).collect())
    }

    /// The kind of the object, if its messages fit together and are simple.
    pub fn kind(&self) -> Option<Kind> {
        use message::*;
        let (kind, one, maybe): (_, &[u64], &[u64]) = match [SYMBOL_TABLE, LINK_INFO].map(|kind| self.body(kind)) {
            [Some(_), None] => (Kind::OldGroup, &[SYMBOL_TABLE], &[]),
            [None, Some(_)] => (Kind::Group, &[LINK_INFO], &[GROUP_INFO]),
            [None, None] => (Kind::Dataset, &[DATATYPE, DATASPACE, LAYOUT, FILL], &[OLD_FILL, FILTERS]),
            _ => return None,
        };
        let count = |kind: u64| self.bodies(kind).count();
        let are_known = self.messages.iter().all(|message| {
            let several = matches!(message.kind, NIL | ATTRIBUTE) || kind == Kind::Group && message.kind == LINK;
            several
                || count(message.kind) == 1 && {
                    let is_common = matches!(message.kind, TIME | ATTRIBUTE_INFO | REFERENCES);
                    is_common || one.contains(&message.kind) || maybe.contains(&message.kind)
                }
        });
        let info = self.body(ATTRIBUTE_INFO).is_none_or(|body| attributes_are_here(body).is_some());
        (are_known && info && one.iter().all(|kind| count(*kind) == 1)).then_some(kind)
    }
}

/// Reads where else the attributes of an object are: nowhere.
fn attributes_are_here(body: &[u8]) -> Option<()> {
    let mut rest = Rest(body);
    let (0, flags @ 0..=3) = (rest.byte()?, rest.byte()?) else { return None };
    rest.skip(if flags & 1 != 0 { 2 } else { 0 })?;
    let places = rest.numbers(WIDTH, if flags & 2 != 0 { 3 } else { 2 })?;
    places.iter().all(|place| *place == UNDEFINED).then_some(())
}

/// The bytes before the checksum at their end, if that is right.
pub(super) fn has_checksum(bytes: &[u8]) -> Option<&[u8]> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    (checksum(body) == u32::from_le_bytes(*sum)).then_some(body)
}

/// The checksum of metadata: `hashlittle` of Bob Jenkins' lookup3, as published.
fn checksum(bytes: &[u8]) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    while !rest.is_empty() {
        let (block, behind) = rest.split_at(rest.len().min(12));
        for (word, bytes) in state.iter_mut().zip(block.chunks(4)) {
            *word = word.wrapping_add(little_endian(bytes) as u32);
        }
        rest = behind;
        if rest.is_empty() {
            for (at, by) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
                let (to, from) = ((at + 2) % 3, state[(at + 1) % 3]);
                state[to] = (state[to] ^ from).wrapping_sub(from.rotate_left(by));
            }
        } else {
            for (at, by) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
                let (to, from, added) = (at % 3, (at + 2) % 3, (at + 1) % 3);
                state[to] = state[to].wrapping_sub(state[from]) ^ state[from].rotate_left(by);
                state[from] = state[from].wrapping_add(state[added]);
            }
        }
    }
    state[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that lookup3.c prints in its own test (`driver5`).
    #[test]
    fn checksums_are_those_of_lookup3() {
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
        assert_eq!(checksum(b""), 0xdead_beef);
    }
}
