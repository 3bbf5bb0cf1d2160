//! Makes the table of a frame or a series in the format `fixed`: axes of labels, and blocks of columns of one type.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{ArrayRef, new_empty_array};
use arrow_schema::DataType;
use bstr::BString;
use serde_json::Value as Json;

use super::axis::{Kinds, MOST_LEVELS};
use super::encoding::StatedEncoding;
use super::objects::{InferredType, ObjectBlock, ObjectRows, is_pickle};
use super::plan::MOST_NAMES;
use super::stored::PandasAttribute;
use super::values::{self, ColumnContent};
use super::{Pandas, rules};
use crate::catalogue::{Attribute, Class, ColumnId, Dataset, Datatype, Group, attribute, join};
use crate::codec::pickle::{self, PandasLabel};
use crate::dialects::attributes::{boolean, integer, text};
use crate::dialects::compound::{System, part_of, read_as};
use crate::dialects::{Dialect, Site, datasets, stated, times};
use crate::source::Interrupt;
use crate::store::decode::{arrow_type, widen};
use crate::store::{self, DatasetRows, FieldRows, Hints, RowPart, Rows, Tally};
use crate::table::{
    Categories, CategoryRows, Column, DecodedRows, Finding, HeldRows, LabelRows, Meaning, Origin, OriginalName, Table,
    Times, Unreadable,
};

/// Most labels on an axis of columns, and most columns of a frame.
const MOST_COLUMNS: u64 = 100_000;

/// Most codes and labels in all levels of an axis of columns.
const MOST_OF_LEVELS: usize = 1 << 20;

/// Finds the members that hold a frame or a series.
pub(super) fn servants(group: &Group) -> impl Iterator<Item = &BString> {
    group.datasets().map(|(name, _)| name).filter(|name| {
        name.as_slice() == b"values" || [&b"axis"[..], b"block", b"index"].iter().any(|prefix| name.starts_with(prefix))
    })
}

/// Makes the table of a group in the format `fixed`.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let encoding = StatedEncoding::of(PandasAttribute::text(&group.attributes, "encoding").as_deref());
    let mut frame =
        Fixed { site, group, encoding, interrupt, categories: Vec::new(), findings: Vec::new(), is_nameless: false };
    if let StatedEncoding::Unknown(name) = &frame.encoding {
        let found = format!("{name}: shown as if in UTF-8");
        frame.findings.push(Finding::new(site.path, &rules::ENCODING, found));
    }
    let is_series = text(&group.attributes, super::TYPE).as_deref() == Some("series");
    let mut columns = frame.labels(if is_series { "index" } else { "axis1" });
    let rows = columns.first().and_then(|column| column.rows.as_ref().ok()).map(|rows| rows.len());
    columns.extend(if is_series { frame.series() } else { frame.blocks() });
    let is_taken = columns.iter().skip(1).any(|column| column.name == "index");
    if let Some(label) = columns.first_mut().filter(|label| frame.is_nameless && is_taken && label.is_label) {
        label.name = "level_0".into();
    }
    let rows =
        rows.or_else(|| columns.iter().filter_map(|column| Some(column.rows.as_ref().ok()?.len())).max()).unwrap_or(0);
    for column in &mut columns {
        column.in_table = column.rows.as_ref().is_ok_and(|own| own.len() == rows);
        if let Ok(own) = column.rows.as_ref()
            && own.len() != rows
        {
            let found = format!("{}: {} rows, the row labels have {rows}", column.name, own.len());
            frame.findings.push(Finding::new(site.path, &rules::FIXED, found));
        }
    }
    datasets::tell_apart(&mut columns);
    Table {
        revision: "fixed format".into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.into_iter().map(|column| column.with_missing_nan(site.file)).collect(),
        categories: frame.categories,
        servants: servants(group).cloned().collect(),
        findings: frame.findings,
        ..Table::empty(site.path, Pandas.about().name)
    }
}

/// A group whose columns are being made.
struct Fixed<'a> {
    site: &'a Site<'a>,
    group: &'a Group,
    encoding: StatedEncoding,
    interrupt: &'a Interrupt,
    categories: Vec<Categories>,
    findings: Vec<Finding>,
    /// Whether the row labels have no name.
    is_nameless: bool,
}

/// Where the columns of a dataset come from.
enum Source {
    /// The elements of this dataset.
    Elements(Arc<store::StoredDataset>),
    /// Columns of Python objects, each of which is taken once.
    Objects(Vec<Option<ObjectRows>>),
}

