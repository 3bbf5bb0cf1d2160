//! The tables below a place, and what went wrong on the way to them.

use crate::cli::Error;
use crate::cli::place::Place;
use crate::cli::tables::{self, InFile, about};
use crate::source::Interrupt;
use crate::views::printable;

/// Tables below a place, with what is said of them on standard error.
pub(super) struct Found {
    pub files: Vec<InFile>,
    /// A directory could not be listed.
    pub failed: bool,
    /// A run was ended while it changed one of the files.
    pub is_unfinished: bool,
}

impl Found {
    pub fn new(place: &Place, interrupt: &Interrupt) -> Result<Self, Error> {
        let files = tables::find(place, false, interrupt)?;
        for file in &files {
            for (path, reason) in &file.failures {
                say!("hepfs: {}{}", file.prefix, about(path, reason));
            }
        }
        let unfinished = place.session.unfinished();
        for finding in &unfinished {
            say!("hepfs: {}", printable(&finding.found));
        }
        let failed = files.iter().any(|file| !file.failures.is_empty());
        Ok(Self { files, failed, is_unfinished: !unfinished.is_empty() })
    }
}
