//! `hepfs ls SOURCE[:path]`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use bstr::ByteSlice;
use clap::Args;

use super::Error;
use super::options::Reading;
use super::place::Place;
use crate::fs::Kind;
use crate::fs::tree::printable;
use crate::source::Interrupt;
use crate::views::{Effort, Size};

/// List what a mount would show, without mounting
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hepfs ls -l run.h5:run_042/columns")]
pub(super) struct Arguments {
    /// An HDF5 file or a folder, and a path in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: String,

    /// Sizes as well; `<=` before one that takes a pass over the values to know (`hepfs prepare` does it ahead)
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let place = Place::find(&arguments.place, &arguments.reading)?;
    let interrupt = Interrupt::new();
    let mut out = BufWriter::new(std::io::stdout().lock());
    if !place.is_directory() {
        writeln!(out, "{}", printable(&place.name)).map_err(Error::io("standard output"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for entry in place.node.children(&interrupt).map_err(|error| place.failed(error))?.iter() {
        let name = printable(&entry.name.to_str_lossy());
        let mark = match entry.kind {
            Kind::Directory => "/",
            Kind::Symlink => "@",
            Kind::File | Kind::LiveFile => "",
        };
        if arguments.long {
            let size = match entry.kind {
                Kind::File => place
                    .node
                    .lookup(&entry.name, &interrupt)
                    .and_then(|node| node.size(Effort::Quick, &interrupt))
                    .map_or_else(|error| error.to_string(), size_text),
                _ => "-".into(),
            };
            writeln!(out, "{size:>22}  {name}{mark}").map_err(Error::io("standard output"))?;
        } else {
            writeln!(out, "{name}{mark}").map_err(Error::io("standard output"))?;
        }
    }
    out.flush().map_err(Error::io("standard output"))?;
    Ok(ExitCode::SUCCESS)
}

fn size_text(size: Size) -> String {
    match size {
        Size::Exact(bytes) => bytes.to_string(),
        Size::AtMost(bytes) => format!("<={bytes}"),
    }
}
