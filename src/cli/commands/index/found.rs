//! Finds the tables below a place, and reports failures on the way.

use crate::cli::Error;
use crate::cli::place::Place;
use crate::cli::progress::Watched;
use crate::cli::tables::{self, InFile};
use crate::views::printable;

/// Tables below a place; failures are printed to standard error.
pub(super) struct FoundTables {
    pub files: Vec<InFile>,
    /// Whether a directory could not be listed.
    pub failed: bool,
    /// Whether a run ended in the middle of a change of one of the files.
    pub is_unfinished: bool,
}

impl FoundTables {
    pub fn new(place: &Place, watched: &Watched) -> Result<Self, Error> {
        let files = tables::find(place, false, watched)?;
        let failed = tables::report_failures(&files);
        let unfinished = place.session.unfinished();
        for finding in &unfinished {
            say!("hepfs: {}", printable(&finding.found));
        }
        Ok(Self { files, failed, is_unfinished: !unfinished.is_empty() })
    }
}
