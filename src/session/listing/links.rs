//! Resolves links to relative symbolic links of the mount.
//!
//! An HDF5 path is followed link by link from the root, as libhdf5 does. A soft link on the way, or a second name of a
//! group, is replaced by the path that it stands for, so that the remaining names are those under which groups are
//! shown. The claims of the last group determine how its member is shown.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::entries::{COLUMNS, LinkDestination};
use super::members::{Namespace, names_of_made, suffixes};
use super::tables;
use crate::catalogue::{Dangling, Dataset, Group, MOST_LINKS_PASSED, Object, ObjectId, Target, join};
use crate::dialects::{Checks, Claims, Dialects, Elsewhere, Here, ListedObject, Made, Mark, Of, Role, Site};
use crate::session::names;
use crate::session::opened::OpenedSource;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// Most links followed to one target; a longer chain is taken for a circle.
const MOST_LINKS: usize = 64;

/// Reasons why a link is not shown.
const NOWHERE: &str = "its target is not shown";
const SERVANT: &str = "it leads to a part of a table, which is not shown by itself";

/// The path from the root group to a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    /// The groups, from the root down to the directory's own, each with its `depth`.
    pub groups: Vec<(ObjectId, usize)>,
    /// Names of the links between them.
    pub links: Vec<BString>,
    /// Number of directories from the root's to this one in the mount.
    pub depth: usize,
}

impl Way {
    /// The way to a group below.
    pub fn to_group(&self, id: ObjectId, link: &BString) -> Self {
        let mut way = self.to_directory();
        way.groups.push((id, way.depth));
        way.links.push(link.clone());
        way
    }

    /// The way to a subgroup that is shown elsewhere than at its link.
    pub fn to_elsewhere(&self, group: &Elsewhere) -> Self {
        let mut way = self.to_directory();
        way.groups.push((group.id, way.depth));
        Self { links: group.links.clone(), ..way }
    }

    /// The way to a group whose members are shown in this directory.
    pub fn beside(&self, group: &Elsewhere) -> Self {
        let mut way = self.clone();
        way.groups.push((group.id, way.depth));
        Self { links: group.links.clone(), ..way }
    }

    /// The relative path from the directory up to a group on the way to it; `None`: the group is not on that way.
    fn up_to(&self, id: ObjectId) -> Option<BString> {
        let (_, depth) = self.groups.iter().rev().find(|(above, _)| *above == id)?;
        let up = self.depth.saturating_sub(*depth);
        Some(if up == 0 { ".".into() } else { bstr::join("/", vec![".."; up]).into() })
    }

    /// The way to a subdirectory that is not a group.
    pub fn to_directory(&self) -> Self {
        Self { depth: self.depth + 1, ..self.clone() }
    }
}

/// Resolves the links of one group.
pub(crate) struct Resolver<'a> {
    opened: &'a OpenedSource,
    file: &'a Arc<File>,
    group: &'a Arc<Group>,
    path: &'a str,
    /// The way to the group.
    way: &'a Way,
    interrupt: &'a Interrupt,
    /// Groups passed on the way to targets.
    visited: RefCell<HashMap<String, Option<Rc<Visited>>>>,
    /// The last group found that has several names: all of its names may stand side by side.
    last: RefCell<Option<First>>,
}

/// A group, its first path, and how the group is shown there.
type First = (ObjectId, VecDeque<BString>, Result<LinkDestination, String>);

/// A group on the way to targets; many links may lead through it.
struct Visited {
    group: Arc<Group>,
    /// Positions of its links in the group's listing, by name.
    places: HashMap<BString, usize>,
    claims: Arc<Claims>,
    names: Namespace,
    /// The group's table, once a link led to a column.
    table: RefCell<Option<Arc<Table>>>,
}

impl Visited {
    fn target(&self, name: &[u8]) -> Option<&Target> {
        Some(&self.group.links.get(*self.places.get(BStr::new(name))?)?.target)
    }
}

impl<'a> Resolver<'a> {
    pub fn new(
        opened: &'a OpenedSource,
        file: &'a Arc<File>,
        group: &'a Arc<Group>,
        path: &'a str,
        way: &'a Way,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self { opened, file, group, path, way, interrupt, visited: RefCell::default(), last: RefCell::default() }
    }

