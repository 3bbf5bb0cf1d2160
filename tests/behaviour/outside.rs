//! Nothing outside a source is read unless asked for, and then only below its folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

/// Every regular file below a folder of a mount.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(self::files(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}

/// No file of the mount holds `secret`; whether it could be read does not matter.
fn never_shows(mounted: &Mounted, secret: &str) {
    let found = files(mounted.path());
    assert!(found.len() > 10, "{found:?}");
    for path in found {
        let bytes = fs::read(&path).unwrap_or_default();
        let shown = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!shown, "{} shows {secret:?}", path.display());
    }
}

fn metadata(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(format!("{path}metadata.json"))).unwrap()
}

fn entry<'a>(metadata: &'a Value, list: &str, name: &str) -> &'a Value {
    let found = metadata[list].as_array().unwrap().iter().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {metadata}"))
}

#[test]
fn other_files_of_the_host_are_never_shown() {
    // The first entry of /etc/passwd, on every system.
    let secret = "root:x:0:0:";
    assert!(fs::read_to_string("/etc/passwd").unwrap().contains(secret));
    for name in ["external_passwd", "external_link", "virtual_elsewhere"] {
        for arguments in [&[][..], &["--follow-external"]] {
            let mounted = Mounted::new(&[&data(&format!("hostile/{name}.h5"))], arguments);
            never_shows(&mounted, secret);
            assert_eq!(mounted.text("good/columns/x.csv"), "x\n1\n2\n3\n", "{name} {arguments:?}");
        }
    }
}

#[test]
fn external_storage_is_refused_with_its_reason() {
    let mounted = Mounted::new(&[&data("hostile/external_passwd.h5")], &[]);
    let table = metadata(&mounted, "t/");
    let reason = entry(&table, "columns", "bytes_0")["error"].to_string();
    assert!(reason.contains("/etc/passwd") && reason.contains("--follow-external"), "{reason}");
    let mounted = Mounted::new(&[&data("hostile/external_link.h5")], &[]);
    let group = metadata(&mounted, "");
    let reason = entry(&group, "members", "passwd")["not_shown"].to_string();
    assert!(reason.contains("--follow-external"), "{reason}");
    let mounted = Mounted::new(&[&data("hostile/virtual_elsewhere.h5")], &[]);
    let table = metadata(&mounted, "t/");
    let reason = entry(&table, "columns", "fixture")["error"].to_string();
    assert!(reason.contains("links_target.h5") && reason.contains("--follow-external"), "{reason}");
}

/// `foreign.h5` with what it refers to, in a folder of their own.
fn foreign(folder: &Path) -> PathBuf {
    for name in ["foreign.h5", "foreign_raw.bin", "links_target.h5", "links.h5"] {
        fs::copy(data(name), folder.join(name)).unwrap();
    }
    folder.join("foreign.h5")
}

#[test]
fn files_below_the_folder_of_the_source_are_followed_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let source = foreign(folder.path());
    let stored = fs::read(folder.path().join("foreign_raw.bin")).unwrap();
    let refused = Mounted::new(&[&source], &[]);
    assert!(fs::read(refused.join("t/columns/external.raw")).is_err());
    assert!(fs::read(refused.join("t/columns/virtual.raw")).is_err());
    assert_eq!(refused.read("t/columns/here.raw").len(), 80);
    let followed = Mounted::new(&[&source], &["--follow-external"]);
    assert_eq!(followed.read("t/columns/external.raw"), stored);
    // `data` of links_target.h5 holds 0, 1, 2, … as float64.
    assert_eq!(followed.read("t/columns/virtual.raw").len(), 80);
    assert_eq!(followed.text("t/columns/here.csv").lines().count(), 11);
}

#[test]
fn external_links_are_followed_on_request() {
    let folder = tempfile::tempdir().unwrap();
    foreign(folder.path());
    let source = folder.path().join("links.h5");
    let refused = Mounted::new(&[&source], &[]);
    assert!(!refused.names("").contains(&"external_table".to_owned()));
    let reason = entry(&metadata(&refused, ""), "members", "external_table")["not_shown"].to_string();
    assert!(reason.contains("--follow-external"), "{reason}");
    let followed = Mounted::new(&[&source], &["--follow-external"]);
    // Even so a link is shown only where it leads to something.
    let names = followed.names("");
    assert!(!names.contains(&"external_nowhere".to_owned()), "{names:?}");
}

#[test]
fn a_symbolic_link_out_of_the_folder_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let source = foreign(&inside);
    let secret = folder.path().join("secret.bin");
    fs::write(&secret, "THE SECRET ".repeat(8)).unwrap();
    for name in ["foreign_raw.bin", "links_target.h5"] {
        fs::rename(inside.join(name), folder.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&secret, inside.join("foreign_raw.bin")).unwrap();
    std::os::unix::fs::symlink("../links_target.h5", inside.join("links_target.h5")).unwrap();
    let mounted = Mounted::new(&[&source], &["--follow-external"]);
    never_shows(&mounted, "THE SECRET");
    assert!(fs::read(mounted.join("t/columns/external.raw")).is_err());
    assert!(fs::read(mounted.join("t/columns/virtual.raw")).is_err());
    assert_eq!(mounted.read("t/columns/here.raw").len(), 80);
}
