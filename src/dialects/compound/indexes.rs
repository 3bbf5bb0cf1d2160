//! Lists the search indexes of PyTables: a group for each indexed column, in a group beside the table. They are not
//! trusted yet.
//!
//! An index keeps sorted slices of values, each value with its origin. In a full index the origin is a row, so searches
//! find the rows of a value: one search if the slices are also sorted among themselves (completely sorted), else one
//! for each slice. In all other kinds the origin is a bucket of rows. If the slices are runs of rows, their bounds
//! still exclude some rows.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::reading::{part_of, read_as};
use super::recognition::System;
use super::rules;
use crate::catalogue::{Class, Dataset, Datatype, Group, Object, ObjectId, join};
use crate::dialects::attributes::{integer, said, text, unsigned};
use crate::dialects::{Site, datasets};
use crate::indexes::order::has_order;
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Rows};
use crate::table::{
    AbsenceReason, AbsentIndex, BoundsRules, ChainRows, Column, Finding, IndexContent, IndexForm, PartRows, Rule,
    SearchIndex, Unreadable, ValueRules,
};

static VALUES: ValueRules = ValueRules {
    elements: &rules::INDEX_ELEMENTS,
    distinct: &rules::INDEX_DISTINCT,
    values: &rules::INDEX_VALUE,
    order: &rules::INDEX_ORDER,
};

static BOUNDS: BoundsRules = BoundsRules { bounds: &rules::INDEX_BOUNDS };

/// Microseconds in a second: PyTables indexes times in seconds, hepfs shows them in microseconds.
const PER_SECOND: f64 = 1e6;

/// A field that may have an index: a column, or a field inside one.
pub(in crate::dialects) struct Covered<'a> {
    pub column: &'a Column,
    /// Names of the fields that lead from the column to the indexed one; empty if the column itself is indexed.
    pub below: Vec<BString>,
    /// The values as stored, none of them null, or why they cannot be read.
    pub values: Result<Arc<dyn Rows>, Unreadable>,
    /// Why the values as shown sort differently from the index. `None`: they do not.
    pub reordered: Option<&'static str>,
    /// Makes the test for missing elements in a dataset of a given type.
    pub missing: Box<dyn Fn(&Datatype) -> FillTest + 'a>,
}

/// Finds the field at a path of names.
pub(in crate::dialects) type Find<'a> = dyn Fn(&[BString]) -> Option<Covered<'a>> + 'a;

/// A table whose search indexes are to be listed.
pub(in crate::dialects) struct Indexed<'a> {
    pub site: &'a Site<'a>,
    pub dataset: &'a Dataset,
    pub find: &'a Find<'a>,
    pub interrupt: &'a Interrupt,
}

impl<'b> Indexed<'b> {
    /// Lists the search indexes in the group `group` at `path`.
    pub fn all(&self, path: &str, group: ObjectId, findings: &mut Vec<Finding>) -> Vec<SearchIndex> {
        let mut found = Vec::new();
        self.below(path, group, &[], (&mut found, findings));
        found
    }

    fn below(
        &self,
        path: &str,
        group: ObjectId,
        fields: &[BString],
        (found, findings): (&mut Vec<SearchIndex>, &mut Vec<Finding>),
    ) {
        let group = match self.site.file.group(group, self.interrupt) {
            Ok(group) => group,
            Err(error) => {
                findings.push(Finding::new(path, &rules::INDEX_LISTING, error.to_string()));
                return;
            }
        };
        for link in &group.links {
            let Some(Object::Group { id, attributes, .. }) = link.target.object() else { continue };
            let path = join(path, &link.name);
            let fields = [fields, std::slice::from_ref(&link.name)].concat();
            match (text(attributes, "CLASS").as_deref(), (self.find)(&fields)) {
                (Some("INDEX"), Some(covered)) => match self.site.file.group(*id, self.interrupt) {
                    Ok(group) => found.push(self.one(path, *id, &group, &covered)),
                    Err(error) => {
                        findings.push(Finding::new(path, &rules::INDEX_LISTED, error.to_string()));
                    }
                },
                // The groups of indexes are nested as the fields are.
                (Some("DINDEX"), Some(_)) => self.below(&path, *id, &fields, (&mut *found, &mut *findings)),
                // A dialect need not show every indexed field as a column.
                (Some("INDEX" | "DINDEX"), None) if !self.has_field(&fields) => {
                    let rule = &rules::INDEX_NAME;
                    findings.push(Finding::new(path, rule, "the table has no such column"));
                }
                _ => {}
            }
        }
    }

    /// Whether the dataset has a field at a path of names.
    fn has_field(&self, names: &[BString]) -> bool {
        let found = names.iter().try_fold(&self.dataset.datatype, |datatype, name| match &datatype.class {
            Class::Compound { fields } => fields.iter().find(|field| field.name == *name).map(|field| &field.datatype),
            _ => None,
        });
        found.is_some()
    }

