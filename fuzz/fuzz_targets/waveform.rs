#![no_main]

use hepfs_fuzz::codec::waveform::Coding;

/// Most samples that a waveform may have.
const MOST: usize = 4096;

// Both decoders of the same bytes: no more samples than allowed, behind those that were there.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    for coding in [Coding::Zigzag, Coding::Sigcompress { shift: -32_768 }, Coding::Sigcompress { shift: i32::MAX }] {
        let mut samples = vec![7; 3];
        let _ = coding.decode(input, MOST, &mut samples);
        assert!(samples.len() <= 3 + MOST && samples[..3] == [7; 3]);
    }
});
