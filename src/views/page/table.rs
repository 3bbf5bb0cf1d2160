//! The page of a table.

use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;

use super::about::{MOST_DESCRIPTION, Stored, attributes, decoded, described, kept_as, one_line};
use super::html::Html;
use super::look::{ColumnLook, EdgeRows};
use super::members::{Found, Members};
use super::svg::{Drawn, figures, most_bytes};
use super::{Cell, Look, MOST_NAME, MOST_PICTURES, NoPicture, PagePlace, edge_rows, snippets, source_name};
use crate::activity::words::{bytes, count};
use crate::table::{Column, Table, arrow_name};

/// Most columns that a page lists.
const MOST_COLUMNS: usize = 2000;

/// Most bytes of texts.
const MOST_TEXT: usize = 240;

/// Most findings that a page lists.
const MOST_FINDINGS: usize = 20;

/// Most bytes of a line that says why there is no picture.
const MOST_UNREAD: usize = 300;

/// Most bytes of a cell of the first and last rows, and of its text.
const MOST_CELL: usize = 76;
const MOST_CELL_TEXT: usize = 60;

/// Most bytes of the note about the sample.
const MOST_NOTE: usize = 1200;

/// The page of a table. Its size follows from the schema alone: parts made of values have a bound, and a comment pads
/// them to it.
#[derive(Debug)]
pub struct TablePage {
    table: Arc<Table>,
    place: PagePlace,
    /// Members of the table's group besides its columns.
    members: Members,
    size: OnceLock<u64>,
}

/// The facts that need values.
#[derive(Clone, Copy)]
struct Known<'a> {
    look: &'a Look,
    stored: Option<Stored>,
    found: &'a Found,
}

impl TablePage {
    /// The page of a table at a place, whose group has these members besides.
    pub fn new(table: Arc<Table>, place: PagePlace, members: Members) -> Self {
        Self { table, place, members, size: OnceLock::new() }
    }

    /// The members of the table's group besides its columns.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The size in bytes, before any value is read.
    pub fn size(&self) -> u64 {
        *self.size.get_or_init(|| self.written(None).size() as u64)
    }

    /// The page, exactly as long as [`TablePage::size`] says. `stored`: bytes in the file, if known; `found`: the facts
    /// of members.
    pub fn render(&self, look: &Look, stored: Option<Stored>, found: &Found) -> Vec<u8> {
        self.written(Some(Known { look, stored, found })).padded()
    }

