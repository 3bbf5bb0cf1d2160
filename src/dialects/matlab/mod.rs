//! MATLAB 7.3: a struct whose numeric fields are vectors of one length is a table; its members are also shown by
//! themselves.
//!
//! A vector is a dataset of rank 2 with an axis of length 1. A column of texts is a dataset of cells: references to
//! characters in `/#refs#`. A sparse matrix is a table of its stored entries: `data`, `ir` (rows), `jc` (pointers of
//! columns). Characters outside of structs are texts, and bytes of class `logical` are booleans.
//!
//! | module | what it does |
//! | --- | --- |
//! | `cells` | reads what the cells of a struct hold |
//! | `structs` | makes the table of an array of structs, from fields that are single numbers or texts |

mod cells;
mod rules;
mod structs;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::LargeStringArray;
use bstr::BString;

use self::cells::CellReader;
use super::arrays::Arrays;
use super::attributes::{text, unsigned};
use super::triples::{MatrixAxis, Triples};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site, datasets};
use crate::catalogue::{
    self, Attribute, Charset, Class, ColumnId, Dataset, Datatype, Fill, Group, Padding, attribute, join, product,
};
use crate::source::Interrupt;
use crate::store::decode::{HeapBytes, Resolve, widen};
use crate::store::{File, Hints, Rows, Tally};
use crate::table::{Column, Finding, HeldRows, Single, SingleForm, Table, Unreadable};

/// The attribute that states the class of a value.
const CLASS: &str = "MATLAB_class";

/// The attribute of a value without elements, whose dataset holds its dimensions instead.
const EMPTY: &str = "MATLAB_empty";

/// The attribute of a struct that lists its fields.
const FIELDS: &str = "MATLAB_fields";

/// The attribute of a sparse matrix that states its number of rows.
const SPARSE: &str = "MATLAB_sparse";
/// The members that hold a sparse matrix.
const PARTS: [&str; 3] = ["data", "ir", "jc"];

/// Fewest rows of the table of a struct that also has single values.
const SOME_ROWS: u64 = 4;

/// Number that distinguishes the column of a vector's elements from the dataset's own column.
const VECTOR: u32 = 1 << 29;

/// Most characters in a text outside of structs: it stays in memory as long as its files are in use.
const MOST_OF_ONE: u64 = 1 << 16;

/// Most characters in a cell: each takes some 24 bytes while it is read.
const MOST_CHARACTERS: u64 = 1 << 20;

/// The MATLAB dialect.
#[derive(Debug)]
pub struct Matlab;

static ABOUT: About =
    About { rules: rules::ALL, attributes: &[CLASS, EMPTY, FIELDS, SPARSE], ..About::named("MATLAB") };

impl Dialect for Matlab {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if attribute(attributes, SPARSE).is_some() => Mark::LookInside,
            ListedObject::Group(attributes) if !path.starts_with("/#") && is(attributes, "struct") => Mark::LookInside,
            ListedObject::Dataset(dataset) if is_read_otherwise(dataset) => Mark::Files,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let is_table = shape(here.group).is_some()
            || is(&here.group.attributes, "struct") && (columns(here.group).is_some() || structs::have_values(here));
        Claims { is_table, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let found = match site.of {
            Of::Group(group) if shape(group).is_some() => return sparse(site, group, interrupt),
            Of::Group(group) => match (columns(group), structs::fields(group)) {
                (None, Some(fields)) => return structs::table(site, group, fields, interrupt),
                (columns, _) => columns.map(|columns| (group, columns)),
            },
            Of::Dataset(_) | Of::Made { .. } => None,
        };
        match found {
            Some((group, columns)) => table(site, group, columns, interrupt),
            None => Table::empty(site.path, self.about().name),
        }
    }

    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        let Of::Dataset(stored) = site.of else { return Err("no dataset".into()) };
        if is_text(stored) {
            return texts(site, name, stored, interrupt);
        }
        let read = read(stored, &stored.attributes);
        let single = match length(stored) {
            Some(count) => {
                let whole = vector(site.file, site.path, name.clone(), stored);
                Arrays::of_rows(site.path, &read, vec![count], whole)
            }
            None => Arrays.files(&Site { of: Of::Dataset(&read), ..*site }, name, interrupt)?,
        };
        let is_empty = attribute(&stored.attributes, EMPTY).is_some();
        let files =
            single.files.into_iter().filter(|file| !is_empty || matches!(file.form, SingleForm::Npy | SingleForm::Raw));
        // `.npy` files keep booleans as stored, but have complex numbers as such.
        let datatype = if read.datatype.size == 1 { stored.datatype.clone() } else { read.datatype.clone() };
        Ok(Single {
            files: files.collect(),
            whole: Table { dialect: self.about().name, ..single.whole },
            shape: stored.shape.clone(),
            datatype,
            ..single
        })
    }
}

