//! Makes the table of a data frame: row names, the listed columns, then the others in the order of links.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::BString;

use super::{CLASS, COLUMNS, H5Seurat, INDEX, LOGICAL, LOGICALS, row_names, rules};
use crate::catalogue::{ByteOrder, Class, ColumnId, Dataset, Elements, Fill, Group, Object, attribute, join};
use crate::dialects::attributes::{strings, text};
use crate::dialects::{Dialect, Here, Role, Site, datasets};
use crate::source::Interrupt;
use crate::store::{File, Rows, Tally};
use crate::table::{
    Categories, CategoryRows, Column, Finding, Meaning, Origin, OriginalName, RecodedRows, Table, Unreadable,
};

/// The member of a factor that holds its levels.
const LEVELS: &str = "levels";
/// The member of a factor that holds the numbers of levels, from 1.
const VALUES: &str = "values";

/// The member with row names, unless an attribute names another one.
const ROW_NAMES: &[u8] = b"row.names";

/// The label sets of a data frame converted from AnnData. The factors of the frame also hold these labels as levels.
const CATEGORIES: &[u8] = b"__categories";

/// Most groups of a data frame to list: any may be a factor.
const MOST_FACTORS: usize = 1 << 12;

/// Roles of the members of a data frame: vectors and factors are columns, and label sets from AnnData are servants. Any
/// other member is shown by itself.
pub(super) fn roles(here: &Here<'_>) -> HashMap<BString, Role> {
    let mut left = MOST_FACTORS;
    let links = here.group.links.iter().filter_map(|link| Some((&link.name, link.target.object()?)));
    let roles = links.filter_map(|(name, object)| {
        let role = match object {
            Object::Group { .. } if *name == CATEGORIES => Role::Servant,
            Object::Group { .. } => factor(here.file, object, &mut left, here.interrupt).ok().map(|_| Role::Column)?,
            Object::Dataset(dataset) => is_vector(dataset).then_some(Role::Column)?,
            Object::Datatype { .. } | Object::Unreadable { .. } => return None,
        };
        Some((name.clone(), role))
    });
    roles.collect()
}

fn is_vector(dataset: &Dataset) -> bool {
    dataset.shape.len() == 1 && !dataset.null
}

/// Lists the group of a factor. Fails if the object is not a factor.
fn factor(file: &Arc<File>, object: &Object, left: &mut usize, interrupt: &Interrupt) -> Result<Group, Unreadable> {
    let Object::Group { id, .. } = object else { return Err("neither a vector nor a factor".into()) };
    *left = left.checked_sub(1).ok_or_else(|| format!("more than {MOST_FACTORS} groups of one data frame"))?;
    let group = file.group(*id, interrupt)?;
    for part in [LEVELS, VALUES] {
        datasets::of_rank(&group, part, 1).ok_or_else(|| format!("a group without {part} of rank 1"))?;
    }
    Ok(group)
}

/// Makes the table of a data frame.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let said = |name| attribute(&group.attributes, name).and_then(strings).unwrap_or_default();
    let logicals = said(LOGICALS).into_iter().collect();
    let mut frame =
        Frame { site, interrupt, logicals, left: MOST_FACTORS, categories: Vec::new(), findings: Vec::new() };
    let mut columns: Vec<Column> = frame.row_names(group).into_iter().collect();
    let own = columns.first().map(|names| names.id);
    let links = group.links.iter().map(|link| link.name.clone()).filter(|name| *name != CATEGORIES);
    let mut seen = HashSet::new();
    for name in said(COLUMNS).into_iter().chain(links).filter(|name| seen.insert(name.clone())) {
        match group.link(&name).and_then(|link| link.target.object()) {
            Some(object) if own == Some(ColumnId::whole(object.id())) => {}
            Some(object) => columns.extend(frame.column(&name, object)),
            None => {
                frame.findings.push(Finding::new(site.path, &rules::NAMES, format!("{name}: there is no such member")))
            }
        }
    }
    let rows = datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut frame.findings);
    Table {
        revision: text(&group.attributes, INDEX).map_or("without row names", |_| "with row names").into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.into_iter().map(|column| column.with_missing_nan(site.file)).collect(),
        categories: frame.categories,
        labels_differ: Some(&rules::LEVELS_TWICE),
        servants: group.link(CATEGORIES).map(|link| link.name.clone()).into_iter().collect(),
        findings: frame.findings,
        ..Table::empty(site.path, H5Seurat.about().name)
    }
}

/// A data frame whose columns are being made.
struct Frame<'a> {
    site: &'a Site<'a>,
    interrupt: &'a Interrupt,
    logicals: HashSet<BString>,
    /// Number of groups that may still be listed.
    left: usize,
    categories: Vec<Categories>,
    findings: Vec<Finding>,
}

