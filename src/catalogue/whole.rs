//! Finds out whether something was read in full. If not, it may become readable (after an input error, in a worker with
//! more memory), so the answer must not be remembered.

use super::{Attribute, Dangling, Dataset, Fill, Group, Link, Object, Target};

impl Group {
    /// Whether everything in the group could be read: no attribute, link or object is unreadable, no reference dangles,
    /// and no soft link leads [nowhere](Dangling::Nowhere). A link on an unreadable path looks like one that leads
    /// nowhere.
    pub fn is_whole(&self) -> bool {
        self.attributes.iter().all(Attribute::is_whole) && self.links.iter().all(Link::is_whole)
    }

    /// Whether libhdf5 can undo every filter of every dataset in the group.
    pub fn has_all_filters(&self) -> bool {
        self.links.iter().filter_map(|link| link.target.object()).all(Object::has_all_filters)
    }
}

impl Link {
    fn is_whole(&self) -> bool {
        match &self.target {
            Target::Hard(object) => object.is_whole(),
            Target::Soft { object, .. } => match object {
                Ok(object) => object.is_whole(),
                Err(dangling) => *dangling == Dangling::TooManyLinks,
            },
            // External links are usually not followed.
            Target::External { object, .. } => object.as_deref().is_none_or(Object::is_whole),
            Target::UserDefined(_) => true,
            Target::Unreadable(_) => false,
        }
    }
}

impl Object {
    /// Whether everything about the object could be read; see [`Group::is_whole`].
    pub fn is_whole(&self) -> bool {
        let fill = match self {
            Object::Unreadable { .. } => return false,
            Object::Dataset(dataset) => !matches!(dataset.fill, Fill::Unreadable(_)),
            Object::Group { .. } | Object::Datatype { .. } => true,
        };
        fill && self.attributes().iter().all(Attribute::is_whole)
    }

    /// Whether libhdf5 can undo all filters of the object, if it is a dataset.
    pub fn has_all_filters(&self) -> bool {
        match self {
            Object::Dataset(dataset) => dataset.has_all_filters(),
            _ => true,
        }
    }
}

impl Dataset {
    fn has_all_filters(&self) -> bool {
        self.filters.iter().all(|filter| filter.available)
    }
}

impl Attribute {
    fn is_whole(&self) -> bool {
        self.value.is_ok() && self.references.iter().all(Option::is_some)
    }
}
