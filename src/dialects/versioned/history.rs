//! Reads the versions of a file, which form a tree, since each version names its predecessor.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bstr::{BString, ByteSlice};

use super::rules;
use super::{BELOW, STORE, finding};
use crate::calendar;
use crate::catalogue::{Attribute, Group, Object, ObjectId, Target, join};
use crate::dialects::Elsewhere;
use crate::dialects::attributes::{boolean, integer, text};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Finding;

/// Name of the group in [`STORE`] that has a group for each version.
const VERSIONS: &str = "versions";

const CURRENT_VERSION: &str = "current_version";
const DATA_VERSION: &str = "data_version";
const PREVIOUS: &str = "prev_version";
const COMMITTED: &str = "committed";
const TIMESTAMP: &str = "timestamp";
/// The attribute of a table of hashes that states how many of its records are in use.
pub(super) const LARGEST_INDEX: &str = "largest_index";

/// Names of the attributes that the library uses.
pub(super) const ATTRIBUTES: [&str; 8] =
    [CURRENT_VERSION, DATA_VERSION, PREVIOUS, COMMITTED, TIMESTAMP, "raw_data", "chunks", LARGEST_INDEX];

/// Name of the predecessor of first versions, which is empty.
const FIRST: &str = "__first_version__";

/// The newest `data_version`. Before it, different chunks could have equal hashes.
pub(super) const NEWEST_DATA: i128 = 4;

/// Attoseconds in a microsecond.
const MICROSECOND: i128 = calendar::SECOND / 1_000_000;

/// The group of all versions.
pub(super) struct VersionsGroup {
    pub id: ObjectId,
    pub attributes: Arc<[Attribute]>,
}

/// A committed version.
#[derive(Debug)]
pub(super) struct Version {
    pub id: ObjectId,
    pub name: BString,
    /// Name of the version's predecessor. `None`: it is a first version.
    pub previous: Option<BString>,
    /// Time of the commit, in microseconds since 1970, UTC. `None`: it is not stated, or invalid.
    pub time: Option<i64>,
    /// Attributes that the user gave the version.
    pub attributes: Vec<Attribute>,
    /// Number of predecessors. `None`: they go round in a circle.
    depth: Option<usize>,
}

/// The versions of a file.
#[derive(Debug)]
pub(super) struct History {
    /// All versions, sorted by time, then by number of predecessors, then by name.
    pub versions: Vec<Version>,
    /// Name of the current version. `None`: it does not exist.
    current: Option<BString>,
    pub findings: Vec<Finding>,
}

impl VersionsGroup {
    /// Finds the group of all versions below this root group. `None`: the file is not a versioned one.
    pub fn of(file: &Arc<File>, root: &Group, interrupt: &Interrupt) -> Option<Self> {
        let store = file.group(member(root, STORE)?.0, interrupt).ok()?;
        let (id, attributes) = member(&store, VERSIONS)?;
        let is_marked = attributes.iter().any(|attribute| attribute.name == CURRENT_VERSION);
        is_marked.then(|| Self { id, attributes: attributes.clone() })
    }

    /// Finds the group of all versions of a file. `None`: the file is not a versioned one.
    pub fn in_file(file: &Arc<File>, interrupt: &Interrupt) -> Option<Self> {
        Self::of(file, &file.group(file.info().root, interrupt).ok()?, interrupt)
    }

    /// The version of the rules by which the library recognised equal chunks, which the file states.
    pub fn data_version(&self) -> i128 {
        integer(&self.attributes, DATA_VERSION).unwrap_or(1)
    }
}

/// Finds the group to which a hard link leads: its identity, and its attributes.
pub(super) fn member<'a>(group: &'a Group, name: &str) -> Option<(ObjectId, &'a Arc<[Attribute]>)> {
    match &group.link(name.as_bytes())?.target {
        Target::Hard(Object::Group { id, attributes, .. }) => Some((*id, attributes)),
        _ => None,
    }
}

