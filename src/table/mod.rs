//! The model of a table: columns of rows, whatever format they come from. It uses no HDF5 call, no FUSE and no file.

mod arrow_name;
mod finding;
mod index_rules;
mod listed;
mod origin;
mod rows;
mod search_index;
mod similar;
mod single;
mod times;
mod unreadable;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use bstr::BString;
use serde_json::Value;

use crate::catalogue::{Attribute, ColumnId, Dataset, Datatype};
use crate::learnt::{Learner, Observed};
use crate::store::decode::Oddity;
use crate::store::statistics::Scalar;
use crate::store::{File, NanPolicy, Opening, Rows, Tally};

pub use arrow_name::arrow_name;
pub(crate) use finding::{ALL as RULES, UNREADABLE, rules, unreadable};
pub use finding::{Finding, Rule, Severity, rule_of};
pub use index_rules::{BitmapRules, BloomRules, BoundsRules, MinMaxRules, SortedRules, ValueRules};
pub use listed::listed;
pub use origin::{NameAxis, NameKind, NameLevel, Origin, OriginalName};
pub use rows::{
    AbsentRows, BitRows, CastRows, CategoryRows, ChainRows, CompoundRows, DecodedRows, EdgeRows, Edges, EncodedRows,
    EndRows, EvenRows, HeldRows, JsonRows, LabelRows, Linear, ListRows, MaskedRows, NanRows, NestedJson, PackedRows,
    Packing, PaddedRows, PartRows, PresentRows, RecodedRows, RunRows, Samples, SpreadRows, StringRows, TextEncoding,
    TimeRows, TypedRows, UnitCount, Variant, common_type, labelled_runs, nan_in, per_second,
};
pub use search_index::{AbsenceReason, AbsentIndex, BloomScheme, IndexContent, IndexForm, SearchIndex, ShownLabels};
pub use similar::did_you_mean;
pub use single::{Colour, Interlace, Pixels, Single, SingleFile, SingleForm};
pub use times::Times;
pub use unreadable::Unreadable;

/// A table: its columns in logical order, row labels first.
#[derive(Debug)]
pub struct Table {
    /// HDF5 path of the table group.
    pub path: String,
    /// The selection that its rows come from, as the user wrote it. `None`: all rows.
    pub selection: Option<String>,
    /// The kind of table, such as `HEP001`.
    pub dialect: &'static str,
    /// How the table was recognised: `declaration`, or `shape`, which is a guess.
    pub recognised_by: &'static str,
    /// The revision whose features it has, such as `April 2026` or `July 2026`.
    pub revision: String,
    /// Number of rows in `table.*`.
    pub rows: u64,
    /// Whether the datasets of its columns are shown by themselves, and not in `columns/`.
    pub only_adds: bool,
    /// Whether its rows are those of other tables, which are shown as well.
    pub repeats: bool,
    /// Whether its values are in memory, so its columns need no learner.
    pub is_held: bool,
    /// Attributes of the table group.
    pub attributes: Arc<[Attribute]>,
    /// Row labels, then columns.
    pub columns: Vec<Column>,
    /// Whole rows as stored, if the table is one dataset.
    pub whole: Option<Arc<dyn Rows>>,
    /// Label sets of categorical columns.
    pub categories: Vec<Categories>,
    /// Search indexes found, used or not.
    pub indexes: Vec<SearchIndex>,
    /// Names of members that serve the table (categories, search indexes, …) and are not shown by themselves.
    pub servants: Vec<BString>,
    /// For a table of several groups: the groups left out, and why.
    pub left_out: Vec<(BString, Cow<'static, str>)>,
    /// Findings: the rules that the table breaks, and where.
    pub findings: Vec<Finding>,
    /// The revision by which it is judged, as its rules name it; empty for rules without revisions.
    pub judged_by: &'static str,
    /// The rule that the labels of a set are distinct. `None`: the format has none.
    pub labels_differ: Option<&'static Rule>,
    /// The rule that each oddity of values breaks.
    pub rule_of: fn(Oddity) -> &'static Rule,
    /// Its storage for `metadata.json`, if the catalogue does not describe it.
    pub storage: Option<Value>,
}

impl Table {
    /// Findings on the values read so far: one for each rule that a column, or a servant of a column, breaks.
    pub fn met(&self) -> Vec<Finding> {
        let mut of_path = HashMap::<&str, usize>::new();
        for column in &self.columns {
            *of_path.entry(&column.path).or_default() += 1;
        }
        let mut met = Vec::new();
        for column in &self.columns {
            // Names distinguish the columns of one dataset.
            let name = (of_path.get(&*column.path) > Some(&1)).then_some(&column.name);
            let below = column.below.iter().map(|(path, tally)| (path, None, tally));
            for (path, name, tally) in std::iter::once((&column.path, name, &column.tally)).chain(below) {
                for (oddity, count) in tally.counts() {
                    met.push(Finding::of_rows(path, name, (self.rule_of)(oddity), count).by(self.judged_by));
                }
            }
        }
        met
    }

