//! Reads virtual datasets from the file's own structures (file format IV.A.2.i, "Data Layout", and III.E.1, "Virtual
//! Dataset Mapping").
//!
//! libhdf5 makes two dataspaces of several kilobytes for each mapping, and copies all of them for every query. This
//! module reads the usual case: boxes of elements mapped to boxes of other datasets.
//!
//! ```text
//! version u8 | mappings                                            in an object of the global heap
//!   [flags u8] | file name NUL, or mapping | dataset NUL, or mapping
//!   | selection of the source | selection here                     each mapping; flags and numbers in version 1
//! checksum u32
//! ```

use std::ops::Range;

use super::header::{self, ReadAt};
use super::{Area, ElementSelection, Rest, Widths, heap};

/// Kinds of messages of an object header.
const DATASPACE: u64 = 1;
const FILL: u64 = 5;
const EXTERNAL: u64 = 7;
const LAYOUT: u64 = 8;
const FILTERS: u64 = 11;

/// The class of a virtual layout.
const VIRTUAL: u8 = 3;

/// Largest list of mappings, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Longest name, as in queries to libhdf5.
const LONGEST_NAME: usize = 1 << 20;

/// Flag of a mapping in version 1: it shares the name of its file with another mapping.
const FILE_SHARED: u8 = 1;
/// Flag of a mapping in version 1: it shares the name of its dataset with another mapping.
const DATASET_SHARED: u8 = 2;
/// Flag of a mapping in version 1: its dataset is in the file that contains the mapping.
const SAME_FILE: u8 = 4;

/// A virtual dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDataset {
    /// Its extent.
    pub shape: Vec<u64>,
    /// The fill value of unmapped elements.
    pub fill: StoredFill,
    /// The mappings.
    pub mappings: MappingList,
}

/// A fill value as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredFill {
    /// No fill value.
    Undefined,
    /// Zeros.
    Default,
    /// This element.
    Value(Vec<u8>),
}

/// A list of mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingList {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Location of a mapping in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// `None`: the file is the one that contains the list.
    file: Option<Range<u32>>,
    dataset: Range<u32>,
    selections: u32,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMapping<'a> {
    /// Name of the file; `.` for the file itself.
    pub file: &'a [u8],
    /// Path of the dataset in it.
    pub dataset: &'a [u8],
    /// The selected elements of the source dataset.
    pub from: ElementSelection,
    /// The elements of the virtual dataset to which they are mapped.
    pub to: ElementSelection,
}

impl VirtualDataset {
    /// The virtual dataset with its object header at an address. `None`: another object, or one that only libhdf5 can
    /// interpret, with mappings that are unlimited or not of boxes.
    pub fn read(address: u64, widths: Widths, read: &ReadAt<'_>) -> Option<Self> {
        let messages = header::messages(address, widths, read)?;
        let found = |kind| messages.iter().find(|message| message.kind == kind);
        let mut layout = Rest(found(LAYOUT)?.body.as_ref()?);
        if layout.byte()? < 4 || layout.byte()? != VIRTUAL || found(EXTERNAL).or(found(FILTERS)).is_some() {
            return None;
        }
        let (collection, index) = (layout.number(widths.address)?, layout.number(4)?);
        // Without mappings there is no list.
        if Some(collection) == widths.undefined() {
            return None;
        }
        let shape = shape(found(DATASPACE)?.body.as_ref()?, widths)?;
        let fill = StoredFill::read(found(FILL)?.body.as_ref()?)?;
        let object = object(collection, u16::try_from(index).ok()?, widths, read)?;
        Some(Self { shape, fill, mappings: MappingList::read(object, widths)? })
    }
}

/// The extent in a message.
fn shape(message: &[u8], widths: Widths) -> Option<Vec<u64>> {
    let mut rest = Rest(message);
    let (version, rank, _) = (rest.byte()?, usize::from(rest.byte()?), rest.byte()?);
    match version {
        1 => rest.skip(5)?,
        2 if rest.byte()? == 1 => {}
        _ => return None,
    }
    rest.numbers(widths.length, rank)
}

