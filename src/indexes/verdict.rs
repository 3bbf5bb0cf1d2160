//! Verdicts of verification, and the choice of indexes to use.

use serde::{Deserialize, Serialize};

use super::occurring::Occurring;
use crate::table::{BloomScheme, IndexContent, IndexForm, Rule};

/// Version of the verdicts, to be increased when verification changes its judgement.
const VERSION: u32 = 4;

/// Which search indexes to use (HEP001 §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Indexes that verification found right.
    #[default]
    Verify,
    /// No index at all.
    Ignore,
    /// All indexes that verification did not find wrong.
    Trust,
}

/// The result of comparing an index with its column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The index matches its column.
    Verified(IndexFacts),
    /// The index contradicts its column.
    Broken {
        /// Name of the rule that it breaks.
        rule: String,
        /// The place: a chunk, a row, a value.
        place: String,
        /// The index's claim, and the column's content.
        found: String,
    },
    /// Verification was not possible: only [`Trust::Trust`] uses the index.
    Unverifiable {
        /// Why verification was not possible.
        why: String,
    },
}

/// Facts about an index that may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexFacts {
    /// Whether every value that occurs in the column has a bitmap.
    pub exhaustive: bool,
    /// The hash schemes that the Bloom filters may follow. With several, a value counts as absent only if none of them
    /// may hold it.
    pub schemes: Vec<BloomScheme>,
    /// Whether values that ascend within each run ascend as a whole.
    pub is_one_run: bool,
    /// The places where values of a bitmap occur. `None`: unknown, or the bitmap lacks a value of the column.
    pub occurring: Option<Occurring>,
}

impl Verdict {
    pub(super) fn broken(rule: &Rule, place: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Broken { rule: rule.id.to_owned(), place: place.into(), found: found.into() }
    }

    /// Whether to keep the verdict for later openings of the file. A verdict that depends on this machine's memory must
    /// not last.
    fn is_lasting(&self) -> bool {
        !matches!(self, Self::Unverifiable { .. })
    }
}

/// Returns the name of a verdict in the cache folder.
fn what(form: &IndexForm) -> String {
    let kind = form.kind.name();
    let [index, column] = form.objects;
    let values = form.values.data_type();
    format!("{} {index:?} {column:?} {} rows {kind} of {values} verdict {VERSION}", form.path, form.rows())
}

/// Returns the verdict on an index, if known.
pub fn known(form: &IndexForm) -> Option<Verdict> {
    let bytes = form.file.recall(&what(form))?;
    match postcard::take_from_bytes(&bytes) {
        Ok((verdict, [])) => Some(verdict),
        _ => None,
    }
}

/// Remembers a verdict, in the cache folder if possible.
pub(super) fn remember(form: &IndexForm, verdict: &Verdict) {
    if let Ok(bytes) = postcard::to_stdvec(verdict) {
        form.file.note(&what(form), &bytes, verdict.is_lasting());
    }
}

/// Returns the facts about an index. `None`: the index must not be used.
pub fn facts(form: &IndexForm, trust: Trust) -> Option<IndexFacts> {
    if trust == Trust::Ignore || !form.file.has_one_content() {
        return None;
    }
    match known(form) {
        Some(Verdict::Verified(facts)) => Some(facts),
        Some(Verdict::Broken { .. }) => None,
        Some(Verdict::Unverifiable { .. }) | None if trust == Trust::Verify => None,
        Some(Verdict::Unverifiable { .. }) | None => Some(match &form.kind {
            IndexContent::Bitmap { exhaustive, .. } => IndexFacts { exhaustive: *exhaustive, ..IndexFacts::default() },
            IndexContent::Bloom { schemes, .. } => IndexFacts { schemes: schemes.clone(), ..IndexFacts::default() },
            IndexContent::MinMax { .. }
            | IndexContent::SortedRows { .. }
            | IndexContent::SortedValues { .. }
            | IndexContent::Bounds { .. } => IndexFacts::default(),
        }),
    }
}
