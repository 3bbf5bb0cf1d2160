//! The commands, one file each.

pub(super) mod cat;
pub(super) mod check;
pub(super) mod complete;
pub(super) mod completions;
pub(super) mod convert;
pub(super) mod demo;
pub(super) mod export;
pub(super) mod head;
pub(super) mod import;
pub(super) mod index;
pub(super) mod info;
pub(super) mod ls;
pub(super) mod manual;
pub(super) mod mount;
pub(super) mod prepare;
pub(super) mod query;
pub(super) mod run;
#[cfg(feature = "serve")]
pub(super) mod serve;
pub(super) mod status;
pub(super) mod umount;
pub(super) mod version;
