//! Pages to look at: describes a directory, its members, and the files beside its page.

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
    Directory, DirectoryDescription, EntryKind, Error, ObjectAttributes, OpenedSource, ShownFile, Spot, names,
};
use crate::catalogue::Dataset;
use crate::source::{Interrupt, Interrupted};
use crate::store::decode::arrow_type;
use crate::store::{self, Rows};
use crate::table::{Table, arrow_name};
use crate::views::constant::ConstantView;
use crate::views::metadata::{ShownMember, attribute_text};
use crate::views::page::{
    ArrayDetails, Details, GroupPage, Look, MOST_MEMBERS, MOST_OPENED, MOST_PICTURES, Member, MemberKind, PagePlace,
    TableDetails, TablePage, decoded, format_of, source_name,
};
use crate::views::png::{LONGEST_PICTURE, PicturedArray};

/// Most names beside a page that it may show.
const MOST_NAMES: usize = 200;

/// Most arrays of a group whose pictures its page shows, and most bytes to decode for all of them.
const MOST_PICTURED: usize = 32;
const MOST_DECODED: u64 = 64 << 20;

/// Most tables of a group whose times its page shows: each costs two reads.
const MOST_TIMED: usize = 100;

/// The place of a page, and the way to it.
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
        Ok(Page::Group(GroupPage::new(place, shown, more, contents.attributes.clone()), members))
    }
}

/// The file of the page of a directory, which belongs to the page alone.
pub(super) fn file(directory: &Arc<Directory>, at: PageAt) -> Result<ShownFile, Error> {
    let contents = directory.contents().ok_or(Error::Stale)?;
    let (opened, files) = (directory.opened(), directory.files());
    let attributes = ObjectAttributes::new(files.name.clone(), contents.attributes.clone());
    let statistics = opened.session().parquet_statistics;
    let spot = Spot::Directory(directory.clone());
    let (measured, place) = (spot.clone(), at.clone());
    let view = ConstantView::measured(
        files.blocks(),
        move |interrupt| Ok(measured.page(place.clone(), interrupt).map_err(of_rows)?.size()),
        move |interrupt| {
            let page = spot.page(at.clone(), interrupt).map_err(of_rows)?;
            page.render(&spot, statistics, interrupt).map_err(of_rows)
        },
    );
    Ok(ShownFile::new(opened, Arc::new(view), attributes))
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
            Self::Group(page, members) => {
                let pictures = page.members().iter().filter(|member| member.kind.has_picture()).count() as u64;
                let mut left = Left { opened: MOST_OPENED, times: MOST_TIMED, pictures };
                let mut details = Vec::with_capacity(members.len());
                for (shown, member) in page.members().iter().zip(members) {
                    details.push(details_of(&shown.kind, member, spot, &mut left, interrupt));
                    // A member that an interrupt cut short has no facts.
                    interrupt.check()?;
                }
                Ok(page.render(&details))
            }
        }
    }
}

/// The place of a page.
fn place(contents: &Contents, opened: &Arc<OpenedSource>, at: PageAt) -> PagePlace {
    let source = opened.path().to_owned();
    let name = match at.path.rsplit_once_str("/") {
        _ if at.path.is_empty() => source_name(&source),
        Some((_, name)) => name.to_str_lossy().into_owned(),
        None => at.path.to_string(),
    };
    let is_table_of_source = at.path.is_empty() && contents.table.is_some();
    PagePlace {
        above: at.above,
        name,
        source,
        bytes: (at.path.is_empty() && !is_table_of_source).then(|| opened.opening().source().identity().size),
        path: at.path,
        mounted: at.mounted,
        modified: opened.stamp().modified_second(),
        findings: at.findings,
        ..PagePlace::default()
    }
}

