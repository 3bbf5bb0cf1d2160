//! NWB, 10x Genomics, Loom and NeXus beyond the values of good files: what contradicts itself is found, and harms
//! nothing beside it.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use serde_json::Value;

use crate::data;
use crate::support::Mounted;

fn json(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(format!("{path}/metadata.json"))).unwrap()
}

fn hostile() -> Mounted {
    Mounted::new(&[&data("hostile/bad_families.h5")], &[])
}

/// Every text is in the findings of a group.
fn found(mounted: &Mounted, path: &str, expected: &[&str]) {
    let findings = json(mounted, path)["findings"].to_string();
    for text in expected {
        assert!(findings.contains(text), "{path}: {text}: {findings}");
    }
}

/// A column of a `metadata.json`.
fn column<'a>(metadata: &'a Value, name: &str) -> &'a Value {
    metadata["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap()
}

/// Made: `/lists`, a DynamicTable of three rows. Each column `NAME` has the values 0 to 4 and a `NAME_index` with the
/// ends of its rows: `good` 2, 2, 5; `falls` 3, 2, 5; `past` 2, 3, 9; `negative` −1, 2, 5; `short` 1, 2, 4; `few` 2, 5;
/// `floats` 1.0, 2.0, 5.0. The indexes of `circle` lead back to `circle`, `itself` is its own index, and `lost_index`
/// names no column.
#[test]
fn ends_that_lie_cost_their_column_alone() {
    let mounted = hostile();
    // `lost` has a reference that leads nowhere: its name tells.
    let csv = "id,good,short,lost\n0,\"[0,1]\",[0],[0]\n1,[],[1],[1]\n2,\"[2,3,4]\",\"[2,3]\",\"[2,3,4]\"\n";
    assert_eq!(mounted.text("lists/table.csv"), csv);
    let expected = [
        "falls_index: end 1 is 2 after 3",
        "past_index: end 2 is 9, of 5 values",
        "negative_index: end 0 is negative",
        "the last is 4, of 5 values",
        "2 rows, the table has 3",
        "floats_index: ends of type Float64",
        "its indexes lead in a circle, from circle",
        "its indexes lead in a circle, from itself",
    ];
    found(&mounted, "lists", &expected);
    // Values and ends stay what they are.
    assert_eq!(mounted.text("lists/falls.txt"), "0\n1\n2\n3\n4\n");
    assert_eq!(mounted.text("lists/falls_index.txt"), "3\n2\n5\n");
    assert_eq!(mounted.text("lists/columns/few.ndjson"), "{\"few\":[0,1]}\n{\"few\":[2,3,4]}\n");
}

/// Made: `/names`, whose `colnames` are b, a, b, gone, id, scalar, none, group, long; `gone` is absent, `scalar` and
/// `none` have no rows, `group` is a group, `long` has four values, and `unlisted` and `other` are in no list.
/// `/regions`: columns 0, 99, 2 that refer to nothing, an array, a table; 0, 9, 2 that refer to labels and to none.
/// `/wide` lists 300 columns and has one; `/no_id` has no `id`.
#[test]
fn names_and_references_that_lead_nowhere_are_found() {
    let mounted = hostile();
    assert_eq!(mounted.text("names/table.csv"), "id,b,a,unlisted\n0,0.0,0,0\n1,0.5,1,1\n2,1.0,2,2\n");
    let expected =
        ["2 listed again: b, id", "4 not there, or without rows: gone, scalar, none, group", "1 not listed: unlisted"];
    found(&mounted, "names", &expected);
    assert_eq!(mounted.text("names/columns/long.txt"), "0\n1\n2\n3\n");
    assert!(mounted.names("names").contains(&"other.npy".to_owned()));
    assert_eq!(
        mounted.text("regions/table.csv"),
        "id,nowhere,array,table,labels,no_labels\n0,0,0,0,0.0,0\n1,99,99,99,,9\n2,2,2,2,1.0,2\n"
    );
    found(
        &mounted,
        "regions",
        &["it leads nowhere", "it leads to /names/a, which is no table", "a reference that leads nowhere"],
    );
    let metadata = json(&mounted, "regions");
    assert_eq!(column(&metadata, "table")["attributes"]["table"], "/names");
    found(&mounted, "wide", &["299 not there, or without rows: 0000, 0001, 0002, 0003, 0004, 0005, 0006, 0008"]);
    assert_eq!(mounted.text("wide/table.csv"), "id,0007\n0,0\n1,1\n");
    assert_eq!(mounted.text("no_id/table.csv"), "a\n0\n1\n");
    found(&mounted, "no_id", &["there is no id"]);
}

