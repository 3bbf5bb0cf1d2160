//! Facts learnt from values and kept: lengths, which determine the layout, and null counts, which headers contain.

pub(super) mod lengths;
pub(super) mod nulls;
