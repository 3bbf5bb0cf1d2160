#![no_main]

// A chunk behind the filter Fletcher-32.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(3, 0, input));
