//! The page of a group, or of a source.

use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::html::Html;
use super::look::words;
use super::{MOST_NAME, PagePlace, snippets, source_name, table};
use crate::activity::words::{bytes, count};
use crate::catalogue::Attribute;
use crate::views::metadata::attributes_value;

/// Most members of a group that its page shows.
pub const MOST_MEMBERS: usize = 1000;

/// Most tables and groups of which a page says more than their names.
pub const MOST_OPENED: usize = 200;

/// Most bytes of other texts than names.
const MOST_TEXT: usize = 240;

/// Most bytes of the facts of a table.
const MOST_TABLE: usize = 320;

/// Most bytes of a table's format.
const MOST_FORMAT: usize = 120;

/// Most bytes around the picture of an array, and of the sentence about it.
const MOST_IMAGE: usize = 280;
const MOST_SENTENCE: usize = 180;

/// A member of a group, as its listing knows it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name in the file, as text.
    pub name: String,
    /// Relative link to its page or file, unescaped: `run_042/index.html`. `None`: no link.
    pub link: Option<Vec<u8>>,
    /// Its kind.
    pub kind: MemberKind,
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
        /// Most bytes of its picture as PNG. 0: no picture.
        png: usize,
        /// Its files, as relative links, unescaped.
        files: Vec<Vec<u8>>,
    },
    /// Anything else, described by a word: a link, a file.
    Other(String),
}

impl MemberKind {
    /// Whether room is left for its picture.
    pub fn has_picture(&self) -> bool {
        matches!(self, Self::Array { png: 1.., .. })
    }
}

/// Facts of a member that are learnt when the page is made.
#[derive(Clone, Debug, Default)]
pub enum Details {
    /// Nothing.
    #[default]
    Nothing,
    /// Members of a group that is no table.
    Group(u64),
    /// Facts of a table; a group may be one.
    Table(TableDetails),
    /// Facts of an array.
    Array(ArrayDetails),
}

/// Facts of a table.
#[derive(Clone, Debug, Default)]
pub struct TableDetails {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Its format: [`format_of`](super::format_of).
    pub format: String,
    /// Bytes of all values, if their width is fixed: [`decoded`](super::decoded).
    pub decoded: Option<u64>,
    /// The first and the last instant of its first column of times, in seconds since 1970, if known.
    pub times: Option<[i64; 2]>,
    /// Findings.
    pub findings: u64,
}

/// Facts of an array.
#[derive(Clone, Debug, Default)]
pub struct ArrayDetails {
    /// Its picture, at most as long as [`MemberKind::Array`] said; empty if it could not be made.
    pub png: Vec<u8>,
    /// Width of the picture, at most 256; it is 64 high.
    pub width: u32,
    /// A description of the picture: `4 of 8 frames, logarithmic`.
    pub sentence: String,
}

/// The page of a group, or of a source. Its size follows from the listing alone.
#[derive(Debug)]
pub struct GroupPage {
    place: PagePlace,
    members: Vec<Member>,
    more: u64,
    attributes: Arc<[Attribute]>,
    size: OnceLock<u64>,
}

impl GroupPage {
    /// The page of a group with these members, of which it shows the first [`MOST_MEMBERS`]; `more` are not among
    /// `members`. `attributes` are the group's.
    pub fn new(place: PagePlace, mut members: Vec<Member>, more: u64, attributes: Arc<[Attribute]>) -> Self {
        let more = more + members.len().saturating_sub(MOST_MEMBERS) as u64;
        members.truncate(MOST_MEMBERS);
        Self { place, members, more, attributes, size: OnceLock::new() }
    }

