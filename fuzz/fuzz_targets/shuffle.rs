#![no_main]

// The parameter is the size of an element.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(2, 1, input));
