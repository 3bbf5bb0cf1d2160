//! What the fuzz targets share: bytes become a filter with its parameters and a stored chunk.

#[path = "../../src/catalogue/mod.rs"]
pub mod catalogue;
#[path = "../../src/codec/mod.rs"]
pub mod codec;
#[path = "../../src/store/heap/layout.rs"]
pub mod heap;

#[path = "../../src/h5/worker/answers/listed.rs"]
mod listed;
#[path = "../../src/store/decode/regions.rs"]
mod regions;
pub mod store {
    //! Where the sources above look for each other.

    pub use super::heap;
}

use catalogue::{Chunk, Filter};
use codec::{Pipeline, Scratch};

/// A selection as text.
pub fn region(bytes: &[u8]) -> Option<String> {
    regions::text(bytes)
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
    let _ = pipeline.decode(0, stored, &mut vec![0; size], &mut vec![0; first], &mut vec![0; second]);
}

/// The pipeline of one filter that has a codec.
pub fn pipeline(id: i32, parameters: Vec<u32>) -> Pipeline {
    let filter = Filter { id, optional: false, parameters, name: String::new(), available: false };
    Pipeline::new(&[filter]).expect("a filter with a codec")
}
