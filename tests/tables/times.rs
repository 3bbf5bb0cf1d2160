//! Columns of times (`tests/data/times.h5`, whose values `every_fixture` checks): how they are asked for, by which
//! option they are numbers, what is told of them; and what `hepfs query` does beside conditions.

use std::process::Output;

use serde_json::Value;

use crate::data;
use crate::support::{Mounted, hepfs, must};

/// The columns of a fixture's table have these rows, by their stored values: the least, 0, 1, 41, a seventh of the
/// greatest, the one before it, the greatest.
const ROWS: [usize; 7] = [0, 1, 2, 3, 4, 5, 6];

fn query(file: &str, arguments: &[&str]) -> Output {
    let place = format!("{}:t", data(file).display());
    hepfs(["query", &place, "--cache-folder", "none"].iter().chain(arguments))
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Which rows of `times.h5` a query finds, told by the column `ns_i8`, whose values all differ.
fn found(expression: &str) -> Vec<usize> {
    let all = text(&query("times.h5", &["limit 7", "--columns", "ns_i8"]));
    let all: Vec<&str> = all.lines().skip(1).collect();
    let found = text(&query("times.h5", &[expression, "--columns", "ns_i8"]));
    found.lines().skip(1).map(|line| all.iter().position(|other| *other == line).unwrap()).collect()
}

/// Expected: instants of `times.expected.json`, compared by hand; what has none is missing.
#[test]
fn dates_are_compared_exactly() {
    assert_eq!(found("ns_i8 > '1970-01-01'"), [2, 3, 4, 5, 6]);
    assert_eq!(found("ns_i8 >= '1970-01-01T00:00:00.000000041Z'"), [3, 4, 5, 6]);
    assert_eq!(found("ns_i8 = '1970-01-01 02:00:00.000000041 +02:00'"), [3]);
    assert_eq!(found("ns_i8 > '1970-01-01T00:00:00.0000000409999'"), [3, 4, 5, 6]);
    assert_eq!(found("ns_i8 = '1970-01-01T00:00:00.0000000409999'"), [0; 0]);
    assert_eq!(found("ns_i8 < '1970-01-01T00:00:00.0000000410001'"), [0, 1, 2, 3]);
    // Dates are spelt in several ways.
    assert_eq!(found("days_i4 = '1970/02/11'"), [3]);
    assert_eq!(found("days_i4 between '1970-01-01T12:00' and '19700211'"), [2, 3]);
    assert_eq!(found("days_i4 in ('1970-01-02', '1970-02-11T00:00:01', '1970-01-01')"), [1, 2]);
    assert_eq!(found("days_i4 > '+5881580-07-10'"), [6]);
    assert_eq!(found("proleptic < '0001-01-01'"), [0]);
    // Unsigned, and further than any value.
    assert_eq!(found("ns_u8 >= '1970-01-01'"), [0, 1, 2, 3, 4]);
    assert_eq!(found("us_i8 < '999999999999-01-01'"), ROWS);
    assert_eq!(found("year(days_i4) = 1970"), [1, 2, 3]);
    assert_eq!(found("not year(days_i4) <= 1970"), [4, 5, 6]);
    assert_eq!(found("year(proleptic) between -10000000 and 1"), [0, 1, 2, 3]);
}

/// Of `s_i8` the values of the rows 1, 2 and 3 have instants.
#[test]
fn what_has_no_instant_is_missing_to_conditions() {
    assert_eq!(found("s_i8 is null"), [0, 4, 5, 6]);
    assert_eq!(found("s_i8 is not null"), [1, 2, 3]);
    assert_eq!(found("not s_i8 is null"), [1, 2, 3]);
    assert_eq!(found("s_i8 > '1970-01-01'"), [2, 3]);
    assert_eq!(found("s_i8 != '1970-01-01'"), [2, 3]);
    assert_eq!(found("not s_i8 > '1970-01-01'"), [1]);
    assert_eq!(found("not s_i8 in ('1970-01-01', '2000-01-01')"), [2, 3]);
    // Row 3 of this one equals the fill value.
    assert_eq!(found("s_fill is null or s_fill = '1970-01-01T00:00:01'"), [0, 2, 3, 4, 5, 6]);
    let mounted = Mounted::new(&[&data("times.h5")], &[]);
    drop(mounted.read("t/columns/s_i8.csv"));
    let findings = mounted.text(".hepfs/findings");
    let line = findings.lines().find(|line| line.contains("/t/s_i8")).unwrap();
    assert!(line.contains("an instant fits 64 bits"), "{line}");
    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["rows"], 4, "{line}");
}

