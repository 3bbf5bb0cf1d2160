//! Tells the verdict on a predicate from all that is known about its columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_buffer::BooleanBuffer;

use crate::query::bind::{BoundCondition, BoundPredicate, ConditionTree};
use crate::query::known::{Ask, Known, RowsVerdict};
use crate::query::ranges::ValueTest;
use crate::source::Interrupt;
use crate::store::Rows;
use crate::store::statistics::{Scalar, Statistics};

/// Facts about the columns of a predicate at one moment.
pub(in crate::query) struct Pruner {
    by_column: Vec<Option<Arc<Statistics>>>,
    rows: Vec<Arc<dyn Rows>>,
    interrupt: Interrupt,
}

impl Pruner {
    pub fn new(bound: &BoundPredicate, interrupt: &Interrupt) -> Self {
        let by_column = bound.columns.iter().map(|source| {
            let learner = source.learner.as_ref()?;
            learner.ask(source.rows.as_ref(), interrupt).ok()?;
            learner.known()
        });
        let rows = bound.columns.iter().map(|source| source.rows.clone());
        Self { by_column: by_column.collect(), rows: rows.collect(), interrupt: interrupt.clone() }
    }

    /// Returns the sources of answers to a condition, the cheapest first.
    fn known<'a>(&'a self, leaf: &'a BoundCondition) -> impl Iterator<Item = &'a dyn Known> {
        let statistics = self.by_column.get(leaf.column).and_then(Option::as_deref);
        let answers = leaf.answers.iter().map(|answer| answer as &dyn Known);
        statistics.map(|statistics| statistics as &dyn Known).into_iter().chain(answers)
    }

    /// Returns which of `rows` satisfy a condition: one bit per row. `None`: no answer without decoding the values.
    pub fn bits(&self, leaf: &BoundCondition, rows: &Range<u64>) -> Option<BooleanBuffer> {
        let ask = Ask { test: &leaf.test, rows, interrupt: &self.interrupt };
        self.known(leaf).find_map(|known| known.bits(&ask))
    }

    /// Returns how many rows in each of the first blocks satisfy a predicate, if a source knows it without finding the
    /// rows.
    pub fn counts(&self, tree: &ConditionTree, rows: &Range<u64>) -> Vec<u32> {
        let leaf = match tree {
            ConditionTree::Leaf(leaf) => leaf,
            ConditionTree::All(parts) | ConditionTree::Any(parts) => match &parts[..] {
                [only] => return self.counts(only, rows),
                _ => return Vec::new(),
            },
        };
        let ask = Ask { test: &leaf.test, rows, interrupt: &self.interrupt };
        self.known(leaf).map(|known| known.counts(&ask)).find(|counts| !counts.is_empty()).unwrap_or_default()
    }

    /// Returns the verdict on a part of the predicate for a range of rows.
    pub fn verdict(&self, tree: &ConditionTree, rows: &Range<u64>) -> RowsVerdict {
        match tree {
            ConditionTree::Leaf(leaf) => self.of_leaf(leaf, rows),
            ConditionTree::All(parts) => self.joined(parts, rows, RowsVerdict::Nothing, RowsVerdict::Everything),
            ConditionTree::Any(parts) => self.joined(parts, rows, RowsVerdict::Everything, RowsVerdict::Nothing),
        }
    }

    /// Returns `strong` if any part has that verdict, `weak` if all parts have that one, else `Unknown`.
    fn joined(
        &self,
        parts: &[ConditionTree],
        rows: &Range<u64>,
        strong: RowsVerdict,
        weak: RowsVerdict,
    ) -> RowsVerdict {
        let mut verdict = weak;
        for part in parts {
            match self.verdict(part, rows) {
                said if said == strong => return strong,
                said if said == weak => {}
                _ => verdict = RowsVerdict::Unknown,
            }
        }
        verdict
    }

    fn of_leaf(&self, leaf: &BoundCondition, rows: &Range<u64>) -> RowsVerdict {
        let ask = Ask { test: &leaf.test, rows, interrupt: &self.interrupt };
        let said = self.known(leaf).map(|known| known.verdict(&ask)).find(|said| *said != RowsVerdict::Unknown);
        said.or_else(|| self.of_codes(leaf, rows)).unwrap_or(RowsVerdict::Unknown)
    }

    /// Returns the verdict on a condition on labels, by the least and the greatest code of the rows, if known.
    fn of_codes(&self, leaf: &BoundCondition, rows: &Range<u64>) -> Option<RowsVerdict> {
        let ValueTest::Compare { ranges, negated: false } = &leaf.test else { return None };
        let values = self.rows.get(leaf.column)?;
        let known = values.known()?.summary_of_codes(rows.clone(), &self.interrupt).ok()??;
        let (Some(Scalar::Int(least)), Some(Scalar::Int(greatest))) = (known.min, known.max) else { return None };
        let (least, greatest) = (usize::try_from(least).ok()?, usize::try_from(greatest).ok()?);
        let none = values.array(rows.start..rows.start, &self.interrupt).ok()?;
        let matching = leaf.matching(ranges, none.as_any_dictionary_opt()?.values())?;
        let end = matching.len().min(greatest.saturating_add(1));
        let count = matching.slice(least.min(end), end.saturating_sub(least)).count_set_bits();
        // A code without a label is null, and satisfies no condition.
        let has_all = known.nulls == 0 && count as u64 == (greatest as u64 + 1).saturating_sub(least as u64);
        Some(match count {
            0 => RowsVerdict::Nothing,
            _ if has_all => RowsVerdict::Everything,
            _ => RowsVerdict::Unknown,
        })
    }
}
