//! Joins the tables of sibling groups that have the same columns and types (episodes, beams, channels) into one,
//! `tables/ALL`, with the name of the group in the first column.
//!
//! Names decide which groups belong together: the largest set of groups whose names agree up to the first digit. Two
//! equal tables among the first four of these groups decide that there is a joined table. Only these four are listed
//! beforehand, all others when the table is opened. Without such a pair, groups inside the siblings may match:
//! `tables/ALL/NAME` joins all groups inside that are called NAME.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::{ALL, SETS, Shape};
use crate::catalogue::{ColumnId, Group, Link, Object, ObjectId, Target, join};
use crate::dialects::datasets::distinct;
use crate::dialects::{Checks, Dialect, Dialects, Here, Made, MadePlan, Of, Site};
use crate::source::Interrupt;
use crate::store::{File, Rows, Tally};
use crate::table::{ChainRows, Column, Meaning, Origin, Table, Unreadable, labelled_runs};

/// Most columns of all groups together, since each has a description of some KiB.
const MOST_PARTS: usize = 65_536;

/// Most groups to list in search of two equal tables.
const MOST_LOOKED: usize = 4;

/// Most groups inside a sibling to look at.
const MOST_WITHIN: usize = 8;

/// Name of the column with the name of each row's group.
const LABEL: &str = "group";

/// Number of the first column of the first joined table.
const FIRST_FIELD: u32 = 1 << 31;

/// A group whose name belongs to a series.
struct Sibling<'a> {
    name: &'a BString,
    id: ObjectId,
}

/// Finds the groups whose names belong together, in the order of the numbers in their names.
fn series(group: &Group) -> Vec<Sibling<'_>> {
    let mut series = HashMap::<&[u8], Vec<Sibling<'_>>>::new();
    for link in &group.links {
        if let Target::Hard(Object::Group { id, .. }) = &link.target
            && let Some(at) = link.name.iter().position(u8::is_ascii_digit)
        {
            series.entry(&link.name[..at]).or_default().push(Sibling { name: &link.name, id: *id });
        }
    }
    for siblings in series.values_mut() {
        siblings.sort_by_cached_key(|sibling| parts(sibling.name));
        // Further names of one and the same group do not count.
        let mut met = HashSet::new();
        siblings.retain(|sibling| met.insert(sibling.id));
    }
    let largest = series.into_iter().max_by(|(a, of_a), (b, of_b)| of_a.len().cmp(&of_b.len()).then_with(|| b.cmp(a)));
    largest.map(|(_, siblings)| siblings).unwrap_or_default()
}

/// Splits a name into parts that sort in natural order, with numbers by their value.
fn parts(name: &[u8]) -> Vec<(bool, usize, BString)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.first() {
        let is_number = first.is_ascii_digit();
        let end = rest.iter().position(|byte| byte.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        let digits = part.trim_start_with(|character| character == '0');
        parts.push((
            !is_number,
            if is_number { digits.len() } else { 0 },
            if is_number { digits } else { part }.into(),
        ));
        rest = behind;
    }
    // Of numbers that are equal, the shorter one comes first.
    parts.push((false, name.len(), BString::default()));
    parts
}

/// Looks up the tables of siblings.
#[derive(Clone, Copy)]
struct Look<'a> {
    shape: &'a Shape,
    file: &'a Arc<File>,
    interrupt: &'a Interrupt,
}

