//! `hepfs check SOURCE[:path]`: every rule that the dialects of its tables can hold against a file, and whether it can
//! be read.

mod values;

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use self::values::Unreadable;
use super::index::report;
use super::index::verify;
use crate::cli::Error;
use crate::cli::place::Named;
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::{self, InFile};
use crate::fs::tree::{ViewOptions, printable};
use crate::indexes::Description;
use crate::source::Interrupt;
use crate::store::decode::{Count, Oddity};
use crate::table::{Finding, Table};

/// Say which rules the tables of a file break, and whether they can be read
///
/// Looks at every table and every chunk index, reads every value of every table on all cores, and holds every search
/// index against its column in full. Exit code: 0 where nothing is wrong, 1 where a rule is broken, 2 where something
/// could not be read.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// A JSON object a line, one for each file: source, tables, findings, search_indexes, failures
    #[arg(long)]
    json: bool,

    /// Look at tables and chunk indexes alone: no value is read, and no search index held against its column
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    named: Named,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    arguments.named.each(&ViewOptions::default(), 2, |asked| {
        let interrupt = Interrupt::new();
        let place = asked.find_settled(&interrupt)?;
        let files = tables::find(&place, true, &interrupt)?;
        let interrupted = || eprintln!("hepfs: interrupted; what was found so far stays kept");
        let mut unreadable = Vec::new();
        let mut verified = files.iter().map(|_| Vec::new()).collect();
        if !arguments.quick {
            for file in &files {
                let tables = file.tables.iter().map(|(_, table)| table.as_ref());
                let tables: Vec<&Table> = tables.filter(|table| !table.repeats).collect();
                let Some(found) = values::read(&tables, &interrupt)? else {
                    interrupted();
                    return Ok(INTERRUPTED);
                };
                unreadable.push(found);
            }
            let Some(found) = verify::all(&files, &interrupt)? else {
                interrupted();
                return Ok(INTERRUPTED);
            };
            verified = found;
        }
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut worst = 0;
        let unreadable = unreadable.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        for ((file, verified), unreadable) in files.iter().zip(&verified).zip(unreadable) {
            let (report, code) = report(file, verified, unreadable, arguments.json);
            out.write_all(report.as_bytes()).map_err(Error::io("standard output"))?;
            worst = worst.max(code);
        }
        out.flush().map_err(Error::io("standard output"))?;
        Ok(worst)
    })
}

/// Values met that break a rule.
fn of_values(file: &InFile) -> Vec<Finding> {
    let columns = file.tables.iter().flat_map(|(_, table)| &table.columns);
    let mut known = HashSet::new();
    let found = columns.filter(|column| known.insert(column.id)).flat_map(|column| {
        let of_one = |(oddity, Count { rows, first }): (Oddity, Count)| {
            Finding::new(&column.path, oddity.rule(), format!("{rows} rows, the first is row {first}"))
        };
        column.tally.counts().into_iter().map(of_one)
    });
    found.collect()
}

/// What there is to say of a file, and the exit code for it.
fn report(file: &InFile, verified: &[Description], unreadable: &[Unreadable], as_json: bool) -> (String, u8) {
    let mut findings = file.opened.as_ref().map(|opened| opened.findings().0).unwrap_or_default();
    findings.extend(of_values(file));
    let mut failures = file.failures.clone();
    failures.extend(unreadable.iter().map(|column| {
        let Unreadable { path, rows, first, reason, .. } = column;
        let more = if column.is_left() { " or more" } else { "" };
        (path.clone(), format!("{rows} rows{more} cannot be read, the first is row {first}: {reason}"))
    }));
    for one in verified.iter().filter(|one| report::has_failed(one)) {
        failures.push((one.path.clone(), one.found.clone().unwrap_or_default()));
    }
    let is_wrong = !findings.is_empty() || verified.iter().any(|one| one.is_fault);
    let code = report::exit_code(!failures.is_empty(), is_wrong);
    if as_json {
        let source = file.source.display().to_string();
        let failed: Vec<_> = failures.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
        let report = json!({
            "source": source,
            "tables": file.tables.iter().map(|(_, table)| &table.path).collect::<Vec<_>>(),
            "findings": findings,
            "search_indexes": verified,
            "failures": failed,
        });
        return (format!("{report}\n"), code);
    }
    let mut lines: Vec<String> =
        findings.iter().map(|finding| format!("{}: {}: {}", finding.path, finding.rule, finding.found)).collect();
    lines.extend(verified.iter().map(report::line));
    lines.extend(failures.iter().map(|(path, reason)| tables::about(path, &format!("FAILED: {reason}"))));
    let right = verified.iter().filter(|one| !one.is_fault && !report::has_failed(one)).count();
    lines.push(format!(
        "{} tables, {} rules broken, {right} of {} search indexes verified",
        file.tables.len(),
        findings.len(),
        verified.len(),
    ));
    (lines.iter().map(|line| format!("{}{}\n", file.prefix, printable(line))).collect(), code)
}
