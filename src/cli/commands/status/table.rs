//! The table for people, and what `-v` adds to it.

use std::time::SystemTime;

use super::lines::{Looked, StatusLine};
use crate::activity::{Report, words};
use crate::views::printable;

/// The most processes that hold a mount to be named.
const MOST_HOLDERS: usize = 10;

pub(super) fn text(looked: &Looked, verbose: bool) -> String {
    if looked.lines.is_empty() {
        return "nothing is mounted, and no long command runs\n".to_owned();
    }
    let has_users = looked.lines.iter().any(|line| line.uid != looked.own_user);
    let names = if has_users { std::fs::read_to_string("/etc/passwd").unwrap_or_default() } else { String::new() };
    let mut heading = vec!["MOUNTED ON", "SOURCE", "SINCE", "MEMORY", "SERVED", "ERRORS", "NOW"];
    if has_users {
        heading.insert(1, "USER");
    }
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect()];
    for line in &looked.lines {
        let mut cells = cells(line);
        if has_users {
            cells.insert(1, user_name(&names, line.uid));
        }
        rows.push(cells);
    }
    let mut text = aligned(&rows, "");
    if verbose {
        looked.lines.iter().for_each(|line| details(line, &mut text));
    }
    text
}

fn cells(line: &StatusLine) -> Vec<String> {
    let [since, memory, served, errors] = match &line.report {
        Some(report) => {
            let served = if line.is_mount() { words::bytes(report.bytes_served) } else { String::new() };
            [report.since(), report.memory(), served, words::count(report.errors)]
        }
        None => Default::default(),
    };
    vec![line.name(), printable(&line.source), since, memory, served, errors, line.now()]
}

/// Rows in columns, two spaces apart, each behind `indent`.
fn aligned(rows: &[Vec<String>], indent: &str) -> String {
    let width = |at: usize| rows.iter().filter_map(|row| Some(row.get(at)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let mut text = String::new();
    for row in rows {
        // A width in a format has a limit, which a report of another user can pass.
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| cell.clone() + &" ".repeat(width.saturating_sub(cell.chars().count())));
        text += format!("{indent}{}", cells.collect::<Vec<_>>().join("  ")).trim_end();
        text.push('\n');
    }
    text
}

/// The name of a user in the text of `/etc/passwd`, else the number.
fn user_name(users: &str, uid: u32) -> String {
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    name.map_or_else(|| uid.to_string(), printable)
}

/// The lines that `-v` adds to one.
fn details(line: &StatusLine, text: &mut String) {
    *text += &format!("\n{}\n", line.name());
    let mut tell = |name: &str, what: &str| *text += &format!("  {name:10}{what}\n");
    if let Some(pid) = line.pid {
        let version = line.report.as_ref().map(|report| format!(", hepfs {}", printable(&report.version)));
        tell("process", &format!("{pid}{}", version.unwrap_or_default()));
    }
    if let Some(report) = &line.report {
        details_of(report, &mut tell);
    }
    if let Some(holders) = line.holders.as_ref().filter(|holders| !holders.is_empty()) {
        let named = holders.iter().take(MOST_HOLDERS).map(|holder| printable(&holder.to_string()));
        let more = holders.len().saturating_sub(MOST_HOLDERS);
        let more = (more > 0).then(|| format!("{more} more"));
        tell("held by", &named.chain(more).collect::<Vec<_>>().join(", "));
    }
    if let Some(report) = line.report.as_ref().filter(|report| !report.requests.is_empty()) {
        let mut rows = vec![["requests", "count", "median", "99 %", "in all"].map(str::to_owned).to_vec()];
        rows.extend(report.requests.iter().map(|of_kind| {
            vec![
                of_kind.kind.name().to_owned(),
                words::count(of_kind.count),
                words::moment(of_kind.median),
                words::moment(of_kind.percentile_99),
                words::moment(of_kind.seconds),
            ]
        }));
        *text += &aligned(&rows, "  ");
    }
}

fn details_of(report: &Report, tell: &mut impl FnMut(&str, &str)) {
    let counter = |name: &str| report.counters.get(name).copied().unwrap_or_default();
    if !report.sources.is_empty() {
        tell("sources", &printable(&report.sources.join(", ")));
    }
    let resident = words::memory(report.memory.resident);
    tell("memory", &format!("{} in caches; {resident} in all, without HDF5 workers", report.memory()));
    let (hits, misses) = (counter("cache_hits"), counter("cache_misses"));
    let part = (hits.saturating_mul(100)).checked_div(hits.saturating_add(misses));
    let part = part.map(|part| format!(", {part} %")).unwrap_or_default();
    tell("cache", &format!("{} hits, {} misses{part}", words::count(hits), words::count(misses)));
    let [decoded, read, passed] = ["bytes_decoded", "bytes_read", "bytes_passed_on"].map(counter).map(words::bytes);
    tell("bytes", &format!("{decoded} decoded; {read} read, {passed} of these passed on without a copy"));
    tell("passes", &format!("{} begun", words::count(counter("passes"))));
    for work in &report.works {
        tell("now", &printable(&work.words()));
    }
    for error in report.last_errors.iter().rev() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let ago = words::span(now.saturating_sub(error.at) as f64);
        let times = if error.times > 1 { format!(" ({} times)", words::count(error.times)) } else { String::new() };
        tell("error", &format!("{ago} ago: {}{times}", printable(&error.message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_any_width_is_aligned() {
        let long = "x".repeat(70_000);
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(aligned(&[row([&long, "a"]), row(["é", "b"])], ""), {
            let spaces = " ".repeat(69_999);
            format!("{long}  a\né{spaces}  b\n")
        });
    }

    #[test]
    fn users_are_called_by_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbad\nanna:x:1000:1000::/home/anna:/bin/sh\n";
        assert_eq!(user_name(users, 1000), "anna");
        assert_eq!(user_name(users, 1001), "1001");
    }

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [["a", "é", "x"], ["bcd", "e", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows, " "), " a    é  x\n bcd  e\n");
    }
}
