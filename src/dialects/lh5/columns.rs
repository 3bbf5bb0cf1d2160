//! Opens objects that make single columns.

use std::sync::Arc;

use bstr::BString;

use super::DATATYPE;
use super::datatype::{Lh5Datatype, Lh5Element};
use super::rules;
use crate::catalogue::{
    Attribute, Class, Dataset, Datatype, EnumerationMember, Group, Object, attribute, join, product,
};
use crate::codec::waveform::Coding;
use crate::dialects::attributes::{number, said, text};
use crate::dialects::datasets;
use crate::source::Interrupt;
use crate::store::decode::{FillTest, widen};
use crate::store::{DatasetRows, File, Rows, Tally};
use crate::table::{CompoundRows, EncodedRows, EndRows, Finding, ListRows, Samples, Unreadable};

/// Deepest nesting of columns to follow; each level costs a request.
const MOST_LEVELS: usize = 16;

/// Most columns of nested tables to open: on every level, many links may lead to one group.
const MOST_NESTED: usize = 1_000;

/// An opened column.
pub(super) struct OpenedColumn {
    pub rows: Arc<dyn Rows>,
    /// The dataset that holds the column. `None`: several datasets hold it.
    pub dataset: Option<Arc<Dataset>>,
    /// Attributes of the object that holds the values, if it lies inside the column's group; else empty.
    pub below: Arc<[Attribute]>,
    /// Oddities counted in parts of the column, by path.
    pub tallies: Vec<(String, Arc<Tally>)>,
}

/// Opens the columns of a file.
pub(super) struct ColumnOpener<'a> {
    pub file: &'a Arc<File>,
    pub interrupt: &'a Interrupt,
    pub findings: Vec<Finding>,
    /// Number of columns of nested tables opened so far.
    pub nested: usize,
}

/// The kind that an object's attribute states. `None`: it states none that LEGEND defines.
pub(super) fn kind(object: &Object) -> Option<Lh5Datatype> {
    Lh5Datatype::parse(&text(object.attributes(), DATATYPE)?)
}

