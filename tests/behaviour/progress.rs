//! Long work shows itself: a line on a terminal, lines in a log, JSON.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{HEPFS, LONG, end_of, family, lives, must, on_terminal, signal};
use crate::writer::Writer;

/// Within this time a log has its first line; a busy machine takes a little longer.
const FIRST_LINE: Duration = Duration::from_secs(12);

/// A table whose text takes minutes to measure, in a file of a few kilobytes.
fn endless(path: &Path) {
    let writer = Writer::create(path);
    let table = writer.table("t");
    for name in ["a", "b", "c", "d"] {
        table.never_written(name, 400_000_000_000, 1 << 16);
    }
    drop(table);
    writer.close();
}

/// A command whose processes all end with the test.
struct Running {
    command: Child,
    log: std::path::PathBuf,
}

impl Running {
    fn start(log: &Path, arguments: &[&str]) -> Self {
        Self::of(Command::new(HEPFS).args(arguments), log)
    }

    fn of(command: &mut Command, log: &Path) -> Self {
        let command = command
            .current_dir(log.parent().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(log).unwrap())
            .spawn();
        Self { command: command.unwrap(), log: log.to_owned() }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Whether the log has the line that is due after 10 s.
    fn has_first_line(&self) -> bool {
        self.log().lines().any(|line| line.starts_with("hepfs: ") && line.contains(" 0:1") && line.contains(" passed"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let all = family(self.command.id());
        all.iter().filter(|id| lives(**id)).for_each(|id| signal(*id, libc::SIGKILL));
        let _ = self.command.wait();
    }
}

#[test]
fn long_commands_write_a_line_to_a_log_within_10_s() {
    let folder = tempfile::tempdir().unwrap();
    endless(&folder.path().join("run.h5"));
    endless(&folder.path().join("indexed.h5"));
    let commands: [&[&str]; 8] = [
        &["cat", "run.h5:t/table.csv"],
        &["query", "run.h5:t", "a = 0"],
        &["export", "run.h5:t", "-o", "/dev/null", "--format=csv"],
        &["prepare", "run.h5", "--cache-folder=kept"],
        &["convert", "run.h5", "converted.h5"],
        &["index", "build", "--column=a", "--kind=minmax", "indexed.h5:t"],
        // It waits for its standard input.
        &["import", "-", "--format=csv", "new.h5"],
        &["demo", "--rows=1000000000", "demo"],
    ];
    let start = |(at, command): (usize, &&[&str])| Running::start(&folder.path().join(format!("{at}.log")), command);
    let started: Vec<Running> = commands.iter().enumerate().map(start).collect();
    std::thread::sleep(FIRST_LINE);
    for (running, command) in started.iter().zip(commands) {
        assert!(running.has_first_line(), "{command:?}: {:?}", running.log());
    }
}

#[test]
fn commands_that_wait_for_a_slow_disk_write_a_line_to_a_log_within_10_s() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("run.h5"), folder.path().join("slow_reads.so"));
    endless(&source);
    std::fs::create_dir(folder.path().join("mnt")).unwrap();
    let code = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour/slow_reads.c");
    must("cc", ["-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), library.as_os_str(), code.as_ref()]);
    let commands: [&[&str]; 6] = [
        &["check", "run.h5"],
        &["index", "verify", "run.h5:t"],
        &["ls", "run.h5"],
        &["info", "run.h5"],
        &["mount", "run.h5", "mnt"],
        &["run", "run.h5", "--", "true"],
    ];
    let start = |(at, arguments): (usize, &&[&str])| {
        let mut command = Command::new(HEPFS);
        command.args(*arguments).env("LD_PRELOAD", &library).env("SLOW_FILE", &source);
        Running::of(&mut command, &folder.path().join(format!("{at}.log")))
    };
    let started: Vec<Running> = commands.iter().enumerate().map(start).collect();
    std::thread::sleep(FIRST_LINE);
    for (running, command) in started.iter().zip(commands) {
        assert!(running.has_first_line(), "{command:?}: {:?}", running.log());
    }
}

/// The lines of progress that a terminal has shown, without colours.
fn drawn(said: &str) -> Vec<String> {
    let lines = said.split("\r\x1b[?7l").skip(1).map(|rest| rest.split("\x1b[K").next().unwrap());
    lines.map(|line| line.replace("\x1b[2m", "").replace("\x1b[22m", "")).collect()
}

#[test]
fn a_terminal_shows_one_line_whatever_its_width() {
    let folder = tempfile::tempdir().unwrap();
    endless(&folder.path().join("run.h5"));
    for columns in [60, 80, 200] {
        let mut command = Command::new(HEPFS);
        command.args(["prepare", "--csv", "run.h5:t", "--cache-folder=kept"]).current_dir(folder.path());
        let said = on_terminal(columns, Some(Duration::from_millis(2_500)), &command);
        // The line of a file that is done stands above it.
        let (_, said) = said.split_once("kept\r\n").unwrap_or_else(|| panic!("{said:?}"));
        let lines = drawn(said);
        let last = lines.last().unwrap_or_else(|| panic!("nothing is drawn: {said:?}"));
        assert!(lines.iter().all(|line| line.chars().count() < usize::from(columns)), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains('\n')), "{said:?}");
        for part in [".csv", "━", " 0 %", "0:0", " left"] {
            assert!(last.contains(part), "no {part:?} in {last:?}");
        }
        // It is gone before anything else is written.
        assert!(said.contains("\x1b[?7h\r\x1b[K"), "{said:?}");
    }
}

#[test]
fn the_line_of_a_terminal_ends_where_output_begins() {
    let folder = tempfile::tempdir().unwrap();
    endless(&folder.path().join("run.h5"));
    let shell = |line: &str, limit: Duration| {
        on_terminal(80, Some(limit), Command::new("sh").args(["-c", line, HEPFS]).current_dir(folder.path()))
    };
    // The reader of the pipe writes to the same terminal.
    for line in ["\"$0\" cat run.h5:t/table.csv", "\"$0\" cat run.h5:t/table.csv | cat"] {
        // A busy machine takes longer until it writes.
        let mut tries = [1_500, 6_000, 24_000].into_iter().map(|limit| shell(line, Duration::from_millis(limit)));
        let said = tries.find(|said| said.contains("a,b,c,d\r\n")).unwrap_or_else(|| panic!("{line}: no rows"));
        let (_, rows) = said.split_once("a,b,c,d\r\n").unwrap();
        let rows = rows.split("hepfs:").next().unwrap();
        assert!(rows.len() > 1000 && drawn(rows).is_empty(), "{line}: {} bytes, {:?}", rows.len(), drawn(rows));
    }
    let line = "\"$0\" cat run.h5:t/table.csv > written";
    let mut tries = [3, 12, 48].into_iter().map(|seconds| shell(line, Duration::from_secs(seconds)));
    assert!(tries.any(|said| drawn(&said).iter().any(|line| line.contains("MB"))), "no amount is drawn");
}

#[test]
fn progress_can_be_json_nothing_or_drawn_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    endless(&source);
    let place = format!("{}:t", source.display());
    let said = |how: &str| {
        let log = folder.path().join("log");
        let progress = format!("--progress={how}");
        let kept = format!("--cache-folder={}", folder.path().join("kept").display());
        let mut running = Running::start(&log, &["prepare", "--csv", &place, &progress, &kept]);
        std::thread::sleep(Duration::from_millis(2_500));
        signal(running.command.id(), libc::SIGINT);
        assert!(end_of(&mut running.command, LONG).is_some());
        running.log()
    };
    let json = said("json");
    let lines: Vec<Value> = json.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(lines.len() >= 3, "{json}");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["command"], &last["doing"], &last["unit"]),
        (&"prepare".into(), &"preparing".into(), &"steps".into())
    );
    assert!(last["done"].as_u64() < last["all"].as_u64() && last["seconds"].as_f64() > Some(1.0), "{last}");
    let never = said("never");
    assert!(never.lines().all(|line| line.contains("interrupted")), "{never:?}");
    let always = said("always");
    assert!(drawn(&always).last().is_some_and(|last| last.contains(".csv ") && last.contains('━')), "{always:?}");
}
