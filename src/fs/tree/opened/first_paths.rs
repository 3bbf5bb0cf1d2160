//! The path under which a group with several hard links is shown as a directory: its first, breadth first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bstr::BString;

use crate::catalogue::{Object, ObjectId, Target, join};
use crate::dialects::{Dialects, Here};
use crate::fs::Error;
use crate::source::Interrupt;
use crate::store::File;

/// Groups visited at most when the file has groups with several names.
const MOST_GROUPS: usize = 1 << 20;

/// For each group that is shown, the group above it and the name of the link between: a tree of first names.
#[derive(Debug, Default)]
pub(super) struct FirstPaths(OnceLock<HashMap<ObjectId, (ObjectId, BString)>>);

impl FirstPaths {
    /// Names of the links from the root to a group; `None` where it is not shown. The first call walks the file.
    ///
    /// # Errors
    /// When the request was interrupted.
    pub fn of(
        &self,
        id: ObjectId,
        file: &Arc<File>,
        dialects: Dialects,
        interrupt: &Interrupt,
    ) -> Result<Option<VecDeque<BString>>, Error> {
        let root = file.info().root;
        let above = match self.0.get() {
            Some(above) => above,
            None => {
                let above = walk(file, dialects, interrupt)?;
                self.0.get_or_init(|| above)
            }
        };
        let (mut at, mut names) = (id, VecDeque::new());
        while at != root {
            let Some((group, name)) = above.get(&at) else { return Ok(None) };
            names.push_front(name.clone());
            at = *group;
        }
        Ok(Some(names))
    }
}

fn walk(
    file: &Arc<File>,
    dialects: Dialects,
    interrupt: &Interrupt,
) -> Result<HashMap<ObjectId, (ObjectId, BString)>, Error> {
    let root = file.info().root;
    let mut above = HashMap::new();
    let mut queue = VecDeque::from([(root, "/".to_owned())]);
    while let Some((id, path)) = queue.pop_front() {
        interrupt.check()?;
        let Ok(group) = file.group(id, interrupt) else { continue };
        let (_, claims) = dialects.claims(&Here { path: &path, group: &group });
        for link in group.links.iter().filter(|link| !claims.members.contains_key(&link.name)) {
            if let Target::Hard(Object::Group { id: below, .. }) = &link.target
                && *below != root
                && !above.contains_key(below)
                && above.len() < MOST_GROUPS
            {
                above.insert(*below, (id, link.name.clone()));
                queue.push_back((*below, join(&path, &link.name)));
            }
        }
    }
    // The last group may be the one that was not listed for it.
    interrupt.check()?;
    Ok(above)
}
