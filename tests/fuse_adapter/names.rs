//! Names, attributes, listings, and what becomes of them when the source changes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bstr::BString;
use hepfs::fs::mount::{ListedXattrs, MountOptions};
use hepfs::fs::{Attributes, Error, Node, NodeRef};
use hepfs::source::Interrupt;
use hepfs::views::{Effort, Size};

use crate::mounted::Mounted;
use crate::programs::{must, run};
use crate::toy::{Manner, current, directory, directory_of, file, file_of, link, time};

#[test]
fn attributes_are_the_nodes_and_the_owner_is_who_mounted() {
    let root = directory([("d", directory([("f", file("abc", Manner::Plain))]) as _), ("l", link("d/f"))]);
    let mounted = Mounted::new(root);
    let metadata = fs::metadata(mounted.path("d/f")).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o440);
    assert_eq!(metadata.modified().unwrap(), time());
    assert_eq!(
        (metadata.uid(), metadata.gid()),
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    );
    // What `cat` and Python's files ask for at a time: as much as a request holds.
    assert_eq!(metadata.blksize(), 1 << 20);
    let folder = fs::metadata(mounted.path("d")).unwrap();
    assert!(folder.is_dir());
    assert_eq!(folder.blksize(), 4096);
    assert_eq!(folder.permissions().mode() & 0o7777, 0o555);
    assert_eq!(fs::read_link(mounted.path("l")).unwrap(), Path::new("d/f"));
    assert_eq!(fs::symlink_metadata(mounted.path("l")).unwrap().len(), 3);
    assert_eq!(fs::read(mounted.path("l")).unwrap(), b"abc");
    assert_eq!(fs::metadata(mounted.path("x")).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    assert_eq!(fs::metadata(mounted.path("d/f/g")).unwrap_err().raw_os_error(), Some(libc::ENOTDIR));
    // find(1) must not take the number of links for the number of folders inside.
    let found = must("find", [mounted.root().as_os_str(), OsStr::new("-name"), OsStr::new("f")]);
    assert_eq!(found, format!("{}\n", mounted.path("d/f").display()).into_bytes());
}

#[test]
fn every_write_is_refused() {
    let mounted = Mounted::new(directory([("f", file("abc", Manner::Plain))]));
    let f = mounted.path("f");
    let new = mounted.path("new");
    let outcomes = [
        fs::write(&f, "x"),
        fs::write(&new, "x"),
        fs::create_dir(&new),
        fs::remove_file(&f),
        fs::rename(&f, &new),
        fs::hard_link(&f, &new),
        std::os::unix::fs::symlink("f", &new),
        fs::set_permissions(&f, PermissionsExt::from_mode(0o600)),
        fs::OpenOptions::new().append(true).open(&f).map(drop),
        fs::OpenOptions::new().read(true).write(true).open(&f).map(drop),
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EROFS), "attempt {at}");
    }
    assert!(!run("test", [OsStr::new("-x"), f.as_os_str()]).status.success());
    assert_eq!(fs::read(&f).unwrap(), b"abc");
}

fn get_xattr(path: &Path, name: &str, room: usize) -> io::Result<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = CString::new(name).unwrap();
    let mut value = vec![0_u8; room];
    // SAFETY: both strings end with NUL, and the buffer has the length that is said.
    let got = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), room) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    value.truncate(got);
    Ok(if room == 0 { vec![0; got] } else { value })
}

fn list_xattrs(path: &Path, room: usize) -> io::Result<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let mut list = vec![0_u8; room];
    // SAFETY: the string ends with NUL, and the buffer has the length that is said.
    let got = unsafe { libc::listxattr(path.as_ptr(), list.as_mut_ptr().cast(), room) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    list.truncate(got);
    Ok(if room == 0 { vec![0; got] } else { list })
}