    fn one(&self, path: String, id: ObjectId, group: &Group, covered: &Covered<'b>) -> SearchIndex {
        let parts = Parts { indexed: self, path: &path, group, covered };
        let indices = parts.dataset("indices");
        let bytes = ["sorted", "indices", "sortedLR", "indicesLR"].iter().filter_map(|name| {
            let dataset = parts.dataset(name)?;
            dataset.len()?.checked_mul(dataset.datatype.size)
        });
        let names = [&[covered.column.name.clone()][..], &covered.below].concat();
        let name = BString::from(names.join(".".as_bytes()));
        SearchIndex {
            kind: indices.and_then(|indices| kind(&indices.datatype)).map(str::to_owned),
            revision: "PyTables",
            columns: vec![name.clone()],
            shape: indices.map(|indices| indices.shape.clone()).unwrap_or_default(),
            bytes: bytes.fold(0, u64::saturating_add),
            source_generation: None,
            source_rows: None,
            attributes: group.attributes.clone(),
            form: parts.form(id, name).map(Arc::new),
            path: path.clone(),
        }
    }
}

/// PyTables' name for the kind of an index whose dataset `indices` has this type. `None`: PyTables has no such kind.
fn kind(indices: &Datatype) -> Option<&'static str> {
    let Class::Integer { signed: false, .. } = indices.class else { return None };
    Some(match indices.size {
        1 => "ultralight",
        2 => "light",
        4 => "medium",
        8 => "full",
        _ => return None,
    })
}

type Checked<T> = Result<T, AbsentIndex>;

/// Fails for breaking `rule` unless `holds`.
fn check(holds: bool, rule: &'static Rule, found: impl FnOnce() -> String) -> Checked<()> {
    if holds { Ok(()) } else { Err(AbsentIndex::new(rule, found())) }
}

/// An index under examination.
struct Parts<'a, 'b> {
    indexed: &'a Indexed<'b>,
    path: &'a str,
    group: &'a Group,
    covered: &'a Covered<'b>,
}