impl Look<'_> {
    fn group(&self, id: ObjectId) -> Option<Group> {
        self.file.group(id, self.interrupt).ok()
    }

    /// Opens the table of a group: one that a dialect recognises there, or one that continues the table `beside` in its
    /// series.
    fn table(&self, path: &str, group: &Group, beside: Option<&Table>) -> Option<Table> {
        let here = Here { path, group, file: self.file, interrupt: self.interrupt };
        // Of this dialect's own claims, only a group's own table counts, which ends the recursion.
        let Dialects(all) = Dialects::new(self.shape.0, false);
        let claims = Dialects(all.split_last().map_or(all, |(_, before)| before)).claims(&here);
        match claims.dialect {
            Some(dialect) => claims.is_table.then(|| self.open(dialect, path, Of::Group(group))),
            None if self.shape.own(&here).is_table => Some(self.open(self.shape, path, Of::Group(group))),
            None => {
                // By chance, an episode may have as many rows as an array has elements in a row, and then looks like a
                // grid.
                let beside = beside.filter(|beside| beside.recognised_by == "shape")?;
                let Object::Dataset(first) = group.link(&columns(beside).next()?.name)?.target.object()? else {
                    return None;
                };
                let key = &Shape::row_set(*first.shape.first()?);
                let table = self.open(self.shape, path, Of::Made { group, key, plan: &MadePlan::default() });
                difference(beside, &table).is_none().then_some(table)
            }
        }
    }

    /// Opens a table. Each part of a chain learns its own statistics.
    fn open(&self, dialect: &dyn Dialect, path: &str, of: Of<'_>) -> Table {
        let site = Site { file: self.file, path, of, servant: None, checks: Checks::default() };
        Dialects::open(dialect, &site, self.interrupt)
    }

    /// Lists the first sibling, of those that may be listed beforehand, that holds groups.
    fn outer(&self, siblings: &[Sibling<'_>]) -> Option<Group> {
        let listed = siblings.iter().take(MOST_LOOKED).filter_map(|sibling| self.group(sibling.id));
        listed.into_iter().find(|group| groups(group).next().is_some())
    }

    /// Opens the table of a sibling in the group at `path`: its own, or that of the group called `within` inside it.
    fn sibling(
        &self,
        path: &str,
        sibling: &Sibling<'_>,
        within: Option<&BString>,
        beside: Option<&Table>,
    ) -> Option<Table> {
        let (path, group) = (join(path, sibling.name), self.group(sibling.id)?);
        let Some(name) = within else { return self.table(&path, &group, beside) };
        let Target::Hard(Object::Group { id, .. }) = &group.link(name)?.target else { return None };
        self.table(&join(&path, name), &self.group(*id)?, beside)
    }

    /// The model of the tables of siblings, or of the groups called `within` inside them.
    fn model(&self, path: &str, siblings: &[Sibling<'_>], within: Option<&BString>) -> Option<Table> {
        first_alike(siblings.iter().map(|sibling| self.sibling(path, sibling, within, None)))
    }
}

/// The links of a group to groups.
fn groups(group: &Group) -> impl Iterator<Item = &Link> {
    group.links.iter().filter(|link| matches!(link.target, Target::Hard(Object::Group { .. })))
}

/// The columns of a table that can be joined with those of other tables.
fn columns(table: &Table) -> impl Iterator<Item = &Column> {
    table.columns.iter().filter(|column| column.in_table && column.rows.is_ok())
}

/// Why two tables cannot be joined: they differ in columns, types or units. `None`: they can be.
fn difference(one: &Table, other: &Table) -> Option<&'static str> {
    if columns(one).next().is_none() || !columns(one).map(kind).eq(columns(other).map(kind)) {
        return Some("other columns");
    }
    (!columns(one).map(units).eq(columns(other).map(units))).then_some("other units")
}

/// The name and type of a column.
fn kind(column: &Column) -> impl PartialEq {
    (&column.name, column.rows.as_ref().ok().map(|rows| rows.data_type()), column.times())
}

/// The units of a column.
fn units(column: &Column) -> impl PartialEq {
    let Meaning { units, units_vocabulary, calendar, duration, .. } = &column.meaning;
    (units, units_vocabulary, calendar, duration)
}

/// Finds the first of these tables that has an equal among them, which is the model for all others.
fn first_alike(tables: impl Iterator<Item = Option<Table>>) -> Option<Table> {
    let mut met = Vec::<Table>::new();
    for table in tables.take(MOST_LOOKED).flatten() {
        match met.iter().position(|one| difference(one, &table).is_none()) {
            Some(at) => return Some(met.swap_remove(at)),
            None => met.push(table),
        }
    }
    None
}

