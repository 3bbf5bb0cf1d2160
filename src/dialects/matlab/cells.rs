//! Reads the targets of a struct's cells: datasets in `/#refs#`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use bstr::{BString, ByteSlice};

use super::{EMPTY, are_numbers, is_text, lines, read};
use crate::catalogue::{Class, Dataset, Fill, Object, ObjectId, ReferenceKind, attribute};
use crate::codec::structure::little_endian;
use crate::dialects::{Site, datasets};
use crate::source::Interrupt;
use crate::store::{Hints, Rows};
use crate::table::{HeldRows, Unreadable, common_type};

/// The type of references as MATLAB writes them, which hold addresses.
const OBJECTS: Class = Class::Reference(ReferenceKind::Object);

/// Name of the group with the targets of cells.
const REFERRED: &str = "#refs#";

/// Most cells in a column: they are all read when the table is opened.
const MOST_CELLS: u64 = 1 << 16;

/// Number of cells whose references are read at once: the name of a target may take 64 KiB.
const AT_ONCE: u64 = 1 << 10;

/// Number of cells of a struct to look up one by one. If there are more, hepfs lists the whole group of targets, which
/// may have millions of links in a file with thousands of structs.
const ONE_BY_ONE: u64 = 1 << 10;

/// Most cells in all columns of a struct.
const ALL_CELLS: u64 = 1 << 20;
/// Most bytes in the texts of all columns of a struct.
const ALL_BYTES: usize = 64 << 20;

/// Reads the cells of a struct's columns.
pub(super) struct CellReader<'a> {
    site: &'a Site<'a>,
    interrupt: &'a Interrupt,
    /// The possible targets by name, once they are listed.
    known: Option<Result<HashMap<BString, Arc<Dataset>>, Unreadable>>,
    /// Number of cells that may still be looked up one by one.
    one_by_one: u64,
    /// Number of cells that may still be read.
    cells: u64,
    /// Bytes of texts that may still be read.
    bytes: usize,
}

impl<'a> CellReader<'a> {
    pub fn new(site: &'a Site<'a>, interrupt: &'a Interrupt) -> Self {
        Self { site, interrupt, known: None, one_by_one: ONE_BY_ONE, cells: ALL_CELLS, bytes: ALL_BYTES }
    }

    /// Finds the targets of the first `most` cells in a dataset: the path and the dataset of each.
    fn referred(
        &mut self,
        path: &str,
        dataset: &Arc<Dataset>,
        most: u64,
    ) -> Result<Vec<(String, Arc<Dataset>)>, Unreadable> {
        let (site, interrupt) = (self.site, self.interrupt);
        let references = datasets::rows(site.file, path, dataset, most, &Fill::Default, &Arc::default())?;
        let count = references.len();
        if count > MOST_CELLS {
            return Err(format!("{count} cells, more than {MOST_CELLS}").into());
        }
        self.cells = self.cells.checked_sub(count).ok_or_else(more)?;
        // References of other types than MATLAB's hold no addresses.
        let width = references.stored_width().filter(|_| dataset.datatype.class == OBJECTS);
        let (mut cells, mut stored) = (Vec::new(), Vec::new());
        for start in (0..count).step_by(AT_ONCE as usize) {
            let end = count.min(start + AT_ONCE);
            let array = references.array(start..end, interrupt)?;
            let paths = array.as_string_opt::<i64>().ok_or("cells that are no references")?;
            stored.clear();
            if let Some(width) = width {
                let (offset, length) = (start.saturating_mul(width), paths.len().saturating_mul(width as usize));
                references.stored_bytes()?.append(offset, length, &mut stored, interrupt)?;
            }
            let mut addresses = stored.chunks_exact(width.map_or(1, |width| width.max(1) as usize)).map(little_endian);
            for (row, path) in (start..).zip(paths) {
                interrupt.check()?;
                let (path, address) = (path.unwrap_or_default(), addresses.next());
                let cell = match path.strip_prefix("/#refs#/").filter(|name| !name.contains('/')) {
                    Some(name) => self.cell(name, address)?,
                    None => None,
                };
                let cell = cell
                    .ok_or_else(|| format!("cell {row} leads to {}", if path.is_empty() { "nothing" } else { path }))?;
                cells.push((path.to_owned(), cell));
            }
        }
        Ok(cells)
    }

    /// Finds the target of this name. If its `address` is known, it is looked up there, as long as the number of such
    /// lookups allows.
    fn cell(&mut self, name: &str, address: Option<u64>) -> Result<Option<Arc<Dataset>>, Unreadable> {
        let Self { site, interrupt, .. } = *self;
        if let (Some(address), Some(left)) = (address, self.one_by_one.checked_sub(1)) {
            self.one_by_one = left;
            let object = site.file.object(ObjectId { file: 0, address }, interrupt);
            return Ok(match object? {
                Object::Dataset(dataset) => Some(dataset),
                _ => None,
            });
        }
        let known = self.known.get_or_insert_with(|| referred(site, interrupt)).as_ref().map_err(Clone::clone)?;
        Ok(known.get(name.as_bytes().as_bstr()).cloned())
    }

