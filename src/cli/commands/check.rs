//! `hepfs check SOURCE[:path]`: every rule that the dialects of its tables can hold against a file.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::index::{report, verify};
use crate::cli::place::Named;
use crate::cli::signals::INTERRUPTED;
use crate::cli::{Error, tables};
use crate::fs::tree::{ViewOptions, printable};
use crate::source::Interrupt;

/// Say which rules the tables of a file break, and whether their search indexes are right
///
/// Looks at every table, and holds every search index against its column in full. Exit code: 0 where nothing is wrong,
/// 1 where a rule is broken, 2 where something could not be looked at.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// One JSON object: tables, findings, search_indexes, failures
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::new();
    let place = arguments.named.find_settled(ViewOptions::default(), &interrupt)?;
    let found = tables::below(&place, &interrupt)?;
    let Some(verified) = verify::all(&found.tables, &interrupt)? else {
        eprintln!("hepfs: interrupted; what was found so far stays kept");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let findings = place.context.findings();
    let several = place.context.files().len() > 1;
    let mut failures = found.failures;
    for one in verified.iter().filter(|one| report::has_failed(one)) {
        failures.push((one.path.clone(), one.found.clone().unwrap_or_default()));
    }
    let mut out = std::io::stdout().lock();
    let written = if arguments.json {
        let findings: Vec<_> = findings
            .iter()
            .map(|(source, finding)| {
                json!({
                    "source": source.display().to_string(),
                    "path": finding.path,
                    "rule": finding.rule,
                    "found": finding.found,
                })
            })
            .collect();
        let failed: Vec<_> = failures.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
        let report = json!({
            "tables": found.tables.iter().map(|table| &table.path).collect::<Vec<_>>(),
            "findings": findings,
            "search_indexes": verified,
            "failures": failed,
        });
        writeln!(out, "{report}")
    } else {
        let mut lines: Vec<String> = findings
            .iter()
            .map(|(source, finding)| {
                let source = if several { format!("{}:", source.display()) } else { String::new() };
                printable(&format!("{source}{}: {}: {}", finding.path, finding.rule, finding.found))
            })
            .collect();
        lines.extend(verified.iter().map(report::line));
        lines.extend(failures.iter().map(|(path, reason)| printable(&format!("{path}: FAILED: {reason}"))));
        let right = verified.iter().filter(|one| !one.verdict.is_fault() && !report::has_failed(one)).count();
        lines.push(format!(
            "{} tables, {} rules broken, {right} of {} search indexes verified",
            found.tables.len(),
            findings.len(),
            verified.len(),
        ));
        lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
    };
    written.map_err(Error::io("standard output"))?;
    let is_wrong = !findings.is_empty() || verified.iter().any(|one| one.verdict.is_fault());
    Ok(report::exit_code(!failures.is_empty(), is_wrong))
}