    fn written(&self, known: Option<Known>) -> Html {
        let (table, place) = (self.table.as_ref(), &self.place);
        let mut out = Html::default();
        let source = source_name(&place.source);
        out.begin(&format!("{} – {source}", place.name), self.members.has_images());
        let columns = table.columns.len();
        let found = known.map(|known| known.found);
        place.navigation(&mut out, |out| {
            for (link, name) in [("columns", "Columns"), ("rows", "Rows"), ("read", "Read it"), ("files", "Files")] {
                out.raw(&format!("<a href=\"#{link}\">{name}</a> "));
            }
            self.members.jumps(found, out);
        });
        place.heading(&mut out);
        out.raw("<p class=sub><b>");
        out.raw(&count(table.rows)).raw(if table.rows == 1 { "</b> row, <b>" } else { "</b> rows, <b>" });
        out.raw(&count(columns as u64)).raw(if columns == 1 { "</b> column" } else { "</b> columns" });
        out.raw("\u{a0}· ").text(&kept_as(table), MOST_TEXT);
        let stored = known.map(|known| known.stored);
        out.part(40, stored, "", |out, stored| {
            if let Some(stored) = stored.and_then(Stored::in_words) {
                out.raw("\u{a0}· ").raw(&stored).raw(" in the file");
            }
        });
        if let Some(decoded) = decoded(table) {
            out.raw("\u{a0}· ").raw(&bytes(decoded)).raw(" decoded");
        }
        if let Some(filters) = filters(table) {
            out.raw("\u{a0}· ").text(&filters, MOST_TEXT);
        }
        place.changed(&mut out);
        out.raw("</p>\n");
        described(&table.attributes, &mut out);
        self.findings(&mut out);
        out.raw("<h2 id=columns>Columns</h2>\n<table class=cols><thead><tr><th scope=col>Column<th scope=col>Values");
        out.raw("<th scope=col>Over the rows<th scope=col>In numbers</tr></thead>\n<tbody>\n");
        let mut before: Option<&ColumnLook> = None;
        for (at, column) in table.columns.iter().enumerate().take(MOST_COLUMNS) {
            self.column(at, column, &mut out);
            if at >= MOST_PICTURES {
                out.raw("<td colspan=3></tr>\n");
                continue;
            }
            let most =
                column.shown().map_or(MOST_TEXT, |rows| most_bytes(rows.data_type(), rows.nullable(), rows.len()));
            let drawn = known.and_then(|known| known.look.columns.get(at));
            let before = std::mem::replace(&mut before, drawn);
            let instead = "<td colspan=3 class=w>no picture: it would be too large";
            out.part(most.max(MOST_UNREAD), drawn, instead, |out, look| self.drawn(column, look, before, out));
            out.raw("</tr>\n");
        }
        out.raw("</tbody></table>\n<p class=note>");
        let look = known.map(|known| known.look);
        out.part(MOST_NOTE, look, "", |out, look| note(look, out));
        if columns > MOST_PICTURES {
            out.raw(&format!(" Columns after number {MOST_PICTURES} have no pictures."));
        }
        if columns > MOST_COLUMNS {
            let more = count((columns - MOST_COLUMNS) as u64);
            out.raw(&format!(" {more} more columns are in <a href=\"metadata.json\">metadata.json</a>."));
        }
        out.raw("</p>\n");
        self.rows(look.map(|look| &look.edges), &mut out);
        out.raw("<h2 id=read>Read it</h2>\n");
        snippets::tabs(&snippets::of_table(table, place), &mut out);
        place.list_files(&mut out);
        self.members.write(found, " beside the columns", &mut out);
        attributes(&table.attributes, &mut out);
        out.end(&source);
        out
    }

    fn findings(&self, out: &mut Html) {
        let findings = &self.table.findings;
        if findings.is_empty() {
            out.raw("<p class=ok>No findings: the table keeps the rules of its format, as far as they were checked.");
            self.link_findings(out);
            out.raw("</p>\n");
            return;
        }
        let many = findings.len();
        out.raw("<details class=f><summary>").raw(&count(many as u64));
        out.raw(if many == 1 { " finding" } else { " findings" }).raw(": where the table breaks rules</summary><ul>");
        for finding in findings.iter().take(MOST_FINDINGS) {
            out.raw(&format!("<li><b>{}</b> <code>", finding.rule.severity))
                .text(&finding.path, MOST_TEXT)
                .raw("</code> ");
            out.text(&finding.found, MOST_TEXT).raw(" (").text(finding.rule.text, MOST_TEXT).raw(")</li>");
        }
        if many > MOST_FINDINGS {
            out.raw(&format!("<li>{} more</li>", many - MOST_FINDINGS));
        }
        out.raw("</ul>");
        self.link_findings(out);
        out.raw("</details>\n");
    }

    /// Writes a link to the findings of the mount.
    fn link_findings(&self, out: &mut Html) {
        if let Some(link) = &self.place.findings {
            out.raw(" <a href=\"").link(link.as_bytes()).raw("\">All findings of the mount</a>");
        }
    }

    /// Writes the name of a column, its type, units and description.
    fn column(&self, at: usize, column: &Column, out: &mut Html) {
        out.raw(&format!("<tr id=c{at}><th scope=row>"));
        if self.place.mounted.is_some() && !self.table.only_adds {
            out.raw("<a class=n href=\"columns/\">").name(&column.name.to_string(), MOST_NAME).raw("</a>");
        } else {
            out.raw("<span class=n>").name(&column.name.to_string(), MOST_NAME).raw("</span>");
        }
        let shown = column.shown();
        out.raw("<small>");
        if let Ok(rows) = &shown {
            out.text(&arrow_name(rows.data_type()), MOST_TEXT);
        }
        if let Some(units) = units(column) {
            out.raw(if shown.is_ok() { " · <b class=n>" } else { "<b class=n>" }).text(units, MOST_TEXT).raw("</b>");
        }
        if column.is_label {
            out.raw(" · row label");
        }
        out.raw("</small>");
        if let Some(description) = column.meaning.description.as_ref().filter(|text| !text.trim().is_empty()) {
            out.raw("<p class=n>").text(&one_line(description), MOST_DESCRIPTION).raw("</p>");
        }
        // An unreadable column says so beside its name.
        if !column.in_table && shown.is_ok() {
            out.raw("<p class=n>Not in table.*: ").text(&column.why_apart(self.table.rows), MOST_TEXT).raw("</p>");
        }
        out.raw("</th>");
    }

