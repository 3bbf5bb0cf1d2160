//! Makes a column of each field.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::reading;
use super::recognition::System;
use crate::catalogue::{Attribute, Class, ColumnId, Dataset, Elements, Field, Fill};
use crate::dialects::attributes::text;
use crate::dialects::{Site, datasets};
use crate::store::decode::FillTest;
use crate::store::{self, FieldRows, Part, Rows, Tally};
use crate::table::{Column, Finding, Storage};

/// A column for each field, in the order shown; reports what is wrong with fields.
pub(super) fn columns(site: &Site<'_>, dataset: &Dataset, system: System, findings: &mut Vec<Finding>) -> Vec<Column> {
    let Class::Compound { fields } = &dataset.datatype.class else { return Vec::new() };
    let numbers: HashMap<*const Field, u32> = fields.iter().map(std::ptr::from_ref).zip(1..).collect();
    let fields: Vec<&Field> = reading::in_order(fields, system).collect();
    let names = distinct(site.path, &fields, findings);
    let mut about = About::new(&dataset.attributes);
    about.check_names(site.path, &fields, findings);
    // One for all columns, since what reads ahead lives in it.
    let opened = datasets::open(site.file, site.path, dataset);
    let whole = Whole { site, dataset, opened: &opened, system };
    let column = |((position, field), name): ((usize, &&Field), BString)| {
        let number = numbers.get(&std::ptr::from_ref(*field)).copied().unwrap_or(0);
        whole.column(field, name, number, about.take(position))
    };
    let columns: Vec<Column> = fields.iter().enumerate().zip(names).map(column).collect();
    let outside = columns.iter().filter(|_| opened.is_ok()).filter_map(|column| {
        let reason = column.rows.as_ref().err()?;
        Some(Finding::new(
            site.path,
            "HDF5: the fields of a compound lie within it",
            format!("{}: {reason}", column.name),
        ))
    });
    findings.extend(outside);
    columns
}

/// A dataset while its columns are made.
struct Whole<'a> {
    site: &'a Site<'a>,
    dataset: &'a Dataset,
    opened: &'a Result<Arc<store::Dataset>, String>,
    system: System,
}

impl Whole<'_> {
    fn column(&self, field: &Field, name: BString, number: u32, attributes: Vec<Attribute>) -> Column {
        let tally = Arc::<Tally>::default();
        let rows = self.rows(field, &tally);
        let named = |names: [&str; 2]| names.iter().find_map(|name| text(&attributes, name));
        Column {
            name,
            path: self.site.path.to_owned(),
            id: ColumnId { object: self.dataset.id, field: number },
            is_label: false,
            in_table: rows.is_ok(),
            rows,
            times: None,
            stored_strings: None,
            learner: None,
            tally,
            units: named(["units", "UNITS"]),
            units_vocabulary: None,
            description: named(["description", "TITLE"]),
            categories: None,
            storage: Some(self.storage(field)),
            attributes: attributes.into(),
        }
    }

    fn rows(&self, field: &Field, tally: &Arc<Tally>) -> Result<Arc<dyn Rows>, String> {
        let opened = self.opened.as_ref().map_err(Clone::clone)?;
        let (offset, size, element) = (field.offset, field.datatype.size, self.dataset.datatype.size);
        if size == 0 || offset.checked_add(size).is_none_or(|end| end > element) {
            return Err(format!("its {size} bytes from {offset} on do not lie within an element of {element} bytes"));
        }
        let part = Part { datatype: reading::read_as(&field.datatype, self.system), offset };
        Ok(Arc::new(FieldRows::new(opened.clone(), part, FillTest::none(), tally.clone())))
    }

    /// How the field is stored: in the file's own type.
    fn storage(&self, field: &Field) -> Storage {
        let place = |elements: &Elements| {
            let start = usize::try_from(field.offset).ok()?;
            let end = start.checked_add(usize::try_from(field.datatype.size).ok()?)?;
            let heap = if field.datatype.is_variable() { elements.heap.clone() } else { Vec::new() };
            Some(Elements { bytes: elements.bytes.get(start..end)?.to_vec(), heap })
        };
        let fill = match &self.dataset.fill {
            Fill::Explicit(elements) => match place(elements) {
                Some(part) => Fill::Explicit(part),
                None => Fill::Unreadable("the field lies outside its compound".into()),
            },
            other => other.clone(),
        };
        Storage {
            datatype: field.datatype.clone(),
            extent: self.dataset.len().unwrap_or(u64::MAX),
            fill,
            layout: self.dataset.layout.clone(),
            filters: self.dataset.filters.clone(),
        }
    }
}

