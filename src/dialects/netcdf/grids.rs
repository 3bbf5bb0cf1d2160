//! Shows grids as tables (`--grids`), with a row for each grid point of the variables on the same dimensions.
//!
//! ```text
//! rain(time, lat, lon)   tables/time,lat,lon: the coordinates time, lat, lon as row labels, then rain
//! ```
//!
//! Rows are in storage order, so the column of a variable has its elements as they are stored. The columns of
//! coordinates are computed from the variables that label the dimensions; a dimension without a label has its indexes,
//! from 0.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use bstr::BString;

use super::columns::{elements, is_text, padded};
use super::dimensions::{
    CoordinateVariable, DimensionNames, DimensionScope, Dimensions, MOST_COLUMNS, Variable, column_names,
};
use super::{MOST_FINDINGS, label_of, rules};
use crate::catalogue::{ColumnId, Dataset, Object, ObjectId, attribute, join, product};
use crate::dialects::attributes::text;
use crate::dialects::{compound, datasets, scales};
use crate::store::{Hints, Rows};
use crate::table::{Categories, CategoryRows, Column, EvenRows, Finding, HeldRows, SpreadRows, Table, Unreadable};

/// Most coordinates along an axis to read when the table is opened, so as to know whether one is missing.
const MOST_HELD: u64 = 1 << 16;

/// Most auxiliary coordinates in a table.
const MOST_COORDINATES: usize = 64;
/// Most attributes to read that name auxiliary coordinates.
const MOST_STATED: usize = 8192;
/// Most bytes in an attribute that names auxiliary coordinates.
const LONGEST: u64 = 4096;

/// Marks the number of a spread column, which must differ from that of the variable's own column.
const SPREAD: u32 = 1 << 31;

/// Variables that share all their dimensions, of which there are two or more.
#[derive(Debug)]
pub(super) struct VariableGrid<'a> {
    /// The dimensions, outermost first.
    pub dimensions: Vec<ObjectId>,
    /// The variables that are columns, in order, with the names of their links.
    variables: Vec<(&'a BString, &'a Arc<Dataset>)>,
    /// Extent of the grid along each axis.
    shape: Vec<u64>,
    /// Variables that have other extents, or are too many, with the names of their links.
    left_out: Vec<(&'a BString, &'a Arc<Dataset>)>,
}

/// Finds the grids of a group, in the order in which their dimensions occur.
pub(super) fn of<'a>(dimensions: &Dimensions<'a>) -> Vec<VariableGrid<'a>> {
    let columns = dimensions.tables.iter().flat_map(|set| &set.columns);
    let columns: HashSet<ObjectId> = columns.map(|(_, dataset)| dataset.id).collect();
    let lengths = lengths(dimensions);
    let (mut grids, mut places): (Vec<VariableGrid<'a>>, HashMap<Vec<ObjectId>, usize>) = Default::default();
    for Variable { link, dataset, axes } in &dimensions.variables {
        let Some(on) = axes.iter().copied().collect::<Option<Vec<ObjectId>>>() else { continue };
        let is_grid = on.len() > 1 && on.iter().collect::<HashSet<_>>().len() == on.len();
        let has_values = !dataset.null && product(&dataset.shape).is_some_and(|places| places > 0);
        let is_other = is_text(dataset) || compound::is_record(dataset) || columns.contains(&dataset.id);
        if !is_grid || !has_values || is_other {
            continue;
        }
        let at = *places.entry(on.clone()).or_insert_with(|| {
            let shape = on.iter().map(|dimension| lengths.get(dimension).copied().unwrap_or(0)).collect();
            grids.push(VariableGrid { dimensions: on, shape, variables: Vec::new(), left_out: Vec::new() });
            grids.len() - 1
        });
        let grid = &mut grids[at];
        // Along an unlimited dimension, a variable may end early. If that is the first axis, its other values stay in
        // place.
        let is_column = grid.shape[1..] == dataset.shape[1..] && grid.variables.len() < MOST_COLUMNS;
        if is_column { &mut grid.variables } else { &mut grid.left_out }.push((link, dataset));
    }
    // Coordinates alone make no table.
    let coordinates = named(dimensions.variables.iter().map(|variable| variable.dataset));
    grids.retain(|grid| {
        product(&grid.shape).is_some() && !grid.variables.iter().all(|(link, _)| coordinates.contains(*link))
    });
    grids
}

/// The length of each dimension: that of the longest variable, label or table on it.
fn lengths(dimensions: &Dimensions<'_>) -> HashMap<ObjectId, u64> {
    let of_variables = dimensions.variables.iter().flat_map(|Variable { dataset, axes, .. }| {
        axes.iter().copied().zip(&dataset.shape).filter_map(|(dimension, extent)| Some((dimension?, *extent)))
    });
    let of_labels = dimensions.labels.iter().map(|(dimension, label)| (*dimension, label.dataset.shape.first()));
    let of_labels = of_labels.filter_map(|(dimension, extent)| Some((dimension, *extent?)));
    let of_tables = dimensions.tables.iter().map(|set| (set.dimension, set.rows));
    let mut lengths = HashMap::new();
    for (dimension, extent) in of_variables.chain(of_labels).chain(of_tables) {
        let known: &mut u64 = lengths.entry(dimension).or_default();
        *known = extent.max(*known);
    }
    lengths
}

