//! A directory's listing: its names, its table, its findings.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bstr::BString;
use serde_json::Value;

use super::listing::{
    self, Child, DirectoryPlace, Formats, GroupPlace, Listing, ListingEntry, METADATA, MemberLister, Namespace,
    Resolver, ShownArray, Way,
};
use super::opened::{Maker, OpenedSource};
use crate::catalogue::{Attribute, Group, Target, join};
use crate::dialects::{Claims, Dialects, Here, Made, Of, Site, stated};
use crate::session::Error;
use crate::session::rules;
use crate::session::{DirEntry, DirectoryNames};
use crate::source::Interrupt;
use crate::store::decode::Oddity;
use crate::store::{self, File};
use crate::table::{Finding, Table, rule_of};
use crate::views::metadata::{self, DirectoryKind, Lines, ShownMember};

/// Longest scalar in bytes whose value `metadata.json` includes.
const LONGEST_VALUE: usize = 4096;

/// Most scalars of a group whose values `metadata.json` includes: each costs a read.
const MOST_VALUES: usize = 1000;

/// A directory with more made-up tables than this keeps their group listed; each table of a smaller one lists it anew.
const FEW_MADE: usize = 16;

/// A directory after its first listing.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(super) attributes: Arc<[Attribute]>,
    /// The table, if the directory is one.
    pub(super) table: Option<Arc<Table>>,
    /// The kind of the directory in the parent's `metadata.json`.
    pub(super) called: DirectoryKind,
    pub(super) listing: Listing,
    /// `columns/`, listed at first use: the table's own names do not depend on it.
    columns: OnceLock<Listing>,
    /// Descriptions in `metadata.json` of members, and of views that are not shown.
    members: Vec<ShownMember>,
    /// The group and the way to it, if its members are described only on demand.
    group: Option<(GroupPlace, Way)>,
    /// Why the group is not a table, though some members have equal lengths.
    pub(super) nearly: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// The claims on the group, kept alive so that others find them.
    _claims: Option<Arc<Claims>>,
    /// The group of the made-up tables in this directory, kept alive if there are many.
    _maker: Option<Arc<Maker>>,
}

impl Contents {
    /// Lists a group.
    ///
    /// # Errors
    /// If the worker cannot list it.
    pub fn of_group(
        opened: &Arc<OpenedSource>,
        place: &GroupPlace,
        way: &Way,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let (file, path) = (opened.file()?, place.path.as_str());
        let group = Arc::new(listed(opened, place, interrupt)?);
        file.check()?;
        let claims = opened.claims(&Here { path, group: &group, file, interrupt });
        let site = Site { file, path, of: Of::Group(&group), servant: None, checks: opened.session().checks };
        let table = claims.dialect.filter(|_| claims.is_table).map(|dialect| Dialects::open(dialect, &site, interrupt));
        let table = table.map(|table| stated::look(table, site.checks));
        let mut contents = Self::with(table, group.attributes.clone(), claims.findings.clone());
        // For links that it cannot list, the worker sends one with an empty name and the reason.
        let unlisted = group.links.iter().filter(|link| link.name.is_empty());
        contents.findings.extend(unlisted.filter_map(|link| match &link.target {
            Target::Unreadable(reason) => Some(Finding::new(path, &rules::LINKS, reason.clone())),
            _ => None,
        }));
        contents.called = if claims.is_marked { DirectoryKind::Table } else { DirectoryKind::Group };
        contents.nearly = claims.nearly.clone();
        let seen = Seen { opened, file, place, way, group: &group, claims: &claims, interrupt };
        let beside = seen.beside(&mut contents.findings);
        let links = group.links.len() + beside.as_ref().map_or(0, |beside| beside.group.links.len());
        let is_small = links <= opened.session().most_described;
        // A table describes its own columns and servants.
        let are_others = beside.is_some()
            || !claims.is_table
            || group.links.iter().any(|link| !claims.members.contains_key(&link.name));
        contents.group = (!is_small && are_others).then(|| (place.clone(), way.clone()));
        let shown = (&mut contents.listing, &mut contents.findings);
        contents.members.append(&mut seen.list(beside.as_ref(), shown, is_small));
        // A table that only adds names already counts the inexact values of its columns.
        if let Some(table) = contents.table.as_ref().filter(|table| table.only_adds) {
            let counted: HashSet<&str> = table.columns.iter().map(|column| column.path.as_str()).collect();
            let note = rule_of(Oddity::Nearest).id;
            contents.findings.retain(|finding| finding.rule.id != note || !counted.contains(finding.path.as_str()));
        }
        // An interrupted listing looks broken, and `Contents` lives as long as its group: never keep it.
        interrupt.check()?;
        contents._claims = is_small.then_some(claims);
        Ok(contents)
    }

