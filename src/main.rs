//! The command `hepfs`.

fn main() {}
