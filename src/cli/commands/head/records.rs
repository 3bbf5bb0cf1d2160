//! Rows as blocks of lines, a line for each column.

use super::{Cells, NULL, Sample};
use crate::activity::words::count;
use crate::cli::Error;
use crate::cli::terminal::{Ink, width};

/// Most columns of the terminal that names and types take.
const MOST: usize = 40;

/// The blocks, and the columns in them: all.
///
/// # Errors
/// If the request was interrupted.
pub(super) fn text(sample: &Sample<'_>, all: u64) -> Result<(String, Vec<Cells>), Error> {
    let columns = sample.columns.iter().map(|column| sample.read(column)).collect::<Result<Vec<Cells>, Error>>()?;
    let terminal = sample.terminal;
    let kinds: Vec<String> = columns
        .iter()
        .map(|cells| match cells.units.as_str() {
            "" => cells.data_type.clone(),
            units => format!("{} [{units}]", cells.data_type),
        })
        .collect();
    let names = columns.iter().map(|cells| width(&cells.name)).max().unwrap_or(0).min(MOST);
    let types = kinds.iter().map(|kind| width(kind)).max().unwrap_or(0).min(MOST);
    let mut text = String::new();
    for row in 0..sample.rows {
        let title = format!("─ row {} of {} ", count(row + 1), count(all));
        let line = "─".repeat((names + types + 12).saturating_sub(width(&title)));
        text += &terminal.line(&[(Ink::Faint, format!("{title}{line}").into())]);
        text.push('\n');
        for (cells, kind) in columns.iter().zip(&kinds) {
            let (ink, value) = match (&cells.failure, cells.values.get(row as usize)) {
                (Some(_), _) => (Ink::Alert, "unreadable"),
                (None, Some(Some(value))) => (Ink::Plain, value.as_str()),
                (None, _) => (Ink::Faint, NULL),
            };
            let [(name, after_name), (kind, after_kind)] =
                [(cells.name.as_str(), names), (kind, types)].map(|(text, columns)| terminal.fitted(text, columns));
            let parts = [
                (Ink::Name, format!("{name}{after_name}").into()),
                (Ink::Faint, format!("  {kind}{after_kind} │ ").into()),
                (ink, value.into()),
            ];
            text += &terminal.line(&parts);
            text.push('\n');
        }
    }
    Ok((text, columns))
}
