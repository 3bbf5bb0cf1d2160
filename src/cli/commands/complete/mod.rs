//! `hepfs complete SHELL BEFORE AFTER WORD`: what can stand at the cursor of a command line. The scripts that
//! `hepfs completions` prints call it.
//!
//! It says nothing but answers: whatever fails has none. It lists groups, and reads no values.

mod line;
mod names;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bstr::BString;
use clap::builder::ValueHint;
use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{self, ArgValueCompleter, ValueCompleter};

use self::line::Line;
use self::names::{GivenPlaces, Inside};
use super::completions::Shell;
use crate::cli::Error;

/// How long a person waits for an answer. Requests to the HDF5 library end sooner; a file system may take any time.
const LONGEST: Duration = Duration::from_secs(2);

/// Longest description of an answer in characters.
const DESCRIPTION: usize = 80;

/// Print what can stand at the cursor of a command line
#[derive(Debug, Args)]
#[command(hide = true)]
pub(in crate::cli) struct Arguments {
    /// The shell that asks
    #[arg(value_enum)]
    shell: Shell,

    /// The line up to the cursor
    before: OsString,

    /// The line behind the cursor
    after: OsString,

    /// The part of the cursor's word that an answer replaces
    word: OsString,
}

pub(in crate::cli) fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let (send, answers) = mpsc::channel();
    let thread = thread::Builder::new().name("hepfs-complete".to_owned());
    thread.spawn(move || send.send(answers_to(&arguments))).map_err(Error::io("starting a thread"))?;
    let answers = answers.recv_timeout(LONGEST).unwrap_or_default();
    std::io::stdout().write_all(&answers).map_err(Error::io("standard output"))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether an answer is the name of an option, by the identifiers of `clap_complete`.
fn is_option(answer: &CompletionCandidate) -> bool {
    answer.get_id().is_some_and(|id| id.starts_with("arg::"))
}

/// The answers, a line each; to shells that show descriptions, with one behind a tab.
fn answers_to(arguments: &Arguments) -> Vec<u8> {
    let (shell, line) = (arguments.shell, Arc::new(Line::new(&arguments.before, &arguments.after)));
    let mut command = completing(crate::cli::Arguments::command(), &line);
    let words = line.before.iter().chain([&line.typed]).chain(&line.after).cloned().collect();
    let mut found = engine::complete(&mut command, words, line.before.len(), None).unwrap_or_default();
    // Options are offered once a hyphen is typed, or where nothing else can stand.
    if !line.typed.as_bytes().starts_with(b"-") && !found.iter().all(is_option) {
        found.retain(|one| !is_option(one));
    }
    let mut answers = Vec::new();
    for one in found {
        let Some(answer) = line.answer(one.get_value(), &arguments.word, shell) else { continue };
        answers.extend(answer.as_bytes());
        if let Some(help) = one.get_help().filter(|_| shell != Shell::Bash) {
            answers.push(b'\t');
            answers.extend(beginning(&help.to_string()).bytes());
        }
        answers.push(b'\n');
    }
    answers
}

/// The beginning of a help text, without its default value.
fn beginning(help: &str) -> String {
    let end = ["\n", ". ", "; ", " [default"].iter().filter_map(|end| help.find(end)).min();
    help[..end.unwrap_or(help.len())].chars().take(DESCRIPTION).collect()
}

/// Attaches completers to the arguments of a command and of those below it.
fn completing(command: Command, line: &Arc<Line>) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| match Wanted::of(&argument, &name) {
        Some(wanted) => {
            let is_option = !argument.is_positional();
            argument.add(ArgValueCompleter::new(Completer { wanted, is_option, line: line.clone() }))
        }
        None => argument,
    });
    command.mut_subcommands(|command| completing(command, line))
}

/// The values that an argument takes, if its type does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// A file or folder.
    Files,
    /// A directory that a hepfs is mounted on.
    Mountpoints,
    /// A source beside others with `--table`, else something that cannot be completed.
    MoreFiles,
    /// A source, and a place in it.
    Place(Inside),
    /// The path of a table in a source that another argument names.
    Tables,
    /// Columns of the table that other arguments name.
    Columns,
}

