//! The path at which a group with several hard links is shown as a directory: the first in breadth-first order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bstr::BString;

use super::OpenedSource;
use crate::catalogue::{Object, ObjectId, Target, join};
use crate::dialects::{Elsewhere, Here, Made};
use crate::session::Error;
use crate::source::Interrupt;
use crate::store::File;

/// Most groups visited in a file that has groups with several names.
const MOST_GROUPS: usize = 1 << 20;

/// For each shown group, the group above and the link names between: a tree of first paths.
#[derive(Debug, Default)]
pub(super) struct FirstPaths(OnceLock<Above>);

/// The root counts as the group above one that is shown elsewhere than at its link.
type Above = HashMap<ObjectId, (ObjectId, Vec<BString>)>;

impl FirstPaths {
    /// Link names from the root to a group; `None`: the group is not shown. The first call walks the file.
    ///
    /// # Errors
    /// If the request was interrupted.
    pub fn of(
        &self,
        id: ObjectId,
        opened: &OpenedSource,
        interrupt: &Interrupt,
    ) -> Result<Option<VecDeque<BString>>, Error> {
        let file = opened.file()?;
        let root = file.info().root;
        let above = match self.0.get() {
            Some(above) => above,
            None => {
                let above = walk(opened, file, interrupt)?;
                self.0.get_or_init(|| above)
            }
        };
        let (mut at, mut names) = (id, VecDeque::new());
        while at != root {
            let Some((group, links)) = above.get(&at) else { return Ok(None) };
            links.iter().rev().for_each(|link| names.push_front(link.clone()));
            at = *group;
        }
        Ok(Some(names))
    }
}

fn walk(opened: &OpenedSource, file: &Arc<File>, interrupt: &Interrupt) -> Result<Above, Error> {
    let root = file.info().root;
    let mut above = HashMap::new();
    let mut queue = VecDeque::from([(root, "/".to_owned())]);
    while let Some((id, path)) = queue.pop_front() {
        interrupt.check()?;
        let Ok(group) = file.group(id, interrupt) else { continue };
        let claims = opened.claims(&Here { path: &path, group: &group, file, interrupt });
        let mut found: Vec<(ObjectId, (ObjectId, Vec<BString>), String)> = Vec::new();
        for link in group.links.iter().filter(|link| !claims.members.contains_key(&link.name)) {
            if let Target::Hard(Object::Group { id: below, .. }) = &link.target {
                found.push((*below, (id, vec![link.name.clone()]), join(&path, &link.name)));
            }
        }
        let mut made: VecDeque<&Made> = claims.made.iter().map(|(_, made)| made).collect();
        while let Some(one) = made.pop_front() {
            match one {
                Made::Directory { children, .. } => made.extend(children.iter().map(|(_, made)| made)),
                Made::Group(group @ Elsewhere { id, links, .. }) => {
                    found.push((*id, (root, links.clone()), group.path()))
                }
                Made::Link(_) => {}
            }
        }
        for (below, from, path) in found {
            if below != root && !above.contains_key(&below) && above.len() < MOST_GROUPS {
                above.insert(below, from);
                queue.push_back((below, path));
            }
        }
    }
    // An interrupt may have kept the last group from being listed.
    interrupt.check()?;
    Ok(above)
}
