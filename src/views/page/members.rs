//! The members of a group on a page: tables in it and below it, groups, arrays, others.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::MOST_NAME;
use super::about::{Stored, one_line};
use super::html::Html;
use super::look::{ColumnLook, words};
use super::svg::Drawn;
use crate::activity::words::{count, counted};
use crate::views::png::{Picture, Shades};

/// Most members of a group that its page shows.
pub const MOST_MEMBERS: usize = 1000;

/// Most tables and groups of which a page says more than their names.
pub const MOST_OPENED: usize = 1000;

/// Most bytes of other texts than names.
const MOST_TEXT: usize = 240;

/// Most bytes of the facts of a table.
const MOST_TABLE: usize = 360;

/// Most bytes of a table's format.
const MOST_FORMAT: usize = 120;

/// Bytes that are reserved for each table further down, path and facts together.
const BELOW: usize = 320;

/// Most bytes around a list of tables or groups: heading, names of columns, notes.
const MOST_AROUND: usize = 700;

/// Most bytes of the note about a group.
const MOST_GROUP: usize = 60;

/// Most bytes of the values of an array, and around them.
const MOST_VALUES: usize = 240;
const MOST_AROUND_VALUES: usize = 40;

/// Most bytes of the picture of an array of one dimension.
const MOST_TRACE: usize = 4_200;

/// Most bytes around the picture of an array, and of the sentence about it, which is there twice.
const MOST_IMAGE: usize = 800;
const MOST_SENTENCE: usize = 180;

/// Most bytes of the numbers of members.
const MOST_COUNTS: usize = 240;

/// A member of a group, as its listing knows it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name in the file, as text.
    pub name: String,
    /// Relative link to its page or file, unescaped: `run_042/index.html`. `None`: no link.
    pub link: Option<Vec<u8>>,
    /// Its kind.
    pub kind: MemberKind,
    /// Why nothing of it is shown, if nothing is.
    pub not_shown: Option<String>,
}

/// The kind of a member.
#[derive(Clone, Debug)]
pub enum MemberKind {
    /// A group.
    Group,
    /// A table.
    Table,
    /// A dataset that is no table.
    Array {
        /// Its type.
        type_name: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Units.
        units: Option<String>,
        /// Description.
        description: Option<String>,
        /// Room for its values or its picture.
        room: ValueRoom,
        /// Its files, as relative links, unescaped.
        files: Vec<Vec<u8>>,
    },
    /// Anything else, described by a word: a link, a file.
    Other(String),
}

/// Room for what a page shows of the values of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRoom {
    /// No room, for this reason.
    Nothing(&'static str),
    /// Its values as text, or some of them.
    Values,
    /// A line over its elements, or some of its values.
    Trace,
    /// A picture of at most this many bytes as PNG, or its values.
    Picture(usize),
}

impl MemberKind {
    /// The room for values or a picture.
    pub fn room(&self) -> ValueRoom {
        if let Self::Array { room, .. } = self { *room } else { ValueRoom::Nothing("") }
    }

    /// Whether there is room for values or a picture.
    pub fn has_room(&self) -> bool {
        !matches!(self.room(), ValueRoom::Nothing(_))
    }
}

/// Facts of a member that are learnt when the page is made.
#[derive(Clone, Debug, Default)]
pub enum MemberFacts {
    /// Nothing.
    #[default]
    Nothing,
    /// Members of a group that is no table.
    Group(u64),
    /// Facts of a table; a group may be one.
    Table(TableFacts),
    /// The picture of an array.
    Picture(Picture),
    /// How the values of an array of one dimension run over its elements.
    Trace(Box<ColumnLook>),
    /// Values of an array.
    Values(String),
    /// Why an array has neither values nor a picture.
    Unseen(String),
}

/// Facts of a table.
#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Its format: [`kept_as`](super::kept_as).
    pub format: String,
    /// Bytes in the file. `None`: not known.
    pub stored: Option<Stored>,
    /// The first and the last instant of its first column of times, in seconds since 1970, if known.
    pub times: Option<[i64; 2]>,
    /// Findings.
    pub findings: u64,
}

/// A table further down than the members.
#[derive(Clone, Debug)]
pub struct TableBelow {
    /// The number of the member in which it lies. `None`: in a directory that is no member.
    pub under: Option<usize>,
    /// Its path below the page, as a mount shows it.
    pub path: Vec<u8>,
    /// Its facts.
    pub details: TableFacts,
}

