//! Tables that are one dataset of compounds, beyond their values: what serves them, rows as stored, what is decoded,
//! what contradicts itself.

use std::fs;

use serde_json::Value;

use crate::data;
use crate::fixtures::same_text;
use crate::support::{Mounted, hepfs, status};

fn json(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(path)).unwrap()
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The bytes of a NumPy file behind its header.
fn elements(npy: &[u8]) -> &[u8] {
    &npy[10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]))..]
}

#[test]
fn what_serves_a_table_is_named_and_not_shown() {
    let mounted = Mounted::new(&[&data("pytables.h5")], &[]);
    assert!(!mounted.names("").iter().any(|name| name.starts_with("_i_")), "{:?}", mounted.names(""));
    let metadata = json(&mounted, "metadata.json");
    let servant = named(&metadata["members"], "_i_indexed");
    assert_eq!(servant["not_shown"][0], "it serves a table beside it");
    assert_eq!(named(&metadata["members"], "indexed")["kind"], "table");
    assert_eq!(json(&mounted, "indexed/metadata.json")["dialect"], "PyTables");
    // Another group with a name like it is a group.
    let mounted = Mounted::new(&[&data("compound_records.h5")], &[]);
    assert!(mounted.names("_i_chunked").contains(&"x".to_owned()));
    assert_eq!(json(&mounted, "chunked/metadata.json")["dialect"], "structured array");
}

/// Columns of one dataset have one path: their names tell them apart.
#[test]
fn what_is_odd_in_values_is_told_of_its_column() {
    let output = hepfs(["check".into(), "--cache-folder".into(), "none".into(), data("pytables.h5").into_os_string()]);
    let said = String::from_utf8(output.stdout).unwrap();
    for found in ["/big: warning: text is UTF-8", "3 rows of words, the first is row 2", "143 rows of s, the first is"]
    {
        assert!(said.contains(found), "{found}: {said}");
    }
}

#[test]
fn attributes_of_fields_are_those_of_columns() {
    let mounted = Mounted::new(&[&data("pytables.h5")], &[]);
    let metadata = json(&mounted, "every/metadata.json");
    assert_eq!(metadata["attributes"]["TITLE"], "A title");
    assert_eq!(metadata["attributes"]["FIELD_1_FILL"], false);
    // Without elements in the file.
    assert_eq!(json(&mounted, "empty/metadata.json")["attributes"]["TITLE"], "");
    let column = named(&metadata["columns"], "i32");
    assert_eq!((&column["units"], &column["description"]), (&"GeV".into(), &"an energy".into()));
    assert_eq!(column["attributes"].as_object().unwrap().len(), 2);
    assert_eq!(column["storage"]["datatype"]["size"], 4);
    // What new rows begin with: no value is missing for it.
    assert_eq!(named(&metadata["columns"], "i8")["storage"]["fill"]["value"], -1);
    assert_eq!(column["nullable"], false);
}

/// What an index cannot be used for, its table tells.
#[test]
fn search_indexes_of_pytables_say_why_they_are_not_used() {
    let mounted = Mounted::new(&[&data("search_indexes_pytables_broken.h5"), &data("pandas3.h5")], &[]);
    let told = |table: &str| {
        let indexes = json(&mounted, &format!("{table}/indexes.json"))["search_indexes"].clone();
        indexes[0].as_object().unwrap_or_else(|| panic!("{table}: {indexes}")).clone()
    };
    let folder = "search_indexes_pytables_broken.h5";
    for (table, reason) in
        [("stale_append", "DIRTY"), ("h5py_appended", "the table has 2503"), ("slicesize_0", "slicesize is 0")]
    {
        let index = told(&format!("{folder}/{table}"));
        assert!(index["not_used"].as_str().is_some_and(|said| said.contains(reason)), "{index:?}");
    }
    let index = told(&format!("{folder}/twice"));
    assert!(!index.contains_key("not_used"), "{index:?}");
    assert_eq!((&index["kind"], &index["columns"]), (&"full".into(), &serde_json::json!(["v"])));
}

