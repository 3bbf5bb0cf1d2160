//! A predicate over the columns of one table.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use bstr::ByteSlice;
use parking_lot::Mutex;

use super::known::answer::Answer;
use super::predicate::literal::{self, Point, Width};
use super::predicate::{Condition, Error, Literal, Operator, Predicate, Written};
use super::ranges::{Ranges, Test, TextRange};
use crate::indexes::{self, Trust};
use crate::store::Learner;
use crate::store::Rows;
use crate::table::{Column, IndexForm, IndexKind, Table, did_you_mean};

/// Columns named in a message at most.
const MOST_NAMED: usize = 30;

/// A predicate whose columns are found and whose values have their types.
#[derive(Debug)]
pub struct Bound {
    pub(super) columns: Vec<Source>,
    pub(super) tree: Tree,
    pub(super) trust: Trust,
}

/// A column that a predicate asks about.
#[derive(Debug)]
pub(super) struct Source {
    pub rows: Arc<dyn Rows>,
    pub learner: Option<Arc<Learner>>,
    /// Search indexes that have the form of one.
    pub indexes: Vec<Arc<IndexForm>>,
    /// How many conditions ask about it.
    pub conditions: usize,
}

/// Conditions joined by and, or.
#[derive(Debug)]
pub(super) enum Tree {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Leaf(Leaf),
}

/// A condition on the column at this position of [`Bound::columns`].
#[derive(Debug)]
pub(super) struct Leaf {
    pub column: usize,
    pub test: Test,
    /// Caches which labels satisfy the comparison. The labels of a column seldom change, and may be many.
    pub labels: Mutex<Option<(ArrayRef, BooleanBuffer)>>,
    /// What search indexes of the column say of it.
    pub answers: Vec<Answer>,
}

impl Tree {
    /// Shows `see` all conditions.
    pub fn leaves<'a>(&'a self, see: &mut impl FnMut(&'a Leaf)) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.leaves(see);
                }
            }
            Self::Leaf(leaf) => see(leaf),
        }
    }
}

/// What the values of a column are, as far as comparisons go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Float(Width),
    Text,
    /// Bytes, written in hexadecimal.
    Binary,
}

impl Kind {
    /// `None` where values have no order: structs and lists.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Float16 => Self::Float(Width::Half),
            DataType::Float32 => Self::Float(Width::Single),
            DataType::Float64 => Self::Float(Width::Double),
            DataType::LargeUtf8 => Self::Text,
            DataType::FixedSizeBinary(_) => Self::Binary,
            DataType::Dictionary(_, labels) if !matches!(**labels, DataType::Dictionary(..)) => {
                return Self::of(labels);
            }
            integer if integer.is_integer() => Self::Integer,
            _ => return None,
        })
    }

    /// What its values are called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Integer => "integers",
            Self::Float(_) => "numbers",
            Self::Text => "text",
            Self::Binary => "bytes in hexadecimal",
        }
    }
}

/// The columns that predicates of a table can ask about.
pub(super) fn askable(table: &Table) -> impl Iterator<Item = (&Column, &Arc<dyn Rows>)> {
    let columns = table.columns.iter().filter(|column| column.in_table);
    columns.filter_map(|column| Some((column, column.rows.as_ref().ok()?)))
}

impl Bound {
    /// Finds the columns of `predicate` in `table`, and takes its values for ones of their types.
    ///
    /// # Errors
    /// [`Error::Column`], [`Error::Type`].
    pub fn new(table: &Table, predicate: &Predicate) -> Result<Self, Error> {
        Self::trusting(table, predicate, Trust::default())
    }

    /// The same, with search indexes that are used as `trust` says.
    ///
    /// # Errors
    /// As [`Bound::new`].
    pub fn trusting(table: &Table, predicate: &Predicate, trust: Trust) -> Result<Self, Error> {
        let mut binder = Binder { table, trust, names: Vec::new(), columns: Vec::new() };
        let tree = binder.tree(predicate, false)?;
        Ok(Self { columns: binder.columns, tree, trust })
    }

    /// Rows that a chunk of a `BITMAP` of its columns tells of, the most of them; 0 without any.
    pub(super) fn rows_of_bitmaps(&self) -> u64 {
        let of_form = |form: &Arc<IndexForm>| match &form.kind {
            IndexKind::Bitmap { bits, .. } => bits.run_bytes().map(|bytes| bytes.saturating_mul(8)),
            _ => None,
        };
        self.columns.iter().flat_map(|column| &column.indexes).filter_map(of_form).max().unwrap_or(0)
    }

