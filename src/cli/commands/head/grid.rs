//! Rows as a table in a frame. Columns in the middle are left out where there is no room.

use super::{Cells, NULL, Sample};
use crate::cli::Error;
use crate::cli::terminal::{Ink, Inked, Terminal, width};

/// Most columns of the terminal that a column takes while others wait for room.
const MOST: usize = 32;

/// Most columns of the terminal that a column takes where lines may have any length.
const MOST_ANYWHERE: usize = 100;

/// Most columns of the terminal that a heading takes beyond its values while others wait for room.
const MOST_HEADING: usize = 20;

/// The table, and the columns in it.
///
/// # Errors
/// If the request was interrupted.
pub(super) fn text(sample: &Sample<'_>) -> Result<(String, Vec<Cells>), Error> {
    if sample.columns.is_empty() {
        return Ok(Default::default());
    }
    let (columns, first) = chosen(sample)?;
    let is_whole = columns.len() == sample.columns.len();
    let widths = widths(&columns, sample.terminal, is_whole);
    let grid =
        Grid { columns: &columns, widths: &widths, gap: (!is_whole).then_some(first), terminal: sample.terminal };
    Ok((grid.text(sample.rows as usize), columns))
}

/// The columns that there is room for, and how many of them stand before those left out. Others are not read.
fn chosen(sample: &Sample<'_>) -> Result<(Vec<Cells>, usize), Error> {
    let all = sample.columns.len();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    // The frame on the left, and room for the gap.
    let mut taken = 1;
    while first.len() + last.len() < all {
        let is_first = first.len() <= last.len();
        let at = if is_first { first.len() } else { all - 1 - last.len() };
        let cells = sample.read(sample.columns[at])?;
        let own = least(&cells) + 3;
        let is_last = first.len() + last.len() + 1 == all;
        let gap = if is_last { 0 } else { gap(sample.terminal) };
        let has_room = sample.terminal.columns.is_none_or(|columns| taken + own + gap <= columns);
        // One column at least, however narrow the terminal.
        if !has_room && !first.is_empty() {
            break;
        }
        taken += own;
        if is_first { first.push(cells) } else { last.push(cells) }
    }
    let before = first.len();
    first.extend(last.into_iter().rev());
    Ok((first, before))
}

/// The width of a column before room is left.
fn least(cells: &Cells) -> usize {
    cells.values_width().max(cells.heading().min(MOST_HEADING)).min(MOST)
}

/// The width of the column that stands for those left out, with its frame.
fn gap(terminal: &Terminal) -> usize {
    width(terminal.ellipsis()) + 3
}

/// The width of each column: clipped ones get the room that is left, from the first to the last.
fn widths(columns: &[Cells], terminal: &Terminal, is_whole: bool) -> Vec<usize> {
    let Some(room) = terminal.columns else {
        return columns.iter().map(|cells| cells.width().min(MOST_ANYWHERE)).collect();
    };
    let mut widths: Vec<usize> = columns.iter().map(least).collect();
    let frame = 1 + 3 * widths.len() + if is_whole { 0 } else { gap(terminal) };
    let mut left = room.saturating_sub(frame + widths.iter().sum::<usize>());
    for (width, cells) in widths.iter_mut().zip(columns) {
        let more = (cells.width() - *width).min(left);
        *width += more;
        left -= more;
    }
    // A single column may be wider than the terminal.
    if let [only] = widths.as_mut_slice() {
        *only = (*only).min(room.saturating_sub(frame)).max(1);
    }
    widths
}

struct Grid<'a> {
    columns: &'a [Cells],
    widths: &'a [usize],
    /// The number of columns before those left out; `None`: no column is left out.
    gap: Option<usize>,
    terminal: &'a Terminal,
}

impl Grid<'_> {
    fn text(&self, rows: usize) -> String {
        let mut text = self.rule(["┌", "┬", "┐"]);
        text += &self.row(|cells| (Ink::Name, Some(&cells.name)));
        text += &self.row(|cells| (Ink::Faint, Some(&cells.data_type)));
        if self.columns.iter().any(|cells| !cells.units.is_empty()) {
            text += &self.row(|cells| (Ink::Faint, Some(&cells.units)));
        }
        text += &self.rule(["├", "┼", "┤"]);
        for row in 0..rows {
            text += &self.row(|cells| match (&cells.failure, cells.values.get(row)) {
                (Some(_), _) => (Ink::Alert, Some("unreadable")),
                (None, value) => {
                    let value = value.and_then(Option::as_deref);
                    (if value.is_some() { Ink::Plain } else { Ink::Faint }, value)
                }
            });
        }
        text + &self.rule(["└", "┴", "┘"])
    }

    /// A line of the frame.
    fn rule(&self, [left, middle, right]: [&str; 3]) -> String {
        let mut line = String::from(left);
        let mut widths: Vec<usize> = self.widths.to_vec();
        if let Some(gap) = self.gap {
            widths.insert(gap, width(self.terminal.ellipsis()));
        }
        for (at, width) in widths.iter().enumerate() {
            line += if at > 0 { middle } else { "" };
            line += &"─".repeat(width + 2);
        }
        self.finished(&[(Ink::Faint, format!("{line}{right}").into())])
    }

    /// A line of cells.
    fn row<'a>(&'a self, of: impl Fn(&'a Cells) -> (Ink, Option<&'a str>)) -> String {
        let mut parts = Vec::new();
        for at in 0..=self.columns.len() {
            if self.gap == Some(at) {
                parts.push((Ink::Faint, format!("│ {} ", self.terminal.ellipsis()).into()));
            }
            let Some((cells, own)) = self.columns.get(at).zip(self.widths.get(at)) else { break };
            parts.push((Ink::Faint, "│ ".into()));
            let (ink, text) = of(cells);
            let (text, blank) = self.terminal.fitted(text.unwrap_or(NULL), *own);
            let [before, after] = if cells.is_right { [blank, String::new()] } else { [String::new(), blank] };
            parts.extend([(Ink::Plain, before.into()), (ink, text), (Ink::Plain, format!("{after} ").into())]);
        }
        parts.push((Ink::Faint, "│".into()));
        self.finished(&parts)
    }

    fn finished(&self, parts: &Inked<'_>) -> String {
        self.terminal.line(parts) + "\n"
    }
}
