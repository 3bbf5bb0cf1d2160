//! Verdicts of verification, and when an index is used.

use serde::{Deserialize, Serialize};

use super::occurring::Occurring;
use crate::table::{BloomScheme, IndexForm, IndexKind, Rule};

/// Rises when verification judges an index differently.
const VERSION: u32 = 4;

/// Which search indexes are believed (HEP001 §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that were held against their column and found right.
    #[default]
    Verify,
    /// None.
    Ignore,
    /// All that are not known to be wrong.
    Trust,
}

/// The result of comparing an index with its column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is right.
    Verified(Facts),
    /// It is wrong.
    Broken {
        /// Name of the rule that it breaks.
        rule: String,
        /// Where: a chunk, a row, a value.
        place: String,
        /// Its content there, and the column's.
        found: String,
    },
    /// It could not be found out; the index is not used.
    Unverifiable {
        /// Why not.
        why: String,
    },
}

/// Facts of an index that is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Whether every value that occurs in the column has a bitmap.
    pub exhaustive: bool,
    /// The schemes that filters may follow. With several, a value counts as absent only if none of them may hold it.
    pub schemes: Vec<BloomScheme>,
    /// Whether values that are in order within runs are so as a whole.
    pub is_one_run: bool,
    /// Where the values of a bitmap occur; none where it lacks a value of the column.
    pub occurring: Option<Occurring>,
}

impl Verdict {
    pub(super) fn broken(rule: &Rule, place: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Broken { rule: rule.id.to_owned(), place: place.into(), found: found.into() }
    }

    /// Whether to keep it for later openings of the file: it must not depend on this machine's memory.
    fn is_lasting(&self) -> bool {
        !matches!(self, Self::Unverifiable { .. })
    }
}

/// Name of the verdict in the cache folder.
fn what(form: &IndexForm) -> String {
    let kind = form.kind.name();
    let [index, column] = form.objects;
    let values = form.values.data_type();
    format!("{} {index:?} {column:?} {} rows {kind} of {values} verdict {VERSION}", form.path, form.rows())
}

/// The verdict on an index, if there is one.
pub fn known(form: &IndexForm) -> Option<Verdict> {
    let bytes = form.file.recall(&what(form))?;
    match postcard::take_from_bytes(&bytes) {
        Ok((verdict, [])) => Some(verdict),
        _ => None,
    }
}

/// Remembers a verdict, in the cache folder where that can be.
pub(super) fn remember(form: &IndexForm, verdict: &Verdict) {
    if let Ok(bytes) = postcard::to_stdvec(verdict) {
        form.file.note(&what(form), &bytes, verdict.is_lasting());
    }
}

/// The facts of an index that is believed; `None`: it is not.
pub fn facts(form: &IndexForm, trust: Trust) -> Option<Facts> {
    if trust == Trust::Ignore || !form.file.has_one_content() {
        return None;
    }
    match known(form) {
        Some(Verdict::Verified(facts)) => Some(facts),
        Some(Verdict::Broken { .. }) => None,
        Some(Verdict::Unverifiable { .. }) | None if trust == Trust::Verify => None,
        Some(Verdict::Unverifiable { .. }) | None => Some(match &form.kind {
            IndexKind::Bitmap { exhaustive, .. } => Facts { exhaustive: *exhaustive, ..Facts::default() },
            IndexKind::Bloom { schemes, .. } => Facts { schemes: schemes.clone(), ..Facts::default() },
            IndexKind::MinMax { .. }
            | IndexKind::SortedRows { .. }
            | IndexKind::SortedValues { .. }
            | IndexKind::Bounds { .. } => Facts::default(),
        }),
    }
}
