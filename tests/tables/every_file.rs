//! What holds of every directory of a mount, over all committed files but the hostile ones.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

/// A directory of a mount, and its `metadata.json` where it has one.
struct Directory {
    path: PathBuf,
    metadata: Value,
}

impl Directory {
    fn new(path: PathBuf) -> Self {
        let metadata = fs::read(path.join("metadata.json")).ok();
        let metadata = metadata.map(|bytes| serde_json::from_slice(&bytes).unwrap()).unwrap_or_default();
        Self { path, metadata }
    }

    fn entries(&self) -> Vec<fs::DirEntry> {
        let listed = fs::read_dir(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        listed.map(Result::unwrap).collect()
    }

    /// The directories below, without those that are made as they are asked for, or show what others do.
    fn below(&self) -> Vec<PathBuf> {
        let is_table = !self.metadata["columns"].is_null();
        let mut entries = self.entries();
        entries.retain(|entry| {
            let name = entry.file_name();
            let is_live = name == ".hepfs" || name == ".datasets";
            entry.file_type().unwrap().is_dir() && !is_live && !(is_table && name == "where")
        });
        entries.iter().map(fs::DirEntry::path).collect()
    }
}

/// Calls `look` with every directory of a mount of all files.
fn each_directory(mut look: impl FnMut(&Directory)) {
    let mounted = Mounted::new(&[&data("")], &[]);
    let mut waiting = Directory::new(mounted.path().to_owned()).below();
    // A file that is marked as open for writing shows nothing, and no member of a file in several.
    let is_left_out = |path: &Path| ["hostile", "members"].iter().any(|name| path.ends_with(name));
    waiting.retain(|path| !is_left_out(path) && fs::read_dir(path).is_ok());
    assert!(waiting.len() > 70, "only {} files are shown", waiting.len());
    while let Some(path) = waiting.pop() {
        let directory = Directory::new(path);
        look(&directory);
        waiting.extend(directory.below());
    }
}

#[test]
fn every_symbolic_link_leads_to_what_can_be_opened() {
    let (mut links, mut wrong) = (0, Vec::new());
    each_directory(|directory| {
        for entry in directory.entries() {
            if entry.file_type().unwrap().is_symlink() {
                links += 1;
                let opened = fs::metadata(entry.path()).and_then(|target| {
                    if target.is_dir() {
                        fs::read_dir(entry.path()).map(drop)
                    } else {
                        fs::File::open(entry.path()).map(drop)
                    }
                });
                if let Err(error) = opened {
                    let target = fs::read_link(entry.path()).unwrap_or_default();
                    wrong.push(format!("{} -> {}: {error}", entry.path().display(), target.display()));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {links} links:\n{}", wrong.len(), wrong.join("\n"));
    assert!(links > 200, "only {links} links");
}

#[test]
fn a_directory_is_what_its_parent_says() {
    let (mut children, mut wrong) = (0, Vec::new());
    each_directory(|directory| {
        let members = directory.metadata["members"].as_array().into_iter().flatten();
        let named = members.filter(|member| member["name_hex"].is_null());
        for member in named.filter(|member| ["table", "group"].iter().any(|kind| member["kind"] == *kind)) {
            for name in member["shown_as"].as_array().unwrap() {
                let path = directory.path.join(name.as_str().unwrap());
                children += 1;
                let own = kind_of(&path);
                if own.as_ref() != member["kind"].as_str().map(Value::from).as_ref() {
                    wrong.push(format!("{}: {own:?}, its parent says {}", path.display(), member["kind"]));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {children} directories:\n{}", wrong.len(), wrong.join("\n"));
    assert!(children > 300, "only {children} directories");
}

/// What a directory calls itself.
fn kind_of(directory: &Path) -> Option<Value> {
    let metadata: Value = serde_json::from_slice(&fs::read(directory.join("metadata.json")).ok()?).ok()?;
    Some(metadata["kind"].clone())
}