/// The rows of a column, and how its integers count time.
struct Made {
    rows: Result<Arc<dyn Rows>, Unreadable>,
    times: Option<Result<Times, Unreadable>>,
    units: Option<String>,
    tally: Arc<Tally>,
}

impl Made {
    fn failed(reason: impl Into<Unreadable>) -> Self {
        Self { rows: Err(reason.into()), times: None, units: None, tally: Arc::default() }
    }
}

impl<'a> Fixed<'a> {
    fn report(&mut self, found: String) {
        self.findings.push(Finding::new(self.site.path, &rules::FIXED, found));
    }

    fn dataset(&self, name: &str) -> Option<&'a Arc<Dataset>> {
        self.group.link(name.as_bytes())?.target.dataset()
    }

    fn path(&self, name: &str) -> String {
        join(self.site.path, name.as_bytes())
    }

    /// Names of the datasets of codes and of values for each level of an axis. `None`: the axis is a single dataset, or
    /// has too many levels.
    fn levels(&self, key: &str) -> Option<Vec<[String; 2]>> {
        if text(&self.group.attributes, &format!("{key}_variety")).as_deref() != Some("multi") {
            return None;
        }
        let count = integer(&self.group.attributes, &format!("{key}_nlevels"))?;
        let count = u32::try_from(count).ok().filter(|count| *count as usize <= MOST_LEVELS)?;
        Some((0..count).map(|at| [format!("{key}_label{at}"), format!("{key}_level{at}")]).collect())
    }

    /// Makes the columns that label rows.
    fn labels(&mut self, key: &str) -> Vec<Column> {
        let Some(levels) = self.levels(key) else {
            let Some(dataset) = self.dataset(key) else {
                self.report(format!("there is no {key}: a write that failed leaves such a group behind"));
                return Vec::new();
            };
            let name = PandasAttribute::label(&dataset.attributes, "name");
            self.is_nameless = name.is_none();
            let name = name.unwrap_or_else(|| "index".into());
            let made = self.values(key, dataset, true);
            let made = self.categorical(key, dataset, made);
            let called = if self.is_nameless { OriginalName::Nothing } else { OriginalName::Name };
            let origin = Origin { called, ..Origin::default() };
            return vec![self.column(name, key, (dataset, 0), made, true).with_origin(origin)];
        };
        let mut columns = Vec::new();
        for (at, [codes, values]) in levels.into_iter().enumerate() {
            let (Some(of_codes), Some(of_values)) = (self.dataset(&codes), self.dataset(&values)) else {
                self.report(format!("there is no {codes} or {values}"));
                continue;
            };
            let name = PandasAttribute::label(&of_values.attributes, "name");
            let called = if name.is_none() { OriginalName::Nothing } else { OriginalName::Name };
            let origin = Origin { called, is_level: true, ..Origin::default() };
            let name = name.unwrap_or_else(|| format!("level_{at}"));
            let made = self.values(&codes, of_codes, true);
            let labels = self.values(&values, of_values, true);
            let made = self.labelled(&values, of_values, made, labels, false);
            columns.push(self.column(name, &codes, (of_codes, 0), made, true).with_origin(origin));
        }
        columns
    }

    /// Replaces the codes of a categorical axis by their labels.
    fn categorical(&mut self, key: &str, dataset: &Arc<Dataset>, made: Made) -> Made {
        let name = format!("{key}_categories");
        match self.dataset(&name) {
            Some(labels) if text(&dataset.attributes, "kind").as_deref() == Some("category") => {
                let of_labels = self.values(&name, labels, true);
                let ordered = boolean(&dataset.attributes, "ordered").unwrap_or(false);
                self.labelled(&name, labels, made, of_labels, ordered)
            }
            _ => made,
        }
    }

    fn labelled(&mut self, name: &str, dataset: &Arc<Dataset>, codes: Made, labels: Made, ordered: bool) -> Made {
        let path = self.path(name);
        let Made { rows: labels, times, units, .. } = labels;
        let rows = match (codes.rows, labels) {
            (Ok(read), Ok(labels)) if read.data_type().is_integer() => {
                let datatype = dataset.datatype.clone();
                let rows = CategoryRows::new(path.clone(), read, labels.clone(), codes.tally.clone()).ordered(ordered);
                if times.is_some() || units.is_some() {
                    let rows: Arc<dyn Rows> = Arc::new(LabelRows::new(rows));
                    return Made { rows: Ok(rows), times, units, tally: codes.tally };
                }
                self.categories.push(Categories { path, labels: Ok(labels), datatype, ordered: Some(ordered) });
                Ok(Arc::new(rows) as Arc<dyn Rows>)
            }
            (Ok(_), Ok(_)) => Err(format!("codes of {name} are no integers").into()),
            (Err(reason), _) | (_, Err(reason)) => Err(reason),
        };
        Made { rows, times: None, units: None, tally: codes.tally }
    }

    /// Makes the one column of a series.
    fn series(&mut self) -> Vec<Column> {
        let Some(dataset) = self.dataset("values") else {
            self.report("there are no values: a write that failed leaves such a group behind".into());
            return Vec::new();
        };
        let named = PandasAttribute::label(&self.group.attributes, "name");
        let made = self.values("values", dataset, false);
        vec![self.column(named.unwrap_or_else(|| "values".into()), "values", (dataset, 0), made, false)]
    }

    /// Makes the columns of all blocks, in the order of the frame.
    fn blocks(&mut self) -> Vec<Column> {
        let count = integer(&self.group.attributes, "nblocks").and_then(|count| u64::try_from(count).ok());
        let mut columns: HashMap<String, VecDeque<Column>> = HashMap::new();
        let (mut met, mut present, mut absent) = (Vec::new(), 0, None);
        let count = count.unwrap_or(0);
        // Each block that exists has a link, so a larger count causes no more work.
        for block in 0..count.min(MOST_COLUMNS).min(self.group.links.len() as u64) {
            let (items, values) = (format!("block{block}_items"), format!("block{block}_values"));
            let Some(dataset) = self.dataset(&values) else {
                absent.get_or_insert(values);
                continue;
            };
            present += 1;
            let (names, _) = self.names(&items).unwrap_or_else(|reason| {
                self.report(format!("{items}: {reason}"));
                Default::default()
            });
            let width = dataset.shape.get(1).copied().unwrap_or(0).max(names.len() as u64);
            if width > MOST_COLUMNS.saturating_sub(met.len() as u64) {
                self.report(format!("{values} has {width} columns: {MOST_COLUMNS} of a frame are shown"));
                continue;
            }
            let mut source = self.source(&values, dataset);
            for at in 0..width {
                let name = names.get(at as usize).cloned().unwrap_or_else(|| format!("block{block}_{at}"));
                let made = self.made(&values, dataset, &mut source, at, false);
                met.push(name.clone());
                let column = self.column(name.clone(), &values, (dataset, at), made, false);
                columns.entry(name).or_default().push_back(column);
            }
        }
        if present < count {
            let first = absent.unwrap_or_else(|| format!("block{present}_values"));
            let found = format!("{} of {count} blocks are not there, the first is {first}", count - present);
            self.report(format!("{found}: a write that failed leaves such a group behind"));
        }
        let (order, kinds) = self.names("axis0").unwrap_or_else(|reason| {
            self.report(format!("axis0: {reason}: columns are in the order of blocks"));
            Default::default()
        });
        let levels = self.levels("axis0");
        let axis = kinds.axis(|level| {
            let name = levels.as_ref().map_or("axis0", |levels| &levels[level][1]);
            PandasAttribute::label(&self.dataset(name)?.attributes, "name")
        });
        // Columns that the axis does not name are kept after the others.
        let found = order.iter().chain(&met).filter_map(|name| {
            let origin = Origin { axis: axis.clone(), ..Origin::default() };
            Some(columns.get_mut(name)?.pop_front()?.with_origin(origin))
        });
        found.collect()
    }

    /// Reads the labels of an axis of columns, as text, and their types.
    fn names(&mut self, key: &str) -> Result<(Vec<String>, Kinds), Unreadable> {
        let levels = self.levels(key);
        let is_one = levels.is_none();
        let is_coded = |dataset: &Arc<Dataset>| text(&dataset.attributes, "kind").as_deref() == Some("category");
        let levels = match levels {
            Some(levels) => levels,
            None if self.dataset(key).is_some_and(is_coded) => vec![[key.to_owned(), format!("{key}_categories")]],
            None => {
                let labels = self.read(key)?;
                let names = labels.iter().map(PandasLabel::to_string).collect();
                return Ok((names, Kinds::of(labels.into_iter().map(Some))));
            }
        };
        // Several levels may share one dataset.
        let (mut left, mut bytes_left) = (MOST_OF_LEVELS, MOST_NAMES);
        let mut read = |key: &str| {
            let labels = self.read(key)?;
            left =
                left.checked_sub(labels.len()).ok_or_else(|| format!("more than {MOST_OF_LEVELS} labels of levels"))?;
            let bytes =
                labels.iter().map(|label| if let PandasLabel::Text(text) = label { text.len() } else { 0 }).sum();
            bytes_left = bytes_left.checked_sub(bytes).ok_or_else(too_long)?;
            Ok::<_, String>(labels)
        };
        type Labels = Vec<PandasLabel<'static>>;
        let levels: Vec<(Labels, Labels)> = levels
            .iter()
            .map(|[codes, values]| Ok((read(codes)?, read(values)?)))
            .collect::<Result<_, Unreadable>>()?;
        let rows = levels.first().map_or(0, |(codes, _)| codes.len());
        let (mut left, mut kinds) = (MOST_NAMES, Kinds::default());
        let names = (0..rows).map(|row| {
            let own = levels.iter().map(|(codes, values)| {
                let place = match codes.get(row) {
                    Some(PandasLabel::Integer(code)) => usize::try_from(*code).ok(),
                    _ => None,
                };
                place.and_then(|place| values.get(place).cloned()).unwrap_or_else(|| missing(values.first()))
            });
            let own = PandasLabel::Tuple(own.collect());
            let name = match &own {
                PandasLabel::Tuple(own) if is_one => own.first().map(PandasLabel::to_string).unwrap_or_default(),
                own => own.to_string(),
            };
            kinds.add(Some(&own).filter(|_| !is_one));
            // Many names may repeat one long text.
            left = left.checked_sub(name.len()).ok_or_else(too_long)?;
            Ok(name)
        });
        Ok((names.collect::<Result<_, Unreadable>>()?, kinds))
    }

    /// Reads the labels in a dataset.
    fn read(&mut self, name: &str) -> Result<Vec<PandasLabel<'static>>, Unreadable> {
        let dataset = self.dataset(name).ok_or("there is no such dataset")?;
        let mut source = self.source(name, dataset);
        let shown = match &source {
            Ok(Source::Objects(columns)) => columns.iter().flatten().next().map(ObjectRows::shown),
            _ => None,
        };
        let findings = self.findings.len();
        let made = self.made(name, dataset, &mut source, 0, true);
        let rows = made.rows?;
        if rows.len() > MOST_COLUMNS {
            return Err(format!("{} labels, more than the {MOST_COLUMNS} that are read", rows.len()).into());
        }
        let fitting = rows.fitting(0..rows.len(), MOST_NAMES as u64, self.interrupt)?;
        if fitting.end < rows.len() {
            return Err(too_long());
        }
        let array = rows.array(0..rows.len(), self.interrupt)?;
        match shown {
            Some(InferredType::Mixed) => {
                // The names of columns are the texts within the JSON values.
                self.findings.truncate(findings);
                return Ok(array.as_string::<i64>().iter().map(label_of_json).collect());
            }
            Some(InferredType::Times { is_fine, is_zoned }) => {
                let per_second = if is_fine { 1_000_000_000 } else { 1_000_000 };
                let zone = is_zoned.then(|| "UTC".to_owned());
                return labels_of(&array, |value| PandasLabel::Timestamp { value, per_second, zone: zone.clone() });
            }
            _ => {}
        }
        let kind = text(&dataset.attributes, "kind").unwrap_or_default();
        let zone = zone_in(&dataset.attributes);
        let [instants, differences] =
            ["datetime64", "timedelta64"].map(|name| values::per_second(&values::unit(&kind, name)?)?.try_into().ok());
        labels_of(&array, |value| match (instants, differences) {
            _ if kind == "date" => PandasLabel::Date(value.saturating_sub(values::FIRST_OF_1970)),
            (Some(per_second), _) => PandasLabel::Timestamp { value, per_second, zone: zone.clone() },
            (None, Some(per_second)) => PandasLabel::Timedelta { value, per_second },
            (None, None) => PandasLabel::Integer(value.into()),
        })
    }

    /// Opens the labels of an axis, or the only column of values.
    fn values(&mut self, name: &str, dataset: &Arc<Dataset>, is_axis: bool) -> Made {
        let mut source = self.source(name, dataset);
        self.made(name, dataset, &mut source, 0, is_axis)
    }

    /// Opens a dataset for all columns that it holds.
    fn source(&self, name: &str, dataset: &Arc<Dataset>) -> Result<Source, Unreadable> {
        let datatype = self.read_as(dataset);
        let read = part_of(dataset, &datatype, dataset.fill.clone());
        let opened = datasets::open(self.site.file, &self.path(name), &read)?;
        if !is_pickle(dataset) {
            return Ok(Source::Elements(opened));
        }
        let columns = ObjectBlock::new(opened)
            .columns(MOST_COLUMNS, self.interrupt)
            .map_err(|error| format!("{error}; frames written with format=\"table\" have no pickles of values"))?;
        Ok(Source::Objects(columns.into_iter().map(Some).collect()))
    }

    /// The type as which to read the elements of a dataset: texts in other encodings stay bytes.
    fn read_as(&self, dataset: &Dataset) -> Datatype {
        match (&self.encoding, &dataset.datatype.class) {
            (StatedEncoding::Other(_), Class::FixedString { .. }) => DecodedRows::undecoded(dataset.datatype.size),
            _ => read_as(&dataset.datatype, System::PYTABLES),
        }
    }

    /// Opens column `at` of a dataset.
    fn made(
        &mut self,
        name: &str,
        dataset: &Arc<Dataset>,
        source: &mut Result<Source, Unreadable>,
        at: u64,
        is_axis: bool,
    ) -> Made {
        let tally = Arc::<Tally>::default();
        let opened = match source {
            Ok(Source::Elements(opened)) => opened.clone(),
            Ok(Source::Objects(columns)) => {
                let column = usize::try_from(at).ok().and_then(|at| columns.get_mut(at)?.take());
                let Some(column) = column else { return Made::failed("there is no such column of objects") };
                let shown = column.shown();
                if shown == InferredType::Mixed {
                    self.report(format!("{name} holds values of several kinds: each is shown as JSON"));
                }
                if column.others() > 0 {
                    let count = column.others();
                    self.report(format!("{name}: {count} values are no texts, numbers, dates or times, and missing"));
                }
                let times = shown.step().and_then(|step| times::since(self.site.file, step, 0, &column));
                let times = times.map(|times| times.map(|times| times.in_zone(shown.zone())));
                return Made { rows: Ok(Arc::new(column)), times, units: None, tally };
            }
            Err(reason) => return Made::failed(reason.clone()),
        };
        // The placeholder for an empty array states the type of its elements.
        let of_none = text(&dataset.attributes, "value_type").filter(|_| is_empty(dataset));
        let of_none = of_none.and_then(|name| values::stored_as(&name));
        let datatype = of_none.clone().unwrap_or_else(|| self.read_as(dataset));
        let kind = text(&dataset.attributes, if is_axis { "kind" } else { "value_type" }).unwrap_or_default();
        let zone = zone_in(&dataset.attributes);
        let nan =
            || if is_axis { values::index_nan(PandasAttribute::text(&dataset.attributes, "nan_rep")) } else { None };
        let content = ColumnContent::of_kind(&kind, &datatype, zone, is_axis, nan);
        let stated = stated::fill(&datatype, &dataset.attributes);
        let missing = content.missing(&datatype, &stated);
        let rows: Arc<dyn Rows> = match dataset.shape.as_slice() {
            _ if of_none.is_some() => {
                Arc::new(HeldRows::new(new_empty_array(&arrow_type(&datatype)), false, Hints::default()))
            }
            // This is a placeholder for an empty array, or a block of columns without rows, which is stored transposed.
            shape if shape.contains(&0) || is_empty(dataset) => {
                Arc::new(DatasetRows::new(opened, 0, missing, tally.clone()))
            }
            [_] if at == 0 => Arc::new(DatasetRows::new(opened, u64::MAX, missing, tally.clone())),
            [_, 1] if at == 0 => Arc::new(DatasetRows::new(opened, u64::MAX, missing, tally.clone())),
            [_, width] if at < *width => {
                let part = RowPart { offset: at.saturating_mul(datatype.size), datatype };
                Arc::new(FieldRows::new(opened, part, missing, tally.clone()))
            }
            shape => return Made::failed(format!("column {at} of values of the shape {shape:?}")),
        };
        let rows = match (&self.encoding, &dataset.datatype.class) {
            (StatedEncoding::Other(encoding), Class::FixedString { .. }) => {
                let (stored, missing) = (dataset.datatype.clone(), nan());
                Arc::new(DecodedRows::new(self.path(name), rows, stored, *encoding, missing, tally.clone()))
            }
            _ => rows,
        };
        let times = content.times(self.site.file, rows.as_ref());
        Made { rows: Ok(rows), times, units: content.unit(), tally }
    }

    fn column(
        &self,
        name: String,
        of: &str,
        (dataset, at): (&Arc<Dataset>, u64),
        made: Made,
        is_label: bool,
    ) -> Column {
        let rank = dataset.shape.len();
        let field =
            if rank > 1 || is_pickle(dataset) { u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1) } else { 0 };
        Column {
            is_label,
            in_table: true,
            dataset: (rank == 1 && !is_pickle(dataset) && !is_empty(dataset)).then(|| dataset.clone()),
            meaning: Meaning {
                times: made.times.map(Box::new),
                duration: made.units.as_deref().and_then(times::unit_of),
                units: made.units,
                ..Meaning::default()
            },
            ..Column::new(name.into(), self.path(of), ColumnId { object: dataset.id, field }, made.rows, made.tally)
        }
    }
}