    /// Descriptions of members in `metadata.json`. For a large group this lists the group once more: descriptions of
    /// very many members take more memory than anything else known about them, and are seldom read.
    pub fn members(&self, opened: &OpenedSource, interrupt: &Interrupt) -> Result<Vec<ShownMember>, store::Error> {
        let mut members = self.members.clone();
        if let (Some((place, way)), Some(file)) = (&self.group, opened.hdf5()) {
            let group = file.group(place.id, interrupt);
            let group = group.map_err(|error| store::Error::Hdf5 { path: place.path.clone(), error })?;
            let group = Arc::new(group);
            let here = Here { path: &place.path, group: &group, file, interrupt };
            let claims = opened.claims(&here);
            let seen = Seen { opened, file, place, way, group: &group, claims: &claims, interrupt };
            let beside = seen.beside(&mut Vec::new());
            members.append(&mut seen.list(beside.as_ref(), (&mut Listing::default(), &mut Vec::new()), true));
        }
        Ok(members)
    }

    /// The first members of a large group as its listing knows them, and the number of all. `None`: a small group,
    /// whose members are described.
    pub fn first_members(&self, most: usize) -> Option<(Vec<ShownMember>, usize)> {
        self.group.as_ref()?;
        let entries = self.listing.entries();
        let members: Vec<ShownMember> = entries.iter().filter_map(ListingEntry::member).take(most).collect();
        Some((members, entries.iter().filter(|entry| entry.is_member()).count()))
    }

    /// Opens a dataset that is a table.
    ///
    /// # Errors
    /// If the request was interrupted.
    pub fn of_dataset(opened: &Arc<OpenedSource>, array: &ShownArray, interrupt: &Interrupt) -> Result<Self, Error> {
        let table = Dialects::open(array.dialect, &array.site(opened.file()?), interrupt);
        interrupt.check()?;
        Ok(Self::of_table(stated::look(table, opened.session().checks)))
    }

    /// Lists a directory that a dialect made up.
    ///
    /// # Errors
    /// If its group cannot be listed any more.
    pub fn of_made(
        opened: &Arc<OpenedSource>,
        place: &GroupPlace,
        made: &Made,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let Made::Directory { table, children } = made else { return Err(Error::NotADirectory) };
        let mut contents = Self::with(None, Arc::default(), Vec::new());
        if let Some(key) = table {
            let (file, path, maker) =
                (opened.file()?, place.path.as_str(), opened.maker(place.id, &place.path, interrupt)?);
            let of = Of::Made { group: &maker.group, key, plan: &maker.plan };
            let dialect = maker.dialect.ok_or(Error::NotFound)?;
            let site = Site { file, path, of, servant: None, checks: opened.session().checks };
            contents = Self::of_table(stated::look(Dialects::open(dialect, &site, interrupt), site.checks));
            interrupt.check()?;
        } else {
            contents.called = DirectoryKind::Made;
            let tables = children.iter().filter(|(_, child)| matches!(child, Made::Directory { table: Some(_), .. }));
            if tables.count() > FEW_MADE {
                contents._maker = Some(opened.maker(place.id, &place.path, interrupt)?);
            }
        }
        let names = listing::names_of_made(children, table.is_some());
        for (shown, (name, child)) in names.iter().zip(children.iter()) {
            let child = match child {
                Made::Link(target) => {
                    match children.iter().position(|(name, child)| name == target && !matches!(child, Made::Link(_))) {
                        Some(at) => Child::Link(names[at].clone()),
                        None => continue,
                    }
                }
                made => Child::Directory(Box::new(DirectoryPlace::Made(place.clone(), name.clone(), made.clone()))),
            };
            contents.listing.add(shown.clone(), child);
        }
        Ok(contents)
    }

