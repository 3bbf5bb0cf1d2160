//! H5MD: molecular simulations. An element that changes with time is a group of `step`, `time` and `value`: a row for
//! each frame. Its members are also shown by themselves.
//!
//! No attribute marks an element: it is recognised by these members, and by its place below `particles` or
//! `observables` in a file whose root has a group `h5md`.

mod rules;

use std::sync::Arc;

use bstr::BString;

use super::attributes::{number, text};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site, arrays, datasets};
use crate::catalogue::{Class, ColumnId, Dataset, Group, Object, attribute, join, product};
use crate::source::Interrupt;
use crate::store::{File, Rows};
use crate::table::{Column, EvenRows, Finding, Meaning, Table};

/// Prefixes of the paths of elements.
const BELOW: [&str; 2] = ["/particles/", "/observables/"];

/// The members of an element: numbers of steps, times, values.
const PARTS: [&str; 3] = ["step", "time", "value"];

/// Most bytes of a frame's value in the table; wider values are shown in `columns/` alone.
const MOST_BYTES: u64 = 1 << 20;

/// The H5MD dialect.
#[derive(Debug)]
pub struct H5md;

static ABOUT: About = About { rules: rules::ALL, attributes: &["offset", "unit"], ..About::named("H5MD") };

impl Dialect for H5md {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if BELOW.iter().any(|below| path.starts_with(below)) => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let is_table = parts(here.group).is_some() && is_of_simulation(here.file, here.interrupt);
        Claims { is_table, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let found = match site.of {
            Of::Group(group) => parts(group).map(|parts| (group, parts)),
            Of::Dataset(_) | Of::Made { .. } => None,
        };
        match found {
            Some((group, parts)) => table(site, group, &parts, interrupt),
            None => Table::empty(site.path, self.about().name),
        }
    }
}

fn is_of_simulation(file: &Arc<File>, interrupt: &Interrupt) -> bool {
    let root = file.group(file.info().root, interrupt);
    let member = root.as_ref().ok().and_then(|root| root.link(b"h5md")?.target.object());
    matches!(member, Some(Object::Group { .. }))
}

/// The parts of an element, the value last; `time` is optional. `None`: not an element.
fn parts(group: &Group) -> Option<Vec<(&'static str, &Arc<Dataset>)>> {
    let part = |name: &'static str| {
        let dataset = datasets::member(group, name).ok().filter(|dataset| !dataset.null)?;
        let has_rank = if name == PARTS[2] { !dataset.shape.is_empty() } else { dataset.shape.len() <= 1 };
        has_rank.then_some((name, dataset))
    };
    let is_there = part(PARTS[0]).is_some() && part(PARTS[2]).is_some();
    is_there.then(|| PARTS.into_iter().filter_map(part).collect())
}

/// Makes the table of an element: a row for each frame.
fn table(site: &Site<'_>, group: &Group, parts: &[(&str, &Arc<Dataset>)], interrupt: &Interrupt) -> Table {
    let frames = parts.last().and_then(|(_, value)| value.shape.first()).copied().unwrap_or(0);
    let mut findings = Vec::new();
    let columns = parts.iter().map(|(name, dataset)| {
        let path = join(site.path, name.as_bytes());
        let name = BString::from(*name);
        let column = match dataset.shape.is_empty() {
            true => fixed(site, path, name, dataset, frames, interrupt),
            false => arrays::column(site.file, &path, &name, dataset),
        };
        let bytes = product(dataset.shape.get(1..).unwrap_or_default());
        let bytes = bytes.and_then(|places| places.checked_mul(dataset.datatype.size)).unwrap_or(u64::MAX);
        let found = match &column.rows {
            Ok(rows) if rows.len() != frames => {
                Some((&rules::FRAMES, format!("{} of them, of {frames} frames", rows.len())))
            }
            Ok(_) if bytes > MOST_BYTES => Some((&rules::WIDE, format!("{bytes} bytes a frame: in columns/ alone"))),
            Ok(_) => None,
            Err(reason) => Some((&rules::FRAMES, reason.to_string())),
        };
        let in_table = found.is_none();
        findings.extend(found.map(|(rule, found)| Finding::new(&column.path, rule, found)));
        let units = text(&dataset.attributes, "unit").or_else(|| column.meaning.units.clone());
        Column { in_table, meaning: Meaning { units, ..column.meaning }, ..column }
    });
    Table {
        rows: frames,
        attributes: group.attributes.clone(),
        columns: columns.collect(),
        findings,
        ..Table::empty(site.path, H5md.about().name)
    }
}

/// Makes a column of steps or times from their increment, if the file stores no more than that.
fn fixed(
    site: &Site<'_>,
    path: String,
    name: BString,
    scalar: &Arc<Dataset>,
    frames: u64,
    interrupt: &Interrupt,
) -> Column {
    let first = attribute(&scalar.attributes, "offset").map_or(Some(0.0), number).filter(|first| first.is_finite());
    let step = datasets::scalar(site.file, &path, scalar, interrupt);
    let rows = step.and_then(|step| {
        let first = first.ok_or("its offset is no number")?;
        // In float64, all integers below 2^53 are exact.
        let ends = [first, step];
        let are_whole = ends.iter().all(|number| number.fract() == 0.0 && number.abs() < (1_u64 << 53) as f64);
        let rows = match scalar.datatype.class {
            Class::Integer { .. } if are_whole => {
                EvenRows::whole(first as i64, step as i64, frames).ok_or("the last is too large")?
            }
            _ => EvenRows::with_step(first, step, frames),
        };
        Ok(Arc::new(rows) as Arc<dyn Rows>)
    });
    let attributes = scalar.attributes.clone();
    let id = ColumnId { object: scalar.id, field: 1 };
    Column { attributes, ..Column::new(name, path, id, rows, Arc::default()) }
}
