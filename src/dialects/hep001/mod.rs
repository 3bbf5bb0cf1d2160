//! HEP001 ("H5Col"): a group with one rank-1 dataset per column.
//!
//! The April 2026 draft, the July 2026 draft and those between them all say `VERSION = "1.0"`, so hepfs recognises each
//! feature by the members of the group, never by the version string. It also reads files that mix drafts.
//!
//! Each room imports from those above it in this list:
//!
//! | room | what it does |
//! | --- | --- |
//! | `names` | holds the names that the drafts define |
//! | `rules` | holds the rules of the drafts, as data |
//! | `recognition` | tells a table group by its attributes |
//! | `parts` | holds a table group and its findings while a table is made of it |
//! | `members` | sorts the links of a table group, from the catalogue alone |
//! | `draft` | tells which draft a table follows, and which one judges it |
//! | `columns` | opens the members that are columns or serve one: list columns, codes shown as labels |
//! | `consistency` | checks the rules whose violation changes how a table is shown |
//! | `values` | maps odd values to broken rules, and rules to expected values |
//! | `conformance` | checks all other rules for `hepfs check`, except those on the contents of search indexes |
//! | `indexes` | lists the search indexes and checks the rules on each |
//! | `build` | makes the table |
//!
//! `producer` writes what this dialect reads.

mod build;
mod columns;
mod conformance;
mod consistency;
pub(crate) mod draft;
mod indexes;
pub(crate) mod members;
pub(crate) mod names;
mod parts;
mod recognition;
mod rules;
mod values;

pub use draft::Judging;
use members::members;

use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site};
use crate::source::Interrupt;
use crate::table::Table;

/// The HEP001 dialect.
#[derive(Debug)]
pub struct Hep001;

static ABOUT: About = About { rules: rules::ALL, attributes: &names::ATTRIBUTES, ..About::named(names::DIALECT) };

impl Dialect for Hep001 {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) => recognition::mark(path, attributes),
            ListedObject::Dataset(_) => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let members = members(here.group);
        let members = members.iter().filter_map(|member| match member {
            _ if member.kind.is_shown() => Some((member.name.clone(), Role::Column)),
            _ if member.is_servant() => Some((member.name.clone(), Role::Servant)),
            _ => None,
        });
        Claims { is_table: true, members: members.collect(), ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => build::build(site.file, site.path, group, site.checks, interrupt),
            // HEP001 opens neither datasets nor made-up directories as tables.
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}
