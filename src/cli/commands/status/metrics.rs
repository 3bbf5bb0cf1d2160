//! `--metrics`: the text format of Prometheus, version 0.0.4.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::lines::{DaemonState, Looked, StatusLine};
use crate::activity::Report;
use crate::store::Counters;
use crate::views::printable;

/// Name, type and help of a metric, and its value for a mount.
type Family = (&'static str, &'static str, &'static str, fn(&Report) -> Option<f64>);

/// Metrics with one value for each mount.
const FAMILIES: [Family; 9] = [
    ("hepfs_start_time_seconds", "gauge", "When it was mounted, in seconds since 1970.", |report| {
        Some(report.since as f64)
    }),
    ("hepfs_cache_bytes", "gauge", "Memory that caches hold.", |report| Some(report.memory.held as f64)),
    ("hepfs_cache_limit_bytes", "gauge", "Most memory for caches (--cache-size).", |report| {
        Some(report.memory.budget as f64)
    }),
    ("hepfs_resident_memory_bytes", "gauge", "Memory of the process, without its HDF5 workers.", |report| {
        Some(report.memory.resident as f64)
    }),
    ("hepfs_works", "gauge", "Passes and other long work under way.", |report| Some(report.works.len() as f64)),
    ("hepfs_idle_seconds", "gauge", "Time since the last request.", |report| report.seconds_idle),
    ("hepfs_files", "gauge", "Files in its folders, as far as they were listed.", |report| Some(report.files? as f64)),
    ("hepfs_served_bytes_total", "counter", "Bytes of files sent to the kernel.", |report| {
        Some(report.bytes_served as f64)
    }),
    ("hepfs_errors_total", "counter", "Errors of sources.", |report| Some(report.errors as f64)),
];

/// Gathers the samples of one metric after another.
#[derive(Default)]
struct Metrics {
    text: String,
    /// Names with labels: a reader refuses a text that has one twice.
    written: BTreeSet<String>,
}

impl Metrics {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let sample = format!("{name}{{{labels}}}");
        if self.written.insert(sample.clone()) {
            self.text += &format!("{sample} {value}\n");
        }
    }
}

pub(super) fn text(looked: &Looked) -> String {
    let mut metrics = Metrics::default();
    let mounts: Vec<(&StatusLine, String)> =
        looked.lines.iter().filter(|line| line.is_mount()).map(|line| (line, labels(line, looked.own_user))).collect();
    let answers = || mounts.iter().filter_map(|(line, labels)| Some((line.report.as_ref()?, labels.as_str())));

    metrics.family("hepfs_up", "gauge", "Whether the process of the mount answers.");
    for (line, labels) in &mounts {
        metrics.sample("hepfs_up", labels, u8::from(line.state == DaemonState::Answers));
    }
    for (name, kind, help, value) in FAMILIES {
        metrics.family(name, kind, help);
        for (report, labels) in answers() {
            value(report).into_iter().for_each(|value| metrics.sample(name, labels, value));
        }
    }
    // Not by the names in an answer: another user's may have any.
    for (counter, _) in Counters::default().table() {
        let name = format!("hepfs_{counter}_total");
        metrics.family(&name, "counter", &format!("The count {counter} of .hepfs/stats."));
        for (report, labels) in answers() {
            report.counters.get(counter).into_iter().for_each(|count| metrics.sample(&name, labels, count));
        }
    }
    requests(&mut metrics, answers);
    metrics.family("hepfs_commands", "gauge", "Long commands that run.");
    metrics.sample("hepfs_commands", "", looked.lines.len() - mounts.len());
    metrics.text
}

fn requests<'a, I: Iterator<Item = (&'a Report, &'a str)>>(metrics: &mut Metrics, answers: impl Fn() -> I) {
    let of_kinds = || {
        answers().flat_map(|(report, labels)| {
            report.requests.iter().map(move |of_kind| (of_kind, format!("{labels},kind=\"{}\"", of_kind.kind.name())))
        })
    };
    metrics.family("hepfs_requests_total", "counter", "Requests answered.");
    of_kinds().for_each(|(of_kind, labels)| metrics.sample("hepfs_requests_total", &labels, of_kind.count));
    let name = "hepfs_request_duration_seconds";
    metrics.family(name, "histogram", "Time until a request was answered.");
    let bucket = format!("{name}_bucket");
    for (of_kind, labels) in of_kinds() {
        for (bound, count) in &of_kind.at_most {
            metrics.sample(&bucket, &format!("{labels},le=\"{bound}\""), count);
        }
        metrics.sample(&bucket, &format!("{labels},le=\"+Inf\""), of_kind.count);
        metrics.sample(&format!("{name}_sum"), &labels, of_kind.seconds);
        metrics.sample(&format!("{name}_count"), &labels, of_kind.count);
    }
}

/// The labels of a mount: as few as tell it from others.
fn labels(line: &StatusLine, own_user: u32) -> String {
    let mut labels = match (&line.mountpoint, line.job()) {
        (_, Some(job)) => format!("mount=\"(run)\",job=\"{job}\""),
        (Some(path), None) => format!("mount=\"{}\"", escaped(&path.to_string_lossy())),
        (None, None) => format!("mount=\"\",process=\"{}\"", line.pid.unwrap_or_default()),
    };
    if let Some(namespace) = line.namespace.filter(|_| line.job().is_none()) {
        labels += &format!(",namespace=\"{namespace}\"");
    }
    if line.is_detached {
        labels += &format!(",process=\"{}\"", line.pid.unwrap_or_default());
    }
    if line.uid != own_user {
        labels += &format!(",user=\"{}\"", line.uid);
    }
    labels
}

/// The value of a label: `\` and `"` are escaped, behind what [`printable`] escapes.
fn escaped(value: &str) -> String {
    printable(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_no_sample_comes_twice() {
        assert_eq!(escaped("a\\b \"c\"\nd"), r#"a\\b \"c\"\\nd"#);
        let mut metrics = Metrics::default();
        metrics.sample("hepfs_up", "mount=\"/a\"", 1);
        metrics.sample("hepfs_up", "mount=\"/a\"", 0);
        assert_eq!(metrics.text, "hepfs_up{mount=\"/a\"} 1\n");
    }
}
