//! `hepfs ls` and `hepfs info`, word for word.

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::ElementNumber;
use serde_json::Value;

use crate::data;
use crate::support::{HEPFS, LONG, Mounted, end_of, hepfs, must, run, signal, tables_in};

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
    assert_eq!(said(&["ls"], "units.h5"), ".hepfs/\nmetadata.json\nt/\nindex.html\n");
    let listed = said(&["ls"], "units.h5:t");
    for name in ["columns/", "head.csv", "index.html", "indexes.json", "metadata.json", "table.csv", "table.ndjson"] {
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
    // What is wrong with one file is no reason to say nothing of another, and each line says of which.
    let [bad, good] = ["bad.h5", "good.h5"].map(|name| format!("{}: ", folder.path().join(name).display()));
    assert!(output.status.code() == Some(1) && said.contains(&format!("{good}└─ table t: ")), "{said}");
    assert!(said.lines().all(|line| line.starts_with(&bad) || line.starts_with(&good)), "{said}");
    let told: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix(&bad)).collect();
    assert!(told.len() == 1 && told[0].contains("symbol table") && !told[0].contains("bad.h5"), "{said}");
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
        let prefix = format!("{}: ", file.display());
        let alone = String::from_utf8(check(&file).stdout).unwrap();
        let alone: Vec<&str> = alone.lines().filter(|line| line.starts_with('/')).collect();
        let here = said.lines().filter_map(|line| line.strip_prefix(&prefix));
        let (here, sum): (Vec<&str>, Vec<&str>) = here.partition(|line| line.starts_with('/'));
        assert_eq!(here, alone, "{name}");
        let numbers = sum[0].split_whitespace().filter_map(|word| word.parse::<usize>().ok()).skip(1).take(3);
        assert!(sum.len() == 1 && numbers.sum::<usize>() == here.len(), "{said}");
        rules += here.len();
    }
    assert!(rules > 5, "{said}");
}

