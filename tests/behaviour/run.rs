//! `hepfs run`: a mount that needs no right, for one command. HEPFS_TIMES repeats what ends by force.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::data;
use crate::support::{HEPFS, LONG, copy_program, end_of, family, marked, run_within, signal, within};

/// The folder of one test, with a file of two rows, `run.h5`, the program, and a mark in the environment of all that it
/// starts.
struct Bench {
    folder: tempfile::TempDir,
}

/// Becomes "nobody" with one further group, in a mount namespace where /dev/fuse is open to all and where nothing is
/// called fusermount3.
const NOBODY: &str = r#"
mkdir -p dev
mount -t tmpfs -o mode=755 toy dev
mknod -m 666 dev/fuse c 10 229
mount --bind dev/fuse /dev/fuse
for helper in /bin /usr/bin /sbin /usr/sbin; do
    test "$0" = helper || test ! -e $helper/fusermount3 || mount --bind /dev/null $helper/fusermount3
done
"#;

/// The end of that script, without new privileges.
const NO_PRIVILEGES: &str = "exec setpriv --reuid 65534 --regid 65534 --groups 4711 --no-new-privs \"$@\"";

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder };
        fs::copy(data("units.h5"), bench.at("run.h5")).unwrap();
        copy_program(&bench.program());
        if is_root() {
            for name in ["", "run.h5"] {
                std::os::unix::fs::chown(bench.at(name), Some(65534), Some(65534)).unwrap();
            }
        }
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> PathBuf {
        self.at("hepfs")
    }

    /// A program that this process's own user starts in the folder. Mount points are made there as well.
    fn as_we_are(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("env");
        // Who starts these tests in the background has them ignore Ctrl-C.
        command.arg("--default-signal=INT,QUIT,HUP").arg(program.as_ref()).current_dir(self.folder.path());
        command.env("MARK", self.folder.path()).env("TMPDIR", self.folder.path());
        command.env("HOME", self.folder.path()).env_remove("XDG_STATE_HOME").env_remove("XDG_CACHE_HOME");
        command
    }

    /// A program that an ordinary user starts there, who has no right and no fusermount3. Its process is the child.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        if !is_root() {
            return self.as_we_are(program);
        }
        let mut command = self.as_we_are("unshare");
        // Root's own folders are closed to others.
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.args(["--mount", "--propagation", "private", "sh", "-ec", &format!("{NOBODY}{NO_PRIVILEGES}"), "sh"]);
        command.arg(program.as_ref());
        command
    }

    /// `hepfs run run.h5 -- sh -c SCRIPT`, to its end.
    fn shell(&self, script: &str) -> Output {
        run_within(LONG, self.command(self.program()).args(["run", "run.h5", "--", "sh", "-c", script]))
    }

    /// `hepfs run OPTIONS run.h5 -- sh -c SCRIPT`, once the script has made the file `ready`.
    fn start(&self, options: &[&str], script: &str) -> Child {
        let _ = fs::remove_file(self.at("ready"));
        let mut command = self.command(self.program());
        command.arg("run").args(options).args(["run.h5", "--", "sh", "-c", script]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        within(LONG, "the command runs", || self.at("ready").exists());
        child
    }

    /// The living processes that carry the mark.
    fn left(&self) -> Vec<u32> {
        marked(&format!("MARK={}", self.folder.path().display()))
    }

    /// Nothing is left: no process, no mount, and one empty folder.
    fn is_clean(&self) {
        within(Duration::from_secs(20), "all processes end", || self.left().is_empty());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.folder.path().to_str().unwrap()), "{mounts}");
        for user in [user(), "0".to_owned()] {
            let listed = fs::read_dir(self.at(&format!("hepfs-run-{user}")));
            assert_eq!(listed.map_or(0, Iterator::count), 0);
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.left().into_iter().map(|process| process.to_string());
        Command::new("kill").arg("-9").args(left).stderr(Stdio::null()).status().ok();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number of the ordinary user.
fn user() -> String {
    if is_root() { "65534".to_owned() } else { rustix::process::geteuid().to_string() }
}

/// How often what ends by force is repeated.
fn times() -> usize {
    std::env::var("HEPFS_TIMES").map_or(2, |times| times.parse().unwrap())
}

#[test]
fn a_command_sees_the_mount_and_nobody_else_does() {
    let bench = Bench::new();
    let output = bench.shell("cat {mount}/t/columns/mass.txt; test {mount} = $HEPFS_MOUNT; echo {} $?; pwd; id -u");
    let (folder, user) = (bench.folder.path().display(), user());
    assert_eq!(text(&output.stdout), format!("1.0\n2.0\n{{}} 0\n{folder}\n{user}\n"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    bench.is_clean();
}

#[test]
fn exit_codes_are_those_of_the_command() {
    let bench = Bench::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 125", 125), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        assert_eq!(bench.shell(script).status.code(), Some(code), "{script}");
    }
    let run = |arguments: &[&str]| run_within(LONG, bench.command(bench.program()).arg("run").args(arguments));
    let none = run(&["run.h5", "--", "no-such-command"]);
    assert_eq!((none.status.code(), text(&none.stderr).contains("no-such-command: No such file")), (Some(127), true));
    let refused = run(&["run.h5", "--", "./run.h5"]);
    assert_eq!((refused.status.code(), text(&refused.stderr).contains("Permission denied")), (Some(126), true));
    let missing = run(&["none.h5", "--", "true"]);
    assert_eq!((missing.status.code(), text(&missing.stderr).contains("none.h5: No such file")), (Some(125), true));
    let forgotten = run(&["run.h5", "ls"]);
    assert!(text(&forgotten.stderr).contains("write `--` before it"), "{}", text(&forgotten.stderr));
    bench.is_clean();
}

/// Standard input, further descriptors, ignored signals, limits, arguments of any bytes.
#[test]
fn a_command_gets_all_that_env_would_give_it() {
    let bench = Bench::new();
    // Signals 32 and 33 are the C library's own: its posix_spawn(3) has a child ignore them.
    let script = r#"
        exec 7<run.h5; trap '' HUP; ulimit -Sn 77
        printf 'in\n' | "$@" sh -c 'read line; echo "$line"; ulimit -Sn; head -c 4 <&7 | od -An -c
            grep SigIgn /proc/self/status | sed "s/.*\(.......\)$/\1/"; grep CapEff /proc/self/status; printf %s "$1" | od -An -c' \
            sh "$(printf 'a\377 b')"
    "#;
    let under = |program: &[&str]| {
        let mut command = bench.command("sh");
        command.args(["-c", script, "sh"]).args(program);
        let output = run_within(LONG, &mut command);
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let expected = under(&["env"]);
    assert!(expected.0.starts_with("in\n77\n"), "{expected:?}");
    assert_eq!(under(&["./hepfs", "run", "run.h5", "--"]), expected);
}

#[test]
fn a_child_in_the_background_still_reads() {
    let bench = Bench::new();
    let output = bench.shell("(sleep 1; cat {mount}/t/columns/mass.txt >read) & setsid sleep 2 & exit 3");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(fs::read_to_string(bench.at("read")).unwrap(), "1.0\n2.0\n");
    bench.is_clean();
    let mut child = bench.start(&["--kill-after", "0.2s"], "setsid sleep 1000 & touch ready; exit 4");
    assert_eq!(end_of(&mut child, LONG).unwrap().code(), Some(4));
    bench.is_clean();
}

#[test]
fn nothing_is_left_whoever_is_killed() {
    let bench = Bench::new();
    for _ in 0..times() {
        for victim in ["front", "keeper", "server", "command"] {
            let script = "setsid sh -c 'sleep 1000; :' & cat {mount}/t/columns/mass.txt; touch ready; sleep 1000; :";
            let mut front = bench.start(&["--decode", "libhdf5", "--kill-after", "0"], script);
            let line = |id: u32| text(&fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default()).replace('\0', " ");
            let all = family(front.id());
            let find = |word: &str| *all.iter().find(|id| line(**id).contains(word)).unwrap();
            let process = match victim {
                "front" => front.id(),
                "keeper" => find(" run --keep "),
                "server" => find(" mount --background "),
                _ => *all.iter().find(|id| line(**id).starts_with("sh -c setsid")).unwrap(),
            };
            signal(process, 9);
            let code = end_of(&mut front, LONG).unwrap().code();
            let expected = [("front", None), ("keeper", Some(137)), ("server", Some(125)), ("command", Some(137))];
            assert!(expected.contains(&(victim, code)), "{victim}: {code:?}");
            bench.is_clean();
        }
    }
}

/// A mount of the user's, on which `--at` is refused, stays.
#[test]
fn a_mount_that_is_there_stays() {
    let bench = Bench::new();
    fs::create_dir(bench.at("mnt")).unwrap();
    let script =
        "\"$0\" mount run.h5 mnt; \"$0\" run --at mnt run.h5 -- true; cat mnt/t/columns/mass.txt; \"$0\" umount mnt";
    let output = run_within(LONG, bench.as_we_are("sh").args(["-c", script, HEPFS]));
    assert_eq!(text(&output.stdout), "1.0\n2.0\n", "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("mounted here already"), "{}", text(&output.stderr));
    bench.is_clean();
}

/// As a scheduler ends a job: SIGKILL to a whole process group.
#[test]
fn nothing_is_left_after_a_time_limit() {
    let bench = Bench::new();
    for _ in 0..times() {
        let mut command = bench.command("timeout");
        command.args([
            "-s",
            "KILL",
            "1",
            "./hepfs",
            "run",
            "run.h5",
            "--",
            "sh",
            "-c",
            "setsid sleep 1000 & sleep 1000; :",
        ]);
        assert!(!run_within(LONG, &mut command).status.success());
        bench.is_clean();
    }
}

#[test]
fn signals_reach_the_command() {
    let bench = Bench::new();
    // A shell goes on with a script unless Ctrl-C ended what it started: so it ends this as well.
    let mut child = bench.start(&[], "touch ready; exec sleep 1000");
    signal(child.id(), libc::SIGINT);
    assert_eq!(end_of(&mut child, LONG).unwrap().signal(), Some(libc::SIGINT));
    bench.is_clean();
    let signals = [(libc::SIGTERM, 143), (libc::SIGUSR1, 9), (libc::SIGHUP, 129)];
    for (number, code) in signals.repeat(times()) {
        let mut child = bench.start(&[], "trap 'exit 9' USR1; touch ready; while :; do sleep 0.05; done");
        signal(child.id(), number);
        assert_eq!(end_of(&mut child, LONG).unwrap().code(), Some(code), "{number}");
        bench.is_clean();
    }
}

/// Runs a command in a terminal, presses Ctrl-C, or stops and resumes it.
const TERMINAL: &str = r#"
import os, pty, signal, sys, time
keys, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
while not os.path.exists('ready'):
    time.sleep(0.02)
if keys == 'stop':
    os.write(terminal, b'\x1a')
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    os.killpg(child, signal.SIGCONT)
    time.sleep(0.2)
if keys == 'hangup':
    os.close(terminal)
else:
    os.write(terminal, b'\x03')
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn a_terminal_is_that_of_the_command() {
    let bench = Bench::new();
    // A command that answers Ctrl-C itself gets it once; what it leaves behind ends with the second.
    let once = "trap 'n=$((n+1))' INT; tty -s; touch ready; sleep 2; sleep 1; exit $((40+n))";
    let left = "setsid sleep 1000 & (sleep 0.5; touch ready) & exit 6";
    let sleeps = "touch ready; exec sleep 1000";
    let cases =
        [("", sleeps, "-2"), ("stop", sleeps, "-2"), ("hangup", sleeps, "129"), ("", once, "41"), ("", left, "6")];
    for (keys, script, code) in cases.repeat(times()) {
        let _ = fs::remove_file(bench.at("ready"));
        let mut command = bench.command("python3");
        command.args(["-c", TERMINAL, keys, "./hepfs", "run", "run.h5", "--", "sh", "-c", script]);
        let output = run_within(LONG, &mut command);
        assert_eq!(text(&output.stdout).trim(), code, "{keys} {script}: {}", text(&output.stderr));
        bench.is_clean();
    }
}

#[test]
fn ctrl_c_ends_a_script_of_runs() {
    let bench = Bench::new();
    let script = "for run in 1 2 3; do ./hepfs run run.h5 -- sh -c 'touch ready; exec sleep 1000'; done";
    let mut command = bench.command("python3");
    let output = run_within(LONG, command.args(["-c", TERMINAL, "", "bash", "-c", script]));
    assert_eq!(text(&output.stdout).trim(), "-2", "{}", text(&output.stderr));
    bench.is_clean();
}

/// A command that stops and goes on, a caller that blocks SIGCHLD, a PID namespace with and without its own /proc.
#[test]
fn odd_surroundings_are_no_obstacle() {
    let bench = Bench::new();
    let stops = "(sleep 0.5; kill -CONT $$) & kill -STOP $$; exit 8";
    assert_eq!(bench.shell(stops).status.code(), Some(8));
    let blocks = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]); \
                  os.execvp(sys.argv[1], sys.argv[1:])";
    let run = ["./hepfs", "run", "run.h5", "--", "sh", "-c", "exit 7"];
    let output = run_within(LONG, bench.command("python3").args(["-c", blocks]).args(run));
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let namespace = ["--user", "--map-root-user", "--pid", "--fork"];
    let output = run_within(LONG, bench.command("unshare").args(namespace).arg("--mount-proc").args(run));
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let output = run_within(LONG, bench.command("unshare").args(namespace).args(run));
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("another PID namespace"), "{}", text(&output.stderr));
    bench.is_clean();
}

#[test]
fn sixty_four_at_once() {
    let bench = Bench::new();
    let script = "cat {mount}/t/columns/mass.txt; echo {mount}";
    let start = |_| {
        let mut command = bench.command(bench.program());
        command.args(["run", "run.h5", "--", "sh", "-c", script]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..64).map(start).collect();
    let expected = format!("1.0\n2.0\n{}\n", bench.at(&format!("hepfs-run-{}/mnt", user())).display());
    for child in children {
        assert_eq!(text(&child.wait_with_output().unwrap().stdout), expected);
    }
    bench.is_clean();
}

/// An ordinary user, without new privileges: `$0` is the program, the folder of the user's own the current one.
const USER: &str = r#"
set -eu
test "$(id -u)" != 0
"$0" run --check
"$0" run run.h5 -- sh -c 'id -u; stat -c %u {mount}/t/table.csv own; cat {mount}/t/columns/mass.txt; grep CapBnd /proc/self/status'
"$0" run --decode libhdf5 run.h5 -- cat {mount}/t/columns/mass.txt
# Through a supplementary group alone.
if test "$1" = groups; then
    "$0" run secret.h5 -- cat {mount}/t/columns/mass.txt
fi
# Nested: both mounts are there.
"$0" run run.h5 -- "$0" run run.h5 -- sh -c 'ls -d "$TMPDIR/hepfs-run-$(id -u)"/mnt* | wc -l
    cat "$TMPDIR/hepfs-run-$(id -u)"/mnt/t/columns/mass.txt {mount}/t/columns/mass.txt'
# On a directory of the user's choice; nothing of it is seen outside.
mkdir here
"$0" run --at here run.h5 -- cat here/t/columns/mass.txt
test -z "$(ls here)"
# Over the folders that the server itself uses, over the program's, over the current one.
HOME=$PWD/here "$0" run --at here run.h5 -- cat here/t/columns/mass.txt
mkdir bin
cp hepfs bin
bin/hepfs run --at bin run.h5 -- cat bin/t/columns/mass.txt
(cd bin; "$0" run --at . ../run.h5 -- cat "$PWD"/t/columns/mass.txt)
# The tour has a mount as well.
"$0" demo --rows 2000 tour >tour.txt 2>&1
grep -q 'chunks_decoded' tour.txt
echo done
"#;

#[test]
fn an_ordinary_user_needs_no_helper_and_no_right() {
    let bench = Bench::new();
    let (own, secret) = (bench.at("own"), bench.at("secret.h5"));
    fs::write(&own, "").unwrap();
    fs::copy(data("units.h5"), &secret).unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o640)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(own, Some(65534), Some(65534)).unwrap();
        std::os::unix::fs::chown(secret, Some(0), Some(4711)).unwrap();
    }
    let mut command = bench.command("sh");
    command.args(["-c", USER]).arg(bench.program()).arg(if is_root() { "groups" } else { "none" });
    let output = run_within(LONG, &mut command);
    let (said, errors, user) = (text(&output.stdout), text(&output.stderr), user());
    let mass = "1.0\n2.0\n";
    let (_, rest) = said.split_once("without any right.\n").unwrap_or_else(|| panic!("{said}\n{errors}"));
    let secret = if is_root() { mass } else { "" };
    let expected = format!(
        "{user}\n{user}\n{user}\n{mass}CapBnd:\t0000000000000000\n{mass}{secret}2\n{mass}{mass}{mass}{mass}{mass}{mass}done\n"
    );
    assert_eq!(rest, expected, "{errors}");
    bench.is_clean();
}

