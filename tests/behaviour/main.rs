//! The promises of `docs/promises.md` as black-box tests: the real program, real mounts, real HDF5 files.

mod place;
#[path = "../support/range_server.rs"]
#[allow(dead_code, reason = "`engine` uses all of it")]
mod range_server;
#[path = "../support/served.rs"]
mod served;
#[path = "../support/shelf.rs"]
#[allow(dead_code, reason = "`engine` uses all of it")]
mod shelf;
#[path = "../support/mod.rs"]
mod support;
mod writer;

mod attributes;
mod catalogue;
mod changes;
mod commands;
mod completion;
mod daemon;
mod head;
mod hostile;
mod import;
mod import_losses;
mod import_options;
mod index_build;
mod info;
mod kept;
mod learnt;
mod mount_helper;
mod objects;
mod outside;
mod pages;
mod passed_on;
mod plugins;
mod progress;
mod remote;
mod run;
mod serve;
mod service;
mod slow;
mod sources;
mod statistics;
mod status;
mod stores;
mod user;

use std::path::{Path, PathBuf};

/// A committed test file.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