/// Rows of `table.npy` below `where/` are those of the whole file, as stored.
#[test]
fn selected_rows_are_there_as_stored() {
    let mounted = Mounted::new(&[&data("pytables.h5")], &[]);
    let all = mounted.read("deep/zlib/table.npy");
    let width = elements(&all).len() / 1003;
    let flags = mounted.text("deep/zlib/columns/ok.txt");
    let wanted: Vec<u8> = elements(&all)
        .chunks(width)
        .zip(flags.lines())
        .filter(|(_, flag)| *flag == "true")
        .flat_map(|(row, _)| row.to_vec())
        .collect();
    assert!(wanted.len() > 400 * width && wanted.len() < 600 * width);
    assert_eq!(elements(&mounted.read("deep/zlib/where/ok:eq:true/table.npy")), wanted);
    assert_eq!(mounted.read("deep/zlib/where/ok:eq:true/table.raw"), wanted);
    let texts = mounted.text("deep/zlib/where/ok:eq:true/columns/n.txt");
    assert_eq!(texts.lines().count(), wanted.len() / width);
}

/// Rows that lie far apart are read as a whole, once for all columns, whichever file asks first.
#[test]
fn selected_rows_far_apart_are_those_of_the_table() {
    let tables = [("search_indexes_pytables.h5", "large_nan"), ("search_indexes_pytables.h5", "csi_text")];
    for (file, table) in tables.into_iter().chain([("pandas3.h5", "every_1003"), ("pandas3.h5", "fixed/every_1003")]) {
        let mounted = Mounted::new(&[&data(file)], &[]);
        let all = mounted.text(format!("{table}/table.csv"));
        let lines: Vec<&str> = all.lines().collect();
        // By the first column with distinct values, or any with few of a kind.
        let distinct = |column: &str| {
            let cells = mounted.text(format!("{table}/columns/{column}.txt"));
            let cells: Vec<String> = cells.lines().map(str::to_owned).collect();
            let once: Vec<usize> = (0..cells.len()).step_by(cells.len() / 7).collect();
            let names: Vec<&str> = once.iter().map(|at| cells[*at].as_str()).collect();
            let rows: Vec<usize> = (0..cells.len()).filter(|at| names.contains(&cells[*at].as_str())).collect();
            (names.join(","), rows)
        };
        let column = if file == "pandas3.h5" { "index" } else { "row" };
        let (names, rows) = distinct(column);
        let found = format!("{table}/where/{column}:in:{names}");
        let expected: Vec<&str> = rows.iter().map(|row| lines[row + 1]).collect();
        // From the narrowest file to the widest, and once more.
        for name in ["head.csv", "table.csv", "table.csv"] {
            let text = mounted.text(format!("{found}/{name}"));
            let told: Vec<&str> = text.lines().skip(1).collect();
            assert_eq!(told, expected[..told.len()], "{found}/{name}");
            assert!(told.len() == expected.len() || name == "head.csv", "{found}/{name}");
        }
        for name in mounted.names(format!("{found}/columns")).iter().filter(|name| name.ends_with(".npy")) {
            let (all, part) =
                (mounted.read(format!("{table}/columns/{name}")), mounted.read(format!("{found}/columns/{name}")));
            let width = elements(&all).len() / (lines.len() - 1);
            let wanted: Vec<u8> = rows.iter().flat_map(|row| elements(&all)[row * width..][..width].to_vec()).collect();
            assert_eq!(elements(&part), wanted, "{found}/columns/{name}");
        }
    }
}

/// However many fields are read of a chunk, it is decoded once.
#[test]
fn a_chunk_is_decoded_once_for_all_fields() {
    for file in ["table.parquet", "table.arrow", "table.csv", "table.ndjson", "table.npy"] {
        let mounted = Mounted::new(&[&data("pytables.h5")], &[]);
        mounted.read(format!("deep/zlib/{file}"));
        let stats = mounted.text(".hepfs/stats");
        let decoded = stats.lines().find_map(|line| line.strip_prefix("chunks_decoded ")).unwrap();
        // 1,003 rows in chunks of 100.
        assert_eq!(decoded, "11", "{file}");
    }
}

