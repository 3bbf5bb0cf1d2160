#![no_main]

use hepfs::catalogue::{ChunkMap, FileInfo, Link};

// What a worker answers, and an entry of the cache folder holds: links and chunk maps. Of a map that is read, every
// chunk is found, and it is the same when it is written again.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((what, bytes)) = input.split_first() else { return };
    match what % 3 {
        0 => drop(postcard::take_from_bytes::<Link>(bytes)),
        1 => drop(postcard::from_bytes::<FileInfo>(bytes)),
        _ => {
            let Ok(map) = postcard::from_bytes::<ChunkMap>(bytes) else { return };
            assert!(map.iter().all(|chunk| map.get(chunk.index) == Some(chunk)));
            let again = postcard::to_stdvec(&map).expect("a list of numbers");
            assert_eq!(postcard::from_bytes::<ChunkMap>(&again), Ok(map));
        }
    }
});