/// Makes the directory of the joined tables of a group. `None`: no two siblings match.
pub(super) fn made(shape: &Shape, here: &Here<'_>) -> Option<Made> {
    let siblings = series(here.group);
    if siblings.len() < 2 {
        return None;
    }
    let look = Look { shape, file: here.file, interrupt: here.interrupt };
    if let Some(table) = look.model(here.path, &siblings, None) {
        return fits(&table, siblings.len()).then(|| joined(ALL.into()));
    }
    let outer = look.outer(&siblings)?;
    let children = groups(&outer).take(MOST_WITHIN).filter_map(|Link { name, .. }| {
        look.model(here.path, &siblings, Some(name)).filter(|table| fits(table, siblings.len()))?;
        Some((name.clone(), joined([ALL.as_bytes(), b"/", name].concat().into())))
    });
    let children: Arc<[_]> = children.collect();
    (!children.is_empty()).then_some(Made::Directory { table: None, children })
}

/// Whether the table of this many alike has few enough parts.
fn fits(table: &Table, siblings: usize) -> bool {
    columns(table).count().saturating_mul(siblings) <= MOST_PARTS
}

/// The directory of the joined table with this key.
fn joined(key: BString) -> Made {
    Made::Directory { table: Some(key), children: Arc::default() }
}

/// Makes the joined table of all siblings, or of the groups called `within` inside them.
pub(super) fn table(
    shape: &Shape,
    site: &Site<'_>,
    group: &Group,
    within: Option<&BString>,
    interrupt: &Interrupt,
) -> Table {
    let look = Look { shape, file: site.file, interrupt };
    let (mut labels, mut tables) = (Vec::new(), Vec::<Table>::new());
    let mut left_out: Vec<(BString, Cow<'static, str>)> = Vec::new();
    let siblings = series(group);
    let first = look.model(site.path, &siblings, within);
    for sibling in &siblings {
        let reason = match look.sibling(site.path, sibling, within, first.as_ref()) {
            _ if interrupt.is_raised() => break,
            None => "no table".to_owned(),
            Some(table) => match first.as_ref().map_or(Some("none like it"), |first| difference(first, &table)) {
                Some(other) => other.to_owned(),
                None if (tables.len() + 1).saturating_mul(columns(&table).count()) > MOST_PARTS => {
                    format!("{MOST_PARTS} columns of others")
                }
                None => {
                    labels.push(sibling.name.to_str_lossy().into_owned());
                    tables.push(table);
                    continue;
                }
            },
        };
        left_out.push((sibling.name.clone(), reason.into()));
    }
    // The position of the name `within` keeps the joined tables of one group apart.
    let place = within.and_then(|within| {
        let outer = look.outer(&siblings)?;
        outer.links.iter().position(|link| link.name == *within)
    });
    let path = format!("{}/{SETS}/{ALL}", site.path.trim_end_matches('/'));
    let path = within.map_or(path.clone(), |within| join(&path, within));
    let table = Table {
        revision: "groups beside each other".into(),
        recognised_by: "shape",
        repeats: true,
        left_out,
        ..Table::empty(&path, super::NAME)
    };
    let chain = Chain { path: &path, id: group.id, first_field: FIRST_FIELD | field(place), labels, tables };
    match chain.columns(interrupt) {
        Some((rows, columns)) => Table { rows, columns, ..table },
        None => table,
    }
}

/// The number of a joined table's first column, by the position of its name. `None`: the table `ALL` itself.
fn field(place: Option<usize>) -> u32 {
    let place = place.map_or(0, |place| place.saturating_add(1));
    // A table has fewer than `MOST_PARTS` columns, so the ranges of numbers do not overlap.
    (u32::try_from(place).unwrap_or(u32::MAX) & 0x3FFF) << 17
}

/// Tables joined one after the other.
struct Chain<'a> {
    path: &'a str,
    /// The group that holds the siblings.
    id: ObjectId,
    first_field: u32,
    /// Name of the sibling that each table belongs to.
    labels: Vec<String>,
    tables: Vec<Table>,
}

