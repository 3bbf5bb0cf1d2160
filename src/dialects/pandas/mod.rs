//! Data frames and series of pandas (`to_hdf`, `HDFStore`): a group with the attribute `pandas_type`.
//!
//! In the format `table` the frame is one PyTables table, whose fields hold several columns of one type each (blocks);
//! attributes, most of them pickles, say which. An attribute that does not decode costs names and order, never the
//! table. A failed write leaves a group without rows, which hepfs shows as a table without columns.
//!
//! | module | what it does |
//! | --- | --- |
//! | `stored` | reads attributes: texts and pickles |
//! | `axis` | gathers the types of the names of columns |
//! | `plan` | maps columns to fields and their elements, by the attributes |
//! | `encoding` | looks up text encodings |
//! | `values` | tells the content of columns: times, texts that mean missing, categories |
//! | `frame` | makes the table of the format `table` |
//! | `objects` | opens columns of Python objects, which are values in one pickle |
//! | `fixed` | makes the table of the format `fixed`: axes of labels, blocks of columns, most texts in pickles |

mod axis;
mod encoding;
mod fixed;
mod frame;
mod objects;
mod plan;
mod rules;
mod stored;
mod values;

use std::sync::Arc;

use bstr::BString;

use super::attributes::text;
use super::compound::is_record;
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site};
use crate::catalogue::{Attribute, Dataset, Group, Object};
use crate::source::Interrupt;
use crate::table::Table;

/// The attribute by which groups of pandas are recognised.
const TYPE: &str = "pandas_type";

/// The pandas dialect.
#[derive(Debug)]
pub struct Pandas;

static ABOUT: About = About { rules: rules::ALL, ..About::named("pandas") };

impl Dialect for Pandas {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if is_table_format(attributes) || is_fixed(attributes) => Mark::Table,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let members: Vec<&BString> = if is_fixed(&here.group.attributes) {
            fixed::servants(here.group).collect()
        } else {
            table_of(here.group).into_iter().flat_map(|table| servants(here.group, table)).collect()
        };
        let members = members.into_iter().map(|name| (name.clone(), Role::Servant)).collect();
        Claims { is_table: true, members, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) if is_fixed(&group.attributes) => fixed::table(site, group, interrupt),
            Of::Group(group) => frame::table(site, group, interrupt),
            // This dialect claims only groups.
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

fn is_table_format(attributes: &[Attribute]) -> bool {
    matches!(text(attributes, TYPE).as_deref(), Some("frame_table" | "series_table"))
}

fn is_fixed(attributes: &[Attribute]) -> bool {
    matches!(text(attributes, TYPE).as_deref(), Some("frame" | "series"))
}

/// The dataset that holds the rows. `None`: the group has none.
fn table_of(group: &Group) -> Option<&Arc<Dataset>> {
    match group.link(b"table")?.target.object()? {
        Object::Dataset(dataset) if is_record(dataset) => Some(dataset),
        _ => None,
    }
}

/// Finds the members that serve the frame: the rows, their search indexes, and categories.
fn servants<'a>(group: &'a Group, table: &Dataset) -> impl Iterator<Item = &'a BString> {
    let has_categories = table.attributes.iter().any(|attribute| {
        attribute.name.ends_with(b"_meta")
            && text(std::slice::from_ref(attribute), &attribute.name.to_string()).as_deref() == Some("category")
    });
    group.links.iter().map(|link| (&link.name, link.target.object())).filter_map(move |(name, object)| {
        let serves = match (name.as_slice(), object) {
            (b"table", _) => true,
            (b"_i_table", Some(Object::Group { attributes, .. })) => {
                text(attributes, "CLASS").as_deref() == Some("TINDEX")
            }
            (b"meta", Some(Object::Group { .. })) => has_categories,
            _ => false,
        };
        serves.then_some(name)
    })
}
