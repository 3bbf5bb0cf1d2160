//! Facts about a table or a group, in words.

use arrow_schema::DataType;
use serde_json::Value;

use super::MOST_NAME;
use super::html::Html;
use crate::activity::words::{bytes, count};
use crate::catalogue::Attribute;
use crate::store::decode::fixed_width;
use crate::table::Table;
use crate::views::metadata::{attribute_value, attributes_value};

/// Attributes that describe an object.
pub const DESCRIPTIONS: [&str; 4] = ["description", "long_name", "title", "comment"];

/// Attributes that describe a table or a group, in a line below its name.
const HEADINGS: [&str; 4] = ["title", "description", "long_name", "comment"];

/// Most bytes of a description.
pub(super) const MOST_DESCRIPTION: usize = 600;

/// Most attributes that a page lists.
const MOST_ATTRIBUTES: usize = 100;

/// Bytes that the columns of a table take in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Their number.
    pub bytes: u64,
    /// Whether these are all; otherwise a part is not known, or lies elsewhere, as texts do.
    pub are_all: bool,
}

impl Stored {
    /// As people read it: `7.0 KB`, `over 26 MB`. `None`: nothing is known.
    pub fn in_words(self) -> Option<String> {
        match self {
            Self { bytes: 0, are_all: false } => None,
            Self { bytes: all, are_all: true } => Some(bytes(all)),
            Self { bytes: some, are_all: false } => Some(format!("over {}", bytes(some))),
        }
    }
}

/// A text on one line.
pub fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ")
}

/// How a table is kept, for readers who do not know how hepfs finds tables.
pub fn kept_as(table: &Table) -> String {
    match (table.recognised_by, table.revision.as_str()) {
        ("shape", rule) if rule.starts_with("rule") => "arrays of equal length".to_owned(),
        // `groups beside each other`
        ("shape", form) => form.to_owned(),
        _ => format_of(table),
    }
}

/// How a table is kept, as `hepfs info` says it.
pub fn format_of(table: &Table) -> String {
    let by = if table.recognised_by == "shape" { "by " } else { "" };
    let revision = if table.revision.is_empty() { String::new() } else { format!(", {}", table.revision) };
    format!("{by}{}{revision}", table.dialect)
}

/// Bytes of all values in memory. `None`: some vary in length, or no column can be read.
pub fn decoded(table: &Table) -> Option<u64> {
    let mut all = table.columns.iter().any(|column| column.in_table).then_some(0_u64)?;
    for column in table.columns.iter().filter(|column| column.in_table) {
        let rows = column.rows.as_ref().ok()?;
        let is_fixed = match rows.data_type() {
            DataType::FixedSizeList(..) | DataType::Struct(_) => rows.stored_width().is_some(),
            DataType::Dictionary(..) | DataType::Boolean | DataType::FixedSizeBinary(_) => true,
            other => other.primitive_width().is_some() || rows.stored_width().is_some(),
        };
        let width = rows.stored_width().unwrap_or_else(|| fixed_width(rows.data_type()));
        all = all.saturating_add(rows.len().saturating_mul(is_fixed.then_some(width)?));
    }
    Some(all)
}

/// Writes the text in which an object describes itself, if it does.
pub fn described(attributes: &[Attribute], out: &mut Html) {
    if let Some(text) = stated(attributes, &HEADINGS) {
        out.raw("<p class=sub><q class=n>").text(&one_line(&text), MOST_DESCRIPTION).raw("</q></p>\n");
    }
}

/// The text of the attribute that has the first of these names, in any case. `None`: no such attribute, or an empty
/// one.
pub fn stated(attributes: &[Attribute], names: &[&str]) -> Option<String> {
    let mut found = names.iter().filter_map(|name| {
        let mut attributes = attributes.iter();
        attributes.find(|one| one.name.eq_ignore_ascii_case(name.as_bytes()))
    });
    found.find_map(text_of)
}

/// The text of an attribute. `None`: no text, or an empty one.
fn text_of(attribute: &Attribute) -> Option<String> {
    let text = match attribute_value(attribute) {
        Value::String(text) => Some(text),
        Value::Array(texts) => match texts.as_slice() {
            [Value::String(text)] => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    text.filter(|text| !text.trim().is_empty())
}

/// Writes attributes, folded.
pub fn attributes(attributes: &[Attribute], out: &mut Html) {
    let Value::Object(all) = attributes_value(attributes) else { return };
    if all.is_empty() {
        return;
    }
    let many = all.len();
    out.raw("<details class=a><summary>").raw(&count(many as u64));
    out.raw(if many == 1 { " attribute" } else { " attributes" }).raw(" of the HDF5 object</summary><table>");
    for (name, value) in all.iter().take(MOST_ATTRIBUTES) {
        let text = match value {
            Value::String(text) => one_line(text),
            other => other.to_string(),
        };
        out.raw("<tr><th scope=row class=n>").text(name, MOST_NAME).raw("</th><td class=n>");
        out.text(&text, MOST_DESCRIPTION).raw("</td></tr>");
    }
    if many > MOST_ATTRIBUTES {
        out.raw(&format!("<tr><td colspan=2>{} more are in metadata.json</td></tr>", many - MOST_ATTRIBUTES));
    }
    out.raw("</table></details>\n");
}