    /// Search indexes of its columns that are not used until they are verified.
    pub fn unverified(&self) -> Vec<Arc<IndexForm>> {
        if self.trust != Trust::Verify {
            return Vec::new();
        }
        let forms = self.columns.iter().flat_map(|column| &column.indexes);
        forms.filter(|form| indexes::known(form).is_none()).cloned().collect()
    }
}

struct Binder<'a> {
    table: &'a Table,
    trust: Trust,
    names: Vec<&'a [u8]>,
    columns: Vec<Source>,
}

impl<'a> Binder<'a> {
    /// `negated` stands for a `not` before the predicate. Where `x > 5` is unknown, so is its negation: neither holds.
    fn tree(&mut self, predicate: &Predicate, negated: bool) -> Result<Tree, Error> {
        let (parts, all) = match predicate {
            Predicate::All(parts) => (parts, !negated),
            Predicate::Any(parts) => (parts, negated),
            Predicate::Not(inner) => return self.tree(inner, !negated),
            Predicate::Test(condition) => return Ok(Tree::Leaf(self.leaf(condition, negated)?)),
        };
        let parts = parts.iter().map(|part| self.tree(part, negated)).collect::<Result<_, _>>()?;
        Ok(if all { Tree::All(parts) } else { Tree::Any(parts) })
    }

    fn leaf(&mut self, condition: &Condition, negated: bool) -> Result<Leaf, Error> {
        let (column, rows) = self.find(condition)?;
        let test = match (condition.operator, negated) {
            (Operator::Null, false) | (Operator::Valid, true) => Test::Null,
            (Operator::Null, true) | (Operator::Valid, false) => Test::Valid,
            (Operator::Ne, _) => Test::Compare { ranges: ranges(condition, rows.data_type())?, negated: !negated },
            _ => Test::Compare { ranges: ranges(condition, rows.data_type())?, negated },
        };
        let indexes = self.indexes(column);
        let answers = indexes.iter().map(|form| Answer::new(form.clone(), self.trust)).collect();
        let name: &[u8] = &column.name;
        let known = self.names.iter().position(|known| *known == name);
        let column = known.unwrap_or_else(|| {
            self.names.push(name);
            let learner = column.learner.clone();
            self.columns.push(Source { rows: rows.clone(), learner, indexes, conditions: 0 });
            self.columns.len() - 1
        });
        if let Some(source) = self.columns.get_mut(column) {
            source.conditions += 1;
        }
        Ok(Leaf { column, test, labels: Mutex::default(), answers })
    }

    /// Search indexes of a column, those that are exact first.
    fn indexes(&self, column: &Column) -> Vec<Arc<IndexForm>> {
        let forms = self.table.indexes.iter().filter_map(|index| index.form.as_ref().ok());
        let mut indexes: Vec<_> = forms.filter(|form| form.column == column.name).cloned().collect();
        indexes.sort_by_key(|form| match form.kind {
            IndexKind::Bitmap { .. } => 0,
            IndexKind::MinMax { .. } => 1,
            IndexKind::Bloom { .. } => 2,
            IndexKind::SortedRows { .. } => 3,
        });
        indexes
    }

    fn find(&self, condition: &Condition) -> Result<(&'a Column, &'a Arc<dyn Rows>), Error> {
        let found = self.table.columns.iter().find(|column| column.name == condition.column);
        let what = match found.map(|column| (column, &column.rows)) {
            Some((column, Ok(rows))) if column.in_table => return Ok((column, rows)),
            Some((_, Ok(rows))) => {
                format!("{} has {} rows, the table {}", condition.column, rows.len(), self.table.rows)
            }
            Some((_, Err(reason))) => format!("{} cannot be read: {reason}", condition.column),
            None => {
                let names = askable(self.table).map(|(column, _)| column.name.to_str_lossy());
                let meant = did_you_mean(&condition.column.to_str_lossy(), names);
                format!("there is no column {:?}{meant}", condition.column)
            }
        };
        let mut known: Vec<String> =
            askable(self.table).take(MOST_NAMED + 1).map(|(column, _)| column.name.to_string()).collect();
        if known.len() > MOST_NAMED {
            known[MOST_NAMED] = "…".into();
        }
        Err(Error::Column { at: condition.at, what, known: known.join(", ") })
    }
}

