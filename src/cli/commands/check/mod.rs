//! `hepfs check SOURCE[:path]`: checks the rules of all dialects of a file's tables, and whether the file can be read.

mod held;
mod rules;
mod values;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;

use self::values::{Read, UnreadableRows, ValuesToRead};
use super::index::report;
use super::index::verify;
use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::place::{NamedPlaces, short_name};
use crate::cli::progress::{Out, Watched};
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::{self, InFile};
use crate::dialects::{CheckOptions, Checks};
use crate::indexes::{IndexDescription, State};
use crate::session::{Findings, Settings};
use crate::store::{self, TallyCount};
use crate::table::{Finding, Severity};
use crate::views::{printable, printable_json};

/// Default memory for decoded chunks, in bytes: small, since each value is read once.
const CACHE: u64 = 128 << 20;

/// Check files against the rules of their formats, and that all of them can be read
///
/// Looks at every table and chunk index, reads every value of every table once, on all cores, and compares every search
/// index with its column. For a whole file it also verifies the checksums that its format keeps. 128 MB of decoded
/// chunks are kept meanwhile, unless `--cache-size` says otherwise. A finding has the name of its rule (`--rules` lists
/// them), the section of the specification, what was found and what to do. Notes, which are no faults, are counted;
/// `-v`, `--json` and `--fail-on note` print them. Exit code: 0 if no rule is broken that `--fail-on` counts, 1 if one
/// is, 2 if something could not be read.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Print a JSON object per finding: source, id, severity, revision, section, path, rule, found, rows, first_row,
    /// hint
    #[arg(long)]
    json: bool,

    /// Look at tables and chunk indexes only: read no value, and verify no search index
    #[arg(long)]
    quick: bool,

    /// Least severity that counts as broken
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = Severity::Error)]
    fail_on: Severity,

    /// Print all rules as a Markdown table, and read no file
    #[arg(long, exclusive = true)]
    rules: bool,

    #[command(flatten)]
    options: CheckOptions,

    #[command(flatten)]
    named: NamedPlaces,
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if arguments.rules {
        let all = rules::listed();
        return std::io::stdout().write_all(all.as_bytes()).map_err(Error::io("standard output")).map(|()| 0.into());
    }
    let checks = Checks { is_full: true, options: arguments.options };
    let settings = Settings { checks, ..Settings::default() };
    let printed = if verbose > 0 { Severity::Note } else { Severity::Warning.min(arguments.fail_on) };
    let mut named = arguments.named.clone();
    let cache_size = named.reading.cache_size.unwrap_or(store::Options::default().cache_size.min(CACHE));
    named.reading.cache_size = Some(cache_size);
    named.each(&settings, ("checking", 2), |asked, watched| {
        let interrupt = &watched.interrupt;
        let place = asked.find_settled(interrupt)?;
        let files = match tables::dataset(&place, interrupt)? {
            Some(table) => vec![tables::in_dataset(&place, table, interrupt)?],
            None => tables::find(&place, true, watched)?,
        };
        let interrupted = || say!("hepfs: interrupted; results so far stay in the cache");
        let mut read = Vec::new();
        let mut verified = files.iter().map(|_| Vec::new()).collect();
        if !arguments.quick {
            place.say_fetched();
            let planned = files.iter().map(|file| {
                let tables = file.tables.iter().map(|(_, table)| table.as_ref());
                ValuesToRead::new(tables.filter(|table| !table.repeats).collect(), cache_size, interrupt)
            });
            let planned: Vec<ValuesToRead> = planned.collect();
            // Each value of a column is read once, and once more for each search index.
            let values = planned.iter().map(ValuesToRead::count).fold(verify::rows(&files), u64::saturating_add);
            watched.step(Unit::Values, values);
            for (file, planned) in files.iter().zip(planned) {
                watched.name(&short_name(file.source.as_os_str()), "reading values");
                let Some(found) = planned.read(&watched.done, interrupt) else {
                    interrupted();
                    return Ok(INTERRUPTED);
                };
                read.push(found);
            }
            let Some(found) = verify::all(&files, watched)? else {
                interrupted();
                return Ok(INTERRUPTED);
            };
            verified = found;
            if place.is_whole() && !checksums(&files, &mut read, &settings, watched) {
                interrupted();
                return Ok(INTERRUPTED);
            }
        }
        let mut out = BufWriter::new(Out::new());
        let mut worst = 0;
        read.resize_with(files.len(), Read::default);
        for ((file, verified), read) in files.iter().zip(&verified).zip(read) {
            let found = Found::of(file, verified, read);
            let report =
                if arguments.json { printable_json(&found.lines(file)) } else { found.text(file, verified, printed) };
            out.write_all(report.as_bytes()).map_err(Error::io("standard output"))?;
            worst = worst.max(found.exit_code(arguments.fail_on));
        }
        out.flush().map_err(Error::io("standard output"))?;
        Ok(worst)
    })
}