    /// The contents of a directory that shows one table and nothing else.
    pub fn of_table(table: Table) -> Self {
        let attributes = table.attributes.clone();
        Self::with(Some(table), attributes, Vec::new())
    }

    /// Restricts the files shown to these formats. `metadata.json` still names all of them, since it depends on the
    /// HDF5 file alone.
    pub fn show(&mut self, formats: Formats) {
        self.listing.formats = formats;
    }

    /// The directory `columns/`; empty if there is no table.
    pub fn columns(&self) -> &Listing {
        self.columns.get_or_init(|| {
            let mut columns = self.table.as_deref().map(listing::list_columns).unwrap_or_default();
            columns.formats = self.listing.formats;
            columns
        })
    }

    /// Renders `metadata.json`; `path` is the HDF5 path.
    ///
    /// # Errors
    /// If the group cannot be listed any more.
    pub fn metadata(
        &self,
        opened: &OpenedSource,
        path: &str,
        lines: Lines,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>, store::Error> {
        let directory = metadata::DirectoryDocument {
            path,
            called: self.called,
            attributes: &self.attributes,
            members: &self.members(opened, interrupt)?,
            values: &self.values(opened, interrupt),
            nearly: self.nearly.as_deref(),
            findings: &self.findings,
        };
        Ok(match &self.table {
            Some(table) => metadata::table(table, listing::describe_columns(table), &directory, lines),
            None => metadata::group(&directory, lines),
        })
    }

    /// The values of scalar datasets by link name, as far as they are short and readable.
    pub fn values(&self, opened: &OpenedSource, interrupt: &Interrupt) -> HashMap<BString, Value> {
        let scalars = self.listing.entries().iter().enumerate().filter_map(|(position, entry)| match entry {
            ListingEntry::Single(_, dataset, siblings)
                if dataset.shape.is_empty() && dataset.datatype.size <= LONGEST_VALUE as u64 =>
            {
                siblings.files.iter().any(|file| file.suffix == ".txt").then_some(position)
            }
            _ => None,
        });
        let values = scalars.take(MOST_VALUES).filter_map(|position| {
            let array = self.listing.array(position)?;
            let single = array.single(opened.hdf5()?, interrupt).ok()?;
            let rows = single.whole.columns.first()?.shown().ok()?;
            let mut values = metadata::json_values(rows.array(0..1, interrupt).ok()?).ok()?;
            let value = values.pop()?;
            (value.to_string().len() <= LONGEST_VALUE).then(|| (array.name.clone(), value))
        });
        values.collect()
    }

    fn with(table: Option<Table>, attributes: Arc<[Attribute]>, findings: Vec<Finding>) -> Self {
        let (mut listing, mut members) = (Listing::default(), Vec::new());
        listing.add(METADATA.into(), Child::Metadata);
        if let Some(table) = &table {
            listing::list(table, &mut listing, &mut members);
        }
        let findings = findings.into_iter().chain(table.iter().flat_map(|table| table.findings.clone())).collect();
        let called = if table.is_some() { DirectoryKind::Table } else { DirectoryKind::Group };
        let (table, columns) = (table.map(Arc::new), OnceLock::new());
        let (group, nearly, _claims, _maker) = Default::default();
        Self { attributes, table, called, listing, columns, members, group, nearly, findings, _claims, _maker }
    }
}

impl DirectoryNames for Arc<Contents> {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        self.listing.name(place)
    }
}

/// The names in `columns/`.
pub(crate) struct Columns(pub Arc<Contents>);

