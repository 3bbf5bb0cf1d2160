//! Links of the documents lead to files, and to headings, that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The Markdown files below a folder; of the checkout itself those at its top.
fn pages(folder: &Path, is_deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && is_deep {
            found.append(&mut pages(&path, true));
        } else if path.extension().is_some_and(|suffix| suffix == "md") {
            found.push(path);
        }
    }
    found
}

/// The page without its blocks of code, in which brackets are no links and `#` begins no heading.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// The anchors of a page's headings, as forges make them: letters, digits, `-` and `_` of the text, spaces as `-`.
fn anchors(page: &Path) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let text = prose(page);
    for heading in text.lines().filter(|line| line.starts_with('#')) {
        let kept = heading.trim_start_matches('#').trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
            _ => None,
        });
        let anchor: String = kept.collect::<String>().to_lowercase();
        let mut numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut own = anchor.clone();
        while !anchors.insert(own) {
            own = numbered.next().unwrap();
        }
    }
    anchors
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages_of_all = pages(root, false);
    pages_of_all.append(&mut pages(&root.join("docs"), true));
    let (mut links, mut broken) = (0, Vec::new());
    for page in &pages_of_all {
        let text = prose(page);
        let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        for target in targets.filter(|target| !target.contains("://") && !target.contains(' ')) {
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { plain(&page.parent().unwrap().join(file)) };
            let is_there = path.exists() && (anchor.is_empty() || anchors(&path).contains(anchor));
            if !is_there {
                broken.push(format!("{}: {target}", page.strip_prefix(root).unwrap().display()));
            }
        }
    }
    assert!(links > 100, "only {links} links found");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}
