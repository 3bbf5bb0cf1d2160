//! netCDF-4, and any other file with dimension scales: variables on dimensions, whose values are read by the CF
//! conventions.
//!
//! ```text
//! time(time)            the label of the dimension    name(time, length)  texts, a column
//! temperature(time)     a column                      bounds(time, 2)     lists, a column
//! rain(time, lat, lon)  a grid: an array              crs                 a scalar: an array
//! ```
//!
//! If all variables lie on one dimension, the group is a table. Otherwise a directory `tables` has a table for each
//! dimension with variables of rank 1, and all variables are also arrays. With `--grids`, `tables` also has the grids.
//!
//! | module | what it does |
//! | --- | --- |
//! | `dimensions` | finds the dimensions of variables, and the tables on them |
//! | `conventions` | interprets the attributes of variables |
//! | `columns` | opens a variable as a column |
//! | `grids` | makes a table of variables on several dimensions |

mod columns;
mod conventions;
mod dimensions;
mod grids;
pub(super) mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use bstr::BString;

use self::conventions::{ATTRIBUTES, VariableReading};
use self::dimensions::{CoordinateVariable, DimensionNames, DimensionScope, Dimensions, RowSet, Variable, is_variable};
use self::grids::VariableGrid;
use super::arrays::Arrays;
use super::{About, Claims, Dialect, Here, ListedObject, Made, Mark, Of, Role, Site, compound, scales, times};
use crate::catalogue::{Dataset, Fill, attribute, join};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Column, Finding, Single, Table, Unreadable};

/// Name of the directory of tables, in a group that has several.
const TABLES: &str = "tables";

/// Most links of a group for which the dimensions of its members are named.
const MOST_NAMED: usize = 4096;

/// Most findings on the values of a group's variables; any further ones are only counted.
const MOST_FINDINGS: usize = 100;

/// The netCDF dialect.
#[derive(Debug)]
pub struct Netcdf {
    /// Whether grids are shown as tables.
    pub grids: bool,
}

impl Netcdf {
    fn grids<'a>(&self, dimensions: &Dimensions<'a>) -> Vec<VariableGrid<'a>> {
        if self.grids { grids::of(dimensions) } else { Vec::new() }
    }
}

static ABOUT: About = About { rules: rules::ALL, attributes: &ATTRIBUTES, ..About::named(rules::DIALECT) };

