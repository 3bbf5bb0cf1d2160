#![no_main]

// A chunk behind the filter bzip2.
libfuzzer_sys::fuzz_target!(|input: &[u8]| hepfs_fuzz::decode(307, 0, input));
