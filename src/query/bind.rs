//! Binds a predicate to the columns of one table.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::categories;
use super::known::answer::IndexAnswer;
use super::pattern::Pattern;
use super::predicate::literal::{self, FloatWidth, Point};
use super::predicate::{Condition, Error, Literal, Operator, Predicate, Written};
use super::ranges::{TextRange, ValueRanges, ValueTest};
use crate::indexes::{self, Trust};
use crate::learnt::Learner;
use crate::store::{Nan, Rows};
use crate::table::{Column, IndexContent, IndexForm, PartRows, Table, Times, arrow_name, did_you_mean};

/// Most columns to name in a message.
const MOST_NAMED: usize = 30;

/// A predicate whose columns are found, and whose values are converted to the columns' types.
#[derive(Debug)]
pub struct BoundPredicate {
    pub(super) columns: Vec<PredicateColumn>,
    pub(super) tree: ConditionTree,
    pub(super) trust: Trust,
}

/// A column in a predicate.
#[derive(Debug)]
pub(super) struct PredicateColumn {
    pub rows: Arc<dyn Rows>,
    pub learner: Option<Arc<Learner>>,
    /// Search indexes with a valid form.
    pub indexes: Vec<Arc<IndexForm>>,
    /// Number of conditions on the column.
    pub conditions: usize,
}

/// Conditions joined by `and` and `or`.
#[derive(Debug)]
pub(super) enum ConditionTree {
    All(Vec<ConditionTree>),
    Any(Vec<ConditionTree>),
    Leaf(BoundCondition),
}

/// A condition on one column, given by its position in [`BoundPredicate::columns`].
#[derive(Debug)]
pub(super) struct BoundCondition {
    pub column: usize,
    pub test: ValueTest,
    /// Which labels satisfy the comparison, cached beside these labels: a column's labels seldom change, and may be
    /// many.
    pub labels: Mutex<Option<(ArrayRef, BooleanBuffer)>>,
    /// Answers from the column's search indexes.
    pub answers: Vec<IndexAnswer>,
}

impl BoundCondition {
    /// Returns which labels lie in the ranges. A null label lies in none.
    pub fn matching(&self, ranges: &ValueRanges, labels: &ArrayRef) -> Option<BooleanBuffer> {
        if let Some((_, matching)) = self.labels.lock().as_ref().filter(|(known, _)| Arc::ptr_eq(known, labels)) {
            return Some(matching.clone());
        }
        let mut matching = ranges.matching(labels.as_ref())?;
        if let Some(nulls) = labels.nulls() {
            matching = &matching & nulls.inner();
        }
        *self.labels.lock() = Some((labels.clone(), matching.clone()));
        Some(matching)
    }
}

impl ConditionTree {
    /// Calls `see` with each condition.
    pub fn leaves<'a>(&'a self, see: &mut impl FnMut(&'a BoundCondition)) {
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

/// How a column's values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonType {
    Boolean,
    Integer,
    Float(FloatWidth),
    Text,
    /// Bytes, written in hexadecimal.
    Binary,
    /// Integers that stand for instants.
    Time(Times),
    /// The years of the instants that integers stand for.
    Year(Times),
    /// Integers that count a unit of time, treated as instants since 1970.
    Duration(Times),
}

impl ComparisonType {
    /// Returns how the values of a column compare. `None`: they have no order.
    pub fn of_column(column: &Column, rows: &dyn Rows) -> Option<Self> {
        let unit = column.meaning.duration.filter(|_| *rows.data_type() == DataType::Int64);
        let times = column.times().map(Self::Time);
        times
            .or_else(|| unit.and_then(|unit| Times::counts(unit, None)).map(Self::Duration))
            .or_else(|| Self::of(rows.data_type()))
    }

