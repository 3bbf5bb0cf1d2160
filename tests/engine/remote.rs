//! Sources that are no files: objects of a store in memory give what the same bytes give as a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use bstr::{BString, ByteSlice};
use hepfs::fs::{EntryKind, Error, NodeRef, tree};
use hepfs::h5::{self, Client, Exclusive, WriteError};
use hepfs::session::{Session, Settings};
use hepfs::source::{self, Interrupt, Opener, Source};
use hepfs::store::{self, Answer, Store};
use hepfs::views::Effort;

use crate::data;
use crate::shelf::Shelf;

/// Pages have the path of the source in them, and in their size.
const PAGE: &str = "index.html";

/// Why libhdf5 reads nothing here: of files, of objects.
const NO_WORKER: &str = "cannot run the HDF5 worker: /nonexistent: No such file or directory (os error 2)";
const OUT_OF_REACH: &str = "this takes the HDF5 library, which reads local files only";

/// Files that hepfs lists by itself, of several dialects, layouts and filters.
const SIMPLE: [&str; 12] = [
    "anndata_06.h5",
    "astropy.h5",
    "filters.h5",
    "july_lists.h5",
    "layouts.h5",
    "loom.h5",
    "missing.h5",
    "names_arrays.h5",
    "store_filters.h5",
    "times.h5",
    "trevni/nested.trv",
    "trevni/types.trv",
];

/// A session that starts no worker.
fn session(opener: Opener, kept_folder: Option<PathBuf>) -> Arc<Session> {
    let workers = h5::Options { program: "/nonexistent".into(), ..Default::default() };
    let store = Store::new(store::Options { kept_folder, ..Default::default() });
    Session::with_settings(store, workers, Settings { opener, ..Default::default() })
}

fn root(session: &Arc<Session>, sources: &[&str]) -> NodeRef {
    let sources: Vec<PathBuf> = sources.iter().map(PathBuf::from).collect();
    tree::root(session, &sources, &Interrupt::new()).unwrap()
}

/// A store with a file at an address.
fn shelf(address: &str, file: &Path) -> Shelf {
    let shelf = Shelf::default();
    shelf.put(address, fs::read(file).unwrap(), 1, fs::metadata(file).unwrap().modified().unwrap());
    shelf
}

fn bytes(file: &NodeRef) -> Result<Vec<u8>, Error> {
    let interrupt = Interrupt::new();
    Answer::collect(|answer| file.gather(0, usize::MAX, answer, &interrupt))
}

/// Compares two directories with everything in them; returns how many files had the same bytes.
fn compare(path: &str, local: &NodeRef, remote: &NodeRef) -> usize {
    let interrupt = Interrupt::new();
    let [names, found] =
        [local, remote].map(|node| node.children(&interrupt).map(|names| names.iter().collect::<Vec<_>>()));
    let (names, found) = (names.unwrap(), found.unwrap());
    assert_eq!(found, names, "{path}");
    let mut same = 0;
    for entry in names.into_iter().filter(|entry| entry.kind != EntryKind::LiveFile && entry.name != PAGE) {
        let path = format!("{path}/{}", entry.name);
        let [local, remote] = [local, remote].map(|node| node.lookup(&entry.name, &interrupt).unwrap());
        let [(kind, mode, mtime), found] = [&local, &remote].map(|node| {
            let attributes = node.attributes();
            (attributes.kind, attributes.mode & 0o444, attributes.mtime)
        });
        // What belongs to no source has the time of the mount.
        let is_live = path.starts_with("/.");
        assert!((kind, mode) == (found.0, found.1) && (is_live || mtime == found.2), "{path}: {found:?}");
        match entry.kind {
            EntryKind::Directory if entry.name == ".hepfs" => {}
            EntryKind::Directory => same += compare(&path, &local, &remote),
            EntryKind::Symlink => assert_eq!(remote.readlink().unwrap(), local.readlink().unwrap(), "{path}"),
            EntryKind::File | EntryKind::LiveFile => {
                let size = format!("{:?}", remote.size(Effort::Exact, &interrupt));
                let [expected, found] = [&local, &remote].map(|file| bytes(file).map_err(|error| error.to_string()));
                assert!(
                    found.as_ref().map_or(true, |bytes| size == format!("Ok(Exact({}))", bytes.len())),
                    "{path}: {size}"
                );
                let expected = match expected {
                    Ok(bytes) => Ok(BString::from(bytes.replace(NO_WORKER, OUT_OF_REACH))),
                    Err(error) => Err(error.replace(NO_WORKER, OUT_OF_REACH)),
                };
                assert_eq!(found.map(BString::from), expected, "{path}");
                same += 1;
            }
        }
    }
    same
}

#[test]
fn objects_show_what_files_show() {
    let mut same = 0;
    for name in SIMPLE {
        let (file, address) = (data(name), format!("s3://bucket/{name}"));
        let local = root(&session(Opener::default(), None), &[file.to_str().unwrap()]);
        let remote = root(&session(shelf(&address, &file).opener(), None), &[&address]);
        same += compare("", &local, &remote);
    }
    assert!(same > 1000, "{same}");
}

