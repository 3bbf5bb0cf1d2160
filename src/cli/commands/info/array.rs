//! `hepfs info` for a single array, column or link.

use serde_json::Value;

use super::text;
use crate::activity::words::counted;
use crate::cli::place::{Place, RequestedPlace};
use crate::source::Interrupt;
use crate::views::printable;

/// Most characters of a value to print.
const MOST_OF_VALUE: usize = 400;

/// Most fields of a compound, or members of an enumeration, to print.
const MOST_PARTS: usize = 20;

/// Finds a member by its name in `metadata.json`, or by that of one of its files: the directory above, and the entry
/// there; `None`: no such member.
pub(super) fn find(asked: &RequestedPlace, interrupt: &Interrupt) -> Option<(Place, Value)> {
    let (above, name) = asked.find_above(interrupt)?;
    let found = above.spot.described(interrupt).ok()?.one(&name.to_string(), interrupt).ok()??;
    Some((above, found))
}

/// The lines about the object with this path in the file.
pub(super) fn described(one: &Value, path: &str) -> Vec<String> {
    let storage = if one["storage"].is_object() { &one["storage"] } else { one };
    let kind = if one["row_label"].is_boolean() { "column".to_owned() } else { text(&one["kind"]) };
    let datatype = Some(&storage["datatype"]).filter(|datatype| datatype.is_object()).map(type_name);
    let shape = match (&one["shape"], &one["rows"]) {
        (Value::Null, Value::Null) if datatype.is_some() => Some("without elements".to_owned()),
        (Value::Null, rows) => Some(text(rows)).filter(|rows| !rows.is_empty()).map(|rows| format!("{rows} rows")),
        (Value::Array(extents), _) if extents.is_empty() => Some("scalar".to_owned()),
        (shape, _) => Some(list(shape)),
    };
    let facts: Vec<String> = datatype.into_iter().chain(shape).collect();
    let divider = if facts.is_empty() { "" } else { ": " };
    let mut lines = vec![format!("{kind} {path}{divider}{}", facts.join(", "))];
    let dimensions = one["dimensions"].as_array().map(|_| list(&one["dimensions"])).unwrap_or_default();
    let layout = &storage["layout"];
    let place = match layout["kind"].as_str() {
        Some("chunked") => ("chunks", list(&layout["chunk"])),
        Some("contiguous") if layout["allocated"] == false => ("storage", "contiguous, nothing written yet".into()),
        kind => ("storage", kind.unwrap_or_default().to_owned()),
    };
    let filters = storage["filters"].as_array();
    let filters = filters.into_iter().flatten().map(filter).collect::<Vec<_>>().join(", ");
    let fill = &storage["fill"];
    let fill = match fill["state"].as_str() {
        Some("explicit") => as_json(&fill["value"]),
        Some("unreadable") => format!("unreadable: {}", text(&fill["error"])),
        state => state.unwrap_or_default().to_owned(),
    };
    let facts = [
        ("shown as", text(&one["type"])),
        ("dimensions", dimensions),
        place,
        ("filters", filters),
        ("fill value", fill),
    ];
    let own = ["value", "units", "description", "target", "file"].into_iter().filter_map(|key| {
        let value = Some(&one[key]).filter(|value| !value.is_null() && one["attributes"][key].is_null())?;
        Some((key, as_json(value)))
    });
    let ends = [
        ("unreadable", text(&one["error"])),
        ("files", joined(&one["shown_as"], ", ")),
        ("not shown", joined(&one["not_shown"], "; ")),
    ];
    let facts = facts.into_iter().chain(own).chain(ends).filter(|(_, value)| !value.is_empty());
    lines.extend(facts.map(|(key, value)| format!("  {key}: {value}")));
    if let Some(attributes) = one["attributes"].as_object().filter(|attributes| !attributes.is_empty()) {
        lines.push("  attributes:".to_owned());
        let attributes = attributes.iter();
        lines.extend(attributes.map(|(name, value)| format!("    {}: {}", printable(name), as_json(value))));
    }
    lines
}

/// The texts of a list.
fn joined(texts: &Value, divider: &str) -> String {
    texts.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(divider)
}

/// A value as JSON, with quotes around texts; a long one is truncated.
pub(super) fn as_json(value: &Value) -> String {
    let whole = value.to_string();
    match whole.char_indices().nth(MOST_OF_VALUE) {
        Some((end, _)) => printable(&format!("{} … (of {} bytes; --json has all)", &whole[..end], whole.len())),
        None => printable(&whole),
    }
}

