//! The command line. Arguments are parsed into validated settings once, and never handled as strings again.

// `eprintln!` panics if the reader of standard error is gone.
#![deny(clippy::print_stderr, clippy::print_stdout)]

/// Writes a line to standard error; ignores failures.
macro_rules! say {
    ($($what:tt)*) => {{
        let line = format!("{}\n", format_args!($($what)*));
        let _ = $crate::cli::progress::above(|| std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()));
    }};
}

mod commands;
mod conf;
mod indexing;
mod inputs;
mod limits;
mod logging;
#[cfg(test)]
mod manual;
mod mount_helper;
mod mount_options;
mod notify;
mod objects;
mod options;
mod partial;
mod place;
mod produce;
mod progress;
mod reporting;
mod rows;
mod signals;
mod sizes;
mod tables;
mod terminal;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Id, Parser, Subcommand};
use tracing::Level;

#[cfg(feature = "serve")]
use self::commands::serve;
use self::commands::{
    cat, check, complete, completions, convert, demo, export, head, import, index, info, ls, manual as pages, mount,
    prepare, query, run, status, umount, version,
};
use self::conf::Conf;
pub use self::conf::ConfError;
use crate::formats::shell_word;
use crate::fs::mount::MountError;
use crate::h5;
use crate::producer::table::Refused;
use crate::session::OpenError;
use crate::views::printable;

/// Shows the column tables inside HDF5 files as directories of ordinary files.
#[derive(Debug, Parser)]
#[command(
    name = "hepfs",
    help_template = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}",
    after_help = "Start with `hepfs demo`, or `hepfs mount run.h5 mnt` and `ls mnt`. Every command has --help;\n\
        `hepfs help reading` lists the options of all commands that read files."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Log more: -v for what happens, -vv for every request
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// How to show the progress of long work, on standard error
    #[arg(long, global = true, value_enum, value_name = "HOW", default_value_t, hide = true)]
    progress: progress::Shown,
}

#[derive(Debug, Subcommand)]
enum Command {
    Mount(mount::Arguments),
    Umount(umount::Arguments),
    Status(status::Arguments),
    Run(run::Arguments),
    #[cfg(feature = "serve")]
    Serve(serve::Arguments),
    Ls(ls::Arguments),
    Cat(cat::Arguments),
    Info(info::Arguments),
    Head(head::Arguments),
    Prepare(prepare::Arguments),
    Query(query::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Convert(convert::Arguments),
    Index(index::Arguments),
    Check(check::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Version(version::Arguments),
    Manual(pages::Arguments),
    Complete(complete::Arguments),
    /// Options of all commands that read files
    #[command(hide = true, override_usage = "hepfs COMMAND [OPTIONS] ...")]
    Reading(options::ReadingOptions),
}

/// Commands grouped by purpose, with an example of each.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Look into files, without a mount",
        &[
            "hepfs info run.h5",
            "hepfs head run.h5:run_042",
            "hepfs ls run.h5:run_042",
            "hepfs cat run.h5:run_042/head.csv",
            "hepfs query run.h5:run_042 'energy > 5'",
            "hepfs check run.h5",
        ],
    ),
    (
        "Mount files",
        &[
            "hepfs mount run.h5 mnt",
            "hepfs umount mnt",
            "hepfs status",
            "hepfs run run.h5 -- COMMAND",
            "hepfs serve run.h5",
            "hepfs prepare run.h5",
            "hepfs demo",
        ],
    ),
    (
        "Write files",
        &[
            "hepfs export run.h5:run_042 -o run.parquet",
            "hepfs import run.parquet run.h5",
            "hepfs convert frame.h5 frame-h5col.h5",
        ],
    ),
    ("Use search indexes", &["hepfs index verify run.h5"]),
    ("Set up", &["hepfs completions bash", "hepfs version"]),
];

/// Facts about all commands, for the reference and the manual page.
const NOTES: [&str; 5] = [
    "A SOURCE is an HDF5 file or a folder of them. A PATH in it is the path that a mount would show.",
    "A SIZE is a number of bytes, with K, M, G or T for powers of 1,024: `64M`.",
    "`-v` logs what happens, `-vv` every request. The environment variable `HEPFS_LOG` takes filters, such as \
    `hepfs=debug`.",
    "Work that takes long shows how far it is, on standard error. `--progress auto`, the default, draws a line on a \
    terminal: the file, a bar, amount, rate, time passed, time left. Elsewhere, as in a log, it writes a line after \
    10 s, 30 s, 1, 2 and 5 minutes, then every 5. `always` draws wherever standard error goes, `never` writes nothing, \
    `json` writes an object per line, each second and at the end: `command`, and the keys of \
    [`.hepfs/passes`](layout.md#hepfs). On a terminal the line ends with the first byte to standard output, unless that \
    goes to a file, since what reads a pipe may write to the same terminal.",
    "Exit codes: 0 done, 1 failed (2 for `check` and `index`, 125 for `run`), 2 wrong arguments, 130 ended by Ctrl-C.",
];

