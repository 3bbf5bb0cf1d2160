//! Steps of writing: libhdf5 creates and changes objects of the source, whose file shows none of it before a commit.

mod commit;

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hdf5_metno_sys::{h5a, h5d, h5f, h5g, h5l, h5o, h5p, h5r, h5t};

use super::address::address_of;
use super::driver::{self, DriverAccess, DriverSource, SourceDescriptor, disk};
use super::shared::SharedMemory;
use super::start::start_library;
use super::values::{Aligned, Dataspace};
use crate::h5::element::AttributeValue;
use crate::h5::library::{FailureReason, Id, c_string, check, ffi};
use crate::h5::objects::attributes::{create_references, create_value};
use crate::h5::objects::storage::{Storage, UNLIMITED, timeless};
use crate::h5::objects::types::Type;
use crate::h5::objects::{DEFAULT, create_dataset, hyperslab, links, space};
use crate::h5::protocol::{Hello, MAX_ELEMENTS, WorkerRefusal};
use crate::h5::steps::{NewDataset, NewElement, References, Step, StepOutcome, TargetObject};

/// Most references in a list that is changed.
const MOST_REFERENCES: u64 = 4096;

/// The state of a writing worker between steps.
#[derive(Debug)]
pub(super) struct WritingWorker {
    path: PathBuf,
    source: SourceDescriptor,
    journal: File,
    plugins: Option<Vec<u8>>,
    fapl: Option<Id>,
    file: Option<Id>,
    /// Objects created since the file was opened.
    made: Vec<Id>,
}