    /// The first column of floats in `table.*` whose statistics are known and count values that are NaN.
    pub fn with_nan_values(&self) -> Option<&Column> {
        self.columns.iter().filter(|column| column.in_table).find(|column| {
            let is_float = column.rows.as_ref().is_ok_and(|rows| rows.data_type().is_floating());
            let known = column.learner.as_ref().filter(|_| is_float).and_then(|learner| learner.known());
            known.and_then(|known| known.over(0..known.rows())).is_some_and(|all| all.nans > 0)
        })
    }

    /// A table without columns.
    pub fn empty(path: &str, dialect: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            selection: None,
            dialect,
            recognised_by: "declaration",
            revision: String::new(),
            rows: 0,
            only_adds: false,
            repeats: false,
            is_held: false,
            attributes: Arc::default(),
            columns: Vec::new(),
            whole: None,
            categories: Vec::new(),
            indexes: Vec::new(),
            servants: Vec::new(),
            left_out: Vec::new(),
            findings: Vec::new(),
            judged_by: "",
            labels_differ: None,
            rule_of,
            storage: None,
        }
    }

    /// Makes the columns learn statistics from every read, including those of search indexes.
    pub fn observed(mut self, opening: &Arc<Opening>) -> Self {
        if self.is_held {
            return self;
        }
        // A search index shares its column's rows, which identifies the column even if names changed.
        let address = |rows: &Arc<dyn Rows>| Arc::as_ptr(rows).cast::<()>();
        let mut places = HashMap::new();
        if !self.indexes.is_empty() {
            let columns = self.columns.iter().enumerate();
            places.extend(columns.filter_map(|(at, column)| Some((address(column.rows.as_ref().ok()?), at))));
        }
        self.columns = self.columns.into_iter().map(|column| column.observed(opening)).collect();
        for form in self.indexes.iter_mut().filter_map(|index| Arc::get_mut(index.form.as_mut().ok()?)) {
            let column = places.get(&address(&form.shown)).and_then(|at| self.columns.get(*at));
            if let Some(Column { rows: Ok(rows), learner, .. }) = column {
                (form.shown, form.learner) = (rows.clone(), learner.clone());
            }
        }
        self
    }
}

/// The meaning of a column's values, stated by its dialect. A column made from another one clones it whole and changes
/// single fields.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Physical units.
    pub units: Option<String>,
    /// The vocabulary that defines `units`: the column's own, else the table's.
    pub units_vocabulary: Option<String>,
    /// The calendar of `units` that count from a date, if stated.
    pub calendar: Option<String>,
    /// The conversion of `rows`, stored integers, to instants, or why it fails although the file says that they are
    /// times. `None`: they are not times.
    pub times: Option<Box<Result<Times, Unreadable>>>,
    /// The unit of durations that `rows`, integers of 64 bits, count; typed files show them as durations.
    pub duration: Option<TimeUnit>,
    /// Plain-text description.
    pub description: Option<String>,
    /// The column's role in the software that wrote it.
    pub origin: Origin,
    /// The values that rules expect.
    pub expected: Option<Box<Expected>>,
}

