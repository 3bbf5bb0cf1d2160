//! The catalogue of simple files that hepfs reads without libhdf5, compared with that of the HDF5 worker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hepfs::catalogue::{Layout, Object};
use hepfs::codec::structure::simple::{self, SimpleFile};
use hepfs::h5::{Client, Options};
use hepfs::source::{Interrupt, Source};

use crate::data;

/// The catalogue of a simple file, from its bytes.
fn simple(bytes: &[u8]) -> Option<SimpleFile> {
    let fill = |at: u64, out: &mut [u8]| {
        let at = usize::try_from(at).ok()?;
        out.copy_from_slice(bytes.get(at..at.checked_add(out.len())?)?);
        Some(())
    };
    simple::read(&fill, bytes.len() as u64)
}

/// Where the worker's catalogue of the file differs; it may be the file's own name, or a copy's.
fn difference(path: &Path, simple: &SimpleFile) -> Result<(), String> {
    let interrupt = Interrupt::new();
    let options =
        Options { program: env!("CARGO_BIN_EXE_hepfs").into(), lists_simple: false, workers: 4, ..Options::default() };
    let client = Client::new(Arc::new(Source::open(path).unwrap()), options);
    let info = client.file(&interrupt).map_err(|error| format!("opening: {error}"))?;
    if info != simple.info {
        return Err(format!("{info:?}, not {:?}", simple.info));
    }
    for group in &simple.groups {
        let theirs = client.group(group.id, &interrupt).map_err(|error| format!("group {:?}: {error}", group.id))?;
        if theirs != *group {
            return Err(format!("group {:?}:\n{theirs:#?}\nnot\n{group:#?}", group.id));
        }
    }
    for (id, chunks) in &simple.chunks {
        let theirs = client.chunks(*id, 1 << 20, &interrupt).map_err(|error| format!("chunks of {id:?}: {error}"))?;
        if theirs != *chunks {
            return Err(format!("chunks of {id:?}: {theirs:?}, not {chunks:?}"));
        }
    }
    let objects = simple.groups.iter().flat_map(|group| &group.links).filter_map(|link| link.target.object());
    let chunked = objects.filter(
        |object| matches!(object, Object::Dataset(dataset) if matches!(dataset.layout, Layout::Chunked { .. })),
    );
    let known: BTreeMap<_, _> = simple.chunks.iter().map(|(id, chunks)| (*id, chunks)).collect();
    assert_eq!(chunked.map(Object::id).collect::<std::collections::BTreeSet<_>>(), known.into_keys().collect());
    Ok(())
}

/// The HDF5 files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.append(&mut files(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

/// How many files are simple, of how many; all of these must be what the worker says.
fn compare_all(folder: &Path) -> [usize; 2] {
    let (mut counts, mut differences) = ([0; 2], Vec::new());
    for path in files(folder) {
        let bytes = std::fs::read(&path).unwrap();
        if !bytes.starts_with(b"\x89HDF") {
            continue;
        }
        counts[1] += 1;
        let Some(simple) = simple(&bytes) else { continue };
        counts[0] += 1;
        if let Err(reason) = difference(&path, &simple) {
            differences.push(format!("{}: {reason}", path.display()));
        }
    }
    assert!(differences.is_empty(), "{} of {counts:?} differ:\n{}", differences.len(), differences.join("\n"));
    counts
}

/// Ways to damage a byte.
const WAYS: usize = 8;

/// The bytes of a file that are no values.
fn structure(bytes: &[u8], simple: &SimpleFile) -> Vec<usize> {
    let mut is_value = vec![false; bytes.len()];
    let mut cover = |from: u64, length: u64| {
        let (from, to) = (from as usize, (from + length) as usize);
        is_value[from.min(bytes.len())..to.min(bytes.len())].fill(true);
    };
    for (_, chunks) in &simple.chunks {
        chunks.iter().for_each(|chunk| cover(chunk.address, chunk.size));
    }
    for link in simple.groups.iter().flat_map(|group| &group.links) {
        if let Some(dataset) = link.target.dataset()
            && let Layout::Contiguous { address: Some(address) } = dataset.layout
        {
            cover(address, dataset.len().unwrap() * dataset.datatype.size);
        }
    }
    (0..bytes.len()).filter(|at| !is_value[*at]).collect()
}

