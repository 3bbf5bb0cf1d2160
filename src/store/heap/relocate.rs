//! Moves descriptors that come from memory (a fill value, a worker's answer) into a batch's own heap.

use super::{IN_MEMORY, Parsed, parse};
use crate::catalogue::{Class, Datatype, Elements, ReferenceKind};

/// First byte of a standard reference to a region.
pub(in crate::store) const REGION: u8 = 3;
/// First byte of a standard reference to an attribute.
pub(in crate::store) const ATTRIBUTE: u8 = 4;

/// The destination of descriptors.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Move {
    /// Offset to add to every position.
    pub base: u64,
    /// Index to set in every descriptor: 0, or [`IN_MEMORY`] for those that are handed out.
    pub index: u32,
    /// Width of addresses in the file, and of positions here.
    pub address_size: u8,
}

/// Whether the content of descriptors of this type contains descriptors again.
pub(in crate::store) fn leads_on(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Sequence { base } => base.has_descriptors(),
        Class::Array { base, .. } => leads_on(base),
        Class::Compound { fields } => fields.iter().any(|field| leads_on(&field.datatype)),
        _ => false,
    }
}

/// Moves every position and sets every index, in elements, and in the heap if these [lead on](leads_on). Includes
/// descriptors nested in sequences.
///
/// # Errors
/// The reason, if a descriptor leads outside its heap, or if more descriptors lead to the same bytes than could ever be
/// followed.
pub(in crate::store) fn relocate(datatype: &Datatype, elements: &mut Elements, to: Move) -> Result<(), String> {
    let Elements { bytes, heap } = elements;
    // An honest heap has each descriptor once.
    let mut left = (bytes.len() + heap.len()) / (8 + usize::from(to.address_size)) + 1;
    let mut level = Vec::new();
    walk(datatype, bytes, to, &mut level, &mut left)?;
    while let Some((datatype, start, count)) = level.pop() {
        let length = count.checked_mul(datatype.size).ok_or("a sequence passes 2^64 bytes")?;
        let range =
            usize::try_from(start).ok().zip(start.checked_add(length).and_then(|end| usize::try_from(end).ok()));
        let part =
            range.and_then(|(start, end)| heap.get_mut(start..end)).ok_or("a sequence leads outside its heap")?;
        walk(datatype, part, to, &mut level, &mut left)?;
    }
    Ok(())
}

/// Sequences still to follow: type of an element, position in the heap, number of elements.
type Level<'a> = Vec<(&'a Datatype, u64, u64)>;

fn walk<'a>(
    datatype: &'a Datatype,
    elements: &mut [u8],
    to: Move,
    level: &mut Level<'a>,
    left: &mut usize,
) -> Result<(), String> {
    if !datatype.has_descriptors() {
        return Ok(());
    }
    let size = usize::try_from(datatype.size).ok().filter(|size| *size > 0).ok_or("an element of 0 bytes")?;
    for element in elements.chunks_exact_mut(size) {
        let element = match (&datatype.class, element) {
            // The descriptor follows the header, if there is one.
            (Class::Reference(ReferenceKind::Standard), [REGION | ATTRIBUTE, _flags, descriptor @ ..]) => descriptor,
            (Class::Reference(_), _) => continue,
            (_, element) => element,
        };
        match &datatype.class {
            Class::VariableString { .. } | Class::Sequence { .. } | Class::Reference(_) => {
                *left = left.checked_sub(1).ok_or("more descriptors than the heap has room for")?;
                let address_size = usize::from(to.address_size);
                let Parsed { length, address, index } =
                    parse(element, address_size).ok_or("a descriptor is cut short")?;
                if length == 0 {
                    element.fill(0);
                    continue;
                }
                // A descriptor that was already moved stays.
                if index & IN_MEMORY != 0 {
                    continue;
                }
                if let Class::Sequence { base: inner } = &datatype.class
                    && inner.has_descriptors()
                {
                    level.push((inner, address, u64::from(length)));
                }
                let moved = address.checked_add(to.base).ok_or("a position passes 2^64")?.to_le_bytes();
                let (fits, rest) = moved.split_at_checked(address_size).ok_or("addresses of more than 8 bytes")?;
                if rest.iter().any(|byte| *byte != 0) {
                    return Err("more is led to than addresses of this width reach".into());
                }
                // Both are inside: the descriptor was parsed from here.
                element[4..4 + address_size].copy_from_slice(fits);
                element[4 + address_size..8 + address_size].copy_from_slice(&to.index.to_le_bytes());
            }
            Class::Compound { fields } => {
                for field in fields {
                    let range = usize::try_from(field.offset)
                        .ok()
                        .zip(field.offset.checked_add(field.datatype.size).and_then(|end| usize::try_from(end).ok()));
                    let part = range.and_then(|(start, end)| element.get_mut(start..end));
                    walk(&field.datatype, part.ok_or("a field lies outside its compound")?, to, level, left)?;
                }
            }
            Class::Array { base: inner, .. } => walk(inner, element, to, level, left)?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Charset, Descriptor, Padding};

    fn string() -> Datatype {
        Datatype { size: 16, class: Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 } }
    }

    #[test]
    fn nested_sequences_move_together() {
        // [["ab"], []]: the outer sequence's element is a descriptor at position 2 of the heap.
        let datatype = Datatype { size: 16, class: Class::Sequence { base: Box::new(string()) } };
        let null = [0; 16];
        let mut heap = b"ab".to_vec();
        heap.extend(Descriptor { length: 2, position: 0, index: 0 }.to_bytes());
        let mut bytes = Descriptor { length: 1, position: 2, index: 0 }.to_bytes().to_vec();
        bytes.extend(null);
        let mut elements = Elements { bytes, heap };
        relocate(&datatype, &mut elements, Move { base: 100, index: IN_MEMORY, address_size: 8 }).unwrap();
        assert_eq!(elements.bytes[..16], Descriptor { length: 1, position: 102, index: IN_MEMORY }.to_bytes());
        assert_eq!(elements.bytes[16..], null);
        assert_eq!(elements.heap[2..], Descriptor { length: 2, position: 100, index: IN_MEMORY }.to_bytes());
    }

    #[test]
    fn a_heap_that_leads_everywhere_to_itself_is_an_error() {
        let datatype = Datatype { size: 16, class: Class::Sequence { base: Box::new(string()) } };
        let outer = Descriptor { length: 64, position: 0, index: 0 }.to_bytes();
        let mut elements = Elements { bytes: outer.repeat(1000), heap: vec![1; 1024] };
        assert!(relocate(&datatype, &mut elements, Move { base: 0, index: IN_MEMORY, address_size: 8 }).is_err());
    }
}
