//! Folders and several sources.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::data;
use crate::place::settle;
use crate::support::{Mounted, hepfs, is_mounted, must, within};
use crate::writer::Writer;

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
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "deep", "latest", "no suffix", "truncated.h5", "units.h5"]);
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
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "a.h5"]);
    assert!(mounted.text("a.h5/t/table.csv").starts_with("mass,"));
    put("units.h5", &root.join("new.h5"));
    fs::remove_file(root.join("a.h5")).unwrap();
    let limit = Duration::from_secs(10);
    within(limit, "the new file is listed", || mounted.names("") == [".datasets", ".hepfs", "new.h5"]);
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
    assert_eq!(crate::support::names(&mountpoint), [".datasets", ".hepfs", "units.h5"]);
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
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "more", "per%25cent%0Aname.h5", "units.h5"]);
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
}

/// A part of an HDF5 file in several is told as such, with the names of the others.
#[test]
fn members_of_a_file_in_several_are_told_as_such() {
    let family = |names: &str| format!("a member of an HDF5 file that the family driver keeps in several: {names}; ");
    let old = family("old-0.h5, old-1.h5, old-2.h5, old-3.h5, old-4.h5, old-5.h5, … (8 in all)");
    let new = family("new000.h5, new001.h5, new002.h5, new003.h5, new004.h5, new005.h5");
    let pair = "a member of an HDF5 file that the split driver keeps in several: pair-m.h5, pair-r.h5; ";
    for (name, what, then) in [
        ("old-0.h5", old.as_str(), "h5repart -family_to_single old-%d.h5"),
        ("old-3.h5", &old, "h5repart -family_to_single old-%d.h5"),
        ("new000.h5", &new, "h5repart -family_to_single new%03d.h5"),
        ("new004.h5", &new, "h5repart -family_to_single new%03d.h5"),
        ("pair-m.h5", pair, "h5py.File('pair', driver='split')"),
        ("pair-r.h5", pair, "h5py.File('pair', driver='split')"),
    ] {
        let output = hepfs(["info", data(&format!("members/{name}")).to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(what) && said.contains(then), "{name}: {said}");
    }
    // One that is not there is named, blanks are quoted, and of another name nothing can be said.
    let folder = tempfile::tempdir().unwrap();
    let copied = |from: &str, to: &str| {
        fs::copy(data(&format!("members/{from}")), folder.path().join(to)).unwrap();
    };
    [0, 1, 3, 5].iter().for_each(|member| copied(&format!("new00{member}.h5"), &format!("new00{member}.h5")));
    copied("new000.h5", "my run 0.h5");
    copied("new000.h5", "alone.h5");
    for (name, what) in [
        ("new000.h5", "new000.h5, new001.h5, new003.h5, new005.h5; not there: new002.h5, new004.h5"),
        ("new003.h5", "new000.h5, new001.h5, new003.h5, new005.h5; not there: new002.h5, new004.h5"),
        ("my run 0.h5", "h5repart -family_to_single 'my run %d.h5' WHOLE.h5"),
        ("alone.h5", "differ by a number, from 0 on, which this name lacks"),
    ] {
        let output = hepfs(["info", folder.path().join(name).to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(what), "{name}: {said}");
    }
}

/// One bad source stops no other: it is named with its reason, and listed as a folder lists it.
#[test]
fn a_source_that_cannot_be_opened_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put("units.h5", &root.join("good.h5"));
    put("hostile/truncated.h5", &root.join("truncated.h5"));
    put("hostile/not_hdf5.h5", &root.join("text.h5"));
    put("hostile/empty.h5", &root.join("empty.h5"));
    fs::create_dir(root.join("nothing")).unwrap();
    let bad = [
        ("empty.h5", "the file is empty"),
        ("goof.h5", "No such file or directory (os error 2) (did you mean \"good.h5\"?)"),
        ("nothing", "there is no HDF5 file in this folder"),
        ("text.h5", "not an HDF5 file"),
        ("truncated.h5", "cannot be read as HDF5: "),
    ];
    let sources: Vec<_> =
        ["good.h5"].into_iter().chain(bad.map(|(name, _)| name)).map(|name| root.join(name)).collect();
    let sources: Vec<&Path> = sources.iter().map(|path| path.as_path()).collect();
    let (mount, output) = Mounted::try_new(&sources, &[]);
    let mountpoint = mount.path().join("mnt");
    let _unmount = crate::support::Unmount(mountpoint.clone());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let log = fs::read_to_string(mount.path().join("log")).unwrap();
    let errors = fs::read_to_string(mountpoint.join(".hepfs/errors")).unwrap();
    assert_eq!((said.lines().count(), errors.lines().count()), (bad.len(), bad.len()), "{said}{errors}");
    for (name, reason) in bad {
        let line = format!("{}: {reason}", root.join(name).display());
        assert!(said.lines().any(|said| said.starts_with(&format!("hepfs: warning: {line}"))), "{line}: {said}");
        assert!(log.contains(&line) && errors.contains(&line), "{line}: {log}{errors}");
    }
    let names = || crate::support::names(&mountpoint);
    assert_eq!(names(), [".datasets", ".hepfs", "good.h5", "nothing", "truncated.h5"]);
    assert!(fs::read_to_string(mountpoint.join("good.h5/t/table.csv")).unwrap().starts_with("mass,"));
    assert_eq!(fs::read_dir(mountpoint.join("truncated.h5")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(fs::read_dir(mountpoint.join("nothing")).unwrap().count(), 0);
    assert_eq!(crate::support::names(&mountpoint.join(".datasets/t")), ["file=good.h5"]);
    assert!(fs::read_to_string(mountpoint.join(".hepfs/findings")).unwrap().contains("truncated.h5: cannot be read"));
    // One that is mended, or comes, is shown.
    for name in ["goof.h5", "truncated.h5"] {
        put("units.h5", &root.join("staged"));
        fs::rename(root.join("staged"), root.join(name)).unwrap();
        within(Duration::from_secs(10), name, || mountpoint.join(name).join("t/table.csv").exists());
    }
    within(Duration::from_secs(10), "the file that came is listed", || {
        names() == [".datasets", ".hepfs", "good.h5", "goof.h5", "nothing", "truncated.h5"]
    });

    // Of none there is no mount.
    let (mount, output) = Mounted::try_new(&[&root.join("text.h5"), &root.join("none.h5")], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!is_mounted(&mount.path().join("mnt")) && output.status.code() == Some(1), "{said}");
    assert!(said.lines().count() == 1 && said.contains("none of the 1 other sources can be mounted either"), "{said}");
}

/// A file with a table of one column.
fn table(path: &Path, column: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let staged = path.with_extension("staged");
    let writer = Writer::create(&staged);
    writer.table("t").column(column, &[1, 2, 3], 3);
    writer.close();
    fs::rename(staged, path).unwrap();
}

/// How often the HDF5 library was asked for a part of a catalogue.
fn asked(mounted: &Mounted) -> u64 {
    let stats = mounted.text(".hepfs/stats");
    stats.lines().find_map(|line| line.strip_prefix("catalogue_asked ")).unwrap().parse().unwrap()
}

/// To list datasets, for their columns, and for the rows.
#[test]
fn a_file_is_opened_once_for_all_that_a_dataset_asks() {
    for (name, table) in [("units.h5", "t"), ("compound_records.h5", "every_1")] {
        let folder = tempfile::tempdir().unwrap();
        (0..3).for_each(|at| put(name, &folder.path().join(format!("{at}.h5"))));
        settle();
        let mounted = Mounted::new(&[folder.path()], &["--cache-folder", "none"]);
        mounted.names(".datasets");
        let listed = asked(&mounted);
        assert_eq!(mounted.names(format!(".datasets/{table}")).len(), 3, "{name}");
        let parts = (0..3).map(|at| mounted.read(format!(".datasets/{table}/file={at}.h5/part-0.parquet")));
        assert!(parts.min_by_key(Vec::len).unwrap().starts_with(b"PAR1"), "{name}");
        assert_eq!(asked(&mounted), listed, "{name}");
        // Of a file of few objects: what it is, and what lies in it.
        assert!(name != "units.h5" || listed == 6, "{listed}");
    }
}

#[test]
fn a_table_of_many_files_is_a_dataset_that_follows_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    table(&root.join("b.h5"), "x");
    table(&root.join("deep/a=%.h5"), "x");
    put("hostile/truncated.h5", &root.join("bad.h5"));
    let mounted = Mounted::new(&[root], &[]);
    // Nothing is opened before the first look.
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "b.h5", "bad.h5", "deep"]);
    let before = asked(&mounted);
    assert!(fs::metadata(mounted.join(".datasets")).unwrap().is_dir());
    assert_eq!(asked(&mounted), before);
    let parts = || mounted.names(".datasets/t");
    assert_eq!(mounted.names(".datasets"), ["t", "t.left_out.txt"]);
    let left_out = mounted.text(".datasets/t.left_out.txt");
    assert!(left_out.starts_with("bad.h5: cannot be read as HDF5: the file is truncated: "), "{left_out}");
    assert_eq!(left_out.lines().count(), 1, "{left_out}");
    assert_eq!(fs::metadata(mounted.join(".datasets/t.left_out.txt")).unwrap().len(), left_out.len() as u64);
    assert_eq!(parts(), ["file=b.h5", "file=deep%2Fa%3D%2525.h5"]);
    assert_eq!(mounted.names(".datasets/t/file=b.h5"), ["part-0.parquet"]);
    assert!(!mounted.join(".datasets/t/_metadata").exists() && !mounted.join(".datasets/u").exists());
    let part = mounted.read(".datasets/t/file=b.h5/part-0.parquet");
    assert!(part == mounted.read("b.h5/t/table.parquet"));
    assert!(mounted.text(".hepfs/findings").contains("bad.h5: cannot be read as HDF5"));

    let limit = Duration::from_secs(10);
    table(&root.join("c.h5"), "x");
    within(limit, "a file that came is there", || parts() == ["file=b.h5", "file=c.h5", "file=deep%2Fa%3D%2525.h5"]);
    assert!(mounted.read(".datasets/t/file=c.h5/part-0.parquet") == part);
    // The kernel keeps the names of a partition.
    for _ in 0..2 {
        assert_eq!(mounted.names(".datasets/t/file=c.h5"), ["part-0.parquet"]);
    }
    table(&root.join("b.h5"), "y");
    // A handle that was opened just before the change is stale.
    let read = |path: &str| fs::read(mounted.join(path)).ok();
    within(limit, "all files have the other column", || {
        let now = read(".datasets/t/file=c.h5/part-0.parquet");
        now.is_some_and(|now| now != part)
            && mounted.text(".hepfs/findings").contains("a column \\\"y\\\", which 2 other files lack")
    });
    assert_eq!(parts().len(), 3);
    fs::remove_file(root.join("c.h5")).unwrap();
    within(limit, "a file that went is gone", || parts() == ["file=b.h5", "file=deep%2Fa%3D%2525.h5"]);
    let list = |partition: &str| fs::read_dir(mounted.join(".datasets/t").join(partition)).map(Iterator::count);
    within(limit, "with its partition", || list("file=c.h5").is_err());
    assert_eq!(list("file=b.h5").unwrap(), 1);
    fs::remove_dir_all(root.join("deep")).unwrap();
    within(limit, "the other one has its columns alone", || {
        let now = read(".datasets/t/file=b.h5/part-0.parquet");
        now.is_some() && now == read("b.h5/t/table.parquet")
    });
    fs::remove_file(root.join("bad.h5")).unwrap();
    within(limit, "nothing is left out", || mounted.names(".datasets") == ["t"]);
    assert!(fs::metadata(mounted.join(".datasets/t.left_out.txt")).is_err());
    fs::remove_file(root.join("b.h5")).unwrap();
    within(limit, "nothing is left", || mounted.names(".datasets").is_empty());
}

