//! The nodes of the files in `.hepfs`: the state and the activity of a mount.

use std::time::SystemTime;

use super::{Attributes, EntryKind, Error, Interrupt, Node, plain_attributes};
use crate::session::LiveFile;
use crate::store::Answer;

impl Node for LiveFile {
    fn attributes(&self) -> Attributes {
        plain_attributes(EntryKind::LiveFile, SystemTime::now())
    }

    fn is_current(&self) -> bool {
        true
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        answer.append(self.text().as_bytes(), offset, length);
        Ok(())
    }
}
