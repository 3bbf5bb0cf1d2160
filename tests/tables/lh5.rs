//! LEGEND HDF5 beyond the values of good files: what contradicts itself is found, and harms nothing beside it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

/// Made: `/table`, three rows. `gone` is absent, `scalar` has none, `short` has two, `unlisted` is in no list, `itself`
/// is a link to the table, `strange` has a datatype "quaternion", `wild` is a list without its parts, `huge` has
/// waveforms of 2^40 samples.
#[test]
fn columns_that_contradict_their_table_are_found() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &[]);
    let metadata: Value = serde_json::from_slice(&mounted.read("table/metadata.json")).unwrap();
    let found = metadata["findings"].to_string();
    for expected in [
        "gone: there is no such member",
        "a scalar",
        "2 rows, the table has 3",
        "unlisted",
        "quaternion",
        "nested deeper",
        "decoded_size is 1099511627776",
        "/table/wild",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    assert_eq!(mounted.text("table/columns/strange.txt"), "1\n2\n3\n");
    assert_eq!(mounted.text("table/columns/short.txt"), "1\n2\n");
    assert!(mounted.names("table").contains(&"unlisted.npy".to_owned()), "{:?}", mounted.names("table"));
}

/// Ten links on each of twelve levels lead to one group below.
#[test]
fn links_to_one_table_do_not_multiply() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &[]);
    let found = mounted.text("laughs_11/metadata.json");
    assert!(found.contains("more than 1000 columns of tables within the table"), "{found}");
    assert_eq!(mounted.text("laughs_0/columns/x9.txt"), "1\n2\n3\n");
}

/// A struct keeps its own names, rows of no element are there, and no count of lists is too large.
///
/// Made: `/holds`, a table of `a`, a struct, a table without columns and an array of 3 × 0; `/wide`, a table of 1,100
/// links to one list.
#[test]
fn what_is_no_column_hides_nothing() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &[]);
    assert_eq!(mounted.text("holds/struct/x.txt"), "0\n1\n2\n3\n4\n");
    assert_eq!(mounted.text("holds/table.csv"), "a,narrow\n1,\"\"\n2,\"\"\n3,\"\"\n");
    assert_eq!(mounted.text("holds/where/a:gt:1/table.csv"), "a,narrow\n2,\"\"\n3,\"\"\n");
    assert!(mounted.read("holds/table.parquet").starts_with(b"PAR1"));
    let metadata: Value = serde_json::from_slice(&mounted.read("holds/metadata.json")).unwrap();
    let found: Vec<&Value> = metadata["findings"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(found, ["/holds/struct"]);
    let line = mounted.text("wide/table.ndjson").lines().next_back().unwrap().to_owned();
    assert!(line.ends_with(",\"v1099\":[20,30]}"), "{}", &line[line.len() - 40..]);
}

/// Made: `/table`, lists of 10, 20, 30 with the ends 2, 1, 3 (`falls`) and 1, 2, 9 (`beyond`); waveforms of which the
/// second is eight bytes 0xff and the third lacks its last two (`packed`); waveforms of which the second has no end and
/// the third is to have 2^40 samples (`sizes`).
#[test]
fn lists_and_waveforms_that_are_damaged_are_missing_and_counted() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &[]);
    assert_eq!(mounted.text("table/columns/falls.ndjson"), lines("falls", ["[10,20]", "null", "[20,30]"]));
    assert_eq!(mounted.text("table/columns/beyond.ndjson"), lines("beyond", ["[10]", "[20]", "null"]));
    // The samples 1, 2 and 3 in 16 bits each, of which the last row has two.
    assert_eq!(mounted.text("table/columns/packed.ndjson"), lines("packed", ["[1,2,3]", "null", "null"]));
    assert_eq!(mounted.text("table/columns/sizes.ndjson"), lines("sizes", ["[1,2]", "null", "null"]));
    let found = mounted.text(".hepfs/findings");
    for column in ["falls", "beyond", "packed", "sizes"] {
        assert!(found.lines().any(|line| line.contains(&format!("/table/{column}"))), "{column}: {found}");
    }
}

