//! `hepfs demo`.

use std::process::ExitCode;

use clap::Args;

use super::Error;

/// Write a sample file, mount it and show what is there
#[derive(Debug, Args)]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments, _: u8) -> Result<ExitCode, Error> {
    Err(Error::Usage("not built yet".into()))
}
