//! Options of `hepfs mount` as `name` or `name=value`: the form of mount(8) and of conf files.

use std::any::TypeId;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use clap::error::{ContextKind, ContextValue, Error as Refusal, ErrorKind};
use clap::{Arg, ArgAction, Args, Command};

use super::commands::mount::Serving;
use crate::table::did_you_mean;

/// An option with its value, not yet checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct MountOption<'a> {
    /// The name, with `-` or `_`.
    pub name: &'a BStr,
    /// The value; `None`: there is no `=`.
    pub value: Option<&'a BStr>,
}

/// Why an option is refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// `hepfs mount` has no such option.
    #[error("{name}: `hepfs mount` has no such option{hint}")]
    Unknown {
        /// The name as given.
        name: BString,
        /// The nearest name, in words.
        hint: String,
    },
    /// The value is not one of this option.
    #[error("{option}: {reason}")]
    Value {
        /// The option as given.
        option: BString,
        /// Why.
        reason: String,
    },
}

impl<'a> MountOption<'a> {
    /// The option in `name` or `name=value`.
    pub fn new(text: &'a BStr) -> Self {
        match text.split_once_str("=") {
            Some((name, value)) => Self { name: name.as_bstr(), value: Some(value.as_bstr()) },
            None => Self { name: text, value: None },
        }
    }

    /// The name of the long option: `_` stands for `-`.
    pub fn long(&self) -> BString {
        self.name.replace("_", "-").into()
    }

    /// Whether the value is a path.
    pub fn takes_path(&self) -> bool {
        let (command, long) = (command(), self.long());
        command.get_arguments().any(|argument| named(argument, &long) && is_path(argument))
    }

    /// The option as an argument of `hepfs mount`: `--name=value`. In a list `:` stands for `,`, which ends an option
    /// of mount(8).
    ///
    /// # Errors
    /// If there is no such option, or if its value is not one.
    pub fn argument(&self) -> Result<OsString, OptionError> {
        let (command, long) = (command(), self.long());
        let Some(option) = command.get_arguments().find(|argument| named(argument, &long)) else {
            let name = self.name.to_owned();
            let known = command.get_arguments().filter_map(Arg::get_long).map(|long| long.replace('-', "_"));
            let hint = did_you_mean(&self.name.to_str_lossy(), known);
            return Err(OptionError::Unknown { name, hint });
        };
        let mut argument = b"--".to_vec();
        argument.push_str(&long);
        if let Some(value) = self.value {
            argument.push(b'=');
            let is_list = option.get_value_delimiter() == Some(',');
            argument.push_str(if is_list { value.replace(":", ",") } else { value.to_vec() });
        }
        let argument = OsString::from_vec(argument);
        match command.try_get_matches_from([&argument]) {
            Ok(_) => Ok(argument),
            Err(refusal) => Err(OptionError::Value { option: self.text(), reason: reason(&refusal) }),
        }
    }

    /// The option as given.
    fn text(&self) -> BString {
        bstr::join("=", [Some(self.name), self.value].into_iter().flatten()).into()
    }
}

/// A command with the options of a mount alone: not those of a command, such as `--foreground`.
fn command() -> Command {
    let verbose = Arg::new("verbose").long("verbose").action(ArgAction::Count);
    Serving::augment_args(Command::new("mount").no_binary_name(true).disable_help_flag(true)).arg(verbose)
}

fn named(argument: &Arg, long: &BString) -> bool {
    argument.get_long().is_some_and(|own| long == own)
}

fn is_path(argument: &Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// The reason in a message of the parser, without the option, which the caller names.
fn reason(refusal: &Refusal) -> String {
    let valid = refusal.get(ContextKind::ValidValue);
    match (refusal.kind(), valid, refusal.source()) {
        (ErrorKind::TooManyValues, ..) => "it takes no value".to_owned(),
        // An empty value after `=` is one.
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid)), _) if valid.is_empty() => {
            "it wants a value, as in `name=value`".to_owned()
        }
        (_, Some(ContextValue::Strings(valid)), _) => format!("not one of {}", valid.join(", ")),
        (.., Some(source)) => source.to_string(),
        _ => refusal.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(text: &str) -> String {
        match MountOption::new(text.into()).argument() {
            Ok(argument) => argument.into_string().unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_become_arguments() {
        assert_eq!(argument("cache_size=1G"), "--cache-size=1G");
        assert_eq!(argument("cache-size=1G"), "--cache-size=1G");
        assert_eq!(argument("allow_other"), "--allow-other");
        assert_eq!(argument("verbose"), "--verbose");
        assert_eq!(argument("formats=parquet:csv"), "--formats=parquet,csv");
        assert_eq!(argument("formats=parquet,csv"), "--formats=parquet,csv");
        assert_eq!(argument("csv_separator=:"), "--csv-separator=:");
        assert_eq!(argument("csv_null="), "--csv-null=");
        assert_eq!(argument("csv_null=-1=x"), "--csv-null=-1=x");
        assert_eq!(argument("log_file=/var/log/a b"), "--log-file=/var/log/a b");
    }

    #[test]
    fn wrong_options_are_named() {
        for name in ["foreground", "background", "bound", "config", "help", "sources", ""] {
            assert!(argument(name).starts_with(&format!("{name}: `hepfs mount` has no such option")), "{name}");
        }
        assert_eq!(
            argument("cach_size=1G"),
            "cach_size: `hepfs mount` has no such option (did you mean \"cache_size\"?)"
        );
        assert_eq!(argument("allow_other=yes"), "allow_other=yes: it takes no value");
        assert_eq!(argument("cache_size"), "cache_size: it wants a value, as in `name=value`");
        assert_eq!(argument("cache_size=much"), "cache_size=much: \"much\" is not a size such as 512M or 2G");
        assert_eq!(argument("xattrs=some"), "xattrs=some: not one of short, all, none");
    }

    #[test]
    fn paths_are_known_by_their_type() {
        assert!(MountOption::new("log_file=x".into()).takes_path());
        assert!(MountOption::new("cache-folder".into()).takes_path());
        assert!(!MountOption::new("csv_null=x".into()).takes_path());
        assert!(!MountOption::new("unknown".into()).takes_path());
    }
}
