//! Makes the table of a histogram: a row for each bin, in the order in which the weights are stored.

use std::sync::{Arc, OnceLock};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use bstr::{BString, ByteSlice};

use super::Lh5;
use super::rules;
use crate::catalogue::{ColumnId, Dataset, Group, Object, join, product};
use crate::dialects::attributes::text;
use crate::dialects::{Dialect, Site, datasets};
use crate::source::Interrupt;
use crate::store::{DatasetRows, Rows, Tally};
use crate::table::{CastRows, Column, EdgeRows, Edges, Finding, Meaning, Table, Unreadable};

/// Most edges of an axis that are stored one by one, and all read at once.
const MOST_EDGES: u64 = 1 << 20;

/// Largest relative distance from an integer that a number of bins may have.
const NEARLY: f64 = 1e-5;

/// The members of a histogram, in order of their bytes.
const MEMBERS: [&str; 3] = ["binning", "isdensity", "weights"];

/// Whether a struct with these members is a histogram.
pub(super) fn is_histogram(names: &[BString]) -> bool {
    let mut names: Vec<_> = names.iter().map(|name| name.as_bstr()).collect();
    names.sort_unstable();
    names == MEMBERS
}

/// Makes the table of a histogram.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let mut histogram = Histogram { site, interrupt, findings: Vec::new() };
    let columns = histogram.columns(group).unwrap_or_else(|reason| {
        histogram.report(format!("{reason}: its parts are shown by themselves"));
        Vec::new()
    });
    let rows = columns.iter().find_map(|column| Some(column.rows.as_ref().ok()?.len()));
    Table {
        revision: "histogram".into(),
        rows: rows.unwrap_or(0),
        attributes: group.attributes.clone(),
        columns,
        findings: histogram.findings,
        ..Table::empty(site.path, Lh5.about().name)
    }
}

/// A histogram whose columns are being made.
struct Histogram<'a> {
    site: &'a Site<'a>,
    interrupt: &'a Interrupt,
    findings: Vec<Finding>,
}

/// An axis: its name in the file, and its bins.
struct Axis {
    name: BString,
    edges: Arc<Edges>,
    units: Option<String>,
    /// Whether a bin includes its lower edge, rather than its upper one. `None`: the file does not say.
    closed_left: Option<bool>,
}

