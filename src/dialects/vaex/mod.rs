//! vaex, which keeps a table as a group of columns that are groups themselves.
//!
//! ```text
//! /table                type = "table"
//! /table/columns        column_order = "a,b"
//! /table/columns/a      data, and mask or null_bitmap if rows can be missing
//! /table/columns/b      data (characters), indices (offsets), null_bitmap
//! /table/columns/c      type = "dictionary_encoded": dictionary (a column), indices (another, of codes)
//! ```

mod rules;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::DataType;
use bstr::BString;

use super::attributes::text;
use super::times::{self, OfNumpy};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site, arrays, datasets};
use crate::catalogue::{ByteOrder, Class, ColumnId, Dataset, Datatype, Fill, Group, Object, ObjectId, join};
use crate::source::Interrupt;
use crate::store::{Rows, Tally};
use crate::table::{BitRows, CategoryRows, Column, Finding, MaskedRows, Meaning, StringRows, Table, Unreadable};

/// Name of the group of the columns.
const COLUMNS: &str = "columns";

/// The vaex dialect.
#[derive(Debug)]
pub struct Vaex;

static ABOUT: About =
    About { rules: rules::ALL, attributes: &["type", "column_order", "alias", "dtype"], ..About::named("vaex") };

impl Dialect for Vaex {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if text(attributes, "type").as_deref() == Some("table") => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let members = columns(here.group).map(|_| (COLUMNS.into(), Role::Servant));
        Claims { is_table: members.is_some(), members: members.into_iter().collect(), ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => table(site, group, interrupt),
            // This dialect claims only groups.
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

/// Finds the group of the columns of a table. `None`: the group is not a table.
fn columns(group: &Group) -> Option<ObjectId> {
    match group.link(COLUMNS.as_bytes())?.target.object()? {
        Object::Group { id, .. } => Some(*id),
        _ => None,
    }
}

/// Makes the table of a group.
fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let path = join(site.path, COLUMNS.as_bytes());
    let mut findings = Vec::new();
    let within = columns(group).ok_or_else(|| "it has no columns".to_owned());
    let within = within.and_then(|id| site.file.group(id, interrupt).map_err(|error| error.to_string()));
    let mut columns = match &within {
        Ok(within) => {
            let opener = Opener { site, within, path: &path, interrupt };
            ordered(within).into_iter().map(|name| opener.column(&name, &mut findings)).collect()
        }
        Err(reason) => {
            findings.push(Finding::new(&path, &rules::COLUMNS, reason.clone()));
            Vec::new()
        }
    };
    let rows = datasets::of_one_length(&mut columns, &rules::LENGTH, true, &mut findings);
    Table {
        rows,
        attributes: group.attributes.clone(),
        columns,
        servants: vec![COLUMNS.into()],
        findings,
        ..Table::empty(site.path, Vaex.about().name)
    }
}

/// Names of the columns: those that are listed, then the others, in the order of links.
fn ordered(within: &Group) -> Vec<BString> {
    let known: HashSet<&BString> = within.links.iter().map(|link| &link.name).collect();
    let listed = text(&within.attributes, "column_order").unwrap_or_default();
    let listed = listed.split(',').map(BString::from).filter(|name| known.contains(name));
    let mut names: Vec<BString> = listed.chain(within.links.iter().map(|link| link.name.clone())).collect();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Opens the columns of a table.
struct Opener<'a> {
    site: &'a Site<'a>,
    within: &'a Group,
    path: &'a str,
    interrupt: &'a Interrupt,
}

impl Opener<'_> {
    fn column(&self, name: &BString, findings: &mut Vec<Finding>) -> Column {
        let path = join(self.path, name);
        let object = self.within.link(name).and_then(|link| link.target.object());
        let attributes = object.map(|object| object.attributes()).unwrap_or_default();
        let shown = text(attributes, "alias").map_or_else(|| name.clone(), BString::from);
        let opened = object.ok_or(Unreadable::from("it leads nowhere")).and_then(|object| {
            match text(attributes, "type").as_deref() {
                Some("dictionary_encoded") => self.encoded(&path, object),
                _ => self.open(&path, object),
            }
        });
        match opened {
            Ok(Opened { rows, tally, data, of_numpy, unmasked }) => {
                if let Some(mask) = unmasked {
                    let found = format!("{} values, a mask of {mask}: the others are missing", rows.len());
                    findings.push(Finding::new(&path, &rules::MASK, found));
                }
                let of_numpy = of_numpy.as_ref();
                let times = of_numpy.and_then(|of_numpy| of_numpy.times(self.site.file, rows.as_ref())).map(Box::new);
                let units = text(&data.attributes, "units").or_else(|| of_numpy?.units());
                // The group identifies the column: `data` by itself is another column.
                let id = ColumnId::whole(object.map_or(data.id, Object::id));
                let dataset = Some(data);
                let attributes = attributes.into();
                Column {
                    attributes,
                    dataset,
                    meaning: Meaning { times, units, ..Meaning::default() },
                    ..Column::new(shown, path, id, Ok(rows), tally)
                }
            }
            Err(reason) => Column::new(shown, path, ColumnId::whole(self.within.id), Err(reason), Arc::default()),
        }
    }

