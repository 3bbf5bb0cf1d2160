//! `hepfs version`: how the program was built, and the system it runs on.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use crate::cli::{Error, VERSION};
use crate::{codec, h5, store};

/// Print versions of the program, of libc and of codecs, and what `hepfs run --check` says, for a report
///
/// `hepfs --version` prints the first line alone.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {}

pub(in crate::cli) fn run() -> Result<ExitCode, Error> {
    let mut out = std::io::stdout().lock();
    let (mounts, _) = super::run::report()?;
    let mut lines = lines().into_iter().chain(mounts.lines().map(str::to_owned));
    lines.try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
    Ok(ExitCode::SUCCESS)
}

fn lines() -> [String; 5] {
    let libraries = codec::libraries().map(|(name, version)| format!("{name} {version}"));
    let filters = codec::FILTERS.map(|(id, name)| format!("{name} {id}"));
    [
        format!("hepfs {}", *VERSION),
        format!("libc: {}", store::libc()),
        "allocator: that of libc".to_owned(),
        format!("libraries: HDF5 {}, {}", h5::library_version(), libraries.join(", ")),
        format!("filters decoded without a plugin: {}", filters.join(", ")),
    ]
}
