//! A log of the last errors that requests ran into.

use std::collections::VecDeque;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::views::printable;

/// Most errors kept.
const MOST_ERRORS: usize = 1000;

/// The last errors, oldest first; equal consecutive ones share an entry with a count.
#[derive(Debug, Default)]
pub struct ErrorLog(Mutex<VecDeque<(SystemTime, String, u64)>>);

impl ErrorLog {
    /// Adds an error, and logs it.
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

    /// The last error; `None`: no request ran into one yet.
    pub fn last(&self) -> Option<String> {
        self.0.lock().back().map(|(_, message, _)| message.clone())
    }

    /// Renders one line per error: seconds since 1970, the message, and how many times if more than once.
    pub fn text(&self) -> String {
        let errors = self.0.lock();
        let lines = errors.iter().map(|(time, message, times)| {
            let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            format!("{seconds} {message}{times}\n")
        });
        lines.collect()
    }
}
