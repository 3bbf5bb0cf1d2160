//! Maps each column of a frame to its field and element, in the order of the frame.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::axis::{Kinds, MOST_LEVELS};
use super::rules;
use super::stored::PandasAttribute;
use crate::catalogue::{Attribute, Class, CompoundField, Datatype, product};
use crate::codec::pickle::{PandasLabel, PickleTree, PickleValue, class_of, label};
use crate::table::{Finding, NameAxis};

/// Most columns to make from array fields whose labels cannot be read. Any further field becomes a column of arrays.
const MOST_UNNAMED: u64 = 10_000;

/// Most bytes of all labels to read.
pub(super) const MOST_NAMES: usize = 64 << 20;
/// Bytes that a label takes besides its text.
const OF_A_NAME: usize = 64;

/// A column of a frame: a field, or an element of one.
#[derive(Clone, Debug)]
pub(super) struct FrameColumn<'a> {
    pub name: String,
    pub field: &'a CompoundField,
    /// Type of the column's values as stored.
    pub datatype: &'a Datatype,
    /// Offset of the column's value in a row, in bytes.
    pub offset: u64,
    /// The column's number in a `ColumnId`: fields count from 1, and elements of array fields follow the last field.
    pub part: u32,
    pub is_label: bool,
    /// Whether the column holds row labels that have no name.
    pub is_nameless: bool,
}

impl<'a> FrameColumn<'a> {
    fn new(name: String, field: &'a CompoundField, (datatype, offset): (&'a Datatype, u64), part: u32) -> Self {
        Self { name, field, datatype, offset, part, is_label: false, is_nameless: false }
    }
}

/// The columns of a frame, row labels first.
pub(super) struct FramePlan<'a> {
    pub columns: Vec<FrameColumn<'a>>,
    /// Name of the field that labels rows, `index`. In a frame that was appended along its columns, `index` holds data,
    /// and `columns` the row labels.
    pub axis: String,
    /// Types of the names of columns. `None`: these are no more than texts.
    pub names: Option<Arc<NameAxis>>,
    /// The frame's description of its fields, if it can be read.
    pub info: Option<PickleTree>,
}

/// A column label: display text and unique key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    is_text: bool,
    /// Whether the label's class is known; otherwise the text is the name of that class.
    is_known: bool,
    shown: String,
}

impl Name {
    fn text(text: impl Into<String>) -> Self {
        Self { is_text: true, is_known: true, shown: text.into() }
    }

    fn of(value: PickleValue<'_>) -> Self {
        match label(value) {
            Some(label) => {
                Self { is_text: matches!(label, PandasLabel::Text(_)), is_known: true, shown: label.to_string() }
            }
            None => Self { is_text: false, is_known: false, shown: class_of(value) },
        }
    }

    /// Reads all labels in a list, of up to `left` bytes: a pickle may repeat one long text very often.
    fn all(list: PickleValue<'_>, left: &mut usize) -> Option<Vec<Self>> {
        let names = list.items()?.map(|label| {
            let name = Self::of(label);
            *left = left.checked_sub(name.shown.len().saturating_add(OF_A_NAME))?;
            Some(name)
        });
        names.collect()
    }
}

/// The attributes from which a plan is being made.
struct Planner<'a, 'b> {
    path: &'b str,
    /// Attributes of the group.
    group: &'b [Attribute],
    /// Attributes of the group's table.
    table: &'b [Attribute],
    axis: String,
    fields: Vec<&'a CompoundField>,
    /// Bytes that labels of fields may still take.
    names_left: usize,
    /// Number of columns without a label that may still be made from array fields.
    unnamed_left: u64,
    findings: &'b mut Vec<Finding>,
}

impl<'a> FramePlan<'a> {
    /// Makes a plan from the attributes of the group and of its table. `fields` are the fields of the table in storage
    /// order. An attribute that cannot be decoded is a finding.
    pub fn new(
        path: &str,
        [group, table]: [&[Attribute]; 2],
        fields: Vec<&'a CompoundField>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let info = PandasAttribute::tree(group, "info");
        let axes = PandasAttribute::tree(group, "index_cols");
        let axis = axes.as_ref().and_then(|axes| axes.root().item(0)?.item(1)?.text()).unwrap_or("index").to_owned();
        let (names_left, unnamed_left) = (MOST_NAMES, MOST_UNNAMED);
        let mut planner = Planner { path, group, table, axis, fields, names_left, unnamed_left, findings };
        if info.as_ref().is_none_or(|info| info.root().entries().is_none()) {
            planner.undecoded("info", "no zones, no name of row labels");
        }
        let values = planner.values();
        let axes = PandasAttribute::tree(group, "non_index_axes");
        let levels = PandasAttribute::tree(group, "levels").filter(|levels| levels.root().items().is_some());
        let columns = planner.ordered(values, axes.as_ref());
        let columns = planner.labelled(columns, levels.as_ref(), info.as_ref());
        let names = axes.as_ref().and_then(|axes| names(axes, levels.as_ref(), info.as_ref()));
        Self { columns, axis: planner.axis, names, info }
    }

