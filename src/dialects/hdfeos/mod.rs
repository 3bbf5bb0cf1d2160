//! HDF-EOS5: swaths of NASA's Earth Observing System. A text in the file names the dimensions of each field.
//!
//! ```text
//! /HDFEOS/SWATHS/O3/Geolocation Fields/Time    (nTimes)             a column
//! /HDFEOS/SWATHS/O3/Data Fields/Quality        (nTimes)             a column
//! /HDFEOS/SWATHS/O3/Data Fields/O3             (nTimes, nLevels)    lists, a column
//! /HDFEOS INFORMATION/StructMetadata.0
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `structure` | reads the text that describes swaths |

mod rules;
mod structure;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use bstr::BString;

use self::structure::{Swath, SwathField, swaths};
use super::attributes::text;
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site, arrays, datasets};
use crate::catalogue::{Dataset, Fill, Group, Object, join};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Column, Finding, Meaning, Table, Unreadable};

/// Prefix of the paths of swaths, fixed by the standard.
const SWATHS: &str = "/HDFEOS/SWATHS/";

/// The groups of a swath's fields: those that state places and times of the measurements, and all others.
const FIELDS: [&str; 2] = ["Geolocation Fields", "Data Fields"];

/// The group of the text that describes swaths.
const INFORMATION: &str = "HDFEOS INFORMATION";
/// Prefix of the names of the numbered pieces of the text that describes swaths.
const PIECE: &str = "StructMetadata.";

/// Most pieces to read of the text that describes swaths; the library gives each 32,000 bytes.
const MOST_PIECES: usize = 64;
/// Most bytes in a piece of the text that describes swaths.
const MOST_BYTES: u64 = 64 << 10;

/// Most elements of a field for each row, as for netCDF: fields with more are images.
const MOST_PLACES: u64 = 64;

/// Most fields to name in a finding.
const MOST_NAMED: usize = 8;

/// The HDF-EOS5 dialect.
#[derive(Debug)]
pub struct HdfEos;

static ABOUT: About =
    About { rules: rules::ALL, attributes: &["Units", "Title", "_FillValue"], ..About::named("HDF-EOS5") };