/// The text of all columns makes every field of some rows be gathered together; a file of one column comes after it,
/// and before it in a mount of its own. The small cache has many such gatherings, which end within chunks.
#[test]
fn fields_are_the_same_whether_they_are_gathered_alone_or_together() {
    let names = ["none", "zlib", "blosc"].map(|name| format!("deep/{name}"));
    let columns = |mounted: &Mounted, table: &String| -> Vec<Vec<u8>> {
        let names = mounted.names(format!("{table}/columns")).into_iter().filter(|name| name.ends_with(".raw"));
        names.map(|name| mounted.read(format!("{table}/columns/{name}"))).collect()
    };
    let alone = Mounted::new(&[&data("pytables.h5")], &[]);
    for cache in ["64K", "64M"] {
        let together = Mounted::new(&[&data("pytables.h5")], &["--cache-size", cache]);
        for table in &names {
            assert_eq!(
                together.read(format!("{table}/table.csv")),
                alone.read(format!("{table}/table.csv")),
                "{table}"
            );
            let fresh = Mounted::new(&[&data("pytables.h5")], &[]);
            assert_eq!(columns(&together, table), columns(&fresh, table), "{table} {cache}");
        }
    }
}

/// Rows that are stored as they are would otherwise be read once for each field, at each read.
#[test]
fn fields_that_were_gathered_together_are_read_no_more() {
    let mounted = Mounted::new(&[&data("pytables.h5")], &["--direct-io"]);
    let bytes_read = || {
        let stats = mounted.text(".hepfs/stats");
        stats.lines().find_map(|line| line.strip_prefix("bytes_read ")).unwrap().parse::<u64>().unwrap()
    };
    mounted.read("deep/none/table.parquet");
    let before = bytes_read();
    mounted.read("deep/none/table.parquet");
    mounted.read("deep/none/table.csv");
    assert_eq!(bytes_read(), before);
}