/// The name under which `hepfs help` lists the options of all commands that read files.
const READING: &str = "reading";

/// How help texts refer to that list.
const HELP_READING: &str = "`hepfs help reading`";

/// The version, the commit of an optimised build, and the version of HDF5.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("HEPFS_COMMIT").map(|commit| format!("{commit}, ")).unwrap_or_default();
    format!("{} ({commit}HDF5 {})", env!("CARGO_PKG_VERSION"), h5::library_version())
});

/// The command line for parsing and for help.
fn command() -> clap::Command {
    let command = Arguments::command();
    let mut groups = String::new();
    for (heading, examples) in GROUPS {
        groups.push_str(&format!("{heading}:\n"));
        for example in examples {
            let name = example.split(' ').nth(1).unwrap_or_default();
            // A program without one of its features has fewer commands.
            let Some(found) = command.find_subcommand(name) else { continue };
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {name:12} {about}\n  {:12} $ {example}\n", ""));
        }
        groups.push('\n');
    }
    let common = options::ReadingOptions::augment_args(clap::Command::new(""));
    let common: Vec<Id> = common.get_arguments().map(|argument| argument.get_id().clone()).collect();
    command.version(VERSION.as_str()).before_help(groups).mut_subcommands(|command| without(command, &common))
}

/// Hides these options in the help of a command, and refers to `hepfs help reading` there.
fn without(command: clap::Command, common: &[Id]) -> clap::Command {
    if command.get_name() == READING {
        return command;
    }
    let reads = command.get_arguments().any(|argument| common.contains(argument.get_id()));
    let command = command.mut_args(|argument| {
        let is_common = common.contains(argument.get_id());
        if is_common { argument.hide(true) } else { argument }
    });
    let command = command.mut_subcommands(|command| without(command, common));
    if !reads {
        return command;
    }
    let others = "Options of all commands that read files, such as --tables and --cache-folder:";
    let examples = command.get_after_help().map(|examples| format!("{examples}\n\n")).unwrap_or_default();
    command.after_help(format!("{examples}{others} {HELP_READING}"))
}