impl Frame<'_> {
    /// Opens the row names, which lie in the data frame or beside it. In R, the row names themselves have no name.
    fn row_names(&self, group: &Group) -> Option<Column> {
        let file = self.site.file;
        let named = text(&group.attributes, INDEX).map_or_else(|| ROW_NAMES.into(), BString::from);
        let own = group.link(&named).and_then(|link| link.target.dataset());
        let (path, dataset) = match (own, row_names(self.site.path)) {
            (Some(own), _) => (join(self.site.path, &named), own.clone()),
            (None, path) => {
                match path.and_then(|path| Some((datasets::at(file, &path, self.interrupt).ok()?, path)))? {
                    (Object::Dataset(dataset), path) => (path, dataset),
                    _ => return None,
                }
            }
        };
        let tally = Arc::<Tally>::default();
        let rows = datasets::line(file, &path, &dataset, &tally).ok()?;
        Some(Column {
            is_label: true,
            stored_strings: datasets::stored_strings(file, &path, &dataset, u64::MAX),
            attributes: dataset.attributes.clone(),
            dataset: Some(dataset.clone()),
            meaning: Meaning {
                origin: Origin { called: OriginalName::Nothing, ..Origin::default() },
                ..Meaning::default()
            },
            ..Column::new(INDEX.into(), path, ColumnId::whole(dataset.id), Ok(rows), tally)
        })
    }

    /// Makes a column. `None`: the object is not a column; a finding says why.
    fn column(&mut self, name: &BString, object: &Object) -> Option<Column> {
        let path = join(self.site.path, name);
        let tally = Arc::<Tally>::default();
        let opened = match object {
            Object::Dataset(dataset) if is_vector(dataset) => self.vector(&path, name, dataset, &tally),
            Object::Dataset(dataset) => Err(format!("a dataset of rank {}, not 1", dataset.shape.len()).into()),
            _ => factor(self.site.file, object, &mut self.left, self.interrupt)
                .and_then(|group| self.factor(&path, &group, &tally)),
        };
        let (rows, dataset, categories) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                self.findings.push(Finding::new(&path, &rules::COLUMN, reason));
                return None;
            }
        };
        Some(Column {
            stored_strings: datasets::stored_strings(self.site.file, &path, &dataset, u64::MAX),
            categories,
            attributes: object.attributes().into(),
            dataset: Some(dataset),
            ..Column::new(name.clone(), path, ColumnId::whole(object.id()), Ok(rows), tally)
        })
    }

    fn vector(
        &self,
        path: &str,
        name: &BString,
        dataset: &Arc<Dataset>,
        tally: &Arc<Tally>,
    ) -> Result<Opened, Unreadable> {
        let rows = datasets::rows(self.site.file, path, dataset, u64::MAX, &missing(dataset), tally)?;
        let is_logical = self.logicals.contains(name) || text(&dataset.attributes, CLASS).as_deref() == Some(LOGICAL);
        let rows = match is_logical && rows.data_type().is_integer() {
            true => Arc::new(RecodedRows::logicals(path.to_owned(), rows, tally.clone())?),
            false => rows,
        };
        Ok((rows, dataset.clone(), None))
    }

    fn factor(&mut self, path: &str, group: &Group, tally: &Arc<Tally>) -> Result<Opened, Unreadable> {
        let (values, levels) = (datasets::member(group, VALUES)?, datasets::member(group, LEVELS)?);
        let [values_at, levels_at] = [VALUES, LEVELS].map(|part| join(path, part.as_bytes()));
        let codes = datasets::rows(self.site.file, &values_at, values, u64::MAX, &missing(values), &Arc::default())?;
        let codes = Arc::new(RecodedRows::from_one(values_at, codes)?);
        let labels = datasets::line(self.site.file, &levels_at, levels, &Arc::default())?;
        let rows = Arc::new(CategoryRows::new(path.to_owned(), codes, labels.clone(), tally.clone()));
        let datatype = levels.datatype.clone();
        self.categories.push(Categories { path: levels_at, labels: Ok(labels), datatype, ordered: None });
        Ok((rows, values.clone(), Some(self.categories.len() - 1)))
    }
}

/// An opened column: its rows, the dataset that holds them, and the position of its levels among the label sets.
type Opened = (Arc<dyn Rows>, Arc<Dataset>, Option<usize>);

/// R's `NA` for integers: the least one of 32 bits. Other types have no missing value.
fn missing(dataset: &Dataset) -> Fill {
    let bytes = i32::MIN.to_le_bytes();
    let bytes = match dataset.datatype.class {
        Class::Integer { signed: true, order: ByteOrder::Little, precision: 32, .. } => bytes.to_vec(),
        Class::Integer { signed: true, order: ByteOrder::Big, precision: 32, .. } => {
            bytes.iter().rev().copied().collect()
        }
        _ => return Fill::Default,
    };
    if dataset.datatype.size == 4 { Fill::Explicit(Elements { bytes, heap: Vec::new() }) } else { Fill::Default }
}
