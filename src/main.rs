//! The command `hepfs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The program starts itself as the worker that runs libhdf5; nothing else of it may run in there.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "hdf5-worker") {
        return hepfs::h5::worker_main();
    }
    hepfs::cli::run()
}
