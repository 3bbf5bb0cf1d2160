//! `docs/promises.md` and `tests/promises.toml` have the same promises, and each test that the latter names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/promises.md";
const LIST: &str = "tests/promises.toml";

/// How a promise is checked.
#[derive(Debug, PartialEq)]
enum Proof {
    Tests(Vec<String>),
    /// The reason why there is no test.
    Untested(String),
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The ids of a page: `names-3` is the third line of the list below `## names: …`.
fn ids_of_page(page: &str) -> Vec<String> {
    let mut area = None;
    let mut last = 0;
    let mut ids = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let (name, _) = heading.split_once(": ").unwrap_or_else(|| panic!("{PAGE}: no area before `:` in {line}"));
            assert!(!ids.iter().any(|id: &String| id.starts_with(&format!("{name}-"))), "{PAGE}: area {name} is twice");
            (area, last) = (Some(name), 0);
        }
        let Some(area) = area else { continue };
        let Some((number, _)) = line.split_once(". ") else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        assert_eq!(number, last + 1, "{PAGE}: the numbers of {area} have a gap; a withdrawn promise keeps its line");
        last = number;
        ids.push(format!("{area}-{number}"));
    }
    ids
}

/// The promises of the list, in the few forms of TOML that it has: `[area]`, `1 = ["…", …]` in one or more lines,
/// `1 = { untested = "…" }`.
fn proofs_of_list(list: &str) -> BTreeMap<String, Proof> {
    let mut area = "";
    let mut proofs = BTreeMap::new();
    let mut lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix('[') {
            area = name.strip_suffix(']').unwrap_or_else(|| panic!("{LIST}: no `]` in {line}"));
            continue;
        }
        let (number, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{LIST}: no ` = ` in {line}"));
        let mut value = value.to_owned();
        while value.starts_with('[') && !value.ends_with(']') {
            value += lines.next().unwrap_or_else(|| panic!("{LIST}: no end of {area}-{number}"));
        }
        let quoted = value.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let proof = match value.strip_prefix("{ untested = ") {
            Some(_) => Proof::Untested(quoted.concat()),
            None => Proof::Tests(quoted),
        };
        let id = format!("{area}-{number}");
        assert_eq!(proofs.insert(id.clone(), proof), None, "{LIST}: {id} is twice");
    }
    proofs
}

/// All files below a folder, relative to it.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let top = root().join(folder);
    let mut folders = vec![top.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(&top).unwrap().to_owned());
            }
        }
    }
    files
}

/// The path of a file's module: `views::text` of `views/text/mod.rs`.
fn module(file: &Path) -> String {
    let names = file.with_extension("");
    let names = names.iter().map(|name| name.to_str().unwrap()).filter(|name| !["mod", "main", "lib"].contains(name));
    names.collect::<Vec<_>>().join("::")
}

/// The tests of a source, by their paths below `module`. Indentation tells where a module ends, as rustfmt sets it.
fn tests_of_source(module: &str, source: &str) -> Vec<String> {
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut tests = Vec::new();
    let mut marked = false;
    for line in source.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code == "}" {
            modules.retain(|(outer, _)| *outer < indent);
        }
        if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((indent, name));
        }
        marked |= code == "#[test]";
        if let Some(rest) = code.strip_prefix("fn ").filter(|_| marked) {
            let name = rest.split('(').next().unwrap();
            let path = [module].into_iter().chain(modules.iter().map(|(_, name)| *name)).chain([name]);
            tests.push(path.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("::"));
            marked = false;
        }
    }
    tests
}

fn all_tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for folder in ["src", "tests"] {
        for file in files_below(folder).into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
            let source = fs::read_to_string(root().join(folder).join(&file)).unwrap();
            tests.extend(tests_of_source(&module(&file), &source));
        }
    }
    tests
}

/// What an entry of the list may name: tests, files of `tests/data`, scripts.
struct Known {
    tests: BTreeSet<String>,
    data: Vec<String>,
    scripts: Vec<String>,
}

