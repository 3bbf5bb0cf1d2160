//! Folders and several sources.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::data;
use crate::support::{Mounted, hepfs, is_mounted, within};

fn put(source: &str, target: &Path) {
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(data(source), target).unwrap();
}

#[test]
fn a_folder_shows_its_hdf5_files_whatever_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("units.h5"));
    put("layouts.h5", &root.join("no suffix"));
    put("user_block.h5", &root.join("deep/er/user_block.dat"));
    put("hostile/not_hdf5.h5", &root.join("text.h5"));
    put("hostile/empty.h5", &root.join("empty.h5"));
    put("hostile/truncated.h5", &root.join("truncated.h5"));
    fs::write(root.join("notes.txt"), "notes").unwrap();
    std::os::unix::fs::symlink("deep", root.join("link to a folder")).unwrap();
    std::os::unix::fs::symlink("units.h5", root.join("latest")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
    let mounted = Mounted::new(&[root], &[]);
    assert_eq!(mounted.names(""), [".hepfs", "deep", "latest", "no suffix", "truncated.h5", "units.h5"]);
    assert_eq!(mounted.names("deep"), ["er"]);
    assert_eq!(mounted.names("deep/er"), ["user_block.dat"]);
    assert!(mounted.text("units.h5/t/table.csv").starts_with("mass,"));
    assert_eq!(mounted.text("latest/t/table.csv"), mounted.text("units.h5/t/table.csv"));
    assert!(mounted.names("deep/er/user_block.dat").contains(&"metadata.json".to_owned()));
    // Something is wrong with one file: it says so, and the others work.
    assert_eq!(fs::read_dir(mounted.join("truncated.h5")).unwrap_err().raw_os_error(), Some(libc::EIO));
    let errors = mounted.text(".hepfs/errors");
    assert!(errors.contains("truncated.h5: cannot be read as HDF5"), "{errors}");
    assert!(mounted.text("units.h5/t/table.csv").starts_with("mass,"));
}

#[test]
fn a_folder_follows_what_comes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("a.h5"));
    let mounted = Mounted::new(&[root], &[]);
    assert_eq!(mounted.names(""), [".hepfs", "a.h5"]);
    assert!(mounted.text("a.h5/t/table.csv").starts_with("mass,"));
    put("units.h5", &root.join("new.h5"));
    fs::remove_file(root.join("a.h5")).unwrap();
    let limit = Duration::from_secs(10);
    within(limit, "the new file is listed", || mounted.names("") == [".hepfs", "new.h5"]);
    within(limit, "the old file is gone", || !mounted.join("a.h5").exists());
    assert!(mounted.text("new.h5/t/table.csv").starts_with("mass,"));
    // Another file under a known name, below the folder.
    put("seed_11_1.h5", &root.join("staged"));
    fs::rename(root.join("staged"), root.join("new.h5")).unwrap();
    assert!(mounted.text("new.h5/my_table/head.csv").starts_with("row_id,ts,"));
    within(limit, "the names of the old file are gone", || !mounted.join("new.h5/t").exists());
}

#[test]
fn changes_deep_in_a_folder_show_soon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/er/run.h5");
    put("units.h5", &file);
    let mounted = Mounted::new(&[folder.path()], &[]);
    let table = mounted.join("deep/er/run.h5/t/metadata.json");
    let before = fs::metadata(&table).unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let limit = Duration::from_secs(10);
    fs::write(&file, fs::read(data("units.h5")).unwrap()).unwrap();
    within(limit, "the time of the file rewritten in place shows", || {
        fs::metadata(&table).is_ok_and(|metadata| metadata.modified().unwrap() > before)
    });
    put("layouts.h5", &folder.path().join("deep/er/other.h5"));
    within(limit, "a new file shows", || mounted.names("deep/er") == ["other.h5", "run.h5"]);
    fs::remove_file(&file).unwrap();
    within(limit, "a file that went is gone", || !mounted.join("deep/er/run.h5").exists());
    fs::remove_dir_all(folder.path().join("deep/er")).unwrap();
    within(limit, "a folder that went is gone", || !mounted.join("deep/er").exists());
}

#[test]
fn a_mount_point_in_the_source_folder_does_not_lead_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("data/units.h5"));
    let mountpoint = root.join("data/mnt");
    fs::create_dir(&mountpoint).unwrap();
    let output = hepfs(["mount".as_ref(), root.join("data").as_os_str(), mountpoint.as_os_str()]);
    assert!(output.status.success(), "{output:?}");
    let guard = crate::support::Unmount(mountpoint.clone());
    // The mount point is not among what is shown, so `find` and `du` come to an end.
    assert_eq!(crate::support::names(&mountpoint), [".hepfs", "units.h5"]);
    assert!(!mountpoint.join("mnt").exists());
    assert!(fs::read_to_string(mountpoint.join("units.h5/t/table.csv")).unwrap().starts_with("mass,"));
    crate::support::must("find", [mountpoint.as_os_str()]);
    drop(guard);
    assert!(!is_mounted(&mountpoint));
}

#[test]
fn several_sources_show_one_directory_each() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("one/units.h5"));
    put("layouts.h5", &root.join("more/layouts.h5"));
    put("units.h5", &root.join("odd/per%cent\nname.h5"));
    let mounted =
        Mounted::new(&[&root.join("one/units.h5"), &root.join("more"), &root.join("odd/per%cent\nname.h5")], &[]);
    assert_eq!(mounted.names(""), [".hepfs", "more", "per%25cent%0Aname.h5", "units.h5"]);
    assert_eq!(mounted.names("more"), ["layouts.h5"]);
    let table = mounted.text("units.h5/t/table.csv");
    assert!(table.starts_with("mass,"));
    assert_eq!(mounted.text("per%25cent%0Aname.h5/t/table.csv"), table);
    // One of them changes.
    put("seed_11_1.h5", &root.join("staged"));
    fs::rename(root.join("staged"), root.join("one/units.h5")).unwrap();
    assert!(mounted.text("units.h5/my_table/head.csv").starts_with("row_id,ts,"));
    assert_eq!(mounted.text("per%25cent%0Aname.h5/t/table.csv"), table);
}

#[test]
fn sources_of_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("one/run.h5"));
    put("units.h5", &root.join("two/run.h5"));
    let (_mount, output) = Mounted::try_new(&[&root.join("one/run.h5"), &root.join("two/run.h5")], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("one/run.h5") && said.contains("two/run.h5") && said.lines().count() == 1, "{said}");
    // One bad source among good ones is refused as well.
    let (_mount, output) = Mounted::try_new(&[&root.join("one/run.h5"), &data("hostile/not_hdf5.h5")], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("not_hdf5.h5: not an HDF5 file"), "{said}");
}
