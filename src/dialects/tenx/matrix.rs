//! Makes the tables of a matrix: its counts, with a row for each stored one, its barcodes, and its genes.

use std::sync::Arc;

use bstr::BString;

use super::rules;
use super::{FEATURES, OF_FEATURES, TABLES, column, of_length, table};
use crate::catalogue::{Dataset, Group, Object, ObjectId, join};
use crate::dialects::attributes::said;
use crate::dialects::triples::{MatrixAxis, PARTS, Triples};
use crate::dialects::{Site, datasets};
use crate::source::Interrupt;
use crate::table::{Categories, Column, Finding, Table, Unreadable};

/// Name of the table of barcodes.
const BARCODES: &str = "barcodes";
/// Name of the table of counts.
const COUNTS: &str = "matrix";
/// Name of the table of genes.
const GENES: &str = "genes";

/// The member that flags the barcodes of cells, in files that have it.
const FLAG: &str = "filtered_barcodes";

/// A group that holds a matrix, compressed by barcodes.
pub(super) struct Matrix<'a> {
    group: &'a Group,
    barcodes: &'a Arc<Dataset>,
    features: Features<'a>,
}

/// Where the features of a matrix are stored.
enum Features<'a> {
    /// In a group of features.
    Group(ObjectId),
    /// In a dataset of their identifiers, as before version 3.
    Genes(&'a Arc<Dataset>),
}

impl<'a> Matrix<'a> {
    /// Finds the matrix in a group. `None`: the group holds none.
    pub fn of(group: &'a Group) -> Option<Self> {
        let barcodes = datasets::of_rank(group, BARCODES, 1)?;
        if PARTS.iter().chain(&["shape"]).any(|part| datasets::of_rank(group, part, 1).is_none()) {
            return None;
        }
        let features = match group.link(FEATURES.as_bytes()).and_then(|link| link.target.object()) {
            Some(Object::Group { id, .. }) => Features::Group(*id),
            _ => Features::Genes(datasets::of_rank(group, GENES, 1)?),
        };
        Some(Self { group, barcodes, features })
    }

