//! `hepfs import`: what is there before and after, whatever ends it; what is refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, LargeListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields};
use hepfs::h5::create::{self, CreatedObject, FillSetting, Storage};
use hepfs::h5::element::{AttributeValue, ElementType};
use parquet::arrow::ArrowWriter;

use crate::support::{HEPFS, LONG, Mounted, hepfs, run_within, tables_in};

/// A Parquet file of rows that count up from `first`.
pub(super) fn parquet(path: &Path, first: i64, rows: i64) {
    let numbers: Int64Array = (first..first + rows).map(|row| (row % 7 != 3).then_some(row * 3)).collect();
    let texts: StringArray = (first..first + rows).map(|row| (row % 5 != 1).then(|| format!("row {row}"))).collect();
    let columns = [("n", Arc::new(numbers) as ArrayRef), ("t", Arc::new(texts) as ArrayRef)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The lines that CSV of such rows has.
pub(super) fn lines(first: i64, rows: i64) -> String {
    let line = |row: i64| {
        let number = if row % 7 == 3 { String::new() } else { (row * 3).to_string() };
        let text = if row % 5 == 1 { String::new() } else { format!("row {row}") };
        format!("{number},{text}\n")
    };
    ["n,t\n".to_owned()].into_iter().chain((first..first + rows).map(line)).collect()
}

pub(super) fn import(arguments: &[&str]) -> Output {
    hepfs(["import"].into_iter().chain(arguments.iter().copied()))
}

pub(super) fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(super) fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no {word:?} in {said}"));
}

pub(super) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn several_files_of_any_format_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(folder.path().join("a.parquet").as_path(), 0, 3000);
    fs::write(at("b.csv"), lines(3000, 2000)).unwrap();
    let out = at("out.h5");
    succeeded(&import(&[&at("a.parquet"), &at("b.csv"), &format!("{out}:deep/er/run")]));
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("deep/er/run/table.csv"), lines(0, 5000));
    // Standard input, and into a file that has a table.
    let mut from = Command::new(HEPFS);
    from.args(["import", "-", "--format", "csv", &format!("{out}:other")]);
    let mut child = from.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines(7, 90).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    crate::support::until("the mount shows it", || mounted.join("other/table.csv").exists());
    assert_eq!(mounted.text("other/table.csv"), lines(7, 90));
    assert_eq!(mounted.text("deep/er/run/table.csv"), lines(0, 5000));
    assert_eq!(names(folder.path()), ["a.parquet", "b.csv", "out.h5"]);
}

/// As `export` writes it, and as `gzip` does; a file that is cut is an error.
#[test]
fn compressed_text_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, text) in [("a.csv", lines(0, 3000)), ("b.tsv", lines(0, 3000).replace(',', "\t"))] {
        fs::write(at(name), text).unwrap();
        assert!(Command::new("gzip").args(["-k", &at(name)]).status().unwrap().success());
        fs::remove_file(at(name)).unwrap();
        let out = at(&format!("{name}.h5"));
        succeeded(&import(&[&at(&format!("{name}.gz")), &format!("{out}:run")]));
        let exported = at(&format!("{name}.again.csv.gz"));
        succeeded(&hepfs(["export", &format!("{out}:run"), "-o", &exported]));
        succeeded(&import(&[&exported, &format!("{out}:again")]));
        let mounted = Mounted::new(&[Path::new(&out)], &[]);
        assert_eq!([mounted.text("run/table.csv"), mounted.text("again/table.csv")], [lines(0, 3000), lines(0, 3000)]);
    }
    let whole = fs::read(at("a.csv.gz")).unwrap();
    fs::write(at("cut.csv.gz"), &whole[..whole.len() / 2]).unwrap();
    refused(&import(&[&at("cut.csv.gz"), &format!("{}:run", at("cut.h5"))]), &["cut.csv.gz"]);
    assert!(!Path::new(&at("cut.h5")).exists());
}

