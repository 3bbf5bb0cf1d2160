//! What is known of a stretch of rows without decoding it.
//!
//! Own statistics tell it, and search indexes of the file that are believed ([`super::answer`]).

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;

use super::bind::{Bound, Leaf, Source, Test, Tree};
use super::ranges::Lie;
use crate::source::Interrupt;
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

/// What is asked of some rows.
pub(super) struct Ask<'a> {
    pub leaf: &'a Leaf,
    pub rows: &'a Range<u64>,
    pub interrupt: &'a Interrupt,
}

/// What knows something of a column's rows without decoding them; it is believed. What fails knows nothing.
pub(super) trait Known: Send + Sync {
    /// Whether the rows satisfy the condition.
    fn verdict(&self, ask: &Ask<'_>) -> Verdict;

    /// Which of them satisfy it.
    fn bits(&self, ask: &Ask<'_>) -> Option<BooleanBuffer> {
        let _ = ask;
        None
    }

    /// How many rows satisfy it of each block from the first row on, of as many blocks as are told together, the last of which may
    /// be cut short by the last row. None where that takes knowing which.
    fn counts(&self, ask: &Ask<'_>) -> Vec<u32> {
        let _ = ask;
        Vec::new()
    }
}

impl Known for Statistics {
    fn verdict(&self, ask: &Ask<'_>) -> Verdict {
        self.over(ask.rows.clone()).map_or(Verdict::Unknown, |summary| of_summary(&ask.leaf.test, &summary))
    }
}

/// What is known of the columns of a predicate, as of one moment.
pub(super) struct Pruner {
    by_column: Vec<Option<Arc<Statistics>>>,
    interrupt: Interrupt,
}

impl Pruner {
    pub fn new(bound: &Bound, interrupt: &Interrupt) -> Self {
        let of_column = |source: &Source| source.learner.as_ref().and_then(|learner| learner.known());
        Self { by_column: bound.columns.iter().map(of_column).collect(), interrupt: interrupt.clone() }
    }

    /// What knows of a condition, what costs least first.
    fn known<'a>(&'a self, leaf: &'a Leaf) -> impl Iterator<Item = &'a dyn Known> {
        let statistics = self.by_column.get(leaf.column).and_then(Option::as_deref);
        let answers = leaf.answers.iter().map(|answer| answer as &dyn Known);
        statistics.map(|statistics| statistics as &dyn Known).into_iter().chain(answers)
    }

    /// Which rows satisfy a condition, where that is known.
    pub fn bits(&self, leaf: &Leaf, rows: &Range<u64>) -> Option<BooleanBuffer> {
        let ask = Ask { leaf, rows, interrupt: &self.interrupt };
        self.known(leaf).find_map(|known| known.bits(&ask))
    }

    /// How many rows of each of the first blocks satisfy a predicate, where that is known without knowing which.
    pub fn counts(&self, tree: &Tree, rows: &Range<u64>) -> Vec<u32> {
        let leaf = match tree {
            Tree::Leaf(leaf) => leaf,
            Tree::All(parts) | Tree::Any(parts) => match &parts[..] {
                [only] => return self.counts(only, rows),
                _ => return Vec::new(),
            },
        };
        let ask = Ask { leaf, rows, interrupt: &self.interrupt };
        self.known(leaf).map(|known| known.counts(&ask)).find(|counts| !counts.is_empty()).unwrap_or_default()
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
        let ask = Ask { leaf, rows, interrupt: &self.interrupt };
        let said = self.known(leaf).map(|known| known.verdict(&ask)).find(|said| *said != Verdict::Unknown);
        said.unwrap_or(Verdict::Unknown)
    }
}

/// Least and greatest values say where all values lie; NaN lies in no range, and a missing value satisfies no comparison.
pub(super) fn of_summary(test: &Test, summary: &Summary) -> Verdict {
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