/// The facts of members and of tables below them.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// One for each member, in order; less where nothing is known.
    pub details: Vec<MemberFacts>,
    /// Tables further down, those of a member in order.
    pub below: Vec<TableBelow>,
    /// Whether groups are left that were not opened.
    pub is_cut: bool,
}

impl Found {
    /// The facts of a member by its number.
    fn of(&self, at: usize) -> &MemberFacts {
        self.details.get(at).unwrap_or(&MemberFacts::Nothing)
    }

    /// The facts of a member, if it is a table.
    fn table(&self, at: usize) -> Option<&TableFacts> {
        if let MemberFacts::Table(table) = self.of(at) { Some(table) } else { None }
    }
}

/// The members of a group, as a page shows them.
#[derive(Debug, Default)]
pub struct Members {
    members: Vec<Member>,
    /// Members that are not among them.
    more: u64,
    /// Tables further down for which there is room.
    below: usize,
    /// Whether pages can be linked to.
    is_mounted: bool,
}

impl Members {
    /// The first [`MOST_MEMBERS`] of these members, and room for about `below` tables further down; `more` are not
    /// among `members`.
    pub fn new(mut members: Vec<Member>, more: u64, below: usize, is_mounted: bool) -> Self {
        let more = more + members.len().saturating_sub(MOST_MEMBERS) as u64;
        members.truncate(MOST_MEMBERS);
        Self { members, more, below, is_mounted }
    }

    /// The members that the page shows.
    pub fn shown(&self) -> &[Member] {
        &self.members
    }

    /// Whether one of them has room for an image.
    pub fn has_images(&self) -> bool {
        self.members.iter().any(|member| matches!(member.kind.room(), ValueRoom::Picture(_)))
    }

