//! The model of a table: columns of rows, whatever file idiom they came from. No HDF5 call, no FUSE, no file.

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
use crate::store::decode::Oddity;
use crate::store::statistics::Scalar;
use crate::store::{File, Learner, NanPolicy, Observed, Opening, Rows, Tally};

pub use arrow_name::arrow_name;
pub(crate) use finding::{ALL as RULES, UNREADABLE, rules, unreadable};
pub use finding::{Finding, Rule, Severity, rule_of};
pub use index_rules::{BitmapRules, BloomRules, BoundsRules, MinMaxRules, SortedRules, ValueRules};
pub use listed::listed;
pub use origin::{Called, NameAxis, NameKind, NameLevel, Origin};
pub use rows::{
    AbsentRows, BitRows, CastRows, CategoryRows, ChainRows, CompoundRows, DecodedRows, EdgeRows, Edges, EncodedRows,
    EndRows, EvenRows, HeldRows, Json, JsonRows, LabelRows, Linear, ListRows, MaskedRows, NanRows, PackedRows, Packing,
    PaddedRows, PartRows, PresentRows, RecodedRows, RunRows, Samples, SpreadRows, StringRows, TextEncoding, TimeRows,
    TypedRows, UnitCount, Variant, common_type, labelled_runs, nan_in,
};
pub use search_index::{Absent, BloomScheme, IndexForm, IndexKind, Labels, Reason, SearchIndex};
pub use similar::did_you_mean;
pub use single::{Form, Single, SingleFile};
pub use times::Times;
pub use unreadable::Unreadable;

