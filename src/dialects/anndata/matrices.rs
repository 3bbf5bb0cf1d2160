//! Makes the table of `obsm` or `varm`: the matrices that describe a data frame's rows, side by side. Before version
//! 0.7 they are the fields of a compound.

use std::sync::Arc;

use bstr::BString;

use super::Anndata;
use super::awkward;
use super::elements::ElementOpener;
use super::encoding::{EncodingType, kind};
use super::frame::{self, Compounds};
use super::{records, rules};
use crate::catalogue::{Attribute, ColumnId, Dataset, Group, Object, attribute, join};
use crate::dialects::compound::{Compound, is_record};
use crate::dialects::{Dialect, Here, Site, datasets};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Tally};
use crate::table::{Column, Finding, Table, Unreadable};

/// Paths of the compounds that hold matrices, each with the path of the data frame that the matrices describe.
const COMPOUNDS: [(&str, &str); 3] = [("/obsm", "/obs"), ("/varm", "/var"), ("/raw.varm", "/raw.var")];

/// The path of the data frame that the matrices in the group at `path` describe. `None`: not a group of matrices. Such
/// a group states the kind `dict`; before version 0.8 it states none.
pub(super) fn frame_of(path: &str, group: &[Attribute]) -> Option<String> {
    let (parent, name) = path.rsplit_once('/')?;
    let frame = match name {
        "obsm" => "obs",
        "varm" => "var",
        _ => return None,
    };
    kind(group).is_none_or(|kind| kind == "dict").then(|| format!("{parent}/{frame}"))
}

/// Whether a dataset is a compound of matrices, by its path. Tables of PyTables, which have the attribute `CLASS`, do
/// not count.
pub(super) fn is_compound(path: &str, dataset: &Dataset) -> bool {
    COMPOUNDS.iter().any(|(matrices, _)| *matrices == path)
        && is_record(dataset)
        && attribute(&dataset.attributes, "CLASS").is_none()
}

/// Most members of all data frames and awkward arrays in a group of matrices: many links may lead to one frame with
/// many columns.
const MOST_MEMBERS: usize = 1 << 16;

/// Whether a group has a matrix and lies beside the data frame that it describes: a user's dictionary may have the same
/// name. At the root the frame may be missing.
pub(super) fn has_any(here: &Here<'_>) -> bool {
    let frame = frame_of(here.path, &here.group.attributes).filter(|_| matrices(here.group).next().is_some());
    let Some(frame) = frame else { return false };
    let opener = ElementOpener { file: here.file, interrupt: here.interrupt };
    frame.matches('/').count() == 1
        || match opener.at(&frame) {
            Ok(Object::Group { attributes, .. }) => EncodingType::of(&attributes) == EncodingType::Frame,
            Ok(Object::Dataset(dataset)) => records::is_frame(&frame, &dataset),
            _ => false,
        }
}

/// Members of a group of matrices that have a row for each row of the data frame: arrays, data frames and awkward
/// arrays. Sparse matrices have tables of their own.
fn matrices(group: &Group) -> impl Iterator<Item = (&BString, &Object)> {
    let named = group.links.iter().filter_map(|link| Some((&link.name, link.target.object()?)));
    named.filter(|(_, object)| match object {
        Object::Dataset(dataset) => !dataset.shape.is_empty() && !dataset.null,
        Object::Group { attributes, .. } => {
            matches!(EncodingType::of(attributes), EncodingType::Frame | EncodingType::Awkward)
        }
        Object::Datatype { .. } | Object::Unreadable { .. } => false,
    })
}