#[test]
fn root_keeps_its_rights() {
    let bench = Bench::new();
    let script = "grep Cap /proc/self/status; cat /proc/self/uid_map";
    let under = |program: &[&str]| {
        let output = run_within(LONG, bench.as_we_are("env").args(program).args(["sh", "-c", script]));
        (text(&output.stdout), text(&output.stderr))
    };
    if is_root() {
        assert_eq!(under(&["./hepfs", "run", "run.h5", "--"]), under(&["env"]));
    }
    bench.is_clean();
}

/// Runs a command in which unshare(2) fails, as a container's filter of system calls makes it fail (seccomp(2)).
const FILTERED: &str = r#"
import ctypes, os, struct, sys
UNSHARE = {'x86_64': 272, 'aarch64': 97}[os.uname().machine]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
program = b''.join(struct.pack('HBBI', *step) for step in [
    (LOAD, 0, 0, 0), (EQUAL, 0, 1, UNSHARE), (RETURN, 0, 0, 0x00050001), (RETURN, 0, 0, 0x7fff0000)])
code = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid():
    libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(code)))) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn without_namespaces_the_lock_is_named_and_fusermount3_mounts() {
    let bench = Bench::new();
    // Root becomes nobody below the filter, so that the helper's setuid bit counts.
    let filtered = |arguments: &[&str]| {
        let mut command = if is_root() {
            let mut command = bench.as_we_are("unshare");
            let script = format!("{NOBODY}exec \"$@\"");
            command.args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-ec",
                &script,
                "helper",
                "python3",
                "-c",
                FILTERED,
            ]);
            command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command
        } else {
            let mut command = bench.as_we_are("python3");
            command.args(["-c", FILTERED]);
            command
        };
        command.arg("./hepfs").args(arguments);
        command
    };
    let mut command = filtered(&["-v", "run", "run.h5", "--", "cat", "{mount}/t/columns/mass.txt"]);
    let output = run_within(LONG, &mut command);
    let said = text(&output.stderr);
    assert_eq!(said.matches("(seccomp)").count(), 1, "{said}");
    if !is_root() {
        // Without new privileges, the helper has none.
        return assert_eq!(output.status.code(), Some(125), "{said}");
    }
    assert_eq!(text(&output.stdout), "1.0\n2.0\n", "{said}");
    bench.is_clean();
    for victim in [" run --keep ", " mount --background ", " run "] {
        let _ = fs::remove_file(bench.at("ready"));
        let mut command =
            filtered(&["run", "--kill-after=0", "run.h5", "--", "sh", "-c", "touch ready; sleep 1000; :"]);
        let mut front = command.stderr(Stdio::null()).spawn().unwrap();
        within(LONG, "the command runs", || bench.at("ready").exists());
        let line = |id: &u32| text(&fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default()).replace('\0', " ");
        let all = family(front.id());
        signal(*all.iter().find(|id| line(id).contains(victim)).unwrap(), 9);
        assert!(end_of(&mut front, LONG).is_some());
        bench.is_clean();
    }
}