/// Collects the names in the `coordinates` attributes of variables (CF §5).
fn named<'a>(variables: impl Iterator<Item = &'a Arc<Dataset>>) -> HashSet<BString> {
    let stated = variables.filter_map(|dataset| attribute(&dataset.attributes, "coordinates"));
    let stated = stated
        .filter(|stated| stated.datatype.size.saturating_mul(stated.len().unwrap_or(0)) <= LONGEST)
        .take(MOST_STATED);
    let stated = stated.filter_map(|stated| text(std::slice::from_ref(stated), "coordinates"));
    stated.flat_map(|names| names.split_whitespace().map(BString::from).collect::<Vec<_>>()).collect()
}

/// Makes the table of a grid.
pub(super) fn table(
    place: &DimensionScope<'_>,
    path: &str,
    grid: &VariableGrid<'_>,
    dimensions: &Dimensions<'_>,
) -> Table {
    let rows = product(&grid.shape).unwrap_or(0);
    let mut spread = Spread { place, path, grid, rows, categories: Vec::new() };
    let mut names = DimensionNames::of(*place);
    let mut columns: Vec<Column> = Vec::new();
    for (axis, id) in grid.dimensions.iter().enumerate() {
        let column = match dimensions.labels.get(id).cloned().or_else(|| elsewhere(place, dimensions, *id)) {
            Some(label) => {
                let (path, name) = label_of(place, &label);
                spread.column(elements(place.file, &path, name, &label.dataset), &label.dataset, &(axis..axis + 1))
            }
            None => spread.places(names.name(*id), *id, axis),
        };
        columns.push(Column { is_label: true, ..column });
    }
    let labels: HashSet<BString> = columns.iter().map(|column| column.name.clone()).collect();
    for (Variable { link, dataset, .. }, axes) in coordinates(grid, dimensions).into_iter().take(MOST_COORDINATES) {
        if !labels.contains(*link) {
            let column = elements(place.file, &join(place.path, link), (*link).clone(), dataset);
            columns.push(spread.column(column, dataset, &axes));
        }
    }
    let mut findings: Vec<Finding> = columns
        .iter()
        .filter_map(|column| Some(Finding::new(&column.path, &rules::COORDINATES, column.rows.as_ref().err()?.clone())))
        .collect();
    let links: Vec<&BString> = grid.variables.iter().map(|(link, _)| *link).collect();
    for ((link, dataset), name) in grid.variables.iter().zip(column_names(&links)) {
        let column = elements(place.file, &join(place.path, link), name, dataset);
        columns.push(padded(column, dataset, rows));
    }
    datasets::tell_apart(&mut columns);
    let left_out = grid.left_out.iter().take(MOST_FINDINGS).map(|(link, dataset)| {
        let found = format!("extents {:?}, not {:?}, or more than {MOST_COLUMNS} columns", dataset.shape, grid.shape);
        Finding::new(join(place.path, link), &rules::LENGTH, found)
    });
    findings.extend(left_out);
    let names: Vec<String> = grid.dimensions.iter().map(|id| names.name(*id).to_string()).collect();
    Table {
        revision: format!("grid of {}", names.join(", ")),
        rows,
        findings,
        categories: spread.categories,
        columns,
        ..Table::empty(path, rules::DIALECT)
    }
}

/// Finds the label of a dimension that no row set has, since it lies in another group, or no other variable lies on the
/// dimension.
fn elsewhere(place: &DimensionScope<'_>, dimensions: &Dimensions<'_>, id: ObjectId) -> Option<CoordinateVariable> {
    let Object::Dataset(dataset) = place.file.object(id, place.interrupt).ok()? else { return None };
    let is_label = scales::is_scale(&dataset) && !scales::is_pure_dimension(&dataset);
    let own = dimensions.variables.iter().find(|variable| variable.dataset.id == id);
    let link = own.map(|variable| variable.link.clone());
    (is_label && dataset.shape.len() == 1 && !dataset.null).then_some(CoordinateVariable { link, dataset })
}