/// What attributes of a dataset say of its fields, by number in the order shown: `FIELD_0_NAME`, `FIELD_0_ATTR_units`.
struct About<'a> {
    names: HashMap<usize, &'a Attribute>,
    attributes: HashMap<usize, Vec<Attribute>>,
}

impl<'a> About<'a> {
    fn new(attributes: &'a [Attribute]) -> Self {
        let mut about = Self { names: HashMap::new(), attributes: HashMap::new() };
        for attribute in attributes {
            let Some((number, what)) = attribute.name.strip_prefix(b"FIELD_").and_then(|rest| rest.split_once_str("_"))
            else {
                continue;
            };
            let Some(number) = number.to_str().ok().and_then(|number| number.parse().ok()) else { continue };
            if what == b"NAME" {
                about.names.insert(number, attribute);
            } else if let Some(name) = what.strip_prefix(b"ATTR_") {
                let own = Attribute { name: name.into(), ..attribute.clone() };
                about.attributes.entry(number).or_default().push(own);
            }
        }
        about
    }

    /// Reports fields that are called otherwise.
    fn check_names(&self, path: &str, fields: &[&Field], findings: &mut Vec<Finding>) {
        for (position, field) in fields.iter().enumerate() {
            let Some(stated) = self.names.get(&position) else { continue };
            let stated = text(std::slice::from_ref(*stated), &stated.name.to_str_lossy()).unwrap_or_default();
            if stated.as_bytes() != field.name.as_bytes() {
                findings.push(Finding::new(
                    path,
                    "H5TB, PyTables: FIELD_n_NAME is the name of a field",
                    format!("FIELD_{position}_NAME is {stated:?}, the field {:?}", field.name.to_str_lossy()),
                ));
            }
        }
    }

    /// The attributes of a field, under their own names.
    fn take(&mut self, position: usize) -> Vec<Attribute> {
        self.attributes.remove(&position).unwrap_or_default()
    }
}

/// The names of columns: those of the fields, where each has one of its own.
fn distinct(path: &str, fields: &[&Field], findings: &mut Vec<Finding>) -> Vec<BString> {
    let mut taken: HashSet<BString> = fields.iter().map(|field| field.name.clone()).collect();
    let mut met = HashMap::<&BString, u64>::new();
    let mut name_of = |position: usize, name| {
        let count = met.entry(name).or_default();
        if *count == 0 && !name.is_empty() {
            *count = 1;
            return name.clone();
        }
        let free = loop {
            let free = BString::from(format!("{name}.{count}"));
            *count += 1;
            if taken.insert(free.clone()) {
                break free;
            }
        };
        findings.push(Finding::new(
            path,
            "HDF5: each field of a compound has a name of its own",
            format!("{name:?} of field {position}, shown as {free:?}"),
        ));
        free
    };
    fields.iter().enumerate().map(|(position, field)| name_of(position, &field.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Datatype;

    #[test]
    fn names_are_told_apart() {
        let datatype = Datatype { size: 1, class: Class::Flag };
        let names = ["a", "a", "", "a.1", "a", ""];
        let fields = names.map(|name| Field { name: name.into(), offset: 0, datatype: datatype.clone() });
        let mut findings = Vec::new();
        let shown = distinct("/t", &fields.iter().collect::<Vec<_>>(), &mut findings);
        assert_eq!(shown, ["a", "a.2", ".0", "a.1", "a.3", ".1"].map(BString::from));
        assert_eq!(findings.len(), 4);
    }
}