/// The names in the directory of a table, each with a note.
fn files_of_table(spot: &Spot, table: &Table, interrupt: &Interrupt) -> Result<Vec<(BString, String)>, Error> {
    let children = spot.children(interrupt)?;
    let names = children.iter().filter(|entry| lists(&entry.name, table.only_adds));
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

/// Whether the page of a table lists a name beside it. Where a table only adds names, its columns lie there too: the
/// page leaves out their files.
fn lists(name: &BString, only_adds: bool) -> bool {
    if name == INDEX_PAGE || name.starts_with(b".") {
        return false;
    }
    let is_added = name.starts_with(b"table.") || name.starts_with(b"head.") || name.ends_with(b".json");
    !only_adds || is_added || !name.contains(&b'.')
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
    let kind = match (member.kind, member.dataset()) {
        ("group", _) => MemberKind::Group,
        ("table", _) => MemberKind::Table,
        (_, Some(dataset)) => MemberKind::Array {
            type_name: arrow_name(&arrow_type(&dataset.datatype)),
            shape: dataset.shape.clone(),
            units: attribute(dataset, &["units", "unit"]),
            description: attribute(dataset, &["description", "long_name", "title"]),
            png: if can_be_drawn { LONGEST_PICTURE as usize } else { 0 },
            files: shown.iter().filter(|_| is_mounted).map(|name| name.clone().into_bytes()).collect(),
        },
        (kind, None) => MemberKind::Other(kind.to_owned()),
    };
    let link = first.map(|name| match kind {
        MemberKind::Group | MemberKind::Table => format!("{name}/{INDEX_PAGE}").into_bytes(),
        _ => name.clone().into_bytes(),
    });
    Member { name, link, kind }
}

/// The text of the first attribute of an array that has one of these names, in any case; `None`: no such, or empty.
fn attribute(dataset: &Dataset, names: &[&str]) -> Option<String> {
    let mut attributes = dataset.attributes.iter();
    let found = attributes.find(|one| names.iter().any(|name| one.name.eq_ignore_ascii_case(name.as_bytes())))?;
    let text = attribute_text(found)?.to_str_lossy().into_owned();
    Some(text).filter(|text| !text.is_empty())
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

/// Members that may still be opened, and those that may still get times and pictures.
struct Left {
    opened: usize,
    times: usize,
    pictures: u64,
}

/// Opens a member for the facts that its group's page shows.
fn details_of(kind: &MemberKind, member: &ShownMember, spot: &Spot, left: &mut Left, interrupt: &Interrupt) -> Details {
    let Some(name) = member.names().into_iter().next() else { return Details::Nothing };
    match kind {
        MemberKind::Table | MemberKind::Group if left.opened > 0 => {
            left.opened -= 1;
            of_directory(&name, spot, left, interrupt).unwrap_or_default()
        }
        kind if kind.has_picture() && left.pictures > 0 => {
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
    let last = rows.len().checked_sub(1)?;
    let ends = [seconds_at(rows.as_ref(), 0, interrupt)?, seconds_at(rows.as_ref(), last, interrupt)?];
    Some(ends).filter(|[first, last]| first <= last)
}

/// The instant of a row, in seconds since 1970.
fn seconds_at(rows: &dyn Rows, row: u64, interrupt: &Interrupt) -> Option<i64> {
    let array = rows.array(row..row + 1, interrupt).ok()?;
    let seconds = arrow_cast::cast(&array, &DataType::Timestamp(TimeUnit::Second, None)).ok()?;
    let seconds = seconds.as_primitive_opt::<TimestampSecondType>()?;
    (seconds.len() == 1 && seconds.is_valid(0)).then(|| seconds.value(0))
}

/// The picture of an array, from about `most` decoded bytes at most.
fn picture_of(name: &str, spot: &Spot, most: u64, interrupt: &Interrupt) -> Option<ArrayDetails> {
    let described = spot.described(interrupt).ok()?;
    let (contents, opened) = described.shown();
    let (_, Child::Single(array, _)) = contents.listing.get(name.as_bytes())? else { return None };
    let single = array.single(opened.file().ok()?, interrupt).ok()?;
    let picture = pictured(&single, &array.dataset)?.picture(most, interrupt).ok()??;
    Some(ArrayDetails { width: picture.width, sentence: picture.sentence, png: picture.png })
}
