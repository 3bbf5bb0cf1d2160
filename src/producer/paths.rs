//! Finds the objects at HDF5 paths.

use std::sync::Arc;

use bstr::BString;

use super::Error;
use crate::catalogue::{Group, Object};
use crate::source::Interrupt;
use crate::store::File;

/// Lists the group at an HDF5 path.
///
/// # Errors
/// No group lies there, or its path as shown has bytes that are not UTF-8.
pub(super) fn group_at(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> Result<Group, Error> {
    let refused = |reason: String| Error::refused(path, reason);
    let listed = |id| file.group(id, interrupt).map_err(|error| refused(error.to_string()));
    let mut group = listed(file.info().root)?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Some(Object::Group { id, .. }) = group.link(part.as_bytes()).and_then(|link| link.target.object()) else {
            return Err(refused(format!("no group {part:?} on the path")));
        };
        if id.file != 0 {
            return Err(refused("lies in another file".into()));
        }
        group = listed(*id)?;
    }
    Ok(group)
}

/// Whether an object lies at this HDF5 path, or one that is not a group lies on the way to it.
///
/// # Errors
/// A group on the way cannot be listed.
pub fn is_there(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> Result<bool, Error> {
    let listed = |id| file.group(id, interrupt).map_err(|error| Error::refused(path, error.to_string()));
    let mut group = listed(file.info().root)?;
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let Some(link) = group.link(part.as_bytes()) else { return Ok(false) };
        match link.target.object() {
            Some(Object::Group { id, .. }) if parts.peek().is_some() => group = listed(*id)?,
            _ => return Ok(true),
        }
    }
    Ok(true)
}

/// Path of a member of a group, byte for byte.
pub(super) fn member(group: &str, name: &BString) -> Vec<u8> {
    let slash: &[u8] = if group == "/" { b"" } else { b"/" };
    [group.as_bytes(), slash, name].concat()
}