impl Wanted {
    fn of(argument: &Arg, command: &str) -> Option<Self> {
        let value = argument.get_value_names().and_then(|names| Some(names.first()?.as_str())).unwrap_or_default();
        Some(match (argument.get_id().as_str(), value) {
            ("place", "SOURCE:PATH") => Self::Place(Inside::File),
            ("place", _) => Self::Place(Inside::Table),
            ("places", _) if matches!(command, "ls" | "prepare") => Self::Place(Inside::Any),
            ("places", _) => Self::Place(Inside::Directory),
            ("table", _) => Self::Tables,
            ("columns" | "column" | "partition_by", _) => Self::Columns,
            ("expression" | "more", _) => Self::MoreFiles,
            (_, "MOUNTPOINT") if matches!(command, "umount" | "status") => Self::Mountpoints,
            (_, "OUT[:PATH]" | "IN... OUT[:PATH]") => Self::Files,
            _ if argument.get_value_hint() == ValueHint::AnyPath => Self::Files,
            _ => return None,
        })
    }
}

/// Completes the values of an argument.
struct Completer {
    wanted: Wanted,
    is_option: bool,
    line: Arc<Line>,
}

impl ValueCompleter for Completer {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Line { before, typed, after, .. } = &*self.line;
        // An option whose value is being typed would take the next word for it.
        let is_apart = self.is_option && !typed.as_bytes().starts_with(b"-");
        let before = &before[..before.len() - usize::from(is_apart)];
        let given = || GivenPlaces::new(before.iter().chain(after));
        let meant = expanded(current.as_bytes());
        let found = match self.wanted {
            Wanted::Files => names::files(&meant),
            Wanted::Mountpoints => names::mountpoints(&meant),
            Wanted::MoreFiles if given().has_table() => names::files(&meant),
            Wanted::MoreFiles => Vec::new(),
            Wanted::Place(inside) => given().places(&meant, inside),
            Wanted::Tables => given().tables(&meant),
            Wanted::Columns => {
                let chosen: Vec<&[u8]> = typed.as_bytes().split(|byte| b",=".contains(byte)).collect();
                let chosen = chosen.split_last().map(|(_, chosen)| chosen).unwrap_or_default();
                let mut columns = given().columns(&meant);
                columns.retain(|name| !chosen.contains(&name.as_slice()));
                columns
            }
        };
        let more = found.iter().filter_map(|name| name.strip_prefix(meant.as_slice()));
        more.map(|more| CompletionCandidate::new(OsString::from_vec([current.as_bytes(), more].concat()))).collect()
    }
}

/// The path that a shell makes of `~/…`, or of `$NAME/…`, at the beginning of a word.
fn expanded(word: &[u8]) -> BString {
    let end = word.iter().position(|byte| *byte == b'/').unwrap_or(word.len());
    let (first, rest) = word.split_at(end);
    let value = match first {
        b"~" => std::env::home_dir().map(Into::into),
        [b'$', name @ ..] => std::env::var_os(OsStr::from_bytes(name)),
        _ => None,
    };
    match value {
        Some(value) => [value.as_bytes(), rest].concat().into(),
        None => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the arguments of a command and of those below it.
    fn check(command: &Command) {
        for argument in command.get_arguments() {
            let values = argument.get_value_names().unwrap_or_default();
            let is_place =
                values.iter().any(|value| ["SOURCE", "IN", "OUT"].iter().any(|known| value.starts_with(known)));
            let wanted = Wanted::of(argument, command.get_name());
            assert!(wanted.is_some() || !is_place, "{} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn each_argument_that_names_a_place_is_completed() {
        check(&crate::cli::Arguments::command());
    }

    #[test]
    fn homes_and_variables_are_expanded_at_the_beginning() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(expanded(b"~/run.h5"), home.join("run.h5").as_os_str().as_bytes());
        assert_eq!(expanded(b"$CARGO_MANIFEST_DIR/a"), concat!(env!("CARGO_MANIFEST_DIR"), "/a"));
        assert_eq!(expanded(b"$NO_SUCH_VARIABLE/a"), "$NO_SUCH_VARIABLE/a");
        assert_eq!(expanded(b"a~/b"), "a~/b");
    }

    #[test]
    fn descriptions_are_one_sentence() {
        assert_eq!(beginning("Number of rows at most [default: all]"), "Number of rows at most");
        assert_eq!(beginning("Decoder of stored values. The HDF5 library is slower"), "Decoder of stored values");
    }
}
