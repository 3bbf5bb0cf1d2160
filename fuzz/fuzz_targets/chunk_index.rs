#![no_main]

use hepfs::catalogue::Chunk;

// A chunk index: byte 0 says what kind it is, byte 1 how many positions there are, then a byte for the position of each
// entry (255: outside). What is listed once and in order stays, and no position is listed twice.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([flags, positions], places)) = input.split_first_chunk() else { return };
    let chunk = |address: u64| Chunk { index: 0, address, size: 1, mask: 0 };
    let inside = |place: &u8| (place < positions).then_some(u64::from(*place));
    let entries: Vec<_> = places.iter().map(inside).zip((1..).map(chunk)).collect();
    let is_sound = entries.windows(2).all(|pair| matches!((pair[0].0, pair[1].0), (Some(a), Some(b)) if a < b));
    let Ok(settled) = hepfs_fuzz::settle(entries.clone(), u64::from(*positions), *flags) else { return };
    assert!(settled.windows(2).all(|pair| pair[0].index < pair[1].index));
    assert!(settled.iter().all(|chunk| chunk.index < u64::from(*positions)));
    if is_sound && entries.first().is_none_or(|(place, _)| place.is_some()) && flags & 12 == 0 {
        assert_eq!(settled.len(), entries.len());
        assert!(settled.iter().all(|chunk| !chunk.is_unknown()));
    }
});
