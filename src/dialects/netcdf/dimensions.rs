//! Finds the dimensions of a group's variables, and the tables on them: one for each dimension that has variables of
//! rank 1.
//!
//! A dimension is the scale that stands for it, wherever that scale lies: two scales of equal length are two
//! dimensions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::columns::{is_character, is_text};
use super::conventions::shown_name;
use super::rules;
use crate::catalogue::{Dataset, Group, Object, ObjectId, Target, attribute, join};
use crate::dialects::attributes::{integer, integers, text};
use crate::dialects::{compound, scales};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Finding, Unreadable};

/// Most elements along the second axis of a variable that can become a column of lists.
const MOST_PLACES: u64 = 64;

/// Most columns in a table: each takes about 2 KiB when opened.
pub(super) const MOST_COLUMNS: usize = 1 << 17;

/// Most scales outside of a group that its variables may refer to.
const MOST_ELSEWHERE: usize = 1024;

/// Deepest nesting of groups in which to look for a scale.
const DEEPEST: usize = 64;

/// Most findings on the dimensions of a group; any further ones are only counted.
const MOST_FINDINGS: usize = 100;

/// The variables of a group that share their first dimension, as columns of a table.
#[derive(Debug)]
pub(super) struct RowSet {
    /// Identity of the scale that stands for the dimension.
    pub dimension: ObjectId,
    /// The variable that labels the dimension, in this group or in one above. `None`: none does.
    pub label: Option<CoordinateVariable>,
    /// The columns without the label, in order: the names of their links, and the variables.
    pub columns: Vec<(BString, Arc<Dataset>)>,
    /// Number of rows: the length of the longest variable.
    pub rows: u64,
}

/// The variable that labels a dimension.
#[derive(Clone, Debug)]
pub(super) struct CoordinateVariable {
    /// Name of the variable's link in the group. `None`: it lies outside of the group.
    pub link: Option<BString>,
    /// The variable.
    pub dataset: Arc<Dataset>,
}

/// A variable of a group.
#[derive(Debug)]
pub(super) struct Variable<'a> {
    /// Name of the variable's link.
    pub link: &'a BString,
    /// The variable.
    pub dataset: &'a Arc<Dataset>,
    /// The dimension of each axis. `None`: the axis has none.
    pub axes: Vec<Option<ObjectId>>,
}

/// The dimensions of a group's variables, and the tables on them.
#[derive(Debug, Default)]
pub(super) struct Dimensions<'a> {
    /// The tables, in the order in which their dimensions occur.
    pub tables: Vec<RowSet>,
    /// All variables that have axes.
    pub variables: Vec<Variable<'a>>,
    /// The variables of the group that label a dimension, by dimension.
    pub labels: HashMap<ObjectId, CoordinateVariable>,
    /// Whether there is only one table, and it has all variables of the group that have rows.
    pub is_one: bool,
    /// The rules that the dimensions break, and what was found.
    pub findings: Vec<Finding>,
}

impl RowSet {
    /// The dimension of the row set, as a slice.
    pub fn dimensions(&self) -> &[ObjectId] {
        std::slice::from_ref(&self.dimension)
    }

    /// Makes the column that has the dimension's name the label. It takes the place of a variable in a group above.
    fn take_label(&mut self, names: &mut DimensionNames<'_>) {
        let name = names.name(self.dimension);
        if let Some(at) =
            self.columns.iter().position(|(link, dataset)| dataset.shape.len() == 1 && shown_name(link) == name)
        {
            let (link, dataset) = self.columns.remove(at);
            self.label = Some(CoordinateVariable { link: Some(link), dataset });
        }
    }
}

/// A group whose dimensions are looked for.
#[derive(Clone, Copy)]
pub(super) struct DimensionScope<'a> {
    pub file: &'a Arc<File>,
    pub path: &'a str,
    pub group: &'a Group,
    pub interrupt: &'a Interrupt,
}

/// A scale to which an axis refers.
#[derive(Clone, Debug)]
struct Scale {
    /// Name of the scale's link in the group. `None`: it lies elsewhere.
    link: Option<BString>,
    dataset: Arc<Dataset>,
    is_pure: bool,
}

impl<'a> DimensionScope<'a> {
    /// Whether any variable of the group names its dimensions.
    pub fn has_any(&self) -> bool {
        datasets(self.group).any(|(_, dataset)| is_variable(dataset))
    }

