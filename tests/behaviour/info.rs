//! `hepfs info` shows a file as a tree, as much of it as a person reads. Sizes are those of h5py's `get_storage_size`.

use std::fs::File;
use std::process::Command;

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::ElementNumber;

use crate::data;
use crate::head::on_terminal;
use crate::support::{HEPFS, LONG, end_of, hepfs, must, signal, until};

fn info(arguments: &[&str], place: &str) -> String {
    let place = data(place).display().to_string();
    must(HEPFS, ["info"].iter().chain(arguments).chain(&["--cache-folder=none", place.as_str()]))
}

#[test]
fn a_file_is_a_tree() {
    let expected = "\
group /
├─ table top: 3 rows, 1 column (HEP001, April 2026), 24 bytes
│  │ @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\", @column-order: [\"x\"]
│  │ x  int64
│  └─ table table in a table: 2 rows, 1 column (HEP001, April 2026), 16 bytes
│       @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\"
│       y  float64
├─ array compound_matrix: compound of 14 bytes {a: int16, b: array [3] of float32}, [2, 2], 56 bytes
├─ array empty_matrix: int16, [0, 4]
├─ array empty_vector: float64, [0]
├─ value fixed_scalar: fixed string of 5 bytes, ascii, null-padded = \"fixed\"
├─ array images: uint16, [5, 7, 9], chunks [2, 3, 4], shuffle, deflate(4), 714 bytes stored, 630 bytes decoded
├─ array matrix: float32 big-endian, [3, 4], 48 bytes
├─ array never: float64, [3, 3], 0 bytes stored, 72 bytes decoded
├─ array no_space: float32, without elements; not shown: the dataspace is null: there is no element
├─ array partly: int32, [6, 6], chunks [4, 4], 64 bytes stored, 144 bytes decoded
├─ value scalar: float64 = 2.5
├─ value text_scalar: string of variable length, utf-8 = \"a variable-length string\"
├─ array texts: string of variable length, utf-8, [2, 2], over 64 bytes stored
├─ datatype type; not shown: a committed datatype has no elements
├─ array vector: int64, [5], 40 bytes
├─ group empty_group: empty
└─ group experiments
   ├─ table tables/ALL: 6 rows, 2 columns (by shape, groups beside each other)
   │    group  dictionary<utf8>
   │    x      int64
   ├─ table run_042: 3 rows, 1 column (HEP001, April 2026), 24 bytes
   │    @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\", @column-order: [\"x\"]
   │    x  int64
   ├─ table run_043: 3 rows, 1 column (HEP001, April 2026), 24 bytes
   │    @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\", @column-order: [\"x\"]
   │    x  int64
   └─ table deep/er/run_1: 3 rows, 1 column (HEP001, April 2026), 24 bytes
        @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\", @column-order: [\"x\"]
        x  int64
6 tables, 13 arrays, 5 groups, 29 KB
";
    assert_eq!(info(&[], "nested_tables.h5"), expected);
}

#[test]
fn a_depth_closes_groups_and_tables() {
    assert_eq!(info(&["--depth=0"], "seed_11_1.h5"), "group /: 1 member\n1 group, 24 KB\n");
    let one = info(&["--depth=1"], "nested_tables.h5");
    let lines: Vec<&str> = one.lines().collect();
    assert_eq!(lines[..2], ["group /", "├─ table top: 3 rows, 1 column (HEP001, April 2026), 24 bytes"]);
    assert_eq!(lines[lines.len() - 2], "└─ group experiments: 3 members");
    assert!(!one.contains("int64 ") && !one.contains("run_042"), "{one}");
    let refused = hepfs(["info", "--json", "--depth=1", "x.h5"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// A way without forks takes one line, but is no longer than other walks look.
#[test]
fn very_deep_groups_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.h5");
    create::file::<create::Error>(&path, |root| {
        let first = root.group("g")?;
        (0..200).try_fold(first, |group, _| group.group("g")).map(drop)
    })
    .unwrap();
    let output = hepfs(["info", path.to_str().unwrap(), "--cache-folder=none"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("└─ g/g/g/") && said.contains("more than 64 directories deep: not looked into"), "{said}");
}

/// Omitted members are counted, and without a terminal standard error says so as well.
#[test]
fn very_many_members_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    create::file::<create::Error>(&path, |root| {
        let add = |at: i32| {
            root.dataset(&format!("a{at:05}"), &f64::ELEMENT, &Storage::contiguous(&[1]), &FillSetting::Unset)
        };
        (0..10_000).try_for_each(|at| add(at).map(drop))
    })
    .unwrap();
    let run = |more: &[&str]| hepfs(["info", path.to_str().unwrap(), "--cache-folder=none"].iter().chain(more));
    let some = run(&[]);
    let said = String::from_utf8(some.stdout).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains("─ array a0")).count(), 20, "{said}");
    assert!(said.contains("\n└─ … 9 980 more arrays and others: --all\nshown: 20 arrays, 1 group, "), "{said}");
    let told = String::from_utf8(some.stderr).unwrap();
    assert_eq!(told, format!("hepfs: {}: not everything is shown; --all shows it\n", path.display()));
    let all = run(&["--all"]);
    assert!(all.stderr.is_empty());
    let said = String::from_utf8(all.stdout).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains("─ array a0")).count(), 10_000);
    let columns = info(&[], "hostile/columns_5000.h5");
    assert!(columns.contains(" … 4 960 more columns: --all\n"), "{columns}");
}

