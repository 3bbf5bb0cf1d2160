#![no_main]

use hepfs_fuzz::statistics;
use xxhash_rust::xxh3::xxh3_64;

// Statistics out of the cache folder: the kind of the column and its rows, then the entry without its checksum. What is
// taken is kept as what was taken.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([kind, rows @ ..], entry)) = input.split_first_chunk::<9>() else { return };
    let rows = u64::from_le_bytes(*rows);
    let mut entry = entry.to_vec();
    entry.extend(xxh3_64(&entry).to_le_bytes());
    if let Some(kept) = statistics(&entry, *kind, rows) {
        assert_eq!(statistics(&kept, *kind, rows).as_ref(), Some(&kept));
    }
});
