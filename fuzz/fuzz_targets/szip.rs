#![no_main]

// Behind the size: the parameters, of which the last, the pixels of a scanline, takes two bytes.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([low, high, mask, block, bits, line_low, line_high], stored)) = input.split_first_chunk() else { return };
    let scanline = u16::from_le_bytes([*line_low, *line_high]);
    let parameters = vec![(*mask).into(), (*block).into(), (*bits).into(), scanline.into()];
    hepfs_fuzz::run(4, parameters, u16::from_le_bytes([*low, *high]).into(), stored);
});
