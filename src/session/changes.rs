//! The list of datasets that differ from an earlier state of their group: a letter, a tab and a path per line, as `git
//! diff --name-status` prints it.

use bstr::ByteSlice;

use super::OpenedSource;
use crate::catalogue::ObjectId;
use crate::dialects::{Changed, Here};
use crate::session::names;
use crate::source::Interrupt;
use crate::store::Error;

/// The lines, sorted by path, with the names of groups and datasets escaped as directory names are.
///
/// # Errors
/// If the group cannot be listed any more, or its datasets cannot be compared.
pub(super) fn text(opened: &OpenedSource, id: ObjectId, path: &str, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let Some(file) = opened.hdf5() else { return Ok(Vec::new()) };
    let group = file.group(id, interrupt).map_err(|error| Error::Hdf5 { path: path.to_owned(), error })?;
    let here = Here { path, group: &group, file, interrupt };
    let Some(dialect) = opened.claims(&here).dialect else { return Ok(Vec::new()) };
    let changes = dialect.changes(&here, id)?;
    let lines = changes.into_iter().map(|change| {
        let path = bstr::join("/", change.path.split_str("/").map(names::encode_directory));
        (path, change.changed)
    });
    let mut lines: Vec<(Vec<u8>, Changed)> = lines.collect();
    lines.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut text = Vec::new();
    for (path, changed) in lines {
        text.push(match changed {
            Changed::Added => b'A',
            Changed::Removed => b'D',
            Changed::Modified => b'M',
        });
        text.push(b'\t');
        text.extend_from_slice(&path);
        text.push(b'\n');
    }
    Ok(text)
}