/// An end that is wrong costs the two waveforms that it is an end of. A shift that no sample can have is none.
///
/// Made: `/gap`, four times the waveform 1, 2, 3 of 14 bytes. Ends: `v` 14, 2^31, 42, 56; `again` 14, 56, 28, 42; those
/// of `shifted` are right, and its shift is 2^33.
#[test]
fn waveforms_beside_a_wrong_end_are_decoded() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &[]);
    // What lies behind the last sample is nobody's: the second of `again` has the bytes of three.
    for (column, second) in [("v", "null"), ("again", "[1,2,3]")] {
        let rows = ["[1,2,3]", second, "null", "[1,2,3]"].map(|row| format!("{{\"{column}\":{row}}}\n"));
        assert_eq!(mounted.text(format!("gap/columns/{column}.ndjson")), rows.concat());
    }
    assert_eq!(
        mounted.text("gap/columns/shifted.ndjson").lines().next(),
        Some(&*format!("{{\"shifted\":{}}}", bytes()))
    );
    let found = mounted.text("gap/metadata.json");
    assert!(found.contains("with shift 8589934592 is not known: bytes are shown"), "{found}");
}

/// An encoded waveform of `bad_lh5.h5`, as a list.
fn bytes() -> &'static str {
    "[0,3,0,3,0,16,0,1,0,0,0,1,0,2]"
}

/// As with a chunk that is damaged: what lies beside it can be read.
///
/// Made: `/table/packed`, three waveforms of three samples, the second and third damaged; `sizes`, of several lengths.
#[test]
fn arrays_of_waveforms_end_where_one_is_damaged() {
    let mounted = Mounted::new(&[&data("hostile/bad_lh5.h5")], &["--direct-io"]);
    let file = File::open(mounted.join("table/columns/packed.raw")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3 * 3 * 4);
    let mut samples = [0; 12];
    file.read_exact_at(&mut samples, 0).unwrap();
    assert_eq!(samples, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    file.read_exact_at(&mut samples[..2], 5).unwrap();
    assert_eq!(samples[..2], [0, 0]);
    assert!(file.read_at(&mut samples, 8).is_err());
    let errors = mounted.text(".hepfs/errors");
    assert!(errors.contains("the waveform of row 1 is damaged"), "{errors}");
    // Of several lengths there is no array.
    let names = mounted.names("table/columns");
    assert!(names.contains(&"packed.npy".to_owned()) && !names.contains(&"sizes.npy".to_owned()), "{names:?}");
}

/// Of a waveform of 60 rows of 64 samples nothing is read for another field of its table.
#[test]
fn a_field_of_a_waveform_costs_nothing_of_its_samples() {
    let mounted = Mounted::new(&[&data("lh5.h5")], &["--cache-folder", "none"]);
    let channels = mounted.text("ch1/raw/where/waveform.dt:eq:16/columns/channel.txt");
    assert_eq!(channels.lines().count(), 60);
    let stats = mounted.text(".hepfs/stats");
    let decoded = stats.lines().find_map(|line| line.strip_prefix("bytes_decoded ")).unwrap();
    assert!(decoded.trim().parse::<u64>().unwrap() < 60 * 64 * 2, "{stats}");
}

fn lines(name: &str, values: [&str; 3]) -> String {
    values.map(|value| format!("{{\"{name}\":{value}}}\n")).concat()
}

/// Made: `/waves`, three waveforms of two samples whose `decoded_size` has the extents 3 × 1 in chunks (`chunked`) or 3
/// × 1 × 2 (`cube`); a histogram with three axes.
#[test]
fn samples_are_counted_by_datasets_of_one_number_each() {
    let mounted = Mounted::new(&[&data("hostile/odd_parts.h5")], &[]);
    let lines = ["[1,2]"; 3].map(|waveform| format!("{{\"chunked\":{waveform}}}\n")).concat();
    assert_eq!(mounted.text("waves/columns/chunked.ndjson"), lines);
    assert!(mounted.text("waves/metadata.json").contains("decoded_size is no dataset of one number"));
    assert!(mounted.text("histogram/metadata.json").contains("3 axes, weights of [3]"));
}

/// What is odd within a column of structs is found by its own path.
///
/// Made: `/flags/inner`, enumerations with names for 0 and 1: `flag` is 0, 1, 2, and `lists` has 0, 1, 2, 3 in three
/// rows.
#[test]
fn codes_without_a_name_in_a_table_in_a_table_are_found() {
    let mounted = Mounted::new(&[&data("hostile/odd_parts.h5")], &[]);
    assert_eq!(mounted.text("flags/table.csv").lines().count(), 4);
    let findings = mounted.text(".hepfs/findings");
    for path in ["/flags/inner/flag", "/flags/inner/lists/flattened_data"] {
        assert!(findings.contains(&format!("\"path\":\"{path}\"")), "{path}: {findings}");
    }
}
