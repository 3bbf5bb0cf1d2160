//! Opens list columns: groups of `OFFSETS`, `VALUES` and `MASK`, nested to any depth (HEP001 July, "List columns").

use std::sync::Arc;

use arrow_schema::DataType;

use super::declared;
use crate::catalogue::{Attribute, Class, Dataset, Group, Object, ObjectId, join};
use crate::dialects::attributes::text;
use crate::dialects::datasets;
use crate::dialects::hep001::members::is_list;
use crate::dialects::hep001::names::{ARROW_TYPE, STRINGS_CLASS};
use crate::dialects::hep001::parts::TableGroup;
use crate::dialects::hep001::rules;
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Rows, Tally};
use crate::table::{JsonRows, ListRows, NestedJson, Rule, StringRows, Unreadable};

/// Deepest nesting of lists to follow; each level costs a request to the worker.
const MOST_LEVELS: usize = 32;

/// An opened list column: its top level and everything below that.
pub(super) struct ListColumn {
    path: String,
    offsets: Arc<dyn Rows>,
    values: Arc<dyn Rows>,
    mask: Option<Arc<dyn Rows>>,
    /// Oddities counted in parts of the column, by path.
    pub below: Below,
}

/// Oddities counted in the datasets that serve a column, by path.
pub(in crate::dialects::hep001) type Below = Vec<(String, Arc<Tally>)>;

/// Why lists cannot be read: the rule that they break, and the reason.
type Broken = (&'static Rule, Unreadable);

impl ListColumn {
    /// Number of rows according to the offsets.
    pub fn entries(&self) -> u64 {
        self.offsets.len().saturating_sub(1)
    }

    /// At most `len` rows: lists, or texts, bytes or JSON values if the attribute `arrow_type` names such a type.
    pub fn rows(&self, len: u64, arrow_type: Option<&str>, tally: &Arc<Tally>) -> Arc<dyn Rows> {
        let (path, tally) = (self.path.clone(), tally.clone());
        let (offsets, values, mask) = (self.offsets.clone(), self.values.clone(), self.mask.clone());
        let is_bytes = *values.data_type() == DataType::UInt8 && !values.nullable();
        match arrow_type {
            Some("utf8") if is_bytes => Arc::new(StringRows::new(path, offsets, values, mask, len, tally)),
            Some("binary") if is_bytes => Arc::new(StringRows::new(path, offsets, values, mask, len, tally).as_bytes()),
            Some(name) if let Some(json) = NestedJson::named(name).filter(|_| is_bytes) => {
                let texts = StringRows::new(path.clone(), offsets, values, mask, len, tally);
                Arc::new(JsonRows::new(path, texts, json))
            }
            _ => Arc::new(ListRows::new(path, offsets, values, mask, len, tally)),
        }
    }
}

/// Opens a list column group.
///
/// # Errors
/// Why its lists cannot be read. The column is then listed, but unreadable.
pub(super) fn open(
    parts: &mut TableGroup<'_>,
    path: &str,
    id: ObjectId,
    attributes: &[Attribute],
    interrupt: &Interrupt,
) -> Result<ListColumn, Unreadable> {
    level(parts, path, id, attributes, 0, interrupt).map_err(|(rule, reason)| {
        parts.find(path, rule, &*reason);
        reason
    })
}

fn level(
    parts: &mut TableGroup<'_>,
    path: &str,
    id: ObjectId,
    attributes: &[Attribute],
    depth: usize,
    interrupt: &Interrupt,
) -> Result<ListColumn, Broken> {
    let broken = |reason: Unreadable| (&rules::LIST_MEMBERS, reason);
    if depth >= MOST_LEVELS {
        return Err(broken(format!("lists nested deeper than {MOST_LEVELS}").into()));
    }
    match text(attributes, "KIND").as_deref() {
        Some("OFFSETS") => {}
        Some(other) => return Err((&rules::LIST_KIND_UNKNOWN, format!("KIND {other:?} is not known").into())),
        None => return Err((&rules::LIST_KIND, "no KIND attribute".into())),
    }
    let mut below = Below::new();
    let group = parts.file.group(id, interrupt).map_err(|error| broken(error.into()))?;
    let offsets = offsets(parts, path, &group).map_err(broken)?;
    let mask = mask(parts, path, &group, &mut below).map_err(broken)?;
    let member = join(path, b"VALUES");
    let mut tally = || {
        let tally = Arc::<Tally>::default();
        below.push((member.clone(), tally.clone()));
        tally
    };
    let values: Arc<dyn Rows> = match group.link(b"VALUES").and_then(|link| link.target.object()) {
        Some(Object::Dataset(dataset)) => leaf(parts, &member, dataset, &tally()).map_err(broken)?,
        Some(Object::Group { id, attributes, .. }) if is_list(attributes) => {
            let tally = tally();
            let mut nested = level(parts, &member, *id, attributes, depth + 1, interrupt)?;
            below.append(&mut nested.below);
            nested.rows(u64::MAX, text(attributes, ARROW_TYPE).as_deref(), &tally)
        }
        Some(Object::Group { id, attributes, .. }) if text(attributes, "CLASS").as_deref() == Some(STRINGS_CLASS) => {
            let tally = tally();
            strings(parts, &member, *id, (&tally, &mut below), interrupt).map_err(broken)?
        }
        Some(_) => return Err(broken("VALUES is neither a dataset, a list nor STRING_VALUES".into())),
        None => return Err(broken("no VALUES".into())),
    };
    Ok(ListColumn { path: path.to_owned(), offsets, values, mask, below })
}

fn member<'g>(group: &'g Group, name: &str) -> Result<&'g Arc<Dataset>, Unreadable> {
    match group.link(name.as_bytes()).and_then(|link| link.target.object()) {
        Some(Object::Dataset(dataset)) if dataset.shape.len() == 1 && !dataset.null => Ok(dataset),
        Some(_) => Err(format!("{name} is no dataset of rank 1").into()),
        None => Err(format!("no {name}").into()),
    }
}

