//! Finds the datasets of a version that differ from the version before it, by comparing mappings. No element is read.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use bstr::BString;

use super::history::{VersionsGroup, previous};
use crate::catalogue::{Dataset, Fill, Group, Layout, Mappings, Object, ObjectId, Target, join};
use crate::dialects::datasets::is_zero;
use crate::dialects::{Changed, DatasetChange, Here};
use crate::h5;
use crate::source::Interrupt;
use crate::store::{Error, File};

/// Most pairs of groups to compare: links in a hostile file can pair every group of one version with every group of the
/// other.
const MOST_GROUPS: usize = 1 << 20;

/// Most bytes in the paths of pending groups, and of the datasets found.
const MOST_BYTES: usize = 64 << 20;

/// The target of a link in a version.
#[derive(Clone, Copy)]
enum Member<'a> {
    Group(ObjectId),
    Dataset(&'a Dataset),
    Unreadable,
}

/// Walks the groups of two versions side by side.
struct Walk<'a> {
    file: &'a Arc<File>,
    interrupt: &'a Interrupt,
    /// HDF5 path of the later version.
    path: &'a str,
    /// Pending pairs of groups, the later version's first, with the path that both have in their versions.
    pairs: VecDeque<([Option<ObjectId>; 2], BString)>,
    /// Pairs met so far. Each is compared only once, however many links lead to it.
    met: HashSet<[Option<ObjectId>; 2]>,
    found: Vec<DatasetChange>,
    bytes: usize,
}

/// Finds the datasets that were added, removed or changed since the version before. In the first version, all were
/// added.
///
/// # Errors
/// A group cannot be listed, or mappings cannot be read.
pub(super) fn since_previous(version: &Here<'_>, id: ObjectId) -> Result<Vec<DatasetChange>, Error> {
    let Here { path, group, file, interrupt } = *version;
    let all = VersionsGroup::in_file(file, interrupt);
    let all = all.ok_or_else(|| Error::unsupported(path, "its file cannot be listed any more"))?;
    let all = file.group(all.id, interrupt).map_err(|error| Error::Hdf5 { path: path.to_owned(), error })?;
    let before = previous(&all, &group.attributes);
    let pairs = VecDeque::from([([Some(id), before], BString::default())]);
    let mut walk = Walk { file, interrupt, path, pairs, met: HashSet::new(), found: Vec::new(), bytes: 0 };
    while let Some((pair, below)) = walk.pairs.pop_front() {
        interrupt.check()?;
        walk.pair(pair, &below)?;
    }
    file.check()?;
    Ok(walk.found)
}