    /// Opens a column of codes that stand for labels. A code without a label, such as the least integer, is null.
    fn encoded(&self, path: &str, object: &Object) -> Result<Opened, Unreadable> {
        let group = self.site.file.group(object.id(), self.interrupt)?;
        let part = |name: &str| self.open(&join(path, name.as_bytes()), datasets::object(&group, name)?);
        let (labels, codes) = (part("dictionary")?, part("indices")?);
        if *labels.rows.data_type() != DataType::LargeUtf8 || !codes.rows.data_type().is_integer() {
            let (labels, codes) = (labels.rows.data_type(), codes.rows.data_type());
            return Err(format!("a dictionary of type {labels} with codes of type {codes}").into());
        }
        let rows = CategoryRows::new(path.to_owned(), codes.rows, labels.rows, Arc::default());
        Ok(Opened { rows: Arc::new(rows), ..codes })
    }

    fn open(&self, path: &str, object: &Object) -> Result<Opened, Unreadable> {
        let group = match object {
            Object::Group { id, .. } => self.site.file.group(*id, self.interrupt)?,
            _ => return Err("it is no group".into()),
        };
        let data = datasets::member(&group, "data")?;
        let tally = Arc::<Tally>::default();
        let line = |name: &str, dataset: &Arc<Dataset>| {
            datasets::line(self.site.file, &join(path, name.as_bytes()), dataset, &Arc::default())
        };
        let part = |name: &str| match group.link(name.as_bytes()) {
            Some(_) => line(name, datasets::member(&group, name)?).map(Some),
            None => Ok(None),
        };
        let dtype = text(&data.attributes, "dtype");
        let (bitmap, indices) = (part("null_bitmap")?, part("indices")?);
        if let Some(offsets) = indices.filter(|_| dtype.as_deref() == Some("str")) {
            if !offsets.data_type().is_integer() {
                return Err(format!("indices of type {}", offsets.data_type()).into());
            }
            let byte = byte(&data.datatype)?;
            let characters = line("data", &Arc::new(data.described(|data| data.datatype = byte)))?;
            let count = offsets.len().saturating_sub(1);
            let present = bitmap.map(|bits| BitRows::new(path.to_owned(), bits, count, false)).transpose()?;
            let present = present.map(|present| Arc::new(present) as Arc<dyn Rows>);
            let rows = StringRows::new(path.to_owned(), offsets, characters, present, u64::MAX, tally.clone());
            return Ok(Opened { rows: Arc::new(rows), tally, data: data.clone(), of_numpy: None, unmasked: None });
        }
        let of_numpy = dtype.as_deref().and_then(numpy);
        if let Some(dtype) = dtype.filter(|_| of_numpy.is_some() && data.shape.len() > 1) {
            return Err(format!("{dtype} of rank {}", data.shape.len()).into());
        }
        // Elements of other types are never missing by their value.
        let missing = match (&of_numpy, &data.datatype.class) {
            (Some(_), Class::Integer { order, .. }) if data.datatype.size == 8 => times::not_a_time(*order),
            _ => Fill::Default,
        };
        if data.shape.is_empty() || data.null {
            return Err("data that are no array".into());
        }
        let within = join(path, b"data");
        let (values, tally) = if data.shape.len() == 1 {
            (datasets::rows(self.site.file, &within, data, u64::MAX, &missing, &tally)?, tally)
        } else {
            let column = arrays::column(self.site.file, &within, &"data".into(), data);
            (column.rows?, column.tally)
        };
        let mask = match (part("mask")?, bitmap) {
            (Some(mask), _) => Some(mask),
            (None, Some(bits)) => {
                let bits = BitRows::new(path.to_owned(), bits, values.len(), true)?;
                Some(Arc::new(bits) as Arc<dyn Rows>)
            }
            (None, None) => None,
        };
        let unmasked = mask.as_ref().map(|mask| mask.len()).filter(|masked| *masked < values.len());
        let rows = match mask {
            Some(mask) => Arc::new(MaskedRows::new(path.to_owned(), values, mask)?),
            None => values,
        };
        Ok(Opened { rows, tally, data: data.clone(), of_numpy, unmasked })
    }
}

/// An opened column.
struct Opened {
    rows: Arc<dyn Rows>,
    /// Oddities counted when the values are read.
    tally: Arc<Tally>,
    data: Arc<Dataset>,
    of_numpy: Option<OfNumpy>,
    /// Length of the mask, if it is shorter than the values. `None`: it is long enough, or the column has no mask.
    unmasked: Option<u64>,
}

/// The type as which to read characters: bytes.
///
/// # Errors
/// The type is not one of characters.
fn byte(stored: &Datatype) -> Result<Datatype, Unreadable> {
    match stored.class {
        Class::FixedString { .. } | Class::Integer { .. } if stored.size == 1 => {
            Ok(Datatype::integer(1, false, ByteOrder::Little))
        }
        _ => Err(format!("characters of {} bytes", stored.size).into()),
    }
}

/// How to read integers as NumPy's type of this name, such as `datetime64[ns]`. `None`: not a type of times.
fn numpy(dtype: &str) -> Option<OfNumpy> {
    let (kind, unit) = dtype.trim_end_matches(']').split_once('[')?;
    let kind = match kind {
        "datetime64" => "M8",
        "timedelta64" => "m8",
        _ => return None,
    };
    OfNumpy::of(&Datatype { size: 8, class: Class::Opaque { tag: format!("NUMPY:<{kind}[{unit}]").into() } })
}
