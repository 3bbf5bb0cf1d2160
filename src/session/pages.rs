//! Pages to look at: describes a directory, its members, and the files beside its page.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_schema::{DataType, TimeUnit};
use bstr::{BString, ByteSlice};

use super::contents::Contents;
use super::files::pictured;
use super::listing::{self, COLUMNS, Child, INDEX_PAGE, INDEXES, METADATA, WHERE};
use super::{
    DirEntry, Directory, DirectoryDescription, EntryKind, Error, ObjectAttributes, OpenedSource, ShownFile, Spot, names,
};
use crate::catalogue::{Dataset, product};
use crate::source::{Interrupt, Interrupted};
use crate::store::decode::arrow_type;
use crate::store::{self, Rows};
use crate::table::{Table, arrow_name};
use crate::views::constant::ConstantView;
use crate::views::metadata::ShownMember;
use crate::views::page::{
    ColumnLook, DESCRIPTIONS, Found, GroupPage, Look, MOST_MEMBERS, MOST_OPENED, MOST_PICTURES, Member, MemberFacts,
    MemberKind, Members, PagePlace, TableBelow, TableFacts, TablePage, ValueRoom, kept_as, source_name, stated,
};
use crate::views::png::{Colours, PicturedArray};

/// Most names beside a page that it may show.
const MOST_NAMES: usize = 200;

/// Most arrays of a group whose pictures its page shows, most whose values, and most bytes to decode for all of them.
const MOST_PICTURED: usize = 32;
const MOST_VALUED: usize = 200;
const MOST_DECODED: u64 = 64 << 20;

/// Most elements of an array that are shown as values, not as a picture.
const FEW: u64 = 8;

/// Most tables further down on the page of a source, on that of a group, and for each directory there, as far as the
/// source can have so many: few tables take less than these bytes.
const MOST_BELOW_SOURCE: u64 = 1000;
const MOST_BELOW_GROUP: u64 = 100;
const MOST_BELOW_DIRECTORY: u64 = 64;
const BYTES_OF_TABLE: u64 = 1024;

/// Most names of a directory to look for directories, and deepest directory to enter.
const MOST_LISTED: usize = 10_000;
const DEEPEST: usize = 64;

/// Most datasets of a group's tables whose bytes its page counts.
const MOST_COUNTED: usize = 400;

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