#[test]
fn extended_attributes() {
    let xattrs: Vec<(BString, Vec<u8>)> = vec![
        ("user.units".into(), b"GeV".to_vec()),
        ("user.empty".into(), Vec::new()),
        ("user.huge".into(), vec![7; 65_536]),
        ("user.too-huge".into(), vec![7; 65_537]),
        ("trusted.secret".into(), b"x".to_vec()),
    ];
    let root = directory([("f", file_of("abc", Manner::Plain, current(), xattrs))]);
    let mounted = Mounted::new(root.clone());
    let f = mounted.path("f");
    let error = |outcome: io::Result<Vec<u8>>| outcome.unwrap_err().raw_os_error().unwrap();
    assert_eq!(get_xattr(&f, "user.units", 100).unwrap(), b"GeV");
    assert_eq!(get_xattr(&f, "user.units", 3).unwrap(), b"GeV");
    assert_eq!(get_xattr(&f, "user.units", 0).unwrap().len(), 3);
    assert_eq!(error(get_xattr(&f, "user.units", 2)), libc::ERANGE);
    assert_eq!(get_xattr(&f, "user.empty", 10).unwrap(), b"");
    assert_eq!(get_xattr(&f, "user.huge", 65_536).unwrap(), vec![7; 65_536]);
    assert_eq!(error(get_xattr(&f, "user.nothing", 10)), libc::ENODATA);
    assert_eq!(error(get_xattr(&f, "security.capability", 10)), libc::ENODATA);
    let short = b"user.units\0user.empty\0user.hepfs.left_out\0";
    assert_eq!(list_xattrs(&f, 0).unwrap().len(), short.len());
    assert_eq!(list_xattrs(&f, 1000).unwrap(), short);
    assert_eq!(get_xattr(&f, "user.hepfs.left_out", 10).unwrap(), b"3");
    assert_eq!(error(list_xattrs(&f, 5)), libc::ERANGE);
    assert_eq!(list_xattrs(&mounted.root(), 10).unwrap(), b"");
    drop(mounted);
    let with = |xattrs| Mounted::with(root.clone(), &MountOptions { xattrs, ..MountOptions::default() });
    let all = with(ListedXattrs::All);
    let names = b"user.units\0user.empty\0user.huge\0user.hepfs.left_out\0";
    assert_eq!(list_xattrs(&all.path("f"), 1000).unwrap(), names);
    assert_eq!(get_xattr(&all.path("f"), "user.hepfs.left_out", 10).unwrap(), b"2");
    drop(all);
    let none = with(ListedXattrs::None);
    assert_eq!(error(list_xattrs(&none.path("f"), 1000)), libc::EOPNOTSUPP);
    assert_eq!(error(get_xattr(&none.path("f"), "user.units", 100)), libc::EOPNOTSUPP);
}