    /// Finds the dimensions of the group's variables.
    pub fn dimensions(&self) -> Dimensions<'a> {
        let mut scales =
            Scales { place: *self, known: HashMap::new(), elsewhere: 0, numbers: None, failed: Vec::new(), beyond: 0 };
        scales.of_group();
        let (mut sets, mut places): (Vec<RowSet>, HashMap<ObjectId, usize>) = Default::default();
        let (mut all, mut taken, mut on) = (0, 0, Vec::new());
        // A dimension has no rows if only texts lie on it, along their characters.
        let others: HashSet<ObjectId> = datasets(self.group)
            .filter(|(_, dataset)| !is_character(dataset) && !scales::is_pure_dimension(dataset))
            .flat_map(|(_, dataset)| scales::attached(dataset, 0).or_else(|| own_scale(dataset)))
            .chain(datasets(self.group).filter(|(_, one)| is_text(one)).filter_map(|(_, one)| scales::attached(one, 0)))
            .collect();
        for (name, dataset) in datasets(self.group) {
            if self.interrupt.is_raised() {
                break;
            }
            if dataset.shape.is_empty() || scales::is_pure_dimension(dataset) {
                continue;
            }
            let axes = scales.axes(name, dataset);
            let first = axes.first().copied().flatten();
            on.push(Variable { link: name, dataset, axes: axes.clone() });
            let is_characters = is_character(dataset) && dataset.shape.len() == 1;
            if is_characters && first.is_some_and(|first| !others.contains(&first)) {
                continue;
            }
            all += 1;
            let Some(first) = first.filter(|first| scales.is_column(dataset, *first, &axes)) else { continue };
            taken += 1;
            let at = *places.entry(first).or_insert_with(|| {
                sets.push(RowSet { dimension: first, label: None, columns: Vec::new(), rows: 0 });
                sets.len() - 1
            });
            let set = &mut sets[at];
            set.rows = set.rows.max(dataset.shape.first().copied().unwrap_or(0));
            let labels = dataset.shape.len() == 1 || is_text(dataset);
            if dataset.id == first && labels && set.label.is_none() {
                set.label = Some(CoordinateVariable { link: Some(name.clone()), dataset: dataset.clone() });
            } else {
                set.columns.push((name.clone(), dataset.clone()));
            }
        }
        let mut names = DimensionNames::of(*self);
        sets.iter_mut().filter(|set| set.label.is_none()).for_each(|set| set.take_label(&mut names));
        let labels = sets.iter().filter_map(|set| Some((set.dimension, set.label.clone()?))).collect();
        // A label alone makes no table.
        let tables = sets.into_iter().filter(|set| !set.columns.is_empty());
        let (tables, wide): (Vec<RowSet>, Vec<_>) = tables.partition(|set| set.columns.len() <= MOST_COLUMNS);
        let mut findings = scales.findings();
        let names = self.names(wide.iter().map(RowSet::dimensions));
        findings.extend(wide.iter().zip(names).map(|(set, name)| {
            let found = format!("{} variables lie on {name}: they make no table", set.columns.len());
            Finding::new(self.path, &rules::COLUMNS, found)
        }));
        let in_tables = tables.iter().map(|set| set.columns.len() + usize::from(set.label.is_some())).sum::<usize>();
        let is_one = tables.len() == 1 && all == taken && in_tables == taken;
        let tables = tables.into_iter().map(|set| scales.labelled(set)).collect();
        Dimensions { tables, variables: on, labels, is_one, findings }
    }

    /// Names the tables on these dimensions, in the same order.
    pub fn names<'d>(&self, tables: impl Iterator<Item = &'d [ObjectId]>) -> Vec<BString> {
        let (mut names, mut known) = (DimensionNames::of(*self), HashSet::new());
        let distinct = tables.map(|dimensions| {
            let name = BString::from(bstr::join(",", dimensions.iter().map(|dimension| names.name(*dimension))));
            let mut shown = name.clone();
            for number in 2_u64.. {
                if known.insert(shown.clone()) {
                    break;
                }
                shown = format!("{name} ({number})").into();
            }
            shown
        });
        distinct.collect()
    }

    /// Finds the path and the name of a dataset in this group's ancestors. `None`: none of them holds it.
    pub fn find(&self, id: ObjectId) -> Option<(String, BString)> {
        found_above(&self.above(), id)
    }

    /// Lists the groups above this one, from the root down, with their paths. A name that is not UTF-8 ends the search.
    fn above(&self) -> Vec<(String, Group)> {
        let (mut found, mut path) = (Vec::new(), "/".to_owned());
        let mut id = self.file.info().root;
        let parts: Vec<&str> = self.path.split('/').filter(|part| !part.is_empty()).take(DEEPEST).collect();
        for part in parts {
            let Ok(group) = self.file.group(id, self.interrupt) else { break };
            let below = group.link(part.as_bytes()).map(|link| link.target.clone());
            let here = std::mem::take(&mut path);
            path = join(&here, part.as_bytes());
            found.push((here, group));
            match below {
                Some(Target::Hard(Object::Group { id: below, .. })) => id = below,
                _ => break,
            }
        }
        found
    }
}

