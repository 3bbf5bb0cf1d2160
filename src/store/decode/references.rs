//! References as text: the path of the target object and, for a region or an attribute, a suffix.
//!
//! The parts of stored references are parsed here, and their content in the global heap is read like any other. Only
//! the path of an object comes from the worker, once per object, so a broken reference affects neither libhdf5 nor its
//! neighbours.
//!
//! The encodings are those of the HDF5 file format, appendix "Encoding for Dataspace and Reference".
//!
//! ```text
//! object    address
//! region    address of a collection | index u32     leads to: address | selection
//! standard  2 | flags | length u8 | token           an object
//!           3 | flags | descriptor                  leads to: length u8 | token | length u32 | rank u32 | selection
//!           4 | flags | descriptor                  leads to: length u8 | token | length u16 | attribute's name
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use arrow_array::LargeStringArray;
use arrow_array::builder::LargeStringBuilder;

use super::{Resolve, hexadecimal, regions};
use crate::catalogue::ReferenceKind;
use crate::codec::structure::little_endian;
use crate::store::heap::{ATTRIBUTE, REGION};
use crate::store::{Cursor, Error, Heap, Unresolved, numbered};

/// First byte of a standard reference to an object.
const OBJECT: u8 = 2;
/// Flag of a standard reference into another file.
const EXTERNAL: u8 = 1;

/// Most bytes of the text, as stored: a path of 64 KiB, the limit of the worker's walk, followed by the name of an
/// attribute, of equal length, or by 64 blocks of rank 32 with numbers of 20 digits.
pub const LONGEST_REFERENCE: u64 = (64 << 10) + (96 << 10);

/// References between two checks of the interrupt.
const STRIDE: usize = 4096;

/// The target of a reference.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// Address of the object, as wide as the file's addresses.
    address: u64,
    /// Selection or attribute, appended to the path.
    suffix: String,
}

impl Heap {
    /// References of `width` bytes each, from elements or from their content, as text; null if a reference is null or
    /// dangles.
    ///
    /// The path is the shortest one over hard links (of equally long ones the first bytewise). A selection follows in
    /// brackets: `/d[0:10,3:7]` for a block, half-open; `/d[0:2;5:6]` for several; `/d[(1,2);(3,4)]` for points;
    /// `/d[...]` for everything, `/d[]` for nothing, `/d[?]` for an unreadable selection; after 64 blocks or points,
    /// `…` stands for the rest. A reference to an attribute ends with `@` and its name.
    ///
    /// # Errors
    /// An error of the worker or of the file; [`Error::TooLarge`] if there is more text than a chunk may have.
    pub fn references(&self, kind: ReferenceKind, stored: &[u8], width: usize) -> Result<LargeStringArray, Unresolved> {
        // The heap of another file is out of reach.
        if kind == ReferenceKind::Region && self.file_number != 0 {
            return Ok(hexadecimal(stored, width));
        }
        let limit = self.file.store().max_value();
        let end = self.end()?;
        let mut length = 0u64;
        let mut grow = |more: usize| {
            length = length.saturating_add(more as u64);
            if length <= limit {
                return Ok(());
            }
            let (path, what) = (self.file.source().path().display().to_string(), "the text of references".into());
            Err(Error::TooLarge { path, what, bytes: length, limit, option: "--max-chunk" })
        };
        let mut cursor = self.cursor();
        let address_size = usize::from(self.file.info().address_size);
        // Equal references are parsed once.
        let (cells, keys) = numbered(stored.chunks_exact(width.max(1)));
        let mut targets = Vec::with_capacity(cells.len());
        for (at, cell) in cells.into_iter().enumerate() {
            if at % STRIDE == 0 {
                self.interrupt.check()?;
            }
            let target = target_of(kind, cell, address_size, &mut cursor)?.filter(|target| target.address < end);
            grow(target.as_ref().map_or(0, |target| target.suffix.len()))?;
            targets.push(target);
        }
        drop(cursor);
        let mut addresses: Vec<u64> = targets.iter().flatten().map(|target| target.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut paths = HashMap::with_capacity(addresses.len());
        for piece in addresses.chunks(STRIDE) {
            let found = self.file.client().paths(self.file_number, piece, &self.interrupt)?;
            for (address, path) in piece.iter().zip(found) {
                grow(path.as_ref().map_or(0, String::len))?;
                paths.insert(*address, path);
            }
        }
        let mut texts = LargeStringBuilder::with_capacity(keys.len(), 0);
        for (at, key) in keys.into_iter().enumerate() {
            if at % STRIDE == 0 {
                self.interrupt.check()?;
            }
            let target = targets.get(key as usize).and_then(Option::as_ref);
            let path = target.and_then(|target| paths.get(&target.address)?.as_deref());
            grow(target.zip(path).map_or(0, |(target, path)| target.suffix.len() + path.len()))?;
            match target.zip(path) {
                Some((Target { suffix, .. }, path)) => {
                    // Writing to memory cannot fail.
                    let _ = texts.write_str(path);
                    texts.append_value(suffix);
                }
                None => texts.append_null(),
            }
        }
        Ok(texts.finish())
    }

    /// A bound that all addresses of objects are below.
    fn end(&self) -> Result<u64, Error> {
        // Only the worker can read a file with another number.
        if self.file_number == 0 { self.file.size() } else { Ok(u64::MAX) }
    }
}

/// The target of a stored reference; `None`: a null or broken one.
fn target_of(
    kind: ReferenceKind,
    cell: &[u8],
    address_size: usize,
    objects: &mut impl Objects,
) -> Result<Option<Target>, Unresolved> {
    if cell.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    // A malformed heap affects only this reference.
    let valid = |bytes| match bytes {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Unresolved::Invalid(_)) => Ok(None),
        Err(error) => Err(error),
    };
    match kind {
        ReferenceKind::Object => {
            Ok(cell.get(..address_size).map(|cell| Target { address: little_endian(cell), suffix: String::new() }))
        }
        ReferenceKind::Region => {
            let Some((address, index)) = cell.split_at_checked(address_size) else { return Ok(None) };
            let Some(index) = index.first_chunk() else { return Ok(None) };
            let object = valid(objects.object(little_endian(address), u32::from_le_bytes(*index)))?;
            Ok(object.and_then(|object| region(object, address_size)))
        }
        ReferenceKind::Standard => match cell {
            // The target is in another file.
            [_, flags, ..] if flags & EXTERNAL != 0 => Ok(None),
            [OBJECT, _, body @ ..] => Ok(standard(OBJECT, body)),
            [kind @ (REGION | ATTRIBUTE), _, descriptor @ ..] => {
                Ok(valid(objects.resolve(descriptor, 1))?.and_then(|body| standard(*kind, body)))
            }
            _ => Ok(None),
        },
    }
}

