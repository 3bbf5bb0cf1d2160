#![no_main]

// Behind the size: the number of parameters, and a byte of each. The first one is always right: a wrong one leaves the
// dataset to the worker.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([low, high, count], rest)) = input.split_first_chunk() else { return };
    let Some((parameters, stored)) = rest.split_at_checked((*count).into()) else { return };
    let count = u32::from(*count) + 1;
    let parameters = std::iter::once(count).chain(parameters.iter().map(|byte| u32::from(*byte))).collect();
    hepfs_fuzz::run(5, parameters, u16::from_le_bytes([*low, *high]).into(), stored);
});
