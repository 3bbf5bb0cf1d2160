//! Many files are one table: pyarrow, DuckDB, polars and pandas find in `.datasets` the rows that h5py finds in the
//! files, and which file each is of. Where files differ, it is what `pandas.concat` makes of them.

use std::ffi::OsStr;
use std::path::Path;

use crate::support::{Mounted, hepfs};
use crate::{checkout, python, script};

#[test]
fn readers_find_the_rows_of_many_files_as_one_table() {
    let folder = tempfile::tempdir().unwrap();
    script("datasets", [OsStr::new("write"), folder.path().as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script("datasets", [OsStr::new("check"), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
    let findings = mounted.text(".hepfs/findings");
    for said in [
        "it has a column \\\"extra\\\", which 5 other files lack: missing there",
        "it has no column \\\"label\\\": missing there",
        "\\\"number\\\" is Utf8, and Int64 elsewhere; the file is left out",
        "\\\"number\\\" is Int32, and is shown as Int64",
        "\\\"number\\\" is UInt32, and is shown as Int64",
    ] {
        assert_eq!(findings.matches(said).count(), 1, "{said}: {findings}");
    }
}

/// In a mount of Parquet alone, the directory of a table is a dataset by itself.
#[test]
fn a_directory_of_parquet_alone_is_a_dataset() {
    let mounted = Mounted::new(&[&checkout("tests/data/units.h5")], &["--formats", "parquet"]);
    let program = "
import sys, pandas, polars, pyarrow.dataset
place = sys.argv[1]
rows = pyarrow.dataset.dataset(place).to_table().to_pylist()
assert rows == polars.read_parquet(place).to_dicts() == pandas.read_parquet(place).to_dict('records'), rows
print(rows)";
    let read = python().args(["-c", program]).arg(mounted.join("t")).output().unwrap();
    let said = String::from_utf8_lossy(&read.stdout);
    let rows = "[{'mass': 1.0, 'time': 1.0, 'count': 1}, {'mass': 2.0, 'time': 2.0, 'count': 2}]";
    assert_eq!(said.trim(), rows, "{}", String::from_utf8_lossy(&read.stderr));
}

/// A folder of daily files, of which some differ.
fn days() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    daily(["write".as_ref(), folder.path().as_os_str()]);
    folder
}

fn daily<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) {
    script("daily", arguments).map(|said| print!("{said}")).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn files_that_differ_are_one_table_as_pandas_makes_it() {
    let folder = days();
    let mounted = Mounted::new(&[folder.path()], &["--formats=parquet"]);
    daily(["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()]);
    let names = ["log", "log.left_out.txt", "sales", "sales.left_out.txt", "ticks", "ticks.left_out.txt"];
    assert_eq!(mounted.names(".datasets"), names);
    let left_out = mounted.text(".datasets/sales.left_out.txt");
    let lines: Vec<&str> = left_out.lines().collect();
    assert!(
        matches!(lines.as_slice(), [text, cut]
        if *text == "day_20.h5: \"id\" is Utf8, and Int64 elsewhere"
            && cut.starts_with("day_25.h5: cannot be read as HDF5: the file is truncated: ")),
        "{left_out}"
    );
    let logged = mounted.log();
    assert!(
        logged.contains("WARN") && logged.contains("dataset /sales: 2 of 30 files are left out: day_20.h5: "),
        "{logged}"
    );
    let findings = mounted.text(".hepfs/findings");
    let cut = findings.lines().find(|line| line.contains("file/truncated")).unwrap_or_default();
    assert!(cut.contains("day_25.h5") && cut.contains("the file is truncated"), "{findings}");
}

/// NumPy: of 2^53 + 0 … 39 every other one is no float64.
#[test]
fn what_a_cast_does_not_keep_is_counted() {
    let folder = days();
    let mounted = Mounted::new(&[folder.path()], &[]);
    mounted.read(".datasets/ticks/file=day_15.h5/part-0.parquet");
    let findings = mounted.text(".hepfs/findings");
    let rounded = findings.lines().find(|line| line.contains("values/rounded")).unwrap_or_default();
    let said = ["day_15.h5", "\"path\":\"/ticks/value\"", "\"rows\":20,\"first_row\":1,"];
    assert!(said.iter().all(|said| rounded.contains(said)), "{findings}");
    let place = format!("{}:.datasets/ticks", folder.path().display());
    let checked = hepfs(["check", &place, "--cache-folder=none"]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(
        said.contains("day_15.h5:/ticks/value: warning: ") && said.contains("20 rows, the first is row 1"),
        "{said}"
    );
    // A file cannot be read.
    assert_eq!(checked.status.code(), Some(2));
}

#[test]
fn commands_have_the_rows_of_all_files() {
    let (folder, out) = (days(), tempfile::tempdir().unwrap());
    let place = |table: &str| format!("{}:.datasets/{table}", folder.path().display());
    let run = |arguments: &[&str], left_out: &str| {
        let done = hepfs(arguments.iter().chain(&["--cache-folder=none"]));
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && said.lines().count() == 1 && said.contains(left_out), "{arguments:?}: {said}");
        String::from_utf8(done.stdout).unwrap()
    };
    let path = |name: &str| out.path().join(name).display().to_string();
    let compare = |order: &str, arguments: &[&str]| {
        let all = [order, folder.path().to_str().unwrap()].into_iter().chain(arguments.iter().copied());
        daily(all.map(OsStr::new));
    };
    let two = "2 of 30 files are left out of ";
    for table in ["sales", "ticks", "log"] {
        let (file, said) = (path(&format!("{table}.parquet")), if table == "sales" { two } else { "1 of 30 files" });
        run(&["export", &place(table), "-o", &file], said);
        compare("parquet", &[table, &file]);
    }
    let files: Vec<String> = (1..=30).map(|day| format!("{}/day_{day:02}.h5", folder.path().display())).collect();
    let asked = "price > 150 and count < 4 and file != 'day_03.h5'";
    let named = ["query", "--table", "sales"].into_iter().chain(files.iter().map(String::as_str));
    for line in [vec!["query", &place("sales"), asked], named.chain([asked]).collect()] {
        let file = path("rows.csv");
        std::fs::write(&file, run(&line, two)).unwrap();
        compare("csv", &["sales", asked, &file]);
    }
    let named = ["export", "--table", "sales"].into_iter().chain(files.iter().map(String::as_str));
    let file = path("named.parquet");
    run(&named.chain(["-o", &file]).collect::<Vec<_>>(), two);
    compare("parquet", &["sales", &file]);
    let info = run(&["info", &place("sales")], two);
    assert!(info.starts_with("table /sales: 1 120 rows, 6 columns (dataset, 28 files)\n"), "{info}");
    assert!(info.contains("day_20.h5: left out: \"id\" is Utf8, and Int64 elsewhere"), "{info}");
    let first = run(&["query", &place("sales"), "order by price desc, id limit 1", "--columns", "file"], two);
    assert_eq!(first.lines().count(), 2, "{first}");
}

/// Every table of a file goes to a file of its own.
#[test]
fn a_folder_takes_every_table() {
    let (folder, out) = (days(), tempfile::tempdir().unwrap());
    let source = folder.path().join("day_01.h5").display().to_string();
    let target = out.path().join("tables").display().to_string();
    let export = |more: &[&str]| {
        hepfs(["export", &source, "--cache-folder=none", "-o", &format!("{target}/")].iter().chain(more))
    };
    assert_eq!(export(&["price > 5"]).status.code(), Some(1));
    let said = String::from_utf8(export(&[]).stdout).unwrap();
    let names = ["log", "sales", "ticks"];
    assert_eq!(said.lines().count(), names.len(), "{said}");
    for (line, name) in said.lines().zip(names) {
        let bytes = std::fs::metadata(format!("{target}/{name}.parquet")).unwrap().len();
        assert!(line.starts_with(&format!("{target}/{name}.parquet  40 rows  {bytes} bytes  ")), "{said}");
    }
    for name in names {
        let one = out.path().join("one.parquet").display().to_string();
        assert!(hepfs(["export", &format!("{source}:{name}"), "--cache-folder=none", "-o", &one]).status.success());
        let read = |path: &Path| std::fs::read(path).unwrap();
        assert!(read(one.as_ref()) == read(&Path::new(&target).join(format!("{name}.parquet"))), "{name}");
    }
    // What is there stays.
    assert_eq!(export(&[]).status.code(), Some(1));
}
