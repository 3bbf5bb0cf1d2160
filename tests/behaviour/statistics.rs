//! Statistics learnt in passing, and found again by the next mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::support::Mounted;
use crate::writer::Writer;

/// Two whole blocks of statistics and a short one.
const ROWS: i64 = 150_000;

fn value(row: i64) -> i64 {
    (row * 7919) % 150_001 - 75_000
}

/// A file with a table `t` of the columns `x` and `y`, last changed some time ago.
fn source(folder: &Path) -> PathBuf {
    let source = folder.join("run.h5");
    let writer = Writer::create(&source);
    let table = writer.table("t");
    let values: Vec<i64> = (0..ROWS).map(value).collect();
    for name in ["x", "y"] {
        drop(table.column(name, &values, 10_000));
    }
    drop(table);
    writer.close();
    settle();
    source
}

/// So long that a change from now on is sure to move the file's times.
fn settle() {
    std::thread::sleep(Duration::from_millis(200));
}

fn mount(source: &Path, folder: &Path) -> Mounted {
    let cache = format!("--cache-folder={}", folder.join("cache").display());
    Mounted::new(&[source], &[&cache])
}

/// Blocks known of each column, by `.hepfs/statistics`.
fn known(mounted: &Mounted) -> Vec<(String, u64, bool)> {
    let text = mounted.text(".hepfs/statistics");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| {
            assert_eq!((&line["rows"], &line["blocks"]), (&ROWS.into(), &3.into()), "{line}");
            let path = line["path"].as_str().unwrap().to_owned();
            (path, line["blocks_known"].as_u64().unwrap(), line["known"].as_bool().unwrap())
        })
        .collect()
}

fn count(mounted: &Mounted, name: &str) -> u64 {
    let text = mounted.text(".hepfs/stats");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[test]
fn a_column_read_in_full_is_known_at_the_next_mount() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let nothing = |path: &str| (path.to_owned(), 0, false);
    let everything = |path: &str| (path.to_owned(), 3, true);

    let mounted = mount(&source, folder.path());
    assert_eq!(known(&mounted), []);
    mounted.names("t/columns");
    assert_eq!(known(&mounted), [nothing("/t/x"), nothing("/t/y")]);
    // Bytes that are copied out of the file teach nothing.
    assert_eq!(mounted.read("t/columns/x.raw").len() as i64, ROWS * 8);
    assert_eq!(known(&mounted), [nothing("/t/x"), nothing("/t/y")]);
    let csv = mounted.text("t/columns/x.csv");
    assert_eq!(csv.lines().count() as i64, ROWS + 1);
    assert_eq!(known(&mounted), [everything("/t/x"), nothing("/t/y")]);
    // Both the pass for the size and the reading went over the values, which count once.
    assert_eq!(count(&mounted, "rows_observed") as i64, ROWS);
    assert_eq!(count(&mounted, "blocks_learnt"), 3);
    assert_eq!(count(&mounted, "statistics_kept"), 1);
    drop(mounted);

    let mounted = mount(&source, folder.path());
    mounted.names("t/columns");
    assert_eq!(known(&mounted), [everything("/t/x"), nothing("/t/y")]);
    assert_eq!(count(&mounted, "statistics_loaded"), 1);
    assert_eq!(count(&mounted, "bytes_decoded") + count(&mounted, "bytes_read"), 0);
    assert_eq!(mounted.text("t/columns/x.csv"), csv);
    assert_eq!(count(&mounted, "rows_observed"), 0);
    drop(mounted);

    // A damaged cache folder costs time and nothing else.
    for entry in fs::read_dir(folder.path().join("cache")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let mounted = mount(&source, folder.path());
    mounted.names("t/columns");
    assert_eq!(known(&mounted), [nothing("/t/x"), nothing("/t/y")]);
    assert_eq!(mounted.text("t/columns/x.csv"), csv);
    assert_eq!(known(&mounted), [everything("/t/x"), nothing("/t/y")]);
}

#[test]
fn another_state_of_the_file_is_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let mounted = mount(&source, folder.path());
    mounted.read("t/columns/x.csv");
    assert_eq!(count(&mounted, "statistics_kept"), 1);
    drop(mounted);

    let bytes = fs::read(&source).unwrap();
    fs::write(&source, bytes).unwrap();
    settle();
    let mounted = mount(&source, folder.path());
    mounted.names("t/columns");
    assert_eq!(known(&mounted).iter().map(|(_, blocks, _)| blocks).sum::<u64>(), 0);
}

#[test]
fn a_file_that_grows_has_no_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let writer = Writer::create(&source);
    let table = writer.table("t");
    let mut column = table.column("x", &[1, 2, 3], 100);
    drop(table);
    writer.flush();
    writer.start_swmr();
    settle();
    let mounted = mount(&source, folder.path());
    assert_eq!(mounted.text("t/columns/x.csv"), "x\n1\n2\n3\n");
    column.append(&[4]);
    writer.flush();
    assert_eq!(mounted.text(".hepfs/statistics"), "");
    assert_eq!(std::fs::read_dir(folder.path().join("cache")).unwrap().count(), 0);
    drop(column);
    writer.close();
}