/// Finds the nearest of nested groups that holds a dataset. Returns the path and the name of the dataset.
fn found_above(above: &[(String, Group)], id: ObjectId) -> Option<(String, BString)> {
    above.iter().rev().find_map(|(path, group)| {
        let (name, _) = datasets(group).find(|(_, dataset)| dataset.id == id)?;
        Some((join(path, name), name.clone()))
    })
}

/// Names of dimensions, each looked up once.
pub(super) struct DimensionNames<'a> {
    place: DimensionScope<'a>,
    known: HashMap<ObjectId, BString>,
    /// The groups above, once they are needed.
    above: Option<Vec<(String, Group)>>,
}

impl<'a> DimensionNames<'a> {
    /// Prepares to name dimensions as they are seen from a group.
    pub fn of(place: DimensionScope<'a>) -> Self {
        let own = datasets(place.group).filter(|(_, dataset)| scales::is_scale(dataset));
        let known = own.map(|(name, dataset)| (dataset.id, name.clone())).collect();
        Self { place, known, above: None }
    }

    /// The name of a dimension: that of its link in this group or in one above, or else the one that the scale itself
    /// states.
    pub fn name(&mut self, id: ObjectId) -> BString {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let above = self.above.get_or_insert_with(|| self.place.above());
        let name = found_above(above, id).map(|(_, name)| name).unwrap_or_else(|| {
            let scale = self.place.file.object(id, self.place.interrupt).ok();
            let stated = scale.and_then(|scale| text(scale.attributes(), "NAME"));
            let stated = stated.filter(|name| !name.is_empty() && !name.starts_with("This is a netCDF dimension"));
            stated.unwrap_or_else(|| "dimension".into()).into()
        });
        self.known.insert(id, name.clone());
        name
    }
}

/// The scales to which the axes of a group's variables refer.
struct Scales<'a> {
    place: DimensionScope<'a>,
    /// Scales looked up so far; `None`: not a dimension scale.
    known: HashMap<ObjectId, Option<Scale>>,
    elsewhere: usize,
    /// The dimensions of the group by netCDF's numbers for them, once they are needed.
    numbers: Option<HashMap<i128, ObjectId>>,
    failed: Vec<Finding>,
    /// Number of findings that were only counted.
    beyond: usize,
}

impl<'a> Scales<'a> {
    fn of_group(&mut self) {
        for (name, dataset) in datasets(self.place.group).filter(|(_, dataset)| scales::is_scale(dataset)) {
            let is_pure = scales::is_pure_dimension(dataset);
            let scale = Scale { link: Some(name.clone()), dataset: dataset.clone(), is_pure };
            self.known.entry(dataset.id).or_insert(Some(scale));
        }
    }

    /// Finds the dimension of each axis of a variable.
    fn axes(&mut self, name: &BString, dataset: &Dataset) -> Vec<Option<ObjectId>> {
        // A dataset without dimensions makes no column, however many axes it has.
        let rank = dataset.shape.len().min(32);
        if !is_variable(dataset) {
            return vec![None; rank];
        }
        (0..rank)
            .map(|axis| {
                if let Some(attached) = scales::attached(dataset, axis) {
                    return self.scale(name, attached).is_some().then_some(attached);
                }
                if axis == 0
                    && let Some(own) = own_scale(dataset)
                {
                    return Some(own);
                }
                // A coordinate variable of several axes refers to the dimensions of the others by number.
                let number =
                    attribute(&dataset.attributes, "_Netcdf4Coordinates").and_then(integers)?.get(axis).copied()?;
                self.numbered(number)
            })
            .collect()
    }

    fn numbered(&mut self, number: i128) -> Option<ObjectId> {
        let group = self.place.group;
        let numbers = self.numbers.get_or_insert_with(|| {
            let scales = datasets(group).filter(|(_, dataset)| scales::is_scale(dataset));
            scales.filter_map(|(_, one)| Some((integer(&one.attributes, "_Netcdf4Dimid")?, one.id))).collect()
        });
        numbers.get(&number).copied()
    }