/// Damages a file at a byte; `None`: this way changes nothing there.
fn mutant(bytes: &[u8], at: usize, way: usize) -> Option<Vec<u8>> {
    // Any number will do, as long as it is the same next time.
    let number = (at * WAYS + way + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let mut mutant = bytes.to_vec();
    match way {
        0 => mutant[at] ^= 1,
        1 => mutant[at] ^= 0x80,
        2 => mutant[at] ^= 1 << (number % 8),
        3 => mutant[at] = 0,
        4 => mutant[at] = mutant[at].wrapping_add(8),
        // A number from elsewhere, of eight bytes or of two.
        5 | 6 => {
            let width = if way == 5 { 8 } else { 2 };
            let from = number % bytes.len() / width * width;
            if !at.is_multiple_of(width) || from.max(at) + width > bytes.len() {
                return None;
            }
            mutant.copy_within(from..from + width, at);
        }
        _ if at.is_multiple_of(16) => mutant.truncate(at),
        _ => return None,
    }
    (mutant != bytes).then_some(mutant)
}

/// Compares every `step`th mutant of the simple files in a folder; returns how many there were, and how many of them
/// were simple and compared.
fn compare_mutants(folder: &Path, step: usize, largest: usize) -> [usize; 2] {
    let scratch = tempfile::tempdir().unwrap();
    let (all, differences) = ([AtomicUsize::new(0), AtomicUsize::new(0)], parking_lot::Mutex::new(Vec::new()));
    for path in files(folder) {
        let bytes = std::fs::read(&path).unwrap();
        let Some(whole) = Some(&bytes).filter(|bytes| bytes.len() <= largest).and_then(|bytes| simple(bytes)) else {
            continue;
        };
        let structure = structure(&bytes, &whole);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (structure, next, all, differences, scratch) = (&structure, &next, &all, &differences, &scratch);
                let (path, bytes, whole) = (&path, &bytes, &whole);
                scope.spawn(move || {
                    let copy = scratch.path().join(format!("{worker}.h5"));
                    loop {
                        let number = next.fetch_add(step, Ordering::Relaxed);
                        let Some(at) = structure.get(number / WAYS) else { break };
                        let Some(mutant) = mutant(bytes, *at, number % WAYS) else { continue };
                        all[0].fetch_add(1, Ordering::Relaxed);
                        let Some(simple) = simple(&mutant) else { continue };
                        // That libhdf5 ignores a byte as well is seen by some.
                        if simple == *whole && !(number / step).is_multiple_of(16) {
                            continue;
                        }
                        all[1].fetch_add(1, Ordering::Relaxed);
                        std::fs::write(&copy, mutant).unwrap();
                        if let Err(reason) = difference(&copy, &simple) {
                            let what = format!("{}, byte {at}, way {}", path.display(), number % WAYS);
                            differences.lock().push(format!("{what}: {reason}"));
                        }
                    }
                });
            }
        });
    }
    let differences = differences.into_inner();
    let counts = all.map(AtomicUsize::into_inner);
    assert!(differences.is_empty(), "{} of {counts:?} differ:\n{}", differences.len(), differences.join("\n"));
    counts
}

#[test]
fn simple_files_are_what_the_worker_says() {
    let [simple, all] = compare_all(&data(""));
    assert!(simple >= 40 && all > simple, "{simple} of {all} are simple");
}

#[test]
fn damaged_files_are_what_the_worker_says_or_left_to_it() {
    let [mutants, simple] = compare_mutants(&data(""), 997, 32 << 10);
    assert!(mutants > 300 && simple > 10, "{simple} of {mutants} mutants are simple");
}

/// `cargo xtask check simple` runs this: every file below a folder, and every `HEPFS_SIMPLE_STEP`th mutant.
#[test]
#[ignore = "takes long"]
fn campaign() {
    let folder = PathBuf::from(std::env::var_os("HEPFS_SIMPLE_FOLDER").expect("a folder"));
    let step = std::env::var("HEPFS_SIMPLE_STEP").expect("a step").parse().expect("a number");
    println!("simple, of all files: {:?}", compare_all(&folder));
    println!("mutants, compared ones of them: {:?}", compare_mutants(&folder, step, 32 << 10));
}
