//! openPMD: the particles of simulations. A species is a group of records. A record is a dataset or a group of
//! components. A component with one value for all particles is a group without members.
//!
//! ```text
//! /data/100/particles/electrons/position/x     a dataset
//! /data/100/particles/electrons/charge         value = -1.6e-19, shape = [1000]
//! /data/100/particles/electrons/weighting      a dataset
//! ```
//!
//! With the extension SpeciesType, the group of particles may itself be the only species, and then has the attribute
//! `speciesType`.

mod rules;

use std::sync::Arc;

use bstr::BString;

use super::attributes::{integers, number, numbers, said, text};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site, arrays, datasets};
use crate::catalogue::{Attribute, ColumnId, Dataset, Group, Object, ObjectId, attribute, join};
use crate::source::Interrupt;
use crate::store::Rows;
use crate::store::decode::arrow_type;
use crate::table::{Column, EvenRows, Finding, Meaning, PackedRows, Table};

/// Path of the group of all iterations, fixed by the standard.
const BASE: &str = "/data/";

/// Number of columns after which no further record of a species is opened.
const MOST_COLUMNS: usize = 10_000;

/// The attribute of a group of particles that is itself a species.
const SPECIES: &str = "speciesType";

/// The attribute of a record that states its dimension as powers of the base units of SI.
const DIMENSION: &str = "unitDimension";

/// The base units of SI, in the order in which `unitDimension` has their powers.
const UNITS: [&str; 7] = ["m", "kg", "s", "A", "K", "mol", "cd"];

/// Number that distinguishes the column of a component in SI units from the dataset's own column.
const SCALED: u32 = 1 << 28;

/// A member of a species that is not a record.
const PATCHES: &str = "particlePatches";

/// The openPMD dialect.
#[derive(Debug)]
pub struct OpenPmd;

static ABOUT: About = About {
    rules: rules::ALL,
    attributes: &["openPMD", "particlesPath", SPECIES, "value", "shape", "unitSI", DIMENSION],
    ..About::named("openPMD")
};

impl Dialect for OpenPmd {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if path.starts_with(BASE) => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let has_record = here.group.links.iter().any(|link| match link.target.object() {
            Some(Object::Group { .. }) => link.name != PATCHES,
            Some(Object::Dataset(dataset)) => dataset.shape.len() == 1,
            Some(Object::Datatype { .. } | Object::Unreadable { .. }) | None => false,
        });
        // Records keep their files, but must not become tables by shape, since their components are stored in other
        // units than those of SI.
        match place(here) {
            Some(Place::Species) => Claims { is_table: has_record, ..Claims::default() },
            Some(Place::Record) => Claims { is_final: true, ..Claims::default() },
            None => Claims::default(),
        }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => table(site, group, interrupt),
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

/// The role that a group has among particles.
enum Place {
    Species,
    /// A record of a species, or a group inside one.
    Record,
}

/// Tells the role of a group in a file whose root declares openPMD: `/data/ITERATION/particles/SPECIES/RECORD`, or a
/// group of particles that is itself the only species.
fn place(here: &Here<'_>) -> Option<Place> {
    let root = here.file.group(here.file.info().root, here.interrupt).ok()?;
    attribute(&root.attributes, "openPMD")?;
    let particles = text(&root.attributes, "particlesPath").unwrap_or_else(|| "particles/".into());
    let below = here.path.strip_prefix(BASE)?.split_once('/').map_or("", |(_, below)| below);
    // If the path were empty, any group could hold particles.
    let particles = Some(particles.trim_matches(['.', '/'])).filter(|particles| !particles.is_empty())?;
    let species = below.strip_prefix(particles)?;
    match species.trim_start_matches('/') {
        "" => attribute(&here.group.attributes, SPECIES).map(|_| Place::Species),
        _ if !species.starts_with('/') => None,
        name if name.split('/').any(|part| part == PATCHES) => None,
        name if name.contains('/') || has_only(here, root) => Some(Place::Record),
        _ => Some(Place::Species),
    }
}

/// Whether the group that holds this one is itself the only species.
fn has_only(here: &Here<'_>, mut group: Group) -> bool {
    let above = here.path.rsplit_once('/').map_or("", |(above, _)| above);
    for name in above.split('/').filter(|name| !name.is_empty()) {
        let Some(Object::Group { id, .. }) = group.link(name.as_bytes()).and_then(|link| link.target.object()) else {
            return false;
        };
        match here.file.group(*id, here.interrupt) {
            Ok(below) => group = below,
            Err(_) => return false,
        }
    }
    attribute(&group.attributes, SPECIES).is_some()
}

/// The SI unit of a quantity. `unitDimension` states the powers of length, mass, time, current, temperature, amount and
/// luminous intensity (openPMD, "Unit Systems and Dimensionality"). `None`: it has no unit, or the powers are invalid.
fn si(dimension: &Attribute) -> Option<String> {
    let powers = numbers(dimension)
        .filter(|powers| powers.len() == UNITS.len() && powers.iter().all(|power| power.is_finite()))?;
    let units = UNITS.iter().zip(powers).filter(|(_, power)| *power != 0.0);
    let said: Vec<String> =
        units.map(|(unit, power)| if power == 1.0 { (*unit).to_owned() } else { format!("{unit}^{power}") }).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Makes the table of a species.
fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let mut found = Found { site, columns: Vec::new(), findings: Vec::new() };
    for link in group.links.iter().filter(|link| link.name != PATCHES) {
        let path = join(site.path, &link.name);
        if found.columns.len() >= MOST_COLUMNS {
            // Many names may lead to one record of many components.
            let said =
                format!("this record and all later ones are left out: there are {} columns", found.columns.len());
            found.findings.push(Finding::new(path, &rules::PARTICLES, said));
            break;
        }
        if let Some(object) = link.target.object() {
            found.record(&link.name, &path, object, interrupt);
        }
    }
    let Found { mut columns, mut findings, .. } = found;
    let rows = datasets::of_one_length(&mut columns, &rules::PARTICLES, true, &mut findings);
    Table {
        rows,
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, OpenPmd.about().name)
    }
}

