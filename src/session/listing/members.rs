//! The entries of a group's directory: pure functions from the catalogue and the claims of dialects to names and
//! children.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::entries::{
    Child, DirectoryPlace, GroupPlace, HTML, INDEX_PAGE, LinkDestination, Listing, ListingEntry, METADATA,
    RESERVED_BESIDE_COLUMNS, RESERVED_IN_TABLES, SUFFIXES, ShownArray, ShownName, Siblings, with_suffix,
};
use super::tables;
use crate::catalogue::{Dangling, Dataset, Group, Layout, Link, Object, ObjectId, Target, join};
use crate::dialects::{Claims, Dialect, Dialects, Elsewhere, ListedObject, Made, Mark, Role, stated};
use crate::session::{live, names, rules};
use crate::store::{File, Reach};
use crate::table::{Finding, SingleFile};
use crate::views::Misfit;
use crate::views::metadata::{Details, ShownAs, ShownMember};

/// Names that no child may take in the directory of a group that is no table.
const RESERVED_IN_GROUPS: [&str; 3] = [INDEX_PAGE, METADATA, live::DIRECTORY];

/// Kind of a member that is marked as a table.
const TABLE: &str = "table";

/// Reason for hiding a member that belongs to a table beside it.
const SERVES: &str = "it serves a table beside it";

/// Assigns names within a group's directory, so that no two members share one.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// Names that no member may take.
    reserved: HashSet<BString>,
    /// Stems of members that are files, limited to those that a directory could collide with.
    stems: HashSet<BString>,
}

impl Namespace {
    /// The namespace of a group's members. A soft link counts as files, wherever it leads, so that names depend on the
    /// group alone.
    pub fn new(group: &Group, claims: &Claims) -> Self {
        let reserved: &[&str] = match (claims.is_table, claims.only_adds) {
            (true, true) => &RESERVED_BESIDE_COLUMNS,
            (true, false) => &RESERVED_IN_TABLES,
            (false, _) => &RESERVED_IN_GROUPS,
        };
        let reserved = reserved.iter().map(|name| BString::from(*name));
        let made = claims.made.iter().map(|(name, _)| names::encode_directory(name));
        let changes = claims.changes.map(BString::from);
        let mut namespace = Self { reserved: reserved.chain(made).chain(changes).collect(), stems: HashSet::new() };
        namespace.stems = namespace.stems_of((group, claims), &wanted(group));
        namespace
    }

    /// The wanted stems of members that are files: a group may have too many to keep all.
    fn stems_of(&self, (group, claims): (&Group, &Claims), wanted: &HashSet<BString>) -> HashSet<BString> {
        if wanted.is_empty() {
            return HashSet::new();
        }
        let shown = group.links.iter().filter(|link| !claims.members.contains_key(&link.name));
        let files = shown.filter(|Link { target, .. }| {
            matches!(target, Target::Soft { .. }) || matches!(target.object(), Some(Object::Dataset(_)))
        });
        let stems = files.map(|link| self.stem(&link.name));
        stems.filter(|stem| wanted.contains(stem)).collect()
    }

    /// The namespace of a second group in the same directory, whose names give way to those of the first.
    pub fn beside(&self, own: (&Group, &Claims), other: (&Group, &Claims)) -> Self {
        let mut names = Self::new(other.0, other.1);
        names.reserved.extend(self.reserved.iter().cloned());
        names.stems.extend(self.stems_of(own, &wanted(other.0)));
        for link in own.0.links.iter().filter(|link| !own.1.members.contains_key(&link.name)) {
            names.reserved.insert(self.directory(&link.name));
        }
        names
    }

    /// The stem of a member that is files; escaped if one of its names would be reserved.
    pub fn stem(&self, name: &[u8]) -> BString {
        let plain = names::encode(name);
        // No member that is files has an `.html`: one called `index` keeps its names.
        let mut suffixes = SUFFIXES.iter().filter(|suffix| **suffix != HTML);
        let is_reserved = suffixes.any(|suffix| self.reserved.contains(&with_suffix(&plain, suffix)));
        if is_reserved { names::encode_reserved(name) } else { plain }
    }

    /// The name of a member that is a directory; escaped if it is reserved, or a file may have it.
    pub fn directory(&self, name: &[u8]) -> BString {
        let plain = names::encode_directory(name);
        let mut stems = SUFFIXES.iter().filter_map(|suffix| plain.strip_suffix(suffix.as_bytes()));
        if self.reserved.contains(&plain) || stems.any(|stem| self.stems.contains(stem.as_bstr())) {
            names::encode_reserved(name)
        } else {
            plain
        }
    }
}

