//! A group in which a dialect made up tables. It is kept for as long as a directory with several of these is known: to
//! list it anew for each of very many takes minutes.

use std::sync::Arc;

use super::Opened;
use crate::catalogue::{Group, ObjectId};
use crate::dialects::{Dialect, Here, Plan};
use crate::session::Error;
use crate::source::Interrupt;
use crate::store;

/// See the module.
#[derive(Debug)]
pub struct Maker {
    /// The group.
    pub group: Group,
    /// The dialect that claims it.
    pub dialect: Option<&'static dyn Dialect>,
    /// The plan shared by its made-up tables.
    pub plan: Plan,
}

impl Opened {
    /// The group at a path, as far as tables that were made up in it are opened by it.
    ///
    /// # Errors
    /// Where it cannot be listed.
    pub fn maker(&self, id: ObjectId, path: &str, interrupt: &Interrupt) -> Result<Arc<Maker>, Error> {
        if let Some(known) = self.makers.lock().get(path) {
            return Ok(known);
        }
        let file = self.file()?;
        let group = file.group(id, interrupt);
        let group = group.map_err(|error| store::Error::Hdf5 { path: path.to_owned(), error })?;
        let dialect = self.claims(&Here { path, group: &group, file, interrupt }).dialect;
        interrupt.check()?;
        let maker = Arc::new(Maker { group, dialect, plan: Plan::default() });
        self.makers.lock().insert(path.to_owned(), &maker);
        Ok(maker)
    }
}
