//! Selections by paths below `where/` and by `hepfs query`, checked against a second implementation in Python
//! (`scripts/fixtures/selection.py`).

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use crate::check::check;
use crate::data;
use crate::support::{self, LONG, Mounted, hepfs, run_within};

fn source() -> PathBuf {
    data("selections.h5")
}

/// What `hepfs query` answers for a table of the committed sample.
fn query(table: &str, arguments: &[&str]) -> std::process::Output {
    let place = format!("{}:{table}", source().display());
    let line = ["query", &place, "--cache-folder", "none"];
    hepfs(line.iter().chain(arguments))
}

#[test]
fn a_selection_holds_the_rows_that_python_finds() {
    check(&data(""));
}

#[test]
fn a_selection_has_what_its_table_has() {
    let mounted = Mounted::new(&[&source()], &[]);
    assert_eq!(mounted.names("t3/where"), ["values.txt"]);
    let selected = "t3/where/row:between:10,19";
    // Of selected rows there is no page.
    let files: Vec<String> = mounted.names("t3").into_iter().filter(|name| name != "index.html").collect();
    assert_eq!(mounted.names(selected), files);
    assert_eq!(mounted.names(format!("{selected}/columns")), mounted.names("t3/columns"));
    assert_eq!(mounted.names(format!("{selected}/where")), ["values.txt"]);

    // Every file holds what the same rows of the whole table have.
    let all = mounted.text("t3/table.csv");
    let lines: Vec<&str> = all.lines().collect();
    let expected = [&lines[..1], &lines[11..21]].concat().join("\n") + "\n";
    assert_eq!(mounted.text(format!("{selected}/table.csv")), expected);
    let ndjson = mounted.text("t3/table.ndjson");
    let expected: Vec<&str> = ndjson.lines().skip(10).take(10).collect();
    assert_eq!(mounted.text(format!("{selected}/table.ndjson")).lines().collect::<Vec<_>>(), expected);
    let raw = mounted.read("t3/columns/row.raw");
    assert_eq!(mounted.read(format!("{selected}/columns/row.raw")), raw[80..160]);
    for name in mounted.names("t3/columns") {
        let bytes = mounted.read(format!("{selected}/columns/{name}"));
        let size = std::fs::metadata(mounted.join(format!("{selected}/columns/{name}"))).unwrap().len();
        assert_eq!(bytes.len() as u64, size, "{name}");
    }
    let metadata: Value = serde_json::from_slice(&mounted.read(format!("{selected}/metadata.json"))).unwrap();
    assert_eq!((&metadata["rows"], &metadata["selection"]), (&10.into(), &"row:between:10,19".into()));

    // Conditions on conditions.
    let further = mounted.text(format!("{selected}/row:ge:15/where/row:lt:17+row:eq:19/columns/row.csv"));
    assert_eq!(further, "row\n15\n16\n19\n");
    let explained = mounted.text(".hepfs/explain");
    let further: Value = serde_json::from_str(explained.lines().next().unwrap()).unwrap();
    assert_eq!(further["where"], "row:between:10,19/row:ge:15/row:lt:17+row:eq:19");
    assert_eq!((&further["rows_matched"], &further["blocks_decoded"]), (&3.into(), &1.into()));
    assert_eq!(mounted.text(".hepfs/errors"), "");
}

