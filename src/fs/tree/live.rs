//! Makes the files of `.hepfs`, which tell what a mount has learnt and done. Every open makes the bytes anew.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::json;

use super::{Attributes, Children, Context, Error, Interrupt, Kind, Node, NodeRef, Xattrs, datasets, plain_attributes};
use crate::fs::node::{DirEntry, Names};
use crate::indexes::describe;
use crate::source;
use crate::store::Answer;
use crate::table::{Finding, Table};
use crate::views::{printable, printable_json};

/// Name of the directory, at the root of the mount.
pub(super) const DIRECTORY: &str = ".hepfs";

/// Errors kept.
const MOST_ERRORS: usize = 1000;

/// The last errors met while serving, oldest first; equal ones in a row count once.
#[derive(Debug, Default)]
pub struct ErrorLog(Mutex<VecDeque<(SystemTime, String, u64)>>);

impl ErrorLog {
    /// Adds an error, and writes it to the log.
    pub fn add(&self, message: &str) {
        let message = printable(message);
        tracing::warn!("{message}");
        let mut errors = self.0.lock();
        if let Some((_, last, times)) = errors.back_mut()
            && *last == message
        {
            *times += 1;
            return;
        }
        if errors.len() == MOST_ERRORS {
            errors.pop_front();
        }
        errors.push_back((SystemTime::now(), message, 1));
    }

    /// The last error.
    pub fn last(&self) -> Option<String> {
        self.0.lock().back().map(|(_, message, _)| message.clone())
    }

    fn text(&self) -> String {
        let line = |(time, message, times): &(SystemTime, String, u64)| {
            let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            format!("{seconds} {message}{times}\n")
        };
        self.0.lock().iter().map(line).collect()
    }
}

/// The root of a mount: what the sources show, and `.hepfs`.
pub(super) struct RootNode {
    shown: NodeRef,
    live: NodeRef,
    datasets: Option<NodeRef>,
}

impl RootNode {
    pub fn new(context: Arc<Context>, shown: NodeRef, datasets: Option<NodeRef>) -> Self {
        Self { shown, live: Arc::new(LiveDirectory { context, started: SystemTime::now() }), datasets }
    }
}

impl Node for RootNode {
    fn attributes(&self) -> Attributes {
        self.shown.attributes()
    }

    fn is_current(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        match &self.datasets {
            _ if name == DIRECTORY.as_bytes() => Ok(self.live.clone()),
            Some(datasets) if name == datasets::DIRECTORY.as_bytes() => Ok(datasets.clone()),
            _ => self.shown.lookup(name, interrupt),
        }
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let datasets = self.datasets.as_ref().map(|_| datasets::DIRECTORY);
        let own = datasets.into_iter().chain([DIRECTORY]);
        let own = own.map(|name| DirEntry { name: name.into(), kind: Kind::Directory }).collect();
        Ok(Children::new(Beside { own, shown: self.shown.children(interrupt)? }))
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.shown.table()
    }

    fn source(&self) -> Option<&Path> {
        self.shown.source()
    }

    fn examine(&self, failed: &mut dyn FnMut(&str, String), interrupt: &Interrupt) {
        self.shown.examine(failed, interrupt);
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.shown.why_not_kept()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.shown.xattrs(interrupt)
    }
}

/// The names of a directory behind those of its own.
struct Beside {
    own: Vec<DirEntry>,
    shown: Children,
}

impl Names for Beside {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        let count = self.own.len() as u64;
        self.own.at(place).or_else(|| {
            let (at, entry) = self.shown.at(place.saturating_sub(count))?;
            Some((at + count, entry))
        })
    }
}

struct LiveDirectory {
    context: Arc<Context>,
    started: SystemTime,
}

/// Makes the text of a file.
type Make = fn(&Context) -> String;

/// The files, with what makes them.
const FILES: [(&str, Make); 6] = [
    ("errors", |context| context.errors.text()),
    ("explain", |context| printable_json(&explain(context))),
    ("findings", |context| printable_json(&findings(context))),
    ("indexes", |context| printable_json(&indexes(context))),
    ("statistics", |context| printable_json(&statistics(context))),
    ("stats", stats),
];

impl Node for LiveDirectory {
    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::Directory, self.started)
    }

    fn is_current(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let (_, make) = FILES.iter().find(|(file, _)| file.as_bytes() == name).ok_or(Error::NotFound)?;
        Ok(Arc::new(LiveFile { context: self.context.clone(), make: *make }))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(FILES.iter().map(|(name, _)| DirEntry { name: (*name).into(), kind: Kind::LiveFile }).collect())
    }
}

struct LiveFile {
    context: Arc<Context>,
    make: Make,
}

impl Node for LiveFile {
    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::LiveFile, SystemTime::now())
    }

    fn is_current(&self) -> bool {
        true
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        answer.append((self.make)(&self.context).as_bytes(), offset, length);
        Ok(())
    }
}

/// One JSON object a line: how each selection that was read was evaluated, the last one first.
fn explain(context: &Context) -> String {
    let mut lines = String::new();
    for opened in context.opened() {
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

/// One JSON object a line: rules that files break, and rows met with values that break one.
fn findings(context: &Context) -> String {
    let mut lines = String::new();
    let mut add = |source: &Path, finding: &Finding| lines.push_str(&format!("{}\n", finding.line(source)));
    for opened in context.opened() {
        opened.findings().iter().for_each(|finding| add(opened.path(), finding));
    }
    context.of_datasets().iter().for_each(|(source, finding)| add(source, finding));
    lines
}

/// One JSON object a line: each search index of the tables listed so far, and what is known of it.
fn indexes(context: &Context) -> String {
    let mut lines = String::new();
    for opened in context.opened() {
        for (table, index) in opened.search_indexes() {
            lines.push_str(&format!("{}\n", json!(describe(opened.path(), &table, &index))));
        }
    }
    lines
}

/// One JSON object a line: each column looked at so far that can have statistics, and how far they are known.
fn statistics(context: &Context) -> String {
    let mut lines = String::new();
    for opened in context.opened() {
        let source = opened.path().display().to_string();
        for learner in opened.opening().learners() {
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

/// `name value` a line.
fn stats(context: &Context) -> String {
    let budget = context.store.budget();
    let others =
        [("source_looks", source::stat_calls()), ("cache_bytes", budget.held()), ("cache_limit", budget.limit())];
    let counts = context.store.counters().table();
    counts.iter().chain(&others).map(|(name, value)| format!("{name} {value}\n")).collect()
}
