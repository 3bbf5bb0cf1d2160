//! The layers of the crate: imports run downwards only, `fuser` has one user, `unsafe` has its places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first.
const LAYERS: [&str; 20] = [
    "calendar",
    "activity",
    "source",
    "catalogue",
    "codec",
    "h5",
    "store",
    "remote",
    "learnt",
    "table",
    "formats",
    "indexes",
    "dialects",
    "producer",
    "query",
    "views",
    "session",
    "fs",
    "serve",
    "cli",
];

/// Where `unsafe` may be: around libhdf5, in measured loops, for memory that several buffers share, for a descriptor
/// that is given by its number, and for system calls that no library has, or that one takes for unsafe.
const UNSAFE: [&str; 8] = [
    "src/fs/mount/namespace.rs",
    "src/h5/",
    "src/source/lease.rs",
    "src/source/local.rs",
    "src/codec/shuffle.rs",
    "src/store/memory/allocator.rs",
    "src/store/memory/pages.rs",
    "src/store/statistics/scan.rs",
];

/// Words of the specifications of dialects, for the dialects and the producer alone. Comments may cite a specification.
const WORDS_OF_DIALECTS: [&str; 14] = [
    "HEP001",
    "hep001",
    "COLUMN_TABLE",
    "LIST_COLUMN",
    "STRING_VALUES",
    "CATEGORIES",
    "SEARCH_INDEXES",
    "SEARCH_INDEX_LIST",
    "COLUMN_LIST",
    "INDEX_LIST",
    "INDEX_COLUMNS",
    "NROWS",
    "SOURCE_NROWS",
    "SOURCE_GENERATION",
];

/// Files that import each other in a circle. None may join them; one that leaves is taken out.
const IN_CIRCLES: [&str; 22] = [
    "cli/options",
    "cli/place",
    "cli/reporting",
    "cli/tables",
    "session/datasets",
    "session/datasets/lookup",
    "session/datasets/part",
    "session/datasets/survey",
    "session/described",
    "session/directory",
    "session/files",
    "session/pages",
    "session/selections",
    "session/sources",
    "session/spot",
    "session/walk",
    "views/page/look/edges",
    "views/page/look/values",
    "views/parquet/body/leaf",
    "views/parquet/body/squeezed",
    "views/parquet/footer/column_index",
    "views/parquet/footer/summary",
];

/// Code without its tests: up to a module of them in the file, and no file of a `tests` folder.
struct File {
    path: PathBuf,
    layer: String,
    lines: Vec<(usize, String)>,
}

fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if name == "tests" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let below = path.strip_prefix(&root).unwrap();
                let first = below.components().next().unwrap().as_os_str().to_string_lossy();
                let layer = first.trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).unwrap();
                let below = text.lines().skip(1).chain([""]);
                let code =
                    text.lines().zip(below).enumerate().take_while(|(_, (line, below))| !begins_tests(line, below));
                let lines =
                    code.map(|(at, (line, _))| (at, line)).filter(|(_, line)| !line.trim_start().starts_with("//"));
                files.push(File { layer, lines: lines.map(|(at, line)| (at + 1, line.to_owned())).collect(), path });
            }
        }
    }
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

