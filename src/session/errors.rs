//! A log of the last errors that requests ran into.

use std::collections::VecDeque;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::activity::ErrorReport;
use crate::store::Counter;
use crate::views::printable;

/// Most errors kept.
const MOST_ERRORS: usize = 1000;

/// The last errors, oldest first; equal consecutive ones share an entry with a count.
#[derive(Debug, Default)]
pub struct ErrorLog {
    last: Mutex<VecDeque<(SystemTime, String, u64)>>,
    count: Counter,
}

impl ErrorLog {
    /// Adds an error, and logs it.
    pub fn add(&self, message: &str) {
        let message = printable(message);
        tracing::warn!("{message}");
        self.count.add(1);
        let mut errors = self.last.lock();
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

    /// The last error; `None`: no request ran into one yet.
    pub fn last(&self) -> Option<String> {
        self.last.lock().back().map(|(_, message, _)| message.clone())
    }

    /// How many errors there were.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// The last errors, `most` at most.
    pub fn reports(&self, most: usize) -> Vec<ErrorReport> {
        let errors = self.last.lock();
        let last = errors.iter().skip(errors.len().saturating_sub(most));
        last.map(|(time, message, times)| ErrorReport { at: seconds(*time), message: message.clone(), times: *times })
            .collect()
    }

    /// Renders one line per error: seconds since 1970, the message, and how many times if more than once.
    pub fn text(&self) -> String {
        let errors = self.last.lock();
        let lines = errors.iter().map(|(time, message, times)| {
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            format!("{} {message}{times}\n", seconds(*time))
        });
        lines.collect()
    }
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
