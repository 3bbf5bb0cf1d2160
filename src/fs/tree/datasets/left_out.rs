//! `TABLE.left_out.txt`: which files a dataset leaves out, and why, a line each.

use std::sync::Arc;
use std::time::SystemTime;

use super::survey::{Dataset, Outcome};
use crate::fs::Error;
use crate::fs::node::{Attributes, Kind, LeftOut, Node};
use crate::fs::tree::{plain_attributes, printable};
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{Effort, Size};

/// The file, for as long as these are left out.
pub(super) struct LeftOutNode {
    dataset: Arc<Dataset>,
    left_out: Arc<[LeftOut]>,
    since: SystemTime,
    text: String,
}

impl LeftOutNode {
    pub fn new(dataset: Arc<Dataset>, outcome: &Outcome) -> Self {
        let left_out = outcome.left_out.clone();
        let text = left_out.iter().map(|one| format!("{}\n", printable(&one.to_string()))).collect();
        Self { dataset, left_out, since: outcome.left_out_since, text }
    }
}

impl Node for LeftOutNode {
    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::File, self.since)
    }

    fn is_current(&self) -> bool {
        self.dataset.leaves_out(&self.left_out)
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.text.len() as u64))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        answer.append(self.text.as_bytes(), offset, length);
        Ok(())
    }
}
