//! The node of `TABLE.left_out.txt`: one line for each file that a dataset leaves out, with the reason.

use super::{Attributes, Effort, EntryKind, Error, Interrupt, Node, Size, plain_attributes};
use crate::session::datasets::LeftOutText;
use crate::store::Answer;

impl Node for LeftOutText {
    fn attributes(&self) -> Attributes {
        plain_attributes(EntryKind::File, self.since)
    }

    fn is_current(&self) -> bool {
        LeftOutText::is_current(self)
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.text.len() as u64))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        answer.append(self.text.as_bytes(), offset, length);
        Ok(())
    }
}
