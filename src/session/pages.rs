//! The pages to look at: what a directory says of itself and of what lies beside it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::contents::Contents;
use super::{DirEntry, EntryKind, Error, OpenedSource, Spot, listing, names};
use crate::source::Interrupt;
use crate::store::decode::arrow_type;
use crate::table::{Table, arrow_name};
use crate::views::metadata::ShownMember;
use crate::views::page::{
    ArrayDetails, Details, GroupPage, Look, MOST_MEMBERS, MOST_PICTURES, Member, MemberKind, PagePlace, TableDetails,
    TablePage, format_of,
};

/// Name of a page.
pub(crate) const PAGE: &str = "index.html";

/// Most names beside a page that it may show.
const MOST_NAMES: usize = 200;

/// Most members of a group that are opened for its page.
const MOST_OPENED: usize = 200;

/// Where a page is, and how it was reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageAt {
    /// Absolute path of the page's directory in a mount. `None`: the page is written to a file.
    pub mounted: Option<PathBuf>,
    /// Path below the source, as commands take it.
    pub path: BString,
    /// The pages above, outermost first: name and relative link.
    pub above: Vec<(String, Option<Vec<u8>>)>,
    /// Relative link to `.hepfs/findings`.
    pub findings: Option<String>,
}

/// The page of a directory.
pub(crate) enum Page {
    /// Of a table.
    Table(TablePage),
    /// Of a group, with its members as listed.
    Group(GroupPage, Vec<ShownMember>),
}

impl Spot {
    /// The page of a group or a table; reads no values.
    ///
    /// # Errors
    /// [`Error::NotFound`] for any other directory; any other error if the directory cannot be listed.
    pub fn page(&self, at: PageAt, interrupt: &Interrupt) -> Result<Page, Error> {
        let described = self.described(interrupt)?;
        let (contents, opened) = described.shown();
        let mut place = place(contents, opened, at);
        if let Some(table) = &contents.table {
            place.files = files_of_table(self, table, interrupt)?;
            place.columns = columns_of(table, contents);
            return Ok(Page::Table(TablePage::new(table.clone(), place)));
        }
        let mut members = described.members(interrupt)?;
        let more = members.len().saturating_sub(MOST_MEMBERS) as u64;
        members.truncate(MOST_MEMBERS);
        let shown = members.iter().map(|member| of_group(member, place.mounted.is_some())).collect();
        Ok(Page::Group(GroupPage::new(place, shown, more, contents.attributes.clone()), members))
    }
}

impl Page {
    /// The page of the directory at `spot`.
    ///
    /// # Errors
    /// If the request is interrupted.
    pub fn render(&self, spot: &Spot, statistics: bool, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        match self {
            Self::Table(page) => {
                let look = Look::of(page.table(), statistics, interrupt)?;
                Ok(page.render(&look, None))
            }
            Self::Group(page, members) => {
                let mut details = Vec::with_capacity(members.len());
                for member in members.iter().take(MOST_OPENED) {
                    interrupt.check()?;
                    details.push(details_of(member, spot, interrupt));
                }
                Ok(page.render(&details))
            }
        }
    }
}

/// The place of a page.
fn place(contents: &Contents, opened: &Arc<OpenedSource>, at: PageAt) -> PagePlace {
    let identity = opened.opening().source().identity();
    let source = opened.path().to_owned();
    let name = match at.path.rsplit_once_str("/") {
        _ if at.path.is_empty() => source.file_name().unwrap_or(source.as_os_str()).to_string_lossy().into_owned(),
        Some((_, name)) => name.to_str_lossy().into_owned(),
        None => at.path.to_string(),
    };
    let is_table_of_source = at.path.is_empty() && contents.table.is_some();
    PagePlace {
        above: at.above,
        name,
        source,
        bytes: (at.path.is_empty() && !is_table_of_source).then_some(identity.size),
        path: at.path,
        mounted: at.mounted,
        modified: identity.mtime.0,
        findings: at.findings,
        ..PagePlace::default()
    }
}

