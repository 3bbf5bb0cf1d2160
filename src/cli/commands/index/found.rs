//! The tables below a place, and what went wrong on the way to them.

use crate::cli::Error;
use crate::cli::place::Place;
use crate::cli::tables::{self, Below};
use crate::fs::tree::printable;
use crate::source::Interrupt;

/// Tables below a place, with what is said of them on standard error.
pub(super) struct Found {
    pub below: Below,
    /// A run was ended while it changed one of the files.
    pub is_unfinished: bool,
}

impl Found {
    pub fn new(place: &Place, interrupt: &Interrupt) -> Result<Self, Error> {
        let below = tables::below(place, false, interrupt)?;
        for (name, reason) in &below.failures {
            eprintln!("hepfs: {}: {}", printable(name), printable(reason));
        }
        let unfinished = place.context.unfinished();
        for finding in &unfinished {
            eprintln!("hepfs: {}", printable(&finding.found));
        }
        Ok(Self { below, is_unfinished: !unfinished.is_empty() })
    }
}
