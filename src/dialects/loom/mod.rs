//! Loom: a matrix, a group of attributes for its rows and one for its columns, and graphs.
//!
//! ```text
//! /matrix       n × m
//! /row_attrs    datasets of n rows      /row_graphs/NAME    a, b, w: an edge from row a to row b, its weight
//! /col_attrs    datasets of m rows      /col_graphs/NAME
//! ```
//!
//! A group is recognised by its path alone, in a file that has the matrix and both groups of attributes. A fill value
//! is an ordinary value; only the attribute `_FillValue` can make values missing.

mod rules;

use std::collections::HashSet;
use std::sync::Arc;

use bstr::BString;

use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site, arrays, datasets};
use crate::catalogue::{Dataset, Group, Object, join};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Column, Finding, Table};

/// Paths of the groups of attributes, by the axis of the matrix that they describe, and the members of each that may
/// label rows.
const ATTRIBUTES: [(&str, &[&str]); 2] = [("/row_attrs", &["Gene", "Accession"]), ("/col_attrs", &["CellID"])];

/// Prefixes of the paths of graphs.
const GRAPHS: [&str; 2] = ["/row_graphs/", "/col_graphs/"];

/// The columns of a graph: the ends and the weights of its edges.
const EDGES: [&str; 3] = ["a", "b", "w"];

/// The Loom dialect.
#[derive(Debug)]
pub struct Loom;

static ABOUT: About = About { rules: rules::ALL, ..About::named("Loom") };

impl Dialect for Loom {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if axis(path).is_some() => Mark::LookInside,
            ListedObject::Group(_) if GRAPHS.iter().any(|graphs| path.starts_with(graphs)) => Mark::LookInside,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let Some(columns) = columns(here.file, here.path, here.group, here.interrupt) else {
            return Claims::default();
        };
        let members = columns.into_iter().map(|(name, _)| (name.clone(), Role::Column));
        Claims { is_table: true, members: members.collect(), ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let Of::Group(group) = site.of else { return Table::empty(site.path, self.about().name) };
        let found = columns(site.file, site.path, group, interrupt).unwrap_or_default();
        let rows = found.first().and_then(|(_, dataset)| dataset.shape.first()).copied().unwrap_or(0);
        let mut findings = Vec::new();
        let shown: HashSet<&BString> = found.iter().map(|(name, _)| *name).collect();
        for (name, dataset) in group.datasets() {
            // A graph may have datasets other than those of its edges.
            if !shown.contains(name) && (axis(site.path).is_some() || dataset.shape != [rows]) {
                let found = format!("extents {:?}, of {rows} rows: shown by itself", dataset.shape);
                findings.push(Finding::new(join(site.path, name), &rules::LENGTH, found));
            }
        }
        let labels = axis(site.path).map_or(&[] as &[&str], |axis| ATTRIBUTES[axis].1);
        let columns = found.into_iter().enumerate().map(|(at, (name, dataset))| {
            let column = arrays::column(site.file, &join(site.path, name), name, dataset);
            let is_label = at == 0 && labels.iter().any(|label| name == label);
            Column { is_label, ..column }
        });
        Table {
            revision: if axis(site.path).is_some() { "attributes" } else { "graph" }.into(),
            rows,
            attributes: group.attributes.clone(),
            columns: columns.collect(),
            findings,
            ..Table::empty(site.path, self.about().name)
        }
    }
}

/// The axis of the matrix that the group at a path describes. `None`: not a group of attributes.
fn axis(path: &str) -> Option<usize> {
    ATTRIBUTES.iter().position(|(group, _)| *group == path)
}

/// Finds the columns of a group, the row labels first. `None`: the group is not a table.
fn columns<'a>(
    file: &Arc<File>,
    path: &str,
    group: &'a Group,
    interrupt: &crate::source::Interrupt,
) -> Option<Vec<(&'a BString, &'a Arc<Dataset>)>> {
    let root = file.group(file.info().root, interrupt).ok()?;
    let matrix = datasets::of_rank(&root, "matrix", 2)?;
    let are_groups = ATTRIBUTES.iter().all(|(path, _)| {
        let object = root.link(path.trim_start_matches('/').as_bytes()).and_then(|link| link.target.object());
        matches!(object, Some(Object::Group { .. }))
    });
    if !are_groups {
        return None;
    }
    let Some(axis) = axis(path) else {
        let edges: Vec<_> = group.datasets().collect();
        let edges: Vec<_> = EDGES
            .iter()
            .map(|name| edges.iter().find(|(link, dataset)| *link == name && dataset.shape.len() == 1).copied())
            .collect::<Option<_>>()?;
        let is_one = edges.iter().all(|(_, dataset)| dataset.shape == edges[0].1.shape);
        return is_one.then_some(edges);
    };
    let rows = matrix.shape.get(axis);
    let mut columns: Vec<_> = group
        .datasets()
        .filter(|(_, dataset)| matches!(dataset.shape.len(), 1 | 2) && dataset.shape.first() == rows && !dataset.null)
        .collect();
    let labels = ATTRIBUTES[axis].1;
    if let Some(label) = labels.iter().find_map(|label| columns.iter().position(|(name, _)| *name == label)) {
        columns[..=label].rotate_right(1);
    }
    (!columns.is_empty()).then_some(columns)
}