impl DirectoryNames for Columns {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        self.0.columns().name(place)
    }
}

/// A group whose members are being listed.
struct Seen<'a> {
    opened: &'a OpenedSource,
    file: &'a Arc<File>,
    place: &'a GroupPlace,
    way: &'a Way,
    group: &'a Arc<Group>,
    claims: &'a Claims,
    interrupt: &'a Interrupt,
}

/// A group whose members are shown in another group's directory.
struct Beside {
    group: Arc<Group>,
    place: GroupPlace,
    way: Way,
    claims: Claims,
}

impl Seen<'_> {
    /// The group whose members this directory shows as well; links whose names this group has are dropped, each with a
    /// finding.
    fn beside(&self, findings: &mut Vec<Finding>) -> Option<Beside> {
        let elsewhere = self.claims.beside.as_ref()?;
        let link = elsewhere.links.last().cloned().unwrap_or_default();
        let place = GroupPlace { id: elsewhere.id, path: elsewhere.path(), link };
        let mut group = match listed(self.opened, &place, self.interrupt) {
            Ok(group) => group,
            Err(error) => {
                findings.push(Finding::new(&place.path, &rules::BESIDE, error.to_string()));
                return None;
            }
        };
        let path = place.path.as_str();
        let here = Here { path, group: &group, file: self.file, interrupt: self.interrupt };
        // The list of changes is about this group, not about the one beside it: its file takes no name here.
        let claims = Claims { changes: None, ..(*self.opened.claims(&here)).clone() };
        let own: HashSet<&BString> = self.group.links.iter().map(|link| &link.name).collect();
        group.retain(|link| {
            let is_free = !own.contains(&link.name);
            if !is_free && !claims.members.contains_key(&link.name) {
                let found = format!("{} has a member of that name, too, which is shown there", self.place.path);
                let rule = &rules::NAME_TWICE;
                findings.push(Finding::new(join(path, &link.name), rule, found));
            }
            is_free
        });
        Some(Beside { group: Arc::new(group), way: self.way.beside(elsewhere), place, claims })
    }

    /// Adds the members of the group, and of the group shown beside it, to the listing and findings. Returns their
    /// descriptions for `metadata.json` if `wanted`.
    fn list(
        &self,
        beside: Option<&Beside>,
        (listing, findings): (&mut Listing, &mut Vec<Finding>),
        wanted: bool,
    ) -> Vec<ShownMember> {
        let own = Namespace::new(self.group, self.claims);
        let here = Here { path: &self.place.path, group: self.group, file: self.file, interrupt: self.interrupt };
        let left_out =
            self.claims.dialect.filter(|_| wanted && self.claims.is_table).map(|dialect| dialect.left_out(&here));
        let left_out = left_out.unwrap_or_default();
        let of = |place: &GroupPlace, way, group: &Arc<Group>, claims, names, elsewhere, shown: (&mut _, &mut _)| {
            let leads = Resolver::new(self.opened, self.file, group, &place.path, way, self.interrupt);
            let members = MemberLister {
                file: self.file,
                path: &place.path,
                group,
                dialects: self.opened.session().dialects,
                claims,
                names,
                elsewhere,
                link_target: &|target, name| leads.shown(target, name),
                wanted,
                left_out: &left_out,
            };
            members.list(shown.0, shown.1)
        };
        let mut members =
            of(self.place, self.way, self.group, self.claims, &own, None, (&mut *listing, &mut *findings));
        if let Some(Beside { group, place, way, claims }) = beside {
            let names = own.beside((self.group, self.claims), (group, claims));
            members.append(&mut of(place, way, group, claims, &names, Some(&way.links), (listing, findings)));
        }
        members
    }
}

fn listed(opened: &OpenedSource, place: &GroupPlace, interrupt: &Interrupt) -> Result<Group, Error> {
    let group = opened.file()?.group(place.id, interrupt);
    group.map_err(|error| store::Error::Hdf5 { path: place.path.clone(), error }.into())
}
