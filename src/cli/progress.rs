//! A progress bar, and the signals that end the work.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::Error;
use super::signals::{self, INTERRUPTED};
use crate::source::Interrupt;

/// Interval between updates of the bar and checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Interval between lines about progress if there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// Checks after a signal until the program exits in any case: the reader of its output may have stopped reading.
const MOST_LOOKS: u32 = 10;

/// The bar and the signals, on a thread of their own.
pub(super) struct Watched {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    /// Raises `interrupt` on a signal; the bar shows `position` out of `length`.
    pub fn new(interrupt: Interrupt, length: u64, position: impl Fn() -> u64 + Send + 'static) -> Result<Self, Error> {
        let signalled = signals::caught()?;
        let bar = ProgressBar::new(length);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {eta:>4}  {wide_msg}") {
            bar.set_style(style);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, its_bar) = (over.clone(), bar.clone());
        let watch = move || {
            let is_plain = !std::io::stderr().is_terminal();
            let (mut looks, mut said) = (0, Instant::now());
            while !is_over.load(Ordering::Relaxed) {
                if signalled.load(Ordering::Relaxed) {
                    interrupt.raise();
                    looks += 1;
                }
                if looks > MOST_LOOKS {
                    std::process::exit(INTERRUPTED.into());
                }
                // Short work needs no bar.
                std::thread::park_timeout(LOOK);
                // Nor does work of unknown length.
                if its_bar.is_finished() || its_bar.length() == Some(0) {
                    continue;
                }
                its_bar.set_position(position());
                let what = its_bar.message();
                if is_plain && !what.is_empty() && said.elapsed() > LINES {
                    said = Instant::now();
                    let all = its_bar.length().unwrap_or(0).max(1);
                    say!("hepfs: {} %: {what}", its_bar.position().saturating_mul(100) / all);
                }
            }
        };
        let thread = std::thread::Builder::new().name("hepfs-progress".to_owned()).spawn(watch);
        Ok(Self { bar, over, thread: Some(thread.map_err(Error::io("starting a thread"))?) })
    }

    /// Sets the length of the bar.
    pub fn expect(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// Sets the description of the work, which is printed from time to time if there is no terminal.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Writes a line above the bar. Ignores a closed output, so that the work continues.
    pub fn write(&self, line: &str) -> Result<(), Error> {
        match self.bar.suspend(|| writeln!(std::io::stdout(), "{line}")) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(Error::io("standard output")),
        }
    }

    /// Removes the bar, which would garble other output.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread returns nothing.
            let _ = thread.join();
        }
        self.finish();
    }
}
