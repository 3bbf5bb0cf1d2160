//! Performs the steps of a change: creates objects and attributes, links objects, writes elements.

use crate::h5::element::AttributeValue;
use crate::h5::steps::{References, Step, TargetObject};
use crate::h5::{self, WritingClient};
use crate::producer::Error;
use crate::source::Interrupt;

/// Sends the steps of a change to the worker.
pub(super) struct Steps<'a, 'b> {
    pub writing: &'a mut WritingClient<'b>,
    pub interrupt: &'a Interrupt,
}

impl Steps<'_, '_> {
    pub fn step(&mut self, step: Step) -> Result<(), Error> {
        self.writing.step(step, self.interrupt)?;
        Ok(())
    }

    /// Creates an object that has no link yet.
    pub fn make(&mut self, step: Step) -> Result<TargetObject, Error> {
        Ok(self.writing.make(step, self.interrupt)?)
    }

    pub fn attribute(&mut self, object: &TargetObject, name: &str, value: AttributeValue) -> Result<(), Error> {
        self.step(Step::Attribute { object: object.clone(), name: name.to_owned(), value })
    }

    /// Creates an attribute of references: a list of them, or a scalar.
    pub fn references(
        &mut self,
        object: &TargetObject,
        name: &str,
        kind: References,
        to: Vec<TargetObject>,
        is_list: bool,
    ) -> Result<(), Error> {
        self.step(Step::References { object: object.clone(), name: name.to_owned(), kind, to, is_list })
    }

    /// Links an object at a path, which is relative to `group` if that is given.
    pub fn link(&mut self, object: TargetObject, group: Option<&TargetObject>, path: Vec<u8>) -> Result<(), Error> {
        self.step(Step::Link { object, group: group.cloned(), replaces: false, path })
    }

    /// Writes the elements of a box of a dataset.
    pub fn elements(
        &mut self,
        object: &TargetObject,
        start: &[u64],
        count: &[u64],
        elements: &h5::ElementPayload,
    ) -> Result<(), Error> {
        Ok(self.writing.elements(object, [start, count], elements, self.interrupt)?)
    }
}
