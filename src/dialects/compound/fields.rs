//! Makes a column from each field of a compound.

use std::collections::HashMap;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::indexes::Covered;
use super::reading::{self, part_of, read_as};
use super::recognition::System;
use super::rules;
use crate::catalogue::{Attribute, Class, ColumnId, CompoundField, Dataset, Datatype, Elements, Fill, attribute};
use crate::dialects::attributes::{pickled, text};
use crate::dialects::times::{self, OfNumpy};
use crate::dialects::{Site, datasets, stated};
use crate::store::decode::FillTest;
use crate::store::{self, FieldRows, RowPart, Rows, Tally};
use crate::table::{Column, Finding, MaskedRows, Meaning, Unreadable};

/// Suffix of the names of the masks that astropy writes.
const MASK: &[u8] = b".mask";

/// Makes a column from each field, in display order. Reports the rules that fields break.
pub(super) fn columns(
    site: &Site<'_>,
    dataset: &Arc<Dataset>,
    system: System,
    findings: &mut Vec<Finding>,
) -> Vec<Column> {
    let Class::Compound { fields: stored } = &dataset.datatype.class else { return Vec::new() };
    let numbers: HashMap<*const CompoundField, u32> = stored.iter().map(std::ptr::from_ref).zip(1..).collect();
    let fields: Vec<&CompoundField> = reading::in_order(stored, system).collect();
    let stated: Vec<BString> = fields.iter().map(|field| field.name.clone()).collect();
    let names = datasets::distinct(&stated);
    for (position, (name, shown)) in stated.iter().zip(&names).enumerate().filter(|(_, (name, shown))| name != shown) {
        let rule = &rules::FIELD_TWICE;
        findings.push(Finding::new(site.path, rule, format!("{name:?} of field {position}, shown as {shown:?}")));
    }
    let mut about = About::new(&dataset.attributes);
    about.check_names(site.path, &fields, stored, findings);
    // All columns share one opened dataset, since that holds the state of reading ahead.
    let opened = datasets::open(site.file, site.path, dataset);
    let whole = Whole { site, dataset, opened: &opened, system };
    let columns = fields.iter().enumerate().zip(names).map(|((position, field), name)| {
        let number = numbers.get(&std::ptr::from_ref(*field)).copied().unwrap_or(0);
        whole.column(field, name, number, about.take(position))
    });
    let mut columns: Vec<Column> = columns.collect();
    if !system.by_pytables {
        mask(&mut columns, &fields);
    }
    let outside = columns.iter().filter(|_| opened.is_ok()).filter_map(|column| {
        let reason = column.rows.as_ref().err()?;
        Some(Finding::new(site.path, &rules::FIELD_OUTSIDE, format!("{}: {reason}", column.name)))
    });
    findings.extend(outside);
    columns
}

/// Whether elements of this type are booleans, or arrays of booleans.
fn are_booleans(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Array { base, .. } => are_booleans(base),
        _ => datatype.is_boolean(),
    }
}

/// Masks the values of a field `NAME` where the booleans of its neighbour `NAME.mask` are true, as astropy does. Masks
/// arrays item by item.
fn mask(columns: &mut [Column], fields: &[&CompoundField]) {
    for (at, field) in fields.iter().enumerate().filter(|(_, field)| are_booleans(&field.datatype)) {
        let Some(masked) = field.name.strip_suffix(MASK) else { continue };
        let Some(place) = fields.iter().position(|field| field.name == masked) else { continue };
        let (Ok(values), Ok(mask)) = (&columns[place].rows, &columns[at].rows) else { continue };
        if let Ok(rows) = MaskedRows::new(columns[place].path.clone(), values.clone(), mask.clone()) {
            columns[place].rows = Ok(Arc::new(rows));
            (columns[at].in_table, columns[at].is_within_another) = (false, true);
        }
    }
}

/// A dataset whose columns are being made.
struct Whole<'a> {
    site: &'a Site<'a>,
    dataset: &'a Dataset,
    opened: &'a Result<Arc<store::StoredDataset>, Unreadable>,
    system: System,
}

impl Whole<'_> {
    fn column(&self, field: &CompoundField, name: BString, number: u32, attributes: Vec<Attribute>) -> Column {
        let tally = Arc::<Tally>::default();
        let of_numpy = OfNumpy::of(&field.datatype);
        let read = of_numpy.as_ref().map(|of_numpy| (of_numpy.read.clone(), of_numpy.missing.clone()));
        let read = read.unwrap_or_else(|| {
            let read = read_as(&field.datatype, self.system);
            let missing = stated::fill(&read, &attributes);
            (read, missing)
        });
        let mut rows = self.rows(field, read, &tally);
        let file = self.site.file;
        let mut times = rows.as_ref().ok().and_then(|rows| of_numpy.as_ref()?.times(file, rows.as_ref()));
        if let Some((read, step)) = reading::time(&field.datatype, self.system).filter(|_| file.store().shows_times()) {
            rows = self.rows(field, (read, Fill::Default), &tally);
            times = rows.as_ref().ok().and_then(|rows| times::since(file, step, 0, rows.as_ref()));
        }
        let plain =
            |name: &str| match attribute(&attributes, name).filter(|_| self.system.by_pytables).and_then(pickled) {
                Some(tree) => tree.root().text().map(str::to_owned),
                None => text(&attributes, name),
            };
        let named = [["units", "UNITS"], ["description", "TITLE"]].map(|names| names.into_iter().find_map(plain));
        let [units, description] = named;
        Column {
            dataset: Some(part_of(self.dataset, &field.datatype, self.fill(field))),
            meaning: Meaning {
                times: times.map(Box::new),
                units: units.or_else(|| of_numpy.as_ref()?.units()),
                description,
                ..Meaning::default()
            },
            attributes: attributes.into(),
            ..Column::new(
                name,
                self.site.path.to_owned(),
                ColumnId { object: self.dataset.id, field: number },
                rows,
                tally,
            )
        }
    }

    /// The values of a field, read as `datatype`; null where they equal `missing`.
    fn rows(
        &self,
        field: &CompoundField,
        (datatype, missing): (Datatype, Fill),
        tally: &Arc<Tally>,
    ) -> Result<Arc<dyn Rows>, Unreadable> {
        let opened = self.opened.as_ref().map_err(Clone::clone)?;
        let missing = FillTest::new(&datatype, &missing);
        rows_of_part(self.dataset, opened, RowPart { datatype, offset: field.offset }, missing, tally)
    }

    /// The fill value of a field: its part of the compound's.
    fn fill(&self, field: &CompoundField) -> Fill {
        match &self.dataset.fill {
            Fill::Explicit(elements) => match fill_of(field, elements) {
                Some(part) => Fill::Explicit(part),
                None => Fill::Unreadable("the field lies outside its compound".into()),
            },
            other => other.clone(),
        }
    }
}

