//! Versioned HDF5 (`versioned-hdf5`): a file that keeps every committed state of its datasets.
//!
//! ```text
//! /_version_data/PATH/raw_data       the chunks of a dataset, of all versions, one after the other
//! /_version_data/versions/NAME/PATH  the dataset in a version: virtual, each of its cells a chunk of raw_data or fill
//! /anything else                     not versioned
//! ```
//!
//! The root shows the current version, and `.versions` all of them. Nothing in a version marks tables, so a group of
//! arrays of rank 1 and of one length counts as one. The library itself sets fill values, so a fill value is an
//! ordinary value; only the attribute `_FillValue` can make values missing.
//!
//! | module | what it does |
//! | --- | --- |
//! | `history` | finds the versions of a file, and their order |
//! | `list` | makes the table of the versions |
//! | `group` | makes the table of a group in a version |
//! | `changes` | compares a version with the one before it |
//! | `hashes` | checks chunks against their hashes |

mod changes;
mod group;
mod hashes;
mod history;
mod list;
mod rules;

use std::sync::Arc;

use bstr::BString;

use self::history::{History, VersionsGroup};
use super::{
    About, Checks, Claims, DatasetChange, Dialect, Dialects, Elsewhere, Here, ListedObject, Made, Mark, Of, Role, Site,
};
use crate::catalogue::{Fill, ObjectId};
use crate::source::Interrupt;
use crate::store::{self, File};
use crate::table::{Finding, Rule, Table};

/// Name of the group at the root that holds all versions of a file.
const STORE: &str = "_version_data";

/// Prefix of the paths of all objects in versions.
const BELOW: &str = "/_version_data/versions/";

/// Name of the directory of the versions.
const SHOWN: &str = ".versions";

/// Name of the link in that directory to the current version.
const CURRENT: &str = "current";

/// Name of the file in a version that lists what differs from its predecessor.
const CHANGES: &str = "changed.txt";

/// The Versioned HDF5 dialect.
#[derive(Debug)]
pub struct Versioned;

static ABOUT: About = About {
    rules: rules::ALL,
    attributes: &history::ATTRIBUTES,
    mappings: Some((BELOW, &rules::MAPPING)),
    ..About::named("Versioned HDF5")
};

impl Dialect for Versioned {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if path == "/" || path.starts_with(BELOW) => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        if here.path == "/" { of_root(here) } else { group::claims(here) }
    }

    fn changes(&self, here: &Here<'_>, id: ObjectId) -> Result<Vec<DatasetChange>, store::Error> {
        changes::since_previous(here, id)
    }

    fn verify(&self, file: &Arc<File>, interrupt: &Interrupt) -> Vec<Finding> {
        hashes::verify(file, interrupt)
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Made { group, .. } => match VersionsGroup::of(site.file, group, interrupt) {
                Some(kept) => list::table(site, &kept, &History::of(site.file, &kept, interrupt), interrupt),
                None => Table::empty(site.path, self.about().name),
            },
            Of::Group(root) if site.path == "/" => {
                let current = VersionsGroup::of(site.file, root, interrupt).and_then(|kept| {
                    let history = History::of(site.file, &kept, interrupt);
                    Some(history.current()?.place())
                });
                match current.and_then(|place| of_group(site.file, &place, interrupt)) {
                    Some(table) => Table { path: site.path.to_owned(), servants: vec![STORE.into()], ..table },
                    None => Table::empty(site.path, self.about().name),
                }
            }
            Of::Group(group) => group::table(site, group),
            // This dialect marks no datasets.
            Of::Dataset(_) => Table::empty(site.path, self.about().name),
        }
    }
}

/// Makes the claims on the root group: the members of the current version, and the directory of all versions.
fn of_root(here: &Here<'_>) -> Claims {
    let Some(kept) = VersionsGroup::of(here.file, here.group, here.interrupt) else { return Claims::default() };
    let mut history = History::of(here.file, &kept, here.interrupt);
    let mut children: Vec<(BString, Made)> = Vec::with_capacity(history.versions.len() + 1);
    let current = history.current().map(|version| (version.name.clone(), version.place()));
    if let Some((name, _)) = &current {
        children.push((CURRENT.into(), Made::Link(name.clone())));
    }
    children.extend(history.versions.iter().map(|version| (version.name.clone(), Made::Group(version.place()))));
    let beside = current.map(|(_, place)| place);
    let is_table = beside.as_ref().is_some_and(|place| {
        let group = here.file.group(place.id, here.interrupt);
        group.is_ok_and(|group| {
            let here = Here { path: &place.path(), group: &group, ..*here };
            Dialects::default().claims(&here).is_table
        })
    });
    let versions = Made::Directory { table: Some(SHOWN.into()), children: children.into() };
    Claims {
        is_table,
        members: [(STORE.into(), Role::Servant)].into(),
        made: vec![(SHOWN.into(), versions)],
        beside,
        findings: std::mem::take(&mut history.findings),
        ..Claims::default()
    }
}

/// Opens the table that some dialect makes of the group of a version. `None`: no dialect makes one.
fn of_group(file: &Arc<File>, place: &Elsewhere, interrupt: &Interrupt) -> Option<Table> {
    let (path, group) = (place.path(), file.group(place.id, interrupt).ok()?);
    let claims = Dialects::default().claims(&Here { path: &path, group: &group, file, interrupt });
    let site = Site { file, path: &path, of: Of::Group(&group), servant: None, checks: Checks::default() };
    claims.dialect.filter(|_| claims.is_table).map(|dialect| dialect.open(&site, interrupt))
}

/// Whether the group at `path` belongs to a version of a versioned file.
pub fn is_in_version(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> bool {
    path.starts_with(BELOW) && VersionsGroup::in_file(file, interrupt).is_some()
}

/// Whether a fill value may be one that the library itself set: it is explicit, and all zeros.
pub fn is_own_fill(fill: &Fill) -> bool {
    super::datasets::is_zero(fill)
}

/// Makes a finding that breaks a rule of Versioned HDF5.
fn finding(path: impl Into<String>, rule: &'static Rule, found: impl Into<String>) -> Finding {
    Finding::new(path, rule, found)
}