    /// Returns how values of an Arrow type compare. `None`: they have no order, as with structs and lists.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Float16 => Self::Float(FloatWidth::Half),
            DataType::Float32 => Self::Float(FloatWidth::Single),
            DataType::Float64 => Self::Float(FloatWidth::Double),
            DataType::LargeUtf8 => Self::Text,
            DataType::FixedSizeBinary(_) => Self::Binary,
            DataType::Dictionary(_, labels) if !matches!(**labels, DataType::Dictionary(..)) => {
                return Self::of(labels);
            }
            integer if integer.is_integer() => Self::Integer,
            _ => return None,
        })
    }

    /// Returns what messages call values that compare like this.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Integer => "integers",
            Self::Float(_) => "numbers",
            Self::Text => "text",
            Self::Binary => "bytes in hexadecimal",
            Self::Year(_) => "years",
            Self::Time(_) => "times (2026-01-31T12:00:00.5, UTC without a zone)",
            Self::Duration(_) => "durations (10 min, 1.5 h, 1 days 02:03:04; a number is one as stored)",
        }
    }
}

/// Returns the columns of a table that predicates can use, with their rows.
pub(super) fn askable(table: &Table) -> impl Iterator<Item = (&Column, &Arc<dyn Rows>)> {
    let columns = table.columns.iter().filter(|column| column.in_table);
    columns.filter_map(|column| Some((column, column.rows.as_ref().ok()?)))
}

impl BoundPredicate {
    /// Finds the columns of `predicate` in `table`, and converts its values to their types.
    ///
    /// # Errors
    /// [`Error::Column`], [`Error::Type`].
    pub fn new(table: &Table, predicate: &Predicate) -> Result<Self, Error> {
        Self::trusting(table, predicate, Trust::default())
    }

    /// As [`BoundPredicate::new`], with search indexes used according to `trust`.
    ///
    /// # Errors
    /// As [`BoundPredicate::new`].
    pub fn trusting(table: &Table, predicate: &Predicate, trust: Trust) -> Result<Self, Error> {
        let mut binder = Binder { table, trust, names: Vec::new(), columns: Vec::new() };
        let tree = binder.tree(predicate, false)?;
        Ok(Self { columns: binder.columns, tree, trust })
    }

    /// Returns the most rows that one chunk of a `BITMAP` of the predicate's columns covers; 0 without a bitmap.
    pub(super) fn rows_of_bitmaps(&self) -> u64 {
        let rows = self.columns.iter().flat_map(|column| &column.indexes).filter_map(|form| match &form.kind {
            IndexContent::Bitmap { bits, .. } => bits.run_bytes().map(|bytes| bytes.saturating_mul(8)),
            _ => None,
        });
        rows.max().unwrap_or(0)
    }

    /// Returns the search indexes of the predicate's columns that are not used before verification.
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
    names: Vec<BString>,
    columns: Vec<PredicateColumn>,
}

impl<'a> Binder<'a> {
    /// Binds a predicate, `negated` if it stands behind a `not`. Where `x > 5` is unknown, so is its negation: neither
    /// holds.
    fn tree(&mut self, predicate: &Predicate, negated: bool) -> Result<ConditionTree, Error> {
        let (parts, all) = match predicate {
            Predicate::All(parts) => (parts, !negated),
            Predicate::Any(parts) => (parts, negated),
            Predicate::Not(inner) => return self.tree(inner, !negated),
            Predicate::Test(condition) => return self.condition(condition, negated),
        };
        let parts = parts.iter().map(|part| self.tree(part, negated)).collect::<Result<_, _>>()?;
        Ok(if all { ConditionTree::All(parts) } else { ConditionTree::Any(parts) })
    }

