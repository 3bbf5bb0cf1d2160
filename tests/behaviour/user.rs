//! The program in the hands of an ordinary user, who mounts through `fusermount3`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::data;
use crate::support::copy_program;

/// What the user does, as a shell script: `$0` is the program, `$1` a folder of the user's own.
const SCRIPT: &str = r#"
set -eu
cd "$1"
test "$(id -u)" != 0
mkdir mnt
"$0" mount --log-file log run.h5 mnt
test "$(cat mnt/t/columns/mass.txt)" = "$(printf '1.0\n2.0')"
test "$(stat -c %u mnt/t/table.csv)" = "$(id -u)"
test "$(stat -c %a mnt/t/table.csv)" = 440
grep -q ' fuse.hepfs ' /proc/self/mountinfo
if "$0" mount run.h5 mnt 2>said; then exit 1; fi
grep -q 'mounted here already' said
"$0" umount mnt
test -z "$(ls mnt)"

# A file that may not be read.
if "$0" mount secret.h5 mnt 2>said; then exit 1; fi
grep -q 'secret.h5: Permission denied' said
test "$(wc -l <said)" = 1

# A file that may not be read among others.
mkdir many
cp run.h5 many
ln -s ../secret.h5 many/secret.h5
"$0" mount --log-file log many mnt
test "$(ls mnt)" = run.h5
"$0" umount mnt

# Killed, recognised, cleared.
"$0" mount --log-file log run.h5 mnt
daemon=$(for process in /proc/[0-9]*; do
    tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q "mount --background.*$1/mnt" && basename "$process" || true
done)
kill -9 $daemon
while test -d "/proc/$daemon" && ! grep -q 'State:.Z' "/proc/$daemon/status"; do sleep 0.05; done
"$0" mount --log-file log run.h5 mnt 2>said
grep -q 'unmounted a hepfs that was killed' said
test "$(cat mnt/t/columns/mass.txt | wc -l)" = 2
"$0" umount mnt

# Ended by a signal.
"$0" mount --foreground run.h5 mnt 2>said &
while ! grep -q 'mounted on' said; do sleep 0.05; done
test "$(cat mnt/t/columns/mass.txt | wc -l)" = 2
kill -INT $!
wait $!
test -z "$(ls mnt)"

# Not the user's to end.
if "$0" umount /proc 2>said; then exit 1; fi
grep -q 'not hepfs' said
echo user done
"#;

#[test]
fn an_ordinary_user_mounts_reads_and_unmounts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::set_permissions(at, PermissionsExt::from_mode(0o777)).unwrap();
    let program = at.join("hepfs");
    copy_program(&program);
    let copy = |name: &str, mode: u32| {
        let path = at.join(name);
        fs::copy(data("units.h5"), &path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    let is_root = rustix::process::geteuid().is_root();
    let (run, secret) = (copy("run.h5", 0o640), copy("secret.h5", 0o600));
    if is_root {
        std::os::unix::fs::chown(&run, Some(65534), Some(65534)).unwrap();
    } else {
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o0)).unwrap();
    }
    let output = as_a_user(is_root, &program, at);
    let said = String::from_utf8_lossy(&output.stdout);
    let log = fs::read_to_string(at.join("log")).unwrap_or_default();
    let last = fs::read_to_string(at.join("said")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with("user done\n"), "{said}\n{errors}\nlog: {log}\nlast said: {last}");
}

/// Runs the script; root becomes "nobody" first, in a mount namespace where /dev/fuse is open to all, as it is on an
/// ordinary system.
fn as_a_user(is_root: bool, program: &Path, folder: &Path) -> std::process::Output {
    let mut command;
    if is_root {
        let script = "set -e; mkdir \"$2/dev\"; mount -t tmpfs -o mode=755 toy \"$2/dev\"; \
                      mknod -m 666 \"$2/dev/fuse\" c 10 229; mount --bind \"$2/dev/fuse\" /dev/fuse; \
                      exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -xc \"$0\" \"$1\" \"$2\"";
        command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(SCRIPT);
    } else {
        command = Command::new("sh");
        command.args(["-xc", SCRIPT]);
    }
    command.arg(program).arg(folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    command.output().unwrap()
}