#[test]
fn ten_thousand_names_are_listed_once_each() {
    let names: BTreeSet<String> = (0..10_000).map(|n| format!("column-{n:05}-{}", "x".repeat(n % 90))).collect();
    let manner = |at: usize| if at.is_multiple_of(2) { Manner::Plain } else { Manner::Bound };
    let files = names.iter().enumerate().map(|(at, name)| (name.clone(), file(name.clone(), manner(at))));
    let mounted = Mounted::new(directory(files));
    for _ in 0..2 {
        let listed: Vec<_> = fs::read_dir(mounted.root()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(listed.len(), names.len());
        let seen: BTreeSet<String> = listed.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
        assert_eq!(seen, names);
        for entry in listed.iter().step_by(97) {
            use std::os::unix::fs::DirEntryExt;
            assert_eq!(entry.ino(), fs::metadata(entry.path()).unwrap().ino(), "d_ino is st_ino");
        }
    }
    let long = must("ls", [OsStr::new("-l"), mounted.root().as_os_str()]);
    assert_eq!(long.split(|byte| *byte == b'\n').count(), names.len() + 2);
}

/// A file that counts who asks for a size that takes work.
struct Looked(Arc<AtomicU64>);

impl Node for Looked {
    fn attributes(&self) -> Attributes {
        file("", Manner::Plain).attributes()
    }

    fn is_current(&self) -> bool {
        true
    }

    fn size(&self, effort: Effort, _: &Interrupt) -> Result<Size, Error> {
        if effort == Effort::Known {
            return Ok(Size::AtMost(1000));
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Size::Exact(3))
    }
}

#[test]
fn sizes_are_looked_for_ahead_where_others_were_asked_for() {
    let asked = Arc::new(AtomicU64::new(0));
    let files = (0..3_000).map(|n| (format!("f{n}"), Arc::new(Looked(asked.clone())) as NodeRef));
    let mounted = Mounted::new(directory(files));
    assert_eq!(fs::read_dir(mounted.root()).unwrap().count(), 3_000);
    assert_eq!(asked.load(Ordering::Relaxed), 0, "names alone cost nothing");
    let mut names = fs::read_dir(mounted.root()).unwrap();
    for entry in names.by_ref().take(1_000) {
        assert_eq!(entry.unwrap().metadata().unwrap().len(), 3);
    }
    let left: Vec<_> = names.collect::<Result<_, _>>().unwrap();
    // Those of the answer that followed.
    let ahead = asked.load(Ordering::Relaxed);
    assert!(ahead > 1_010 && ahead < 3_000, "{ahead}");
    assert!(left.iter().all(|entry| entry.metadata().unwrap().len() == 3));
    // Each once, but for those that an answer had no room for.
    let all = asked.load(Ordering::Relaxed);
    assert!((3_000..3_100).contains(&all), "{all}");
}

#[test]
fn a_bad_name_or_a_failing_lookup_spoils_no_listing() {
    let root = directory([("good", file("g", Manner::Plain))]);
    {
        let mut entries = root.entries.lock();
        entries.insert("a/b".into(), file("", Manner::Plain));
        entries.insert("x".repeat(256).into(), file("", Manner::Plain));
        entries.insert("".into(), file("", Manner::Plain));
    }
    let mounted = Mounted::new(root);
    let listed = must("ls", [mounted.root()]);
    assert_eq!(listed, b"good\n");
}

#[test]
fn a_replaced_source_is_looked_up_again_and_open_handles_keep_the_old() {
    let first = current();
    let old = directory_of([("f", file_of("old", Manner::Plain, first.clone(), Vec::new()))], first.clone());
    let root = directory([("run", old as _)]);
    let mounted = Mounted::new(root.clone());
    let path = mounted.path("run/f");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let number = fs::metadata(&path).unwrap().ino();
    let mut handle = File::open(&path).unwrap();

    let second = current();
    let new = file_of("newer", Manner::Plain, second.clone(), Vec::new());
    root.entries.lock().insert("run".into(), directory_of([("f", new)], second));
    first.store(false, Ordering::SeqCst);

    // No notification: the kernel still has the names, and the open answers ESTALE, upon which it looks again.
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    assert_eq!(fs::metadata(&path).unwrap().len(), 5);
    assert_ne!(fs::metadata(&path).unwrap().ino(), number);
    assert_eq!(handle.metadata().unwrap().len(), 3);
    let mut bytes = Vec::new();
    handle.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"old");
}

