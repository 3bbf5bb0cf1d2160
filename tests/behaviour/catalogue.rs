//! The kept catalogue of a file: a second mount starts no worker, a changed file is read anew, and a damaged entry
//! costs only time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::data;
use crate::place::{Place, end, settle};
use crate::support::{Mounted, family, hepfs, until};
use crate::writer::{self, INVERTING, Writer};

/// Rows, and chunks, of the column whose chunk map is so large that it is kept by itself.
const MANY: i64 = 30_000;

/// A file written by libhdf5: a table with a column of few chunks and one of many, and a column of another table.
fn write(path: &Path, unit: &str, first: i64) {
    let writer = Writer::create(path);
    let table = writer.table("t");
    table.attribute("units_vocabulary", unit);
    table.column("few", &(first..first + 1000).collect::<Vec<_>>(), 100);
    table.column("many", &(first..first + MANY).collect::<Vec<_>>(), 1);
    drop(table);
    writer.table("u").column("x", &[first, first + 1], 10);
    writer.close();
    settle();
}

fn written() -> Place {
    let place = Place::empty();
    write(&place.source(), "first", 5);
    place
}

impl Place {
    /// Mounts, looks at everything, and unmounts.
    fn look(&self, arguments: &[&str]) -> (Seen, Asked) {
        let mounted = self.mount(arguments);
        let looked = (look_at(&mounted), Asked::by(&mounted));
        end(mounted);
        looked
    }

    /// What a mount shows that keeps nothing.
    fn cold(&self) -> Seen {
        look_at(&Mounted::new(&[&self.source()], &[]))
    }
}

/// All names with the size of each, and the bytes of some files.
#[derive(Debug, PartialEq)]
struct Seen(BTreeMap<String, (u64, Vec<u8>)>);

fn look_at(mounted: &Mounted) -> Seen {
    let mut seen = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in mounted.names(&folder).into_iter().filter(|name| name != ".hepfs") {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let metadata = fs::metadata(mounted.join(&path)).unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let read = [".json", ".raw", ".npy", "head.csv"].iter().any(|end| path.ends_with(end));
                let bytes = if read { mounted.read(&path) } else { Vec::new() };
                seen.insert(path, (metadata.size(), bytes));
            }
        }
    }
    Seen(seen)
}

/// What was asked of HDF5 workers, what was known without them, and how many processes serve the mount.
#[derive(Debug, PartialEq)]
struct Asked {
    asked: u64,
    known: u64,
    processes: usize,
}

impl Asked {
    fn by(mounted: &Mounted) -> Self {
        let stats = mounted.text(".hepfs/stats");
        let count = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("no {name} in {stats}")).parse().unwrap()
        };
        let processes = family(mounted.daemon()).len();
        Self { asked: count("catalogue_asked"), known: count("catalogue_found"), processes }
    }
}

#[test]
fn a_second_mount_starts_no_worker() {
    let place = written();
    let (first, asked) = place.look(&[]);
    // The file, its groups and small chunk maps, the large one. A worker is a copy of a process of its own.
    assert_eq!((asked.asked, asked.processes), (3, 3), "{asked:?}");
    let Asked { asked, known, processes } = place.look(&[]).1;
    assert_eq!((asked, known, processes), (0, 6, 1));
    assert_eq!(place.look(&[]).0, first);
    assert_eq!(place.cold(), first);
    // The numbers that libhdf5 wrote.
    let (few, many) = (&first.0["t/columns/few.raw"].1, &first.0["t/columns/many.raw"].1);
    assert_eq!(*few, (5..1005_i64).flat_map(i64::to_le_bytes).collect::<Vec<_>>());
    assert_eq!(*many, (5..5 + MANY).flat_map(i64::to_le_bytes).collect::<Vec<_>>());
    // Programs that do not mount use it as well, and add to it.
    let place = written();
    for _ in 0..2 {
        let output = hepfs(["info", "--cache-folder", &place.cache(), &place.source().display().to_string()]);
        assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().contains("table t: 1 000 rows"));
        // `many` is longer than the table, so its bytes are not the table's, and its chunk map is not looked at.
        assert_eq!(place.entries().len(), 1);
    }
    let mounted = place.mount(&[]);
    mounted.names("t/columns");
    assert_eq!(Asked::by(&mounted), Asked { asked: 0, known: 2, processes: 1 });
    drop(mounted);
    place.look(&[]);
    assert_eq!(place.look(&[]).1.asked, 0);
}

/// hepfs lists it itself, and decodes it, unless told not to.
#[test]
fn a_simple_file_starts_no_worker() {
    let look = |arguments: &[&str]| {
        let mounted = Mounted::new(&[&data("units.h5")], arguments);
        let metadata = (mounted.text("t/metadata.json"), mounted.text("t/table.csv"));
        (metadata, Asked::by(&mounted).processes)
    };
    let (seen, processes) = look(&[]);
    assert_eq!(processes, 1);
    let (by_library, processes) = look(&["--decode=libhdf5"]);
    assert_eq!((by_library, processes), (seen, 3));
}

#[test]
fn a_mount_writes_in_passing_what_it_was_told() {
    let place = Place::empty();
    let writer = Writer::create(&place.source());
    writer.table("t").column("x", &[1], 1);
    // So many links are asked for when they are wanted.
    let wide = writer.table("wide");
    (0..300).for_each(|at| drop(wide.column(&format!("c{at}"), &[1], 1)));
    drop(wide);
    writer.close();
    settle();
    let mounted = place.mount(&[]);
    mounted.names("t/columns");
    until("an entry", || place.entries().len() == 1);
    mounted.names("wide/columns");
    let size = || fs::metadata(&place.entries()[0]).unwrap().len();
    let before = size();
    until("a longer entry", || size() > before);
}