impl Dialect for Netcdf {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) => Mark::LookInside,
            ListedObject::Dataset(dataset) if !compound::is_record(dataset) && is_variable(dataset) => Mark::Files,
            ListedObject::Dataset(dataset) if is_coded_scalar(dataset) => Mark::Files,
            ListedObject::Dataset(_) => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let place = DimensionScope { file: here.file, path: here.path, group: here.group, interrupt: here.interrupt };
        if !place.has_any() {
            return Claims::default();
        }
        let mut dimensions = place.dimensions();
        let findings = std::mem::take(&mut dimensions.findings);
        let mut claims = Claims { findings, ..Claims::default() };
        if here.group.links.len() <= MOST_NAMED {
            let mut names = DimensionNames::of(place);
            let axes = dimensions.variables.iter().map(|Variable { link, axes, .. }| {
                ((*link).clone(), axes.iter().map(|axis| axis.map(|id| names.name(id))).collect::<Arc<[_]>>())
            });
            claims.axes = axes.collect();
        }
        claims.findings.append(&mut of_values(here));
        if dimensions.is_one {
            claims.is_table = true;
            let columns = dimensions.tables.iter().flat_map(|set| {
                let label = set.label.as_ref().and_then(|label| label.link.as_ref());
                label.into_iter().chain(set.columns.iter().map(|(name, _)| name))
            });
            claims.members = columns.map(|name| (name.clone(), Role::Column)).collect();
            return claims;
        }
        let names = names(&place, &dimensions, &self.grids(&dimensions));
        if !names.is_empty() {
            let children = names
                .into_iter()
                .map(|name| (name.clone(), Made::Directory { table: Some(name), children: Arc::default() }));
            let tables = Made::Directory { table: None, children: children.collect() };
            claims.made.push((TABLES.into(), tables));
        }
        claims
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let place = |group| DimensionScope { file: site.file, path: site.path, group, interrupt };
        let (group, path, opened) = match site.of {
            Of::Group(group) => {
                let place = place(group);
                let set = place.dimensions().tables.into_iter().next();
                let opened =
                    set.map(|set| table(&place, site.path, &set, &DimensionNames::of(place).name(set.dimension)));
                (group, site.path.to_owned(), opened)
            }
            Of::Made { group, key, plan } => {
                let (place, path) = (place(group), join(&join(site.path, TABLES.as_bytes()), key));
                let plan = plan.of(interrupt, || Planned::of(&place, self));
                let opened = plan.and_then(|plan| plan.open(&place, &path, key, self));
                (group, path, opened)
            }
            // This dialect marks no dataset as a table.
            Of::Dataset(_) => return Table::empty(site.path, self.about().name),
        };
        match opened {
            Some(table) => Table { attributes: group.attributes.clone(), ..table },
            None => Table::empty(&path, self.about().name),
        }
    }

    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        let Of::Dataset(stored) = site.of else { return Err("no dataset".into()) };
        if scales::is_pure_dimension(stored) {
            return Err("it is a dimension of netCDF, which has no values".into());
        }
        // A scalar names no dimensions. Which files it has does not depend on its attributes.
        if !is_variable(stored) && !interrupt.is_some_and(|interrupt| is_of_netcdf(site.file, interrupt)) {
            return Arrays.files(site, name, interrupt);
        }
        if columns::is_one_text(stored) {
            let whole = columns::text_of(site.file, site.path, name.clone(), stored);
            let text = whole.rows.clone().ok();
            return Ok(Single { text, ..Arrays::of_rows(site.path, stored, Vec::new(), whole) });
        }
        let whole = columns::column(site.file, site.path, name.clone(), stored);
        let reading = VariableReading::of(stored, false);
        if columns::is_text(stored) {
            let shape = stored.shape.split_last().map_or_else(Vec::new, |(_, shape)| shape.to_vec());
            return Ok(Arrays::of_rows(site.path, stored, shape, whole));
        }
        let single = Arrays.files(&Site { of: Of::Dataset(&reading.dataset), ..*site }, name, interrupt)?;
        let attributes = stored.attributes.clone();
        Ok(Single {
            whole: Table { columns: vec![whole], attributes, dialect: self.about().name, ..single.whole },
            datatype: stored.datatype.clone(),
            ..single
        })
    }
}

/// Whether software of netCDF wrote the file.
fn is_of_netcdf(file: &Arc<File>, interrupt: &Interrupt) -> bool {
    let root = file.group(file.info().root, interrupt);
    root.is_ok_and(|root| {
        attribute(&root.attributes, "_NCProperties").is_some()
            || dimensions::datasets(&root).any(|(_, dataset)| is_variable(dataset))
    })
}

/// Whether a scalar may stand for another number, an instant, a word or a null.
fn is_coded_scalar(dataset: &Dataset) -> bool {
    const PACKING: [&str; 6] = ["scale_factor", "add_offset", "_Unsigned", "missing_value", "flag_values", "dtype"];
    dataset.shape.is_empty()
        && (PACKING.iter().any(|name| attribute(&dataset.attributes, name).is_some())
            || times::counted_by(&dataset.attributes).is_some()
            || matches!(conventions::default_fill(dataset), Fill::Explicit(_)))
}

/// Collects findings on the attributes of a group's variables.
fn of_values(here: &Here<'_>) -> Vec<Finding> {
    let (mut findings, mut beyond) = (Vec::new(), 0);
    let variables = dimensions::datasets(here.group).filter(|(_, dataset)| is_variable(dataset));
    for (name, dataset) in variables.filter(|(_, dataset)| !scales::is_pure_dimension(dataset)) {
        for (rule, found) in VariableReading::of(dataset, here.file.store().shows_times()).findings {
            if findings.len() < MOST_FINDINGS {
                findings.push(Finding::new(join(here.path, name), rule, found));
            } else {
                beyond += 1;
            }
        }
    }
    if beyond > 0 {
        let found = format!("{beyond} more variables break rules of values");
        findings.push(Finding::new(here.path, &rules::VALUES, found));
    }
    findings
}

