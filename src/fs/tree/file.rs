//! A file: a view with the attributes of the object behind it.

use std::sync::{Arc, OnceLock};

use bstr::{BStr, BString};

use super::listing::Array;
use super::{Attributes, Effort, Error, Interrupt, Kind, Node, NodeRef, Opened, Size, Xattrs};
use crate::catalogue::{Attribute, ObjectId};
use crate::store::Answer;
use crate::store::pass::Progress;
use crate::table::Single;
use crate::views::metadata::attribute_text;
use crate::views::{Access, Standing, UNKNOWN_SIZE, View};

pub(super) struct FileNode {
    opened: Arc<Opened>,
    pub view: Arc<dyn View>,
    xattrs: ObjectXattrs,
    /// What it shares with the other files of its dataset.
    _shared: Option<(Arc<Array>, Arc<Single>)>,
}

/// Where the extended attributes of a node come from.
#[derive(Clone)]
pub(super) struct ObjectXattrs {
    /// True link name.
    pub name: BString,
    /// Attributes of the object.
    attributes: Arc<[Attribute]>,
    /// The object, where these are those that the listing of its group has: of very many some are left out there.
    member: Option<ObjectId>,
    /// All of them, once they were asked for.
    all: OnceLock<Arc<[Attribute]>>,
}

impl ObjectXattrs {
    /// Those of an object that was asked for by itself.
    pub fn new(name: BString, attributes: Arc<[Attribute]>) -> Self {
        Self { name, attributes, member: None, all: OnceLock::new() }
    }

    /// Those of a member of a group.
    pub fn of_member(name: BString, attributes: Arc<[Attribute]>, id: ObjectId) -> Self {
        Self { member: Some(id), ..Self::new(name, attributes) }
    }

    /// Finds those that are shown.
    pub fn shown(&self, opened: &Opened, interrupt: &Interrupt) -> Box<dyn Xattrs> {
        let is_cut = self.attributes.last().is_some_and(|last| last.name.is_empty());
        if let Some(id) = self.member.filter(|_| is_cut && self.all.get().is_none()) {
            // What the listing has is better than nothing.
            let object = opened.file().ok().and_then(|file| file.object(id, interrupt).ok());
            if let Some(all) = object.filter(|object| object.attributes().len() >= self.attributes.len()) {
                self.all.set(all.attributes().into()).ok();
            }
        }
        let attributes = self.all.get().unwrap_or(&self.attributes).clone();
        Box::new(ShownXattrs { name: self.name.clone(), attributes })
    }
}

/// The extended attribute that has the true link name.
const NAME: &str = "user.hepfs.name";

/// `user.hepfs.name`, then `user.ATTRIBUTE` for each attribute of the object.
struct ShownXattrs {
    name: BString,
    attributes: Arc<[Attribute]>,
}

impl Xattrs for ShownXattrs {
    fn names(&self) -> Vec<BString> {
        // The last one may be without a name, and says that more are left out.
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

/// A view that is made when more is asked for than a listing tells: those of a table with very many columns take
/// memory for each.
pub(super) struct Later {
    make: Box<dyn Fn() -> Arc<dyn View> + Send + Sync>,
    made: OnceLock<Arc<dyn View>>,
}

impl Later {
    pub fn new(make: impl Fn() -> Arc<dyn View> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), made: OnceLock::new() }
    }

    fn made(&self) -> &dyn View {
        self.made.get_or_init(|| (self.make)()).as_ref()
    }
}

impl View for Later {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, crate::store::Error> {
        if effort == Effort::Known && self.made.get().is_none() {
            return Ok(Size::AtMost(UNKNOWN_SIZE));
        }
        self.made().size(effort, interrupt)
    }

    fn gather(
        &self,
        offset: u64,
        length: usize,
        answer: &mut Answer,
        interrupt: &Interrupt,
    ) -> Result<(), crate::store::Error> {
        self.made().gather(offset, length, answer, interrupt)
    }

    fn access(&self) -> Access {
        self.made().access()
    }

    fn standing(&self) -> Standing {
        self.made.get().map_or(Standing::Provisional, |made| made.standing())
    }

    fn progress(&self) -> Option<Progress> {
        self.made.get()?.progress()
    }
}

impl FileNode {
    pub fn new(opened: &Arc<Opened>, view: Arc<dyn View>, xattrs: ObjectXattrs) -> Self {
        Self { opened: opened.clone(), view, xattrs, _shared: None }
    }

    /// The same as one of the files of a dataset.
    pub fn of_dataset(self, array: Arc<Array>, single: Arc<Single>) -> Self {
        Self { _shared: Some((array, single)), ..self }
    }

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
        self.opened.is_current() && self.view.standing() != Standing::Outdated
    }

    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        let Some(view) = self.view.opened() else { return Ok(None) };
        let (opened, xattrs, _shared) = (self.opened.clone(), self.xattrs.clone(), self._shared.clone());
        Ok(Some(Arc::new(Self { opened, view, xattrs, _shared })))
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        self.view.size(effort, interrupt).map_err(|error| self.log(error))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.view.gather(offset, length, answer, interrupt).map_err(|error| self.log(error))
    }

    fn progress(&self) -> Option<Progress> {
        self.view.progress()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.opened.opening().why_not_kept()
    }

    fn access(&self) -> Access {
        self.view.access()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        Ok(self.xattrs.shown(&self.opened, interrupt))
    }
}
