//! The page of a table.

use std::sync::Arc;

use super::{Look, PagePlace};
use crate::table::Table;

/// The page of a table. Its size follows from the schema alone: what is made of values has a bound, and the rest is
/// padded.
#[derive(Debug)]
pub struct TablePage {
    _table: Arc<Table>,
    _place: PagePlace,
}

impl TablePage {
    /// The page of a table at a place.
    pub fn new(table: Arc<Table>, place: PagePlace) -> Self {
        Self { _table: table, _place: place }
    }

    /// The size in bytes, before any value is read.
    pub fn size(&self) -> u64 {
        0
    }

    /// The page, exactly as long as [`TablePage::size`] says. `stored`: bytes in the file, if known.
    pub fn render(&self, look: &Look, stored: Option<u64>) -> Vec<u8> {
        let _ = (look, stored);
        Vec::new()
    }
}