/// Verifies the checksums in files against their data; returns whether it was completed.
fn checksums(files: &[InFile], read: &mut [Read], settings: &Settings, watched: &Watched) -> bool {
    let interrupt = &watched.interrupt;
    watched.step(Unit::Files, 0);
    for (file, read) in files.iter().zip(read) {
        watched.name(&short_name(file.source.as_os_str()), "verifying checksums");
        let Some(hdf5) = file.opened.as_ref().and_then(|opened| opened.hdf5()) else { continue };
        read.findings.extend(settings.dialects.0.iter().flat_map(|dialect| dialect.verify(hdf5, interrupt)));
    }
    !interrupt.is_raised()
}

/// All faults of a file.
struct Found {
    findings: Findings,
    /// Whether some column cannot be read, for any reason; the reason may be one of the findings.
    lacks_column: bool,
}

impl Found {
    fn of(file: &InFile, verified: &[IndexDescription], read: Read) -> Self {
        let mut findings = Findings::default();
        file.failures.iter().for_each(|(path, reason)| findings.fail(path, reason, None));
        findings.extend(file.opened.iter().flat_map(|opened| opened.findings()));
        findings.extend(file.findings.iter().cloned());
        findings.extend(file.tables.iter().flat_map(|(_, table)| table.met()));
        for (_, table) in &file.tables {
            let found = table.columns.iter().filter_map(held::unfilled);
            findings.extend(found.map(|found| found.by(table.judged_by)));
        }
        findings.extend(read.findings);
        for column in &read.unreadable {
            let UnreadableRows { path, rows, first, reason, .. } = column;
            let more = if column.is_left() { " or more" } else { "" };
            let found = format!("{rows} rows{more} cannot be read, the first is row {first}: {reason}");
            findings.fail(path, &found, Some(TallyCount { rows: *rows, first: *first }));
        }
        let (failed, judged): (Vec<_>, Vec<_>) = verified.iter().partition(|one| report::has_failed(one));
        // If an index is unused because of a reported finding, do not report it again.
        let told = findings.paths(Severity::Error);
        let of_indexes = judged.into_iter().filter(|one| one.verdict == State::Broken || !told.contains(&one.path));
        findings.extend(of_indexes.filter_map(of_index));
        let columns = file.tables.iter().flat_map(|(_, table)| &table.columns);
        let closed: Vec<_> = columns.filter_map(|column| Some((&column.path, column.rows.as_ref().err()?))).collect();
        let lacks_column = !closed.is_empty();
        let mut told = findings.paths(Severity::Note);
        for (path, reason) in closed {
            if told.insert(path.clone()) {
                findings.fail(path, reason, None);
            }
        }
        failed.iter().for_each(|one| findings.fail(&one.path, one.found.as_deref().unwrap_or_default(), None));
        Self { findings, lacks_column }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.broken().iter().filter(|finding| finding.rule.severity == severity).count()
    }

    fn exit_code(&self, fail_on: Severity) -> u8 {
        let is_wrong = self.findings.broken().iter().any(|finding| finding.rule.severity >= fail_on);
        report::exit_code(self.lacks_column || !self.findings.failures().is_empty(), is_wrong)
    }

    /// Writes a JSON object per finding, one on each line.
    fn lines(&self, file: &InFile) -> String {
        let all = self.findings.broken().iter().chain(self.findings.failures());
        all.map(|finding| format!("{}\n", finding.line(&file.source))).collect()
    }

    /// Writes lines for people: findings from a severity on, and counts of all.
    fn text(&self, file: &InFile, verified: &[IndexDescription], printed: Severity) -> String {
        let findings = self.findings.broken().iter().filter(|finding| finding.rule.severity >= printed);
        let mut lines: Vec<String> = findings.map(ToString::to_string).collect();
        // Faults of an index that were already reported are skipped.
        let told = self.findings.paths(Severity::Note);
        lines.extend(verified.iter().filter(|one| !told.contains(&one.path)).map(report::line));
        let failed = |one: &Finding| tables::about(&one.path, &format!("FAILED: {}", one.found));
        lines.extend(self.findings.failures().iter().map(failed));
        let notes = self.count(Severity::Note);
        let where_notes_are = if notes > 0 && printed > Severity::Note { " (-v prints them)" } else { "" };
        let in_state = |state| verified.iter().filter(|one| one.verdict == state).count();
        let unused = in_state(State::Unused);
        let unused = if unused > 0 { format!(", {unused} unused") } else { String::new() };
        lines.push(format!(
            "{} tables, {} errors, {} warnings, {notes} notes{where_notes_are}, {} of {} search indexes verified{unused}",
            file.tables.len(),
            self.count(Severity::Error),
            self.count(Severity::Warning),
            in_state(State::Verified),
            verified.len(),
        ));
        lines.iter().map(|line| format!("{}{}\n", file.prefix, printable(line))).collect()
    }
}

/// The finding on a broken search index.
fn of_index(one: &IndexDescription) -> Option<Finding> {
    let said = [one.place.as_deref(), one.found.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(Finding::new(&one.path, one.broken?, said).by(one.revision))
}
