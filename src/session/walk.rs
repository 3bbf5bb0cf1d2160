//! Follows paths, and walks directories to find tables.

use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::{Children, EntryKind, Error, Spot};
use crate::source::Interrupt;
use crate::table::Table;

/// Most symbolic links followed along a path.
const MOST_LINKS: usize = 40;

/// Deepest directory to enter.
const DEEPEST: usize = 64;

/// The end of a path, and the way to it.
pub(crate) struct FollowedPath {
    pub spot: Spot,
    /// The directories on the way to it, the root first.
    pub above: Vec<Spot>,
    /// Names from the root to it, symbolic links resolved.
    pub names: Vec<BString>,
}

/// Why a path cannot be followed.
pub(crate) enum Astray {
    /// The directory has no entry of this name.
    NotFound(Spot, BString),
    /// The symbolic link of this name leads out of the source, or in a circle.
    Nowhere(BString),
    /// Something on the way cannot be read.
    Failed(Error),
}

/// Follows a path from a root, symbolic links included.
///
/// # Errors
/// See [`Astray`].
pub(crate) fn follow(root: Spot, path: &[u8], interrupt: &Interrupt) -> Result<FollowedPath, Astray> {
    let (mut spot, mut above, mut names, mut links) = (root, Vec::new(), Vec::<BString>::new(), 0);
    let mut parts: Vec<BString> = path.rsplit(|byte| *byte == b'/').map(BString::from).collect();
    while let Some(part) = parts.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                spot = above.pop().unwrap_or(spot);
                names.pop();
                continue;
            }
            _ => {}
        }
        let found = match spot.lookup(part.as_bstr(), interrupt) {
            Ok(found) => found,
            Err(Error::NotFound) => return Err(Astray::NotFound(spot, part)),
            Err(error) => return Err(Astray::Failed(error)),
        };
        let Spot::Link(_, target) = found else {
            above.push(std::mem::replace(&mut spot, found));
            names.push(part);
            continue;
        };
        links += 1;
        // hepfs makes relative links only.
        if links > MOST_LINKS || target.starts_with(b"/") {
            return Err(Astray::Nowhere(part));
        }
        parts.extend(target.rsplit(|byte| *byte == b'/').map(BString::from));
    }
    Ok(FollowedPath { spot, above, names })
}

/// A directory on a walk.
pub(crate) struct Met<'a> {
    /// The file that it belongs to; `None` for a folder.
    pub source: Option<&'a Path>,
    /// Its path below the start of the walk; below the file, if the walk started at a folder.
    pub path: &'a str,
    /// The directory and its names, or the reason why it cannot be listed.
    pub listed: Result<(&'a Spot, &'a Children), &'a str>,
}

impl Met<'_> {
    /// The table that the directory shows; that of `columns/` only if the walk started there.
    pub fn table(&self) -> Option<Arc<Table>> {
        let (spot, _) = self.listed.as_ref().ok()?;
        spot.table().filter(|_| self.path.is_empty() || spot.directory().is_some())
    }
}

/// The path of a name in the directory at `path`.
pub(crate) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// Calls `see` for each directory at and below a spot, parents first; `see` returns whether to enter it. An interrupt
/// ends the walk.
///
/// # Errors
/// Those of `see`.
pub(crate) fn walk<E>(
    spot: &Spot,
    interrupt: &Interrupt,
    see: &mut dyn FnMut(&Met) -> Result<bool, E>,
) -> Result<(), E> {
    directory(spot, "", 0, interrupt, see)
}

fn directory<E>(
    spot: &Spot,
    path: &str,
    depth: usize,
    interrupt: &Interrupt,
    see: &mut dyn FnMut(&Met) -> Result<bool, E>,
) -> Result<(), E> {
    let source = spot.source();
    let source = source.as_deref();
    let children = match spot.children(interrupt) {
        _ if interrupt.is_raised() => return Ok(()),
        Ok(_) if depth > DEEPEST => Err(format!("more than {DEEPEST} directories deep: not looked into")),
        listed => listed.map_err(|error| error.to_string()),
    };
    let listed = match &children {
        Ok(children) => Ok((spot, children)),
        // An error of opening a file begins with its path: the caller names the file already.
        Err(reason) => {
            Err(source.and_then(|source| reason.strip_prefix(&format!("{}: ", source.display()))).unwrap_or(reason))
        }
    };
    if !see(&Met { source, path, listed })? {
        return Ok(());
    }
    for entry in children.iter().flat_map(|children| children.iter()).filter(|entry| entry.kind == EntryKind::Directory)
    {
        let below = below(path, &entry.name.to_string());
        match spot.lookup(&entry.name, interrupt) {
            Ok(child) if child.repeats() => {}
            // Paths begin anew at each file of a folder.
            Ok(child) if source.is_none() && child.source().is_some() => {
                directory(&child, "", depth + 1, interrupt, see)?
            }
            Ok(child) => directory(&child, &below, depth + 1, interrupt, see)?,
            Err(_) if interrupt.is_raised() => return Ok(()),
            Err(error) => {
                see(&Met { source, path: &below, listed: Err(&error.to_string()) })?;
            }
        }
    }
    Ok(())
}
