#![no_main]

// A chunk behind the filter Zstandard.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32015, 0, input));