#[test]
fn what_says_otherwise_of_itself_is_found() {
    let mounted = Mounted::new(&[&data("compound_h5tb.h5")], &[]);
    assert_eq!(json(&mounted, "plain/metadata.json")["dialect"], "H5TB");
    let findings = |path: &str| json(&mounted, path)["findings"].to_string();
    assert!(findings("metadata.json").contains("elements that are no compounds"));
    assert!(findings("metadata.json").contains("rank 2"));
    assert!(mounted.names("").contains(&"no_compound.npy".to_owned()));
    let renamed = findings("renamed/metadata.json");
    assert!(renamed.contains("2 rows, NROWS is 1000"), "{renamed}");
    assert!(renamed.contains(r#"FIELD_1_NAME is \"other\", the field \"b\""#), "{renamed}");
    assert_eq!(mounted.text("renamed/table.csv"), "a,b\n0,0\n0,0\n");
}

/// What libhdf5 does not refuse is read as far as it can be, in bounded memory.
///
/// Made: compounds of two int32 whose second field, in the file's bytes, begins at byte 5 (`beyond`), at 2^32 − 1
/// (`far`), at 2 (`overlap`), or has the first one's name (`twice`); `wide`, 1,000 elements of 4 GiB; a compound of
/// 3,000 fields.
#[test]
fn compounds_that_hurt_harm_nobody_else() {
    let mounted = Mounted::new(&[&data("hostile/bad_compounds.h5"), &data("hostile/fields_3000.h5")], &[]);
    let metadata = json(&mounted, "bad_compounds.h5/metadata.json");
    for (name, reason) in [("beyond", "outside"), ("far", "outside"), ("overlap", "overlaps"), ("twice", "duplicated")]
    {
        let member = named(&metadata["members"], name);
        assert!(member["not_shown"][0].as_str().unwrap().contains(reason), "{member}");
    }
    // Elements of 4 GiB: numbers at both ends, and a text of 2 GiB between them.
    assert_eq!(elements(&mounted.read("bad_compounds.h5/wide/columns/b.npy")), [0; 4000]);
    assert_eq!(mounted.text("bad_compounds.h5/wide/columns/a.csv").lines().count(), 1001);
    fs::read(mounted.join("bad_compounds.h5/wide/columns/text.csv")).unwrap_err();
    assert!(mounted.text(".hepfs/errors").contains("(--max-chunk)"));
    let many = mounted.text("fields_3000.h5/many/table.csv");
    assert_eq!(many.lines().map(|line| line.split(',').count()).collect::<Vec<_>>(), [3000; 3]);
    assert_eq!(mounted.read("fields_3000.h5/many/table.raw"), [1; 6000]);
}

/// Bit for bit what PyTables gives, in either byte order.
#[test]
fn times_of_pytables_are_numbers_on_request() {
    let mounted = Mounted::new(&[&data("pytables.h5")], &["--times=numbers"]);
    let expected: Value = serde_json::from_slice(&fs::read(data("pytables.expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for (path, table) in expected["tables"].as_object().unwrap() {
        for column in table["columns"].as_array().unwrap().iter().filter(|column| column["numbers"].is_array()) {
            let text = mounted.text(format!("{}/columns/{}.txt", &path[1..], column["name"].as_str().unwrap()));
            let numbers = column["numbers"].as_array().unwrap();
            assert_eq!(text.lines().count(), numbers.len());
            for (line, number) in text.lines().zip(numbers) {
                same_text(number, line).unwrap_or_else(|why| panic!("{path}: {why}"));
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "only {compared} times");
}

#[test]
fn what_serves_a_frame_is_named_and_not_shown() {
    for file in ["pandas2.h5", "pandas3.h5"] {
        let mounted = Mounted::new(&[&data(file)], &[]);
        let files = [
            "columns",
            "head.csv",
            "index.html",
            "indexes.json",
            "metadata.json",
            "table.arrow",
            "table.csv",
            "table.ndjson",
        ];
        assert_eq!(mounted.names("every_7"), [&files[..], &["table.parquet", "where"]].concat(), "{file}");
        let metadata = json(&mounted, "every_7/metadata.json");
        assert_eq!(metadata["not_shown"], serde_json::json!(["_i_table", "meta", "table"]));
        assert_eq!((&metadata["dialect"], &metadata["kind"]), (&"pandas".into(), &"table".into()));
        assert!(named(&metadata["columns"], "zoned")["type"].as_str().unwrap().contains("America/New_York"));
        assert!(!named(&metadata["columns"], "time")["type"].as_str().unwrap().contains(", "));
        // A frame in the group of another.
        assert_eq!(mounted.text("some/place/below/table.csv"), "index,x\n0,1\n1,2\n");
        assert_eq!(mounted.text("every_7/where/kind:eq:u/columns/small.txt"), "0\n4\n");
        let findings = json(&mounted, "spoiled/metadata.json")["findings"].to_string();
        assert!(findings.contains("non_index_axes cannot be read"), "{findings}");
    }
}

/// Every character of a page is held against pandas by `fixtures`; here is what is not its text. A search index of such
/// texts is of bytes, so that none answers.
#[test]
fn texts_of_other_encodings_are_decoded() {
    for file in ["pandas2_encodings.h5", "pandas3_encodings.h5"] {
        let mounted = Mounted::new(&[&data(file)], &[]);
        let findings = |path: &str| json(&mounted, &format!("{path}/metadata.json"))["findings"].clone();
        assert_eq!(findings("latin_1"), serde_json::json!([]));
        assert!(findings("unknown").to_string().contains("cp437: shown as if in UTF-8"), "{file}");
        assert!(mounted.read("unknown/columns/t.raw").ends_with(b"\x82"), "{file}");
        // As stored, and as text.
        assert!(mounted.read("latin_1/columns/t.raw").windows(1).any(|byte| byte == [0xe9]));
        assert_eq!(mounted.text("latin_1/where/t:eq:é/columns/t.txt"), "é\n", "{file}");
        assert_eq!(mounted.text("gbk/where/t:eq:文/columns/n.txt"), "1\n", "{file}");
        assert_eq!(mounted.text("gbk/where/t:null/columns/n.txt").lines().count(), 1, "{file}");
    }
}

/// What says that it is of pandas shows what can be read, and why not the rest. Nothing is called.
///
/// Made: `nothing_KIND`, groups that are only called frames; `half`, a frame that says 10^9 blocks and has three: of
/// three rows, of five, and a pickle that would call `os.system`; `wide`, a block of 2^40 columns; `loops`, attributes
/// whose pickles hold themselves or a function, and a category without labels.
#[test]
fn frames_that_lie_are_found() {
    let mounted = Mounted::new(&[&data("hostile/bad_frames.h5")], &[]);
    let findings = |path: &str| json(&mounted, &format!("{path}/metadata.json"))["findings"].to_string();
    for kind in ["frame_table", "series_table", "frame", "series"] {
        let found = findings(&format!("nothing_{kind}"));
        assert!(found.contains("leaves such a group behind") || kind == "frame" && found.contains("axis"), "{found}");
    }
    assert_eq!(mounted.text("half/table.csv"), "index,a\n0,0.0\n1,1.0\n2,2.0\n");
    let found = findings("half");
    assert!(found.contains("b: 5 rows, the row labels have 3"), "{found}");
    // A count is no reason for as many findings.
    assert!(found.contains("999999997 of 1000000000 blocks are not there, the first is block3_values"), "{found}");
    assert!(status(mounted.daemon(), "VmHWM:").unwrap() < 64 << 10);
    let half = json(&mounted, "half/metadata.json");
    let error = named(&half["columns"], "c")["error"].as_str().unwrap();
    assert!(error.contains("os.system") || error.contains("not a NumPy array"), "{error}");
    assert_eq!(mounted.text("half/columns/b.csv").lines().count(), 6);
    assert!(findings("wide").contains("1099511627776 columns"));
    let loops = findings("loops");
    for attribute in ["non_index_axes", "values_cols", "info", "values_block_0_kind"] {
        assert!(loops.contains(&format!("{attribute} cannot be read")), "{loops}");
    }
    assert!(loops.contains("there are none, codes are shown"), "{loops}");
    assert_eq!(
        mounted.text("loops/table.csv"),
        "index,values_block_0_0,values_block_0_1,x\n0,0.0,0.0,0\n0,0.0,0.0,0\n"
    );
    assert!(!std::path::Path::new("/tmp/hepfs-was-here").exists());
}

/// As pandas reads them: what is stored in their place has other types.
#[test]
fn frames_without_rows_have_the_types_of_their_columns() {
    let mounted = Mounted::new(&[&data("pandas3_labels.h5")], &[]);
    let types = |frame: &str| {
        let metadata = json(&mounted, &format!("fixed/no_rows_{frame}/metadata.json"));
        assert_eq!((&metadata["rows"], &metadata["findings"]), (&0.into(), &serde_json::json!([])), "{frame}");
        let of_column = |column: &Value| format!("{} {}", column["name"], column["type"]).replace('"', "");
        metadata["columns"].as_array().unwrap().iter().map(of_column).collect::<Vec<_>>()
    };
    let of_values = ["f float32", "g float64", "b boolean", "u uint16", "t timestamp[s]", "d duration[ms]"];
    let (text, zoned) = ("s utf8", "z timestamp[µs, Europe/Berlin]");
    let all = |labels: &[&'static str], rest: &[&'static str]| [labels, &of_values, rest].concat();
    assert_eq!(types("dated"), all(&["at timestamp[µs]", "i int32"], &[text, zoned]));
    assert_eq!(types("named"), all(&[text, "i int32"], &[zoned]));
    assert_eq!(types("zoned"), all(&[zoned, "i int32"], &[text]));
    assert_eq!(types("series"), ["at timestamp[µs]", "f float32"]);
}

/// What is no plain value is named; nothing of it is made.
#[test]
fn pickled_attributes_are_decoded() {
    for file in ["pandas2.h5", "pandas3.h5"] {
        let mounted = Mounted::new(&[&data(file)], &[]);
        let attributes = &json(&mounted, "named/metadata.json")["attributes"];
        assert_eq!(attributes["non_index_axes"], serde_json::json!([[1, ["a", "text"]]]));
        assert_eq!(attributes["info"]["index"]["index_name"], "row label");
        let run = serde_json::json!({
            "energy": 1.5, "names": ["a", null, ["b", "1180591620717411303424"]], "3": "Infinity",
            "at": "2020-01-02 00:00:00"
        });
        assert_eq!(attributes["run"], run);
        assert_eq!(attributes["unusual"], serde_json::json!(["<decimal.Decimal>", true]));
        assert_eq!(attributes["sentence"], "ends in a dot.");
    }
}

/// An index beside a stated fill value, two floats called as the parts of a complex number, pickled units.
#[test]
fn what_tables_of_pytables_say_of_themselves() {
    let path = data("pytables_said.h5");
    let mounted = Mounted::new(&[&path], &[]);
    // `table.read_where("v == 3")` finds 14 rows, and PyTables takes -1 for a value.
    assert_eq!(mounted.text("stated/where/v:eq:3/columns/v.txt"), "3\n".repeat(14));
    assert_eq!(mounted.text("stated/where/v:null/columns/v.txt"), "\n".repeat(15));
    let index = &json(&mounted, "stated/indexes.json")["search_indexes"][0];
    assert!(index["not_used"].as_str().is_some_and(|said| said.contains("stand for missing ones")), "{index}");
    assert_eq!(mounted.text("complex_like/table.csv"), "r,i\n1.5,2.5\n3.5,-4.5\n");
    let columns = json(&mounted, "named/metadata.json")["columns"].clone();
    let told = ["a", "b", "c"].map(|name| named(&columns, name)["units"].clone());
    assert_eq!(told, [Value::Null, Value::Null, "GeV".into()]);
    assert_eq!(named(&columns, "c")["description"], Value::Null);
    let checked = hepfs(["check".as_ref(), path.as_os_str()]);
    assert!(checked.status.success(), "{checked:?}");
}

/// Of any rank, what PyTables gives of them.
#[test]
fn arrays_of_pytables_have_booleans_and_seconds() {
    let mounted = Mounted::new(&[&data("pandas3.h5")], &[]);
    assert_eq!(mounted.text("arrays/line.txt"), "true\nfalse\ntrue\n");
    assert_eq!(mounted.text("arrays/plane.csv"), "0,1,2\ntrue,false,true\nfalse,false,true\n");
    assert_eq!(mounted.text("arrays/plane.ndjson"), "[true,false,true]\n[false,false,true]\n");
    for (name, shape) in [("line", "(3,)"), ("plane", "(2, 3)"), ("space", "(3, 1, 2)")] {
        let npy = mounted.read(format!("arrays/{name}.npy"));
        let header = String::from_utf8_lossy(&npy).into_owned();
        assert!(header.contains("'|b1'") && header.contains(shape), "{header}");
    }
    assert_eq!(elements(&mounted.read("arrays/space.npy")), [1, 0, 1, 0, 0, 1]);
    assert_eq!(mounted.text("arrays/times.txt"), "0.5\n-1.75\n");
}

/// A pickle may say what it likes: what it claims is refused by name, what it calls is nothing, a text that is the
/// value of all rows is read in little memory, and the columns beside it are whole.
#[test]
fn pickles_that_lie_harm_nobody_else() {
    let mounted = Mounted::new(&[&data("hostile/bad_pickles.h5")], &["--cache-size", "64M"]);
    let metadata = json(&mounted, "frame/metadata.json");
    for (name, reason) in [
        ("many", "the array's shape says 1099511627776 values"),
        ("terabyte", "cut short"),
        ("nested", "the array's shape says 3 values, the pickle holds 1"),
    ] {
        let error = named(&metadata["columns"], name)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(reason) && error.contains("format=\"table\""), "{name}: {error}");
    }
    assert_eq!(mounted.text("frame/columns/looped.txt"), "\n");
    assert_eq!(mounted.text("frame/columns/right.txt"), "a\nb\n\n".repeat(1000));
    let texts = mounted.text("frame/columns/caller.txt");
    assert_eq!(texts, "\nb\n\n".repeat(1000));
    let findings = metadata["findings"].to_string();
    assert!(
        findings.contains("block4_values: 1000 values are no texts, numbers, dates or times, and missing"),
        "{findings}"
    );
    // One text of 1 MB is the value of all rows: it is measured once.
    let began = std::time::Instant::now();
    let mut file = fs::File::open(mounted.join("frame/columns/shared.txt")).unwrap();
    let mut begin = vec![0; 2_000_002];
    std::io::Read::read_exact(&mut file, &mut begin).unwrap();
    assert!(begin.starts_with(b"long long ") && begin.iter().filter(|byte| **byte == b'\n').count() == 2);
    assert_eq!(file.metadata().unwrap().len(), 3000 * 1_000_001);
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!std::path::Path::new("/tmp/hepfs-was-here").exists());
    let peak = crate::support::status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(peak < 320 << 10, "{peak} kB");
}

/// Each reader has a part of what all of them take: none may wait for another's while it holds its own.
#[test]
fn pickles_that_are_read_at_once_wait_for_each_other() {
    let mounted =
        Mounted::new(&[&data("hostile/many_pickles.h5")], &["--cache-size", "400K", "--cache-folder", "none"]);
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let mounted = &mounted;
            scope.spawn(move || {
                let text = mounted.text(format!("frame/columns/c{at}.txt"));
                assert_eq!(text, format!("{:?}\n", f64::from(at) / 2.0).repeat(20_000));
            });
        }
    });
    assert_eq!(mounted.text(".hepfs/errors"), "");
    assert_eq!(mounted.text("frame/head.csv").lines().next(), Some("index,c0,c1,c2,c3,c4,c5,c6,c7"));
    // A reservation is given up after ten seconds without any progress.
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}
