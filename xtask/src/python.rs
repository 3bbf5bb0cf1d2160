//! Environments of Python: one for each extra of `scripts/pyproject.toml`, with the packages of its lock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{Tools, list};

/// The extra that `scripts/setup --tests` installs, into `.tools/venv`.
const TESTS: &str = "readers";

/// The interpreter that a script wants. Its environment is made if it is missing, or older than the lock.
pub fn interpreter(tools: &Tools, script: &Path) -> Result<PathBuf, String> {
    let own = extra_of(&list::document(script)?);
    let Some(extra) = tools.extra.clone().or(own) else { return Ok("python3".into()) };
    let lock = lock_of(tools, &extra);
    if !lock.exists() {
        return Err(format!("no extra {extra:?} in scripts/pyproject.toml: {} is missing", lock.display()));
    }
    if extra == TESTS {
        return for_tests(tools);
    }
    let folder = tools.root.join(format!(".tools/venv-{extra}"));
    let (python, stamp) = (folder.join("bin/python3"), folder.join("requirements.txt"));
    let wanted = fs::read(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    if python.exists() && fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("xtask: fetching the Python packages of the extra {extra} into .tools/venv-{extra}");
    install(&folder, &python, &lock).map_err(|why| {
        format!(
            "{why}\nThe script wants the extra {extra:?} of scripts/pyproject.toml: the packages of {}",
            lock.display()
        )
    })?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

/// Locks every extra anew.
pub fn lock(tools: &Tools) -> Result<ExitCode, String> {
    let project = tools.script("pyproject.toml");
    let text = fs::read_to_string(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    let section = text.split("[project.optional-dependencies]").nth(1).unwrap_or_default();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    for extra in lines.filter_map(|line| line.split_once(" = [")).map(|(extra, _)| extra) {
        let mut line = Command::new("uv");
        line.args([
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--generate-hashes",
            "--no-header",
            "--no-emit-index-url",
        ]);
        line.args(["--no-annotate", "--extra", extra, "--output-file"]).arg(lock_of(tools, extra)).arg(&project);
        succeed(&mut line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lock_of(tools: &Tools, extra: &str) -> PathBuf {
    tools.script("locks").join(extra).with_extension("txt")
}

/// The extra that the documentation of a script names; `None`: the script needs none.
fn extra_of(document: &str) -> Option<String> {
    let rest = document.lines().find_map(|line| line.strip_prefix("Packages: the extra `"))?;
    Some(rest.split('`').next().unwrap_or_default().to_owned())
}

/// The Python of the tests, whose packages may also be the system's.
fn for_tests(tools: &Tools) -> Result<PathBuf, String> {
    succeed(Command::new(tools.script("setup")).arg("--tests"))?;
    let own = tools.root.join(".tools/venv/bin/python3");
    Ok(if own.exists() { own } else { "python3".into() })
}

/// Makes an environment with the packages of a lock: by uv where it is installed, else by pip.
fn install(folder: &Path, python: &Path, lock: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    if Command::new("uv").arg("--version").output().is_ok_and(|output| output.status.success()) {
        succeed(Command::new("uv").args(["venv", "--quiet"]).arg(folder))?;
        let mut line = Command::new("uv");
        line.args(["pip", "install", "--quiet", "--require-hashes", "--python"]).arg(python);
        return succeed(line.arg("--requirements").arg(lock));
    }
    succeed(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let mut line = Command::new(python);
    line.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]);
    succeed(line.arg("--requirement").arg(lock))
}

/// Runs a program that must succeed.
fn succeed(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
