//! Limits of the system on this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files as far as the system allows: each HDF5 file in use takes one, and a folder may have
/// thousands.
pub(super) fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::info!("open files stay limited to {:?}: {error}", limit.current);
    }
}
