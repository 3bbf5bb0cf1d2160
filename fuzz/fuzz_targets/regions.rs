#![no_main]

// The selection that a region reference leads to. Its text is short, whatever it says of itself.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(text) = hepfs_fuzz::region(input) {
        assert!(text.len() <= 1 << 20, "{}", text.len());
    }
});