impl Walk<'_> {
    /// Compares a pair of groups, of which one may be missing.
    fn pair(&mut self, pair: [Option<ObjectId>; 2], below: &BString) -> Result<(), Error> {
        if pair[0] == pair[1] || !self.met.insert(pair) {
            return Ok(());
        }
        if self.met.len() > MOST_GROUPS {
            return Err(self.too_much(format!("more than {MOST_GROUPS} groups are to be compared")));
        }
        let path = if below.is_empty() { self.path.to_owned() } else { join(self.path, below) };
        let groups = pair.map(|id| id.map(|id| self.file.group(id, self.interrupt)).transpose());
        let [now, before] = groups.map(|group| group.map_err(|error| Error::Hdf5 { path: path.clone(), error }));
        let groups = [now?, before?];
        let mut members: BTreeMap<&BString, [Option<Member<'_>>; 2]> = BTreeMap::new();
        for (at, group) in groups.iter().enumerate() {
            for (name, member) in group.iter().flat_map(members_of) {
                members.entry(name).or_default()[at] = Some(member);
            }
        }
        for (name, pair) in members {
            let below_it = pair.map(|member| if let Some(Member::Group(id)) = member { Some(id) } else { None });
            let changed = match pair.map(|member| member.filter(|member| !matches!(member, Member::Group(_)))) {
                [Some(_), None] => Some(Changed::Added),
                [None, Some(_)] => Some(Changed::Removed),
                [Some(now), Some(before)] => {
                    (!self.is_same(now, before, &join(&path, name))?).then_some(Changed::Modified)
                }
                [None, None] => None,
            };
            if let Some(changed) = changed {
                let path = self.below(below, name)?;
                self.found.push(DatasetChange { changed, path });
            }
            if below_it != [None, None] {
                let path = self.below(below, name)?;
                self.pairs.push_back((below_it, path));
            }
        }
        Ok(())
    }

    /// The path of a member, whose bytes are counted against the limit.
    fn below(&mut self, path: &BString, name: &BString) -> Result<BString, Error> {
        let below: BString = if path.is_empty() { name.clone() } else { bstr::join("/", [path, name]).into() };
        self.bytes = self.bytes.saturating_add(below.len());
        if self.bytes > MOST_BYTES {
            return Err(self.too_much(format!("the compared paths take more than {MOST_BYTES} bytes")));
        }
        Ok(below)
    }

    fn too_much(&self, reason: String) -> Error {
        Error::unsupported(self.path, reason)
    }

    /// Whether two datasets are known to have the same elements without any being read.
    fn is_same(&self, now: Member<'_>, before: Member<'_>, path: &str) -> Result<bool, Error> {
        let (Member::Dataset(now), Member::Dataset(before)) = (now, before) else { return Ok(false) };
        if now.id == before.id {
            return Ok(true);
        }
        if (&now.datatype, &now.shape, now.null) != (&before.datatype, &before.shape, before.null) {
            return Ok(false);
        }
        if now.is_empty() {
            return Ok(true);
        }
        // The fill that the library itself sets is the same as none.
        let fill = |dataset: &'_ Dataset| Some(dataset.fill.clone()).filter(|fill| !is_plain(fill));
        if fill(now) != fill(before) {
            return Ok(false);
        }
        Ok(match (self.mappings(now, path)?, self.mappings(before, path)?) {
            (Some(now), Some(before)) => lead_alike(&now, &before),
            _ => false,
        })
    }

    /// Reads the mappings of a dataset, in chunks of its source. `None`: the dataset is not made of such chunks.
    fn mappings(&self, dataset: &Dataset, path: &str) -> Result<Option<Mappings>, Error> {
        if !matches!(dataset.layout, Layout::Virtual { .. }) {
            return Ok(None);
        }
        let most = self.file.store().budget().limit() / 4 / size_of::<crate::catalogue::Mapping>() as u64;
        match self.file.client().mappings_by_chunk(dataset.id, most, self.interrupt) {
            Ok(mappings) => Ok(Some(mappings)),
            Err(h5::Error::Hdf5(_) | h5::Error::Beyond(_) | h5::Error::TooLarge { .. }) => Ok(None),
            Err(error) => Err(Error::Hdf5 { path: path.to_owned(), error }),
        }
    }
}

/// Whether a fill value is zero, explicit or not.
fn is_plain(fill: &Fill) -> bool {
    matches!(fill, Fill::Undefined | Fill::Default) || is_zero(fill)
}

/// The datasets and groups in a group of a version.
fn members_of(group: &Group) -> impl Iterator<Item = (&BString, Member<'_>)> {
    group.links.iter().filter_map(|link| {
        let Target::Hard(object) = &link.target else { return None };
        let member = match object {
            Object::Group { id, .. } => Member::Group(*id),
            Object::Dataset(dataset) => Member::Dataset(dataset),
            Object::Unreadable { .. } => Member::Unreadable,
            Object::Datatype { .. } => return None,
        };
        Some((&link.name, member))
    })
}

/// Whether the mappings of two datasets lead to the same chunks.
fn lead_alike(a: &Mappings, b: &Mappings) -> bool {
    let [of_a, of_b] = [a, b].map(|one| one.sources().iter().map(|source| source.id).collect::<Vec<_>>());
    a.runs().len() == b.runs().len()
        && a.runs().iter().zip(b.runs()).all(|(a, b)| {
            (a.at, a.len, a.first) == (b.at, b.len, b.first)
                && of_a.get(a.source as usize) == of_b.get(b.source as usize)
        })
}