impl Known {
    fn new() -> Self {
        let names = |folder| files_below(folder).iter().map(|file| file.to_string_lossy().into_owned()).collect();
        Self { tests: all_tests(), data: names("tests/data"), scripts: names("scripts") }
    }

    fn has(&self, entry: &str) -> bool {
        if let Some(below) = entry.strip_suffix('*').filter(|below| below.ends_with("::")) {
            return self.tests.iter().any(|test| test.starts_with(below));
        }
        if let Some(name) = entry.strip_prefix("data/") {
            return match name.strip_suffix('*') {
                Some(beginning) => self.data.iter().any(|file| file.starts_with(beginning)),
                None => self.data.iter().any(|file| *file == format!("{name}.h5")),
            };
        }
        if let Some(name) = entry.strip_prefix("fuzz/") {
            return root().join(format!("fuzz/fuzz_targets/{name}.rs")).exists();
        }
        // `check/records` may lie in a folder `check` or be called `check-records`.
        let plain = |path: &str| path.replace('-', "/");
        self.tests.contains(entry) || self.scripts.iter().any(|script| plain(script).ends_with(&plain(entry)))
    }
}

#[test]
fn each_promise_is_in_the_list_and_each_entry_is_a_promise() {
    let page: BTreeSet<String> = ids_of_page(&text(PAGE)).into_iter().collect();
    let list: BTreeSet<String> = proofs_of_list(&text(LIST)).into_keys().collect();
    assert!(page.len() > 100, "only {} promises found in {PAGE}", page.len());
    let unlisted: Vec<_> = page.difference(&list).collect();
    let unknown: Vec<_> = list.difference(&page).collect();
    assert!(unlisted.is_empty(), "add tests of these promises, or `{{ untested = \"why\" }}`, to {LIST}: {unlisted:?}");
    assert!(unknown.is_empty(), "write these promises in {PAGE}, or take them out of {LIST}: {unknown:?}");
}

#[test]
fn each_promise_has_tests_that_exist_or_a_reason() {
    let known = Known::new();
    let mut wrong = Vec::new();
    for (id, proof) in proofs_of_list(&text(LIST)) {
        match proof {
            Proof::Untested(reason) if reason.is_empty() => wrong.push(format!("{id}: say why it is untested")),
            Proof::Tests(tests) if tests.is_empty() => {
                wrong.push(format!("{id}: name a test, or write {{ untested = \"why\" }}"));
            }
            Proof::Tests(tests) => {
                let gone = tests.iter().filter(|test| !known.has(test));
                wrong.extend(gone.map(|test| format!("{id}: {test} is not there; name the test that checks it now")));
            }
            Proof::Untested(_) => {}
        }
    }
    assert!(wrong.is_empty(), "mend {LIST}:\n{}", wrong.join("\n"));
}

#[test]
fn both_files_are_understood() {
    let page = "# Promises\n\n1. no promise\n\n## names: Names\n\n1. One.\n2. Two.\n\n## rows: Rows\n\n1. Three.\n";
    assert_eq!(ids_of_page(page), ["names-1", "names-2", "rows-1"]);
    let list =
        "# head\n\n[names]\n1 = [\"a::b\"]\n2 = [\n    \"c::*\",\n    \"d\",\n]\n[rows]\n1 = { untested = \"why\" }\n";
    let proofs = proofs_of_list(list);
    assert_eq!(proofs["names-2"], Proof::Tests(vec!["c::*".to_owned(), "d".to_owned()]));
    assert_eq!(proofs["rows-1"], Proof::Untested("why".to_owned()));
    let source = "#[test]\nfn one() {\n}\nmod tests {\n    #[test]\n    fn two() {\n    }\n}\nfn three() {}\n";
    assert_eq!(tests_of_source("a", source), ["a::one", "a::tests::two"]);
    assert_eq!(module(Path::new("views/text/mod.rs")), "views::text");
}
