//! Makes rows from datasets of the catalogue, for every dialect.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use bstr::BString;

use super::attributes::said;
use super::stated;
use crate::catalogue::{Class, Dataset, Fill, Group, Object};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{self, DatasetRows, File, Rows, StoredStrings, Tally};
use crate::table::{Column, Finding, OriginalName, PackedRows, Rule, Unreadable};

/// Opens a dataset for reading. Fails if its layout or size makes no sense.
pub fn open(file: &Arc<File>, path: &str, dataset: &Arc<Dataset>) -> Result<Arc<store::StoredDataset>, Unreadable> {
    store::StoredDataset::new(file.clone(), path.to_owned(), dataset.clone()).map(Arc::new).map_err(Unreadable::from)
}

/// The missing element that the attribute `_FillValue` states, in files of any kind, if it is a single value that the
/// dataset's type can hold exactly.
pub fn stated_fill(dataset: &Dataset) -> Fill {
    stated::fill(&dataset.datatype, &dataset.attributes)
}

/// Opens at most `len` rows of a dataset of any type, null where they equal `missing`, or, if that is not explicit, the
/// stated fill.
pub fn rows(
    file: &Arc<File>,
    path: &str,
    dataset: &Arc<Dataset>,
    len: u64,
    missing: &Fill,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let opened = open(file, path, dataset)?;
    let missing = match missing {
        Fill::Explicit(_) => FillTest::new(&dataset.datatype, missing),
        _ => FillTest::new(&dataset.datatype, &stated_fill(dataset)),
    };
    Ok(Arc::new(DatasetRows::new(opened, len, missing, tally.clone())))
}

/// Opens the values of a dataset of rank 1. The HDF5 fill value is an ordinary value.
///
/// # Errors
/// Why they cannot be read.
pub fn line(
    file: &Arc<File>,
    path: &str,
    dataset: &Arc<Dataset>,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    if dataset.shape.len() != 1 || dataset.null {
        return Err(format!("a dataset of rank {}, not 1", dataset.shape.len()).into());
    }
    rows(file, path, dataset, u64::MAX, &Fill::Default, tally)
}

/// Finds the dataset with this name in a group.
///
/// # Errors
/// The group has no dataset of this name.
pub fn member<'a>(group: &'a Group, name: &str) -> Result<&'a Arc<Dataset>, Unreadable> {
    match object(group, name)? {
        Object::Dataset(dataset) => Ok(dataset),
        _ => Err(format!("{name} is no dataset").into()),
    }
}

/// Finds the object with this name in a group.
///
/// # Errors
/// The group has no object of this name.
pub fn object<'a>(group: &'a Group, name: &str) -> Result<&'a Object, Unreadable> {
    group.link(name.as_bytes()).and_then(|link| link.target.object()).ok_or_else(|| format!("it has no {name}").into())
}

/// Looks up the object at a path.
///
/// # Errors
/// Why the path leads to no object.
pub fn at(file: &Arc<File>, path: &str, interrupt: &Interrupt) -> Result<Object, Unreadable> {
    let root = file.info().root;
    let mut found = None;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let id = match &found {
            None => root,
            Some(Object::Group { id, .. }) => *id,
            Some(_) => return Err("not a group".into()),
        };
        let group = file.group(id, interrupt)?;
        found = Some(object(&group, part)?.clone());
    }
    found.map_or_else(|| Ok(file.object(root, interrupt)?), Ok)
}

/// Reads all rows as float64.
///
/// # Errors
/// Why they cannot be read, or why they are not numbers.
pub fn numbers(rows: Arc<dyn Rows>, interrupt: &Interrupt) -> Result<Vec<f64>, Unreadable> {
    let no_numbers = format!("{} are no numbers", rows.data_type());
    let rows = PackedRows::scaled(String::new(), rows, vec![1.0], 0.0).ok_or(no_numbers)?;
    let array = rows.array(0..rows.facts().len, interrupt)?;
    if let Some(row) = (0..array.len()).find(|row| array.is_null(*row)) {
        return Err(format!("number {row} is missing").into());
    }
    Ok(array.as_primitive_opt::<Float64Type>().map(|array| array.values().to_vec()).unwrap_or_default())
}