/// Writes a list: `[1000, 3]`.
pub(super) fn list(values: &Value) -> String {
    let values = values.as_array().into_iter().flatten();
    let names = values.map(|value| if value.is_null() { "–".to_owned() } else { text(value) });
    format!("[{}]", names.collect::<Vec<_>>().join(", "))
}

/// Writes a filter: `deflate(4)`. The parameter of shuffle, the width of the type, is left out.
pub(super) fn filter(filter: &Value) -> String {
    let name = Some(text(&filter["name"])).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("filter {}", text(&filter["id"])));
    let parameters: Vec<String> = filter["parameters"].as_array().into_iter().flatten().map(text).collect();
    if parameters.is_empty() || filter["id"] == 2 { name } else { format!("{name}({})", parameters.join(", ")) }
}

/// Writes a datatype in words, those of NumPy if it has any.
pub(super) fn type_name(datatype: &Value) -> String {
    let size = datatype["size"].as_u64().unwrap_or(0);
    let (bits, bytes) = (size.saturating_mul(8), counted(size, "byte"));
    let order = match datatype["order"].as_str() {
        Some(order @ ("big" | "vax")) if size > 1 => format!(" {order}-endian"),
        _ => String::new(),
    };
    match datatype["class"].as_str().unwrap_or_default() {
        "integer" => {
            let sign = if datatype["signed"] == false { "u" } else { "" };
            format!("{sign}int{bits}{order}{}", bits_within(datatype, bits))
        }
        "float" => match datatype["format"].as_str() {
            Some(_) => format!("float{bits}{order}"),
            None => format!("float of {bytes}{order} ({})", float(&datatype["format"])),
        },
        "string" => {
            let charset = text(&datatype["charset"]);
            match datatype["variable"].as_bool() {
                Some(true) => format!("string of variable length, {charset}"),
                _ => format!("fixed string of {bytes}, {charset}, {}", text(&datatype["padding"])),
            }
        }
        "bitfield" => format!("bitfield of {bits} bits{order}{}", bits_within(datatype, bits)),
        "opaque" => {
            let tag = Some(text(&datatype["tag"])).filter(|tag| !tag.is_empty());
            format!("opaque of {bytes}{}", tag.map(|tag| format!(" ({tag})")).unwrap_or_default())
        }
        "compound" => {
            let fields = some(&datatype["fields"], |field| {
                format!("{}: {}", text(&field["name"]), type_name(&field["datatype"]))
            });
            format!("compound of {bytes} {{{fields}}}")
        }
        "enum" if datatype["boolean"] == true => "bool".to_owned(),
        "enum" => {
            let members =
                some(&datatype["members"], |member| format!("{} = {}", text(&member["name"]), text(&member["value"])));
            format!("enum of {} {{{members}}}", type_name(&datatype["base"]))
        }
        "sequence" => format!("list of {}", type_name(&datatype["base"])),
        "array" => format!("array {} of {}", list(&datatype["dims"]), type_name(&datatype["base"])),
        "reference" => format!("reference ({})", text(&datatype["kind"])),
        "complex" => format!("complex{bits} of {}", type_name(&datatype["base"])),
        class => format!("{class} of {bytes}{order}"),
    }
}

/// The bits of a number that does not fill its bytes.
fn bits_within(datatype: &Value, bits: u64) -> String {
    match (datatype["precision"].as_u64(), datatype["offset"].as_u64()) {
        (Some(precision), Some(offset)) if (precision, offset) != (bits, 0) => {
            format!(" ({precision} bits, from bit {offset})")
        }
        _ => String::new(),
    }
}

/// Describes the parts of a float that is not IEEE 754.
fn float(format: &Value) -> String {
    let parts = format.as_object().and_then(|format| format.values().next()).unwrap_or(format);
    let [exponent, mantissa] = ["exponent_size", "mantissa_size"].map(|key| text(&parts[key]));
    format!("{exponent} bits of exponent, {mantissa} of mantissa")
}

/// Lists the first parts of a type, and counts the others.
fn some(parts: &Value, name: impl Fn(&Value) -> String) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<String> = parts.iter().take(MOST_PARTS).map(name).collect();
    names.extend((parts.len() > MOST_PARTS).then(|| format!("… and {} more", parts.len() - MOST_PARTS)));
    names.join(", ")
}