/// Whether a dataset is a placeholder for an empty array, which PyTables does not store.
fn is_empty(dataset: &Dataset) -> bool {
    attribute(&dataset.attributes, "shape").is_some()
}

/// The time zone that the attribute `tz` names. `None`: no such attribute.
fn zone_in(attributes: &[Attribute]) -> Option<String> {
    PandasAttribute::of(attributes, "tz").map(|zone| match zone {
        PandasAttribute::Text(text) => values::known(pickle::named(&text)),
        PandasAttribute::Tree(tree) => values::zone_of(tree.root()),
    })
}

/// Makes the error for labels that are too long.
fn too_long() -> Unreadable {
    format!("labels of more than {MOST_NAMES} bytes").into()
}

/// Reads a label from a value shown as JSON.
fn label_of_json(json: Option<&str>) -> PandasLabel<'static> {
    match json.map(serde_json::from_str) {
        Some(Ok(Json::String(text))) => PandasLabel::Text(text.into()),
        Some(Ok(Json::Bool(value))) => PandasLabel::Bool(value),
        Some(Ok(Json::Number(number))) => match json.and_then(|json| json.parse().ok()) {
            // This includes integers beyond 64 bits.
            Some(integer) => PandasLabel::Integer(integer),
            None => PandasLabel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        _ => PandasLabel::Float(f64::NAN),
    }
}

