//! `hepfs ls SOURCE[:path]`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use bstr::ByteSlice;
use clap::Args;

use crate::cli::Error;
use crate::cli::options::{FileOptions, Showing};
use crate::cli::place::NamedPlaces;
use crate::cli::progress::Out;
use crate::session::{self, EntryKind, Settings, Spot};
use crate::source::Interrupt;
use crate::views::printable;
use crate::views::{Effort, Size};

/// List what a mount would show, without mounting
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hepfs ls -l run.h5:run_042/columns")]
pub(in crate::cli) struct Arguments {
    /// Also print sizes; `<=` marks one that no pass over the values has confirmed (`hepfs prepare` makes it ahead): of
    /// text a bound, of Parquet and Arrow files the final size
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    named: NamedPlaces,

    #[command(flatten)]
    showing: Showing,

    #[command(flatten)]
    files: FileOptions,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let settings = Settings { formats: arguments.files.formats(), ..arguments.showing.settings()? };
    arguments.named.each(&settings, ("listing", 1), |asked, watched| {
        let interrupt = &watched.interrupt;
        let place = asked.find(interrupt)?;
        // A folder's lines need no prefix: they name the folder's own entries.
        let prefix = if place.is_one_of_several { place.prefix(None) } else { String::new() };
        let mut out = BufWriter::new(Out::new());
        let mut list = |name: &str, kind: EntryKind, spot: &dyn Fn() -> Result<Spot, session::Error>| {
            let size = arguments.long.then(|| size_text(kind, spot, interrupt));
            writeln!(out, "{prefix}{}", line(name, kind, size.as_deref())).map_err(Error::io("standard output"))
        };
        if place.is_directory() {
            let children = place.spot.children(interrupt).map_err(|error| place.failed(error))?;
            for entry in children.iter() {
                list(&entry.name.to_str_lossy(), entry.kind, &|| place.spot.lookup(&entry.name, interrupt))?;
            }
        } else {
            list(&place.name, place.spot.kind(), &|| Ok(place.spot.clone()))?;
        }
        out.flush().map_err(Error::io("standard output"))?;
        Ok(0)
    })
}

/// The line for a name. Names, and reasons why there is no size, are escaped: they may come from a hostile file.
fn line(name: &str, kind: EntryKind, size: Option<&str>) -> String {
    let mark = match kind {
        EntryKind::Directory => "/",
        EntryKind::Symlink => "@",
        EntryKind::File | EntryKind::LiveFile => "",
    };
    let name = printable(name);
    match size {
        Some(size) => format!("{:>22}  {name}{mark}", printable(size)),
        None => format!("{name}{mark}"),
    }
}

fn size_text(kind: EntryKind, spot: &dyn Fn() -> Result<Spot, session::Error>, interrupt: &Interrupt) -> String {
    if kind != EntryKind::File {
        return "-".into();
    }
    let size = spot().and_then(|spot| match spot {
        Spot::File(file) => file.size(Effort::Quick, interrupt),
        _ => Ok(Size::Exact(0)),
    });
    match size {
        Ok(Size::Exact(bytes)) => bytes.to_string(),
        Ok(Size::AtMost(bytes)) => format!("<={bytes}"),
        Err(error) => error.to_string(),
    }
}
