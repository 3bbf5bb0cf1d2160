//! The pages to look at: what a directory says of itself and of what lies beside it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_schema::{DataType, TimeUnit};
use bstr::{BString, ByteSlice};

use super::contents::Contents;
use super::files::pictured;
use super::listing::{self, Child, INDEX_PAGE};
use super::{
    DirEntry, Directory, DirectoryDescription, EntryKind, Error, ObjectAttributes, OpenedSource, ShownFile, Spot, names,
};
use crate::source::{Interrupt, Interrupted};
use crate::store;
use crate::store::decode::arrow_type;
use crate::table::{Table, arrow_name};
use crate::views::constant::ConstantView;
use crate::views::metadata::ShownMember;
use crate::views::page::{
    ArrayDetails, Details, GroupPage, Look, MOST_MEMBERS, MOST_PICTURES, Member, MemberKind, PagePlace, TableDetails,
    TablePage, decoded, format_of,
};
use crate::views::png::{LONGEST_PICTURE, PicturedArray};

/// Most names beside a page that it may show.
const MOST_NAMES: usize = 200;

/// Most members of a group that are opened for its page.
const MOST_OPENED: usize = 200;

/// Most arrays of a group whose pictures its page shows, and most bytes to decode for all of them.
const MOST_PICTURED: usize = 32;
const MOST_DECODED: u64 = 64 << 20;

/// Most tables of a group whose times its page shows: each costs two reads.
const MOST_TIMED: usize = 100;

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
    /// Of a group, with its members as listed, and the number of pictures.
    Group(GroupPage, Vec<ShownMember>, u64),
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
        let (members, all) = members_of(&described, interrupt)?;
        let more = (all - members.len()) as u64;
        let mut drawn = 0;
        let shown = members.iter().map(|member| {
            let can_be_drawn = drawn < MOST_PICTURED
                && member.dataset().is_some_and(|dataset| PicturedArray::is_likely(&dataset.shape, &dataset.datatype));
            drawn += usize::from(can_be_drawn);
            of_group(member, place.mounted.is_some(), can_be_drawn)
        });
        let shown: Vec<Member> = shown.collect();
        Ok(Page::Group(GroupPage::new(place, shown, more, contents.attributes.clone()), members, drawn as u64))
    }
}

/// The file of the page of a directory, which belongs to the page alone.
pub(super) fn file(directory: &Arc<Directory>, at: PageAt) -> Result<ShownFile, Error> {
    let contents = directory.contents().ok_or(Error::Stale)?;
    let (opened, files) = (directory.opened(), directory.files());
    let attributes = ObjectAttributes::new(files.name.clone(), contents.attributes.clone());
    let statistics = opened.session().parquet_statistics;
    let (spot, place) = (Spot::Directory(directory.clone()), at.clone());
    let measured = spot.clone();
    let measure = move |interrupt: &Interrupt| Ok(measured.page(place.clone(), interrupt).map_err(of_rows)?.size());
    let make = move |interrupt: &Interrupt| {
        let page = spot.page(at.clone(), interrupt).map_err(of_rows)?;
        page.render(&spot, statistics, interrupt).map_err(of_rows)
    };
    Ok(ShownFile::new(opened, Arc::new(ConstantView::measured(files.blocks(), measure, make)), attributes))
}

/// An error of listing a directory as one of reading rows.
fn of_rows(error: Error) -> store::Error {
    match error {
        Error::Store(error) => error,
        Error::Interrupted => Interrupted.into(),
        error => store::Error::unsupported("the page", error.to_string()),
    }
}

