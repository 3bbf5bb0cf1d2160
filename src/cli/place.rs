//! `SOURCE[:path]`: a place in a source, as a mount would show it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bstr::{BStr, BString, ByteSlice};
use clap::Args;

use super::Error;
use super::limits::allow_open_files;
use super::options::ReadingOptions;
use super::progress::Watched;
use super::signals::INTERRUPTED;
use super::tables;
use crate::activity::{Unit, words};
use crate::formats::is_usual_name;
use crate::session::walk::{self, Astray, FollowedPath};
use crate::session::{self, EntryKind, OpenError, Session, Settings, Spot};
use crate::source::{Interrupt, StatMemo, is_address};
use crate::table::did_you_mean;
use crate::views::printable;

/// How long to wait for a file that is being written: long enough for file systems that count time in whole seconds.
const LONGEST_SETTLING: Duration = Duration::from_secs(4);

/// Places, as arguments name them, and how they are read.
#[derive(Clone, Debug, Args)]
pub(super) struct NamedPlaces {
    /// HDF5 files or folders, each with an optional path in it as a mount would show it. With several, or a folder,
    /// each line begins with the file
    #[arg(value_name = "SOURCE[:PATH]", required = true)]
    places: Vec<OsString>,

    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// A place named by an argument, before it is looked up.
pub(super) struct RequestedPlace<'a> {
    text: &'a OsStr,
    session: Arc<Session>,
    is_one_of_several: bool,
}

impl NamedPlaces {
    /// Runs `act` on each place, as work called `doing`. A failure is printed to standard error, counts as the exit
    /// code `failed`, and does not stop the others; an interrupt does. Returns the worst exit code.
    ///
    /// # Errors
    /// If a single place was given and it fails, or the output is closed.
    pub fn each(
        &self,
        settings: &Settings,
        (doing, failed): (&'static str, u8),
        mut act: impl FnMut(&RequestedPlace, &Watched) -> Result<u8, Error>,
    ) -> Result<ExitCode, Error> {
        let (mut worst, is_one_of_several) = (0, self.places.len() > 1);
        let watched = Watched::new("", doing)?;
        for text in &self.places {
            let session = self.reading.session(settings.clone())?;
            watched.name(&short_name(text), doing);
            watched.step(Unit::Objects, 0);
            let code = match act(&RequestedPlace { text, session, is_one_of_several }, &watched) {
                Ok(code) => code,
                Err(error) if !is_one_of_several || error.is_broken_pipe() => return Err(error),
                Err(error) => {
                    error.say();
                    failed
                }
            };
            worst = worst.max(code);
            if code == INTERRUPTED {
                break;
            }
        }
        Ok(ExitCode::from(worst))
    }
}

impl RequestedPlace<'_> {
    /// Looks the place up.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn find(&self, interrupt: &Interrupt) -> Result<Place, Error> {
        let place = Place::open(self.text, self.session.clone(), interrupt);
        let (source, _) = split(self.text);
        // The folder has names that cannot be shown.
        if is_address(&source) && self.session.opener.is_folder(&source) {
            for error in self.session.errors.reports(usize::MAX) {
                say!("hepfs: warning: {}", error.message);
            }
        }
        Ok(Place { is_one_of_several: self.is_one_of_several, ..place? })
    }

    /// Looks up the directory above the place, and the place's name in it; `None`: the place is a whole source, or
    /// there is no such directory.
    pub fn find_above(&self, interrupt: &Interrupt) -> Option<(Place, BString)> {
        let (source, path) = split(self.text);
        let slash = path.rfind_byte(b'/');
        let name = &path[slash.map_or(0, |slash| slash + 1)..];
        if name.is_empty() {
            return None;
        }
        let mut text = source.into_os_string();
        if let Some(slash) = slash {
            text.push(":");
            text.push(OsStr::from_bytes(&path[..slash]));
        }
        let place = Place::open(&text, self.session.clone(), interrupt).ok()?;
        // Lines about it begin with the argument.
        let asked = self.text.to_string_lossy().into_owned();
        Some((Place { name: asked, is_one_of_several: self.is_one_of_several, ..place }, name.into()))
    }

    /// Looks the place up once the file has been unchanged for a moment, so that facts learnt about it can be cached.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn find_settled(&self, interrupt: &Interrupt) -> Result<Place, Error> {
        let (source, _) = split(self.text);
        let end = Instant::now() + LONGEST_SETTLING;
        // An object never does.
        let settles = || {
            let found = self.session.opener.stat(&source);
            found.is_ok_and(|found| found.is_file() && !found.identity.is_settled_at(SystemTime::now()))
        };
        while !is_address(&source) && settles() && Instant::now() < end && !interrupt.is_raised() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.find(interrupt)
    }
}

