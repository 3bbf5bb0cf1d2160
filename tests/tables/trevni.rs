//! Trevni files through real mounts: what the writer of `scripts/` wrote, what the format's digest works out byte by
//! byte, and files that lie.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::data;
use crate::support::{Mounted, hepfs};

/// The lines of a file of JSON.
fn lines(mounted: &Mounted, path: &str) -> Vec<Value> {
    mounted.text(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn metadata(mounted: &Mounted) -> Value {
    serde_json::from_slice(&mounted.read("metadata.json")).unwrap()
}

#[test]
fn the_file_of_the_digest_is_shown() {
    let mounted = Mounted::new(&[&data("trevni/digest.trv")], &[]);
    assert_eq!(
        mounted.text("table.ndjson"),
        "{\"n\":5,\"ok\":true,\"r\":[]}\n{\"n\":-65,\"ok\":false,\"r\":[]}\n\
         {\"n\":300,\"ok\":true,\"r\":[{\"r.v\":1.5},{\"r.v\":-2.0}]}\n{\"n\":0,\"ok\":true,\"r\":[{\"r.v\":0.25}]}\n"
    );
    assert_eq!(mounted.text("where/n:gt:1/columns/n.txt"), "5\n300\n");
    assert_eq!(mounted.read("columns/n.raw"), [5, -65, 300, 0_i32].map(i32::to_le_bytes).concat());
    assert!(mounted.read("columns/ok.npy").ends_with(&[b'\n', 1, 0, 1, 1]));
    let found = metadata(&mounted);
    assert_eq!(
        (&found["dialect"], &found["revision"], &found["rows"]),
        (&json!("Trevni"), &json!("version 2"), &json!(4))
    );
    assert_eq!(found["storage"]["metadata"]["trevni.checksum"], "crc32");
    assert_eq!((&found["columns"][0]["storage"]["blocks"], &found["findings"]), (&json!(2), &json!([])));
    assert_eq!(mounted.text(".hepfs/findings"), "");
    // Without a mount.
    let place = data("trevni/digest.trv");
    let said = |arguments: &[&str]| {
        let output = hepfs(arguments.iter().map(|one| (*one).to_owned()).chain([place.display().to_string()]));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&["info"]).starts_with("table /: 4 rows, 4 columns (Trevni, version 2)\n"));
    assert!(said(&["ls"]).lines().any(|line| line == "table.parquet"));
    assert!(said(&["check"]).lines().all(|line| !line.contains('!')));
    let output = hepfs(["query".to_owned(), place.display().to_string(), "n < 0 or n = 300".into()]);
    let rows = String::from_utf8(output.stdout).unwrap();
    assert_eq!(rows, "n,ok,r\n-65,false,[]\n300,true,\"[{\"\"r.v\"\":1.5},{\"\"r.v\"\":-2.0}]\"\n");
}

#[test]
fn what_was_written_is_shown() {
    for name in ["types", "nested", "version_1", "avro", "no_rows"] {
        let expected: Value =
            serde_json::from_slice(&fs::read(data(&format!("trevni/{name}.expected.json"))).unwrap()).unwrap();
        let mounted = Mounted::new(&[&data(&format!("trevni/{name}.trv"))], &[]);
        let rows = expected["rows"].as_array().unwrap();
        let found = lines(&mounted, "table.ndjson");
        assert_eq!(found.len(), rows.len(), "{name}");
        for (at, (found, row)) in found.iter().zip(rows).enumerate() {
            assert_eq!(found, row, "{name}, row {at}");
        }
        for (column, values) in expected["columns"].as_object().unwrap() {
            let found = lines(&mounted, &format!("columns/{column}.ndjson"));
            let found: Vec<&Value> = found.iter().map(|line| &line[column]).collect();
            assert_eq!(found, values.as_array().unwrap().iter().collect::<Vec<_>>(), "{name}: {column}");
        }
        for file in ["table.arrow", "table.parquet"] {
            mounted.read(file);
        }
        assert_eq!(metadata(&mounted)["findings"], json!([]), "{name}");
        assert_eq!(mounted.text(".hepfs/errors"), "", "{name}");
    }
    let mounted = Mounted::new(&[&data("trevni/types.trv")], &[]);
    let said = &metadata(&mounted)["storage"]["metadata"];
    assert_eq!((&said["who"], &said["odd"]), (&json!("a test"), &json!("ff00")));
    let mounted = Mounted::new(&[&data("trevni/no_columns.trv")], &[]);
    assert_eq!(metadata(&mounted)["rows"], 0);
}

/// A column of nulls is one in Parquet and Arrow as pyarrow writes it, and every row of it is missing.
#[test]
fn nulls_are_a_column() {
    let mounted = Mounted::new(&[&data("trevni/types.trv")], &[]);
    assert_eq!(mounted.text("where/nothing:null/columns/nothing.txt"), "\n".repeat(120));
    assert_eq!(mounted.text("where/nothing:valid/columns/nothing.txt"), "");
    let parquet = fs::File::open(mounted.join("table.parquet")).unwrap();
    let parquet = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    let field = parquet.schema().field_with_name("nothing").unwrap();
    assert_eq!(*field, Field::new("nothing", DataType::Null, true));
    let nested = Mounted::new(&[&data("trevni/nested.trv")], &[]);
    let arrow = FileReader::try_new(fs::File::open(nested.join("table.arrow")).unwrap(), None).unwrap();
    let kind = arrow.schema().field_with_name("marks").unwrap().data_type().clone();
    assert_eq!(kind, DataType::LargeList(Arc::new(Field::new("item", DataType::Null, true))));
    for batch in arrow {
        let lists = batch.unwrap().column_by_name("marks").unwrap().as_list::<i64>().clone();
        assert_eq!((lists.null_count(), lists.values().logical_null_count()), (0, lists.values().len()));
    }
}

#[test]
fn a_folder_shows_it_beside_hdf5() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [("trevni/digest.trv", "a"), ("trevni/digest.trv", "sub.h5"), ("units.h5", "b.h5")] {
        fs::copy(data(from), folder.path().join(to)).unwrap();
    }
    fs::write(folder.path().join("c.txt"), "Trvx is no file of that format").unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "a", "b.h5", "sub.h5"]);
    assert_eq!(mounted.text("sub.h5/columns/n.txt"), "5\n-65\n300\n0\n");
    assert!(mounted.names("b.h5/t").contains(&"table.csv".to_owned()));
    // A dataset of both: the table of a file's root.
    assert_eq!(mounted.names(".datasets/%2F"), ["file=a", "file=sub.h5"]);
    let parts = ["a", "sub.h5"].map(|name| mounted.read(format!(".datasets/%2F/file={name}/part-0.parquet")));
    assert!(parts.iter().all(|part| part.starts_with(b"PAR1") && part.ends_with(b"PAR1")));
    // A new file under the name is seen at once.
    fs::copy(data("trevni/no_rows.trv"), folder.path().join("new")).unwrap();
    fs::rename(folder.path().join("new"), folder.path().join("a")).unwrap();
    assert_eq!(mounted.text("a/table.csv"), "a,b\n");
}

