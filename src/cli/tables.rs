//! Tables below a place.

use std::sync::Arc;

use super::Error;
use super::place::Place;
use crate::fs::tree::Opened;
use crate::fs::{Kind, NodeRef};
use crate::source::Interrupt;
use crate::table::Table;

/// Deepest directory looked into.
const DEEPEST: usize = 64;

/// What lies below a place.
#[derive(Default)]
pub(super) struct Below {
    /// Tables.
    pub tables: Vec<Arc<Table>>,
    /// Directories that cannot be listed, with the reason.
    pub failures: Vec<(String, String)>,
    /// Held open: a folder drops a file that is not held, and its findings with it.
    files: Vec<Arc<Opened>>,
}

/// All tables at and below a place.
///
/// # Errors
/// Where the place is a file.
pub(super) fn below(place: &Place, interrupt: &Interrupt) -> Result<Below, Error> {
    if !place.is_directory() {
        return Err(Error::Usage(format!("{} is no directory; give a group, a table or a file", place.name)));
    }
    let mut walk = Walk { below: Below::default(), place, interrupt };
    walk.directory(&place.node, "", 0);
    Ok(walk.below)
}

struct Walk<'a> {
    below: Below,
    place: &'a Place,
    interrupt: &'a Interrupt,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &NodeRef, path: &str, depth: usize) {
        if self.interrupt.is_raised() || depth >= DEEPEST {
            return;
        }
        let children = match directory.children(self.interrupt) {
            Ok(children) => children,
            Err(error) => return self.below.failures.push((path.to_owned(), error.to_string())),
        };
        if let Some(file) = self.place.context.newest()
            && !self.below.files.last().is_some_and(|last| Arc::ptr_eq(last, &file))
        {
            self.below.files.push(file);
        }
        // Its own directory, and `columns/` in it.
        if let Some(table) = directory.table()
            && !self.below.tables.iter().any(|known| Arc::ptr_eq(known, &table))
        {
            self.below.tables.push(table);
        }
        for entry in children.iter().filter(|entry| entry.kind == Kind::Directory) {
            let name = if path.is_empty() { entry.name.to_string() } else { format!("{path}/{}", entry.name) };
            match directory.lookup(&entry.name, self.interrupt) {
                Ok(node) if node.repeats() => {}
                Ok(node) => self.directory(&node, &name, depth + 1),
                Err(error) => self.below.failures.push((name, error.to_string())),
            }
        }
    }
}
