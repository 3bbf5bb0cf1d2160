//! AnnData (`.h5ad`, `.h5mu`): data frames are groups of columns, and some columns are groups themselves.
//!
//! The attribute `encoding-type` names the kind of an element; before version 0.8 some elements lack it. A fill value
//! is an ordinary value. A value is missing by a mask, by the code −1 of a category, by the attribute `_FillValue`, or,
//! in a data frame, as NaN.
//!
//! | module | what it does |
//! | --- | --- |
//! | `awkward` | opens awkward arrays, and makes the table of one outside of a group of matrices |
//! | `encoding` | tells the kind of an element by its attributes |
//! | `elements` | opens single columns: a dataset, codes with categories, values with a mask |
//! | `frame` | makes the table of a data frame |
//! | `matrices` | makes the table of `obsm` or `varm` |
//! | `records` | makes the table of a data frame that is a compound, as before version 0.7 |
//! | `sparse` | makes the table of a sparse matrix: a row for each stored entry |

mod awkward;
mod elements;
mod encoding;
mod frame;
mod matrices;
mod records;
mod rules;
mod sparse;

use std::collections::HashMap;

use self::encoding::EncodingType;
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Site};
use crate::source::Interrupt;
use crate::table::Table;

/// The AnnData dialect.
#[derive(Debug)]
pub struct Anndata;

static ABOUT: About = About { rules: rules::ALL, attributes: &encoding::ATTRIBUTES, ..About::named("AnnData") };

impl Dialect for Anndata {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(attributes) => match EncodingType::of(attributes) {
                EncodingType::Frame | EncodingType::Sparse | EncodingType::Awkward => Mark::Table,
                _ if matrices::frame_of(path, attributes).is_some() => Mark::LookInside,
                _ => Mark::No,
            },
            ListedObject::Dataset(dataset) => {
                let is_table = records::is_frame(path, dataset) || matrices::is_compound(path, dataset);
                if is_table { Mark::Table } else { Mark::No }
            }
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let (is_table, members) = match EncodingType::of(&here.group.attributes) {
            EncodingType::Sparse => (true, sparse::roles()),
            EncodingType::Frame => (true, frame::roles(here.group)),
            EncodingType::Awkward => (true, awkward::roles(here.group)),
            // Matrices are also shown by themselves.
            _ => (matrices::has_any(here), HashMap::new()),
        };
        Claims { is_table, members, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Group(group) => match EncodingType::of(&group.attributes) {
                EncodingType::Sparse => sparse::table(site, group, interrupt),
                EncodingType::Frame => frame::table(site, group, interrupt),
                EncodingType::Awkward => awkward::table(site, group, interrupt),
                _ => match matrices::frame_of(site.path, &group.attributes) {
                    Some(frame) => matrices::table(site, group, &frame, interrupt),
                    None => Table::empty(site.path, self.about().name),
                },
            },
            Of::Dataset(dataset) if matrices::is_compound(site.path, dataset) => matrices::of_compound(site, interrupt),
            Of::Dataset(dataset) => records::table(site, dataset, interrupt),
            // The dialect makes up no directories.
            Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}
