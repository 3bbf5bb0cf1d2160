//! Filters from a folder that the user names, and from nowhere else.

use std::fs;
use std::path::Path;

use crate::support::{Mounted, must};
use crate::writer::{self, INVERTING, Writer};

/// Compiles a filter plugin that calls back into libhdf5.
fn build_plugin(folder: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour/inverting.c");
    let library = folder.join("libinverting.so");
    must("cc", ["-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), library.as_os_str(), source.as_ref()]);
}

fn write(path: &Path) {
    writer::register_inverting_filter();
    let values: Vec<i64> = (0..1000).collect();
    let writer = Writer::create(path);
    let table = writer.table("t");
    table.column("plain", &values, 100);
    table.filtered("strange", &values, 100, INVERTING);
    drop(table);
    writer.close();
}

#[test]
fn a_filter_that_nobody_knows_is_an_error_of_its_column_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    write(&source);
    let mounted = Mounted::new(&[&source], &[]);
    let metadata = mounted.text("t/metadata.json");
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let strange = metadata["columns"].as_array().unwrap().iter().find(|column| column["name"] == "strange").unwrap();
    let reason = strange["error"].as_str().unwrap_or_default();
    assert!(reason.contains("300") && reason.contains("--plugins"), "{strange}");
    assert_eq!(mounted.text("t/columns/plain.txt").lines().count(), 1000);
    assert!(mounted.text("t/table.csv").starts_with("plain\n0\n1\n"));
    assert!(!mounted.join("t/columns/strange.csv").exists());
}

#[test]
fn a_plugin_of_the_users_folder_reads_its_column() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    write(&source);
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    build_plugin(&plugins);
    let mounted = Mounted::new(&[&source], &["--plugins", plugins.to_str().unwrap()]);
    let expected: String = (0..1000).map(|value| format!("{value}\n")).collect();
    assert_eq!(mounted.text("t/columns/strange.txt"), expected);
    let raw: Vec<u8> = (0..1000_i64).flat_map(i64::to_le_bytes).collect();
    assert_eq!(mounted.read("t/columns/strange.raw"), raw);
    assert!(mounted.text("t/table.csv").starts_with("plain,strange\n0,0\n1,1\n"));
}

#[test]
fn the_environment_names_no_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    write(&source);
    build_plugin(folder.path());
    let output = std::process::Command::new(crate::support::HEPFS)
        .args(["info", "--json"])
        .arg(format!("{}:t", source.display()))
        .env("HDF5_PLUGIN_PATH", folder.path())
        .output()
        .unwrap();
    let metadata = String::from_utf8(output.stdout).unwrap();
    assert!(metadata.contains("--plugins"), "{metadata}");
}
