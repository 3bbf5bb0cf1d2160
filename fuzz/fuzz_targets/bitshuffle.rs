#![no_main]

// A chunk behind the filter bitshuffle.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32008, 5, input));