/// Looks up the objects of the global heap that references lead to.
pub trait Objects: Resolve {
    /// The object of this number in the collection at an address.
    ///
    /// # Errors
    /// The object is not there, or its bytes cannot be read.
    fn object(&mut self, address: u64, index: u32) -> Result<&[u8], Unresolved>;
}

impl Objects for Cursor<'_> {
    fn object(&mut self, address: u64, index: u32) -> Result<&[u8], Unresolved> {
        Cursor::object(self, address, index)
    }
}

/// The targets of references of `width` bytes each: address and suffix; `None`: a null or broken reference.
///
/// # Errors
/// As [`Objects::object`].
#[cfg(feature = "fuzzing")]
pub fn references(
    kind: ReferenceKind,
    stored: &[u8],
    width: usize,
    address_size: usize,
    objects: &mut impl Objects,
) -> Result<Vec<Option<(u64, String)>>, Unresolved> {
    let targets = stored.chunks_exact(width.max(1)).map(|cell| target_of(kind, cell, address_size, objects));
    targets.map(|target| Ok(target?.map(|target| (target.address, target.suffix)))).collect()
}

/// Parses the heap object of an old-style region reference.
fn region(object: &[u8], address_size: usize) -> Option<Target> {
    let (address, selected) = object.split_at_checked(address_size)?;
    Some(Target { address: little_endian(address), suffix: bracketed(selected) })
}

/// Parses the body of a standard reference.
fn standard(kind: u8, body: &[u8]) -> Option<Target> {
    let (length, rest) = body.split_first()?;
    let (token, rest) = rest.split_at_checked(usize::from(*length)).filter(|_| (1..=8).contains(length))?;
    let suffix = match kind {
        REGION => {
            let length = usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?;
            // The rank follows the length; the selection repeats it.
            let selected = rest.get(8..).unwrap_or_default();
            bracketed(selected.get(..length).unwrap_or_default())
        }
        ATTRIBUTE => {
            let (length, name) = rest.split_first_chunk()?;
            format!("@{}", String::from_utf8_lossy(name.get(..usize::from(u16::from_le_bytes(*length)))?))
        }
        _ => String::new(),
    };
    Some(Target { address: little_endian(token), suffix })
}

fn bracketed(selected: &[u8]) -> String {
    regions::text(selected).unwrap_or_else(|| "[?]".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// Bodies built by hand in the format's layout (`H5R__encode` of libhdf5 2.0 describes it).
    #[test]
    fn standard_references_have_a_token_and_what_stands_behind_it() {
        let target = |suffix: &str| Some(Target { address: 0x0320, suffix: suffix.into() });
        assert_eq!(standard(OBJECT, &hex("08 2003000000000000 0000")), target(""));
        assert_eq!(standard(ATTRIBUTE, &hex("08 2003000000000000 0500 756e697473")), target("@units"));
        let all = "10000000 02000000 03000000 01000000 00000000 00000000";
        assert_eq!(standard(REGION, &hex(&format!("08 2003000000000000 {all}"))), target("[...]"));
        assert_eq!(standard(REGION, &hex("04 20030000 10000000 02000000 03000000")), target("[?]"));
        assert_eq!(standard(OBJECT, &hex("09 2003000000000000 0000")), None);
        assert_eq!(standard(OBJECT, &hex("08 2003")), None);
        assert_eq!(standard(ATTRIBUTE, &hex("08 2003000000000000 0600 756e697473")), None);
        assert_eq!(standard(OBJECT, &[]), None);
    }

    #[test]
    fn regions_have_an_address_and_a_selection() {
        let none = hex("2003000000000000 00000000 01000000 00000000 00000000");
        assert_eq!(region(&none, 8), Some(Target { address: 0x0320, suffix: "[]".into() }));
        assert_eq!(region(&none[..8], 8), Some(Target { address: 0x0320, suffix: "[?]".into() }));
        assert_eq!(region(&none[..7], 8), None);
    }
}
