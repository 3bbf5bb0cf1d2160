//! `hepfs head` shows the first rows of a table, as wide as a terminal. Expected values are written by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::data;
use crate::support::{self, HEPFS, must};
use crate::writer::Writer;

/// A table with wide characters, combining marks, missing values, and texts that look like them.
const ROWS: &str = "id,name,value,day\n\
    1,日本,1.5,2026-01-01\n\
    2,NULL,,2026-01-02\n\
    3,e\u{301}\u{202e},-20.25,\n\
    4,\"two\nlines\",nan,2026-01-04\n\
    5,,inf,2026-01-05\n";

/// Writes [`ROWS`] as a table.
fn table(folder: &Path) -> PathBuf {
    let (csv, file) = (folder.join("rows.csv"), folder.join("rows.h5"));
    fs::write(&csv, ROWS).unwrap();
    must(HEPFS, ["import".as_ref(), csv.as_os_str(), format!("{}:t", file.display()).as_ref()]);
    file
}

/// Runs the program without a terminal. Returns output, messages, and the exit code.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let mut command = Command::new(HEPFS);
    command.args(arguments).arg("--cache-folder=none").env("LC_ALL", "C.UTF-8").env_remove("COLUMNS");
    let output = command.envs(environment.iter().copied()).stdin(Stdio::null()).output().unwrap();
    let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (said, told, output.status.code())
}

/// Output of the program on a terminal with this number of columns.
pub fn on_terminal(columns: u16, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(HEPFS);
    command.args(arguments).arg("--cache-folder=none").envs(environment.iter().copied());
    support::on_terminal(columns, None, &command).replace("\r\n", "\n")
}

#[test]
fn rows_are_a_box() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path()).display().to_string();
    let expected = "\
┌───────┬────────────┬─────────┬────────────┐
│    id │ name       │   value │ day        │
│ int64 │ utf8       │ float64 │ date32     │
├───────┼────────────┼─────────┼────────────┤
│     1 │ 日本       │     1.5 │ 2026-01-01 │
│     2 │ \"NULL\"     │    NULL │ 2026-01-02 │
│     3 │ e\u{301}\\u{202e}  │  -20.25 │ NULL       │
│     4 │ two\\nlines │     NaN │ 2026-01-04 │
│     5 │ NULL       │     inf │ 2026-01-05 │
└───────┴────────────┴─────────┴────────────┘
5 rows, 4 columns
";
    assert_eq!(run(&["head", &file], &[]), (expected.to_owned(), String::new(), Some(0)));
    // A table by its name, some rows, some columns in another order.
    let expected = "\
┌─────────┬───────┐
│   value │    id │
│ float64 │ int64 │
├─────────┼───────┤
│     1.5 │     1 │
│    NULL │     2 │
└─────────┴───────┘
5 rows (2 shown), 2 columns
";
    let said = run(&["head", &format!("{file}:t"), "--rows=2", "--columns=value,id"], &[]);
    assert_eq!(said, (expected.to_owned(), String::new(), Some(0)));
    let expected = "\
+-------------+
| name        |
| utf8        |
+-------------+
| \\u{65e5}... |
| \"NULL\"      |
+-------------+
5 rows (2 shown), 1 column
";
    let said = run(&["head", &file, "--rows=2", "--columns=name"], &[("LC_ALL", "C"), ("COLUMNS", "15")]);
    assert_eq!(said.0, expected);
}

#[test]
fn units_and_rows_as_records() {
    let file = data("seed_11_1.h5").display().to_string();
    let (said, ..) = run(&["head", &file, "--rows=1"], &[]);
    let third = said.lines().nth(3).unwrap();
    assert_eq!(third.split('│').map(str::trim).collect::<Vec<_>>(), ["", "", "s", "MeV", "", ""], "{said}");
    let (said, ..) = run(&["head", &file, "--rows=2", "--vertical"], &[]);
    let expected = "\
─ row 1 of 500 ───────────────────
row_id  uint64           │ 1000000000000
ts      int64 [s]        │ 1700000000000
energy  float32 [MeV]    │ 85.56001
label   dictionary<utf8> │ NULL
─ row 2 of 500 ───────────────────
row_id  uint64           │ 1000000000001
ts      int64 [s]        │ 1700000000006
energy  float32 [MeV]    │ 190.02284
label   dictionary<utf8> │ electron
500 rows (2 shown), 4 columns
";
    assert_eq!(said, expected);
}

