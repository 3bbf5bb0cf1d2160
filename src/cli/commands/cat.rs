//! `hepfs cat SOURCE:PATH`: the bytes of a file that a mount would show.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write, stdout};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bstr::ByteSlice;
use clap::Args;

use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::options::{ParquetOptions, ReadingOptions, Showing};
use crate::cli::place::{Place, short_name};
use crate::cli::progress::{Watched, begin_output};
use crate::cli::signals::INTERRUPTED;
use crate::cli::sizes::size;
use crate::cli::tables::MOST_NAMED;
use crate::fs::{self, NodeRef, tree};
use crate::session::{self, EntryKind, Settings};
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::printable;
use crate::views::{Effort, Size};

/// Bytes of the first piece: small, so that a reader of the beginning alone need not wait for more.
const FIRST: u64 = 64 << 10;

/// Largest piece in bytes; each piece is twice as long as the one before, up to this.
const PIECE: u64 = 1 << 20;

/// Pieces to read ahead of the writer, beside those that reader and writer hold.
const AHEAD: usize = 1;

/// Bytes of text after which the lengths of all blocks are measured, so that blocks can be rendered ahead on all cores.
/// With two cores the pass costs about as much as it saves, and a reader of the first lines should not wait for it.
const MANY: u64 = 32 << 20;

/// Write a file that a mount would show to standard output, without mounting
///
/// `hepfs ls` lists the files. The bytes are those of a mount. A closed pipe is no error; Ctrl-C ends the command with
/// exit code 130.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs cat run.h5:run_042/head.csv\n  \
    hepfs cat run.h5:image.npy > image.npy\n  \
    hepfs cat run.h5:run_042/where/energy:gt:5/table.parquet | duckdb -c \"from read_parquet('/dev/stdin')\"\n  \
    hepfs cat run.h5:run_042/columns/ts.raw --offset 8M --length 64 | od -t d8")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file or folder, and the path of a file in it as a mount would show it
    #[arg(value_name = "SOURCE:PATH")]
    place: OsString,

    /// First byte to write, which may be past the end: a number, or with K, M, G [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "0", hide_default_value = true)]
    offset: u64,

    /// Number of bytes to write at most: a number, or with K, M, G [default: all]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    length: Option<u64>,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    showing: Showing,

    #[command(flatten)]
    parquet: ParquetOptions,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let watched = Watched::new(short_name(&arguments.place), "writing")?;
    let interrupt = &watched.interrupt;
    match write(arguments, &watched) {
        // A closed output interrupts reading as well.
        Err(error @ (Error::Io { .. } | Error::Usage(_))) => Err(error),
        _ if interrupt.is_raised() => {
            say!("hepfs: interrupted");
            Ok(ExitCode::from(INTERRUPTED))
        }
        outcome => outcome.map(|()| ExitCode::SUCCESS),
    }
}

