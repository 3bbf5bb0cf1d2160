//! Mounts by the real program, which end whatever happens.
#![allow(dead_code, reason = "each test file uses its own part")]

mod programs;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use programs::*;

/// The program under test.
pub const HEPFS: &str = env!("CARGO_BIN_EXE_hepfs");

/// A mount in a temporary folder of its own.
pub struct Mounted {
    folder: tempfile::TempDir,
    mountpoint: PathBuf,
}

impl Mounted {
    /// Mounts sources with further arguments.
    pub fn new(sources: &[&Path], arguments: &[&str]) -> Self {
        let (folder, output) = Self::try_new(sources, arguments);
        assert!(output.status.success(), "mount failed: {}", String::from_utf8_lossy(&output.stderr));
        let mountpoint = folder.path().join("mnt");
        Self { folder, mountpoint }
    }

    /// Tries to mount and returns the program's output. The caller has to end the mount.
    pub fn try_new(sources: &[&Path], arguments: &[&str]) -> (tempfile::TempDir, Output) {
        assert!(Path::new("/dev/fuse").exists(), "/dev/fuse is missing: these tests mount for real");
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mnt")).unwrap();
        let mut command = vec![OsStr::new("mount")];
        command.extend(arguments.iter().map(OsStr::new));
        let log = folder.path().join("log");
        command.extend([OsStr::new("--log-file"), log.as_os_str()]);
        // Nothing that an earlier version of the program kept may be taken for its work of today.
        if !arguments.iter().any(|argument| argument.starts_with("--cache-folder")) {
            command.extend(["--cache-folder", "none"].map(OsStr::new));
        }
        command.extend(sources.iter().map(|source| source.as_os_str()));
        let mountpoint = folder.path().join("mnt");
        command.push(mountpoint.as_os_str());
        let output = hepfs(command);
        (folder, output)
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.mountpoint
    }

    /// What the background process logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A path below the mount point.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.mountpoint.join(path)
    }

    /// The bytes of a file below the mount point.
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let path = self.join(path);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The same as text.
    pub fn text(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(path)).unwrap()
    }

    /// The names in a directory below the mount point, sorted.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        names(&self.join(path))
    }

    /// The lines that `find` prints with these arguments, of all but `.hepfs` and `.datasets`.
    pub fn found(&self, arguments: &[&str]) -> Vec<String> {
        let all = ["-path", "*/.[hd]*", "-prune", "-o"].iter().chain(arguments).map(OsStr::new);
        must("find", std::iter::once(self.path().as_os_str()).chain(all)).lines().map(str::to_owned).collect()
    }

    /// The process that serves the mount.
    pub fn daemon(&self) -> u32 {
        daemon_of(&self.mountpoint).expect("no process serves the mount")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        clear(&self.mountpoint);
    }
}

/// The living processes with this variable in their environment, `NAME=VALUE`.
pub fn marked(variable: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|id| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()) && lives(*id)
    })
    .collect()
}

/// A mount point that is cleared in the end.
pub struct Unmount(pub PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// Takes away whatever is mounted, without asking it anything.
pub fn clear(mountpoint: &Path) {
    while is_mounted(mountpoint) {
        let umount = hepfs([OsStr::new("umount"), OsStr::new("--lazy"), mountpoint.as_os_str()]);
        if !umount.status.success() && !Command::new("umount").arg("-l").arg(mountpoint).status().unwrap().success() {
            break;
        }
    }
}

/// Whether something is mounted, without asking it anything.
pub fn is_mounted(mountpoint: &Path) -> bool {
    let Ok(parent) = mountpoint.parent().unwrap().canonicalize() else { return false };
    let mountpoint = parent.join(mountpoint.file_name().unwrap());
    hepfs::fs::mount::mountpoints().unwrap().contains(&mountpoint)
}

/// The tables in what `hepfs info` prints of a file: place in the file, and what follows in the line.
pub fn tables_in(tree: &str) -> Vec<(String, String)> {
    let (mut names, mut tables): (Vec<String>, _) = (Vec::new(), Vec::new());
    for line in tree.lines() {
        let text = line.trim_start_matches(['│', '├', '└', '─', ' ']);
        // Each level takes three columns.
        let depth = line.strip_suffix(text).unwrap().chars().count() / 3;
        let [table, other] = ["table ", "group "].map(|kind| text.strip_prefix(kind));
        let found =
            table.and_then(|text| text.rsplit_once(": ")).or_else(|| Some((other?.trim_end_matches(": empty"), "")));
        let Some((name, rest)) = found.filter(|_| depth <= names.len()) else { continue };
        names.truncate(depth);
        names.push(name.trim_matches('/').to_owned());
        if table.is_some() && !rest.starts_with('→') {
            tables.push((names.join("/").trim_matches('/').to_owned(), rest.to_owned()));
        }
    }
    tables
}

/// The names in a directory, sorted.
pub fn names(path: &Path) -> Vec<String> {
    let listed = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut names: Vec<_> = listed.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The process whose command line ends in this mount point.
pub fn daemon_of(mountpoint: &Path) -> Option<u32> {
    processes().find(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut arguments = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
        let is_mount = arguments.nth(1) == Some(b"mount");
        is_mount && arguments.next_back() == Some(mountpoint.as_os_str().as_bytes())
    })
}

/// A process and all below it.
pub fn family(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes().filter_map(|id| Some((id, status(id, "PPid:")? as u32))).collect();
    let mut family = vec![process];
    let mut at = 0;
    while at < family.len() {
        let above = family[at];
        family.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(id, _)| *id));
        at += 1;
    }
    family
}

/// A number in `/proc/ID/status`, of a field with its colon; memory is in KiB. `None` once the process is gone or a
/// zombie.
///
/// # Panics
/// Where the field is no number.
pub fn status(process: u32, field: &str) -> Option<u64> {
    assert!(field.ends_with(':'), "{field} has no colon");
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    if status.lines().any(|line| line.starts_with("State:") && line.contains('Z')) {
        return None;
    }
    let line = status.lines().find(|line| line.starts_with(field))?;
    let value = line[field.len()..].trim().trim_end_matches(" kB");
    Some(value.parse().unwrap_or_else(|error| panic!("{line}: {error}")))
}

/// Whether a process lives.
pub fn lives(process: u32) -> bool {
    status(process, "PPid:").is_some()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Runs the program under test with a time limit.
pub fn hepfs<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    run(HEPFS, arguments)
}

/// Copies the program to a place that other users may read; the build folder may be closed to them.
///
/// Another process copies: what another test starts meanwhile would inherit a descriptor that is open for writing, and
/// the kernel runs no such file.
pub fn copy_program(place: &Path) {
    must("cp", ["--".as_ref(), HEPFS.as_ref(), place.as_os_str()]);
    std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Runs a program that must succeed; what it wrote, as text.
pub fn must<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> String {
    String::from_utf8(programs::must(program, arguments)).unwrap()
}