    fn condition(&mut self, condition: &Condition, negated: bool) -> Result<ConditionTree, Error> {
        let asked = self.find(condition)?;
        let test = match (condition.operator, negated) {
            (Operator::Null, false) | (Operator::Valid, true) => ValueTest::Null,
            (Operator::Null, true) | (Operator::Valid, false) => ValueTest::Valid,
            (Operator::Nan, _) => {
                if !matches!(asked.kind(), Ok(ComparisonType::Float(_))) {
                    let what = format!("{}: only floating-point numbers can be NaN", condition.column);
                    return Err(Error::Type { at: condition.at, what });
                }
                if negated { ValueTest::NotNan } else { ValueTest::Nan }
            }
            (operator, _) => {
                let negated = (operator == Operator::Ne) != negated;
                ValueTest::Compare { ranges: asked.ranges(condition)?, negated }
            }
        };
        // Integers without an instant are null.
        let Some(bounds) = asked.times.and_then(|times| times.bounds()) else {
            return Ok(ConditionTree::Leaf(self.leaf(&asked, test)));
        };
        let within = |negated| ValueTest::Compare { ranges: ValueRanges::integers(vec![bounds]), negated };
        Ok(match test {
            ValueTest::Null => ConditionTree::Any(vec![
                ConditionTree::Leaf(self.leaf(&asked, test)),
                ConditionTree::Leaf(self.leaf(&asked, within(true))),
            ]),
            ValueTest::Valid => ConditionTree::Leaf(self.leaf(&asked, within(false))),
            // Only floats have this test, and they are no instants.
            ValueTest::Nan | ValueTest::NotNan => ConditionTree::Leaf(self.leaf(&asked, test)),
            ValueTest::Compare { negated: true, .. } => ConditionTree::All(vec![
                ConditionTree::Leaf(self.leaf(&asked, test)),
                ConditionTree::Leaf(self.leaf(&asked, within(false))),
            ]),
            ValueTest::Compare { ranges, negated } => {
                let test = ValueTest::Compare { ranges: ranges.within(bounds), negated };
                ConditionTree::Leaf(self.leaf(&asked, test))
            }
        })
    }

    fn leaf(&mut self, asked: &NamedColumn<'a>, test: ValueTest) -> BoundCondition {
        let indexes = self.indexes(asked);
        // Indexes describe stored values, and count NaN as a present value.
        let hides_nan = asked.rows.data_type().is_floating() && asked.rows.hints().nan != Nan::Value;
        let is_told = match &test {
            ValueTest::Nan | ValueTest::NotNan => false,
            ValueTest::Compare { negated: false, .. } => true,
            ValueTest::Null | ValueTest::Valid | ValueTest::Compare { negated: true, .. } => !hides_nan,
        };
        let told = indexes.iter().filter(|_| is_told);
        let answers = told.map(|form| IndexAnswer::new(form.clone(), self.trust)).collect();
        let known = self.names.iter().position(|known| *known == asked.name);
        let column = known.unwrap_or_else(|| {
            self.names.push(asked.name.clone());
            let learner = asked.column.learner.clone().filter(|_| !asked.is_part);
            self.columns.push(PredicateColumn { rows: asked.rows.clone(), learner, indexes, conditions: 0 });
            self.columns.len() - 1
        });
        if let Some(source) = self.columns.get_mut(column) {
            source.conditions += 1;
        }
        BoundCondition { column, test, labels: Mutex::default(), answers }
    }

    /// Returns the search indexes of a column, the cheapest to ask first.
    fn indexes(&self, asked: &NamedColumn<'_>) -> Vec<Arc<IndexForm>> {
        let forms = self.table.indexes.iter().filter_map(|index| index.form.as_ref().ok());
        let mut indexes: Vec<_> =
            forms.filter(|form| form.column == asked.name && form.is_part == asked.is_part).cloned().collect();
        indexes.sort_by_key(|form| match form.kind {
            IndexContent::Bitmap { .. } => 0,
            IndexContent::MinMax { .. } | IndexContent::Bounds { .. } => 1,
            IndexContent::Bloom { .. } => 2,
            IndexContent::SortedRows { .. } | IndexContent::SortedValues { .. } => 3,
        });
        indexes
    }

    /// Finds the column of a condition, or the field after a dot.
    fn find(&self, condition: &Condition) -> Result<NamedColumn<'a>, Error> {
        find(self.table, &condition.column, condition.at)
    }
}

