#![no_main]

use hepfs::codec::{Prefix, Scratch};

// Decodes the beginning of a chunk behind one of three filters: byte 0 chooses it, bytes 1 to 4 are the chunk's size
// and how much of it is wanted. Where the whole chunk can be decoded, its beginning must be the same.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([stream, a, b, c, d], stored)) = input.split_first_chunk() else { return };
    let pipeline = hepfs_fuzz::pipeline([1, 32004, 32015][usize::from(stream % 3)], Vec::new());
    let size = usize::from(u16::from_le_bytes([*a, *b]));
    let mut beginning = vec![0; usize::from(u16::from_le_bytes([*c, *d])).min(size)];
    let said = pipeline.decode_prefix(0, stored, &mut beginning);
    let Scratch { first, second } = pipeline.scratch(0, size);
    let mut whole = vec![0; size];
    let decoded = pipeline.decode(0, stored, &mut whole, size, [&mut vec![0; first], &mut vec![0; second]]);
    if said == Prefix::Done && decoded.is_ok() {
        assert_eq!(beginning, whole[..beginning.len()]);
    }
    assert!(said != Prefix::MoreInput || decoded.is_err(), "all of a sound chunk was given");
});