    /// The members that the page shows.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        *self.size.get_or_init(|| self.written(None).size() as u64)
    }

    /// The page, exactly as long as [`GroupPage::size`] says, with the facts of each member.
    pub fn render(&self, details: &[Details]) -> Vec<u8> {
        self.written(Some(details)).padded()
    }

    /// Members of a kind, with their numbers.
    fn of(&self, is_it: fn(&MemberKind) -> bool) -> Vec<(usize, &Member)> {
        self.members.iter().enumerate().filter(|(_, member)| is_it(&member.kind)).collect()
    }

    fn written(&self, details: Option<&[Details]>) -> Html {
        let place = &self.place;
        let mut out = Html::default();
        let source = source_name(&place.source);
        let has_images = self.members.iter().any(|member| member.kind.has_picture());
        let title = if place.name == source { source.clone() } else { format!("{} – {source}", place.name) };
        out.begin(&title, has_images);
        let tables = self.of(|kind| matches!(kind, MemberKind::Table | MemberKind::Group));
        let arrays = self.of(|kind| matches!(kind, MemberKind::Array { .. }));
        let others = self.of(|kind| matches!(kind, MemberKind::Other(_)));
        let groups = self.of(|kind| matches!(kind, MemberKind::Group)).len();
        let called = match groups {
            0 => "Tables",
            _ if groups == tables.len() => "Groups",
            _ => "Tables and groups",
        };
        let sections = [
            (!tables.is_empty(), ("#tables", called)),
            (!arrays.is_empty(), ("#arrays", "Arrays")),
            (!others.is_empty(), ("#others", "Others")),
            (true, ("#read", "Read it")),
        ];
        let sections: Vec<(&str, &str)> =
            sections.into_iter().filter_map(|(is_there, section)| is_there.then_some(section)).collect();
        place.navigation(&sections, &mut out);
        out.raw("<h1 class=n>").text(&place.name, MOST_NAME).raw("</h1>\n<p class=sub>");
        let counts =
            [(tables.len() - groups, "table"), (groups, "group"), (arrays.len(), "array"), (others.len(), "other")];
        let counts = counts.into_iter().filter(|(many, _)| *many > 0).map(|(many, what)| {
            let plural = if many == 1 || what == "other" { "" } else { "s" };
            format!("<b>{}</b> {what}{plural}", count(many as u64))
        });
        let counts: Vec<String> = counts.collect();
        out.raw(&if counts.is_empty() { "empty".to_owned() } else { counts.join(", ") });
        if self.more > 0 {
            out.raw(&format!(", and <b>{}</b> members that are not shown here", count(self.more)));
        }
        if let Some(size) = place.bytes {
            out.raw(" · ").raw(&bytes(size));
        }
        place.changed(&mut out);
        out.raw("</p>\n");
        if let Some(link) = &place.findings {
            out.raw("<p class=ok><a href=\"").link(link.as_bytes()).raw("\">Findings of the mount</a></p>\n");
        }
        if !tables.is_empty() {
            list_tables(called, &tables, details, &mut out);
        }
        if !arrays.is_empty() {
            list_arrays(&arrays, details, &mut out);
        }
        if !others.is_empty() {
            out.raw("<h2 id=others>Others</h2>\n<div class=files>");
            for (_, member) in others {
                out.raw("<a class=n");
                if let Some(link) = &member.link {
                    out.raw(" href=\"").link(link).raw("\"");
                }
                out.raw(">").text(&member.name, MOST_NAME);
                if let MemberKind::Other(what) = &member.kind {
                    out.raw("<small>").text(what, MOST_TEXT).raw("</small>");
                }
                out.raw("</a>");
            }
            out.raw("</div>\n");
        }
        out.raw("<h2 id=read>Read it</h2>\n");
        snippets::tabs(&snippets::of_group(place), &mut out);
        place.list_files(&mut out);
        table::attributes(attributes_value(&self.attributes), &mut out);
        out.end(&source);
        out
    }
}

/// The facts of a member by its number. `None`: they are not known yet.
fn facts(details: Option<&[Details]>, at: usize) -> Option<&Details> {
    Some(details?.get(at).unwrap_or(&Details::Nothing))
}

/// Writes the name of a member, as a link if it has one.
fn name(member: &Member, out: &mut Html) {
    match &member.link {
        Some(link) => out.raw("<a class=n href=\"").link(link).raw("\">").text(&member.name, MOST_NAME).raw("</a>"),
        None => out.raw("<span class=n>").text(&member.name, MOST_NAME).raw("</span>"),
    };
}