impl Version {
    /// Where the group of the version is shown from.
    pub fn place(&self) -> Elsewhere {
        let links = vec![STORE.into(), VERSIONS.into(), self.name.clone()];
        Elsewhere { id: self.id, links, mtime: self.time.and_then(system_time) }
    }
}

/// Converts microseconds since 1970 to an instant. `None`: the system cannot represent it.
fn system_time(microseconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_micros(microseconds.unsigned_abs());
    match microseconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
        _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
    }
}

/// HDF5 path of a version.
fn path(name: &BString) -> String {
    join(BELOW.trim_end_matches('/'), name)
}

impl History {
    /// Reads the versions in the group of all versions.
    pub fn of(file: &Arc<File>, kept: &VersionsGroup, interrupt: &Interrupt) -> Self {
        let mut history = Self { versions: Vec::new(), current: None, findings: Vec::new() };
        match file.group(kept.id, interrupt) {
            Ok(group) => group.links.iter().for_each(|link| history.add(&link.name, &link.target)),
            Err(error) => {
                let rule = &rules::LISTED;
                history.findings.push(finding(BELOW.trim_end_matches('/'), rule, error.to_string()));
            }
        }
        history.follow();
        history.versions.sort_by(|a, b| a.order().cmp(&b.order()));
        history.look_at(kept);
        history
    }

    /// The current version, if it exists.
    pub fn current(&self) -> Option<&Version> {
        let name = self.current.as_ref()?;
        self.versions.iter().find(|version| version.name == *name)
    }

    fn add(&mut self, name: &BString, target: &Target) {
        let Target::Hard(Object::Group { id, attributes, .. }) = target else {
            self.findings.push(finding(path(name), &rules::GROUP, "something else: not shown"));
            return;
        };
        if name == FIRST {
            return;
        }
        if boolean(attributes, COMMITTED) != Some(true) {
            let found = "it was not finished: not shown";
            self.findings.push(finding(path(name), &rules::COMMITTED, found));
            return;
        }
        let stated = text(attributes, TIMESTAMP);
        let instant = stated.as_deref().and_then(calendar::instant);
        let time = instant.and_then(|instant| i64::try_from(instant.attoseconds.div_euclid(MICROSECOND)).ok());
        if time.is_none() {
            let found = stated.map_or("it is missing".to_owned(), |stated| format!("{stated:?}"));
            self.findings.push(finding(path(name), &rules::TIMESTAMP, found));
        }
        let own = [PREVIOUS, COMMITTED, TIMESTAMP];
        let of_users = attributes.iter().filter(|attribute| !own.iter().any(|name| attribute.name == *name));
        self.versions.push(Version {
            id: *id,
            name: name.clone(),
            previous: text(attributes, PREVIOUS).filter(|name| name != FIRST).map(BString::from),
            time,
            attributes: of_users.cloned().collect(),
            depth: None,
        });
        if text(attributes, PREVIOUS).is_none() {
            self.findings.push(finding(path(name), &rules::PREVIOUS, "it is missing"));
        }
    }

    /// Counts the predecessors of each version. If they go round in a circle, the count stays `None`.
    fn follow(&mut self) {
        let places: HashMap<&BString, usize> =
            self.versions.iter().enumerate().map(|(at, version)| (&version.name, at)).collect();
        let before: Vec<Option<usize>> =
            self.versions.iter().map(|version| places.get(version.previous.as_ref()?).copied()).collect();
        let depths = depths(&before);
        for ((version, before), depth) in self.versions.iter_mut().zip(before).zip(depths) {
            version.depth = depth;
            let found = match (&version.previous, before, depth) {
                (Some(previous), None, _) => format!("{previous:?}, which is no version of the file"),
                (_, _, None) => "it leads in a circle".to_owned(),
                _ => continue,
            };
            self.findings.push(finding(path(&version.name), &rules::FIRST, found));
        }
    }

