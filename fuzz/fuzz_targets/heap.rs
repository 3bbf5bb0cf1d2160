#![no_main]

// A global heap collection behind the width of its lengths. What is found in it must lie in it.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((width, collection)) = input.split_first() else { return };
    let sizes = hepfs::codec::structure::heap::HeapWidths::new(width % 9);
    let _ = sizes.collection(collection);
    let Ok(objects) = sizes.objects(collection) else { return };
    // Whatever is an index of an object stands at a multiple of 8.
    for index in collection.chunks_exact(8).map(|header| u16::from_le_bytes([header[0], header[1]])) {
        if let Some(object) = objects.find(collection, index) {
            assert!(object.index == index && index > 0 && object.start + object.length <= collection.len());
        }
    }
});