/// A place in a source, without a mount.
pub(super) struct Place {
    /// The session of the source.
    pub session: Arc<Session>,
    /// The folder, group, table or file at the place.
    pub spot: Spot,
    /// Name of the place for messages, as given.
    pub name: String,
    /// Path of the source.
    source: PathBuf,
    /// The directories on the way to it, starting with the source.
    above: Vec<Spot>,
    /// Path of the place in the source.
    path: BString,
    /// The part of the path within the file.
    in_file: BString,
    /// Whether the user gave several places.
    pub is_one_of_several: bool,
}

/// Splits `SOURCE[:path]` at the last colon that leaves the name of an existing file or folder. After a file, a slash
/// separates as well, since shells complete names that way. An address is split without a look.
pub(super) fn split(text: &OsStr) -> (PathBuf, BString) {
    let bytes = text.as_bytes();
    let source = |at: usize| Path::new(OsStr::from_bytes(&bytes[..at]));
    if is_address(Path::new(text)) {
        return split_address(bytes);
    }
    if source(bytes.len()).exists() {
        return (text.into(), BString::default());
    }
    let is_source = |at: &usize| match bytes[*at] {
        b':' => source(*at).exists(),
        b'/' => source(*at).is_file(),
        _ => false,
    };
    match (0..bytes.len()).rev().find(is_source) {
        Some(at) => (source(at).into(), bytes[at + 1..].trim_with(|character| character == '/').into()),
        None => (text.into(), BString::default()),
    }
}

/// Splits `ADDRESS[:path]` at the last colon behind a usual name of a file, or behind a folder. Names of objects may
/// have colons, as times do: so only if nothing has such a name, any colon counts.
fn split_address(text: &[u8]) -> (PathBuf, BString) {
    let source = |end: usize| Path::new(OsStr::from_bytes(&text[..end]));
    // The first colons stand before the name of a host, and before its port.
    let colons = || (0..text.len()).rev().filter(|at| text[*at] == b':' && source(*at).iter().nth(2).is_some());
    let is_usual = |end: usize| text[..end].ends_with(b"/") || is_usual_name(&text[..end]);
    let usual = colons().find(|at| is_usual(*at));
    match usual.or_else(|| colons().next().filter(|_| !is_usual(text.len()))) {
        Some(at) => (source(at).into(), text[at + 1..].trim_with(|character| character == '/').into()),
        None => (source(text.len()).into(), BString::default()),
    }
}

/// The name of `SOURCE[:path]` in lines of progress, without the folder of the source.
pub(super) fn short_name(text: &OsStr) -> String {
    let (source, path) = split(text);
    let source = source.file_name().unwrap_or(source.as_os_str()).to_string_lossy();
    if path.is_empty() { source.into_owned() } else { format!("{source}:{path}") }
}

/// The error for a source that cannot be opened; for a missing one, with a suggestion.
pub(super) fn missing(error: OpenError) -> Error {
    match error.meant() {
        meant if meant.is_empty() => error.into(),
        meant => Error::Usage(format!("{error}{meant}")),
    }
}

impl Place {
    /// Looks up a place.
    ///
    /// # Errors
    /// If the source cannot be opened, or has no such name.
    pub fn open(text: &OsStr, session: Arc<Session>, interrupt: &Interrupt) -> Result<Self, Error> {
        let (source, path) = split(text);
        let name = text.to_string_lossy().into_owned();
        if session.opener.is_folder(&source) {
            allow_open_files();
        }
        let root = session::root(&session, std::slice::from_ref(&source), interrupt).map_err(missing)?;
        Self::below_root(root, (source, path), name, session, interrupt)
    }

