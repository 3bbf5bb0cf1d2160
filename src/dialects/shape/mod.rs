//! Recognises unmarked groups that have the shape of a table: datasets of one length side by side.
//!
//! This dialect guesses, so it is the last in the list. It goes by shapes, types, attributes and names in listings, and
//! reads no value. It asks for the attributes of the root; only for tables of sibling groups does it list other groups.
//! It only adds names: all members are also shown by themselves, so a wrong guess takes nothing away.
//!
//! | module | what it does |
//! | --- | --- |
//! | `rule` | decides whether a group is a table and of how many rows, or says why not |
//! | `table` | makes the table of a row set |
//! | `siblings` | joins the tables of sibling groups into one |

mod rule;
mod siblings;
mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bstr::BString;

use self::rule::{ShapeMatch, Shapes};
use super::{About, Claims, Dialect, Here, ListedObject, Made, Mark, Of, Site, Tables};
use crate::catalogue::Group;
use crate::source::Interrupt;
use crate::table::Table;

/// Name of the dialect.
const NAME: &str = "shape";

/// Name of the directory of all row sets but the first.
const SETS: &str = "tables";

/// Prefix of the names of these row sets, before the number of rows.
const SET: &str = "rows-";

/// Name of the joined table of sibling groups, in the same directory.
const ALL: &str = "ALL";

/// The dialect that goes by shapes, with the user's choice of which groups are tables.
#[derive(Debug)]
pub struct Shape(pub Tables);

static ABOUT: About = About { attributes: &["MATLAB_class"], ..About::named(NAME) };

impl Dialect for Shape {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            // Tables of other dialects may also lie in sibling groups.
            ListedObject::Group(_) => Mark::LookInside,
            ListedObject::Dataset(_) => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        if self.0 == Tables::Declared {
            return Claims::default();
        }
        let mut claims = self.own(here);
        let all = siblings::made(self, here).map(|all| (BString::from(ALL), all));
        let sets = self.sets(here.group, &claims);
        let children: Arc<[_]> = all.into_iter().chain(sets).collect();
        if !children.is_empty() {
            claims.made.push((SETS.into(), Made::Directory { table: None, children }));
        }
        claims
    }

    fn left_out(&self, here: &Here<'_>) -> HashMap<BString, Cow<'static, str>> {
        let shapes = Shapes::of(here.group);
        let ShapeMatch::Table(rows) = shapes.table(self.is_loose()) else { return HashMap::new() };
        let links = here.group.links.iter();
        links.filter_map(|link| Some((link.name.clone(), shapes.left_out(link, rows)?))).collect()
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => {
                let shapes = Shapes::of(group);
                match shapes.table(self.is_loose()) {
                    ShapeMatch::Table(rows) => table::table(site, group, &shapes, rows, self.is_loose()),
                    ShapeMatch::Nearly(_) | ShapeMatch::Nothing => Table::empty(site.path, NAME),
                }
            }
            Of::Made { group, key, .. } if key.starts_with(ALL.as_bytes()) => {
                let within = key.get(ALL.len() + 1..).map(BString::from);
                siblings::table(self, site, group, within.as_ref(), interrupt)
            }
            Of::Made { group, key, .. } => {
                let rows =
                    key.strip_prefix(SET.as_bytes()).and_then(|rows| std::str::from_utf8(rows).ok()?.parse().ok());
                let table = rows.map(|rows| table::table(site, group, &Shapes::of(group), rows, self.is_loose()));
                let path = format!("{}/{SETS}/{key}", site.path.trim_end_matches('/'));
                Table { path, attributes: Arc::default(), ..table.unwrap_or_else(|| Table::empty(site.path, NAME)) }
            }
            // This dialect marks no datasets.
            Of::Dataset(_) => Table::empty(site.path, NAME),
        }
    }
}

impl Shape {
    /// The name of a row set, also the key of its table.
    fn row_set(rows: u64) -> BString {
        BString::from(format!("{SET}{rows}"))
    }

    /// Makes the claims on a group that follow from its own members.
    fn own(&self, here: &Here<'_>) -> Claims {
        let shapes = Shapes::of(here.group);
        if !shapes.is_pair() {
            return Claims::default();
        }
        let root = here.file.root_attributes(here.interrupt).unwrap_or_default();
        let nearly = match rule::marked(here.path, here.group, &root) {
            Some(reason) => Some(reason),
            None => match shapes.table(self.is_loose()) {
                ShapeMatch::Table(_) => return Claims { is_table: true, only_adds: true, ..Claims::default() },
                ShapeMatch::Nearly(reason) => Some(reason),
                ShapeMatch::Nothing => None,
            },
        };
        Claims { nearly, ..Claims::default() }
    }

    /// Makes the directories of the further row sets of a group that is a table.
    fn sets(&self, group: &Group, claims: &Claims) -> Vec<(BString, Made)> {
        if !claims.is_table {
            return Vec::new();
        }
        let shapes = Shapes::of(group);
        let ShapeMatch::Table(rows) = shapes.table(self.is_loose()) else { return Vec::new() };
        let names = shapes.others(rows, self.is_loose()).into_iter().map(Self::row_set);
        names.map(|name| (name.clone(), Made::Directory { table: Some(name), children: Arc::default() })).collect()
    }

    fn is_loose(&self) -> bool {
        self.0 == Tables::Loose
    }
}