/// The fill value of a field in that of the compound. `None`: the field lies outside.
fn fill_of(field: &CompoundField, elements: &Elements) -> Option<Elements> {
    let start = usize::try_from(field.offset).ok()?;
    let end = start.checked_add(usize::try_from(field.datatype.size).ok()?)?;
    let heap = if field.datatype.is_variable() { elements.heap.clone() } else { Vec::new() };
    Some(Elements { bytes: elements.bytes.get(start..end)?.to_vec(), heap })
}

/// Finds the field at a path of names, with its column. `None`: no such field.
pub(super) fn covered<'a>(
    site: &Site<'_>,
    dataset: &Arc<Dataset>,
    system: System,
    columns: &'a [Column],
    names: &[BString],
) -> Option<Covered<'a>> {
    let Class::Compound { fields } = &dataset.datatype.class else { return None };
    let (first, below) = names.split_first()?;
    let (field, column) = reading::in_order(fields, system).zip(columns).find(|(field, _)| field.name == *first)?;
    let (mut part, mut offset) = (&field.datatype, field.offset);
    for name in below {
        let Class::Compound { fields } = &part.class else { return None };
        let field = fields.iter().find(|field| field.name == *name)?;
        (part, offset) = (&field.datatype, offset.checked_add(field.offset)?);
    }
    let time = reading::time(part, system).filter(|_| below.is_empty() && column.meaning.times.is_some());
    let datatype = time.clone().map_or_else(|| reading::read_as(part, system), |(read, _)| read);
    let attributes: &[Attribute] = if below.is_empty() && time.is_none() { &column.attributes } else { &[] };
    let states_missing = !matches!(stated::fill(&datatype, attributes), Fill::Default);
    let values = datasets::open(site.file, site.path, dataset).and_then(|opened| {
        rows_of_part(dataset, &opened, RowPart { datatype, offset }, FillTest::none(), &Arc::default())
    });
    // PyTables does not know the attribute, and sorts such values among the others.
    let reordered = states_missing.then_some("some of its values stand for missing ones");
    Some(Covered { column, below: below.to_vec(), values, reordered, missing: Box::new(|_| FillTest::none()) })
}

/// The fields as the attributes of a dataset describe them, by number in display order: `FIELD_0_NAME`,
/// `FIELD_0_ATTR_units`.
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

    /// Reports fields whose names differ from the stated ones. Libraries number fields in display order or in the order
    /// of the type, so a name may match either.
    fn check_names(
        &self,
        path: &str,
        fields: &[&CompoundField],
        stored: &[CompoundField],
        findings: &mut Vec<Finding>,
    ) {
        for (position, (field, in_type)) in fields.iter().zip(stored).enumerate() {
            let Some(stated) = self.names.get(&position) else { continue };
            let stated = text(std::slice::from_ref(*stated), &stated.name.to_str_lossy()).unwrap_or_default();
            if [&field.name, &in_type.name].iter().all(|name| stated.as_bytes() != name.as_bytes()) {
                findings.push(Finding::new(
                    path,
                    &rules::FIELD_NAME,
                    format!("FIELD_{position}_NAME is {stated:?}, the field {:?}", field.name.to_str_lossy()),
                ));
            }
        }
    }

    /// Removes and returns the attributes of a field, under their own names.
    fn take(&mut self, position: usize) -> Vec<Attribute> {
        self.attributes.remove(&position).unwrap_or_default()
    }
}

/// Opens the rows of a part of each element, null where `missing` matches. Fails if the part does not lie within an
/// element.
pub(in crate::dialects) fn rows_of_part(
    dataset: &Dataset,
    opened: &Arc<store::StoredDataset>,
    part: RowPart,
    missing: FillTest,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let (offset, size, element) = (part.offset, part.datatype.size, dataset.datatype.size);
    if size == 0 || offset.checked_add(size).is_none_or(|end| end > element) {
        return Err(format!("its {size} bytes from {offset} on do not lie within an element of {element} bytes").into());
    }
    Ok(Arc::new(FieldRows::new(opened.clone(), part, missing, tally.clone())))
}