/// Stems of files that the members, as directories, would collide with.
fn wanted(group: &Group) -> HashSet<BString> {
    let stems = group.links.iter().flat_map(|link| {
        let plain = names::encode_directory(&link.name);
        SUFFIXES.iter().filter_map(move |suffix| plain.strip_suffix(suffix.as_bytes()).map(BString::from))
    });
    stems.collect()
}

/// The shown names of the children of a made-up directory, which may be a table.
pub(crate) fn names_of_made(children: &[(BString, Made)], is_table: bool) -> Vec<BString> {
    let reserved: &[&str] = if is_table { &RESERVED_IN_TABLES } else { &RESERVED_IN_GROUPS };
    let mut taken: HashSet<BString> = reserved.iter().map(|name| BString::from(*name)).collect();
    let names = children.iter().map(|(name, _)| {
        let plain = names::encode_directory(name);
        let shown = if taken.contains(&plain) { names::encode_reserved(name) } else { plain };
        taken.insert(shown.clone());
        shown
    });
    names.collect()
}

/// Resolves a link to its target, or to the reason why it is not shown; `None`: the target is shown under the link's
/// own name.
pub(crate) type LinkTarget<'a> = dyn Fn(&Target, &BString) -> Option<Result<LinkDestination, String>> + 'a;

/// A group whose members are being listed.
pub(crate) struct MemberLister<'a> {
    pub file: &'a Arc<File>,
    pub path: &'a str,
    pub group: &'a Group,
    pub dialects: Dialects,
    pub claims: &'a Claims,
    pub names: &'a Namespace,
    /// Link names from the root to the group, if its members are shown in another group's directory.
    pub elsewhere: Option<&'a Vec<BString>>,
    pub link_target: &'a LinkTarget<'a>,
    /// Whether to describe the members.
    pub wanted: bool,
    /// Why members are not columns, by name.
    pub left_out: &'a HashMap<BString, Cow<'static, str>>,
}

