//! Keeps the line of progress apart from all other output to the terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use parking_lot::Mutex;
use rustix::fs::FileType;

use super::{ASKED, Shown};
use crate::cli::terminal::{are_colours_refused, columns_of};

static SCREEN: Mutex<Screen> = Mutex::new(Screen { drawn: String::new(), is_hidden: false });

struct Screen {
    /// The line that the terminal shows; empty: none.
    drawn: String,
    is_hidden: bool,
}

impl Screen {
    fn clear(&mut self) {
        if !std::mem::take(&mut self.drawn).is_empty() {
            // The terminal may be gone.
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// Draws the line that `make` returns for this many columns, with colours or without. Does nothing while other output
/// is written.
pub(super) fn draw(make: impl FnOnce(usize, bool) -> String) {
    let Some(mut screen) = SCREEN.try_lock().filter(|screen| !screen.is_hidden) else { return };
    let line = make(columns_of(io::stderr()), !are_colours_refused());
    if line != screen.drawn {
        // Without automatic margins, characters that take two columns do not make it two lines.
        let _ = io::stderr().write_all(format!("\r\x1b[?7l{line}\x1b[K\x1b[?7h").as_bytes());
        screen.drawn = line;
    }
}

/// Removes the line; it may be drawn again. Does nothing while other output is written.
pub(super) fn clear() {
    if let Some(mut screen) = SCREEN.try_lock() {
        screen.clear();
    }
}

/// Removes the line for good.
pub(super) fn hide() {
    let mut screen = SCREEN.lock();
    screen.clear();
    screen.is_hidden = true;
}

/// Writes whole lines in place of that of progress, which is drawn below them soon after.
pub(in crate::cli) fn above<T>(write: impl FnOnce() -> T) -> T {
    let mut screen = SCREEN.lock();
    screen.clear();
    write()
}

/// Standard error, for whole lines above that of progress.
pub(in crate::cli) struct AboveLine;

impl Write for AboveLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        above(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Standard output of a command that writes it while it works.
pub(in crate::cli) struct Out {
    is_first: bool,
}

impl Out {
    pub fn new() -> Self {
        Self { is_first: true }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if std::mem::take(&mut self.is_first) {
            begin_output();
        }
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Removes the line for good before a first byte goes to standard output: that, or what reads a pipe, may write to the
/// same terminal. Files do not; with `always` the line stays.
pub(in crate::cli) fn begin_output() {
    let is_pipe = rustix::fs::fstat(io::stdout().as_fd())
        .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket));
    let is_wanted = ASKED.get().is_some_and(|(shown, _)| *shown == Shown::Always);
    if io::stdout().is_terminal() || is_pipe && !is_wanted {
        hide();
    }
}
