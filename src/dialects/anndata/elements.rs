//! Opens an element that makes a single column.

use std::sync::Arc;

use arrow_schema::DataType;

use super::encoding::EncodingType;
use super::rules;
use crate::catalogue::{Attribute, Dataset, Group, Object, attribute, join};
use crate::dialects::attributes::{boolean, references};
use crate::dialects::datasets;
use crate::source::Interrupt;
use crate::store::{File, Rows, Tally};
use crate::table::{CastRows, Categories, CategoryRows, MaskedRows, Rule, Unreadable};

/// An element that holds one value per row.
pub(super) struct AnndataElement {
    pub rows: Arc<dyn Rows>,
    /// The dataset of the values, or of the codes that stand for them.
    pub dataset: Arc<Dataset>,
    /// The labels of the codes. `None`: the values are no codes.
    pub categories: Option<Categories>,
    /// The rule that the element breaks, if any, and what was found.
    pub finding: Option<(&'static Rule, String)>,
    /// Whether the element is complete: a mask, if any, is as long as its values.
    pub is_whole: bool,
}

/// Opens elements of a file.
pub(super) struct ElementOpener<'a> {
    pub file: &'a Arc<File>,
    pub interrupt: &'a Interrupt,
}

impl ElementOpener<'_> {
    /// Opens the column in the object at `path`.
    ///
    /// # Errors
    /// Why the object is not a column.
    pub fn element(&self, path: &str, object: &Object, tally: &Arc<Tally>) -> Result<AnndataElement, Unreadable> {
        match object {
            Object::Dataset(dataset) => self.dataset(path, dataset, tally),
            Object::Group { attributes, .. } => {
                let encoding = EncodingType::of(attributes);
                if !is_element(&encoding) {
                    return Err("a group that is no column".into());
                }
                let group = self.group(object)?;
                match encoding {
                    EncodingType::Categorical => self.categorical(path, &group, tally),
                    _ => self.masked(path, &group, tally),
                }
            }
            Object::Datatype { .. } => Err("a committed datatype".into()),
            Object::Unreadable { reason, .. } => Err(reason.clone().into()),
        }
    }

    /// Lists a group.
    ///
    /// # Errors
    /// The object is not a group, or cannot be listed.
    pub fn group(&self, object: &Object) -> Result<Group, Unreadable> {
        match object {
            Object::Group { id, .. } => self.file.group(*id, self.interrupt).map_err(Unreadable::from),
            _ => Err("not a group".into()),
        }
    }

    /// Looks up the object at a path.
    ///
    /// # Errors
    /// Why the path leads to no object.
    pub fn at(&self, path: &str) -> Result<Object, Unreadable> {
        datasets::at(self.file, path, self.interrupt)
    }

    /// Opens the values of a dataset of rank 1. The HDF5 fill value is an ordinary value.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn array(&self, path: &str, dataset: &Arc<Dataset>, tally: &Arc<Tally>) -> Result<Arc<dyn Rows>, Unreadable> {
        datasets::line(self.file, path, dataset, tally)
    }

    fn dataset(&self, path: &str, dataset: &Arc<Dataset>, tally: &Arc<Tally>) -> Result<AnndataElement, Unreadable> {
        let rows = self.array(path, dataset, tally)?;
        let plain = AnndataElement { rows, dataset: dataset.clone(), categories: None, finding: None, is_whole: true };
        let Some(target) = attribute(&dataset.attributes, "categories") else { return Ok(plain) };
        if !plain.rows.data_type().is_integer() {
            return Ok(plain);
        }
        // In version 0.1.0 of data frames, an attribute refers to the labels.
        Ok(match self.referred(path, target) {
            Ok(categories) => labelled(path, plain, categories, tally)?,
            Err(reason) => {
                let rule = &rules::LABELS_REFERRED;
                AnndataElement { finding: Some((rule, reason.into())), ..plain }
            }
        })
    }

    /// Opens the labels that the attribute `target` of the codes at `path` refers to.
    fn referred(&self, path: &str, target: &Attribute) -> Result<Categories, Unreadable> {
        let Some([Some(id)]) = references(target) else {
            return Err("it holds no reference, or one that leads nowhere; codes are shown".into());
        };
        let object = self.file.object(*id, self.interrupt)?;
        let ordered = boolean(object.attributes(), "ordered").unwrap_or(false);
        self.labels(format!("{path} (categories)"), &object, ordered)
    }

    /// Opens the labels that an element holds.
    ///
    /// # Errors
    /// Why the element cannot hold labels.
    pub fn labels(&self, path: String, object: &Object, ordered: bool) -> Result<Categories, Unreadable> {
        let tally = Arc::default();
        // Labels are never read as codes of other labels: such references could go round in a circle.
        let (rows, dataset) = match object {
            Object::Dataset(dataset) => (self.array(&path, dataset, &tally)?, dataset.clone()),
            Object::Group { attributes, .. } if EncodingType::of(attributes) == EncodingType::Masked => {
                let labels = self.masked(&path, &self.group(object)?, &tally)?;
                (labels.rows, labels.dataset)
            }
            _ => return Err("labels are neither an array nor values with a mask".into()),
        };
        // If every row is missing, anndata writes labels without a type.
        let rows = match rows.len() {
            0 => Arc::new(CastRows::new(rows, Some(DataType::LargeUtf8), false)),
            _ => rows,
        };
        Ok(Categories { path, labels: Ok(rows), datatype: dataset.datatype.clone(), ordered: Some(ordered) })
    }

    fn categorical(&self, path: &str, group: &Group, tally: &Arc<Tally>) -> Result<AnndataElement, Unreadable> {
        let dataset = datasets::member(group, "codes")?.clone();
        let rows = self.array(&join(path, b"codes"), &dataset, tally)?;
        if !rows.data_type().is_integer() {
            return Err(format!("codes of type {}", rows.data_type()).into());
        }
        let codes = AnndataElement { rows, dataset, categories: None, finding: None, is_whole: true };
        let ordered = boolean(&group.attributes, "ordered").unwrap_or(false);
        let labels = self.labels(join(path, b"categories"), datasets::object(group, "categories")?, ordered)?;
        labelled(path, codes, labels, tally)
    }

    fn masked(&self, path: &str, group: &Group, tally: &Arc<Tally>) -> Result<AnndataElement, Unreadable> {
        let part = |name: &str, tally| {
            let dataset = datasets::member(group, name)?;
            Ok::<_, String>((self.array(&join(path, name.as_bytes()), dataset, tally)?, dataset.clone()))
        };
        let (values, dataset) = part("values", tally)?;
        let (mask, of_mask) = part("mask", &Arc::default())?;
        let is_boolean = of_mask.datatype.is_boolean();
        let lengths = [values.len(), mask.len()];
        let rows = Arc::new(MaskedRows::new(path.to_owned(), values, mask)?);
        let is_whole = lengths[0] == lengths[1];
        let finding: Option<(&'static Rule, String)> = match is_whole {
            false => Some((&rules::MASK, format!("{} values, a mask of {}", lengths[0], lengths[1]))),
            true if !is_boolean => Some((&rules::MASK_TYPE, "a mask of other elements".into())),
            true => None,
        };
        Ok(AnndataElement { rows, dataset, categories: None, finding, is_whole })
    }
}

fn labelled(
    path: &str,
    codes: AnndataElement,
    categories: Categories,
    tally: &Arc<Tally>,
) -> Result<AnndataElement, Unreadable> {
    let labels = categories.labels.clone()?;
    let rows = CategoryRows::new(path.to_owned(), codes.rows, labels, tally.clone());
    let rows = Arc::new(rows.ordered(categories.ordered == Some(true)));
    Ok(AnndataElement { rows, categories: Some(categories), ..codes })
}

/// Whether a group of this kind makes a single column.
pub(super) fn is_element(encoding: &EncodingType) -> bool {
    matches!(encoding, EncodingType::Categorical | EncodingType::Masked)
}