/// A setting of a user namespace that this test makes, so that no other test feels it.
#[test]
fn a_setting_that_forbids_namespaces_is_named() {
    let bench = Bench::new();
    let script = "echo 0 >/proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let run = |arguments: &[&str]| {
        let mut command = bench.command("unshare");
        command.args(["--user", "--map-root-user", "sh", "-ec", script, "sh", "./hepfs", "run"]);
        run_within(LONG, command.args(arguments))
    };
    let output = run(&["run.h5", "--", "true"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("user.max_user_namespaces is 0; as root, `sysctl user.max_user_namespaces=15000`"), "{said}");
    let output = run(&["--check"]);
    let said = text(&output.stdout);
    assert!(said.contains("no   user.max_user_namespaces allows namespaces: 0\n"), "{said}");
    assert!(said.contains("no   a mount in a namespace\n"), "{said}");
    bench.is_clean();
}

/// Mounts a descriptor of /dev/fuse, gives it to `hepfs mount`, reads, unmounts.
const DESCRIPTOR: &str = r#"
import ctypes, os, subprocess, sys
program, folder = sys.argv[1:]
device = os.open('/dev/fuse', os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f'fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}'.encode()
assert libc.mount(b'ours', folder.encode(), b'fuse', 1 | 2 | 4, options) == 0, os.strerror(ctypes.get_errno())
at = f'/dev/fd/{device}'
front = subprocess.Popen([program, 'mount', '-f', 'run.h5', at], pass_fds=[device])
os.close(device)
print(open(folder + '/t/columns/mass.txt').read())
assert libc.umount2(folder.encode(), 0) == 0, os.strerror(ctypes.get_errno())
print(front.wait(timeout=20))
"#;

#[test]
fn a_descriptor_that_somebody_else_mounted_is_served() {
    let bench = Bench::new();
    fs::create_dir(bench.at("mnt")).unwrap();
    let mut command = bench.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "python3", "-c", DESCRIPTOR, "./hepfs"]).arg(bench.at("mnt"));
    let output = run_within(LONG, &mut command);
    assert_eq!(text(&output.stdout), "1.0\n2.0\n\n0\n", "{}", text(&output.stderr));
    let refused = |path: &str| {
        let output = run_within(LONG, bench.command(bench.program()).args(["mount", "run.h5", path]));
        text(&output.stderr)
    };
    assert!(refused("/dev/fd/1").contains("not a descriptor of /dev/fuse"));
    assert!(refused("/dev/fd/77").contains("/dev/fd/77: No such file"));
    bench.is_clean();
}

