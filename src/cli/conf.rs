//! Conf files: a mount with its options in a file, which a service names.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice};

use super::mount_options::{MountOption, OptionError};
use crate::source::is_address;
use crate::table::did_you_mean;

/// The folder of conf files of all users.
const SYSTEM: &str = "/etc/hepfs";

/// Names of lines that are no options: a source, of which there may be several, and the place of the mount.
const PLACES: [&str; 2] = ["source", "mountpoint"];

/// The word for no folder, where an option takes a path.
const NONE: &[u8] = b"none";

/// Most bytes of a conf file that are read.
const MOST_BYTES: u64 = 1 << 20;

/// Why a conf file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfError {
    /// No folder has a conf file of this name.
    #[error("--config {name}: there is no {}{hint}", .places.join(" or "))]
    Missing {
        /// The name as given.
        name: String,
        /// The files looked for.
        places: Vec<String>,
        /// The nearest known name, as the end of a message.
        hint: String,
    },
    /// It cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// A line is wrong.
    #[error("{path}:{number}: {error}")]
    Line {
        /// The file.
        path: String,
        /// The line's number, from 1.
        number: usize,
        /// Why.
        error: LineError,
    },
    /// A line is missing.
    #[error("{path}: there is no line `{name}=…`")]
    Incomplete {
        /// The file.
        path: String,
        /// The line's name.
        name: &'static str,
    },
}

/// Why a line of a conf file is wrong.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Another line has this name.
    #[error("{name} again: it is in line {before}")]
    Twice {
        /// The name.
        name: String,
        /// The number of the other line.
        before: usize,
    },
    /// There is no path.
    #[error("{name} wants a path: `{name}=/…`")]
    NoPath {
        /// The name.
        name: String,
    },
    /// The path depends on the folder in which a program runs.
    #[error("{path}: a path here begins with `/` or `~/`, without quotes")]
    Relative {
        /// The path.
        path: String,
    },
    /// `~` stands for nothing.
    #[error("{path}: this user has no home folder")]
    NoHome {
        /// The path.
        path: String,
    },
    /// It is no option of a mount.
    #[error("{error}{hint}")]
    Option {
        /// Why.
        error: OptionError,
        /// The nearest known name, as the end of a message.
        hint: String,
    },
}

/// A conf file, as arguments of `hepfs mount`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conf {
    /// Options, each with its value.
    pub options: Vec<OsString>,
    /// Sources, then the mount point.
    pub places: Vec<OsString>,
}

/// The conf file that a command line of `hepfs mount` names with `--config`, and the place of the words that follow
/// `mount`. `None`: it names none.
pub(super) fn named(words: &[OsString]) -> Option<(usize, OsString)> {
    let command = command_at(words)?;
    let mut behind = words.get(command..)?.iter().take_while(|word| *word != "--");
    if behind.next()? != "mount" {
        return None;
    }
    let name = behind.clone().find_map(|word| word.as_bytes().strip_prefix(b"--config=")).map(OsStr::from_bytes);
    let name = name.or_else(|| behind.skip_while(|word| *word != "--config").nth(1).map(OsString::as_os_str))?;
    Some((command + 1, name.to_owned()))
}

/// The place of the command among the words of a command line.
pub(super) fn command_at(words: &[OsString]) -> Option<usize> {
    let mut command = 1;
    while words.get(command)?.as_bytes().starts_with(b"-") {
        command += if takes_value(&words[command]) { 2 } else { 1 };
    }
    Some(command)
}

/// Whether the word behind this option of every command is its value.
fn takes_value(option: &OsStr) -> bool {
    super::command().get_arguments().any(|argument| {
        argument.get_action().takes_values() && argument.get_long().is_some_and(|long| *option == *format!("--{long}"))
    })
}

