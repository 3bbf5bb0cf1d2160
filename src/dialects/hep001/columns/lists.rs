//! List columns: groups of `OFFSETS`, `VALUES` and `MASK`, nested to any depth (HEP001 July, "List columns").

use std::sync::Arc;

use crate::catalogue::{Attribute, Class, Dataset, Group, Object, ObjectId, join};
use crate::dialects::attributes::text;
use crate::dialects::datasets;
use crate::dialects::hep001::members::is_list;
use crate::dialects::hep001::names::STRINGS_CLASS;
use crate::dialects::hep001::parts::Parts;
use crate::source::Interrupt;
use crate::store::{DatasetRows, Rows, Tally};
use crate::table::{Finding, ListRows, StringRows};

/// Deepest nesting followed; each level costs a request to the worker.
const MOST_LEVELS: usize = 32;

/// An open list column: its top level with everything below.
pub(super) struct List {
    path: String,
    offsets: Arc<dyn Rows>,
    values: Arc<dyn Rows>,
    mask: Option<Arc<dyn Rows>>,
}

impl List {
    /// Entries that the offsets allow.
    pub fn entries(&self) -> u64 {
        self.offsets.len().saturating_sub(1)
    }

    /// At most `len` rows.
    pub fn rows(&self, len: u64, tally: &Arc<Tally>) -> Arc<dyn Rows> {
        Arc::new(ListRows::new(
            self.path.clone(),
            self.offsets.clone(),
            self.values.clone(),
            self.mask.clone(),
            len,
            tally.clone(),
        ))
    }
}

/// Opens a list column group.
///
/// # Errors
/// Why its lists cannot be read: the column is then present but unreadable.
pub(super) fn open(
    parts: &mut Parts<'_>,
    path: &str,
    id: ObjectId,
    attributes: &[Attribute],
    interrupt: &Interrupt,
) -> Result<List, String> {
    let list = level(parts, path, id, attributes, 0, interrupt);
    if let Err(reason) = &list {
        parts.findings.push(Finding::new(path, "HEP001 July, \"Members of a list column group\"", reason));
    }
    list
}

fn level(
    parts: &mut Parts<'_>,
    path: &str,
    id: ObjectId,
    attributes: &[Attribute],
    depth: usize,
    interrupt: &Interrupt,
) -> Result<List, String> {
    if depth >= MOST_LEVELS {
        return Err(format!("lists nested deeper than {MOST_LEVELS}"));
    }
    match text(attributes, "KIND").as_deref() {
        Some("OFFSETS") => {}
        Some(other) => return Err(format!("KIND {other:?} is not known")),
        None => return Err("no KIND attribute".into()),
    }
    let group = parts.file.group(id, interrupt).map_err(|error| error.to_string())?;
    let offsets = offsets(parts, path, &group)?;
    let mask = mask(parts, path, &group)?;
    let member = join(path, b"VALUES");
    let values: Arc<dyn Rows> = match group.link(b"VALUES").and_then(|link| link.target.object()) {
        Some(Object::Dataset(dataset)) => leaf(parts, &member, dataset)?,
        Some(Object::Group { id, attributes, .. }) if is_list(attributes) => {
            level(parts, &member, *id, attributes, depth + 1, interrupt)?.rows(u64::MAX, &Arc::default())
        }
        Some(Object::Group { id, attributes, .. }) if text(attributes, "CLASS").as_deref() == Some(STRINGS_CLASS) => {
            strings(parts, &member, *id, interrupt)?
        }
        Some(_) => return Err("VALUES is neither a dataset, a list nor STRING_VALUES".into()),
        None => return Err("no VALUES".into()),
    };
    Ok(List { path: path.to_owned(), offsets, values, mask })
}

fn member<'g>(group: &'g Group, name: &str) -> Result<&'g Arc<Dataset>, String> {
    match group.link(name.as_bytes()).and_then(|link| link.target.object()) {
        Some(Object::Dataset(dataset)) if dataset.shape.len() == 1 && !dataset.null => Ok(dataset),
        Some(_) => Err(format!("{name} is no dataset of rank 1")),
        None => Err(format!("no {name}")),
    }
}

fn offsets(parts: &Parts<'_>, path: &str, group: &Group) -> Result<Arc<dyn Rows>, String> {
    let dataset = member(group, "OFFSETS")?;
    if !matches!(dataset.datatype.class, Class::Integer { .. }) || dataset.datatype.size > 8 {
        return Err("OFFSETS is not of integers".into());
    }
    let opened = datasets::open(parts.file, &join(path, b"OFFSETS"), dataset)?;
    Ok(Arc::new(DatasetRows::plain(opened, u64::MAX)))
}

fn mask(parts: &Parts<'_>, path: &str, group: &Group) -> Result<Option<Arc<dyn Rows>>, String> {
    if group.link(b"MASK").is_none() {
        return Ok(None);
    }
    let dataset = member(group, "MASK")?;
    if !dataset.datatype.is_boolean() {
        return Err("MASK is not of booleans".into());
    }
    let opened = datasets::open(parts.file, &join(path, b"MASK"), dataset)?;
    Ok(Some(Arc::new(DatasetRows::plain(opened, u64::MAX))))
}

fn leaf(parts: &mut Parts<'_>, path: &str, dataset: &Arc<Dataset>) -> Result<Arc<dyn Rows>, String> {
    if dataset.shape.len() != 1 || dataset.null {
        return Err(format!("VALUES has rank {}, not 1", dataset.shape.len()));
    }
    if dataset.datatype.is_variable() {
        parts.findings.push(Finding::new(
            path,
            "HEP001 July, \"No variable-length datatypes\": none below a list column",
            "a variable-length datatype",
        ));
    }
    datasets::rows(parts.file, path, dataset, u64::MAX, &parts.missing(dataset), &Arc::default())
}

fn strings(parts: &Parts<'_>, path: &str, id: ObjectId, interrupt: &Interrupt) -> Result<Arc<dyn Rows>, String> {
    let group = parts.file.group(id, interrupt).map_err(|error| error.to_string())?;
    let offsets = offsets(parts, path, &group)?;
    let mask = mask(parts, path, &group)?;
    let dataset = member(&group, "CHARS")?;
    if !matches!(dataset.datatype.class, Class::Integer { signed: false, .. }) || dataset.datatype.size != 1 {
        return Err("CHARS is not of one-byte unsigned integers".into());
    }
    let characters = datasets::open(parts.file, &join(path, b"CHARS"), dataset)?;
    let characters = Arc::new(DatasetRows::plain(characters, u64::MAX));
    Ok(Arc::new(StringRows::new(path.to_owned(), offsets, characters, mask, u64::MAX, Arc::<Tally>::default())))
}
