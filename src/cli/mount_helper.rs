//! The program as a helper of mount(8), which calls it by the name `mount.hepfs`, or through mount.fuse3.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bstr::{BString, ByteSlice};
use clap::{ArgAction, Parser};

use super::commands::mount;
use super::mount_options::{MountOption, OptionError};
use super::objects::signed;
use super::signals::INTERRUPTED;
use super::{Error, is_command};

/// Names of the program for mount(8), of the types `hepfs` and `fuse.hepfs`.
const NAMES: [&str; 2] = ["mount.hepfs", "mount.fuse.hepfs"];

/// Exit code of mount(8) for wrong arguments.
const WRONG_ARGUMENTS: u8 = 1;
/// Exit code of mount(8) for failures of the system.
const SYSTEM: u8 = 2;
/// Exit code of mount(8) after Ctrl-C.
const ENDED_BY_USER: u8 = 8;
/// Exit code of mount(8) if nothing is mounted.
const NOT_MOUNTED: u8 = 32;

/// Options of mount(8) without a meaning for a mount that is read-only.
const IGNORED: &[&str] = &[
    "ro",
    "rw",
    "auto",
    "noauto",
    "user",
    "users",
    "nouser",
    "owner",
    "noowner",
    "group",
    "nogroup",
    "nofail",
    "_netdev",
    "defaults",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "async",
    "sync",
    "dirsync",
    "silent",
    "symfollow",
    "nosymfollow",
    "loud",
    "comment",
];

/// Mounts HDF5 files as directories, for mount(8)
#[derive(Debug, Parser)]
#[command(version = env!("CARGO_PKG_VERSION"))]
struct Call {
    /// An HDF5 file, or a folder of them
    source: PathBuf,

    /// An existing directory
    mountpoint: PathBuf,

    /// Options of `hepfs mount`, with `_` for each `-`, without the dashes before them; in lists `:` stands for `,`
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<OsString>,

    /// Warn of unknown options, instead of failing
    #[arg(short)]
    sloppy: bool,

    /// Check the options, and mount nothing
    #[arg(short)]
    fake: bool,

    /// Log more
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,

    /// Changes nothing: hepfs writes no list of mounts
    #[arg(short = 'n')]
    _no_list: bool,

    /// Changes nothing: the type is known
    #[arg(short = 't', value_name = "TYPE")]
    _type: Option<OsString>,

    /// Not supported: another namespace to mount in
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<OsString>,
}

/// The options of a call, as those of `hepfs mount`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Mount {
    #[command(flatten)]
    arguments: mount::Arguments,

    #[arg(long, action = ArgAction::Count)]
    verbose: u8,
}

/// Whether mount(8) runs this program: by its name, or as mount.fuse3 does, `hepfs SOURCE MOUNTPOINT -o OPTIONS`.
pub(super) fn is_called(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    if name.is_some_and(|name| NAMES.iter().any(|known| name == *known)) {
        return true;
    }
    match words {
        [_, source, _, options @ ..] if !options.is_empty() => {
            let are_options = options.chunks(2).all(|pair| matches!(pair, [option, _] if option == "-o"));
            are_options && !source.as_encoded_bytes().starts_with(b"-") && !is_command(source)
        }
        _ => false,
    }
}

/// Mounts; the exit code is one of mount(8).
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let mounted = match Call::try_parse_from(words) {
        Ok(call) => call.mount(),
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { WRONG_ARGUMENTS } else { 0 });
        }
    };
    match mounted {
        Ok(code) if code == ExitCode::from(INTERRUPTED) => ExitCode::from(ENDED_BY_USER),
        Ok(code) => code,
        Err(error) => {
            error.say();
            ExitCode::from(match error {
                Error::Usage(_) | Error::Options(_) => WRONG_ARGUMENTS,
                Error::Io { .. } => SYSTEM,
                _ => NOT_MOUNTED,
            })
        }
    }
}

impl Call {
    fn mount(&self) -> Result<ExitCode, Error> {
        if self.namespace.is_some() {
            return Err(Error::Usage("-N: hepfs cannot mount in another namespace; `nsenter --mount=FILE` can".into()));
        }
        let text = bstr::join(",", self.options.iter().map(|options| options.as_encoded_bytes()));
        let mut options = translate(&text, self.sloppy)?;
        signed::hide(&mut options)?;
        let places = [OsStr::new("--"), self.source.as_os_str(), self.mountpoint.as_os_str()].map(OsStr::to_owned);
        // Each option is right, so that only their company can be wrong; advice is for another command line.
        let parsed = Mount::try_parse_from(options.into_iter().chain(places))
            .map_err(|error| Error::Usage(error.to_string().lines().next().unwrap_or_default().to_owned()));
        let Mount { arguments, verbose } = parsed?;
        if self.fake { Ok(ExitCode::SUCCESS) } else { mount::run(&arguments, verbose + self.verbose) }
    }
}