#[test]
fn what_takes_the_library_is_out_of_reach() {
    let address = "s3://bucket/h5_latest.h5";
    let shelf = shelf(address, &data("h5_latest.h5"));
    let error = tree::root(&session(shelf.opener(), None), &[address.into()], &Interrupt::new()).err().unwrap();
    assert_eq!(error.to_string(), format!("{address}: cannot be read as HDF5: {OUT_OF_REACH}"));
}

#[test]
fn an_object_is_one_of_several_sources() {
    let (address, file) = ("https://host/units.h5", data("units.h5"));
    let shelf = shelf(address, &file);
    let other = data("seed_11_1.h5");
    let root = root(&session(shelf.opener(), None), &[address, other.to_str().unwrap()]);
    let interrupt = Interrupt::new();
    let names: Vec<String> = root.children(&interrupt).unwrap().iter().map(|entry| entry.name.to_string()).collect();
    assert_eq!(names, [".datasets", ".hepfs", "seed_11_1.h5", "units.h5"]);
    let local = self::root(&session(Opener::default(), None), &[file.to_str().unwrap()]);
    compare("", &local.lookup(b"t", &interrupt).unwrap(), &{
        let found = root.lookup(b"units.h5", &interrupt).unwrap();
        found.lookup(b"t", &interrupt).unwrap()
    });
}

#[test]
fn an_object_that_is_replaced_is_opened_anew_and_never_mixed() {
    let (address, file) = ("gs://bucket/a.h5", data("units.h5"));
    let shelf = shelf(address, &file);
    let (session, interrupt) = (session(shelf.opener(), None), Interrupt::new());
    let root = root(&session, &[address]);
    let find = |name: &str| root.lookup(b"t", &interrupt).and_then(|table| table.lookup(name.as_bytes(), &interrupt));
    let before = find("table.csv").unwrap();
    let text = bytes(&before).unwrap();
    let unread = find("table.parquet").unwrap();
    // The same bytes again are another version.
    shelf.put(address, fs::read(&file).unwrap(), 2, SystemTime::now());
    assert!(!before.is_current() && !unread.is_current());
    let error = bytes(&unread).unwrap_err();
    assert!(matches!(error, Error::Session(hepfs::Error::Stale)), "{error:?}");
    let after = find("table.csv").unwrap();
    assert!(after.is_current() && after.attributes().mtime > before.attributes().mtime);
    assert_eq!(bytes(&after).unwrap(), text);
}

#[test]
fn facts_about_an_object_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (address, file) = ("az://container/a.h5", data("units.h5"));
    let shelf = shelf(address, &file);
    let open = || {
        let before = shelf.reads();
        let session = session(shelf.opener(), Some(folder.path().join("kept")));
        let root = root(&session, &[address]);
        root.children(&Interrupt::new()).unwrap();
        drop(root);
        shelf.reads() - before
    };
    let (first, second) = (open(), open());
    // The second looks at the signatures alone.
    assert!(first > 2 && second == 2, "{first}, then {second}");
    shelf.put(address, fs::read(&file).unwrap(), 2, SystemTime::now());
    assert_eq!(open(), first);
}

#[test]
fn a_read_that_waits_for_a_store_can_be_interrupted() {
    let address = "s3://bucket/a.h5";
    let shelf = shelf(address, &data("units.h5"));
    let root = root(&session(shelf.opener(), None), &[address]);
    let table = root.lookup(b"t", &Interrupt::new()).unwrap();
    let file = table.lookup(b"table.csv", &Interrupt::new()).unwrap();
    shelf.stall(true);
    let interrupt = Interrupt::new();
    thread::scope(|scope| {
        let read = scope.spawn(|| Answer::collect(|answer| file.gather(0, usize::MAX, answer, &interrupt)));
        thread::sleep(Duration::from_millis(200));
        assert!(!read.is_finished());
        interrupt.raise();
        let error = read.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Session(hepfs::Error::Interrupted)), "{error:?}");
    });
    // It has left nothing behind.
    shelf.stall(false);
    assert!(!bytes(&file).unwrap().is_empty());
}

#[test]
fn an_object_leads_to_no_file_and_is_not_written() {
    let address = "s3://bucket/a.h5";
    let shelf = shelf(address, &data("units.h5"));
    let source = Arc::new(shelf.opener().open(Path::new(address), &Interrupt::new()).unwrap());
    assert!(source.was_settled() && source.lease().is_none() && source.folder().is_none());
    let options = h5::Options { follow_external: true, ..Default::default() };
    assert!(!Client::new(source.clone(), options.clone()).follows_external());
    assert!(Client::new(Arc::new(Source::open(&data("units.h5")).unwrap()), options).follows_external());
    assert!(matches!(Exclusive::open(source.path()), Err(WriteError::NotLocal(_))));
    // A range behind the end asks the store for nothing.
    let reads = shelf.reads();
    let error = source.read_at(source.identity().size - 1, &mut [0; 2], &Interrupt::new()).unwrap_err();
    assert!(matches!(error, source::Error::Truncated { .. }) && shelf.reads() == reads, "{error}");
}

#[test]
fn an_address_without_a_store_says_so() {
    let error = tree::root(&session(Opener::default(), None), &["s3://bucket/a.h5".into()], &Interrupt::new());
    assert_eq!(error.err().unwrap().to_string(), "s3://bucket/a.h5: hepfs reads local files only");
}
