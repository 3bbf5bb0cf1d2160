//! Groups of hostile files, through a real mount. `scripts/fixtures/hostile.py` writes the files.

use std::fs;
use std::path::{Path, PathBuf};

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::ElementNumber;

use crate::data;
use crate::support::{Mounted, hepfs};

fn hostile(name: &str) -> PathBuf {
    data("hostile").join(name)
}

/// Names with what symbolic links among them say.
fn listed(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| match fs::read_link(entry.path()) {
            Ok(target) => format!("{} -> {}", entry.file_name().display(), target.display()),
            Err(_) => entry.file_name().display().to_string(),
        })
        .collect();
    names.sort();
    names
}

/// Made: `/a/b` with the hard links `self` to itself, `above` to `/a`, `root` to `/`; the link count of all three
/// groups is patched to 1. `/a/dataset` is 7.
#[test]
fn a_group_inside_itself_is_a_link_even_where_its_link_count_is_one() {
    let mounted = Mounted::new(&[&hostile("cycle_uncounted.h5")], &[]);
    assert_eq!(
        listed(&mounted.join("a")),
        ["b", "dataset.npy", "dataset.raw", "dataset.txt", "index.html", "metadata.json"]
    );
    assert_eq!(
        listed(&mounted.join("a/b")),
        ["above -> ..", "index.html", "metadata.json", "root -> ../..", "self -> ."]
    );
    assert_eq!(fs::read(mounted.join("a/b/self/root/a/dataset.raw")).unwrap(), 7i32.to_le_bytes());
}

/// Made: `/a/b` with external links into its own file: `itself` to `/a/b`, `root` to `/`. `/a/dataset` is 7.
#[test]
fn external_links_back_to_a_group_above_are_links() {
    let mounted = Mounted::new(&[&hostile("external_cycle.h5")], &["--follow-external"]);
    assert_eq!(listed(&mounted.join("a/b")), ["index.html", "itself -> .", "metadata.json", "root -> ../.."]);
    assert_eq!(fs::read(mounted.join("a/b/itself/root/a/dataset.raw")).unwrap(), 7i32.to_le_bytes());
}

/// Made: a file whose one symbol table node has the signature `NODE` in place of `SNOD`.
#[test]
fn a_group_that_cannot_be_listed_says_why_and_spoils_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(hostile("root_unlistable.h5"), folder.path().join("bad.h5")).unwrap();
    fs::copy(hostile("cycle_uncounted.h5"), folder.path().join("good.h5")).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    assert_eq!(fs::read(mounted.join("good.h5/a/dataset.raw")).unwrap(), 7i32.to_le_bytes());
    assert_eq!(fs::read_dir(mounted.join("bad.h5")).unwrap_err().raw_os_error(), Some(libc::EIO));
    let errors = fs::read_to_string(mounted.join(".hepfs/errors")).unwrap();
    assert!(errors.contains("/bad.h5: /: "), "{errors}");
}

/// h5py 3.16 (HDF5 2.0) opens l01 to l16, and says "too many links" of the others.
#[test]
fn a_chain_of_links_ends_where_hdf5_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.h5");
    create::file::<create::Error>(&path, |root| {
        root.dataset("l00", &f64::ELEMENT, &Storage::contiguous(&[1]), &FillSetting::Unset)?;
        (1..=20).try_for_each(|at| root.soft_link(&format!("l{at:02}"), &format!("l{:02}", at - 1)))
    })
    .unwrap();
    let mounted = Mounted::new(&[&path], &[]);
    let metadata: serde_json::Value = serde_json::from_str(&mounted.text("metadata.json")).unwrap();
    let names = mounted.names("");
    for at in 1..=20 {
        let name = format!("l{at:02}");
        assert_eq!(names.contains(&format!("{name}.npy")), at <= 16, "{name}");
        let member = metadata["members"].as_array().unwrap().iter().find(|member| member["name"] == *name).unwrap();
        let reason = "it leads through more than 16 links, the limit of the HDF5 library";
        assert_eq!(member["not_shown"] == serde_json::json!([reason]), at > 16, "{member}");
    }
    assert_eq!(mounted.read("l16.npy"), mounted.read("l00.npy"));
    let findings = metadata["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((&findings[0]["id"], &findings[0]["path"]), (&"file/link-chain".into(), &"/l17".into()));
    assert!(findings[0]["found"].as_str().unwrap().ends_with("so do 3 links beside it"), "{findings:?}");
}

