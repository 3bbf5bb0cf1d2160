#![no_main]

// A chunk behind the filter LZ4.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32004, 0, input));