impl Page {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Table(page) => page.size(),
            Self::Group(page, ..) => page.size(),
        }
    }

    /// The page of the directory at `spot`.
    ///
    /// # Errors
    /// If the request is interrupted.
    pub fn render(&self, spot: &Spot, statistics: bool, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        match self {
            Self::Table(page) => {
                let look = Look::of(page.table(), statistics, interrupt)?;
                // Looking has read the chunk maps. Unless an interrupt cut this short, it is the same at any time.
                let stored = spot.described(interrupt)?.stored_bytes(interrupt);
                interrupt.check()?;
                Ok(page.render(&look, stored))
            }
            Self::Group(page, members, pictures) => {
                let mut details = Vec::with_capacity(members.len());
                let mut left = Left { opened: MOST_OPENED, times: MOST_TIMED, pictures: *pictures };
                for member in members {
                    interrupt.check()?;
                    details.push(details_of(member, spot, &mut left, interrupt));
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
        let is_own = entry.name != INDEX_PAGE && !entry.name.starts_with(b".");
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
fn of_group(member: &ShownMember, is_mounted: bool, can_be_drawn: bool) -> Member {
    let name = member.name.to_str_lossy().into_owned();
    let shown = member.names();
    let first = shown.first().filter(|_| is_mounted);
    let page = |name: &String| format!("{name}/{INDEX_PAGE}").into_bytes();
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
                png: if can_be_drawn { LONGEST_PICTURE as usize } else { 0 },
                files: shown.iter().filter(|_| is_mounted).map(|name| name.clone().into_bytes()).collect(),
            };
            (first.map(|name| name.clone().into_bytes()), kind)
        }
        (kind, None) => (first.map(|name| name.clone().into_bytes()), MemberKind::Other(kind.to_owned())),
    };
    Member { name, link, kind }
}

/// The first members of a group, and the number of all.
fn members_of(described: &DirectoryDescription, interrupt: &Interrupt) -> Result<(Vec<ShownMember>, usize), Error> {
    if let Some(first) = described.shown().0.first_members(MOST_MEMBERS) {
        return Ok(first);
    }
    let mut members = described.members(interrupt)?;
    let all = members.len();
    members.truncate(MOST_MEMBERS);
    Ok((members, all))
}

/// How many members are still opened, and how many get times and pictures.
struct Left {
    opened: usize,
    times: usize,
    pictures: u64,
}

/// What is learnt of a member when its page is made.
fn details_of(member: &ShownMember, spot: &Spot, left: &mut Left, interrupt: &Interrupt) -> Details {
    let Some(name) = member.names().into_iter().next() else { return Details::Nothing };
    match member.kind {
        "table" | "group" if left.opened > 0 => {
            left.opened -= 1;
            of_directory(&name, spot, left, interrupt).unwrap_or_default()
        }
        "array" => {
            let can_be_drawn = left.pictures > 0
                && member.dataset().is_some_and(|dataset| PicturedArray::is_likely(&dataset.shape, &dataset.datatype));
            if !can_be_drawn {
                return Details::Array(ArrayDetails::default());
            }
            // An array that was to be drawn, and cannot be, leaves its share to those behind it.
            let most = MOST_DECODED / left.pictures;
            left.pictures -= 1;
            Details::Array(picture_of(&name, spot, most, interrupt).unwrap_or_default())
        }
        _ => Details::Nothing,
    }
}

/// The facts of the table or group in a subdirectory; `None`: it cannot be listed.
fn of_directory(name: &str, spot: &Spot, left: &mut Left, interrupt: &Interrupt) -> Option<Details> {
    let described = spot.lookup(name.as_bytes(), interrupt).ok()?.described(interrupt).ok()?;
    let Some(table) = described.table() else {
        return Some(Details::Group(members_of(&described, interrupt).ok()?.1 as u64));
    };
    let times = if left.times > 0 { times_of(table, interrupt) } else { None };
    left.times -= usize::from(times.is_some());
    Some(Details::Table(TableDetails {
        rows: table.rows,
        columns: table.columns.len() as u64,
        format: format_of(table),
        decoded: decoded(table),
        times,
        findings: described.findings().len() as u64,
    }))
}

/// The instants of the first and the last row in the first column of times, in seconds since 1970, if they rise.
fn times_of(table: &Table, interrupt: &Interrupt) -> Option<[i64; 2]> {
    let mut shown = table.columns.iter().filter(|column| column.in_table).filter_map(|column| column.shown().ok());
    let rows = shown.find(|rows| matches!(rows.data_type(), DataType::Timestamp(..)))?;
    let at = |row: u64| {
        let array = rows.array(row..row + 1, interrupt).ok()?;
        let seconds = arrow_cast::cast(&array, &DataType::Timestamp(TimeUnit::Second, None)).ok()?;
        let seconds = seconds.as_primitive_opt::<TimestampSecondType>()?;
        seconds.is_valid(0).then(|| seconds.value(0))
    };
    let last = rows.len().checked_sub(1)?;
    Some([at(0)?, at(last)?]).filter(|[first, last]| first <= last)
}

/// The picture of an array, from at most about so many decoded bytes.
fn picture_of(name: &str, spot: &Spot, most: u64, interrupt: &Interrupt) -> Option<ArrayDetails> {
    let described = spot.described(interrupt).ok()?;
    let (contents, opened) = described.shown();
    let (_, Child::Single(array, _)) = contents.listing.get(name.as_bytes())? else { return None };
    let single = array.single(opened.file().ok()?, interrupt).ok()?;
    let picture = pictured(&single, &array.dataset)?.picture(most, interrupt).ok()??;
    Some(ArrayDetails { stored: None, width: picture.width, sentence: picture.sentence, png: picture.png })
}
