#![no_main]

use hepfs::codec::structure::Widths;
use hepfs::codec::structure::mapped::VirtualDataset;

// A file whose virtual dataset has its header at the start. Each of its mappings is there.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((width, file)) = input.split_first() else { return };
    let read = |at: u64, length: usize| {
        let rest = file.get(usize::try_from(at).ok()?..)?;
        Some(rest.get(..length).unwrap_or(rest).to_vec())
    };
    let widths = Widths { address: usize::from(width & 15).min(8), length: usize::from(width >> 4).min(8) };
    if let Some(dataset) = VirtualDataset::read(0, widths, &read) {
        for at in 0..dataset.mappings.len() {
            assert!(dataset.mappings.get(at).is_some());
        }
    }
});
