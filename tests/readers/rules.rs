//! `hepfs check` against files that h5py made to break one rule of HEP001 each, and to break none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{HEPFS, Mounted, hepfs, run_within};
use crate::{LIMIT, checkout, script};

/// Each file is told with exactly the rules that it breaks, and says of each all there is to say.
#[test]
fn each_rule_is_told_by_its_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    script("rules", ["write".as_ref(), folder.path().as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let expected = std::fs::read(folder.path().join("expected.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&expected).unwrap();
    assert!(expected.len() > 140);

    let output = hepfs(["check", "--json", "--cache-folder", "none", folder.path().to_str().unwrap()]);
    // Two of them cannot be read.
    assert_eq!(output.status.code(), Some(2));
    let mut told: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        let source = Path::new(finding["source"].as_str().unwrap()).file_stem().unwrap();
        told.entry(source.to_str().unwrap().to_owned()).or_default().push(finding);
    }
    // References stand in attributes: no value need be read for them.
    for name in ["april_index_one_way", "april_index_lists_no_column", "april_index_unlinked"] {
        let path = folder.path().join(format!("{name}.h5"));
        let output = hepfs(["check", "--quick", "--cache-folder", "none", path.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("[hep001/index-backlink,"), "{name}: {said}");
    }
    let mut wrong = Vec::new();
    for (name, case) in &expected {
        let found = told.get(name).map(Vec::as_slice).unwrap_or_default();
        let ids: BTreeSet<&str> = found.iter().map(|finding| finding["id"].as_str().unwrap()).collect();
        let rules: BTreeSet<&str> = case["rules"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        if ids != rules {
            wrong.push(format!("{name}: {rules:?} expected, told {found:?}"));
        }
        for finding in found {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            let is_whole = ["severity", "path", "rule", "found"].iter().all(|key| !text(key).is_empty());
            let is_of_draft = !text("id").starts_with("hep001/") || {
                let draft = if case["draft"] == "april" { "April 2026" } else { "July 2026" };
                text("revision") == draft && !text("section").is_empty()
            };
            let is_plain = !text("found").contains("Some(") && !text("found").contains("None");
            if !is_whole || !is_of_draft || !is_plain {
                wrong.push(format!("{name}: {finding}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Rows are counted, and the first is named.
    let rows = |name: &str| {
        let finding = &told[name][0];
        (finding["rows"].as_u64(), finding["first_row"].as_u64())
    };
    for (name, count, first) in [
        ("boolean_value", 2, 9),
        ("code_unnamed", 1, 70),
        ("category_above", 2, 9),
        ("valid_above", 1, 50),
        ("valid_below", 7, 0),
        ("category_twice", 1, 2),
        ("text_latin", 1, 5),
        ("list_null", 1, 5),
        ("list_beyond", 1, 99),
        ("damaged_chunk", 32, 32),
    ] {
        assert_eq!(rows(name), (Some(count), Some(first)), "{name}");
    }

    // What `--fail-on` and `--revision` change.
    let code = |name: &str, more: &[&str]| {
        let file = folder.path().join(format!("{name}.h5")).display().to_string();
        hepfs(["check", "--cache-folder", "none", &file].iter().chain(more)).status.code()
    };
    for (name, more, expected) in [
        ("good_july", &[][..], 0),
        ("good_july", &["--fail-on", "note"], 0),
        ("good_april", &["--fail-on", "note"], 0),
        ("nrows_signed", &[], 1),
        ("order_missing", &[], 0),
        ("order_missing", &["--fail-on", "warning"], 1),
        ("index_fixed", &[], 0),
        ("good_stale", &["--fail-on", "warning"], 0),
        ("good_stale", &["--fail-on", "note"], 1),
        ("minmax_wrong", &[], 1),
        ("valid_above", &["--quick"], 0),
        ("damaged_chunk", &[], 2),
        ("unknown_filter", &[], 2),
        // A warning, but no column.
        ("list_kind_unknown", &[], 2),
        ("good_april", &["--revision", "july"], 1),
        ("good_july", &["--revision", "april"], 1),
        ("nrows_missing", &["--revision", "july"], 1),
        ("nrows_signed", &["--revision", "april"], 1),
    ] {
        assert_eq!(code(name, more), Some(expected), "{name} {more:?}");
    }
    // Notes are counted always.
    let said = |more: &[&str]| {
        let file = folder.path().join("good_stale.h5").display().to_string();
        let output = hepfs(["check", "--cache-folder", "none", &file].iter().chain(more));
        let said = String::from_utf8(output.stdout).unwrap();
        (said.matches(": note: ").count(), said.contains("(-v prints them)"), said.contains(", 0 notes"))
    };
    assert_eq!(said(&[]), (0, true, false));
    for more in [&["-v"][..], &["--fail-on", "note"]] {
        let (printed, hint, none) = said(more);
        assert!(printed > 0 && !hint && !none, "{more:?}");
    }
    // What a mount shows as missing is told there as well.
    let mounted = Mounted::new(&[&folder.path().join("list_falling_below.h5")], &[]);
    assert_eq!(mounted.text("t/columns/deep.ndjson").lines().count(), 100);
    let found: Value = serde_json::from_str(mounted.text(".hepfs/findings").lines().next().unwrap()).unwrap();
    assert_eq!((&found["id"], &found["path"]), (&"hep001/list-offsets-order".into(), &"/t/deep/VALUES".into()));
}

/// What is wrong with files of any format is told through the same door, by names of that format.
#[test]
fn every_format_has_rules_of_its_own() {
    let data = checkout("tests/data").display().to_string();
    // It looks into every file of the tests, hostile ones too, which takes long where nothing is optimised.
    let arguments = ["check", "--quick", "--json", "--cache-folder", "none", &data];
    let output = run_within(LIMIT, Command::new(HEPFS).args(arguments));
    let told = String::from_utf8(output.stdout).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |finding: &Value, key: &str| finding[key].as_str().is_some_and(|text| !text.is_empty());
    let is_whole = |finding: &&Value| ["source", "id", "severity", "rule"].iter().all(|key| has(finding, key));
    assert!(told.iter().all(|finding| is_whole(&finding)), "{:?}", told.iter().find(|finding| !is_whole(finding)));
    let formats: BTreeSet<&str> =
        told.iter().filter_map(|finding| Some(finding["id"].as_str()?.split_once('/')?.0)).collect();
    for format in [
        "anndata",
        "compound",
        "file",
        "h5md",
        "hdfeos",
        "hep001",
        "lh5",
        "loom",
        "matlab",
        "netcdf",
        "nexus",
        "nwb",
        "openpmd",
        "pandas",
        "tenx",
        "versioned",
    ] {
        assert!(formats.contains(format), "{format}: {formats:?}");
    }
}

/// The table of rules in the manual is that of the program; above it stands how to read it.
#[test]
fn the_manual_lists_all_rules() {
    let path = checkout("docs/reference/rules.md");
    let listed = String::from_utf8(hepfs(["check", "--rules"]).stdout).unwrap();
    let manual = std::fs::read_to_string(&path).unwrap();
    let head = &manual[..manual.find("| id |").unwrap()];
    let made = format!("{head}{listed}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let is_same = std::fs::read_to_string(&path).unwrap() == made;
    assert!(listed.lines().count() > 200 && is_same, "UPDATE=1 cargo test --test readers the_manual_lists_all_rules");
}
