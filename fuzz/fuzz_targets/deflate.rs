#![no_main]

// A chunk behind the filter deflate.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(1, 0, input));
