//! Ordered categories: `low < mid < high`, whatever the bytes of their labels.
//!
//! A comparison by order becomes the set of the labels that satisfy it. So statistics, search indexes and bounds, which
//! do not know that order, handle it like any set of values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType;

use super::predicate::{Condition, Error, Operator};
use super::ranges::ValueRanges;
use crate::source::Interrupt;
use crate::store::{Rows, ValueSet};

/// Most categories to compare by order.
const MOST_ORDERED: u64 = 1 << 16;

/// Most labels to name in a message.
const MOST_NAMED: usize = 30;

/// Returns the labels of ordered categories, in order. `None`: the rows have none.
pub(super) fn labels(rows: &dyn Rows) -> Option<Arc<dyn Rows>> {
    match &rows.hints().values {
        Some(ValueSet::Categories { labels, ordered: true }) => Some(labels.clone()),
        _ => None,
    }
}

/// Returns the labels of ordered categories, if the operator compares by order.
pub(super) fn compared(operator: Operator, rows: &dyn Rows) -> Option<Arc<dyn Rows>> {
    let is_by_order = matches!(operator, Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge | Operator::Between);
    if is_by_order { labels(rows) } else { None }
}

/// Returns the labels that satisfy a comparison by order; `equal` finds the labels that an operand equals.
pub(super) fn ranges(
    condition: &Condition,
    labels: &dyn Rows,
    equal: impl Fn(&Condition) -> Result<ValueRanges, Error>,
) -> Result<ValueRanges, Error> {
    if labels.len() > MOST_ORDERED {
        let what = format!("{} ordered categories, of which at most {MOST_ORDERED} are compared", labels.len());
        return Err(condition.refused(condition.at, what));
    }
    let all = labels.array(0..labels.len(), &Interrupt::new());
    let all = all.map_err(|error| condition.refused(condition.at, error))?;
    let mut places = Vec::with_capacity(condition.values.len());
    for value in &condition.values {
        let one = Condition { operator: Operator::Eq, values: vec![value.clone()], ..condition.clone() };
        let found = equal(&one)?.matching(all.as_ref());
        let place = found.and_then(|found| found.set_indices().find(|at| all.is_valid(*at)));
        places.push(place.ok_or_else(|| {
            let named = named(&all).join(" < ");
            condition.refused(value.at, format!("{:?} is none of the categories, in their order {named}", value.text))
        })?);
    }
    let wanted = match (condition.operator, places.as_slice()) {
        (Operator::Lt, [at]) => 0..*at,
        (Operator::Le, [at]) => 0..at + 1,
        (Operator::Gt, [at]) => at + 1..all.len(),
        (Operator::Ge, [at]) => *at..all.len(),
        (Operator::Between, [low, high]) => *low..high + 1,
        _ => 0..0,
    };
    ValueRanges::of_values(&all, wanted).ok_or_else(|| {
        let what = format!("categories of type {} support only = and in", all.data_type());
        condition.refused(condition.at, what)
    })
}

/// Returns the first labels as text, for a message.
fn named(labels: &ArrayRef) -> Vec<String> {
    let shown = labels.slice(0, labels.len().min(MOST_NAMED));
    let shown = arrow_cast::cast(&shown, &DataType::LargeUtf8).unwrap_or(shown);
    let texts = shown.as_string_opt::<i64>().into_iter().flatten().flatten();
    let mut named: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    if labels.len() > MOST_NAMED {
        named.push("…".into());
    }
    named
}

/// Returns the positions of an array's categories; null for nulls. `None`: the array has no categories.
pub(super) fn places(array: &ArrayRef) -> Option<ArrayRef> {
    let nulls = array.logical_nulls();
    let dictionary = array.as_any_dictionary_opt()?;
    let keys = match dictionary.keys().data_type() {
        DataType::Int32 => dictionary.keys().as_primitive::<Int32Type>().unary::<_, Int64Type>(i64::from),
        DataType::Int64 => dictionary.keys().as_primitive::<Int64Type>().clone(),
        _ => return None,
    };
    Some(Arc::new(Int64Array::new(keys.values().clone(), nulls)))
}