/// A table: its columns in logical order, row labels first.
#[derive(Debug)]
pub struct Table {
    /// HDF5 path of the table group.
    pub path: String,
    /// The selection that its rows are, as it was asked for; `None` of a table with all of its rows.
    pub selection: Option<String>,
    /// The kind of table: `HEP001`.
    pub dialect: &'static str,
    /// By what it was recognised: `declaration`, or `shape`, which is a guess.
    pub recognised_by: &'static str,
    /// The revision's features met, such as `April 2026` or `July 2026`.
    pub revision: String,
    /// Rows of `table.*`.
    pub rows: u64,
    /// Its columns are datasets that are shown by themselves, and not in `columns/`.
    pub only_adds: bool,
    /// Its rows are those of other tables, which are shown as well.
    pub repeats: bool,
    /// Its values are in memory; its columns have no learner.
    pub is_held: bool,
    /// Attributes of the table group.
    pub attributes: Arc<[Attribute]>,
    /// Row labels, then columns.
    pub columns: Vec<Column>,
    /// Whole rows as stored, where the table is one dataset.
    pub whole: Option<Arc<dyn Rows>>,
    /// Label sets of categorical columns.
    pub categories: Vec<Categories>,
    /// Search indexes found, used or not.
    pub indexes: Vec<SearchIndex>,
    /// Names under the group that are servants of the table (categories, search indexes, …), not shown by themselves.
    pub servants: Vec<BString>,
    /// Of a table of several groups: groups that are left out, and why.
    pub left_out: Vec<(BString, Cow<'static, str>)>,
    /// Rules the table breaks.
    pub findings: Vec<Finding>,
    /// The revision by which it is judged, as its rules call it; empty where they have none.
    pub judged_by: &'static str,
    /// The rule that the labels of a set differ.
    pub labels_differ: Option<&'static Rule>,
    /// The rules that odd values break.
    pub rule_of: fn(Oddity) -> &'static Rule,
    /// How it is stored, for `metadata.json`, where no catalogue tells.
    pub storage: Option<Value>,
}

impl Table {
    /// Faults of the values met so far: as many findings as rules, of each column and of its parts.
    pub fn met(&self) -> Vec<Finding> {
        let mut of_path = HashMap::<&str, usize>::new();
        for column in &self.columns {
            *of_path.entry(&column.path).or_default() += 1;
        }
        let mut met = Vec::new();
        for column in &self.columns {
            // Of one dataset the columns are told apart by their names.
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

    /// The first column of floats whose statistics are known and count NaN as a value.
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

    /// The table, whose columns learn their statistics from all that is read of them, its search indexes included.
    pub fn observed(self, file: &Arc<File>) -> Self {
        self.observed_by(file.opening())
    }

    /// The same of a file of any format.
    pub fn observed_by(mut self, opening: &Arc<Opening>) -> Self {
        if self.is_held {
            return self;
        }
        // An index and its column share their rows: names may change.
        let address = |rows: &Arc<dyn Rows>| Arc::as_ptr(rows).cast::<()>();
        let mut places = HashMap::new();
        if !self.indexes.is_empty() {
            let columns = self.columns.iter().enumerate();
            places.extend(columns.filter_map(|(at, column)| Some((address(column.rows.as_ref().ok()?), at))));
        }
        self.columns = self.columns.into_iter().map(|column| column.observed_by(opening)).collect();
        for form in self.indexes.iter_mut().filter_map(|index| Arc::get_mut(index.form.as_mut().ok()?)) {
            let column = places.get(&address(&form.shown)).and_then(|at| self.columns.get(*at));
            if let Some(Column { rows: Ok(rows), learner, .. }) = column {
                (form.shown, form.learner) = (rows.clone(), learner.clone());
            }
        }
        self
    }
}

/// The meaning of a column's values, as its dialect tells it. A column that is made of another one clones it whole, and
/// changes what it changes.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Physical units and the vocabulary that explains them (its own, else the table's).
    pub units: Option<String>,
    /// Vocabulary of `units`.
    pub units_vocabulary: Option<String>,
    /// The calendar that `units` count in, where they count from a date and it is stated.
    pub calendar: Option<String>,
    /// How `rows`, integers as stored, stand for instants; or why they do not, though the file calls them times. `None`
    /// of anything else.
    pub times: Option<Box<Result<Times, Unreadable>>>,
    /// The unit of time that `rows`, integers of 64 bits, count, where files with types show durations.
    pub duration: Option<TimeUnit>,
    /// Plain-text description.
    pub description: Option<String>,
    /// Its role in the software that wrote it.
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
    /// The object, and the field of it, that tells the column from all others.
    pub id: ColumnId,
    /// It labels rows.
    pub is_label: bool,
    /// It has as many rows as the table and stands in `table.*`.
    pub in_table: bool,
    /// Whether it does not, because another column shows its values there.
    pub is_within_another: bool,
    /// Rows, or why they cannot be had.
    pub rows: Result<Arc<dyn Rows>, Unreadable>,
    /// Variable-length strings as stored, for `.raw`; `None` for any other type, whose bytes `rows` gives.
    pub stored_strings: Option<Arc<dyn Rows>>,
    /// Learns the statistics of `rows` from all that is read through them; `None` without statistics. A file shows what
    /// [`Learner::shown`] says when it is made.
    pub learner: Option<Arc<Learner>>,
    /// Oddities met while reading.
    pub tally: Arc<Tally>,
    /// The same of its servants, by path: labels, levels of lists.
    pub below: Vec<(String, Arc<Tally>)>,
    /// Position of its label set in [`Table::categories`].
    pub categories: Option<usize>,
    /// How its values are to be understood.
    pub meaning: Meaning,
    /// Attributes of the dataset or group.
    pub attributes: Arc<[Attribute]>,
    /// The dataset as the catalogue has it; `None` for a list column.
    pub dataset: Option<Arc<Dataset>>,
    /// How it is stored, for `metadata.json`, where there is no dataset.
    pub storage: Option<Value>,
}

impl Column {
    /// A column of these rows, in the table where it has some; nothing else is told of it.
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

    /// Notes beside its values, by the names of the attributes that tell them: units, description.
    pub fn notes(&self) -> Vec<(&'static str, String)> {
        let units = [
            ("units", &self.meaning.units),
            ("units_vocabulary", &self.meaning.units_vocabulary),
            ("calendar", &self.meaning.calendar),
        ];
        let texts = units.into_iter().chain([("description", &self.meaning.description)]);
        texts.filter_map(|(key, text)| Some((key, text.clone()?))).collect()
    }

