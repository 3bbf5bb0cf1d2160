//! Makes the table of `obsm` or `varm`: the matrices about the rows of a data frame, beside each other.

use std::sync::Arc;

use bstr::BString;

use super::Anndata;
use super::elements::Opener;
use super::encoding::kind;
use super::frame;
use super::rules;
use crate::catalogue::{Attribute, ColumnId, Dataset, Group, Object, join};
use crate::dialects::{Dialect, Site, datasets};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Rows, Tally};
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

/// Whether a group has a matrix.
pub(super) fn has_any(group: &Group) -> bool {
    matrices(group).next().is_some()
}

fn matrices(group: &Group) -> impl Iterator<Item = (&BString, &Arc<Dataset>)> {
    group.links.iter().filter_map(|link| match link.target.object()? {
        Object::Dataset(dataset) if !dataset.shape.is_empty() && !dataset.null => Some((&link.name, dataset)),
        _ => None,
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
    let rows = label.as_ref().and_then(|label| Some(label.rows.as_ref().ok()?.len()));
    let lengths = matrices(group).filter_map(|(_, dataset)| dataset.shape.first().copied());
    let rows = rows.or_else(|| datasets::commonest(lengths)).unwrap_or(0);
    let mut findings = Vec::new();
    let mut columns: Vec<Column> = label.into_iter().collect();
    for (name, dataset) in matrices(group) {
        let path = join(site.path, name);
        let tally = Arc::<Tally>::default();
        let opened = datasets::open(site.file, &path, dataset)
            .map(|opened| Arc::new(DatasetRows::along_first(opened, FillTest::none(), tally.clone())) as Arc<dyn Rows>);
        let length = opened.as_ref().ok().map(|opened| opened.len());
        if let Some(length) = length.filter(|length| *length != rows) {
            findings.push(Finding::new(&path, &rules::MATRICES, format!("{length} rows, not {rows}")));
        }
        columns.push(Column {
            in_table: length == Some(rows),
            attributes: dataset.attributes.clone(),
            dataset: Some(dataset.clone()),
            ..Column::new(name.clone(), path, ColumnId::whole(dataset.id), opened, tally)
        });
    }
    Table {
        revision: "matrices".into(),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.into_iter().map(|column| column.observed(site.file)).collect(),
        findings,
        ..Table::empty(site.path, Anndata.name())
    }
}
