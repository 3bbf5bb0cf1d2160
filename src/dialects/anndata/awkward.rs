//! Opens awkward arrays: a form in JSON, and a dataset for each buffer that the form names (Awkward Array, "Forms").

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_schema::DataType;
use bstr::BString;
use serde::Deserialize;
use serde_json::Value;

use super::Anndata;
use super::elements::ElementOpener;
use super::encoding::{FORM, LENGTH};
use super::rules;
use crate::catalogue::{ColumnId, Dataset, Group, join};
use crate::dialects::attributes::{text, unsigned};
use crate::dialects::{Dialect, Role, Site, datasets};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Hints, Rows, Tally};
use crate::table::{
    Column, CompoundRows, EvenRows, Finding, HeldRows, ListRows, MaskedRows, PresentRows, StringRows, Table, Unreadable,
};

/// Most forms of one array: for each, hepfs opens a dataset or two.
const MOST_FORMS: usize = 1024;

/// Deepest nesting of the forms of one array.
const DEEPEST: usize = 32;

/// Classes of forms that hepfs reads.
const CLASSES: [&str; 8] = [
    "ByteMaskedArray",
    "EmptyArray",
    "IndexedOptionArray",
    "ListOffsetArray",
    "NumpyArray",
    "RecordArray",
    "RegularArray",
    "UnmaskedArray",
];

/// The structure of rows, as Awkward Array describes it in JSON.
#[derive(Deserialize)]
struct Form {
    class: String,
    /// Prefix of the names of the form's buffers.
    #[serde(default)]
    form_key: String,
    content: Option<Box<Form>>,
    #[serde(default)]
    contents: Vec<Form>,
    /// Names of the contents of a record. `None`: a tuple.
    fields: Option<Vec<String>>,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    inner_shape: Vec<u64>,
    #[serde(default)]
    valid_when: bool,
    #[serde(default)]
    parameters: Value,
}

impl Form {
    /// The kind of array that the form stands for, such as a string; empty if the form names none.
    fn stands_for(&self) -> &str {
        self.parameters.get("__array__").and_then(Value::as_str).unwrap_or_default()
    }

    /// Fields of a record, with their names. `None`: the form is not a record.
    fn fields(&self) -> Option<impl Iterator<Item = (String, &Form)>> {
        let name =
            |at: usize| self.fields.as_ref().map_or_else(|| Some(at.to_string()), |names| names.get(at).cloned());
        let named = self.contents.iter().enumerate().map_while(move |(at, form)| Some((name(at)?, form)));
        (self.class == "RecordArray").then_some(named)
    }

    /// The forms inside this one.
    fn parts(&self) -> impl Iterator<Item = &Form> {
        self.content.as_deref().into_iter().chain(&self.contents)
    }

    fn count(&self) -> usize {
        1 + self.parts().map(Form::count).sum::<usize>()
    }

    fn depth(&self) -> usize {
        1 + self.parts().map(Form::depth).max().unwrap_or(0)
    }

    /// Suffixes of the names of the form's own buffers.
    fn roles(&self) -> &'static [&'static str] {
        match self.class.as_str() {
            "NumpyArray" => &["data"],
            "ListOffsetArray" => &["offsets"],
            "IndexedOptionArray" => &["index"],
            "ByteMaskedArray" => &["mask"],
            _ => &[],
        }
    }

    /// Name of the form's own buffer with this suffix.
    fn buffer(&self, role: &str) -> BString {
        format!("{}-{role}", self.form_key).into()
    }

    /// Adds the names of the form's own buffers, and of those of its parts.
    fn add_buffers(&self, names: &mut HashSet<BString>) {
        names.extend(self.roles().iter().map(|role| self.buffer(role)));
        self.parts().for_each(|part| part.add_buffers(names));
    }

    /// The first class of this form and its parts that hepfs cannot read.
    fn unknown(&self) -> Option<&str> {
        let own = Some(self.class.as_str()).filter(|class| !CLASSES.contains(class));
        own.or_else(|| self.parts().find_map(Form::unknown))
    }
}

/// Opens the rows of the awkward array in a group at `path`.
///
/// # Errors
/// Why the array cannot be read.
pub(super) fn rows(
    opener: &ElementOpener<'_>,
    path: &str,
    group: &Group,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let (form, length) = form(group)?;
    Buffers { opener, path, group, tally }.rows(&form, length)
}

/// Roles of the members that hold the array. If hepfs cannot read the array's form, they have none, so that they are
/// shown by themselves.
pub(super) fn roles(group: &Group) -> HashMap<BString, Role> {
    let mut names = HashSet::new();
    if let Ok((form, _)) = form(group) {
        form.add_buffers(&mut names);
    }
    let links = group.links.iter().filter(|link| names.contains(&link.name));
    links.map(|link| (link.name.clone(), Role::Servant)).collect()
}

/// A field: its name, its rows or why they cannot be read, and their oddities.
type Field = (String, Result<Arc<dyn Rows>, Unreadable>, Arc<Tally>);

