#![no_main]

use hepfs::catalogue::ReferenceKind;

// References: kind, width of addresses, width and number of the elements, these, and the collection they lead into.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([kind, address_size, width, count], bytes)) = input.split_first_chunk() else { return };
    let kinds = [ReferenceKind::Object, ReferenceKind::Region, ReferenceKind::Standard];
    let kind = kinds[usize::from(*kind) % kinds.len()];
    hepfs_fuzz::references(kind, address_size % 9, usize::from(*width), usize::from(*count), bytes);
});