/// Reads the number in a scalar dataset.
///
/// # Errors
/// Why it cannot be read, or why it is not a finite number.
pub fn scalar(file: &Arc<File>, path: &str, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Result<f64, Unreadable> {
    let first = numbers(rows(file, path, dataset, 1, &Fill::Default, &Arc::default())?, interrupt)?.into_iter().next();
    first.filter(|first| first.is_finite()).ok_or_else(|| format!("{} is no finite number", said(first)).into())
}

/// Finds the dataset with this name in a group, if it has this rank and a dataspace that is not null.
pub fn of_rank<'a>(group: &'a Group, name: &str, rank: usize) -> Option<&'a Arc<Dataset>> {
    member(group, name).ok().filter(|dataset| dataset.shape.len() == rank && !dataset.null)
}

/// Opens at most `len` strings of variable length as stored. `None`: the dataset is of another type, or cannot be
/// opened.
pub fn stored_strings(file: &Arc<File>, path: &str, dataset: &Arc<Dataset>, len: u64) -> Option<Arc<dyn Rows>> {
    if !matches!(dataset.datatype.class, Class::VariableString { .. }) {
        return None;
    }
    let opened = open(file, path, dataset).ok()?;
    Some(Arc::new(StoredStrings::new(opened, len)))
}

/// Whether a fill value is explicit and all zeros.
pub fn is_zero(fill: &Fill) -> bool {
    matches!(fill, Fill::Explicit(element) if element.bytes.iter().all(|byte| *byte == 0))
}

/// Returns the number of rows of a table with these columns: the length of the first label column, else the commonest
/// one. Columns of another length leave the table and break `rule`; if `all` is set, unreadable columns do so as well.
/// A second column of the same name becomes `NAME.1`.
pub fn of_one_length(columns: &mut [Column], rule: &'static Rule, all: bool, findings: &mut Vec<Finding>) -> u64 {
    let length = |column: &Column| column.rows.as_ref().ok().map(|rows| rows.len());
    let label = columns.iter().find(|column| column.is_label).and_then(length);
    let rows = label.or_else(|| commonest(columns.iter().filter_map(length))).unwrap_or(0);
    tell_apart(columns);
    for column in columns {
        let found = match &column.rows {
            Ok(own) if own.len() != rows => format!("{} rows, the table has {rows}", own.len()),
            Err(reason) if all => reason.to_string(),
            _ => continue,
        };
        column.in_table = false;
        findings.push(Finding::new(&column.path, rule, found));
    }
    rows
}

/// Gives each column a unique name, as [`distinct`] does.
pub fn tell_apart(columns: &mut [Column]) {
    let names: Vec<BString> = columns.iter().map(|column| column.name.clone()).collect();
    for (column, name) in columns.iter_mut().zip(distinct(&names)) {
        if column.name != name {
            let other = std::mem::replace(&mut column.name, name);
            if column.meaning.origin.called == OriginalName::Name {
                column.meaning.origin.called = OriginalName::Other(other.to_string());
            }
        }
    }
}

/// Makes the names of columns unique: a name that is empty, or that occurred before, gets a number.
pub fn distinct(names: &[BString]) -> Vec<BString> {
    let mut taken: HashSet<BString> = names.iter().cloned().collect();
    let mut met = HashMap::<&BString, u64>::new();
    names
        .iter()
        .map(|name| {
            let count = met.entry(name).or_default();
            if *count == 0 && !name.is_empty() {
                *count = 1;
                return name.clone();
            }
            loop {
                let free = BString::from(format!("{name}.{count}"));
                *count += 1;
                if taken.insert(free.clone()) {
                    return free;
                }
            }
        })
        .collect()
}

/// The commonest of these lengths; of several, the first. `None`: there are no lengths.
pub fn commonest(lengths: impl Iterator<Item = u64>) -> Option<u64> {
    let lengths: Vec<u64> = lengths.collect();
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for length in &lengths {
        *counts.entry(*length).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    lengths.into_iter().find(|length| counts.get(length) == Some(&most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let names = ["a", "a", "", "a.1", "a", ""].map(BString::from);
        assert_eq!(distinct(&names), ["a", "a.2", ".0", "a.1", "a.3", ".1"].map(BString::from));
    }
}