    /// Members of a kind, with their numbers.
    fn of(&self, is_it: fn(&MemberKind) -> bool) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter(move |(_, member)| is_it(&member.kind))
    }

    fn directories(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.of(|kind| matches!(kind, MemberKind::Table | MemberKind::Group))
    }

    /// Groups that are no tables.
    fn groups<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = (usize, &'a Member)> {
        self.of(|kind| matches!(kind, MemberKind::Group)).filter(|(at, _)| found.table(*at).is_none())
    }

    /// Tables, groups, arrays and other members.
    fn numbers(&self, found: &Found) -> [u64; 4] {
        let groups = self.groups(found).count();
        let tables = self.directories().count() - groups + found.below.len();
        let arrays = self.of(|kind| matches!(kind, MemberKind::Array { .. })).count();
        let others = self.of(|kind| matches!(kind, MemberKind::Other(_))).count();
        [tables, groups, arrays, others].map(|number| number as u64)
    }

    /// Writes how many members there are, and how many tables below them.
    pub fn counts(&self, found: Option<&Found>, out: &mut Html) {
        out.part(MOST_COUNTS, found, "", |out, found| {
            let [tables, groups, arrays, others] = self.numbers(found);
            let counts = [(tables, "table"), (groups, "group"), (arrays, "array"), (others, "other")];
            let counts = counts.into_iter().filter(|(many, _)| *many > 0).map(|(many, kind)| {
                let plural = if many == 1 || kind == "other" { "" } else { "s" };
                format!("<b>{}</b> {kind}{plural}", count(many))
            });
            let counts: Vec<String> = counts.collect();
            out.raw(&if counts.is_empty() { "empty".to_owned() } else { counts.join(", ") });
        });
        if self.more > 0 {
            out.raw(&format!(", and <b>{}</b> members that are not shown here", count(self.more)));
        }
    }

    /// Writes links to the lists of members.
    pub fn jumps(&self, found: Option<&Found>, out: &mut Html) {
        out.part(MOST_COUNTS, found, "", |out, found| {
            let sections = ["Tables", "Groups", "Arrays", "Others"].into_iter().zip(self.numbers(found));
            for (name, _) in sections.filter(|(_, number)| *number > 0) {
                out.raw(&format!("<a href=\"#{}\">{name}</a> ", name.to_lowercase()));
            }
        });
    }

    /// Writes the lists of members; `within` follows the headings.
    pub fn write(&self, found: Option<&Found>, within: &str, out: &mut Html) {
        self.list_tables(found, within, out);
        self.list_groups(found, within, out);
        self.list_arrays(found, within, out);
        let mut others = self.of(|kind| matches!(kind, MemberKind::Other(_))).peekable();
        if others.peek().is_some() {
            out.raw(&format!("<h2 id=others>Others{within}</h2>\n<div class=files>"));
            for (_, member) in others {
                let MemberKind::Other(what) = &member.kind else { continue };
                chip(member, "", what, out);
            }
            out.raw("</div>\n");
        }
    }

    fn list_tables(&self, found: Option<&Found>, within: &str, out: &mut Html) {
        let heads = self.directories().map(|(at, member)| (at, member, Html::written(|out| name(member, out))));
        let heads: Vec<(usize, &Member, String)> = heads.collect();
        let room: usize = heads.iter().map(|(_, _, head)| head.len() + MOST_TABLE).sum();
        if heads.is_empty() && self.below == 0 {
            return;
        }
        out.part(MOST_AROUND + room + self.below * BELOW, found, "", |out, found| {
            let mut left = self.below * BELOW;
            let (mut rows, mut more) = (Vec::new(), 0);
            let all = heads.iter().filter_map(|(at, ..)| found.table(*at));
            let has_times = all.chain(found.below.iter().map(|one| &one.details)).any(|table| table.times.is_some());
            let mut below = found.below.iter().peekable();
            for (at, member, head) in &heads {
                if matches!(member.kind, MemberKind::Table) || found.table(*at).is_some() {
                    rows.push(row(head, found.table(*at), has_times));
                }
                while let Some(table) = below.next_if(|table| table.under == Some(*at)) {
                    self.push_below(table, has_times, (&mut rows, &mut left, &mut more));
                }
            }
            below.for_each(|table| self.push_below(table, has_times, (&mut rows, &mut left, &mut more)));
            if !rows.is_empty() || more > 0 {
                out.raw(&format!("<h2 id=tables>Tables{within}</h2>\n"));
                out.raw("<div class=scroll tabindex=0><table class=\"rows list\"><thead><tr>");
                out.raw("<th scope=col>Table<th scope=col class=r>Rows<th scope=col class=r>Columns");
                out.raw("<th scope=col>Kept as<th scope=col class=r>In the file");
                out.raw(if has_times { "<th scope=col>Times" } else { "" });
                out.raw("<th scope=col>Findings</tr></thead>\n<tbody>").raw(&rows.concat());
                out.raw("</tbody></table></div>\n");
            }
            if more > 0 {
                let tables = counted(more, "more table");
                out.raw(&format!("<p class=note>{tables} further down: on the pages of the groups.</p>\n"));
            }
            if found.is_cut {
                let most = count(MOST_OPENED as u64);
                out.raw("<p class=note>Not all directories were looked into for tables: no more than ");
                out.raw(&format!("{most}, those nearest to this page.</p>\n"));
            }
        });
    }

    /// Adds the row of a table further down, if there is room.
    fn push_below(&self, below: &TableBelow, times: bool, to: (&mut Vec<String>, &mut usize, &mut u64)) {
        let (rows, left, more) = to;
        let path = String::from_utf8_lossy(&below.path).into_owned();
        let link = self.is_mounted.then(|| [below.path.as_slice(), b"/index.html"].concat());
        let member = Member { name: path, link, kind: MemberKind::Table, not_shown: None };
        let row = row(&Html::written(|out| name(&member, out)), Some(&below.details), times);
        match left.checked_sub(row.len()) {
            Some(rest) => {
                *left = rest;
                rows.push(row);
            }
            None => *more += 1,
        }
    }

    fn list_groups(&self, found: Option<&Found>, within: &str, out: &mut Html) {
        let groups = self.of(|kind| matches!(kind, MemberKind::Group));
        let chips = groups.map(|(_, member)| {
            let reason = member.not_shown.as_deref().unwrap_or_default();
            Html::written(|out| chip(member, "/", reason, out)).len() + MOST_GROUP
        });
        let room: usize = chips.sum();
        if room == 0 {
            return;
        }
        out.part(MOST_AROUND + room, found, "", |out, found| {
            let mut groups = self.groups(found).peekable();
            if groups.peek().is_none() {
                return;
            }
            out.raw(&format!("<h2 id=groups>Groups{within}</h2>\n<div class=files>"));
            for (at, member) in groups {
                let note = match found.of(at) {
                    MemberFacts::Group(0) => "empty".to_owned(),
                    MemberFacts::Group(many) => counted(*many, "member"),
                    _ => member.not_shown.clone().unwrap_or_default(),
                };
                chip(member, "/", &note, out);
            }
            out.raw("</div>\n");
        });
    }

    fn list_arrays(&self, found: Option<&Found>, within: &str, out: &mut Html) {
        let mut arrays = self.of(|kind| matches!(kind, MemberKind::Array { .. })).peekable();
        if arrays.peek().is_none() {
            return;
        }
        let class = if self.is_mounted { "\"arrays m\"" } else { "arrays" };
        out.raw(&format!("<h2 id=arrays>Arrays{within}</h2>\n<div class={class}>"));
        for (at, member) in arrays {
            let MemberKind::Array { type_name, shape, units, description, room, files } = &member.kind else {
                continue;
            };
            out.raw("<div><div><b>");
            name(member, out);
            let extents: Vec<String> = shape.iter().map(|extent| count(*extent)).collect();
            let shown = match room {
                _ if !shape.is_empty() => extents.join(" × "),
                ValueRoom::Nothing(_) => "no value".to_owned(),
                _ => "one value".to_owned(),
            };
            out.raw("</b><small>").text(&format!("{shown} · {type_name}"), MOST_TEXT);
            if let Some(units) = units.as_ref().filter(|units| !units.is_empty()) {
                out.raw(" · <b class=n>").text(units, MOST_TEXT).raw("</b>");
            }
            out.raw("</small>");
            if let Some(description) = description.as_ref().filter(|text| !text.eq_ignore_ascii_case(&member.name)) {
                out.raw("<p class=n>").text(&one_line(description), MOST_TEXT).raw("</p>");
            }
            out.raw("</div><div>");
            let values = MOST_VALUES + MOST_AROUND_VALUES;
            let most = match room {
                ValueRoom::Nothing(_) => 0,
                ValueRoom::Values => values,
                ValueRoom::Trace => MOST_TRACE.max(values),
                ValueRoom::Picture(png) => (MOST_IMAGE + png.div_ceil(3) * 4).max(values),
            };
            if let ValueRoom::Nothing(reason) = room {
                let reason = member.not_shown.as_deref().unwrap_or(reason);
                out.raw("<p>").text(reason, MOST_TEXT).raw("</p>");
            }
            let rows = shape.first().copied().unwrap_or(1);
            out.part(most, found.map(|found| found.of(at)), "", |out, details| {
                show(details, (&member.name, units.as_deref()), rows, out);
            });
            out.raw("</div>");
            if self.is_mounted {
                out.raw("<span>");
            }
            for file in files {
                let file_name = String::from_utf8_lossy(file);
                let suffix = file_name.rsplit_once('.').map(|(_, suffix)| format!(".{suffix}"));
                out.raw("<a href=\"").link(file).raw("\">");
                out.text(suffix.as_deref().unwrap_or(&file_name), MOST_NAME).raw("</a> ");
            }
            out.raw(if self.is_mounted { "</span></div>\n" } else { "</div>\n" });
        }
        out.raw("</div>\n");
    }
}