#[test]
fn a_changed_file_is_read_anew() {
    let place = written();
    place.look(&[]);
    let bytes = fs::read(place.source()).unwrap();
    let time = fs::metadata(place.source()).unwrap().modified().unwrap();
    let anew = |what: &str| {
        settle();
        let (seen, asked) = place.look(&[]);
        assert_eq!(asked.asked, 3, "{what}: {asked:?}");
        assert_eq!(seen, place.cold(), "{what}");
        seen
    };
    let vocabulary = |seen: &Seen| {
        let metadata: serde_json::Value = serde_json::from_slice(&seen.0["t/metadata.json"].1).unwrap();
        metadata["attributes"]["units_vocabulary"].as_str().unwrap().to_owned()
    };
    let hide = || fs::File::options().append(true).open(place.source()).unwrap().set_modified(time).unwrap();

    // Rewritten in place, to a file of the same size, by a program that hides it.
    let other = place.folder().join("other.h5");
    write(&other, "other", 70);
    let others = fs::read(&other).unwrap();
    assert_eq!(others.len(), bytes.len());
    fs::write(place.source(), &others).unwrap();
    hide();
    assert_eq!(vocabulary(&anew("rewritten")), "other");
    // Replaced by another file of the same size.
    fs::write(&other, &bytes).unwrap();
    fs::rename(&other, place.source()).unwrap();
    hide();
    assert_eq!(vocabulary(&anew("replaced")), "first");
    // Touched.
    fs::write(place.source(), &bytes).unwrap();
    assert_eq!(vocabulary(&anew("touched")), "first");
    assert_eq!(place.look(&[]).1.asked, 0);
}

#[test]
fn a_file_that_changes_while_it_is_mounted_leaves_nothing_stale() {
    let place = written();
    let mounted = place.mount(&[]);
    mounted.names("t/columns");
    let other = place.folder().join("other.h5");
    write(&other, "other", 70);
    fs::write(place.source(), fs::read(&other).unwrap()).unwrap();
    settle();
    let seen = look_at(&mounted);
    end(mounted);
    assert_eq!(seen, place.cold());
    assert_eq!(place.look(&[]).0, seen);
    assert_eq!(place.look(&[]).1.asked, 0);
}

#[test]
fn a_damaged_entry_costs_time_and_no_byte() {
    let place = written();
    let expected = place.look(&[]).0;
    let entries = place.entries();
    // The catalogue, the large chunk map; sizes of text and statistics have their own.
    assert!(entries.len() >= 2, "{entries:?}");
    for entry in &entries {
        let whole = fs::read(entry).unwrap();
        for part in 0..8 {
            let mut damaged = whole.clone();
            let at = (whole.len() - 1) * part / 7;
            damaged[at] ^= 1 << part;
            fs::write(entry, &damaged).unwrap();
            let mounted = place.mount(&[]);
            assert_eq!(look_at(&mounted), expected, "bit {part} of byte {at} of {}", entry.display());
            assert_eq!(mounted.text(".hepfs/errors"), "");
            end(mounted);
            // It is made again.
            assert_eq!(place.look(&[]).1.asked, 0, "after bit {part} of byte {at}");
        }
    }
}

/// Sizes of text files, statistics and the catalogue are kept only of files that no writer has open.
#[test]
fn nothing_is_kept_of_a_file_that_a_writer_has_open() {
    let place = Place::empty();
    fs::copy(data("h5_swmr.h5"), place.source()).unwrap();
    settle();
    for _ in 0..2 {
        let (_, asked) = place.look(&[]);
        assert!(asked.asked > 1 && asked.known == 0, "{asked:?}");
    }
    assert!(place.entries().is_empty());
}

#[test]
fn what_may_depend_on_other_files_is_not_kept() {
    let place = written();
    for _ in 0..2 {
        let asked = place.look(&["--follow-external"]).1;
        assert_eq!((asked.asked, asked.known), (7, 0));
    }
    assert!(place.entries().is_empty());
}

#[test]
fn other_plugins_are_asked_again() {
    let place = Place::empty();
    writer::register_inverting_filter();
    let writer = Writer::create(&place.source());
    let table = writer.table("t");
    table.column("plain", &[1, 2, 3], 100);
    drop(table);
    writer.table("strange").filtered("x", &[1, 2, 3], 100, INVERTING);
    writer.close();
    settle();
    let plugins = place.folder().join("plugins");
    fs::create_dir(&plugins).unwrap();
    let option = ["--plugins", &plugins.display().to_string()];
    let asked = |arguments: &[&str]| {
        let mounted = place.mount(arguments);
        mounted.names("t/columns");
        mounted.names("strange/columns");
        Asked::by(&mounted).asked
    };
    assert_eq!((asked(&[]), asked(&[])), (2, 0));
    // Whether a plugin can be loaded may change without a sign: a group that lacks one is asked for each time.
    assert_eq!((asked(&option), asked(&option)), (3, 1));
    fs::write(plugins.join("libnothing.so"), "x").unwrap();
    assert_eq!((asked(&option), asked(&option)), (3, 1));
    assert_eq!(asked(&[]), 0);
}