impl StoredFill {
    /// The fill value in a message.
    fn read(message: &[u8]) -> Option<Self> {
        let mut rest = Rest(message);
        let version = rest.byte()?;
        let has_value = if version == 3 {
            let flags = rest.byte()?;
            match flags >> 4 & 3 {
                0 => return Some(Self::Default),
                1 => return Some(Self::Undefined),
                state => state == 2,
            }
        } else {
            rest.skip(2)?;
            rest.byte()? == 1 && version == 2
        };
        let size = rest.number(4).filter(|_| has_value)?;
        let value = rest.take(usize::try_from(size).ok()?)?;
        Some(if value.is_empty() { Self::Default } else { Self::Value(value.to_vec()) })
    }
}

/// An object of the global heap collection at an address.
fn object(address: u64, index: u16, widths: Widths, read: &ReadAt<'_>) -> Option<Vec<u8>> {
    let sizes = heap::HeapWidths::new(u8::try_from(widths.length).ok()?);
    let length = sizes.collection(&read(address, 32)?).ok().filter(|length| *length <= MOST_BYTES)?;
    let mut collection = read(address, usize::try_from(length).ok()?).filter(|bytes| bytes.len() as u64 == length)?;
    let object = sizes.objects(&collection).ok()?.find(&collection, index)?;
    collection.truncate(object.start.checked_add(object.length)?);
    Some(collection.split_off(object.start))
}

impl MappingList {
    /// Parses a list of mappings.
    fn read(bytes: Vec<u8>, widths: Widths) -> Option<Self> {
        let mut rest = Rest(&bytes);
        let version = rest.byte().filter(|version| *version <= 1)?;
        let count = rest.number(widths.length)?;
        let mut places: Vec<Place> = Vec::new();
        for _ in 0..count {
            let flags = if version == 1 { rest.byte()? } else { 0 };
            let file = match flags {
                _ if flags & SAME_FILE != 0 => None,
                _ if flags & FILE_SHARED != 0 => {
                    places.get(usize::try_from(rest.number(widths.length)?).ok()?)?.file.clone()
                }
                _ => Some(name(&bytes, &mut rest)?),
            };
            let dataset = match flags & DATASET_SHARED {
                0 => name(&bytes, &mut rest)?,
                _ => places.get(usize::try_from(rest.number(widths.length)?).ok()?)?.dataset.clone(),
            };
            let selections = u32::try_from(bytes.len() - rest.0.len()).ok()?;
            rest.selection()?;
            rest.selection()?;
            places.push(Place { file, dataset, selections });
        }
        let is_whole = rest.0.len() == 4;
        is_whole.then_some(Self { bytes, places })
    }

    /// Number of mappings.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A mapping by its number.
    pub fn get(&self, at: usize) -> Option<StoredMapping<'_>> {
        let Place { file, dataset, selections } = self.places.get(at)?;
        let named = |range: &Range<u32>| self.bytes.get(range.start as usize..range.end as usize);
        let mut rest = Rest(self.bytes.get(*selections as usize..)?);
        let file = file.as_ref().map_or(Some(&b"."[..]), named)?;
        Some(StoredMapping { file, dataset: named(dataset)?, from: rest.selection()?, to: rest.selection()? })
    }
}

/// Location of the next text, which ends with a NUL.
fn name(bytes: &[u8], rest: &mut Rest<'_>) -> Option<Range<u32>> {
    let length = rest.0.iter().take(LONGEST_NAME + 1).position(|byte| *byte == 0)?;
    let start = bytes.len() - rest.0.len();
    rest.skip(length + 1)?;
    Some(u32::try_from(start).ok()?..u32::try_from(start + length).ok()?)
}