impl ColumnOpener<'_> {
    /// Opens the column in the object at `path`.
    ///
    /// # Errors
    /// Why the object is not a column.
    pub fn column(
        &mut self,
        path: &str,
        object: &Object,
        tally: &Arc<Tally>,
        depth: usize,
    ) -> Result<OpenedColumn, Unreadable> {
        if depth > MOST_LEVELS {
            return Err(format!("nested deeper than {MOST_LEVELS}").into());
        }
        let kind = kind(object);
        let said = || text(object.attributes(), DATATYPE).unwrap_or_default();
        match object {
            Object::Dataset(dataset) => {
                let element = match kind {
                    Some(Lh5Datatype::Array(element)) => element,
                    _ => {
                        self.report(path, format!("datatype {:?} of a dataset: shown as stored", said()));
                        Lh5Element::Stored
                    }
                };
                self.array(path, dataset, &element, tally)
            }
            Object::Group { .. } => {
                let group = self.group(object)?;
                match kind {
                    Some(Lh5Datatype::Table(names)) => self.compound(path, &group, &names, depth),
                    Some(Lh5Datatype::Encoded) => self.encoded(path, &group, tally),
                    // The members of the group decide, whatever nesting the attribute states.
                    _ if group.link(b"cumulative_length").is_some() => self.lists(path, &group, tally, depth),
                    Some(Lh5Datatype::Struct(_)) => Err(format!("{:?}: shown by itself", said()).into()),
                    _ => Err(format!("a group with datatype {:?}", said()).into()),
                }
            }
            Object::Datatype { .. } => Err("a committed datatype".into()),
            Object::Unreadable { reason, .. } => Err(reason.clone().into()),
        }
    }

    fn report(&mut self, path: &str, found: String) {
        self.findings.push(Finding::new(path, &rules::DATATYPE, found));
    }

    fn group(&self, object: &Object) -> Result<Group, Unreadable> {
        match object {
            Object::Group { id, .. } => self.file.group(*id, self.interrupt).map_err(Unreadable::from),
            _ => Err("not a group".into()),
        }
    }

    /// Opens a dataset of any rank, with rows along its first dimension.
    fn array(
        &mut self,
        path: &str,
        dataset: &Arc<Dataset>,
        element: &Lh5Element,
        tally: &Arc<Tally>,
    ) -> Result<OpenedColumn, Unreadable> {
        if dataset.shape.is_empty() || dataset.null {
            return Err("a scalar".into());
        }
        if let Lh5Element::Unknown(name) = element {
            self.report(path, format!("elements of {name:?}, which is not known: shown as stored"));
        }
        let read = read(dataset, element).unwrap_or_else(|| dataset.clone());
        let opened = datasets::open(self.file, path, &read)?;
        let missing = FillTest::new(&read.datatype, &datasets::stated_fill(&read));
        let rows = Arc::new(DatasetRows::along_first(opened, missing, tally.clone()));
        Ok(OpenedColumn { rows, dataset: Some(dataset.clone()), below: Arc::default(), tallies: Vec::new() })
    }

    /// Opens the dataset of rank 1 with this name in a group.
    fn member(&mut self, path: &str, group: &Group, name: &str) -> Result<Arc<dyn Rows>, Unreadable> {
        match datasets::object(group, name)? {
            Object::Dataset(dataset) if dataset.shape.len() == 1 => {
                let path = join(path, name.as_bytes());
                Ok(self.array(&path, dataset, &Lh5Element::Stored, &Arc::default())?.rows)
            }
            _ => Err(format!("{name} is no dataset of rank 1").into()),
        }
    }

    fn offsets(&mut self, path: &str, group: &Group) -> Result<Arc<dyn Rows>, Unreadable> {
        let ends = self.member(path, group, "cumulative_length")?;
        Ok(Arc::new(EndRows::new(join(path, b"cumulative_length"), ends)?))
    }

    fn lists(
        &mut self,
        path: &str,
        group: &Group,
        tally: &Arc<Tally>,
        depth: usize,
    ) -> Result<OpenedColumn, Unreadable> {
        let offsets = self.offsets(path, group)?;
        let values = datasets::object(group, "flattened_data")?;
        let (below, own) = (join(path, b"flattened_data"), Arc::<Tally>::default());
        let opened = self.column(&below, values, &own, depth + 1)?;
        let tallies = std::iter::once((below, own)).chain(opened.tallies).collect();
        let rows = ListRows::new(path.to_owned(), offsets, opened.rows, None, u64::MAX, tally.clone());
        Ok(OpenedColumn { rows: Arc::new(rows), dataset: None, below: values.attributes().into(), tallies })
    }

    fn compound(
        &mut self,
        path: &str,
        group: &Group,
        names: &[BString],
        depth: usize,
    ) -> Result<OpenedColumn, Unreadable> {
        let (mut fields, mut tallies) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            let path = join(path, name);
            self.nested += 1;
            if self.nested > MOST_NESTED {
                return Err(format!("more than {MOST_NESTED} columns of tables within the table").into());
            }
            let opened = group
                .link(name)
                .and_then(|link| link.target.object())
                .ok_or(Unreadable::from("there is no such member"));
            let tally = Arc::<Tally>::default();
            match opened.and_then(|object| self.column(&path, object, &tally, depth + 1)) {
                Ok(opened) => {
                    fields.push((name.to_string(), opened.rows));
                    tallies.push((path, tally));
                    tallies.extend(opened.tallies);
                }
                Err(reason) => self.report(&path, reason.into()),
            }
        }
        let rows = CompoundRows::new(path.to_owned(), fields)?;
        Ok(OpenedColumn { rows: Arc::new(rows), dataset: None, below: Arc::default(), tallies })
    }

    fn encoded(&mut self, path: &str, group: &Group, tally: &Arc<Tally>) -> Result<OpenedColumn, Unreadable> {
        let data = datasets::object(group, "encoded_data")?;
        let below = join(path, b"encoded_data");
        let encoded = self.group(data)?;
        let offsets = self.offsets(&below, &encoded)?;
        let bytes = self.member(&below, &encoded, "flattened_data")?;
        let codec = text(&group.attributes, "codec").unwrap_or_default().replace('-', "_");
        let stated = attribute(&group.attributes, "codec_shift").map_or(Some(0.0), number);
        let shift = stated.filter(|shift| f64::from(*shift as i32) == *shift).map(|shift| shift as i32);
        let coding = match (codec.as_str(), shift) {
            ("radware_sigcompress", Some(shift)) => Coding::Sigcompress { shift },
            ("uleb128_zigzag_diff", _) => Coding::Zigzag,
            _ => {
                self.report(path, format!("codec {codec:?} with shift {} is not known: bytes are shown", said(stated)));
                let rows = ListRows::new(path.to_owned(), offsets, bytes, None, u64::MAX, tally.clone());
                return Ok(OpenedColumn {
                    rows: Arc::new(rows),
                    dataset: None,
                    below: Arc::default(),
                    tallies: Vec::new(),
                });
            }
        };
        let samples = match datasets::object(group, "decoded_size")? {
            // There is one size for all waveforms, stored as a scalar.
            Object::Dataset(size) if size.shape.is_empty() => {
                let opened = datasets::open(self.file, &join(path, b"decoded_size"), size)?;
                Samples::All(one(&DatasetRows::plain(opened, 1), self.interrupt)?)
            }
            Object::Dataset(sizes) if product(&sizes.shape[1..]) == Some(1) => {
                let opened = datasets::open(self.file, &join(path, b"decoded_size"), sizes)?;
                Samples::Each(Arc::new(DatasetRows::plain(opened, u64::MAX)))
            }
            _ => return Err("decoded_size is no dataset of one number, or of one for each waveform".into()),
        };
        let rows = EncodedRows::new(path.to_owned(), coding, (offsets, bytes), samples, tally.clone())?;
        Ok(OpenedColumn { rows: Arc::new(rows), dataset: None, below: Arc::default(), tallies: Vec::new() })
    }
}

