//! h5Seurat: data frames of R, as SeuratDisk keeps them (its vignette `h5Seurat-spec`).
//!
//! ```text
//! /                          active.assay, version
//! /meta.data                 colnames = a, b, c; logicals = b; _index names the row names
//! /meta.data/a               a vector
//! /meta.data/b               a logical: 0, 1, and 2 where it is missing
//! /meta.data/c               a factor: levels (texts) and values (numbers of levels, from 1)
//! /cell.names                the row names of /meta.data, if it has none inside
//! /assays/A/meta.features    a data frame, whose row names may be /assays/A/features
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `frame` | makes the table of a data frame |

mod frame;
mod rules;

use std::sync::Arc;

use super::attributes::{strings, text};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site};
use crate::catalogue::{Attribute, attribute};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// The attribute of a data frame that lists its columns in order.
const COLUMNS: &str = "colnames";

/// The attribute of a data frame that lists its logical columns.
const LOGICALS: &str = "logicals";
/// The attribute of a vector that states its class in R.
const CLASS: &str = "s3class";
/// The class of vectors of logical values.
const LOGICAL: &str = "logical";

/// The attribute of a data frame that names the member with its row names.
const INDEX: &str = "_index";

/// The attribute of the root that every h5Seurat file has.
const ASSAY: &str = "active.assay";

/// The h5Seurat dialect.
#[derive(Debug)]
pub struct H5Seurat;

static ABOUT: About =
    About { rules: rules::ALL, attributes: &[COLUMNS, LOGICALS, CLASS, INDEX, ASSAY], ..About::named("h5Seurat") };

impl Dialect for H5Seurat {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) if is_listed(attributes) || row_names(path).is_some() => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        if !is_h5seurat(here.file, here.interrupt) {
            return Claims::default();
        }
        let members = frame::roles(here);
        let is_table = members.values().any(|role| *role == Role::Column);
        Claims { is_table, members, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => frame::table(site, group, interrupt),
            // This dialect claims only groups.
            Of::Dataset(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

/// Whether a group has an attribute that lists columns by name.
fn is_listed(attributes: &[Attribute]) -> bool {
    attribute(attributes, COLUMNS).is_some_and(|listed| strings(listed).is_some())
}

/// Path of the dataset with the row names of the data frame at a path, for data frames that store them elsewhere.
fn row_names(path: &str) -> Option<String> {
    if path == "/meta.data" {
        return Some("/cell.names".into());
    }
    let assay = path.strip_suffix("/meta.features")?;
    let is_assay = assay.strip_prefix("/assays/").is_some_and(|name| !name.contains('/'));
    is_assay.then(|| format!("{assay}/features"))
}

fn is_h5seurat(file: &Arc<File>, interrupt: &Interrupt) -> bool {
    file.root_attributes(interrupt).is_ok_and(|root| text(&root, ASSAY).is_some())
}
