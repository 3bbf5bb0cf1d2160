//! Sources that are no files: objects of a store in memory give what the same bytes give as a file.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bstr::BString;
use hepfs::catalogue::{Layout, Object, ObjectId};
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

/// Files of several dialects, layouts and filters. Half of them take libhdf5.
const FILES: [&str; 17] = [
    "anndata_06.h5",
    "astropy.h5",
    "filters.h5",
    "h5_latest.h5",
    "h5_references.h5",
    "h5_user_block.h5",
    "july_lists.h5",
    "layouts.h5",
    "loom.h5",
    "missing.h5",
    "names_arrays.h5",
    "store_filters.h5",
    "store_variable.h5",
    "store_virtual.h5",
    "times.h5",
    "trevni/nested.trv",
    "trevni/types.trv",
];

fn session(opener: Opener, kept_folder: Option<PathBuf>) -> Arc<Session> {
    let workers = h5::Options { program: env!("CARGO_BIN_EXE_hepfs").into(), ..Default::default() };
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
        // Files of the mount itself have its time.
        let is_live = path.contains("/.");
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
                assert_eq!(found.map(BString::from), expected.map(BString::from), "{path}");
                same += 1;
            }
        }
    }
    same
}

#[test]
fn objects_show_what_files_show() {
    let mut same = 0;
    for name in FILES {
        let (file, address) = (data(name), format!("s3://bucket/{name}"));
        let local = root(&session(Opener::default(), None), &[file.to_str().unwrap()]);
        let remote = root(&session(shelf(&address, &file).opener(), None), &[&address]);
        same += compare("", &local, &remote);
    }
    assert!(same > 1000, "{same}");
}

/// A client for an object, whose worker lists everything.
fn client(shelf: &Shelf, address: &str, deadline: Duration) -> Client {
    let source = shelf.opener().open(Path::new(address), &Interrupt::new()).unwrap();
    let program = env!("CARGO_BIN_EXE_hepfs").into();
    Client::new(Arc::new(source), h5::Options { program, deadline, lists_simple: false, ..Default::default() })
}

#[test]
fn a_worker_asks_for_the_bytes_of_an_object() {
    let (address, file) = ("s3://bucket/h5_basic.h5", data("h5_basic.h5"));
    let shelf = shelf(address, &file);
    let client = client(&shelf, address, Duration::from_secs(10));
    let interrupt = Interrupt::new();
    let info = client.file(&interrupt).unwrap();
    let program = env!("CARGO_BIN_EXE_hepfs").into();
    let local = Client::new(Arc::new(Source::open(&file).unwrap()), h5::Options { program, ..Default::default() });
    assert_eq!(info, local.file(&interrupt).unwrap());
    let root = info.root;
    assert_eq!(client.group(root, &interrupt).unwrap(), local.group(root, &interrupt).unwrap());
    assert!(shelf.reads() > 3, "{}", shelf.reads());
    // It has a socket and what it inherits, and is as confined as any other.
    let worker = client.worker_id().unwrap();
    let open = fs::read_dir(format!("/proc/{worker}/fd")).unwrap().flatten();
    let open: Vec<String> = open.map(|one| fs::read_link(one.path()).unwrap().display().to_string()).collect();
    assert_eq!(open.iter().filter(|name| name.starts_with("socket:")).count(), 1, "{open:?}");
    assert!(!open.iter().any(|name| name.contains("h5_basic") || name.starts_with("/memfd")), "{open:?}");
    let probed = client.probe(&interrupt).unwrap();
    assert!(probed.len() > 5 && probed.iter().all(|(_, worked)| !worked), "{probed:?}");
    // One that asks for other bytes than those of the source is ended, also of a file, whose worker asks for none.
    for client in [client, local] {
        client.group(root, &interrupt).unwrap();
        let reads = shelf.reads();
        let error = client.rehearse("greed", &interrupt).unwrap_err();
        assert!(matches!(&error, h5::Error::Worker(why) if why.contains("makes no sense")), "{error}");
        assert!(client.worker_id().is_none() && shelf.reads() == reads);
    }
}

