//! Makes the table of a `DynamicTable`, or of an `AlignedDynamicTable`, which also has aligned tables.

use std::collections::HashSet;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::members::{NamedDataset, NwbMembers, is_column, referred};
use super::rules;
use super::{ALIGNED, ELEMENTS, Nwb, TABLE, type_of};
use crate::catalogue::{ColumnId, Dataset, Group, Object, attribute, join};
use crate::dialects::attributes;
use crate::dialects::{Dialect, Site, arrays, datasets};
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{ARRAY_BYTES, Error, Rows, Tally, for_each_array};
use crate::table::{
    Categories, CategoryRows, Column, CompoundRows, EndRows, Finding, ListRows, Meaning, Rule, Table, Unreadable,
};

/// Columns of up to this many lists have all their ends checked before the table is shown. In longer columns, an
/// invalid list is null.
const MOST_VERIFIED: u64 = 1 << 20;

/// Most columns of all aligned tables together, counting each table as one more: each costs a request.
const MOST_ALIGNED: usize = 1_000;

/// Most names in a finding; any further ones are only counted.
const MOST_NAMED: usize = 8;

/// Makes the table of a group.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let members = NwbMembers::of(group);
    let mut builder = Builder { site, members, interrupt, categories: Vec::new(), findings: Vec::new() };
    let mut columns = builder.columns();
    columns.extend(builder.aligned(group));
    let rows = datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut builder.findings);
    Table {
        revision: type_of(&group.attributes).unwrap_or_else(|| "DynamicTable".into()),
        rows,
        attributes: group.attributes.clone(),
        columns,
        categories: builder.categories,
        findings: builder.findings,
        ..Table::empty(site.path, Nwb.about().name)
    }
}

/// A table whose columns are being made.
struct Builder<'a> {
    site: &'a Site<'a>,
    members: NwbMembers<'a>,
    interrupt: &'a Interrupt,
    categories: Vec<Categories>,
    findings: Vec<Finding>,
}