#[test]
fn files_that_are_taken_for_hdf5_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nc");
    let netcdf = "classic netCDF, which `nccopy -k nc4 OLD NEW`";
    for (bytes, what) in
        [(&b"CDF\x01\0\0"[..], netcdf), (b"CDF\x05\0", netcdf), (b"\x0e\x03\x13\x01\0", "HDF4"), (b"CDF", "")]
    {
        std::fs::write(&path, bytes).unwrap();
        let output = hepfs(["info", path.to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("(Trevni)") && said.contains(what) && said.contains("; it is") != what.is_empty(),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

/// One bad source stops no other, the exit code is the worst, and every line and JSON object says of which file it is.
#[test]
fn several_sources_are_named_in_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let [first, bad, other] = ["a.h5", "b.h5", "c.h5"].map(|name| folder.path().join(name));
    std::fs::copy(data("search_indexes.h5"), &first).unwrap();
    std::fs::write(&bad, "no HDF5").unwrap();
    std::fs::copy(data("hostile/unequal_columns.h5"), &other).unwrap();
    let cache = folder.path().join("cache").display().to_string();
    let sources = [&first, &bad, &other].map(|path| path.display().to_string());
    let run = |command: &[&str]| {
        let sources = sources.iter().map(String::as_str);
        let output = hepfs(command.iter().copied().chain(sources).chain(["--cache-folder", &cache]));
        let stderr = String::from_utf8(output.stderr).unwrap();
        // On a busy machine it takes so long that progress is told.
        let said: Vec<&str> = stderr.lines().filter(|line| !line.contains(" %: ")).collect();
        assert_eq!(
            said,
            [format!("hepfs: {}: not an HDF5 file, nor of another known format (Trevni)", bad.display())],
            "{command:?}"
        );
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let of_both = |lines: &mut dyn Iterator<Item = &str>, what: &str| {
        let (mut here, mut there) = (0, 0);
        for line in lines {
            here += usize::from(line == sources[0]);
            there += usize::from(line == sources[2]);
            assert!(line == sources[0] || line == sources[2], "{what}: {line}");
        }
        assert!(here > 0 && there > 0, "{what}: {here}, {there}");
    };
    let commands =
        [(&["check"][..], 2), (&["info"], 1), (&["ls", "-l"], 1), (&["prepare"], 1), (&["index", "list"], 2)];
    for (command, code) in commands {
        let (found, said) = run(command);
        assert_eq!(found, code, "{command:?}: {said}");
        of_both(&mut said.lines().map(|line| line.split_once(": ").unwrap().0), command[0]);
    }
    for (command, code) in [(&["check", "--json"][..], 2), (&["info", "--json"], 1)] {
        let (found, said) = run(command);
        assert_eq!(found, code, "{command:?}: {said}");
        let objects: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        of_both(&mut objects.iter().map(|object| object["source"].as_str().unwrap()), command[0]);
    }
    let (code, said) = run(&["index", "verify", "--json"]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(code == 2 && lines.iter().all(|line| line["source"] == sources[0] && line["table"].is_string()), "{said}");
    // What a mount says of the same is the same.
    let mounted = Mounted::new(&[&first], &["--cache-folder", &cache]);
    let tables: std::collections::BTreeSet<&str> = lines.iter().map(|line| line["table"].as_str().unwrap()).collect();
    tables.iter().for_each(|table| drop(mounted.names(table.trim_start_matches('/'))));
    let shown = mounted.text(".hepfs/indexes");
    let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| shown.contains(line)) && lines.len() == shown.len(), "{shown:?}");
}

#[test]
fn a_query_takes_the_only_table_or_names_them() {
    let query = |place: &str, more: &[&str]| {
        let place = data(place).display().to_string();
        let output = hepfs(["query", &place, "ts >= 0 or ts < 0"].iter().chain(more));
        (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()))
    };
    let whole = query("seed_11_1.h5:my_table", &[]);
    assert_eq!(whole.1[0].lines().count(), 501);
    assert_eq!(query("seed_11_1.h5", &[]), whole);
    // Shells complete names with a slash.
    assert_eq!(query("seed_11_1.h5/my_table/", &[]), whole);
    let (code, [rows, said]) = query("nested_tables.h5", &[]);
    assert_eq!((code, rows.as_str()), (Some(1), ""));
    let mut named = said.lines().skip(1).map(|line| line.trim_start().split_once("  ").unwrap());
    // Each can be asked, and has as many rows as it says.
    let count = named
        .by_ref()
        .map(|(place, rows)| {
            let info = String::from_utf8(hepfs(["info", place]).stdout).unwrap();
            assert!(info.starts_with("table /") && info.contains(&format!(": {rows}, ")), "{place} {rows}: {info}");
        })
        .count();
    assert!(count > 1, "{said}");
    let (code, [_, said]) = query("seed_11_1.h5", &["ts > 5"]);
    assert!(code == Some(1) && said.contains("one SOURCE and one EXPRESSION"), "{said}");
    let (code, [_, said]) = query("h5_basic.h5", &[]);
    assert!(code == Some(1) && said.contains("no table") && said.lines().count() == 1, "{said}");
}

#[test]
fn an_export_is_a_compressed_file_of_the_rows_and_columns_asked_for() {
    use parquet::basic::Compression;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.parquet");
    let place = data("seed_11_1.h5:my_table").display().to_string();
    let export = |out: &std::path::Path, more: &[&str]| {
        let line = ["export", &place, "--cache-folder=none", "-o", out.to_str().unwrap()];
        let output = hepfs(line.iter().chain(more));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let cases: [(&[&str], i64, usize, Compression); 4] = [
        (&[], 500, 4, Compression::ZSTD(Default::default())),
        (&["--limit=7", "--columns=energy,ts", "--compression=snappy"], 7, 2, Compression::SNAPPY),
        (&["ts >= 0 or ts < 0 limit 30", "--compression=none"], 30, 4, Compression::UNCOMPRESSED),
        (
            &["order by energy desc", "--columns=energy", "--limit=9", "--compression=zstd:9"],
            9,
            1,
            Compression::ZSTD(Default::default()),
        ),
    ];
    for (more, rows, columns, compression) in cases {
        let (code, said) = export(&out, more);
        assert_eq!(code, Some(0), "{more:?}: {said}");
        let file = SerializedFileReader::new(std::fs::File::open(&out).unwrap()).unwrap();
        let metadata = file.metadata();
        let schema = metadata.file_metadata().schema_descr();
        assert_eq!((metadata.file_metadata().num_rows(), schema.root_schema().get_fields().len()), (rows, columns));
        let chunk = metadata.row_group(0).column(0);
        assert_eq!(std::mem::discriminant(&chunk.compression()), std::mem::discriminant(&compression), "{more:?}");
        assert!(chunk.column_index_offset().is_some() && chunk.statistics().is_some(), "{more:?}");
    }
    for (name, more, code, reason) in [
        ("out.parquet", &["--columns=enrgy"][..], 1, "did you mean"),
        ("out.parquet", &["--compression=zip"], 2, "zstd:LEVEL"),
        ("out.xlsx", &[], 1, "give --format"),
        ("no/such/out.parquet", &[], 1, "no/such/out.parquet: there is no folder "),
        ("no/such/parts", &["--partition-by=label"], 1, "no/such/parts: there is no folder "),
    ] {
        let (found, said) = export(&folder.path().join(name), more);
        assert!(found == Some(code) && said.contains(reason) && !said.contains(".hepfs-"), "{name} {more:?}: {said}");
    }
    let (code, said) = export(&data("seed_11_1.h5"), &["--format=parquet"]);
    assert!(code == Some(1) && said.contains("that is an HDF5 file"), "{said}");
    // To standard output as to a file.
    export(&out, &[]);
    let line = ["export", &place, "--cache-folder=none", "--format=parquet", "-o", "-"];
    assert!(hepfs(line).stdout == std::fs::read(&out).unwrap());
    for (more, reason) in
        [(&["--memory=1M"][..], "256M is the least"), (&["--memory=1G", "--cache-size=1G"], "cannot be")]
    {
        let (code, said) = export(&out, more);
        assert!(code == Some(2) && said.contains(reason), "{more:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// `export` says what it wrote, as `import` does; `query` writes the same file and says nothing.
#[test]
fn the_name_of_a_file_chooses_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let place = data("seed_11_1.h5:my_table").display().to_string();
    let write = |command: &str, name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let line = [command, &place, "energy > 50", "--cache-folder=none", "--columns=ts, energy", "--limit=20", "-o"];
        let output = hepfs(line.into_iter().chain([out.to_str().unwrap()]).chain(more.iter().copied()));
        let [said, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success() && errors.is_empty(), "{command} {name}: {errors}");
        (std::fs::read(&out).unwrap(), said.replace(&format!("{}/", folder.path().display()), ""))
    };
    let (csv, said) = write("export", "t.csv", &[]);
    let words: Vec<&str> = said.split("  ").collect();
    assert_eq!(words[..3], ["t.csv", "20 rows", &format!("{} bytes", csv.len())], "{said}");
    assert!(words.len() == 4 && words[3].ends_with(" s\n"), "{said}");
    let text = String::from_utf8(csv.clone()).unwrap();
    assert!(text.starts_with("ts,energy\n") && text.lines().count() == 21, "{text}");
    for command in ["export", "query"] {
        let write = |name: &str, more: &[&str]| write(command, name, more).0;
        assert_eq!(write("u.csv", &[]), csv);
        assert_eq!(write("t.tsv", &[]), text.replace(',', "\t").into_bytes());
        assert_eq!(write("semicolons.tsv", &["--csv-separator=;"]), text.replace(',', ";").into_bytes());
        for (name, plain) in [("t.CSV.gz", "t.csv"), ("t.tsv.gz", "t.tsv"), ("t.ndjson.gz", "t.ndjson")] {
            let (packed, plain) = (write(name, &[]), write(plain, &[]));
            let unpacked = run("gzip", ["-dc", folder.path().join(name).to_str().unwrap()]).stdout;
            assert!(packed.starts_with(&[0x1f, 0x8b]) && unpacked == plain, "{name}");
        }
        assert_eq!(write("t.pq", &[]), write("t.parquet", &[]));
        assert_eq!(write("t.ipc", &[]), write("t.arrow", &[]));
        assert_eq!(write("u.pq", &["--format=csv"]), csv);
    }
    let refused = |line: &[&str], reason: &str| {
        let output = hepfs(line.iter().chain(&["--cache-folder=none"]));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(reason), "{line:?}: {said}");
    };
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    refused(&["export", &place, "-o", &at("t.parquet.gz")], "leave .gz out");
    refused(
        &["export", &place, "-o", &at("q.csv"), "--partition-by=label"],
        "q.csv: --partition-by writes Parquet files",
    );
    refused(&["convert", &place, &at("new.parquet")], "new.parquet: the output is an HDF5 file");
    assert!(!folder.path().join("new.parquet").exists() && !folder.path().join("q.csv").exists());
    // The fewer of two limits.
    for (expression, limit, rows) in [("limit 3", "9", 3), ("order by ts limit 9", "3", 3), ("ts > 0", "4", 4)] {
        let output = hepfs(["query", &place, expression, "--limit", limit, "--no-header", "--cache-folder=none"]);
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), rows, "{expression}");
    }
    // And back.
    let line = ["import", &at("t.tsv"), &at("back.h5")];
    assert!(hepfs(line).status.success());
    let output = hepfs(["query", &at("back.h5"), "limit 20", "--cache-folder=none"]);
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').next(), Some(&b"ts,energy"[..]));
}