    /// Writes the pictures and figures of a column.
    fn drawn(&self, column: &Column, look: &ColumnLook, before: Option<&ColumnLook>, out: &mut Html) {
        let picture = match &look.picture {
            Ok(picture) => picture,
            Err(plain) => {
                out.raw("<td colspan=2 class=w>").text(&said(plain, column, look), MOST_TEXT).raw("<td>");
                if look.numbers.missing.is_some() {
                    figures(&look.numbers, false, out);
                }
                return;
            }
        };
        let name = column.name.to_string();
        let rows = column.rows.as_ref().map_or(self.table.rows, |rows| rows.len());
        let has_same_rows = before.is_some_and(|before| before.picture.is_ok() && before.stretches == look.stretches);
        let drawn = Drawn { name: &name, units: units(column), rows, look, has_same_rows };
        out.raw("<td>");
        drawn.values(picture, out);
        out.raw("<td>");
        drawn.trace(picture, out);
        out.raw("<td>");
        figures(&look.numbers, picture.values.are_lengths(), out);
    }

    /// Writes the first and the last rows.
    fn rows(&self, edges: Option<&EdgeRows>, out: &mut Html) {
        let table = &self.table;
        let columns = table.columns.iter().enumerate().take(MOST_PICTURES).filter(|(_, column)| column.in_table);
        let columns: Vec<(usize, &Column, bool)> = columns
            .map(|(at, column)| (at, column, column.shown().is_ok_and(|rows| is_number(rows.data_type()))))
            .collect();
        let rows = edge_rows(table.rows);
        out.raw("<h2 id=rows>First and last rows</h2>\n");
        if columns.is_empty() || rows.is_empty() {
            let why = if rows.is_empty() { "The table has no rows" } else { "No column is in table.*" };
            out.raw(&format!("<p class=note>{why}.</p>\n"));
            return;
        }
        out.raw("<div class=scroll tabindex=0><table class=rows><thead><tr><td></td>");
        for (_, column, is_right) in &columns {
            out.raw(if *is_right { "<th scope=col class=r>" } else { "<th scope=col>" });
            out.raw("<span class=n>").text(&column.name.to_string(), MOST_CELL_TEXT).raw("</span>");
            if let Some(units) = units(column) {
                out.raw("<br><small class=n>").text(units, MOST_CELL_TEXT).raw("</small>");
            }
        }
        out.raw("</tr></thead>\n<tbody>");
        let mut next = 0;
        for (place, row) in rows.iter().enumerate() {
            out.raw(if *row > next { "<tr class=gap>" } else { "<tr>" });
            next = row + 1;
            out.raw("<th scope=row>").raw(&count(*row));
            for (at, _, is_right) in &columns {
                let cell = edges.map(|edges| edges.cells.get(*at).and_then(|cells| cells.get(place)));
                out.part(MOST_CELL, cell, "<td>…", |out, cell| {
                    let class = if *is_right { "<td class=r>" } else { "<td>" };
                    match cell {
                        Some(Cell::Text(text)) => out.raw(class).text(&one_line(text), MOST_CELL_TEXT),
                        Some(Cell::Missing) if *is_right => out.raw("<td class=\"r x\">missing"),
                        Some(Cell::Missing) => out.raw("<td class=x>missing"),
                        Some(Cell::Unread) | None => out.raw(class).raw("…"),
                    };
                });
            }
            out.raw("</tr>\n");
        }
        out.raw("</tbody></table></div>\n");
        out.raw("<p class=note>");
        if columns.iter().any(|(_, column, _)| column.rows.as_ref().is_ok_and(|rows| rows.data_type().is_floating())) {
            out.raw("Columns of floats have seven digits; those of 64 bits four behind the point, if that is more. ");
        }
        let more = table.columns.len().saturating_sub(MOST_PICTURES);
        if more > 0 {
            out.raw(&format!("{} more columns are not shown here.", count(more as u64)));
        }
        out.raw("</p>\n");
    }
}

