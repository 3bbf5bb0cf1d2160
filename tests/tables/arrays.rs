//! The files of a dataset that is no column, held against what h5py reads from it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::fixtures::{Differences, compare_bytes, hash, read, records, same_text, same_value, with_suffix};

/// Text and JSON of a value that `metadata.json` must have: its limit counts bytes of JSON.
const SURELY_SHORT: usize = 1000;

/// Compares everything that is expected of one entry of `arrays`; the number of cells.
pub fn compare_array(
    place: &str,
    expected: &Value,
    directory: &Path,
    member: &Value,
    differences: &mut Differences,
) -> usize {
    compare_suffixes(place, expected, &member["shown_as"], differences);
    compare_bytes(place, expected, directory, &member["shown_as"], differences);
    for name in member["shown_as"].as_array().unwrap() {
        // Whatever else is in them: without an error, and with the size that was told.
        read(place, &directory.join(name.as_str().unwrap()), differences);
    }
    let mut read = |suffix: &str| {
        let name = with_suffix(&member["shown_as"], suffix)?;
        read(place, &directory.join(name), differences)
    };
    let files = Files { csv: read(".csv"), txt: read(".txt"), ndjson: read(".ndjson"), raw: read(".raw") };
    let pixmap = read(".pgm").or_else(|| read(".ppm"));
    if pixmap.as_deref().map(hash).as_deref() != expected["pixmap_sha256"].as_str() {
        differences.add(place, "the image has other bytes");
    }
    match compare_values(expected, &files) {
        Ok(cells) => {
            if expected["shape"] == Value::Array(Vec::new())
                && let Err(why) = compare_known(expected, member)
            {
                differences.add(place, why);
            }
            cells
        }
        Err(why) => {
            differences.add(place, why);
            0
        }
    }
}

/// A dataset has the files that its type and shape ask for, and no other; those not settled are left out.
fn compare_suffixes(place: &str, expected: &Value, shown: &Value, differences: &mut Differences) {
    let unsettled = [(".npy", "npy_dtype"), (".raw", "raw_sha256")];
    let is_settled = |suffix: &&str| {
        expected["shape"].is_null() || unsettled.iter().all(|(open, key)| suffix != open || expected.get(key).is_some())
    };
    let shown = shown.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let shown: BTreeSet<&str> = shown.map(|name| &name[name.rfind('.').unwrap_or(0)..]).filter(is_settled).collect();
    let wanted = expected["files"].as_array().unwrap().iter().map(|suffix| suffix.as_str().unwrap());
    let wanted: BTreeSet<&str> = wanted.filter(is_settled).collect();
    if shown != wanted {
        differences.add(place, format!("has {shown:?}, expected {wanted:?}"));
    }
}

/// The text files of an array.
struct Files {
    csv: Option<Vec<u8>>,
    txt: Option<Vec<u8>>,
    ndjson: Option<Vec<u8>>,
    raw: Option<Vec<u8>>,
}

fn compare_values(expected: &Value, files: &Files) -> Result<usize, String> {
    let Some(rows) = expected["rows"].as_array() else { return Ok(0) };
    let rank = expected["shape"].as_array().unwrap().len();
    let objects = files.ndjson.as_deref().map(json_lines).transpose()?;
    if let Some(objects) = &objects {
        let fields = expected["columns"].as_array().filter(|_| rank == 1);
        compare_json(rows, fields, objects)?;
    }
    if let Some(csv) = &files.csv {
        compare_csv(expected["columns"].as_array().unwrap(), rows.len(), csv)?;
    }
    if let Some(txt) = &files.txt {
        match expected["text_hex"].as_str() {
            Some(hex) if hex_of(txt) == hex => {}
            Some(hex) => return Err(format!(".txt has the bytes {}, expected {hex}", hex_of(txt))),
            // A scalar string that is missing.
            None if objects.is_some() && rank == 0 => {
                if !txt.is_empty() {
                    return Err(format!(".txt is {txt:?}, expected nothing"));
                }
            }
            None => compare_lines(rows, txt, expected["json_lines"] == true)?,
        }
    }
    let is_terminated = expected.get("raw_sha256").is_some_and(Value::is_null);
    if let Some(raw) = files.raw.as_ref().filter(|_| is_terminated) {
        compare_terminated(rows, raw)?;
    }
    Ok(rows.len() * expected["columns"].as_array().map_or(1, Vec::len))
}