impl Conf {
    /// Reads the conf file of this name, or at this path: a path has a `/`.
    ///
    /// # Errors
    /// If it is not there, or says what is no mount.
    pub fn find(name: &OsStr) -> Result<Self, ConfError> {
        let is_path = name.as_bytes().contains(&b'/');
        let mut file = name.to_owned();
        file.push(".conf");
        let folders = [dirs::config_dir().map(|folder| folder.join("hepfs")), Some(SYSTEM.into())];
        let places: Vec<PathBuf> = if is_path {
            vec![name.into()]
        } else {
            folders.into_iter().flatten().map(|path| path.join(&file)).collect()
        };
        let Some(path) = places.iter().find(|path| path.exists()) else {
            let is_here = !is_path && Path::new(name).is_file();
            let name = name.display().to_string();
            let hint = if is_here { format!("; the file in this folder is ./{name}") } else { String::new() };
            let places = places.iter().map(|path| path.display().to_string()).collect();
            return Err(ConfError::Missing { name, places, hint });
        };
        let mut text = Vec::new();
        let text = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text)).map(|_| text);
        let text = text.map_err(|error| ConfError::Unreadable { path: path.display().to_string(), error })?;
        Self::parse(&text, path, dirs::home_dir().as_deref())
    }

    /// Reads the text of a conf file; `home` stands for `~`.
    fn parse(text: &[u8], path: &Path, home: Option<&Path>) -> Result<Self, ConfError> {
        let path = path.display().to_string();
        // Some editors begin with a mark of the byte order.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let (mut sources, mut mountpoint, mut options) = (Vec::new(), None, Vec::new());
        // Names with the numbers of their lines.
        let mut seen: Vec<(String, usize)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_ascii().as_bstr();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let MountOption { name, value } = MountOption::new(line);
            let name = name.trim_ascii_end().as_bstr();
            let option = MountOption { name, value: value.map(|value| value.trim_ascii_start().as_bstr()) };
            let name = option.long().to_string();
            let read = match seen.iter().find(|(other, _)| *other == name && name != PLACES[0]) {
                Some((_, before)) => Err(LineError::Twice { name: name.clone(), before: *before }),
                None if !PLACES.contains(&name.as_str()) => argument(option, home),
                None => {
                    let path = option.value.filter(|path| !path.is_empty());
                    path.ok_or(LineError::NoPath { name: name.clone() }).and_then(|path| absolute(path, home))
                }
            };
            let read = read.map_err(|error| ConfError::Line { path: path.clone(), number, error })?;
            match name.as_str() {
                "source" => sources.push(read),
                "mountpoint" => mountpoint = Some(read),
                _ => options.push(read),
            }
            seen.push((name, number));
        }
        if sources.is_empty() {
            return Err(ConfError::Incomplete { path, name: PLACES[0] });
        }
        let mountpoint = mountpoint.ok_or(ConfError::Incomplete { path, name: PLACES[1] })?;
        sources.push(mountpoint);
        Ok(Self { options, places: sources })
    }
}

/// The argument for an option.
fn argument(option: MountOption<'_>, home: Option<&Path>) -> Result<OsString, LineError> {
    let is_none = option.value.is_some_and(|value| value == NONE) && option.long() == "cache-folder";
    let path = option.value.filter(|_| option.takes_path() && !is_none);
    let path = path.map(|path| absolute(path, home)).transpose()?;
    let value = path.as_ref().map(|path| path.as_bytes().as_bstr()).or(option.value);
    MountOption { value, ..option }.argument().map_err(|error| {
        let hint = match &error {
            OptionError::Unknown { name, hint } if hint.is_empty() => did_you_mean(&name.to_str_lossy(), PLACES),
            _ => String::new(),
        };
        LineError::Option { error, hint }
    })
}

