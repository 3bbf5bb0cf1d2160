//! The line about work that goes on, as wide as a terminal, and the one for a log.

use crate::activity::words::count;
use crate::activity::{Unit, WorkReport};
use crate::views::printable;

/// Columns from which on the line says what is done to the file.
const WIDE: usize = 100;

/// Fewest columns of the bar, and of the title if it is longer, before other parts are left out.
const LEAST_BAR: usize = 6;
const LEAST_TITLE: usize = 12;

/// Most columns of the bar.
const MOST_BAR: usize = 40;

/// The line for a terminal of this many columns: title, bar, percent, amount, rate, time passed, time left.
///
/// Parts are left out where there is no room.
pub(super) fn bar(report: &WorkReport, columns: usize, has_colours: bool) -> String {
    // A full line would move some terminals to the next one.
    let room = columns.saturating_sub(1);
    let (fraction, time) = (fraction(report), times(report));
    let percent = fraction.map(percent);
    let parts = [amount(report), rate(report)];
    let title = match fraction {
        Some(_) if columns < WIDE || report.doing.is_empty() => printable(&report.title),
        _ => headed(report),
    };
    let least = if percent.is_some() { LEAST_BAR + 1 } else { 0 } + title.chars().count().min(LEAST_TITLE);
    let mut tails = (0..=parts.len()).rev().map(|shown| {
        let shown = parts.iter().flatten().take(shown);
        let all: Vec<&str> = percent.iter().chain(shown).chain([&time]).map(String::as_str).collect();
        all.join("  ")
    });
    let fitting = tails.find(|tail| least + 1 + tail.chars().count() <= room);
    let tail = fitting.or(percent).unwrap_or(time);
    let left = room.saturating_sub(tail.chars().count() + 1);
    let bar = if fraction.is_some() { LEAST_BAR + 1 } else { 0 };
    let title = cut(&title, left.saturating_sub(bar));
    let bar = left.saturating_sub(title.chars().count() + 1).min(MOST_BAR);
    let line = match fraction {
        Some(fraction) if bar >= LEAST_BAR => format!("{title} {} {tail}", drawn(fraction, bar, has_colours)),
        _ => format!("{title}  {tail}"),
    };
    // A terminal narrower than any line.
    if has_colours && columns >= tail.len() { line } else { line.chars().take(room).collect() }
}

/// The line for a log.
pub(super) fn plain(report: &WorkReport) -> String {
    let percent = fraction(report).map(percent);
    let parts = percent.into_iter().chain(amount(report)).chain(rate(report));
    let passed = format!("{} passed", clock(report.seconds));
    let left = report.seconds_left.map(|left| format!("{} left", clock(left)));
    let parts: Vec<String> = parts.chain([passed]).chain(left).collect();
    format!("{}: {}", headed(report), parts.join(", "))
}

/// The object of the work, and its verb: `energy.csv: exporting`.
fn headed(report: &WorkReport) -> String {
    let title = if report.title.is_empty() { "." } else { &report.title };
    printable(&format!("{title}: {}", report.doing))
}

/// The part that is done, less than 1.
fn fraction(report: &WorkReport) -> Option<f64> {
    let all = report.all?;
    Some((report.done as f64 / all.max(1) as f64).min(0.999))
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", (fraction * 100.0).floor())
}

/// Whether the unit means nothing to people.
fn is_hidden(unit: Unit) -> bool {
    matches!(unit, Unit::Blocks | Unit::Steps)
}

/// The amount done, of that in all.
fn amount(report: &WorkReport) -> Option<String> {
    if is_hidden(report.unit) || report.all.is_none() && report.done == 0 {
        return None;
    }
    let (scale, unit) = scale(report.all.unwrap_or(report.done) as f64, report.unit);
    let [done, all] = [Some(report.done), report.all].map(|units| units.map(|units| number(units as f64 / scale)));
    let of = all.map(|all| format!(" of {all}")).unwrap_or_default();
    Some(format!("{}{of} {unit}", done.unwrap_or_default()))
}

fn rate(report: &WorkReport) -> Option<String> {
    let rate = report.per_second.filter(|rate| *rate > 0.0 && !is_hidden(report.unit))?;
    let (scale, unit) = scale(rate, report.unit);
    Some(format!("{} {unit}/s", number(rate / scale)))
}

