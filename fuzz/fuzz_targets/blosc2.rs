#![no_main]

// A chunk behind the filter Blosc2.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32026, 0, input));