#[test]
fn a_column_that_cannot_be_written_is_named() {
    let place = format!("{}:events", data("july_lists.h5").display());
    for format in ["csv", "ndjson", "parquet", "arrow"] {
        let output = hepfs(["query", &place, "id is not null", "--cache-folder", "none", "--format", format]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !output.stdout.is_empty(), "{format}: {said}");
        assert_eq!(said, "hepfs: column \"later\" is left out: KIND \"PACKED\" is not known\n", "{format}");
    }
    let output = hepfs(["query", &place, "id is not null", "--cache-folder", "none", "--columns", "id,later"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(said.contains("column \"later\": KIND \"PACKED\" is not known"), "{said}");
}

/// The directories of tables below a directory.
fn tables(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![root.to_owned()];
    while let Some(directory) = queue.pop() {
        if directory.join("where/values.txt").is_file() {
            found.push(directory.clone());
        }
        for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let is_view = [".hepfs", "columns", "where"].iter().any(|view| entry.file_name() == *view);
            if entry.file_type().unwrap().is_dir() && !is_view {
                queue.push(entry.path());
            }
        }
    }
    found
}

/// Every type of every committed file, in every view whose bytes do not tell where rows come from.
#[test]
fn a_selection_of_all_rows_has_the_bytes_of_the_table() {
    let mut compared = 0;
    for entry in std::fs::read_dir(data("")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if !name.ends_with(".h5") || !data(&name.replace(".h5", ".expected.json")).exists() {
            continue;
        }
        let mounted = Mounted::new(&[&entry.path()], &["--parquet-stats=off"]);
        for table in tables(mounted.path()) {
            let values = std::fs::read_to_string(table.join("where/values.txt")).unwrap();
            let line = values.lines().skip_while(|line| *line != "Columns:").nth(1).unwrap();
            let column = line.trim_start().rsplit_once("  ").unwrap().0.split("  ").next().unwrap();
            let segment = format!("{column}:valid+{column}:null");
            if segment.len() > 255 {
                continue;
            }
            let all = table.join("where").join(segment);
            // Columns of a table by shape have their files beside it, in other forms.
            for part in ["", "columns"].into_iter().filter(|part| table.join(part).is_dir()) {
                for name in support::names(&all.join(part)) {
                    let path = all.join(part).join(&name);
                    let is_same =
                        [".csv", ".ndjson", ".txt", ".raw", ".npy", ".arrow"].iter().any(|end| name.ends_with(end));
                    if !is_same || path.is_dir() {
                        continue;
                    }
                    let (selected, whole) = (std::fs::read(&path), std::fs::read(table.join(part).join(&name)));
                    // What is damaged there is damaged here.
                    match whole {
                        Ok(whole) => assert!(selected.unwrap() == whole, "{}", path.display()),
                        Err(_) => assert!(selected.is_err(), "{}", path.display()),
                    }
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "only {compared} files were compared");
}

#[test]
fn nonsense_is_not_there_and_explained() {
    let mounted = Mounted::new(&[&source()], &[]);
    for (segment, expected) in [
        ("energy:gt:5", "there is no column \"energy\"; columns: row, color, f, f%2"),
        ("row:above:5", "operators: eq ne"),
        ("row:eq:red", "\"red\" is no value of a column of integers"),
    ] {
        let error = std::fs::metadata(mounted.join(format!("t3/where/{segment}"))).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.lines().last().unwrap().contains(expected), "{errors}");
    }
    let values = mounted.text("t3/where/values.txt");
    for expected in [
        "eq ne lt",
        "where/row:gt:5/table.csv",
        "color  text\nwhere/color:eq:12\n",
        "flag  booleans\nwhere/flag:eq:false\n",
    ] {
        assert!(values.contains(expected), "no {expected} in {values}");
    }
}

/// DuckDB, Python's `glob` and bash look up `**/table.parquet` in every directory, `where/` too.
#[test]
fn names_that_programs_try_everywhere_are_no_errors() {
    let mounted = Mounted::new(&[&source()], &[]);
    for name in [
        "table.parquet",
        "table.csv",
        "columns",
        "where",
        "index.html",
        "metadata.json",
        "row.parquet",
        "row.npy",
        ".git",
        ".hidden",
    ] {
        for folder in ["t3/where", "t3/where/row:lt:5/where"] {
            let error = std::fs::metadata(mounted.join(format!("{folder}/{name}"))).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{folder}/{name}");
        }
    }
    assert_eq!(mounted.text(".hepfs/errors"), "");
    std::fs::metadata(mounted.join("t3/where/.row:gt:5")).unwrap_err();
    assert!(mounted.text(".hepfs/errors").contains("there is no column \".row\""));
}

#[test]
fn a_lookup_is_free() {
    let mounted = Mounted::new(&[&source()], &[]);
    mounted.names("t5/where/row:gt:5");
    mounted.names("t5/where/row:gt:5/columns");
    assert_eq!(mounted.text(".hepfs/explain"), "");
    assert!(mounted.text(".hepfs/stats").contains("bytes_decoded 0\n"));
}

/// Directories below each other do not hold the conditions of all directories above them.
#[test]
fn paths_of_very_many_conditions_take_little_memory_and_have_an_end() {
    let mounted = Mounted::new(&[&source()], &["--cache-size", "64M"]);
    let path = |number: usize, depth: usize| {
        let segments = (0..depth).map(|segment| format!("row:ge:{}", (number * 13 + segment) % 16));
        format!("t3/where/{}", segments.collect::<Vec<_>>().join("/"))
    };
    assert_eq!(mounted.text(format!("{}/row:lt:17/columns/row.csv", path(0, 63))), "row\n15\n16\n");
    let before = support::status(mounted.daemon(), "VmRSS:").unwrap();
    for number in 0..200 {
        assert!(std::fs::metadata(mounted.join(path(number, 64))).unwrap().is_dir());
    }
    let grown = support::status(mounted.daemon(), "VmRSS:").unwrap().saturating_sub(before);
    assert!(grown < 24 << 10, "{grown} KiB for 12,800 directories");
    // As many again, in three names each and one for `where/`.
    for number in 0..50 {
        let names = path(number, 64).replace("/row:ge:", "/where/row/ge/").replacen("where/where/", "where/", 1);
        assert!(std::fs::metadata(mounted.join(names)).unwrap().is_dir());
    }
    let grown = support::status(mounted.daemon(), "VmRSS:").unwrap().saturating_sub(before);
    assert!(grown < 48 << 10, "{grown} KiB for 25,600 directories");

    assert_eq!(mounted.text(".hepfs/errors"), "");
    let of_all_bytes = std::iter::repeat_n(format!("row:in:{}0", "1,".repeat(123)), 17).collect::<Vec<_>>().join("/");
    for further in [path(0, 65), path(0, 64) + "/where/row:ge:1", format!("t3/where/row:ge:1/{of_all_bytes}")] {
        // The kernel takes paths of at most 4,096 bytes.
        let mut folder = std::fs::File::open(mounted.path()).unwrap();
        let outcome = further.split('/').try_for_each(|name| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?.into();
            Ok(())
        });
        assert_eq!(outcome, Err(rustix::io::Errno::NOENT));
        let errors = mounted.text(".hepfs/errors");
        let said = "at most 64 conditions of 4096 bytes together go below each other";
        assert!(errors.lines().last().unwrap().ends_with(said), "{errors}");
    }
    assert_eq!(mounted.text(".hepfs/errors").lines().count(), 3);
}

#[test]
fn statistics_spare_decoding() {
    let cache = tempfile::tempdir().unwrap();
    let kept = ["--cache-folder", cache.path().to_str().unwrap()];
    let place = source().display().to_string();
    let prepared = hepfs(["prepare", "--stats", &place].iter().chain(&kept));
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let mounted = Mounted::new(&[&source()], &kept);
    let rows = mounted.text("t5/where/row:ge:69990/columns/row.csv");
    assert_eq!(rows.lines().count(), 11);
    let explained: Value = serde_json::from_str(&mounted.text(".hepfs/explain")).unwrap();
    assert_eq!((&explained["blocks_skipped"], &explained["blocks_decoded"]), (&1.into(), &1.into()));
    assert_eq!(explained["bytes_decoded"], (70_000 - 65_536) * 8);
    // What is known to be nothing, or all, decodes nothing.
    assert_eq!(mounted.text("t5/where/row:lt:0/table.csv").lines().count(), 1);
    assert_eq!(mounted.read("t5/where/row:ge:0/columns/row.npy").len(), 128 + 8 * 70_000);
    assert_eq!(mounted.text("t5/where/row:null/columns/row.csv"), "row\n");
    let lines = mounted.text(".hepfs/explain");
    let none = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(none.filter(|line| line["where"] != "row:ge:69990").all(|line| line["blocks_decoded"] == 0), "{lines}");
    drop(mounted);

    // The next mount knows how many rows there are.
    let mounted = Mounted::new(&[&source()], &kept);
    assert_eq!(std::fs::metadata(mounted.join("t5/where/row:ge:69990/columns/row.npy")).unwrap().len(), 128 + 80);
    let explained: Value = serde_json::from_str(&mounted.text(".hepfs/explain")).unwrap();
    assert_eq!(
        (&explained["kept"], &explained["rows_matched"], &explained["blocks_decoded"]),
        (&true.into(), &10.into(), &0.into())
    );
}

#[test]
fn a_query_writes_chosen_columns_in_every_format() {
    let csv = query("t3", &["row in (3, 5)", "--columns", "flag,row"]);
    let text = String::from_utf8(csv.stdout).unwrap();
    assert!(text.starts_with("flag,row\n") && text.contains(",3\n") && text.ends_with(",5\n"), "{text}");
    let ndjson = query("t3", &["row in (3, 5)", "--columns", "row", "--format", "ndjson"]);
    assert_eq!(String::from_utf8(ndjson.stdout).unwrap(), "{\"row\":3}\n{\"row\":5}\n");
    let parquet = query("t3", &["row in (3, 5)", "--format", "parquet"]);
    assert!(parquet.stdout.starts_with(b"PAR1") && parquet.stdout.ends_with(b"PAR1"));
    let arrow = query("t3", &["row in (3, 5)", "--format", "arrow"]);
    assert!(arrow.stdout.starts_with(b"ARROW1") && arrow.stdout.ends_with(b"ARROW1"));
    let mounted = Mounted::new(&[&source()], &[]);
    assert_eq!(parquet.stdout, mounted.read("t3/where/row:in:3,5/table.parquet"));
    assert_eq!(arrow.stdout, mounted.read("t3/where/row:in:3,5/table.arrow"));
}

/// In expressions and paths; a missing text matches none, nor its opposite.
#[test]
fn patterns_are_those_of_sql() {
    let mounted = Mounted::new(&[&source()], &[]);
    let rows = |expression: &str| {
        let output = query("t3", &[expression, "--columns", "row"]);
        assert!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (pattern, same) in [
        ("%e%", "color in ('blue, dark', 'green', 'red')"),
        ("%, %", "color = 'blue, dark'"),
        ("_e_", "color = 'red'"),
        ("%r_e%n", "color = 'green'"),
        ("bl%", "color = 'blue, dark'"),
        ("%%", "color >= ''"),
        ("\\%%", "color = '%'"),
        ("12", "color = '12'"),
    ] {
        let found = rows(&format!("color like '{pattern}'"));
        assert_eq!(found, rows(same), "{pattern}");
        assert_eq!(rows(&format!("color not like '{pattern}'")), rows(&format!("not ({same})")), "{pattern}");
        let path = pattern.replace('%', "%25").replace(',', "%2C");
        assert_eq!(mounted.text(format!("t3/where/color:like:{path}/columns/row.csv")), found, "{path}");
    }
    assert!(rows("color like '%e%'").lines().count() > 3);
    let output = query("t3", &["row like '%1'"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("row: integers match no pattern"), "{said}");
}

/// A condition in three names, as shells complete them, which no program that walks the tree meets.
#[test]
fn a_condition_may_stand_in_directories_below_each_other() {
    let mounted = Mounted::new(&[&source()], &[]);
    let files: Vec<String> = mounted.names("t3").into_iter().filter(|name| name != "index.html").collect();
    for (names, segment) in [
        ("color/eq/red", "color:eq:red"),
        ("color/eq/blue%2C dark", "color:eq:blue%2C dark"),
        ("color/null", "color:null"),
        ("color/in:red,green", "color:in:red,green"),
        ("f/gt/.5", "f:gt:.5"),
        ("row/between/10,19", "row:between:10,19"),
        ("row/lt/9/where/row/gt/5/row:ne:7", "row:lt:9/row:gt:5/row:ne:7"),
        ("row/eq/1+row:eq:3", "row:eq:1+row:eq:3"),
    ] {
        let [long, short] = [names, segment].map(|path| mounted.text(format!("t3/where/{path}/table.csv")));
        assert_eq!(long, short, "{names}");
        assert_eq!(mounted.names(format!("t3/where/{names}")), files, "{names}");
        let metadata: Value = serde_json::from_str(&mounted.text(format!("t3/where/{names}/metadata.json"))).unwrap();
        assert_eq!(metadata["selection"], segment);
    }
    let values = mounted.text("t3/where/values.txt");
    for part in ["t3/where", "t3/where/color", "t3/where/color/eq"] {
        assert_eq!(mounted.names(part), ["values.txt"]);
        assert_eq!(mounted.text(format!("{part}/values.txt")), values);
    }
    // Each line that is a path leads to rows.
    let lines: Vec<&str> = values.lines().filter(|line| line.starts_with("where/")).collect();
    assert!(lines.contains(&"where/color:eq:blue%2C dark") && lines.contains(&"where/flag:eq:true"), "{values}");
    for line in lines {
        assert!(mounted.names(format!("t3/{line}")).contains(&"table.csv".to_owned()), "{line}");
    }
    assert_eq!(mounted.text(".hepfs/errors"), "");
    for (names, reason) in [
        ("colour", "there is no column \"colour\" (did you mean \"color\"?)"),
        ("color/above", "\"above\" is no operator"),
        ("row/eq/red", "/where/row:eq:red: character 8: "),
        ("row/eq/1:2", "a `:` in a value is written %3A"),
    ] {
        let error = std::fs::metadata(mounted.join(format!("t3/where/{names}"))).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.lines().last().unwrap().contains(reason), "{errors}");
    }
    // What walks the tree sees what it saw.
    for pattern in ["table.parquet", "color", "eq"] {
        let found = support::must("find", [mounted.join("t3").to_str().unwrap(), "-name", pattern]);
        assert_eq!(found.lines().count(), usize::from(pattern == "table.parquet"), "{found}");
    }
    let copy = tempfile::tempdir().unwrap();
    support::must("cp", ["-r", mounted.join("t3/where").to_str().unwrap(), copy.path().to_str().unwrap()]);
    assert_eq!(support::names(&copy.path().join("where")), ["values.txt"]);
}

#[test]
fn a_query_that_makes_no_sense_is_explained() {
    for (arguments, expected) in [
        (vec!["row >> 5"], "expression, character 6 (at \"> 5\"): expected a value, found `>`"),
        (vec!["row = "], "expression, character 7 (at the end): expected a value, found the end"),
        (vec!["energy = 1"], "there is no column \"energy\"; columns: row, color, f, f%2"),
        (
            vec!["row = 1", "--columns", "rows"],
            "--columns: there is no column \"rows\" (did you mean \"row\"?); columns: row, color",
        ),
    ] {
        let output = query("t3", &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let output = query("t3/columns/row.csv", &["row = 1"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a table"));
}

/// A reader that goes away is no error.
#[test]
fn a_query_ends_with_its_reader() {
    let line = format!("'{}' query '{}:t5' 'row >= 0' | head -n 2", support::HEPFS, source().display());
    let output = run_within(LONG, Command::new("bash").args(["-o", "pipefail", "-c", &line]));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[test]
fn ctrl_c_ends_a_query_that_nobody_reads() {
    let place = format!("{}:t5", source().display());
    let mut command = Command::new(support::HEPFS);
    command.args(["query", &place, "row >= 0", "--cache-folder", "none"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It has written all that a pipe holds.
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    support::signal(child.id(), 2);
    let ended = support::end_of(&mut child, LONG).map(|status| status.code());
    child.kill().ok();
    assert_eq!(ended, Some(Some(130)));
}
