#![no_main]

// Reads a request line with headers as `hepfs serve` does: path, query, ranges, conditions, keys and signatures. Bytes
// that do not have the key may not read.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let secret = b"0123456789abcdef0123456789abcdef01234567";
    // The key itself, in each form of it, is for other tests.
    if !input.windows(8).any(|part| part == &secret[..8]) {
        assert_ne!(hepfs::serve::judged(input), Some(true));
    }
});