impl<'a> Parts<'a, '_> {
    fn dataset(&self, name: &str) -> Option<&'a Arc<Dataset>> {
        self.group.link(name.as_bytes())?.target.dataset()
    }

    fn part(&self, name: &str) -> Checked<&'a Arc<Dataset>> {
        let rule = &rules::INDEX_PARTS;
        self.dataset(name).ok_or_else(|| AbsentIndex::new(rule, format!("no dataset {name}")))
    }

    /// Checks the rules in turn, and fails for the first that is broken.
    fn form(&self, id: ObjectId, column: BString) -> Checked<IndexForm> {
        let attributes = &self.group.attributes;
        let unused = |rule: &'static Rule, found: String| AbsentIndex {
            reason: AbsenceReason::Unused,
            ..AbsentIndex::new(rule, found)
        };
        let version = text(attributes, "VERSION").unwrap_or_default();
        if version != "2.1" {
            return Err(unused(&rules::INDEX_VERSION, format!("{version:?}")));
        }
        let dirty = integer(attributes, "DIRTY").unwrap_or(0);
        check(dirty == 0, &rules::INDEX_DIRTY, || format!("{dirty}"))
            .map_err(|absent| AbsentIndex { reason: AbsenceReason::Outdated, ..absent })?;
        let [sorted, indices, indices_rest] = [self.part("sorted")?, self.part("indices")?, self.part("indicesLR")?];
        let kind = kind(&indices.datatype).ok_or_else(|| {
            let found = format!("elements of {} bytes", indices.datatype.size);
            AbsentIndex::new(&rules::INDEX_ROWS_TYPE, found)
        })?;
        let shown = self.shown()?;
        if !has_order(shown.data_type()) {
            let found = format!("shown as {}", shown.data_type());
            return Err(unused(&rules::INDEX_KEYS, found));
        }
        if let Some(reason) = self.covered.reordered {
            return Err(unused(&rules::INDEX_KEYS, reason.into()));
        }
        let values = self.covered.values.clone().map_err(|reason| AbsentIndex::new(&rules::INDEX_COLUMN, reason))?;
        let rows = values.len();
        // The number of slices, and of values in each.
        let [slices, slice] = indices.shape[..] else {
            return Err(AbsentIndex::new(&rules::INDEX_RANK, format!("a shape of {:?}", indices.shape)));
        };
        let stated = unsigned(attributes, "slicesize");
        check(slice > 0 && stated == Some(slice), &rules::INDEX_SLICES, || {
            format!("slicesize is {}, indices of shape {:?}", said(stated), indices.shape)
        })?;
        let rest = unsigned(&indices_rest.attributes, "nelements");
        let room = indices_rest.len().unwrap_or(0);
        let rest = rest.filter(|rest| *rest <= room && *rest < slice).ok_or_else(|| {
            let found = format!("nelements is {}, {room} elements", said(rest));
            AbsentIndex::new(&rules::INDEX_REST, found)
        })?;
        let in_slices = slices.checked_mul(slice);
        check(in_slices.and_then(|rows| rows.checked_add(rest)) == Some(rows), &rules::INDEX_ROWS, || {
            format!("{slices} slices of {slice} rows and {rest} more, the table has {rows}")
        })
        .map_err(|absent| AbsentIndex { reason: AbsenceReason::Stale, ..absent })?;
        let in_slices = in_slices.unwrap_or(0);
        let optlevel = integer(attributes, "optlevel");
        let form = |kind, chunk, shown: Arc<dyn Rows>| IndexForm {
            path: self.path.to_owned(),
            objects: [id, self.indexed.dataset.id],
            file: self.indexed.site.file.opening().clone(),
            column,
            is_part: !self.covered.below.is_empty(),
            shown,
            learner: None,
            values: values.clone(),
            labels: None,
            nan_is_missing: false,
            chunk,
            kind,
        };
        if kind == "full" {
            let reduction = unsigned(attributes, "reduction");
            check(reduction == Some(1), &rules::INDEX_REDUCTION, || said(reduction))?;
            let rule = &rules::INDEX_VALUES;
            let [sorted_rest, indices_rest] = [self.part("sortedLR")?, indices_rest];
            check(sorted.shape == indices.shape && sorted_rest.len().is_some_and(|len| len >= rest), rule, || {
                format!("{:?} and {:?} for {:?} and {rest}", sorted.shape, sorted_rest.shape, indices.shape)
            })?;
            let same = indices_rest.datatype == indices.datatype;
            check(same, &rules::INDEX_REST_TYPE, || "another one".into())?;
            let order = [self.rows("indices", indices, in_slices)?, self.rows("indicesLR", indices_rest, rest)?];
            let parts = [self.rows("sorted", sorted, in_slices)?, self.rows("sortedLR", sorted_rest, rest)?];
            let order = ChainRows::new(order.into()).ok_or_else(|| AbsentIndex::new(rule, "several types"))?;
            let values = self.like(parts.into(), values.data_type())?;
            let kind = IndexContent::SortedValues { values, order: Arc::new(order), run: slice, rules: &VALUES };
            return Ok(form(kind, rows.max(1), shown));
        }
        if kind != "ultralight" && optlevel != Some(0) || slices == 0 {
            let found = match slices {
                0 => format!("it does not: the table is too short, with fewer than the {slice} rows of a part of it"),
                _ => format!("it does not: its kind is {kind:?} with optlevel={}", optlevel.unwrap_or(-1)),
            };
            return Err(unused(&rules::INDEX_LEVEL, found));
        }
        let ranges = self.part("ranges")?;
        check(ranges.shape == [slices, 2], &rules::INDEX_RANGES, || {
            format!("a shape of {:?}, {slices} slices", ranges.shape)
        })?;
        let bounds = self.rows("ranges", ranges, 2 * slices)?;
        let kind = IndexContent::Bounds { bounds: self.like(vec![bounds], values.data_type())?, rules: &BOUNDS };
        Ok(form(kind, slice, shown))
    }

    /// Opens the column, or the field inside it, as shown.
    fn shown(&self) -> Checked<Arc<dyn Rows>> {
        let Covered { column, below, .. } = self.covered;
        let rows = column.rows.clone().map_err(|reason| AbsentIndex::new(&rules::INDEX_COLUMN, reason))?;
        if below.is_empty() {
            return Ok(rows);
        }
        let part = PartRows::of(&rows, &below.join(".".as_bytes()));
        part.map(|part| Arc::new(part) as Arc<dyn Rows>)
            .ok_or_else(|| AbsentIndex::new(&rules::INDEX_COLUMN, "a field that conditions cannot name"))
    }

    /// Opens the first `len` elements of a dataset of any rank.
    fn rows(&self, name: &str, dataset: &Dataset, len: u64) -> Checked<Arc<dyn Rows>> {
        let read = part_of(dataset, &read_as(&dataset.datatype, System::PYTABLES), dataset.fill.clone());
        let path = join(self.path, BStr::new(name).as_bytes());
        let opened = datasets::open(self.indexed.site.file, &path, &read)
            .map_err(|reason| AbsentIndex::new(&rules::INDEX_OPENED, format!("{path}: {reason}")))?;
        let is_number = name.starts_with("indices");
        let missing = if is_number { FillTest::none() } else { (self.covered.missing)(&read.datatype) };
        Ok(Arc::new(DatasetRows::new(opened, len, missing, Arc::default())))
    }

    /// Joins parts of an index's values, in the type of the column.
    fn like(&self, parts: Vec<Arc<dyn Rows>>, data_type: &arrow_schema::DataType) -> Checked<Arc<dyn Rows>> {
        use arrow_schema::DataType::{Float64, Int64};
        let chain = ChainRows::new(parts).and_then(|chain| match (&chain.facts().data_type, data_type) {
            (Float64, Int64) => chain.rounded(PER_SECOND),
            (own, wanted) if own == wanted => Some(chain),
            _ => None,
        });
        let rule = &rules::INDEX_TYPE;
        Ok(Arc::new(chain.ok_or_else(|| AbsentIndex::new(rule, format!("the column has {data_type}")))?))
    }
}
