//! Search indexes, checked against another implementation: verdicts, and the rows that queries find with and without
//! them. `scripts/fixtures/search_index.py` writes the files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hepfs::h5;
use hepfs::indexes::{self, State, Trust, Verdict};
use hepfs::query::{BoundPredicate, Selection, UsedIndex, expression, filtered};
use hepfs::session::{OpenFile, Session};
use hepfs::source::Interrupt;
use hepfs::store::decode::widen;
use hepfs::store::{Options, Store};
use hepfs::table::{Column, IndexContent, Table};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::data;
use crate::support::{Mounted, hepfs};

fn expected(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(data(&format!("{name}.json"))).unwrap()).unwrap()
}

/// A file opened without a mount.
struct Opened {
    session: Arc<Session>,
    file: OpenFile,
}

impl Opened {
    fn new(name: &str) -> Self {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_hepfs"));
        let workers = h5::Options { program, ..h5::Options::default() };
        let session = Session::new(Store::new(Options::default()), workers);
        let file = session.open(data(&format!("{name}.h5"))).unwrap();
        Self { session, file }
    }

    fn table(&self, path: &str) -> Arc<Table> {
        self.file.table(path).unwrap_or_else(|error| panic!("{path}: {error}")).model().clone()
    }

    /// The rows that an expression finds, and what was of use for it.
    fn select(&self, table: &Table, text: &str, trust: Trust) -> (Vec<u64>, Vec<UsedIndex>) {
        let interrupt = Interrupt::new();
        let predicate = expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let bound =
            BoundPredicate::trusting(table, &predicate, trust).unwrap_or_else(|error| panic!("{text}: {error}"));
        let selection = Selection::new(&table.path, table.rows, bound, &self.session.store, None).unwrap();
        let found = filtered(table, &selection.selected(&interrupt).unwrap(), text);
        let numbers = found.columns.iter().find(|column| column.name == "row").unwrap();
        let rows = numbers.rows.as_ref().unwrap().array(0..found.rows, &interrupt).unwrap();
        let rows = widen::unsigned(&rows).unwrap();
        let used = selection.explained().map(|explained| explained.indexes).unwrap_or_default();
        (rows.values().to_vec(), used)
    }
}

/// The same table, of which nothing is known but what its search indexes say.
fn without_statistics(table: &Table) -> Table {
    let columns = table.columns.iter().cloned().map(|column| Column { learner: None, ..column });
    Table {
        revision: table.revision.clone(),
        rows: table.rows,
        attributes: table.attributes.clone(),
        columns: columns.collect(),
        categories: table.categories.clone(),
        indexes: table.indexes.clone(),
        servants: table.servants.clone(),
        ..Table::empty(&table.path, table.dialect)
    }
}

fn is_right(answer: &Value, rows: &[u64]) -> bool {
    match answer["rows"].as_array() {
        Some(expected) => expected.iter().map(|row| row.as_u64().unwrap()).eq(rows.iter().copied()),
        None => {
            let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
            let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            answer["count"] == rows.len() && answer["sha256"] == hash.as_str()
        }
    }
}

/// The word for what is known of each index of a table, by name.
fn verdicts(table: &Table) -> BTreeMap<String, &'static str> {
    let word = |state| match state {
        State::Verified => "valid",
        state => State::name(state),
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    table
        .indexes
        .iter()
        .map(|index| (name(&index.path), word(indexes::describe("".as_ref(), &table.path, index).verdict)))
        .collect()
}

fn verify(table: &Table) {
    for form in table.indexes.iter().filter_map(|index| index.form.as_ref().ok()) {
        indexes::verify(form, &Interrupt::new(), &|_| {}).unwrap_or_else(|error| panic!("{}: {error}", form.path));
    }
}