#[test]
fn what_is_refused_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(folder.path().join("a.parquet").as_path(), 0, 10);
    fs::write(at("b.csv"), "n,other\n1,2\n").unwrap();
    fs::write(at("c.parquet"), b"PAR1 and nothing else").unwrap();
    let out = at("out.h5");
    refused(&import(&[&at("a.parquet"), &at("b.csv"), &out]), &["b.csv", "\"other\" Int64, not \"t\" Utf8"]);
    refused(&import(&[&at("c.parquet"), &out]), &["c.parquet"]);
    refused(&import(&[&at("a.parquet"), &out, "--fill", "n=9"]), &["\"n\"", "--fill", "9"]);
    refused(&import(&[&at("a.parquet"), &out, "--fill", "x=9"]), &["no such column"]);
    refused(&import(&[&at("a.parquet"), &out, "--compression", "zstd:99"]), &["zstd"]);
    let said = succeeded(&import(&[&at("a.parquet"), &out, "--dry-run"]));
    assert!(said.contains("int64, missing -9223372036854775807") && said.contains("10 rows"), "{said}");
    let csv: String = (0..100).map(|row| format!("{row},{}\n", row % 3)).collect();
    fs::write(at("d.csv"), format!("n,label\n{}", csv.replace(",", ",l"))).unwrap();
    let said = succeeded(&import(&[&at("d.csv"), &out, "--dry-run", "--categorical", "auto"]));
    assert!(said.contains("label  Utf8  →  int32 codes of labels"), "{said}");
    fs::remove_file(at("d.csv")).unwrap();
    assert_eq!(names(folder.path()), ["a.parquet", "b.csv", "c.parquet"]);
    succeeded(&import(&[&at("a.parquet"), &out]));
    let before = fs::read(&out).unwrap();
    refused(&import(&[&at("a.parquet"), &out]), &["a table is there", "--mode append", "--mode replace"]);
    assert_eq!(fs::read(&out).unwrap(), before);
    // What is no table of the kind that is written is never replaced.
    for (name, path) in [("compound_records.h5", "chunked"), ("anndata.h5", "obs"), ("arrays.h5", "")] {
        fs::copy(crate::data(name), at("other.h5")).unwrap();
        for mode in ["replace", "append"] {
            let to = format!("{}:{path}", at("other.h5"));
            refused(&import(&[&at("a.parquet"), &to, "--mode", mode]), &["something else is there"]);
        }
        assert_eq!(fs::read(at("other.h5")).unwrap(), fs::read(crate::data(name)).unwrap());
    }
    fs::remove_file(at("other.h5")).unwrap();
    assert_eq!(names(folder.path()), ["a.parquet", "b.csv", "c.parquet", "out.h5"]);
}

#[test]
fn appended_rows_follow_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = at("out.h5");
    let (mut first, mut rows) = (0, 3000);
    for part in 0..3 {
        let name = at(&format!("{part}.parquet"));
        parquet(Path::new(&name), first, rows);
        let said = succeeded(&import(&[&name, &out, "--mode", "append", "--chunk-rows", "1000"]));
        assert!(said.contains(&format!("{rows} rows")), "{said}");
        (first, rows) = (first + rows, 500 + 13 * part);
    }
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("table/table.csv"), lines(0, first));
    assert!(hepfs(["check", &out, "--cache-folder", "none"]).status.success());
    // What does not fit is told, and changes nothing.
    let before = fs::read(&out).unwrap();
    fs::write(at("a.csv"), "n,u\nx,1\n").unwrap();
    let said = import(&[&at("a.csv"), &out, "--mode", "append"]);
    let words = [
        "\"n\" Utf8: the table stores Int64",
        "\"u\" Int64: the table has no such column",
        "\"t\": the table has this",
    ];
    refused(&said, &words);
    fs::write(at("b.csv"), format!("n,t\n1,{}\n", "long".repeat(9))).unwrap();
    let longer = ["\"t\"", "36 bytes is longer than the 8", "--mode replace", "--string vlen"];
    refused(&import(&[&at("b.csv"), &out, "--mode", "append"]), &longer);
    fs::write(at("d.ndjson"), "{\"n\":1,\"t\":\"x\\u0000\"}\n").unwrap();
    refused(&import(&[&at("d.ndjson"), &out, "--mode", "append"]), &["\"t\"", "NUL", "--mode replace"]);
    // A table of April becomes one of July, to which rows can be appended.
    fs::copy(crate::data("seed_11_1.h5"), at("april.h5")).unwrap();
    let april = format!("{}:april", at("april.h5"));
    succeeded(&import(&[&at("0.parquet"), &april, "--revision", "april"]));
    refused(&import(&[&at("1.parquet"), &april, "--mode", "append"]), &["NROWS", "hepfs convert"]);
    let july = format!("{}:july", at("july.h5"));
    succeeded(&hepfs(["convert", &april, &july, "--cache-folder", "none"]));
    succeeded(&import(&[&at("1.parquet"), &july, "--mode", "append"]));
    let mounted = Mounted::new(&[Path::new(&at("july.h5"))], &[]);
    assert_eq!(mounted.text("july/table.csv"), lines(0, 3500));
    fs::write(at("c.csv"), "n,t\n-9223372036854775807,x\n").unwrap();
    refused(&import(&[&at("c.csv"), &out, "--mode", "append"]), &["\"n\"", "missing"]);
    assert_eq!(fs::read(&out).unwrap(), before);
}

