#![no_main]

// A chunk behind the filter scale-offset: 20 parameters.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(6, 20, input));