fn write(arguments: &Arguments, watched: &Watched) -> Result<(), Error> {
    let interrupt = &watched.interrupt;
    let parquet_statistics = arguments.parquet.are_shown();
    let settings = Settings { parquet_statistics, ..arguments.showing.settings()? };
    let place = Place::open(&arguments.place, arguments.reading.session(settings)?, interrupt)?;
    if place.is_directory() {
        return Err(directory(&place, interrupt));
    }
    let failed = |error| Error::Tree { path: place.name.clone(), error };
    let named = tree::node(place.spot.clone());
    let node = named.opened().map_err(failed)?.unwrap_or(named);
    let end = arguments.length.map_or(u64::MAX, |length| arguments.offset.saturating_add(length));
    // Output is binary: bypass the line buffer of standard output.
    let out = stdout().as_fd().try_clone_to_owned().map_err(Error::io("standard output"))?;
    let (mut out, is_terminal) = (File::from(out), stdout().is_terminal());
    let (full, pieces) = sync_channel(AHEAD);
    let (empty, buffers) = sync_channel(AHEAD + 2);
    thread::scope(|scope| {
        let read = || read(&node, (arguments.offset, end), buffers, full, interrupt);
        let reader = thread::Builder::new().name("hepfs-cat".to_owned()).spawn_scoped(scope, read);
        reader.map_err(Error::io("starting a thread"))?;
        let mut has_begun = false;
        for piece in pieces {
            let piece = piece.map_err(failed)?;
            if is_terminal && piece.contains(&0) {
                interrupt.raise();
                let hint = "not text, so not for a terminal: send it to a file or through a pipe";
                return Err(Error::Usage(format!("{}: {hint}", place.name)));
            }
            if !has_begun {
                begin_output();
                watched.step(Unit::Bytes, 0);
                has_begun = true;
            }
            if let Ok(Size::Exact(size)) = node.size(Effort::Known, interrupt) {
                watched.expect(size.min(end).saturating_sub(arguments.offset));
            }
            watched.add(piece.len() as u64);
            if let Err(error) = out.write_all(&piece) {
                interrupt.raise();
                return Err(Error::io("standard output")(error));
            }
            // The reader takes no more buffers once it has ended.
            empty.try_send(piece).ok();
        }
        Ok(())
    })
}

/// Reads a file piece by piece, until its end or until the receiver is gone.
fn read(
    node: &NodeRef,
    (mut offset, end): (u64, u64),
    buffers: Receiver<Vec<u8>>,
    full: SyncSender<Result<Vec<u8>, fs::Error>>,
    interrupt: &Interrupt,
) {
    let (mut length, mut left_to_measure) = (FIRST, MANY);
    while offset < end {
        // Reuses buffers, since fresh memory costs more than a copy.
        let mut piece: Vec<u8> = buffers.try_recv().unwrap_or_default();
        piece.clear();
        let wanted = length.min(end - offset);
        let mut answer = Answer::in_memory(piece);
        let outcome = node.gather(offset, wanted as usize, &mut answer, interrupt);
        let piece = answer.into_made();
        let got = piece.len() as u64;
        // A read that ends before the file's size must fail, or the missing bytes would go unnoticed.
        let outcome = outcome.and_then(|()| match node.size(Effort::Known, interrupt) {
            Ok(Size::Exact(size)) if got < wanted && offset.saturating_add(got) < size.min(end) => {
                Err(session::Error::Io(format!("{got} bytes at {offset} instead of {wanted}, in a file of {size}"))
                    .into())
            }
            _ => Ok(piece),
        });
        let is_over = outcome.is_err() || got < wanted;
        if full.send(outcome).is_err() || is_over {
            return;
        }
        (offset, length) = (offset.saturating_add(got), PIECE.min(2 * length));
        left_to_measure = left_to_measure.saturating_sub(got);
        if left_to_measure == 0 && !matches!(node.size(Effort::Known, interrupt), Ok(Size::Exact(_))) {
            left_to_measure = u64::MAX;
            // On failure, a read reports the error.
            node.size(Effort::Exact, interrupt).ok();
        }
    }
}

/// The error for a directory, with the files that can be written instead.
fn directory(place: &Place, interrupt: &Interrupt) -> Error {
    let children = match place.spot.children(interrupt) {
        Ok(children) => children,
        Err(error) => return place.failed(error),
    };
    let (mut files, mut directories, mut count) = (Vec::new(), Vec::new(), 0);
    for entry in children.iter() {
        let (names, mark) = if entry.kind == EntryKind::Directory { (&mut directories, "/") } else { (&mut files, "") };
        if names.len() < MOST_NAMED {
            names.push(printable(&format!("{}{mark}", place.below(None, &entry.name.to_str_lossy()))));
        }
        count += 1;
    }
    let mut lines = files;
    lines.extend(directories);
    lines.truncate(MOST_NAMED);
    lines.extend((count > lines.len()).then(|| format!("… and {} more", count - lines.len())));
    Error::Tables { what: format!("{}: a directory; name a file in it, as `hepfs ls` lists them:", place.name), lines }
}
