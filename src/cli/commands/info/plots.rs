//! `hepfs info --plots SOURCE[:path]`: a line for each column of a table. It draws how values are spread, and how they
//! run over the rows.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use super::lines::table_in_words;
use crate::activity::words::{count, counted};
use crate::cli::Error;
use crate::cli::place::Place;
use crate::cli::progress::Watched;
use crate::cli::tables::{self, find, table_of};
use crate::cli::terminal::{Ink, Inked, Terminal, width};
use crate::table::{Column, Table, arrow_name};
use crate::views::page::{BarsOf, ColumnLook, Labels, Look, NoPicture, Scale, Stretch, Values, source_name};

/// Characters of the bars: fewer on a narrow terminal, down to the second number; down to the third for notes.
const BARS: [usize; 3] = [32, 8, 12];

/// Columns of the terminal that bars leave to notes: those of `≈ 2.1 % missing`, and blanks before it.
const FOR_NOTES: usize = 18;

/// Characters of the line over the rows.
const STEPS: usize = 16;

/// Most tables of a file to draw.
const MOST_TABLES: usize = 20;

/// Most columns of the terminal that a name, its units, its type, and either end of an axis take.
const MOST: [usize; 5] = [24, 12, 20, 20, 20];

/// Most characters of a label.
const MOST_OF_LABEL: usize = 24;

/// Characters by height, in eighths.
const BLOCKS: [char; 9] = ['▁', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The same in ASCII.
const ASCII_BLOCKS: [char; 9] = [' ', '.', '.', ':', ':', ':', '#', '#', '#'];

/// Writes the pictures of the tables at and below a place. Returns the exit code.
///
/// # Errors
/// If there is no table, or the output is closed.
pub(super) fn write(
    place: &Place,
    is_whole: bool,
    terminal: &Terminal,
    watched: &Watched,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let dataset = tables::dataset(place, &watched.interrupt)?;
    let files = if dataset.is_some() { Vec::new() } else { find(place, false, watched)? };
    let of_files = files.iter().flat_map(|file| {
        file.tables.iter().map(|(path, table)| {
            let name = if path.is_empty() { name_of(place) } else { path.clone() };
            (format!("{}{name}", file.prefix), table)
        })
    });
    let tables: Vec<(String, &Arc<Table>)> =
        dataset.iter().map(|table| (name_of(place), table)).chain(of_files).collect();
    if tables.is_empty() {
        // The error says why.
        return table_of(place, true, watched).map(|_| 0);
    }
    let code = u8::from(tables::report_failures(&files));
    let most = if is_whole { tables.len() } else { MOST_TABLES };
    for (at, (name, table)) in tables.iter().take(most).enumerate() {
        let Ok(look) = Look::of(table, true, &watched.interrupt) else { return Ok(code) };
        let text = Drawing { table, look: &look, terminal }.text(name);
        let divider = if at > 0 { "\n" } else { "" };
        write!(out, "{divider}{text}").and_then(|()| out.flush()).map_err(Error::io("standard output"))?;
    }
    let more = tables.len().saturating_sub(most) as u64;
    if more > 0 {
        let line = terminal.line(&[(Ink::Faint, format!("… {} more tables: --all", count(more)).into())]);
        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
    }
    Ok(code)
}

/// The last part of the path of a place, or the name of its file.
fn name_of(place: &Place) -> String {
    place.last_name().unwrap_or_else(|| source_name(place.source()))
}

/// A table to draw.
struct Drawing<'a> {
    table: &'a Table,
    look: &'a Look,
    terminal: &'a Terminal,
}

/// A column as text.
struct PlotLine {
    /// Name, units, type, and both ends of the axis.
    texts: [String; 5],
    picture: Shape,
    /// Shares of missing values, and the quantity that the bars count.
    notes: String,
}