/// The column, or the field inside one, that a name means.
pub(super) struct NamedColumn<'a> {
    pub column: &'a Column,
    name: BString,
    pub rows: Arc<dyn Rows>,
    times: Option<Times>,
    is_part: bool,
    /// Whether the condition is on the years of the column's instants.
    is_year: bool,
}

impl NamedColumn<'_> {
    fn kind(&self) -> Result<ComparisonType, &DataType> {
        if let Some(times) = self.times.filter(|_| self.is_year) {
            return Ok(ComparisonType::Year(times));
        }
        let kind = match self.is_part {
            true => ComparisonType::of(self.rows.data_type()),
            false => ComparisonType::of_column(self.column, self.rows.as_ref()),
        };
        kind.ok_or(self.rows.data_type())
    }

    /// Returns the values that satisfy a comparison; for `ne`, those that do not.
    fn ranges(&self, condition: &Condition) -> Result<ValueRanges, Error> {
        match categories::compared(condition.operator, self.rows.as_ref()) {
            Some(labels) => categories::ranges(condition, labels.as_ref(), |equal| ranges(equal, self.kind())),
            None => ranges(condition, self.kind()),
        }
    }

    /// Returns the values to sort rows by; `at` is the position of the column's name in the query.
    pub fn ordered(self, at: usize) -> Result<Arc<dyn Rows>, Error> {
        match self.kind() {
            Ok(ComparisonType::Year(_)) => {
                Err(Error::Type { at, what: format!("{}: order by the times themselves", self.name) })
            }
            Ok(ComparisonType::Time(_)) => self.column.shown().map_err(|what| Error::Type { at, what: what.into() }),
            Ok(_) => Ok(self.rows),
            Err(data_type) => {
                let what = format!("{}: values of type {} have no order", self.name, arrow_name(data_type));
                Err(Error::Type { at, what })
            }
        }
    }
}

/// Finds a column by its name, else the field after a dot: `position.x`. `at` is the position of the name in the query.
///
/// # Errors
/// [`Error::Column`].
pub(super) fn find<'a>(table: &'a Table, name: &BString, at: usize) -> Result<NamedColumn<'a>, Error> {
    let whole = |name: &[u8]| table.columns.iter().find(|column| column.name == name);
    let found = whole(name);
    let what = match found.map(|column| (column, &column.rows)) {
        Some((column, Ok(rows))) if column.in_table => {
            return Ok(NamedColumn {
                column,
                name: name.clone(),
                rows: rows.clone(),
                times: column.times(),
                is_part: false,
                is_year: false,
            });
        }
        Some((column, Ok(_))) => format!("{name}: {}", column.why_apart(table.rows)),
        Some((_, Err(reason))) => format!("{name} cannot be read: {reason}"),
        None => {
            let names = askable(table).map(|(column, _)| column.name.to_str_lossy());
            format!("there is no column {name:?}{}", did_you_mean(&name.to_str_lossy(), names))
        }
    };
    let parts = name.find_iter(".").filter(|_| found.is_none()).find_map(|point| {
        let column = whole(&name[..point]).filter(|column| column.in_table)?;
        let rows = PartRows::of(column.rows.as_ref().ok()?, &name[point + 1..])?;
        Some(NamedColumn {
            column,
            name: name.clone(),
            rows: Arc::new(rows),
            times: None,
            is_part: true,
            is_year: false,
        })
    });
    if let Some(part) = parts {
        return Ok(part);
    }
    let of_year = name.strip_prefix(b"year(").and_then(|rest| rest.strip_suffix(b")")).filter(|_| found.is_none());
    if let Some(inner) = of_year {
        let asked = find(table, &inner.into(), at)?;
        return match asked.times {
            Some(_) if !asked.is_year => Ok(NamedColumn { is_year: true, ..asked }),
            _ => Err(Error::Type { at, what: format!("{}: no column of times has a year", asked.name) }),
        };
    }
    let mut known: Vec<String> =
        askable(table).take(MOST_NAMED + 1).map(|(column, _)| column.name.to_string()).collect();
    if known.len() > MOST_NAMED {
        known[MOST_NAMED] = "…".into();
    }
    Err(Error::Column { at, what, known: known.join(", ") })
}

