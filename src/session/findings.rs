//! Gathers findings on one source.

use std::collections::HashSet;

use crate::store::TallyCount;
use crate::table::{self, Finding, Severity, UNREADABLE};

/// Findings on one source in the order of their reports: rules that it breaks, each place once, and parts of it that
/// could not be read or checked.
#[derive(Debug, Default)]
pub struct Findings {
    broken: Vec<Finding>,
    failures: Vec<Finding>,
    known: HashSet<(String, &'static str, String)>,
}

impl Findings {
    /// Broken rules.
    pub fn broken(&self) -> &[Finding] {
        &self.broken
    }

    /// Parts that could not be read or checked.
    pub fn failures(&self) -> &[Finding] {
        &self.failures
    }

    /// Paths of objects that break a rule of this severity or a higher one.
    pub fn paths(&self, least: Severity) -> HashSet<String> {
        let broken = self.broken.iter().filter(|finding| finding.rule.severity >= least);
        broken.map(|finding| finding.path.clone()).collect()
    }

    /// Reports that an object, or these rows of it, cannot be read or checked.
    pub fn fail(&mut self, path: &str, reason: &str, rows: Option<TallyCount>) {
        let reason = reason.strip_prefix(path).and_then(|reason| reason.strip_prefix(": ")).unwrap_or(reason);
        self.failures.push(Finding { rows, ..Finding::new(path, table::unreadable(reason), reason) });
    }
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        for finding in findings {
            if finding.rule.id == UNREADABLE.id {
                self.fail(&finding.path, &finding.found, None);
            } else if self.known.insert((finding.path.clone(), finding.rule.id, finding.found.clone())) {
                self.broken.push(finding);
            }
        }
    }
}
