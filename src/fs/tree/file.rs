//! The node of a file: a view with the attributes of the object behind it.

use std::sync::Arc;

use bstr::{BStr, BString};

use super::{Attributes, Effort, EntryKind, Error, Interrupt, Node, NodeRef, OpenedSource, Size, Xattrs};
use crate::catalogue::Attribute;
use crate::session::{ObjectAttributes, ShownFile};
use crate::store::Answer;
use crate::views::AccessPattern;
use crate::views::metadata::attribute_text;

/// The extended attribute with the true link name.
const NAME: &str = "user.hepfs.name";

/// `user.hepfs.name`, then `user.ATTRIBUTE` for each attribute of the object.
struct ShownXattrs {
    name: BString,
    attributes: Arc<[Attribute]>,
}

impl Xattrs for ShownXattrs {
    fn names(&self) -> Vec<BString> {
        // The last attribute may have no name: it then says that some are left out.
        let named = self.attributes.iter().filter(|attribute| !attribute.name.is_empty());
        let names = named.map(|attribute| BString::from([b"user.", attribute.name.as_slice()].concat()));
        std::iter::once(NAME.into()).chain(names.filter(|name| name != NAME)).collect()
    }

    fn value(&self, name: &BStr) -> Option<Vec<u8>> {
        if name == NAME {
            return Some(self.name.to_vec());
        }
        let name = name.strip_prefix(b"user.")?;
        attribute_text(self.attributes.iter().find(|attribute| attribute.name == name)?)
    }
}

/// The attributes of an object as extended attributes.
pub(super) fn shown_xattrs(of: &ObjectAttributes, opened: &OpenedSource, interrupt: &Interrupt) -> Box<dyn Xattrs> {
    Box::new(ShownXattrs { name: of.name.clone(), attributes: of.all(opened, interrupt) })
}

impl Node for ShownFile {
    fn attributes(&self) -> Attributes {
        self.opened.attributes(EntryKind::File)
    }

    fn is_current(&self) -> bool {
        ShownFile::is_current(self)
    }

    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        Ok(self.view.opened().map(|view| Arc::new(self.with_view(view)) as NodeRef))
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        Ok(ShownFile::size(self, effort, interrupt)?)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.view.gather(offset, length, answer, interrupt).map_err(|error| self.failed(error).into())
    }

    fn access(&self) -> AccessPattern {
        self.view.access()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        Ok(shown_xattrs(&self.attributes, &self.opened, interrupt))
    }
}