/// The divisor of a number of units, and the name of the larger unit.
fn scale(units: f64, unit: Unit) -> (f64, String) {
    let (name, steps): (_, &[(f64, &str)]) = match unit {
        Unit::Bytes => ("B", &[(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")]),
        Unit::Rows => ("rows", &[(1e12, "T "), (1e9, "G "), (1e6, "M ")]),
        Unit::Values => ("values", &[(1e12, "T "), (1e9, "G "), (1e6, "M ")]),
        Unit::Blocks => ("blocks", &[]),
        Unit::Files => ("files", &[]),
        Unit::Objects => ("objects", &[]),
        Unit::Steps => ("steps", &[]),
    };
    // What would be rounded to 1,000 takes the next unit.
    let step = steps.iter().find(|(scale, _)| units >= scale * 0.9995);
    let (scale, prefix) = step.copied().unwrap_or((1.0, ""));
    (scale, format!("{prefix}{name}"))
}

/// A number with a digit behind the point if it is short, and its digits in groups of three if it is long.
fn number(value: f64) -> String {
    if value < 9.95 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    // A float becomes the nearest integer that there is.
    count(value.round() as u64)
}

/// Time passed, and time left if it is known: `1:24, 1:12 left`.
fn times(report: &WorkReport) -> String {
    let left = report.seconds_left.map(|left| format!(", {} left", clock(left)));
    format!("{}{}", clock(report.seconds), left.unwrap_or_default())
}

/// A length of time: `1:24`, `2:03:10`, `3 d`.
fn clock(seconds: f64) -> String {
    // A float becomes the nearest integer that there is.
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours @ 1..100, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (hours, ..) => format!("{} d", hours / 24),
    }
}

/// A bar of this many columns, filled in part.
fn drawn(fraction: f64, columns: usize, has_colours: bool) -> String {
    let halves = (fraction * 2.0 * columns as f64) as usize;
    let (full, half) = (halves / 2, if halves % 2 == 1 { "╸" } else { "" });
    let rest = columns.saturating_sub(full + halves % 2);
    let [full, thick, thin] = [("━", full), ("━", rest), ("─", rest)].map(|(line, count)| line.repeat(count));
    if has_colours { format!("{full}{half}\x1b[2m{thick}\x1b[22m") } else { format!("{full}{half}{thin}") }
}

/// The text cut at its beginning, since names differ at their ends.
fn cut(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_owned();
    }
    let kept = text.chars().skip(length - columns.saturating_sub(1));
    std::iter::once('…').chain(kept).take(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> WorkReport {
        WorkReport {
            source: None,
            title: "energy.csv".to_owned(),
            doing: "exporting".to_owned(),
            done: 1_908_000_000,
            all: Some(3_600_000_000),
            unit: Unit::Bytes,
            seconds: 84.2,
            per_second: Some(412_400_000.0),
            seconds_left: Some(72.0),
        }
    }

    #[test]
    fn a_terminal_gets_one_line_of_all_that_has_room() {
        let line = |columns| bar(&report(), columns, false);
        assert_eq!(line(80), "energy.csv ━━━━━━━━━━━────────── 53 %  1.9 of 3.6 GB  412 MB/s  1:24, 1:12 left");
        assert_eq!(line(60), "energy.csv ━━━━━╸───── 53 %  1.9 of 3.6 GB  1:24, 1:12 left");
        assert_eq!(line(40), "energy.csv ━━━─── 53 %  1:24, 1:12 left");
        assert_eq!(line(12), "  53 %");
        let wide = line(200);
        assert!(wide.starts_with("energy.csv: exporting ━━━━"), "{wide}");
        for columns in 0..200 {
            assert!(line(columns).chars().count() <= columns.saturating_sub(1), "{columns}: {}", line(columns));
        }
        assert_eq!(bar(&report(), 60, true).replace("\x1b[2m", "").replace("\x1b[22m", ""), line(60).replace('─', "━"));
    }

    #[test]
    fn a_long_title_keeps_its_end() {
        let title = "run_042/columns/deposited_energy_of_the_calorimeter.csv";
        let line = bar(&WorkReport { title: title.to_owned(), ..report() }, 80, false);
        assert_eq!(line, "…y_of_the_calorimeter.csv ━━━─── 53 %  1.9 of 3.6 GB  412 MB/s  1:24, 1:12 left");
    }

    #[test]
    fn unknown_sizes_have_no_bar() {
        let report = WorkReport { all: None, seconds_left: None, unit: Unit::Files, done: 1_204, ..report() };
        let report =
            WorkReport { title: "runs".to_owned(), doing: "looking".to_owned(), per_second: Some(8.6), ..report };
        assert_eq!(bar(&report, 80, true), "runs: looking  1 204 files  8.6 files/s  1:24");
        assert_eq!(plain(&report), "runs: looking: 1 204 files, 8.6 files/s, 1:24 passed");
        let report = WorkReport { done: 0, per_second: None, title: String::new(), ..report };
        assert_eq!(bar(&report, 80, true), ".: looking  1:24");
    }

    #[test]
    fn a_log_gets_all() {
        let line = "energy.csv: exporting: 53 %, 1.9 of 3.6 GB, 412 MB/s, 1:24 passed, 1:12 left";
        assert_eq!(plain(&report()), line);
        let rows = WorkReport {
            unit: Unit::Rows,
            done: 999_999,
            all: Some(40_000_000),
            seconds_left: Some(7_390.0),
            ..report()
        };
        let rows = WorkReport { per_second: Some(999_700.0), ..rows };
        assert_eq!(
            plain(&rows),
            "energy.csv: exporting: 2 %, 1.0 of 40 M rows, 1.0 M rows/s, 1:24 passed, 2:03:10 left"
        );
        let blocks = WorkReport { unit: Unit::Blocks, title: "a\x1b[2J".to_owned(), ..rows };
        assert!(!plain(&blocks).contains('\x1b') && !plain(&blocks).contains("blocks"), "{}", plain(&blocks));
    }
}
