//! Programs that never run for ever.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ffi::OsStr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A busy machine may take this long for what should take a moment; nothing waits longer.
pub const LONG: Duration = Duration::from_secs(60);

/// Runs a program with a time limit and gives back what it wrote.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Output {
    run_within(LONG, Command::new(program).args(arguments))
}

/// Runs a command, which ends when the time limit is over, and gives back what it wrote.
pub fn run_within(limit: Duration, command: &mut Command) -> Output {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(limit) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            Command::new("kill").args(["-9", &id.to_string()]).status().ok();
            panic!("{program} did not end");
        }
    }
}

/// Runs a command on a terminal with this number of columns, in UTF-8 with colours. Interrupts it when the time is
/// over. Returns the output.
pub fn on_terminal(columns: u16, time: Option<Duration>, command: &Command) -> String {
    const SCRIPT: &str = "
import fcntl, os, pty, select, signal, struct, sys, termios, time
columns, seconds, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    os.execvp(command[0], command)
end, ended = time.monotonic() + seconds, False
while True:
    is_ready = select.select([terminal], [], [], 0.05)[0]
    if not ended and time.monotonic() > end:
        os.killpg(process, signal.SIGINT)
        ended = True
    try:
        sys.stdout.buffer.write(os.read(terminal, 65536) if is_ready else b'')
    except OSError:
        break
os.waitpid(process, 0)
";
    let seconds = time.map_or(f64::INFINITY, |time| time.as_secs_f64()).to_string();
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT, &columns.to_string(), &seconds]);
    python.arg(command.get_program()).args(command.get_args());
    python.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    python.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => python.env(name, value),
            None => python.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        python.current_dir(folder);
    }
    let output = run_within(LONG, &mut python);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program that must succeed.
pub fn must<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Starts a program and discards its output.
pub fn start<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Child {
    // What a shell starts in the background is deaf to SIGINT, and so is all that it starts.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", program]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Waits for a program's end; `None` after the time limit.
pub fn end_of(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Sends a signal to a process.
pub fn signal(process: u32, number: i32) {
    let output = run("kill", [format!("-{number}"), process.to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until something holds.
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    within(LONG, what, holds);
}

/// Waits until something holds, up to a limit.
pub fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
