#![no_main]

use hepfs::codec::waveform::Coding;

/// Most samples that a waveform may have.
const MOST: usize = 4096;

// Both decoders of the same bytes: what is decoded is what was counted.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    for coding in [Coding::Zigzag, Coding::Sigcompress { shift: -32_768 }, Coding::Sigcompress { shift: i32::MAX }] {
        let counted = coding.samples(input);
        let size = counted.unwrap_or(input.len()).min(MOST);
        assert_eq!(coding.decode(input, &mut vec![0; size]).is_some(), counted == Some(size));
    }
});
