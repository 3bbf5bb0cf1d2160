//! `cargo xtask`: the door to the tests, benchmarks and scripts of this checkout.
//!
//! A command without a name lists what there is. Python scripts run in an environment of their own, with the packages
//! of an extra of `scripts/pyproject.toml`; it is made at first use, in `.tools`.

mod list;
mod python;
mod quick;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Commands, their arguments and what they do.
const COMMANDS: [(&str, &str, &str); 12] = [
    ("quick", "[ARGS]", "Unit tests, layers, documents: no FUSE, no Python, a minute when built. ARGS go to the tests"),
    ("test", "[ARGS]", "Sets up and runs all tests (`scripts/test`). ARGS go to `cargo test`"),
    ("demo", "[ARGS]", "Builds hepfs, mounts a sample and shows it (`scripts/demo`)"),
    ("check", "[NAME ARGS]", "Random tables and files, held against other software: longer than the tests do"),
    ("bench", "[NAME] [ARGS]", "Measures hepfs beside other software. ARGS without a NAME go to `main`"),
    ("corpus", "FOLDER [ARGS]", "Mounts every file of a folder and compares it with h5py (`scripts/corpus`)"),
    ("hostile", "--hepfs PATH [ARGS]", "Spoils files at random and watches a mount of each (`scripts/hostile`)"),
    ("fuzz", "SECONDS [TARGET …]", "Runs fuzz targets with the stable compiler (`scripts/fuzz`)"),
    ("fixtures", "[NAME ARGS]", "Writes the files of `tests/data` anew"),
    ("package", "[ARGS]", "Builds and packages hepfs into `dist` (`scripts/package`)"),
    ("third-party", "[--check]", "Writes the licences of all that is linked (`scripts/third-party`)"),
    ("lock", "", "Locks the packages of every extra anew: `scripts/locks`, by uv"),
];

/// A checkout, and the extra that was asked for.
struct Tools {
    root: PathBuf,
    extra: Option<String>,
}

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let mut extra = None;
    if arguments.first().is_some_and(|argument| argument == "--extra") {
        let named = arguments.drain(..arguments.len().min(2)).nth(1);
        extra = named.map(|named| named.to_string_lossy().into_owned());
        if extra.is_none() {
            return fail("--extra wants the name of an extra of scripts/pyproject.toml");
        }
    }
    let tools = Tools { root: root(), extra };
    if arguments.is_empty() {
        return say(&help());
    }
    let command = arguments.remove(0).to_string_lossy().into_owned();
    match tools.run(&command, arguments) {
        Ok(code) => code,
        Err(why) => fail(&why),
    }
}

/// The checkout of the running `cargo xtask`.
fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("a folder in the checkout").to_owned()
}

fn help() -> String {
    let mut text = "cargo xtask [--extra EXTRA] COMMAND\n\n".to_owned();
    for (name, arguments, what) in COMMANDS {
        text += &format!("    {:<30} {what}\n", format!("{name} {arguments}"));
    }
    text + "\n`--extra` runs a Python script with the packages of another extra of scripts/pyproject.toml.\n"
}

/// Prints text. A reader that left early, as `head` does, is no failure.
fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(&error.to_string()),
        _ => ExitCode::SUCCESS,
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("xtask: {why}");
    ExitCode::FAILURE
}

impl Tools {
    /// Runs a command of the table; returns only if no script replaced the process.
    fn run(&self, command: &str, mut arguments: Vec<OsString>) -> Result<ExitCode, String> {
        match command {
            "quick" => return quick::run(self, &arguments),
            "lock" => return python::lock(self),
            "test" | "demo" | "package" | "third-party" => {
                return Err(self.replace(Command::new(self.script(command)).args(arguments)));
            }
            "corpus" | "hostile" | "fuzz" if arguments.is_empty() => {
                let mut text = list::document(&self.script(command))?;
                if command == "fuzz" {
                    text += &list::folder(&self.root.join("fuzz/fuzz_targets"))?;
                }
                return Ok(say(&text));
            }
            "fuzz" => return Err(self.replace(Command::new(self.script(command)).args(arguments))),
            "corpus" | "hostile" => return Err(self.python(&self.script(command), arguments)),
            "check" | "bench" | "fixtures" => {}
            _ => return Err(format!("no command {command:?}; `cargo xtask` lists them")),
        }
        let folder = self.script(command);
        let first = arguments.first().map(|first| first.to_string_lossy().into_owned());
        let name = match first {
            None => {
                let head = format!("cargo xtask {command} NAME [ARGS]; NAME --help has more.\n\n");
                return Ok(say(&(head + &list::folder(&folder)?)));
            }
            Some(first) if first.starts_with('-') && command == "bench" => "main".into(),
            Some(first) => {
                arguments.remove(0);
                first
            }
        };
        let wanted = list::programs(&folder)?.into_iter().find(|(stem, _)| *stem == name);
        let Some((_, script)) = wanted else {
            return Err(format!("no {command} {name:?}; `cargo xtask {command}` lists them"));
        };
        Err(self.python(&script, arguments))
    }

    /// The path of a script.
    fn script(&self, name: &str) -> PathBuf {
        self.root.join("scripts").join(name)
    }

    /// Replaces the process with a Python script and its packages; returns only on failure, with the reason.
    fn python(&self, script: &Path, arguments: Vec<OsString>) -> String {
        let interpreter = match python::interpreter(self, script) {
            Ok(interpreter) => interpreter,
            Err(why) => return why,
        };
        let mut command = Command::new(interpreter);
        // A fixture has the name of the library that it is made with: run by its path, it would find itself.
        match script.extension().and(script.file_stem()) {
            Some(stem) => command.arg("-m").arg(format!("fixtures.{}", stem.to_string_lossy())),
            None => command.arg(script),
        };
        self.replace(command.args(arguments).env("PYTHONPATH", self.root.join("scripts")))
    }

    /// Replaces the process with a program; returns only on failure, with the reason.
    fn replace(&self, command: &mut Command) -> String {
        let error = self.with_cmake(command).exec();
        format!("{}: {error}", command.get_program().to_string_lossy())
    }

    /// Names the CMake that `scripts/setup` fetched, unless the caller names one.
    fn with_cmake<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let own = self.root.join(".tools/bin/cmake");
        if env::var_os("CMAKE").is_none() && own.exists() { command.env("CMAKE", own) } else { command }
    }
}