/// Names the tables of a group: those on dimensions, then the grids.
fn names(place: &DimensionScope<'_>, dimensions: &Dimensions<'_>, grids: &[VariableGrid<'_>]) -> Vec<BString> {
    let tables = dimensions.tables.iter().map(RowSet::dimensions);
    place.names(tables.chain(grids.iter().map(|grid| grid.dimensions.as_slice())))
}

/// The tables of a group, planned once: there may be one for each of very many dimensions.
struct Planned {
    /// The tables on dimensions, each with the name of its dimension.
    sets: Vec<(RowSet, BString)>,
    /// Numbers of all tables by name: those on dimensions come first, then the grids.
    numbers: HashMap<BString, usize>,
}

impl Planned {
    fn of(place: &DimensionScope<'_>, dialect: &Netcdf) -> Self {
        let dimensions = place.dimensions();
        let names = names(place, &dimensions, &dialect.grids(&dimensions));
        let numbers = names.into_iter().enumerate().map(|(number, name)| (name, number)).collect();
        let mut names = DimensionNames::of(*place);
        let sets = dimensions.tables.into_iter().map(|set| {
            let name = names.name(set.dimension);
            (set, name)
        });
        Self { sets: sets.collect(), numbers }
    }

    fn open(&self, place: &DimensionScope<'_>, path: &str, key: &BString, dialect: &Netcdf) -> Option<Table> {
        let number = *self.numbers.get(key)?;
        if let Some((set, name)) = self.sets.get(number) {
            return Some(table(place, path, set, name));
        }
        let dimensions = place.dimensions();
        let grids = dialect.grids(&dimensions);
        Some(grids::table(place, path, grids.get(number.checked_sub(self.sets.len())?)?, &dimensions))
    }
}

/// Path of the variable that labels a dimension, and the name of its column.
fn label_of(place: &DimensionScope<'_>, label: &CoordinateVariable) -> (String, BString) {
    if let Some(link) = &label.link {
        return (join(place.path, link), link.clone());
    }
    place.find(label.dataset.id).unwrap_or_else(|| {
        // It lies neither in this group nor above: use the scale's own name, and its path if that can be found.
        let name = super::attributes::text(&label.dataset.attributes, "NAME").unwrap_or_default();
        let name = BString::from(name);
        let path = place.file.path_of(label.dataset.id, place.interrupt).ok().flatten();
        (path.unwrap_or_else(|| join(place.path, &name)), name)
    })
}

/// Makes the table of the variables on the dimension of this name.
fn table(place: &DimensionScope<'_>, path: &str, set: &RowSet, name: &BString) -> Table {
    let mut findings = Vec::new();
    let mut columns: Vec<Column> = Vec::with_capacity(set.columns.len() + 1);
    if let Some(label) = &set.label {
        let (path, name) = label_of(place, label);
        let column = columns::column(place.file, &path, name, &label.dataset);
        columns.push(Column { is_label: true, ..columns::padded(column, &label.dataset, set.rows) });
    }
    let labelled = columns.first().map(|label| label.name.clone());
    let links: Vec<&BString> = labelled.iter().chain(set.columns.iter().map(|(name, _)| name)).collect();
    let names = dimensions::column_names(&links).split_off(labelled.iter().len());
    for ((link, dataset), name) in set.columns.iter().zip(names) {
        let path = join(place.path, link);
        let rows = dataset.shape.first().copied().unwrap_or(0);
        if rows < set.rows && dataset.max_shape.first().is_some_and(Option::is_some) {
            let found = format!("{rows} rows, the table has {}: the last ones are missing", set.rows);
            findings.push(Finding::new(&path, &rules::LENGTH, found));
        }
        columns.push(columns::padded(columns::column(place.file, &path, name, dataset), dataset, set.rows));
    }
    Table {
        revision: format!("dimension {name}"),
        rows: set.rows,
        columns,
        findings,
        ..Table::empty(path, rules::DIALECT)
    }
}