impl Rest<'_> {
    /// A selection of everything or of one box. `None`: any other selection.
    fn selection(&mut self) -> Option<ElementSelection> {
        match self.number(4)? {
            2 => self.area().map(ElementSelection::Box),
            3 => {
                self.skip(12)?;
                Some(ElementSelection::All)
            }
            _ => None,
        }
    }

    fn area(&mut self) -> Option<Area> {
        let (is_regular, width) = self.hyperslab()?;
        let rank = self.rank()?;
        let (mut start, mut count) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
        if is_regular {
            let unlimited = u64::MAX >> (64 - 8 * width);
            for _ in 0..rank {
                let [first, stride, blocks, block] = [(); 4].map(|()| self.number(width));
                let (blocks, block) = (blocks?, block?);
                start.push(first?);
                // Adjacent blocks make one block.
                count.push(match blocks {
                    _ if blocks == unlimited || block == unlimited => return None,
                    1 => block,
                    _ if stride? == block => blocks.checked_mul(block)?,
                    _ => return None,
                });
            }
        } else {
            self.number(width).filter(|blocks| *blocks == 1)?;
            start = self.numbers(width, rank)?;
            for first in &start {
                count.push(self.number(width)?.checked_sub(*first)?.checked_add(1)?);
            }
        }
        (!count.contains(&0)).then_some(Area { start, count })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTHS: Widths = Widths { address: 8, length: 8 };

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn area(start: &[u64], count: &[u64]) -> ElementSelection {
        ElementSelection::Box(Area { start: start.to_vec(), count: count.to_vec() })
    }

    /// A list as h5py writes it by default: version 0, selections of version 1 and 2.
    fn list() -> Vec<u8> {
        let everything = words(&[3, 1, 0, 0]);
        let block = words(&[2, 1, 0, 24, 2, 1, 3, 4, 5, 9]);
        let dimensions: Vec<u8> = [8u64, 1, 1, 4, 6, 3, 2, 3].iter().flat_map(|number| number.to_le_bytes()).collect();
        let regular = [&words(&[2, 2])[..], &[1], &words(&[68, 2]), &dimensions].concat();
        let first = [b".\0/a\0", &everything[..], &block].concat();
        let second = [b"other.h5\0b/c\0", &block[..], &regular].concat();
        [&[0][..], &2u64.to_le_bytes(), &first, &second, &[1, 2, 3, 4]].concat()
    }

    #[test]
    fn mappings_are_boxes_or_everything() {
        let list = MappingList::read(list(), WIDTHS).unwrap();
        let first =
            StoredMapping { file: b".", dataset: b"/a", from: ElementSelection::All, to: area(&[3, 4], &[3, 6]) };
        let to = area(&[8, 6], &[4, 6]);
        let second = StoredMapping { file: b"other.h5", dataset: b"b/c", from: area(&[3, 4], &[3, 6]), to };
        assert_eq!((list.len(), list.get(0).unwrap(), list.get(1).unwrap(), list.get(2)), (2, first, second, None));
    }

    /// Version 1: names that stand in an earlier mapping, and numbers of two bytes in version 3 of selections.
    #[test]
    fn names_may_be_those_of_earlier_mappings() {
        let line = |numbers: [u16; 4]| {
            let numbers = numbers.map(u16::to_le_bytes).concat();
            [&words(&[2, 3])[..], &[1, 2], &words(&[1]), &numbers].concat()
        };
        let (from, to) = (line([0, 1, 1, 5]), line([5, 5, 2, 5]));
        let first = [&[SAME_FILE][..], b"/raw\0", &from, &to].concat();
        let second = [&[SAME_FILE | DATASET_SHARED][..], &0u64.to_le_bytes(), &from, &to].concat();
        let third = [&[0][..], b"x\0", b"y\0", &from, &to].concat();
        let fourth =
            [&[FILE_SHARED | DATASET_SHARED][..], &2u64.to_le_bytes(), &1u64.to_le_bytes(), &from, &to].concat();
        let bytes = [&[1][..], &4u64.to_le_bytes(), &first, &second, &third, &fourth, &[0; 4]].concat();
        let list = MappingList::read(bytes.clone(), WIDTHS).unwrap();
        let told = (0..4).map(|at| list.get(at).unwrap()).map(|mapping| (mapping.file, mapping.dataset));
        let expected: [(&[u8], &[u8]); 4] = [(b".", b"/raw"), (b".", b"/raw"), (b"x", b"y"), (b"x", b"/raw")];
        assert!(told.eq(expected));
        assert_eq!(list.get(3).unwrap().to, area(&[5], &[10]));
        assert_eq!(MappingList::read([&bytes[..], &[0]].concat(), WIDTHS), None, "bytes behind it");
        // A name of a mapping that comes later.
        let later = [&[1][..], &1u64.to_le_bytes(), &second, &[0; 4]].concat();
        assert_eq!(MappingList::read(later, WIDTHS), None);
    }

    #[test]
    fn other_selections_are_left_to_libhdf5() {
        let regular = |numbers: [u64; 4]| {
            let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            [&words(&[2, 2])[..], &[1], &words(&[36, 1]), &numbers].concat()
        };
        for bytes in [
            words(&[0, 1, 0, 0]),
            words(&[1, 1, 0, 12, 1, 1, 5]),
            words(&[2, 1, 0, 24, 1, 2, 3, 4, 5, 9]),
            words(&[2, 1, 0, 24, 1, 1, 5, 4]),
            regular([0, 4, 2, 3]),
            regular([0, 4, u64::MAX, 3]),
            regular([0, 1, 1, u64::MAX]),
            regular([0, 0, 2, 0]),
        ] {
            assert_eq!(Rest(&bytes).selection(), None, "{bytes:?}");
        }
        assert_eq!(Rest(&regular([7, 1, 1, 3])).selection(), Some(area(&[7], &[3])));
    }

    #[test]
    fn fill_values_are_as_stored() {
        let fill = StoredFill::read;
        assert_eq!(fill(&[2, 2, 2, 1, 2, 0, 0, 0, 7, 8]), Some(StoredFill::Value(vec![7, 8])));
        assert_eq!(fill(&[2, 2, 2, 1, 0, 0, 0, 0]), Some(StoredFill::Default));
        assert_eq!(fill(&[3, 0x0a]), Some(StoredFill::Default));
        assert_eq!(fill(&[3, 0x1a]), Some(StoredFill::Undefined));
        assert_eq!(fill(&[3, 0x2a, 1, 0, 0, 0, 9]), Some(StoredFill::Value(vec![9])));
        for other in [&[3, 0x3a][..], &[3, 0x2a, 2, 0, 0, 0, 9], &[2, 2, 2, 0], &[1, 2, 2, 1, 1, 0, 0, 0, 1], &[]] {
            assert_eq!(fill(other), None, "{other:?}");
        }
    }

    /// As many as h5py counts: all but those with strides, without limit and without mappings.
    #[test]
    fn files_of_all_versions_of_the_library_are_read() {
        for (name, user_block) in [("", 0), ("_earliest", 0), ("_v112", 0), ("_latest", 512)] {
            let path = format!("{}/tests/data/store_virtual{name}.h5", env!("CARGO_MANIFEST_DIR"));
            let file = std::fs::read(path).unwrap();
            let file = &file[user_block..];
            let read = |at: u64, length: usize| {
                let at = usize::try_from(at).ok().filter(|at| *at <= file.len())?;
                Some(file[at..file.len().min(at.saturating_add(length))].to_vec())
            };
            let found = (0..file.len() as u64).filter_map(|at| VirtualDataset::read(at, WIDTHS, &read));
            let counts: Vec<usize> = found.map(|dataset| dataset.mappings.len()).collect();
            assert_eq!((counts.len(), counts.iter().sum::<usize>()), (19, 87), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0usize..200, new in any::<[u8; 3]>(), end in 0usize..300) {
            let mut bytes = list();
            for (to, from) in bytes.iter_mut().skip(at).zip(new) {
                *to = from;
            }
            bytes.truncate(end);
            if let Some(list) = MappingList::read(bytes, WIDTHS) {
                for at in 0..list.len() {
                    prop_assert!(list.get(at).is_some());
                }
            }
        }
    }
}
