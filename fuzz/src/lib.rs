//! What the fuzz targets share: bytes become a filter with its parameters and a stored chunk.

#[path = "../../src/calendar.rs"]
pub mod calendar;
#[path = "../../src/catalogue/mod.rs"]
pub mod catalogue;
#[path = "../../src/codec/mod.rs"]
pub mod codec;
#[path = "../../src/h5/worker/answers/listed.rs"]
mod listed;
#[path = "../../src/store/decode/regions.rs"]
mod regions;
pub mod store;

use arrow_array::Array;
use arrow_buffer::Buffer;
use catalogue::{Chunk, Datatype, Filter, ReferenceKind};
use codec::{Pipeline, Scratch};
use store::decode::{self, Memory, Oddities, Weigher};

/// A selection as text.
pub fn region(bytes: &[u8]) -> Option<String> {
    regions::text(bytes)
}

/// Bytes that an array may take.
const LARGEST: u64 = 1 << 20;

/// Decodes elements with the heap behind them, if they take little: the array must be sound, and as large as was said.
pub fn elements(datatype: &Datatype, count: usize, bytes: &[u8]) {
    let length = usize::try_from(datatype.size).ok().and_then(|size| size.checked_mul(count));
    let Some((elements, heap)) = length.and_then(|length| bytes.split_at_checked(length)) else { return };
    let heap = Memory(heap);
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

/// References of a width, with the collection that they lead into behind them, as text.
pub fn references(kind: ReferenceKind, address_size: u8, width: usize, count: usize, bytes: &[u8]) {
    let Some((stored, collection)) = width.checked_mul(count).and_then(|length| bytes.split_at_checked(length)) else {
        return;
    };
    let file = store::File { address_size, collection: collection.to_vec() };
    let heap = store::Heap { file, file_number: 0, interrupt: store::Interrupt };
    if let Ok(texts) = heap.references(kind, stored, width) {
        assert_eq!(texts.len(), stored.len() / width.max(1));
        assert!(texts.value_data().len() <= LARGEST as usize);
    }
}

/// The chunks that an index of this many positions lists, set right.
pub fn settle(entries: Vec<(Option<u64>, Chunk)>, positions: u64, flags: u8) -> Result<Vec<Chunk>, String> {
    let [in_order, grows, is_endless, ends_early, beyond_nodes] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
    listed::Listed { entries, positions, in_order, grows, is_endless, ends_early, beyond_nodes }.settle()
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