#[test]
fn paths_take_dates_and_refuse_what_is_none() {
    let mounted = Mounted::new(&[&data("times.h5")], &[]);
    let rows = |segment: &str| mounted.text(format!("t/where/{segment}/columns/days_i4.txt")).lines().count();
    assert_eq!(rows("days_i4:ge:1970-01-02"), 5);
    assert_eq!(rows("days_i4:between:1970-01-01T12%3A00,1970-02-11T02%3A00%2B02%3A00"), 2);
    assert_eq!(rows("days_i4:gt:1970-02-10"), 4);
    assert_eq!(rows("year(days_i4):eq:1970"), 3);
    assert_eq!(rows("s_i8:null"), 4);
    let values = mounted.text("t/where/values.txt");
    assert!(values.contains("  days_i4  times ("), "{values}");
    assert!(!mounted.join("t/where/days_i4:gt:1970-02-30").exists());
    assert!(mounted.text(".hepfs/errors").contains("no value of a column of times"));
    // A number is no date, and a path has no quotes.
    for (segment, hint) in [("days_i4:gt:1971", "write 1971-01-01;"), ("days_i4:eq:19700101", "write 2026-01-01;")] {
        assert!(!mounted.join(format!("t/where/{segment}")).exists());
        assert!(mounted.text(".hepfs/errors").contains(hint), "{segment}");
    }
    // Files of a selection are as those of the table.
    let npy = mounted.read("t/where/days_i4:valid/columns/days_i4.npy");
    assert_eq!(npy, mounted.read("t/columns/days_i4.npy"));
}