fn offsets(parts: &TableGroup<'_>, path: &str, group: &Group) -> Result<Arc<dyn Rows>, Unreadable> {
    let dataset = member(group, "OFFSETS")?;
    if !matches!(dataset.datatype.class, Class::Integer { .. }) || dataset.datatype.size > 8 {
        return Err("OFFSETS is not of integers".into());
    }
    let opened = datasets::open(parts.file, &join(path, b"OFFSETS"), dataset)?;
    Ok(Arc::new(DatasetRows::plain(opened, u64::MAX)))
}

fn mask(
    parts: &TableGroup<'_>,
    path: &str,
    group: &Group,
    below: &mut Below,
) -> Result<Option<Arc<dyn Rows>>, Unreadable> {
    if group.link(b"MASK").is_none() {
        return Ok(None);
    }
    let dataset = member(group, "MASK")?;
    if !dataset.datatype.is_boolean() {
        return Err("MASK is not of booleans".into());
    }
    let (path, tally) = (join(path, b"MASK"), Arc::<Tally>::default());
    let opened = datasets::open(parts.file, &path, dataset)?;
    below.push((path, tally.clone()));
    Ok(Some(Arc::new(DatasetRows::new(opened, u64::MAX, FillTest::none(), tally))))
}

fn leaf(
    parts: &mut TableGroup<'_>,
    path: &str,
    dataset: &Arc<Dataset>,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    if dataset.shape.len() != 1 || dataset.null {
        return Err(format!("VALUES has rank {}, not 1", dataset.shape.len()).into());
    }
    if dataset.datatype.is_variable() {
        parts.find(path, &rules::LIST_VARIABLE, "a variable-length datatype");
    }
    let arrow_type = text(&dataset.attributes, ARROW_TYPE).unwrap_or_default();
    let booleans = declared::as_booleans(dataset, &arrow_type);
    let shown = booleans.as_ref().unwrap_or(dataset);
    let rows = datasets::rows(parts.file, path, shown, u64::MAX, &parts.missing(dataset), tally)?;
    let shows_times = parts.file.store().shows_times();
    Ok(declared::typed_item(path, &rows, &arrow_type, shows_times).unwrap_or(rows))
}

fn strings(
    parts: &TableGroup<'_>,
    path: &str,
    id: ObjectId,
    (tally, below): (&Arc<Tally>, &mut Below),
    interrupt: &Interrupt,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let group = parts.file.group(id, interrupt)?;
    let offsets = offsets(parts, path, &group)?;
    let mask = mask(parts, path, &group, below)?;
    let dataset = member(&group, "CHARS")?;
    if !matches!(dataset.datatype.class, Class::Integer { signed: false, .. }) || dataset.datatype.size != 1 {
        return Err("CHARS is not of one-byte unsigned integers".into());
    }
    let characters = datasets::open(parts.file, &join(path, b"CHARS"), dataset)?;
    let characters = Arc::new(DatasetRows::plain(characters, u64::MAX));
    Ok(Arc::new(StringRows::new(path.to_owned(), offsets, characters, mask, u64::MAX, tally.clone())))
}