/// The label that pandas uses for a missing one beside labels of this type.
fn missing(other: Option<&PandasLabel<'_>>) -> PandasLabel<'static> {
    match other {
        Some(PandasLabel::Timestamp { .. } | PandasLabel::Timedelta { .. } | PandasLabel::NotATime) => {
            PandasLabel::NotATime
        }
        _ => PandasLabel::Float(f64::NAN),
    }
}

/// Converts an array to labels; `counted` makes a label from an integer.
fn labels_of(
    array: &ArrayRef,
    counted: impl Fn(i64) -> PandasLabel<'static>,
) -> Result<Vec<PandasLabel<'static>>, Unreadable> {
    let nan = PandasLabel::Float(f64::NAN);
    let floats = |value: Option<f64>| PandasLabel::Float(value.unwrap_or(f64::NAN));
    Ok(match array.data_type() {
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>().iter();
            texts.map(|text| text.map_or(nan.clone(), |text| PandasLabel::Text(text.to_owned().into()))).collect()
        }
        DataType::Boolean => {
            let values = array.as_boolean().iter();
            values.map(|value| value.map_or(nan.clone(), PandasLabel::Bool)).collect()
        }
        data_type if data_type.is_integer() => {
            let wide = widen::signed(array.as_ref()).ok_or("labels that are no integers of 64 bits")?;
            let missing = missing(Some(&counted(0)));
            wide.iter().map(|value| value.map_or(missing.clone(), &counted)).collect()
        }
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|value| floats(value.map(Into::into))).collect()
        }
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().map(floats).collect(),
        other => return Err(format!("labels of {other}").into()),
    })
}