impl Chain<'_> {
    /// Returns the number of rows, and the columns: names of groups, then the columns that all tables have.
    fn columns(&self, interrupt: &Interrupt) -> Option<(u64, Vec<Column>)> {
        let first = self.tables.first()?;
        let mut pointers = vec![0_i64];
        for table in &self.tables {
            pointers.push(pointers.last()?.checked_add(i64::try_from(table.rows).ok()?)?);
        }
        let rows = u64::try_from(*pointers.last()?).ok()?;
        let shown = columns(first).map(|column| column.name.clone());
        let label = distinct(&shown.chain([LABEL.into()]).collect::<Vec<_>>()).pop()?;
        let mut chained = vec![self.column(0, label, self.groups(&pointers, interrupt))];
        let mut alike: Vec<Vec<&Column>> = vec![Vec::with_capacity(self.tables.len()); columns(first).count()];
        for table in &self.tables {
            alike.iter_mut().zip(columns(table)).for_each(|(alike, column)| alike.push(column));
        }
        for (at, (column, alike)) in columns(first).zip(alike).enumerate() {
            let parts = alike.iter().filter_map(|column| column.rows.clone().ok()).collect();
            let chain = ChainRows::new(parts).map(|chain| Arc::new(chain.with_texts().cut()) as Arc<dyn Rows>);
            let chain = chain.filter(|chain| chain.len() == rows).ok_or("its parts differ".into());
            let own = self.column(u32::try_from(at).ok()?.checked_add(1)?, column.name.clone(), chain);
            let description = column.meaning.description.clone();
            let of_all =
                column.attributes.iter().filter(|attribute| alike.iter().all(|one| one.attributes.contains(attribute)));
            chained.push(Column {
                attributes: of_all.cloned().collect(),
                meaning: Meaning {
                    description: description
                        .filter(|told| alike.iter().all(|one| one.meaning.description.as_ref() == Some(told))),
                    origin: Origin {
                        is_masked: alike.iter().all(|one| one.meaning.origin.is_masked),
                        ..Origin::default()
                    },
                    expected: None,
                    ..column.meaning.clone()
                },
                ..own
            });
        }
        Some((rows, chained))
    }

    fn column(&self, number: u32, name: BString, rows: Result<Arc<dyn Rows>, Unreadable>) -> Column {
        let id = ColumnId { object: self.id, field: self.first_field.saturating_add(number) };
        let path = join(self.path, &name);
        Column::new(name, path, id, rows, Arc::<Tally>::default())
    }

    /// Makes the rows that name each row's group.
    fn groups(&self, pointers: &[i64], interrupt: &Interrupt) -> Result<Arc<dyn Rows>, Unreadable> {
        let ends: Vec<u64> = pointers.iter().skip(1).map(|end| end.cast_unsigned()).collect();
        Ok(labelled_runs(self.path, self.labels.clone(), &ends, interrupt)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_of_a_group_are_no_further_groups() {
        let link = |name: &str, address| {
            let id = ObjectId { file: 0, address };
            let target = Target::Hard(Object::Group { id, link_count: 2, attributes: Arc::default() });
            Link { name: name.into(), target }
        };
        let links = vec![link("a10", 3), link("a2", 2), link("a9", 3), link("b1", 4), link("b2", 4), link("b3", 4)];
        let group = Group::new(ObjectId { file: 0, address: 1 }, Arc::default(), links, false);
        let names: Vec<&BString> = series(&group).iter().map(|sibling| sibling.name).collect();
        assert_eq!(names, ["a2", "a9"]);
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["demo_10", "demo_9", "demo_1", "demo_01", "demo_1b", "gt2l", "gt1r", "gt1l", "7", "x"];
        names.sort_by_cached_key(|name| parts(name.as_bytes()));
        let expected = ["7", "demo_1", "demo_01", "demo_1b", "demo_9", "demo_10", "gt1l", "gt1r", "gt2l", "x"];
        assert_eq!(names, expected);
    }
}