/// Returns the values that satisfy a comparison; for `ne`, those that do not.
fn ranges(condition: &Condition, kind: Result<ComparisonType, &DataType>) -> Result<ValueRanges, Error> {
    let kind = kind.map_err(|data_type| {
        let what = format!("values of type {} support only null and valid", arrow_name(data_type));
        condition.refused(condition.at, what)
    })?;
    let is_text = matches!(kind, ComparisonType::Text | ComparisonType::Binary);
    if let (Operator::Like, [value]) = (condition.operator, condition.values.as_slice()) {
        let pattern = Pattern::parse(&value.text.to_str_lossy());
        return match (pattern.plain(), kind) {
            (Some((operator, text)), _) => {
                let values = vec![Literal { text: text.into(), ..value.clone() }];
                ranges(&Condition { operator, values, ..condition.clone() }, Ok(kind))
            }
            (None, ComparisonType::Text) => {
                let prefix = pattern.prefix().as_bytes().to_vec();
                let behind = behind_prefix(&prefix);
                Ok(ValueRanges::Like(pattern, (prefix, behind)))
            }
            (None, _) => Err(condition.refused(value.at, format!("{} match no pattern", kind.name()))),
        };
    }
    if condition.operator == Operator::Prefix && !is_text {
        return Err(condition.refused(condition.at, format!("{} have no prefix", kind.name())));
    }
    // A path does not tell numbers from text.
    let number = condition.values.iter().find(|value| match value.written {
        None => value.text.to_str().is_ok_and(|text| literal::integer(text).is_some()),
        written => written == Some(Written::Number),
    });
    if let (ComparisonType::Time(_), Some(value)) = (kind, number) {
        return Err(condition.refused(value.at, no_instant(value)));
    }
    let wrong = |value: &Literal| {
        condition.refused(value.at, format!("{:?} is no value of a column of {}", value.text, kind.name()))
    };
    let unfit = condition.values.iter().find(|value| match value.written {
        None => false,
        Some(Written::Number) => !matches!(
            kind,
            ComparisonType::Integer | ComparisonType::Float(_) | ComparisonType::Year(_) | ComparisonType::Duration(_)
        ),
        Some(Written::Boolean) => kind != ComparisonType::Boolean,
        Some(Written::Text) => !is_text && !matches!(kind, ComparisonType::Time(_) | ComparisonType::Duration(_)),
    });
    if let Some(value) = unfit {
        return Err(wrong(value));
    }
    let are_numbers = matches!(kind, ComparisonType::Integer | ComparisonType::Float(_));
    if let Some(value) = condition.values.iter().find(|value| are_numbers && is_nan(value)) {
        let hint = match value.written {
            Some(_) => "ask `is nan`, or `is null` where NaN is missing",
            None => "ask `:nan`, or `:null` where NaN is missing",
        };
        return Err(condition.refused(value.at, format!("nothing compares with nan: {hint}")));
    }
    let numbers = condition.values.iter().map(|value| (value, value.text.to_str().unwrap_or("?")));
    Ok(match kind {
        ComparisonType::Boolean
        | ComparisonType::Integer
        | ComparisonType::Time(_)
        | ComparisonType::Duration(_)
        | ComparisonType::Year(_) => {
            let points = numbers.map(|(value, text)| {
                let point = match (kind, text) {
                    (ComparisonType::Boolean, "false") => literal::integer("0"),
                    (ComparisonType::Boolean, "true") => literal::integer("1"),
                    (ComparisonType::Boolean, _) => None,
                    (ComparisonType::Time(times), _) => literal::instant(text, times),
                    (ComparisonType::Duration(times), _) if value.written == Some(Written::Text) => {
                        literal::duration(text, times)
                    }
                    (ComparisonType::Duration(times), _) => {
                        literal::integer(text).or_else(|| literal::duration(text, times))
                    }
                    _ => literal::integer(text),
                };
                point.ok_or_else(|| wrong(value))
            });
            let points: Vec<_> = points.collect::<Result<_, _>>()?;
            let mut ranges = of_points(condition.operator, &points, [i128::MIN, i128::MAX]);
            if let ComparisonType::Year(times) = kind {
                for [first, last] in &mut ranges {
                    // From the first instant of a year to the last one before the next.
                    *last = times.begin_of_year(last.saturating_add(1)).saturating_sub(1);
                    *first = times.begin_of_year(*first);
                }
            }
            ValueRanges::integers(ranges)
        }
        ComparisonType::Float(width) => {
            let points = numbers.map(|(value, text)| literal::float(text, width).ok_or_else(|| wrong(value)));
            let points: Vec<_> = points.collect::<Result<_, _>>()?;
            ValueRanges::floats(of_points(condition.operator, &points, [f64::NEG_INFINITY, f64::INFINITY]))
        }
        ComparisonType::Text => {
            let texts: Vec<_> = condition.values.iter().map(|value| value.text.to_vec()).collect();
            ValueRanges::texts(of_texts(condition.operator, &texts))
        }
        ComparisonType::Binary => {
            let texts =
                condition.values.iter().map(|value| literal::hexadecimal(&value.text).ok_or_else(|| wrong(value)));
            let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
            ValueRanges::texts(of_texts(condition.operator, &texts))
        }
    })
}

