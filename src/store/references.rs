//! References as text, which only the worker can tell.

use super::{Dataset, Error};
use crate::source::Interrupt;

impl Dataset {
    /// Elements `start..start + count` of a rank-1 dataset of references: the paths that they lead to, with the selection
    /// of a region; `None` for a null or dangling one.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn references(&self, start: u64, count: u64, interrupt: &Interrupt) -> Result<Vec<Option<String>>, Error> {
        let answer = self.file().client().references(self.description().id, start, count, interrupt);
        let paths = answer.map_err(|error| Error::Hdf5 { path: self.path().to_owned(), error })?;
        if paths.len() as u64 != count {
            let reason = format!("{} references came for {count}", paths.len());
            return Err(Error::Unsupported { path: self.path().to_owned(), reason });
        }
        Ok(paths)
    }
}