/// As old systems wrote them.
#[test]
fn names_that_are_no_utf8_are_sources_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let [bad, good] =
        [&b"caf\xe9.h5"[..], b"good.h5"].map(|name| folder.path().join(std::ffi::OsStr::from_bytes(name)));
    std::fs::copy(data("units.h5"), &bad).unwrap();
    std::fs::copy(data("units.h5"), &good).unwrap();
    let place = [bad.as_os_str().as_bytes(), b":t/columns"].concat();
    let output = hepfs(["ls".as_ref(), std::ffi::OsStr::from_bytes(&place), good.as_os_str()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.contains("h5:t/columns: mass.csv\n") && said.contains("good.h5: t/\n"),
        "{said}"
    );
}

#[test]
fn a_name_that_is_nearly_right_is_suggested() {
    let cases: [(&[&str], &str, &[&str], &str); 8] = [
        (&["query"], "seed_11_1.h5:mytable", &["ts > 0"], "my_table"),
        (&["query"], "seed_11_1.h5:my_table", &["enrgy > 0"], "energy"),
        (&["query"], "seed_11_1.h5:my_table", &["ts > 0", "--columns", "ts,Label"], "label"),
        (&["query"], "sed_11_1.h5:my_table", &["ts > 0"], "seed_11_1.h5"),
        (&["ls"], "seed_11_1.h5:my_table/colums", &[], "columns"),
        (&["info"], "seed_11_1.h5:my_tabel", &[], "my_table"),
        // An array, of which there are only files.
        (&["info"], "arrays.h5:layouts/cubbe", &[], "cube"),
        (&["ls"], "seed_11_1.h5:my_table/where/enrgy:gt:5", &[], "energy"),
    ];
    for (command, place, more, meant) in cases {
        let place = data(place).display().to_string();
        let output = hepfs(command.iter().copied().chain([place.as_str()]).chain(more.iter().copied()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?} {place}: {said}");
        assert!(said.contains(&format!("(did you mean {meant:?}?)")) && said.lines().count() == 1, "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("run.h5");
    std::fs::copy(data("seed_11_1.h5"), &copy).unwrap();
    let place = format!("{}:my_table", copy.display());
    let output = hepfs(["index", "build", &place, "--column", "enrgy", "--kind", "minmax"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("(did you mean \"energy\"?)"), "{said}");
    // In a mount only this file can tell.
    let mounted = Mounted::new(&[&data("seed_11_1.h5")], &[]);
    assert!(!mounted.join("my_table/where/enrgy:gt:5").exists());
    assert!(
        mounted.text(".hepfs/errors").contains("no column \"enrgy\" (did you mean \"energy\"?); columns: row_id, ts")
    );
    let dataset = hepfs(["ls", &data("arrays.h5:nothing").display().to_string()]);
    assert!(!String::from_utf8(dataset.stderr).unwrap().contains("did you mean"));
}

/// What a command does not heed, it refuses.
#[test]
fn each_command_has_its_own_options() {
    let rows = ["--csv-null", "--csv-separator", "--no-header", "--indexes"];
    let commands = [
        (&["mount"][..], true),
        (&["ls"], true),
        (&["prepare"], true),
        (&["query"], true),
        (&["export"], true),
        (&["cat"], true),
        (&["info"], false),
        (&["head"], false),
        (&["check"], false),
        (&["index", "list"], false),
        (&["index", "verify"], false),
        (&["index", "build"], false),
        (&["index", "drop"], false),
        (&["umount"], false),
        (&["status"], false),
        (&["demo"], false),
    ];
    for (command, shows_rows) in commands {
        let help = String::from_utf8(hepfs(command.iter().chain(&["--help"])).stdout).unwrap();
        for option in rows {
            assert_eq!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                shows_rows,
                "{command:?} {option}"
            );
        }
        // Types of `info`, values of `head`.
        let shows_types = ["info", "head"].contains(&command[0]);
        assert_eq!(help.contains("--times"), shows_rows || shows_types, "{command:?}");
        assert_eq!(help.contains("--parquet-stats"), ["mount", "cat"].contains(&command[0]), "{command:?}");
        // What is common to all commands that read is told in one place.
        let reads_files = !["umount", "status", "demo"].contains(&command[0]);
        assert_eq!(help.contains("`hepfs help reading`"), reads_files, "{command:?}");
        assert!(!help.contains("--cache-folder <") && !help.contains("--tables <"), "{command:?}: {help}");
        if !shows_rows {
            let output = hepfs(command.iter().chain(&["--no-header", "x"]));
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(2) && said.contains("unexpected argument '--no-header'"), "{said}");
        }
    }
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
         └─ table my_table: 500 rows, 4 columns (HEP001, April 2026), 10 KB\n     \
              @CLASS: \"COLUMN_TABLE\", @VERSION: \"1.0\", @column-order: [\"ts\",\"energy\",\"label\"], \
              @TITLE: \"Sample run\", @_index: \"row_id\"\n     \
              row_id  uint64                   row label\n     \
              ts      int64             [s]    Event timestamp.\n     \
              energy  float32           [MeV]\n     \
              label   dictionary<utf8>         Class label.\n\
         1 table, 1 group, 24 KB\n"
    );
    let links = said(&["info"], "links.h5");
    assert!(
        links.contains("─ external link external_table → links_target.h5:/remote; not shown: links into other files"),
        "{links}"
    );
    let broken = said(&["info"], "hostile/unequal_columns.h5");
    assert!(broken.contains(" c  int32  7 rows: not in table.*\n"), "{broken}");
    assert!(broken.contains("│ ! /t/c: 7 rows, most others 5"), "{broken}");
}

/// What a line of `info` names is a place, whatever characters a name in the file has.
#[test]
fn paths_of_info_are_places() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("names_arrays.h5"), folder.path().join("a.h5")).unwrap();
    let info = |place: &str| String::from_utf8(hepfs(["info", place, "--all", "--cache-folder=none"]).stdout).unwrap();
    let files = ["names_groups.h5", "names_arrays.h5"].map(|name| format!("{}:", data(name).display()));
    let mut found = Vec::new();
    for file in files.into_iter().chain([format!("{}:a.h5/", folder.path().display())]) {
        let said = info(&file);
        for (path, rest) in tables_in(&said) {
            let again = info(&format!("{file}{path}"));
            // What is no UTF-8 is no argument of this test, and what would reorder the line is printed otherwise.
            let is_other = path.contains('\u{fffd}') || path.contains("\\u{");
            let is_it = again.starts_with(&format!("table /{path}: {rest}\n")) || is_other;
            assert!(is_it, "{file}{path}: {again}");
            found.push(path);
        }
    }
    let escaped = ["%2541", "100%25", "%2E.", "%2Ehepfs", "new%0Aline", "%6Detadata.json", "clash/%78.npy"];
    for path in escaped.iter().chain(&["table_with_groups/%63olumns", "table_with_groups/%2563olumns"]) {
        assert!(found.iter().any(|found| found == path), "no {path} in {found:?}");
    }
}

