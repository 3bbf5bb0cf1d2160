//! `hepfs demo`.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;

use crate::cli::progress::Watched;
use crate::cli::{Error, itself};
use crate::producer::sample;

/// The folder of several files with one table.
const DAYS: &str = "days";

/// The files in that folder.
const OF_DAYS: [&str; 2] = ["monday.h5", "tuesday.h5"];
/// Most rows in each of these files.
const ROWS_OF_DAYS: u64 = 200_000;

/// The steps of the tour: a reason and a command.
const TOUR: [(&str, &str); 13] = [
    ("A file of tables is a directory of directories", "ls mnt mnt/run_042"),
    ("A column is a file, in every format that its type has", "ls mnt/run_042/columns | head -12"),
    ("The first rows, at once on any size", "head -4 mnt/run_042/head.csv"),
    (
        "awk reads a column as if it had always been text",
        "awk '{ if ($1 > max) max = $1 } END { print max, \"MeV\" }' mnt/run_042/columns/energy.txt",
    ),
    ("sort and uniq count the labels", "sort mnt/run_042/columns/label.txt | uniq -c"),
    ("Bytes as stored: 8 a row", "tail -c 16 mnt/run_042/columns/event_id.raw | od -A d -t u8"),
    ("Units and descriptions come with the column", "grep -A 3 '\"units\": \"MeV\"' mnt/run_042/metadata.json"),
    (
        "SQL, by any engine that reads Parquet",
        "python3 -c \"import duckdb; print(duckdb.sql(\\\"select label, count(*) as n, max(energy) as most \
         from 'mnt/run_042/table.parquet' group by all order by n desc\\\"))\"",
    ),
    ("Only some rows, by the name of a directory", "head -3 mnt/run_042/where/energy:gt:37.8/table.csv"),
    ("What can be asked there, ready to paste", "grep '^where/' mnt/run_042/where/values.txt | head -4"),
    (
        "The same without a mount, as SQL says it",
        "hepfs query sample.h5:run_042 \"label like '%on' order by energy desc limit 3\" \
         --columns event_id,energy,label",
    ),
    (
        "Many files are one table: .datasets of a mount of them all",
        "hepfs query days:.datasets/run_042 'energy > 37.8' --columns file,event_id,energy",
    ),
    ("What was decoded for all this", "grep -E 'chunks_decoded|bytes_read' mnt/.hepfs/stats"),
];

/// The tour for systems that cannot mount.
const TOUR_WITHOUT_MOUNT: [(&str, &str); 10] = [
    ("The tables and arrays of a file", "hepfs info sample.h5 | head -20"),
    ("What a mount would show", "hepfs ls sample.h5:run_042"),
    ("The first rows, at once on any size", "hepfs cat sample.h5:run_042/head.csv | head -4"),
    (
        "A column is a file, in every format that its type has",
        "hepfs cat sample.h5:run_042/columns/energy.txt | \
         awk '{ if ($1 > max) max = $1 } END { print max, \"MeV\" }'",
    ),
    ("sort and uniq count the labels", "hepfs cat sample.h5:run_042/columns/label.txt | sort | uniq -c"),
    ("Bytes as stored: 8 a row", "hepfs cat sample.h5:run_042/columns/event_id.raw --length 16 | od -A d -t u8"),
    (
        "Rows that satisfy an expression",
        "hepfs query sample.h5:run_042 'hit order by energy desc limit 3' --columns event_id,energy,label",
    ),
    ("Rows by the name of a directory", "hepfs cat sample.h5:run_042/where/energy:gt:37.8/table.csv | head -3"),
    ("Many files are one table", "hepfs query days:.datasets/run_042 'energy > 37.8' --columns file,event_id,energy"),
    ("A table as Parquet, which any program reads", "hepfs export sample.h5:run_042 --format parquet -o - | wc -c"),
];