/// A column, readable or not.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name of the link.
    pub name: BString,
    /// HDF5 path.
    pub path: String,
    /// Object and field, which identify the column.
    pub id: ColumnId,
    /// Whether it labels rows.
    pub is_label: bool,
    /// Whether it is in `table.*`, because it has as many rows as the table.
    pub in_table: bool,
    /// Whether it is missing in `table.*` because another column shows its values.
    pub is_within_another: bool,
    /// Rows, or why they cannot be read.
    pub rows: Result<Arc<dyn Rows>, Unreadable>,
    /// Variable-length strings as stored, for `.raw`. `None`: another type, for which `rows` gives the bytes.
    pub stored_strings: Option<Arc<dyn Rows>>,
    /// Learns the statistics of `rows` from every read. `None`: no statistics. A file shows those that
    /// [`Learner::shown`] gives when the file is made.
    pub learner: Option<Arc<Learner>>,
    /// Oddities counted while reading.
    pub tally: Arc<Tally>,
    /// Oddities of its servants, by path: labels, levels of lists.
    pub below: Vec<(String, Arc<Tally>)>,
    /// Position of its label set in [`Table::categories`].
    pub categories: Option<usize>,
    /// The meaning of its values.
    pub meaning: Meaning,
    /// Attributes of the dataset or group.
    pub attributes: Arc<[Attribute]>,
    /// The dataset in the catalogue. `None`: a list column.
    pub dataset: Option<Arc<Dataset>>,
    /// Its storage for `metadata.json`, if it has no dataset.
    pub storage: Option<Value>,
}