#[test]
fn info_as_json_is_the_metadata_of_the_mount() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    for path in ["", "t"] {
        let mut json: Value = serde_json::from_str(&said(&["info", "--json"], &format!("units.h5:{path}"))).unwrap();
        let source = json.as_object_mut().unwrap().remove("source").unwrap();
        assert_eq!(source, data("units.h5").display().to_string());
        let shown = mounted.text(format!("{path}/metadata.json").trim_start_matches('/'));
        assert_eq!(json, serde_json::from_str::<Value>(&shown).unwrap());
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
        (["info", "units.h5:t/table.csv"], "is not a directory"),
        (["ls", "units.h5:t/table.csv/deeper"], "not a directory"),
    ];
    for ([command, place], words) in nothing {
        let output = hepfs([command.to_owned(), data(place).display().to_string()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command} {place}: {said}");
        assert!(said.starts_with("hepfs: ") && said.contains(words) && said.lines().count() == 1, "{said:?}");
    }
}

/// What belongs to a table or to files is none of them, and says to which.
#[test]
fn info_of_a_place_without_tables_says_where_to_look() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5"] {
        std::fs::copy(data("units.h5"), folder.path().join(name)).unwrap();
    }
    // A table of this name in both.
    std::fs::copy(data("names_groups.h5"), folder.path().join("c.h5")).unwrap();
    std::fs::copy(data("names_groups.h5"), folder.path().join("d.h5")).unwrap();
    let above = folder.path().display().to_string();
    let file = data("units.h5").display().to_string();
    let table = format!("{file}:t");
    for (place, owner) in [
        (format!("{file}:t/columns"), &table),
        (format!("{file}/t/where/"), &table),
        (format!("{file}:.hepfs"), &file),
        (format!("{above}:.datasets"), &above),
        (format!("{above}:.datasets/t/file=a.h5"), &above),
        (format!("{above}:a.h5/t/columns"), &format!("{above}:a.h5/t")),
    ] {
        for more in [None, Some("--json")] {
            let output = hepfs(["info", &place, "--cache-folder=none"].into_iter().chain(more));
            let said = String::from_utf8(output.stderr).unwrap();
            let expected =
                format!("hepfs: {place}: not a table, a group or a file, but a part of {owner}: name that instead\n");
            assert_eq!((said, output.stdout.len(), output.status.code()), (expected, 0, Some(1)));
        }
        assert!(hepfs(["info", owner, "--cache-folder=none"]).status.success(), "{owner}");
    }
}