/// One that was named at the mount is stale, with its reason, and takes nothing from the others.
#[test]
fn a_deleted_source_takes_no_other_away() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ["a.h5", "b.h5", "deep/c.h5"].map(|name| folder.path().join(name));
    sources.iter().for_each(|path| table(path, "x"));
    let deep = folder.path().join("deep");
    let (all, one) = (Mounted::new(&[&sources[0], &sources[1], &deep], &[]), Mounted::new(&[&deep], &[]));
    assert_eq!(all.names(".datasets/t"), ["file=a.h5", "file=b.h5", "file=deep%2Fc.h5"]);
    fs::remove_file(&sources[0]).unwrap();
    fs::remove_dir_all(&deep).unwrap();
    let limit = Duration::from_secs(10);
    within(limit, "the others stay", || all.names(".datasets/t") == ["file=b.h5"]);
    assert!(all.read(".datasets/t/file=b.h5/part-0.parquet").starts_with(b"PAR1"));
    let left_out = all.text(".datasets/t.left_out.txt");
    assert!(left_out.starts_with("a.h5: ") && left_out.lines().count() == 1, "{left_out}");
    let stale = |mounted: &Mounted, path: &str| {
        let error = fs::read_dir(mounted.join(path)).unwrap_err();
        error.raw_os_error() == Some(libc::ESTALE)
    };
    for (mounted, path, name) in [(&all, "a.h5", "a.h5: "), (&all, "deep", "deep: "), (&one, "", "deep: ")] {
        within(limit, "what is gone is stale", || stale(mounted, path));
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.contains(name) && errors.contains("No such file"), "{errors}");
    }
    table(&sources[2], "x");
    within(limit, "what came back is there", || one.names("") == [".datasets", ".hepfs", "c.h5"]);
}

