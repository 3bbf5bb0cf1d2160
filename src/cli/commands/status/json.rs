//! `--json`: one document (`docs/status.schema.json`).

use std::time::SystemTime;

use serde::Serialize;

use super::lines::{DaemonState, Looked, StatusLine};
use crate::activity::Report;
use crate::source::holders::{Hold, Holder};
use crate::views::printable_json;

/// Version of the document: counts up when a reader could notice a change; new keys may come without that.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    /// Seconds since 1970.
    time: u64,
    mounts: Vec<Entry<'a>>,
    commands: Vec<Entry<'a>>,
    left_out: usize,
}

#[derive(Serialize)]
struct Entry<'a> {
    state: DaemonState,
    mountpoint: Option<String>,
    uid: u32,
    pid: Option<u32>,
    device: Option<String>,
    namespace: Option<u64>,
    detached: bool,
    source: &'a str,
    report: Option<&'a Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<Vec<HolderEntry<'a>>>,
}

#[derive(Serialize)]
struct HolderEntry<'a> {
    pid: u32,
    program: &'a str,
    hold: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

pub(super) fn text(looked: &Looked) -> String {
    let (mounts, commands): (Vec<&StatusLine>, Vec<&StatusLine>) =
        looked.lines.iter().partition(|line| line.is_mount());
    let document = Document {
        schema: SCHEMA,
        time: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        mounts: mounts.into_iter().map(entry).collect(),
        commands: commands.into_iter().map(entry).collect(),
        left_out: looked.left_out,
    };
    // Numbers and texts only.
    printable_json(&(serde_json::to_string(&document).unwrap_or_default() + "\n"))
}

fn entry(line: &StatusLine) -> Entry<'_> {
    Entry {
        state: line.state,
        mountpoint: line.mountpoint.as_ref().map(|path| path.to_string_lossy().into_owned()),
        uid: line.uid,
        pid: line.pid,
        device: line.device.map(|(major, minor)| format!("{major}:{minor}")),
        namespace: line.namespace,
        detached: line.is_detached,
        source: &line.source,
        report: line.report.as_ref(),
        holders: line.holders.as_ref().map(|holders| holders.iter().map(holder_entry).collect()),
    }
}

fn holder_entry(holder: &Holder) -> HolderEntry<'_> {
    let (hold, path) = match &holder.hold {
        Hold::File(path) => ("file", Some(path)),
        Hold::Mapping(path) => ("mapping", Some(path)),
        Hold::Folder => ("folder", None),
        Hold::Root => ("root", None),
        Hold::Namespace { .. } => ("namespace", None),
    };
    let path = path.map(|path| path.to_string_lossy().into_owned());
    HolderEntry { pid: holder.pid, program: &holder.program, hold, path }
}
