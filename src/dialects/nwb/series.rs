//! Makes the table of a `TimeSeries`: a row for each sample.

use std::sync::Arc;

use bstr::BString;

use super::rules;
use super::{Nwb, type_of};
use crate::catalogue::{ColumnId, Dataset, Group, attribute, join};
use crate::dialects::attributes::{number, said, text};
use crate::dialects::{Dialect, Site, arrays, datasets};
use crate::source::Interrupt;
use crate::store::Rows;
use crate::table::{Column, EvenRows, Finding, Meaning, PackedRows, Table, Unreadable};

/// Most channels that may each have a conversion factor.
const MOST_CHANNELS: u64 = 1 << 20;

/// The members of a series that make its table.
pub(super) struct Series<'a> {
    data: &'a Arc<Dataset>,
    clock: Clock<'a>,
}

/// How the times of samples are stored.
enum Clock<'a> {
    /// A time for each sample.
    Stored(&'a Arc<Dataset>),
    /// A start, whose attribute `rate` states the number of samples per second.
    Even(&'a Arc<Dataset>),
}

impl<'a> Series<'a> {
    /// Finds the data and the times of a series in a group: the samples are single values or vectors. `None`: the group
    /// is not a series.
    pub fn of(group: &'a Group) -> Option<Self> {
        let data = datasets::of_rank(group, "data", 1).or_else(|| datasets::of_rank(group, "data", 2))?;
        let stored = datasets::of_rank(group, "timestamps", 1).map(Clock::Stored);
        let clock = stored.or_else(|| {
            let start = datasets::of_rank(group, "starting_time", 0)?;
            attribute(&start.attributes, "rate").map(|_| Clock::Even(start))
        });
        Some(Self { data, clock: clock? })
    }
}

/// Makes the table of a series.
pub(super) fn table(site: &Site<'_>, group: &Group, series: &Series<'_>, interrupt: &Interrupt) -> Table {
    let rows = series.data.shape.first().copied().unwrap_or(0);
    let mut findings = Vec::new();
    let mut columns =
        vec![timestamps(site, series, rows, interrupt), data(site, group, series, interrupt, &mut findings)];
    for column in &mut columns {
        match &column.rows {
            Ok(stored) if stored.len() != rows => {
                column.in_table = false;
                let found = format!("{} of them, of {rows} samples", stored.len());
                findings.push(Finding::new(&column.path, &rules::TIMES, found));
            }
            Ok(_) => {}
            Err(reason) => findings.push(Finding::new(&column.path, &rules::READABLE, reason.clone())),
        }
    }
    Table {
        revision: type_of(&group.attributes).unwrap_or_else(|| "TimeSeries".into()),
        rows,
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, Nwb.about().name)
    }
}

fn timestamps(site: &Site<'_>, series: &Series<'_>, rows: u64, interrupt: &Interrupt) -> Column {
    let name = BString::from("timestamp");
    let (start, path) = match series.clock {
        Clock::Stored(stored) => {
            let column = arrays::column(site.file, &join(site.path, b"timestamps"), &name, stored);
            return Column { meaning: Meaning { units: unit(stored), ..column.meaning }, ..column };
        }
        Clock::Even(start) => (start, join(site.path, b"starting_time")),
    };
    let even = datasets::scalar(site.file, &path, start, interrupt).and_then(|first| {
        let rate = attribute(&start.attributes, "rate").and_then(number);
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        let rate = rate.ok_or("the attribute rate is no number of samples in a second")?;
        Ok(Arc::new(EvenRows::with_rate(first, rate, rows)) as Arc<dyn Rows>)
    });
    let id = ColumnId { object: start.id, field: 1 };
    Column {
        attributes: start.attributes.clone(),
        meaning: Meaning { units: unit(start), ..Meaning::default() },
        ..Column::new(name, path, id, even, Arc::default())
    }
}

fn data(
    site: &Site<'_>,
    group: &Group,
    series: &Series<'_>,
    interrupt: &Interrupt,
    findings: &mut Vec<Finding>,
) -> Column {
    let data = series.data;
    let column = arrays::column(site.file, &join(site.path, b"data"), &"data".into(), data);
    let column = Column { meaning: Meaning { units: unit(data), ..column.meaning }, ..column };
    let stated = |name, otherwise| match attribute(&data.attributes, name) {
        Some(stated) => number(stated).filter(|stated| stated.is_finite()).ok_or(name),
        None => Ok(otherwise),
    };
    let scale = stated("conversion", 1.0).and_then(|conversion| Ok((conversion, stated("offset", 0.0)?)));
    let scale = scale.map_err(|name| format!("{name} is no number: values are shown as stored"));
    let scaled = scale.and_then(|(conversion, offset)| {
        let channels = channels(site, group, data, interrupt)?;
        Ok((channels.into_iter().map(|channel| conversion * channel).collect::<Vec<_>>(), offset))
    });
    let (factors, offset) = match scaled {
        Ok(scaled) => scaled,
        Err(reason) => {
            findings.push(Finding::new(&column.path, &rules::UNITS, reason));
            return column;
        }
    };
    if factors.iter().all(|factor| *factor == 1.0) && offset == 0.0 {
        return column;
    }
    let Ok(stored) = column.rows.clone() else { return column };
    match PackedRows::scaled(column.path.clone(), stored, factors, offset) {
        Some(rows) => {
            let id = ColumnId { field: 1, ..column.id };
            Column {
                rows: Ok(Arc::new(rows)),
                id,
                stored_strings: None,
                meaning: Meaning { times: None, ..column.meaning },
                ..column
            }
        }
        // Text, for example, cannot be scaled.
        None => column,
    }
}

/// Reads the conversion factor of each channel, or a single one that all channels share.
fn channels(site: &Site<'_>, group: &Group, data: &Dataset, interrupt: &Interrupt) -> Result<Vec<f64>, Unreadable> {
    const NAME: &str = "channel_conversion";
    let Some(conversion) = datasets::of_rank(group, NAME, 1) else { return Ok(vec![1.0]) };
    let axis = attribute(&conversion.attributes, "axis").and_then(number).unwrap_or(1.0);
    let (count, width) = (conversion.shape.first().copied(), data.shape.get(1).copied());
    if axis != 1.0 || count != width || count.is_none_or(|count| count == 0 || count > MOST_CHANNELS) {
        let (count, width) = (said(count), said(width));
        return Err(format!("{NAME} of {count} channels along axis {axis}, data have {width}: shown as stored").into());
    }
    let rows = datasets::line(site.file, &join(site.path, NAME.as_bytes()), conversion, &Arc::default())?;
    datasets::numbers(rows, interrupt)
}

/// The unit of a dataset, which NWB states in an attribute of its own.
fn unit(dataset: &Dataset) -> Option<String> {
    text(&dataset.attributes, "unit")
}