/// Whether the values that MATLAB means, or their number of rows, differ from the stored ones.
fn is_read_otherwise(dataset: &Dataset) -> bool {
    let has = |name| attribute(&dataset.attributes, name).is_some();
    let is_long = is_text(dataset) && dataset.len().is_none_or(|count| count > MOST_OF_ONE);
    let is_other = length(dataset).is_some() || is_logical(dataset, &dataset.attributes) || complex(dataset).is_some();
    has(CLASS) && (has(EMPTY) || is_text(dataset) || is_other) && !is_long
}

/// Whether the dataset holds the characters of one or several texts, or stands for an empty text.
fn is_text(dataset: &Dataset) -> bool {
    let is_unit = matches!(dataset.datatype.class, Class::Integer { .. }) && dataset.datatype.size <= 8;
    is_unit && is(&dataset.attributes, "char") && dataset.shape.len() == 2 && !dataset.null
        || is(&dataset.attributes, "char") && attribute(&dataset.attributes, EMPTY).is_some()
}

/// The complex type of a dataset whose elements are MATLAB's compounds of `real` and `imag`. `None`: they are not.
fn complex(dataset: &Dataset) -> Option<Datatype> {
    let Class::Compound { fields } = &dataset.datatype.class else { return None };
    let [real, imaginary] = fields.as_slice() else { return None };
    if real.name != "real" || imaginary.name != "imag" {
        return None;
    }
    let named =
        |field: &catalogue::CompoundField, name: &str| catalogue::CompoundField { name: name.into(), ..field.clone() };
    let fields = vec![named(real, "r"), named(imaginary, "i")];
    let datatype = Datatype { class: Class::Compound { fields }, ..dataset.datatype.clone() };
    datatype.complex_part().is_some().then_some(datatype)
}

fn is_logical(dataset: &Dataset, attributes: &[Attribute]) -> bool {
    dataset.datatype.size == 1 && is(attributes, "logical")
}

/// A field of a struct that may be a column.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a BString,
    dataset: &'a Arc<Dataset>,
    is_cell: bool,
}

fn is(attributes: &[Attribute], class: &str) -> bool {
    text(attributes, CLASS).as_deref() == Some(class)
}

/// Number of elements in a vector. `None`: not a vector.
fn length(dataset: &Dataset) -> Option<u64> {
    let is_vector = dataset.shape.len() == 2 && dataset.shape.contains(&1) && !dataset.null;
    product(&dataset.shape).filter(|_| is_vector && attribute(&dataset.attributes, EMPTY).is_none())
}

/// Finds the columns of a struct, in its order: vectors of numbers, all of one length of at least two, and cells of the
/// same length. Single values are no columns, but if there are some, the length must be [`SOME_ROWS`] or more. `None`:
/// the struct is not a table.
fn columns(group: &Group) -> Option<Vec<Field<'_>>> {
    let (mut fields, mut rows, mut has_values) = (Vec::new(), None, false);
    for link in &group.links {
        let Some(dataset) = link.target.dataset() else { continue };
        let is_cell = is(&dataset.attributes, "cell") && dataset.datatype.is_reference();
        if are_numbers(dataset) {
            let length = length(dataset)?;
            if length == 1 {
                has_values = true;
                continue;
            }
            if *rows.get_or_insert(length) != length {
                return None;
            }
        } else if !is_cell {
            continue;
        }
        fields.push(Field { name: &link.name, dataset, is_cell });
    }
    // Beside single values, a vector of two or three numbers may be only a setting.
    let rows = rows.filter(|rows| *rows >= if has_values { SOME_ROWS } else { 2 })?;
    fields.retain(|field| length(field.dataset) == Some(rows));
    in_order(group, &mut fields);
    (fields.len() > 1).then_some(fields)
}