/// The names in the directory of a table, each with a note.
fn files_of_table(spot: &Spot, table: &Table, interrupt: &Interrupt) -> Result<Vec<(BString, String)>, Error> {
    let children = spot.children(interrupt)?;
    // Where a table only adds names, its columns lie beside the page, each with all of its files.
    let is_added = |name: &BString| [b"table.".as_slice(), b"head."].iter().any(|prefix| name.starts_with(prefix));
    let is_shown = |entry: &DirEntry| {
        let is_own = entry.name != PAGE && !entry.name.starts_with(b".");
        is_own
            && (!table.only_adds
                || is_added(&entry.name)
                || !entry.name.contains(&b'.')
                || entry.name.ends_with(b".json"))
    };
    let names = children.iter().filter(is_shown);
    let noted = names.take(MOST_NAMES).map(|entry| {
        let (mut name, columns) = (entry.name, table.columns.len());
        let note = match name.as_slice() {
            b"columns" if columns == 1 => "1 column".to_owned(),
            b"columns" => format!("{columns} columns"),
            b"where" => "selections".to_owned(),
            b"metadata.json" => "attributes, storage".to_owned(),
            b"indexes.json" => "search indexes".to_owned(),
            name if name.starts_with(b"head.") => "first rows".to_owned(),
            _ => String::new(),
        };
        if entry.kind == EntryKind::Directory {
            name.push(b'/');
        }
        (name, note)
    });
    Ok(noted.collect())
}

/// The names in `columns/` of the first columns.
fn columns_of(table: &Table, contents: &Contents) -> HashMap<BString, Vec<BString>> {
    let named = table.columns.iter().take(MOST_PICTURES).map(|column| {
        let folder = if table.only_adds { "" } else { "columns/" };
        let stem = [folder.as_bytes(), &names::encode(&column.name)].concat().into();
        let files = listing::column_suffixes(column).into_iter().map(|suffix| listing::with_suffix(&stem, suffix));
        (column.name.clone(), files.filter(|name| contents.listing.formats.shows(name)).collect())
    });
    named.collect()
}

/// A member of a group.
fn of_group(member: &ShownMember, is_mounted: bool) -> Member {
    let name = member.name.to_str_lossy().into_owned();
    let shown = member.names();
    let first = shown.first().filter(|_| is_mounted);
    let page = |name: &String| format!("{name}/{PAGE}").into_bytes();
    let (link, kind) = match (member.kind, member.dataset()) {
        ("group", _) => (first.map(page), MemberKind::Group),
        ("table", _) => (first.map(page), MemberKind::Table),
        (_, Some(dataset)) => {
            let attribute = |names: &[&str]| {
                let found = dataset
                    .attributes
                    .iter()
                    .find(|one| names.iter().any(|name| one.name.eq_ignore_ascii_case(name.as_bytes())));
                let text = found.and_then(crate::views::metadata::attribute_text)?;
                Some(text.to_str_lossy().into_owned()).filter(|text| !text.is_empty())
            };
            let kind = MemberKind::Array {
                type_name: arrow_name(&arrow_type(&dataset.datatype)),
                shape: dataset.shape.clone(),
                units: attribute(&["units", "unit"]),
                description: attribute(&["description", "long_name", "title"]),
                png: 0,
                files: shown.iter().filter(|_| is_mounted).map(|name| name.clone().into_bytes()).collect(),
            };
            (first.map(|name| name.clone().into_bytes()), kind)
        }
        (kind, None) => (first.map(|name| name.clone().into_bytes()), MemberKind::Other(kind.to_owned())),
    };
    Member { name, link, kind }
}

/// What is learnt of a member when its page is made.
fn details_of(member: &ShownMember, spot: &Spot, interrupt: &Interrupt) -> Details {
    if !matches!(member.kind, "group" | "table") {
        return Details::Array(ArrayDetails::default());
    }
    let Some(described) = member
        .names()
        .first()
        .and_then(|name| spot.lookup(name.as_bytes(), interrupt).and_then(|child| child.described(interrupt)).ok())
    else {
        return Details::Nothing;
    };
    match described.table() {
        Some(table) => Details::Table(TableDetails {
            rows: table.rows,
            columns: table.columns.len() as u64,
            format: format_of(table),
            stored: None,
            times: None,
            findings: table.findings.len() as u64,
        }),
        None => described.members(interrupt).map_or(Details::Nothing, |members| Details::Group(members.len() as u64)),
    }
}