/// The values that satisfy a comparison; for `ne`, those that do not.
fn ranges(condition: &Condition, data_type: &DataType) -> Result<Ranges, Error> {
    let refuse = |at, what: String| Error::Type { at, what: format!("{}: {what}", condition.column) };
    let Some(kind) = Kind::of(data_type) else {
        return Err(refuse(condition.at, format!("values of type {data_type} are only asked for with null and valid")));
    };
    let is_text = matches!(kind, Kind::Text | Kind::Binary);
    if condition.operator == Operator::Prefix && !is_text {
        return Err(refuse(condition.at, format!("{} have no prefix", kind.name())));
    }
    let wrong =
        |value: &Literal| refuse(value.at, format!("{:?} is no value of a column of {}", value.text, kind.name()));
    let fits = |value: &Literal| match value.written {
        None => true,
        Some(Written::Number) => matches!(kind, Kind::Integer | Kind::Float(_)),
        Some(Written::Boolean) => kind == Kind::Boolean,
        Some(Written::Text) => is_text,
    };
    if let Some(value) = condition.values.iter().find(|value| !fits(value)) {
        return Err(wrong(value));
    }
    let numbers = || condition.values.iter().map(|value| (value, value.text.to_str().unwrap_or("?")));
    Ok(match kind {
        Kind::Boolean | Kind::Integer => {
            let point = |text: &str| match (kind, text) {
                (Kind::Boolean, "false") => literal::integer("0"),
                (Kind::Boolean, "true") => literal::integer("1"),
                (Kind::Boolean, _) => None,
                _ => literal::integer(text),
            };
            let points = numbers().map(|(value, text)| point(text).ok_or_else(|| wrong(value)));
            let points: Vec<_> = points.collect::<Result<_, _>>()?;
            Ranges::integers(of_points(condition.operator, &points, [i128::MIN, i128::MAX]))
        }
        Kind::Float(width) => {
            let points = numbers().map(|(value, text)| literal::float(text, width).ok_or_else(|| wrong(value)));
            let points: Vec<_> = points.collect::<Result<_, _>>()?;
            Ranges::floats(of_points(condition.operator, &points, [f64::NEG_INFINITY, f64::INFINITY]))
        }
        Kind::Text => {
            let texts: Vec<_> = condition.values.iter().map(|value| value.text.to_vec()).collect();
            Ranges::texts(of_texts(condition.operator, &texts))
        }
        Kind::Binary => {
            let bytes = |value: &Literal| literal::hexadecimal(&value.text).ok_or_else(|| wrong(value));
            let texts: Vec<_> = condition.values.iter().map(bytes).collect::<Result<_, _>>()?;
            Ranges::texts(of_texts(condition.operator, &texts))
        }
    })
}

/// Ranges of numbers: those of `eq` for `ne`. What is no place, as that of NaN, makes no range.
fn of_points<T: Copy>(operator: Operator, points: &[Point<T>], [least, greatest]: [T; 2]) -> Vec<[T; 2]> {
    let up_to = |point: &Point<T>| point.at.or(point.below);
    let from = |point: &Point<T>| point.at.or(point.above);
    let range = |from: Option<T>, to: Option<T>| Some([from?, to?]);
    let one = |point: &Point<T>| match operator {
        Operator::Lt => range(Some(least), point.below),
        Operator::Le => range(Some(least), up_to(point)),
        Operator::Gt => range(point.above, Some(greatest)),
        Operator::Ge => range(from(point), Some(greatest)),
        _ => range(point.at, point.at),
    };
    match (operator, points) {
        (Operator::Between, [low, high]) => range(from(low), up_to(high)).into_iter().collect(),
        _ => points.iter().filter_map(one).collect(),
    }
}

/// Ranges of byte strings. The next one after a string is itself and a zero.
fn of_texts(operator: Operator, texts: &[Vec<u8>]) -> Vec<TextRange> {
    let after = |text: &Vec<u8>| {
        let mut after = text.clone();
        after.push(0);
        after
    };
    let one = |text: &Vec<u8>| match operator {
        Operator::Lt => (Vec::new(), Some(text.clone())),
        Operator::Le => (Vec::new(), Some(after(text))),
        Operator::Gt => (after(text), None),
        Operator::Ge => (text.clone(), None),
        Operator::Prefix => (text.clone(), behind_prefix(text)),
        _ => (text.clone(), Some(after(text))),
    };
    match (operator, texts) {
        (Operator::Between, [low, high]) => vec![(low.clone(), Some(after(high)))],
        _ => texts.iter().map(one).collect(),
    }
}

/// The least byte string behind all that begin with a prefix.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}
