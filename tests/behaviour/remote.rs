//! Sources that are no files: through a mount, and at the prompt.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use hepfs::fs::mount::{Mount, MountOptions};
use hepfs::fs::tree;
use hepfs::h5;
use hepfs::session::{Session, Settings};
use hepfs::source::Interrupt;
use hepfs::store::{Options, Store};

use crate::data;
use crate::shelf::Shelf;
use crate::support::hepfs;
use crate::writer::Writer;

const ROWS: i64 = 300_000;

#[test]
fn a_mount_shows_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let (file, mountpoint) = (folder.path().join("a.h5"), folder.path().join("mnt"));
    let writer = Writer::create(&file);
    let table = writer.table("t");
    for (name, chunk) in [("x", 20_000), ("y", ROWS as u64)] {
        table.column(name, &(0..ROWS).collect::<Vec<i64>>(), chunk);
    }
    drop(table);
    writer.close();
    let shelf = Shelf::default();
    shelf.put("s3://bucket/a.h5", fs::read(&file).unwrap(), 1, SystemTime::now());
    let workers = h5::Options { program: env!("CARGO_BIN_EXE_hepfs").into(), ..Default::default() };
    let settings = Settings { opener: shelf.opener(), ..Default::default() };
    let session = Session::with_settings(Store::new(Options::default()), workers, settings);
    let root = tree::root(&session, &["s3://bucket/a.h5".into()], &Interrupt::new()).unwrap();
    fs::create_dir(&mountpoint).unwrap();
    let mount = Mount::new(root, &mountpoint, &MountOptions::default()).unwrap();
    let found = ["x.raw", "y.raw", "x.npy", "y.npy"].map(|name| fs::read(mountpoint.join("t/columns").join(name)));
    let sum = fs::read_to_string(mountpoint.join("t/columns/x.txt"));
    drop(mount);
    let expected: Vec<u8> = (0..ROWS).flat_map(i64::to_le_bytes).collect();
    for bytes in found {
        assert!(bytes.unwrap().ends_with(&expected));
    }
    let numbers = sum.unwrap().lines().map(|line| line.parse::<i64>().unwrap()).sum::<i64>();
    assert_eq!(numbers, ROWS * (ROWS - 1) / 2);
    // Stored bytes of a file would have been passed on by the kernel.
    let counters = session.store.counters();
    assert!(counters.bytes_passed_on.get() == 0 && counters.bytes_read.get() > 8 * ROWS as u64);
}

#[test]
fn commands_that_write_take_local_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("a.csv");
    fs::write(&csv, "a\n1\n").unwrap();
    let (csv, file) = (csv.to_str().unwrap(), data("units.h5"));
    let file = file.to_str().unwrap();
    let table = format!("{file}:t");
    let written = "s3://bucket/a.h5: hepfs writes local files only";
    for (arguments, said) in [
        (
            vec!["import", "s3://bucket/a.csv", folder.path().join("b.h5").to_str().unwrap()],
            "s3://bucket/a.csv: an import reads local files only",
        ),
        (vec!["import", csv, "s3://bucket/a.h5"], written),
        (vec!["export", "-o", "s3://bucket/a.csv", &table], "-o s3://bucket/a.csv: hepfs writes local files only"),
        (vec!["export", "-o", "s3://bucket/a/", file], "-o s3://bucket/a/: hepfs writes local files only"),
        (vec!["index", "build", "--column", "a", "--kind", "sorted", "s3://bucket/a.h5:t"], written),
    ] {
        let output = hepfs(&arguments);
        let (error, code) = (String::from_utf8_lossy(&output.stderr), output.status.code());
        assert!(error.trim_end() == format!("hepfs: {said}") && code != Some(0), "{arguments:?}: {code:?} {error}");
    }
    // Nothing was written under that name.
    assert!(!Path::new("s3:").exists());
}
