//! Walks everything at and below a place, for all commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Error;
use super::place::Place;
use super::progress::Watched;
use crate::activity::Unit;
use crate::session::datasets::LeftOut;
pub(super) use crate::session::walk::{Met, below};
use crate::session::{self, OpenedSource, walk};
use crate::source::Interrupt;
use crate::table::{Finding, SearchIndex, Severity, Table};
use crate::views::printable;

/// Most tables that a message names.
pub(super) const MOST_NAMED: usize = 20;

/// Most left-out files that a message names.
const MOST_LEFT_OUT: usize = 3;

/// A line about `path`.
pub(super) fn about(path: &str, what: &str) -> String {
    printable(&if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") })
}

/// Calls `see` for each directory at and below a place, parents first; `see` returns whether to enter it. An interrupt
/// ends the walk.
///
/// # Errors
/// If the place is a file, or cannot be listed; those of `see`.
pub(super) fn walk(
    place: &Place,
    watched: &Watched,
    see: &mut dyn FnMut(&Met) -> Result<bool, Error>,
) -> Result<(), Error> {
    let interrupt = &watched.interrupt;
    if !place.is_directory() {
        return Err(Error::Usage(format!("{} is not a directory; name a group, a table or a file", place.name)));
    }
    place.spot.children(interrupt).map_err(|error| place.failed(error))?;
    watched.step(Unit::Objects, 0);
    walk::walk(&place.spot, interrupt, &mut |met| {
        watched.add(1);
        see(met)
    })
}

/// The contents of one file, or of a folder that cannot be listed.
pub(super) struct InFile {
    /// Path of the file or folder.
    pub source: PathBuf,
    /// Prefix of lines about the file or folder.
    pub prefix: String,
    /// Tables, with their paths below the place or the file.
    pub tables: Vec<(String, Arc<Table>)>,
    /// Directories that cannot be listed, with the reason.
    pub failures: Vec<(String, String)>,
    /// Findings that do not belong to an open file.
    pub findings: Vec<Finding>,
    /// Kept alive: a folder drops a file that nobody holds, and its findings with it.
    pub opened: Option<Arc<OpenedSource>>,
}

impl InFile {
    /// The search indexes of the file's tables.
    pub fn indexes(&self) -> impl Iterator<Item = (&Table, &SearchIndex)> {
        self.tables.iter().flat_map(|(_, table)| table.indexes.iter().map(|index| (table.as_ref(), index)))
    }
}

/// All tables at and below a place, file by file. With `examine`, also locates all stored bytes, so that damage comes
/// to light.
///
/// # Errors
/// If the place is a file, or cannot be listed.
pub(super) fn find(place: &Place, examine: bool, watched: &Watched) -> Result<Vec<InFile>, Error> {
    let mut files: Vec<InFile> = Vec::new();
    walk(place, watched, &mut |met| {
        let folder = || PathBuf::from(place.below(None, met.path));
        let source = met.source.map_or_else(folder, Path::to_owned);
        let is_new = files.last().is_none_or(|file| file.source != source);
        if is_new && (met.source.is_some() || met.listed.is_err()) {
            let prefix = place.prefix(met.source);
            files.push(InFile {
                source,
                prefix,
                tables: Vec::new(),
                failures: Vec::new(),
                findings: Vec::new(),
                opened: None,
            });
        }
        let Some(file) = files.last_mut() else { return Ok(true) };
        match &met.listed {
            Ok((directory, _)) => {
                if is_new && met.source.is_some() {
                    file.opened = directory.opened();
                }
                file.tables.extend(met.table().map(|table| (met.path.to_owned(), table)));
                if let Some(directory) = directory.directory().filter(|_| examine) {
                    let failures = &mut file.failures;
                    directory.examine(&mut |path, reason| failures.push((path.to_owned(), reason)), &watched.interrupt);
                }
            }
            Err(reason) => file.failures.push((met.path.to_owned(), (*reason).to_owned())),
        }
        Ok(true)
    })?;
    Ok(files)
}

/// Names directories that cannot be listed on standard error. Returns whether there are any.
pub(super) fn report_failures(files: &[InFile]) -> bool {
    for (file, (path, reason)) in files.iter().flat_map(|file| file.failures.iter().map(move |one| (file, one))) {
        say!("hepfs: {}{}", file.prefix, about(path, reason));
    }
    files.iter().any(|file| !file.failures.is_empty())
}

/// The table of all files, if a place is a dataset; `None`: another place.
///
/// # Errors
/// If the files cannot be searched.
pub(super) fn dataset(place: &Place, interrupt: &Interrupt) -> Result<Option<Arc<Table>>, Error> {
    match place.spot.whole_dataset(interrupt) {
        Ok(table) => left_out(place, interrupt).map(|_| Some(table)),
        Err(session::Error::NotFound) => Ok(None),
        Err(error) => Err(place.failed(error)),
    }
}

/// Names the files that a dataset leaves out on standard error, and returns them; none for another place.
///
/// # Errors
/// If the files cannot be searched.
pub(super) fn left_out(place: &Place, interrupt: &Interrupt) -> Result<Arc<[LeftOut]>, Error> {
    let files = place.spot.dataset(interrupt).map_err(|error| place.failed(error))?;
    let Some(files) = files else { return Ok(Arc::default()) };
    let (count, all) = (files.left_out.len(), files.left_out.len() + files.count);
    if count > 0 {
        let named: Vec<String> =
            files.left_out.iter().take(MOST_LEFT_OUT).map(|one| printable(&one.to_string())).collect();
        let more = count.saturating_sub(MOST_LEFT_OUT);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        say!("hepfs: {count} of {all} files are left out of {}: {}{more}", printable(&place.name), named.join("; "));
    }
    Ok(files.left_out)
}

/// The contents of a dataset, whose table spans several files.
pub(super) fn in_dataset(place: &Place, table: Arc<Table>, interrupt: &Interrupt) -> Result<InFile, Error> {
    let files = place.spot.dataset(interrupt).map_err(|error| place.failed(error))?;
    let left_out = files.map(|files| files.left_out).unwrap_or_default();
    let (unread, others): (Vec<_>, Vec<_>) =
        left_out.iter().partition(|one| one.finding.rule.severity == Severity::Error);
    let findings = others.into_iter().map(|one| Finding { path: one.file.to_string(), ..one.finding.clone() });
    Ok(InFile {
        source: PathBuf::from(&place.name),
        prefix: String::new(),
        failures: unread.into_iter().map(|one| (one.file.to_string(), one.reason().to_owned())).collect(),
        findings: findings.chain(table.findings.iter().cloned()).collect(),
        tables: vec![(String::new(), table)],
        opened: None,
    })
}

/// The table at a place; with `only`, also the only one below it, or the only declared one.
///
/// # Errors
/// If the place has no table: [`Error::Tables`] names those below it.
pub(super) fn table_of(place: &Place, only: bool, watched: &Watched) -> Result<Arc<Table>, Error> {
    let interrupt = &watched.interrupt;
    if !place.is_directory() {
        return Err(Error::Usage(format!("{}: not a table; name a table, a group or a file", place.name)));
    }
    // Listing the group makes its table known.
    place.spot.children(interrupt).map_err(|error| place.failed(error))?;
    if let Some(table) = place.spot.table() {
        return Ok(table);
    }
    if let Some(table) = dataset(place, interrupt)? {
        return Ok(table);
    }
    let files = find(place, false, watched)?;
    let tables = || files.iter().flat_map(|file| file.tables.iter().map(move |(path, table)| (file, path, table)));
    let (what, count) = (&place.name, tables().count());
    // Declared tables take precedence over guessed ones.
    let mut declared = tables().filter(|(_, _, table)| table.recognised_by == "declaration");
    if let (true, Some((_, _, table)), None) = (only, declared.next(), declared.next()) {
        return Ok(table.clone());
    }
    let mut tables_of = tables();
    match (tables_of.next(), count) {
        (None, _) => {
            let failed = files.iter().find_map(|file| file.failures.first());
            let why = failed.map(|(path, reason)| format!("; {path}: {reason}")).unwrap_or_default();
            Err(Error::Usage(format!("{what}: there is no table in it, as `hepfs info` shows{why}")))
        }
        (Some((_, _, table)), 1) if only => Ok(table.clone()),
        _ => {
            let line = |(file, path, table): (&InFile, &String, &Arc<Table>)| {
                format!("{}  {} rows", printable(&place.below(Some(&file.source), path)), table.rows)
            };
            let mut lines: Vec<String> = tables().take(MOST_NAMED).map(line).collect();
            lines.extend((count > MOST_NAMED).then(|| format!("… and {} more", count - MOST_NAMED)));
            Err(Error::Tables { what: format!("{what}: not a table; name one of its tables:"), lines })
        }
    }
}