/// The picture of a column.
enum Shape {
    /// Bars, and the line over the rows. Heights are eighths; `None`: a part without values.
    Bars(Vec<u64>, Vec<Option<usize>>),
    /// A text instead.
    Text(String),
}

/// The columns of the terminal that parts of lines take. 0: the part is left out.
struct Widths {
    texts: [usize; 5],
    bars: usize,
    steps: usize,
}

impl Drawing<'_> {
    fn text(&self, name: &str) -> String {
        let columns = self.table.columns.iter().zip(&self.look.columns);
        let lines: Vec<PlotLine> = columns.map(|(column, look)| self.line(column, look)).collect();
        let widths = self.widths(&lines);
        let heading = self.terminal.shown(&format!("{name}: "));
        let about = self.terminal.shown(&table_in_words(self.table));
        // The title of the line over the rows stands above it, where there is room.
        let blank = widths.before_steps().checked_sub(width(&heading) + width(&about)).filter(|blank| *blank > 1);
        let title = blank.filter(|_| widths.steps > 0).map(|blank| format!("{}over the rows", " ".repeat(blank)));
        let mut text = self.finished(&[
            (Ink::Name, heading.into()),
            (Ink::Plain, about.into()),
            (Ink::Faint, title.unwrap_or_default().into()),
        ]);
        lines.iter().for_each(|line| text += &self.drawn(line, &widths));
        let sampled = self.look.columns.iter().filter(|look| !look.is_whole && !look.stretches.is_empty());
        if let Some(rows) = sampled.map(ColumnLook::sampled).max() {
            text += &self.finished(&[(Ink::Faint, format!("  of a sample of {} rows", count(rows)).into())]);
        }
        text
    }

    fn finished(&self, parts: &Inked<'_>) -> String {
        self.terminal.line(parts) + "\n"
    }

    fn line(&self, column: &Column, look: &ColumnLook) -> PlotLine {
        let data_type = column.shown().map(|rows| arrow_name(rows.data_type())).unwrap_or_default();
        let numbers = [(&look.numbers.missing, "missing"), (&look.numbers.nans, "NaN")];
        let numbers = numbers.into_iter().filter_map(|(number, name)| Some((number.as_ref()?, name)));
        let mut notes: Vec<String> = numbers
            .filter(|(number, _)| number.of[0] > 0)
            .map(|(number, name)| format!("{}{} {name}", about(number.is_exact), share(number.of)))
            .collect();
        let (ends, picture): ([String; 2], Shape) = match &look.picture {
            Ok(picture) => match &picture.values {
                Values::Bars(bars) => {
                    let all = bars.counts.iter().sum::<u64>() + bars.outside;
                    let is_exact = look.is_whole || bars.rises;
                    if bars.outside > 0 {
                        notes.push(format!("{}{} outside", about(is_exact), share([bars.outside, all])));
                    }
                    notes.extend((bars.scale == Scale::Log).then(|| "logarithmic".to_owned()));
                    notes.extend(match bars.of {
                        BarsOf::Lengths => Some("by length".to_owned()),
                        BarsOf::Bytes => Some("by length of text".to_owned()),
                        BarsOf::Values | BarsOf::Times => None,
                    });
                    let ends = [0, 1].map(|at| bars.shown[at].0.clone());
                    let least = look.numbers.least.as_ref().map(|least| least.of.0.as_str()).unwrap_or_default();
                    let ends = match bars.of {
                        BarsOf::Times => [dated(&ends[0], least), ends[1].clone()],
                        _ => ends,
                    };
                    (ends, Shape::Bars(bars.counts.clone(), steps(&picture.trace.stretches)))
                }
                Values::Labels(labels) => {
                    (Default::default(), Shape::Text(self.terminal.shown(&commonest(labels, look.is_whole))))
                }
            },
            Err(plain) => (Default::default(), Shape::Text(self.terminal.shown(&reason(plain)))),
        };
        let [least, greatest] = &ends;
        let texts = [&column.name.to_string(), column.shown_units().unwrap_or_default(), &data_type, least, greatest];
        PlotLine {
            texts: texts.map(|text| self.terminal.shown(text)),
            picture,
            notes: self.terminal.shown(&notes.join(", ")),
        }
    }

    fn widths(&self, lines: &[PlotLine]) -> Widths {
        let texts =
            std::array::from_fn(|at| lines.iter().map(|line| width(&line.texts[at])).max().unwrap_or(0).min(MOST[at]));
        let has_bars = lines.iter().any(|line| matches!(line.picture, Shape::Bars(..)));
        let steps = if has_bars { STEPS } else { 0 };
        let mut widths = Widths { texts, bars: BARS[0], steps };
        let columns = self.terminal.columns.unwrap_or(usize::MAX);
        // Types and units are left out first, since other commands show them as well.
        for at in [2, 1] {
            if widths.all() > columns {
                widths.texts[at] = 0;
            }
        }
        if widths.all() > columns {
            widths.steps = 0;
        }
        widths.bars = widths.bars.saturating_sub(widths.all().saturating_sub(columns)).max(BARS[1]);
        let notes = lines.iter().map(|line| width(&line.notes)).max().filter(|notes| *notes > 0);
        let for_notes = notes.map_or(0, |notes| (notes + 3).min(FOR_NOTES));
        let lacking = (widths.all() + for_notes).saturating_sub(columns);
        widths.bars = widths.bars.saturating_sub(lacking).max(BARS[2].min(widths.bars));
        widths
    }

    /// The line of a column.
    fn drawn(&self, line: &PlotLine, widths: &Widths) -> String {
        let [name, units, data_type, (least, before), (greatest, after)] =
            std::array::from_fn(|at| self.terminal.fitted(&line.texts[at], widths.texts[at]));
        let mut parts: Vec<(Ink, Cow<'_, str>)> = Vec::new();
        let before_picture = [(Ink::Name, name), (Ink::Faint, units), (Ink::Faint, data_type)];
        for ((ink, (text, blank)), _) in before_picture.into_iter().zip(widths.texts).filter(|(_, width)| *width > 0) {
            parts.extend([(Ink::Plain, "  ".into()), (ink, text), (Ink::Plain, blank.into())]);
        }
        match &line.picture {
            Shape::Bars(counts, steps) => {
                let bars: String = heights(counts, widths.bars).into_iter().map(|height| self.block(height)).collect();
                let steps: String = steps
                    .iter()
                    .take(widths.steps)
                    .map(|height| height.map_or(' ', |height| self.block(height)))
                    .collect();
                let behind = match (steps.is_empty(), line.notes.is_empty()) {
                    (false, _) => format!("{after}   "),
                    (true, false) => after,
                    (true, true) => String::new(),
                };
                parts.push((Ink::Plain, format!("  {before}{least} {bars} {greatest}{behind}{steps}").into()));
            }
            Shape::Text(text) => {
                // Notes stand below each other.
                let room = (widths.before_steps() + widths.steps).saturating_sub(widths.before_picture());
                let has_notes = !line.notes.is_empty();
                let text = self.terminal.clipped(text, if has_notes { room } else { usize::MAX });
                let blank = if has_notes { " ".repeat(room.saturating_sub(width(&text))) } else { String::new() };
                parts.push((Ink::Plain, format!("  {text}{blank}").into()));
            }
        }
        if !line.notes.is_empty() {
            parts.push((Ink::Faint, format!("   {}", line.notes).into()));
        }
        let text = self.terminal.line(&parts);
        format!("{}\n", text.trim_end())
    }

    fn block(&self, height: usize) -> char {
        let blocks = if self.terminal.has_unicode { BLOCKS } else { ASCII_BLOCKS };
        blocks.get(height).copied().unwrap_or(' ')
    }
}