/// A path that is absolute, or begins with `~/`: a conf file is used in one folder or another.
fn absolute(path: &BStr, home: Option<&Path>) -> Result<OsString, LineError> {
    let os = OsStr::from_bytes;
    match (path.strip_prefix(b"~/"), home) {
        (Some(below), Some(home)) => Ok(home.join(os(below)).into()),
        (Some(_), None) => Err(LineError::NoHome { path: path.to_string() }),
        (None, _) if path.starts_with(b"/") || is_address(Path::new(os(path))) => Ok(os(path).to_owned()),
        (None, _) => Err(LineError::Relative { path: path.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Conf, String> {
        let parsed = Conf::parse(text.as_bytes(), Path::new("/etc/hepfs/run.conf"), Some(Path::new("/home/user")));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn lines_become_arguments() {
        let text = "# Runs\n\n source = /data/run 1.h5 \nsource=~/more\nsource=s3://b/a.h5\nmountpoint=/mnt\r\n  # cache\n\
            cache_size = 1G\nallow-other\nformats=parquet:csv\ncsv_null=#\nlog_file=~/log\ncache_folder=none\n";
        let options =
            ["--cache-size=1G", "--allow-other", "--formats=parquet,csv", "--csv-null=#", "--log-file=/home/user/log"];
        let conf = Conf {
            options: options.into_iter().chain(["--cache-folder=none"]).map(OsString::from).collect(),
            places: ["/data/run 1.h5", "/home/user/more", "s3://b/a.h5", "/mnt"].map(OsString::from).to_vec(),
        };
        assert_eq!(parse(text), Ok(conf));
    }

    #[test]
    fn a_command_line_names_a_conf_file() {
        let named = |line: &str| named(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let run = |place| Some((place, OsString::from("run")));
        assert_eq!(named("hepfs mount --config run"), run(2));
        assert_eq!(named("hepfs -v mount -f --config=run --cache-size 1G"), run(3));
        assert_eq!(named("hepfs --progress never -v mount --config run"), run(5));
        for other in [
            "hepfs",
            "hepfs mount",
            "hepfs mount a b",
            "hepfs mount -- --config run",
            "hepfs info --config a",
            "hepfs mount --config",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let places = "source=/a\nmountpoint=/b\n";
        let refused = |lines: &str| parse(&format!("{places}{lines}")).unwrap_err();
        assert_eq!(
            refused("cach_size=1G"),
            "/etc/hepfs/run.conf:3: cach_size: `hepfs mount` has no such option (did you mean \"cache_size\"?)"
        );
        assert_eq!(
            refused("\n\nsurce=/c"),
            "/etc/hepfs/run.conf:5: surce: `hepfs mount` has no such option (did you mean \"source\"?)"
        );
        assert_eq!(
            refused("cache_size=much"),
            "/etc/hepfs/run.conf:3: cache_size=much: \"much\" is not a size such as 512M or 2G"
        );
        assert_eq!(refused("mountpoint=/c"), "/etc/hepfs/run.conf:3: mountpoint again: it is in line 2");
        assert_eq!(refused("cache_size=1G\ncache-size=1G"), "/etc/hepfs/run.conf:4: cache-size again: it is in line 3");
        assert_eq!(refused("source="), "/etc/hepfs/run.conf:3: source wants a path: `source=/…`");
        assert_eq!(
            refused("log_file=none"),
            "/etc/hepfs/run.conf:3: none: a path here begins with `/` or `~/`, without quotes"
        );
        assert!(parse(&format!("\u{feff}{places}")).is_ok());
        assert_eq!(refused("source"), "/etc/hepfs/run.conf:3: source wants a path: `source=/…`");
        assert_eq!(
            refused("source=c.h5"),
            "/etc/hepfs/run.conf:3: c.h5: a path here begins with `/` or `~/`, without quotes"
        );
        assert_eq!(
            refused("log_file=log"),
            "/etc/hepfs/run.conf:3: log: a path here begins with `/` or `~/`, without quotes"
        );
        assert_eq!(parse("mountpoint=/b").unwrap_err(), "/etc/hepfs/run.conf: there is no line `source=…`");
        assert_eq!(parse("source=/a").unwrap_err(), "/etc/hepfs/run.conf: there is no line `mountpoint=…`");
        let nowhere = Conf::parse(b"source=~/a", Path::new("x"), None).unwrap_err();
        assert_eq!(nowhere.to_string(), "x:1: ~/a: this user has no home folder");
    }
}
