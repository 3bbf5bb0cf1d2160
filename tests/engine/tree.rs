//! The tree of names, without a mount.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hepfs::fs::tree;
use hepfs::fs::{DirEntry, Error, NodeRef};
use hepfs::h5;
use hepfs::session::Session;
use hepfs::source::Interrupt;
use hepfs::store::{self, Answer, Store};

use crate::data;

/// The root of a mount of these sources.
fn root(sources: &[PathBuf]) -> NodeRef {
    root_by(env!("CARGO_BIN_EXE_hepfs").as_ref(), sources)
}

/// The same with another program as the HDF5 worker.
fn root_by(program: &Path, sources: &[PathBuf]) -> NodeRef {
    let workers = h5::Options { program: program.into(), deadline: Duration::from_secs(5), ..Default::default() };
    let session: Arc<Session> = Session::new(Store::new(store::Options::default()), workers);
    tree::root(&session, sources, &Interrupt::new()).unwrap()
}

fn bytes(directory: &NodeRef, name: &str) -> Vec<u8> {
    let interrupt = Interrupt::new();
    let file = directory.lookup(name.as_bytes(), &interrupt).unwrap();
    Answer::collect(|answer| file.gather(0, usize::MAX, answer, &interrupt)).unwrap()
}

fn names(directory: &NodeRef) -> Vec<String> {
    directory.children(&Interrupt::new()).unwrap().iter().map(|entry| entry.name.to_string()).collect()
}

#[test]
fn what_is_called_as_the_live_folder_is_shown_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("units.h5"), folder.path().join(".hepfs")).unwrap();
    std::fs::copy(data("units.h5"), folder.path().join("units.h5")).unwrap();
    let interrupt = Interrupt::new();
    let whole = root(&[folder.path().to_owned()]);
    let several = root(&[folder.path().join(".hepfs"), folder.path().join("units.h5")]);
    for root in [whole, several] {
        assert_eq!(names(&root), [".datasets", ".hepfs", "%2Ehepfs", "units.h5"]);
        assert!(names(&root.lookup(b".hepfs", &interrupt).unwrap()).contains(&"stats".to_owned()));
        assert_eq!(names(&root.lookup(b"%2Ehepfs", &interrupt).unwrap()), ["metadata.json", "t", "index.html"]);
    }
}

#[test]
fn directories_of_selections_go_when_nobody_uses_them() {
    let interrupt = Interrupt::new();
    let mut node = root(&[data("selections.h5")]);
    let mut below = Vec::new();
    for name in ["t3", "where"].into_iter().chain(std::iter::repeat_n("row:ge:1", 64)) {
        node = node.lookup(name.as_bytes(), &interrupt).unwrap();
        below.push(Arc::downgrade(&node));
    }
    assert!(matches!(node.lookup(b"row:ge:1", &interrupt), Err(Error::Session(hepfs::Error::NotFound))));
    let file = node.lookup(b"table.csv", &interrupt).unwrap();
    file.size(hepfs::views::Effort::Exact, &interrupt).unwrap();
    below.push(Arc::downgrade(&file));
    drop((node, file));
    assert_eq!(below.iter().filter(|node| node.strong_count() > 0).count(), 0);
}

#[test]
fn a_listing_that_was_interrupted_is_made_anew() {
    let (calm, raised) = (Interrupt::new(), Interrupt::new());
    raised.raise();
    // Lists open other groups, and links look for where they lead.
    for name in ["july_lists.h5", "links.h5"] {
        let root = root(&[data(name)]);
        let groups: Vec<DirEntry> = root.children(&calm).unwrap().iter().collect();
        for DirEntry { name, kind } in groups {
            if kind != hepfs::fs::EntryKind::Directory || name == ".hepfs" {
                continue;
            }
            let listed = |group: &NodeRef| {
                (group.children(&calm).unwrap().iter().collect::<Vec<_>>(), bytes(group, "metadata.json"))
            };
            let expected = listed(&root.lookup(&name, &calm).unwrap());
            // Another node of the same group: what the worker said is known by now, and no wait for it is interrupted.
            let group = root.lookup(&name, &calm).unwrap();
            let outcome = group.children(&raised);
            assert!(matches!(outcome, Err(Error::Session(hepfs::Error::Interrupted))), "{name}: {outcome:?}");
            assert_eq!(listed(&group), expected, "{name}");
        }
    }
}

#[test]
fn whoever_waits_for_another_to_open_a_file_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::copy(data("units.h5"), folder.path().join("data/units.h5")).unwrap();
    // A worker that does not answer, and ends by itself soon if the test does not end it.
    let program = folder.path().join("worker");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 5\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = root_by(&program, &[folder.path().join("data")]);
    let file = root.lookup(b"units.h5", &Interrupt::new()).unwrap();
    let (first, second) = (Interrupt::new(), Interrupt::new());
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| file.children(&first));
        // It has begun once it holds the file's lock.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!opening.is_finished(), "{:?}", opening.join());
        second.raise();
        let start = Instant::now();
        let outcome = file.children(&second);
        assert!(matches!(outcome, Err(Error::Session(hepfs::Error::Interrupted))), "{outcome:?}");
        assert!(start.elapsed() < Duration::from_secs(2) && !opening.is_finished(), "{:?}", start.elapsed());
        first.raise();
    });
}