impl Widths {
    /// Columns before the picture and the least value.
    fn before_picture(&self) -> usize {
        self.texts[..3].iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>() + 2
    }

    /// Columns before the line over the rows.
    fn before_steps(&self) -> usize {
        self.before_picture() + self.texts[3] + 1 + self.bars + 1 + self.texts[4] + 3
    }

    /// Columns of a line, but for notes.
    fn all(&self) -> usize {
        self.before_steps() + self.steps - if self.steps == 0 { 3 } else { 0 }
    }
}

/// Heights of this many bars of equal width over the same axis, in eighths of the highest. Only a bar without rows has
/// the height 0.
fn heights(counts: &[u64], bars: usize) -> Vec<usize> {
    let step = counts.len() as f64 / bars as f64;
    let rows: Vec<f64> = (0..bars).map(|bar| area(counts, [bar as f64 * step, (bar + 1) as f64 * step])).collect();
    let most = rows.iter().copied().fold(0.0, f64::max);
    // Sums of parts are not exact.
    rows.into_iter().map(|rows| if most > 0.0 { (8.0 * rows / most - 1e-9).ceil() as usize } else { 0 }).collect()
}

/// Rows between two points of an axis whose bars, each of width 1, have these rows.
fn area(counts: &[u64], [start, end]: [f64; 2]) -> f64 {
    let bars = counts.iter().enumerate().take(end.ceil() as usize).skip(start as usize);
    bars.map(|(at, rows)| (end.min(at as f64 + 1.0) - start.max(at as f64)).max(0.0) * *rows as f64).sum()
}