/// What `info` names in a group or a table, it tells of; values are those of the scripts that wrote the files.
#[test]
fn info_of_an_array_says_how_it_is_stored() {
    let cases = [
        (
            "arrays.h5:layouts/partly_f8_big",
            "array /layouts/partly_f8_big: float64 big-endian, [7, 5]\n  chunks: [3, 2]\n  \
             filters: shuffle, deflate(4)\n  fill value: -7.0\n",
        ),
        (
            "arrays.h5:layouts/compact_i2_little",
            "array /layouts/compact_i2_little: int16, [7, 5]\n  storage: compact\n",
        ),
        (
            "arrays.h5:texts/fixed_square",
            "array /texts/fixed_square: fixed string of 5 bytes, utf-8, space-padded, [2, 3]\n  storage: contiguous\n",
        ),
        ("arrays.h5:texts/scalar_0", "array /texts/scalar_0: string of variable length, utf-8, scalar\n"),
        (
            "layouts.h5:t/partly_written",
            "column /t/partly_written: int64, 400 rows\n  shown as: int64\n  chunks: [64]\n",
        ),
        // As a file of it is called.
        ("arrays.h5:layouts/cube.npy", "array /layouts/cube: int32 big-endian, [3, 4, 5]\n  chunks: [2, 3, 2]\n"),
    ];
    for (place, expected) in cases {
        let told = said(&["info"], place);
        assert!(told.starts_with(expected), "{place}: {told}");
    }
    // Arrays that the group names.
    let group = said(&["info", "--all"], "arrays.h5:missing");
    let names = group.lines().filter_map(|line| Some(line.strip_prefix("├─ array ")?.split_once(": ")?.0));
    let mut count = 0;
    for name in names.step_by(8) {
        let told = said(&["info"], &format!("arrays.h5:missing/{name}"));
        assert!(told.starts_with(&format!("array /missing/{name}: ")), "{told}");
        count += 1;
    }
    assert!(count > 3, "{group}");
    let told = said(&["info"], "arrays.h5:missing/i32_1");
    assert!(told.contains(": int32, [3]\n") && told.contains("\n  attributes:\n    _FillValue: [-9999]\n"), "{told}");
    let json: Value = serde_json::from_str(&said(&["info", "--json"], "arrays.h5:missing/i32_1")).unwrap();
    let group: Value = serde_json::from_str(&said(&["info", "--json"], "arrays.h5:missing")).unwrap();
    let mut member = group["members"].as_array().unwrap().iter().find(|one| one["name"] == "i32_1").unwrap().clone();
    member["source"] = group["source"].clone();
    assert_eq!(json, member);
    // Of several, each line begins with its place.
    let places = ["arrays.h5:missing/i32_1", "layouts.h5:sparse_matrix"].map(|place| data(place).display().to_string());
    let several = String::from_utf8(hepfs(["info", &places[0], &places[1]]).stdout).unwrap();
    let is_told = |line: &str| places.iter().any(|place| line.starts_with(&format!("{place}: ")));
    assert!(several.lines().all(is_told), "{several}");
    assert!(several.contains("layouts.h5:sparse_matrix: array /sparse_matrix: uint16, [50, 50]\n"), "{several}");
}

