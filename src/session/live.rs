//! Renders the files of `.hepfs`: errors, findings, statistics, counters. Every open renders anew.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::{Children, DirEntry, EntryKind, Error, Session};
use crate::activity;
use crate::indexes::describe;
use crate::learnt::Learner;
use crate::source;
use crate::table::Finding;
use crate::views::printable_json;

/// Name of the directory, at the root of a mount.
pub(crate) const DIRECTORY: &str = ".hepfs";

/// Renders the text of a file.
type Make = fn(&Session) -> String;

/// The files, with their renderers.
const FILES: [(&str, Make); 7] = [
    ("errors", |session| session.errors.text()),
    ("explain", |session| printable_json(&explain(session))),
    ("findings", |session| printable_json(&findings(session))),
    ("indexes", |session| printable_json(&indexes(session))),
    ("passes", |session| printable_json(&passes(session))),
    ("statistics", |session| printable_json(&statistics(session))),
    ("stats", stats),
];

/// One of the files of `.hepfs`.
pub(crate) struct LiveFile {
    session: Arc<Session>,
    make: Make,
}

impl LiveFile {
    /// Finds the file of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`]: no file has this name.
    pub fn new(session: &Arc<Session>, name: &[u8]) -> Result<Self, Error> {
        let (_, make) = FILES.iter().find(|(file, _)| file.as_bytes() == name).ok_or(Error::NotFound)?;
        Ok(Self { session: session.clone(), make: *make })
    }

    /// Renders the file's text as of now.
    pub fn text(&self) -> String {
        (self.make)(&self.session)
    }
}

/// The names of all files.
pub(super) fn children() -> Children {
    FILES.iter().map(|(name, _)| DirEntry { name: (*name).into(), kind: EntryKind::LiveFile }).collect()
}

/// Renders one JSON object per line: how each selection was evaluated, the last one first.
fn explain(session: &Session) -> String {
    let mut lines = String::new();
    for opened in session.opened() {
        let source = opened.path().display().to_string();
        for asked in opened.selections() {
            let Some(explained) = asked.selection.explained() else { continue };
            let line = json!({
                "source": source,
                "table": asked.table,
                "where": asked.path,
                "rows": explained.rows,
                "rows_matched": explained.matched,
                "blocks": explained.blocks,
                "blocks_skipped": explained.blocks_without,
                "blocks_taken_whole": explained.blocks_within,
                "blocks_answered": explained.blocks_answered,
                "blocks_decoded": explained.blocks_decoded,
                "bytes_decoded": explained.bytes_decoded,
                "search_indexes": explained.indexes,
                "seconds": explained.took.map(|took| took.as_secs_f64()),
                "kept": explained.kept,
            });
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Renders one JSON object per line: rules that files break, and rows whose values break one.
fn findings(session: &Session) -> String {
    let mut lines = String::new();
    let mut add = |source: &Path, finding: &Finding| lines.push_str(&format!("{}\n", finding.line(source)));
    for opened in session.opened() {
        opened.findings().iter().for_each(|finding| add(opened.path(), finding));
    }
    session.of_datasets().iter().for_each(|(source, finding)| add(source, finding));
    lines
}

/// Renders one JSON object per line: each search index of the tables listed so far, and its state.
fn indexes(session: &Session) -> String {
    let mut lines = String::new();
    for opened in session.opened() {
        for (table, index) in opened.search_indexes() {
            lines.push_str(&format!("{}\n", json!(describe(opened.path(), &table, &index))));
        }
    }
    lines
}

/// Renders one JSON object per line: each pass and command under way in this process, and in others of this user,
/// unless other users may read the list.
fn passes(session: &Session) -> String {
    let reports = if session.is_shared { vec![activity::report()] } else { activity::of_user() };
    let mut lines = String::new();
    for report in &reports {
        for work in &report.works {
            let mut line = json!({"pid": report.pid, "command": report.command, "mountpoint": report.mountpoint});
            if let (Some(line), serde_json::Value::Object(work)) = (line.as_object_mut(), json!(work)) {
                line.extend(work);
            }
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Renders one JSON object per line: each column looked at so far that can have statistics, and how far they are known.
fn statistics(session: &Session) -> String {
    let mut lines = String::new();
    for opened in session.opened() {
        let source = opened.path().display().to_string();
        for learner in Learner::all_of(opened.opening()) {
            let (known, blocks) = learner.progress();
            let line = json!({
                "source": source,
                "path": learner.path(),
                "rows": learner.rows(),
                "blocks": blocks,
                "blocks_known": known,
                "known": known == blocks,
            });
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Renders one `name value` pair per line.
fn stats(session: &Session) -> String {
    let budget = session.store.budget();
    let others =
        [("source_looks", source::stat_calls()), ("cache_bytes", budget.held()), ("cache_limit", budget.limit())];
    let counts = session.store.counters().table();
    let remote = session.opener.counters();
    counts.iter().chain(&others).chain(&remote).map(|(name, value)| format!("{name} {value}\n")).collect()
}