/// Heights of the medians over the rows, between the least and the greatest of them; `None`: no value there.
fn steps(stretches: &[Stretch]) -> Vec<Option<usize>> {
    let medians = (0..STEPS).map(|step| {
        let (start, end) = (step * stretches.len() / STEPS, (step + 1) * stretches.len() / STEPS);
        half_of_mean(stretches.get(start..end.max(start + 1)).unwrap_or_default())
    });
    let medians: Vec<Option<f64>> = medians.collect();
    let least = medians.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let greatest = medians.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = greatest - least;
    let heights = medians.into_iter().map(|median| {
        let above = median? - least;
        Some(if range > 0.0 { 1 + (7.0 * (above / range)).round() as usize } else { 1 })
    });
    heights.collect()
}

/// Half of the mean of the medians: differences of halves never overflow.
fn half_of_mean(stretches: &[Stretch]) -> Option<f64> {
    let medians = stretches.iter().filter_map(|stretch| stretch.values.map(|[_, median, _]| median / 2.0));
    let medians = medians.filter(|median| median.is_finite());
    // Equal medians have exactly their value as mean.
    let (mean, count) =
        medians.fold((0.0, 0.0), |(mean, count), median| (mean + (median - mean) / (count + 1.0), count + 1.0));
    (count > 0.0).then_some(mean)
}

/// The commonest labels with their shares.
fn commonest(labels: &Labels, is_whole: bool) -> String {
    let shown = labels.commonest.iter().map(|label| {
        let mut text: String = label.text.chars().take(MOST_OF_LABEL).collect();
        if text.len() < label.text.len() {
            text.push('…');
        }
        format!("{text} {}", rounded_share(label.count, labels.rows))
    });
    let [others, rows] = labels.others;
    let others = (others > 0).then(|| format!("… {} {}", counted(others, "other"), rounded_share(rows, labels.rows)));
    format!("{}{}", about(is_whole), shown.chain(others).collect::<Vec<_>>().join(", "))
}

