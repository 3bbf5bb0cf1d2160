//! `values.txt`: the columns and values that conditions on a table can use, for people.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use super::bind::{ComparisonType, askable};
use super::categories;
use super::predicate::Operator;
use super::predicate::path::encode;
use crate::source::Interrupt;
use crate::store::{Rows, ValueSet};
use crate::table::Table;

/// Most labels to name of each column.
const MOST_LABELS: u64 = 100;

/// Returns the text of `values.txt`: columns with their types, operators and known values, and an example.
pub fn values_text(table: &Table, interrupt: &Interrupt) -> String {
    let mut text = String::from("Rows of this table are selected by paths:\n\n  ");
    text.push_str(&example(table));
    text.push_str(
        "\n\nThe directory where/COLUMN:OPERATOR[:VALUE[,VALUE...]]/... has all files of the table.\n\
         So has where/COLUMN/OPERATOR/VALUE/..., in which shells complete names. Further directories select further;\n\
         COLUMN:eq:1+COLUMN:gt:2 selects what satisfies either. In names and values % : , / + are written\n\
         %25 %3A %2C %2F %2B. A missing value matches null alone.\n\nOperators: ",
    );
    text.push_str(&Operator::ALL.map(Operator::name).join(" "));
    text.push_str("\n\nColumns:\n");
    for (column, rows) in askable(table) {
        let kind = ComparisonType::of_column(column, rows.as_ref());
        let _ =
            write!(text, "  {}  {}", encode(&column.name), kind.map_or("null and valid only", ComparisonType::name));
        if categories::labels(rows.as_ref()).is_some() {
            text.push_str(" in the order of the categories");
        }
        text.push('\n');
        let (labels, all) = labels(rows.as_ref(), interrupt);
        for label in &labels {
            let _ = writeln!(text, "where/{}:eq:{}", encode(&column.name), encode(label.as_bytes()));
        }
        if all > MOST_LABELS {
            let _ = writeln!(text, "    ... ({all} in all)");
        }
        parts(&column.name.to_string(), rows.data_type(), &mut text);
    }
    text
}

/// Describes the ordered fields of a column of compounds.
fn parts(name: &str, data_type: &DataType, text: &mut String) {
    let DataType::Struct(fields) = data_type else { return };
    for field in fields {
        let name = format!("{name}.{}", field.name());
        if let Some(kind) = ComparisonType::of(field.data_type()) {
            let _ = writeln!(text, "  {}  {}", encode(name.as_bytes()), kind.name());
        }
        parts(&name, field.data_type(), text);
    }
}

fn example(table: &Table) -> String {
    let number = askable(table).find(|(column, rows)| {
        matches!(
            ComparisonType::of_column(column, rows.as_ref()),
            Some(ComparisonType::Integer | ComparisonType::Float(_))
        )
    });
    let any = askable(table).next();
    match (number, any) {
        (Some((column, _)), _) => format!("where/{}:gt:5/table.csv", encode(&column.name)),
        (None, Some((column, _))) => format!("where/{}:valid/table.csv", encode(&column.name)),
        (None, None) => "(no column supports conditions)".into(),
    }
}

/// Returns the first known values of a column, and how many it has.
fn labels(rows: &dyn Rows, interrupt: &Interrupt) -> (Vec<String>, u64) {
    if *rows.data_type() == DataType::Boolean {
        return (vec!["false".into(), "true".into()], 2);
    }
    match &rows.hints().values {
        Some(ValueSet::Categories { labels, .. }) => {
            // The file may be damaged here; other columns are still described.
            let Ok(array) = labels.array(0..labels.len().min(MOST_LABELS), interrupt) else { return (Vec::new(), 0) };
            let Some(texts) = array.as_string_opt::<i64>() else { return (Vec::new(), 0) };
            (texts.iter().flatten().map(str::to_owned).collect(), labels.len())
        }
        Some(ValueSet::Names(names)) => {
            let shown = names.names().take(MOST_LABELS as usize).map(|name| name.to_string());
            (shown.collect(), names.names().len() as u64)
        }
        None => (Vec::new(), 0),
    }
}