/// Makes the table of the matrices in a group: the row labels of the data frame, then a column for each matrix.
pub(super) fn table(site: &Site<'_>, group: &Group, frame: &str, interrupt: &Interrupt) -> Table {
    let (mut findings, mut left) = (Vec::new(), MOST_MEMBERS);
    let mut columns: Vec<Column> = label(site, frame, interrupt).into_iter().collect();
    for (name, object) in matrices(group) {
        let (path, tally) = (join(site.path, name), Arc::<Tally>::default());
        let Some(opened) = rows(site, &path, object, &tally, &mut left, interrupt).transpose() else { continue };
        let (opened, below) = opened.map_or_else(|reason| (Err(reason), Vec::new()), |(rows, below)| (Ok(rows), below));
        if let (Err(reason), Object::Group { attributes, .. }) = (&opened, object) {
            let rule =
                if EncodingType::of(attributes) == EncodingType::Awkward { &rules::AWKWARD } else { &rules::COLUMN };
            findings.push(Finding::new(&path, rule, reason.clone()));
        }
        let column = Column {
            below,
            attributes: object.attributes().into(),
            dataset: if let Object::Dataset(dataset) = object { Some(dataset.clone()) } else { None },
            ..Column::new(name.clone(), path, ColumnId::whole(object.id()), opened, tally)
        };
        columns.push(column);
    }
    let rows = datasets::of_one_length(&mut columns, &rules::MATRICES, false, &mut findings);
    Table {
        revision: "matrices".into(),
        rows,
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, Anndata.about().name)
    }
}

/// Makes the table of the matrices in a compound: the row labels of the data frame, then a column for each field.
pub(super) fn of_compound(site: &Site<'_>, interrupt: &Interrupt) -> Table {
    let mut table = Compound.open(site, interrupt);
    let frame = COMPOUNDS.iter().find(|(matrices, _)| *matrices == site.path).map(|(_, frame)| *frame);
    let label = frame.and_then(|frame| label(site, frame, interrupt));
    // If the data frame has no row labels to show, the compound is shown as an ordinary one.
    let label = label.and_then(|label| Some((label.rows.as_ref().ok()?.len(), label)));
    let Some((rows, label)) = label else { return table };
    if rows == table.rows {
        table.columns.insert(0, label);
        datasets::tell_apart(&mut table.columns);
    } else {
        let found = format!("{} rows, {} has {rows}", table.rows, frame.unwrap_or_default());
        table.findings.push(Finding::new(site.path, &rules::MATRICES, found));
    }
    Table { dialect: Anndata.about().name, revision: "compound".into(), ..table }
}

/// Opens the row labels of the data frame at a path, where there may be none.
fn label(site: &Site<'_>, frame: &str, interrupt: &Interrupt) -> Option<Column> {
    let opener = ElementOpener { file: site.file, interrupt };
    let site = Site { path: frame, ..*site };
    match opener.at(frame).ok()? {
        Object::Dataset(dataset) => records::label(&site, &dataset, interrupt),
        object => frame::label(&site, &opener.group(&object).ok()?, interrupt),
    }
}

/// Opens the rows of a matrix. `None`: it is a data frame without columns.
fn rows(
    site: &Site<'_>,
    path: &str,
    object: &Object,
    tally: &Arc<Tally>,
    left: &mut usize,
    interrupt: &Interrupt,
) -> Result<Option<Compounds>, Unreadable> {
    if let Object::Dataset(dataset) = object {
        let opened = datasets::open(site.file, path, dataset)?;
        let rows = Arc::new(DatasetRows::along_first(opened, FillTest::none(), tally.clone()));
        return Ok(Some((rows, Vec::new())));
    }
    let opener = ElementOpener { file: site.file, interrupt };
    let group = opener.group(object)?;
    *left = left
        .checked_sub(group.links.len())
        .ok_or_else(|| format!("more than {MOST_MEMBERS} members in the frames and arrays of one group"))?;
    match EncodingType::of(&group.attributes) {
        EncodingType::Awkward => awkward::rows(&opener, path, &group, tally).map(|rows| Some((rows, Vec::new()))),
        _ => frame::compounds(&Site { path, ..*site }, &group, interrupt),
    }
}
