//! Options of `hepfs import`: search indexes, the memory that it takes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;

use crate::import::{import, lines, names, parquet, refused, succeeded};
use crate::support::{HEPFS, Mounted, family, hepfs, status};

fn verified(file: &str) -> Vec<String> {
    let said = succeeded(&hepfs(["index", "verify", file, "--cache-folder", "none"]));
    let mut kinds: Vec<String> = said
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[0], "verified", "{said}");
            format!("{} {}", words[1], words[4].trim_end_matches(','))
        })
        .collect();
    kinds.sort();
    kinds
}

#[test]
fn indexes_are_built_with_the_table_and_kept_by_appends() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    parquet(Path::new(&at("a.parquet")), 0, 3000);
    parquet(Path::new(&at("b.parquet")), 3000, 500);
    let (a, b, out) = (at("a.parquet"), at("b.parquet"), at("out.h5"));
    let said = succeeded(&import(&[&a, &out, "--index", "n:minmax,sorted", "--index", "t:bloom"]));
    assert_eq!(said.lines().filter(|line| line.ends_with("built")).count(), 3, "{said}");
    let all = ["CHUNK_BLOOM t", "CHUNK_MINMAX n", "SORTED_ROWS n"];
    assert_eq!(verified(&out), all);
    // Those that are not named are stale.
    let appended = import(&[&b, &out, "--mode", "append", "--index", "n:sorted"]);
    succeeded(&appended);
    let said = String::from_utf8_lossy(&appended.stderr).into_owned();
    assert!(said.contains("2 search indexes of the table are stale"), "{said}");
    parquet(Path::new(&at("c.parquet")), 3500, 500);
    let kept = import(&[&at("c.parquet"), &out, "--mode", "append", "--index", "keep"]);
    succeeded(&kept);
    assert!(kept.stderr.is_empty(), "{}", String::from_utf8_lossy(&kept.stderr));
    assert_eq!(verified(&out), all);
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("table/table.csv"), lines(0, 4000));
    drop(mounted);
    succeeded(&import(&[&a, &out, "--mode", "replace", "--index", "keep"]));
    assert_eq!(verified(&out), all);
}

#[test]
fn a_table_without_its_index_is_told_and_a_new_file_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.ndjson"), "{\"l\": [1, 2], \"n\": 3}\n").unwrap();
    let (a, out) = (at("a.ndjson"), at("out.h5"));
    refused(&import(&[&a, &out, "--index", "n:minmax", "--index", "l:minmax"]), &["search indexes are of columns"]);
    refused(&import(&[&a, &out, "--index", "x:minmax"]), &["--index x", "no such column"]);
    refused(&import(&[&a, &out, "--index", "n:minimax"]), &["minmax, sorted, bitmap, bloom"]);
    assert_eq!(names(folder.path()), ["a.ndjson"]);
    succeeded(&import(&[&a, &out]));
    let words = ["search indexes are of columns", "the table is written, but without this index"];
    refused(&import(&[&a, &format!("{out}:other"), "--index", "l:minmax"]), &words);
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("other/table.csv"), mounted.text("table/table.csv"));
}

#[test]
fn appended_rows_are_sorted_among_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.csv"), "n,t\n2,b\n,c\n1,a\n").unwrap();
    let (a, out) = (at("a.csv"), at("out.h5"));
    succeeded(&import(&[&a, &out]));
    succeeded(&import(&[&a, &out, "--mode", "append", "--sort-by", "n"]));
    succeeded(&import(&[&a, &out, "--mode", "append", "--sort-by", "t:desc"]));
    refused(&import(&[&a, &out, "--mode", "append", "--sort-by", "m"]), &["--sort-by m", "no such column"]);
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    assert_eq!(mounted.text("table/table.csv"), "n,t\n2,b\n,c\n1,a\n1,a\n2,b\n,c\n,c\n2,b\n1,a\n");
    drop(mounted);
    assert_eq!(names(folder.path()), ["a.csv", "out.h5"]);
}

