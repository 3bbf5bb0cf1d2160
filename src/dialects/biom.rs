//! BIOM 2: counts of observations in samples, stored twice, once compressed along each axis.
//!
//! ```text
//! /observation/ids   /observation/matrix: data indices indptr   compressed by observations
//! /sample/ids        /sample/matrix: data indices indptr        compressed by samples
//! ```
//!
//! An attribute of the root marks the file. Members of a matrix are also shown by themselves.

use std::sync::Arc;

use super::attributes::text;
use super::triples::{MatrixAxis, PARTS, Triples};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site, datasets};
use crate::catalogue::{Group, Object, join};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Categories, Finding, Table, Unreadable};

/// The attribute of the root that names the format.
const FORMAT: &str = "format-url";
/// The part of the attribute `format-url` by which BIOM is recognised.
const URL: &str = "biom-format.org";

/// The axes, by the names of their groups.
const AXES: [&str; 2] = ["observation", "sample"];

/// The group of a matrix, within the group of each axis.
const MATRIX: &str = "matrix";
/// The dataset of labels, within the group of each axis.
const IDS: &str = "ids";

/// The rules of BIOM.
mod rules {
    crate::table::rules! {
        MATRIX: Error "biom/matrix" []
            "BIOM: a matrix has a pointer for each id and one more, and an index for each value"
                => "rewrite the matrix";
    }
}

/// The BIOM dialect.
#[derive(Debug)]
pub struct Biom;

static ABOUT: About = About { rules: rules::ALL, attributes: &[FORMAT], ..About::named("BIOM") };

impl Dialect for Biom {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if axis(path).is_some() => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let is_table = is_matrix(here.group) && is_biom(here.file, here.interrupt);
        Claims { is_table, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match (site.of, axis(site.path)) {
            (Of::Group(group), Some(major)) => table(site, group, major, interrupt),
            _ => Table::empty(site.path, self.about().name),
        }
    }
}

/// The axis along which the matrix at a path is compressed. `None`: not the path of a matrix.
fn axis(path: &str) -> Option<usize> {
    let (group, name) = path.strip_prefix('/')?.split_once('/')?;
    AXES.iter().position(|axis| *axis == group).filter(|_| name == MATRIX)
}

fn is_matrix(group: &Group) -> bool {
    PARTS.iter().all(|part| datasets::of_rank(group, part, 1).is_some())
}

fn is_biom(file: &Arc<File>, interrupt: &Interrupt) -> bool {
    let root = file.root_attributes(interrupt);
    root.is_ok_and(|attributes| text(&attributes, FORMAT).is_some_and(|url| url.contains(URL)))
}

/// Makes the table of a matrix.
fn table(site: &Site<'_>, group: &Group, major: usize, interrupt: &Interrupt) -> Table {
    let (mut findings, mut categories) = (Vec::new(), Vec::new());
    let mut ids = AXES.map(|axis| {
        let ids = ids(site, axis, interrupt);
        ids.map_err(|reason| findings.push(Finding::new(format!("/{axis}/{IDS}"), &rules::MATRIX, reason))).ok()
    });
    let [observations, samples] = [&ids[0], &ids[1]].map(|ids| Some(ids.as_ref()?.labels.as_ref().ok()?.len()));
    let shape = observations.zip(samples).map(|(observations, samples)| [observations, samples]);
    let mut columns = Vec::new();
    match Triples::of(site, group, PARTS, shape, major, interrupt) {
        Ok(triples) => {
            let broken = triples.major.as_ref().err();
            findings
                .extend(broken.map(|reason| Finding::new(join(site.path, b"indptr"), &rules::MATRIX, reason.clone())));
            let axes = [major, 1 - major].map(|axis| MatrixAxis { name: AXES[axis], labels: ids[axis].take() });
            columns = triples.columns(site, site.path, group, axes, &mut categories);
        }
        Err(reason) => findings.push(Finding::new(site.path, &rules::MATRIX, reason)),
    }
    Table {
        revision: format!("matrix by {}", AXES[major]),
        rows: columns.last().and_then(|values| Some(values.rows.as_ref().ok()?.len())).unwrap_or(0),
        attributes: group.attributes.clone(),
        columns,
        categories,
        findings,
        ..Table::empty(site.path, Biom.about().name)
    }
}

/// Opens the labels of an axis.
fn ids(site: &Site<'_>, axis: &str, interrupt: &Interrupt) -> Result<Categories, Unreadable> {
    let root = site.file.group(site.file.info().root, interrupt)?;
    let Some(Object::Group { id, .. }) = root.link(axis.as_bytes()).and_then(|link| link.target.object()) else {
        return Err(format!("there is no group {axis}").into());
    };
    let group = site.file.group(*id, interrupt)?;
    let (path, ids) = (format!("/{axis}/{IDS}"), datasets::member(&group, IDS)?);
    let labels = datasets::line(site.file, &path, ids, &Default::default());
    Ok(Categories { labels, datatype: ids.datatype.clone(), ordered: Some(false), path })
}
