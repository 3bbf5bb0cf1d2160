//! Versioned HDF5: where the versions of a file are kept (`versioned-hdf5`, `_version_data/versions`).

use std::sync::Arc;

use crate::catalogue::{Fill, Group, Object, attribute};
use crate::source::Interrupt;
use crate::store::File;

/// The group at the root of a file that holds all versions.
const STORE: &str = "_version_data";

/// Whether the group at `path` belongs to a version: the file's root has `_version_data/versions` with the attribute
/// `current_version`, and the path lies below.
pub fn is_in_version(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if (parts.next(), parts.next()) != (Some(STORE), Some("versions")) || parts.next().is_none() {
        return false;
    }
    let member = |group: &Group, name: &str| match group.link(name.as_bytes()).and_then(|link| link.target.object()) {
        Some(Object::Group { id, attributes, .. }) => Some((*id, attribute(attributes, "current_version").is_some())),
        _ => None,
    };
    let root = file.group(file.info().root, interrupt).ok();
    let store = root.and_then(|root| member(&root, STORE)).and_then(|(id, _)| file.group(id, interrupt).ok());
    store.and_then(|store| member(&store, "versions")).is_some_and(|(_, is_marked)| is_marked)
}

/// Whether a fill value is one that the library sets by itself: explicit, and zeros throughout.
pub fn is_own_fill(fill: &Fill) -> bool {
    matches!(fill, Fill::Explicit(element) if element.bytes.iter().all(|byte| *byte == 0))
}
