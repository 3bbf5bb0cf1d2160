//! Describes objects: groups, datasets and committed datatypes.

use std::sync::Arc;

use crate::catalogue::{Object, ObjectId};
use crate::h5::library::FailureReason;
use crate::h5::library::ffi;
use crate::h5::worker::address::info_of;
use crate::h5::worker::session::WorkerSession;
use crate::h5::worker::values::describe;

impl WorkerSession {
    /// Describes an object with `most` attributes; the description of an unreadable one says so.
    pub fn object(&mut self, id: ObjectId, most: usize) -> Object {
        self.try_object(id, most).unwrap_or_else(|FailureReason(reason)| Object::Unreadable { id, reason })
    }

    fn try_object(&mut self, id: ObjectId, most: usize) -> Result<Object, FailureReason> {
        let object = self.open_object(id)?;
        // SAFETY: an open object.
        match unsafe { ffi::H5Iget_type(object.raw()) } {
            ffi::I_GROUP => Ok(Object::Group {
                id,
                link_count: info_of(object.raw())?.references,
                attributes: self.attributes(&object, id.file, most)?.into(),
            }),
            ffi::I_DATASET => Ok(Object::Dataset(Arc::new(self.dataset(&object, id, most)?))),
            ffi::I_DATATYPE => {
                let (datatype, _) = describe(&object, self.file(id.file)?.address_size)?;
                let datatype = Box::new(datatype);
                Ok(Object::Datatype { id, datatype, attributes: self.attributes(&object, id.file, most)?.into() })
            }
            other => Err(FailureReason::new(format!("an object of the unknown kind {other}"))),
        }
    }
}
