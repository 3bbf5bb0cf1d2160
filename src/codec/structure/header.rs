//! The messages of an object header (file format IV.A).
//!
//! ```text
//! 1 | 0 | messages u16 | references u32 | size u32 | 4 bytes     version 1
//!   kind u16 | size u16 | flags | 3 bytes | body                 each message
//! "OHDR" | 2 | flags | [times] | [attributes kept] | size        version 2
//!   kind u8 | size u16 | flags | [order u16] | body              each message
//! ```
//!
//! A continuation message has the address of further messages. Checksums are ignored: libhdf5 has already read the
//! header.

use super::{Rest, Widths};

/// Most bytes in all blocks of a header.
const MOST_BYTES: usize = 1 << 20;

/// Most blocks of a header.
const MOST_BLOCKS: usize = 64;

/// Upper bound of the length of a header's prefix, in either version.
const PREFIX: usize = 40;

/// The message with the address of further messages.
const CONTINUATION: u64 = 0x10;

/// Flag of a message stored elsewhere.
const SHARED: u8 = 2;

/// Flag of a header of version 2: it stores times.
const TIMES: u8 = 0x20;
/// Flag of a header of version 2: it stores limits of attributes.
const LIMITS: u8 = 0x10;
/// Flag of a header of version 2: its messages have an order.
const ORDER: u8 = 4;

/// Reads bytes at an address: fewer than requested at the end of the file. `None`: reading failed.
pub type ReadAt<'a> = dyn Fn(u64, usize) -> Option<Vec<u8>> + 'a;

/// A message of an object header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMessage {
    /// Its number in the file format.
    pub kind: u64,
    /// Its body as stored. `None`: stored elsewhere.
    pub body: Option<Vec<u8>>,
}

/// The messages of the header at an address. `None`: not a header, or one beyond the limits.
pub fn messages(address: u64, widths: Widths, read: &ReadAt<'_>) -> Option<Vec<HeaderMessage>> {
    let prefix = read(address, PREFIX)?;
    let mut rest = Rest(&prefix);
    let mut layout = Layout { widths, flags: None };
    let size = match rest.take(4)? {
        b"OHDR" => {
            let (version, flags) = (rest.byte()?, rest.byte()?);
            rest.skip(if flags & TIMES != 0 { 16 } else { 0 })?;
            rest.skip(if flags & LIMITS != 0 { 4 } else { 0 })?;
            layout.flags = Some(flags);
            rest.number(1 << (flags & 3)).filter(|_| version == 2)?
        }
        [1, 0, _, _] => {
            rest.skip(4)?;
            let size = rest.number(4)?;
            rest.skip(4)?;
            size
        }
        _ => return None,
    };
    let begin = (prefix.len() - rest.0.len()) as u64;
    let (mut blocks, mut found, mut left) = (vec![(address.checked_add(begin)?, size, false)], Vec::new(), MOST_BYTES);
    let mut at = 0;
    while let Some((address, size, is_further)) = blocks.get(at).copied() {
        at += 1;
        let size = usize::try_from(size).ok()?;
        left = left.checked_sub(size)?;
        let block = read(address, size).filter(|block| block.len() == size && at <= MOST_BLOCKS)?;
        layout.block(&block, is_further, &mut found, &mut blocks)?;
    }
    Some(found)
}

/// The layout of messages in a header's blocks.
struct Layout {
    widths: Widths,
    /// Flags of a header of version 2.
    flags: Option<u8>,
}

impl Layout {
    /// The messages of a block, and the blocks that continue it.
    fn block(
        &self,
        block: &[u8],
        is_further: bool,
        found: &mut Vec<HeaderMessage>,
        blocks: &mut Vec<(u64, u64, bool)>,
    ) -> Option<()> {
        let mut rest = Rest(block);
        if is_further && self.flags.is_some() {
            let end = block.len().checked_sub(4).filter(|_| rest.take(4) == Some(b"OCHK"))?;
            rest = Rest(block.get(4..end)?);
        }
        let order = self.flags.map_or(0, |flags| if flags & ORDER != 0 { 2 } else { 0 });
        let head = if self.flags.is_some() { 4 + order } else { 8 };
        // If fewer bytes are left than the head of a message takes, they are a gap.
        while rest.0.len() >= head {
            let kind = rest.number(if self.flags.is_some() { 1 } else { 2 })?;
            let (size, flags) = (rest.number(2)?, rest.byte()?);
            rest.skip(if self.flags.is_some() { order } else { 3 })?;
            let body = rest.take(size as usize)?;
            if kind == CONTINUATION {
                let mut rest = Rest(body);
                blocks.push((rest.number(self.widths.address)?, rest.number(self.widths.length)?, true));
            } else {
                found.push(HeaderMessage { kind, body: (flags & SHARED == 0).then(|| body.to_vec()) });
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTHS: Widths = Widths { address: 8, length: 8 };

    fn reading(file: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> {
        |at, length| {
            let at = usize::try_from(at).ok().filter(|at| *at <= file.len())?;
            Some(file[at..file.len().min(at.saturating_add(length))].to_vec())
        }
    }

    fn of(file: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
        let found = messages(0, WIDTHS, &reading(file))?;
        Some(found.into_iter().map(|message| (message.kind, message.body.unwrap_or_default())).collect())
    }

    /// A header as the file format (IV.A.1.a) lays it out, whose second block lies behind it.
    #[test]
    fn messages_of_version_1() {
        let mut file = vec![1, 0, 3, 0, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0];
        file.extend([1, 0, 8, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
        file.extend([0x10, 0, 16, 0, 0, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([8, 0, 8, 0, 2, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        file.extend([0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(of(&file).unwrap(), [(1, vec![9; 8]), (8, vec![]), (0, vec![])]);
        assert_eq!(of(&file[..file.len() - 1]), None, "cut short");
    }

    /// The same of version 2 (IV.A.1.b), with times, an order, a gap and checksums.
    #[test]
    fn messages_of_version_2() {
        let mut file = b"OHDR\x02\x24".to_vec();
        file.extend([0; 16]);
        file.extend([6 + 2 + 6 + 16 + 3]);
        file.extend([1, 2, 0, 0, 0, 0, 5, 6]);
        file.extend([0x10, 16, 0, 0, 1, 0, 60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([0; 3]);
        file.extend([0xee; 4]);
        assert_eq!(file.len(), 60);
        file.extend(b"OCHK");
        file.extend([8, 3, 0, 0, 2, 0, 1, 2, 3]);
        file.extend([0xee; 4]);
        assert_eq!(of(&file).unwrap(), [(1, vec![5, 6]), (8, vec![1, 2, 3])]);
    }

    #[test]
    fn blocks_that_lead_to_each_other_end() {
        let mut file = vec![1, 0, 1, 0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0];
        file.extend([0x10, 0, 16, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(of(&file), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            head in prop::sample::select(vec![&b""[..], b"OHDR\x02", b"\x01\x00\x01\x00"]),
            tail in prop::collection::vec(any::<u8>(), 0..200),
            address in 0usize..9,
            length in 0usize..9,
        ) {
            let file = [head, &tail].concat();
            let _ = messages(0, Widths { address, length }, &reading(&file));
        }
    }
}