    /// Looks up a scale in this group or elsewhere. `None`: not a dimension scale.
    fn scale(&mut self, name: &BString, id: ObjectId) -> Option<&Scale> {
        if !self.known.contains_key(&id) {
            let found = self.look(id);
            if let Err(found) = &found {
                if self.failed.len() < MOST_FINDINGS {
                    self.failed.push(Finding::new(join(self.place.path, name), &rules::DIMENSIONS, found.clone()));
                } else {
                    self.beyond += 1;
                }
            }
            self.known.insert(id, found.ok());
        }
        self.known.get(&id)?.as_ref()
    }

    fn look(&mut self, id: ObjectId) -> Result<Scale, Unreadable> {
        if id.address == 0 {
            return Err("it is a null reference".into());
        }
        self.elsewhere += 1;
        if self.elsewhere > MOST_ELSEWHERE {
            return Err(format!("more than {MOST_ELSEWHERE} scales outside of the group").into());
        }
        match self.place.file.object(id, self.place.interrupt) {
            Ok(Object::Dataset(dataset)) if scales::is_scale(&dataset) => {
                let is_pure = scales::is_pure_dimension(&dataset);
                Ok(Scale { link: None, dataset, is_pure })
            }
            Ok(Object::Dataset(_)) => Err("it leads to a dataset that is no scale".into()),
            Ok(Object::Group { .. }) => Err("it leads to a group".into()),
            Ok(Object::Datatype { .. }) => Err("it leads to a datatype".into()),
            Ok(Object::Unreadable { reason, .. }) => Err(reason.into()),
            Err(error) => Err(format!("it leads nowhere: {error}").into()),
        }
    }

    /// Whether a variable is a column of the table on its first dimension.
    fn is_column(&self, dataset: &Dataset, first: ObjectId, axes: &[Option<ObjectId>]) -> bool {
        if dataset.null || compound::is_record(dataset) {
            return false;
        }
        match (dataset.shape.as_slice(), axes) {
            ([_], _) => true,
            ([_, _], _) if is_text(dataset) => true,
            ([_, 1..=MOST_PLACES], [_, second]) => {
                // If the second axis is labelled, the variable is a grid.
                let scale = second.and_then(|second| self.known.get(&second)?.as_ref());
                *second != Some(first) && scale.is_none_or(|scale| scale.is_pure)
            }
            _ => false,
        }
    }

    /// Gives a row set the label of its dimension, if that is a variable outside of the group.
    fn labelled(&self, set: RowSet) -> RowSet {
        let scale = self.known.get(&set.dimension).and_then(Option::as_ref).filter(|_| set.label.is_none());
        match scale {
            Some(Scale { is_pure: false, link, dataset, .. }) if dataset.shape.len() == 1 && !dataset.null => {
                let rows = set.rows.max(dataset.shape.first().copied().unwrap_or(0));
                let label = Some(CoordinateVariable { link: link.clone(), dataset: dataset.clone() });
                RowSet { label, rows, ..set }
            }
            _ => set,
        }
    }

    fn findings(&mut self) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut self.failed);
        if self.beyond > 0 {
            findings.push(Finding::new(
                self.place.path,
                &rules::DIMENSIONS,
                format!("{} more variables break it", self.beyond),
            ));
        }
        findings
    }
}

/// The datasets of a group to which hard links lead, with their names.
pub(super) fn datasets(group: &Group) -> impl Iterator<Item = (&BString, &Arc<Dataset>)> {
    group.links.iter().filter_map(|link| match &link.target {
        Target::Hard(Object::Dataset(dataset)) => Some((&link.name, dataset)),
        _ => None,
    })
}

/// Whether a dataset states dimensions of its axes, or is itself a scale.
pub(super) fn is_variable(dataset: &Dataset) -> bool {
    attribute(&dataset.attributes, "DIMENSION_LIST").is_some() || scales::is_scale(dataset)
}

/// The dimension of a scale's own first axis, which is the scale itself. `None`: not a scale.
fn own_scale(dataset: &Dataset) -> Option<ObjectId> {
    scales::is_scale(dataset).then_some(dataset.id)
}

/// Names columns: netCDF's prefix is dropped, unless the name without it is taken.
pub(super) fn column_names(links: &[&BString]) -> Vec<BString> {
    let plain: HashSet<&[u8]> = links.iter().map(|name| name.as_bytes()).collect();
    links
        .iter()
        .map(|link| {
            let shown = shown_name(link);
            if shown == **link || plain.contains(shown.as_bytes()) { (*link).clone() } else { shown }
        })
        .collect()
}