/// The bytes of `cat` with further arguments.
fn cat(place: &str, more: &[&str]) -> Vec<u8> {
    let output = hepfs(["cat", place, "--cache-folder=none"].iter().chain(more));
    assert!(output.status.success() && output.stderr.is_empty(), "{place} {more:?}: {output:?}");
    output.stdout
}

#[test]
fn cat_writes_the_bytes_of_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    for (name, as_name) in [("units.h5", "a.h5"), ("units.h5", "b.h5"), ("seed_11_1.h5", "sub/c.h5")] {
        std::fs::create_dir_all(folder.path().join("sub")).unwrap();
        std::fs::copy(data(name), folder.path().join(as_name)).unwrap();
    }
    // Parquet files of a mount say what was learnt of their values by what was read before.
    let options = ["--parquet-stats=off"];
    // Of very many files a sample.
    let sources =
        [(data("seed_11_1.h5"), 1), (data("links.h5"), 1), (folder.path().into(), 1), (data("arrays.h5"), 29)];
    for (source, step) in &sources {
        let mounted = Mounted::new(&[source], &options);
        let top = mounted.path().display().to_string();
        let listed = must("find", [&top, "-not", "-type", "d", "-not", "-path", "*/.hepfs/*", "-printf", "%P\n"]);
        // A page names the paths of its mount.
        let files = listed.lines().filter(|path| mounted.join(path).is_file() && !path.ends_with("index.html"));
        let mut count = 0;
        for path in files.step_by(*step) {
            let place = format!("{}:{path}", source.display());
            assert!(cat(&place, &options) == mounted.read(path), "{place}");
            count += 1;
        }
        assert!(count > 10, "{}: {count} files", source.display());
    }
    let place = format!("{}:my_table/", sources[0].0.display());
    let mounted = Mounted::new(&[&sources[0].0], &["--csv-separator=tab", "--no-header", "--times=numbers"]);
    let more = ["--csv-separator=tab", "--no-header", "--times=numbers"];
    for path in ["where/energy:gt:5/table.csv", "where/energy:gt:5/columns/label.txt", "table.csv"] {
        let shown = mounted.read(format!("my_table/{path}"));
        assert!(!shown.is_empty() && cat(&format!("{place}{path}"), &more) == shown, "{path}");
    }
}