#[test]
fn a_table_within_a_table_is_a_dataset_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5"] {
        let writer = Writer::create(&folder.path().join(name));
        for path in ["run", "run/x=1", "run/x=1/deeper"] {
            writer.table(path).column("x", &[1, 2], 2);
        }
        writer.close();
    }
    let sources = ["a.h5", "b.h5"].map(|name| folder.path().join(name));
    let mounted = Mounted::new(&sources.each_ref().map(|path| path.as_path()), &[]);
    assert_eq!(mounted.names(".datasets"), ["run", "run%2Fx%3D1", "run%2Fx%3D1%2Fdeeper"]);
    for path in ["run", "run%2Fx%3D1", "run%2Fx%3D1%2Fdeeper"] {
        assert_eq!(mounted.names(format!(".datasets/{path}")), ["file=a.h5", "file=b.h5"]);
    }
    // One file alone shows its root group and nothing else.
    let one = Mounted::new(&[&sources[0]], &[]);
    assert_eq!(one.names(""), [".hepfs", "index.html", "metadata.json", "run"]);
}

#[test]
fn sizes_can_be_added_up() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5"] {
        // With a column of lists, of whose text nothing is known before it is measured.
        hepfs::producer::sample::write(&folder.path().join(name), 150_000).unwrap();
    }
    let mounted = Mounted::new(&[folder.path()], &[]);
    let head = mounted.join("a.h5/run_042/head.csv");
    assert_eq!(fs::metadata(&head).unwrap().len(), mounted.read(&head).len() as u64);
    assert_eq!(fs::metadata(mounted.join("a.h5/run_042/table.ndjson")).unwrap().len(), 1 << 45);
    let used = must("du", ["-sh".as_ref(), mounted.path().as_os_str()]);
    assert!(used.contains('T') && !used.contains("Inf"), "{used}");
    let bytes = must("du", ["-sb".as_ref(), mounted.path().as_os_str()]);
    let bytes: u64 = bytes.split_whitespace().next().unwrap().parse().unwrap();
    assert!(bytes < 1 << 50, "{bytes}");
    let length = must("wc", ["-c".into(), mounted.join("a.h5/run_042/table.ndjson")]);
    assert!(length.split_whitespace().next().unwrap().parse::<u64>().unwrap() < 1 << 30, "{length}");
}