#[test]
fn rows_are_not_appended_to_a_table_that_claims_all_there_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = at("out.h5");
    let write = |root: &CreatedObject<'_>| {
        let table = root.group("table")?;
        table.attribute("CLASS", &AttributeValue::ascii("COLUMN_TABLE"))?;
        table.attribute("VERSION", &AttributeValue::ascii("1.0"))?;
        table.attribute("NROWS", &AttributeValue::number(u64::MAX))?;
        let items = table.group("items")?;
        items.attribute("CLASS", &AttributeValue::ascii("LIST_COLUMN"))?;
        items.attribute("KIND", &AttributeValue::ascii("OFFSETS"))?;
        let growing = Storage::growing(1, 1024);
        items.dataset("OFFSETS", &ElementType::Unsigned(8), &growing, &FillSetting::Unset)?.write(0, &[0_u64])?;
        items.dataset("VALUES", &ElementType::Signed(8), &growing, &FillSetting::Unset)?.write(0, &[1_i64])
    };
    create::file::<create::Error>(Path::new(&out), write).unwrap();
    fs::write(at("few.ndjson"), "{\"items\":[3]}\n").unwrap();
    let before = fs::read(&out).unwrap();
    let said = import(&[&at("few.ndjson"), &out, "--mode", "append"]);
    refused(&said, &["\"items\"", "1 elements of 18446744073709551615"]);
    assert_eq!(fs::read(&out).unwrap(), before);
}

#[test]
fn indexes_of_a_table_that_grows_are_stale() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = at("out.h5");
    parquet(Path::new(&at("a.parquet")), 0, 3000);
    succeeded(&import(&[&at("a.parquet"), &out]));
    let place = format!("{out}:table");
    succeeded(&hepfs(["index", "build", &place, "--column", "n", "--kind", "minmax"]));
    parquet(Path::new(&at("b.parquet")), 3000, 100);
    let appended = import(&[&at("b.parquet"), &out, "--mode", "append"]);
    succeeded(&appended);
    let said = String::from_utf8_lossy(&appended.stderr).into_owned();
    assert!(said.contains("1 search indexes of the table are stale"), "{said}");
    assert!(succeeded(&hepfs(["index", "list", &out, "--cache-folder", "none"])).starts_with("stale"));
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("table/table.csv"), lines(0, 3100));
}

/// A root that is a table hides none below it, and the current version stands where it is shown.
#[test]
fn each_table_of_a_file_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.h5").to_str().unwrap().to_owned();
    for (name, tables) in [
        ("hostile/root_table.h5", vec!["/alpha", "/g/beta", "/table"]),
        ("versioned_flat.h5", vec!["/table"]),
        (
            "versioned.h5",
            vec!["/empty", "/filled", "/made", "/nested/deep/er", "/numbers", "/packed", "/records", "/text"],
        ),
    ] {
        fs::remove_file(&out).ok();
        let source = crate::data(name);
        let said =
            succeeded(&hepfs(["convert", source.to_str().unwrap(), &out, "--cache-folder", "none", "--dry-run"]));
        let mut told: Vec<_> =
            said.lines().filter_map(|line| Some(line.split_once(&format!("  →  {out}:"))?.1)).collect();
        told.sort_unstable();
        assert!(told == tables && !Path::new(&out).exists(), "{name}: {said}");
        succeeded(&hepfs(["convert", source.to_str().unwrap(), &out, "--cache-folder", "none"]));
        let said = String::from_utf8(hepfs(["info", &out, "--cache-folder", "none"]).stdout).unwrap();
        let mut found: Vec<_> = tables_in(&said).into_iter().map(|(path, _)| format!("/{path}")).collect();
        found.sort_unstable();
        assert_eq!(found, tables, "{name}: {said}");
        if let Some(last) = tables.last().filter(|table| **table != "/table") {
            fs::remove_file(&out).unwrap();
            let source = format!("{}:{}", source.display(), last);
            succeeded(&hepfs(["convert", &source, &out, "--cache-folder", "none"]));
            let said = String::from_utf8(hepfs(["info", &out, "--cache-folder", "none"]).stdout).unwrap();
            assert!(tables_in(&said).iter().any(|(path, _)| format!("/{path}") == *last), "{said}");
        }
        // What `info` calls a table is what commands know it by.
        let said =
            String::from_utf8(hepfs(["info", source.to_str().unwrap(), "--cache-folder", "none"]).stdout).unwrap();
        for (path, _) in tables_in(&said) {
            let place = format!("{}:{path}", source.display());
            succeeded(&hepfs(["query", &place, "limit 1", "--cache-folder", "none"]));
        }
    }
}