impl WritingWorker {
    pub fn new(hello: &Hello, source: SourceDescriptor, journal: File) -> Self {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&hello.path));
        Self { path, source, journal, plugins: hello.plugins.clone(), fapl: None, file: None, made: Vec::new() }
    }

    /// Executes a step.
    pub fn step(&mut self, step: &Step, shared: &mut SharedMemory) -> Result<StepOutcome, WorkerRefusal> {
        match step {
            Step::Begin => self.begin()?,
            Step::Group => return Ok(self.group()?),
            Step::Dataset(layout) => return Ok(self.dataset(layout)?),
            Step::Elements { object, start, count, bytes, heap, strings } => {
                let length = bytes.saturating_add(*heap);
                let shared = usize::try_from(length).ok().and_then(|length| shared.bytes().get_mut(..length));
                let shared = shared.ok_or_else(|| FailureReason::new(format!("{length} bytes of elements at once")))?;
                let (bytes, heap) = shared.split_at_mut(*bytes as usize);
                self.elements(object, start, count, bytes, heap, strings)?;
            }
            Step::Extend { object, extents } => self.extend(object, extents)?,
            Step::Chunk { object, start, bytes } => {
                let chunk = usize::try_from(*bytes).ok().and_then(|length| shared.bytes().get(..length));
                let chunk = chunk.ok_or_else(|| FailureReason::new(format!("a chunk of {bytes} bytes")))?;
                self.chunk(object, start, chunk)?;
            }
            Step::Attribute { object, name, value } => self.attribute(object, name, value)?,
            Step::References { object, name, kind, to, is_list } => {
                self.references(object, name, *kind, to, *is_list)?;
            }
            Step::AddReference { object, name, kind, to } => self.add_reference(object, name, *kind, to)?,
            Step::RemoveReference { object, name, to } => self.remove_reference(object, name, to)?,
            Step::Link { object, group, replaces, path } => {
                if *replaces && self.open(&TargetObject::Path(path.clone())).is_ok() {
                    self.unlink(path)?;
                }
                self.link(object, group.as_ref(), path)?;
            }
            Step::Unlink { path } => self.unlink(path)?,
            Step::Flush => self.flush()?,
            Step::Commit { removes } => return self.commit(*removes),
        }
        Ok(StepOutcome::Yes)
    }

    fn begin(&mut self) -> Result<(), FailureReason> {
        if self.fapl.is_none() {
            let (path, source) = (self.path.clone(), self.source);
            let access = DriverAccess { path, source: DriverSource::File(source), follow: None, write: true };
            self.fapl = Some(start_library(access, self.plugins.as_deref())?);
        }
        let fapl = self.fapl.as_ref().map_or(DEFAULT, Id::raw);
        let name = c_string(self.path.as_os_str().as_bytes())?;
        // SAFETY: a C string and an access list.
        let file = Id::own(unsafe { ffi::H5Fopen(name.as_ptr(), ffi::ACC_RDWR, fapl) })?;
        driver::arm();
        // SAFETY: an open file.
        let creation = Id::own(unsafe { h5f::H5Fget_create_plist(file.raw()) })?;
        let (mut strategy, mut persist, mut threshold) =
            (h5f::H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_FSM_AGGR, 0, 0);
        // SAFETY: places for three answers.
        check(unsafe {
            h5p::H5Pget_file_space_strategy(
                creation.raw(),
                &raw mut strategy,
                (&raw mut persist).cast(),
                &raw mut threshold,
            )
        })?;
        if persist != 0 {
            return Err(FailureReason::new(
                "the file keeps a list of its free space, which libhdf5 would write to while it is in use; `h5repack \
                 -S FSM_AGGR -P 0` makes a file without",
            ));
        }
        self.file = Some(file);
        Ok(())
    }

    fn file(&self) -> Result<i64, FailureReason> {
        self.file.as_ref().map(Id::raw).ok_or_else(|| FailureReason::new("the file is not open for writing"))
    }

    /// Opens an object, or opens a new one a second time.
    fn open(&self, object: &TargetObject) -> Result<Id, FailureReason> {
        let file = self.file()?;
        match object {
            TargetObject::Path(path) => {
                let name = c_string(path)?;
                // SAFETY: a C string and an open file.
                Id::own(unsafe { h5o::H5Oopen(file, name.as_ptr(), DEFAULT) })
            }
            TargetObject::New(number) => {
                let made =
                    self.made.get(*number as usize).ok_or_else(|| FailureReason::new("no such object was made"))?;
                // SAFETY: an open object.
                Id::own(unsafe { h5o::H5Oopen(made.raw(), c".".as_ptr(), DEFAULT) })
            }
        }
    }

    fn keep(&mut self, made: Id) -> StepOutcome {
        self.made.push(made);
        // No memory holds 2^32 objects.
        StepOutcome::New(self.made.len() as u32 - 1)
    }

    fn group(&mut self) -> Result<StepOutcome, FailureReason> {
        let creation = timeless(*h5p::H5P_CLS_GROUP_CREATE)?;
        // Links stay in the object header, however many: adding one there is one write, whereas adding one to an index
        // of links is not.
        // SAFETY: plain numbers.
        check(unsafe { h5p::H5Pset_link_phase_change(creation.raw(), u32::from(u16::MAX), u32::from(u16::MAX)) })?;
        // SAFETY: open identifiers.
        let group = Id::own(unsafe { h5g::H5Gcreate_anon(self.file()?, creation.raw(), DEFAULT) })?;
        Ok(self.keep(group))
    }

    fn dataset(&mut self, layout: &NewDataset) -> Result<StepOutcome, FailureReason> {
        let datatype = self.new_type(&layout.element)?;
        let limits = layout.extents.iter().zip(&layout.grows).map(|(n, grows)| if *grows { UNLIMITED } else { *n });
        let storage = Storage::chunked(&layout.extents, &limits.collect::<Vec<_>>(), &layout.chunk);
        let storage = storage.compressed(layout.compression);
        let storage = if datatype.size() == 1 || !layout.shuffles { storage.unshuffled() } else { storage };
        let dataset = create_dataset(self.file()?, None, &datatype, &storage, &layout.fill)?;
        Ok(self.keep(dataset))
    }

    fn new_type(&self, element: &NewElement) -> Result<Type, FailureReason> {
        match element {
            NewElement::Of(element) => Type::new(element)?.into_stored(),
            NewElement::Like(object) => self.type_of(object),
            NewElement::Compound(fields) => {
                let made = fields.iter().map(|(name, field)| Ok((name.clone(), self.new_type(field)?)));
                Type::compound(&made.collect::<Result<Vec<_>, FailureReason>>()?)?.into_stored()
            }
        }
    }

    fn type_of(&self, object: &TargetObject) -> Result<Type, FailureReason> {
        let dataset = self.open(object)?;
        // SAFETY: an open object; of another kind the call fails.
        Type::of_file(Id::own(unsafe { h5d::H5Dget_type(dataset.raw()) })?)
    }

    fn elements(
        &self,
        object: &TargetObject,
        start: &[u64],
        count: &[u64],
        bytes: &mut [u8],
        heap: &mut [u8],
        strings: &[u64],
    ) -> Result<(), FailureReason> {
        let dataset = self.open(object)?;
        let datatype = self.type_of(object)?;
        let elements = crate::catalogue::product(count).filter(|count| *count > 0);
        let size = elements.and_then(|count| count.checked_mul(datatype.size() as u64));
        if size != Some(bytes.len() as u64) || size > Some(MAX_ELEMENTS) {
            return Err(FailureReason::new(format!(
                "{} bytes for {count:?} elements of {}",
                bytes.len(),
                datatype.size()
            )));
        }
        if datatype.pointers()? != strings {
            return Err(FailureReason::new("the element has its strings at other offsets"));
        }
        let mut aligned = Aligned::of(bytes);
        if !strings.is_empty() {
            place_strings(aligned.bytes_mut(), datatype.size(), heap, strings)?;
        }
        // SAFETY: an open dataset.
        let extent = Dataspace::of(&Id::own(unsafe { h5d::H5Dget_space(dataset.raw()) })?)?;
        let file = hyperslab(&extent.shape, start, count)?;
        let memory = space(count, None)?;
        // SAFETY: the memory space has as many elements as there are bytes for, checked above; pointers lead to strings
        // with a NUL.
        check(unsafe {
            let (memory, file) = (memory.raw(), file.raw());
            h5d::H5Dwrite(dataset.raw(), datatype.memory(), memory, file, DEFAULT, aligned.pointer())
        })?;
        Ok(())
    }

    fn extend(&self, object: &TargetObject, extents: &[u64]) -> Result<(), FailureReason> {
        let dataset = self.open(object)?;
        self.check_rank(&dataset, extents)?;
        // SAFETY: as many extents as the dataset has dimensions.
        check(unsafe { h5d::H5Dset_extent(dataset.raw(), extents.as_ptr()) })?;
        Ok(())
    }

    fn chunk(&self, object: &TargetObject, start: &[u64], stored: &[u8]) -> Result<(), FailureReason> {
        let dataset = self.open(object)?;
        self.check_rank(&dataset, start)?;
        if stored_bytes(&dataset, start)? == stored.len() as u64 {
            // libhdf5 would overwrite a chunk of the same length, and a dying process may do that in part. Without its
            // space the chunk gets new space.
            // SAFETY: an open dataset.
            let extent = Dataspace::of(&Id::own(unsafe { h5d::H5Dget_space(dataset.raw()) })?)?;
            let shorter: Vec<u64> = extent.shape.iter().zip(start).map(|(extent, start)| *start.min(extent)).collect();
            // SAFETY: as many extents as the dataset has dimensions.
            unsafe {
                check(h5d::H5Dset_extent(dataset.raw(), shorter.as_ptr()))?;
                check(h5d::H5Dset_extent(dataset.raw(), extent.shape.as_ptr()))?;
            }
        }
        // SAFETY: an open dataset, as many numbers as it has dimensions, and a buffer of the stated length.
        check(unsafe {
            let (start, bytes) = (start.as_ptr(), stored.as_ptr().cast());
            h5d::H5Dwrite_chunk(dataset.raw(), DEFAULT, 0, start, stored.len(), bytes)
        })?;
        Ok(())
    }

    fn check_rank(&self, dataset: &Id, numbers: &[u64]) -> Result<(), FailureReason> {
        // SAFETY: an open object; of another kind the call fails.
        let extent = Dataspace::of(&Id::own(unsafe { h5d::H5Dget_space(dataset.raw()) })?)?;
        if extent.shape.len() == numbers.len() {
            Ok(())
        } else {
            Err(FailureReason::new(format!("{} numbers for {} dimensions", numbers.len(), extent.shape.len())))
        }
    }

    fn attribute(&self, object: &TargetObject, name: &str, value: &AttributeValue) -> Result<(), FailureReason> {
        let object = self.open(object)?;
        let name = c_string(name.as_bytes())?;
        delete_attribute(&object, &name)?;
        create_value(object.raw(), &name, value)
    }

    fn references(
        &self,
        object: &TargetObject,
        name: &str,
        kind: References,
        to: &[TargetObject],
        is_list: bool,
    ) -> Result<(), FailureReason> {
        let object = self.open(object)?;
        let name = c_string(name.as_bytes())?;
        delete_attribute(&object, &name)?;
        let to = to.iter().map(|to| self.open(to)).collect::<Result<Vec<_>, _>>()?;
        let to: Vec<i64> = to.iter().map(Id::raw).collect();
        create_references(object.raw(), &name, kind, &to, is_list)
    }

    fn add_reference(
        &self,
        object: &TargetObject,
        name: &str,
        kind: References,
        to: &TargetObject,
    ) -> Result<(), FailureReason> {
        let (object, to) = (self.open(object)?, self.open(to)?);
        let name = c_string(name.as_bytes())?;
        let (kind, mut known) = list_of(&object, &name)?.unwrap_or((kind, Vec::new()));
        known.push(to);
        put_list(&object, &name, kind, &known)
    }

    fn remove_reference(&self, object: &TargetObject, name: &str, to: &TargetObject) -> Result<(), FailureReason> {
        let (object, to) = (self.open(object)?, self.open(to)?);
        let name = c_string(name.as_bytes())?;
        let Some((kind, known)) = list_of(&object, &name)? else { return Ok(()) };
        let gone = address_of(to.raw(), 8)?;
        let mut left = Vec::new();
        for known in known {
            if address_of(known.raw(), 8)? != gone {
                left.push(known);
            }
        }
        put_list(&object, &name, kind, &left)
    }

    fn link(&self, object: &TargetObject, group: Option<&TargetObject>, path: &[u8]) -> Result<(), FailureReason> {
        let object = self.open(object)?;
        let group = group.map(|group| self.open(group)).transpose()?;
        let from = group.as_ref().map_or_else(|| self.file(), |group| Ok(group.raw()))?;
        let (path, links) = (c_string(path)?, links()?);
        // SAFETY: a C string and open identifiers.
        check(unsafe { h5o::H5Olink(object.raw(), from, path.as_ptr(), links.raw(), DEFAULT) })?;
        Ok(())
    }

    fn unlink(&self, path: &[u8]) -> Result<(), FailureReason> {
        let object = self.open(&TargetObject::Path(path.to_vec()))?;
        let path = c_string(path)?;
        // Freeing the object gains nothing, since its space is lost all the same; and a group that still links to it in
        // a partly written file must find it complete.
        // SAFETY: an open object.
        check(unsafe { h5o::H5Oincr_refcount(object.raw()) })?;
        // SAFETY: a C string and an open file.
        check(unsafe { h5l::H5Ldelete(self.file()?, path.as_ptr(), DEFAULT) })?;
        Ok(())
    }

    fn flush(&self) -> Result<(), FailureReason> {
        // SAFETY: an open file.
        check(unsafe { h5f::H5Fflush(self.file()?, h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) })?;
        disk::sync(&self.source.file()).map_err(|error| FailureReason::new(error.to_string()))
    }

    fn commit(&mut self, removes: bool) -> Result<StepOutcome, WorkerRefusal> {
        self.flush()?;
        self.made.clear();
        let file = self.file.take().ok_or_else(|| FailureReason::new("the file is not open for writing"))?;
        // SAFETY: an open file, whose identifier is closed once.
        unsafe {
            if h5f::H5Fget_obj_count(file.raw(), h5f::H5F_OBJ_ALL) != 1 {
                return Err(WorkerRefusal::Hdf5("an object was left open".into()));
            }
            check(h5f::H5Fclose(file.release()))?;
        }
        let overlay = driver::take_overlay().ok_or_else(|| FailureReason::new("nothing was held back"))?;
        let (end, source) = (overlay.end(), self.source.file());
        let written = commit::commit(&source, &self.journal, overlay.into_pieces(), end, removes);
        written.map(StepOutcome::Committed).map_err(|error| WorkerRefusal::Hdf5(format!("cannot write: {error}")))
    }
}

