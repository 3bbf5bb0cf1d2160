//! Shows how far a command has come, and ends its work on a signal.
//!
//! | part | task |
//! | --- | --- |
//! | [`Watched`] | the work of a command, which `activity` lists |
//! | `line` | the line of a terminal, and that of a log |
//! | `schedule` | when a log gets a line |
//! | `screen` | keeps the line of a terminal apart from other output |

mod line;
mod schedule;
mod screen;

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use parking_lot::Mutex;
use serde::Serialize;

use self::schedule::Schedule;
pub(super) use self::screen::{AboveLine, Out, above, begin_output};
use super::Error;
use super::signals::{self, INTERRUPTED};
use super::terminal::is_dumb;
use crate::activity::{Unit, Work, WorkReport};
use crate::source::Interrupt;

/// Interval between updates of the line and checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Work that ends sooner needs no line on a terminal.
const SHORT: Duration = Duration::from_millis(500);

/// Checks after a signal until the program exits in any case: the reader of its output may have stopped reading.
const MOST_LOOKS: u32 = 10;

/// How a command shows its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Shown {
    /// A line on a terminal; elsewhere a line after 10 s, 30 s, 1, 2 and 5 minutes, then every 5
    #[default]
    Auto,
    /// The line of a terminal, wherever standard error goes
    Always,
    /// Nothing
    Never,
    /// A JSON object per line, each second and at the end
    Json,
}

/// How to show progress, and the command, as given on the command line.
static ASKED: OnceLock<(Shown, String)> = OnceLock::new();

/// Sets how the command of this process shows its progress.
pub(super) fn set(shown: Shown, command: &str) {
    // Once: a process runs one command.
    let _ = ASKED.set((shown, command.to_owned()));
}

/// Further progress, beside what is counted, and the units in all, if these become clear meanwhile.
type Position = Box<dyn Fn() -> (u64, Option<u64>) + Send>;

/// A command's work, which is listed and shown; a thread of its own draws it and waits for signals.
pub(super) struct Watched {
    /// Raised by a signal.
    pub interrupt: Interrupt,
    /// Units done in this step.
    pub done: Arc<AtomicU64>,
    position: Arc<Mutex<Option<Position>>>,
    work: Arc<Work>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    /// Lists the work, and shows it once it takes long. A signal raises the interrupt.
    ///
    /// # Errors
    /// If there can be no thread, or no signal can be caught.
    pub fn new(title: impl Into<String>, doing: &'static str) -> Result<Self, Error> {
        Self::with(signals::caught()?, title, doing)
    }

    /// As [`Watched::new`]; a signal ends the process as usual.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn without_signals(title: impl Into<String>, doing: &'static str) -> Result<Self, Error> {
        Self::with(Arc::default(), title, doing)
    }

    fn with(signalled: Arc<AtomicBool>, title: impl Into<String>, doing: &'static str) -> Result<Self, Error> {
        let interrupt = Interrupt::new();
        let work = Arc::new(Work::begin(title, doing, Unit::Objects));
        let (done, over, position) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default(), Arc::default());
        let (its_done, is_over, its_position) = (done.clone(), over.clone(), Arc::clone(&position));
        let (its_work, its_interrupt) = (work.clone(), interrupt.clone());
        let thread = std::thread::Builder::new().name("hepfs-progress".to_owned()).spawn(move || {
            let mut shower = Shower::new();
            let mut looks = 0;
            while !is_over.load(Ordering::Relaxed) {
                if signalled.load(Ordering::Relaxed) {
                    its_interrupt.raise();
                    looks += 1;
                }
                if looks > MOST_LOOKS {
                    screen::clear();
                    std::process::exit(INTERRUPTED.into());
                }
                std::thread::park_timeout(LOOK);
                reach(&its_work, &its_done, &its_position);
                shower.show(&its_work);
            }
            shower.end(&its_work);
        });
        let thread = Some(thread.map_err(Error::io("starting a thread"))?);
        Ok(Self { interrupt, done, position, work, over, thread })
    }

    /// Names what is worked on now, and how.
    pub fn name(&self, title: &str, doing: &'static str) {
        self.work.name(title, doing);
    }

    /// Begins a further step of `all` units; 0: not known.
    pub fn step(&self, unit: Unit, all: u64) {
        // What is announced for this step follows from the last progress of the step before it.
        reach(&self.work, &self.done, &self.position);
        let mut position = self.position.lock();
        *position = None;
        self.done.store(0, Ordering::Relaxed);
        self.work.step(unit);
        self.work.expect(all);
    }

    /// Forgets the speed so far: what follows in this step takes another time for each unit.
    pub fn turn(&self) {
        reach(&self.work, &self.done, &self.position);
        self.work.turn();
    }

    /// Adds `position` to the units that are counted in this step, in place of an earlier one.
    pub fn follow(&self, position: impl Fn() -> (u64, Option<u64>) + Send + 'static) {
        *self.position.lock() = Some(Box::new(position));
    }

    /// Sets the units of this step.
    pub fn expect(&self, all: u64) {
        self.work.expect(all);
    }

    /// As [`Work::expect_later`].
    pub fn expect_later(&self, later: u64) {
        self.work.expect_later(later);
    }

    /// Counts more units as done.
    pub fn add(&self, more: u64) {
        self.done.fetch_add(more, Ordering::Relaxed);
    }

    /// Writes a line to standard output, above that of the terminal. Ignores a closed output, so that the work
    /// continues.
    pub fn write(&self, line: &str) -> Result<(), Error> {
        match above(|| writeln!(std::io::stdout(), "{line}")) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(Error::io("standard output")),
        }
    }

    /// Removes the line of the terminal for good: output of the command follows.
    pub fn hide(&self) {
        screen::hide();
    }
}