/// The table is what was asked for, not the line that tells of it.
#[test]
fn a_reader_that_went_away_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(folder.path().join("a.parquet").as_path(), 0, 30);
    let unheard = |arguments: &[&str]| {
        let mut child =
            Command::new(HEPFS).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        child.wait().unwrap().code()
    };
    let (imported, converted) = (at("imported.h5"), at("converted.h5"));
    assert_eq!(unheard(&["import", &at("a.parquet"), &imported, "--index", "n:minmax"]), Some(0));
    let several = crate::data("versioned.h5");
    assert_eq!(unheard(&["convert", several.to_str().unwrap(), &converted, "--cache-folder", "none"]), Some(0));
    let checked = succeeded(&hepfs(["check", &imported, &converted, "--cache-folder", "none"]));
    assert!(checked.contains("1 tables, 0 errors") && checked.contains("8 tables, 0 errors"), "{checked}");
    // What failed is told by the exit code.
    let nowhere = format!("{imported}:nowhere");
    for refused in [["query", &nowhere, "n > 1"], ["import", &at("none.parquet"), &imported]] {
        assert_eq!(unheard(&refused), Some(1), "{refused:?}");
    }
}

/// What stands for a missing struct has fields that no value has.
#[test]
fn missing_structs_break_no_rule() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, 2, 3])),
        Arc::new(StringArray::from(vec!["a", "b", "c"])),
        Arc::new(BooleanArray::from(vec![true, false, true])),
    ];
    let names = ["x", "y", "z"].iter().zip(&arrays);
    let fields: Fields = names.map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let structs = StructArray::new(fields, arrays, Some(vec![true, false, true].into()));
    let item = Arc::new(Field::new_list_field(structs.data_type().clone(), true));
    let ends = OffsetBuffer::new(vec![0, 2, 2, 3].into());
    let lists = LargeListArray::new(item, ends, Arc::new(structs.clone()), None);
    let columns = [("one", Arc::new(structs) as ArrayRef), ("many", Arc::new(lists))];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(at("a.parquet")).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let out = at("out.h5");
    succeeded(&import(&[&at("a.parquet"), &out]));
    let checked = succeeded(&hepfs(["check", &out, "--cache-folder", "none"]));
    assert!(checked.contains("1 tables, 0 errors, 0 warnings"), "{checked}");
}

/// Row labels are those of the table that is read, or of the frame whose index they were.
#[test]
fn row_labels_stay_row_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sample = crate::data("seed_11_1.h5");
    let (converted, exported, imported) = (at("converted.h5"), at("exported.parquet"), at("imported.h5"));
    succeeded(&hepfs(["convert", sample.to_str().unwrap(), &converted, "--cache-folder", "none"]));
    let place = format!("{}:my_table", sample.display());
    succeeded(&hepfs(["export", &place, "-o", &exported, "--cache-folder", "none"]));
    succeeded(&import(&[&exported, &imported]));
    for file in [&converted, &imported] {
        let said = succeeded(&hepfs(["info", file, "--cache-folder", "none"]));
        let line = said.lines().find(|line| line.trim_start().starts_with("row_id")).unwrap();
        assert!(line.contains("row label"), "{said}");
        succeeded(&hepfs(["check", file, "--cache-folder", "none"]));
    }
    // Lists label no rows.
    fs::write(at("lists.ndjson"), "{\"a\":[1,2],\"b\":1}\n").unwrap();
    let lists = at("lists.h5");
    refused(&import(&[&at("lists.ndjson"), &lists, "--index-columns", "a"]), &["--index-columns a", "label no rows"]);
    assert!(!Path::new(&lists).exists());
    succeeded(&import(&[&at("lists.ndjson"), &lists, "--index-columns", "b,b"]));
    succeeded(&hepfs(["check", &lists, "--cache-folder", "none"]));
    // What the user says counts.
    succeeded(&import(&[&exported, &imported, "--mode", "replace", "--index-columns", "ts"]));
    let said = succeeded(&hepfs(["info", &imported, "--cache-folder", "none"]));
    assert_eq!(said.matches("row label").count(), 1, "{said}");
}