/// Finds the auxiliary coordinates of a grid's variables that lie on consecutive axes of the grid. Returns each with
/// these axes.
fn coordinates<'d, 'a>(
    grid: &VariableGrid<'a>,
    dimensions: &'d Dimensions<'a>,
) -> Vec<(&'d Variable<'a>, Range<usize>)> {
    let named = named(grid.variables.iter().map(|(_, dataset)| *dataset));
    let found = dimensions.variables.iter().filter(|variable| named.contains(variable.link));
    let placed = found.filter_map(|variable| {
        let Variable { dataset, axes, .. } = variable;
        let rank = axes.len() - usize::from(is_text(dataset));
        let on: Vec<ObjectId> = axes[..rank].iter().copied().collect::<Option<_>>()?;
        let is_any =
            !on.is_empty() && on.len() < grid.dimensions.len() && !compound::is_record(dataset) && !dataset.null;
        let first = grid.dimensions.windows(on.len().max(1)).position(|window| window == on).filter(|_| is_any)?;
        let axes = first..first + rank;
        (dataset.shape[1..rank] == grid.shape[axes.clone()][1..]).then_some((variable, axes))
    });
    placed.collect()
}

/// Repeats variables that lie on some axes of a grid, so that they have a value for each of its rows.
struct Spread<'a> {
    place: &'a DimensionScope<'a>,
    path: &'a str,
    grid: &'a VariableGrid<'a>,
    rows: u64,
    categories: Vec<Categories>,
}

impl Spread<'_> {
    /// Identifies a spread column, so that its statistics are its own: another grid may spread the same variable
    /// differently.
    fn id(&self, object: ObjectId, axes: &Range<usize>) -> ColumnId {
        let of_grid = self.grid.variables.first().map_or(0, |(_, dataset)| dataset.id.address);
        let told: Vec<u8> =
            [of_grid, axes.start as u64, axes.end as u64].iter().flat_map(|one| one.to_le_bytes()).collect();
        ColumnId { object, field: SPREAD | xxhash_rust::xxh3::xxh3_64(&told) as u32 }
    }

    /// Repeats the rows of a variable on `axes` over all rows of the table.
    fn rows(&self, path: &str, rows: Arc<dyn Rows>, axes: &Range<usize>) -> Arc<dyn Rows> {
        // Both numbers divide the number of rows, so neither overflows.
        let count = product(&self.grid.shape[axes.clone()]).unwrap_or(0);
        let run = product(&self.grid.shape[axes.end..]).unwrap_or(1);
        Arc::new(SpreadRows::new(path.to_owned(), rows, count, run, self.rows))
    }

    /// Makes the column of the indexes along an axis without a label.
    fn places(&self, name: BString, id: ObjectId, axis: usize) -> Column {
        let path = join(self.path, &name);
        let places = numbered(self.grid.shape[axis]);
        let axes = axis..axis + 1;
        let rows = places.map(|places| self.rows(&path, places, &axes));
        Column::new(name, path, self.id(id, &axes), rows, Arc::default())
    }

    /// Spreads the column of a variable on `axes` over all rows of the table. Texts become labels of a dictionary.
    fn column(&mut self, column: Column, dataset: &Arc<Dataset>, axes: &Range<usize>) -> Column {
        let column = padded(column, dataset, product(&self.grid.shape[axes.clone()]).unwrap_or(0));
        let mut labels = None;
        let rows = column.rows.clone().and_then(|rows| match rows.data_type() {
            DataType::LargeUtf8 if rows.len() <= MOST_HELD => {
                let codes = self.rows(&column.path, numbered(rows.len())?, axes);
                labels = Some(rows.clone());
                Ok(Arc::new(CategoryRows::new(column.path.clone(), codes, rows, column.tally.clone())) as Arc<dyn Rows>)
            }
            kind if kind.is_primitive() || *kind == DataType::Boolean => {
                Ok(self.rows(&column.path, self.held(rows)?, axes))
            }
            DataType::FixedSizeBinary(_) | DataType::Dictionary(..) => Ok(self.rows(&column.path, rows, axes)),
            kind => Err(format!("{} coordinates of type {kind}: they make no column of a grid", rows.len()).into()),
        });
        let categories = labels.map(|labels| {
            let (path, datatype) = (column.path.clone(), dataset.datatype.clone());
            self.categories.push(Categories { path, labels: Ok(labels), datatype, ordered: None });
            self.categories.len() - 1
        });
        let (id, in_table) = (self.id(column.id.object, axes), rows.is_ok());
        Column { id, rows, in_table, categories, stored_strings: None, ..column }
    }

    /// Reads coordinates into memory, if there are only a few.
    fn held(&self, rows: Arc<dyn Rows>) -> Result<Arc<dyn Rows>, Unreadable> {
        if rows.len() > MOST_HELD {
            return Ok(rows);
        }
        let array = rows.array(0..rows.len(), self.place.interrupt)?;
        Ok(Arc::new(HeldRows::new(array, false, Hints { stored: false, ..rows.hints().clone() })))
    }
}

/// Makes rows that count from 0.
fn numbered(count: u64) -> Result<Arc<dyn Rows>, Unreadable> {
    let rows = EvenRows::whole(0, 1, count).ok_or_else(|| format!("{count} places"))?;
    Ok(Arc::new(rows))
}
