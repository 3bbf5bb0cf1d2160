//! Files of `versioned-hdf5` beyond their values (`tables/fixtures.rs`): where versions are shown, and what is found.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::data;
use crate::support::{Mounted, hepfs};

/// What h5py reads: `x` 0, 1, 2 and 0, 1, 2.5, 0; `n` 0, −1, 7 and 0, −1, 7, 0; `marked` has the user's own fill, −9.
#[test]
fn zeros_of_a_version_are_values() {
    let mounted = Mounted::new(&[&data("versioned_table.h5")], &[]);
    let read = |version: &str| fs::read_to_string(mounted.join(format!(".versions/{version}/t/table.csv")));
    assert_eq!(read("r0").unwrap(), "x,n,marked\n0.0,0,0\n1.0,-1,\n2.0,7,3\n");
    assert_eq!(read("r1").unwrap(), "x,n,marked\n0.0,0,0\n1.0,-1,\n2.5,7,3\n0.0,0,4\n");
    let metadata = fs::read(mounted.join(".versions/r1/t/metadata.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    let findings = metadata["findings"].as_array().unwrap();
    let found: Vec<&str> = findings.iter().filter_map(|finding| finding["path"].as_str()).collect();
    // Once a column.
    assert_eq!(found, ["/_version_data/versions/r1/t/n", "/_version_data/versions/r1/t/x"]);
    assert!(findings.iter().all(|finding| finding["rule"].as_str().unwrap().starts_with("Versioned HDF5")));
    let nullable = |name: &str| {
        let columns = metadata["columns"].as_array().unwrap();
        columns.iter().find(|column| column["name"] == name).unwrap()["nullable"] == true
    };
    assert_eq!(["x", "n", "marked"].map(nullable), [false, false, true]);
}

fn json(mounted: &Mounted, path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&mounted.read(path)).unwrap()
}

#[test]
fn the_current_version_is_at_the_root_beside_what_is_not_versioned() {
    let mounted = Mounted::new(&[&data("versioned.h5")], &[]);
    let names = mounted.names("");
    for expected in [".versions", "outside.npy", "notes", "numbers", "image.csv", "uneven", "records"] {
        assert!(names.contains(&expected.to_owned()), "{expected}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("version_data") || name == "gone"), "{names:?}");
    assert_eq!(fs::read_link(mounted.join(".versions/current")).unwrap().as_os_str().as_bytes(), b"last");
    for file in ["numbers/table.csv", "image.npy", "nested/deep/er/table.parquet", "text/where/fixed:eq:f3/table.csv"] {
        let (here, there) = (mounted.read(file), mounted.read(Path::new(".versions/current").join(file)));
        assert!(here == there && !here.is_empty(), "{file}");
        assert!(here == mounted.read(Path::new(".versions/last").join(file)), "{file}");
    }
    // Of two of one name the file's own has it.
    assert_eq!(mounted.text("both.txt"), "0\n1\n");
    assert_eq!(mounted.text(".versions/last/both.txt").lines().count(), 30);
    let metadata = json(&mounted, "metadata.json");
    let findings = metadata["findings"].to_string();
    assert!(findings.contains("/_version_data/versions/last/both"), "{findings}");
    let hidden = metadata["members"].as_array().unwrap().iter().find(|member| member["name"] == "_version_data");
    assert_eq!(hidden.unwrap()["shown_as"], json!([]));
}

#[test]
fn versions_are_a_table_and_a_directory_each() {
    let mounted = Mounted::new(&[&data("versioned.h5")], &[]);
    // What VersionedHDF5File says of them: by time, the version that was deleted bridged.
    let expected = "name,prev_version,timestamp,current,message,note,run\n\
        first,,2026-01-01T12:30:15.123456Z,false,begun,,7\n\
        second,first,2026-01-02T12:30:15.123456Z,false,grown,,\n\
        shrunk,second,2026-01-03T12:30:15.123456Z,false,,,\n\
        branch,first,2026-01-04T12:30:15.123456Z,false,,aside,\n\
        current,shrunk,2026-01-06T12:30:15.123456Z,false,,,\n\
        table.csv,current,2026-01-07T12:30:15.123456Z,false,,,\n\
        ..,table.csv,2026-01-08T12:30:15.123456Z,false,,,\n\
        a%b,..,2026-01-09T12:30:15.123456Z,false,,,\n\
        last,a%b,2026-01-10T12:30:15.123456Z,true,,,\n";
    assert_eq!(mounted.text(".versions/table.csv"), expected);
    let names = mounted.names(".versions");
    for shown in ["first", "branch", "%63urrent", "%74able.csv", "%2E.", "a%25b", "last", "current"] {
        assert!(names.contains(&shown.to_owned()), "{shown}: {names:?}");
    }
    let chosen = mounted.text(".versions/where/message:eq:grown/table.csv");
    assert_eq!(chosen.lines().nth(1).unwrap(), expected.lines().nth(2).unwrap());
    assert_eq!(json(&mounted, ".versions/metadata.json")["kind"], "table");
    assert_eq!(mounted.text(".versions/table.csv"), mounted.text(".versions/head.csv"));
    // What is deleted is gone, and what was deleted later is still there.
    assert!(mounted.join(".versions/first/gone").is_dir() && !mounted.join(".versions/second/gone").exists());
    assert_eq!(json(&mounted, ".versions/first/metadata.json")["attributes"]["message"], "begun");
    assert_eq!(json(&mounted, ".versions/first/numbers/metadata.json")["columns"][3]["units"], "keV");
}

/// The root is a table where the current version is one, with whatever else is in the file.
#[test]
fn a_version_of_columns_alone_is_a_table() {
    let mounted = Mounted::new(&[&data("versioned_flat.h5")], &[]);
    assert_eq!(mounted.read("table.csv"), mounted.read(".versions/v4/table.csv"));
    assert!(mounted.text("table.csv").starts_with("x,y,z\n0.0,0,0\n"));
    assert_eq!(mounted.text(".versions/v3/columns/x.txt"), "0.0\n1.0\n-1.5\n-1.5\n4.0\n5.0\n6.0\n7.0\n8.0\n9.0\n");
    let metadata = json(&mounted, "metadata.json");
    assert_eq!((&metadata["path"], &metadata["not_shown"]), (&json!("/"), &json!(["_version_data"])));
    assert_eq!(metadata["dialect"], "Versioned HDF5");
    // Commands that take the only table of a file take that of the current version.
    let found = hepfs(["query".as_ref(), data("versioned_flat.h5").as_os_str(), "x < 1".as_ref()]);
    assert_eq!(String::from_utf8(found.stdout).unwrap().lines().count(), 6);
}

/// Commands take what is named: the current version, or any other.
#[test]
fn commands_look_into_other_versions_where_these_are_named() {
    let file = data("versioned_flat.h5").into_os_string().into_string().unwrap();
    let count = |place: &str| {
        let output = hepfs(["check", place]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(count(&file).starts_with("1 tables"), "{}", count(&file));
    let all = count(&format!("{file}:.versions"));
    assert!(all.starts_with("5 tables"), "{all}");
}

/// Made: `good`, `x` of raw data 8 to 11 and 0 to 3, and `y`; `bad`, after it, with mappings to half of its rows (`x`),
/// behind the raw data (`outside`), across chunks (`across`), to datasets that are no raw data (`beside`) or gone
/// (`nothing`), an array that is not virtual (`plain`), links to everything above and 30 groups with two links each to
/// the next; versions before each other (`a`, `b`), behind those, before themselves (`self`) and behind nobody
/// (`orphan`); a time "yesterday" (`timeless`); groups without a version's attributes (`half`, `slash`), an array and a
/// soft link among the versions.
#[test]
fn versions_that_lie_are_found_and_the_rest_is_served() {
    let mounted = Mounted::new(&[&data("hostile/bad_versions.h5")], &[]);
    let good = "x,y\n8,0\n9,1\n10,2\n11,3\n0,4\n1,5\n2,6\n3,7\n";
    assert_eq!(mounted.text(".versions/good/t/table.csv"), good);
    assert_eq!(mounted.text(".versions/bad/t/columns/x.txt"), "4\n5\n6\n7\n-7\n-7\n-7\n-7\n");
    assert_eq!(mounted.text(".versions/bad/t/columns/across.txt"), "2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(mounted.text(".versions/bad/t/columns/beside.txt"), "100\n101\n102\n103\n104\n105\n106\n107\n");
    // libhdf5 gives bytes of anything for what lies behind the end of a source.
    assert!(fs::read(mounted.join(".versions/bad/t/columns/outside.npy")).is_err());
    let errors = mounted.text(".hepfs/errors");
    assert!(errors.contains("mapping 1 leads to element 400 of a source with 12"), "{errors}");
    assert_eq!(mounted.text(".versions/table.csv").lines().count(), 15);
    assert_eq!(mounted.names("").iter().filter(|name| !name.starts_with("elsewhere")).count(), 4);
    // Each group is one directory, however many ways lead to it.
    let many: Vec<String> = (0..30).map(|at| at.to_string()).collect();
    let mut shown = mounted.names(".versions/bad/many");
    shown.retain(|name| many.contains(name));
    assert_eq!(shown.len(), 30);
    let link = |path: &str| fs::read_link(mounted.join(path)).unwrap().into_os_string().into_string().unwrap();
    assert_eq!(link(".versions/bad/many/3/a"), "../../../../.versions/bad/many/4");
    assert_eq!(
        (link(".versions/bad/good"), link(".versions/bad/root")),
        ("../../.versions/good".into(), "../..".into())
    );
    assert_eq!(mounted.text(".versions/bad/good/t/table.csv"), good);
    let findings = mounted.text(".hepfs/findings");
    for (path, found) in [
        ("", "nowhere"),
        ("", "data_version"),
        ("/a", "circle"),
        ("/b", "circle"),
        ("/behind", "circle"),
        ("/self", "circle"),
        ("/orphan", "nobody"),
        ("/timeless", "yesterday"),
        ("/half", "not finished"),
        ("/slash", "not finished"),
        ("/data", "something else"),
        ("/soft", "something else"),
        ("/bad/t/x", "chunks of another version"),
        ("/bad/t/plain", "not virtual"),
        ("/bad/t/beside", "/elsewhere"),
        ("/bad/t/nothing", "/gone"),
        ("/bad/t/across", "mapping 0 is not of whole chunks"),
        ("/bad/t/outside", "mapping 1 leads to element 400"),
    ] {
        let path = format!("\"path\":\"/_version_data/versions{path}\"");
        let is_found = findings.lines().any(|line| line.contains(&path) && line.contains(found));
        assert!(is_found, "{path} {found}: {findings}");
    }
    assert!(!findings.contains("versions/good"), "{findings}");
}

/// What a number in `.hepfs/stats` is.
fn counted(mounted: &Mounted, name: &str) -> u64 {
    let stats = mounted.text(".hepfs/stats");
    let line = stats.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

/// `packed/deflated` has 30 rows in chunks of 8, of which the second version changes all, and no other any.
#[test]
fn versions_cost_the_chunks_that_differ() {
    let mounted = Mounted::new(&[&data("versioned.h5")], &[]);
    let read = |version: &str| mounted.read(format!(".versions/{version}/packed/columns/deflated.npy"));
    let (first, second) = (read("first"), read("second"));
    assert_ne!(first, second);
    assert_eq!(counted(&mounted, "chunks_decoded"), 8);
    for version in ["branch", "shrunk", "current", "%2E.", "last"] {
        assert_eq!(read(version), if version == "branch" { first.clone() } else { second.clone() }, "{version}");
    }
    assert_eq!(counted(&mounted, "chunks_decoded"), 8);
    assert_eq!(counted(&mounted, "worker_reads"), 0);
}

/// Expected: the times that `scripts/fixtures/versioned.py` gives them. One of the hostile file has none.
#[test]
fn directories_of_versions_have_their_times() {
    let source = data("versioned.h5");
    let mounted = Mounted::new(&[&source], &[]);
    let changed = |path: &Path| fs::symlink_metadata(path).unwrap().modified().unwrap();
    let first = UNIX_EPOCH + Duration::new(1_767_270_615, 123_456_000);
    for (version, days) in [("first", 0), ("second", 1), ("branch", 3), ("%2E.", 7), ("last", 9)] {
        let expected = first + Duration::from_secs(days * 86_400);
        assert_eq!(changed(&mounted.join(format!(".versions/{version}"))), expected, "{version}");
    }
    let others = ["", ".versions", ".versions/current", ".versions/first/numbers", ".versions/first/cube.npy"];
    for path in [others.as_slice(), &["numbers", ".versions/first/changed.txt"]].concat() {
        assert_eq!(changed(&mounted.join(path)), changed(&source), "{path}");
    }
    let hostile = data("hostile/bad_versions.h5");
    let mounted = Mounted::new(&[&hostile], &[]);
    assert_eq!(changed(&mounted.join(".versions/timeless")), changed(&hostile));
}

/// What is expected (`versioned_changes.json`) was found by reading all values with the library.
#[test]
fn versions_tell_what_changed_without_reading_values() {
    let all: Value = serde_json::from_slice(&fs::read(data("versioned_changes.json")).unwrap()).unwrap();
    for (file, versions) in all.as_object().unwrap() {
        let mounted = Mounted::new(&[&data(&format!("{file}.h5"))], &[]);
        for (version, expected) in versions.as_object().unwrap() {
            let shown = match version.as_str() {
                "current" => "%63urrent",
                "table.csv" => "%74able.csv",
                ".." => "%2E.",
                "a%b" => "a%25b",
                name => name,
            };
            let expected = expected.as_str().unwrap();
            let expected = expected.replace("../tab\tx", "%2E./tab%09x").replace("line\nfeed", "line%0Afeed");
            assert_eq!(mounted.text(format!(".versions/{shown}/changed.txt")), expected, "{file}: {version}");
        }
        assert_eq!((counted(&mounted, "chunks_decoded"), counted(&mounted, "worker_reads")), (0, 0), "{file}");
    }
}

/// In a version, a member whose file would have the name gives way; what is shown at the root need not.
#[test]
fn what_changed_takes_no_name_of_a_dataset() {
    let mounted = Mounted::new(&[&data("versioned_names.h5")], &[]);
    let (version, root) = (mounted.names(".versions/r1"), mounted.names(""));
    let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
    assert!(has(&version, "changed.txt") && has(&version, "%63hanged.npy"), "{version:?}");
    assert!(!has(&version, "changed.npy") && has(&version, "%63hanged.txt"), "{version:?}");
    assert!(!has(&root, "changed.txt") && has(&root, "changed.npy"), "{root:?}");
    assert_eq!(mounted.read("changed.npy"), mounted.read(".versions/r1/%63hanged.npy"));
    // Until it is opened nobody knows how long it is, as of any text that takes time.
    let changed = mounted.join(".versions/r0/changed.txt");
    assert_eq!(fs::metadata(&changed).unwrap().len(), 1 << 45);
    assert_eq!(fs::read(&changed).unwrap().len() as u64, fs::metadata(&changed).unwrap().len());
    let csv = Mounted::new(&[&data("versioned_names.h5")], &["--formats", "csv"]);
    assert!(!has(&csv.names(".versions/r1"), "changed.txt"));
}

/// Links that lead in circles, to other versions, and a way for each subset of thirty groups.
#[test]
fn what_changed_in_versions_that_lie_has_an_end() {
    let mounted = Mounted::new(&[&data("hostile/bad_versions.h5")], &[]);
    let changed = |version: &str| mounted.text(format!(".versions/{version}/changed.txt"));
    assert_eq!(changed("good"), "A\tt/x\nA\tt/y\n");
    let bad = changed("bad");
    for expected in ["A\tt/plain\n", "M\tt/x\n", "D\tt/y\n", "A\tgood/t/x\n"] {
        assert!(bad.contains(expected), "{bad}");
    }
    assert_eq!(bad.matches("/plain\n").count(), 2, "{bad}");
    assert_eq!(["a", "self", "orphan"].map(changed), ["", "", ""]);
}

/// In `versioned_spoilt.h5` h5py wrote over an element of each dataset but one, behind the back of the library.
#[test]
fn chunks_are_held_against_their_hashes() {
    let told = |arguments: &[&str], file: &str| -> Vec<(String, String)> {
        let file = data(file);
        let output = hepfs([&["check", "--json"], arguments, &[file.to_str().unwrap()]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let all = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let of_hashes = all.filter(|finding: &Value| finding["id"] == "versioned/hash");
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let mut told: Vec<_> = of_hashes.map(|finding| (text(&finding, "path"), text(&finding, "found"))).collect();
        told.sort();
        told
    };
    let expected = [("cube", 36, 0), ("packed", 36, 0), ("t/text", 3, 1), ("t/x", 3, 2)].map(|(name, all, first)| {
        let found = format!("1 of {all} chunks do not match their hashes, the first is chunk {first}");
        (format!("/_version_data/{name}/raw_data"), found)
    });
    assert_eq!(told(&[], "versioned_spoilt.h5"), expected);
    assert_eq!(told(&["--quick"], "versioned_spoilt.h5"), []);
    for sound in ["versioned.h5", "versioned_flat.h5", "versioned_history0.h5", "versioned_history3.h5"] {
        assert_eq!(told(&[], sound), [], "{sound}");
    }
}
