//! Attributes with their values.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_void};
use std::time::{Duration, Instant};

use bstr::BString;

use crate::catalogue::{Attribute, Class, Datatype, Elements, ObjectId, ReferenceKind, product};
use crate::h5::library::ffi::{self, Herr, Hid};
use crate::h5::library::{FailureReason, Id, c_string, check};
use crate::h5::worker::address::{address_in, info_of};
use crate::h5::worker::ballast::Ballast;
use crate::h5::worker::session::WorkerSession;
use crate::h5::worker::values::{Aligned, Dataspace, ElementConversion, HeapOutput, dereference, describe, reclaim};

/// Most bytes of a value that is read.
const MAX_VALUE: usize = 1 << 20;

/// Most bytes of all values of one object together; later values are not read.
const MAX_VALUES: usize = 6 << 20;

/// Most bytes of all values of all members of a listed group together. Many names may lead to one object.
pub(super) const OF_ALL_MEMBERS: usize = 64 << 20;

/// Most bytes of a value that is read even after the limit of all values.
const SHORT: usize = 1 << 10;

/// Memory that libhdf5 may take for a value of variable length: it reads the whole value before we can measure it.
const MAX_MEMORY: usize = 64 << 20;

/// Most attributes read of an object requested by itself.
pub(super) const OF_ONE: usize = 4096;

/// Most attributes read of each member of a group, beside those that dialects ask for.
pub(super) const OF_A_MEMBER: usize = 256;

/// Longest time for the attributes of one object: in old files libhdf5 searches for each among all others.
const LONGEST: Duration = Duration::from_secs(2);

impl WorkerSession {
    /// The first `most` attributes of an object, in creation order if the file has one, and those that dialects ask
    /// for.
    pub fn attributes(&mut self, object: &Id, file: u32, most: usize) -> Result<Vec<Attribute>, FailureReason> {
        let (mut names, mut failure) = names(object, most);
        if failure.is_some() {
            let known: HashSet<BString> = names.iter().cloned().collect();
            let wanted = self.wanted().iter().filter(|name| !known.contains(*name) && exists(object, name)).cloned();
            let mut wanted: Vec<BString> = wanted.collect();
            wanted.append(&mut names);
            names = wanted;
        }
        let all = self.values_left.map_or(MAX_VALUES, |left| left.min(MAX_VALUES));
        let (mut left, began, count) = (all, Instant::now(), names.len());
        let mut attributes = Vec::with_capacity(names.len());
        for name in names {
            if began.elapsed() >= LONGEST {
                let read = attributes.len();
                failure =
                    Some(FailureReason::new(format!("after {read} of {count} attributes the rest takes too long")));
                break;
            }
            let attribute = match self.attribute(object, file, &name, left.max(SHORT)) {
                Ok(attribute) => attribute,
                Err(reason) => unreadable(name, reason),
            };
            let size = match &attribute.value {
                Ok(value) => value.bytes.len() + value.heap.len(),
                // The failed read took time and memory.
                Err(_) if attribute.datatype.is_variable() => MAX_VALUE,
                Err(_) => 0,
            };
            left = left.saturating_sub(size + 32 * attribute.references.len());
            attributes.push(attribute);
        }
        if let Some(of_members) = &mut self.values_left {
            *of_members = of_members.saturating_sub(all - left);
        }
        if let Some(reason) = failure {
            // No attribute has an empty name: this one stands for those that could not be listed.
            attributes.push(unreadable(BString::default(), reason));
        }
        Ok(attributes)
    }

    fn attribute(&mut self, object: &Id, file: u32, name: &BString, left: usize) -> Result<Attribute, FailureReason> {
        let c_name = c_string(name)?;
        // SAFETY: open objects and a C string.
        let (attribute, datatype, extent) = unsafe {
            let attribute = Id::own(ffi::H5Aopen(object.raw(), c_name.as_ptr(), ffi::DEFAULT))?;
            let datatype = Id::own(ffi::H5Aget_type(attribute.raw()))?;
            let space = Id::own(ffi::H5Aget_space(attribute.raw()))?;
            (attribute, datatype, Dataspace::of(&space)?)
        };
        let (described, plan) = describe(&datatype, self.file(file)?.address_size)?;
        let mut described = Attribute {
            name: name.clone(),
            datatype: described,
            shape: extent.shape,
            null: extent.null,
            value: Ok(Elements::default()),
            references: Vec::new(),
        };
        let count = if extent.null { Some(0) } else { product(&described.shape) };
        match self.value(&attribute, &datatype, &described.datatype, &plan, count, file, left) {
            Ok((value, references)) => {
                described.value = Ok(value);
                described.references = references;
            }
            Err(FailureReason(text)) => described.value = Err(text),
        }
        Ok(described)
    }