fn list_tables(called: &str, tables: &[(usize, &Member)], details: Option<&[Details]>, out: &mut Html) {
    out.raw(&format!("<h2 id=tables>{called}</h2>\n"));
    out.raw("<div class=scroll tabindex=0><table class=\"rows list\"><thead><tr>");
    out.raw("<th scope=col>Name<th scope=col class=r>Rows<th scope=col class=r>Columns<th scope=col>Kept as");
    out.raw("<th scope=col class=r>Decoded<th scope=col>Times<th scope=col>Findings</tr></thead>\n<tbody>");
    for (at, member) in tables {
        out.raw("<tr><th scope=row>");
        name(member, out);
        out.raw("</th>");
        out.part(MOST_TABLE, facts(details, *at), "<td><td><td><td><td><td>", |out, details| {
            let Details::Table(table) = details else {
                let kind = match (details, &member.kind) {
                    (Details::Group(0), _) => "empty group".to_owned(),
                    (Details::Group(1), _) => "group of 1 member".to_owned(),
                    (Details::Group(many), _) => format!("group of {} members", count(*many)),
                    (_, MemberKind::Group) => "group".to_owned(),
                    _ => "table".to_owned(),
                };
                out.raw(&format!("<td><td><td>{kind}<td><td><td>"));
                return;
            };
            out.raw(&format!("<td class=r>{}<td class=r>{}<td>", count(table.rows), count(table.columns)));
            out.text(&table.format, MOST_FORMAT).raw("<td class=r>");
            out.raw(&table.decoded.map(bytes).unwrap_or_default()).raw("<td>");
            out.raw(&table.times.map(span).unwrap_or_default());
            match table.findings {
                0 => out.raw("<td>none"),
                1 => out.raw("<td class=x>1 finding"),
                many => out.raw(&format!("<td class=x>{} findings", count(many))),
            };
        });
        out.raw("</tr>\n");
    }
    out.raw("</tbody></table></div>\n");
    if tables.len() > MOST_OPENED {
        out.raw(&format!("<p class=note>Rows, columns and findings: of the first {MOST_OPENED} alone.</p>\n"));
    }
}

fn list_arrays(arrays: &[(usize, &Member)], details: Option<&[Details]>, out: &mut Html) {
    out.raw("<h2 id=arrays>Arrays</h2>\n<div class=arrays>");
    for (at, member) in arrays {
        let MemberKind::Array { type_name, shape, units, description, png, files } = &member.kind else { continue };
        out.raw("<div><div><b>");
        name(member, out);
        let extents: Vec<String> = shape.iter().map(|extent| count(*extent)).collect();
        let shape = if shape.is_empty() { "one value".to_owned() } else { extents.join(" × ") };
        out.raw("</b><small>").text(&format!("{shape} · {type_name}"), MOST_TEXT);
        if let Some(units) = units.as_ref().filter(|units| !units.is_empty()) {
            out.raw(" · <b class=n>").text(units, MOST_TEXT).raw("</b>");
        }
        out.raw("</small>");
        if let Some(description) = description {
            out.raw("<p class=n>").text(&table::one_line(description), MOST_TEXT).raw("</p>");
        }
        out.raw("</div><div>");
        let details = facts(details, *at).filter(|_| *png > 0);
        out.part(MOST_IMAGE + png.div_ceil(3) * 4, details, "", |out, details| {
            let Details::Array(array) = details else { return };
            if array.png.is_empty() {
                return;
            }
            out.raw(&format!("<img width={} height=64 alt=\"", array.width));
            out.text(&array.sentence, MOST_SENTENCE).raw("\" src=\"data:image/png;base64,");
            out.raw(&STANDARD.encode(&array.png)).raw("\">");
        });
        out.raw("</div><span>");
        for file in files {
            let file_name = String::from_utf8_lossy(file);
            let shown =
                file_name.rsplit_once('.').map_or_else(|| file_name.to_string(), |(_, suffix)| format!(".{suffix}"));
            out.raw("<a href=\"").link(file).raw("\">").text(&shown, MOST_NAME).raw("</a> ");
        }
        out.raw("</span></div>\n");
    }
    out.raw("</div>\n");
}

/// A span of instants: `2026-07-09 00:00 – 00:16`.
fn span([from, to]: [i64; 2]) -> String {
    let [from, to] = [from, to].map(words::minute);
    match from.split_once(' ').zip(to.split_once(' ')) {
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
    }
}