/// JSON has no numbers for them, and a text may say the same.
#[test]
fn nan_of_ndjson_is_text_unless_its_type_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let lines = "{\"x\":1.5}\n{\"x\":\"NaN\"}\n{\"x\":\"-Infinity\"}\n";
    fs::write(at("a.ndjson"), lines).unwrap();
    let (a, out) = (at("a.ndjson"), at("out.h5"));
    succeeded(&import(&[&a, &out]));
    succeeded(&import(&[&a, &format!("{out}:typed"), "--type", "x=float64"]));
    let query = |table: &str, format: &str| {
        let place = format!("{out}:{table}");
        succeeded(&hepfs(["query", &place, "limit 9", "--format", format, "--cache-folder", "none"]))
    };
    assert_eq!(query("table", "ndjson"), lines.replace("1.5", "\"1.5\""));
    assert_eq!(query("typed", "ndjson"), lines);
    assert_eq!(query("typed", "csv"), "x\n1.5\nNaN\n-inf\n");
}

/// Times of CSV are instants where all tell how far their clocks are ahead of UTC.
#[test]
fn zones_of_csv_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let csv = "zoned,plain,mixed,named\n\
               2026-01-01T00:00:00+02:00,2026-01-01 00:00:00,2026-01-01T00:00:00Z,2026-01-01 12:00:00 Europe/Paris\n\
               2026-01-01T00:00:00Z,,2026-01-01T00:00:00,2026-01-01 12:00:00 UTC\n,2026-01-02 00:00:00,,\n";
    fs::write(at("a.csv"), csv).unwrap();
    succeeded(&import(&[&at("a.csv"), &at("out.h5")]));
    let said = succeeded(&hepfs(["info", &at("out.h5"), "--cache-folder", "none"]));
    for (name, shown) in
        [("zoned", "timestamp[s, UTC]"), ("plain", "timestamp[s]"), ("mixed", "utf8"), ("named", "timestamp[s, UTC]")]
    {
        let line = said.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.contains(shown), "{said}");
    }
    let place = format!("{}:table", at("out.h5"));
    let rows = succeeded(&hepfs(["query", &place, "limit 9", "--cache-folder", "none"]));
    let first = "2025-12-31T22:00:00Z,2026-01-01T00:00:00,2026-01-01T00:00:00Z,2026-01-01T11:00:00Z";
    assert_eq!(rows.lines().nth(1), Some(first), "{rows}");
}

#[test]
fn tables_of_other_kinds_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.h5").to_str().unwrap().to_owned();
    let mut left_out = 0;
    for name in ["pandas3.h5", "anndata.h5", "july_lists.h5", "pytables.h5", "compound_records.h5"] {
        fs::remove_file(&out).ok();
        let source = crate::data(name);
        let done = hepfs(["convert", source.to_str().unwrap(), &out, "--cache-folder", "none"]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{name}: {said}");
        left_out += said.matches("is left out: ").count();
        let (before, after) = (Mounted::new(&[&source], &[]), Mounted::new(&[Path::new(&out)], &[]));
        for line in String::from_utf8(done.stdout).unwrap().lines() {
            let table = line.split("  ").next().unwrap().rsplit_once(":/").unwrap().1;
            // Nothing lies below a table: what did has points in its name.
            let own = if before.join(table).exists() { table.to_owned() } else { table.replace('.', "/") };
            // What HEP001 has no place for is named by its column, and the others are there.
            // One that was guessed has no such folder.
            let is_declared = before.join(format!("{own}/columns")).exists();
            let columns = fs::read_dir(after.join(format!("{table}/columns"))).unwrap().filter(|_| is_declared);
            for file in columns.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
                let text = |mounted: &Mounted, table: &str| mounted.text(format!("{table}/columns/{file}"));
                let column = file.strip_suffix(".txt");
                // HDF5's strings end where a NUL is.
                if column.is_some_and(|column| !said.contains(&format!("column {column:?}: a text has a NUL"))) {
                    // NaN that is missing has its name in the text of one column, a fill value of HEP001 has none.
                    let is_frame = ["pandas3.h5", "anndata.h5"].contains(&name);
                    let unnamed = |line| if is_frame && line == "NaN" { "" } else { line };
                    let (found, wanted) = (text(&after, table), text(&before, &own));
                    let wanted: Vec<&str> = wanted.lines().map(unnamed).collect();
                    assert_eq!(found.lines().collect::<Vec<_>>(), wanted, "{name} {table} {file}");
                }
            }
            if !said.contains(&format!("/{own}: column")) && !said.contains("a text has a NUL") {
                let read = |mounted: &Mounted, table: &str| mounted.text(format!("{table}/table.csv"));
                assert_eq!(read(&after, table), read(&before, &own), "{name} {table}");
            }
        }
        assert!(hepfs(["check", &out, "--cache-folder", "none"]).status.success(), "{name}");
        refused(&hepfs(["convert", &out, &format!("{out}:copy"), "--cache-folder", "none"]), &["while it is written"]);
    }
    assert!(left_out > 0);
}