#[test]
fn a_mount_of_some_formats_shows_no_others() {
    let source = data("units.h5");
    let all = Mounted::new(&[&source, &data("links.h5")], &[]);
    let some = Mounted::new(&[&source, &data("links.h5")], &["--formats", "csv,parquet"]);
    let suffix = |name: &str| name.rsplit_once('.').map(|(_, suffix)| suffix.to_owned());
    let is_wanted = |line: &String| match suffix(line).as_deref() {
        Some("csv" | "parquet" | "json") => true,
        Some("arrow" | "html" | "ndjson" | "npy" | "pgm" | "png" | "ppm" | "raw") => false,
        Some("txt") => line.ends_with("/values.txt"),
        _ => true,
    };
    let [all_names, some_names] = [&all, &some].map(|mounted| mounted.found(&["-printf", "%y %P\n"]));
    assert_eq!(all_names.iter().filter(|line| is_wanted(line)).cloned().collect::<Vec<_>>(), some_names);
    assert!(some_names.len() < all_names.len() / 2, "{} of {}", some_names.len(), all_names.len());
    for name in some_names.iter().filter_map(|line| line.strip_prefix("f ")).filter(|name| name.ends_with(".json")) {
        assert!(all.read(name) == some.read(name), "{name}");
    }
    // Of Parquet alone, a table's directory is a Parquet dataset; the rest is there by name.
    let parquet = Mounted::new(&[&source], &["--formats", "parquet"]);
    assert_eq!(parquet.names("t"), ["table.parquet"]);
    for name in ["metadata.json", "indexes.json", "columns/mass.parquet"] {
        assert!(parquet.read(Path::new("t").join(name)) == some.read(Path::new("units.h5/t").join(name)), "{name}");
    }
    assert_eq!(parquet.names("t/columns"), ["count.parquet", "mass.parquet", "time.parquet"]);
    assert_eq!(parquet.names("t/where/mass:gt:1"), ["table.parquet"]);
    // Datasets are Parquet.
    let text = Mounted::new(&[&source, &data("links.h5")], &["--formats=txt"]);
    assert_eq!(text.names(""), [".hepfs", "links.h5", "units.h5"]);
    let refused = hepfs(["ls", "--formats", "csv,parket", &source.display().to_string()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("'parket'") && said.contains("'parquet'"), "{said}");
}