impl MemberLister<'_> {
    /// Adds the members that are shown by themselves. Returns their descriptions for `metadata.json` if `wanted`.
    pub fn list(&self, listing: &mut Listing, findings: &mut Vec<Finding>) -> Vec<ShownMember> {
        let mut described = Vec::new();
        let (above, mut last) = (Arc::new(self.path.to_owned()), None);
        let names = self.names;
        for (name, made) in &self.claims.made {
            let here = GroupPlace { id: self.group.id, path: self.path.to_owned(), link: name.clone() };
            listing.add(
                names::encode_directory(name),
                Child::Directory(Box::new(DirectoryPlace::Made(here, name.clone(), made.clone()))),
            );
        }
        if let Some(name) = self.claims.changes {
            listing.add(name.into(), Child::Changes);
        }
        let mut directories: Vec<Directory<'_>> = Vec::new();
        let mut too_far: Vec<&BString> = Vec::new();
        let boxed = |member| self.wanted.then(|| Box::new(member));
        for link in &self.group.links {
            if let Some(role) = self.claims.members.get(&link.name) {
                // The table describes its own columns and servants.
                if *role == Role::Servant && !self.claims.is_table {
                    let object = link.target.object();
                    let kind = object.map(|object| self.dialects.kind(&join(self.path, &link.name), object));
                    let kind = kind.unwrap_or("link");
                    described
                        .push(ShownMember { not_shown: vec![SERVES.into()], ..ShownMember::new(&link.name, kind) });
                }
                continue;
            }
            let mut member = ShownMember::new(&link.name, "link");
            member.left_out = self.left_out.get(&link.name).cloned();
            match (link.target.followed(), &link.target) {
                (Some(object), _) => {
                    let path = join(self.path, &link.name);
                    match object {
                        Object::Group { id, .. } => {
                            member.kind = self.dialects.kind(&path, object);
                            let child = match (self.link_target)(&link.target, &link.name) {
                                Some(Ok(LinkDestination::Directory(elsewhere))) => {
                                    Ok(Below::other(Child::Link(elsewhere)))
                                }
                                Some(Ok(LinkDestination::Files { .. })) => Err("it is a column elsewhere".to_owned()),
                                Some(Err(reason)) => Err(reason),
                                None => Ok(self.below(*id, path, &link.name, member.kind == TABLE)),
                            };
                            directories.push((link, boxed(member), child));
                            continue;
                        }
                        Object::Dataset(dataset) => {
                            if let Some(child) =
                                self.dataset((&above, path), dataset, (listing, findings), &mut member, &mut last)
                            {
                                directories.push((link, boxed(member), Ok(Below::other(child))));
                                continue;
                            }
                        }
                        Object::Datatype { .. } => {
                            member.kind = "datatype";
                            member.not_shown.push("a committed datatype has no elements".into());
                        }
                        Object::Unreadable { reason, .. } => {
                            member.kind = "unreadable";
                            member.not_shown.push(reason.clone().into());
                        }
                    }
                }
                (_, Target::Soft { path, object }) => {
                    if *object == Err(Dangling::TooManyLinks) {
                        too_far.push(&link.name);
                    }
                    member.details = Details::Soft(path.clone());
                    match (self.link_target)(&link.target, &link.name) {
                        Some(Ok(LinkDestination::Files { stem, suffixes })) => {
                            let own = names.stem(&link.name);
                            member.shown_as = ShownAs::Files(own.clone(), suffixes.as_slice().into());
                            listing.push(ListingEntry::Links(own, Box::new((stem, suffixes))));
                        }
                        Some(Ok(LinkDestination::Directory(target))) => {
                            directories.push((link, boxed(member), Ok(Below::other(Child::Link(target)))));
                            continue;
                        }
                        Some(Err(reason)) => member.not_shown.push(reason.into()),
                        None => member.not_shown.push("its target is not shown".into()),
                    }
                }
                (_, Target::External { file, path, .. }) => {
                    member.kind = "external link";
                    member.details = Details::External(Box::new((file.clone(), path.clone())));
                    member.not_shown.push(if Reach::of(self.file).follows() {
                        "its target may not be followed: only files below the source's own folder may".into()
                    } else {
                        "links into other files are followed only with --follow-external".into()
                    });
                }
                (_, Target::UserDefined(class)) => {
                    member.kind = "user-defined link";
                    member.not_shown.push(format!("links of class {class} are not known").into());
                }
                (_, Target::Unreadable(reason)) => member.not_shown.push(reason.clone().into()),
                // Every hard link leads to an object.
                (None, Target::Hard(_)) => {}
            }
            if self.wanted {
                described.push(member);
            }
        }
        if let Some((first, others)) = too_far.split_first() {
            let others =
                if others.is_empty() { String::new() } else { format!("; so do {} links beside it", others.len()) };
            let found = format!("it leads through more links than that, and is not followed{others}");
            findings.push(Finding::new(join(self.path, first), &rules::LINK_CHAIN, found));
        }
        for (link, mut member, below) in directories {
            match below {
                Ok(below) => {
                    let name = names.directory(&link.name);
                    if let Some(member) = &mut member {
                        member.shown_as = ShownAs::Name(name.clone());
                    }
                    listing.push(match below {
                        Below::Group(id, is_table) => {
                            ListingEntry::Group(ShownName::new(name, &link.name), id, above.clone(), is_table)
                        }
                        Below::Other(child) => ListingEntry::One(name, child),
                    });
                }
                Err(reason) => {
                    if let Some(member) = &mut member {
                        member.not_shown.push(reason.into());
                    }
                }
            }
            described.extend(member.map(|member| *member));
        }
        described
    }

    /// The directory behind a link to a group.
    fn below(&self, id: ObjectId, path: String, link: &BString, is_table: bool) -> Below {
        let Some(above) = self.elsewhere else { return Below::Group(id, is_table) };
        let links = above.iter().chain([link]).cloned().collect();
        let place = GroupPlace { id, path, link: link.clone() };
        let group = Made::Group(Elsewhere { id, links, mtime: None });
        Below::other(Child::Directory(Box::new(DirectoryPlace::Made(place, link.clone(), group))))
    }

    /// Adds the files of a dataset, or returns the directory that shows it.
    fn dataset(
        &self,
        (above, path): (&Arc<String>, String),
        dataset: &Arc<Dataset>,
        (listing, findings): (&mut Listing, &mut Vec<Finding>),
        member: &mut ShownMember,
        last: &mut Option<Last>,
    ) -> Option<Child> {
        if self.wanted {
            member.details = Details::Array(dataset.clone(), self.claims.axes.get(&member.name).cloned());
        }
        let mut judgement = self.dialects.judge(&path, ListedObject::Dataset(dataset));
        member.kind = judgement.kind;
        findings.append(&mut judgement.findings);
        let (dialect, mark) = judgement.shown?;
        if mark == Mark::Files {
            findings.extend(stated::of_array(&path, dataset, dialect));
            findings.extend(stated::long_double(&path, dataset));
        }
        let array =
            ShownArray::new(&member.name, path, dataset, dialect, self.claims.serving.get(&member.name).copied());
        if mark == Mark::Table {
            return Some(Child::Directory(Box::new(DirectoryPlace::Dataset(array))));
        }
        let stem = self.names.stem(&member.name);
        let servant = self.claims.serving.get(&member.name).copied();
        if let Some((Some(alike), siblings)) = last
            // Compared by name: dialects without fields may all have the same address.
            && siblings.dialect.about().name == dialect.about().name
            && (siblings.servant, servant) == (None, None)
            && dataset.is_kept_like(alike)
        {
            member.shown_as = ShownAs::Files(stem.clone(), siblings.suffixes.clone());
            listing.push(ListingEntry::Single(ShownName::new(stem, &member.name), dataset.clone(), siblings.clone()));
            return None;
        }
        let mut files_shown = Vec::new();
        for (file, view) in files(self.file, &array).unwrap_or_else(|reason| {
            member.not_shown.push(reason.into());
            Vec::new()
        }) {
            match view {
                Ok(()) => files_shown.push(file),
                Err(reason) => member.not_shown.push(format!("{}: {reason}", file.suffix).into()),
            }
        }
        if !files_shown.is_empty() {
            let suffixes = files_shown.iter().map(|file| file.suffix).collect();
            let siblings = Siblings { path: above.clone(), dialect, servant, files: files_shown, suffixes };
            // Most datasets of a group are shown alike, so they share one value.
            let siblings = match last.take() {
                Some((_, last)) if last.are_like(&siblings) => last,
                _ => Arc::new(siblings),
            };
            member.shown_as = ShownAs::Files(stem.clone(), siblings.suffixes.clone());
            *last = Some((member.not_shown.is_empty().then(|| dataset.clone()), siblings.clone()));
            listing.push(ListingEntry::Single(ShownName::new(stem, &member.name), dataset.clone(), siblings));
        }
        None
    }
}