    /// The frame's description of a field.
    pub fn about(&self, field: &str) -> Option<PickleValue<'_>> {
        self.info.as_ref()?.root().get(field)
    }
}

impl<'a> Planner<'a, '_> {
    fn undecoded(&mut self, attribute: &str, without: &str) {
        let rule = &rules::ATTRIBUTES;
        self.findings.push(Finding::new(self.path, rule, format!("{attribute} cannot be read: {without}")));
    }

    /// Makes the columns of all value fields, in the order of the fields, each with its label.
    fn values(&mut self) -> Vec<(Name, FrameColumn<'a>)> {
        let names = PandasAttribute::tree(self.group, "values_cols");
        let names = names.as_ref().and_then(|names| {
            let mut met = HashSet::new();
            let names = names.root().items()?.map(|name| name.text());
            let names = names.filter(|name| name.is_none_or(|name| met.insert(name)));
            names.collect::<Option<Vec<&str>>>()
        });
        let fields: Vec<&'a CompoundField> = match names {
            Some(names) => {
                let by_name: HashMap<&[u8], &'a CompoundField> =
                    self.fields.iter().map(|field| (field.name.as_slice(), *field)).collect();
                let found: Vec<_> = names.iter().map(|name| (name, by_name.get(name.as_bytes()).copied())).collect();
                for (name, _) in found.iter().filter(|(_, field)| field.is_none()) {
                    self.undecoded(&format!("values_cols, which names {name:?},"), "there is no such field");
                }
                found.into_iter().filter_map(|(_, field)| field).collect()
            }
            None => {
                self.undecoded("values_cols", "columns are in the order of fields");
                self.fields.iter().copied().filter(|field| field.name != *self.axis).collect()
            }
        };
        // Columns of whole fields have the numbers of the fields; elements of array fields are numbered after the last
        // field.
        let mut next = self.fields.len() as u32 + 1;
        let mut columns = Vec::new();
        for field in fields {
            let number = self.fields.iter().position(|one| std::ptr::eq(*one, field)).unwrap_or(0) as u32 + 1;
            self.parts(field, number, &mut next, &mut columns);
        }
        columns
    }

    /// Makes the columns of a field.
    fn parts(
        &mut self,
        field: &'a CompoundField,
        number: u32,
        next: &mut u32,
        columns: &mut Vec<(Name, FrameColumn<'a>)>,
    ) {
        let name = field.name.to_string();
        let kind = PandasAttribute::tree(self.table, &format!("{name}_kind"));
        let labels = kind.as_ref().and_then(|kind| Name::all(kind.root(), &mut self.names_left));
        if let Some(other) = labels.iter().flatten().find(|label| !label.is_known) {
            self.undecoded(&format!("a label of {name}_kind"), &format!("its column is called {}", other.shown));
        }
        let whole = |shown: Name| {
            let (datatype, offset) = (&field.datatype, field.offset);
            let planned = FrameColumn::new(shown.shown.clone(), field, (datatype, offset), number);
            (shown, planned)
        };
        let count = match &field.datatype.class {
            Class::Array { dims, base } => product(dims).filter(|_| base.size > 0).map(|count| (count, base.as_ref())),
            _ => None,
        };
        match (count, labels) {
            (None, Some(labels)) if labels.len() == 1 => columns.extend(labels.into_iter().map(whole)),
            (None, _) => {
                self.undecoded(&format!("{name}_kind"), "the column is called as its field");
                columns.push(whole(Name::text(name)));
            }
            (Some((count, base)), labels) => {
                let labels = labels.filter(|labels| labels.len() as u64 == count);
                if labels.is_none() {
                    self.undecoded(&format!("{name}_kind"), "columns are numbered");
                }
                if labels.is_none() {
                    let Some(left) = self.unnamed_left.checked_sub(count) else {
                        columns.push(whole(Name::text(name)));
                        return;
                    };
                    self.unnamed_left = left;
                }
                let labels =
                    labels.unwrap_or_else(|| (0..count).map(|at| Name::text(format!("{name}_{at}"))).collect());
                for (at, shown) in (0..).zip(labels) {
                    let offset = field.offset.saturating_add(base.size.saturating_mul(at));
                    let planned = FrameColumn::new(shown.shown.clone(), field, (base, offset), *next);
                    columns.push((shown, planned));
                    *next = next.saturating_add(1);
                }
            }
        }
    }

    /// Puts the columns in the order of the frame. Columns with the same label keep their order.
    fn ordered(
        &mut self,
        columns: Vec<(Name, FrameColumn<'a>)>,
        axes: Option<&PickleTree>,
    ) -> Vec<(Name, FrameColumn<'a>)> {
        let axis = axes.and_then(|axes| Name::all(axes.root().item(0)?.item(1)?, &mut { MOST_NAMES }));
        let Some(axis) = axis else {
            self.undecoded("non_index_axes", "columns are in the order of blocks");
            return columns;
        };
        let mut by_name: HashMap<Name, VecDeque<usize>> = HashMap::new();
        for (at, (name, _)) in columns.iter().enumerate() {
            by_name.entry(name.clone()).or_default().push_back(at);
        }
        let mut columns: Vec<Option<_>> = columns.into_iter().map(Some).collect();
        let places = axis.iter().filter_map(|name| by_name.get_mut(name)?.pop_front());
        let mut ordered: Vec<_> = places.filter_map(|at| columns[at].take()).collect();
        // Columns that the axis does not name are kept after the others.
        ordered.extend(columns.into_iter().flatten());
        ordered
    }

    /// Puts row labels first: the levels that the frame names, or the field that labels rows.
    fn labelled(
        &mut self,
        columns: Vec<(Name, FrameColumn<'a>)>,
        levels: Option<&PickleTree>,
        info: Option<&PickleTree>,
    ) -> Vec<FrameColumn<'a>> {
        if let Some(levels) = levels {
            let names = Name::all(levels.root(), &mut { MOST_NAMES });
            let names = names.filter(|names| names.len() <= MOST_LEVELS).unwrap_or_default();
            let places: Option<Vec<usize>> =
                names.iter().map(|name| columns.iter().position(|(label, _)| label == name)).collect();
            if let Some(places) = places.filter(|places| !places.is_empty()) {
                let labels = places.iter().map(|at| {
                    let planned = columns[*at].1.clone();
                    FrameColumn { is_label: true, is_nameless: is_made_up(&planned.name), ..planned }
                });
                let rest = columns.iter().enumerate().filter(|(at, _)| !places.contains(at));
                return labels.chain(rest.map(|(_, (_, planned))| planned.clone())).collect();
            }
            self.undecoded("levels", "the levels of row labels are columns");
        }
        let mut planned: Vec<FrameColumn<'a>> = columns.into_iter().map(|(_, planned)| planned).collect();
        let index = self.fields.iter().zip(1..).find(|(field, _)| field.name == *self.axis);
        if let Some((field, part)) = index {
            let named = info.and_then(|info| Some(Name::of(info.root().get(&self.axis)?.get("index_name")?)));
            let is_taken = planned.iter().any(|column| column.name == "index");
            let nameless = if is_taken { "level_0" } else { "index" };
            // Python's `None` means that there is no name, although as a label it has a text.
            let name = named.filter(|name| name.is_known && (name.is_text || name.shown != "None"));
            let is_nameless = name.is_none();
            let name = name.map_or_else(|| nameless.to_owned(), |name| name.shown);
            let (datatype, offset) = (&field.datatype, field.offset);
            let label = FrameColumn::new(name, field, (datatype, offset), part);
            planned.insert(0, FrameColumn { is_label: true, is_nameless, ..label });
        }
        planned
    }
}

/// Makes the axis of column names, from its labels without the levels of row labels, and the names of its own levels.
fn names(axes: &PickleTree, levels: Option<&PickleTree>, info: Option<&PickleTree>) -> Option<Arc<NameAxis>> {
    let axis = axes.root().item(0)?;
    let levels = levels.and_then(|levels| Name::all(levels.root(), &mut { MOST_NAMES }));
    let levels: HashSet<Name> = levels.into_iter().flatten().collect();
    let columns = axis.item(1)?.items()?.filter(|name| levels.is_empty() || !levels.contains(&Name::of(*name)));
    let about = info.zip(axis.item(0)?.integer()).and_then(|(info, number)| {
        let (_, about) = info.root().entries()?.find(|(key, _)| key.integer() == Some(number))?;
        about.get("names")
    });
    Kinds::of(columns.map(label)).axis(|level| {
        let name = label(about?.item(level)?).filter(|label| *label != PandasLabel::None);
        name.map(|name| name.to_string())
    })
}

/// Whether pandas made up this name for a level that has none.
fn is_made_up(name: &str) -> bool {
    let number = name.strip_prefix("level_");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