    /// The keys of the matrix's tables.
    pub fn tables(&self) -> &'static [&'static str] {
        match self.features {
            Features::Group(_) => &[BARCODES, COUNTS],
            Features::Genes(_) => &[BARCODES, COUNTS, GENES],
        }
    }

    /// Makes the matrix's table of this key.
    pub fn table(&self, site: &Site<'_>, key: &BString, interrupt: &Interrupt) -> Table {
        let path = join(&join(site.path, TABLES.as_bytes()), key);
        let named = |name: &str, shown: &str, dataset| column(site, &shown.into(), &name.into(), dataset);
        match (key.as_slice(), &self.features) {
            (b"barcodes", _) => {
                let flags = of_length(self.group, self.barcodes.shape.first().copied(), &[]);
                let flags = flags.into_iter().filter(|(name, _)| *name == FLAG);
                let barcodes = named(BARCODES, "barcode", self.barcodes);
                let flags = flags.map(|(name, dataset)| column(site, name, name, dataset));
                table(path, BARCODES, labelled([barcodes].into_iter().chain(flags).collect()))
            }
            (b"genes", Features::Genes(genes)) => {
                let mut columns = vec![named(GENES, OF_FEATURES[0], *genes)];
                let names = datasets::of_rank(self.group, "gene_names", 1);
                let names = names.filter(|names| names.shape == genes.shape);
                columns.extend(names.map(|names| named("gene_names", OF_FEATURES[1], names)));
                table(path, GENES, labelled(columns))
            }
            _ => self.counts(site, path, interrupt),
        }
    }

    /// Makes the table of counts, with a row for each stored one.
    fn counts(&self, site: &Site<'_>, path: String, interrupt: &Interrupt) -> Table {
        let mut findings = Vec::new();
        let mut categories = Vec::new();
        let barcodes = labels(site, join(site.path, BARCODES.as_bytes()), self.barcodes);
        let features = self.features(site, interrupt).unwrap_or_else(|reason| {
            findings.push(Finding::new(join(site.path, FEATURES.as_bytes()), &rules::MATRIX, reason.clone()));
            let barcodes = barcodes.datatype.clone();
            Categories { path: site.path.into(), labels: Err(reason), datatype: barcodes, ordered: None }
        });
        let shape = stated(site, self.group, interrupt);
        let known = [&features, &barcodes].map(|labels| Some(labels.labels.as_ref().ok()?.len()));
        if let Some(stated) = shape.filter(|stated| stated.iter().zip(known).any(|(a, b)| b.is_some_and(|b| b != *a))) {
            let [features, barcodes] = known.map(said);
            let found = format!("shape is {stated:?}, of {features} features and {barcodes} barcodes");
            findings.push(Finding::new(join(site.path, b"shape"), &rules::MATRIX, found));
        }
        let extents = match (known, shape) {
            ([Some(features), Some(barcodes)], _) => Some([features, barcodes]),
            (_, shape) => shape,
        };
        let columns = match Triples::of(site, self.group, PARTS, extents, 1, interrupt) {
            Ok(triples) => {
                if let Err(reason) = &triples.major {
                    findings.push(Finding::new(join(site.path, b"indptr"), &rules::MATRIX, reason.clone()));
                }
                let barcodes = MatrixAxis { name: "barcode", labels: Some(barcodes) };
                let features = MatrixAxis { name: "feature", labels: Some(features) };
                triples.columns(site, &path, self.group, [barcodes, features], &mut categories)
            }
            Err(reason) => {
                findings.push(Finding::new(site.path, &rules::MATRIX, reason));
                Vec::new()
            }
        };
        let entries = columns.last().and_then(|values| Some(values.rows.as_ref().ok()?.len()));
        Table { rows: entries.unwrap_or(0), categories, findings, ..table(path, COUNTS, columns) }
    }

    /// Opens the identifiers of the matrix's features, as labels.
    fn features(&self, site: &Site<'_>, interrupt: &Interrupt) -> Result<Categories, Unreadable> {
        match self.features {
            Features::Genes(genes) => Ok(labels(site, join(site.path, GENES.as_bytes()), genes)),
            Features::Group(id) => identifiers(site, &join(site.path, FEATURES.as_bytes()), id, interrupt),
        }
    }
}

/// Makes the first column the row label.
fn labelled(columns: Vec<Column>) -> Vec<Column> {
    let labelled = columns.into_iter().enumerate().map(|(at, column)| Column { is_label: at == 0, ..column });
    labelled.collect()
}

/// Opens the identifiers in a group of features, as labels.
///
/// # Errors
/// Why they cannot be read.
pub(super) fn identifiers(
    site: &Site<'_>,
    path: &str,
    features: ObjectId,
    interrupt: &Interrupt,
) -> Result<Categories, Unreadable> {
    let group = site.file.group(features, interrupt)?;
    let ids = datasets::member(&group, OF_FEATURES[0])?;
    Ok(labels(site, join(path, OF_FEATURES[0].as_bytes()), ids))
}

/// Opens a dataset as labels.
pub(super) fn labels(site: &Site<'_>, path: String, dataset: &Arc<Dataset>) -> Categories {
    let labels = datasets::line(site.file, &path, dataset, &Arc::default());
    Categories { labels, datatype: dataset.datatype.clone(), ordered: Some(false), path }
}

/// Reads the numbers of features and barcodes from the dataset `shape` of the matrix. `None`: it does not state them.
fn stated(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Option<[u64; 2]> {
    let dataset = datasets::of_rank(group, "shape", 1).filter(|dataset| dataset.shape == [2])?;
    let rows = datasets::line(site.file, &join(site.path, b"shape"), dataset, &Arc::default()).ok()?;
    let array = rows.array(0..2, interrupt).ok()?;
    let stated = crate::store::decode::widen::unsigned(&array)?;
    <[u64; 2]>::try_from(stated.iter().flatten().collect::<Vec<_>>()).ok()
}