/// What lies in other files is not read unless asked for: then there is no file that fails, but a reason.
#[test]
fn arrays_in_other_files_are_not_shown_and_the_reason_is() {
    let foreign = hostile("../foreign.h5");
    for (arguments, shown) in [(&[][..], false), (&["--follow-external"][..], true)] {
        let mounted = Mounted::new(&[&foreign], arguments);
        let metadata: serde_json::Value =
            serde_json::from_slice(&fs::read(mounted.join("metadata.json")).unwrap()).unwrap();
        for name in ["external_array", "virtual_array", "alias"] {
            let member = metadata["members"].as_array().unwrap().iter().find(|m| m["name"] == name).unwrap();
            // A symbolic link that leads nowhere is there as well.
            assert_eq!(mounted.join(format!("{name}.npy")).exists(), shown, "{member}");
            assert_eq!(fs::symlink_metadata(mounted.join(format!("{name}.npy"))).is_ok(), shown, "{member}");
            let reason = member["not_shown"][0].as_str().unwrap_or_default();
            assert_eq!(reason.contains("--follow-external"), !shown, "{member}");
        }
    }
}

/// Made: `/d` is one row of lists in lists, six levels deep: each list has 500 descriptors that all point to the one
/// list of the next level, 500^6 items in all. `/good` is 0, 1, 2.
///
/// What is refused is not followed to its end; what stands beside it is read.
#[test]
fn lists_that_share_their_items_are_refused() {
    let mounted = Mounted::new(&[&hostile("shared_lists.h5")], &["--max-chunk", "16M"]);
    for name in ["d.csv", "d.ndjson", "d.parquet"] {
        assert_eq!(fs::read(mounted.join(name)).unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
    }
    assert!(mounted.text(".hepfs/errors").contains("--max-chunk"));
    assert_eq!(mounted.text("good.txt"), "0\n1\n2\n");
}

/// Made: two LEGEND tables of three rows. `x` has 0 elements a row in `/none`, 2^31 + 5 in `/many`, and a `_FillValue`;
/// `y` is 0, 1, 2.
///
/// A query asks for none of the rows first.
#[test]
fn rows_without_elements_are_asked_for() {
    for table in ["none", "many"] {
        let source = format!("{}:{table}", hostile("rows_without_elements.h5").display());
        let query = std::process::Command::new(env!("CARGO_BIN_EXE_hepfs"))
            .args(["query", &source, "y > 0 order by y limit 0"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&query.stderr);
        assert!(query.status.code().is_some_and(|code| code < 100), "{table}: {said}");
        assert!(!said.contains("panicked"), "{table}: {said}");
    }
}

/// Made: `/g` with `same`, `samf`, `samg`, which start at 0, 10, 20; the name of the second is patched to `same`.
///
/// By h5py, the script that wrote the file says so: `same` is 10, 11, 12.
#[test]
fn of_links_of_one_name_the_one_that_is_found_by_it_is_shown() {
    let source = hostile("links_of_one_name.h5");
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(mounted.text("g/same.txt"), "10\n11\n12\n");
    assert_eq!(mounted.text("g/samg.txt"), "20\n21\n22\n");
    assert!(
        mounted
            .names("g")
            .iter()
            .all(|name| name.ends_with(".json") || name == "index.html" || name.starts_with("sam"))
    );
    let findings = mounted.text(".hepfs/findings");
    assert!(findings.contains("file/links") && findings.contains("(\\\"same\\\")"), "{findings}");
    let check = hepfs(["check".as_ref(), source.as_os_str(), "--cache-folder=none".as_ref()]);
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(
        said.contains(
            "/g: error: each link of a group can be listed, and has a name of its own; found: 1 of its links"
        ),
        "{said}"
    );
}

/// Made: a vaex table whose columns `a` and `b` both have the alias `x`; an openPMD species with the record component
/// `position/x` beside the record `position_x`.
#[test]
fn columns_of_one_name_are_told_apart() {
    let mounted = Mounted::new(&[&hostile("one_name_twice.h5")], &[]);
    assert_eq!(mounted.text("vaex/table.csv"), "x,x.1\n0,10\n1,11\n2,12\n");
    assert_eq!(mounted.text("vaex/columns/x.1.txt"), "10\n11\n12\n");
    let species = "data/0/particles/e/table.csv";
    assert_eq!(mounted.text(species), "position_x,position_x.1\n0,10\n1,11\n2,12\n");
}