#[test]
fn an_invalidation_reaches_stat_at_once() {
    let first = current();
    let root = directory([("f", file_of("old", Manner::Plain, first.clone(), Vec::new()))]);
    let options = MountOptions { ttl: Duration::from_secs(3600), ..MountOptions::default() };
    let mounted = Mounted::with(root.clone(), &options);
    let path = mounted.path("f");
    assert_eq!(fs::metadata(&path).unwrap().len(), 3);
    root.entries.lock().insert("f".into(), file("newer", Manner::Plain));
    first.store(false, Ordering::SeqCst);
    // The kernel may keep what it knows for an hour.
    assert_eq!(fs::metadata(&path).unwrap().len(), 3);
    mounted.mount().invalidate();
    assert_eq!(fs::metadata(&path).unwrap().len(), 5);
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    root.entries.lock().remove(&BString::from("f"));
    mounted.mount().invalidator().everything();
    // The node itself is as current as before.
    assert_eq!(fs::metadata(&path).unwrap_err().raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn missing_names_are_asked_again_each_time() {
    let root = directory::<&str>([]);
    let mounted = Mounted::new(root.clone());
    let path: PathBuf = mounted.path("later");
    assert!(fs::metadata(&path).is_err());
    root.entries.lock().insert("later".into(), file("here", Manner::Plain));
    assert_eq!(fs::read(&path).unwrap(), b"here");
}

#[test]
fn statfs_says_read_only_and_full() {
    let options = MountOptions { total_bytes: 10_000, source_name: "a,b c.h5".into(), ..MountOptions::default() };
    let mounted = Mounted::with(directory::<&str>([]), &options);
    let shown = must("stat", ["-f".into(), "-c".into(), "%S %b %f %a %l".into(), mounted.root()]);
    assert_eq!(String::from_utf8(shown).unwrap(), "4096 3 0 0 255\n");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = mounted.root().canonicalize().unwrap();
    let line = mounts.lines().find(|line| line.contains(&format!(" {} ", root.display()))).unwrap();
    assert!(line.contains(" - fuse.hepfs a,b\\040c.h5 ro"), "{line}");
    assert!(line.contains(" ro,nosuid,nodev"), "{line}");
}

#[test]
fn too_many_names_make_the_kernel_let_go_of_old_ones() {
    let files = (0..3_000).map(|n| (format!("f{n}"), file("abc", Manner::Plain)));
    let mounted = Mounted::with(directory(files), &MountOptions { known_names: 400, ..MountOptions::default() });
    let held = File::open(mounted.path("f0")).unwrap();
    let known = || {
        let shown = must("stat", ["-f".into(), "-c".into(), "%c".into(), mounted.root()]);
        String::from_utf8(shown).unwrap().trim().parse::<u64>().unwrap()
    };
    for n in 0..3_000 {
        assert_eq!(fs::metadata(mounted.path(format!("f{n}"))).unwrap().len(), 3);
    }
    let next = Cell::new(0);
    crate::programs::until("most names are gone", || {
        // A lookup that reaches us may start another round; those of names that were let go of do.
        next.set((next.get() + 1) % 3_000);
        fs::metadata(mounted.path(format!("f{}", next.get()))).unwrap();
        known() <= 400
    });
    let mut bytes = Vec::new();
    (&held).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"abc");
    assert_eq!(fs::read(mounted.path("f2999")).unwrap(), b"abc");
}

#[test]
fn a_directory_stays_known_with_the_names_in_it_that_are_not_old() {
    let files = (0..3_000).map(|n| (format!("f{n}"), file("abc", Manner::Plain)));
    let root = directory([("d", directory(files) as _)]);
    let mounted = Mounted::with(root, &MountOptions { known_names: 400, ..MountOptions::default() });
    let known = || {
        let shown = must("stat", ["-f".into(), "-c".into(), "%c".into(), mounted.root()]);
        String::from_utf8(shown).unwrap().trim().parse::<u64>().unwrap()
    };
    let mut least = u64::MAX;
    for n in 0..3_000 {
        fs::metadata(mounted.path(format!("d/f{n}"))).unwrap();
        if n > 400 && n % 10 == 0 {
            least = least.min(known());
        }
    }
    // Three quarters, were the kernel never short of memory.
    assert!(least >= 200, "{least}");
}

#[test]
fn other_users_see_what_the_modes_permit_and_only_on_request() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let as_nobody = |path: PathBuf| {
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "cat"];
        run("setpriv", user.map(OsStr::new).into_iter().chain([path.as_os_str()])).status.success()
    };
    for allow_other in [false, true] {
        let opens = Arc::new(AtomicU64::new(0));
        let root = directory([("0440", file("abc", Manner::Plain)), ("0444", file("", Manner::Live(opens)))]);
        let mounted = Mounted::with(root, &MountOptions { allow_other, ..MountOptions::default() });
        fs::set_permissions(mounted.root().parent().unwrap(), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(as_nobody(mounted.path("0444")), allow_other);
        assert!(!as_nobody(mounted.path("0440")));
        assert_eq!(fs::read(mounted.path("0440")).unwrap(), b"abc");
    }
}