/// Every line of an NDJSON file.
fn json_lines(ndjson: &[u8]) -> Result<Vec<Value>, String> {
    if !ndjson.is_empty() && !ndjson.ends_with(b"\n") {
        return Err(".ndjson ends without LF".into());
    }
    let lines = ndjson.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| format!(".ndjson: {error}"))).collect()
}

/// A JSON value a row, or an object with these fields.
fn compare_json(rows: &[Value], fields: Option<&Vec<Value>>, objects: &[Value]) -> Result<(), String> {
    if objects.len() != rows.len() {
        return Err(format!("{} lines of .ndjson, expected {}", objects.len(), rows.len()));
    }
    for (row, (object, wanted)) in objects.iter().zip(rows).enumerate() {
        let place = |why| format!(".ndjson row {row}: {why}");
        let Some(fields) = fields else {
            same_value(wanted, object).map_err(place)?;
            continue;
        };
        let empty = Map::new();
        let object = object.as_object().unwrap_or(&empty);
        if object.len() != fields.len() {
            return Err(place(format!("{} fields, expected {}", object.len(), fields.len())));
        }
        for field in fields.iter().filter(|field| field["name"].is_string()) {
            let value =
                object.get(field["name"].as_str().unwrap()).ok_or_else(|| place(format!("no {}", field["name"])))?;
            same_value(&field["csv"][row], value).map_err(place)?;
        }
    }
    Ok(())
}

/// A line of names, then a line a row.
fn compare_csv(columns: &[Value], rows: usize, csv: &[u8]) -> Result<(), String> {
    let found = records(csv);
    let header = found.first().ok_or(".csv has no header")?;
    let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    let shown: Vec<String> = header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if shown.len() != columns.len() || names.len() == columns.len() && shown != names {
        return Err(format!(".csv has the columns {shown:?}, expected {names:?}"));
    }
    if found.len() != rows + 1 {
        return Err(format!(".csv has {} rows, expected {rows}", found.len() - 1));
    }
    for (row, record) in found.iter().skip(1).enumerate() {
        if record.len() != columns.len() {
            return Err(format!(".csv row {row} has {} fields", record.len()));
        }
        for (at, (cell, column)) in record.iter().zip(columns).enumerate() {
            let text = String::from_utf8_lossy(cell);
            same_text(&column["csv"][row], &text).map_err(|why| format!(".csv row {row} column {at}: {why}"))?;
        }
    }
    Ok(())
}

/// A value a line: JSON as it is, or a text in which backslashes and ends of lines are escaped.
fn compare_lines(rows: &[Value], txt: &[u8], is_json: bool) -> Result<(), String> {
    let text = String::from_utf8_lossy(txt);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() != rows.len() || lines.iter().any(|line| !line.ends_with('\n')) {
        return Err(format!("{} lines of .txt, expected {}", lines.len(), rows.len()));
    }
    for (row, (line, wanted)) in lines.iter().zip(rows).enumerate() {
        let line = line.trim_end_matches('\n');
        let value = if is_json { line.to_owned() } else { unescaped(line) };
        same_text(wanted, &value).map_err(|why| format!(".txt row {row}: {why}"))?;
    }
    Ok(())
}

fn unescaped(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// `.raw` of strings of variable length: each value and a NUL; a missing one is what is stored.
fn compare_terminated(rows: &[Value], raw: &[u8]) -> Result<(), String> {
    let mut values: Vec<&[u8]> = raw.split(|byte| *byte == 0).collect();
    values.pop();
    if values.len() != rows.len() {
        return Err(format!(".raw has {} values, expected {}", values.len(), rows.len()));
    }
    for (row, (value, wanted)) in values.iter().zip(rows).enumerate() {
        let value = String::from_utf8_lossy(value);
        if !wanted.is_null() {
            same_text(wanted, &value).map_err(|why| format!(".raw row {row}: {why}"))?;
        }
    }
    Ok(())
}

/// The `value` that the group's `metadata.json` has of a scalar.
fn compare_known(expected: &Value, member: &Value) -> Result<(), String> {
    let wanted = &expected["rows"][0];
    match member.get("value") {
        Some(value) => same_value(wanted, value).map_err(|why| format!("metadata.json: {why}")),
        None if wanted.to_string().len() < SURELY_SHORT => Err("metadata.json has no value".into()),
        None => Ok(()),
    }
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
