#![no_main]

use std::cell::Cell;

// A file, whose checksums the target cannot guess. What is read of it must be bounded, and whole.
libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let read = Cell::new(0);
    let fill = |at: u64, out: &mut [u8]| {
        read.set(read.get() + out.len());
        let at = usize::try_from(at).ok()?;
        out.copy_from_slice(file.get(at..at.checked_add(out.len())?)?);
        Some(())
    };
    let simple = hepfs::codec::structure::simple::read(&fill, file.len() as u64);
    assert!(read.get() <= file.len().min(1 << 20));
    if let Some(simple) = simple {
        assert!(simple.groups.first().is_some_and(|root| root.id == simple.info.root));
        assert!(simple.groups.iter().all(|group| group.is_whole() || !group.links.is_empty()));
    }
});
