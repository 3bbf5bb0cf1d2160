//! What is known of a stretch of rows without decoding it.
//!
//! Own statistics tell it today; a verified search index of the file is another [`Known`].

use std::ops::Range;
use std::sync::Arc;

use super::bind::{Bound, Leaf, Source, Test, Tree};
use super::ranges::Lie;
use crate::store::statistics::{Statistics, Summary};

/// What is known of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// None of them matches.
    Nothing,
    /// All of them match.
    Everything,
    /// They must be looked at.
    Unknown,
}

/// What knows something of a column's rows without decoding them; it is believed.
pub(super) trait Known: Send + Sync {
    /// Whether the rows satisfy the condition.
    fn verdict(&self, test: &Test, rows: &Range<u64>) -> Verdict;
}

impl Known for Statistics {
    fn verdict(&self, test: &Test, rows: &Range<u64>) -> Verdict {
        self.over(rows.clone()).map_or(Verdict::Unknown, |summary| of_summary(test, &summary))
    }
}

/// What is known of the columns of a predicate, as of one moment.
pub(super) struct Pruner(Vec<Vec<Arc<dyn Known>>>);

impl Pruner {
    pub fn new(bound: &Bound) -> Self {
        let of_column = |source: &Source| {
            let statistics = source.learner.as_ref().and_then(|learner| learner.known());
            statistics.map(|statistics| statistics as Arc<dyn Known>).into_iter().collect()
        };
        Self(bound.columns.iter().map(of_column).collect())
    }

    /// Whether the rows satisfy a part of the predicate.
    pub fn verdict(&self, tree: &Tree, rows: &Range<u64>) -> Verdict {
        match tree {
            Tree::Leaf(leaf) => self.of_leaf(leaf, rows),
            Tree::All(parts) => self.joined(parts, rows, Verdict::Nothing, Verdict::Everything),
            Tree::Any(parts) => self.joined(parts, rows, Verdict::Everything, Verdict::Nothing),
        }
    }

    /// `strong` as soon as one part says so; `weak` where all do.
    fn joined(&self, parts: &[Tree], rows: &Range<u64>, strong: Verdict, weak: Verdict) -> Verdict {
        let mut verdict = weak;
        for part in parts {
            match self.verdict(part, rows) {
                said if said == strong => return strong,
                said if said == weak => {}
                _ => verdict = Verdict::Unknown,
            }
        }
        verdict
    }

    fn of_leaf(&self, leaf: &Leaf, rows: &Range<u64>) -> Verdict {
        let known = self.0.get(leaf.column).into_iter().flatten();
        known
            .map(|known| known.verdict(&leaf.test, rows))
            .find(|said| *said != Verdict::Unknown)
            .unwrap_or(Verdict::Unknown)
    }
}

/// Least and greatest values say where all values lie; NaN lies in no range, and a missing value satisfies no comparison.
fn of_summary(test: &Test, summary: &Summary) -> Verdict {
    let all_missing = summary.nulls == summary.rows;
    let none_missing = summary.nulls == 0;
    let (nothing, everything) = match test {
        Test::Null => (none_missing, all_missing),
        Test::Valid => (all_missing, none_missing),
        Test::Compare { ranges, negated } => {
            let lie = match (&summary.min, &summary.max) {
                _ if summary.values() == 0 => None,
                (Some(least), Some(greatest)) => Some(ranges.lie(least, greatest)),
                _ => Some(Lie::Unknown),
            };
            let within = lie.is_none_or(|lie| lie == Lie::Inside) && summary.nans == 0;
            let outside = lie.is_none_or(|lie| lie == Lie::Outside);
            let (never, always) = if *negated { (within, outside) } else { (outside, within) };
            (never || all_missing, always && none_missing)
        }
    };
    match (nothing, everything) {
        (true, _) => Verdict::Nothing,
        (false, true) => Verdict::Everything,
        (false, false) => Verdict::Unknown,
    }
}
