//! A predicate that few rows meet reads a small part of a column that is in order.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::support::{HEPFS, Mounted, run_within};
use crate::{LIMIT, fixtures, script};

/// Row groups of `clustered.h5`, of which the query of `push_down.py` needs one.
const ROW_GROUPS: u64 = 64;

/// The numbers of `.hepfs/stats`.
fn stats(mounted: &Mounted) -> HashMap<String, u64> {
    let text = mounted.text(".hepfs/stats");
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().parse().unwrap())).collect()
}

fn decodes_a_tenth(reader: &str) {
    let source = fixtures().join("clustered.h5");
    let cache = tempfile::tempdir().unwrap();
    let kept = ["--cache-folder", cache.path().to_str().unwrap()];
    let mut prepare = Command::new(HEPFS);
    prepare.args(["prepare", "--stats"]).args(kept).arg(&source);
    let prepared = run_within(LIMIT, &mut prepare);
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let mounted = Mounted::new(&[&source], &kept);
    let path = mounted.join("t/table.parquet");
    let before = stats(&mounted)["bytes_decoded"];
    let expected = fixtures().join("clustered.t.arrow");
    let said = script("push_down", [Path::new(reader), &path, &expected]).unwrap_or_else(|said| panic!("{said}"));
    let decoded = stats(&mounted)["bytes_decoded"] - before;
    // `time` and `x`: 8 bytes a row each.
    let whole = 2 * 8 * 131_072 * ROW_GROUPS;
    println!("{reader}: {decoded} of {whole} bytes decoded; {said}");
    assert!(decoded > 0 && decoded * 10 <= whole, "{reader} made hepfs decode {decoded} of {whole} bytes");
}

/// Row groups of the table of groups beside each other do not cross these: least and greatest name are one.
#[test]
fn a_filter_by_the_name_of_a_group_decodes_that_group_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("series.h5");
    script("series", [Path::new("write"), &source]).unwrap_or_else(|said| panic!("{said}"));
    let kept = ["--cache-folder", folder.path().to_str().unwrap()];
    let mut prepare = Command::new(HEPFS);
    prepare.args(["prepare", "--stats"]).args(kept).arg(&source);
    let prepared = run_within(LIMIT, &mut prepare);
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let mounted = Mounted::new(&[&source], &kept);
    let at = mounted.join("");
    script("series", [Path::new("check"), &source, &at]).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn duckdb_decodes_at_most_a_tenth() {
    decodes_a_tenth("DuckDB");
}

#[test]
fn polars_decodes_at_most_a_tenth() {
    decodes_a_tenth("polars");
}

#[test]
fn a_pyarrow_dataset_decodes_at_most_a_tenth() {
    decodes_a_tenth("pyarrow");
}
