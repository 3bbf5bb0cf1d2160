//! Filter 5 (N-bit): elements without their unused bits.
//!
//! The parameters describe an element as a tree, in the order of `H5Znbit.c`:
//!
//! ```text
//! number of parameters, whether nothing is packed, elements of a chunk, then one of
//!   1 (atomic)   size, byte order (0 little, 1 big), precision, offset
//!   2 (array)    size of all, then the element
//!   3 (compound) size, number of members, then for each its offset and the member
//!   4 (other)    size
//! ```
//!
//! An atomic stores the bits of its precision, anything else stores all bits, the most significant bit first and
//! without gaps. All other bits are 0.

use super::bit_reader::field;
use crate::codec::Error;

/// Deepest nesting; libhdf5 goes as deep as its stack allows.
const DEPTH: usize = 64;

/// Unpacks `data` into `out`, by the parameters in the file; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8], parameters: &[u32]) -> Result<usize, Error> {
    let &[count, is_as_it_is, elements, ref tree @ ..] = parameters else {
        return Err(format!("{} parameters, at least 3 expected", parameters.len()).into());
    };
    if count as usize != parameters.len() {
        return Err(format!("{} parameters, the first says {count}", parameters.len()).into());
    }
    let room = out.len();
    if is_as_it_is != 0 {
        let out = out.get_mut(..data.len()).ok_or_else(|| format!("{} bytes, more than {room}", data.len()))?;
        out.copy_from_slice(data);
        return Ok(data.len());
    }
    let element = Element::new(&mut &*tree, DEPTH)?;
    let size = (elements as usize).checked_mul(element.size);
    let out = size.and_then(|size| out.get_mut(..size));
    let out = out.ok_or_else(|| format!("{elements} elements of {} bytes, more than {room}", element.size))?;
    let bits = (elements as usize).checked_mul(element.bits);
    if bits.is_none_or(|bits| bits.div_ceil(8) > data.len()) {
        let (stored, bits) = (data.len(), element.bits);
        return Err(format!("{elements} elements of {bits} bits do not fit into the {stored} bytes stored").into());
    }
    element.unpack_all(data, &mut 0, out);
    Ok(out.len())
}

/// How an element is packed. It has at least 1 byte, and its parts together have at most its own bytes, so the output
/// bounds the work.
#[derive(Debug, PartialEq)]
struct Element {
    /// Bytes of the unpacked element.
    size: usize,
    /// Bits of the packed element.
    bits: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Atomic {
        is_big_endian: bool,
        precision: usize,
        /// Position of the lowest bit that is stored.
        offset: usize,
    },
    /// Elements in succession.
    Array(Box<Element>),
    /// Elements, each with its byte offset.
    Compound(Vec<(usize, Element)>),
    Bytes,
}

impl Element {
    /// Takes the description of an element from the parameters.
    fn new(tree: &mut &[u32], depth: usize) -> Result<Self, Error> {
        let depth = depth.checked_sub(1).ok_or_else(|| format!("types nested deeper than {DEPTH}"))?;
        let (class, size) = (take(tree)?, take(tree)? as usize);
        if size == 0 {
            return Err("an element of 0 bytes".into());
        }
        let (bits, kind) = match class {
            1 => {
                let order = take(tree)?;
                let (precision, offset) = (take(tree)? as usize, take(tree)? as usize);
                if order > 1 || precision == 0 || (precision + offset).div_ceil(8) > size {
                    return Err(
                        format!("{precision} bits from bit {offset} of {size} bytes in byte order {order}").into()
                    );
                }
                (precision, Kind::Atomic { is_big_endian: order == 1, precision, offset })
            }
            2 => {
                let base = Self::new(tree, depth)?;
                if base.size > size {
                    return Err(format!("an array of {size} bytes of elements of {}", base.size).into());
                }
                (base.bits.saturating_mul(size / base.size), Kind::Array(Box::new(base)))
            }
            3 => {
                let members = Self::members(tree, size, depth)?;
                (members.iter().map(|(_, member)| member.bits).sum(), Kind::Compound(members))
            }
            4 => (size.saturating_mul(8), Kind::Bytes),
            _ => return Err(format!("a type of the unknown class {class}").into()),
        };
        Ok(Self { size, bits, kind })
    }

    fn members(tree: &mut &[u32], size: usize, depth: usize) -> Result<Vec<(usize, Self)>, Error> {
        let mut members = Vec::new();
        let mut used = 0;
        for _ in 0..take(tree)? {
            let offset = take(tree)? as usize;
            let member = Self::new(tree, depth)?;
            used += member.size;
            if used > size || offset + member.size > size {
                return Err(format!("a member of {} bytes from byte {offset} of {size}", member.size).into());
            }
            members.push((offset, member));
        }
        Ok(members)
    }

    /// Unpacks elements from bit `at` until `out` is full.
    fn unpack_all(&self, data: &[u8], at: &mut usize, out: &mut [u8]) {
        if let Kind::Atomic { is_big_endian, precision, offset } = self.kind {
            // The compiler makes a separate loop for each of these sizes.
            let bits = (precision, offset);
            match (self.size, is_big_endian) {
                (1, _) => return integers(data, at, out, bits, |value| [value as u8]),
                (2, false) => return integers(data, at, out, bits, |value| (value as u16).to_le_bytes()),
                (2, true) => return integers(data, at, out, bits, |value| (value as u16).to_be_bytes()),
                (4, false) => return integers(data, at, out, bits, |value| (value as u32).to_le_bytes()),
                (4, true) => return integers(data, at, out, bits, |value| (value as u32).to_be_bytes()),
                (8, false) => return integers(data, at, out, bits, u64::to_le_bytes),
                (8, true) => return integers(data, at, out, bits, u64::to_be_bytes),
                _ => {}
            }
        }
        // Clears bits and bytes that are not stored.
        out.fill(0);
        out.chunks_exact_mut(self.size).for_each(|element| self.unpack(data, at, element));
    }

