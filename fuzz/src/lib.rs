//! Shared by the fuzz targets: bytes become a filter with its parameters and a stored chunk, a heap, a chunk index.

use arrow_array::Array;
use arrow_buffer::Buffer;
use hepfs::catalogue::{Chunk, Datatype, Filter, ReferenceKind};
use hepfs::codec::structure::heap::HeapWidths;
use hepfs::codec::{Pipeline, Scratch};
use hepfs::h5::ListedChunks;
use hepfs::store::Unresolved;
use hepfs::store::decode::{self, HeapBytes, Objects, Oddities, Resolve, Weigher};
use hepfs::store::statistics::{ScalarKind, encoded_again};

pub use hepfs::store::decode::region;

/// Bytes that an array may take.
const LARGEST: u64 = 1 << 20;

/// Decodes elements with the heap behind them, if they take little: the array must be sound, and as large as was said.
pub fn elements(datatype: &Datatype, count: usize, bytes: &[u8]) {
    let length = usize::try_from(datatype.size).ok().and_then(|size| size.checked_mul(count));
    let Some((elements, heap)) = length.and_then(|length| bytes.split_at_checked(length)) else { return };
    let heap = HeapBytes(heap);
    let weigher = Weigher::new(datatype, bytes.len() as u64);
    let weight = weigher.weight_of_all(elements, datatype.size, LARGEST, &heap);
    if weight > LARGEST {
        return;
    }
    let mut oddities = Oddities::new();
    let Ok(array) = decode::decode(datatype, Buffer::from(elements), count, &heap, &mut oddities) else { return };
    assert_eq!((array.len(), array.data_type()), (count, &decode::arrow_type(datatype)));
    array.to_data().validate_full().expect("an array that is sound");
    assert!(oddities.iter().all(|(_, row)| row < count.max(1) as u64 * LARGEST));
}

/// References of a width, with the collection that they lead into behind them.
pub fn references(kind: ReferenceKind, address_size: u8, width: usize, count: usize, bytes: &[u8]) {
    let Some((stored, collection)) = width.checked_mul(count).and_then(|length| bytes.split_at_checked(length)) else {
        return;
    };
    let address_size = usize::from(address_size);
    let mut heap = Heap { address_size, collection };
    if let Ok(targets) = decode::references(kind, stored, width, address_size, &mut heap) {
        assert_eq!(targets.len(), stored.len() / width.max(1));
        assert!(targets.iter().flatten().all(|(_, suffix)| suffix.len() <= LARGEST as usize));
    }
}

/// A global heap of one collection, at whatever address.
struct Heap<'a> {
    address_size: usize,
    collection: &'a [u8],
}

impl Objects for Heap<'_> {
    fn object(&mut self, _: u64, index: u32) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("nothing there".into());
        let objects = HeapWidths::new(8).objects(self.collection).map_err(|_| invalid())?;
        let index = u16::try_from(index).map_err(|_| invalid())?;
        let object = objects.find(self.collection, index).ok_or_else(invalid)?;
        self.collection.get(object.start..object.start + object.length).ok_or_else(invalid)
    }
}

impl Resolve for Heap<'_> {
    fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("too short".into());
        let (length, rest) = descriptor.split_first_chunk().ok_or_else(invalid)?;
        let rest = rest.get(self.address_size..).ok_or_else(invalid)?;
        let index = u32::from_le_bytes(*rest.first_chunk().ok_or_else(invalid)?);
        let bytes = u64::from(u32::from_le_bytes(*length)).checked_mul(width).ok_or_else(invalid)?;
        self.object(0, index)?.get(..usize::try_from(bytes).unwrap_or(usize::MAX)).ok_or_else(invalid)
    }
}

/// Statistics of so many rows as the cache folder keeps them, decoded and encoded again.
pub fn statistics(entry: &[u8], kind: u8, rows: u64) -> Option<Vec<u8>> {
    let kinds = [ScalarKind::Bool, ScalarKind::Int, ScalarKind::UInt, ScalarKind::Float, ScalarKind::Text];
    encoded_again(entry, kinds[usize::from(kind) % kinds.len()], rows)
}

/// The chunks that an index of this many positions lists, set right.
pub fn settle(entries: Vec<(Option<u64>, Chunk)>, positions: u64, flags: u8) -> Result<Vec<Chunk>, String> {
    let [in_order, grows, is_endless, ends_early, beyond_nodes] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
    ListedChunks { entries, positions, in_order, grows, is_endless, ends_early, beyond_nodes }.settle()
}

/// Decodes a chunk behind one filter. The first two bytes of `input` are the chunk's size (little-endian), the next
/// `parameters` bytes one parameter of the filter each, the rest is the chunk as stored.
pub fn decode(id: i32, parameters: usize, input: &[u8]) {
    let Some((size, rest)) = input.split_first_chunk() else { return };
    let Some((parameters, stored)) = rest.split_at_checked(parameters) else { return };
    run(id, parameters.iter().map(|byte| u32::from(*byte)).collect(), usize::from(u16::from_le_bytes(*size)), stored);
}

/// Decodes a chunk of `size` bytes; whatever comes of it, it must not panic.
pub fn run(id: i32, parameters: Vec<u32>, size: usize, stored: &[u8]) {
    let pipeline = pipeline(id, parameters);
    let Scratch { first, second } = pipeline.scratch(0, size);
    // All of the chunk is needed, or half of it.
    for needed in [size, size / 2] {
        let _ = pipeline.decode(0, stored, &mut vec![0; size], needed, [&mut vec![0; first], &mut vec![0; second]]);
    }
}

/// The pipeline of one filter that has a codec.
pub fn pipeline(id: i32, parameters: Vec<u32>) -> Pipeline {
    let filter = Filter { id, optional: false, parameters, name: String::new(), available: false };
    Pipeline::new(&[filter]).expect("a filter with a codec")
}