/// Made: `/aligned`, a table of three rows with the categories good, gone, a, group, good, long, lists, itself,
/// nothing: `gone` is absent, `a` is an array, `group` a plain group, `long` has four rows, `lists` is `/lists`,
/// `itself` the table, `nothing` a table without columns. The categories of `/unlisted` are numbers.
#[test]
fn categories_that_are_no_tables_are_found() {
    let mounted = hostile();
    let csv = mounted.text("aligned/table.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "id,a,good,lists,itself");
    let row = r#"1,1,"{""id"":1,""b"":0.5}","{""id"":1,""good"":[],""short"":[1],""lost"":[1]}","{""id"":1,""a"":1}""#;
    assert_eq!(lines[2], row);
    let expected = [
        "gone: there is no such group",
        "a: it is no DynamicTable",
        "group: it is no DynamicTable",
        "good: listed again",
        "nothing: no field can be read",
        "4 rows, the table has 3",
    ];
    found(&mounted, "aligned", &expected);
    // What is longer stands beside the table, and each is a table by itself.
    assert_eq!(mounted.text("aligned/columns/long.ndjson").lines().nth(3), Some(r#"{"long":{"id":3,"b":1.5}}"#));
    assert_eq!(mounted.text("aligned/good/table.csv"), "id,b\n0,0.0\n1,0.5\n2,1.0\n");
    found(&mounted, "unlisted", &["it cannot be read"]);
}

/// Made: four swaths, each with fields `a` and `b` of three and `long` of four values. `StructMetadata.0` gives `good`
/// the fields a, b; `odd` a, gone, long, a; `scalar` none; and leaves `lost` out.
#[test]
fn swaths_that_are_not_told_of_have_no_columns() {
    let mounted = hostile();
    assert_eq!(mounted.text("HDFEOS/SWATHS/good/table.csv"), "a,b\n0,0\n1,1\n2,2\n");
    assert_eq!(mounted.text("HDFEOS/SWATHS/odd/table.csv"), "a\n0\n1\n2\n");
    found(&mounted, "HDFEOS/SWATHS/odd", &["2 not there, or named twice: gone, a", "4 rows, the table has 3"]);
    found(&mounted, "HDFEOS/SWATHS/lost", &["it lists no such swath"]);
    found(&mounted, "HDFEOS/SWATHS/scalar", &["no field has one dimension"]);
    // Fields are files by themselves, whatever is told of them.
    assert_eq!(mounted.text("HDFEOS/SWATHS/lost/Data Fields/long.txt"), "0\n1\n2\n3\n");
}

#[test]
fn swaths_tell_units_and_leave_images_alone() {
    let mounted = Mounted::new(&[&data("hdfeos.h5")], &[]);
    let metadata = json(&mounted, "HDFEOS/SWATHS/O3 Profile");
    assert_eq!(metadata["dialect"], "HDF-EOS5");
    assert_eq!(column(&metadata, "Time")["units"], "s");
    assert_eq!(column(&metadata, "Quality")["description"], "how good");
    assert!(!mounted.names("HDFEOS/SWATHS/image").contains(&"table.csv".to_owned()));
}

/// Made: TimeSeries of 0, 1, 2. The rate of `still` is 0; of `endless` NaN, with the conversion "ten"; `uneven` has two
/// timestamps and an infinite conversion; the data of `wordy` are texts; `channels` is 2 × 3 with four channel
/// conversions.
#[test]
fn series_without_a_clock_or_a_factor_keep_their_data() {
    let mounted = hostile();
    for name in ["still", "endless", "uneven"] {
        assert_eq!(mounted.text(format!("{name}/table.csv")), "data\n0\n1\n2\n", "{name}");
    }
    found(&mounted, "still", &["the attribute rate is no number"]);
    found(&mounted, "endless", &["the attribute rate is no number", "conversion is no number"]);
    found(&mounted, "uneven", &["2 of them, of 3 samples", "conversion is no number"]);
    assert_eq!(mounted.text("wordy/table.csv"), "timestamp,data\n0.5,a\n1.0,b\n");
    found(&mounted, "channels", &["channel_conversion of 4 channels along axis 1"]);
}

/// Made: `/tenx/NAME`, matrices of 2 features, 3 barcodes and 3 values. Pointers: `good` 0, 1, 1, 3; `falls` 0, 2, 1,
/// 3; `beyond` 0, 1, 1, 9; `few` 0, 3. Indices: `outside` 0, 7, −1; `uneven` only two. `shape` says 2^62 × −5; the
/// features of `nameless` have no id.
#[test]
fn matrices_that_contradict_themselves_keep_what_they_have() {
    let mounted = hostile();
    assert_eq!(mounted.text("tenx/good/tables/matrix/table.csv"), "barcode,feature,value\nx,id0,1\nz,id1,2\nz,id1,3\n");
    assert_eq!(mounted.text("tenx/good/tables/barcodes/table.csv"), "barcode\nx\ny\nz\n");
    for (name, reason) in [("beyond", "[9]"), ("few", "2 pointers")] {
        let path = format!("tenx/{name}/tables/matrix");
        assert_eq!(mounted.text(format!("{path}/table.csv")), "feature,value\nid0,1\nid1,2\nid1,3\n");
        found(&mounted, &path, &[reason]);
    }
    assert!(std::fs::read(mounted.join("tenx/falls/tables/matrix/columns/barcode.txt")).is_err());
    assert!(mounted.text(".hepfs/errors").contains("pointer 2 is 1 after 2"));
    assert_eq!(mounted.text("tenx/falls/tables/matrix/columns/value.txt"), "1\n2\n3\n");
    let csv = "barcode,feature,value\nx,id0,1\nz,,2\nz,,3\n";
    assert_eq!(mounted.text("tenx/outside/tables/matrix/table.csv"), csv);
    found(&mounted, "tenx/uneven/tables/matrix", &["3 values and 2 indices"]);
    assert_eq!(mounted.text("tenx/shape/tables/matrix/table.csv").lines().count(), 4);
    assert_eq!(mounted.text("tenx/nameless/tables/matrix/table.csv"), "barcode,feature,value\nx,0,1\nz,1,2\nz,1,3\n");
    found(&mounted, "tenx/nameless/tables/matrix", &["it has no id"]);
}

/// Made: Loom's `/matrix` of 3 × 2 with row attributes of 3, 5 and no values, column attributes of rank 3, a graph of 2
/// edges and `odd` of 2 and 3. NeXus's `/entry`: NXdata whose signal is absent (`gone`) or a group (`group`), with axes
/// of odd characters (`axes`); an NXlog of 3 times and 5 values; an NXevent_data whose parts have 3, 2, 2 and 3 values;
/// a class that is a number (`number`).
#[test]
fn attributes_and_plots_of_other_lengths_are_left_out() {
    let mounted = hostile();
    assert_eq!(mounted.text("row_attrs/table.csv"), "Gene\na\nb\nc\n");
    found(&mounted, "row_attrs", &["extents [5], of 3 rows", "extents [], of 3 rows"]);
    assert_eq!(mounted.text("row_graphs/good/table.csv"), "a,b,w\n0,0,0\n1,1,1\n");
    for group in ["row_graphs/odd", "col_attrs", "entry/gone", "entry/group", "entry/number"] {
        assert!(!mounted.names(group).contains(&"head.csv".to_owned()), "{group}");
    }
    assert_eq!(mounted.text("entry/axes/table.csv"), "y,x\n0,0\n1,1\n2,2\n");
    assert_eq!(mounted.text("entry/log/table.csv"), "time\n0\n1\n2\n");
    found(&mounted, "entry/log", &["5 rows, the table has 3"]);
    assert_eq!(mounted.text("entry/events/table.csv"), "event_id\n0\n1\n2\n");
    assert_eq!(mounted.text("entry/events/tables/pulses/table.csv"), "event_time_zero\n0\n1\n");
    found(&mounted, "entry/events/tables/pulses", &["3 rows, the table has 2"]);
}

/// Made: H5MD elements of three frames: `good` with a step and a time that are fixed distances; `short` with two steps;
/// `far` with a step of 2^52, an offset NaN and a text as its time; `wide` with 1,048,584 bytes a frame. openPMD's
/// species `/data/1/particles/e`: ids of 3, weights of 4, constants of a text (`mass`), of 2^62 rows (`spin`) and
/// without a value (`position/x`); complex amplitudes in units of 2.
#[test]
fn simulations_that_do_not_fit_keep_what_does() {
    let mounted = hostile();
    assert_eq!(mounted.text("particles/all/good/table.csv"), "step,time,value\n0,0.0,0\n5,0.5,1\n10,1.0,2\n");
    assert_eq!(mounted.text("particles/all/short/table.csv"), "time,value\n0.0,0\n1.0,1\n2.0,2\n");
    found(&mounted, "particles/all/short", &["2 of them, of 3 frames"]);
    assert_eq!(mounted.text("particles/all/far/table.csv"), "value\n0\n1\n2\n");
    found(&mounted, "particles/all/far", &["its offset is no number", "are no numbers"]);
    assert_eq!(mounted.text("particles/all/wide/table.csv"), "step\n0\n1\n");
    found(&mounted, "particles/all/wide", &["h5md/wide-frames", "1048584 bytes a frame", "\"severity\":\"note\""]);
    let complex = [(0, 1), (2, 0), (3, 0)].map(|(re, im)| format!("\"{{\"\"re\"\":{re}.0,\"\"im\"\":{im}.0}}\""));
    let [first, second, third] = complex;
    let csv = "amplitude,charge,id,position_y\n".to_owned()
        + &format!("{first},1.0,0,0.0\n{second},1.0,1,0.5\n{third},1.0,2,1.0\n");
    let mut columns: Vec<String> = mounted.text("data/1/particles/e/table.csv").lines().map(str::to_owned).collect();
    columns.sort();
    let mut expected: Vec<&str> = csv.lines().collect();
    expected.sort_unstable();
    assert_eq!(columns, expected);
    let expected = [
        "4 rows, the table has 3",
        "4611686018427387904 rows, the table has 3",
        "a constant of value no number",
        "no constant",
        "are shown as stored, not times 2",
    ];
    found(&mounted, "data/1/particles/e", &expected);
}

/// Times that a factor stands beside, arrays and short masks of vaex, very many elements of a column of NWB.
///
/// Made: `/entry/scaled`, an NXlog whose times have a start and a scaling factor. `/vaex`: `few` with 3 values and a
/// mask of 2, `odd` with a text that is no UTF-8, `vec` of rank 2, `month` in months since 1970. `/many`: a
/// DynamicTable whose column refers to 2^32 labels.
#[test]
fn what_is_not_understood_costs_its_column_alone() {
    let mounted = hostile();
    assert_eq!(mounted.text("entry/scaled/table.csv"), "time,value\n0,0\n1,1\n2,2\n");
    let metadata = json(&mounted, "entry/scaled");
    assert_eq!(column(&metadata, "time")["not_times"], "values are packed by scaling_factor");
    let lists = [("a", "b", "0.0,1.0"), ("c", "\u{fffd}", "2.0,3.0"), ("e", "f", "4.0,5.0")];
    let [first, second, third] = lists.map(|(a, b, vec)| format!("\"[\"\"{a}\"\",\"\"{b}\"\"]\",\"[{vec}]\""));
    let csv = format!("few,month,odd,vec\n,0,{first}\n1,1,{second}\n,,{third}\n");
    assert_eq!(mounted.text("vaex/table.csv"), csv);
    assert_eq!(column(&json(&mounted, "vaex"), "month")["units"], "months since 1970-01-01");
    found(&mounted, "vaex", &["3 values, a mask of 2"]);
    let told = mounted.text(".hepfs/findings");
    let is_odd = |line: &str| line.contains("/vaex/columns/odd") && line.contains("values/utf8");
    assert!(told.lines().any(is_odd), "{told}");
    assert_eq!(mounted.text("many/table.csv"), "id,a\n0,0\n1,1\n2,2\n");
    found(&mounted, "many", &["4294967296 elements"]);
}

/// Made: structs of MATLAB with `x` 0.0, 1.0 and `y`, two cells that refer to texts: `good` twice to the same; the
/// second cell of `bad` refers to a number, of `square` to a text of 2 × 2, of `gone` to nothing. The fields of
/// `lengths` are 1 × 2 and 1 × 3, of `scalars` 1 × 1, of `squares` 2 × 2.
#[test]
fn structs_that_are_no_tables_are_groups() {
    let mounted = hostile();
    assert_eq!(mounted.text("matlab/good/table.csv"), "x,y\n0.0,a\u{fffd}\n1.0,a\u{fffd}\n");
    for (name, reason) in
        [("bad", "cell 1 is no text"), ("square", "has extents [2, 2]"), ("gone", "cell 1 leads to nothing")]
    {
        assert_eq!(mounted.text(format!("matlab/{name}/table.csv")), "x\n0.0\n1.0\n", "{name}");
        found(&mounted, &format!("matlab/{name}"), &[reason]);
    }
    for name in ["lengths", "scalars", "squares"] {
        assert!(!mounted.names(format!("matlab/{name}")).contains(&"head.csv".to_owned()), "{name}");
    }
}

#[test]
fn data_in_units_keep_what_is_stored() {
    let mounted = Mounted::new(&[&data("nwb.h5")], &[]);
    for name in ["lux", "raw"] {
        let series = format!("acquisition/{name}");
        assert_eq!(mounted.read(format!("{series}/columns/data.npy")), mounted.read(format!("{series}/data.npy")));
        let metadata = json(&mounted, &series);
        assert_eq!(column(&metadata, "data")["units"], if name == "lux" { "lx" } else { "volts" });
        assert_eq!(column(&metadata, "timestamp")["units"], "seconds");
    }
    assert!(!mounted.names("acquisition/movie").contains(&"head.csv".to_owned()));
    // Computed, so their bounds are known before any is.
    let file = std::fs::File::open(mounted.join("acquisition/raw/table.parquet")).unwrap();
    let footer = SerializedFileReader::new(file).unwrap();
    match footer.metadata().row_group(0).column(0).statistics() {
        Some(Statistics::Double(told)) => {
            let last = 14.0 / 30_000.0 + 0.25;
            assert_eq!((told.min_opt(), told.max_opt()), (Some(&0.25), Some(&last)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn conditions_find_rows_by_lists_labels_and_clocks() {
    let mounted = Mounted::new(&[&data("nwb.h5"), &data("tenx.h5")], &[]);
    let ids = |condition: &str| mounted.text(format!("nwb.h5/processing/all/kinds/where/{condition}/columns/id.txt"));
    assert_eq!(ids("kind:eq:gamma"), "1\n4\n");
    let matrix = "tenx.h5/matrix/tables/matrix";
    let all = mounted.text(format!("{matrix}/table.csv"));
    let expected: Vec<&str> = all.lines().filter(|line| line.starts_with("ACGT3-1,")).collect();
    let found = mounted.text(format!("{matrix}/where/barcode:eq:ACGT3-1/table.csv"));
    assert!(!expected.is_empty());
    assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), expected);
    let late = mounted.text("nwb.h5/acquisition/raw/where/timestamp:ge:0.2504/columns/timestamp.txt");
    assert_eq!(late.lines().count(), 3);
}

fn odd() -> Mounted {
    Mounted::new(&[&data("hostile/odd_parts.h5")], &[])
}

/// Made: `/vaex`, columns in seconds: `big` (big-endian) and `little` begin with the least int64, which means none;
/// `short` is int32.
#[test]
fn no_time_is_missing_in_either_byte_order() {
    let mounted = odd();
    assert_eq!(
        mounted.text("vaex/table.csv"),
        "big,little,short\n,,1970-01-01T00:00:00\n1970-01-01T00:00:00,1970-01-01T00:00:01,1970-01-01T00:00:01\n"
    );
}

/// Made: openPMD records 0.0, 1.0 whose `unitSI` is a big-endian 2.0 (`big`), the text "2" (`text`), two numbers
/// (`two`).
#[test]
fn units_are_read_in_either_byte_order() {
    let mounted = odd();
    assert_eq!(mounted.text("data/0/particles/e/table.csv"), "big,text,two\n0.0,0.0,0.0\n2.0,1.0,1.0\n");
    let findings = json(&mounted, "data/0/particles/e")["findings"].to_string();
    assert_eq!(findings.matches("is not one number: shown as stored").count(), 2, "{findings}");
}

/// Made: a swath beside a `StructMetadata.0` of variable length, 131,072 times "x".
#[test]
fn a_text_of_a_swath_has_a_bound() {
    found(&odd(), "HDFEOS/SWATHS/long", &["StructMetadata.0: it has 131"]);
}

/// Made: a graph of Loom with `a`, `b`, `w` and `more` of four edges, and `longer` of five.
#[test]
fn another_dataset_of_a_graph_is_no_fault() {
    let mounted = odd();
    assert_eq!(mounted.text("col_graphs/KNN/table.csv"), "a,b,w\n0,0,0\n1,1,1\n2,2,2\n3,3,3\n");
    let findings = json(&mounted, "col_graphs/KNN")["findings"].to_string();
    assert!(findings.contains("extents [5], of 4 rows") && !findings.contains("KNN/more"), "{findings}");
}

/// Made: molecules of 10x in the root group, with a column `barcode` beside the one that is made of `barcode_idx`.
#[test]
fn labels_of_molecules_have_names_of_their_own() {
    let csv = odd().text("table.csv");
    assert!(csv.starts_with("barcode_idx,feature_idx,umi,count,barcode,barcode.1,feature\n0,0,0,0,0,x,g\n"), "{csv}");
}

/// Made: `/struct`, three cell arrays of two texts; the second text of `h` has 1,048,577 characters.
#[test]
fn cells_are_read_as_far_as_they_have_a_bound() {
    let mounted = odd();
    assert_eq!(mounted.text("struct/table.csv"), "f,g,n\na,a,0.0\na,a,0.0\n");
    found(&mounted, "struct", &["cell 1 has 1048577 characters, more than 1048576"]);
}

/// Made: `/observables/e`, an element of H5MD whose step, a fixed distance, is its own fill value.
#[test]
fn a_missing_number_is_none() {
    let mounted = odd();
    found(&mounted, "observables/e", &["number 0 is missing"]);
    assert_eq!(mounted.text("observables/e/table.csv"), "value\n0.0\n1.0\n2.0\n");
}

/// What stands for a missing one is not as long.
#[test]
fn texts_of_gigabytes_take_nothing_where_there_are_none() {
    let mounted = odd();
    assert_eq!(mounted.text("tall/table.csv"), "index,values\n");
    let peak = crate::support::status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(peak < 400 << 10, "{peak} KiB");
}