/// `mount` asks for fusermount3 only where mount(2) is refused.
#[test]
fn mount_in_a_namespace_needs_no_helper() {
    let bench = Bench::new();
    fs::create_dir(bench.at("mnt")).unwrap();
    let script = "\"$0\" mount run.h5 mnt && cat mnt/t/columns/mass.txt && \"$0\" umount mnt";
    let mut command = bench.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "./hepfs"]);
    let output = run_within(LONG, &mut command);
    assert_eq!(text(&output.stdout), "1.0\n2.0\n", "{}", text(&output.stderr));
    bench.is_clean();
}

/// The page for users of clusters: a command that says `# not tested` is not.
#[test]
fn the_commands_of_the_page_on_clusters_work() {
    let bench = Bench::new();
    let made = run_within(LONG, bench.command(bench.program()).args(["demo", "--rows", "2000", "sample"]));
    assert!(made.status.success(), "{}", text(&made.stderr));
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/clusters.md");
    let page = fs::read_to_string(page).unwrap();
    let page = page.replace("\\\n", " ");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.contains("# not tested")).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines {
        let mut command = bench.command("sh");
        command.args(["-ec", &format!("cd sample; hepfs() {{ \"$0\" \"$@\"; }}; {line}")]);
        command.arg(bench.program());
        let output = run_within(LONG, &mut command);
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}: {}", text(&output.stderr));
    }
    bench.is_clean();
}