/// Writes the picture of an array, or its values.
fn show(details: &MemberFacts, (name, units): (&str, Option<&str>), rows: u64, out: &mut Html) {
    match details {
        MemberFacts::Picture(picture) if picture.png.is_empty() => {
            out.raw("<p class=\"n v\">").text(&sentence(picture), MOST_VALUES).raw("</p>");
        }
        MemberFacts::Picture(picture) => {
            let sentence = sentence(picture);
            out.raw(&format!("<img width={} height=64 alt=\"", picture.width)).text(&sentence, MOST_SENTENCE);
            out.raw("\" src=\"data:image/png;base64,").raw(&STANDARD.encode(&picture.png));
            out.raw("\"><small aria-hidden=true>");
            for part in sentence.split_inclusive([':', ',']) {
                out.raw("<span class=nw>").text(part, MOST_SENTENCE).raw("</span>");
            }
            out.raw("</small>");
        }
        MemberFacts::Trace(look) => {
            if let Ok(picture) = &look.picture {
                // Elements of arrays have no list of the rows that were looked at.
                Drawn { name, units, rows, look, has_same_rows: true }.trace(picture, out);
            }
            let figures = [("least", &look.numbers.least), ("greatest", &look.numbers.greatest)];
            let figures = figures.iter().filter_map(|(name, figure)| {
                let figure = figure.as_ref()?;
                let mark = if figure.is_exact { "" } else { " ≈" };
                Some(format!("<span class=nw>{name} {}{mark}</span>", figure.of.0))
            });
            out.raw("<small>").raw(&figures.collect::<Vec<_>>().join(", ")).raw("</small>");
        }
        MemberFacts::Values(values) => {
            out.raw("<p class=\"n v\">").text(one_line(values).trim(), MOST_VALUES).raw("</p>");
        }
        MemberFacts::Unseen(reason) => _ = out.raw("<p>").text(reason, MOST_VALUES).raw("</p>"),
        MemberFacts::Nothing | MemberFacts::Group(_) | MemberFacts::Table(_) => {}
    }
}