#[test]
fn cat_writes_a_part_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sample.h5");
    hepfs::producer::sample::write(&file, 60_000).unwrap();
    let place = |path: &str| format!("{}:run_042/{path}", file.display());
    for path in ["table.csv", "columns/event_id.npy", "table.parquet"] {
        let all = cat(&place(path), &["--parquet-stats=off"]);
        assert!(all.len() > 400_000, "{path}: {}", all.len());
        for (offset, length) in [("0", "0"), ("7", "1K"), ("100K", "300K"), ("399K", "1G"), ("8G", "8"), ("64K", "0")] {
            let number = |text: &str| -> usize {
                let (digits, factor) = match text.split_at(text.len() - 1) {
                    (digits, "K") => (digits, 1 << 10),
                    (digits, "G") => (digits, 1 << 30),
                    _ => (text, 1),
                };
                digits.parse::<usize>().unwrap() * factor
            };
            let start = number(offset).min(all.len());
            let end = (start + number(length)).min(all.len());
            let part = cat(&place(path), &["--parquet-stats=off", "--offset", offset, "--length", length]);
            assert!(part == all[start..end], "{path} {offset} {length}: {} bytes", part.len());
        }
    }
    // A reader that goes away early is no error; one that does not read can end the command.
    let line = format!("set -o pipefail; {} cat {} | head -n 1", HEPFS, place("table.csv"));
    let output = run("bash", ["-c", &line]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(output.stdout.starts_with(b"event_id,"), "{output:?}");
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal=INT", HEPFS, "cat", &place("table.csv")]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    signal(child.id(), libc::SIGINT);
    let ended = end_of(&mut child, LONG);
    child.kill().ok();
    assert_eq!(ended.unwrap().code(), Some(130));
}