/// How the last dataset is shown, and the dataset itself if all of its files are shown.
type Last = (Option<Arc<Dataset>>, Arc<Siblings>);

/// A directory, to be listed after all files: its link, its description, and either the directory or the reason why it
/// is not shown.
type Directory<'a> = (&'a Link, Option<Box<ShownMember>>, Result<Below, String>);

/// The thing behind the name of a subdirectory.
enum Below {
    /// A group, and whether it is marked as a table.
    Group(ObjectId, bool),
    Other(Box<Child>),
}

impl Below {
    fn other(child: Child) -> Self {
        Self::Other(Box::new(child))
    }
}

/// A file of a dataset, and whether it can be shown.
type Checked = (SingleFile, Result<(), Misfit>);

/// The files of a dataset, each with the reason if it cannot be shown; an error if the dataset has none.
fn files(file: &Arc<File>, array: &ShownArray) -> Result<Vec<Checked>, String> {
    let ShownArray { dataset, .. } = array;
    if dataset.null {
        return Err("the dataspace is null: there is no element".into());
    }
    if let Layout::Unknown(class) = dataset.layout {
        return Err(format!("layout class {class} is not known"));
    }
    if let Some(reason) = Reach::of(file).lacks(dataset) {
        return Err(reason);
    }
    // The tables are dropped again: a group may have very many datasets.
    let single = array.dialect.files(&array.site(file), &array.name, None)?;
    Ok(single.files.iter().map(|one| (one.clone(), tables::single_view(&single, one))).collect())
}

/// The suffixes of the files that show a dataset, or the reason why no file shows it.
pub(crate) fn suffixes(
    file: &Arc<File>,
    path: &str,
    name: &BString,
    dataset: &Arc<Dataset>,
    dialect: &'static dyn Dialect,
) -> Result<Vec<&'static str>, String> {
    let array = ShownArray::new(name, path.to_owned(), dataset, dialect, None);
    let (shown, refused): (Vec<_>, Vec<_>) = files(file, &array)?.into_iter().partition(|(_, view)| view.is_ok());
    match refused.into_iter().find_map(|(_, view)| view.err()) {
        Some(reason) if shown.is_empty() => Err(reason.to_string()),
        _ => Ok(shown.into_iter().map(|(file, _)| file.suffix).collect()),
    }
}
