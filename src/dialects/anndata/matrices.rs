//! Makes the table of `obsm` or `varm`: the matrices about the rows of a data frame, beside each other.

use std::sync::Arc;

use bstr::BString;

use super::Anndata;
use super::awkward;
use super::elements::Opener;
use super::encoding::{Encoding, kind};
use super::frame::{self, Compounds};
use super::rules;
use crate::catalogue::{Attribute, ColumnId, Group, Object, join};
use crate::dialects::{Dialect, Here, Site, datasets};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Tally};
use crate::table::{Column, Finding, Table};

/// The path of the data frame that the matrices at `path` belong to; `None` where the path is of no such group. Their
/// group says no more than that it is a dictionary, and before version 0.8 not even that.
pub(super) fn frame_of(path: &str, group: &[Attribute]) -> Option<String> {
    let (parent, name) = path.rsplit_once('/')?;
    let frame = match name {
        "obsm" => "obs",
        "varm" => "var",
        _ => return None,
    };
    let is_known = kind(group).map_or(parent.is_empty(), |kind| kind == "dict");
    is_known.then(|| format!("{parent}/{frame}"))
}

/// Members of all data frames and awkward arrays of a group: it may have one of many columns very often.
const MOST_MEMBERS: usize = 1 << 16;

/// Whether a group has a matrix, and lies beside the data frame that it is about: what is called so in a dictionary of
/// a user is one, too. That of the root may have lost its frame.
pub(super) fn has_any(here: &Here<'_>) -> bool {
    let frame = frame_of(here.path, &here.group.attributes);
    let opener = Opener { file: here.file, interrupt: here.interrupt };
    matrices(here.group).next().is_some()
        && frame.is_some_and(|frame| frame.matches('/').count() == 1 || opener.at(&frame).is_ok())
}

/// What has a row for each row of the data frame: arrays, data frames and awkward arrays. Sparse matrices stand by
/// themselves.
fn matrices(group: &Group) -> impl Iterator<Item = (&BString, &Object)> {
    let named = group.links.iter().filter_map(|link| Some((&link.name, link.target.object()?)));
    named.filter(|(_, object)| match object {
        Object::Dataset(dataset) => !dataset.shape.is_empty() && !dataset.null,
        Object::Group { attributes, .. } => matches!(Encoding::of(attributes), Encoding::Frame | Encoding::Awkward),
        Object::Datatype { .. } | Object::Unreadable { .. } => false,
    })
}

/// The table of the matrices in a group: the row labels of the data frame, then a column for each.
pub(super) fn table(site: &Site<'_>, group: &Group, frame: &str, interrupt: &Interrupt) -> Table {
    let opener = Opener { file: site.file, interrupt };
    // A frame that is not there is no fault of the matrices.
    let label = opener.at(frame).and_then(|object| opener.group(&object)).ok().and_then(|group| {
        let site = Site { path: frame, ..*site };
        frame::label(&site, &group, interrupt)
    });
    let (mut findings, mut left) = (Vec::new(), MOST_MEMBERS);
    let mut columns: Vec<Column> = label.into_iter().collect();
    for (name, object) in matrices(group) {
        let (path, tally) = (join(site.path, name), Arc::<Tally>::default());
        let Some(opened) = rows(site, &path, object, &tally, &mut left, interrupt).transpose() else { continue };
        let (opened, below) = opened.map_or_else(|reason| (Err(reason), Vec::new()), |(rows, below)| (Ok(rows), below));
        if let (Err(reason), Object::Group { attributes, .. }) = (&opened, object) {
            let rule = if Encoding::of(attributes) == Encoding::Awkward { &rules::AWKWARD } else { &rules::COLUMN };
            findings.push(Finding::new(&path, rule, reason.clone()));
        }
        columns.push(Column {
            below,
            attributes: object.attributes().into(),
            dataset: if let Object::Dataset(dataset) = object { Some(dataset.clone()) } else { None },
            ..Column::new(name.clone(), path, ColumnId::whole(object.id()), opened, tally)
        });
    }
    let rows = datasets::of_one_length(&mut columns, &rules::MATRICES, false, &mut findings);
    Table {
        revision: "matrices".into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.into_iter().map(|column| column.observed(site.file)).collect(),
        findings,
        ..Table::empty(site.path, Anndata.name())
    }
}

/// The rows of a matrix; `None` of a data frame without columns.
fn rows(
    site: &Site<'_>,
    path: &str,
    object: &Object,
    tally: &Arc<Tally>,
    left: &mut usize,
    interrupt: &Interrupt,
) -> Result<Option<Compounds>, String> {
    if let Object::Dataset(dataset) = object {
        let opened = datasets::open(site.file, path, dataset)?;
        let rows = Arc::new(DatasetRows::along_first(opened, FillTest::none(), tally.clone()));
        return Ok(Some((rows, Vec::new())));
    }
    let opener = Opener { file: site.file, interrupt };
    let group = opener.group(object)?;
    *left = left
        .checked_sub(group.links.len())
        .ok_or_else(|| format!("more than {MOST_MEMBERS} members of what lies in one group"))?;
    match Encoding::of(&group.attributes) {
        Encoding::Awkward => awkward::rows(&opener, path, &group, tally).map(|rows| Some((rows, Vec::new()))),
        _ => frame::compounds(&Site { path, ..*site }, &group, interrupt),
    }
}
