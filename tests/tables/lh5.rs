//! LEGEND HDF5 beyond the values of good files: what contradicts itself is found, and harms nothing beside it.

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

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
    assert!(found.contains("more than 1000 columns within columns"), "{found}");
    assert_eq!(mounted.text("laughs_0/columns/x9.txt"), "1\n2\n3\n");
}

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
