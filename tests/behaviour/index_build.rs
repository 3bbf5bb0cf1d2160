//! `hepfs index build` and `drop`: who may write, what is refused, and what mounts see of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::data;
use crate::import::{refused, succeeded};
use crate::support::{HEPFS, LONG, Mounted, hepfs, run_within, until};

/// A copy of the sample, in a folder of its own.
fn sample() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (written, path) = (folder.path().join("written.h5"), folder.path().join("sample.h5"));
    hepfs::producer::sample::write(&written, 5000).unwrap();
    // A program that another test started meanwhile may hold the lock of the file that was written here.
    fs::copy(&written, &path).unwrap();
    fs::remove_file(&written).unwrap();
    (folder, path)
}

fn index(command: &str, path: &Path, table: &str, arguments: &[&str]) -> Output {
    let place = format!("{}:{table}", path.display());
    let line = ["index", command, &place].into_iter().chain(arguments.iter().copied());
    hepfs(line.chain(["--cache-folder", "none"]))
}

/// Kinds of the indexes of a column, as a mount tells.
fn shown(mounted: &Mounted, table: &str, column: &str) -> Vec<String> {
    let text = fs::read(mounted.join(table).join("indexes.json")).unwrap_or_default();
    let Ok(value) = serde_json::from_slice::<Value>(&text) else { return Vec::new() };
    let all = value["search_indexes"].as_array().cloned().unwrap_or_default();
    let of_column = |index: &&Value| index["columns"].as_array().is_some_and(|names| names.contains(&column.into()));
    all.iter().filter(of_column).filter_map(|index| Some(index["kind"].as_str()?.to_owned())).collect()
}

#[test]
fn a_mount_shows_what_was_built_and_dropped() {
    let (_folder, path) = sample();
    let mounted = Mounted::new(&[&path], &[]);
    let before = mounted.read("run_042/columns/energy.npy");
    assert_eq!(shown(&mounted, "run_042", "energy"), [""; 0]);
    let said = succeeded(&index("build", &path, "run_042", &["--column", "energy", "--kind", "sorted,bloom"]));
    assert_eq!(said.lines().filter(|line| line.ends_with("  built")).count(), 2, "{said}");
    until("the mount shows it", || shown(&mounted, "run_042", "energy") == ["CHUNK_BLOOM", "SORTED_ROWS"]);
    assert_eq!(mounted.read("run_042/columns/energy.npy"), before);
    let said = succeeded(&index("build", &path, "run_042", &["--column", "energy", "--kind", "sorted"]));
    assert!(said.contains("energy__sorted_rows") && said.contains("  replaced"), "{said}");
    succeeded(&index("drop", &path, "run_042", &["--column", "energy"]));
    until("the mount shows it", || shown(&mounted, "run_042", "energy").is_empty());
    assert_eq!(shown(&mounted, "run_042", "ts"), ["CHUNK_MINMAX"]);
    assert_eq!(mounted.read("run_042/columns/energy.npy"), before);
    refused(&index("drop", &path, "run_042", &["--column", "energy"]), &["no such search index"]);
}

#[test]
fn indexes_built_are_verified() {
    let (_folder, path) = sample();
    for (table, columns) in [("run_042", "ts,energy,label,hit,detector,station,comment"), ("april/events", "ts,energy")]
    {
        succeeded(&index("build", &path, table, &["--column", columns, "--kind", "minmax,sorted,bitmap,bloom"]));
        let said = succeeded(&index("verify", &path, table, &[]));
        assert!(!said.to_lowercase().contains("broken"), "{said}");
    }
}