/// A command that runs this program once more.
fn itself() -> Result<process::Command, Error> {
    let mut command = process::Command::new(env::current_exe().map_err(Error::io("finding this program"))?);
    // A file called `mount.hepfs` would take itself for that.
    command.arg0("hepfs");
    objects::signed::hand_on(&mut command);
    Ok(command)
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Mounting or unmounting failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A name in the tree cannot be found, or its file cannot be read.
    #[error("{path}: {error}")]
    Tree {
        /// The name as given.
        path: String,
        /// Why it cannot be found or read.
        error: crate::fs::Error,
    },
    /// The background process ended before it had mounted, for this reason.
    #[error("{0}")]
    Background(String),
    /// A file cannot be read or written, or a program cannot be started.
    #[error("{what}: {error}")]
    Io {
        /// The file, or the action that failed.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The sample cannot be written.
    #[error("{path}: {reason}", path = .path.display())]
    Sample {
        /// The file to be written.
        path: PathBuf,
        /// Why it cannot be written.
        reason: String,
    },
    /// A search index cannot be built or removed.
    #[error(transparent)]
    Index(#[from] crate::producer::Error),
    /// The command needs the name of a single table.
    #[error("{what}")]
    Tables {
        /// Why the name is not that of a single table.
        what: String,
        /// The available tables, one per line.
        lines: Vec<String>,
    },
    /// Columns that cannot be written.
    #[error("not every column can be stored")]
    Columns(Vec<Refused>),
    /// The arguments contradict each other.
    #[error("{0}")]
    Usage(String),
    /// Options have inconsistent values, independently of the sources.
    #[error("{0}")]
    Options(String),
    /// A conf file cannot be used.
    #[error(transparent)]
    Conf(#[from] ConfError),
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Error::Io { what, error }
    }

    /// Writes the error to standard error.
    fn say(&self) {
        // Names from a hostile file may contain terminal escapes.
        say!("{}hepfs: {}", logging::priority(Level::ERROR), printable(&self.to_string()));
        if let Error::Tables { lines, .. } = self {
            lines.iter().for_each(|line| say!("  {line}"));
        }
        if let Error::Columns(refused) = self {
            for Refused { column, reason } in refused {
                let column = column.as_ref().map(|column| format!("column {column:?}: ")).unwrap_or_default();
                say!("  {column}{}", printable(reason));
            }
        }
    }

    /// Whether the reader of the output went away, as `head` does: not an error.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The words of a command line that are for this program: those of `hepfs run` end where its command begins.
fn own_words(words: &mut [OsString]) -> &mut [OsString] {
    let is_run = conf::command_at(words).is_some_and(|at| words[at] == "run");
    let end = words.iter().position(|word| is_run && word == "--").unwrap_or(words.len());
    &mut words[..end]
}

/// Whether a word on the command line is the name of a command.
fn is_command(word: &OsStr) -> bool {
    word == "help" || word.to_str().is_some_and(|word| Arguments::command().find_subcommand(word).is_some())
}

/// Ends the process over wrong arguments.
fn refuse(error: &clap::Error, words: &[OsString]) -> ! {
    if let (ErrorKind::InvalidSubcommand, [_, word, ..]) = (error.kind(), words)
        && Path::new(word).exists()
    {
        let name = shell_word(&word.to_string_lossy());
        say!("hepfs: {}", printable(&format!("{name} is not a command; `hepfs mount {name} MOUNTPOINT` mounts it")));
        process::exit(2);
    }
    error.exit()
}

/// Parses the words of a command line, with those of the conf file that `hepfs mount` may name. Options of the command
/// line count more.
fn matches(mut words: Vec<OsString>) -> Result<ArgMatches, Error> {
    let Some((place, name)) = conf::named(&words) else {
        let parsed = command().try_get_matches_from(&words);
        return Ok(parsed.unwrap_or_else(|error| refuse(&error, &words)));
    };
    let Conf { mut options, mut places } = Conf::find(&name)?;
    objects::signed::hide(&mut options)?;
    objects::signed::hide(&mut places)?;
    let sources = places.len() - 1;
    let name_of = |word: &OsString| word.as_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
    let given: Vec<_> = words.iter().map(name_of).collect();
    options.retain(|option| !given.contains(&name_of(option)));
    words.splice(place..place, options);
    words.push("--".into());
    words.extend(places);
    let matches = command().get_matches_from(words);
    let given = matches.subcommand().and_then(|(_, mount)| mount.get_raw("sources")).map_or(0, Iterator::count);
    if given > sources {
        return Err(Error::Usage(
            "mount --config: SOURCE and MOUNTPOINT are in the conf file, and cannot stand beside it".into(),
        ));
    }
    Ok(matches)
}

/// Runs the command that the process's arguments name.
pub fn run() -> ExitCode {
    let mut words: Vec<OsString> = env::args_os().collect();
    if let Err(error) = objects::signed::hide(own_words(&mut words)) {
        error.say();
        return ExitCode::from(2);
    }
    if mount_helper::is_called(&words) {
        return mount_helper::run(&words);
    }
    let matches = match matches(words) {
        Ok(matches) => matches,
        Err(error) => {
            error.say();
            return ExitCode::from(2);
        }
    };
    let parsed = Arguments::from_arg_matches(&matches);
    let Arguments { command, verbose, progress } = parsed.unwrap_or_else(|error| error.exit());
    progress::set(progress, matches.subcommand_name().unwrap_or_default());
    // Commands that exit with 1 for faults of a file exit with 2 for failures of their own.
    let failure = ExitCode::from(match command {
        Command::Check(_) | Command::Index(_) => 2,
        Command::Run(_) => run::FAILED,
        _ => 1,
    });
    // A mount sets up its log itself, and collects warnings; completion says nothing.
    if !matches!(command, Command::Mount(_) | Command::Complete(_)) {
        logging::to_stderr(verbose, true).take();
    }
    let _answering = reporting::of_command(&matches);
    let outcome = match command {
        Command::Mount(arguments) => mount::run(&arguments, verbose),
        Command::Run(arguments) => run::run(&arguments, verbose),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Umount(arguments) => umount::run(&arguments),
        Command::Status(arguments) => status::run(&arguments, verbose),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Head(arguments) => head::run(&arguments),
        Command::Prepare(arguments) => prepare::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Check(arguments) => check::run(&arguments, verbose),
        Command::Demo(arguments) => demo::run(&arguments, verbose),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Version(_) => version::run(),
        Command::Manual(arguments) => pages::run(&arguments),
        Command::Complete(arguments) => complete::run(arguments),
        Command::Reading(_) => Err(Error::Usage("no command: `hepfs help reading` tells of options".into())),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            error.say();
            match error {
                _ if signals::have_come() => ExitCode::from(signals::INTERRUPTED),
                Error::Options(_) => ExitCode::from(2),
                _ => failure,
            }
        }
    }
}