    /// Reads the text in a cell.
    fn text(&mut self, path: &str, cell: &Arc<Dataset>) -> Result<String, Unreadable> {
        self.interrupt.check()?;
        let text = characters(self.site, path, cell, self.interrupt)?;
        self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(more)?;
        Ok(text)
    }

    /// Reads the texts in a dataset's cells.
    pub fn texts(&mut self, path: &str, dataset: &Arc<Dataset>) -> Result<Arc<dyn Rows>, Unreadable> {
        let mut texts = LargeStringBuilder::new();
        for (row, (path, cell)) in self.referred(path, dataset, u64::MAX)?.into_iter().enumerate() {
            texts.append_value(self.text(&path, &cell).map_err(|reason| format!("cell {row} {reason}"))?);
        }
        Ok(Arc::new(HeldRows::new(Arc::new(texts.finish()), false, Hints::default())))
    }

    /// Reads the single numbers or texts in the first `most` cells of a dataset, converted to one type. A value without
    /// elements becomes null.
    pub fn values(&mut self, path: &str, dataset: &Arc<Dataset>, most: u64) -> Result<Arc<dyn Rows>, Unreadable> {
        let mut values = Vec::new();
        for (row, (path, cell)) in self.referred(path, dataset, most)?.into_iter().enumerate() {
            values.push(self.value(&path, &cell).map_err(|reason| format!("cell {row} {reason}"))?);
        }
        let mut types = values.iter().flatten().map(|value| value.data_type().clone());
        let first = types.next().ok_or("none of them has a value")?;
        let common = types.try_fold(first, |common, own| {
            // As floats, integers of 64 bits would be rounded.
            let is_rounded = common.is_floating() != own.is_floating()
                && [&common, &own].iter().any(|one| matches!(one, DataType::Int64 | DataType::UInt64));
            common_type(&common, &own).filter(|_| !is_rounded).ok_or_else(|| format!("{common} beside {own}"))
        })?;
        let arrays = values
            .into_iter()
            .map(|value| match value {
                Some(value) => cast(&value, &common).map_err(|error| error.to_string()),
                None => Ok(new_null_array(&common, 1)),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let array = concat(&arrays)?;
        Ok(Arc::new(HeldRows::new(array, true, Hints::default())))
    }

    /// Reads the single number or text in a cell. `None`: the cell holds a value without elements that is not a text.
    fn value(&mut self, path: &str, cell: &Arc<Dataset>) -> Result<Option<ArrayRef>, Unreadable> {
        if is_text(cell) {
            return Ok(Some(Arc::new(LargeStringArray::from(vec![self.text(path, cell)?]))));
        }
        if attribute(&cell.attributes, EMPTY).is_some() {
            return Ok(None);
        }
        if !are_numbers(cell) || cell.null || cell.len() != Some(1) {
            return Err("is no single number or text".into());
        }
        let read = read(cell, &cell.attributes);
        let rows = datasets::rows(self.site.file, path, &read, 1, &Fill::Default, &Arc::default())?;
        rows.array(0..1, self.interrupt).map(Some).map_err(Unreadable::from)
    }
}

fn more() -> String {
    format!("more than {ALL_CELLS} cells, or {ALL_BYTES} bytes of texts, of a struct")
}

/// Lists the datasets to which cells may refer.
fn referred(site: &Site<'_>, interrupt: &Interrupt) -> Result<HashMap<BString, Arc<Dataset>>, Unreadable> {
    let root = site.file.group(site.file.info().root, interrupt)?;
    let group = match root.link(REFERRED.as_bytes()).and_then(|link| link.target.object()) {
        Some(Object::Group { id, .. }) => site.file.group(*id, interrupt)?,
        _ => return Err(format!("there is no /{REFERRED}").into()),
    };
    Ok(group.datasets().map(|(name, dataset)| (name.clone(), dataset.clone())).collect())
}

/// Reads the text in a cell.
fn characters(site: &Site<'_>, path: &str, cell: &Arc<Dataset>, interrupt: &Interrupt) -> Result<String, Unreadable> {
    if !is_text(cell) {
        return Err("is no text".into());
    }
    match lines(cell, site, path, interrupt)?.as_mut_slice() {
        [] => Ok(String::new()),
        [text] => Ok(std::mem::take(text)),
        _ => Err(format!("has extents {:?}", cell.shape).into()),
    }
}