impl Column {
    /// A column with these rows and no further facts. It is in the table if its rows can be read.
    pub fn new(
        name: BString,
        path: String,
        id: ColumnId,
        rows: Result<Arc<dyn Rows>, Unreadable>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            name,
            path,
            id,
            is_label: false,
            in_table: rows.is_ok(),
            is_within_another: false,
            rows,
            stored_strings: None,
            learner: None,
            tally,
            below: Vec::new(),
            categories: None,
            meaning: Meaning::default(),
            attributes: Arc::default(),
            dataset: None,
            storage: None,
        }
    }

    /// Notes about its values, by the names of their attributes: units, description.
    pub fn notes(&self) -> Vec<(&'static str, String)> {
        let units = [
            ("units", &self.meaning.units),
            ("units_vocabulary", &self.meaning.units_vocabulary),
            ("calendar", &self.meaning.calendar),
        ];
        let texts = units.into_iter().chain([("description", &self.meaning.description)]);
        texts.filter_map(|(key, text)| Some((key, text.clone()?))).collect()
    }

    /// Why the column is missing in the files of a table of `rows` rows.
    pub fn why_apart(&self, rows: u64) -> String {
        match &self.rows {
            Ok(_) if self.is_within_another => "another column shows its values".into(),
            Ok(own) if own.len() == rows => "it is shown by itself alone".into(),
            Ok(own) => format!("it has {} rows, the table {rows}", own.len()),
            Err(reason) => reason.to_string(),
        }
    }

    /// The units of its values, to stand beside their type. Those of dates and instants only say how they are stored.
    pub fn shown_units(&self) -> Option<&str> {
        let is_date =
            self.shown().is_ok_and(|rows| matches!(rows.data_type(), DataType::Date32 | DataType::Timestamp(..)));
        self.meaning.units.as_deref().filter(|_| !is_date)
    }

    /// The conversion of its integers to instants, if there is one.
    pub fn times(&self) -> Option<Times> {
        self.meaning.times.as_deref()?.as_ref().ok().copied()
    }

    /// The rows as typed files show them: instants or durations, if `rows` are integers that count time.
    ///
    /// # Errors
    /// Why the column cannot be read.
    pub fn shown(&self) -> Result<Arc<dyn Rows>, Unreadable> {
        self.shown_by(self.times())
    }

    /// The rows as typed files show them, with another conversion to instants.
    ///
    /// # Errors
    /// As [`Column::shown`].
    pub fn shown_by(&self, times: Option<Times>) -> Result<Arc<dyn Rows>, Unreadable> {
        let rows = self.rows.clone()?;
        Ok(match (times, self.meaning.duration) {
            (Some(times), _) => Arc::new(TimeRows::new(self.path.clone(), rows, times, self.tally.clone())),
            (None, Some(unit)) => TypedRows::new(self.path.clone(), rows.clone(), DataType::Duration(unit))
                .map_or(rows, |typed| Arc::new(typed)),
            (None, None) => rows,
        })
    }

    /// The column with another role in the software that wrote it.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.meaning.origin = origin;
        self
    }

    /// The column with NaN as missing values, for floats written by software that uses NaN in this way.
    pub fn with_missing_nan(self, file: &File) -> Self {
        if file.store().nan() == NanPolicy::Value { self } else { self.with_nan(NanRows::missing) }
    }

    /// The column with NaN as values again, if NaN meant missing. It loses statistics that counted NaN as missing.
    pub fn with_nan_kept(&self) -> Self {
        let is_masked = self.rows.as_ref().is_ok_and(|rows| NanRows::kept(rows).is_some());
        let learner = self.learner.clone().filter(|_| !is_masked);
        Self { learner, ..self.clone().with_nan(NanRows::kept) }
    }

    fn with_nan(self, wrapped: impl Fn(&Arc<dyn Rows>) -> Option<NanRows>) -> Self {
        Self { rows: self.rows.map(|rows| wrapped(&rows).map_or(rows, |rows| Arc::new(rows))), ..self }
    }

    /// Makes the column learn statistics from every read; unchanged if it cannot have statistics, or learns already.
    fn observed(self, opening: &Arc<Opening>) -> Self {
        if self.learner.is_some() {
            return self;
        }
        let this = if opening.store().nan() == NanPolicy::Null { self.with_nan(NanRows::missing) } else { self };
        let learner = this.rows.as_ref().ok().and_then(|rows| Learner::of(opening, &this.path, this.id, rows.as_ref()));
        let rows = this.rows.map(|rows| match &learner {
            Some(learner) => Arc::new(Observed::new(rows, learner.clone())),
            None => rows,
        });
        Self { rows, learner, ..this }
    }
}

/// The values that rules expect in a column. `hepfs check` compares all values with them.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The least and the greatest allowed value, and the rule that demands them.
    pub range: Option<(&'static Rule, [Option<Scalar>; 2])>,
    /// The fill value, and the rule that it must lie below or above all other values.
    pub fill: Option<(&'static Rule, Scalar)>,
    /// For a column without a fill value: the rule that it must have one, and the least and the greatest value of its
    /// type. A column whose values reach both is exempt.
    pub domain: Option<(&'static Rule, [Scalar; 2])>,
    /// The value nearest to a stated fill value that does not fit the type.
    pub near: Option<Near>,
}

/// The value nearest to a stated fill value that no element can equal.
#[derive(Clone, Debug)]
pub struct Near {
    /// The rule that forbids a fill value that no element can equal.
    pub rule: &'static Rule,
    /// A prefix that names the column, if others have the same path: `NAME: `. Otherwise empty.
    pub of: String,
    /// The nearest value of the column's type.
    pub nearest: Scalar,
}

/// A label set of categorical columns.
#[derive(Clone, Debug)]
pub struct Categories {
    /// HDF5 path of the dataset.
    pub path: String,
    /// The labels, or why they cannot be read.
    pub labels: Result<Arc<dyn Rows>, Unreadable>,
    /// Type of one label.
    pub datatype: Datatype,
    /// Whether the order of the labels means something. `None`: unknown.
    pub ordered: Option<bool>,
}