    /// Checks what the group of all versions states: the current version, and `data_version`.
    fn look_at(&mut self, kept: &VersionsGroup) {
        let all = BELOW.trim_end_matches('/');
        match text(&kept.attributes, CURRENT_VERSION) {
            Some(name) if name == FIRST => {}
            Some(name) if self.versions.iter().any(|version| version.name == name.as_bytes().as_bstr()) => {
                self.current = Some(name.into());
            }
            name => {
                let found = name.map_or("no name".to_owned(), |name| format!("{name:?}: no version is at the root"));
                self.findings.push(finding(all, &rules::CURRENT, found));
            }
        }
        let found = match kept.data_version() {
            NEWEST_DATA => return,
            1 => "1, or none: strings of variable length in versions after the first may be those of another version",
            2 => "2: values of all types in versions after the first may be those of another version",
            3 => "3: strings of variable length in versions after the first may be those of another version",
            _ => "another: read as those of 4",
        };
        self.findings.push(finding(all, &rules::DATA_VERSION, found));
    }
}

impl Version {
    fn order(&self) -> (bool, Option<i64>, bool, Option<usize>, &BString) {
        (self.time.is_none(), self.time, self.depth.is_none(), self.depth, &self.name)
    }
}

/// Finds the distance of each node in a forest from its root, given the parent of each node. `None`: the node is in a
/// circle, or leads to one.
fn depths(before: &[Option<usize>]) -> Vec<Option<usize>> {
    #[derive(Clone, Copy)]
    enum Known {
        Nothing,
        UnderWay,
        Depth(Option<usize>),
    }
    let mut known = vec![Known::Nothing; before.len()];
    for start in 0..before.len() {
        let (mut way, mut at) = (Vec::new(), Some(start));
        let mut depth = loop {
            let Some(place) = at else { break Some(None) };
            match known[place] {
                Known::Depth(depth) => break depth.map(Some),
                Known::UnderWay => break None,
                Known::Nothing => {
                    known[place] = Known::UnderWay;
                    way.push(place);
                    at = before[place];
                }
            }
        };
        for place in way.into_iter().rev() {
            depth = depth.map(|depth| Some(depth.map_or(0, |depth: usize| depth + 1)));
            known[place] = Known::Depth(depth.flatten());
        }
    }
    known.into_iter().map(|known| if let Known::Depth(depth) = known { depth } else { None }).collect()
}

/// Finds the committed predecessor of the version that has these attributes, in the group of all versions. `None`:
/// there is none.
pub(super) fn previous(all: &Group, attributes: &[Attribute]) -> Option<ObjectId> {
    let (id, attributes) = member(all, &text(attributes, PREVIOUS).filter(|name| name != FIRST)?)?;
    (boolean(attributes, COMMITTED) == Some(true)).then_some(id)
}

/// Whether a version, given the path of an object in it, had a predecessor when it was written. If this cannot be told,
/// it may have had one.
pub(super) fn has_others(file: &Arc<File>, kept: &VersionsGroup, below: &str, interrupt: &Interrupt) -> bool {
    let Ok(all) = file.group(kept.id, interrupt) else { return true };
    let name = below.strip_prefix(BELOW).and_then(|below| below.split('/').next());
    let version = name.and_then(|name| member(&all, name));
    version.is_none_or(|(_, attributes)| previous(&all, attributes).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_have_no_depth() {
        assert_eq!(depths(&[]), []);
        assert_eq!(depths(&[None, Some(0), Some(1), Some(0)]), [Some(0), Some(1), Some(2), Some(1)]);
        assert_eq!(depths(&[Some(1), Some(2), None]), [Some(2), Some(1), Some(0)]);
        assert_eq!(
            depths(&[Some(0), Some(0), Some(3), Some(4), Some(2), None]),
            [None, None, None, None, None, Some(0)]
        );
    }

    #[test]
    fn a_long_line_of_versions_is_followed_in_one_go() {
        let before: Vec<_> = (0..100_000usize).map(|at| at.checked_sub(1)).collect();
        assert_eq!(depths(&before).last(), Some(&Some(99_999)));
    }

    #[test]
    fn timestamps_of_the_library_are_instants() {
        let instant = calendar::instant("2026-11-23 00:03:31.000123+0000").unwrap();
        assert_eq!(instant.attoseconds / MICROSECOND % 1_000_000, 123);
    }
}