/// Lists of columns are separated by commas, and names may have some.
#[test]
fn columns_with_commas_in_their_names_are_named_in_lists() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.csv"), "n,\"p,T\",a\n1,x,k\n1,y,k\n0,x,k\n").unwrap();
    let (a, out) = (at("a.csv"), at("out.h5"));
    let options = ["--sort-by", "n,p,T:desc", "--categorical", "p,T,a", "--index-columns", "a,p,T", "--dry-run"];
    let told = succeeded(&import(&[&[a.as_str(), &out], &options[..]].concat()));
    let is_label = |line: &&str| line.contains("int32 codes of labels") && line.ends_with("row label");
    let labels: Vec<&str> = told.lines().filter(is_label).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(labels, ["p,T", "a"], "{told}");
    refused(&import(&[&a, &out, "--sort-by", "n,p,U"]), &["--sort-by p: there is no such column"]);
    refused(&import(&[&a, &out, "--index-columns", "p,T,b"]), &["--index-columns b: there is no such column"]);
    succeeded(&import(&[&[a.as_str(), &out], &options[..6]].concat()));
    let place = format!("{out}:table");
    let query = |columns: &str| hepfs(["query", &place, "n >= 0", "--columns", columns, "--cache-folder", "none"]);
    assert_eq!(succeeded(&query("n,p,T")), "n,\"p,T\"\n0,x\n1,y\n1,x\n");
    assert_eq!(succeeded(&query("p,T,n")), "\"p,T\",n\nx,0\ny,1\nx,1\n");
    refused(&query("n,p,t"), &["--columns: there is no column \"p\"", "columns: a, p,T, n"]);
    let parts = at("parts");
    let by = ["--partition-by", "a,p,T", "--columns", "n,a", "--cache-folder", "none"];
    succeeded(&hepfs(["export", &place, "-o", &parts].iter().chain(&by)));
    assert_eq!(names(&Path::new(&parts).join("a=k")), ["p,T=x", "p,T=y"]);
    let build = |columns: &str| {
        hepfs(["index", "build", &place, "--column", columns, "--kind", "bitmap", "--cache-folder", "none"])
    };
    succeeded(&build("a,p,T"));
    assert_eq!(verified(&out), ["BITMAP a", "BITMAP p,T"]);
    refused(&build("p,T,A"), &["there is no column \"A\" (did you mean \"a\"?)"]);
}

#[test]
fn labels_have_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = "long ".repeat(40);
    let lines: String = (0..60_000).map(|row| format!("{row},{text}{row}\n")).collect();
    fs::write(at("a.csv"), format!("n,name\n{lines}")).unwrap();
    let (a, out) = (at("a.csv"), at("out.h5"));
    let words = ["column \"name\"", "different texts", "--categorical", "--memory"];
    refused(&import(&[&a, &out, "--categorical", "name", "--memory", "64M"]), &words);
    assert_eq!(names(folder.path()), ["a.csv"]);
    succeeded(&import(&[&a, &out, "--categorical", "name"]));
    refused(&import(&[&a, &out, "--memory", "1M"]), &["64M is the least"]);
}

/// Runs an import; the most memory that it and its worker took, each, in MB.
fn peaks(arguments: &[&str]) -> [u64; 2] {
    let mut child = Command::new(HEPFS).arg("import").args(arguments).stdout(Stdio::null()).spawn().unwrap();
    let mut peaks = [0, 0];
    let code = loop {
        for process in family(child.id()) {
            let peak = status(process, "VmHWM:").unwrap_or(0) >> 10;
            let of = &mut peaks[usize::from(process != child.id())];
            *of = peak.max(*of);
        }
        if let Some(code) = child.try_wait().unwrap() {
            break code;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(code.success());
    peaks
}

#[test]
fn an_import_keeps_to_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, out) = (at("a.parquet"), at("out.h5"));
    let wide = at("wide.csv");
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    let rows = 200_000_i64;
    let batch = |first: i64| {
        let column = |by: i64| (first..first + rows).map(|row| row * by % 1009).collect::<Int64Array>();
        let arrays = (1..).zip(names).map(|(by, name)| (name, Arc::new(column(by * 7)) as ArrayRef));
        RecordBatch::try_from_iter(arrays).unwrap()
    };
    let mut writer = ArrowWriter::try_new(fs::File::create(&input).unwrap(), batch(0).schema(), None).unwrap();
    // 128 MB of numbers.
    (0..5).for_each(|part| writer.write(&batch(part * rows)).unwrap());
    writer.close().unwrap();
    // A thousand columns that are filled and compressed together.
    let line: String = (0..1000).map(|column| format!("{}.5,", column % 9)).collect();
    let header: String = (0..1000).map(|column| format!("column {column},")).collect();
    let lines = format!("{}\n", line.trim_end_matches(',')).repeat(6000);
    fs::write(&wide, format!("{}\n{lines}", header.trim_end_matches(','))).unwrap();
    let job = |more: &[&'static str]| [&["--memory", "64M", "--mode", "replace", "--compression"], more].concat();
    for (source, arguments, room) in [
        (&input, job(&["lz4"]), 40),
        (&input, job(&["lz4", "--sort-by", "c,a:desc"]), 40),
        (&wide, job(&["zstd:3"]), 100),
    ] {
        let [own, worker] = peaks(&[&[source.as_str(), out.as_str()], &*arguments].concat());
        let fits = (20..64 + room).contains(&own) && (8..100).contains(&worker);
        assert!(fits, "{own} MB, and {worker} MB of the worker: {arguments:?}");
    }
}