#[test]
fn cat_of_what_is_no_file_says_what_there_is() {
    let file = data("units.h5").display().to_string();
    let refused = |place: &str| {
        let output = hepfs(["cat", place]);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let table = refused(&format!("{file}:t"));
    assert!(table.starts_with(&format!("hepfs: {file}:t: a directory; name a file in it")), "{table}");
    for name in ["table.csv", "table.parquet", "columns/"] {
        assert!(table.lines().any(|line| line == format!("  {file}:t/{name}")), "{name}: {table}");
    }
    assert!(refused(&file).contains(&format!("\n  {file}:metadata.json\n")));
    let many = refused(&data("arrays.h5:layouts").display().to_string());
    assert!(many.lines().count() == 22 && many.contains("… and "), "{many}");
    assert!(refused(&format!("{file}:t/tabel.csv")).contains("(did you mean \"table.csv\"?)"));
    let array = data("arrays.h5:layouts/cube").display().to_string();
    assert!(refused(&array).contains("cube.npy"), "{}", refused(&array));
    assert!(refused(&format!("{file}:t/where/mass:gtt:1/table.csv")).contains("gtt"));
}

#[test]
fn whoever_stops_reading_is_no_error() {
    let command = format!("{} info --all {} | head -n 1", HEPFS, data("hostile/columns_5000.h5").display());
    let output = run("bash", ["-c", &format!("set -o pipefail; {command}")]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout, b"group /\n");
}

#[test]
fn help_is_had_for_every_command() {
    let help = String::from_utf8(hepfs(["--help"]).stdout).unwrap();
    let commands = [
        "mount", "umount", "status", "ls", "cat", "info", "head", "prepare", "query", "export", "import", "convert",
        "index", "check", "demo",
    ];
    for command in commands {
        let lines = help.lines().filter(|line| line.starts_with(&format!("  {command} "))).count();
        let examples = help.lines().filter(|line| line.trim_start().starts_with(&format!("$ hepfs {command}"))).count();
        assert_eq!((lines, examples), (1, 1), "{command}: {help}");
        let own = hepfs([command, "--help"]);
        assert!(own.status.success() && own.stdout.len() > 100, "{command}: {own:?}");
    }
    assert_eq!(hepfs(["mount"]).status.code(), Some(2));
    let reading = must(HEPFS, ["help", "reading"]);
    for option in ["--cache-size", "--plugins", "--follow-external", "--tables", "--cache-folder"] {
        assert!(
            reading.contains(&format!("{option} <")) || reading.contains(&format!("{option}\n")),
            "{option}: {reading}"
        );
    }
    let mount = must(HEPFS, ["mount", "--help"]);
    for name in ["where/", "values.txt", ".datasets/", ".hepfs/errors", "columns/"] {
        assert!(mount.contains(name), "{name}: {mount}");
    }
}

#[test]
fn version_tells_of_libc_and_of_mounts() {
    let lines = must(HEPFS, ["version"]);
    let rest = lines.strip_prefix(&must(HEPFS, ["--version"])).unwrap_or_else(|| panic!("{lines}"));
    let libc = must("getconf", ["GNU_LIBC_VERSION"]);
    assert_eq!(rest.lines().next().unwrap().strip_prefix("libc: "), Some(libc.trim()), "{lines}");
    let check = hepfs(["run", "--check"]).stdout;
    assert!(rest.ends_with(&*String::from_utf8_lossy(&check)), "{lines}");
}

/// An optimised build of a checkout tells its commit, too.
#[test]
fn the_version_is_one_line_with_that_of_hdf5() {
    let version = must(HEPFS, ["--version"]);
    let own = concat!("hepfs ", env!("CARGO_PKG_VERSION"), " (");
    let inner =
        version.strip_prefix(own).and_then(|rest| rest.strip_suffix(")\n")).unwrap_or_else(|| panic!("{version}"));
    let (commit, hdf5) = inner.rsplit_once(", ").unwrap_or(("", inner));
    assert!(commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{version}");
    let numbers: Vec<&str> = hdf5.strip_prefix("HDF5 ").unwrap().split('.').collect();
    assert!(numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{version}");
}

/// A path is one that a mount would show, where links lead on.
#[test]
fn places_are_found_behind_links() {
    let file = data("versioned.h5");
    let shown = |path: &str| {
        let place = format!("{}:{path}", file.display());
        let output = hepfs(["query", &place, "limit 3", "--cache-folder", "none"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let mounted = Mounted::new(&[&file], &[]);
    let target = std::fs::read_link(mounted.join(".versions/current")).unwrap();
    let version = shown(&format!(".versions/{}/numbers", target.display()));
    assert_eq!(shown(".versions/current/numbers"), version);
    assert_eq!(shown(".versions/current/../current/numbers"), version);
    // A table goes where it lies, whichever way led there.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.h5").to_str().unwrap().to_owned();
    for (path, table) in [("./numbers", "numbers"), ("nested/../packed", "packed")] {
        let source = format!("{}:{path}", file.display());
        let output = hepfs(["convert", &source, &out, "--cache-folder", "none"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(hepfs(["info", &out, "--cache-folder", "none"]).stdout).unwrap();
        assert!(said.contains(&format!("table {table}:")) && !said.contains(".."), "{said}");
    }
}

/// `info` describes members while it lists them; a mount lists a group of 1,101 links a second time for that.
#[test]
fn info_says_of_a_large_group_what_a_mount_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    create::file::<create::Error>(&path, |root| {
        root.dataset("data", &f64::ELEMENT, &Storage::contiguous(&[1]), &FillSetting::Unset)?;
        (0..1100).try_for_each(|at| root.soft_link(&format!("l{at}"), if at % 2 == 0 { "/data" } else { "/nowhere" }))
    })
    .unwrap();
    let said = must(HEPFS, ["info".as_ref(), "--json".as_ref(), path.as_os_str()]);
    let mut said: Value = serde_json::from_str(&said).unwrap();
    said.as_object_mut().unwrap().remove("source");
    let mounted = Mounted::new(&[&path], &[]);
    let metadata: Value = serde_json::from_str(&mounted.text("metadata.json")).unwrap();
    assert_eq!(metadata["members"].as_array().unwrap().len(), 1101);
    assert!(said == metadata);
}
