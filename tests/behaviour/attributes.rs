//! What `stat` and extended attributes say.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::{AttributeValue, ElementNumber};

use crate::data;
use crate::support::Mounted;

/// A copy of a test file, with these permission bits.
fn copy(folder: &Path, name: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::copy(data(name), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn attribute(path: &Path, name: &str) -> Option<String> {
    xattr::get(path, name).unwrap().map(|value| String::from_utf8(value).unwrap())
}

/// Names of extended attributes, as listed.
fn listed(path: &Path) -> Vec<String> {
    xattr::list(path).unwrap().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn attributes_of_the_file_are_extended_attributes() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let mass = mounted.join("t/columns/mass.csv");
    assert_eq!(attribute(&mass, "user.units").as_deref(), Some("kg"));
    assert_eq!(attribute(&mass, "user.hepfs.name").as_deref(), Some("mass"));
    assert_eq!(attribute(&mass, "user.units_vocabulary"), None);
    for suffix in ["raw", "npy", "txt", "ndjson"] {
        let view = mounted.join(format!("t/columns/time.{suffix}"));
        assert_eq!(attribute(&view, "user.units_vocabulary").as_deref(), Some("UDUNITS-2"), "{suffix}");
    }
    let table = mounted.join("t");
    assert_eq!(attribute(&table, "user.CLASS").as_deref(), Some("COLUMN_TABLE"));
    assert_eq!(attribute(&table, "user.hepfs.name").as_deref(), Some("t"));
    assert_eq!(listed(&mass), ["user.hepfs.name", "user.units"]);
    let refused = xattr::set(&mass, "user.units", b"g").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
}

#[test]
fn the_true_name_of_an_escaped_one_is_an_extended_attribute() {
    let mounted = Mounted::new(&[&data("hostile/newline_name.h5")], &[]);
    assert_eq!(mounted.names(""), [".hepfs", "index.html", "metadata.json", "two%0Alines"]);
    let column = mounted.join("two%0Alines/columns/a%0Ab.csv");
    assert_eq!(attribute(&mounted.join("two%0Alines"), "user.hepfs.name").as_deref(), Some("two\nlines"));
    assert_eq!(attribute(&column, "user.hepfs.name").as_deref(), Some("a\nb"));
    assert_eq!(attribute(&column, "user.key\nwith newline").as_deref(), Some("value\nwith newline"));
}

#[test]
fn an_attribute_over_the_kernels_limit_is_left_out_alone() {
    let mounted = Mounted::new(&[&data("hostile/attribute_1mb.h5")], &[]);
    let column = mounted.join("t/columns/x.csv");
    assert_eq!(attribute(&column, "user.large"), None);
    assert_eq!(attribute(&column, "user.hepfs.name").as_deref(), Some("x"));
    assert_eq!(attribute(&mounted.join("t"), "user.VERSION").as_deref(), Some("1.0"));
}

#[test]
fn modes_are_the_read_bits_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, file, directory) in [(0o640, 0o440, 0o550), (0o600, 0o400, 0o500), (0o777, 0o444, 0o555)] {
        let mounted = Mounted::new(&[&copy(folder.path(), "units.h5", mode)], &[]);
        for (path, expected) in [
            ("", directory),
            ("t", directory),
            ("t/columns", directory),
            ("t/table.csv", file),
            ("metadata.json", file),
            ("t/index.html", file),
        ] {
            let found = fs::metadata(mounted.join(path)).unwrap().mode() & 0o7777;
            assert_eq!(found, expected, "{path:?} of a file of mode {mode:o}: {found:o}");
        }
    }
}

#[test]
fn a_change_of_mode_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let source = copy(folder.path(), "units.h5", 0o644);
    let mounted = Mounted::new(&[&source], &[]);
    let mode = |path: &str| fs::metadata(mounted.join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode(""), mode("t/table.csv")), (0o555, 0o444));
    fs::set_permissions(&source, fs::Permissions::from_mode(0o600)).unwrap();
    crate::support::until("the new mode shows", || (mode(""), mode("t/table.csv")) == (0o500, 0o400));
}