/// Translates options of a mount into those of `hepfs mount`. Of an option given twice the last counts: mount(8) puts
/// those of its command line behind those of fstab(5).
fn translate(text: &[u8], is_sloppy: bool) -> Result<Vec<OsString>, Error> {
    let mut list: Vec<(BString, OsString)> = Vec::new();
    // Quotes keep a comma in a value (mount(8)).
    let mut is_quoted = false;
    let is_end = |byte: &u8| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    };
    for option in text.split(is_end).filter(|option| !option.is_empty()) {
        let name = option.split(|byte| *byte == b'=').next().unwrap_or_default();
        if IGNORED.iter().any(|ignored| name == ignored.as_bytes()) || name.to_ascii_lowercase().starts_with(b"x-") {
            continue;
        }
        if name == b"remount" {
            return Err(Error::Usage(
                "remount: the options of a mount stay as they are; unmount, and mount anew".into(),
            ));
        }
        if name.is_empty() {
            return Err(Error::Usage(format!("{}: there is no name before `=`", option.as_bstr())));
        }
        let option = option.replace("\"", "");
        let option = MountOption::new(option.as_bstr());
        match option.argument() {
            Ok(argument) => {
                list.retain(|(long, _)| *long != option.long());
                list.push((option.long(), argument));
            }
            Err(error @ OptionError::Unknown { .. }) if is_sloppy => mount::warn(&format!("{error}; ignored")),
            Err(error) => return Err(Error::Usage(error.to_string())),
        }
    }
    if is_quoted {
        return Err(Error::Usage(format!("{}: there is no second `\"`", text.as_bstr())));
    }
    Ok(list.into_iter().map(|(_, argument)| argument).collect())
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory};

    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn mount_is_told_from_a_command_line() {
        for called in [
            "mount.hepfs",
            "/sbin/mount.fuse.hepfs a b",
            "hepfs /a/info /b -o ro,dev,suid",
            "hepfs a b -o x",
            "hepfs a b -o x -o y",
        ] {
            assert!(is_called(&words(called)), "{called}");
        }
        for other in [
            "hepfs",
            "hepfs a b",
            "hepfs info a -o b",
            "hepfs export a -o b",
            "hepfs help a -o b",
            "hepfs -v a -o b",
            "hepfs a b -o x -o",
            "hepfs a b -o x y z",
        ] {
            assert!(!is_called(&words(other)), "{other}");
        }
    }

    #[test]
    fn options_are_those_of_the_command() {
        let translated = |text: &str| translate(text.as_bytes(), false).map(|words| words.join(OsStr::new(" ")));
        let text =
            "ro,cache_size=1G,x-systemd.automount,formats=parquet:csv,comment=a=b,allow_other,,log_file=\"/a,b:c\"";
        assert_eq!(translated(text).unwrap(), "--cache-size=1G --formats=parquet,csv --allow-other --log-file=/a,b:c");
        assert_eq!(translated("cache_size=1G,csv_null=,cache-size=2G").unwrap(), "--csv-null= --cache-size=2G");
        let refused = |text: &str| translated(text).unwrap_err().to_string();
        assert!(refused("ro,cach_size=1G").contains("(did you mean \"cache_size\"?)"));
        assert!(refused("uid=1").starts_with("uid: "));
        assert!(refused("cache_size=1X").contains("1X"));
        assert_eq!(refused("ro,=5"), "=5: there is no name before `=`");
        assert_eq!(refused("log_file=\"a,ro"), "log_file=\"a,ro: there is no second `\"`");
        assert!(refused("remount,ro").contains("unmount"));
        assert!(translate(b"uid=1,bsize=4096", true).unwrap().is_empty());
        assert!(translate(b"cache_size=1X", true).is_err());
    }

    /// Each option of the command, whatever it is, has its form here.
    #[test]
    fn every_option_of_mount_is_offered() {
        let command = crate::cli::Arguments::command();
        let mount = command.find_subcommand("mount").unwrap();
        let of_command = ["foreground", "config"];
        let shown = mount
            .get_arguments()
            .filter(|argument| !of_command.contains(&argument.get_id().as_str()) && !argument.is_hide_set());
        let names: Vec<&str> = shown.filter_map(Arg::get_long).collect();
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            let argument = MountOption::new(name.replace('-', "_").as_str().into()).argument();
            assert!(!matches!(argument, Err(OptionError::Unknown { .. })), "{name}");
        }
    }
}