/// Takes over the progress of a step.
fn reach(work: &Work, done: &AtomicU64, position: &Mutex<Option<Position>>) {
    // A step that begins meanwhile sets all of it under this lock.
    let position = position.lock();
    let (further, all) = position.as_ref().map_or((0, None), |position| position());
    if let Some(all) = all {
        work.expect(all);
    }
    work.reach(done.load(Ordering::Relaxed).saturating_add(further));
}

impl Drop for Watched {
    fn drop(&mut self) {
        reach(&self.work, &self.done, &self.position);
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread returns nothing.
            let _ = thread.join();
        }
        screen::clear();
    }
}

/// Shows the progress as the command line said.
struct Shower {
    began: Instant,
    form: Form,
    command: &'static str,
}

enum Form {
    Line,
    Log(Schedule),
    Json(Schedule),
    Nothing,
}

impl Shower {
    fn new() -> Self {
        let (shown, command) = ASKED.get().map_or((Shown::Auto, ""), |(shown, command)| (*shown, command));
        let is_terminal = std::io::stderr().is_terminal() && !is_dumb();
        let form = match shown {
            Shown::Never => Form::Nothing,
            Shown::Json => Form::Json(Schedule::each_second()),
            Shown::Always => Form::Line,
            Shown::Auto if is_terminal => Form::Line,
            Shown::Auto => Form::Log(Schedule::of_log()),
        };
        Self { began: Instant::now(), form, command }
    }

    fn show(&mut self, work: &Work) {
        let passed = self.began.elapsed();
        match &mut self.form {
            Form::Line if passed >= SHORT => {
                screen::draw(|width, has_colours| line::bar(&shown(work), width, has_colours))
            }
            Form::Log(schedule) => {
                if schedule.is_due(passed) {
                    say!("hepfs: {}", line::plain(&shown(work)));
                }
            }
            Form::Json(schedule) => {
                if schedule.is_due(passed) {
                    self.json(work);
                }
            }
            Form::Line | Form::Nothing => {}
        }
    }

    fn end(&self, work: &Work) {
        if matches!(self.form, Form::Json(_)) {
            self.json(work);
        }
    }

    fn json(&self, work: &Work) {
        #[derive(Serialize)]
        struct Line<'a> {
            command: &'a str,
            #[serde(flatten)]
            work: WorkReport,
        }
        let line = Line { command: self.command, work: shown(work) };
        say!("{}", serde_json::json!(line));
    }
}

/// The command's work; work that it waits for, if it does not count by itself.
fn shown(work: &Work) -> WorkReport {
    let own = work.report();
    let part = work.begun_since().filter(|part| own.all.is_none() && (part.all.is_some() || own.done == 0));
    part.map_or(own.clone(), |part| WorkReport { seconds: own.seconds, ..part })
}