impl Dialect for HdfEos {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if swath_of(path).is_some() => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let fields = Fields::of(here.file, here.group, here.interrupt);
        let is_table = fields.has_rows() && information(here.file, here.interrupt).is_some();
        // Fields are also shown by themselves.
        Claims { is_table, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => table(site, group, interrupt),
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

/// The name of the swath at a path. `None`: not the path of a swath.
fn swath_of(path: &str) -> Option<&str> {
    path.strip_prefix(SWATHS).filter(|name| !name.is_empty() && !name.contains('/'))
}

/// Finds the group of the text that describes swaths.
fn information(file: &Arc<File>, interrupt: &Interrupt) -> Option<Group> {
    let root = file.group(file.info().root, interrupt).ok()?;
    let group = within(file, &root, INFORMATION, interrupt)?;
    group.link(format!("{PIECE}0").as_bytes()).is_some().then_some(group)
}

/// Lists the group with this name in another group.
fn within(file: &Arc<File>, group: &Group, name: &str, interrupt: &Interrupt) -> Option<Group> {
    match group.link(name.as_bytes())?.target.object()? {
        Object::Group { id, .. } => file.group(*id, interrupt).ok(),
        _ => None,
    }
}

/// Reads what the text says about a swath.
fn described(file: &Arc<File>, name: &str, interrupt: &Interrupt) -> Result<Swath, Unreadable> {
    let group = information(file, interrupt).ok_or("it is not there")?;
    let mut whole = String::new();
    for number in 0..MOST_PIECES {
        let piece = format!("{PIECE}{number}");
        let Ok(dataset) = datasets::member(&group, &piece) else { break };
        let path = join(&join("/", INFORMATION.as_bytes()), piece.as_bytes());
        whole.push_str(&read(file, &path, dataset, interrupt).map_err(|reason| format!("{piece}: {reason}"))?);
    }
    let mut swaths = swaths(&whole).into_iter();
    swaths.find(|swath| swath.name == name).ok_or_else(|| "it lists no such swath".into())
}

/// Reads one piece of the text that describes swaths.
fn read(file: &Arc<File>, path: &str, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Result<String, Unreadable> {
    if dataset.datatype.size > MOST_BYTES {
        return Err(format!("it has {} bytes", dataset.datatype.size).into());
    }
    let rows = datasets::rows(file, path, dataset, 1, &Fill::Default, &Arc::default())?;
    // A text of variable length may be as long as its heap object.
    let fitting = rows.fitting(0..rows.len(), MOST_BYTES, interrupt)?;
    if fitting.bytes > MOST_BYTES {
        return Err(format!("it has {} bytes", fitting.bytes).into());
    }
    let array = rows.array(0..rows.len(), interrupt)?;
    let texts = array.as_string_opt::<i64>().filter(|texts| texts.len() == 1 && texts.is_valid(0));
    Ok(texts.ok_or("it is no text")?.value(0).to_owned())
}

/// The fields of a group that can be columns, by name.
type Columns<'a> = HashMap<&'a [u8], (&'a BString, &'a Arc<Dataset>)>;

/// The groups of a swath's fields.
struct Fields {
    groups: [Option<Group>; 2],
}

impl Fields {
    fn of(file: &Arc<File>, group: &Group, interrupt: &Interrupt) -> Self {
        Self { groups: FIELDS.map(|name| within(file, group, name, interrupt)) }
    }

    /// The fields that can be columns, for each of the two groups.
    fn columns(&self) -> [Columns<'_>; 2] {
        self.groups.each_ref().map(|group| {
            let fields = group.iter().flat_map(|group| group.datasets()).filter(|(_, dataset)| is_column(dataset));
            fields.map(|named| (named.0.as_slice(), named)).collect()
        })
    }

    /// Whether at least two fields, one of them of rank 1, have the same length, as fields on one dimension do.
    fn has_rows(&self) -> bool {
        let columns = self.columns();
        let mut of_length = HashMap::<u64, (usize, bool)>::new();
        for (_, dataset) in columns.iter().flat_map(HashMap::values) {
            let Some(length) = dataset.shape.first() else { continue };
            let (count, has_line) = of_length.entry(*length).or_default();
            *count += 1;
            *has_line |= dataset.shape.len() == 1;
        }
        of_length.into_values().any(|(count, has_line)| count >= 2 && has_line)
    }
}

/// Whether a field has one value, or a few, for each row.
fn is_column(dataset: &Dataset) -> bool {
    !dataset.null && matches!(dataset.shape[..], [_] | [_, 1..=MOST_PLACES])
}

/// The dimension on which most one-dimensional fields lie; of several, the first.
fn longest(swath: &Swath) -> Option<&str> {
    let lines = swath.fields.iter().filter_map(|field| <&[String; 1]>::try_from(&field.dimensions[..]).ok());
    let mut counts = HashMap::<&str, usize>::new();
    for [dimension] in lines.clone() {
        *counts.entry(dimension).or_default() += 1;
    }
    let most = counts.values().max()?;
    lines.map(|[dimension]| dimension.as_str()).find(|dimension| counts.get(dimension) == Some(most))
}

/// Makes the table of a swath from the fields on one dimension.
fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let (mut columns, mut findings) = (Vec::new(), Vec::new());
    let name = swath_of(site.path).unwrap_or_default();
    match described(site.file, name, interrupt) {
        Ok(swath) => {
            let fields = Fields::of(site.file, group, interrupt);
            columns = columns_of(site, &swath, &fields, &mut findings);
        }
        Err(reason) => findings.push(Finding::new(site.path, &rules::STRUCTURE, format!("{INFORMATION}: {reason}"))),
    }
    let rows = datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut findings);
    Table {
        revision: "swath".into(),
        rows,
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, HdfEos.about().name)
    }
}

fn columns_of(site: &Site<'_>, swath: &Swath, fields: &Fields, findings: &mut Vec<Finding>) -> Vec<Column> {
    let Some(dimension) = longest(swath) else {
        findings.push(Finding::new(site.path, &rules::STRUCTURE, "no field has one dimension"));
        return Vec::new();
    };
    let stored = fields.columns();
    let (mut columns, mut seen, mut gone) = (Vec::new(), HashSet::new(), Vec::new());
    for SwathField { name, is_geolocation, dimensions } in &swath.fields {
        if dimensions.first().is_none_or(|first| first != dimension) {
            continue;
        }
        let place = usize::from(!is_geolocation);
        let found = stored[place].get(name.as_bytes()).filter(|(_, dataset)| dataset.shape.len() == dimensions.len());
        match found {
            // Of several fields with one name, the first one counts.
            Some(_) if !seen.insert(name) => gone.push(name.as_str()),
            Some((name, dataset)) => {
                let path = join(&join(site.path, FIELDS[place].as_bytes()), name);
                let column = arrays::column(site.file, &path, name, dataset);
                let [units, description] = ["Units", "Title"].map(|name| text(&dataset.attributes, name));
                let units = column.meaning.units.clone().or(units);
                columns.push(Column {
                    meaning: Meaning {
                        units,
                        description: column.meaning.description.clone().or(description),
                        ..column.meaning
                    },
                    ..column
                });
            }
            // Images and other fields of several dimensions are shown as arrays.
            None if dimensions.len() > 1 => {}
            None => gone.push(name.as_str()),
        }
    }
    if !gone.is_empty() {
        let first = gone.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
        let found = format!("{} not there, or named twice: {first}", gone.len());
        findings.push(Finding::new(site.path, &rules::FIELD, found));
    }
    columns
}