/// Write a sample file, mount it and show what is there
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// A new or empty folder for sample.h5 and its mount, mnt [default: a temporary folder, removed at the end]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Rows of the sample's main table
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,

    /// Started by ourselves: show the sample that is mounted in the folder.
    #[arg(long, hide = true)]
    tour: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if let (true, Some(folder)) = (arguments.tour, &arguments.folder) {
        return tour(&TOUR, folder).map(|()| ExitCode::SUCCESS);
    }
    let folder = Folder::new(arguments.folder.as_deref())?;
    let written = folder.path.join("sample.h5");
    let mountpoint = folder.path.join("mnt");
    std::fs::create_dir(&mountpoint).map_err(Error::io(mountpoint.display().to_string()))?;
    let days = folder.path.join(DAYS);
    std::fs::create_dir(&days).map_err(Error::io(days.display().to_string()))?;
    say(&format!("Writing {}: {}", written.display(), sample::describe(arguments.rows)))?;
    let write = |path: &Path, rows| {
        sample::write(path, rows).map_err(|error| Error::Sample { path: path.to_owned(), reason: error.to_string() })
    };
    let writing = Watched::without_signals("sample.h5", "writing")?;
    write(&written, arguments.rows)?;
    OF_DAYS.iter().try_for_each(|name| write(&days.join(name), arguments.rows.min(ROWS_OF_DAYS)))?;
    drop(writing);

    say("$ hepfs mount sample.h5 mnt")?;
    let mounted = match Mounted::new(&written, &mountpoint, verbose) {
        Ok(mounted) => mounted,
        Err(error @ Error::Background(_)) => {
            error.say();
            let is_toured = tour_in_namespace(&folder.path)?;
            if !is_toured {
                say("\nIt cannot be mounted here. What follows needs no mount.")?;
                tour(&TOUR_WITHOUT_MOUNT, &folder.path)?;
            }
            let how = if is_toured { "run" } else { "info" };
            return say(&match folder.is_temporary {
                true => format!("\nTry it on a file of yours: hepfs {how} FILE.h5"),
                false => format!("\nThe sample stays: hepfs {how} {}", written.display()),
            })
            .map(|()| ExitCode::SUCCESS);
        }
        Err(error) => return Err(error),
    };
    tour(&TOUR, &folder.path)?;
    if std::io::stdin().is_terminal() {
        say(&format!("\nIt is mounted on {}: look around in another terminal.", mountpoint.display()))?;
        say("Press Enter to unmount it.")?;
        // The end of input counts as a line.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
    }
    say("\n$ hepfs umount mnt")?;
    mounted.end()?;
    if folder.is_temporary {
        say("\nTry it on a file of yours: hepfs mount FILE.h5 DIRECTORY")?;
    } else {
        say(&format!("\nThe sample stays: hepfs mount {} {}", written.display(), mountpoint.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs commands in the folder of the sample, printing the reason for each. `hepfs` is this program.
fn tour(steps: &[(&str, &str)], folder: &Path) -> Result<(), Error> {
    let hepfs = itself()?;
    for (why, command) in steps {
        say(&format!("\n# {why}"))?;
        say(&format!("$ {command}"))?;
        let line = format!("hepfs() {{ \"$0\" \"$@\"; }}\n{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(hepfs.get_program()).current_dir(folder).stdin(Stdio::null());
        if command.contains("import duckdb") && !has_duckdb() {
            say("(not run: python3 has no duckdb here)")?;
            continue;
        }
        let status = shell.status().map_err(Error::io("running sh"))?;
        if !status.success() {
            return Err(Error::Usage(format!("`{command}` failed in {}", folder.display())));
        }
    }
    Ok(())
}

/// Runs the tour below `hepfs run`; `false` if that cannot mount either.
fn tour_in_namespace(folder: &Path) -> Result<bool, Error> {
    let mut run = itself()?;
    let program = run.get_program().to_owned();
    run.current_dir(folder).args(["run", "--at", "mnt", "sample.h5", "--"]);
    run.arg(&program).args(["demo", "--tour"]).arg(folder);
    say("$ hepfs run --at mnt sample.h5          # a mount for this tour alone")?;
    let status = run.status().map_err(Error::io("running hepfs run"))?;
    match status.code() {
        Some(0) => Ok(true),
        code if code == Some(super::run::FAILED.into()) => Ok(false),
        _ => Err(Error::Usage(format!("the tour ended with {status}"))),
    }
}

fn has_duckdb() -> bool {
    let mut python = Command::new("python3");
    let output = python.args(["-c", "import duckdb"]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

fn say(line: &str) -> Result<(), Error> {
    writeln!(std::io::stdout(), "{line}").map_err(Error::io("standard output"))
}

/// The folder of the demo; a temporary one goes with its owner.
struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

impl Folder {
    fn new(path: Option<&Path>) -> Result<Self, Error> {
        let (path, is_temporary) = match path {
            Some(path) => (path.to_owned(), false),
            None => (std::env::temp_dir().join(format!("hepfs-demo-{}", std::process::id())), true),
        };
        let path = std::path::absolute(&path).map_err(Error::io(path.display().to_string()))?;
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::check(&path)?,
            made => made.map_err(Error::io(path.display().to_string()))?,
        }
        Ok(Self { path, is_temporary })
    }

    /// Checks that an existing folder is empty. If it has an earlier demo, the error says how to go on with that one.
    fn check(path: &Path) -> Result<(), Error> {
        let listed = std::fs::read_dir(path).map_err(Error::io(path.display().to_string()))?;
        if listed.take(1).count() == 0 {
            return Ok(());
        }
        let (shown, sample, mountpoint) = (path.display(), path.join("sample.h5"), path.join("mnt"));
        Err(Error::Usage(if sample.is_file() && mountpoint.is_dir() {
            format!(
                "{shown}: an earlier demo is there. Go on with it: `hepfs mount {} {}`; or name another folder, or \
                 remove this one",
                sample.display(),
                mountpoint.display()
            )
        } else {
            format!("{shown}: not empty: name a new or empty folder")
        }))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // Removes only files that the demo made, and never anything below a mount that could not be ended.
            let _ = std::fs::remove_dir(self.path.join("mnt"));
            let _ = std::fs::remove_file(self.path.join("sample.h5"));
            let _ = OF_DAYS.iter().try_for_each(|name| std::fs::remove_file(self.path.join(DAYS).join(name)));
            let _ = std::fs::remove_dir(self.path.join(DAYS));
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// The mount; unmounts when it goes out of scope.
struct Mounted {
    mountpoint: PathBuf,
    ended: bool,
}

impl Mounted {
    /// Mounts as a user would, with the program itself.
    fn new(sample: &Path, mountpoint: &Path, verbose: u8) -> Result<Self, Error> {
        let output = itself()?
            .arg("mount")
            .args((0..verbose).map(|_| "-v"))
            .args([sample, mountpoint])
            .output()
            .map_err(Error::io("running hepfs mount"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Background(said.trim_start_matches("hepfs: ").to_owned()));
        }
        // Warnings, escaped for a terminal.
        String::from_utf8_lossy(&output.stderr).lines().for_each(|line| say!("{line}"));
        Ok(Self { mountpoint: mountpoint.to_owned(), ended: false })
    }

    fn end(mut self) -> Result<(), Error> {
        self.ended = true;
        Ok(crate::fs::mount::unmount(&self.mountpoint, false)?)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !self.ended {
            let _ = crate::fs::mount::unmount(&self.mountpoint, true);
        }
    }
}
