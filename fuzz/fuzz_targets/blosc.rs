#![no_main]

// A chunk behind the filter Blosc.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32001, 0, input));