/// Whether a module of tests begins here; one in a file of its own, or a function for tests, has code behind it.
fn begins_tests(line: &str, below: &str) -> bool {
    line.trim() == "#[cfg(test)]" && below.trim().starts_with("mod ") && below.trim().ends_with('{')
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

/// The layers that a line names: `crate::store::…`, or `crate::{store, views::…}` on one line.
fn named(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in line.split("crate::").skip(1) {
        let first = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match part.strip_prefix('{') {
            Some(list) => {
                let mut depth = 0;
                let mut start = 0;
                for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth <= 0 => {
                            names.push(first(list[start..at].trim()));
                            start = at + 1;
                        }
                        _ => {}
                    }
                }
            }
            None => names.push(first(part)),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn names_are_found_in_imports() {
    assert_eq!(named("use crate::store::{Error, File};"), ["store"]);
    assert_eq!(named("use crate::{source::{self, Error}, store};"), ["source", "store"]);
    assert_eq!(named("pub(in crate::h5) fn f(x: crate::table::Table)"), ["h5", "table"]);
    assert_eq!(named("use super::crates;"), [""; 0]);
}

#[test]
fn imports_run_downwards_only() {
    let mut wrong = Vec::new();
    for file in files() {
        let Some(own) = rank(&file.layer) else { continue };
        for (at, line) in &file.lines {
            for name in named(line) {
                // What is no layer is the crate's own root, which has nothing to import.
                let found = rank(&name);
                if found.is_none_or(|other| other > own) {
                    wrong.push(format!("{}:{at}: {} uses {name}: {}", file.path.display(), file.layer, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_layer_exists_and_nothing_else_does() {
    let known = |layer: &str| rank(layer).is_some() || layer == "lib" || layer == "main";
    let files = files();
    let strange: Vec<_> = files.iter().filter(|file| !known(&file.layer)).map(|file| &file.path).collect();
    assert!(strange.is_empty(), "of no layer: {strange:?}");
    for layer in LAYERS {
        assert!(files.iter().any(|file| file.layer == layer), "{layer} is gone");
    }
}

#[test]
fn dialects_and_the_producer_alone_know_what_they_call_things() {
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| !["dialects", "producer"].contains(&&*file.layer)) {
        let path = file.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_string_lossy().into_owned();
        if path.ends_with("tests.rs") {
            continue;
        }
        for (at, line) in &file.lines {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.any(|word| WORDS_OF_DIALECTS.contains(&word)) {
                wrong.push(format!("{path}:{at}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_adapter_alone_knows_fuser() {
    for file in files() {
        let is_adapter = file.path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("adapter"));
        for (at, line) in file.lines.iter().filter(|_| !is_adapter) {
            // The name of its log target is no use of it.
            let uses = line.contains("fuser::") && !line.contains("\"fuser::") || line.contains("use fuser");
            assert!(!uses, "{}:{at}: {line}", file.path.display());
        }
    }
}

#[test]
fn unsafe_stays_in_its_places() {
    for file in files() {
        let path = file.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_string_lossy().into_owned();
        let is_place = UNSAFE.iter().any(|place| path.starts_with(place));
        for (at, line) in &file.lines {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(is_place || !words.any(|word| word == "unsafe"), "{path}:{at}: {line}");
        }
    }
}

/// The words behind each `unsafe` that say why it is sound.
#[test]
fn every_unsafe_block_says_why_it_is_safe() {
    let mut missing = Vec::new();
    for file in files() {
        let text = fs::read_to_string(&file.path).unwrap();
        let all: Vec<&str> = text.lines().collect();
        for (at, line) in &file.lines {
            if !line.contains("unsafe {") && !line.contains("unsafe impl") {
                continue;
            }
            // Beside it, or in the comment above its statement.
            let above = all[..*at].iter().rev().take(12);
            if !above.clone().any(|line| line.contains("SAFETY")) {
                missing.push(format!("{}:{at}: {}", file.path.display(), line.trim()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Rust in `docs/dev/adding-a-dialect.md` is quoted, so it compiles.
#[test]
fn the_page_on_dialects_quotes_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let quoted =
        ["src/dialects/mod.rs", "src/dialects/loom/mod.rs", "src/dialects/loom/rules.rs", "tests/engine/loom.rs"];
    let quoted = quoted.map(read);
    let page = read("docs/dev/adding-a-dialect.md");
    let blocks: Vec<&str> = page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 8, "only {} blocks", blocks.len());
    for block in blocks {
        assert!(quoted.iter().any(|code| code.contains(block)), "quoted from nowhere:\n{block}");
    }
}

/// A file as a module: the names that lead to it from the root of the crate.
type Module = Vec<String>;

fn module_of(file: &File) -> Module {
    let below = file.path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap().with_extension("");
    let names = below.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name != "mod" && name != "lib").collect()
}

/// The paths in the tree of a `use`: `a::{b, c::d}` has two.
fn paths_in(tree: &str, above: &[String], found: &mut Vec<Module>) {
    let (head, below) = tree.split_once('{').map_or((tree, None), |(head, below)| (head, Some(below)));
    let names = head.split(" as ").next().unwrap().split("::").map(|name| name.trim().to_owned());
    let mut path = [above, &names.filter(|name| !name.is_empty()).collect::<Vec<_>>()].concat();
    let Some(below) = below else {
        path.pop_if(|name| name == "self");
        return found.push(path);
    };
    let mut depth = 0;
    let parts = below.strip_suffix('}').unwrap_or(below).split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    parts.for_each(|part| paths_in(part, &path, found));
}

/// The paths that a file names, in imports and elsewhere.
fn paths_of(file: &File) -> Vec<Module> {
    let (mut found, mut tree) = (Vec::new(), String::new());
    for (_, line) in &file.lines {
        let line = line.trim();
        let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        match begins.iter().find_map(|begin| line.strip_prefix(begin)) {
            Some(first) => tree.push_str(first),
            None if !tree.is_empty() => tree.push_str(line),
            None => {
                let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
                words.filter(|word| word.contains("::")).for_each(|word| paths_in(word, &[], &mut found));
            }
        }
        if let Some(whole) = tree.strip_suffix(';') {
            paths_in(whole, &[], &mut found);
            tree.clear();
        }
    }
    found
}

/// The path from the root of the crate. `None`: it leads out of the crate, or begins with a name in scope.
fn absolute(module: &[String], path: &[String], is_module: impl Fn(&[String]) -> bool) -> Option<Module> {
    let above = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => Some([&module[..module.len().checked_sub(above)?], &path[above..]].concat()),
        "self" => Some([module, &path[1..]].concat()),
        child => is_module(&[module, &[child.to_owned()]].concat()).then(|| [module, path].concat()),
    }
}

/// Files in a circle can only be understood together. Definitions in the `mod.rs` of an own folder do not count.
#[test]
fn no_file_joins_a_circle_of_imports() {
    let files = files();
    let named: BTreeMap<Module, Vec<Module>> = files.iter().map(|file| (module_of(file), paths_of(file))).collect();
    let absolutes = named.iter().map(|(module, paths)| {
        let paths = paths.iter().filter_map(|path| absolute(module, path, |path| named.contains_key(path)));
        (module, paths.collect::<Vec<_>>())
    });
    let absolutes: BTreeMap<&Module, Vec<Module>> = absolutes.collect();
    // The file that defines a path. Names that a file imports itself lead on.
    let defines = |path: &Module| {
        let mut path = path.clone();
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|length| named.contains_key(&path[..*length]))?;
            let (module, rest) = (path[..length].to_vec(), path[length..].to_vec());
            let imported = |name: &String| absolutes[&module].iter().find(|import| import.last() == Some(name));
            match rest.first().and_then(imported).filter(|import| !path.starts_with(import)) {
                Some(import) => path = [import.as_slice(), &rest[1..]].concat(),
                None => return Some(module),
            }
        }
        None
    };
    let uses: BTreeMap<&Module, BTreeSet<Module>> = absolutes
        .iter()
        .map(|(module, paths)| {
            (*module, paths.iter().filter_map(defines).filter(|used| !module.starts_with(used)).collect())
        })
        .collect();
    let mut in_circles = Vec::new();
    for (module, direct) in &uses {
        let mut met: BTreeSet<&Module> = direct.iter().collect();
        let mut next: Vec<&Module> = met.iter().copied().collect();
        while let Some(used) = next.pop().filter(|_| !met.contains(*module)) {
            next.extend(uses[used].iter().filter(|used| met.insert(used)));
        }
        if met.contains(*module) {
            in_circles.push(module.join("/"));
        }
    }
    assert_eq!(in_circles, IN_CIRCLES);
}