/// What it counts, and from when, is seldom what is meant: in nanoseconds every date is greater than 2026.
#[test]
fn numbers_are_compared_with_times_where_these_are_shown_as_numbers() {
    for expression in ["ns_i8 > 2026", "ns_i8 in ('2026-01-01', 2026)", "year(ns_i8) = 1970 and ns_i8 = 2026"] {
        let refused = query("times.h5", &[expression]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let hint = "ns_i8: 2026 is no time: write '2026-01-01'; --times numbers compares the stored numbers";
        assert!(!refused.status.success() && said.contains(hint), "{said}");
    }
    assert!(query("times.h5", &["ns_i8 > 2026", "--times=numbers"]).status.success());
    let numbers = Mounted::new(&[&data("times.h5")], &["--times=numbers"]);
    assert_eq!(numbers.text("t/where/days_i4:gt:40/columns/days_i4.txt").lines().count(), 4);
}

#[test]
fn an_option_shows_the_numbers() {
    let cache = tempfile::tempdir().unwrap();
    let cache = format!("--cache-folder={}", cache.path().display());
    let times = Mounted::new(&[&data("times.h5")], &[&cache]);
    let numbers = Mounted::new(&[&data("times.h5")], &[&cache, "--times=numbers"]);
    // What one has learnt of sizes is not the other's.
    for _ in 0..2 {
        assert_eq!(numbers.text("t/columns/days_i4.txt").lines().nth(3), Some("41"));
        assert_eq!(times.text("t/columns/days_i4.txt").lines().nth(3), Some("1970-02-11T00:00:00Z"));
    }
    for name in ["days_i4.npy", "days_i4.raw", "s_i8.npy"] {
        assert_eq!(times.read(format!("t/columns/{name}")), numbers.read(format!("t/columns/{name}")));
    }
    let metadata = |mounted: &Mounted| serde_json::from_slice::<Value>(&mounted.read("t/metadata.json")).unwrap();
    let column = |metadata: &Value, name: &str| {
        metadata["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap().clone()
    };
    let (shown, stored) = (metadata(&times), metadata(&numbers));
    assert_eq!(column(&shown, "ns_i8")["type"], "timestamp[ns, UTC]");
    assert_eq!(column(&shown, "s_i8")["nullable"], true);
    assert_eq!(column(&shown, "ns_i8")["nullable"], false);
    assert_eq!(column(&shown, "noleap")["not_times"], "the calendar \"noleap\" is not that of ISO 8601");
    assert_eq!(column(&shown, "float")["not_times"], "values of Float64 are no integers");
    assert_eq!(column(&shown, "duration").get("not_times"), None);
    assert_eq!(column(&stored, "ns_i8")["type"], "int64");
    assert_eq!(column(&stored, "noleap").get("not_times"), None);
    let place = data("times.h5").display().to_string();
    assert!(must(env!("CARGO_BIN_EXE_hepfs"), ["info", &place]).contains("timestamp[s, UTC]"));
    assert!(!must(env!("CARGO_BIN_EXE_hepfs"), ["info", "--times=numbers", &place]).contains("timestamp"));
    let output = query("times.h5", &["days_i4 = 41", "--times=numbers", "--columns", "days_i4"]);
    assert_eq!(text(&output), "days_i4\n41\n");
    assert!(!query("times.h5", &["days_i4 = '1970-01-01'", "--times=numbers"]).status.success());
}

/// Search indexes speak of stored integers, and answer for instants.
#[test]
fn search_indexes_answer_for_instants() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times.h5");
    std::fs::copy(data("times.h5"), &file).unwrap();
    let place = format!("{}:t", file.display());
    let program = env!("CARGO_BIN_EXE_hepfs");
    for name in ["s_i8", "days_i4"] {
        let built = ["index", "build", &place, "--column", name, "--kind", "minmax,sorted,bitmap,bloom"];
        must(program, built.iter().chain(&["--references", "object"]));
    }
    must(
        program,
        ["index", "verify", &file.display().to_string(), "--cache-folder", &folder.path().display().to_string()],
    );
    for (expression, expected) in [
        ("s_i8 = '1970-01-01T00:00:41Z'", "ns_i8\n1970-01-01T00:00:00.000000041Z\n"),
        ("s_i8 > '2000-01-01'", "ns_i8\n"),
        ("days_i4 = '1970-01-02'", "ns_i8\n1970-01-01T00:00:00.000000001Z\n"),
    ] {
        for indexes in ["trust", "verify", "ignore"] {
            let line = ["query", &place, expression, "--columns", "ns_i8", "-v"];
            let options = [format!("--indexes={indexes}"), format!("--cache-folder={}", folder.path().display())];
            let output = hepfs(line.iter().map(|word| word.to_string()).chain(options));
            assert_eq!(text(&output), expected, "{expression} {indexes}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let used = ["CHUNK_MINMAX", "SORTED_ROWS", "BITMAP", "CHUNK_BLOOM"].iter().any(|kind| said.contains(kind));
            assert_eq!(used, indexes != "ignore", "{expression} {indexes}: {said}");
        }
    }
}

/// `delta` of this frame has a second more in each row, and is missing in the third (`scripts/fixtures/pandas.py`).
#[test]
fn durations_are_compared_with_lengths_of_time() {
    let place = format!("{}:every_7", data("pandas3.h5").display());
    let found = |expression: &str| {
        let output = hepfs(["query", &place, expression, "--cache-folder=none", "--columns=small"]);
        text(&output).lines().skip(1).map(|line| line.parse().unwrap()).collect::<Vec<usize>>()
    };
    assert_eq!(found("delta > '4 s'"), [5, 6]);
    assert_eq!(found("delta >= '0.05 min'"), [3, 4, 5, 6]);
    assert_eq!(found("delta between '00:00:00.5' and '0 days 00:00:04'"), [1, 3, 4]);
    assert_eq!(found("delta < '1 days 02:03:04' and delta > '-1 h'"), [0, 1, 3, 4, 5, 6]);
    assert_eq!(found("delta = '1000 ms' or delta in ('5 sec', '2.5 s')"), [1, 5]);
    let mounted = Mounted::new(&[&data("pandas3.h5")], &[]);
    let rows = |segment: &str| mounted.text(format!("every_7/where/{segment}/columns/small.txt"));
    assert_eq!(rows("delta:gt:4 s"), "5\n6\n");
    assert_eq!(rows("delta:le:0 days 00%3A00%3A01"), "0\n1\n");
    assert!(mounted.text("every_7/where/values.txt").contains("  delta  durations (10 min"));
    let refused = hepfs(["query", &place, "delta > '2 months'", "--cache-folder=none"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no value of a column of durations"));
}

#[test]
fn fields_of_compounds_are_asked_for() {
    let rows = |expression: &str| {
        text(&query("types_compounds.h5", &[expression, "--columns", "nested"])).lines().skip(1).count()
    };
    let all = must(
        env!("CARGO_BIN_EXE_hepfs"),
        [
            "query",
            &format!("{}:t", data("types_compounds.h5").display()),
            "limit 3",
            "--columns",
            "nested",
            "--format=ndjson",
        ],
    );
    let values: Vec<Value> =
        all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["nested"].clone()).collect();
    let number = |value: &Value| value.as_f64().unwrap();
    for value in &values {
        let outer = number(&value["outer"]);
        let expected = values.iter().filter(|other| number(&other["outer"]) > outer).count();
        assert_eq!(rows(&format!("nested.outer > {outer}")), expected);
        let deep = number(&value["inner"]["deep"]["z"]);
        let expected = values.iter().filter(|other| number(&other["inner"]["deep"]["z"]) == deep).count();
        assert_eq!(rows(&format!("nested.inner.deep.z = {deep}")), expected);
    }
    // A missing compound has missing fields.
    let filled = text(&query("types_compounds.h5", &["filled.a is null", "--columns", "filled"]));
    let missing = text(&query("types_compounds.h5", &["filled is null", "--columns", "filled"]));
    assert!(filled == missing && missing.lines().count() > 1, "{missing}");
    let mounted = Mounted::new(&[&data("types_compounds.h5")], &[]);
    assert_eq!(mounted.text("t/where/nested.outer:valid/columns/nested.txt").lines().count(), 3);
    assert!(mounted.text("t/where/values.txt").contains("  nested.inner.deep.z  integers"));
    let refused = query("types_compounds.h5", &["nested.none = 1"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no column \"nested.none\""));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    for (name, format) in [("a.csv", "csv"), ("b.ndjson", "ndjson"), ("c.parquet", "parquet"), ("d.arrow", "arrow")] {
        let output = query("times.h5", &["ns_i8 > '1970-01-01'", "-o", &at(name)]);
        assert!(output.status.success() && output.stdout.is_empty());
        let expected = query("times.h5", &["ns_i8 > '1970-01-01'", "--format", format]).stdout;
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), expected, "{name}");
    }
    // Through a link, and over what was there.
    std::os::unix::fs::symlink("a.csv", folder.path().join("link.csv")).unwrap();
    assert!(
        query("times.h5", &["ns_i8 > '1970-01-01' limit 1", "--columns", "ns_i8", "-o", &at("link.csv")])
            .status
            .success()
    );
    assert!(std::fs::symlink_metadata(folder.path().join("link.csv")).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(folder.path().join("a.csv")).unwrap().lines().count(), 2);
    let before = names();
    assert!(!query("times.h5", &["ns_i8 > '1970-01-01'", "-o", &at("a.txt")]).status.success());
    assert!(!query("times.h5", &["no > 0", "-o", &at("e.csv")]).status.success());
    assert!(!query("times.h5", &["ns_i8 > '1970-01-01'", "-o", &at("none/e.csv")]).status.success());
    assert_eq!(names(), before);
    assert!(query("times.h5", &["ns_i8 > '1970-01-01'", "-o", "/dev/null", "--format=csv"]).status.success());
    // An HDF5 file, which may be the source, stays.
    let source = folder.path().join("source.csv");
    std::fs::copy(data("times.h5"), &source).unwrap();
    let place = format!("{}:t", source.display());
    let output =
        hepfs(["query", &place, "ns_i8 > '1970-01-01'", "--cache-folder=none", "-o", &source.display().to_string()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("that is an HDF5 file"));
    assert_eq!(std::fs::read(&source).unwrap(), std::fs::read(data("times.h5")).unwrap());
}

/// Stretches of 65,536 rows behind those that a limit needs are not looked at.
#[test]
fn a_limit_ends_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sample.h5");
    hepfs::producer::sample::write(&file, 600_000).unwrap();
    let place = format!("{}:run_042", file.display());
    let ask = |expression: &str| {
        let output = hepfs(["query", &place, expression, "--cache-folder=none", "--columns=event_id", "-v"]);
        let rows: Vec<String> = text(&output).lines().skip(1).map(str::to_owned).collect();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let blocks = said.split(" blocks of 65,536 rows").next().unwrap().rsplit(' ').next().unwrap();
        (rows, blocks.parse::<u64>().unwrap_or_else(|_| panic!("{said}")))
    };
    let (all, blocks) = ask("label = 'muon'");
    assert_eq!((all.len() > 100_000, blocks), (true, 10));
    assert_eq!(ask("label = 'muon' limit 5"), (all[..5].to_vec(), 4));
    let many = all.len() - 1;
    assert_eq!(ask(&format!("label = 'muon' limit {many}")), (all[..many].to_vec(), 10));
    assert_eq!(ask(&format!("label = 'muon' limit {}", many + 100)), (all, 10));
}

#[test]
fn an_order_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sample.h5");
    hepfs::producer::sample::write(&file, 300_000).unwrap();
    let place = format!("{}:run_042", file.display());
    let ask = |expression: &str, columns: &str| {
        hepfs(["query", &place, expression, "--cache-folder=none", "--cache-size=4M", "--columns", columns])
    };
    for (expression, what) in [("order by comment", "keys"), ("ts > '1970-01-01' order by ts", "keys")] {
        let output = ask(expression, "event_id");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(what) && said.contains("`limit` makes them fewer"), "{said}");
        assert!(output.stdout.is_empty());
    }
    // Keys fit, and the rows do not.
    let output = ask("order by hit desc limit 40000", "event_id,ts,comment,readings,tags,position");
    assert!(String::from_utf8_lossy(&output.stderr).contains("rows in order"));
    assert_eq!(text(&ask("order by ts desc limit 1000", "event_id")).lines().nth(1), Some("42000299999"));
}