/// A part of a whole in whole percent.
fn rounded_share(part: u64, of: u64) -> String {
    match part as f64 * 100.0 / of.max(1) as f64 {
        percent if percent > 0.0 && percent < 0.5 => "<1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// The first instant of an axis, with the date or year that pictures leave out; `least` begins with it.
fn dated(shown: &str, least: &str) -> String {
    // `2026-` before month and day, `2026-01-31 ` before hours and minutes.
    let whole = [5, 11].into_iter().find_map(|at| {
        let (before, rest) = least.split_at_checked(at)?;
        rest.starts_with(shown.get(..5)?).then(|| format!("{before}{}", shown.trim_end_matches(".000")))
    });
    whole.unwrap_or_else(|| shown.to_owned())
}

/// Marks a figure that is only of the sample.
fn about(is_exact: bool) -> &'static str {
    if is_exact { "" } else { "≈ " }
}

/// A part of a whole, as percent with two digits or more.
fn share([part, of]: [u64; 2]) -> String {
    match part as f64 * 100.0 / of.max(1) as f64 {
        percent if percent < 0.05 => "<0.1 %".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// Why a column has no picture.
fn reason(plain: &NoPicture) -> String {
    match plain {
        NoPicture::Beyond => "no picture: one of many columns".to_owned(),
        NoPicture::Empty => "no rows".to_owned(),
        NoPicture::Missing => "no values".to_owned(),
        NoPicture::Type => "no picture: its values have no order".to_owned(),
        NoPicture::Costly => "no picture: a sample of it takes long to read".to_owned(),
        NoPicture::Unreadable(reason) => format!("unreadable: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_keep_their_areas() {
        // 64 bars of one row into 32, and 4 into 8.
        assert_eq!(heights(&[1; 64], 32), [8; 32]);
        assert_eq!(heights(&[8, 0, 1, 4], 8), [8, 8, 0, 0, 1, 1, 4, 4]);
        // 3 into 2: the half of the second bar goes to either, so there are 3 and 7.
        assert_eq!(heights(&[2, 2, 6], 2), [4, 8]);
        assert_eq!(heights(&[0; 5], 3), [0; 3]);
    }

    #[test]
    fn steps_follow_the_medians() {
        let stretch = |median: Option<f64>| Stretch {
            rows: 1,
            missing: 0,
            nans: 0,
            values: median.map(|at| [at - 9.0, at, at + 9.0]),
        };
        let rising: Vec<Stretch> = (0..64).map(|at| stretch(Some(f64::from(at)))).collect();
        // Means of four: 1.5, 5.5, …, 61.5; sevenths of 60 between: 8.57.
        let expected = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8].map(Some);
        assert_eq!(steps(&rising), expected);
        let gap: Vec<Stretch> = (0..16).map(|at| stretch((at != 3).then_some(5.0))).collect();
        assert_eq!(steps(&gap)[2..5], [Some(1), None, Some(1)]);
        assert_eq!(steps(&[]), [None; 16]);
        // The range of these is greater than any float.
        let wide: Vec<Stretch> = (0..16).map(|at| stretch(Some([f64::MIN, f64::MAX][at % 2]))).collect();
        assert_eq!(steps(&wide)[..3], [Some(1), Some(8), Some(1)]);
        // 3 × 0.1 is not 0.3, but means of equal medians are equal.
        let level: Vec<Stretch> = (0..64).map(|at| stretch((at != 5).then_some(0.1))).collect();
        assert_eq!(steps(&level), [Some(1); 16]);
    }

    #[test]
    fn the_first_instant_has_its_date() {
        let least = "2026-01-31 06:00:12.5";
        assert_eq!(dated("06:00", least), "2026-01-31 06:00");
        assert_eq!(dated("01-31 06:00", least), "2026-01-31 06:00");
        assert_eq!(dated("06:00:12.000", least), "2026-01-31 06:00:12");
        assert_eq!(dated("2026-01-31", least), "2026-01-31");
        // The axis begins elsewhere, or nothing is known.
        assert_eq!(dated("07:00", least), "07:00");
        assert_eq!(dated("07:00", ""), "07:00");
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!([[21, 1000], [1, 2], [1, 100_000], [0, 0]].map(share), ["2.1 %", "50 %", "<0.1 %", "<0.1 %"]);
    }
}