    /// Why it does not stand in a table of `rows` rows.
    pub fn why_apart(&self, rows: u64) -> String {
        match &self.rows {
            Ok(_) if self.is_within_another => "another column shows its values".into(),
            Ok(own) if own.len() == rows => "it is shown by itself alone".into(),
            Ok(own) => format!("it has {} rows, the table {rows}", own.len()),
            Err(reason) => reason.to_string(),
        }
    }

    /// How its integers stand for instants, where they do.
    pub fn times(&self) -> Option<Times> {
        self.meaning.times.as_deref()?.as_ref().ok().copied()
    }

    /// The rows as files with types show them: instants or durations where `rows` are integers that stand for such.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn shown(&self) -> Result<Arc<dyn Rows>, Unreadable> {
        self.shown_by(self.times())
    }

    /// The same, as these instants.
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

    /// The column with this role in the software that wrote it.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.meaning.origin = origin;
        self
    }

    /// The column, of floats, with NaN as missing values: the software that wrote it takes NaN for them.
    pub fn with_missing_nan(self, file: &File) -> Self {
        if file.store().nan() == NanPolicy::Value { self } else { self.with_nan(NanRows::missing) }
    }

    /// The column, of floats, with NaN as values, where it is missing. Its statistics count NaN among what is missing.
    pub fn with_nan_kept(&self) -> Self {
        let is_masked = self.rows.as_ref().is_ok_and(|rows| NanRows::kept(rows).is_some());
        let learner = self.learner.clone().filter(|_| !is_masked);
        Self { learner, ..self.clone().with_nan(NanRows::kept) }
    }

    fn with_nan(self, wrapped: impl Fn(&Arc<dyn Rows>) -> Option<NanRows>) -> Self {
        Self { rows: self.rows.map(|rows| wrapped(&rows).map_or(rows, |rows| Arc::new(rows))), ..self }
    }

    /// The column, whose statistics are learnt from all that is read of it; as it is where it can have none, or learns
    /// already.
    pub fn observed(self, file: &Arc<File>) -> Self {
        self.observed_by(file.opening())
    }

    /// The same of a file of any format.
    pub fn observed_by(self, opening: &Arc<Opening>) -> Self {
        if self.learner.is_some() {
            return self;
        }
        let this = if opening.store().nan() == NanPolicy::Null { self.with_nan(NanRows::missing) } else { self };
        let learner = this.rows.as_ref().ok().and_then(|rows| opening.learner(&this.path, this.id, rows.as_ref()));
        let rows = this.rows.map(|rows| match &learner {
            Some(learner) => Arc::new(Observed::new(rows, learner.clone())),
            None => rows,
        });
        Self { rows, learner, ..this }
    }
}

/// The values that rules expect in a column. `hepfs check` holds all values against them.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The least and the greatest value there may be, and the rule that says so.
    pub range: Option<(&'static Rule, [Option<Scalar>; 2])>,
    /// The value that stands for a missing one, and the rule that it lies below or above all others.
    pub fill: Option<(&'static Rule, Scalar)>,
    /// The rule that something stands for missing values, and the ends of the type, of which values may take up all.
    pub domain: Option<(&'static Rule, [Scalar; 2])>,
    /// The value nearest to one that was to stand for missing values.
    pub near: Option<Near>,
}

/// The value nearest to one that was to stand for missing values, but that no value can be.
#[derive(Clone, Debug)]
pub struct Near {
    /// The rule against such values.
    pub rule: &'static Rule,
    /// Which column of several it is of: `NAME: `, or nothing.
    pub of: String,
    /// The value.
    pub nearest: Scalar,
}

/// A label set of categorical columns.
#[derive(Clone, Debug)]
pub struct Categories {
    /// HDF5 path of the dataset.
    pub path: String,
    /// The labels, or why they cannot be had.
    pub labels: Result<Arc<dyn Rows>, Unreadable>,
    /// Type of one label.
    pub datatype: Datatype,
    /// Whether the order of the labels means something.
    pub ordered: Option<bool>,
}
