//! The program as a helper of mount(8): by its names, by fstab(5), through mount.fuse3, below an automounter.
//!
//! Each test of mount(8) has a mount namespace of its own, with another /sbin and another /etc/fstab.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::data;
use crate::support::{
    LONG, Unmount, copy_program, daemon_of, end_of, hepfs, is_mounted, lives, run_within, signal, until,
};

/// Whether this process may mount what it wants. Some systems let ordinary users do nothing of this.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder with a file, a mount point, and the program by its names for mount(8).
struct Bench {
    folder: tempfile::TempDir,
    _unmount: Unmount,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        ["mnt", "sbin", "bin", "dev"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        fs::copy(data("units.h5"), at("run.h5")).unwrap();
        copy_program(&at("bin/hepfs"));
        for name in ["mount.hepfs", "mount.fuse.hepfs"] {
            symlink(at("bin/hepfs"), at("bin").join(name)).unwrap();
        }
        let unmount = Unmount(at("mnt"));
        Self { folder, _unmount: unmount }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Calls the program by a name, as mount(8) does.
    fn call(&self, name: &str, arguments: &[&str]) -> Output {
        run_within(LONG, Command::new(self.at("bin").join(name)).args(arguments).current_dir(self.folder.path()))
    }

    /// Runs a script in a namespace where mount(8) finds the program by `names`, with lines of fstab(5). `user` is a
    /// command that runs another one as an ordinary user. Whatever is mounted is taken away in the end.
    fn script(&self, names: &[&str], fstab: &str, script: &str) -> String {
        fs::write(self.at("fstab"), fstab.replace('@', self.folder.path().to_str().unwrap())).unwrap();
        let before = r#"
            set -eu
            mount --bind /sbin sbin
            mount -t tmpfs -o mode=755 sbin /sbin
            ln -s "$PWD"/sbin/* /sbin/
            for name in $NAMES; do ln -sf "$PWD/bin/$name" /sbin/; done
            mount --bind fstab /etc/fstab
            mount -t tmpfs -o mode=755 dev dev
            mknod -m 666 dev/fuse c 10 229
            mount --bind dev/fuse /dev/fuse
            user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
            trap 'for point in mnt other; do while hepfs umount --lazy $point; do :; done; done 2>/dev/null' EXIT
        "#;
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &format!("{before}{script}")]);
        command.env("NAMES", names.join(" ")).env("PATH", path).env_remove("HOME").current_dir(self.folder.path());
        let output = run_within(LONG, &mut command);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{}: {said}", output.status);
        said
    }
}

/// The helper's exit code and the words of its message.
fn refused(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.lines().count() == 1 && words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
}

#[test]
fn options_and_exit_codes_are_those_of_mount() {
    let bench = Bench::new();
    for name in ["mount.hepfs", "mount.fuse.hepfs"] {
        let options =
            "ro,nofail,_netdev,comment=a,x-systemd.automount,cache_size=64M,formats=csv:npy,log_file=\"a,b.log\"";
        let output = bench.call(name, &["run.h5", "mnt", "-sn", "-t", "hepfs", "-o", options]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(fs::read_to_string(bench.at("mnt/t/table.csv")).unwrap().starts_with("mass,"));
        assert!(bench.at("mnt/t/columns/mass.npy").exists() && !bench.at("mnt/t/table.parquet").exists());
        assert!(bench.at("a,b.log").exists());
        refused(&bench.call(name, &["run.h5", "mnt"]), 32, &["mounted here already"]);
        assert!(hepfs(["umount".as_ref(), bench.at("mnt").as_os_str()]).status.success());
    }
    let call = |arguments: &[&str]| bench.call("mount.hepfs", &[&["run.h5", "mnt"], arguments].concat());
    refused(&call(&["-o", "cach_size=1G"]), 1, &["cach_size", "cache_size"]);
    refused(&call(&["-o", "ro,cache_size=much"]), 1, &["cache_size", "much"]);
    refused(&call(&["-o", "foreground"]), 1, &["foreground"]);
    refused(&call(&["-o", "remount,ro"]), 1, &["remount", "unmount"]);
    refused(&call(&["-N", "1"]), 1, &["-N", "namespace"]);
    assert_eq!(bench.call("mount.hepfs", &["run.h5"]).status.code(), Some(1));
    refused(&bench.call("mount.hepfs", &["none.h5", "mnt"]), 32, &["none.h5", "No such file"]);
    refused(&bench.call("mount.hepfs", &["run.h5", "none"]), 32, &["none", "No such file"]);
    // Fake: nothing but the options counts.
    assert!(call(&["-f", "-v", "-o", "allow_other"]).status.success());
    refused(&call(&["-f", "-o", "uid=0"]), 1, &["uid"]);
    // Sloppy: what is not known is said.
    let sloppy = call(&["-s", "-f", "-o", "uid=0,allow_other"]);
    let said = String::from_utf8_lossy(&sloppy.stderr);
    assert!(sloppy.status.success() && said.contains("warning") && said.contains("uid"), "{said}");
    assert!(!is_mounted(&bench.at("mnt")));
}

#[test]
fn no_process_shows_the_secret_in_an_option() {
    let bench = Bench::new();
    // Nothing listens there, which is a warning.
    let learnt = "learnt=http://127.0.0.1:1/run.learnt?sig=SECRET-OF-AN-OPTION";
    let (conf, [source, mountpoint]) = (bench.at("run.conf"), ["run.h5", "mnt"].map(|name| bench.at(name)));
    let lines = format!("source={}\nmountpoint={}\n{learnt}\n", source.display(), mountpoint.display());
    fs::write(&conf, lines).unwrap();
    for (name, arguments) in [
        ("mount.hepfs", &["run.h5", "mnt", "-o", learnt][..]),
        ("hepfs", &["mount", "--config", conf.to_str().unwrap()]),
    ] {
        let output = bench.call(name, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("run.learnt") && !said.contains("SECRET"), "{said}");
        let daemon = daemon_of(&mountpoint).unwrap();
        let words = fs::read(format!("/proc/{daemon}/cmdline")).unwrap();
        let words = String::from_utf8_lossy(&words);
        assert!(words.contains("run.learnt") && !words.contains("SECRET"), "{words}");
        assert!(hepfs(["umount".as_ref(), mountpoint.as_os_str()]).status.success());
    }
}

#[test]
fn a_mount_without_a_command_says_what_to_write() {
    let bench = Bench::new();
    let output = bench.call("hepfs", &["run.h5", "mnt"]);
    refused(&output, 2, &["`hepfs mount run.h5 MOUNTPOINT`"]);
}

#[test]
fn mount_finds_the_program_by_its_type_and_fstab() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    fs::create_dir(bench.at("a b")).unwrap();
    fs::rename(bench.at("run.h5"), bench.at("a b/run, 1#.h5")).unwrap();
    symlink("a b/run, 1#.h5", bench.at("link.h5")).unwrap();
    let fstab = r"
        @/a\040b/run,\0401#.h5  @/mnt  hepfs  log_file=@/a\040b/log,cache_folder=none,formats=csv:npy,nofail,x-a=b  0 0
        @/a\040b  @/mnt/of\040it  hepfs  noauto,cach_size=1G  0 0
    ";
    let said = bench.script(
        &["mount.hepfs", "mount.fuse.hepfs"],
        fstab,
        r#"
        once() {
            cat mnt/t/columns/mass.csv
            test ! -e mnt/t/columns/mass.parquet
            test "$(grep -c "$PWD/mnt " /proc/self/mountinfo)" = 1
        }
        mount mnt
        once
        test -e "a b/log"
        # Mounted already: mount(8) asks nobody.
        mount -a
        mount -a
        once
        umount mnt
        mount -a
        once
        umount mnt
        # A link is mounted as what it leads to, so it is known as well.
        for type in hepfs fuse.hepfs; do
            mount -v -t $type -o ro,cache_folder=none,formats=csv link.h5 mnt
            once
            umount mnt
        done
        mount -f -t hepfs link.h5 mnt
        test ! -e mnt/t
        code=0; mount -t hepfs -o cach_size=1G link.h5 mnt || code=$?
        test $code = 1
        code=0; mount -t hepfs none.h5 mnt || code=$?
        test $code = 32
        mount -t hepfs -s -o cach_size=1G,cache_folder=none link.h5 mnt
        code=0; mount -o remount,ro mnt || code=$?
        test $code = 1
        "#,
    );
    assert_eq!(said.matches("mass\n1.0\n2.0\n").count(), 5, "{said}");
    assert_eq!(said.matches("cach_size: ").count(), 2, "{said}");
    assert!(said.contains("remount: ") && said.contains("none.h5: No such file"), "{said}");
}

/// Where only `fuse3` is installed, mount(8) calls mount.fuse3, and that `hepfs SOURCE MOUNTPOINT -o OPTIONS`.
#[test]
fn mount_finds_the_program_through_mount_fuse3() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    // A file with the name of a command.
    fs::copy(data("units.h5"), bench.at("info")).unwrap();
    let said = bench.script(
        &["hepfs"],
        "@/run.h5  @/mnt  fuse.hepfs  ro,cache_folder=none,formats=csv,noauto,nofail,x-a=b  0 0",
        r#"
        once() { cat mnt/t/columns/mass.csv; test ! -e mnt/t/columns/mass.npy; umount mnt; }
        mount mnt
        once
        mount -t fuse.hepfs -o cache_folder=none,formats=csv info mnt
        once
        mount.fuse3 hepfs#run.h5 mnt -o cache_folder=none,formats=csv
        once
        code=0; mount -t fuse.hepfs -o cach_size=1G run.h5 mnt || code=$?
        test $code != 0
        "#,
    );
    assert_eq!(said.matches("mass\n1.0\n2.0\n").count(), 3, "{said}");
    assert!(said.contains("cach_size: ") && said.contains("\"cache_size\""), "{said}");
}

/// `user` in fstab(5): mount(8) runs the helper as the user, who mounts through fusermount3.
#[test]
fn an_ordinary_user_mounts_what_fstab_allows() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let said = bench.script(
        &["mount.hepfs"],
        "@/run.h5  @/mnt  hepfs  user,noauto,cache_folder=none  0 0",
        r#"
        chown 65534:65534 mnt run.h5
        user mount mnt
        user cat mnt/t/columns/mass.txt
        user stat -c 'owner %u' mnt/t
        # Another user's, even to root.
        code=0; hepfs mount run.h5 mnt || code=$?
        test $code = 1
        user umount mnt
        test ! -e mnt/t
        chown 0:0 mnt
        code=0; user mount mnt || code=$?
        test $code = 32
        "#,
    );
    assert!(said.contains("1.0\n2.0\nowner 65534\n"), "{said}");
    assert!(said.contains("mounted here already") && said.contains("no write access to mountpoint"), "{said}");
}

/// An automounter of the test's own, for a folder `auto` of a bench.
struct Automounter {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    folder: PathBuf,
}

impl Automounter {
    /// Starts one that calls the program by a name.
    fn start(bench: &Bench, name: &str, arguments: &[&str]) -> Self {
        let folder = bench.at("auto");
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new("python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour/automount.py")).arg(&folder);
        command.arg(bench.at("bin").join(name)).args(arguments).current_dir(bench.folder.path()).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut automounter = Self { child, said, folder };
        assert_eq!(automounter.line(), "ready");
        automounter
    }

    fn line(&mut self) -> String {
        self.said.next().unwrap().unwrap()
    }

    /// Reads a file below the mount point by another program, which is killed where it waits too long.
    fn cat(&self, name: &str) -> String {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "20", "cat"]).arg(self.folder.join(name));
        String::from_utf8(run_within(LONG, &mut command).stdout).unwrap()
    }
}

impl Drop for Automounter {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if end_of(&mut self.child, LONG).is_none() {
            self.child.kill().ok();
        }
    }
}

#[test]
fn an_automounter_mounts_and_nothing_waits_for_itself() {
    if !is_root() {
        return;
    }
    let cases: [(&str, &[&str]); 2] = [
        ("mount.hepfs", &["run.h5", "auto", "-o", "rw,cache_folder=none,x-systemd.automount"]),
        ("hepfs", &["mount", "--cache-folder=none", "run.h5", "auto"]),
    ];
    for (name, arguments) in cases {
        let bench = Bench::new();
        let mut automounter = Automounter::start(&bench, name, arguments);
        assert_eq!(automounter.cat("t/columns/mass.txt"), "1.0\n2.0\n", "{name}");
        assert_eq!(automounter.line(), "mounted 0");
        let daemon = daemon_of(&bench.at("auto")).unwrap();
        // A mount that ended is made anew; one whose daemon was killed, too.
        for number in [libc::SIGTERM, libc::SIGKILL] {
            let daemon = daemon_of(&bench.at("auto")).unwrap();
            signal(daemon, number);
            until("the daemon's end", || !lives(daemon));
            if number == libc::SIGKILL {
                // As an automounter does after its idle time.
                assert!(hepfs(["umount".as_ref(), bench.at("auto").as_os_str()]).status.success());
            }
            assert_eq!(automounter.cat("t/columns/mass.txt"), "1.0\n2.0\n", "{name}");
            assert_eq!(automounter.line(), "mounted 0");
        }
        drop(automounter);
        until("the daemon's end", || !lives(daemon));
        assert!(!is_mounted(&bench.at("auto")));
    }
}

/// What cannot be mounted leaves nobody waiting.
#[test]
fn an_automounter_is_told_of_a_failure() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let mut automounter = Automounter::start(&bench, "mount.hepfs", &["none.h5", "auto"]);
    assert_eq!(automounter.cat("t/columns/mass.txt"), "");
    assert_eq!(automounter.line(), "mounted 32");
}