/// Dies at every other write of a command that changes `base`; `states` are what the mount may show of the table then,
/// each of which must be met.
#[cfg(debug_assertions)]
fn dies(base: &str, arguments: &[&str], table: &str, states: &[String]) {
    let out = format!("{}.copy.h5", base.trim_end_matches(".h5"));
    let target = format!("{out}:{table}");
    let mut met = vec![0; states.len()];
    for death in 1.. {
        fs::copy(base, &out).unwrap();
        let mut command = Command::new(HEPFS);
        command.arg("import").args(arguments).arg(&target);
        let output = run_within(LONG, command.env("HEPFS_REHEARSED_DEATH", death.to_string()));
        let is_over = output.status.success();
        let shown = || {
            let csv = format!("{out}.csv");
            succeeded(&hepfs(["export", &target, "--cache-folder", "none", "-o", &csv]));
            fs::read_to_string(&csv).unwrap()
        };
        let before = shown();
        let state = states.iter().position(|state| *state == before);
        met[state.unwrap_or_else(|| panic!("death {death}: {}", &before[..before.len().min(300)]))] += 1;
        // The next one that writes finds a file that it can go on with.
        if !is_over {
            let other = format!("{out}:next");
            let said = hepfs(["import", arguments[0], &other]);
            assert!(said.status.success(), "death {death}: {}", String::from_utf8_lossy(&said.stderr));
            let after = shown();
            assert!(states.contains(&after), "death {death}");
        } else {
            break;
        }
    }
    assert!(met.iter().all(|count| *count > 0), "{met:?}");
}

/// There is no rehearsal in an optimised program.
#[cfg(debug_assertions)]
#[test]
fn whatever_write_an_append_or_a_replacement_dies_at_the_table_is_the_old_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(Path::new(&at("a.parquet")), 0, 2500);
    parquet(Path::new(&at("b.parquet")), 2500, 1700);
    let base = at("base.h5");
    for compression in ["zstd:3", "none"] {
        fs::remove_file(&base).ok();
        succeeded(&import(&[&at("a.parquet"), &base, "--chunk-rows", "1000", "--compression", compression]));
        let append = [&at("b.parquet"), "--mode", "append"];
        dies(&base, &append, "table", &[lines(0, 2500), lines(0, 4200)]);
    }
    let replace = [&at("b.parquet"), "--mode", "replace"];
    dies(&base, &replace, "table", &[lines(0, 2500), lines(2500, 1700)]);
}

/// There is no rehearsal in an optimised program.
#[cfg(debug_assertions)]
#[test]
fn whatever_write_it_dies_at_the_file_has_the_table_or_has_it_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(folder.path().join("a.parquet").as_path(), 0, 5000);
    parquet(folder.path().join("b.parquet").as_path(), 100, 2000);
    let (out, base) = (at("out.h5"), at("base.h5"));
    succeeded(&import(&[&at("a.parquet"), &base]));
    let (mut with, mut without) = (0, 0);
    for death in (1..).step_by(2) {
        fs::copy(&base, &out).unwrap();
        let mut command = Command::new(HEPFS);
        command.args(["import", &at("b.parquet"), &format!("{out}:b"), "--chunk-rows", "512"]);
        let output = run_within(LONG, command.env("HEPFS_REHEARSED_DEATH", death.to_string()));
        if output.status.success() {
            break;
        }
        let mounted = Mounted::new(&[Path::new(&out)], &[]);
        assert_eq!(mounted.text("table/table.csv"), lines(0, 5000), "death {death}");
        match mounted.names("").contains(&"b".to_owned()) {
            true => {
                assert_eq!(mounted.text("b/table.csv"), lines(100, 2000), "death {death}");
                with += 1;
            }
            false => without += 1,
        }
        fs::remove_file(at("out.h5.hepfs-journal")).ok();
    }
    assert!(without > 3, "{with} {without}");
}