#[test]
fn times_are_those_of_the_source_and_the_owner_is_who_mounts() {
    let folder = tempfile::tempdir().unwrap();
    let source = copy(folder.path(), "units.h5", 0o644);
    let modified = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    File::options().write(true).open(&source).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
    let mounted = Mounted::new(&[&source], &[]);
    let own = fs::metadata(folder.path()).unwrap();
    for path in ["", "t", "t/columns/mass.csv", "metadata.json"] {
        let shown = fs::metadata(mounted.join(path)).unwrap();
        assert_eq!(shown.modified().unwrap(), modified, "{path:?}");
        assert_eq!((shown.uid(), shown.gid()), (own.uid(), own.gid()), "{path:?}");
    }
}

#[test]
fn nothing_can_be_written() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let refused = |outcome: std::io::Result<()>| assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EROFS));
    let table = mounted.join("t/table.csv");
    refused(File::options().write(true).open(&table).map(drop));
    refused(File::create(mounted.join("new")).map(drop));
    refused(fs::create_dir(mounted.join("t/new")));
    refused(fs::remove_file(&table));
    refused(fs::rename(&table, mounted.join("t/other")));
    refused(std::os::unix::fs::symlink("a", mounted.join("b")));
    refused(fs::set_permissions(&table, fs::Permissions::from_mode(0o777)));
}

/// What a table is made by is read, however many attributes stand before it; the names of all fit in no list of the
/// kernel's.
#[test]
fn very_many_attributes_fail_no_listing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("attributes.h5");
    let written = create::file::<create::Error>(&source, |root| {
        let table = root.group("t")?;
        table.attribute("CLASS", &AttributeValue::ascii("COLUMN_TABLE"))?;
        table.attribute("VERSION", &AttributeValue::ascii("1.0"))?;
        for name in ["few", "many"] {
            let column = table.dataset(name, &f64::ELEMENT, &Storage::contiguous(&[3]), &FillSetting::Unset)?;
            for at in 0..if name == "many" { 5_000 } else { 200 } {
                column.node().attribute(&format!("note {at}"), &AttributeValue::ascii("text"))?;
            }
            column.node().attribute("units", &AttributeValue::ascii("kg"))?;
        }
        Ok(())
    });
    written.unwrap();
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(mounted.names("t/columns").len(), 14);
    let metadata: serde_json::Value = serde_json::from_slice(&mounted.read("t/metadata.json")).unwrap();
    let (few, many) = (&metadata["columns"][0], &metadata["columns"][1]);
    assert_eq!((few["units"].as_str(), many["units"].as_str()), (Some("kg"), Some("kg")));
    assert_eq!(few["attributes"].as_object().unwrap().len(), 201);
    // 256, the one that dialects look at, and the reason.
    assert_eq!(many["attributes"].as_object().unwrap().len(), 258);
    assert!(many["attributes"][""]["error"].as_str().unwrap().contains("more than 256 attributes"), "{many}");
    let file = mounted.join("t/columns/many.raw");
    // Any file system can hold a copy with what is listed, and the rest is counted.
    let names = listed(&file);
    assert_eq!((names[0].as_str(), names[1].as_str()), ("user.hepfs.name", "user.units"));
    let bytes: usize = names.iter().map(|name| name.len() + attribute(&file, name).unwrap().len()).sum();
    assert!(bytes <= 2048, "{bytes}");
    let left_out = attribute(&file, "user.hepfs.left_out").unwrap();
    // 4,096 attributes of an object are read, and the name is one more.
    assert_eq!(names.len() - 1 + left_out.parse::<usize>().unwrap(), 4_097);
    assert_eq!(attribute(&file, "user.note 4000").as_deref(), Some("text"));
    assert_eq!(attribute(&file, "user.units").as_deref(), Some("kg"));
    drop(mounted);
    let mounted = Mounted::new(&[&source], &["--xattrs", "all"]);
    assert_eq!(listed(&mounted.join("t/columns/many.raw")).len(), 4_097);
    drop(mounted);
    let mounted = Mounted::new(&[&source], &["--xattrs", "none"]);
    let refused = xattr::get(mounted.join("t/columns/many.raw"), "user.units").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
}
