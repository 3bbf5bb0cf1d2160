//! Plans the reads of the heap collections that elements lead to, if their source lies on a network.

use std::collections::BTreeMap;
use std::ops::Range;

use super::collection::FIRST_READ;
use super::{IN_MEMORY, Parsed, parse};
use crate::catalogue::{Class, Datatype};

/// Bytes that the header of an object takes in a collection, and those up to the next multiple of 8, at most.
const AROUND: u64 = 24;

/// The places of collections by the descriptors in `elements`, in order: from their beginnings, as far as their objects
/// need. The fields of compounds are followed, references are not: they lead to few collections.
pub(in crate::store) fn collections(datatype: &Datatype, elements: &[u8], address_size: usize) -> Vec<Range<u64>> {
    let mut found = BTreeMap::new();
    visit(datatype, elements, datatype.size, address_size, &mut found);
    let ends = found.keys().skip(1).copied().chain([u64::MAX]).collect::<Vec<_>>();
    let ranges = found.iter().zip(ends);
    ranges.map(|((at, bytes), next)| *at..at.saturating_add((*bytes).max(FIRST_READ)).min(next)).collect()
}

/// Adds the bytes of the objects that a field of the elements leads to, by the address of their collection. `elements`
/// begins with the field of the first element; each is `stride` bytes long.
fn visit(datatype: &Datatype, elements: &[u8], stride: u64, address_size: usize, found: &mut BTreeMap<u64, u64>) {
    let Some(stride) = usize::try_from(stride).ok().filter(|stride| *stride > 0) else { return };
    match &datatype.class {
        Class::VariableString { .. } | Class::Sequence { .. } => {
            let size = if let Class::Sequence { base } = &datatype.class { base.size } else { 1 };
            for element in elements.chunks(stride) {
                let Some(Parsed { length, address, index }) = parse(element, address_size) else { continue };
                if length > 0 && address > 0 && index & IN_MEMORY == 0 {
                    let bytes = u64::from(length).saturating_mul(size).saturating_add(AROUND);
                    let known = found.entry(address).or_insert(0);
                    *known = known.saturating_add(bytes);
                }
            }
        }
        Class::Compound { fields } => {
            for field in fields.iter().filter(|field| field.datatype.has_descriptors()) {
                let within = usize::try_from(field.offset).ok().and_then(|offset| elements.get(offset..));
                visit(&field.datatype, within.unwrap_or_default(), stride as u64, address_size, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Charset, CompoundField, Descriptor, Padding};

    #[test]
    fn collections_are_planned_once_each_as_far_as_their_objects_need() {
        let text = Datatype {
            size: 16,
            class: Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 },
        };
        let descriptor = |length, position, index| Descriptor { length, position, index }.to_bytes().to_vec();
        let elements = [
            descriptor(5000, 8192, 1),
            descriptor(1, 4096, 1),
            descriptor(0, 0, 0),
            descriptor(2000, 8192, 2),
            descriptor(3, 100, IN_MEMORY | 1),
            descriptor(9, 9192, 1),
        ];
        // The third collection begins where the second would need 7,048 bytes.
        let planned = [4096..8192, 8192..9192, 9192..13288];
        assert_eq!(collections(&text, &elements.concat(), 8), planned);
        let fields = vec![
            CompoundField {
                name: "n".into(),
                offset: 0,
                datatype: Datatype { size: 4, class: Class::Opaque { tag: "x".into() } },
            },
            CompoundField { name: "text".into(), offset: 4, datatype: text },
        ];
        let compound = Datatype { size: 20, class: Class::Compound { fields } };
        let rows: Vec<u8> = elements.iter().flat_map(|element| [vec![7; 4], element.clone()].concat()).collect();
        assert_eq!(collections(&compound, &rows, 8), planned);
        // Cut short, or of no length: nothing, and no panic.
        assert_eq!(collections(&compound, &rows[..15], 8), []);
    }
}