/// Verdicts and answers of all tables of a file. How many blocks each kind of index was good for.
fn check(name: &str, all_right: bool) -> BTreeMap<&'static str, u64> {
    let expected = expected(name);
    let mut used: BTreeMap<&'static str, u64> = BTreeMap::new();
    let tables = expected["tables"].as_array().unwrap();
    // Each table before anything is verified, with indexes that are simply trusted, and after.
    let (unverified, verified) = (Opened::new(name), Opened::new(name));
    for told in tables {
        let path = told["table"].as_str().unwrap();
        let (before, after) = (unverified.table(path), verified.table(path));
        let (unlearnt, after_unlearnt) = (without_statistics(&before), without_statistics(&after));
        assert!(verdicts(&before).values().all(|verdict| *verdict != "valid" && *verdict != "broken"), "{path}");
        verify(&after);
        let said = verdicts(&after);
        for (index, told_of_index) in told["indexes"].as_object().unwrap() {
            // What does not lie where search indexes do is none.
            let said = said.get(index).copied().unwrap_or("absent");
            let allowed = told_of_index["verdict"].as_array().unwrap();
            assert!(allowed.iter().any(|verdict| *verdict == said), "{path} {index}: {said}, not {told}");
        }
        for query in expected["columns"][told["column"].as_str().unwrap()].as_array().unwrap() {
            let text = query["expression"].as_str().unwrap();
            let mut modes =
                vec![(&unverified, before.as_ref(), Trust::Ignore), (&verified, &after_unlearnt, Trust::Verify)];
            modes.push((&verified, &after, Trust::Verify));
            // One whose order is another is right all the same, and finds other rows.
            let is_trusted = !said.values().any(|verdict| *verdict == "unverifiable");
            // What is known to be wrong is not trusted either.
            modes.push((&verified, &after, Trust::Trust));
            if all_right {
                modes.push((&unverified, &unlearnt, Trust::Trust));
            }
            for (opened, table, trust) in modes.into_iter().filter(|mode| is_trusted || mode.2 != Trust::Trust) {
                let (rows, with) = opened.select(table, text, trust);
                assert!(is_right(query, &rows), "{path}, {trust:?}: {text}: {rows:?}");
                assert!(trust != Trust::Ignore || with.is_empty(), "{path}: {text}: {with:?}");
                with.iter().for_each(|index| *used.entry(index.kind).or_default() += index.blocks);
            }
        }
    }
    used
}

#[test]
fn right_indexes_are_verified_and_of_use() {
    let used = check("search_indexes", true);
    // Tables of one block: filters rule it out where a value occurs nowhere.
    for (kind, least) in [("BITMAP", 1000), ("CHUNK_BLOOM", 10), ("CHUNK_MINMAX", 100), ("SORTED_ROWS", 100)] {
        assert!(used.get(kind).is_some_and(|blocks| *blocks >= least), "{used:?}");
    }
}

#[test]
fn bitmaps_tell_the_same_rows_in_chunks_of_any_form() {
    let used = check("search_indexes_bitmaps", true);
    // Eight tables of five blocks each.
    assert!(used.get("BITMAP").is_some_and(|blocks| *blocks > 500), "{used:?}");
}

#[test]
fn broken_indexes_are_found_and_never_believed() {
    check("search_indexes_broken", false);
}