/// Reads the only row: the number of samples that every waveform has.
fn one(rows: &dyn Rows, interrupt: &Interrupt) -> Result<u32, Unreadable> {
    let array = rows.array(0..1, interrupt)?;
    let size = widen::signed(&array).filter(|sizes| sizes.len() == 1).map(|sizes| sizes.value(0));
    size.and_then(|size| u32::try_from(size).ok()).ok_or_else(|| format!("decoded_size is {}", said(size)).into())
}

/// The dataset, for being shown by itself, with the type that its attribute `datatype` states. `None`: the attribute
/// adds nothing.
pub(super) fn meant(dataset: &Arc<Dataset>) -> Option<Arc<Dataset>> {
    let Lh5Datatype::Array(element) = Lh5Datatype::parse(&text(&dataset.attributes, DATATYPE)?)? else { return None };
    read(dataset, &element)
}

/// The dataset with another type to read its elements as. `None`: they are read as stored.
fn read(dataset: &Dataset, element: &Lh5Element) -> Option<Arc<Dataset>> {
    let datatype = read_as(&dataset.datatype, element)?;
    Some(Arc::new(dataset.described(|dataset| dataset.datatype = datatype)))
}

/// The type as which to read elements of a stored type. `None`: they are read as stored.
fn read_as(stored: &Datatype, element: &Lh5Element) -> Option<Datatype> {
    let Class::Integer { .. } = stored.class else { return None };
    let class = match element {
        Lh5Element::Boolean if stored.size == 1 => Class::Flag,
        Lh5Element::Enumeration(members) => {
            let member =
                |(name, value): &(BString, i64)| EnumerationMember { name: name.clone(), value: (*value).into() };
            Class::Enum { base: Box::new(stored.clone()), members: members.iter().map(member).collect() }
        }
        _ => return None,
    };
    Some(Datatype { size: stored.size, class })
}