/// The page of a directory, with the members of its group as listed.
pub(crate) enum Page {
    /// Of a table.
    Table(TablePage, Vec<ShownMember>),
    /// Of a group.
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
        let is_source = at.path.is_empty();
        let mut place = place(contents, opened, at);
        let table = contents.table.as_ref();
        let (listed, all) = members_of(&described, interrupt)?;
        let more = (all - listed.len()) as u64;
        // Columns are members of the groups of some tables.
        let columns: HashSet<&BString> = table.iter().flat_map(|table| &table.columns).map(|one| &one.name).collect();
        let listed = listed.into_iter().filter(|one| one.dataset().is_none() || !columns.contains(&one.name));
        let listed: Vec<ShownMember> = listed.collect();
        let mut rooms = Rooms::default();
        let is_mounted = place.mounted.is_some();
        let members = listed.iter().map(|member| rooms.member(member, is_mounted)).collect();
        let size = opened.opening().source().identity().size;
        let most = if is_source { MOST_BELOW_SOURCE } else { MOST_BELOW_GROUP };
        let below = (self.entered(interrupt)? * MOST_BELOW_DIRECTORY).min(size / BYTES_OF_TABLE).min(most);
        let members = Members::new(members, more, below as usize, is_mounted);
        if let Some(table) = table {
            place.files = files_of_table(self, table, interrupt)?;
            place.columns = columns_of(table, contents);
            return Ok(Page::Table(TablePage::new(table.clone(), place, members), listed));
        }
        Ok(Page::Group(GroupPage::new(place, members, contents.attributes.clone()), listed))
    }

    /// Directories that a walk enters, as far as they make a difference for the room on a page.
    fn entered(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        let children = self.children(interrupt)?;
        let entered = children.iter().take(MOST_LISTED).filter(is_entered);
        Ok(entered.take((MOST_BELOW_SOURCE / MOST_BELOW_DIRECTORY) as usize + 1).count() as u64)
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
            Self::Table(page, ..) => page.size(),
            Self::Group(page, ..) => page.size(),
        }
    }

    /// The page of the directory at `spot`.
    ///
    /// # Errors
    /// If the request is interrupted.
    pub fn render(&self, spot: &Spot, statistics: bool, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        match self {
            Self::Table(page, listed) => {
                let look = Look::of(page.table(), statistics, interrupt)?;
                let described = spot.described(interrupt)?;
                // Looking has read the chunk maps. Unless an interrupt cut this short, it is the same at any time.
                let stored = described.stored_bytes(MOST_PICTURES, interrupt);
                let found = Finder::new(page.members(), statistics, interrupt).found(listed, spot, &described)?;
                interrupt.check()?;
                Ok(page.render(&look, stored, &found))
            }
            Self::Group(page, listed) => {
                let described = spot.described(interrupt)?;
                let found = Finder::new(page.members(), statistics, interrupt).found(listed, spot, &described)?;
                interrupt.check()?;
                Ok(page.render(&found))
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
    let names = children.iter().filter(|entry| is_of_table(&entry.name));
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

/// Whether a name beside the page of a table shows the table. Others are members of its group.
fn is_of_table(name: &BString) -> bool {
    let of_table = [METADATA, INDEXES, COLUMNS, WHERE];
    name.starts_with(b"table.") || name.starts_with(b"head.") || of_table.iter().any(|own| name == *own)
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

/// The rooms for values and pictures that are left on a page.
struct Rooms {
    pictures: usize,
    values: usize,
}

impl Default for Rooms {
    fn default() -> Self {
        Self { pictures: MOST_PICTURED, values: MOST_VALUED }
    }
}

impl Rooms {
    /// A member of a group.
    fn member(&mut self, member: &ShownMember, is_mounted: bool) -> Member {
        let name = member.name.to_str_lossy().into_owned();
        let shown = member.names();
        let first = shown.first().filter(|_| is_mounted);
        let kind = match (member.kind, member.dataset()) {
            ("group", _) => MemberKind::Group,
            ("table", _) => MemberKind::Table,
            (_, Some(dataset)) => MemberKind::Array {
                type_name: arrow_name(&arrow_type(&dataset.datatype)),
                shape: dataset.shape.clone(),
                units: stated(&dataset.attributes, &["units", "unit"]),
                description: stated(&dataset.attributes, &DESCRIPTIONS),
                room: self.room(dataset, !shown.is_empty()),
                files: shown.iter().filter(|_| is_mounted).map(|name| name.clone().into_bytes()).collect(),
            },
            (kind, None) => MemberKind::Other(kind.to_owned()),
        };
        let link = first.map(|name| match kind {
            MemberKind::Group | MemberKind::Table => format!("{name}/{INDEX_PAGE}").into_bytes(),
            _ => name.clone().into_bytes(),
        });
        // Of a dataset without elements its place says so.
        let has_elements = member.dataset().is_none_or(|dataset| !dataset.null);
        let is_hidden = shown.is_empty() && has_elements && !member.not_shown.is_empty();
        let not_shown = is_hidden.then(|| format!("not shown: {}", member.not_shown.join("; ")));
        Member { name, link, kind, not_shown }
    }

    /// Takes the room of an array, which may not be shown.
    fn room(&mut self, dataset: &Dataset, is_shown: bool) -> ValueRoom {
        let few = product(&dataset.shape).is_some_and(|elements| elements <= FEW);
        let picture = PicturedArray::longest(&dataset.shape, &dataset.datatype);
        let is_trace = dataset.shape.len() == 1;
        let (left, room) = match () {
            () if dataset.null || dataset.shape.contains(&0) => return ValueRoom::Nothing("no element"),
            () if !is_shown => return ValueRoom::Nothing("not shown"),
            () if few => (&mut self.values, ValueRoom::Values),
            () if picture > 0 => (&mut self.pictures, ValueRoom::Picture(picture)),
            () if is_trace => (&mut self.pictures, ValueRoom::Trace),
            () => return ValueRoom::Nothing("no picture: its values are no numbers"),
        };
        let has_room = *left > 0;
        *left -= usize::from(has_room);
        if has_room { room } else { ValueRoom::Nothing("no picture: a page has room for the first arrays only") }
    }
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

/// Whether a walk enters a directory. `columns` and `where` of tables, and hidden ones, repeat what others show.
fn is_entered(entry: &DirEntry) -> bool {
    entry.kind == EntryKind::Directory && !entry.name.starts_with(b".") && entry.name != COLUMNS && entry.name != WHERE
}

/// Learns the facts of members and of tables below them, as far as they are cheap.
struct Finder<'a> {
    members: &'a [Member],
    statistics: bool,
    interrupt: &'a Interrupt,
    /// Directories that may still be opened.
    opened: usize,
    /// Whether directories are left out.
    is_cut: bool,
    /// Tables whose times may still be read.
    timed: usize,
    /// Datasets whose bytes may still be counted.
    counted: usize,
    /// Arrays that still may get a picture or values.
    drawn: u64,
}

/// A directory to look into.
struct Waiting {
    /// The number of the member that it is, or in which it lies.
    under: Option<usize>,
    /// Its places among the names above, which tell the order.
    order: Vec<usize>,
    path: BString,
    above: Spot,
}

impl<'a> Finder<'a> {
    fn new(members: &'a Members, statistics: bool, interrupt: &'a Interrupt) -> Self {
        let members = members.shown();
        let drawn = members.iter().filter(|member| member.kind.has_room()).count() as u64;
        let (opened, timed, counted) = (MOST_OPENED, MOST_TIMED, MOST_COUNTED);
        Self { members, statistics, interrupt, opened, is_cut: false, timed, counted, drawn }
    }

    /// The facts of the members of the directory at `spot`, as `listed`, and of the tables below.
    ///
    /// # Errors
    /// If the request is interrupted.
    fn found(mut self, listed: &[ShownMember], spot: &Spot, described: &DirectoryDescription) -> Result<Found, Error> {
        let mut details = vec![MemberFacts::Nothing; self.members.len()];
        let mut waiting = self.first(listed, spot);
        let mut below = Vec::new();
        // Breadth first: the tables nearest to the page come before the limit.
        while let Some(next) = waiting.pop_front() {
            self.interrupt.check()?;
            let Some(left) = self.opened.checked_sub(1) else {
                self.is_cut = true;
                break;
            };
            self.opened = left;
            let name = next.path.rsplit_once_str("/").map_or(next.path.as_slice(), |(_, name)| name);
            let Ok(spot) = next.above.lookup(name, self.interrupt) else { continue };
            let Ok(described) = spot.described(self.interrupt) else { continue };
            let member = next.under.filter(|_| next.order.len() == 1);
            match (self.details(&described), member) {
                (own, Some(at)) => details[at] = own,
                (MemberFacts::Table(table), None) => {
                    let table = TableBelow { under: next.under, path: next.path.to_vec(), details: table };
                    below.push((next.order.clone(), table));
                }
                _ => {}
            }
            if !spot.directory().is_some_and(|directory| directory.is_hidden()) {
                waiting.extend(self.inner(&next, &spot));
            }
        }
        below.sort_by(|one, other| one.0.cmp(&other.0));
        let below = below.into_iter().map(|(_, table)| table).collect();
        for (at, (member, listed)) in self.members.iter().zip(listed).enumerate() {
            if member.kind.has_room() {
                details[at] = self.array(member.kind.room(), listed, described)?;
            }
        }
        Ok(Found { details, below, is_cut: self.is_cut })
    }

    /// The directories at `spot`: members first, then others.
    fn first(&self, listed: &[ShownMember], spot: &Spot) -> VecDeque<Waiting> {
        let mut waiting = VecDeque::new();
        let mut members: HashSet<BString> = HashSet::new();
        for (at, (member, listed)) in self.members.iter().zip(listed).enumerate() {
            let name = listed.names().into_iter().next();
            if let Some(name) = name.filter(|_| matches!(member.kind, MemberKind::Table | MemberKind::Group)) {
                members.insert(name.as_str().into());
                waiting.push_back(Waiting { under: Some(at), order: vec![at], path: name.into(), above: spot.clone() });
            }
        }
        let others = self.directories(spot).into_iter().enumerate().filter(|(_, name)| !members.contains(name));
        waiting.extend(others.map(|(number, name)| Waiting {
            under: None,
            order: vec![self.members.len() + number],
            path: name,
            above: spot.clone(),
        }));
        waiting
    }

    /// The directories in one that was opened at `spot`.
    fn inner(&mut self, opened: &Waiting, spot: &Spot) -> Vec<Waiting> {
        let names = self.directories(spot);
        if opened.order.len() >= DEEPEST {
            self.is_cut |= !names.is_empty();
            return Vec::new();
        }
        let inner = names.into_iter().enumerate().map(|(number, name)| Waiting {
            under: opened.under,
            order: [opened.order.as_slice(), &[number]].concat(),
            path: [opened.path.as_slice(), &name].join(&b'/').into(),
            above: spot.clone(),
        });
        inner.collect()
    }

    /// The first directories in a directory that a walk enters: one more than may be opened, if there are more.
    fn directories(&self, spot: &Spot) -> Vec<BString> {
        let Ok(children) = spot.children(self.interrupt) else { return Vec::new() };
        let entered = children.iter().take(MOST_LISTED).filter(is_entered).take(self.opened + 1);
        entered.map(|entry| entry.name).collect()
    }

    /// The facts of a table or group.
    fn details(&mut self, described: &DirectoryDescription) -> MemberFacts {
        let Some(table) = described.table() else {
            let members = members_of(described, self.interrupt);
            return members.map_or(MemberFacts::Nothing, |(_, all)| MemberFacts::Group(all as u64));
        };
        let instants = instants_of(table).filter(|_| self.timed > 0);
        self.timed -= usize::from(instants.is_some());
        let times = instants.and_then(|rows| ends_of(rows.as_ref(), self.interrupt));
        let stored = described.stored_bytes(self.counted, self.interrupt);
        self.counted = self.counted.saturating_sub(table.columns.len());
        MemberFacts::Table(TableFacts {
            rows: table.rows,
            columns: table.columns.len() as u64,
            format: kept_as(table),
            stored,
            times,
            findings: described.findings().len() as u64,
        })
    }

    /// The picture of an array, or its values.
    ///
    /// # Errors
    /// If the request is interrupted.
    fn array(
        &mut self,
        room: ValueRoom,
        listed: &ShownMember,
        described: &DirectoryDescription,
    ) -> Result<MemberFacts, Error> {
        // An array that was to be drawn, and cannot be, leaves its share to those behind it.
        let most = MOST_DECODED / self.drawn.max(1);
        self.drawn -= 1;
        self.interrupt.check()?;
        let drawn = self.drawn(room, listed, described, most);
        self.interrupt.check()?;
        Ok(drawn.unwrap_or_else(|| MemberFacts::Unseen("cannot be read".to_owned())))
    }

    /// The picture of an array, or its values, from about `most` decoded bytes at most.
    fn drawn(
        &self,
        room: ValueRoom,
        listed: &ShownMember,
        described: &DirectoryDescription,
        most: u64,
    ) -> Option<MemberFacts> {
        let (contents, opened) = described.shown();
        let name = listed.names().into_iter().next()?;
        let (_, Child::Single(array, _)) = contents.listing.get(name.as_bytes())? else { return None };
        let single = array.single(opened.file().ok()?, self.interrupt).ok()?;
        if let Err(reason) = single.whole.columns.first()?.shown() {
            return Some(MemberFacts::Unseen(format!("cannot be read: {reason}")));
        }
        if let ValueRoom::Picture(_) = room
            && let Some(drawn) = pictured(&single, &array.dataset)
        {
            let colours =
                Colours::of(&single, stated(&array.dataset.attributes, &["CLASS"]).as_deref() == Some("IMAGE"));
            let picture = drawn.picture(&colours, most, self.interrupt).ok()?;
            let costly = "no picture: too much would have to be decoded";
            return Some(picture.map_or_else(|| MemberFacts::Unseen(costly.to_owned()), MemberFacts::Picture));
        }
        let mut look = Look::within(&single.whole, self.statistics, most, self.interrupt).ok()?;
        let is_drawn = room == ValueRoom::Trace && look.columns.first().is_some_and(ColumnLook::has_band);
        if is_drawn {
            return Some(MemberFacts::Trace(Box::new(look.columns.remove(0))));
        }
        let values = look.edges.in_words();
        // A single element of an array is shown without the brackets of its axes.
        let axes = 1..if product(&single.shape) == Some(1) { single.shape.len() } else { 0 };
        let shown = axes.fold(values.as_str(), |text, _| {
            text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
        });
        Some(MemberFacts::Values(shown.to_owned())).filter(|_| !look.edges.rows.is_empty())
    }
}

/// The first column of times.
fn instants_of(table: &Table) -> Option<Arc<dyn Rows>> {
    let mut shown = table.columns.iter().filter(|column| column.in_table).filter_map(|column| column.shown().ok());
    shown.find(|rows| matches!(rows.data_type(), DataType::Timestamp(..)))
}

/// The first and the last instant of a column, in seconds since 1970, if they rise.
fn ends_of(rows: &dyn Rows, interrupt: &Interrupt) -> Option<[i64; 2]> {
    let last = rows.len().checked_sub(1)?;
    let ends = [seconds_at(rows, 0, interrupt)?, seconds_at(rows, last, interrupt)?];
    Some(ends).filter(|[first, last]| first <= last)
}

/// The instant of a row, in seconds since 1970.
fn seconds_at(rows: &dyn Rows, row: u64, interrupt: &Interrupt) -> Option<i64> {
    let array = rows.array(row..row + 1, interrupt).ok()?;
    let seconds = arrow_cast::cast(&array, &DataType::Timestamp(TimeUnit::Second, None)).ok()?;
    let seconds = seconds.as_primitive_opt::<TimestampSecondType>()?;
    (seconds.len() == 1 && seconds.is_valid(0)).then(|| seconds.value(0))
}
