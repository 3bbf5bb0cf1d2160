//! LEGEND HDF5 (LH5): detector data. The attribute `datatype` states the kind of every object.
//!
//! A fill value is an ordinary value; only the attribute `_FillValue` can make values missing. A table is a group of
//! columns. Some columns are groups themselves: lists, tables, encoded waveforms. Datasets of booleans or of an
//! enumeration outside of tables are shown as files.
//!
//! | module | what it does |
//! | --- | --- |
//! | `datatype` | parses the attribute |
//! | `columns` | opens objects that make a single column |
//! | `build` | makes the table |
//! | `histogram` | makes the table of a histogram: a row for each bin |

mod build;
mod columns;
mod datatype;
mod histogram;
mod rules;

use std::collections::HashSet;

use bstr::BString;

use self::datatype::Lh5Datatype;
use super::arrays::Arrays;
use super::attributes::text;
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site};
use crate::catalogue::{Attribute, Object};
use crate::source::Interrupt;
use crate::table::{Single, Table, Unreadable};

/// The attribute that states the kind of an object.
const DATATYPE: &str = "datatype";

/// The LH5 dialect.
#[derive(Debug)]
pub struct Lh5;

static ABOUT: About = About {
    rules: rules::ALL,
    attributes: &[DATATYPE, "codec", "codec_shift", "units", "description"],
    ..About::named("LH5")
};

impl Dialect for Lh5 {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if listed(attributes).is_some() || is_histogram(attributes) => Mark::Table,
            ListedObject::Dataset(dataset) if !dataset.null && columns::meant(dataset).is_some() => Mark::Files,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let listed: HashSet<BString> = listed(&here.group.attributes).unwrap_or_default().into_iter().collect();
        let columns = here.group.links.iter().filter(|link| listed.contains(&link.name));
        // A nested table is a column, but also a table by itself; a struct is not a column.
        let members = columns.filter(|link| match link.target.object() {
            Some(Object::Dataset(dataset)) => !dataset.shape.is_empty(),
            Some(object @ Object::Group { .. }) => {
                matches!(columns::kind(object), Some(Lh5Datatype::Array(_) | Lh5Datatype::Lists | Lh5Datatype::Encoded))
            }
            _ => false,
        });
        let members = members.map(|link| (link.name.clone(), Role::Column)).collect();
        Claims { is_table: true, members, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) if is_histogram(&group.attributes) => histogram::table(site, group, interrupt),
            Of::Group(group) => build::table(site, group, interrupt),
            // This dialect claims no other objects as tables.
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }

    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        let Of::Dataset(stored) = site.of else { return Err("no dataset".into()) };
        let read = columns::meant(stored).ok_or("neither booleans nor an enumeration")?;
        let single = Arrays.files(&Site { of: Of::Dataset(&read), ..*site }, name, interrupt)?;
        // `.npy` files keep the stored type.
        let datatype = stored.datatype.clone();
        Ok(Single { whole: Table { dialect: self.about().name, ..single.whole }, datatype, ..single })
    }
}

fn is_histogram(attributes: &[Attribute]) -> bool {
    let kind = text(attributes, DATATYPE).and_then(|text| Lh5Datatype::parse(&text));
    matches!(kind, Some(Lh5Datatype::Struct(names)) if histogram::is_histogram(&names))
}

/// Names of the columns of a group that is declared a table. `None`: any other group.
fn listed(attributes: &[Attribute]) -> Option<Vec<BString>> {
    match Lh5Datatype::parse(&text(attributes, DATATYPE)?)? {
        Lh5Datatype::Table(names) => Some(names),
        _ => None,
    }
}