/// A tree that is cut short by Ctrl-C does not look complete.
#[test]
fn an_interrupted_tree_has_no_summary() {
    let folder = tempfile::tempdir().unwrap();
    let [path, out, told] = ["groups.h5", "out", "told"].map(|name| folder.path().join(name));
    create::file::<create::Error>(&path, |root| (0..10_000).try_for_each(|at| root.group(&format!("g{at}")).map(drop)))
        .unwrap();
    let mut command = Command::new(HEPFS);
    command.args(["info", "--all", "--cache-folder=none"]).arg(&path);
    let mut running = command.stdout(File::create(&out).unwrap()).stderr(File::create(&told).unwrap()).spawn().unwrap();
    until("the tree begins", || std::fs::metadata(&out).unwrap().len() > 0);
    signal(running.id(), libc::SIGINT);
    assert_eq!(end_of(&mut running, LONG).and_then(|status| status.code()), Some(130));
    let [said, told] = [out, told].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(told.ends_with("hepfs: interrupted\n") && !said.contains(" groups, "), "{told}");
}

/// Heights and shares are counted by hand: k is in k + 1 of 528 rows.
#[test]
fn columns_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let [csv, file] = ["rows.csv", "rows.h5"].map(|name| folder.path().join(name));
    let values: Vec<usize> = (0..32).flat_map(|k| vec![k; k + 1]).collect();
    // Shuffled.
    let row = |at: usize| {
        let day = format!("2026-01-{:02}T06:00:00", 1 + at * 28 / 528);
        let label = ["red", "red", "green", "blue"][at % 4];
        let some = if at.is_multiple_of(4) { String::new() } else { at.to_string() };
        format!("{},{label},{day},{some}\n", values[at * 5 % 528])
    };
    let rows: String = (0..528).map(row).collect();
    std::fs::write(&csv, format!("k,label,day,some\n{rows}")).unwrap();
    must(HEPFS, ["import".as_ref(), csv.as_os_str(), format!("{}:t", file.display()).as_ref()]);
    let file = file.display().to_string();
    let line = ["info", "--plots", &file];
    let said = on_terminal(200, &line, &[("NO_COLOR", "1")]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("t: 528 rows, 4 columns (HEP001, July 2026)   "), "{said}");
    let title = lines[0].find("over the rows").map(|at| lines[0][..at].chars().count());
    assert!(lines[1].contains(" 0 ▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇████ 31 "), "{said}");
    assert_eq!(lines[2].split_once("utf8").unwrap().1.trim(), "red 50 %, blue 25 %, green 25 %", "{said}");
    assert!(lines[3].contains(" 2026-01-01 06:00 █") && lines[3].ends_with(" ▁▁▂▂▃▃▄▄▅▅▆▆▇▇██"), "{said}");
    assert_eq!(lines[3].rfind(' ').map(|at| lines[3][..at].chars().count() + 1), title, "{said}");
    assert!(lines[4].ends_with("   25 % missing"), "{said}");
    for columns in [30, 60, 80] {
        let said = on_terminal(columns, &line, &[("NO_COLOR", "1")]);
        assert!(said.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {said}");
        assert!(said.contains('█'), "{columns}: {said}");
    }
    let ascii = on_terminal(80, &line, &[("LC_ALL", "C"), ("NO_COLOR", "1")]);
    // Bars are fewer, so that a line has room for the note: 6, 10 and 11 of 27 are up to 2, 5 and 8 eighths high.
    assert!(ascii.is_ascii() && ascii.contains(" 0 ......::::::::::########### 31"), "{ascii}");
    assert!(ascii.contains("   25 % missing"), "{ascii}");
    let none = hepfs(["info", "--plots", data("h5_basic.h5").to_str().unwrap()]);
    assert!(String::from_utf8(none.stderr).unwrap().contains("there is no table in it"));
}

/// A file that cannot be read is named, and determines the exit code.
#[test]
fn pictures_leave_no_file_out_silently() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("units.h5"), folder.path().join("a.h5")).unwrap();
    std::fs::copy(data("hostile/truncated.h5"), folder.path().join("b.h5")).unwrap();
    let output = hepfs(["info", "--plots", "--cache-folder=none", folder.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a.h5: t: 2 rows, 3 columns") && output.status.code() == Some(1), "{said}{told}");
    assert!(told.lines().count() == 1 && told.contains("/b.h5: "), "{told}");
}

/// Differences of random floats are greater than any float.
#[test]
fn floats_of_any_size_are_drawn() {
    let said = info(&["--plots"], "types_floats.h5");
    assert!(said.contains("\n  f64  float64  -2.88e305 "), "{said}");
}

#[test]
fn lines_end_at_the_terminal() {
    let places = ["nested_tables.h5", "units.h5"].map(|place| data(place).display().to_string());
    let line = ["info", &places[0], &places[1]];
    for columns in [20, 60, 80] {
        let said = on_terminal(columns, &line, &[("NO_COLOR", "1")]);
        assert!(said.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {said}");
        assert!(said.lines().any(|line| line.ends_with('…')), "{columns}: {said}");
    }
    // A file's name is a heading there, and begins each line elsewhere.
    let wide = on_terminal(250, &line, &[("NO_COLOR", "1")]);
    let headings: Vec<&str> = wide.lines().filter(|line| line.ends_with(".h5")).collect();
    assert_eq!(headings, places);
    let piped = String::from_utf8(hepfs(line).stdout).unwrap();
    assert!(piped.lines().all(|line| places.iter().any(|place| line.starts_with(&format!("{place}: ")))), "{piped}");
    let coloured = on_terminal(250, &["info", &places[1]], &[]);
    assert!(coloured.contains("\x1b[2mtable \x1b[0m\x1b[1mt\x1b[0m: 2 rows, 3 columns"), "{coloured:?}");
    let ascii = on_terminal(80, &["info", &places[1]], &[("LC_ALL", "C"), ("NO_COLOR", "1")]);
    assert!(ascii.is_ascii() && ascii.contains("\n+- table t: 2 rows"), "{ascii}");
}
