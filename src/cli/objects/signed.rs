//! Addresses with a secret: the name and password of a user, or a query, such as the signature of a signed address.
//!
//! All code sees an address without them, as it is shown. Only what asks the store looks the whole one up. Another
//! process of this program gets them by its environment, never by arguments, which every user may read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use bstr::ByteSlice;
use parking_lot::Mutex;

use crate::cli::Error;

/// The variable that has whole addresses, a line each.
const VARIABLE: &str = "HEPFS_ADDRESSES";

/// Whole addresses of this process, by the address shown.
static WHOLE: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Takes the secrets out of words of a command line, and those of the environment.
///
/// # Errors
/// If two addresses differ in them alone, since both would be shown as the same.
pub(in crate::cli) fn hide(words: &mut [OsString]) -> Result<(), Error> {
    let inherited = std::env::var_os(VARIABLE).unwrap_or_default();
    for line in inherited.as_bytes().lines() {
        hide_one(OsStr::from_bytes(line))?;
    }
    for word in words {
        let (option, value) = word.as_bytes().split_at(value_start(word.as_bytes()));
        if let Some(shown) = hide_one(OsStr::from_bytes(value))? {
            *word = OsString::from_vec([option, shown.as_bytes()].concat());
        }
    }
    Ok(())
}

/// The whole addresses of those that are shown without a part.
#[cfg(feature = "remote")]
pub(in crate::cli) fn whole() -> BTreeMap<PathBuf, String> {
    WHOLE.lock().clone()
}

/// Hands all whole addresses on to another process of this program.
pub(in crate::cli) fn hand_on(command: &mut Command) {
    let all = WHOLE.lock();
    if !all.is_empty() {
        command.env(VARIABLE, all.values().map(String::as_str).collect::<Vec<_>>().join("\n"));
    }
}

/// Keeps them from a program that is not this one.
pub(in crate::cli) fn withhold(command: &mut Command) {
    command.env_remove(VARIABLE);
}

/// Finds where the value of `--option=value` begins. Any other word is a value as a whole.
fn value_start(word: &[u8]) -> usize {
    word.strip_prefix(b"--").and_then(|option| option.find_byte(b'=')).map_or(0, |equals| equals + 3)
}

/// Takes the secrets out of an address with a path in it. `None`: it has no secrets.
fn hide_one(word: &OsStr) -> Result<Option<OsString>, Error> {
    let Some(Parts { shown, whole, path }) = parts(word.as_bytes()) else { return Ok(None) };
    let shown = OsString::from_vec(shown);
    let whole = whole.to_str().map_err(|_| Error::Usage(format!("{}: not UTF-8", shown.display())))?;
    let before = WHOLE.lock().insert(shown.clone().into(), whole.to_owned());
    if before.is_some_and(|before| before != whole) {
        return Err(Error::Usage(format!(
            "{}: two addresses that differ only behind their `?`, or in their user, which are not shown",
            shown.display()
        )));
    }
    let mut word = shown;
    word.push(OsStr::from_bytes(path));
    Ok(Some(word))
}

/// An address, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    shown: Vec<u8>,
    whole: &'a [u8],
    /// The path in its object, with the colon before it.
    path: &'a [u8],
}

/// Takes an address apart that has a user or a query.
fn parts(word: &[u8]) -> Option<Parts<'_>> {
    let scheme = ["https://", "http://"].iter().find(|scheme| word.starts_with(scheme.as_bytes()))?.len();
    // A signature may have a colon, so behind a query the path begins with `:/`.
    let query = word.find_byte(b'?').unwrap_or(word.len());
    let path = word[query..].rfind(":/").map_or(word.len(), |colon| query + colon);
    let (whole, path) = word.split_at(path);
    let (scheme, rest) = whole[..query].split_at(scheme);
    let host = rest.find_byte(b'/').unwrap_or(rest.len());
    let host = rest[..host].rfind_byte(b'@').map_or(0, |at| at + 1);
    let shown = [scheme, &rest[host..]].concat();
    (shown.len() < whole.len()).then_some(Parts { shown, whole, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_addresses_are_told_from_what_is_shown() {
        for (word, shown, whole, path) in [
            ("https://h/a.h5?X-Sig=1%3A2", "https://h/a.h5", "https://h/a.h5?X-Sig=1%3A2", ""),
            ("https://h/a.h5?se=2026-11-28T14:00:00Z", "https://h/a.h5", "https://h/a.h5?se=2026-11-28T14:00:00Z", ""),
            ("https://h/a.h5?sig=1:/run/t", "https://h/a.h5", "https://h/a.h5?sig=1", ":/run/t"),
            ("http://me:pass@h:80/a@b.h5", "http://h:80/a@b.h5", "http://me:pass@h:80/a@b.h5", ""),
            ("http://me@h/a.h5:t?x", "http://h/a.h5:t", "http://me@h/a.h5:t?x", ""),
            ("https://h?x", "https://h", "https://h?x", ""),
        ] {
            let expected = Parts { shown: shown.into(), whole: whole.as_bytes(), path: path.as_bytes() };
            assert_eq!(parts(word.as_bytes()), Some(expected), "{word}");
        }
        assert_eq!(
            ["--learnt=https://h", "--learnt", "a=b", "--=x"].map(|word| value_start(word.as_bytes())),
            [9, 0, 0, 3]
        );
        for word in ["https://h/a@b.h5:t", "s3://bucket/a?b.h5", "a.h5?b", "energy > 5", "https://h"] {
            assert_eq!(parts(word.as_bytes()), None, "{word}");
        }
    }
}
