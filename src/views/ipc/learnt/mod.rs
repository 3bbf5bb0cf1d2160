//! What must be learnt from values, and is kept: lengths, which decide where everything lies, and nulls, which headers
//! count.

pub(super) mod lengths;
pub(super) mod nulls;