#[test]
fn a_file_that_is_locked_is_left_alone() {
    let (_folder, path) = sample();
    let before = fs::read(&path).unwrap();
    let file = File::open(&path).unwrap();
    // What h5py does for reading.
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared).unwrap();
    refused(&index("build", &path, "run_042", &["--column", "ts", "--kind", "sorted"]), &["HDF5 lock"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(file);
    succeeded(&index("build", &path, "run_042", &["--column", "ts", "--kind", "sorted"]));
}

#[test]
fn what_can_have_no_index_is_refused_and_nothing_changes() {
    let (_folder, path) = sample();
    let before = fs::read(&path).unwrap();
    let build = |table: &str, arguments: &[&str]| index("build", &path, table, arguments);
    refused(&build("run_042", &["--column", "readings", "--kind", "sorted"]), &["/run_042/readings", "list column"]);
    refused(&build("run_042", &["--column", "position", "--kind", "minmax"]), &["/run_042/position", "compounds"]);
    refused(&build("run_042", &["--column", "nothing", "--kind", "minmax"]), &["no column \"nothing\""]);
    refused(&build("calibration.npy", &["--column", "x", "--kind", "minmax"]), &["not a table"]);
    let april = ["--column", "ts", "--kind", "minmax", "--revision", "april"];
    refused(&build("run_042", &april), &["/run_042", "SOURCE_GENERATION"]);
    let july = ["--column", "ts", "--kind", "minmax", "--revision", "july"];
    refused(&build("april/events", &july), &["/april/events", "NROWS"]);
    refused(&build("run_042", &["--column", "ts", "--kind", "sorted", "--memory", "1K"]), &["SORTED_ROWS", "--memory"]);
    // One column that cannot have it, and none gets it.
    refused(&build("run_042", &["--column", "ts,readings", "--kind", "sorted"]), &["list column"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    let folder = path.parent().unwrap();
    refused(&index("build", folder, "sample/run_042", &["--column", "ts", "--kind", "minmax"]), &["a folder"]);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "something is left beside the file");
    refused(&index("build", &data("h5_damaged.h5"), "x", &["--column", "ts", "--kind", "minmax"]), &["h5_damaged.h5"]);
}

/// There is no rehearsal in an optimised program.
#[cfg(debug_assertions)]
#[test]
fn a_change_that_was_cut_short_is_a_finding() {
    let (folder, path) = sample();
    let (whole, journal) = (fs::read(&path).unwrap(), folder.path().join("sample.h5.hepfs-journal"));
    // Some death lies between the journal and the last change that it undoes.
    for death in 1.. {
        fs::write(&path, &whole).unwrap();
        fs::remove_file(&journal).ok();
        let mut build = Command::new(HEPFS);
        build.args(["index", "build", &format!("{}:run_042", path.display()), "--column=energy", "--kind=minmax"]);
        let output = run_within(LONG, build.env("HEPFS_REHEARSED_DEATH", death.to_string()));
        assert!(!output.status.success(), "no death leaves a journal");
        if journal.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            break;
        }
    }
    let name = journal.display().to_string();
    let said = |command: &[&str], code: i32| {
        let line = command.iter().copied().chain([path.to_str().unwrap(), "--cache-folder", "none"]);
        let output = hepfs(line);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let broken = [&["check"][..], &["check", "--json"], &["index", "list"], &["index", "verify"]];
    for (command, code) in broken.map(|command| (command, 1)).into_iter().chain([(&["info"][..], 0)]) {
        let said = said(command, code);
        assert!(said.contains(&name) && said.contains("a run of `hepfs index`"), "{command:?}: {said}");
    }
    let mounted = Mounted::new(&[&path], &[]);
    assert!(mounted.names("").contains(&"run_042".to_owned()));
    let line: Value = serde_json::from_str(mounted.text(".hepfs/findings").lines().next().unwrap()).unwrap();
    assert_eq!(line["path"], "/");
    assert!(line["found"].as_str().unwrap().contains(&name), "{line}");

    refused(&index("drop", &path, "run_042", &["--column", "energy"]), &["no such search index"]);
    assert!(!journal.exists());
    assert!(hepfs(["check", path.to_str().unwrap(), "--cache-folder", "none"]).status.success());
    until("the finding goes", || {
        mounted.names("").contains(&"run_042".to_owned()) && mounted.text(".hepfs/findings").is_empty()
    });
}