/// Values of a few rows at a time, by several passes over the column.
#[test]
fn orders_are_verified_in_little_memory() {
    let (mut said, mut short) = (BTreeMap::<&str, u64>::new(), 0);
    for name in ["search_indexes", "search_indexes_broken", "search_indexes_pytables", "search_indexes_pytables_broken"]
    {
        let expected = expected(name);
        for memory in [64, 128, 256, 512, 2_000, 4_000, 400_000] {
            let opened = Opened::new(name);
            for told in expected["tables"].as_array().unwrap() {
                let table = opened.table(told["table"].as_str().unwrap());
                for form in table.indexes.iter().filter_map(|index| index.form.as_ref().ok()) {
                    if !matches!(&form.kind, IndexContent::SortedRows { .. } | IndexContent::SortedValues { .. }) {
                        continue;
                    }
                    let whole = form.rows() * form.values.stored_width().unwrap_or(1);
                    if whole <= memory {
                        continue;
                    }
                    let verdict = indexes::verify_within(form, memory, &Interrupt::new(), &|_| {}).unwrap();
                    let word = match verdict {
                        Verdict::Verified(_) => "valid",
                        Verdict::Broken { .. } => "broken",
                        Verdict::Unverifiable { .. } => {
                            short += 1;
                            continue;
                        }
                    };
                    let allowed = &told["indexes"][form.path.rsplit('/').next().unwrap()]["verdict"];
                    let allowed = allowed.as_array().unwrap();
                    assert!(allowed.iter().any(|allowed| *allowed == word), "{}, {memory}: {verdict:?}", form.path);
                    *said.entry(if form.rows() > 1000 { "long" } else { word }).or_default() += 1;
                }
            }
        }
    }
    // What needs more than eight passes is left alone.
    assert!(short > 0 && ["valid", "broken", "long"].iter().all(|word| said.contains_key(word)), "{said:?}, {short}");
    println!("{said:?}, {short}");
}

#[test]
fn indexes_of_the_reference_producer_are_right() {
    let used = check("search_indexes_h5col", true);
    for kind in ["BITMAP", "SORTED_ROWS"] {
        assert!(used.get(kind).is_some_and(|blocks| *blocks > 10), "{used:?}");
    }
}

#[test]
fn indexes_of_pytables_tell_the_rows_that_pytables_finds() {
    let used = check("search_indexes_pytables", true);
    for (kind, least) in [("SORTED_VALUES", 400), ("BOUNDS", 40)] {
        assert!(used.get(kind).is_some_and(|blocks| *blocks >= least), "{used:?}");
    }
}

#[test]
fn indexes_of_pytables_that_are_stale_or_lie_are_never_believed() {
    check("search_indexes_pytables_broken", false);
}

/// A cache folder, and arguments that name it.
fn cache() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--cache-folder".into(), folder.path().display().to_string()];
    (folder, arguments)
}

fn run(arguments: &[&str], cache: &[String]) -> (Option<i32>, String) {
    let output = hepfs(arguments.iter().copied().chain(cache.iter().map(String::as_str)));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn commands_say_what_is_wrong_by_their_exit_code() {
    let (folder, cache) = cache();
    let [right, broken] =
        ["search_indexes.h5", "search_indexes_broken.h5"].map(|name| data(name).display().to_string());
    let of_table = format!("{broken}:july/min_raised");
    let (_, listed) = run(&["index", "list", "--json", &of_table], &cache);
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["verdict"], "unknown");
    let (code, verified) = run(&["index", "verify", &of_table], &cache);
    assert!(
        code == Some(1) && verified.contains("broken") && verified.contains("min is the least value"),
        "{verified}"
    );
    // It is known from now on.
    let (_, listed) = run(&["index", "list", "--json", &of_table], &cache);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["verdict"], &listed["kind"]), (&"broken".into(), &"CHUNK_MINMAX".into()));
    assert!(listed["place"].as_str().unwrap().starts_with("chunk "), "{listed}");

    // What is damaged is not known.
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(path, bytes).unwrap();
    }
    let (_, listed) = run(&["index", "list", "--json", &of_table], &cache);
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["verdict"], "unknown");

    assert_eq!(run(&["index", "verify", &right], &cache).0, Some(0));
    // Some tables have no fill value, some values codes without a name, or codes of no label: no fault of indexes.
    let (code, report) = run(&["check", "--json", &right], &cache);
    let findings =
        |report: &str| -> Vec<Value> { report.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let errors = |findings: Vec<Value>| findings.into_iter().filter(|finding| finding["severity"] == "error");
    let is_known = |finding: Value| {
        let id = finding["id"].as_str().unwrap();
        ["hep001/fill-missing", "hep001/category-range", "hep001/fill-among-values"].contains(&id)
    };
    assert!(code == Some(1) && errors(findings(&report)).all(is_known), "{report}");
    let (code, report) = run(&["check", "--json", &broken], &cache);
    let of_indexes = |finding: &Value| finding["path"].as_str().unwrap().to_lowercase().contains("search_indexes");
    assert!(code == Some(1) && errors(findings(&report)).filter(of_indexes).count() > 20, "{report}");
    assert_eq!(run(&["check", "none.h5"], &cache).0, Some(2));

    // An index that says itself that it is out of date is no fault, nor is one of a kind without use.
    let [right, broken] = ["search_indexes_pytables.h5", "search_indexes_pytables_broken.h5"]
        .map(|name| data(name).display().to_string());
    for (file, table, state, code) in [
        (&right, "csi_int64", "verified", 0),
        (&right, "medium_6", "unused", 0),
        (&right, "frame_medium", "unused", 0),
        (&right, "csi_nul", "unverifiable", 2),
        (&broken, "stale_append", "stale", 0),
        (&broken, "h5py_appended", "stale", 1),
        (&broken, "twice", "broken", 1),
        (&broken, "slicesize_0", "absent", 1),
    ] {
        let (told, said) = run(&["index", "verify", &format!("{file}:{table}")], &cache);
        assert!(told == Some(code) && said.lines().all(|line| line.starts_with(state)), "{table}, {told:?}: {said}");
    }
}