/// Replaces positions in the heap with pointers into it.
fn place_strings(elements: &mut [u8], size: usize, heap: &[u8], strings: &[u64]) -> Result<(), FailureReason> {
    if heap.last() != Some(&0) {
        return Err(FailureReason::new("the last string has no end"));
    }
    for element in elements.chunks_exact_mut(size.max(1)) {
        for string in strings {
            let place = element.get_mut(*string as usize..).and_then(<[u8]>::first_chunk_mut::<8>);
            let place = place.ok_or_else(|| FailureReason::new("a string outside of its element"))?;
            let at = usize::try_from(u64::from_ne_bytes(*place)).ok().and_then(|at| heap.get(at..));
            let at =
                at.filter(|rest| !rest.is_empty()).ok_or_else(|| FailureReason::new("a string outside of the heap"))?;
            *place = (at.as_ptr() as u64).to_ne_bytes();
        }
    }
    Ok(())
}

/// Bytes of a chunk in stored form; 0 for one that is not stored.
fn stored_bytes(dataset: &Id, start: &[u64]) -> Result<u64, FailureReason> {
    let (mut mask, mut address, mut size) = (0, 0, 0);
    // SAFETY: an open dataset, as many numbers as it has dimensions, and places for three answers.
    check(unsafe {
        let places = (&raw mut mask, &raw mut address, &raw mut size);
        h5d::H5Dget_chunk_info_by_coord(dataset.raw(), start.as_ptr(), places.0, places.1, places.2)
    })?;
    Ok(if address == u64::MAX { 0 } else { size })
}