#[test]
fn columns_in_the_middle_give_way() {
    let file = data("seed_11_1.h5").display().to_string();
    let expected = "\
┌───────────────┬───┬──────────────────┐
│        row_id │ … │ label            │
│        uint64 │ … │ dictionary<utf8> │
├───────────────┼───┼──────────────────┤
│ 1000000000000 │ … │ NULL             │
└───────────────┴───┴──────────────────┘
500 rows (1 shown), 4 columns (2 shown)
";
    // All columns take 63 here: 1 for the frame, 13 + 13 + 8 + 16 for values, 3 for each column.
    assert_eq!(on_terminal(50, &["head", &file, "--rows=1"], &[("NO_COLOR", "1")]), expected);
    assert_eq!(run(&["head", &file, "--rows=1"], &[("COLUMNS", "50")]).0, expected);
    assert!(run(&["head", &file, "--rows=1"], &[("COLUMNS", "62")]).0.ends_with("4 columns (3 shown)\n"));
    assert!(run(&["head", &file, "--rows=1"], &[("COLUMNS", "63")]).0.ends_with("4 columns\n"));
    for columns in (1..63).step_by(3) {
        let said = on_terminal(columns, &["head", &file, "--rows=1"], &[("NO_COLOR", "1")]);
        assert!(said.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {said}");
    }
}

#[test]
fn colours_are_for_terminals() {
    let file = data("seed_11_1.h5").display().to_string();
    let line = ["head", &file, "--rows=1"];
    let coloured = on_terminal(80, &line, &[]);
    assert!(coloured.contains("\x1b[1menergy\x1b[0m") && coloured.contains("\x1b[2mNULL\x1b[0m"), "{coloured}");
    let plain = run(&line, &[]).0;
    assert!(!plain.contains('\x1b'));
    assert_eq!(on_terminal(80, &line, &[("NO_COLOR", "1")]), plain);
    assert_eq!(on_terminal(80, &line, &[("TERM", "dumb")]), plain);
    assert_eq!(run(&line, &[("CLICOLOR_FORCE", "1")]).0, coloured);
    assert_eq!(run(&line, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).0, plain);
    // The command line counts more than the environment.
    let line = |when| ["head", &file, "--rows=1", "--color", when];
    assert_eq!(run(&line("always"), &[("NO_COLOR", "1")]).0, coloured);
    assert_eq!(on_terminal(80, &line("never"), &[("CLICOLOR_FORCE", "1")]), plain);
}

#[test]
fn tables_are_named_as_for_a_query() {
    for (place, columns) in [
        ("nested_tables.h5", None),
        ("h5_basic.h5", None),
        ("seed_11_1.h5:mytable", None),
        ("seed_11_1.h5:my_table/table.csv", None),
        ("sed_11_1.h5", None),
        ("hostile/not_hdf5.h5", None),
        ("seed_11_1.h5", Some("--columns=ts,Label")),
        ("hostile/unequal_columns.h5", Some("--columns=c")),
    ] {
        let place = data(place).display().to_string();
        let [head, query] =
            [&["head", &place][..], &["query", &place, "limit 1"]].map(|line| [line, columns.as_slice()].concat());
        let [head, query] = [run(&head, &[]), run(&query, &[])];
        assert_eq!(head, query, "{place}");
        assert!(head.0.is_empty() && head.2 == Some(1), "{head:?}");
    }
    // Columns that are left out of the rows are named.
    let place = data("hostile/unequal_columns.h5").display().to_string();
    let [head, query] = [&["head", &place][..], &["query", &place, "limit 1"]].map(|line| run(line, &[]).1);
    assert!(head == query && head.contains("column \"c\" is left out"), "{head}");
}

/// Three elements of 1000³ bytes each, in a file of a few kilobytes.
#[test]
fn a_value_of_a_gigabyte_is_shown_by_its_size() {
    let begun = Instant::now();
    let (said, told, code) = run(&["head", data("hostile/gigabyte_elements.h5").to_str().unwrap()], &[]);
    assert_eq!((said.matches("│ (1 GB) ").count(), told.as_str(), code), (3, "", Some(0)), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Rows behind the first are never looked at.
#[test]
fn a_table_of_any_length_answers_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.h5");
    let writer = Writer::create(&path);
    let table = writer.table("t");
    table.never_written("a", 400_000_000_000, 1 << 16);
    drop(table);
    writer.close();
    let begun = Instant::now();
    let (said, told, _) = run(&["head", path.to_str().unwrap(), "--rows=2"], &[]);
    assert!(said.ends_with("400 000 000 000 rows (2 shown), 1 column\n"), "{said}{told}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