/// What is kept of a file is found by the next mount: statistics answer a condition that no block satisfies.
#[test]
fn statistics_are_kept() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = folder.path().join("types.trv");
    fs::copy(data("trevni/types.trv"), &source).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let option = format!("--cache-folder={}", cache.path().display());
    let first = Mounted::new(&[&source], &[&option]);
    assert_eq!(first.text("columns/fixed32_deflate.txt").lines().count(), 120);
    let learnt = first.text(".hepfs/statistics");
    assert!(learnt.lines().any(|line| line.contains("fixed32_deflate") && line.contains("\"known\":true")), "{learnt}");
    drop(first);
    let second = Mounted::new(&[&source], &[&option]);
    assert_eq!(second.text("where/fixed32_deflate:lt:0/columns/int_null.txt"), "");
    let stats = second.text(".hepfs/stats");
    assert!(stats.lines().any(|line| line == "chunks_decoded 0"), "{stats}");
}

// --------------------------------------------------------------------------------------------------------------------
// Files that lie

fn varint(value: i64) -> Vec<u8> {
    let mut n = (value << 1 ^ value >> 63) as u64;
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [varint(text.len() as i64), text.into()].concat()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<u8> {
    let all = pairs.iter().flat_map(|(key, value)| [text(key), text(value)].concat());
    varint(pairs.len() as i64).into_iter().chain(all).collect()
}

/// A column: what is said of it, and its bytes.
struct Column(Vec<(&'static str, &'static str)>, Vec<u8>);

/// A column of this name and type, with blocks of so many rows and these bytes.
fn column(
    name: &'static str,
    kind: &'static str,
    more: &[(&'static str, &'static str)],
    blocks: &[(u32, &[u8])],
) -> Column {
    let said: Vec<(u32, u32, u32, &[u8])> =
        blocks.iter().map(|(rows, data)| (*rows, data.len() as u32, data.len() as u32, *data)).collect();
    lying(name, kind, more, &said)
}

/// The same with sizes before and behind the codec that need not be true.
fn lying(
    name: &'static str,
    kind: &'static str,
    more: &[(&'static str, &'static str)],
    blocks: &[(u32, u32, u32, &[u8])],
) -> Column {
    let mut bytes = (blocks.len() as u32).to_le_bytes().to_vec();
    blocks
        .iter()
        .for_each(|(rows, size, stored, _)| bytes.extend([*rows, *size, *stored].map(u32::to_le_bytes).concat()));
    blocks.iter().for_each(|(_, _, _, data)| bytes.extend(*data));
    let said = [("trevni.name", name), ("trevni.type", kind)];
    Column(said.iter().chain(more).copied().collect(), bytes)
}

const ARRAY: (&str, &str) = ("trevni.array", "");

/// A file of these columns; their starts may be moved.
fn file(rows: u64, columns: &[Column], moved: &dyn Fn(usize, u64) -> u64) -> Vec<u8> {
    saying(&[], rows, columns, moved)
}

/// The same with metadata of its own.
fn saying(said: &[(&str, &str)], rows: u64, columns: &[Column], moved: &dyn Fn(usize, u64) -> u64) -> Vec<u8> {
    let mut bytes = [b"Trv\x02".as_slice(), &rows.to_le_bytes(), &(columns.len() as u32).to_le_bytes()].concat();
    bytes.extend(pairs(said));
    columns.iter().for_each(|Column(said, _)| bytes.extend(pairs(said)));
    let mut start = (bytes.len() + 8 * columns.len()) as u64;
    for (at, Column(_, data)) in columns.iter().enumerate() {
        bytes.extend(moved(at, start).to_le_bytes());
        start += data.len() as u64;
    }
    columns.iter().for_each(|Column(_, data)| bytes.extend(data));
    bytes
}

fn in_order(_: usize, start: u64) -> u64 {
    start
}

struct Made(#[allow(dead_code)] tempfile::TempDir, PathBuf);

fn made(bytes: &[u8]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.trv");
    fs::write(&path, bytes).unwrap();
    Made(folder, path)
}

/// Three sound rows, to stand beside what is not.
fn sound() -> Column {
    column("sound", "int", &[], &[(3, b"\x02\x04\x06")])
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let many = |name| column(name, "int", &[], &[(2, b"\x02\x04")]);
    for (bytes, reason) in [
        (b"Trv\x02".to_vec(), "bytes"),
        (b"Trv\x03\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(), "version 3"),
        (file(1 << 63, &[], &in_order), "rows"),
        (file(1 << 62, &[sound()], &in_order), "no column has as many"),
        (file(3, &[many("a"), many("b")], &in_order), "the first readable one has 2"),
        (file(3, &[sound(), sound()], &in_order), "two columns"),
        (file(3, &[sound(), column("b", "int", &[("trevni.parent", "sound")], &[])], &in_order), "parent"),
        (file(3, &[column("b", "int", &[ARRAY, ("trevni.values", "")], &[])], &in_order), "first values"),
        ([b"Trv\x02\0\0\0\0\0\0\0\0".as_slice(), &[255; 4], &[0; 30]].concat(), "columns"),
        ([b"Trv\x02\0\0\0\0\0\0\0\0\0\0\0\0".as_slice(), &[0xfe, 0xff, 0xff, 0x0f]].concat(), "metadata"),
    ] {
        let Made(_folder, path) = &made(&bytes);
        let output = hepfs(["info".to_owned(), path.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(reason), "{reason}: {output:?}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Mounts a sound column beside one that is not. What is wrong is said where it is listed, or when it is read.
fn costs_one_column(bad: Column, rows: u64, moved: &dyn Fn(usize, u64) -> u64, reason: &str) {
    let name = bad.0[0].1;
    let Made(_folder, path) = &made(&file(rows, &[sound(), bad], moved));
    let mounted = Mounted::new(&[path], &["--cache-size", "64MiB"]);
    assert_eq!(mounted.text("columns/sound.txt"), "1\n2\n3\n", "{reason}");
    let found = mounted.text("metadata.json");
    if !found.contains(reason) {
        assert!(fs::read(mounted.join(format!("columns/{name}.ndjson"))).is_err(), "{reason}: {found}");
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.contains(reason), "{reason}: {errors}");
    }
    assert!(!mounted.log().contains("panicked"), "{}", mounted.log());
}

#[test]
fn columns_that_lie_cost_themselves_alone() {
    let of = |kind, more: &[_], blocks: &[(u32, &[u8])]| column("bad", kind, more, blocks);
    let most = varint(i64::from(i32::MAX));
    let two = [most.as_slice(), &most].concat();
    let crc = ("trevni.checksum", "crc32");
    for (bad, reason) in [
        (of("decimal", &[], &[(3, b"")]), "the type \\\"decimal\\\" is not known"),
        (of("int", &[("trevni.codec", "zstd")], &[(3, b"\x02\x04\x06")]), "the codec \\\"zstd\\\" is not known"),
        (of("int", &[("trevni.checksum", "md5")], &[(3, b"\x02\x04\x06")]), "the checksum \\\"md5\\\" is not known"),
        (of("fixed32", &[], &[(3, b"1234")]), "3 rows of type fixed32 in 4 bytes"),
        (of("boolean", &[], &[(3, b"12")]), "3 rows of type boolean in 2 bytes"),
        (of("null", &[], &[(3, b"1")]), "3 rows of type null in 1 bytes"),
        (of("string", &[], &[(3, b"\x00\x02")]), "3 rows of type string in 2 bytes"),
        (lying("bad", "int", &[], &[(3, 1 << 31, 3, b"\x02\x04\x06")]), "2^31 or more"),
        (lying("bad", "int", &[], &[(3, 3, 1 << 20, b"\x02\x04\x06")]), "the file at"),
        (of("int", &[], &[(2, b"\x02\x04")]), "2 rows, the header says 3"),
        (lying("bad", "int", &[], &[(3, 4, 3, b"\x02\x04\x06")]), "the descriptor says 4"),
        (of("int", &[], &[(3, b"\x02\x04\x06\x08")]), "left over"),
        (of("int", &[], &[(3, b"\x02\x04\x86")]), "cut short"),
        (of("int", &[], &[(3, b"\x80\x80\x80\x80\x80\x00\x02\x02")]), "more than 5 bytes"),
        (of("string", &[], &[(3, b"\x02a\x02b\x09")]), "length -5"),
        (of("string", &[], &[(3, b"\x02a\x02b\x20")]), "length 16"),
        (lying("bad", "int", &[crc], &[(3, 3, 3, b"\x02\x04\x06\x01\x02\x03\x04")]), "the checksum is 01020304"),
        (lying("bad", "int", &[("trevni.codec", "deflate")], &[(3, 3, 3, b"\xff\xff\xff")]), "damaged"),
        (lying("bad", "int", &[("trevni.codec", "snappy")], &[(3, 3, 3, b"\xff\xff\xff")]), "snappy"),
        (lying("bad", "int", &[("trevni.codec", "bzip2")], &[(3, 3, 3, b"BZh")]), "cut short"),
        // Lengths: runs that go on, values that nobody counted, more than a row may have.
        (of("null", &[ARRAY], &[(3, b"\x09")]), "goes beyond the block"),
        (of("int", &[ARRAY], &[(3, b"\x04\x02")]), "2 more values in 1 bytes"),
        (of("null", &[ARRAY], &[(3, &[two.as_slice(), &two].concat())]), "left over"),
        (of("null", &[ARRAY], &[(3, &[two.as_slice(), &most].concat())]), "rows 0..1"),
    ] {
        costs_one_column(bad, 3, &in_order, reason);
    }
    for (place, reason) in [(4_u64, "it begins at byte 4"), (u64::MAX, "it begins at byte 18446744073709551615")] {
        let bad = of("int", &[], &[(3, b"\x02\x04\x06")]);
        costs_one_column(bad, 3, &|at, start| if at == 1 { place } else { start }, reason);
    }
    let blocks = Column(vec![("trevni.name", "bad"), ("trevni.type", "int")], [255; 4].to_vec());
    costs_one_column(blocks, 3, &in_order, "4294967295 blocks in 0 bytes");
}

/// Two columns may share their bytes, which is said and harmless.
#[test]
fn columns_that_overlap_are_read() {
    let again = column("again", "int", &[], &[]);
    let start = std::cell::Cell::new(0);
    let moved = |at: usize, own: u64| if at == 0 { start.replace(own).max(own) } else { start.get() };
    let Made(_folder, path) = &made(&file(3, &[sound(), again], &moved));
    let mounted = Mounted::new(&[path], &[]);
    assert_eq!(mounted.text("table.csv"), "sound,again\n1,1\n2,2\n3,3\n");
    assert!(mounted.text(".hepfs/findings").contains("columns do not overlap"));
}

/// Apache's writer stores the checksum 0 where it compresses nothing.
#[test]
fn a_checksum_that_was_not_computed_is_found_and_harmless() {
    let lenient = lying("x", "int", &[("trevni.checksum", "crc32")], &[(3, 3, 3, b"\x02\x04\x06\0\0\0\0")]);
    let Made(_folder, path) = &made(&file(3, &[lenient], &in_order));
    let mounted = Mounted::new(&[path], &[]);
    assert_eq!(mounted.text("columns/x.txt"), "1\n2\n3\n");
    let found = mounted.text(".hepfs/findings");
    assert_eq!(found.lines().filter(|line| line.contains("the checksum 0")).count(), 1, "{found}");
}

/// Nothing of these costs a byte in the file for a row, and all ask for very much memory.
#[test]
fn rows_that_cost_no_bytes_take_no_memory() {
    let rows = u64::from(u32::MAX);
    let sound = || column("n", "null", &[], &[(u32::MAX, b"")]);
    // A run of lengths for each 2^30 rows, and of nulls in lists in lists.
    let run = |ones: i64| varint(-(2 * (1 << 30) - 2 - ones));
    let zeros = [run(-1), run(-1), run(-1), varint(-(2 * ((1 << 30) - 1) - 3))].concat();
    let lists = column("zeros", "null", &[ARRAY], &[(u32::MAX, &zeros)]);
    let Made(_folder, path) = &made(&file(rows, &[sound(), lists], &in_order));
    let mounted = Mounted::new(&[path], &["--cache-size", "64MiB", "--max-chunk", "256MiB"]);
    let before = crate::support::status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(fs::read(mounted.join("columns/zeros.ndjson")).is_err());
    assert!(mounted.text(".hepfs/errors").contains("--max-chunk"), "{}", mounted.text(".hepfs/errors"));
    let length = varint(i64::from(i32::MAX));
    let parent = column("p", "null", &[ARRAY], &[(1, &length)]);
    let child = column("p.c", "null", &[ARRAY, ("trevni.parent", "p")], &[(1, &run(0))]);
    let Made(_other, path) = &made(&file(1, &[parent, child], &in_order));
    let other = Mounted::new(&[path], &["--cache-size", "64MiB", "--max-chunk", "256MiB"]);
    assert!(fs::read(other.join("columns/p.ndjson")).is_err());
    assert!(other.text(".hepfs/errors").contains("--max-chunk"), "{}", other.text(".hepfs/errors"));
    for (mounted, before) in [(&mounted, before), (&other, 0)] {
        let peak = crate::support::status(mounted.daemon(), "VmHWM:").unwrap();
        assert!(peak.saturating_sub(before) < 600 << 10, "{peak} KiB");
    }
}

/// Each parent is one more level; what is too deep costs itself alone.
#[test]
fn columns_may_be_deep_but_not_endless() {
    let names: Vec<&'static str> = (0..500).map(|at| &*format!("c{at}").leak()).collect();
    let columns: Vec<Column> = (0..names.len())
        .map(|at| {
            let above = at.checked_sub(1).map(|above| ("trevni.parent", names[above]));
            let more: Vec<_> = [ARRAY].into_iter().chain(above).collect();
            column(names[at], "int", &more, &[(1, b"\x02\x0e")])
        })
        .collect();
    let Made(_folder, path) = &made(&file(1, &columns, &in_order));
    let mounted = Mounted::new(&[path], &[]);
    let found = &lines(&mounted, "columns/c3.ndjson")[0]["c3"];
    assert_eq!(*found, json!([[[[7]]]]));
    assert!(mounted.text("metadata.json").contains("more than 24 parents deep"));
    assert!(mounted.text("table.ndjson").starts_with("{\"c0\":[{\"c0\":7,\"c1\":[{\"c1\":7,"));
}

#[test]
fn fields_of_avro_are_values_that_may_be_missing() {
    let mounted = Mounted::new(&[&data("trevni/avro.trv")], &[]);
    let types: Vec<Value> =
        metadata(&mounted)["columns"].as_array().unwrap().iter().map(|column| column["type"].clone()).take(8).collect();
    let expected = [
        "timestamp[ms, UTC]",
        "timestamp[s, UTC]",
        "dictionary<utf8>",
        "utf8",
        "list<struct<key: utf8, value: int32>>",
        "struct<x: float64, code: int32>",
        "struct<of: utf8, length: int64>",
        "list<struct<n: int32, u: struct<int: int32, string: utf8>>>",
    ];
    assert_eq!(types, expected);
    assert_eq!(mounted.text("where/color:eq:GREEN+day:ge:1970-07-01/columns/note.csv"), "note\n\"\"\nn2\n");
    assert_eq!(mounted.text("where/note:null/columns/at.txt"), "1970-10-28T00:00:00.007Z\n");
    let numbers = Mounted::new(&[&data("trevni/avro.trv")], &["--times=numbers"]);
    assert_eq!(numbers.text("columns/day.csv"), "day\n0\n\"\"\n200\n");
}

/// A schema that is not that of the columns is a finding, and the columns are shown as they are.
#[test]
fn schemas_of_avro_that_lie_are_not_followed() {
    let record = |fields: &str| format!("{{\"type\":\"record\",\"name\":\"R\",\"fields\":[{fields}]}}");
    let field = |kind: &str| record(&format!("{{\"name\":\"sound\",\"type\":{kind}}}"));
    // Each type has the one before it twice.
    let mut laughs = "\"int\"".to_owned();
    for level in 0..30 {
        let one = |name: &str, kind: &str| format!("{{\"name\":\"{name}\",\"type\":{kind}}}");
        let again = if level == 0 { "\"int\"".to_owned() } else { format!("\"L{}\"", level - 1) };
        laughs = format!(
            "{{\"type\":\"record\",\"name\":\"L{level}\",\"fields\":[{},{}]}}",
            one("a", &laughs),
            one("b", &again)
        );
    }
    let empty = (0..30).fold("{\"type\":\"record\",\"name\":\"E\",\"fields\":[]}".to_owned(), |inner, level| {
        let field = |name| format!("{{\"name\":\"{name}\",\"type\":\"X{level}\"}}");
        format!(
            "{{\"type\":\"record\",\"name\":\"Y{level}\",\"fields\":[{{\"name\":\"x\",\"type\":{{\"type\":\"record\",\
             \"name\":\"X{level}\",\"fields\":[{{\"name\":\"y\",\"type\":{inner}}}]}}}},{}]}}",
            field("z")
        )
    });
    let deep = format!("{}\"int\"{}", "{\"type\":\"array\",\"items\":".repeat(100), "}".repeat(100));
    for (schema, reason) in [
        ("{".to_owned(), "no JSON"),
        ("\"int\"".to_owned(), "not that of a record"),
        (record(""), "no column"),
        (field("\"long\""), "differs from the one in the file"),
        (field("[\"null\",\"int\"]"), "differs from the one in the file"),
        (field("\"R\""), "contains itself"),
        (field("\"Q\""), "there is no type"),
        (field("[\"null\"]"), "a union of nothing"),
        (field(&deep), ""),
        (field(&laughs), ""),
        (field(&empty), ""),
    ] {
        let Made(_folder, path) = &made(&saying(&[("avro.schema", &schema)], 3, &[sound()], &in_order));
        let mounted = Mounted::new(&[path], &[]);
        assert_eq!(mounted.text("table.csv"), "sound\n1\n2\n3\n", "{reason}");
        let found = metadata(&mounted)["findings"].to_string();
        assert!(found.contains("Avro: the columns are those") && found.contains(reason), "{reason}: {found}");
    }
    let Made(_folder, path) = &made(&saying(&[("avro.schema", &field("\"int\""))], 3, &[sound()], &in_order));
    assert_eq!(metadata(&Mounted::new(&[path], &[]))["findings"], json!([]));
}