/// Whether a value is NaN as written.
fn is_nan(value: &Literal) -> bool {
    value.text.to_str().is_ok_and(|text| text.parse::<f64>().is_ok_and(f64::is_nan))
}

/// Returns why a number cannot be compared with instants: the stored unit and epoch are seldom those that the user
/// means.
fn no_instant(value: &Literal) -> String {
    let year =
        value.text.to_str().ok().filter(|text| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit()));
    let mark = if value.written.is_some() { "'" } else { "" };
    format!(
        "{} is no time: write {mark}{}-01-01{mark}; --times numbers compares the stored numbers",
        value.text,
        year.unwrap_or("2026")
    )
}

/// Returns the ranges of numbers that satisfy a comparison; for `ne`, those of `eq`. A number without the point that
/// bounds a range, such as NaN, gives none.
fn of_points<T: Copy>(operator: Operator, points: &[Point<T>], [least, greatest]: [T; 2]) -> Vec<[T; 2]> {
    let of_each = points.iter().map(|point| match operator {
        Operator::Lt => (Some(least), point.below),
        Operator::Le => (Some(least), point.at.or(point.below)),
        Operator::Gt => (point.above, Some(greatest)),
        Operator::Ge => (point.at.or(point.above), Some(greatest)),
        _ => (point.at, point.at),
    });
    let ends: Vec<_> = match (operator, points) {
        (Operator::Between, [low, high]) => vec![(low.at.or(low.above), high.at.or(high.below))],
        _ => of_each.collect(),
    };
    ends.into_iter().filter_map(|(from, to)| Some([from?, to?])).collect()
}

/// Returns the ranges of byte strings that satisfy a comparison. The successor of a string is the string with a zero
/// byte.
fn of_texts(operator: Operator, texts: &[Vec<u8>]) -> Vec<TextRange> {
    let after = |text: &[u8]| [text, &[0]].concat();
    let of_each = texts.iter().map(|text| match operator {
        Operator::Lt => (Vec::new(), Some(text.clone())),
        Operator::Le => (Vec::new(), Some(after(text))),
        Operator::Gt => (after(text), None),
        Operator::Ge => (text.clone(), None),
        Operator::Prefix => (text.clone(), behind_prefix(text)),
        _ => (text.clone(), Some(after(text))),
    });
    match (operator, texts) {
        (Operator::Between, [low, high]) => vec![(low.clone(), Some(after(high)))],
        _ => of_each.collect(),
    }
}

/// Returns the least byte string after all that begin with `prefix`. `None`: no string comes after them.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}