/// Makes the table of an awkward array by itself: a column for each field of its records, or a single column.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let opener = ElementOpener { file: site.file, interrupt };
    let mut findings = Vec::new();
    let field = |name: String, form: &Form, length| {
        let tally = Arc::<Tally>::default();
        let rows = Buffers { opener: &opener, path: site.path, group, tally: &tally }.rows(form, length);
        (name, rows, tally)
    };
    let fields = form(group).map(|(form, length)| match form.fields() {
        Some(fields) => fields.map(|(name, form)| field(name, form, length)).collect(),
        None => vec![field("value".to_owned(), &form, length)],
    });
    let fields: Vec<Field> = fields.unwrap_or_else(|reason| {
        findings.push(Finding::new(site.path, &rules::AWKWARD, reason));
        Vec::new()
    });
    let columns = fields.into_iter().enumerate().map(|(at, (name, rows, tally))| {
        let id = ColumnId { object: group.id, field: at as u32 + 1 };
        findings.extend(rows.as_ref().err().map(|reason| Finding::new(site.path, &rules::AWKWARD, reason.clone())));
        Column::new(name.into(), site.path.to_owned(), id, rows, tally)
    });
    let mut columns: Vec<Column> = columns.collect();
    let rows = datasets::of_one_length(&mut columns, &rules::AWKWARD, false, &mut findings);
    let (names, servants) = (group.links.iter().map(|link| &link.name), roles(group));
    Table {
        revision: "awkward array".into(),
        rows,
        attributes: group.attributes.clone(),
        columns,
        servants: names.filter(|name| servants.contains_key(*name)).cloned().collect(),
        findings,
        ..Table::empty(site.path, Anndata.about().name)
    }
}

/// Parses the form of the array in a group. Returns it with the number of rows that the group states, or else
/// `u64::MAX`.
fn form(group: &Group) -> Result<(Form, u64), Unreadable> {
    let form = text(&group.attributes, FORM).ok_or("it has no form")?;
    let form: Form = serde_json::from_str(&form).map_err(|error| format!("its form: {error}"))?;
    let (forms, depth) = (form.count(), form.depth());
    if forms > MOST_FORMS || depth > DEEPEST {
        return Err(format!("{forms} forms, nested {depth} deep, more than {MOST_FORMS} and {DEEPEST}").into());
    }
    if let Some(class) = form.unknown() {
        return Err(format!("class {class:?} is not supported: its buffers are shown").into());
    }
    Ok((form, unsigned(&group.attributes, LENGTH).unwrap_or(u64::MAX)))
}

/// Opens the buffers of a form.
struct Buffers<'a> {
    opener: &'a ElementOpener<'a>,
    path: &'a str,
    group: &'a Group,
    tally: &'a Arc<Tally>,
}

impl Buffers<'_> {
    /// Opens the rows of a form. Lists have at most `length` rows; other forms have as many as their buffers hold.
    fn rows(&self, form: &Form, length: u64) -> Result<Arc<dyn Rows>, Unreadable> {
        let content = |length| match &form.content {
            Some(content) => self.rows(content, length),
            None => Err(format!("a {} without content", form.class).into()),
        };
        let path = self.path.to_owned();
        Ok(match form.class.as_str() {
            "NumpyArray" => {
                let (path, dataset) = self.dataset(form, "data")?;
                if dataset.shape.len() != 1 + form.inner_shape.len() {
                    return Err(format!("{path}: rank {} for shape {:?}", dataset.shape.len(), form.inner_shape).into());
                }
                let opened = datasets::open(self.opener.file, &path, dataset)?;
                Arc::new(DatasetRows::along_first(opened, FillTest::none(), self.tally.clone()))
            }
            "ListOffsetArray" => {
                let (offsets, items, tally) = (self.buffer(form, "offsets")?, content(u64::MAX)?, self.tally.clone());
                match form.stands_for() {
                    "string" => Arc::new(StringRows::new(path, offsets, items, None, length, tally)),
                    "bytestring" => Arc::new(StringRows::new(path, offsets, items, None, length, tally).as_bytes()),
                    _ => Arc::new(ListRows::new(path, offsets, items, None, length, tally)),
                }
            }
            "RegularArray" => {
                let items = content(length.saturating_mul(form.size))?;
                let count = items.len().checked_div(form.size).map_or(length, |count| count.min(length));
                let ends = i64::try_from(form.size).ok().zip(count.checked_add(1));
                let offsets = ends.and_then(|(size, ends)| EvenRows::whole(0, size, ends));
                let offsets = Arc::new(offsets.ok_or_else(|| format!("{count} rows of {} values", form.size))?);
                Arc::new(ListRows::new(path, offsets, items, None, count, self.tally.clone()))
            }
            "RecordArray" => {
                let fields = form.fields().into_iter().flatten();
                let fields = fields.map(|(name, form)| Ok::<_, String>((name, self.rows(form, length)?)));
                Arc::new(CompoundRows::new(path, fields.collect::<Result<_, _>>()?)?)
            }
            // Awkward Array itself makes float64 of it where it needs a type.
            "EmptyArray" => Arc::new(HeldRows::new(new_empty_array(&DataType::Float64), false, Hints::default())),
            "IndexedOptionArray" => Arc::new(PresentRows::new(path, self.buffer(form, "index")?, content(u64::MAX)?)?),
            "ByteMaskedArray" => Arc::new(
                MaskedRows::new(path, content(length)?, self.buffer(form, "mask")?)?.valid_when(form.valid_when),
            ),
            _ => content(length)?,
        })
    }

    fn dataset(&self, form: &Form, role: &str) -> Result<(String, &Arc<Dataset>), Unreadable> {
        let name = form.buffer(role).to_string();
        Ok((join(self.path, name.as_bytes()), datasets::member(self.group, &name)?))
    }

    /// Opens a buffer of rank 1.
    fn buffer(&self, form: &Form, role: &str) -> Result<Arc<dyn Rows>, Unreadable> {
        let (path, dataset) = self.dataset(form, role)?;
        self.opener.array(&path, dataset, self.tally)
    }
}
