//! A file: a view with the attributes of the object behind it.

use std::sync::Arc;

use bstr::BString;

use super::{Attributes, Effort, Error, Interrupt, Kind, Node, Opened, Size};
use crate::catalogue::Attribute;
use crate::store::Span;
use crate::store::pass::Progress;
use crate::views::metadata::attribute_text;
use crate::views::{Access, View};

pub(super) struct FileNode {
    pub opened: Arc<Opened>,
    pub view: Arc<dyn View>,
    pub xattrs: Arc<Xattrs>,
}

/// Where the extended attributes of a node come from.
pub(super) struct Xattrs {
    /// True link name.
    pub name: BString,
    /// Attributes of the object.
    pub attributes: Arc<[Attribute]>,
}

impl Xattrs {
    /// `user.hepfs.name`, then `user.ATTRIBUTE` for each attribute that has a text.
    pub fn list(&self) -> Vec<(BString, Vec<u8>)> {
        let mut list = vec![("user.hepfs.name".into(), self.name.to_vec())];
        for attribute in self.attributes.iter() {
            let mut name = BString::from("user.");
            name.extend_from_slice(&attribute.name);
            let Some(value) = attribute_text(attribute) else { continue };
            if name != "user.hepfs.name" {
                list.push((name, value));
            }
        }
        list
    }
}

impl FileNode {
    fn log(&self, error: crate::store::Error) -> Error {
        let error = Error::from(error);
        self.opened.log(&error);
        error
    }
}

impl Node for FileNode {
    fn attributes(&self) -> Attributes {
        self.opened.attributes(Kind::File)
    }

    fn is_current(&self) -> bool {
        self.opened.is_current() && self.view.is_current()
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        self.view.size(effort, interrupt).map_err(|error| self.log(error))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.view.read(offset, length, out, interrupt).map_err(|error| self.log(error))
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.view.span(offset, length, interrupt).map_err(|error| self.log(error))
    }

    fn prepare(&self, interrupt: &Interrupt) -> Result<Size, Error> {
        self.view.prepare(interrupt).map_err(|error| self.log(error))
    }

    fn progress(&self) -> Option<Progress> {
        self.view.progress()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.opened.file().why_not_kept()
    }

    fn access(&self) -> Access {
        self.view.access()
    }

    fn xattrs(&self, _: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        Ok(self.xattrs.list())
    }
}