    /// Unpacks one element from bit `at` into its zeroed bytes.
    fn unpack(&self, data: &[u8], at: &mut usize, out: &mut [u8]) {
        match &self.kind {
            Kind::Atomic { is_big_endian, precision, offset } => {
                // Reads byte by byte, from the most significant one.
                let mut end = precision + offset;
                while end > *offset {
                    let start = ((end - 1) / 8 * 8).max(*offset);
                    let byte = (field(data, *at, (end - start) as u32) as u8) << (start % 8);
                    let place = if *is_big_endian { self.size - 1 - start / 8 } else { start / 8 };
                    if let Some(out) = out.get_mut(place) {
                        *out = byte;
                    }
                    *at += end - start;
                    end = start;
                }
            }
            Kind::Array(base) => base.unpack_all(data, at, out),
            Kind::Compound(members) => {
                for (offset, member) in members {
                    let place = out.get_mut(*offset..offset + member.size);
                    member.unpack_all(data, at, place.unwrap_or_default());
                }
            }
            Kind::Bytes => {
                for byte in out {
                    *byte = field(data, *at, 8) as u8;
                    *at += 8;
                }
            }
        }
    }
}

fn take(tree: &mut &[u32]) -> Result<u32, Error> {
    let (first, rest) = tree.split_first().ok_or("the parameters end within a type")?;
    *tree = rest;
    Ok(*first)
}

/// Unpacks integers of `N` bytes that have the bits `(precision, offset)` packed.
fn integers<const N: usize>(
    data: &[u8],
    at: &mut usize,
    out: &mut [u8],
    (precision, offset): (usize, usize),
    bytes: impl Fn(u64) -> [u8; N],
) {
    for place in out.as_chunks_mut::<N>().0 {
        *place = bytes(field(data, *at, precision as u32) << offset);
        *at += precision;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bit_reader::bits;
    use super::*;

    fn unpacked(data: &[u8], size: usize, tree: &[u32], elements: u32) -> Result<Vec<u8>, Error> {
        let parameters = [&[tree.len() as u32 + 3, 0, elements], tree].concat();
        let mut out = vec![0xaa; size];
        decode(data, &mut out, &parameters).map(|n| out[..n].to_vec())
    }

    #[test]
    fn bits_go_to_their_places() {
        // 5 bits from bit 2 of two bytes, in both orders; 9 bits from bit 7 of three.
        let data = bits("10110 00011");
        assert_eq!(unpacked(&data, 4, &[1, 2, 0, 5, 2], 2), Ok(vec![0x58, 0, 0x0c, 0]));
        assert_eq!(unpacked(&data, 4, &[1, 2, 1, 5, 2], 2), Ok(vec![0, 0x58, 0, 0x0c]));
        assert_eq!(unpacked(&bits("100000011"), 3, &[1, 3, 0, 9, 7], 1), Ok(vec![0x80, 0x81, 0]));
        // A compound: 4 bits, a byte that is nothing, two bytes, and an array of three times 2 bits from bit 1.
        let tree = [3, 7, 3, 0, 1, 1, 0, 4, 0, 2, 4, 2, 4, 2, 3, 1, 1, 0, 2, 1];
        let data = bits("0101 10101011 11001101 01 10 11");
        assert_eq!(unpacked(&data, 7, &tree, 1), Ok(vec![5, 0, 0xab, 0xcd, 2, 4, 6]));
    }

    #[test]
    fn trees_that_cannot_be_are_errors() {
        let message = |tree: &[u32]| unpacked(&[0; 99], 99, tree, 1).unwrap_err().to_string();
        assert_eq!(message(&[1, 2, 0, 12, 5]), "12 bits from bit 5 of 2 bytes in byte order 0");
        assert_eq!(
            message(&[1, 2, 0, u32::MAX, u32::MAX]),
            "4294967295 bits from bit 4294967295 of 2 bytes in byte order 0"
        );
        assert_eq!(message(&[2, 2, 1, 4, 0, 3, 0]), "an array of 2 bytes of elements of 4");
        assert_eq!(message(&[3, 2, 1, 1, 4, 2]), "a member of 2 bytes from byte 1 of 2");
        assert_eq!(message(&[2, 8].repeat(100)), "types nested deeper than 64");
        assert_eq!(message(&[9, 1]), "a type of the unknown class 9");
        assert_eq!(message(&[1, 2, 0]), "the parameters end within a type");
        assert_eq!(message(&[4, 100]), "1 elements of 100 bytes, more than 99");
        assert_eq!(
            unpacked(&[0; 4], 99, &[1, 1, 0, 3, 0], 11).unwrap_err().to_string(),
            "11 elements of 3 bits do not fit into the 4 bytes stored"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            data in prop::collection::vec(any::<u8>(), 0..200),
            tree in prop::collection::vec(prop_oneof![0u32..6, 0u32..70, any::<u32>()], 0..30),
            elements in prop_oneof![0u32..30, any::<u32>()],
            size in 0usize..300,
        ) {
            let _ = unpacked(&data, size, &tree, elements);
        }
    }
}
