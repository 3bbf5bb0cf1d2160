//! A group in which a dialect made up tables. It is kept while a directory with many of these is in use: listing it
//! anew for each table would take minutes.

use std::sync::Arc;

use super::OpenedSource;
use crate::catalogue::{Group, ObjectId};
use crate::dialects::{Dialect, Here, MadePlan};
use crate::session::Error;
use crate::source::Interrupt;
use crate::store;

/// A group in which a dialect made up tables, with all that opening one of them needs.
#[derive(Debug)]
pub struct Maker {
    /// The group.
    pub group: Group,
    /// The dialect that claims it.
    pub dialect: Option<&'static dyn Dialect>,
    /// The plan that its made-up tables share.
    pub plan: MadePlan,
}

impl OpenedSource {
    /// The group at a path, for opening tables that a dialect made up in it.
    ///
    /// # Errors
    /// If the group cannot be listed.
    pub fn maker(&self, id: ObjectId, path: &str, interrupt: &Interrupt) -> Result<Arc<Maker>, Error> {
        if let Some(known) = self.makers.lock().get(path) {
            return Ok(known);
        }
        let file = self.file()?;
        let group = file.group(id, interrupt);
        let group = group.map_err(|error| store::Error::Hdf5 { path: path.to_owned(), error })?;
        let dialect = self.claims(&Here { path, group: &group, file, interrupt }).dialect;
        interrupt.check()?;
        let maker = Arc::new(Maker { group, dialect, plan: MadePlan::default() });
        self.makers.lock().insert(path.to_owned(), &maker);
        Ok(maker)
    }
}