/// The units of a column, unless it has instants: their type names the unit.
fn units(column: &Column) -> Option<&str> {
    column.meaning.units.as_deref().filter(|units| !units.is_empty() && column.times().is_none())
}

/// The filters of a table's columns: `shuffle, deflate`. `None`: no filter, or not the same for all.
fn filters(table: &Table) -> Option<String> {
    let mut columns = table.columns.iter().filter(|column| column.in_table);
    let first = filters_of(columns.next()?);
    (!first.is_empty() && columns.all(|column| filters_of(column) == first)).then_some(first)
}

/// The filters of a column's dataset.
fn filters_of(column: &Column) -> String {
    let names = column.dataset.iter().flat_map(|dataset| &dataset.filters).map(|filter| filter.name.to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// Whether people compare values of a type digit by digit, so that cells stand at the right.
pub fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Duration(_))
}

/// Says why a column has no picture.
fn said(plain: &NoPicture, column: &Column, look: &ColumnLook) -> String {
    let is_list = column.shown().is_ok_and(|rows| matches!(rows.data_type(), DataType::FixedSizeList(..)));
    let place = if is_list { " in its lists" } else { "" };
    match plain {
        NoPicture::Beyond => String::new(),
        NoPicture::Empty => "no rows".to_owned(),
        NoPicture::Missing if look.is_whole => format!("no picture: there is no value{place}"),
        NoPicture::Missing => format!("no picture: there is no value{place} in the sample"),
        NoPicture::Type => "no picture: values of this type have neither an order nor labels".to_owned(),
        NoPicture::Costly => "no picture: too much would have to be decoded".to_owned(),
        NoPicture::Unreadable(reason) => format!("cannot be read: {reason}"),
    }
}

/// Writes which rows pictures and figures are made of.
fn note(look: &Look, out: &mut Html) {
    let drawn = look.columns.iter().filter(|column| column.picture.is_ok());
    let drawn: Vec<&ColumnLook> = drawn.collect();
    let (all, sampled) = (count(look.rows), drawn.iter().filter(|column| !column.is_whole).count());
    if drawn.is_empty() {
        return;
    }
    out.raw("Over the rows: <span class=nb><span class=\"key kb\"></span>least to greatest</span> ");
    out.raw("<span class=nb><span class=\"key km\"></span>median</span> ");
    out.raw("<span class=nb><span class=\"key kx\"></span>missing or NaN, by share</span><br>");
    if sampled == 0 {
        out.raw(&format!("Pictures and figures: of all {all} rows."));
    } else {
        let typical = drawn.iter().filter(|column| !column.is_whole).max_by_key(|column| column.sampled());
        let (stretches, of) = typical.map_or((0, 0), |column| (column.stretches.len(), column.sampled()));
        out.raw(&format!("Pictures, and figures with ≈: of {} rows, {stretches} stretches evenly spread", count(of)));
        let fewer = drawn.iter().filter(|column| column.sampled() < of).count();
        match fewer {
            0 => out.raw("."),
            1 => out.raw("; of one column fewer, so that no more than 64 MiB are decoded."),
            many => {
                out.raw(&format!("; of {} columns fewer, so that no more than 64 MiB are decoded.", count(many as u64)))
            }
        };
        if drawn.iter().any(|column| column.numbers.missing.as_ref().is_some_and(|missing| missing.is_exact)) {
            out.raw(&format!(" Figures without ≈: of all {all} rows."));
        }
    }
    if drawn.iter().any(|column| matches!(&column.picture, Ok(picture) if picture.values.rises()) && !column.is_whole) {
        out.raw(" Bars of columns that rise count all rows, those between stretches in proportion.");
    }
    let costly = look.columns.iter().filter(|column| column.picture == Err(NoPicture::Costly)).count();
    if costly > 0 {
        let columns =
            if costly == 1 { "1 column has".to_owned() } else { format!("{} columns have", count(costly as u64)) };
        out.raw(&format!(
            " {columns} no picture, since fewer than four stretches of it could be decoded within 64 MiB."
        ));
    }
}
