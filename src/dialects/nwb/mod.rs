//! HDMF and NWB (Neurodata Without Borders), in which an attribute states the type of a group.
//!
//! A `DynamicTable` lists its columns in `colnames`; a list column is a dataset of values and one of ends, which refers
//! to the former by `target`. Aligned tables, which `categories` lists, are columns of structs. A `TimeSeries` has
//! `data` and either `timestamps` or a rate. A fill value is an ordinary value; only the attribute `_FillValue` can
//! make values missing.
//!
//! | module | what it does |
//! | --- | --- |
//! | `members` | tells the role of each member of a table |
//! | `table` | makes the table of a `DynamicTable` |
//! | `series` | makes the table of a `TimeSeries` |

mod members;
mod rules;
mod series;
mod table;

use self::members::NwbMembers;
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site};
use crate::catalogue::{Attribute, Class, attribute};
use crate::source::Interrupt;
use crate::table::Table;

/// The attribute of a table that lists its columns.
const COLUMNS: &str = "colnames";

/// The attributes that state the type of an object: that of NWB, and that of HDMF.
const TYPES: [&str; 2] = ["neurodata_type", "data_type"];

/// The member that labels rows.
const ID: &str = "id";

/// The attribute of a dataset of ends that refers to the values.
const TARGET: &str = "target";

/// The attribute of a dataset of codes that refers to their labels.
const ELEMENTS: &str = "elements";

/// The attribute of a dataset of row numbers that refers to the table whose rows they number.
const TABLE: &str = "table";

/// The attribute of a table that lists its aligned tables.
const ALIGNED: &str = "categories";

/// The NWB dialect.
#[derive(Debug)]
pub struct Nwb;

static ABOUT: About = About {
    rules: rules::ALL,
    attributes: &[
        COLUMNS,
        TYPES[0],
        TYPES[1],
        TARGET,
        ELEMENTS,
        TABLE,
        ALIGNED,
        "unit",
        "rate",
        "conversion",
        "offset",
        "axis",
        "description",
    ],
    ..About::named("NWB")
};

impl Dialect for Nwb {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        let ListedObject::Group(attributes) = object else { return Mark::No };
        match (is_table(attributes), is_typed(attributes)) {
            (true, true) => Mark::Table,
            // Row labels make such a group a table, and data make it a series.
            (true, false) | (false, true) => Mark::LookInside,
            (false, false) => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let attributes = &here.group.attributes;
        if is_table(attributes) && (is_typed(attributes) || here.group.link(ID.as_bytes()).is_some()) {
            let columns = NwbMembers::of(here.group).plain_columns();
            let members = columns.into_iter().map(|name| (name.clone(), Role::Column)).collect();
            return Claims { is_table: true, members, ..Claims::default() };
        }
        // Data and timestamps are also shown by themselves.
        Claims { is_table: series::Series::of(here.group).is_some(), ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let Of::Group(group) = site.of else { return Table::empty(site.path, self.about().name) };
        if is_table(&group.attributes) {
            return table::table(site, group, interrupt);
        }
        match series::Series::of(group) {
            Some(series) => series::table(site, group, &series, interrupt),
            None => Table::empty(site.path, self.about().name),
        }
    }
}

/// Whether a group lists columns.
fn is_table(attributes: &[Attribute]) -> bool {
    attribute(attributes, COLUMNS).is_some_and(|listed| {
        let are_texts = matches!(listed.datatype.class, Class::FixedString { .. } | Class::VariableString { .. });
        listed.shape.len() == 1 && (are_texts || listed.is_empty())
    })
}

fn is_typed(attributes: &[Attribute]) -> bool {
    TYPES.iter().any(|name| attribute(attributes, name).is_some())
}

/// The type that an object states, in the attribute of NWB, or else in that of HDMF.
fn type_of(attributes: &[Attribute]) -> Option<String> {
    TYPES.iter().find_map(|name| super::attributes::text(attributes, name))
}
