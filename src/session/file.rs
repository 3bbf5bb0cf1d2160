//! A shown file: a view, and the attributes of the object behind it.

use std::sync::{Arc, OnceLock};

use bstr::BString;

use super::listing::ShownArray;
use super::{Error, OpenedSource};
use crate::catalogue::{Attribute, ObjectId};
use crate::learnt::pass::PassProgress;
use crate::source::Interrupt;
use crate::store::{self, Answer};
use crate::table::Single;
use crate::views::{AccessPattern, Effort, Size, Standing, UNKNOWN_SIZE, View};

/// A view, and the attributes of the object that it shows.
pub(crate) struct ShownFile {
    pub opened: Arc<OpenedSource>,
    pub view: Arc<dyn View>,
    pub attributes: ObjectAttributes,
    /// The dataset behind the file, and its tables: all files of the dataset share them.
    _shared: Option<(Arc<ShownArray>, Arc<Single>)>,
}

/// The attributes of the object behind a directory or file.
#[derive(Clone)]
pub(crate) struct ObjectAttributes {
    /// The link's name as stored.
    pub name: BString,
    /// Attributes of the object.
    attributes: Arc<[Attribute]>,
    /// The object, if the attributes come from the listing of its group, which may omit some of very many.
    member: Option<ObjectId>,
    /// All attributes, once someone asked for them.
    all: OnceLock<Arc<[Attribute]>>,
}

impl ObjectAttributes {
    /// Attributes read from the object itself.
    pub fn new(name: BString, attributes: Arc<[Attribute]>) -> Self {
        Self { name, attributes, member: None, all: OnceLock::new() }
    }

    /// Attributes of a member, from the listing of its group.
    pub fn of_member(name: BString, attributes: Arc<[Attribute]>, id: ObjectId) -> Self {
        Self { member: Some(id), ..Self::new(name, attributes) }
    }

    /// Returns all attributes of the object; reads those that the listing of its group omits.
    pub fn all(&self, opened: &OpenedSource, interrupt: &Interrupt) -> Arc<[Attribute]> {
        let is_cut = self.attributes.last().is_some_and(|last| last.name.is_empty());
        if let Some(id) = self.member.filter(|_| is_cut && self.all.get().is_none()) {
            // If the object cannot be read, the listing's attributes have to do.
            let object = opened.file().ok().and_then(|file| file.object(id, interrupt).ok());
            if let Some(all) = object.filter(|object| object.attributes().len() >= self.attributes.len()) {
                self.all.set(all.attributes().into()).ok();
            }
        }
        self.all.get().unwrap_or(&self.attributes).clone()
    }
}

/// A view built at first use of more than the listing knows, since a view of very many columns takes memory for each.
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
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, store::Error> {
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
    ) -> Result<(), store::Error> {
        self.made().gather(offset, length, answer, interrupt)
    }

    fn access(&self) -> AccessPattern {
        self.made().access()
    }

    fn standing(&self) -> Standing {
        self.made.get().map_or(Standing::Provisional, |made| made.standing())
    }

    fn progress(&self) -> Option<PassProgress> {
        self.made.get()?.progress()
    }
}

impl ShownFile {
    pub fn new(opened: &Arc<OpenedSource>, view: Arc<dyn View>, attributes: ObjectAttributes) -> Self {
        Self { opened: opened.clone(), view, attributes, _shared: None }
    }

    /// Makes the file one of the files of this dataset.
    pub fn of_dataset(self, array: Arc<ShownArray>, single: Arc<Single>) -> Self {
        Self { _shared: Some((array, single)), ..self }
    }

    /// The same file with another view.
    pub fn with_view(&self, view: Arc<dyn View>) -> Self {
        let (opened, attributes, _shared) = (self.opened.clone(), self.attributes.clone(), self._shared.clone());
        Self { opened, view, attributes, _shared }
    }

    /// The file's size. A look at the name of a file in an object on a network reads no values for it.
    ///
    /// # Errors
    /// If values cannot be read.
    pub fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let is_look = effort == Effort::Quick && !self.opened.opening().source().comes_whole();
        let effort = if is_look { Effort::Free } else { effort };
        self.view.size(effort, interrupt).map_err(|error| self.failed(error))
    }

    /// Converts an error of the view, and logs it.
    pub fn failed(&self, error: store::Error) -> Error {
        let error = Error::from(error);
        self.opened.log(&error);
        error
    }

    /// Whether the file still shows the current state of the source.
    pub fn is_current(&self) -> bool {
        self.opened.is_current() && self.view.standing() != Standing::Outdated
    }
}
