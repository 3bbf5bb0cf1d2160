//! Checks rules against values as they are read: bounds, unique labels, values that equal a rounded fill value.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

use crate::store::decode::widen;
use crate::store::statistics::{Scalar, Summary, summary};
use crate::store::{Rows, TallyCount};
use crate::table::{Column, Expected, Finding, Near, Rule};

/// Largest set of labels to search for duplicates: each label takes some 64 bytes meanwhile.
const MOST_LABELS: u64 = 1 << 20;

/// A rule on values, and the violations so far. Each row is checked once, in any order.
pub(super) struct RuleTest<'a> {
    rule: &'static Rule,
    held: Held<'a>,
}

enum Held<'a> {
    /// Rows with a value below the first bound or above the second.
    Within(&'a [Option<Scalar>; 2], Mutex<Option<TallyCount>>),
    /// Rows with this value, or with an item that equals it.
    Near(&'a Near, Mutex<Option<TallyCount>>),
    /// Hashes of the labels so far.
    Distinct(RowConverter, Mutex<HashMap<u128, Met>>),
}

/// A label's number of occurrences, and the first two rows that have it.
struct Met {
    times: u64,
    rows: [u64; 2],
}

impl<'a> RuleTest<'a> {
    /// The rule that values lie between two bounds.
    pub fn within(rule: &'static Rule, bounds: &'a [Option<Scalar>; 2]) -> Self {
        Self { rule, held: Held::Within(bounds, Mutex::default()) }
    }

    /// The rule that labels are unique; `None`: there are too many, or their type has no equality.
    pub fn distinct(rule: &'static Rule, labels: &dyn Rows) -> Option<Self> {
        let converter = RowConverter::new(vec![SortField::new(labels.data_type().clone())]).ok()?;
        (labels.len() <= MOST_LABELS).then(|| Self { rule, held: Held::Distinct(converter, Mutex::default()) })
    }

    /// The rule that a fill value is a possible value of the column; rows that equal it after rounding break it.
    pub fn near(near: &'a Near) -> Self {
        Self { rule: near.rule, held: Held::Near(near, Mutex::default()) }
    }

    /// Whether the summary of all rows shows that they keep the rule.
    pub fn is_kept_by(&self, all: &Summary) -> bool {
        match &self.held {
            Held::Within(bounds, _) => !is_outside(all, bounds),
            Held::Near(near, _) => is_outside_of(all, &near.nearest),
            Held::Distinct(..) => false,
        }
    }

    /// Checks the rows from `start` on.
    pub fn look(&self, start: u64, array: &ArrayRef) {
        match &self.held {
            Held::Within(bounds, count) => {
                if !summary(array).is_some_and(|all| is_outside(&all, bounds)) {
                    return;
                }
                let is_odd = |row: &usize| summary(&array.slice(*row, 1)).is_some_and(|one| is_outside(&one, bounds));
                let mut odd = (0..array.len()).filter(is_odd).map(|row| start.saturating_add(row as u64));
                if let Some(first) = odd.next() {
                    add(count, TallyCount { rows: 1 + odd.count() as u64, first });
                }
            }
            Held::Near(near, count) => {
                if let Some(met) = equal_to(start, array, &near.nearest) {
                    add(count, met);
                }
            }
            Held::Distinct(..) => self.look_at_labels(start, array, 0..array.len()),
        }
    }

    /// Whether the rule is one on labels, for which [`RuleTest::look_at_labels`] suffices.
    pub fn is_of_labels(&self) -> bool {
        matches!(self.held, Held::Distinct(..))
    }

    /// Checks the labels of the rows from `start` on, given by their positions in `labels`.
    pub fn look_at_labels(&self, start: u64, labels: &ArrayRef, places: impl Iterator<Item = usize>) {
        let Held::Distinct(converter, met) = &self.held else { return };
        let Ok(labels) = converter.convert_columns(&[Arc::clone(labels)]) else { return };
        let hashes: Vec<u128> = labels.iter().map(|label| xxh3_128(label.as_ref())).collect();
        let mut met = met.lock();
        for (row, place) in (0..).zip(places) {
            let Some(hash) = hashes.get(place) else { continue };
            let row = start.saturating_add(row);
            let one = met.entry(*hash).or_insert(Met { times: 0, rows: [u64::MAX; 2] });
            one.times += 1;
            let [first, second] = one.rows;
            one.rows = [first.min(row), first.max(row).min(second)];
        }
    }

    /// The finding on the rows at `path`, once all are checked; `None`: they keep the rule.
    pub fn outcome(&self, path: &str) -> Option<Finding> {
        let count = match &self.held {
            Held::Within(_, count) => *count.lock(),
            Held::Near(near, count) => {
                let count = (*count.lock())?;
                let (of, TallyCount { rows, first }) = (&near.of, count);
                let found = format!("{of}{rows} rows equal it once it is rounded to {}", said(&near.nearest));
                let found = format!("{found}, and are shown as that; the first is row {first}");
                return Some(Finding { rows: Some(count), ..Finding::new(path, self.rule, found) });
            }
            Held::Distinct(_, met) => {
                let met = met.lock();
                let again = met.values().filter(|one| one.times > 1);
                let first = again.clone().map(|one| one.rows[1]).min();
                first.map(|first| TallyCount { rows: again.map(|one| one.times - 1).sum(), first })
            }
        };
        count.map(|count| Finding::of_rows(path, None, self.rule, count))
    }
}

fn add(all: &Mutex<Option<TallyCount>>, met: TallyCount) {
    let mut all = all.lock();
    let before = all.get_or_insert(TallyCount { rows: 0, first: met.first });
    *before = TallyCount { rows: before.rows + met.rows, first: before.first.min(met.first) };
}

/// Writes a number for people.
fn said(number: &Scalar) -> String {
    match number {
        Scalar::Int(number) => number.to_string(),
        Scalar::UInt(number) => number.to_string(),
        Scalar::Float(number) => format!("{number:?}"),
        other => format!("{other:?}"),
    }
}

/// Whether a value lies below or above all values of a summary.
fn is_outside_of(all: &Summary, value: &Scalar) -> bool {
    let order = |bound: &Option<Scalar>| Some(compare(bound.as_ref()?, value));
    order(&all.min).is_some_and(Ordering::is_gt) || order(&all.max).is_some_and(Ordering::is_lt)
}

/// The rows from `start` on that equal a value, or have an item that does; `None`: no row does.
fn equal_to(start: u64, array: &ArrayRef, value: &Scalar) -> Option<TallyCount> {
    let (mut items, mut of_row) = (array.clone(), 1_usize);
    while let Some(lists) = items.as_fixed_size_list_opt() {
        of_row = of_row.checked_mul(usize::try_from(lists.value_length()).ok()?)?;
        items = lists.values().clone();
    }
    let equal = |value: &Scalar| -> Option<Vec<usize>> {
        let (validity, at) = (items.nulls(), 0..items.len());
        let there = at.filter(|at| validity.is_none_or(|validity| validity.is_valid(*at)));
        Some(match value {
            Scalar::Int(value) => {
                let numbers = widen::signed(&items)?;
                there.filter(|at| numbers.is_valid(*at) && numbers.value(*at) == *value).collect()
            }
            Scalar::UInt(value) => {
                let numbers = widen::unsigned(&items)?;
                there.filter(|at| numbers.is_valid(*at) && numbers.value(*at) == *value).collect()
            }
            Scalar::Float(value) => {
                let floats = cast(&items, &DataType::Float64).ok()?;
                let floats = floats.as_primitive_opt::<Float64Type>()?;
                there.filter(|at| floats.value(*at) == *value).collect()
            }
            Scalar::Bool(_) | Scalar::Text(_) => return None,
        })
    };
    let mut rows: Vec<usize> = equal(value)?.into_iter().map(|at| at / of_row.max(1)).collect();
    rows.dedup();
    Some(TallyCount { rows: rows.len() as u64, first: start.saturating_add(*rows.first()? as u64) })
}

/// Whether some value of a summary lies below or above the bounds.
fn is_outside(values: &Summary, [least, greatest]: &[Option<Scalar>; 2]) -> bool {
    let order = |value: &Option<Scalar>, bound: &Option<Scalar>| Some(compare(value.as_ref()?, bound.as_ref()?));
    order(&values.min, least).is_some_and(Ordering::is_lt) || order(&values.max, greatest).is_some_and(Ordering::is_gt)
}

/// Orders two numbers of one kind; zeros are equal.
fn compare(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) if a == b => Ordering::Equal,
        _ => a.order(b),
    }
}