/// `.hepfs/indexes` of a table.
fn told(mounted: &Mounted, table: &str) -> Vec<Value> {
    let lines = mounted.text(".hepfs/indexes");
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["table"] == table).collect()
}

#[test]
fn a_mount_verifies_what_a_selection_could_not_use() {
    let (_folder, cache) = cache();
    let cache = cache.each_ref().map(String::as_str);
    let mounted = Mounted::new(&[&data("search_indexes.h5")], &cache);
    let selected = "july/label/where/v:eq:muon/columns/row.csv";
    mounted.names("july/label");
    assert!(told(&mounted, "/july/label").iter().all(|index| index["verdict"] == "unknown"));
    let rows = mounted.read(selected);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while told(&mounted, "/july/label").iter().any(|index| index["verdict"] != "verified") {
        assert!(std::time::Instant::now() < end, "{:?}", told(&mounted, "/july/label"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let explained: Value = serde_json::from_str(mounted.text(".hepfs/explain").lines().next().unwrap()).unwrap();
    assert_eq!(explained["search_indexes"], serde_json::json!([]));
    drop(mounted);

    // The next mount uses them; one that ignores them finds the same rows.
    let mounted = Mounted::new(&[&data("search_indexes.h5")], &cache);
    assert_eq!(mounted.read("july/label/where/v:in:muon/columns/row.csv"), rows);
    let explained: Value = serde_json::from_str(mounted.text(".hepfs/explain").lines().next().unwrap()).unwrap();
    assert_eq!(explained["search_indexes"][0]["kind"], "BITMAP", "{explained}");
    assert_eq!(explained["bytes_decoded"], 0, "{explained}");
    drop(mounted);
    let mounted = Mounted::new(&[&data("search_indexes.h5")], &["--indexes", "ignore"]);
    assert_eq!(mounted.read(selected), rows);
}

#[test]
fn verification_teaches_statistics_that_parquet_tells() {
    let (_folder, cache) = cache();
    let source = data("search_indexes.h5");
    let arguments = cache.each_ref().map(String::as_str);
    let has_bounds = |arguments: &[&str]| {
        let mounted = Mounted::new(&[&source], arguments);
        let file = std::fs::File::open(mounted.join("july/i64/columns/v.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        reader.metadata().row_group(0).column(0).statistics().is_some_and(|told| told.min_bytes_opt().is_some())
    };
    assert!(!has_bounds(&["--cache-folder", "none"]));
    assert_eq!(run(&["index", "verify", &format!("{}:july/i64", source.display())], &cache).0, Some(0));
    assert!(has_bounds(&arguments));
}