    /// The target of a link relative to the directory of the group, or the reason why it is not shown; `None`: the
    /// target is shown under the link's own name. After an interrupt any answer may come.
    pub fn shown(&self, target: &Target, name: &BString) -> Option<Result<LinkDestination, String>> {
        if self.interrupt.is_raised() {
            return None;
        }
        // The link count is the file's claim, so it is not consulted: a group inside itself has no end. Files may lead
        // to each other as well.
        if let Some(Object::Group { id, .. }) = target.followed()
            && let Some(up) = self.way.up_to(*id)
        {
            return Some(Ok(LinkDestination::Directory(up)));
        }
        match target {
            Target::Hard(Object::Group { id, link_count, .. }) if *link_count > 1 => {
                let is_own = |first: &VecDeque<BString>| first.iter().eq(self.way.links.iter().chain([name]));
                if let Some((last, first, shown)) = &*self.last.borrow()
                    && last == id
                {
                    return if is_own(first) { None } else { Some(shown.clone()) };
                }
                let first = self.opened.first_path(*id, self.interrupt).ok().flatten()?;
                if is_own(&first) {
                    return None;
                }
                let shown = self.find(first.clone());
                self.last.replace(Some((*id, first, shown.clone())));
                Some(shown)
            }
            Target::Soft { object: Err(Dangling::Nowhere), .. } => Some(Err(NOWHERE.into())),
            Target::Soft { object: Err(Dangling::TooManyLinks), .. } => Some(Err(format!(
                "it leads through more than {MOST_LINKS_PASSED} links, the limit of the HDF5 library"
            ))),
            Target::Soft { path, .. } => {
                let mut way = VecDeque::new();
                if !path.starts_with(b"/") {
                    way.extend(self.way.links.iter().cloned());
                }
                way.extend(parts(path));
                Some(self.find(way))
            }
            _ => None,
        }
    }

    /// Follows links from the root, and finds the names under which the target is shown.
    fn find(&self, way: VecDeque<BString>) -> Result<LinkDestination, String> {
        self.follow(way).ok_or_else(|| NOWHERE.to_owned())?
    }

    fn follow(&self, mut way: VecDeque<BString>) -> Option<Result<LinkDestination, String>> {
        let root = self.file.info().root;
        let mut links = 0;
        let (mut at, mut visited) = ("/".to_owned(), self.visit("/", root)?);
        // Link names, and shown names, from the root to `visited`.
        let (mut from_root, mut shown) = (VecDeque::<BString>::new(), Vec::<BString>::new());
        loop {
            // A group that a dialect shows elsewhere is found there, not at its link.
            if from_root.is_empty()
                && let Some((names, group)) = made_for(&visited.claims.made, &way)
            {
                (shown, at) = (names.into(), group.path());
                visited = self.visit(&at, group.id)?;
                from_root = way.drain(..group.links.len()).collect();
            }
            let Some(part) = way.pop_front() else { break };
            let again = match visited.target(&part)? {
                Target::Soft { path, .. } => {
                    let mut again = if path.starts_with(b"/") { VecDeque::new() } else { from_root.clone() };
                    again.extend(parts(path));
                    Some(again)
                }
                Target::Hard(Object::Group { id, link_count, .. }) if *link_count > 1 => {
                    let first = self.opened.first_path(*id, self.interrupt).ok()??;
                    let is_first = first.iter().eq(from_root.iter().chain([&part]));
                    (!is_first).then_some(first)
                }
                _ => None,
            };
            if let Some(mut again) = again {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                again.extend(way);
                way = again;
                (at, visited) = ("/".to_owned(), self.visit("/", root)?);
                from_root.clear();
                shown.clear();
                continue;
            }
            let object = visited.target(&part)?.object()?;
            let path = join(&at, &part);
            let is_last = way.is_empty();
            match (visited.claims.members.get(&part), object) {
                (Some(Role::Servant), _) => return Some(Err(SERVANT.into())),
                (Some(Role::Column), _) if is_last => {
                    let suffixes = self.column(&visited, &at, &part)?;
                    shown.extend([COLUMNS.into(), names::encode(&part)]);
                    return Some(Ok(LinkDestination::Files { stem: self.relative(&shown), suffixes }));
                }
                (Some(Role::Column), _) => return Some(Err(SERVANT.into())),
                (None, Object::Group { id, .. }) => {
                    shown.push(visited.names.directory(&part));
                    if !is_last {
                        visited = self.visit(&path, *id)?;
                        at = path;
                        from_root.push_back(part);
                    }
                }
                (None, Object::Dataset(dataset)) if is_last => {
                    return Some(self.dataset(&visited, shown, path, &part, dataset));
                }
                _ => return None,
            }
        }
        Some(Ok(LinkDestination::Directory(self.relative(&shown))))
    }