impl Histogram<'_> {
    fn report(&mut self, found: String) {
        self.findings.push(Finding::new(self.site.path, &rules::HISTOGRAM, found));
    }

    fn columns(&mut self, group: &Group) -> Result<Vec<Column>, Unreadable> {
        let weights = match datasets::object(group, "weights")? {
            Object::Dataset(weights) if !weights.null && !weights.shape.is_empty() => weights,
            _ => return Err("weights are no array".into()),
        };
        let binning = self.group(datasets::object(group, "binning")?)?;
        let numbered = numbered(&binning);
        // This is checked before any axis is opened, since there may be many.
        if numbered.len() != weights.shape.len() {
            return Err(format!("{} axes, weights of {:?}", numbered.len(), weights.shape).into());
        }
        let mut axes = Vec::new();
        for (number, name) in numbered {
            let path = join(&join(self.site.path, b"binning"), name);
            let object = binning.link(name).and_then(|link| link.target.object()).ok_or("an axis that is not there")?;
            axes.push((number, self.axis(name.clone(), &path, object)?));
        }
        let begins_at_one = axes.first().is_some_and(|(number, _)| *number == 1);
        let axes: Vec<Axis> = axes.into_iter().map(|(_, axis)| axis).collect();
        let bins: Vec<u64> = axes.iter().map(|axis| axis.edges.bins()).collect();
        let backwards: Vec<u64> = bins.iter().rev().copied().collect();
        let (fits, fits_backwards) = (bins == weights.shape, backwards == weights.shape);
        // Julia counts from 1, and stores the dimensions in its own order, the first one fastest.
        let is_reversed = fits_backwards && bins.len() > 1 && (!fits || begins_at_one);
        if is_reversed {
            self.report("its dimensions are those of its axes in reverse, as Julia writes them".into());
        } else if !fits {
            return Err(format!("axes of {bins:?} bins, weights of {:?}", weights.shape).into());
        }
        let path = join(self.site.path, b"weights");
        let opened = datasets::open(self.site.file, &path, weights)?;
        let rows = DatasetRows::plain(opened, u64::MAX);
        let len = rows.facts().len;
        let mut columns = Vec::with_capacity(2 * axes.len() + 1);
        for (number, axis) in axes.iter().enumerate() {
            let dimension = if is_reversed { axes.len() - 1 - number } else { number };
            let inner = product(weights.shape.get(dimension + 1..).unwrap_or_default()).unwrap_or(u64::MAX);
            for (side, is_upper) in [("low", false), ("high", true)] {
                let name = BString::from([axis.name.as_slice(), b"_", side.as_bytes()].concat());
                let id = ColumnId { object: group.id, field: columns.len() as u32 + 1 };
                let rows = EdgeRows::new(axis.edges.clone(), inner, len, is_upper);
                columns.push(Column {
                    meaning: Meaning {
                        units: axis.units.clone(),
                        description: axis.closed_left.map(|left| {
                            let (open, close) = if left { ("[", ")") } else { ("(", "]") };
                            format!("{side} edge of a bin {open}low, high{close}")
                        }),
                        ..Meaning::default()
                    },
                    ..Column::new(name.clone(), join(self.site.path, &name), id, Ok(Arc::new(rows)), Arc::default())
                });
            }
        }
        let is_density = datasets::object(group, "isdensity").ok().and_then(|object| self.number("isdensity", object));
        let [units, description] = ["units", "description"].map(|what| text(&weights.attributes, what));
        columns.push(Column {
            attributes: weights.attributes.clone(),
            dataset: Some(weights.clone()),
            meaning: Meaning {
                units,
                description: description.or_else(|| {
                    is_density.filter(|density| *density != 0.0).map(|_| "weight per volume of the bin".into())
                }),
                ..Meaning::default()
            },
            ..Column::new(
                "weight".into(),
                path,
                ColumnId::whole(weights.id),
                Ok(Arc::new(rows)),
                Arc::<Tally>::default(),
            )
        });
        Ok(columns)
    }

    fn group(&self, object: &Object) -> Result<Group, Unreadable> {
        match object {
            Object::Group { id, .. } => self.site.file.group(*id, self.interrupt).map_err(Unreadable::from),
            _ => Err("binning is no group of axes".into()),
        }
    }

    fn axis(&self, name: BString, path: &str, object: &Object) -> Result<Axis, Unreadable> {
        let group = self.group(object)?;
        let closed_left = datasets::object(&group, "closedleft").ok().and_then(|object| self.number(path, object));
        let edges = datasets::object(&group, "binedges")?;
        let units = text(edges.attributes(), "units").or_else(|| text(object.attributes(), "units"));
        let edges = match edges {
            Object::Dataset(edges) if edges.shape.len() == 1 && !edges.null => {
                let rows = self.floats(&join(path, b"binedges"), edges)?;
                if !(2..=MOST_EDGES).contains(&rows.len()) {
                    return Err(format!("{name} has {} edges", rows.len()).into());
                }
                Edges::Stored { rows, read: OnceLock::new() }
            }
            Object::Group { .. } => self.even(&self.group(edges)?).map_err(|reason| format!("{name}: {reason}"))?,
            _ => return Err(format!("{name} has no edges").into()),
        };
        Ok(Axis { name, edges: Arc::new(edges), units, closed_left: closed_left.map(|closed| closed != 0.0) })
    }

    /// Reads evenly spaced edges: the first and the last, and a step or the number of edges. Without either, the step
    /// is 1.
    fn even(&self, group: &Group) -> Result<Edges, Unreadable> {
        let number = |name: &str| datasets::object(group, name).ok().and_then(|object| self.number(name, object));
        let (Some(first), Some(last)) = (number("first"), number("last")) else {
            return Err("no first and last edge".into());
        };
        let bins = match (number("step"), number("length")) {
            (None, Some(length)) => length - 1.0,
            (step, _) => (last - first) / step.unwrap_or(1.0),
        };
        let whole = bins.round();
        if !(1.0..=9e15).contains(&whole) || (bins - whole).abs() > NEARLY * whole || !(last - first).is_finite() {
            return Err(format!("from {first} to {last}, {bins} bins").into());
        }
        Ok(Edges::Even { first, last, bins: whole as u64 })
    }

    /// Opens a dataset of numbers as float64.
    fn floats(&self, path: &str, dataset: &Arc<Dataset>) -> Result<Arc<dyn Rows>, Unreadable> {
        let rows = Arc::new(DatasetRows::plain(datasets::open(self.site.file, path, dataset)?, u64::MAX));
        match &rows.facts().data_type {
            number if number.is_numeric() => Ok(Arc::new(CastRows::new(rows, Some(DataType::Float64), false))),
            other => Err(format!("{path} holds {other}").into()),
        }
    }

    /// Reads a scalar as a number; a boolean is 0 or 1. `None`: not a number, or unreadable.
    fn number(&self, path: &str, object: &Object) -> Option<f64> {
        let Object::Dataset(dataset) = object else { return None };
        if !dataset.shape.is_empty() || dataset.null {
            return None;
        }
        let rows = DatasetRows::plain(datasets::open(self.site.file, path, dataset).ok()?, 1);
        if rows.facts().data_type == DataType::Boolean {
            let value = rows.array(0..1, self.interrupt).ok()?;
            return value.is_valid(0).then(|| value.as_boolean().value(0).into());
        }
        let value = self.floats(path, dataset).ok()?.array(0..1, self.interrupt).ok()?;
        value.is_valid(0).then(|| value.as_primitive::<Float64Type>().value(0))
    }
}

/// Sorts the axes by their numbers, so that `axis_10` follows `axis_2`.
fn numbered(binning: &Group) -> Vec<(u32, &BString)> {
    let names = binning.links.iter().map(|link| &link.name);
    let axes = names.filter_map(|name| Some((name.strip_prefix(b"axis_")?.to_str().ok()?.parse().ok()?, name)));
    let mut axes: Vec<(u32, &BString)> = axes.collect();
    axes.sort_unstable();
    axes
}
