#![no_main]

// A global heap collection behind the width of its lengths. What is found in it must lie in it.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((width, collection)) = input.split_first() else { return };
    let sizes = hepfs_fuzz::heap::Sizes::new(width % 9);
    let _ = sizes.collection(collection);
    for object in sizes.objects(collection).unwrap_or_default() {
        assert!(object.index > 0 && object.start + object.length <= collection.len());
    }
});