    #[allow(clippy::too_many_arguments)]
    fn value(
        &mut self,
        attribute: &Id,
        datatype: &Id,
        described: &Datatype,
        plan: &ElementConversion,
        count: Option<u64>,
        file: u32,
        left: usize,
    ) -> Result<(Elements, Vec<Option<ObjectId>>), FailureReason> {
        if self.plain && plan.allocates() {
            return Err(FailureReason::new(
                "not read: the HDF5 library crashed or hung before at an attribute like this one",
            ));
        }
        let limit = MAX_VALUE.min(left);
        let count = count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| too_large(&"2^64 or more"))?;
        if count == 0 {
            return Ok(Default::default());
        }
        let size = count.checked_mul(plan.disk).filter(|size| *size <= limit);
        let memory = count.checked_mul(plan.memory).filter(|memory| *memory <= 8 * MAX_VALUE);
        let (Some(size), Some(memory)) = (size, memory) else {
            return Err(too_large(&(count as u128 * plan.disk as u128)));
        };
        let mut buffer = Aligned::zeroed(memory);
        // One element points to one object of the file; many may point to the same one.
        let ballast = (count > 1 && plan.allocates()).then(|| Ballast::leaving(MAX_MEMORY));
        // SAFETY: `buffer` has room for `count` elements of the type in memory.
        let read = check(unsafe { ffi::H5Aread(attribute.raw(), datatype.raw(), buffer.pointer()) });
        read.map_err(|reason| if ballast.is_some() { with_bound(reason) } else { reason })?;
        drop(ballast);
        let mut elements = Elements { bytes: vec![0; size], heap: Vec::new() };
        let own = self.file(file)?;
        let mut heap = HeapOutput::new(limit - size, own.address_size, own.file_number);
        // SAFETY: libhdf5 wrote the buffer by the plan's type.
        let encoded = unsafe { plan.encode_all(buffer.bytes(), &mut elements.bytes, &mut heap) };
        let references = match &described.class {
            Class::Reference(kind) => self.referenced(attribute.raw(), *kind, plan, file, &buffer),
            _ => Vec::new(),
        };
        if plan.allocates() {
            reclaim(datatype, count, &mut buffer)?;
        }
        encoded.map_err(|overflow| too_large(&size.saturating_add(overflow.0)))?;
        elements.heap = heap.bytes;
        Ok((elements, references))
    }

    fn referenced(
        &mut self,
        location: Hid,
        kind: ReferenceKind,
        plan: &ElementConversion,
        file: u32,
        buffer: &Aligned,
    ) -> Vec<Option<ObjectId>> {
        let elements = buffer.bytes().chunks_exact(plan.memory.max(1));
        elements.map(|element| self.target_of(location, kind, element, file)).collect()
    }

    /// The target object of a reference in its form in memory; `None`: a null or dangling reference.
    pub fn target_of(&mut self, location: Hid, kind: ReferenceKind, element: &[u8], file: u32) -> Option<ObjectId> {
        let object = dereference(location, kind, element)?;
        self.identify(&object, file)
    }

    fn identify(&mut self, object: &Id, file: u32) -> Option<ObjectId> {
        let own = self.file(file).ok()?;
        let there = info_of(object.raw()).ok()?;
        // A standard reference may point to another file, whose addresses mean nothing here.
        (own.file_number == there.file_number)
            .then(|| ObjectId { file, address: address_in(there.token, own.address_size) })
    }
}

fn too_large(bytes: &dyn std::fmt::Display) -> FailureReason {
    FailureReason::new(format!(
        "the value of {bytes} bytes is too large (limit {MAX_VALUE}, all together {MAX_VALUES})"
    ))
}

/// A failure whose cause may be a lack of memory.
fn with_bound(FailureReason(text): FailureReason) -> FailureReason {
    FailureReason(format!("{text} (the contents of its values may take {MAX_MEMORY} bytes)"))
}

fn unreadable(name: BString, FailureReason(text): FailureReason) -> Attribute {
    Attribute {
        name,
        datatype: Datatype { size: 0, class: Class::Unknown(-1) },
        shape: Vec::new(),
        null: true,
        value: Err(text),
        references: Vec::new(),
    }
}

/// The names of an object's attributes; if some are missing, also the reason.
fn names(object: &Id, most: usize) -> (Vec<BString>, Option<FailureReason>) {
    let list = |index| {
        let mut names = Names { names: Vec::new(), most };
        let mut position = 0;
        // SAFETY: the callback gets `names` back and is not called afterwards.
        let status = unsafe {
            ffi::H5Aiterate2(object.raw(), index, ffi::ITER_INCREASING, &mut position, collect, (&raw mut names).cast())
        };
        let failure = match check(status) {
            Ok(0) => None,
            Ok(_) => {
                Some(FailureReason::new(format!("there are more than {most} attributes; the others are left out here")))
            }
            Err(reason) => Some(reason),
        };
        (names.names, failure)
    };
    // Without tracked creation order, libhdf5 uses the order in the header or refuses; then this lists by name.
    let first = list(ffi::INDEX_CREATION);
    if first.1.is_none() || first.0.len() >= most {
        return first;
    }
    let second = list(ffi::INDEX_NAME);
    if second.0.len() >= first.0.len() { second } else { first }
}

/// The names, and their limit.
struct Names {
    names: Vec<BString>,
    most: usize,
}

/// Whether an object has an attribute of this name.
fn exists(object: &Id, name: &BString) -> bool {
    // SAFETY: an open object and a C string.
    c_string(name)
        .is_ok_and(|name| check(unsafe { ffi::H5Aexists(object.raw(), name.as_ptr()) }).is_ok_and(|is| is > 0))
}

unsafe extern "C" fn collect(_: Hid, name: *const c_char, _: *const c_void, data: *mut c_void) -> Herr {
    // SAFETY: `data` is what was given to H5Aiterate2; the name is valid during the call.
    let (Names { names, most }, name) = unsafe { (&mut *data.cast::<Names>(), CStr::from_ptr(name).to_bytes()) };
    if names.len() >= *most {
        return 1;
    }
    names.push(name.into());
    0
}