    /// Where a dataset outside of tables is shown: a directory or files; an error if it is not shown.
    fn dataset(
        &self,
        visited: &Visited,
        mut shown: Vec<BString>,
        path: String,
        name: &BString,
        dataset: &Arc<Dataset>,
    ) -> Result<LinkDestination, String> {
        let judgement = self.opened.session().dialects.judge(&path, ListedObject::Dataset(dataset));
        let (dialect, mark) = judgement.shown.ok_or_else(|| NOWHERE.to_owned())?;
        if mark == Mark::Table {
            shown.push(visited.names.directory(name));
            return Ok(LinkDestination::Directory(self.relative(&shown)));
        }
        let suffixes = suffixes(self.file, &path, name, dataset, dialect)?;
        if suffixes.is_empty() {
            return Err(NOWHERE.into());
        }
        shown.push(visited.names.stem(name));
        Ok(LinkDestination::Files { stem: self.relative(&shown), suffixes })
    }

    /// The suffixes under which a column of a group's table is shown.
    fn column(&self, visited: &Visited, path: &str, name: &BString) -> Option<Vec<&'static str>> {
        let dialect = visited.claims.dialect?;
        let known = visited.table.borrow().clone();
        let table = known.unwrap_or_else(|| {
            let site =
                Site { file: self.file, path, of: Of::Group(&visited.group), servant: None, checks: Checks::default() };
            Arc::new(Dialects::open(dialect, &site, self.interrupt))
        });
        visited.table.replace(Some(table.clone()));
        let column = table.columns.iter().find(|column| column.name == *name)?;
        Some(tables::column_suffixes(column)).filter(|suffixes| !suffixes.is_empty())
    }

    fn visit(&self, path: &str, id: ObjectId) -> Option<Rc<Visited>> {
        if let Some(known) = self.visited.borrow().get(path) {
            return known.clone();
        }
        let group = if path == self.path {
            Some(self.group.clone())
        } else {
            self.file.group(id, self.interrupt).ok().map(Arc::new)
        };
        let visited = group.map(|group| {
            let claims = self.opened.claims(&Here { path, group: &group, file: self.file, interrupt: self.interrupt });
            let places = group.links.iter().enumerate().map(|(at, link)| (link.name.clone(), at)).collect();
            let names = Namespace::new(&group, &claims);
            Rc::new(Visited { group, places, claims, names, table: RefCell::default() })
        });
        self.visited.borrow_mut().insert(path.to_owned(), visited.clone());
        visited
    }

    /// The relative path from the group's directory to the names `shown`, which begin at the root of the file.
    fn relative(&self, shown: &[BString]) -> BString {
        let mut way = vec![BString::from(".."); self.way.depth];
        way.extend(shown.iter().cloned());
        if way.is_empty() { ".".into() } else { bstr::join("/", way).into() }
    }
}

/// The made-up group that a way from the root leads through, and its shown names.
fn made_for(made: &[(BString, Made)], way: &VecDeque<BString>) -> Option<(VecDeque<BString>, Elsewhere)> {
    made_on(made, &|| made.iter().map(|(name, _)| names::encode_directory(name)).collect(), way)
        .map(|(shown, group)| (shown, group.clone()))
}

/// Searches one made-up directory, whose children have these `names`.
fn made_on<'a>(
    made: &'a [(BString, Made)],
    names: &dyn Fn() -> Vec<BString>,
    way: &VecDeque<BString>,
) -> Option<(VecDeque<BString>, &'a Elsewhere)> {
    made.iter().enumerate().find_map(|(at, (_, one))| {
        let (mut shown, group) = match one {
            Made::Group(group) => {
                let is_on = way.iter().take(group.links.len()).eq(&group.links);
                is_on.then(|| (VecDeque::new(), group))?
            }
            Made::Directory { table, children } => {
                made_on(children, &|| names_of_made(children, table.is_some()), way)?
            }
            Made::Link(_) => return None,
        };
        shown.push_front(names().into_iter().nth(at)?);
        Some((shown, group))
    })
}

/// The link names of a path.
fn parts(path: &[u8]) -> impl Iterator<Item = BString> {
    path.split_str(b"/").filter(|part| !part.is_empty() && *part != b".").map(BString::from)
}
