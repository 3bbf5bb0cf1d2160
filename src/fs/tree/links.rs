//! Where links lead in the mount: relative symbolic links.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bstr::{BStr, BString};

use super::listing::{COLUMNS, Shown, shown_name};
use super::{Interrupt, Opened};
use crate::catalogue::{Group, Object, ObjectId, Target, join};
use crate::dialects::hep001::{self, Recognised};

/// Finds the targets of the links of one group.
pub(super) struct Resolver<'a> {
    opened: &'a Opened,
    group: &'a Arc<Group>,
    path: &'a str,
    /// The groups from the root down to this one.
    line: &'a [ObjectId],
    interrupt: &'a Interrupt,
    /// Groups on the way to targets.
    visited: RefCell<HashMap<String, Option<Arc<Visited>>>>,
}

/// A group that many links may lead through.
struct Visited {
    group: Arc<Group>,
    /// Its links by name.
    places: HashMap<BString, usize>,
}

impl Visited {
    fn new(group: Arc<Group>) -> Arc<Self> {
        let places = group.links.iter().enumerate().map(|(at, link)| (link.name.clone(), at)).collect();
        Arc::new(Self { group, places })
    }

    fn object(&self, name: &[u8]) -> Option<&Object> {
        self.group.links.get(*self.places.get(BStr::new(name))?)?.target.object()
    }
}

impl<'a> Resolver<'a> {
    pub fn new(
        opened: &'a Opened,
        group: &'a Arc<Group>,
        path: &'a str,
        line: &'a [ObjectId],
        interrupt: &'a Interrupt,
    ) -> Self {
        Self { opened, group, path, line, interrupt, visited: RefCell::default() }
    }

    /// How the target of a link is shown, relative to the directory of the group; `None` where it is shown under the
    /// link's own name, or not at all. An interrupt ends the search with any answer.
    pub fn shown(&self, target: &Target, name: &[u8]) -> Option<Shown> {
        if self.interrupt.is_raised() {
            return None;
        }
        match target {
            // Whatever the link count says, which is the file's word: a group inside itself has no end. Files may lead to each other as well.
            Target::Hard(Object::Group { id, .. })
            | Target::External { object: Some(Object::Group { id, .. }), .. }
                if self.line.contains(id) =>
            {
                let up = self.line.iter().rev().position(|above| above == id).unwrap_or(0);
                Some(Shown::Directory(if up == 0 { ".".into() } else { bstr::join("/", vec![".."; up]).into() }))
            }
            Target::Hard(Object::Group { id, link_count, .. }) if *link_count > 1 => {
                let first = self.opened.first_path(*id, self.interrupt).ok().flatten()?;
                let own = join(self.path, name);
                if first == own { None } else { self.find(first.as_bytes()) }
            }
            Target::Soft { path, object } => {
                object.as_ref()?;
                if path.starts_with(b"/") {
                    return self.find(path);
                }
                let mut absolute = BString::from(self.path);
                absolute.push(b'/');
                absolute.extend_from_slice(path);
                self.find(&absolute)
            }
            _ => None,
        }
    }

    /// Walks an absolute HDF5 path from the root, and says under which names its members are shown.
    fn find(&self, path: &[u8]) -> Option<Shown> {
        let mut shown: Vec<BString> = Vec::new();
        let mut at = "/".to_owned();
        let mut visited = self.visit(&at, self.opened.file().info().root)?;
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").peekable();
        while let Some(part) = parts.next() {
            let (group, object) = (&visited.group, visited.object(part)?);
            let is_table = hep001::recognise(&at, &group.attributes) == Recognised::Table;
            match object {
                Object::Group { id, .. } => {
                    shown.push(shown_name(group, is_table, part, object));
                    at = join(&at, part);
                    if parts.peek().is_none() {
                        break;
                    }
                    visited = self.visit(&at, *id)?;
                }
                Object::Dataset(dataset) if parts.peek().is_none() => {
                    if is_table && dataset.shape.len() == 1 {
                        shown.push(COLUMNS.into());
                    }
                    shown.push(shown_name(group, is_table, part, object));
                    return Some(Shown::Files { stem: self.relative(&shown) });
                }
                _ => return None,
            }
        }
        Some(Shown::Directory(self.relative(&shown)))
    }

    fn visit(&self, path: &str, id: ObjectId) -> Option<Arc<Visited>> {
        if let Some(known) = self.visited.borrow().get(path) {
            return known.clone();
        }
        let group = if path == self.path {
            Some(self.group.clone())
        } else {
            self.opened.file().group(id, self.interrupt).ok().map(Arc::new)
        };
        let group = group.map(Visited::new);
        self.visited.borrow_mut().insert(path.to_owned(), group.clone());
        group
    }

    /// The way from the group's own directory to the names `shown` below the root of the file.
    fn relative(&self, shown: &[BString]) -> BString {
        let depth = self.path.split('/').filter(|part| !part.is_empty()).count();
        let mut way = vec![BString::from(".."); depth];
        way.extend(shown.iter().cloned());
        if way.is_empty() { ".".into() } else { bstr::join("/", way).into() }
    }
}