/// Whether the elements are numbers or booleans.
fn are_numbers(dataset: &Dataset) -> bool {
    let class = text(&dataset.attributes, CLASS).unwrap_or_default();
    let is_number = matches!(class.as_str(), "double" | "single" | "logical")
        || class.trim_start_matches('u').starts_with("int") && !dataset.datatype.is_reference();
    is_number && attribute(&dataset.attributes, "MATLAB_object_decode").is_none()
}

/// Sorts fields into the order that the struct lists.
fn in_order(group: &Group, fields: &mut [Field<'_>]) {
    let order: HashMap<BString, usize> = listed(group).into_iter().zip(0..).collect();
    fields.sort_by_key(|field| order.get(field.name).copied().unwrap_or(usize::MAX));
}

/// Names of the fields in the struct's own order, which an attribute lists as sequences of characters. Empty if there
/// is no list.
fn listed(group: &Group) -> Vec<BString> {
    let stored = attribute(&group.attributes, FIELDS).and_then(|listed| {
        let Class::Sequence { base } = &listed.datatype.class else { return None };
        let width = usize::try_from(listed.datatype.size).ok().filter(|width| *width > 0)?;
        Some((listed.value.as_ref().ok()?, width, base.size))
    });
    let Some((value, width, size)) = stored else { return Vec::new() };
    let mut heap = HeapBytes(&value.heap);
    let names = value.bytes.chunks_exact(width).map(|cell| heap.resolve(cell, size).ok().map(BString::from));
    names.flatten().collect()
}

/// Makes the table of a struct.
fn table(site: &Site<'_>, group: &Group, fields: Vec<Field<'_>>, interrupt: &Interrupt) -> Table {
    let rows = fields.first().and_then(|field| length(field.dataset)).unwrap_or(0);
    let (mut findings, mut cells) = (Vec::new(), CellReader::new(site, interrupt));
    // Several columns may share one dataset.
    let mut texts = HashMap::new();
    let columns = fields.into_iter().map(|Field { name, dataset, is_cell }| {
        let path = join(site.path, name);
        let column = vector(site.file, &path, name.clone(), dataset);
        let column = match is_cell {
            true => {
                let rows = texts.entry(dataset.id).or_insert_with(|| cells.texts(&path, dataset)).clone();
                Column { in_table: rows.is_ok(), rows, ..column }
            }
            false => column,
        };
        if let Err(reason) = &column.rows {
            findings.push(Finding::new(&path, &rules::TEXTS, reason.clone()));
        }
        column
    });
    Table {
        revision: "struct".into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.collect(),
        findings,
        ..Table::empty(site.path, Matlab.about().name)
    }
}

/// Makes the column of a vector's elements, whichever axis they lie along.
fn vector(file: &Arc<File>, path: &str, name: BString, dataset: &Arc<Dataset>) -> Column {
    let tally = Arc::<Tally>::default();
    let read = read(dataset, &dataset.attributes);
    let rows = datasets::rows(file, path, &read, u64::MAX, &Fill::Default, &tally);
    // A column of elements is not the column of slices along the first axis.
    let id = ColumnId { object: dataset.id, field: VECTOR };
    let (attributes, dataset) = (dataset.attributes.clone(), Some(dataset.clone()));
    Column { attributes, dataset, ..Column::new(name, path.to_owned(), id, rows, tally) }
}

/// Number of rows and of columns of a sparse matrix. `None`: not a sparse matrix, or one without elements.
fn shape(group: &Group) -> Option<[u64; 2]> {
    let rows = unsigned(&group.attributes, SPARSE)?;
    let parts = PARTS.map(|part| datasets::of_rank(group, part, 1).and_then(|part| part.len()));
    let [Some(_), Some(_), Some(pointers)] = parts else { return None };
    Some([rows, pointers.checked_sub(1)?])
}

/// Makes the table of a sparse matrix, whose row and column numbers count from 0, as they are stored.
fn sparse(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let (mut findings, mut columns) = (Vec::new(), Vec::new());
    match Triples::of(site, group, PARTS, shape(group), 1, interrupt) {
        Ok(mut triples) => {
            // The class is stated by an attribute of the matrix, not of its parts.
            let values = read(triples.values.dataset, &group.attributes);
            triples.values.dataset = &values;
            findings.extend(
                triples.major.as_ref().err().map(|reason| Finding::new(site.path, &rules::SPARSE, reason.clone())),
            );
            let axes = ["column", "row"].map(|name| MatrixAxis { name, labels: None });
            columns = triples.columns(site, site.path, group, axes, &mut Vec::new());
        }
        Err(reason) => findings.push(Finding::new(site.path, &rules::SPARSE, reason)),
    }
    Table {
        revision: "sparse matrix".into(),
        rows: columns.last().and_then(|values| Some(values.rows.as_ref().ok()?.len())).unwrap_or(0),
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, Matlab.about().name)
    }
}