/// The columns of a species found so far.
struct Found<'a> {
    site: &'a Site<'a>,
    columns: Vec<Column>,
    findings: Vec<Finding>,
}

impl Found<'_> {
    /// Adds the columns of a record: one, or one for each component.
    fn record(&mut self, name: &BString, path: &str, object: &Object, interrupt: &Interrupt) {
        let Object::Group { id, attributes, .. } = object else {
            return self.component(name.clone(), path, object, None);
        };
        if attribute(attributes, "value").is_some() {
            return self.component(name.clone(), path, object, None);
        }
        let dimension = attribute(attributes, DIMENSION);
        match self.site.file.group(*id, interrupt) {
            Ok(record) => {
                for link in &record.links {
                    let column = [name.as_slice(), b"_", link.name.as_slice()].concat();
                    if let Some(object) = link.target.object() {
                        self.component(column.into(), &join(path, &link.name), object, dimension);
                    }
                }
            }
            Err(error) => self.findings.push(Finding::new(path, &rules::PARTICLES, error.to_string())),
        }
    }

    fn component(&mut self, name: BString, path: &str, object: &Object, dimension: Option<&Attribute>) {
        let unit = attribute(object.attributes(), DIMENSION).or(dimension).and_then(si);
        match object {
            Object::Dataset(dataset) if dataset.shape.len() == 1 && !dataset.null => {
                let (column, found) = stored(self.site, name, path, dataset);
                self.columns.push(Column {
                    meaning: Meaning {
                        units: unit.filter(|_| found.is_none()).or(column.meaning.units),
                        ..column.meaning
                    },
                    ..column
                });
                self.findings.extend(found);
            }
            Object::Group { id, attributes, .. } => {
                let column = constant(name, path, *id, attributes);
                self.columns.push(Column { meaning: Meaning { units: unit, ..column.meaning }, ..column });
            }
            _ => self.findings.push(Finding::new(path, &rules::PARTICLES, "no dataset of rank 1, and no constant")),
        }
    }
}

/// Makes the column of a stored component in SI units, and a finding if it cannot be converted.
fn stored(site: &Site<'_>, name: BString, path: &str, dataset: &Arc<Dataset>) -> (Column, Option<Finding>) {
    let column = arrays::column(site.file, path, &name, dataset);
    let unit = match attribute(&dataset.attributes, "unitSI").map(|unit| (unit, number(unit))) {
        None | Some((_, Some(1.0))) => return (column, None),
        Some((_, Some(unit))) => unit,
        Some((unit, None)) => {
            let found = format!("unitSI of type {} is not one number: shown as stored", arrow_type(&unit.datatype));
            return (column, Some(Finding::new(path, &rules::UNIT, found)));
        }
    };
    let Ok(rows) = column.rows.clone() else { return (column, None) };
    match PackedRows::scaled(path.to_owned(), rows.clone(), vec![unit], 0.0) {
        Some(rows) => {
            let id = ColumnId { field: SCALED, ..column.id };
            (
                Column { rows: Ok(Arc::new(rows)), id, meaning: Meaning { times: None, ..column.meaning }, ..column },
                None,
            )
        }
        None => {
            let found = format!("elements of type {} are shown as stored, not times {unit}", rows.data_type());
            (column, Some(Finding::new(path, &rules::UNIT, found)))
        }
    }
}

/// Makes the column of a component that has one value for all particles, in SI units.
fn constant(name: BString, path: &str, id: ObjectId, attributes: &Arc<[Attribute]>) -> Column {
    let count = attribute(attributes, "shape").and_then(integers).and_then(|shape| match shape[..] {
        [count] => u64::try_from(count).ok(),
        _ => None,
    });
    let value = attribute(attributes, "value").and_then(number);
    let unit = attribute(attributes, "unitSI").map_or(Some(1.0), number);
    let rows = match (count, value, unit) {
        (Some(count), Some(value), Some(unit)) => {
            Ok(Arc::new(EvenRows::with_step(value * unit, 0.0, count)) as Arc<dyn Rows>)
        }
        (count, value, unit) => {
            let (count, value, unit) = (said(count), said(value), said(unit));
            Err(format!("a constant of value {value}, unit {unit}, for {count} particles").into())
        }
    };
    Column {
        attributes: attributes.clone(),
        ..Column::new(name, path.to_owned(), ColumnId::whole(id), rows, Arc::default())
    }
}