    /// Looks up the dataset that several files and folders have at one path.
    ///
    /// # Errors
    /// If a source does not exist, or no file has a table there.
    pub fn of_many(
        sources: &[&OsStr],
        table: &str,
        session: Arc<Session>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        allow_open_files();
        let paths: Vec<PathBuf> = sources.iter().map(PathBuf::from).collect();
        let memo = StatMemo::default().until(interrupt);
        let root = memo.scope(|| session::datasets(&session, &paths)).map_err(missing)?;
        let path = table.trim_matches('/');
        // `%2F` stands for the table that each root group is itself.
        let path = if path.is_empty() { "%2F" } else { path };
        // The root is held, since it keeps the findings on files.
        let found =
            Self::below_root(root.clone(), (PathBuf::new(), path.into()), table.to_owned(), session.clone(), interrupt);
        found.map_err(|error| {
            let unread = session.of_datasets();
            let unread = unread.first().map(|(_, finding)| format!("; {}", finding.found)).unwrap_or_default();
            let none = "none of the files has such a table";
            let said = error.to_string().replace(&session::Error::NotFound.to_string(), none);
            Error::Usage(format!("--table {said}{unread}"))
        })
    }

    fn below_root(
        root: Spot,
        (source, path): (PathBuf, BString),
        name: String,
        session: Arc<Session>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let FollowedPath { spot, above, names } =
            walk::follow(root, &path, interrupt).map_err(|astray| match astray {
                // The directory of selections cannot be listed, and has logged the error in the condition.
                Astray::NotFound(spot, part) => {
                    match session.errors.last().filter(|_| matches!(spot, Spot::Where(_) | Spot::Selection(_))) {
                        Some(why) => Error::Usage(why),
                        None => {
                            let (error, meant) =
                                (session::Error::NotFound, meant(&spot, &part.to_str_lossy(), interrupt));
                            Error::Usage(format!("{name}: {error}{meant}"))
                        }
                    }
                }
                Astray::Nowhere(part) => {
                    Error::Usage(format!("{name}: {} leads nowhere", printable(&part.to_str_lossy())))
                }
                Astray::Failed(error) => Error::Tree { path: name.clone(), error: error.into() },
            })?;
        let path = bstr::join("/", &names).into();
        let file = above.iter().chain([&spot]).position(|spot| spot.source().is_some());
        let in_file = bstr::join("/", file.and_then(|file| names.get(file..)).unwrap_or_default()).into();
        Ok(Self { session, spot, name, source, above, path, in_file, is_one_of_several: false })
    }

    /// Path of the source.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The last name in the place's path; `None` for a whole source.
    pub fn last_name(&self) -> Option<String> {
        let last = self.path.rsplit(|byte| *byte == b'/').next().filter(|last| !last.is_empty())?;
        Some(last.to_str_lossy().into_owned())
    }

    /// Whether the place is a directory.
    pub fn is_directory(&self) -> bool {
        self.spot.kind() == EntryKind::Directory
    }

    /// Whether the place is a whole source.
    pub fn is_whole(&self) -> bool {
        self.path.is_empty()
    }

    /// The path of the place within its file.
    pub fn in_file(&self) -> &BStr {
        self.in_file.as_bstr()
    }

    /// The path, within its file, of the directory at `below` this place.
    pub fn path_in_file(&self, below: &str) -> String {
        let path = self.in_file.to_str_lossy();
        format!("/{}", if below.is_empty() { path.into_owned() } else { tables::below(&path, below) })
    }

    /// Whether the place is a folder of files, not a directory within a file.
    pub fn is_folder(&self) -> bool {
        self.spot.is_folder()
    }

    /// The name of the nearest directory above for which `is_it` is true, or else of the source.
    pub fn name_above(&self, is_it: impl Fn(&Spot) -> bool) -> String {
        let found = self.above.iter().rposition(is_it).unwrap_or(0);
        let names: Vec<&[u8]> = self.path.split(|byte| *byte == b'/').take(found).collect();
        let (source, path) = (self.source.display(), BString::from(bstr::join("/", names)));
        if path.is_empty() { source.to_string() } else { format!("{source}:{path}") }
    }

