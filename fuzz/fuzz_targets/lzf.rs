#![no_main]

// A chunk behind the filter LZF.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(32000, 0, input));
