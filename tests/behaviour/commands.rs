//! `hepfs ls` and `hepfs info`, word for word.

use serde_json::Value;

use crate::data;
use crate::support::{Mounted, hepfs};

/// What a command wrote about a test file, or a place in it.
fn said(command: &[&str], place: &str) -> String {
    let mut line: Vec<String> = command.iter().map(ToString::to_string).collect();
    line.push(data(place).display().to_string());
    let output = hepfs(line);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ls_lists_what_a_mount_shows() {
    assert_eq!(said(&["ls"], "units.h5"), ".hepfs/\nmetadata.json\nt/\n");
    let listed = said(&["ls"], "units.h5:t");
    for name in ["columns/", "head.csv", "indexes.json", "metadata.json", "table.csv", "table.ndjson"] {
        assert!(listed.lines().any(|line| line == name), "no {name} in {listed}");
    }
    // The same names in a mount, at every place.
    for place in ["units.h5:", "units.h5:t", "units.h5:t/columns", "links.h5:", "links.h5:second_hard_link"] {
        let (file, path) = place.split_once(':').unwrap();
        let mounted = Mounted::new(&[&data(file)], &[]);
        let mut listed: Vec<String> =
            said(&["ls"], place).lines().map(|line| line.trim_end_matches(['/', '@']).to_owned()).collect();
        listed.sort();
        assert_eq!(mounted.names(path), listed, "{place}");
    }
    let columns = said(&["ls", "--long"], "units.h5:t/columns");
    // Two float64, behind a header of 128 bytes in NumPy's format.
    assert!(columns.lines().any(|line| line.split_whitespace().eq(["16", "mass.raw"])), "{columns}");
    assert!(columns.lines().any(|line| line.split_whitespace().eq(["144", "mass.npy"])), "{columns}");
}

#[test]
fn ls_with_sizes_of_one_file() {
    assert_eq!(said(&["ls"], "units.h5:t/columns/mass.raw").lines().count(), 1);
    let line = said(&["ls", "-l"], "units.h5:t/columns/mass.raw");
    assert!(
        line.starts_with("                    16  /") && line.ends_with("units.h5:t/columns/mass.raw\n"),
        "{line:?}"
    );
}

/// A file in a folder, like a group in a file.
#[test]
fn info_names_what_it_cannot_look_into() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("hostile/root_unlistable.h5"), folder.path().join("bad.h5")).unwrap();
    std::fs::copy(data("units.h5"), folder.path().join("good.h5")).unwrap();
    let output = hepfs(["info".as_ref(), folder.path().as_os_str()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("table /t: "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("bad.h5: ") && line.contains("symbol table")), "{said}");
    let output = hepfs(["info".to_owned(), format!("{}:bad.h5", folder.path().display())]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

/// Each file goes again as soon as the next one is looked at, and what is wrong with it stays.
#[test]
fn check_tells_of_every_file_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hostile/bad_nrows.h5", "hostile/unequal_columns.h5", "units.h5"] {
        std::fs::copy(data(name), folder.path().join(name.replace('/', "_"))).unwrap();
    }
    let check = |path: &std::path::Path| hepfs(["check".as_ref(), path.as_os_str()]);
    let output = check(folder.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let mut rules = 0;
    for name in ["hostile_bad_nrows.h5", "hostile_unequal_columns.h5", "units.h5"] {
        let file = folder.path().join(name);
        let prefix = format!("{}:", file.display());
        let alone = String::from_utf8(check(&file).stdout).unwrap();
        let alone: Vec<&str> = alone.lines().filter(|line| line.starts_with('/')).collect();
        let here: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
        assert_eq!(here, alone, "{name}");
        rules += here.len();
    }
    assert!(rules > 5 && said.contains(&format!(" {rules} rules broken, ")), "{said}");
}

#[test]
fn index_commands_say_what_they_cannot_list() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("units.h5"), folder.path().join("good.h5")).unwrap();
    let run = |command: &[&str]| {
        let output = hepfs(command.iter().copied().chain([folder.path().to_str().unwrap(), "--cache-folder", "none"]));
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let commands = [&["index", "list"][..], &["index", "list", "--json"], &["index", "verify"], &["check"]];
    for command in commands {
        assert_eq!(run(command).0, Some(0), "{command:?}");
    }
    std::fs::copy(data("hostile/root_unlistable.h5"), folder.path().join("bad.h5")).unwrap();
    for command in commands {
        let (code, said) = run(command);
        assert!(code == Some(2) && said.contains("bad.h5: ") && said.contains("symbol table"), "{command:?}: {said}");
    }
}

#[test]
fn info_says_what_a_file_holds() {
    assert_eq!(
        said(&["info"], "seed_11_1.h5"),
        "group /\n\
         table /my_table: 500 rows, 4 columns (HEP001, April 2026)\n  \
           row_id  uint64            row label\n  \
           ts      int64             [s] Event timestamp.\n  \
           energy  float32           [MeV]\n  \
           label   dictionary<utf8>  Class label.\n"
    );
    let links = said(&["info"], "links.h5");
    assert!(links.contains("  external_table (external link) not shown: links into other files"), "{links}");
    let broken = said(&["info"], "hostile/unequal_columns.h5");
    assert!(broken.contains("  c  int32  7 rows: not in table.*\n"), "{broken}");
    assert!(broken.contains("  ! /t/c: 7 rows, most others 5"), "{broken}");
}

#[test]
fn info_as_json_is_the_metadata_of_the_mount() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    for path in ["", "t"] {
        let json = said(&["info", "--json"], &format!("units.h5:{path}"));
        assert_eq!(json, mounted.text(format!("{path}/metadata.json").trim_start_matches('/')));
    }
    let table: Value = serde_json::from_str(&said(&["info", "--json"], "units.h5:t")).unwrap();
    assert_eq!(table["kind"], "table");
    assert_eq!(table["rows"], 2);
    let columns: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["mass", "time", "count"]);
    assert_eq!(table["columns"][0]["units"], "kg");
}

#[test]
fn what_is_not_there_is_one_line() {
    let nothing = [
        (["ls", "units.h5:nothing/here"], "nothing/here: no such file"),
        (["info", "units.h5:t/nothing"], "t/nothing: no such file"),
        (["info", "units.h5:t/table.csv"], "is no directory"),
        (["ls", "units.h5:t/table.csv/deeper"], "not a directory"),
    ];
    for ([command, place], words) in nothing {
        let output = hepfs([command.to_owned(), data(place).display().to_string()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command} {place}: {said}");
        assert!(said.starts_with("hepfs: ") && said.contains(words) && said.lines().count() == 1, "{said:?}");
    }
}

#[test]
fn whoever_stops_reading_is_no_error() {
    let command = format!("{} info {} | head -n 1", crate::support::HEPFS, data("hostile/columns_5000.h5").display());
    let output = crate::support::run("bash", ["-c", &format!("set -o pipefail; {command}")]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout, b"group /\n");
}

#[test]
fn help_is_had_for_every_command() {
    let help = String::from_utf8(hepfs(["--help"]).stdout).unwrap();
    for command in ["mount", "umount", "ls", "info", "demo"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{command} "))), "{command}: {help}");
        let own = hepfs([command, "--help"]);
        assert!(own.status.success() && own.stdout.len() > 100, "{command}: {own:?}");
    }
    assert!(hepfs(["--version"]).stdout.starts_with(b"hepfs "));
    assert_eq!(hepfs(["mount"]).status.code(), Some(2));
}
