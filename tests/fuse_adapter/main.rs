//! The FUSE adapter over a tree of toys, mounted for real through `/dev/fuse`.

mod contents;
mod daemon;
mod mounted;
mod names;
#[path = "../support/programs.rs"]
mod programs;
mod slow;
mod toy;