/// The finding that a column has no fill value although it could have one: not if values reach both ends of their type.
pub(super) fn unfilled(column: &Column) -> Option<Finding> {
    let (rule, ends) = column.meaning.expected.as_deref()?.domain.as_ref()?;
    let known = column.learner.as_ref().and_then(|learner| learner.known());
    let all = known.and_then(|known| known.over(0..known.rows()));
    let reaches = |all: &Summary| [&all.min, &all.max].into_iter().flatten().eq(ends);
    let is_full = all.as_ref().is_some_and(reaches);
    (!is_full).then(|| Finding::new(&column.path, rule, "none that was set"))
}

/// The finding that the fill value of a column lies among its values, from the statistics of a column that was read.
pub(super) fn fill_among(column: &Column) -> Option<Finding> {
    let Expected { fill, .. } = column.meaning.expected.as_deref()?;
    let (rule, fill) = fill.as_ref()?;
    let known = column.learner.as_ref()?.known()?;
    let all = known.over(0..known.rows())?;
    let (Some(least), Some(greatest)) = (&all.min, &all.max) else { return None };
    // The greatest number may be infinite, which does not bound the others.
    let is_finite = |bound: &Scalar| !matches!(bound, Scalar::Float(bound) if bound.is_infinite());
    let is_among =
        is_finite(least) && is_finite(greatest) && compare(least, fill).is_lt() && compare(fill, greatest).is_lt();
    is_among.then(|| {
        let found = format!("a fill value between values; {} rows are missing by it", all.nulls);
        Finding::new(&column.path, rule, found)
    })
}