#[test]
fn waiting_for_a_store_is_no_hang() {
    let address = "s3://bucket/a.h5";
    let shelf = shelf(address, &data("h5_basic.h5"));
    shelf.delay(Duration::from_millis(300));
    let client = client(&shelf, address, Duration::from_secs(1));
    let begun = Instant::now();
    client.file(&Interrupt::new()).unwrap();
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}, {} reads", begun.elapsed(), shelf.reads());
}

#[test]
fn a_worker_that_asks_without_end_is_ended() {
    let address = "s3://bucket/a.h5";
    let shelf = shelf(address, &data("h5_basic.h5"));
    let mut padded = fs::read(data("h5_basic.h5")).unwrap();
    padded.resize(2 << 20, 0);
    shelf.put("s3://bucket/padded.h5", padded, 1, SystemTime::now());
    // By the time that it takes itself, or by the bytes: 256 MiB for an object of 4 MiB or less.
    for (address, fault, deadline, most_reads, said) in
        [(address, "nibble", 1, u64::MAX, "s"), ("s3://bucket/padded.h5", "gorge", 60, 300, "reads of 268435456 bytes")]
    {
        let client = client(&shelf, address, Duration::from_secs(deadline));
        client.file(&Interrupt::new()).unwrap();
        let (reads, begun) = (shelf.reads(), Instant::now());
        let error = client.rehearse(fault, &Interrupt::new()).unwrap_err();
        assert!(matches!(&error, h5::Error::Deadline { limit, .. } if limit.contains(said)), "{error}");
        assert!((256..most_reads).contains(&(shelf.reads() - reads)), "{fault}: {}", shelf.reads() - reads);
        assert!(client.worker_id().is_none() && begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}

#[test]
fn an_abandoned_request_gets_no_more_bytes() {
    let address = "s3://bucket/a.h5";
    let shelf = shelf(address, &data("h5_basic.h5"));
    let client = client(&shelf, address, Duration::from_secs(10));
    let root = client.file(&Interrupt::new()).unwrap().root;
    shelf.stall(true);
    let interrupt = Interrupt::new();
    thread::scope(|scope| {
        let listing = scope.spawn(|| client.group(root, &interrupt));
        thread::sleep(Duration::from_millis(300));
        assert!(!listing.is_finished());
        let raised = Instant::now();
        interrupt.raise();
        let error = listing.join().unwrap().unwrap_err();
        assert!(matches!(error, h5::Error::Interrupted), "{error}");
        assert!(raised.elapsed() < Duration::from_millis(500), "{:?}", raised.elapsed());
    });
    // The store still answers nothing: the worker must have given up without it.
    let reads = shelf.reads();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(shelf.reads(), reads);
    shelf.stall(false);
    assert!(!client.group(root, &Interrupt::new()).unwrap().links.is_empty());
}

#[test]
fn a_store_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (address, file) = ("s3://bucket/a.h5", data("h5_latest.h5"));
    let shelf = shelf(address, &file);
    let session = session(shelf.opener(), Some(folder.path().join("kept")));
    shelf.break_down(true);
    let open = || tree::root(&session, &[address.into()], &Interrupt::new());
    let error = open().err().unwrap().to_string();
    assert_eq!(error, "s3://bucket/a.h5: 503 Service Unavailable");
    shelf.break_down(false);
    let local = root(&self::session(Opener::default(), None), &[file.to_str().unwrap()]);
    compare("", &local, &open().unwrap());
}

/// Looks at everything, and goes on where something fails.
fn walk(node: &NodeRef) {
    let interrupt = Interrupt::new();
    let Ok(names) = node.children(&interrupt) else { return };
    for entry in names.iter().filter(|entry| entry.name != ".hepfs" && entry.name != "where") {
        match (entry.kind, node.lookup(&entry.name, &interrupt)) {
            (EntryKind::Directory, Ok(directory)) => walk(&directory),
            (EntryKind::File, Ok(file)) => drop((file.size(Effort::Exact, &interrupt), bytes(&file))),
            _ => {}
        }
    }
}

/// A read of a store may fail at any moment, and succeed when it is asked again.
#[test]
fn a_read_that_fails_leaves_nothing_behind() {
    for name in ["units.h5", "h5_latest.h5", "trevni/types.trv"] {
        let (address, file) = (format!("s3://bucket/{name}"), data(name));
        let shelf = shelf(&address, &file);
        let local = root(&session(Opener::default(), None), &[file.to_str().unwrap()]);
        let open = |session: &Arc<Session>| tree::root(session, &[address.as_str().into()], &Interrupt::new());
        walk(&open(&session(shelf.opener(), None)).unwrap());
        let (reads, mut failed) = (shelf.reads(), 0);
        for failing in (0..reads).step_by(reads.div_ceil(16) as usize) {
            let session = session(shelf.opener(), None);
            shelf.fail_once_after(failing);
            if let Ok(root) = open(&session) {
                walk(&root);
            }
            failed += u32::from(shelf.has_failed());
            compare(&format!("{name}, read {failing}: "), &local, &open(&session).unwrap());
        }
        // Reading ahead has no fixed order.
        assert!(failed > 4, "{name}: {failed} of {reads} reads");
    }
}

#[test]
fn a_worker_sees_one_version_alone() {
    let (address, file) = ("s3://bucket/a.h5", data("h5_basic.h5"));
    let shelf = shelf(address, &file);
    let client = client(&shelf, address, Duration::from_secs(10));
    let root = client.file(&Interrupt::new()).unwrap().root;
    shelf.put(address, fs::read(&file).unwrap(), 2, SystemTime::now());
    let error = client.group(root, &Interrupt::new()).unwrap_err();
    assert!(matches!(&error, h5::Error::Source(error) if error.is_change()), "{error}");
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
fn a_prefix_is_a_folder() {
    let (shelf, file) = (Shelf::default(), data("units.h5"));
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    for address in ["runs/a.h5", "runs/b.h5", "runs/notes.txt", "runs/deep/c.nc", "a.h5"] {
        shelf.put(format!("s3://bucket/{address}"), fs::read(&file).unwrap(), 1, written);
    }
    let interrupt = Interrupt::new();
    let names = |node: &NodeRef| -> Vec<String> {
        node.children(&interrupt).unwrap().iter().map(|entry| entry.name.to_string()).collect()
    };
    let local = self::root(&session(Opener::default(), None), &[file.to_str().unwrap()]);
    let folder = root(&session(shelf.opener(), None), &["s3://bucket/runs/"]);
    assert_eq!(names(&folder), [".datasets", ".hepfs", "a.h5", "b.h5", "deep"]);
    // The list says it all.
    folder.lookup(b"a.h5", &interrupt).unwrap().attributes();
    assert_eq!(shelf.reads(), 0);
    // A name that tells nothing of the format is found if it is asked for.
    assert!(folder.lookup(b"notes.txt", &interrupt).is_ok() && folder.lookup(b"none.h5", &interrupt).is_err());
    let deep = folder.lookup(b"deep", &interrupt).unwrap();
    assert_eq!(names(&deep), ["c.nc"]);
    compare("", &local.lookup(b"t", &interrupt).unwrap(), &{
        deep.lookup(b"c.nc", &interrupt).unwrap().lookup(b"t", &interrupt).unwrap()
    });
    let rows = folder.lookup(b".datasets", &interrupt).unwrap().lookup(b"t", &interrupt).unwrap();
    assert!(names(&rows).contains(&"file=a.h5".to_owned()), "{:?}", names(&rows));
    let chosen = root(&session(shelf.opener(), None), &["s3://bucket/runs/*e*"]);
    assert_eq!(names(&chosen), [".datasets", ".hepfs", "deep", "notes.txt"]);
    for (address, said) in [
        ("s3://bucket/none/", "no object has such an address"),
        ("s3://bucket/runs/*.nc", "no object has such an address"),
    ] {
        let error = tree::root(&session(shelf.opener(), None), &[address.into()], &interrupt).err().unwrap();
        assert_eq!(error.to_string(), format!("{address}: {said}"));
    }
    shelf.put("s3://other/notes.txt", vec![1], 1, SystemTime::now());
    let error = tree::root(&session(shelf.opener(), None), &["s3://other/".into()], &interrupt).err().unwrap();
    let said = "no object here has a usual name, such as a.h5 or a.nc; s3://other/* shows all 1";
    assert_eq!(error.to_string(), format!("s3://other/: {said}"));
}

#[test]
fn a_folder_with_the_name_of_an_object_is_said_to_be_hidden() {
    let (shelf, file) = (Shelf::default(), data("units.h5"));
    for address in ["runs/a.h5", "runs/a.h5/b.h5", "runs/c.h5"] {
        shelf.put(format!("s3://bucket/{address}"), fs::read(&file).unwrap(), 1, SystemTime::now());
    }
    let (session, interrupt) = (session(shelf.opener(), None), Interrupt::new());
    let folder = root(&session, &["s3://bucket/runs/"]);
    let names: Vec<String> = folder.children(&interrupt).unwrap().iter().map(|entry| entry.name.to_string()).collect();
    assert_eq!(names, [".datasets", ".hepfs", "a.h5", "c.h5"]);
    assert!(folder.lookup(b"a.h5", &interrupt).unwrap().lookup(b"t", &interrupt).is_ok());
    let hepfs = folder.lookup(b".hepfs", &interrupt).unwrap();
    let said = String::from_utf8(bytes(&hepfs.lookup(b"errors", &interrupt).unwrap()).unwrap()).unwrap();
    assert_eq!(said.matches("s3://bucket/runs/a.h5/: not shown: an object has the same name").count(), 1, "{said}");
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
    assert_eq!(error.err().unwrap().to_string(), "s3://bucket/a.h5: this program opens local files only");
}

/// Lists a group and all groups below, and the chunks of their datasets.
fn list(client: &Client, id: ObjectId, known: &mut HashSet<ObjectId>) {
    let interrupt = Interrupt::new();
    let Ok(group) = client.group(id, &interrupt) else { return };
    for link in &group.links {
        match link.target.followed() {
            Some(Object::Group { id, .. }) if known.insert(*id) => list(client, *id, known),
            Some(Object::Dataset(dataset)) if matches!(dataset.layout, Layout::Chunked { .. }) => {
                client.chunks(dataset.id, 1 << 20, &interrupt).unwrap();
            }
            _ => {}
        }
    }
}

/// Trees and heaps of groups old and new, attributes, chunk indexes: of all that libhdf5 reads one after the other, few
/// places are not known before.
#[test]
fn structures_are_fetched_before_they_are_read() {
    let files = [
        "anndata.h5",
        "arrays.h5",
        "chunk_indexes_old.h5",
        "h5_many.h5",
        "lh5.h5",
        "netcdf.h5",
        "pandas3_encodings.h5",
    ];
    let (mut reads, mut unplanned) = (0, 0);
    for name in files {
        let (address, shelf) = ("s3://bucket/a.h5", Shelf::default());
        let mut bytes = fs::read(data(name)).unwrap();
        // Small objects are fetched whole.
        bytes.resize(source::FETCHED_WHOLE as usize + 1, 0);
        shelf.put(address, bytes, 1, SystemTime::now());
        let client = client(&shelf, address, Duration::from_secs(10));
        let root = client.file(&Interrupt::new()).unwrap().root;
        list(&client, root, &mut HashSet::from([root]));
        let late = shelf.unplanned();
        assert!(late * 10 <= shelf.reads(), "{name}: {late} of {}", shelf.reads());
        (reads, unplanned) = (reads + shelf.reads(), unplanned + late);
    }
    assert!(reads > 4000 && unplanned * 40 < reads, "{unplanned} of {reads}");
}