    /// Says how much a reader of all values may fetch of objects in stores, which may cost money.
    pub fn say_fetched(&self) {
        let opened = self.session.opened();
        let objects = opened.iter().filter(|opened| is_address(opened.path()));
        let most: u64 = objects.map(|opened| opened.opening().source().identity().size).sum();
        if most > 0 {
            say!("hepfs: {}: fetches up to {}", printable(&self.name), words::bytes(most));
        }
    }

    /// Wraps an error as one about this place.
    pub fn failed(&self, error: session::Error) -> Error {
        Error::Tree { path: self.name.clone(), error: error.into() }
    }

    /// The name of `path` below this place, usable as an argument: within the file `source`, if the place is a folder,
    /// otherwise within the place.
    pub fn below(&self, source: Option<&Path>, path: &str) -> String {
        let is_in_folder = self.spot.source().is_none();
        let (name, divider) = match source {
            Some(source) if is_in_folder => (source.display().to_string(), ':'),
            _ => (self.name.trim_end_matches(['/', ':']).to_owned(), if self.path.is_empty() { ':' } else { '/' }),
        };
        if path.is_empty() { name } else { format!("{name}{divider}{path}") }
    }

    /// Prefix of lines about a file of this place: the file's name, if several sources or a folder were given.
    pub fn prefix(&self, source: Option<&Path>) -> String {
        let is_in_folder = self.spot.source().is_none();
        if self.is_one_of_several || is_in_folder {
            format!("{}: ", printable(&self.below(source, "")))
        } else {
            String::new()
        }
    }
}

/// Suggestions for a missing name: files of a dataset of that name, or a similar name.
fn meant(directory: &Spot, name: &str, interrupt: &Interrupt) -> String {
    let Ok(children) = directory.children(interrupt) else { return String::new() };
    let names: Vec<_> = children.iter().map(|entry| Cow::from(entry.name.to_string())).collect();
    let is_of_it = |known: &&Cow<str>| known.strip_prefix(name).is_some_and(|suffix| suffix.starts_with('.'));
    let files: Vec<&str> = names.iter().filter(is_of_it).map(AsRef::as_ref).collect();
    // The name of an array in the file, without suffix, counts as well.
    let stems = names.iter().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect::<Vec<_>>();
    if files.is_empty() {
        did_you_mean(name, names.iter().map(AsRef::as_ref).chain(stems))
    } else {
        format!(" (there are {})", files.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_path_begins_after_the_last_colon_of_a_file_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a:b.h5");
        std::fs::write(&file, "").unwrap();
        let text = file.display().to_string();
        let split = |text: &str| split(text.as_ref());
        assert_eq!(split(&text), (file.clone(), "".into()));
        assert_eq!(split(&format!("{text}:run/columns")), (file.clone(), "run/columns".into()));
        assert_eq!(split(&format!("{text}/run/")), (file, "run".into()));
        assert_eq!(split("none:x"), ("none:x".into(), "".into()));
    }

    #[test]
    fn the_path_in_an_object_begins_after_the_last_colon_behind_the_host() {
        for (text, source, path) in [
            ("s3://bucket/runs/a.h5", "s3://bucket/runs/a.h5", ""),
            ("s3://bucket/a.h5:/run/t", "s3://bucket/a.h5", "run/t"),
            ("http://host:80/a.h5", "http://host:80/a.h5", ""),
            ("http://host:80/a:b.h5:t", "http://host:80/a:b.h5", "t"),
            ("s3://bucket/at_12:30.h5", "s3://bucket/at_12:30.h5", ""),
            ("s3://bucket/at_12:30.h5:a.h5/t", "s3://bucket/at_12:30.h5", "a.h5/t"),
            ("s3://bucket/at_12:30:", "s3://bucket/at_12:30", ""),
            ("s3://bucket/runs/:a.h5/t", "s3://bucket/runs/", "a.h5/t"),
        ] {
            assert_eq!(split(text.as_ref()), (source.into(), path.into()));
        }
    }
}
