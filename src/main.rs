//! The command `hepfs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hepfs::serve_if_worker();
    hepfs::cli::run()
}
