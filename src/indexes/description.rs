//! Descriptions of search indexes: `.hepfs/indexes`, `hepfs index list`, `hepfs check`.

use std::path::Path;

use serde::Serialize;

use super::verdict::{self, Verdict};
use crate::table::{AbsenceReason, Rule, SearchIndex};

/// A search index, and what is known of it so far.
#[derive(Clone, Debug, Serialize)]
pub struct IndexDescription {
    /// Path of the HDF5 file.
    pub source: String,
    /// HDF5 path of the table.
    pub table: String,
    /// HDF5 path of the index's object.
    pub path: String,
    /// Kind of the index, as the file states it.
    pub kind: Option<String>,
    /// Names of the columns that the index covers.
    pub columns: Vec<String>,
    /// Revision of the convention that the index follows.
    pub revision: &'static str,
    /// Generation of the table for which the index was built, as stated.
    pub source_generation: Option<u64>,
    /// Number of rows that the table had when the index was built, as stated.
    pub source_rows: Option<u64>,
    /// Bytes of the index's elements before filters.
    pub bytes: u64,
    /// State of the index, which decides whether it is used.
    pub verdict: State,
    /// Whether this state is a fault of the file.
    #[serde(skip)]
    pub is_fault: bool,
    /// The rule that the index breaks.
    #[serde(skip)]
    pub broken: Option<&'static Rule>,
    /// Text of that rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The place that breaks the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The state found, or the reason why the index could not be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// The state of a search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The index matches its column.
    Verified,
    /// The index contradicts its column.
    Broken,
    /// The index describes another state of the table.
    Stale,
    /// The index's metadata breaks a rule, or its kind is unknown.
    Absent,
    /// hepfs has no use for indexes of this kind.
    Unused,
    /// The index could not be verified.
    Unverifiable,
    /// The index has not been verified yet.
    Unknown,
}

impl State {
    /// Returns the state as reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Broken => "broken",
            Self::Stale => "stale",
            Self::Absent => "absent",
            Self::Unused => "unused",
            Self::Unverifiable => "unverifiable",
            Self::Unknown => "unknown",
        }
    }
}

/// Describes an index from what is known of it so far, without reading it.
pub fn describe(source: &Path, table: &str, index: &SearchIndex) -> IndexDescription {
    let verdict = index.form.as_ref().map(|form| verdict::known(form)).map_err(Clone::clone);
    let is_fault = match &verdict {
        Err(absent) => matches!(absent.reason, AbsenceReason::Broken | AbsenceReason::Stale),
        Ok(verdict) => matches!(verdict, Some(Verdict::Broken { .. })),
    };
    let (state, rule, place, found) = match verdict {
        Err(absent) => {
            let state = match absent.reason {
                AbsenceReason::Broken => State::Absent,
                AbsenceReason::Stale | AbsenceReason::Outdated => State::Stale,
                AbsenceReason::Unused => State::Unused,
            };
            (state, Some(absent.rule), None, Some(absent.found))
        }
        Ok(None) => (State::Unknown, None, None, None),
        Ok(Some(Verdict::Verified(_))) => (State::Verified, None, None, None),
        Ok(Some(Verdict::Broken { rule, place, found })) => {
            let rule = index.form.as_ref().ok().and_then(|form| form.kind.rule(&rule));
            (State::Broken, rule, Some(place), Some(found))
        }
        Ok(Some(Verdict::Unverifiable { why })) => (State::Unverifiable, None, None, Some(why)),
    };
    IndexDescription {
        source: source.display().to_string(),
        table: table.to_owned(),
        path: index.path.clone(),
        kind: index.kind.clone(),
        columns: index.columns.iter().map(ToString::to_string).collect(),
        revision: index.revision,
        source_generation: index.source_generation,
        source_rows: index.source_rows,
        bytes: index.bytes,
        verdict: state,
        is_fault,
        broken: rule,
        rule: rule.map(|rule| rule.text),
        place,
        found,
    }
}