impl Builder<'_> {
    fn report(&mut self, path: &str, rule: &'static Rule, found: impl Into<String>) {
        self.findings.push(Finding::new(path, rule, found));
    }

    /// Makes the columns: row labels, then the listed ones, then those that the list leaves out.
    fn columns(&mut self) -> Vec<Column> {
        let mut columns = Vec::new();
        match self.members.id().filter(|(_, dataset)| is_column(dataset)) {
            Some(id) => columns.push(Column { is_label: true, ..self.column(id) }),
            None => self.report(self.site.path, &rules::ID, "there is no id"),
        }
        let listed = self.members.listed();
        if listed.is_none() {
            let found = "it cannot be read; columns are those as long as id, in the order of links";
            self.report(self.site.path, &rules::NAMES, found);
        }
        let (is_listed, listed) = (listed.is_some(), listed.unwrap_or_default());
        let (mut seen, mut twice, mut gone) = (HashSet::from([super::ID.as_bytes()]), Vec::new(), Vec::new());
        for name in &listed {
            match self.members.get(name).filter(|(_, dataset)| is_column(dataset)) {
                _ if !seen.insert(name.as_slice()) => twice.push(name),
                Some(named) => columns.push(self.column(named)),
                None => gone.push(name),
            }
        }
        if !twice.is_empty() {
            let rule = &rules::NAMES_TWICE;
            self.report(self.site.path, rule, named("listed again", &twice));
        }
        if !gone.is_empty() {
            let rule = &rules::NAMES_GONE;
            self.report(self.site.path, rule, named("not there, or without rows", &gone));
        }
        let others = self.members.unlisted(&seen);
        if is_listed && !others.is_empty() {
            let names: Vec<&BString> = others.iter().map(|(name, _)| *name).collect();
            self.report(self.site.path, &rules::NAMES_LACK, named("not listed", &names));
        }
        columns.extend(others.into_iter().map(|other| self.column(other)));
        columns
    }

    /// Makes a column of structs from each aligned table of an `AlignedDynamicTable`.
    fn aligned(&mut self, group: &Group) -> Vec<Column> {
        let Some(listed) = attribute(&group.attributes, ALIGNED) else { return Vec::new() };
        let Some(names) = attributes::strings(listed).or_else(|| listed.is_empty().then(Vec::new)) else {
            self.report(self.site.path, &rules::ALIGNED, "it cannot be read");
            return Vec::new();
        };
        let (mut columns, mut seen, mut left) = (Vec::new(), HashSet::new(), MOST_ALIGNED);
        for name in names {
            let column = match seen.insert(name.clone()) {
                true => self.category(group, &name, &mut left),
                false => Err("listed again".into()),
            };
            match column {
                Ok(column) => columns.push(column),
                Err(reason) => self.report(self.site.path, &rules::ALIGNED, format!("{name}: {reason}")),
            }
        }
        columns
    }

    /// Makes the column of one aligned table, whose own directory shows its findings. `left` is the number of columns
    /// that this and all later ones may still have.
    fn category(&self, group: &Group, name: &BString, left: &mut usize) -> Result<Column, Unreadable> {
        let object = group.link(name).and_then(|link| link.target.object()).ok_or("there is no such group")?;
        let id = match object {
            Object::Group { id, .. } if super::is_table(object.attributes()) => *id,
            _ => return Err("it is no DynamicTable".into()),
        };
        *left = left.checked_sub(1).ok_or_else(|| format!("after {MOST_ALIGNED} columns"))?;
        let within = self.site.file.group(id, self.interrupt)?;
        let path = join(self.site.path, name);
        let (site, members) = (Site { path: &path, ..*self.site }, NwbMembers::of(&within));
        let mut builder =
            Builder { site: &site, members, interrupt: self.interrupt, categories: Vec::new(), findings: Vec::new() };
        let mut columns = builder.columns();
        *left = left.checked_sub(columns.len()).ok_or_else(|| format!("after {MOST_ALIGNED} columns"))?;
        datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut builder.findings);
        columns.retain(|column| column.in_table);
        let below = columns.iter().flat_map(|column| {
            let own = (column.path.clone(), column.tally.clone());
            std::iter::once(own).chain(column.below.iter().cloned())
        });
        let below = below.collect();
        let fields = columns.into_iter();
        let fields = fields.filter_map(|column| Some((column.name.to_string(), column.rows.ok()?))).collect();
        let rows = Arc::new(CompoundRows::new(path.clone(), fields)?) as Arc<dyn Rows>;
        Ok(Column {
            below,
            attributes: object.attributes().into(),
            meaning: Meaning {
                description: attributes::text(object.attributes(), "description"),
                ..Meaning::default()
            },
            ..Column::new(name.clone(), path, ColumnId::whole(id), Ok(rows), Arc::default())
        })
    }

    /// Makes a column, which has a value for each row, or a list of them.
    fn column(&mut self, (name, dataset): NamedDataset<'_>) -> Column {
        let path = join(self.site.path, name);
        let mut column = arrays::column(self.site.file, &path, name, dataset);
        self.labelled(&mut column, dataset);
        if attribute(&dataset.attributes, TABLE).is_some() {
            self.region(&mut column, dataset);
        }
        let levels = self.members.levels(dataset.id);
        match levels.and_then(|levels| self.lists(&column, &levels)) {
            Ok(None) => column,
            Ok(Some(lists)) => lists,
            Err(reason) => {
                self.report(&path, &rules::ENDS, reason.clone());
                let id = ColumnId { field: 1, ..column.id };
                Column {
                    in_table: false,
                    rows: Err(reason),
                    stored_strings: None,
                    id,
                    meaning: Meaning { times: None, ..column.meaning },
                    ..column
                }
            }
        }
    }

    /// Makes the column of lists over a column's values. `None`: there are no ends that make lists of them.
    fn lists(&mut self, column: &Column, levels: &[NamedDataset<'_>]) -> Result<Option<Column>, Unreadable> {
        let Some((_, outermost)) = levels.last() else { return Ok(None) };
        let mut values = column.rows.clone()?;
        for (at, (name, dataset)) in levels.iter().enumerate() {
            let path = join(self.site.path, name);
            let wrong = |reason: Unreadable| format!("{name}: {reason}");
            let ends = datasets::line(self.site.file, &path, dataset, &Arc::default()).map_err(wrong)?;
            let offsets = Arc::new(EndRows::new(path.clone(), ends.clone()).map_err(|reason| wrong(reason.into()))?);
            let last = self.verified(ends.as_ref(), values.len()).map_err(wrong)?;
            if last < values.len() {
                let found = format!("the last is {last}, of {} values: the rest is in no list", values.len());
                self.report(&path, &rules::ENDS, found);
            }
            // Inner lists count oddities by numbers of entries, which are not rows.
            let tally = if at + 1 == levels.len() { column.tally.clone() } else { Arc::default() };
            values = Arc::new(ListRows::new(column.path.clone(), offsets, values, None, u64::MAX, tally));
        }
        Ok(Some(Column {
            id: ColumnId { object: outermost.id, field: 1 },
            rows: Ok(values),
            stored_strings: None,
            dataset: None,
            meaning: Meaning { times: None, ..column.meaning.clone() },
            ..column.clone()
        }))
    }

    /// Returns the last end, if ends never fall, and stay within this many values. If there are very many ends, only
    /// the last one is checked.
    fn verified(&self, ends: &dyn Rows, values: u64) -> Result<u64, Unreadable> {
        let first = if ends.len() <= MOST_VERIFIED { 0 } else { ends.len() - 1 };
        let mut last = 0;
        let failed = |reason: String| Error::unsupported(String::new(), reason);
        let looked = for_each_array(ends, first..ends.len(), ARRAY_BYTES, self.interrupt, &mut |range, array| {
            let numbers =
                widen::unsigned(&array).ok_or_else(|| failed(format!("ends of type {}", array.data_type())))?;
            for (at, end) in (range.start..).zip(&numbers) {
                let Some(end) = end else { return Err(failed(format!("end {at} is negative"))) };
                if end < last {
                    return Err(failed(format!("end {at} is {end} after {last}")));
                }
                if end > values {
                    return Err(failed(format!("end {at} is {end}, of {values} values")));
                }
                last = end;
            }
            Ok(())
        });
        match looked {
            Ok(()) => Ok(last),
            Err(Error::Unsupported { reason, .. }) => Err(reason.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Shows codes as the labels to which they refer, if they refer to any.
    fn labelled(&mut self, column: &mut Column, dataset: &Arc<Dataset>) {
        if attribute(&dataset.attributes, ELEMENTS).is_none() {
            return;
        }
        let tally = Arc::<Tally>::default();
        let found = self.labels(column, dataset);
        match found.and_then(|(codes, labels)| Ok((codes, labels.labels.clone()?, labels))) {
            Ok((codes, known, labels)) => {
                let rows: Arc<dyn Rows> = Arc::new(CategoryRows::new(column.path.clone(), codes, known, tally.clone()));
                column.categories = Some(self.categories.len());
                self.categories.push(labels);
                (column.rows, column.tally, column.meaning.times) = (Ok(rows), tally, None);
            }
            Err(reason) => {
                let path = column.path.clone();
                self.report(&path, &rules::ENUM, reason);
            }
        }
    }

    /// Opens the labels to which the codes of a column refer. Returns the codes, and the labels.
    fn labels(&self, column: &Column, dataset: &Dataset) -> Result<(Arc<dyn Rows>, Categories), Unreadable> {
        let codes = column.rows.clone()?;
        if !codes.data_type().is_integer() {
            return Err(format!("codes of type {}", codes.data_type()).into());
        }
        let id = referred(dataset, ELEMENTS).ok_or("a reference that leads nowhere; codes are shown")?;
        let object = self.site.file.object(id, self.interrupt)?;
        let Object::Dataset(labels) = object else { return Err("they are no dataset; codes are shown".into()) };
        let path = format!("{} (elements)", column.path);
        let rows = datasets::line(self.site.file, &path, &labels, &Arc::default())?;
        if rows.len() > CategoryRows::MOST_LABELS {
            return Err(
                format!("{} elements, more than the {} that are read", rows.len(), CategoryRows::MOST_LABELS).into()
            );
        }
        let datatype = labels.datatype.clone();
        Ok((codes, Categories { path, labels: Ok(rows), datatype, ordered: Some(false) }))
    }

    /// Notes in a column's attributes the path of the table whose rows it numbers.
    fn region(&mut self, column: &mut Column, dataset: &Dataset) {
        let id = referred(dataset, TABLE);
        let path = id.map(|id| self.site.file.path_of(id, self.interrupt));
        let reason = match path {
            Some(Ok(Some(path))) => {
                column.attributes = attributes::with_text(&column.attributes, TABLE, &path);
                let target = id.map(|id| self.site.file.object(id, self.interrupt));
                match target {
                    Some(Ok(object)) if super::is_table(object.attributes()) => return,
                    _ => format!("it leads to {path}, which is no table; row numbers are shown"),
                }
            }
            Some(Err(error)) => format!("{error}; row numbers are shown"),
            Some(Ok(None)) | None => "it leads nowhere; row numbers are shown".to_owned(),
        };
        let path = column.path.clone();
        self.report(&path, &rules::REGION, reason);
    }
}

/// Says how many names there are, and which come first.
fn named(what: &str, names: &[&BString]) -> String {
    let first = names.iter().take(MOST_NAMED).map(|name| name.as_bstr().to_string()).collect::<Vec<_>>().join(", ");
    format!("{} {what}: {first}", names.len())
}