/// Describes a picture: `4 of 8 frames: black 0, white 4 095`.
fn sentence(picture: &Picture) -> String {
    let Picture { parts, shades, has_gaps, are_magnitudes, .. } = picture;
    let shades = match shades {
        Shades::Colours => String::new(),
        Shades::Nothing => ": no value".to_owned(),
        Shades::All(value) if *has_gaps => format!(": grey is {}", words::real(*value)),
        Shades::All(value) => format!(": all {}", words::real(*value)),
        Shades::Between { ends: [least, greatest], is_logarithmic } => {
            let [least, greatest] = [least, greatest].map(|end| words::real_within(*end, greatest - least));
            format!(": black {least}, white {greatest}{}", if *is_logarithmic { ", logarithmic" } else { "" })
        }
    };
    let of = if *are_magnitudes { ", magnitudes" } else { "" };
    format!("{parts}{of}{shades}{}", if *has_gaps && !picture.png.is_empty() { ", striped missing" } else { "" })
}

/// Writes the name of a member, as a link if it has one.
fn name(member: &Member, out: &mut Html) {
    match &member.link {
        Some(link) => out.raw("<a class=n href=\"").link(link).raw("\">").name(&member.name, MOST_NAME).raw("</a>"),
        None => out.raw("<span class=n>").name(&member.name, MOST_NAME).raw("</span>"),
    };
}

/// Writes the name of a member and a note in a frame.
fn chip(member: &Member, ending: &str, note: &str, out: &mut Html) {
    out.raw("<a class=n");
    if let Some(link) = &member.link {
        out.raw(" href=\"").link(link).raw("\"");
    }
    out.raw(">").name(&member.name, MOST_NAME).raw(ending);
    if !note.is_empty() {
        out.raw("<small>").text(note, MOST_TEXT).raw("</small>");
    }
    out.raw("</a>");
}

/// The row of a table in a list; `head` is its name.
fn row(head: &str, table: Option<&TableFacts>, has_times: bool) -> String {
    Html::written(|out| {
        out.raw("<tr><th scope=row>").raw(head).raw("</th>");
        if let Some(table) = table {
            out.raw(&format!("<td class=r>{}<td class=r>{}<td>", count(table.rows), count(table.columns)));
            out.text(&table.format, MOST_FORMAT).raw("<td class=r>");
            out.raw(&table.stored.and_then(Stored::in_words).unwrap_or_else(|| "–".to_owned()));
            if has_times {
                out.raw("<td>").raw(&table.times.map(span).unwrap_or_default());
            }
            match table.findings {
                0 => out.raw("<td>none"),
                many => out.raw(&format!("<td class=x>{}", counted(many, "finding"))),
            };
        } else {
            out.raw(if has_times { "<td><td><td><td><td><td>" } else { "<td><td><td><td><td>" });
        }
        out.raw("</tr>\n");
    })
}

/// A span of instants: `2026-07-09 00:00 – 00:16`.
fn span(ends: [i64; 2]) -> String {
    let [from, to] = ends.map(words::minute);
    match from.split_once(' ').zip(to.split_once(' ')) {
        _ if from == to => from,
        Some(((day, _), (same, clock))) if day == same => format!("{from} – {clock}"),
        _ => format!("{from} – {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_a_day_once() {
        assert_eq!(span([1_783_555_200, 1_783_556_160]), "2026-07-09 00:00 – 00:16");
        assert_eq!(span([0, 86_400]), "1970-01-01 00:00 – 1970-01-02 00:00");
        assert_eq!(span([1_783_555_200, 1_783_555_259]), "2026-07-09 00:00");
    }
}