fn delete_attribute(object: &Id, name: &CString) -> Result<(), FailureReason> {
    // SAFETY: a C string and an open object.
    if check(unsafe { h5a::H5Aexists(object.raw(), name.as_ptr()) })? > 0 {
        // SAFETY: as above.
        check(unsafe { h5a::H5Adelete(object.raw(), name.as_ptr()) })?;
    }
    Ok(())
}

fn put_list(object: &Id, name: &CString, kind: References, to: &[Id]) -> Result<(), FailureReason> {
    delete_attribute(object, name)?;
    if to.is_empty() {
        return Ok(());
    }
    let to: Vec<i64> = to.iter().map(Id::raw).collect();
    create_references(object.raw(), name, kind, &to, true)
}

/// The targets of an attribute's references, and their type; `None`: no such attribute. It drops dangling references.
fn list_of(object: &Id, name: &CString) -> Result<Option<(References, Vec<Id>)>, FailureReason> {
    // SAFETY: a C string and an open object.
    if check(unsafe { h5a::H5Aexists(object.raw(), name.as_ptr()) })? == 0 {
        return Ok(None);
    }
    // SAFETY: as above.
    let (attribute, datatype, extent) = unsafe {
        let attribute = Id::own(h5a::H5Aopen(object.raw(), name.as_ptr(), DEFAULT))?;
        let datatype = Id::own(h5a::H5Aget_type(attribute.raw()))?;
        let space = Id::own(h5a::H5Aget_space(attribute.raw()))?;
        (attribute, datatype, Dataspace::of(&space)?)
    };
    let count = crate::catalogue::product(&extent.shape).filter(|count| *count <= MOST_REFERENCES && !extent.null);
    let count =
        count.ok_or_else(|| FailureReason::new(format!("an attribute of {:?} references", extent.shape)))? as usize;
    // SAFETY: open datatypes.
    let is = |known: i64| check(unsafe { h5t::H5Tequal(datatype.raw(), known) }).map(|equal| equal > 0);
    let mut targets = Vec::new();
    if is(*h5t::H5T_STD_REF_OBJ)? {
        let mut addresses = vec![0u64; count.max(1)];
        // SAFETY: room for as many addresses (hobj_ref_t).
        check(unsafe { h5a::H5Aread(attribute.raw(), datatype.raw(), addresses.as_mut_ptr().cast()) })?;
        for address in addresses.iter().take(count) {
            let kind = h5r::H5R_type_t::H5R_OBJECT1;
            // SAFETY: the address from libhdf5 itself.
            let target =
                unsafe { h5r::H5Rdereference2(object.raw(), DEFAULT, kind, std::ptr::from_ref(address).cast()) };
            targets.extend(Id::own(target).ok());
        }
        return Ok(Some((References::Object, targets)));
    }
    if !is(*h5t::H5T_STD_REF)? {
        return Err(FailureReason::new(format!("{} holds no references to objects", name.to_string_lossy())));
    }
    let mut references: Vec<h5r::H5R_ref_t> = std::iter::repeat_with(Default::default).take(count.max(1)).collect();
    // SAFETY: room for as many references; each is released once.
    unsafe {
        check(h5a::H5Aread(attribute.raw(), datatype.raw(), references.as_mut_ptr().cast()))?;
        for reference in references.iter_mut().take(count) {
            targets.extend(Id::own(h5r::H5Ropen_object(reference, DEFAULT, DEFAULT)).ok());
            check(h5r::H5Rdestroy(reference)).ok();
        }
    }
    Ok(Some((References::Standard, targets)))
}
