//! NeXus: the attribute `NX_class` states the class of a group. Three classes are tables by the standard's rules for
//! their members: `NXdata` of one axis, `NXlog`, `NXevent_data`.
//!
//! Members are also shown by themselves, since most are links to data of an instrument. Groups of any other class are
//! left to the dialect `shape`.

mod plot;
mod rules;

use std::sync::Arc;

use bstr::BString;

use super::attributes::{number, text};
use super::{About, Claims, Dialect, Here, ListedObject, Made, Mark, Of, Site, arrays, datasets, times};
use crate::catalogue::{Attribute, Dataset, Group, attribute, join};
use crate::source::Interrupt;
use crate::table::{Column, Finding, Meaning, Table, Unreadable};

/// The attribute that states the class of a group.
const CLASS: &str = "NX_class";

/// Name of the directory of tables that lies beside the datasets of events.
const TABLES: &str = "tables";

/// A table that groups of a class may have. Its first two columns are required; others join if they have the same
/// length.
struct Kind {
    class: &'static str,
    /// Name of the table's directory below `tables/`. `None`: the group itself is the table.
    key: Option<&'static str>,
    columns: &'static [&'static str],
}

/// The tables that are recognised by the names of their columns.
const KINDS: [Kind; 4] = [
    Kind { class: "NXlog", key: None, columns: &["time", "value", "raw_value"] },
    Kind { class: "NXevent_data", key: None, columns: &["event_id", "event_time_offset", "event_weight"] },
    Kind { class: "NXevent_data", key: Some("pulses"), columns: &["event_time_zero", "event_index"] },
    Kind { class: "NXevent_data", key: Some("cues"), columns: &["cue_timestamp_zero", "cue_index"] },
];

/// The NeXus dialect.
#[derive(Debug)]
pub struct Nexus;

/// A dataset in a group, with its name.
type Named<'a> = (BString, &'a Arc<Dataset>);

static ABOUT: About = About {
    rules: rules::ALL,
    attributes: &[
        CLASS,
        "signal",
        "axes",
        "axis",
        "auxiliary_signals",
        "start",
        "offset",
        "scaling_factor",
        "units",
        "long_name",
    ],
    ..About::named("NeXus")
};

impl Dialect for Nexus {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if class(attributes).is_some() => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let Some(class) = class(&here.group.attributes) else { return Claims::default() };
        let made = KINDS.iter().filter(|kind| kind.class == class && kind.columns(here.group).is_some());
        let made = made.filter_map(|kind| {
            let key = BString::from(kind.key?);
            Some((key.clone(), Made::Directory { table: Some(key), children: [].into() }))
        });
        let tables: Arc<[_]> = made.collect();
        let made = match tables.is_empty() {
            true => Vec::new(),
            false => vec![(TABLES.into(), Made::Directory { table: None, children: tables })],
        };
        let is_table = columns(class, here.group).is_some();
        // A plot along several axes is not a table, even if the axes have the same length.
        let is_final = !is_table && class == plot::CLASS && plot::has_several_axes(here.group);
        Claims { is_table, is_final, made, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, _: &Interrupt) -> Table {
        let (group, key) = match site.of {
            Of::Group(group) => (group, None),
            Of::Made { group, key, .. } => (group, Some(key)),
            Of::Dataset(_) => return Table::empty(site.path, self.about().name),
        };
        let class = class(&group.attributes).unwrap_or_default();
        let (path, found) = match key {
            Some(key) => {
                let kind = KINDS.iter().find(|kind| kind.class == class && kind.key.is_some_and(|one| one == key));
                let path = join(&join(site.path, TABLES.as_bytes()), key);
                (path, kind.and_then(|kind| kind.columns(group)))
            }
            None => (site.path.to_owned(), columns(class, group)),
        };
        table(site, group, path, class, found.unwrap_or_default())
    }
}

/// The class of a group, if groups of that class may have tables. `None`: any other class.
fn class(attributes: &[Attribute]) -> Option<&'static str> {
    let class = text(attributes, CLASS)?;
    KINDS.iter().map(|kind| kind.class).chain([plot::CLASS]).find(|known| *known == class)
}

/// Finds the columns of a group that is itself a table. Those that decide the number of rows come first. `None`: not a
/// table.
fn columns<'a>(class: &str, group: &'a Group) -> Option<Vec<Named<'a>>> {
    if class == plot::CLASS {
        return plot::columns(group);
    }
    KINDS.iter().find(|kind| kind.class == class && kind.key.is_none())?.columns(group)
}

impl Kind {
    /// Finds the columns of this table in a group: the first of rank 1, others of rank 1 or 2. `None`: one of the first
    /// two is not there.
    fn columns<'a>(&self, group: &'a Group) -> Option<Vec<Named<'a>>> {
        let member = |name: &&str| {
            let found = (1..=2).find_map(|rank| datasets::of_rank(group, name, rank))?;
            Some((BString::from(*name), found))
        };
        let [first, second, others @ ..] = self.columns else { return None };
        let (first, second) = (member(first).filter(|(_, dataset)| dataset.shape.len() == 1)?, member(second)?);
        let rows = first.1.shape.first();
        let others = others.iter().filter_map(member).filter(|(_, dataset)| dataset.shape.first() == rows);
        Some([first.clone(), second].into_iter().chain(others).collect())
    }
}

/// Makes a table of these members. Those with another number of rows than the first leave the table.
fn table(site: &Site<'_>, group: &Group, path: String, class: &str, found: Vec<Named<'_>>) -> Table {
    let rows = found.first().and_then(|(_, dataset)| dataset.shape.first()).copied().unwrap_or(0);
    let mut findings = Vec::new();
    let columns = found.into_iter().map(|(name, dataset)| {
        let column = arrays::column(site.file, &join(site.path, &name), &name, dataset);
        let length = dataset.shape.first().copied().unwrap_or(0);
        if length != rows {
            let found = format!("{length} rows, the table has {rows}");
            findings.push(Finding::new(&column.path, &rules::LENGTH, found));
        }
        Column {
            in_table: column.in_table && length == rows,
            meaning: Meaning {
                times: column.meaning.times.clone().or_else(|| instants(site, &column, dataset)),
                description: column.meaning.description.clone().or_else(|| text(&dataset.attributes, "long_name")),
                ..column.meaning
            },
            ..column
        }
    });
    Table {
        revision: class.into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.collect(),
        findings,
        ..Table::empty(&path, Nexus.about().name)
    }
}

/// How integers count time from the attribute `start` of logs or `offset` of events. `None`: they do not.
fn instants(
    site: &Site<'_>,
    column: &Column,
    dataset: &Dataset,
) -> Option<Box<Result<crate::table::Times, Unreadable>>> {
    let rows = column.rows.as_ref().ok().filter(|rows| rows.data_type().is_integer())?;
    let start = ["start", "offset"].into_iter().find_map(|name| text(&dataset.attributes, name))?;
    let units = text(&dataset.attributes, "units")?;
    let times = times::counted_from(site.file, &units, &start, rows.as_ref())?;
    // Packed integers are not counts of the unit.
    let factor = attribute(&dataset.attributes, "scaling_factor").filter(|factor| number(factor) != Some(1.0));
    Some(Box::new(if factor.is_some() { Err("values are packed by scaling_factor".into()) } else { times }))
}