/// The dataset with the type that MATLAB means: bytes of class `logical`, as these attributes state it, are booleans,
/// and compounds of `real` and `imag` are complex numbers.
fn read(dataset: &Arc<Dataset>, attributes: &[Attribute]) -> Arc<Dataset> {
    let datatype = match complex(dataset) {
        Some(datatype) => datatype,
        None if is_logical(dataset, attributes) => Datatype { size: 1, class: Class::Flag },
        None => return dataset.clone(),
    };
    Arc::new(dataset.described(|dataset| dataset.datatype = datatype))
}

/// Makes the files of characters outside of structs, which are one text, or several texts as lines.
fn texts(
    site: &Site<'_>,
    name: &BString,
    stored: &Arc<Dataset>,
    interrupt: Option<&Interrupt>,
) -> Result<Single, Unreadable> {
    let mut lines = interrupt.map_or(Ok(Vec::new()), |interrupt| lines(stored, site, site.path, interrupt))?;
    if lines.is_empty() {
        lines.push(String::new());
    }
    let rows: Arc<dyn Rows> = Arc::new(HeldRows::new(Arc::new(LargeStringArray::from(lines)), false, Hints::default()));
    let shape = if is_one(stored) { Vec::new() } else { vec![stored.shape[1]] };
    let described = Arc::new(stored.described(|dataset| {
        dataset.datatype.class = Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
    }));
    let text = is_one(stored).then(|| rows.clone());
    let whole = Column {
        attributes: stored.attributes.clone(),
        dataset: Some(stored.clone()),
        ..Column::new(name.clone(), site.path.to_owned(), ColumnId::whole(stored.id), Ok(rows), Arc::default())
    };
    let single = Arrays::of_rows(site.path, &described, shape, whole);
    Ok(Single {
        text,
        shape: stored.shape.clone(),
        datatype: stored.datatype.clone(),
        whole: Table { dialect: Matlab.about().name, ..single.whole },
        ..single
    })
}

/// Whether characters make up a single text: they lie along one axis, or the array is empty.
fn is_one(dataset: &Dataset) -> bool {
    attribute(&dataset.attributes, EMPTY).is_some() || dataset.shape.iter().any(|extent| *extent <= 1)
}

/// Reads the texts that characters along the first axis make up, one for each place on the second axis. A vector is one
/// text.
fn lines(
    dataset: &Arc<Dataset>,
    site: &Site<'_>,
    path: &str,
    interrupt: &Interrupt,
) -> Result<Vec<String>, Unreadable> {
    let count = dataset.len().unwrap_or(u64::MAX);
    if count == 0 || attribute(&dataset.attributes, EMPTY).is_some() {
        return Ok(Vec::new());
    }
    if count > MOST_CHARACTERS {
        return Err(format!("has {count} characters, more than {MOST_CHARACTERS}").into());
    }
    let rows = datasets::rows(site.file, path, dataset, u64::MAX, &Fill::Default, &Arc::default())?;
    let array = rows.array(0..count, interrupt)?;
    let units = widen::unsigned(&array).ok_or("is no text")?;
    let lines = if is_one(dataset) { 1 } else { dataset.shape[1] as usize };
    Ok((0..lines)
        .map(|at| {
            let units = units.values().iter().skip(at).step_by(lines);
            // MATLAB stores UTF-16, but other software also stores whole code points.
            match dataset.datatype.size {
                2 => String::from_utf16_lossy(&units.map(|unit| *unit as u16).collect::<Vec<_>>()),
                _ => units.map(|unit| code_point(*unit)).collect(),
            }
        })
        .collect())
}

fn code_point(unit: u64) -> char {
    u32::try_from(unit).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
